/* bootstrap/crypto/seal.c: encrypted and authenticated connections. */
#include "bootstrap/crypto/seal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#ifdef WEFT_HAVE_SODIUM

#include <sodium.h>

typedef crypto_secretstream_xchacha20poly1305_state stream;

#define HEADER_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES

_Static_assert(WEFTI_SEAL_KEY_BYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES, "keys are of this length");
_Static_assert(WEFTI_SEAL_MORE_BYTES == crypto_secretstream_xchacha20poly1305_ABYTES, "messages grow by so much");

struct wefti_seal {
    const wefti_sodium *sodium;
    stream out;
    stream in;
    unsigned char header[HEADER_BYTES]; /* of what is sent */
    unsigned char in_key[WEFTI_SEAL_KEY_BYTES];
    int has_written; /* the header, too */
    int has_read;
    size_t gathered; /* bytes of the message that comes */
    unsigned char message[WEFTI_SEAL_PLAIN_MAX + WEFTI_SEAL_MORE_BYTES];
};

weft_status wefti_seal_create(const wefti_sodium *sodium, const unsigned char out_key[WEFTI_SEAL_KEY_BYTES],
                              const unsigned char in_key[WEFTI_SEAL_KEY_BYTES], wefti_seal **seal)
{
    wefti_seal *made = wefti_alloc_zeroed(1, sizeof *made);
    if (made == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a connection");
    }
    made->sodium = sodium;
    memcpy(made->in_key, in_key, sizeof made->in_key);
    (void)sodium->begin_out(&made->out, made->header, out_key);
    *seal = made;
    return WEFT_OK;
}

void wefti_seal_destroy(wefti_seal *seal)
{
    if (seal != NULL) {
        explicit_bzero(seal, sizeof *seal);
        wefti_free(seal);
    }
}

static size_t shorter(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- out ---- */

size_t wefti_seal_out_bytes(const wefti_seal *seal, size_t bytes)
{
    size_t messages = (bytes + WEFTI_SEAL_PLAIN_MAX - 1) / WEFTI_SEAL_PLAIN_MAX;
    return (seal->has_written ? 0 : HEADER_BYTES) + bytes + messages * WEFTI_SEAL_MORE_BYTES;
}

void wefti_seal_write(wefti_seal *seal, const void *plain, size_t bytes, unsigned char *out)
{
    const unsigned char *from = plain;
    if (!seal->has_written) {
        seal->has_written = 1;
        memcpy(out, seal->header, HEADER_BYTES);
        out += HEADER_BYTES;
    }
    while (bytes > 0) {
        size_t piece = shorter(bytes, WEFTI_SEAL_PLAIN_MAX);
        (void)seal->sodium->seal(&seal->out, out, NULL, from, piece, NULL, 0, 0);
        from += piece;
        out += piece + WEFTI_SEAL_MORE_BYTES;
        bytes -= piece;
    }
}

/* ---- in ---- */

static size_t message_bytes(const wefti_seal *seal, size_t left)
{
    return seal->has_read ? shorter(left, WEFTI_SEAL_PLAIN_MAX) + WEFTI_SEAL_MORE_BYTES : HEADER_BYTES;
}

size_t wefti_seal_in_missing(wefti_seal *seal, size_t left, unsigned char **at)
{
    *at = seal->message + seal->gathered;
    return message_bytes(seal, left) - seal->gathered;
}

long wefti_seal_in_take(wefti_seal *seal, size_t bytes, size_t left, void *plain)
{
    unsigned char tag;
    seal->gathered += bytes;
    size_t whole = message_bytes(seal, left);
    if (seal->gathered < whole) {
        return 0;
    }
    seal->gathered = 0;
    if (!seal->has_read) {
        seal->has_read = 1;
        return seal->sodium->begin_in(&seal->in, seal->message, seal->in_key) == 0 ? 0 : -1;
    }
    if (seal->sodium->open(&seal->in, plain, NULL, &tag, seal->message, whole, NULL, 0) != 0) {
        return -1;
    }
    return (long)(whole - WEFTI_SEAL_MORE_BYTES);
}

#else

weft_status wefti_seal_create(const wefti_sodium *sodium, const unsigned char out_key[WEFTI_SEAL_KEY_BYTES],
                              const unsigned char in_key[WEFTI_SEAL_KEY_BYTES], wefti_seal **seal)
{
    (void)sodium;
    (void)out_key;
    (void)in_key;
    *seal = NULL;
    return wefti_error(WEFT_ERR_UNSUPPORTED, "this build of weft has no secrets");
}

void wefti_seal_destroy(wefti_seal *seal)
{
    (void)seal;
}

size_t wefti_seal_out_bytes(const wefti_seal *seal, size_t bytes)
{
    (void)seal;
    return bytes;
}

void wefti_seal_write(wefti_seal *seal, const void *plain, size_t bytes, unsigned char *out)
{
    (void)seal;
    memcpy(out, plain, bytes);
}

size_t wefti_seal_in_missing(wefti_seal *seal, size_t left, unsigned char **at)
{
    (void)seal;
    *at = NULL;
    return left;
}

long wefti_seal_in_take(wefti_seal *seal, size_t bytes, size_t left, void *plain)
{
    (void)seal;
    (void)bytes;
    (void)left;
    (void)plain;
    return -1;
}

#endif
