/* base/library.c: dlopen and dlsym. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/alloc.h"

void *wefti_library_open(const char *name)
{
    return wefti_fault("dlopen", 0) ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *wefti_library_open_for_plugins(const char *name)
{
    return wefti_fault("dlopen", 0) ? NULL : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

void wefti_library_close(void *library)
{
    if (library != NULL) {
        (void)dlclose(library);
    }
}

const char *wefti_library_error(void)
{
    const char *text = dlerror();
    return text == NULL ? "it is not known why" : text;
}

int wefti_process_is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

static int store(void *symbol, void *function)
{
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

int wefti_library_find_loaded(const char *soname, const char *name, void *function)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    void *library = symbol != NULL || soname == NULL ? NULL : dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) {
        symbol = dlsym(library, name);
        (void)dlclose(library); /* whoever loaded it keeps it loaded */
    }
    return store(symbol, function);
}

int wefti_library_find(void *library, const char *name, void *function)
{
    return store(dlsym(library, name), function);
}

int wefti_library_find_version(void *library, const char *name, const char *version, void *function)
{
    return store(dlvsym(library, name, version), function);
}
