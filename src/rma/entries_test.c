/* Goal: what inline calls do not do themselves leaves a program by an entry of its own a kind of call: those of
 * contexts with the context and the PE's number in its team, those without an answer on return apart from the others.
 * A later library can complete and order them apart only so, once programs have compiled them in.
 * Method: the entries are this program's, and note what they were called with; the one PE is far. */
#include "weft/ctx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef enum entry_name {
    NONE,
    PUT,
    PUT_NBI,
    GET,
    GET_NBI,
    PUT_SIGNAL,
    PUT_SIGNAL_NBI,
    AMO,
    AMO_NBI,
    FENCE,
    QUIET,
    IPUT,
    IGET,
} entry_name;

static struct {
    entry_name entry;
    const void *owner; /* the world, or the context */
    size_t bytes;
    int pe;
    const void *old;
} last;

static weft_status note(entry_name entry, const void *owner, size_t bytes, int pe)
{
    last.entry = entry;
    last.owner = owner;
    last.bytes = bytes;
    last.pe = pe;
    return WEFT_OK;
}

static weft_status note_amo(entry_name entry, const void *owner, int bits, int pe, const void *old)
{
    last.old = old;
    return note(entry, owner, (size_t)bits / 8, pe);
}

/* PREFIX: wefti_ or wefti_ctx_. */
#define DEFINE_ENTRIES(PREFIX, OWNER)                                                                                  \
    weft_status PREFIX##put_slow(OWNER *owner, void *dest, const void *source, size_t bytes, int pe)                   \
    {                                                                                                                  \
        (void)dest, (void)source;                                                                                      \
        return note(PUT, owner, bytes, pe);                                                                            \
    }                                                                                                                  \
    weft_status PREFIX##put_nbi_slow(OWNER *owner, void *dest, const void *source, size_t bytes, int pe)               \
    {                                                                                                                  \
        (void)dest, (void)source;                                                                                      \
        return note(PUT_NBI, owner, bytes, pe);                                                                        \
    }                                                                                                                  \
    weft_status PREFIX##get_slow(OWNER *owner, void *dest, const void *source, size_t bytes, int pe)                   \
    {                                                                                                                  \
        (void)dest, (void)source;                                                                                      \
        return note(GET, owner, bytes, pe);                                                                            \
    }                                                                                                                  \
    weft_status PREFIX##get_nbi_slow(OWNER *owner, void *dest, const void *source, size_t bytes, int pe)               \
    {                                                                                                                  \
        (void)dest, (void)source;                                                                                      \
        return note(GET_NBI, owner, bytes, pe);                                                                        \
    }                                                                                                                  \
    weft_status PREFIX##put_signal_slow(OWNER *owner, void *dest, const void *source, size_t bytes, uint64_t *signal,  \
                                        uint64_t value, weft_signal_op op, int pe)                                     \
    {                                                                                                                  \
        (void)dest, (void)source, (void)signal, (void)value, (void)op;                                                 \
        return note(PUT_SIGNAL, owner, bytes, pe);                                                                     \
    }                                                                                                                  \
    weft_status PREFIX##put_signal_nbi_slow(OWNER *owner, void *dest, const void *source, size_t bytes,                \
                                            uint64_t *signal, uint64_t value, weft_signal_op op, int pe)               \
    {                                                                                                                  \
        (void)dest, (void)source, (void)signal, (void)value, (void)op;                                                 \
        return note(PUT_SIGNAL_NBI, owner, bytes, pe);                                                                 \
    }                                                                                                                  \
    weft_status PREFIX##amo_slow(OWNER *owner, wefti_amo_op op, int bits, void *dest, uint64_t value, uint64_t cond,   \
                                 int pe, uint64_t *old)                                                                \
    {                                                                                                                  \
        (void)op, (void)dest, (void)value, (void)cond;                                                                 \
        return note_amo(AMO, owner, bits, pe, old);                                                                    \
    }                                                                                                                  \
    weft_status PREFIX##amo_nbi_slow(OWNER *owner, wefti_amo_op op, int bits, void *dest, uint64_t value,              \
                                     uint64_t cond, int pe, void *old)                                                 \
    {                                                                                                                  \
        (void)op, (void)dest, (void)value, (void)cond;                                                                 \
        return note_amo(AMO_NBI, owner, bits, pe, old);                                                                \
    }                                                                                                                  \
    weft_status PREFIX##fence_slow(OWNER *owner)                                                                       \
    {                                                                                                                  \
        return note(FENCE, owner, 0, 0);                                                                               \
    }                                                                                                                  \
    weft_status PREFIX##quiet_slow(OWNER *owner)                                                                       \
    {                                                                                                                  \
        return note(QUIET, owner, 0, 0);                                                                               \
    }
