/* device/atomics.cuh: atomics: each operation and type, and all who do them at
 * once. */
#ifndef DEVICE_ATOMICS_CUH
#define DEVICE_ATOMICS_CUH

#include "support/bench.h"

/* old[i] is the value before operation i. */
template <class T>
__global__ void integer_amo_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)5, pe);
    bad |= weft_dev_atomic_fetch_add(dev, word, (T)7, pe, &old[0]);
    bad |= weft_dev_atomic_compare_swap(dev, word, (T)12, (T)100, pe, &old[1]);
    bad |= weft_dev_atomic_compare_swap(dev, word, (T)12, (T)101, pe, &old[2]);
    bad |= weft_dev_atomic_swap(dev, word, (T)40, pe, &old[3]);
    bad |= weft_dev_atomic_inc(dev, word, pe);
    bad |= weft_dev_atomic_fetch_inc(dev, word, pe, &old[4]);
    bad |= weft_dev_atomic_add(dev, word, (T)2, pe);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[5]);
    *status = bad;
}

template <class T>
__global__ void bitwise_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)0xf0f0, pe);
    bad |= weft_dev_atomic_fetch_and(dev, word, (T)0xff00, pe, &old[0]);
    bad |= weft_dev_atomic_fetch_or(dev, word, (T)0x0011, pe, &old[1]);
    bad |= weft_dev_atomic_fetch_xor(dev, word, (T)0xffff, pe, &old[2]);
    bad |= weft_dev_atomic_and(dev, word, (T)0x0fff, pe);
    bad |= weft_dev_atomic_or(dev, word, (T)0x1000, pe);
    bad |= weft_dev_atomic_xor(dev, word, (T)1, pe);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[3]);
    *status = bad;
}

template <class T>
__global__ void float_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)1.5, pe);
    bad |= weft_dev_atomic_fetch_add(dev, word, (T)2.25, pe, &old[0]);
    bad |= weft_dev_atomic_add(dev, word, (T)0.25, pe);
    bad |= weft_dev_atomic_swap(dev, word, (T)-8, pe, &old[1]);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[2]);
    *status = bad;
}

/* Every thread counts up a word on `pe`, and keeps what it found: old[thread * times + i]. */
__global__ void count_kernel(const __grid_constant__ weft_dev dev, uint64_t *word, uint64_t *old, int times, int pe)
{
#if ON_GPU
    old += (uint64_t)(blockIdx.x * blockDim.x + threadIdx.x) * (uint64_t)times;
#endif
    for (int i = 0; i < times; i++) {
        (void)weft_dev_atomic_fetch_inc(dev, word, pe, &old[i]);
    }
}

/* Adds that nothing in the kernel waits for. */
__global__ void add_and_leave_kernel(const __grid_constant__ weft_dev dev, uint64_t *word, int times)
{
    for (int i = 0; i < times; i++) {
        for (int pe = 0; pe < dev.pes; pe++) {
            (void)weft_dev_atomic_add(dev, word, (uint64_t)1, pe);
        }
    }
}

/* Every thread of every block adds to a word of every PE. */
__global__ void add_kernel(const __grid_constant__ weft_dev dev, uint64_t *sum, float *real, int times)
{
    for (int i = 0; i < times; i++) {
        for (int pe = 0; pe < dev.pes; pe++) {
            (void)weft_dev_atomic_add(dev, sum, (uint64_t)(dev.pe + 1), pe);
            (void)weft_dev_atomic_add(dev, real, 0.5f, pe);
        }
    }
}

