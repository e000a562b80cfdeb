/* device/signals.cuh: signals with and without data, and who waits for them: kernels and the host. */
#ifndef DEVICE_SIGNALS_CUH
#define DEVICE_SIGNALS_CUH

#include "support/bench.h"

/* Put to the right with a signal, wait for the left's. */
template <int KIND>
__global__ void ring_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                            wefti_u64 bytes, uint64_t *signal, uint64_t value, int op, int *status)
{
    int right = (dev.pe + 1) % dev.pes;
    int left = (dev.pe + dev.pes - 1) % dev.pes;
    int put = weft_dev_put_signal(scope_of<KIND>(), dev, dest, source, bytes, signal,
                                  op == WEFT_SIGNAL_SET ? value : (wefti_u64)1, (weft_signal_op)op, right);
    int wait = weft_dev_signal_wait_until(scope_of<KIND>(), dev, signal, WEFT_CMP_GE, value, left);
    *status = put != WEFT_OK ? put : wait;
}

__global__ void put_signal_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest,
                                  const unsigned char *source, wefti_u64 bytes, uint64_t *signal, int pe, int *status)
{
    *status = weft_dev_put_signal(weft_thread(), dev, dest, source, bytes, signal, 1, WEFT_SIGNAL_SET, pe);
}

__global__ void wait_kernel(const __grid_constant__ weft_dev dev, const uint64_t *word, int from, int *status)
{
    *status = weft_dev_signal_wait_until(weft_thread(), dev, word, WEFT_CMP_EQ, 1, from);
}

static void test_ring(test_pe *pe, bench *all)
{
    static const int sizes[] = {0, 8, 1024, 5000, 65536};
    uint64_t value = 0;
    unsigned char *seen = (unsigned char *)malloc(ROOM);
    unsigned char *data = (unsigned char *)malloc(ROOM);
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    pe->stage = "put_signal ring";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
            for (int op = 0; op < 2; op++) {
                value++;
                for (int i = 0; i < ROOM; i++) {
                    data[i] = (unsigned char)(i * 3 + pe->pe * 17 + (int)value);
                }
                OK(pe, weft_putmem(all->world, all->source, data, ROOM, pe->pe));
                LAUNCH_KIND(ring_kernel, kind, pe, 0, all->dev, all->target, all->source, (wefti_u64)sizes[which],
                            all->words, value, op, all->status);
                CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
                OK(pe, weft_getmem(all->world, seen, all->target, ROOM, pe->pe));
                int wrong = 0;
                while (wrong < sizes[which] && seen[wrong] == (unsigned char)(wrong * 3 + left * 17 + (int)value)) {
                    wrong++;
                }
                CHECK_SAY(pe, wrong == sizes[which], "%d bytes, scope %d: byte %d", sizes[which], kind, wrong);
                OK(pe, weft_barrier(all->world)); /* the left may overwrite the target now */
            }
        }
    }
    free(data);
    free(seen);
}

/* The host waits for, and tests, words in device memory that another PE's host writes. */
static void test_host_waits(test_pe *pe, bench *all, int right)
{
    uint64_t *words = all->words + 192;
    int32_t *halves = (int32_t *)(all->words + 200);
    uint64_t seen = 0;
    size_t index = 0;
    int result = -1;
    OK(pe, weft_uint64_test(all->world, words, WEFT_CMP_EQ, 1000, &result));
    CHECK(pe, result == 0);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_p(all->world, words, 77, right));
    OK(pe, weft_int32_p(all->world, halves + 1, -5, right));
    OK(pe, weft_uint64_wait_until(all->world, words, WEFT_CMP_GE, 77));
    OK(pe, weft_signal_wait_until(all->world, words, WEFT_CMP_NE, 0, &seen));
    CHECK(pe, seen == 77);
    OK(pe, weft_int32_wait_until_any(all->world, halves, 3, NULL, WEFT_CMP_LT, 0, &index));
    CHECK(pe, index == 1);
    OK(pe, weft_int32_wait_until(all->world, halves + 1, WEFT_CMP_EQ, -5));
    OK(pe, weft_int32_test(all->world, halves, WEFT_CMP_EQ, 0, &result));
    CHECK(pe, result == 1);
    OK(pe, weft_signal_fetch(all->world, words, &seen));
    CHECK(pe, seen == 77);
    CHECK(pe, weft_uint64_test(all->world, words, (weft_cmp)9, 1, &result) == WEFT_ERR_ARGUMENT);
    OK(pe, weft_barrier(all->world));
}

/* Data in host memory and its signal in device memory, and the other way round: who sees the signal sees the data. */
static void test_mixed_signals(test_pe *pe, bench *all, int right, int left)
{
    void *block = NULL;
    uint64_t seen = 0;
    OK(pe, weft_calloc(all->world, 3, 64, &block));
    uint64_t *host = (uint64_t *)block;
    uint64_t value = 1000 + (uint64_t)pe->pe;
    OK(pe, weft_uint64_put_signal(all->world, host, &value, 1, all->words + 33, 1, WEFT_SIGNAL_ADD, right));
    OK(pe, weft_uint64_wait_until(all->world, all->words + 33, WEFT_CMP_EQ, 1));
    CHECK(pe, host[0] == 1000 + (uint64_t)left);
    OK(pe, weft_uint64_put_signal(all->world, all->words + 34, &value, 1, host + 8, 1, WEFT_SIGNAL_SET, right));
    OK(pe, weft_uint64_wait_until(all->world, host + 8, WEFT_CMP_EQ, 1));
    OK(pe, weft_uint64_g(all->world, all->words + 34, pe->pe, &seen));
    CHECK(pe, seen == 1000 + (uint64_t)left);
    OK(pe, weft_free(all->world, block));
}

#endif
