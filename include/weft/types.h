/* weft/types.h: the one table of element types.
 *
 * OpenSHMEM 1.5, tables 3 (standard RMA types), 5 (extended AMO types), 6 (bitwise AMO types). Every typed call is
 * generated from these lists, and so are the tests. X(NAME, C type). */
#ifndef WEFT_TYPES_H
#define WEFT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Integer types of put, get, atomics, wait and test. */
#define WEFT_INTEGER_TYPES(X)                                                                                          \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Types of bitwise atomics. */
#define WEFT_BITWISE_TYPES(X)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)

/* Types with atomic fetch, set and swap only. */
#define WEFT_FLOAT_TYPES(X)                                                                                            \
    X(float, float)                                                                                                    \
    X(double, double)

/* Types of put and get beside the above. */
#define WEFT_SMALL_TYPES(X)                                                                                            \
    X(char, char)                                                                                                      \
    X(schar, signed char)                                                                                              \
    X(short, short)                                                                                                    \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)

/* Types wider than a machine word: put, get, p and g only, without the guarantee of a single access. */
#define WEFT_WIDE_TYPES(X) X(longdouble, long double)

/* Types whose single elements move in one access. */
#define WEFT_WORD_TYPES(X)                                                                                             \
    WEFT_INTEGER_TYPES(X)                                                                                              \
    WEFT_FLOAT_TYPES(X)                                                                                                \
    WEFT_SMALL_TYPES(X)

/* All types of put and get. */
#define WEFT_RMA_TYPES(X)                                                                                              \
    WEFT_WORD_TYPES(X)                                                                                                 \
    WEFT_WIDE_TYPES(X)

/* Types of the standard atomics without arithmetic (fetch, set, swap). */
#define WEFT_EXTENDED_AMO_TYPES(X)                                                                                     \
    WEFT_INTEGER_TYPES(X)                                                                                              \
    WEFT_FLOAT_TYPES(X)

#endif
