/* bootstrap/crypto/seal.h: what both ends of a connection send once they have proved themselves: encrypted and
 * authenticated, each message in its place (libsodium's secretstream, XChaCha20-Poly1305).
 *
 * Each direction has a key of its own and begins with a header; then come messages, WEFTI_SEAL_MORE_BYTES longer than
 * what they hold. One thread at a time. */
#ifndef WEFTI_BOOTSTRAP_CRYPTO_SEAL_H
#define WEFTI_BOOTSTRAP_CRYPTO_SEAL_H

#include <stddef.h>

#include "bootstrap/crypto/sodium.h"

#define WEFTI_SEAL_KEY_BYTES 32
#define WEFTI_SEAL_PLAIN_MAX ((size_t)4096) /* of one message */
#define WEFTI_SEAL_MORE_BYTES ((size_t)17)

typedef struct wefti_seal wefti_seal;

/* `sodium` must outlive the seal; the keys are copied. */
weft_status wefti_seal_create(const wefti_sodium *sodium, const unsigned char out_key[WEFTI_SEAL_KEY_BYTES],
                              const unsigned char in_key[WEFTI_SEAL_KEY_BYTES], wefti_seal **seal);
void wefti_seal_destroy(wefti_seal *seal); /* NULL is allowed; wipes the keys */

/* How many bytes the next `bytes` bytes make that are sent, as messages that are as long as can be; and write them. */
size_t wefti_seal_out_bytes(const wefti_seal *seal, size_t bytes);
void wefti_seal_write(wefti_seal *seal, const void *plain, size_t bytes, unsigned char *out);

/* Where the bytes that come are gathered: the rest of the message that holds the next bytes, of which `left` are
 * awaited. Returns how many are missing, and their place. */
size_t wefti_seal_in_missing(wefti_seal *seal, size_t left, unsigned char **at);
/* `bytes` of them have come. Returns how many bytes were written to `plain`: 0 while the message is not whole, -1 when
 * it is not what the other end sent. */
long wefti_seal_in_take(wefti_seal *seal, size_t bytes, size_t left, void *plain);

#endif
