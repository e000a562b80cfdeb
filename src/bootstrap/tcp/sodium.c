/* bootstrap/tcp/sodium.c: libsodium, loaded when there is a secret. */
#include "bootstrap/tcp/sodium.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#ifdef WEFT_HAVE_SODIUM

#include <dlfcn.h>
#include <sodium.h>

#define LIBRARY "libsodium.so.23"

/* The header of libsodium and our table agree on what is called. */
_Static_assert(__builtin_types_compatible_p(__typeof__(&crypto_generichash),
                                            __typeof__(((wefti_sodium *)0)->generichash)),
               "crypto_generichash has another type");

/* ISO C has no conversion from an object pointer to a function pointer. */
static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

weft_status wefti_sodium_open(wefti_sodium *sodium)
{
    memset(sodium, 0, sizeof *sodium);
    sodium->library = wefti_fault("dlopen", 0) ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (sodium->library == NULL || !find(sodium->library, "sodium_init", &sodium->init) ||
        !find(sodium->library, "crypto_generichash", &sodium->generichash) || sodium->init() < 0) {
        wefti_sodium_close(sodium);
        return wefti_error(WEFT_ERR_UNSUPPORTED, "unique ids and secrets need " LIBRARY
                                                 ", which cannot be loaded; install the package libsodium23");
    }
    return WEFT_OK;
}

void wefti_sodium_close(wefti_sodium *sodium)
{
    if (sodium->library != NULL) {
        (void)dlclose(sodium->library);
    }
    memset(sodium, 0, sizeof *sodium);
}

#else

weft_status wefti_sodium_open(wefti_sodium *sodium)
{
    memset(sodium, 0, sizeof *sodium);
    return wefti_error(
        WEFT_ERR_UNSUPPORTED,
        "this build of weft has no unique ids and no secrets; install the package libsodium-dev and build again");
}

void wefti_sodium_close(wefti_sodium *sodium)
{
    memset(sodium, 0, sizeof *sodium);
}

#endif