DEFINE_ENTRIES(wefti_, weft_world)
DEFINE_ENTRIES(wefti_ctx_, weft_ctx)

#define DEFINE_STRIDED(PREFIX, OWNER)                                                                                  \
    weft_status PREFIX##iputmem(OWNER *owner, void *dest, const void *source, ptrdiff_t dest_stride,                   \
                                ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)                   \
    {                                                                                                                  \
        (void)dest, (void)source, (void)dest_stride, (void)source_stride;                                              \
        return note(IPUT, owner, count * element_bytes, pe);                                                           \
    }                                                                                                                  \
    weft_status PREFIX##igetmem(OWNER *owner, void *dest, const void *source, ptrdiff_t dest_stride,                   \
                                ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)                   \
    {                                                                                                                  \
        (void)dest, (void)source, (void)dest_stride, (void)source_stride;                                              \
        return note(IGET, owner, count * element_bytes, pe);                                                           \
    }
DEFINE_STRIDED(weft_, weft_world)
DEFINE_STRIDED(weft_ctx_, weft_ctx)

#define FAR_PE 5
#define MEMBER 2 /* as which the team has it */

static wefti_view view = {
    .abi = WEFTI_VIEW_ABI, .pe = 0, .pes = 8, .near_first = 0, .near_count = 1, .remote = WEFTI_REMOTE_PES};
static weft_world *const world = (weft_world *)(void *)&view;
static weft_ctx context = {.world = (weft_world *)(void *)&view, .pes = 3, .start = 1, .stride = 2};

/* It left by `entry`, with whom it was made for and what it moves. */
#define LEAVES(ENTRY, OWNER, BYTES, PE, CALL)                                                                          \
    do {                                                                                                               \
        last.entry = NONE;                                                                                             \
        assert_int_equal(CALL, WEFT_OK);                                                                               \
        assert_int_equal(last.entry, ENTRY);                                                                           \
        assert_ptr_equal(last.owner, OWNER);                                                                           \
        assert_int_equal(last.bytes, BYTES);                                                                           \
        assert_int_equal(last.pe, PE);                                                                                 \
    } while (0)

/* Where the result of an atomic without an answer on return is to be written: the caller's own place. */
#define LEAVES_FOR(OWNER, BYTES, PE, CALL)                                                                             \
    do {                                                                                                               \
        last.old = NULL;                                                                                               \
        LEAVES(AMO_NBI, OWNER, BYTES, PE, CALL);                                                                       \
        assert_ptr_equal(last.old, &old);                                                                              \
    } while (0)

