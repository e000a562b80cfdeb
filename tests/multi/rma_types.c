/* Goal: every typed put, get, p, g and put_signal moves its elements, all bytes of them, to the PE that is named.
 * Method: generated from the type table. Every PE writes to and reads from every PE, itself too; a value's bytes name
 * its sender and its index; destinations are poisoned first. */
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define COUNT 8 /* elements from one PE */

/* All bytes of an integer are one number that belongs to this sender and index; 16 PEs have different ones. */
static uint64_t bits_of(int from, int index)
{
    return UINT64_C(0x0101010101010101) * (uint64_t)(from % 16 * COUNT + index + 1);
}

/* How elements travel: each pair of a name and what a PE does for another. */
typedef enum way {
    BY_PUT,
    BY_PUT_NBI,
    BY_P,
    BY_SIGNAL_SET,
    BY_SIGNAL_ADD,
    BY_SIGNAL_NBI,
    WRITING_WAYS,
    BY_GET = WRITING_WAYS,
    BY_GET_NBI,
    BY_G,
    WAYS
} way;

static const char *const way_names[WAYS] = {"put", "put_nbi", "p", "put_signal set", "put_signal add", "put_signal_nbi",
                                            "get", "get_nbi", "g"};

static int has_signal(way w)
{
    return w == BY_SIGNAL_SET || w == BY_SIGNAL_ADD || w == BY_SIGNAL_NBI;
}

/* words[from], the signals, are written by PE `from` alone, and become 5 by every way. */
#define DEFINE_TYPE(NAME, TYPE)                                                                                        \
    static void NAME##_write(weft_world *world, way w, TYPE *all, uint64_t *words, int to)                             \
    {                                                                                                                  \
        int me = weft_world_pe(world);                                                                                 \
        TYPE *dest = all + (size_t)me * COUNT;                                                                         \
        TYPE out[COUNT];                                                                                               \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            out[i] = (TYPE)bits_of(me, i);                                                                             \
        }                                                                                                              \
        uint64_t *word = &words[me];                                                                                   \
        switch (w) {                                                                                                   \
        case BY_PUT:                                                                                                   \
            CHECK_OK(weft_##NAME##_put(world, dest, out, COUNT, to));                                                  \
            CHECK_OK(weft_##NAME##_put(world, dest, out + 1, 0, to));                                                  \
            break;                                                                                                     \
        case BY_PUT_NBI:                                                                                               \
            CHECK_OK(weft_##NAME##_put_nbi(world, dest, out, 1, to));                                                  \
            CHECK_OK(weft_##NAME##_put_nbi(world, dest + 1, out + 1, COUNT - 1, to));                                  \
            CHECK_OK(weft_quiet(world));                                                                               \
            break;                                                                                                     \
        case BY_P:                                                                                                     \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_OK(weft_##NAME##_p(world, dest + i, out[i], to));                                                \
            }                                                                                                          \
            break;                                                                                                     \
        case BY_SIGNAL_SET:                                                                                            \
            CHECK_OK(weft_##NAME##_put_signal(world, dest, out, COUNT, word, 5, WEFT_SIGNAL_SET, to));                 \
            break;                                                                                                     \
        case BY_SIGNAL_ADD:                                                                                            \
            CHECK_OK(weft_##NAME##_put_signal(world, dest, out, COUNT, word, 5, WEFT_SIGNAL_ADD, to));                 \
            break;                                                                                                     \
        default:                                                                                                       \
            CHECK_OK(weft_##NAME##_put_signal_nbi(world, dest, out, COUNT - 1, word, 2, WEFT_SIGNAL_ADD, to));         \
            CHECK_OK(weft_##NAME##_put_signal_nbi(world, dest + COUNT - 1, out + COUNT - 1, 1, word, 3,                \
                                                  WEFT_SIGNAL_ADD, to));                                               \
            CHECK_OK(weft_quiet(world));                                                                               \
            break;                                                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_check(const TYPE *got, int from, way w)                                                         \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK_SAY(got[i] == (TYPE)bits_of(from, i), #NAME " by %s: element %d from PE %d is wrong", way_names[w],  \
                      i, from);                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_read(weft_world *world, way w, const TYPE *all, int of)                                         \
    {                                                                                                                  \
        TYPE in[COUNT];                                                                                                \
        for (int from = 0; from < weft_world_pes(world); from++) {                                                     \
            const TYPE *source = all + (size_t)from * COUNT;                                                           \
            memset(in, POISON, sizeof in);                                                                             \
            if (w == BY_GET) {                                                                                         \
                CHECK_OK(weft_##NAME##_get(world, in, source, COUNT, of));                                             \
            } else if (w == BY_GET_NBI) {                                                                              \
                CHECK_OK(weft_##NAME##_get_nbi(world, in, source, 3, of));                                             \
                CHECK_OK(weft_##NAME##_get_nbi(world, in + 3, source + 3, COUNT - 3, of));                             \
                CHECK_OK(weft_quiet(world));                                                                           \
            } else {                                                                                                   \
                for (int i = 0; i < COUNT; i++) {                                                                      \
                    CHECK_OK(weft_##NAME##_g(world, source + i, of, &in[i]));                                          \
                }                                                                                                      \
            }                                                                                                          \
            NAME##_check(in, from, w);                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_all(weft_world *world)                                                                          \
    {                                                                                                                  \
        int pes = weft_world_pes(world);                                                                               \
        size_t bytes = (size_t)pes * COUNT * sizeof(TYPE);                                                             \
        unsigned char *block = pe_poisoned(world, bytes + 64);                                                         \
        uint64_t *words = pe_zeroed(world, (size_t)pes * sizeof(uint64_t));                                            \
        TYPE *all = (TYPE *)(void *)block;                                                                             \
        for (int w = 0; w < WRITING_WAYS; w++) {                                                                       \
            memset(block, POISON, bytes);                                                                              \
            memset(words, 0, (size_t)pes * sizeof(uint64_t));                                                          \
            CHECK_OK(weft_barrier(world));                                                                             \
            for (int i = 0; i < pes; i++) {                                                                            \
                NAME##_write(world, (way)w, all, words, (weft_world_pe(world) + i) % pes);                             \
            }                                                                                                          \
            if (!has_signal((way)w)) {                                                                                 \
                CHECK_OK(weft_barrier(world));                                                                         \
            }                                                                                                          \
            for (int from = 0; from < pes; from++) {                                                                   \
                if (has_signal((way)w)) {                                                                              \
                    CHECK_OK(weft_signal_wait_until(world, &words[from], WEFT_CMP_EQ, 5, NULL));                       \
                }                                                                                                      \
                NAME##_check(all + (size_t)from * COUNT, from, (way)w);                                                \
            }                                                                                                          \
            poison_check(block + bytes, 64, #NAME ": what lies behind");                                               \
            CHECK_OK(weft_barrier(world));                                                                             \
        }                                                                                                              \
        for (int w = WRITING_WAYS; w < WAYS; w++) {                                                                    \
            for (int i = 0; i < pes; i++) {                                                                            \
                NAME##_read(world, (way)w, all, (weft_world_pe(world) + i) % pes);                                     \
            }                                                                                                          \
        }                                                                                                              \
        CHECK_OK(weft_barrier(world));                                                                                 \
        CHECK_OK(weft_free(world, words));                                                                             \
        CHECK_OK(weft_free(world, block));                                                                             \
    }
WEFT_RMA_TYPES(DEFINE_TYPE)

static void body(weft_world *world)
{
#define RUN_TYPE(NAME, TYPE) NAME##_all(world);
    WEFT_RMA_TYPES(RUN_TYPE)
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
