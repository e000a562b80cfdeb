/* weft/reduce.h: the operations and element types of reductions and scans. (OpenSHMEM 1.5, table 10.) */
#ifndef WEFT_REDUCE_H
#define WEFT_REDUCE_H

#include "weft/types.h"

/* Complex numbers: C's own; in C++ structs of the same layout as std::complex. */
#ifdef __cplusplus
typedef struct weft_complexf {
    float part[2];
} weft_complexf;
typedef struct weft_complexd {
    double part[2];
} weft_complexd;
#else
typedef float _Complex weft_complexf;
typedef double _Complex weft_complexd;
#endif

typedef enum wefti_op {
    WEFTI_OP_AND = 0,
    WEFTI_OP_OR,
    WEFTI_OP_XOR,
    WEFTI_OP_MIN,
    WEFTI_OP_MAX,
    WEFTI_OP_SUM,
    WEFTI_OP_PROD,
    WEFTI_OPS
} wefti_op;

/* Types of bitwise operations; these and the real ones of min and max; those and the complex ones of sum and prod. */
#define WEFT_REDUCE_INTEGER_TYPES(X)                                                                                   \
    WEFT_INTEGER_TYPES(X)                                                                                              \
    WEFT_SMALL_TYPES(X)
#define WEFT_REDUCE_REAL_TYPES(X)                                                                                      \
    WEFT_FLOAT_TYPES(X)                                                                                                \
    WEFT_WIDE_TYPES(X)
#define WEFT_REDUCE_COMPLEX_TYPES(X)                                                                                   \
    X(complexf, weft_complexf)                                                                                         \
    X(complexd, weft_complexd)

/* How the library tells types apart: integers by width and sign. */
typedef enum wefti_type {
    WEFTI_TYPE_INT8 = 0,
    WEFTI_TYPE_UINT8,
    WEFTI_TYPE_INT16,
    WEFTI_TYPE_UINT16,
    WEFTI_TYPE_INT32,
    WEFTI_TYPE_UINT32,
    WEFTI_TYPE_INT64,
    WEFTI_TYPE_UINT64,
    WEFTI_TYPE_FLOAT,
    WEFTI_TYPE_DOUBLE,
    WEFTI_TYPE_LONGDOUBLE,
    WEFTI_TYPE_COMPLEXF,
    WEFTI_TYPE_COMPLEXD,
    WEFTI_TYPES
} wefti_type;

#define WEFTI_INTEGER_TYPE(TYPE)                                                                                       \
    ((wefti_type)((sizeof(TYPE) == 8   ? 6                                                                             \
                   : sizeof(TYPE) == 4 ? 4                                                                             \
                   : sizeof(TYPE) == 2 ? 2                                                                             \
                                       : 0) +                                                                          \
                  ((TYPE)-1 > (TYPE)0 ? 1 : 0)))

#define WEFTI_TYPE_OF_float WEFTI_TYPE_FLOAT
#define WEFTI_TYPE_OF_double WEFTI_TYPE_DOUBLE
#define WEFTI_TYPE_OF_longdouble WEFTI_TYPE_LONGDOUBLE
#define WEFTI_TYPE_OF_complexf WEFTI_TYPE_COMPLEXF
#define WEFTI_TYPE_OF_complexd WEFTI_TYPE_COMPLEXD

/* Deprecated: the library has no use for these lists of operations, X(OP, CODE), and a compiler warns where they are
 * used. */
#define WEFT_BITWISE_OPS(X)                                                                                            \
    _Pragma("GCC warning \"WEFT_BITWISE_OPS is deprecated\"") X(and, WEFTI_OP_AND) X(or, WEFTI_OP_OR)                  \
        X(xor, WEFTI_OP_XOR)
#define WEFT_ORDER_OPS(X)                                                                                              \
    _Pragma("GCC warning \"WEFT_ORDER_OPS is deprecated\"") X(min, WEFTI_OP_MIN) X(max, WEFTI_OP_MAX)
#define WEFT_ARITHMETIC_OPS(X)                                                                                         \
    _Pragma("GCC warning \"WEFT_ARITHMETIC_OPS is deprecated\"") X(sum, WEFTI_OP_SUM) X(prod, WEFTI_OP_PROD)

#endif
