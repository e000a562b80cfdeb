/* Goal: a wrong one-sided call gives its documented status and a text that says what is wrong, writes nothing, and
 * leaves the world as it was. Method: a table of calls by kind of mistake: no world, no buffer, PEs out of range,
 * addresses outside the heap, sizes that leave it or overflow, words that are not aligned, operations that are none.
 * All PEs make them, to all PEs; heaps, local buffers and results are poisoned and looked at afterwards. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define BLOCK_BYTES ((size_t)4096)
#define LOCAL_BYTES ((size_t)4096)

typedef struct scene {
    weft_world *world;
    unsigned char *block; /* symmetric and poisoned */
    unsigned char *heap; /* the first and the first byte behind the reserved heap */
    unsigned char *end;
    unsigned char local[LOCAL_BYTES]; /* poisoned */
} scene;

/* Statuses that are right for the same mistake differ by what else is wrong, so each check gives one mistake alone. */
#define EXPECT(call, wanted) check_refused((call), (wanted), #call, __LINE__)

static void check_refused(weft_status got, weft_status wanted, const char *call, int line)
{
    (void)check_status(got, wanted, __FILE__, line, call);
    (void)check_that(weft_last_error()[0] != '\0', __FILE__, line, "%s without a text", call);
}

/* ---- put and get ---- */

static void move_wrongly(scene *s, weft_world *world, void *dest, void *source, size_t bytes, int pe,
                         weft_status wanted)
{
    EXPECT(weft_putmem(world, dest, s->local, bytes, pe), wanted);
    EXPECT(weft_putmem_nbi(world, dest, s->local, bytes, pe), wanted);
    EXPECT(weft_getmem(world, s->local, source, bytes, pe), wanted);
    EXPECT(weft_getmem_nbi(world, s->local, source, bytes, pe), wanted);
    EXPECT(weft_putmem_signal(world, dest, s->local, bytes, (uint64_t *)(void *)s->block, 1, WEFT_SIGNAL_SET, pe),
           wanted);
    EXPECT(weft_putmem_signal_nbi(world, dest, s->local, bytes, (uint64_t *)(void *)s->block, 1, WEFT_SIGNAL_ADD, pe),
           wanted);
}

