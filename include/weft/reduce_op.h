/* weft/reduce_op.h: operations and element types of reductions as values, for calls that take them as arguments.
 * Compiled by C, C++, nvcc and NVRTC: no standard header. */
#ifndef WEFT_REDUCE_OP_H
#define WEFT_REDUCE_OP_H

typedef enum weft_op {
    WEFT_OP_AND = 0,
    WEFT_OP_OR = 1,
    WEFT_OP_XOR = 2,
    WEFT_OP_MIN = 3,
    WEFT_OP_MAX = 4,
    WEFT_OP_SUM = 5,
    WEFT_OP_PROD = 6
} weft_op;

/* X(NAME, VALUE, bytes, what it is to C++ inside kernels). Bitwise operations take integers only; complex numbers are
 * summed and multiplied only. */
#define WEFT_DTYPES(X)                                                                                                 \
    X(INT8, 0, 1, signed char)                                                                                         \
    X(UINT8, 1, 1, unsigned char)                                                                                      \
    X(INT16, 2, 2, short)                                                                                              \
    X(UINT16, 3, 2, unsigned short)                                                                                    \
    X(INT32, 4, 4, int)                                                                                                \
    X(UINT32, 5, 4, unsigned int)                                                                                      \
    X(INT64, 6, 8, long long)                                                                                          \
    X(UINT64, 7, 8, unsigned long long)                                                                                \
    X(FLOAT, 8, 4, float)                                                                                              \
    X(DOUBLE, 9, 8, double)                                                                                            \
    X(COMPLEXF, 11, 8, weft_dev_complexf)                                                                              \
    X(COMPLEXD, 12, 16, weft_dev_complexd)                                                                             \
    X(FP16, 16, 2, weft_fp16)                                                                                          \
    X(BF16, 17, 2, weft_bf16)                                                                                          \
    X(E4M3, 18, 1, weft_e4m3)                                                                                          \
    X(E5M2, 19, 1, weft_e5m2)

typedef enum weft_dtype {
#define WEFTI_DTYPE(NAME, value, bytes, type) WEFT_DTYPE_##NAME = value,
    WEFT_DTYPES(WEFTI_DTYPE)
#undef WEFTI_DTYPE
} weft_dtype;

#endif
