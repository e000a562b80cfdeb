/* base/hash.h: a keyed hash that does not give its key away: SipHash-2-4 with 16 bytes out (Aumasson, Bernstein, 2012).
 *
 * For identities and checks between PEs that trust each other, not for signatures. */
#ifndef WEFTI_BASE_HASH_H
#define WEFTI_BASE_HASH_H

#include <stddef.h>

#define WEFTI_HASH_BYTES 16

void wefti_hash(const unsigned char key[WEFTI_HASH_BYTES], const void *bytes, size_t count,
                unsigned char out[WEFTI_HASH_BYTES]);

#endif
