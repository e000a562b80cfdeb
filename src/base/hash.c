/* base/hash.c: SipHash-2-4 with 16 bytes out. */
#include "base/hash.h"

#include <stdint.h>

typedef struct sip_state {
    uint64_t v[4];
} sip_state;

static uint64_t load_little(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

static void store_little(unsigned char bytes[8], uint64_t word)
{
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(word >> (8 * i));
    }
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_rounds(sip_state *state, int rounds)
{
    uint64_t *v = state->v;
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void sip_absorb(sip_state *state, uint64_t word)
{
    state->v[3] ^= word;
    sip_rounds(state, 2);
    state->v[0] ^= word;
}

static uint64_t sip_squeeze(sip_state *state, uint64_t mark)
{
    state->v[mark == 0xee ? 2 : 1] ^= mark;
    sip_rounds(state, 4);
    return state->v[0] ^ state->v[1] ^ state->v[2] ^ state->v[3];
}

void wefti_hash(const unsigned char key[WEFTI_HASH_BYTES], const void *bytes, size_t count,
                unsigned char out[WEFTI_HASH_BYTES])
{
    uint64_t low = load_little(key, 8);
    uint64_t high = load_little(key + 8, 8);
    /* "somepseudorandomlygeneratedbytes"; the mark of 16-byte output is 0xee. */
    sip_state state = {{low ^ UINT64_C(0x736f6d6570736575), high ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
                        low ^ UINT64_C(0x6c7967656e657261), high ^ UINT64_C(0x7465646279746573)}};
    const unsigned char *at = bytes;
    size_t rest = count % 8;
    for (size_t i = 0; i < count / 8; i++) {
        sip_absorb(&state, load_little(at, 8));
        at += 8;
    }
    sip_absorb(&state, load_little(at, rest) | (uint64_t)count << 56);
    store_little(out, sip_squeeze(&state, 0xee));
    store_little(out + 8, sip_squeeze(&state, 0xdd));
}
