/* device/strided.cuh: elements that lie apart, from kernels and from the host. */
#ifndef DEVICE_STRIDED_CUH
#define DEVICE_STRIDED_CUH

#include "support/bench.h"

/* Put every second of `there`'s elements on `pe`, get them back apart. */
template <int KIND, class T>
__global__ void strided_kernel(const __grid_constant__ weft_dev dev, T *there, const T *out, T *in, int there_stride,
                               int here_stride, wefti_u64 count, int pe, int *status)
{
    int bad = weft_dev_iput(scope_of<KIND>(), dev, there, out, there_stride, here_stride, count, pe);
    (void)weft_dev_quiet(dev);
    wefti_scope_sync(scope_of<KIND>());
    bad = bad == WEFT_OK
              ? weft_dev_iget(scope_of<KIND>(), dev, in, (const T *)there, here_stride, there_stride, count, pe)
              : bad;
    *status = bad;
}

typedef struct pair16 {
    uint64_t part[2];
} pair16;

typedef struct triple { /* 12 bytes that are aligned to 4 */
    uint32_t part[3];
} triple;

template <class T> static void test_strided_of(test_pe *pe, bench *all, const char *name)
{
    static const int counts[] = {0, 1, 7, 200, 1001};
    const size_t room = 4096 * sizeof(T);
    const int right = (pe->pe + 1) % pe->pes;
    const int left = (pe->pe + pe->pes - 1) % pe->pes;
    T *there = (T *)all->target;
    T *out = (T *)all->source;
    T *in = (T *)(all->target + room);
    unsigned char *data = (unsigned char *)malloc(room);
    unsigned char *seen = (unsigned char *)malloc(room);
    pe->stage = name;
    for (size_t i = 0; i < room; i++) {
        data[i] = (unsigned char)(i * 11 + (size_t)pe->pe * 37);
    }
    for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
        const int count = counts[which];
        const int kind = (int)(which % (size_t)KINDS);
        const int there_stride = 1 + (int)which % 3;
        const int here_stride = 3 - (int)which % 3;
        OK(pe, weft_putmem(all->world, out, data, room, pe->pe));
        fill(pe, all->world, there, POISON, room);
        fill(pe, all->world, in, POISON, room);
        OK(pe, weft_barrier(all->world));
        if (kind == WEFTI_SCOPE_BLOCK) {
            LAUNCH((strided_kernel<WEFTI_SCOPE_BLOCK, T>), 1, 192, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        } else if (kind == WEFTI_SCOPE_WARP) {
            LAUNCH((strided_kernel<WEFTI_SCOPE_WARP, T>), 1, 32, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        } else {
            LAUNCH((strided_kernel<WEFTI_SCOPE_THREAD, T>), 1, 1, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        }
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        OK(pe, weft_barrier(all->world));
        OK(pe, weft_getmem(all->world, seen, there, room, pe->pe));
        size_t wrong = 0;
        for (size_t i = 0; i < room; i++) {
            const size_t element = i / sizeof(T);
            const size_t number = element / (size_t)there_stride;
            const int is_put = element % (size_t)there_stride == 0 && number < (size_t)count;
            const size_t from = number * (size_t)here_stride * sizeof(T) + i % sizeof(T);
            wrong += seen[i] != (is_put ? (unsigned char)(from * 11 + (size_t)left * 37) : POISON);
        }
        CHECK_SAY(pe, wrong == 0, "iput of %d elements, scope %d: %zu bytes", count, kind, wrong);
        OK(pe, weft_getmem(all->world, seen, in, room, pe->pe));
        for (size_t i = 0; i < room; i++) {
            const size_t element = i / sizeof(T);
            const int is_got = element % (size_t)here_stride == 0 && element / (size_t)here_stride < (size_t)count;
            wrong += seen[i] != (is_got ? data[i] : POISON);
        }
        CHECK_SAY(pe, wrong == 0, "iget of %d elements, scope %d: %zu bytes", count, kind, wrong);
        OK(pe, weft_barrier(all->world));
    }
    free(seen);
    free(data);
}

static void test_strided(test_pe *pe, bench *all)
{
    test_strided_of<signed char>(pe, all, "strided, 1 byte");
    test_strided_of<short>(pe, all, "strided, 2 bytes");
    test_strided_of<float>(pe, all, "strided, 4 bytes");
    test_strided_of<double>(pe, all, "strided, 8 bytes");
    if (pe->pes > 1) { /* target has room for that */
        test_strided_of<pair16>(pe, all, "strided, 16 bytes");
        test_strided_of<triple>(pe, all, "strided, 12 bytes");
    }
}

/* Elements that lie apart in device memory, and ones that would leave it. */
static void test_strided_from_host(test_pe *pe, bench *all, int right)
{
    uint64_t out[12];
    uint64_t in[12] = {0};
    uint64_t *at = all->words + 256;
    for (int i = 0; i < 12; i++) {
        out[i] = (uint64_t)pe->pe * 100 + (uint64_t)i;
    }
    OK(pe, weft_uint64_iput(all->world, at, out, 3, 2, 6, right));
    OK(pe, weft_uint64_iget(all->world, in, at, 2, 3, 6, right));
    for (int i = 0; i < 12; i++) {
        CHECK(pe, in[i] == (i % 2 == 0 ? out[i] : 0));
    }
    CHECK(pe, weft_uint64_iput(all->world, at, out, (ptrdiff_t)1 << 50, 1, 2, right) == WEFT_ERR_RANGE);
    CHECK(pe, weft_uint64_iget(all->world, in, at, 1, 1, 2, pe->pes) == WEFT_ERR_RANGE);
}

#endif
