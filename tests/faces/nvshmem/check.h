/* faces/nvshmem/check.h: what the programs here share. They are programs of users: they include nvshmem.h and
 * nothing of weft.
 *
 * A check that fails says where and on which PE, and the program goes on, so that no PE waits for one that gave
 * up; the exit status says whether one failed. The lists of types are written from the interface's documentation,
 * not from the library's tables. */
#ifndef FACES_NVSHMEM_CHECK_H
#define FACES_NVSHMEM_CHECK_H

/* Compiled as C++ with WEFT_DEVICE_ON_HOST, the routines that kernels have are theirs: the program is a kernel of
 * one thread. */
#if !defined(NVSHMEM_HOSTLIB_ONLY) && !defined(WEFT_DEVICE_ON_HOST)
#define NVSHMEM_HOSTLIB_ONLY
#endif
#include <dlfcn.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long check_failures;

#define CHECK_SAY(HOLDS, ...)                                                                                          \
    do {                                                                                                               \
        if (!(HOLDS) && check_failures++ < 20) {                                                                       \
            printf("%s:%d: PE %d: ", __FILE__, __LINE__, nvshmem_my_pe());                                             \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)
#define CHECK(HOLDS) CHECK_SAY(HOLDS, "not so: %s", #HOLDS)

/* With CHECK_GPU the programs run on GPUs, those of the fake driver, whose memory the host reaches: one is current
 * before main, as a program's cudaSetDevice makes it. */
static int check_on_gpu;

__attribute__((constructor)) static void check_choose_gpu(void)
{
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    void *context;
    if (getenv("CHECK_GPU") == NULL) {
        return;
    }
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        printf("no driver: %s\n", dlerror());
        exit(1);
    }
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    check_on_gpu = init(0) == 0 && retain(&context, 0) == 0 && push(context) == 0;
    if (!check_on_gpu) {
        printf("no GPU of the fake driver\n");
        exit(1);
    }
}

/* The end of main: of all PEs. */
static inline int check_end(void)
{
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0); /* nothing is latched */
    nvshmem_finalize();
    return check_failures == 0 ? 0 : 1;
}

/* A symmetric block of `count` elements, zeroed; the program ends when there is none. */
#define ZEROED(TYPE, COUNT) ((TYPE *)check_block(nvshmem_calloc((COUNT), sizeof(TYPE))))

static inline void *check_block(void *block)
{
    if (block == NULL) {
        printf("PE %d: no symmetric memory\n", nvshmem_my_pe());
        nvshmem_global_exit(2);
    }
    return block;
}

/* A small number that says who wrote what; it fits in every type. */
static inline int number_of(int pe, int i)
{
    return (pe * 7 + i * 3 + 1) % 100;
}

/* Types of RMA that C computes with; half and bfloat16, of which it knows the bits, stand apart. */
#define RMA_TYPES(X)                                                                                                   \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(char, char)                                                                                                      \
    X(short, short)                                                                                                    \
    X(schar, signed char)                                                                                              \
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
#define SMALL_TYPES(X)                                                                                                 \
    X(half, half)                                                                                                      \
    X(bfloat16, __nv_bfloat16)

#define BITWISE_TYPES(X)                                                                                               \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(int64, int64_t)                                                                                                  \
    X(uint64, uint64_t)
#define AMO_TYPES(X)                                                                                                   \
    BITWISE_TYPES(X)                                                                                                   \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)
#define EXTENDED_TYPES(X)                                                                                              \
    AMO_TYPES(X)                                                                                                       \
    X(float, float)                                                                                                    \
    X(double, double)
#define WAIT_TYPES(X)                                                                                                  \
    AMO_TYPES(X)                                                                                                       \
    X(short, short)                                                                                                    \
    X(ushort, unsigned short)

#define BITS_TYPES(X)                                                                                                  \
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
    X(size, size_t)
#define ORDER_TYPES(X)                                                                                                 \
    BITS_TYPES(X)                                                                                                      \
    X(char, char)                                                                                                      \
    X(schar, signed char)                                                                                              \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(float, float)                                                                                                    \
    X(double, double)

#define SIZES(X)                                                                                                       \
    X(8, 1)                                                                                                            \
    X(16, 2)                                                                                                           \
    X(32, 4)                                                                                                           \
    X(64, 8)                                                                                                           \
    X(128, 16)

#endif
