/* faces/nvshmem/driver.c: CUDA's driver, loaded when it is first needed and then kept, as the driver itself would
 * be. */
#include "faces/nvshmem/driver.h"

#include <dlfcn.h>
#include <pthread.h>

static wefti_nv_driver driver;
static int is_there;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        return;
    }
    is_there = 1;
#define LOAD(FIELD, NAME, PARAMETERS)                                                                                  \
    *(void **)&driver.FIELD = dlsym(library, NAME);                                                                    \
    is_there = is_there && driver.FIELD != NULL;
    WEFTI_NV_DRIVER_TABLE(LOAD)
#undef LOAD
#define LOAD(FIELD, NAME, PARAMETERS) *(void **)&driver.FIELD = dlsym(library, NAME);
    WEFTI_NV_DRIVER_EXTRAS(LOAD)
#undef LOAD
}

const wefti_nv_driver *wefti_nv_driver_open(void)
{
    (void)pthread_once(&once, load);
    return is_there ? &driver : NULL;
}
