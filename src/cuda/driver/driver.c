#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define TEXT_OF(name) TEXT_OF_EXPANDED(name)
#define TEXT_OF_EXPANDED(name) #name

static weft_status find_functions(wefti_cuda_driver *driver)
{
    const struct {
        const char *name;
        size_t field;
    } wanted[] = {
#define WANTED(function) {TEXT_OF(function), offsetof(wefti_cuda_driver, function)},
        WEFTI_CUDA_FUNCTIONS(WANTED)
#undef WANTED
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *function = dlsym(driver->library, wanted[i].name);
        if (function == NULL) {
            return wefti_error(WEFT_ERR_UNSUPPORTED,
                               "the CUDA driver has no %s; install a driver for CUDA 12.4 or later", wanted[i].name);
        }
        memcpy((char *)driver + wanted[i].field, &function, sizeof function);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_check(const wefti_cuda_driver *driver, CUresult result, const char *call)
{
    const char *text = NULL;
    if (result == CUDA_SUCCESS) {
        return WEFT_OK;
    }
    (void)driver->cuGetErrorString(result, &text);
    return wefti_error(result == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_ERR_MEMORY : WEFT_ERR_SYSTEM,
                       "%s failed: %s (CUDA error %d)", call, text == NULL ? "no text" : text, (int)result);
}

weft_status wefti_cuda_driver_open(wefti_cuda_driver *driver)
{
    memset(driver, 0, sizeof *driver);
    driver->library =
        wefti_fault("dlopen", 0) ? NULL : dlopen(WEFTI_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (driver->library == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "no CUDA driver: %s cannot be loaded; device memory needs one",
                           WEFTI_CUDA_LIBRARY);
    }
    weft_status status = find_functions(driver);
    if (status == WEFT_OK) {
        CUresult result = driver->cuInit(0);
        if (result != CUDA_SUCCESS) {
            const char *text = NULL;
            (void)driver->cuGetErrorString(result, &text);
            status = wefti_error(WEFT_ERR_UNSUPPORTED, "the CUDA driver does not start: %s; is there a GPU?",
                                 text == NULL ? "no text" : text);
        }
    }
    if (status != WEFT_OK) {
        wefti_cuda_driver_close(driver);
    }
    return status;
}

void wefti_cuda_driver_close(wefti_cuda_driver *driver)
{
    if (driver->library != NULL) {
        dlclose(driver->library);
    }
    memset(driver, 0, sizeof *driver);
}