static void move_elements_wrongly(scene *s, int pe)
{
    long double *wide = (long double *)(void *)s->block;
    long double *wide_local = (long double *)(void *)s->local;
    uint64_t *words = (uint64_t *)(void *)s->block;
    uint64_t *local = (uint64_t *)(void *)s->local;
    const size_t counts[] = {SIZE_MAX,     SIZE_MAX / 2,     SIZE_MAX / 4 + 1,
                             SIZE_MAX / 8, SIZE_MAX / 8 + 1, SIZE_MAX / 16 + 1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        EXPECT(weft_uint64_put(s->world, words, local, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_uint64_put_nbi(s->world, words, local, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_uint64_get(s->world, local, words, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_uint64_get_nbi(s->world, local, words, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_longdouble_put(s->world, wide, wide_local, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_longdouble_get(s->world, wide_local, wide, counts[i], pe), WEFT_ERR_RANGE);
        EXPECT(weft_uint64_put_signal(s->world, words, local, counts[i], words, 1, WEFT_SIGNAL_SET, pe),
               WEFT_ERR_RANGE);
        EXPECT(weft_uint64_put_signal_nbi(s->world, words, local, counts[i], words, 1, WEFT_SIGNAL_ADD, pe),
               WEFT_ERR_RANGE);
    }
}

/* Of every type: p, g, put and get of one element at an address that is none. */
static void one_element_wrongly(scene *s, weft_world *world, void *address, int pe, weft_status wanted)
{
#define TRY_TYPE(NAME, TYPE)                                                                                           \
    do {                                                                                                               \
        TYPE value = (TYPE)11;                                                                                         \
        TYPE *at = address;                                                                                            \
        EXPECT(weft_##NAME##_p(world, at, value, pe), wanted);                                                         \
        EXPECT(weft_##NAME##_put(world, at, &value, 1, pe), wanted);                                                   \
        EXPECT(weft_##NAME##_g(world, at, pe, &value), wanted);                                                        \
        EXPECT(weft_##NAME##_get(world, &value, at, 1, pe), wanted);                                                   \
        CHECK_SAY(value == (TYPE)11, #NAME ": a refused g or get has written");                                        \
    } while (0);
    WEFT_RMA_TYPES(TRY_TYPE)
    (void)s;
}

/* ---- atomics ---- */

static void atomics_wrongly(weft_world *world, void *address, int pe, weft_status wanted)
{
#define TRY_EXTENDED(NAME, TYPE)                                                                                       \
    do {                                                                                                               \
        TYPE old = (TYPE)11;                                                                                           \
        TYPE *at = address;                                                                                            \
        EXPECT(weft_##NAME##_atomic_fetch(world, at, pe, &old), wanted);                                               \
        EXPECT(weft_##NAME##_atomic_set(world, at, (TYPE)1, pe), wanted);                                              \
        EXPECT(weft_##NAME##_atomic_swap(world, at, (TYPE)1, pe, &old), wanted);                                       \
        CHECK_SAY(old == (TYPE)11, #NAME ": a refused atomic has written its old value");                              \
    } while (0);
    WEFT_EXTENDED_AMO_TYPES(TRY_EXTENDED)
#define TRY_STANDARD(NAME, TYPE)                                                                                       \
    do {                                                                                                               \
        TYPE old = (TYPE)11;                                                                                           \
        TYPE *at = address;                                                                                            \
        EXPECT(weft_##NAME##_atomic_compare_swap(world, at, (TYPE)1, (TYPE)2, pe, &old), wanted);                      \
        EXPECT(weft_##NAME##_atomic_add(world, at, (TYPE)1, pe), wanted);                                              \
        EXPECT(weft_##NAME##_atomic_fetch_add(world, at, (TYPE)1, pe, &old), wanted);                                  \
        EXPECT(weft_##NAME##_atomic_inc(world, at, pe), wanted);                                                       \
        EXPECT(weft_##NAME##_atomic_fetch_inc(world, at, pe, &old), wanted);                                           \
        CHECK_SAY(old == (TYPE)11, #NAME ": a refused atomic has written its old value");                              \
    } while (0);
    WEFT_INTEGER_TYPES(TRY_STANDARD)
#define TRY_BITWISE(NAME, TYPE)                                                                                        \
    do {                                                                                                               \
        TYPE old = (TYPE)11;                                                                                           \
        TYPE *at = address;                                                                                            \
        EXPECT(weft_##NAME##_atomic_and(world, at, (TYPE)0, pe), wanted);                                              \
        EXPECT(weft_##NAME##_atomic_or(world, at, (TYPE)1, pe), wanted);                                               \
        EXPECT(weft_##NAME##_atomic_xor(world, at, (TYPE)1, pe), wanted);                                              \
        EXPECT(weft_##NAME##_atomic_fetch_and(world, at, (TYPE)0, pe, &old), wanted);                                  \
        EXPECT(weft_##NAME##_atomic_fetch_or(world, at, (TYPE)1, pe, &old), wanted);                                   \
        EXPECT(weft_##NAME##_atomic_fetch_xor(world, at, (TYPE)1, pe, &old), wanted);                                  \
        CHECK_SAY(old == (TYPE)11, #NAME ": a refused atomic has written its old value");                              \
    } while (0);
    WEFT_BITWISE_TYPES(TRY_BITWISE)
}

static void fetch_to_nowhere(scene *s, int pe)
{
#define TRY_NOWHERE(NAME, TYPE)                                                                                        \
    do {                                                                                                               \
        TYPE *at = (TYPE *)(void *)s->block;                                                                           \
        EXPECT(weft_##NAME##_atomic_fetch(s->world, at, pe, NULL), WEFT_ERR_ARGUMENT);                                 \
        EXPECT(weft_##NAME##_atomic_swap(s->world, at, (TYPE)1, pe, NULL), WEFT_ERR_ARGUMENT);                         \
        EXPECT(weft_##NAME##_g(s->world, at, pe, NULL), WEFT_ERR_ARGUMENT);                                            \
    } while (0);
    WEFT_EXTENDED_AMO_TYPES(TRY_NOWHERE)
    uint64_t *word = (uint64_t *)(void *)s->block;
    EXPECT(weft_uint64_atomic_compare_swap(s->world, word, 1, 2, pe, NULL), WEFT_ERR_ARGUMENT);
    EXPECT(weft_uint64_atomic_fetch_add(s->world, word, 1, pe, NULL), WEFT_ERR_ARGUMENT);
    CHECK_SAY(strstr(weft_last_error(), "'world' is NULL") == NULL, "wrong cause: \"%s\"", weft_last_error());
    EXPECT(weft_uint64_atomic_fetch_inc(s->world, word, pe, NULL), WEFT_ERR_ARGUMENT);
    EXPECT(weft_uint64_atomic_fetch_or(s->world, word, 1, pe, NULL), WEFT_ERR_ARGUMENT);
}

/* ---- by mistake ---- */

static void no_world(scene *s)
{
    move_wrongly(s, NULL, s->block, s->block, 8, 0, WEFT_ERR_ARGUMENT);
    one_element_wrongly(s, NULL, s->block, 0, WEFT_ERR_ARGUMENT);
    atomics_wrongly(NULL, s->block, 0, WEFT_ERR_ARGUMENT);
    EXPECT(weft_fence(NULL), WEFT_ERR_ARGUMENT);
    EXPECT(weft_quiet(NULL), WEFT_ERR_ARGUMENT);
}

static void wrong_pes(scene *s)
{
    int pes = weft_world_pes(s->world);
    const int wrong[] = {-1, pes, pes + 1, INT_MIN, INT_MAX, -pes};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "PE %d", wrong[i]);
        move_wrongly(s, s->world, s->block, s->block, 8, wrong[i], WEFT_ERR_RANGE);
        CHECK_SAY(strstr(weft_last_error(), number) != NULL, "%s is not in \"%s\"", number, weft_last_error());
        one_element_wrongly(s, s->world, s->block, wrong[i], WEFT_ERR_RANGE);
        atomics_wrongly(s->world, s->block, wrong[i], WEFT_ERR_RANGE);
    }
}

static void no_buffer(scene *s, int pe)
{
    uint64_t *signal = (uint64_t *)(void *)s->block;
    EXPECT(weft_putmem(s->world, NULL, s->local, 8, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_putmem(s->world, s->block, NULL, 8, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_getmem(s->world, NULL, s->block, 8, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_getmem(s->world, s->local, NULL, 8, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_putmem_signal(s->world, NULL, s->local, 8, signal, 1, WEFT_SIGNAL_SET, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_putmem_signal(s->world, s->block, NULL, 8, signal, 1, WEFT_SIGNAL_SET, pe), WEFT_ERR_ARGUMENT);
    EXPECT(weft_putmem_signal(s->world, s->block, s->local, 8, NULL, 1, WEFT_SIGNAL_SET, pe), WEFT_ERR_ARGUMENT);
    one_element_wrongly(s, s->world, NULL, pe, WEFT_ERR_ARGUMENT);
    atomics_wrongly(s->world, NULL, pe, WEFT_ERR_ARGUMENT);
    fetch_to_nowhere(s, pe);
}

/* Addresses that are not in the heap, and sizes that leave it. */
static void outside(scene *s, int pe)
{
    static uint64_t not_symmetric[4];
    unsigned char *const wrong[] = {(unsigned char *)not_symmetric,
                                    s->heap - 64,
                                    s->end,
                                    s->end + ((size_t)1 << 20),
                                    (unsigned char *)(uintptr_t)64,
                                    (unsigned char *)(UINTPTR_MAX - 63)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        move_wrongly(s, s->world, wrong[i], wrong[i], 8, pe, WEFT_ERR_RANGE);
        one_element_wrongly(s, s->world, wrong[i], pe, WEFT_ERR_RANGE);
        atomics_wrongly(s->world, wrong[i], pe, WEFT_ERR_RANGE);
        EXPECT(
            weft_putmem_signal(s->world, s->block, s->local, 8, (uint64_t *)(void *)wrong[i], 1, WEFT_SIGNAL_SET, pe),
            WEFT_ERR_RANGE);
        EXPECT(weft_putmem_signal(s->world, NULL, NULL, 0, (uint64_t *)(void *)wrong[i], 1, WEFT_SIGNAL_SET, pe),
               WEFT_ERR_RANGE);
    }
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, (size_t)(s->end - s->block) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        move_wrongly(s, s->world, s->block, s->block, sizes[i], pe, WEFT_ERR_RANGE);
    }
    for (size_t inside = 0; inside < 64; inside++) {
        move_wrongly(s, s->world, s->end - inside, s->end - inside, inside + 1, pe, WEFT_ERR_RANGE);
    }
    CHECK_SAY(strstr(weft_last_error(), "symmetric heap") != NULL, "\"%s\"", weft_last_error());
}

static void not_aligned(scene *s, int pe)
{
    for (size_t off = 1; off < 8; off++) {
        uint64_t *word = (uint64_t *)(void *)(s->block + off);
        uint64_t old = 11;
        EXPECT(weft_uint64_atomic_add(s->world, word, 1, pe), WEFT_ERR_ARGUMENT);
        EXPECT(weft_uint64_atomic_fetch(s->world, word, pe, &old), WEFT_ERR_ARGUMENT);
        EXPECT(weft_double_atomic_set(s->world, (double *)(void *)word, 1.0, pe), WEFT_ERR_ARGUMENT);
        EXPECT(weft_int64_atomic_compare_swap(s->world, (int64_t *)(void *)word, 1, 1, pe, (int64_t *)(void *)&old),
               WEFT_ERR_ARGUMENT);
        EXPECT(weft_putmem_signal(s->world, s->block, s->local, 8, word, 1, WEFT_SIGNAL_SET, pe), WEFT_ERR_ARGUMENT);
        EXPECT(weft_putmem_signal(s->world, NULL, NULL, 0, word, 1, WEFT_SIGNAL_ADD, pe), WEFT_ERR_ARGUMENT);
        EXPECT(weft_signal_fetch(s->world, word, &old), WEFT_ERR_ARGUMENT);
        EXPECT(weft_signal_wait_until(s->world, word, WEFT_CMP_NE, 0, &old), WEFT_ERR_ARGUMENT);
        EXPECT(weft_uint64_wait_until(s->world, word, WEFT_CMP_NE, 0), WEFT_ERR_ARGUMENT);
        int result = 11;
        EXPECT(weft_uint64_test(s->world, word, WEFT_CMP_NE, 0, &result), WEFT_ERR_ARGUMENT);
        if (off % 4 != 0) {
            uint32_t *half = (uint32_t *)(void *)word;
            EXPECT(weft_uint32_atomic_or(s->world, half, 1, pe), WEFT_ERR_ARGUMENT);
            EXPECT(weft_float_atomic_set(s->world, (float *)(void *)half, 1.0f, pe), WEFT_ERR_ARGUMENT);
            EXPECT(weft_uint32_wait_until(s->world, half, WEFT_CMP_NE, 0), WEFT_ERR_ARGUMENT);
            EXPECT(weft_uint32_test(s->world, half, WEFT_CMP_NE, 0, &result), WEFT_ERR_ARGUMENT);
        }
        CHECK(old == 11 && result == 11);
    }
}

static void no_such_operation(scene *s, int pe)
{
    uint64_t *word = (uint64_t *)(void *)s->block;
    const int wrong[] = {-1, 2, 100, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(weft_putmem_signal(s->world, s->block + 64, s->local, 8, word, 1, (weft_signal_op)wrong[i], pe),
               WEFT_ERR_ARGUMENT);
        EXPECT(weft_putmem_signal_nbi(s->world, s->block + 64, s->local, 8, word, 1, (weft_signal_op)wrong[i], pe),
               WEFT_ERR_ARGUMENT);
        EXPECT(weft_uint64_put_signal(s->world, word + 8, word + 16, 1, word, 1, (weft_signal_op)wrong[i], pe),
               WEFT_ERR_ARGUMENT);
    }
}

static void wait_wrongly(scene *s)
{
    const int wrong[] = {-1, 6, 100, INT_MIN, INT_MAX};
    uint64_t *word = (uint64_t *)(void *)s->block;
    uint64_t seen = 11;
    int result = 11;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_cmp cmp = (weft_cmp)wrong[i];
#define TRY_WAIT(NAME, TYPE)                                                                                           \
    EXPECT(weft_##NAME##_wait_until(s->world, (TYPE *)(void *)word, cmp, (TYPE)0), WEFT_ERR_ARGUMENT);                 \
    EXPECT(weft_##NAME##_test(s->world, (TYPE *)(void *)word, cmp, (TYPE)0, &result), WEFT_ERR_ARGUMENT);
        WEFT_INTEGER_TYPES(TRY_WAIT)
        EXPECT(weft_signal_wait_until(s->world, word, cmp, 0, &seen), WEFT_ERR_ARGUMENT);
    }
#define TRY_NONE(NAME, TYPE)                                                                                           \
    EXPECT(weft_##NAME##_wait_until(NULL, (TYPE *)(void *)word, WEFT_CMP_NE, (TYPE)0), WEFT_ERR_ARGUMENT);             \
    EXPECT(weft_##NAME##_wait_until(s->world, NULL, WEFT_CMP_NE, (TYPE)0), WEFT_ERR_ARGUMENT);                         \
    EXPECT(weft_##NAME##_test(NULL, (TYPE *)(void *)word, WEFT_CMP_NE, (TYPE)0, &result), WEFT_ERR_ARGUMENT);          \
    EXPECT(weft_##NAME##_test(s->world, NULL, WEFT_CMP_NE, (TYPE)0, &result), WEFT_ERR_ARGUMENT);                      \
    EXPECT(weft_##NAME##_test(s->world, (TYPE *)(void *)word, WEFT_CMP_NE, (TYPE)0, NULL), WEFT_ERR_ARGUMENT);
    WEFT_INTEGER_TYPES(TRY_NONE)
    EXPECT(weft_signal_wait_until(NULL, word, WEFT_CMP_NE, 0, &seen), WEFT_ERR_ARGUMENT);
    EXPECT(weft_signal_wait_until(s->world, NULL, WEFT_CMP_NE, 0, &seen), WEFT_ERR_ARGUMENT);
    EXPECT(weft_signal_fetch(NULL, word, &seen), WEFT_ERR_ARGUMENT);
    EXPECT(weft_signal_fetch(s->world, NULL, &seen), WEFT_ERR_ARGUMENT);
    EXPECT(weft_signal_fetch(s->world, word, NULL), WEFT_ERR_ARGUMENT);
    CHECK(seen == 11 && result == 11);
}

/* No bytes are never an error where the address is in the heap, and write nothing. */
static void no_bytes(scene *s, int pe)
{
    CHECK_OK(weft_putmem(s->world, s->block, s->local, 0, pe));
    CHECK_OK(weft_putmem(s->world, s->block, NULL, 0, pe));
    CHECK_OK(weft_getmem(s->world, s->local, s->block, 0, pe));
    CHECK_OK(weft_getmem(s->world, NULL, s->block, 0, pe));
    CHECK_OK(weft_putmem(s->world, s->end, s->local, 0, pe)); /* just behind the last byte */
    EXPECT(weft_putmem(s->world, s->end + 1, s->local, 0, pe), WEFT_ERR_RANGE);
    EXPECT(weft_putmem(s->world, s->block, s->local, 0, -1), WEFT_ERR_RANGE);
}

static void body(weft_world *world)
{
    static _Thread_local scene s;
    weft_counters counters;
    int pes = weft_world_pes(world);
    s.world = world;
    s.block = pe_poisoned(world, BLOCK_BYTES); /* the heap's first */
    memset(s.local, POISON, sizeof s.local);
    CHECK_OK(weft_world_counters(world, &counters));
    s.heap = s.block;
    s.end = s.heap + counters.heap_bytes_reserved;
    no_world(&s);
    wrong_pes(&s);
    wait_wrongly(&s);
    for (int i = 0; i<pes; i += pes> 3 ? pes / 3 : 1) {
        int pe = (weft_world_pe(world) + i) % pes;
        no_buffer(&s, pe);
        outside(&s, pe);
        not_aligned(&s, pe);
        no_such_operation(&s, pe);
        move_elements_wrongly(&s, pe);
        no_bytes(&s, pe);
    }
    CHECK_OK(weft_barrier(world));
    poison_check(s.block, BLOCK_BYTES, "the heap behind refused calls");
    poison_check(s.local, sizeof s.local, "the local buffer behind refused calls");
    CHECK_OK(weft_world_fault(world, NULL));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, s.block));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
