/* bootstrap/crypto/sodium.c: libsodium, loaded when there is a secret. */
#include "bootstrap/crypto/sodium.h"

#include <string.h>

#include "base/error.h"
#include "base/library.h"

#ifdef WEFT_HAVE_SODIUM

#include <sodium.h>

#define LIBRARY "libsodium.so.23"

/* The header of libsodium and our table agree on what is called. */
_Static_assert(__builtin_types_compatible_p(__typeof__(&crypto_generichash),
                                            __typeof__(((wefti_sodium *)0)->generichash)),
               "crypto_generichash has another type");

/* Where the state's type is in the way, the rest must be alike. */
#define STATE crypto_secretstream_xchacha20poly1305_state *
_Static_assert(__builtin_types_compatible_p(__typeof__(&crypto_secretstream_xchacha20poly1305_push),
                                            int (*)(STATE, unsigned char *, unsigned long long *, const unsigned char *,
                                                    unsigned long long, const unsigned char *, unsigned long long,
                                                    unsigned char)),
               "crypto_secretstream_xchacha20poly1305_push has another type");
_Static_assert(__builtin_types_compatible_p(__typeof__(&crypto_secretstream_xchacha20poly1305_pull),
                                            int (*)(STATE, unsigned char *, unsigned long long *, unsigned char *,
                                                    const unsigned char *, unsigned long long, const unsigned char *,
                                                    unsigned long long)),
               "crypto_secretstream_xchacha20poly1305_pull has another type");

weft_status wefti_sodium_open(wefti_sodium *sodium)
{
    memset(sodium, 0, sizeof *sodium);
    sodium->library = wefti_library_open(LIBRARY);
    if (sodium->library == NULL || !wefti_library_find(sodium->library, "sodium_init", &sodium->init) ||
        !wefti_library_find(sodium->library, "crypto_generichash", &sodium->generichash) ||
        !wefti_library_find(sodium->library, "crypto_secretstream_xchacha20poly1305_init_push", &sodium->begin_out) ||
        !wefti_library_find(sodium->library, "crypto_secretstream_xchacha20poly1305_init_pull", &sodium->begin_in) ||
        !wefti_library_find(sodium->library, "crypto_secretstream_xchacha20poly1305_push", &sodium->seal) ||
        !wefti_library_find(sodium->library, "crypto_secretstream_xchacha20poly1305_pull", &sodium->open) ||
        sodium->init() < 0) {
        wefti_sodium_close(sodium);
        return wefti_error(WEFT_ERR_UNSUPPORTED, "unique ids and secrets need " LIBRARY
                                                 ", which cannot be loaded; install the package libsodium23");
    }
    return WEFT_OK;
}

void wefti_sodium_close(wefti_sodium *sodium)
{
    wefti_library_close(sodium->library);
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
