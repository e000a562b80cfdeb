/* One-sided access, by world and by context: put, get, strided, atomics, signals, waits, order. */
#include "input/table.h"

/* ---- bytes ---- */

#define BYTES(PREFIX, OWNER)                                                                                           \
    ROW(1, PREFIX##putmem, OWNER, SYM, IN, COUNT, PE)                                                                  \
    ROW(1, PREFIX##putmem_nbi, OWNER, SYM, IN, COUNT, PE)                                                              \
    ROW(1, PREFIX##getmem, OWNER, OUT, SYM, COUNT, PE)                                                                 \
    ROW(1, PREFIX##getmem_nbi, OWNER, OUT, SYM, COUNT, PE)                                                             \
    ROW(1, PREFIX##putmem_signal, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)                                        \
    ROW(1, PREFIX##putmem_signal_nbi, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)                                    \
    ROW(1, PREFIX##fence, OWNER)                                                                                       \
    ROW(1, PREFIX##quiet, OWNER)
BYTES(weft_, WORLD)
BYTES(weft_ctx_, CTX)
#define STRIDED_BYTES(PREFIX, OWNER)                                                                                   \
    ROW(8, PREFIX##iputmem, OWNER, SYM, IN, STRIDE, STRIDE, COUNT, ELEMENT, PE)                                        \
    ROW(8, PREFIX##igetmem, OWNER, OUT, SYM, STRIDE, STRIDE, COUNT, ELEMENT, PE)                                       \
    ROW(8, PREFIX##ibputmem, OWNER, SYM, IN, STRIDE, STRIDE, BLOCK, COUNT, ELEMENT, PE)                                \
    ROW(8, PREFIX##ibgetmem, OWNER, OUT, SYM, STRIDE, STRIDE, BLOCK, COUNT, ELEMENT, PE)
STRIDED_BYTES(weft_, WORLD)
STRIDED_BYTES(weft_ctx_, CTX)

/* ---- every type ---- */

#define RMA(PREFIX, OWNER, NAME, TYPE)                                                                                 \
    ROW(sizeof(TYPE), PREFIX##NAME##_put, OWNER, SYM, IN, COUNT, PE)                                                   \
    ROW(sizeof(TYPE), PREFIX##NAME##_put_nbi, OWNER, SYM, IN, COUNT, PE)                                               \
    ROW(sizeof(TYPE), PREFIX##NAME##_get, OWNER, OUT, SYM, COUNT, PE)                                                  \
    ROW(sizeof(TYPE), PREFIX##NAME##_get_nbi, OWNER, OUT, SYM, COUNT, PE)                                              \
    ROW(sizeof(TYPE), PREFIX##NAME##_p, OWNER, SYM, VALUE, PE)                                                         \
    ROW(sizeof(TYPE), PREFIX##NAME##_g, OWNER, SYM, PE, OUT)                                                           \
    ROW(sizeof(TYPE), PREFIX##NAME##_iput, OWNER, SYM, IN, STRIDE, STRIDE, COUNT, PE)                                  \
    ROW(sizeof(TYPE), PREFIX##NAME##_iget, OWNER, OUT, SYM, STRIDE, STRIDE, COUNT, PE)                                 \
    ROW(sizeof(TYPE), PREFIX##NAME##_put_signal, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)                         \
    ROW(sizeof(TYPE), PREFIX##NAME##_put_signal_nbi, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)
#define RMA_OF(NAME, TYPE)                                                                                             \
    RMA(weft_, WORLD, NAME, TYPE)                                                                                      \
    RMA(weft_ctx_, CTX, NAME, TYPE)
WEFT_RMA_TYPES(RMA_OF)

#define SIZED(PREFIX, OWNER, BITS, BYTES)                                                                              \
    ROW(BYTES, PREFIX##put##BITS, OWNER, SYM, IN, COUNT, PE)                                                           \
    ROW(BYTES, PREFIX##put##BITS##_nbi, OWNER, SYM, IN, COUNT, PE)                                                     \
    ROW(BYTES, PREFIX##get##BITS, OWNER, OUT, SYM, COUNT, PE)                                                          \
    ROW(BYTES, PREFIX##get##BITS##_nbi, OWNER, OUT, SYM, COUNT, PE)                                                    \
    ROW(BYTES, PREFIX##put##BITS##_signal, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)                               \
    ROW(BYTES, PREFIX##put##BITS##_signal_nbi, OWNER, SYM, IN, COUNT, SIGNAL, VALUE, OP, PE)                           \
    ROW(BYTES, PREFIX##iput##BITS, OWNER, SYM, IN, STRIDE, STRIDE, COUNT, PE)                                          \
    ROW(BYTES, PREFIX##iget##BITS, OWNER, OUT, SYM, STRIDE, STRIDE, COUNT, PE)
#define SIZED_OF(BITS, BYTES)                                                                                          \
    SIZED(weft_, WORLD, BITS, BYTES)                                                                                   \
    SIZED(weft_ctx_, CTX, BITS, BYTES)
WEFT_SIZES(SIZED_OF)

/* ---- atomics ---- */

#define EXTENDED(PREFIX, OWNER, NAME, TYPE)                                                                            \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch, OWNER, AMO, PE, OUT)                                                \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_nbi, OWNER, AMO, PE, OUT)                                            \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_set, OWNER, AMO, VALUE, PE)                                                \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_swap, OWNER, AMO, VALUE, PE, OUT)                                          \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_swap_nbi, OWNER, AMO, VALUE, PE, OUT)
#define EXTENDED_OF(NAME, TYPE)                                                                                        \
    EXTENDED(weft_, WORLD, NAME, TYPE)                                                                                 \
    EXTENDED(weft_ctx_, CTX, NAME, TYPE)
WEFT_EXTENDED_AMO_TYPES(EXTENDED_OF)

#define INTEGER(PREFIX, OWNER, NAME, TYPE)                                                                             \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_compare_swap, OWNER, AMO, VALUE, VALUE, PE, OUT)                           \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_compare_swap_nbi, OWNER, AMO, VALUE, VALUE, PE, OUT)                       \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_add, OWNER, AMO, VALUE, PE)                                                \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_add, OWNER, AMO, VALUE, PE, OUT)                                     \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_add_nbi, OWNER, AMO, VALUE, PE, OUT)                                 \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_inc, OWNER, AMO, PE)                                                       \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_inc, OWNER, AMO, PE, OUT)                                            \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_inc_nbi, OWNER, AMO, PE, OUT)
#define INTEGER_OF(NAME, TYPE)                                                                                         \
    INTEGER(weft_, WORLD, NAME, TYPE)                                                                                  \
    INTEGER(weft_ctx_, CTX, NAME, TYPE)
WEFT_INTEGER_TYPES(INTEGER_OF)

#define BITWISE_OP(PREFIX, OWNER, NAME, TYPE, OPERATION)                                                               \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_##OPERATION, OWNER, AMO, VALUE, PE)                                        \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_##OPERATION, OWNER, AMO, VALUE, PE, OUT)                             \
    ROW(sizeof(TYPE), PREFIX##NAME##_atomic_fetch_##OPERATION##_nbi, OWNER, AMO, VALUE, PE, OUT)
#define BITWISE_OF(NAME, TYPE)                                                                                         \
    BITWISE_OP(weft_, WORLD, NAME, TYPE, and)                                                                          \
    BITWISE_OP(weft_, WORLD, NAME, TYPE, or)                                                                           \
    BITWISE_OP(weft_, WORLD, NAME, TYPE, xor)                                                                          \
    BITWISE_OP(weft_ctx_, CTX, NAME, TYPE, and)                                                                        \
    BITWISE_OP(weft_ctx_, CTX, NAME, TYPE, or)                                                                         \
    BITWISE_OP(weft_ctx_, CTX, NAME, TYPE, xor)
WEFT_BITWISE_TYPES(BITWISE_OF)

/* ---- waits ---- */

ROW(8, weft_signal_fetch, WORLD, VARIABLE, OUT)
ROW(8, weft_signal_wait_until, WORLD, VARIABLE, CMP, VALUE, MAYBE)

#define SEVERAL(NAME, TYPE, VECTOR, OPERAND)                                                                           \
    ROW(sizeof(TYPE), weft_##NAME##_wait_until_all##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND)              \
    ROW(sizeof(TYPE), weft_##NAME##_wait_until_any##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND, OUT)         \
    ROW(sizeof(TYPE), weft_##NAME##_wait_until_some##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND, OUT, OUT)   \
    ROW(sizeof(TYPE), weft_##NAME##_test_all##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND, OUT)               \
    ROW(sizeof(TYPE), weft_##NAME##_test_any##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND, OUT)               \
    ROW(sizeof(TYPE), weft_##NAME##_test_some##VECTOR, WORLD, VARIABLES, VALUES, NONE, CMP, OPERAND, OUT, OUT)
#define WAITS(NAME, TYPE)                                                                                              \
    ROW(sizeof(TYPE), weft_##NAME##_wait_until, WORLD, VARIABLE, CMP, VALUE)                                           \
    ROW(sizeof(TYPE), weft_##NAME##_test, WORLD, VARIABLE, CMP, VALUE, OUT)                                            \
    SEVERAL(NAME, TYPE, , VALUE)                                                                                       \
    SEVERAL(NAME, TYPE, _vector, ZEROS)
WEFT_INTEGER_TYPES(WAITS)

/* ---- locks ---- */

static void refuse_lock(scene *s, weft_world *world, void *lock, weft_status status)
{
    int taken = 11;
    (void)s;
    CHECK_STATUS(weft_set_lock(world, lock), status);
    CHECK_STATUS(weft_test_lock(world, lock, &taken), status);
    CHECK_STATUS(weft_clear_lock(world, lock), status);
    CHECK(taken == 11);
}

COVERED(weft_test_lock)
COVERED(weft_clear_lock)
CASE(weft_set_lock)
{
    static long not_symmetric;
    void *block = NULL;
    int taken = 11;
    CHECK_OK(weft_calloc(s->world, 1, sizeof(long), &block));
    refuse_lock(s, NULL, block, WEFT_ERR_ARGUMENT);
    refuse_lock(s, s->world, NULL, WEFT_ERR_ARGUMENT);
    refuse_lock(s, s->world, (char *)block + 4, WEFT_ERR_ARGUMENT);
    refuse_lock(s, s->world, &not_symmetric, WEFT_ERR_RANGE);
    refuse_lock(s, s->world, s->other, WEFT_ERR_RANGE);
    refuse_lock(s, s->world, s->foreign_block, WEFT_ERR_RANGE);
    refuse_lock(s, s->world, s->end, WEFT_ERR_RANGE);
    CHECK_STATUS(weft_test_lock(s->world, block, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_clear_lock(s->world, block), WEFT_ERR_STATE); /* not held */
    CHECK_OK(weft_set_lock(s->world, block));
    CHECK_STATUS(weft_set_lock(s->world, block), WEFT_ERR_STATE);
    CHECK_STATUS(weft_test_lock(s->world, block, &taken), WEFT_ERR_STATE);
    CHECK(taken == 11);
    CHECK_OK(weft_clear_lock(s->world, block));
    CHECK_STATUS(weft_clear_lock(s->world, block), WEFT_ERR_STATE);
    CHECK_OK(weft_free(s->world, block));
}