#define CHECK_TYPE(PREFIX, OWNER, PE, NAME, TYPE)                                                                      \
    do {                                                                                                               \
        TYPE a[4] = {0};                                                                                               \
        TYPE b[4] = {0};                                                                                               \
        uint64_t signal = 0;                                                                                           \
        const size_t size = sizeof(TYPE);                                                                              \
        LEAVES(PUT, OWNER, 3 * size, PE, PREFIX##NAME##_put(OWNER, a, b, 3, PE));                                      \
        LEAVES(PUT_NBI, OWNER, 3 * size, PE, PREFIX##NAME##_put_nbi(OWNER, a, b, 3, PE));                              \
        LEAVES(GET, OWNER, 2 * size, PE, PREFIX##NAME##_get(OWNER, a, b, 2, PE));                                      \
        LEAVES(GET_NBI, OWNER, 2 * size, PE, PREFIX##NAME##_get_nbi(OWNER, a, b, 2, PE));                              \
        LEAVES(PUT, OWNER, size, PE, PREFIX##NAME##_p(OWNER, a, b[0], PE));                                            \
        LEAVES(GET, OWNER, size, PE, PREFIX##NAME##_g(OWNER, a, PE, b));                                               \
        LEAVES(IPUT, OWNER, 4 * size, PE, PREFIX##NAME##_iput(OWNER, a, b, 1, 1, 4, PE));                              \
        LEAVES(IGET, OWNER, 4 * size, PE, PREFIX##NAME##_iget(OWNER, a, b, 1, 1, 4, PE));                              \
        LEAVES(PUT_SIGNAL, OWNER, size, PE,                                                                            \
               PREFIX##NAME##_put_signal(OWNER, a, b, 1, &signal, 1, WEFT_SIGNAL_SET, PE));                            \
        LEAVES(PUT_SIGNAL_NBI, OWNER, size, PE,                                                                        \
               PREFIX##NAME##_put_signal_nbi(OWNER, a, b, 1, &signal, 1, WEFT_SIGNAL_SET, PE));                        \
    } while (0);
#define CHECK_SIZE(PREFIX, OWNER, PE, BITS, BYTES)                                                                     \
    do {                                                                                                               \
        unsigned char a[64] = {0};                                                                                     \
        uint64_t signal = 0;                                                                                           \
        LEAVES(PUT, OWNER, 3 * (BYTES), PE, PREFIX##put##BITS(OWNER, a, a, 3, PE));                                    \
        LEAVES(PUT_NBI, OWNER, 3 * (BYTES), PE, PREFIX##put##BITS##_nbi(OWNER, a, a, 3, PE));                          \
        LEAVES(GET, OWNER, 3 * (BYTES), PE, PREFIX##get##BITS(OWNER, a, a, 3, PE));                                    \
        LEAVES(GET_NBI, OWNER, 3 * (BYTES), PE, PREFIX##get##BITS##_nbi(OWNER, a, a, 3, PE));                          \
        LEAVES(IPUT, OWNER, 3 * (BYTES), PE, PREFIX##iput##BITS(OWNER, a, a, 1, 1, 3, PE));                            \
        LEAVES(IGET, OWNER, 3 * (BYTES), PE, PREFIX##iget##BITS(OWNER, a, a, 1, 1, 3, PE));                            \
        LEAVES(PUT_SIGNAL, OWNER, BYTES, PE,                                                                           \
               PREFIX##put##BITS##_signal(OWNER, a, a, 1, &signal, 1, WEFT_SIGNAL_ADD, PE));                           \
        LEAVES(PUT_SIGNAL_NBI, OWNER, BYTES, PE,                                                                       \
               PREFIX##put##BITS##_signal_nbi(OWNER, a, a, 1, &signal, 1, WEFT_SIGNAL_ADD, PE));                       \
    } while (0);
#define CHECK_EXTENDED(PREFIX, OWNER, PE, NAME, TYPE)                                                                  \
    do {                                                                                                               \
        TYPE at = 0;                                                                                                   \
        TYPE old = 0;                                                                                                  \
        const size_t size = sizeof(TYPE);                                                                              \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_fetch(OWNER, &at, PE, &old));                               \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_set(OWNER, &at, 1, PE));                                    \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_swap(OWNER, &at, 1, PE, &old));                             \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_nbi(OWNER, &at, PE, &old));                            \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_swap_nbi(OWNER, &at, 1, PE, &old));                          \
    } while (0);
#define CHECK_INTEGER(PREFIX, OWNER, PE, NAME, TYPE)                                                                   \
    do {                                                                                                               \
        TYPE at = 0;                                                                                                   \
        TYPE old = 0;                                                                                                  \
        const size_t size = sizeof(TYPE);                                                                              \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_add(OWNER, &at, 1, PE));                                    \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_inc(OWNER, &at, PE));                                       \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_fetch_add(OWNER, &at, 1, PE, &old));                        \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_fetch_inc(OWNER, &at, PE, &old));                           \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_compare_swap(OWNER, &at, 1, 2, PE, &old));                  \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_add_nbi(OWNER, &at, 1, PE, &old));                     \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_inc_nbi(OWNER, &at, PE, &old));                        \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_compare_swap_nbi(OWNER, &at, 1, 2, PE, &old));               \
    } while (0);
#define CHECK_BITWISE(PREFIX, OWNER, PE, NAME, TYPE)                                                                   \
    do {                                                                                                               \
        TYPE at = 0;                                                                                                   \
        TYPE old = 0;                                                                                                  \
        const size_t size = sizeof(TYPE);                                                                              \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_and(OWNER, &at, 1, PE));                                    \
        LEAVES(AMO, OWNER, size, PE, PREFIX##NAME##_atomic_fetch_or(OWNER, &at, 1, PE, &old));                         \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_and_nbi(OWNER, &at, 1, PE, &old));                     \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_or_nbi(OWNER, &at, 1, PE, &old));                      \
        LEAVES_FOR(OWNER, size, PE, PREFIX##NAME##_atomic_fetch_xor_nbi(OWNER, &at, 1, PE, &old));                     \
    } while (0);

static void test_world(void **state)
{
    (void)state;
#define CHECK_ONE(NAME, TYPE) CHECK_TYPE(weft_, world, FAR_PE, NAME, TYPE)
    WEFT_RMA_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(BITS, BYTES) CHECK_SIZE(weft_, world, FAR_PE, BITS, BYTES)
    WEFT_SIZES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_EXTENDED(weft_, world, FAR_PE, NAME, TYPE)
    WEFT_EXTENDED_AMO_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_INTEGER(weft_, world, FAR_PE, NAME, TYPE)
    WEFT_INTEGER_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_BITWISE(weft_, world, FAR_PE, NAME, TYPE)
    WEFT_BITWISE_TYPES(CHECK_ONE)
#undef CHECK_ONE
    LEAVES(FENCE, world, 0, 0, weft_fence(world));
    LEAVES(QUIET, world, 0, 0, weft_quiet(world));
}

static void test_context(void **state)
{
    (void)state;
    weft_ctx *ctx = &context;
#define CHECK_ONE(NAME, TYPE) CHECK_TYPE(weft_ctx_, ctx, MEMBER, NAME, TYPE)
    WEFT_RMA_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(BITS, BYTES) CHECK_SIZE(weft_ctx_, ctx, MEMBER, BITS, BYTES)
    WEFT_SIZES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_EXTENDED(weft_ctx_, ctx, MEMBER, NAME, TYPE)
    WEFT_EXTENDED_AMO_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_INTEGER(weft_ctx_, ctx, MEMBER, NAME, TYPE)
    WEFT_INTEGER_TYPES(CHECK_ONE)
#undef CHECK_ONE
#define CHECK_ONE(NAME, TYPE) CHECK_BITWISE(weft_ctx_, ctx, MEMBER, NAME, TYPE)
    WEFT_BITWISE_TYPES(CHECK_ONE)
#undef CHECK_ONE
    LEAVES(FENCE, ctx, 0, 0, weft_ctx_fence(ctx));
    LEAVES(QUIET, ctx, 0, 0, weft_ctx_quiet(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_world), cmocka_unit_test(test_context)};
    return cmocka_run_group_tests_name("entries", tests, NULL, NULL);
}
