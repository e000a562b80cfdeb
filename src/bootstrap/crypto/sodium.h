/* bootstrap/crypto/sodium.h: libsodium, loaded when there is a secret. */
#ifndef WEFTI_BOOTSTRAP_CRYPTO_SODIUM_H
#define WEFTI_BOOTSTRAP_CRYPTO_SODIUM_H

#include <stddef.h>

#include "weft/status.h"

/* Zeroed memory is a library that is not loaded. */
typedef struct wefti_sodium {
    void *library;
    int (*init)(void);
    /* BLAKE2b with a key. */
    int (*generichash)(unsigned char *out, size_t out_bytes, const unsigned char *in, unsigned long long in_bytes,
                       const unsigned char *key, size_t key_bytes);
    /* The secretstream: its state is of libsodium's type. */
    int (*begin_out)(void *state, unsigned char *header, const unsigned char *key);
    int (*begin_in)(void *state, const unsigned char *header, const unsigned char *key);
    int (*seal)(void *state, unsigned char *out, unsigned long long *out_bytes, const unsigned char *in,
                unsigned long long in_bytes, const unsigned char *more, unsigned long long more_bytes,
                unsigned char tag);
    int (*open)(void *state, unsigned char *out, unsigned long long *out_bytes, unsigned char *tag,
                const unsigned char *in, unsigned long long in_bytes, const unsigned char *more,
                unsigned long long more_bytes);
} wefti_sodium;

/* WEFT_ERR_UNSUPPORTED, naming the package, when there is none. */
weft_status wefti_sodium_open(wefti_sodium *sodium);
void wefti_sodium_close(wefti_sodium *sodium);

#endif
