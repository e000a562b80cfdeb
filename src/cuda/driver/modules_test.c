/* Goal: a module is loaded once a context, whichever world asks, again in a context that has taken the place of
 * another, and again in a process that was forked. Method: a driver of counters. */
#include "cuda/driver/modules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int loads;
static unsigned long long number; /* of the context */
static int fails;

static CUresult get_id(CUcontext context, unsigned long long *id)
{
    (void)context;
    *id = number;
    return CUDA_SUCCESS;
}

static CUresult load_data(CUmodule *module, const void *image)
{
    (void)image;
    if (fails) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *module = (CUmodule)(uintptr_t)++loads;
    return CUDA_SUCCESS;
}

static CUresult error_string(CUresult result, const char **text)
{
    (void)result;
    *text = "no memory";
    return CUDA_SUCCESS;
}

static CUmodule loaded_by(const wefti_cuda *cuda, const void *image)
{
    CUmodule module = NULL;
    assert_int_equal(wefti_cuda_module_load(cuda, image, &module), WEFT_OK);
    return module;
}

static void loads_once(void **state)
{
    (void)state;
    static wefti_cuda worlds[2];
    static const char images[2];
    for (int i = 0; i < 2; i++) {
        worlds[i].driver.cuCtxGetId = get_id;
        worlds[i].driver.cuModuleLoadData = load_data;
        worlds[i].driver.cuGetErrorString = error_string;
    }
    number = 7;
    CUmodule first = loaded_by(&worlds[0], &images[0]);
    assert_ptr_equal(loaded_by(&worlds[1], &images[0]), first);
    assert_ptr_not_equal(loaded_by(&worlds[1], &images[1]), first);
    assert_int_equal(loads, 2);
    number = 8;
    assert_ptr_not_equal(loaded_by(&worlds[0], &images[0]), first);
    assert_int_equal(loads, 3);
    number = 7;
    assert_ptr_equal(loaded_by(&worlds[0], &images[0]), first);

    fails = 1;
    number = 9;
    CUmodule module = NULL;
    assert_int_equal(wefti_cuda_module_load(&worlds[0], &images[0], &module), WEFT_ERR_MEMORY);
    fails = 0;
    assert_ptr_not_equal(loaded_by(&worlds[0], &images[0]), NULL);
    assert_int_equal(loads, 4);

    for (number = 10; number < 2000; number++) { /* more contexts than are remembered */
        CUmodule made = loaded_by(&worlds[0], &images[0]);
        assert_ptr_equal(loaded_by(&worlds[1], &images[0]), made);
    }
    number--;
    const int before = loads;
    pid_t child = fork();
    if (child == 0) {
        (void)loaded_by(&worlds[0], &images[0]);
        _exit(loads != before + 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
