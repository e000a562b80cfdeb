/* cuda/driver/pci.c: which GPU it will be, for who must know before a device is attached. */
#include <dlfcn.h>
#include <stddef.h>

#include "cuda/driver/pci.h"

/* The GPU of the current context. A process that has not loaded CUDA uses no GPU, and nothing is loaded to find out. */
static int find_current(char *text, int bytes)
{
    void *library = dlopen(WEFTI_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    CUdevice device;
    int is_known = 0;
    if (library == NULL) {
        return 0;
    }
    __typeof__(&cuCtxGetDevice) get_device;
    __typeof__(&cuDeviceGetPCIBusId) get_pci;
    *(void **)&get_device = dlsym(library, "cuCtxGetDevice");
    *(void **)&get_pci = dlsym(library, "cuDeviceGetPCIBusId");
    if (get_device != NULL && get_pci != NULL) {
        is_known = get_device(&device) == CUDA_SUCCESS && get_pci(text, bytes, device) == CUDA_SUCCESS;
    }
    dlclose(library);
    return is_known;
}

static int find_ordinal(int ordinal, char *text, int bytes)
{
    wefti_cuda_driver driver;
    if (wefti_cuda_driver_open(&driver) != WEFT_OK) {
        return 0; /* attach says so */
    }
    const int is_known = driver.cuDeviceGetPCIBusId(text, bytes, ordinal) == CUDA_SUCCESS;
    wefti_cuda_driver_close(&driver);
    return is_known;
}

int wefti_cuda_find_pci(const weft_device_config *config, char *text, int bytes)
{
    const int is_named = config != NULL &&
                         config->size >= offsetof(weft_device_config, ordinal) + sizeof config->ordinal &&
                         config->choice == WEFT_DEVICE_ORDINAL;
    return is_named ? find_ordinal(config->ordinal, text, bytes) : find_current(text, bytes);
}
