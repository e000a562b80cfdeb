/* bootstrap/tcp/sodium.h: libsodium, loaded when there is a secret. */
#ifndef WEFTI_BOOTSTRAP_TCP_SODIUM_H
#define WEFTI_BOOTSTRAP_TCP_SODIUM_H

#include <stddef.h>

#include "weft/status.h"

/* Zeroed memory is a library that is not loaded. */
typedef struct wefti_sodium {
    void *library;
    int (*init)(void);
    /* BLAKE2b with a key. */
    int (*generichash)(unsigned char *out, size_t out_bytes, const unsigned char *in, unsigned long long in_bytes,
                       const unsigned char *key, size_t key_bytes);
} wefti_sodium;

/* WEFT_ERR_UNSUPPORTED, naming the package, when there is none. */
weft_status wefti_sodium_open(wefti_sodium *sodium);
void wefti_sodium_close(wefti_sodium *sodium);

#endif
