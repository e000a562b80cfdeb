/* device/words.cuh: p and g, all types. */
#ifndef DEVICE_WORDS_CUH
#define DEVICE_WORDS_CUH

#include "support/bench.h"

template <class T> __global__ void p_kernel(const __grid_constant__ weft_dev dev, T *dest, T value, int pe, int *status)
{
    *status = weft_dev_p(dev, dest, value, pe);
    (void)weft_dev_quiet(dev);
}

template <class T>
__global__ void g_kernel(const __grid_constant__ weft_dev dev, const T *source, int pe, T *to, int *status)
{
    *status = weft_dev_g(dev, source, pe, to);
}

/* One element of each type. */
template <class T> static void test_word(test_pe *pe, bench *all, const char *name, T value)
{
    T *words = (T *)all->target;
    T *here = (T *)all->source;
    int right = (pe->pe + 1) % pe->pes;
    T seen;
    pe->stage = name;
    fill(pe, all->world, all->target, POISON, 256);
    OK(pe, weft_barrier(all->world));
    LAUNCH((p_kernel<T>), 1, 1, 0, pe, all->dev, words + 1, value, right, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_barrier(all->world));
    LAUNCH((g_kernel<T>), 1, 1, 0, pe, all->dev, words + 1, right, here, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, &seen, here, sizeof seen, pe->pe));
    CHECK(pe, memcmp(&seen, &value, sizeof seen) == 0);
    unsigned char around[3 * sizeof(T)];
    OK(pe, weft_getmem(all->world, around, words, sizeof around, pe->pe));
    for (size_t i = 0; i < sizeof(T); i++) {
        CHECK(pe, around[i] == POISON && around[2 * sizeof(T) + i] == POISON);
    }
    OK(pe, weft_barrier(all->world));
}

static void test_words(test_pe *pe, bench *all)
{
#define WORD(NAME, TYPE) test_word<TYPE>(pe, all, "p and g, " #NAME, (TYPE)(77 + pe->pe));
    WEFT_WORD_TYPES(WORD)
#undef WORD
}

#endif