template <class T> static void test_integer_amo(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe; /* one word a PE, on the right neighbour */
    T *old = (T *)all->source;
    const T expected[] = {5, 12, 100, 100, 41, 44};
    T seen[6];
    T host_seen = 0;
    int right = (pe->pe + 1) % pe->pes;
    pe->stage = name;
    LAUNCH((integer_amo_kernel<T>), 1, 1, 0, pe, all->dev, word, right, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK_SAY(pe, memcmp(seen, expected, sizeof seen) == 0, "%lld %lld %lld %lld %lld %lld", (long long)seen[0],
              (long long)seen[1], (long long)seen[2], (long long)seen[3], (long long)seen[4], (long long)seen[5]);
    OK(pe, weft_getmem(all->world, &host_seen, word, sizeof host_seen, right));
    CHECK(pe, host_seen == 44);
}

template <class T> static void test_bitwise(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe;
    T *old = (T *)all->source;
    const T expected[] = {(T)0xf0f0, (T)0xf000, (T)0xf011, (T)((0x0fee & 0x0fff) | 0x1000) ^ 1};
    T seen[4];
    pe->stage = name;
    LAUNCH((bitwise_kernel<T>), 1, 1, 0, pe, all->dev, word, (pe->pe + 1) % pe->pes, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK_SAY(pe, memcmp(seen, expected, sizeof seen) == 0, "%llx %llx %llx %llx", (unsigned long long)seen[0],
              (unsigned long long)seen[1], (unsigned long long)seen[2], (unsigned long long)seen[3]);
}

template <class T> static void test_float(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe;
    T *old = (T *)all->source;
    T seen[3];
    pe->stage = name;
    LAUNCH((float_kernel<T>), 1, 1, 0, pe, all->dev, word, (pe->pe + 1) % pe->pes, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK(pe, seen[0] == (T)1.5 && seen[1] == (T)4 && seen[2] == (T)-8);
}

static void test_atomics(test_pe *pe, bench *all)
{
#define INTEGER(NAME, TYPE) test_integer_amo<TYPE>(pe, all, "atomics, " #NAME);
    WEFT_INTEGER_TYPES(INTEGER)
#undef INTEGER
#define BITS(NAME, TYPE) test_bitwise<TYPE>(pe, all, "bitwise, " #NAME);
    WEFT_BITWISE_TYPES(BITS)
#undef BITS
    test_float<float>(pe, all, "float atomics");
    test_float<double>(pe, all, "double atomics");
}

static void test_concurrent_adds(test_pe *pe, bench *all)
{
    const int blocks = ON_GPU ? 8 : 1;
    const int threads = ON_GPU ? 64 : 1;
    const int times = 5;
    uint64_t sum = 0;
    float real = 0;
    pe->stage = "concurrent adds";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    LAUNCH(add_kernel, blocks, threads, 0, pe, all->dev, all->words, (float *)(all->words + 8), times);
    /* The host adds too, against the kernels. */
    for (int i = 0; i < 10; i++) {
        uint64_t old;
        OK(pe, weft_uint64_atomic_fetch_add(all->world, all->words, 1, (pe->pe + 1) % pe->pes, &old));
    }
    finish(pe);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_g(all->world, all->words, pe->pe, &sum));
    OK(pe, weft_float_g(all->world, (float *)(all->words + 8), pe->pe, &real));
    uint64_t each = (uint64_t)(blocks * threads * times);
    CHECK_SAY(pe, sum == each * (uint64_t)(pe->pes * (pe->pes + 1) / 2) + 10, "%llu", (unsigned long long)sum);
    CHECK_SAY(pe, real == 0.5f * (float)(each * (uint64_t)pe->pes), "%f", (double)real);
    OK(pe, weft_barrier(all->world));
}

/* Whoever counts one word up, by whatever way - kernels near and far, streams, hosts - finds each number once. */
static void test_mixed_atomics(test_pe *pe, bench *all)
{
    enum { BLOCKS = ON_GPU ? 4 : 1, THREADS = ON_GPU ? 32 : 1, TIMES = ON_GPU ? 8 : 100 };
    enum { OF_KERNEL = BLOCKS * THREADS * TIMES, OF_STREAM = 20, OF_HOST = 20 };
    const size_t each = OF_KERNEL + OF_STREAM + OF_HOST;
    const size_t total = each * (size_t)pe->pes;
    uint64_t *mine = (uint64_t *)test_malloc(pe, all->world, each * sizeof *mine);
    uint64_t *old = (uint64_t *)calloc(each, sizeof *old);
    unsigned char *seen = (unsigned char *)calloc(total, 1);
    pe->stage = "atomics of kernels, streams and hosts on one word";
    for (int target = 0; target<pe->pes; target += pe->pes> 1 ? pe->pes - 1 : 1) { /* the first and the last */
        fill(pe, all->world, all->words, 0, 8192);
        OK(pe, weft_barrier(all->world));
        LAUNCH(count_kernel, BLOCKS, THREADS, 0, pe, all->dev, all->words, mine, TIMES, target);
        for (int i = 0; i < OF_STREAM; i++) {
            OK(pe, weft_uint64_atomic_fetch_inc_on_stream(all->world, all->words, target, mine + OF_KERNEL + i,
                                                          (weft_stream *)(uintptr_t)pe->stream));
        }
        for (int i = 0; i < OF_HOST; i++) {
            OK(pe, weft_uint64_atomic_fetch_inc(all->world, all->words, target, &old[OF_KERNEL + OF_STREAM + i]));
        }
        finish(pe);
        OK(pe, weft_getmem(all->world, old, mine, (OF_KERNEL + OF_STREAM) * sizeof *old, pe->pe));
        OK(pe, weft_putmem(all->world, mine, old, each * sizeof *old, pe->pe));
        OK(pe, weft_barrier(all->world));
        memset(seen, 0, total);
        size_t twice = 0;
        for (int other = 0; other < pe->pes; other++) {
            OK(pe, weft_getmem(all->world, old, mine, each * sizeof *old, other));
            for (size_t i = 0; i < each; i++) {
                twice += old[i] >= total || seen[old[i]]++ != 0;
            }
        }
        CHECK_SAY(pe, twice == 0, "%zu of %zu numbers of PE %d were found twice", twice, total, target);
        OK(pe, weft_barrier(all->world));
    }
    OK(pe, weft_device_free(all->world, mine));
    free(seen);
    free(old);
}

/* A barrier of the host completes what kernels that have ended began, also what a proxy has still to carry. */
static void test_completion(test_pe *pe, bench *all)
{
    const int times = 40;
    uint64_t sum = 0;
    pe->stage = "a barrier of the host after a kernel";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    LAUNCH(add_and_leave_kernel, 1, 1, 0, pe, all->dev, all->words, times);
    finish(pe);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_g(all->world, all->words, pe->pe, &sum));
    CHECK_SAY(pe, sum == (uint64_t)(times * pe->pes), "%llu", (unsigned long long)sum);
    OK(pe, weft_barrier(all->world));
}

#endif
