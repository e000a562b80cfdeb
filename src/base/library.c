/* base/library.c: dlopen and dlsym. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"

void *wefti_library_open(const char *name)
{
    return wefti_fault("dlopen", 0) ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void wefti_library_close(void *library)
{
    if (library != NULL) {
        (void)dlclose(library);
    }
}

static int store(void *symbol, void *function)
{
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

int wefti_library_find(void *library, const char *name, void *function)
{
    return store(dlsym(library, name), function);
}

int wefti_library_find_version(void *library, const char *name, const char *version, void *function)
{
    return store(dlvsym(library, name, version), function);
}
