/* Goal: the bulk copies move every byte asked for and touch no other, at every size and alignment.
 * Method: sources and destinations at all places inside a cache line, sizes around every boundary of the code and some
 * of several MiB, filled with seeded bytes; guard bytes on both sides of the destination must keep their value, and the
 * source must stay as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mix.h"
#include "weft/protocol/mem.h"

#define LINE 64
#define GUARD_BYTES 256
#define GUARD 0xa5
#define SEED 20240611u

/* Memory for copies of at most `bytes` bytes at any place inside a line. */
typedef struct room {
    unsigned char *source;
    unsigned char *kept; /* what the source holds */
    unsigned char *dest;
    size_t dest_bytes;
} room;

static room room_make(size_t bytes)
{
    uint64_t state = SEED;
    size_t source_bytes = (bytes + LINE + 7) / 8 * 8;
    room made = {.dest_bytes = (bytes + LINE + 2 * GUARD_BYTES + LINE - 1) / LINE * LINE};
    made.source = aligned_alloc(LINE, (source_bytes + LINE - 1) / LINE * LINE);
    made.kept = malloc(source_bytes);
    made.dest = aligned_alloc(LINE, made.dest_bytes);
    assert_non_null(made.source);
    assert_non_null(made.kept);
    assert_non_null(made.dest);
    for (size_t i = 0; i < source_bytes; i += 8) {
        uint64_t word = wefti_split_mix(&state);
        memcpy(made.source + i, &word, 8);
    }
    memcpy(made.kept, made.source, source_bytes);
    return made;
}

static void room_free(room *made)
{
    free(made->source);
    free(made->kept);
    free(made->dest);
}

/* Bytes of `range` that are not the guard's. */
static size_t touched(const unsigned char *range, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        count += range[i] != GUARD;
    }
    return count;
}

static void copy_and_end(void *dst, const void *src, size_t bytes)
{
    wefti_copy_stream(dst, src, bytes);
    wefti_copy_stream_end();
}

static void (*const copies[])(void *dst, const void *src, size_t bytes) = {wefti_copy_bulk, copy_and_end};
#define COPIES (sizeof copies / sizeof *copies)

/* Copy `bytes` from `from` bytes past a line to `to` bytes past one. */
static void check_one(size_t copy, const room *in, size_t bytes, size_t to, size_t from)
{
    unsigned char *dest = in->dest + GUARD_BYTES + to;
    memset(dest - GUARD_BYTES, GUARD, bytes + 2 * GUARD_BYTES);
    copies[copy](dest, in->source + from, bytes);
    int equal = memcmp(dest, in->kept + from, bytes) == 0;
    size_t before = touched(dest - GUARD_BYTES, GUARD_BYTES);
    size_t after = touched(dest + bytes, GUARD_BYTES);
    if (!equal || before != 0 || after != 0) {
        fail_msg("copy %zu, %zu bytes from %zu to %zu past a line: %s, %zu bytes before and %zu after were touched "
                 "(seed %u)",
                 copy, bytes, from, to, equal ? "equal" : "not equal", before, after, SEED);
    }
}

static void check_copy(const room *in, size_t bytes, size_t to, size_t from)
{
    for (size_t copy = 0; copy < COPIES; copy++) {
        check_one(copy, in, bytes, to, from);
    }
}

static void check_source(const room *in, size_t bytes)
{
    assert_memory_equal(in->source, in->kept, bytes + LINE);
}

/* Every size up to beyond the page; the places of a size are drawn, so that each pair of places meets many sizes. */
static void every_size(void **state)
{
    (void)state;
    enum { SIZE_MOST = 4200, PLACES = 24 };
    uint64_t random = SEED;
    room in = room_make(SIZE_MOST);
    for (size_t bytes = 0; bytes <= SIZE_MOST; bytes++) {
        check_copy(&in, bytes, 0, 0);
        for (int i = 0; i < PLACES; i++) {
            uint64_t drawn = wefti_split_mix(&random);
            check_copy(&in, bytes, drawn % LINE, drawn / LINE % LINE);
        }
    }
    check_source(&in, SIZE_MOST);
    room_free(&in);
}

/* Every pair of places, at the sizes where the code changes its way. */
static void every_place(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,  2,  3,   4,   7,   8,   9,   15,  16,  17,  31,  32,  33,  63,  64,
                                   65, 96, 127, 128, 129, 191, 192, 255, 256, 257, 319, 320, 384, 512, 1000};
    room in = room_make(1000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t to = 0; to < LINE; to++) {
            for (size_t from = 0; from < LINE; from++) {
                check_copy(&in, sizes[i], to, from);
            }
        }
    }
    check_source(&in, 1000);
    room_free(&in);
}

/* Sizes on both sides of where copies go past the caches. */
static void large_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        65536,
        65537,
        ((size_t)1 << 20) - 1,
        ((size_t)12 << 20) - 1,
        (size_t)12 << 20,
        ((size_t)12 << 20) + 129,
        ((size_t)17 << 20) + 63,
    };
    static const size_t places[][2] = {{0, 0}, {8, 0}, {0, 8}, {63, 1}, {17, 5}, {32, 33}};
    size_t most = sizes[sizeof sizes / sizeof *sizes - 1];
    room in = room_make(most);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            check_copy(&in, sizes[i], places[j][0], places[j][1]);
        }
    }
    check_source(&in, most);
    room_free(&in);
}

/* A put of a block to itself. */
static void onto_itself(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 8, 24, 100, 128, 129, 1000, 5000, ((size_t)12 << 20) + 40};
    size_t most = sizes[sizeof sizes / sizeof *sizes - 1];
    room in = room_make(most);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *volatile same = in.source + i;
        for (size_t copy = 0; copy < COPIES; copy++) {
            copies[copy](same, in.source + i, sizes[i]);
        }
    }
    check_source(&in, most);
    room_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(every_place),
        cmocka_unit_test(large_sizes),
        cmocka_unit_test(onto_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
