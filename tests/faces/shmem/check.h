/* faces/shmem/check.h: what the programs here share. They are programs of users: they include shmem.h and nothing of
 * weft.
 *
 * A check that fails says where and on which PE, and the program goes on, so that no PE waits for one that gave up; the
 * exit status says whether one failed. The lists of types are written from the tables of the specification, not from
 * the library's. */
#ifndef FACES_SHMEM_CHECK_H
#define FACES_SHMEM_CHECK_H

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long check_failures;

#define CHECK_SAY(HOLDS, ...)                                                                                          \
    do {                                                                                                               \
        if (!(HOLDS) && check_failures++ < 20) {                                                                       \
            printf("%s:%d: PE %d: ", __FILE__, __LINE__, shmem_my_pe());                                               \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)
#define CHECK(HOLDS) CHECK_SAY(HOLDS, "not so: %s", #HOLDS)

/* The end of main: of all PEs. */
static inline int check_end(void)
{
    shmem_finalize();
    return check_failures == 0 ? 0 : 1;
}

/* Standard RMA types and names (table 5 of 1.6). */
#define RMA_TYPES(X)                                                                                                   \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(longdouble, long double)                                                                                         \
    X(char, char)                                                                                                      \
    X(schar, signed char)                                                                                              \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Standard AMO types and names; extended ones are these and float and double. */
#define AMO_TYPES(X)                                                                                                   \
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
#define EXTENDED_TYPES(X)                                                                                              \
    AMO_TYPES(X)                                                                                                       \
    X(float, float)                                                                                                    \
    X(double, double)
#define BITWISE_TYPES(X)                                                                                               \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)

/* A symmetric block of `count` elements, zeroed; the program ends when there is none. */
#define ZEROED(TYPE, COUNT) ((TYPE *)check_block(shmem_calloc((COUNT), sizeof(TYPE))))

static inline void *check_block(void *block)
{
    if (block == NULL) {
        printf("PE %d: no symmetric memory\n", shmem_my_pe());
        shmem_global_exit(2);
    }
    return block;
}

/* A small number that says who wrote what; it fits in every type. */
static inline int number_of(int pe, int i)
{
    return (pe * 7 + i * 3 + 1) % 100;
}

#endif
