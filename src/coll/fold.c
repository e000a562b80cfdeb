/* The loops that combine vectors, one for each operation and type, in a form that compilers turn into vector code. */
#include "coll/fold.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "weft/protocol/mem.h"

/* dest may equal a or b, so no pointer is `restrict`; no iteration reads what another writes. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define DEFINE_LOOP(NAME, TYPE, EXPRESSION)                                                                            \
    static void NAME(void *dest, const void *a_bytes, const void *b_bytes, size_t count)                               \
    {                                                                                                                  \
        TYPE *to = dest;                                                                                               \
        const TYPE *from_a = a_bytes;                                                                                  \
        const TYPE *from_b = b_bytes;                                                                                  \
        INDEPENDENT                                                                                                    \
        for (size_t k = 0; k < count; k++) {                                                                           \
            TYPE a = from_a[k];                                                                                        \
            TYPE b = from_b[k];                                                                                        \
            to[k] = (TYPE)(EXPRESSION);                                                                                \
        }                                                                                                              \
    }

/* Arithmetic in an unsigned type of at least int's width, so that it wraps around. */
#define DEFINE_UNSIGNED_LOOPS(NAME, TYPE, WIDE)                                                                        \
    DEFINE_LOOP(and_##NAME, TYPE, a &b)                                                                                \
    DEFINE_LOOP(or_##NAME, TYPE, a | b)                                                                                \
    DEFINE_LOOP(xor_##NAME, TYPE, a ^ b)                                                                               \
    DEFINE_LOOP(sum_##NAME, TYPE, (WIDE)a + (WIDE)b)                                                                   \
    DEFINE_LOOP(prod_##NAME, TYPE, (WIDE)a *(WIDE)b)
DEFINE_UNSIGNED_LOOPS(8, uint8_t, uint32_t)
DEFINE_UNSIGNED_LOOPS(16, uint16_t, uint32_t)
DEFINE_UNSIGNED_LOOPS(32, uint32_t, uint32_t)
DEFINE_UNSIGNED_LOOPS(64, uint64_t, uint64_t)

#define DEFINE_ORDER_LOOPS(NAME, TYPE)                                                                                 \
    DEFINE_LOOP(min_##NAME, TYPE, b < a ? b : a)                                                                       \
    DEFINE_LOOP(max_##NAME, TYPE, b > a ? b : a)
DEFINE_ORDER_LOOPS(int8, int8_t)
DEFINE_ORDER_LOOPS(uint8, uint8_t)
DEFINE_ORDER_LOOPS(int16, int16_t)
DEFINE_ORDER_LOOPS(uint16, uint16_t)
DEFINE_ORDER_LOOPS(int32, int32_t)
DEFINE_ORDER_LOOPS(uint32, uint32_t)
DEFINE_ORDER_LOOPS(int64, int64_t)
DEFINE_ORDER_LOOPS(uint64, uint64_t)
DEFINE_ORDER_LOOPS(float, float)
DEFINE_ORDER_LOOPS(double, double)
DEFINE_ORDER_LOOPS(longdouble, long double)

#define DEFINE_ARITHMETIC_LOOPS(NAME, TYPE)                                                                            \
    DEFINE_LOOP(sum_##NAME, TYPE, a + b)                                                                               \
    DEFINE_LOOP(prod_##NAME, TYPE, a *b)
DEFINE_ARITHMETIC_LOOPS(float, float)
DEFINE_ARITHMETIC_LOOPS(double, double)
DEFINE_ARITHMETIC_LOOPS(longdouble, long double)
DEFINE_ARITHMETIC_LOOPS(complexf, weft_complexf)
DEFINE_ARITHMETIC_LOOPS(complexd, weft_complexd)

#define INTEGER_ROW(NAME, BITS)                                                                                        \
    {                                                                                                                  \
        [WEFTI_OP_AND] = and_##BITS, [WEFTI_OP_OR] = or_##BITS, [WEFTI_OP_XOR] = xor_##BITS,                           \
        [WEFTI_OP_MIN] = min_##NAME, [WEFTI_OP_MAX] = max_##NAME, [WEFTI_OP_SUM] = sum_##BITS,                         \
        [WEFTI_OP_PROD] = prod_##BITS                                                                                  \
    }
#define REAL_ROW(NAME)                                                                                                 \
    {                                                                                                                  \
        [WEFTI_OP_MIN] = min_##NAME, [WEFTI_OP_MAX] = max_##NAME, [WEFTI_OP_SUM] = sum_##NAME,                         \
        [WEFTI_OP_PROD] = prod_##NAME                                                                                  \
    }
#define COMPLEX_ROW(NAME)                                                                                              \
    {                                                                                                                  \
        [WEFTI_OP_SUM] = sum_##NAME, [WEFTI_OP_PROD] = prod_##NAME                                                     \
    }

static const wefti_fold_loop loops[WEFTI_TYPES][WEFTI_OPS] = {
    [WEFTI_TYPE_INT8] = INTEGER_ROW(int8, 8),       [WEFTI_TYPE_UINT8] = INTEGER_ROW(uint8, 8),
    [WEFTI_TYPE_INT16] = INTEGER_ROW(int16, 16),    [WEFTI_TYPE_UINT16] = INTEGER_ROW(uint16, 16),
    [WEFTI_TYPE_INT32] = INTEGER_ROW(int32, 32),    [WEFTI_TYPE_UINT32] = INTEGER_ROW(uint32, 32),
    [WEFTI_TYPE_INT64] = INTEGER_ROW(int64, 64),    [WEFTI_TYPE_UINT64] = INTEGER_ROW(uint64, 64),
    [WEFTI_TYPE_FLOAT] = REAL_ROW(float),           [WEFTI_TYPE_DOUBLE] = REAL_ROW(double),
    [WEFTI_TYPE_LONGDOUBLE] = REAL_ROW(longdouble), [WEFTI_TYPE_COMPLEXF] = COMPLEX_ROW(complexf),
    [WEFTI_TYPE_COMPLEXD] = COMPLEX_ROW(complexd),
};

static const size_t element_bytes[WEFTI_TYPES] = {
    [WEFTI_TYPE_INT8] = 1,
    [WEFTI_TYPE_UINT8] = 1,
    [WEFTI_TYPE_INT16] = 2,
    [WEFTI_TYPE_UINT16] = 2,
    [WEFTI_TYPE_INT32] = 4,
    [WEFTI_TYPE_UINT32] = 4,
    [WEFTI_TYPE_INT64] = 8,
    [WEFTI_TYPE_UINT64] = 8,
    [WEFTI_TYPE_FLOAT] = sizeof(float),
    [WEFTI_TYPE_DOUBLE] = sizeof(double),
    [WEFTI_TYPE_LONGDOUBLE] = sizeof(long double),
    [WEFTI_TYPE_COMPLEXF] = sizeof(weft_complexf),
    [WEFTI_TYPE_COMPLEXD] = sizeof(weft_complexd),
};

wefti_fold wefti_fold_of(wefti_op op, wefti_type type)
{
    wefti_fold fold = {.op = op, .type = type};
    if ((unsigned)op < WEFTI_OPS && (unsigned)type < WEFTI_TYPES) {
        fold.loop = loops[type][op];
        fold.element = element_bytes[type];
    }
    return fold;
}

/* ---- neutral elements ---- */

/* The least (or the greatest) number of an integer type, into 8 bytes, little end first. */
static uint64_t extreme_integer(wefti_type type, int least)
{
    unsigned bits = (unsigned)element_bytes[type] * 8;
    uint64_t all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    int is_signed = (unsigned)type % 2 == 0;
    uint64_t greatest = is_signed ? all >> 1 : all;
    return least ? all ^ greatest : greatest;
}

static void neutral_integer(const wefti_fold *fold, unsigned char *element)
{
    uint64_t value = 0;
    switch (fold->op) {
    case WEFTI_OP_AND:
        value = UINT64_MAX;
        break;
    case WEFTI_OP_MIN:
        value = extreme_integer(fold->type, 0);
        break;
    case WEFTI_OP_MAX:
        value = extreme_integer(fold->type, 1);
        break;
    case WEFTI_OP_PROD:
        value = 1;
        break;
    default:
        break;
    }
    for (size_t i = 0; i < fold->element; i++) {
        element[i] = (unsigned char)(value >> (8 * i));
    }
}

static long double neutral_real(wefti_op op)
{
    return op == WEFTI_OP_MIN    ? (long double)INFINITY
           : op == WEFTI_OP_MAX  ? -(long double)INFINITY
           : op == WEFTI_OP_PROD ? 1.0L
                                 : 0.0L;
}

void wefti_fold_neutral(const wefti_fold *fold, void *dest, size_t count)
{
    unsigned char element[sizeof(long double) > 16 ? sizeof(long double) : 16] = {0};
    float f = (float)neutral_real(fold->op);
    double d = (double)neutral_real(fold->op);
    long double l = neutral_real(fold->op);
    switch (fold->type) {
    case WEFTI_TYPE_FLOAT:
    case WEFTI_TYPE_COMPLEXF:
        memcpy(element, &f, sizeof f);
        break;
    case WEFTI_TYPE_DOUBLE:
    case WEFTI_TYPE_COMPLEXD:
        memcpy(element, &d, sizeof d);
        break;
    case WEFTI_TYPE_LONGDOUBLE:
        memcpy(element, &l, sizeof l);
        break;
    default:
        neutral_integer(fold, element);
        break;
    }
    for (size_t k = 0; k < count; k++) {
        wefti_copy((unsigned char *)dest + k * fold->element, element, fold->element);
    }
}

/* ---- chunks ---- */

#ifndef WEFT_SIM

void wefti_fold_chunk(const wefti_fold *fold, void *dest, const void *a, const void *b, size_t count)
{
    fold->loop(dest, a, b, count);
}

#else /* the simulator sees copies only */

void wefti_fold_chunk(const wefti_fold *fold, void *dest, const void *a, const void *b, size_t count)
{
    _Alignas(16) unsigned char of_a[WEFTI_FOLD_BYTES];
    _Alignas(16) unsigned char of_b[WEFTI_FOLD_BYTES];
    wefti_copy(of_a, a, count * fold->element);
    wefti_copy(of_b, b, count * fold->element);
    fold->loop(of_a, of_a, of_b, count);
    wefti_copy(dest, of_a, count * fold->element);
}

#endif
