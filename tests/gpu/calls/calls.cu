/* What tests/gpu/compile.sh compiles: every device call once, in kernels whose PTX is then read for the orders that
 * docs/memory-model.md promises. Not a program of its own; also compiled at run time by nvrtc.c, so no host header. */
#include "weft_device.cuh"

extern "C" __global__ void use_put_signal(const __grid_constant__ weft_dev dev, char *to, const char *from,
                                          unsigned long *signal)
{
    (void)weft_dev_put_signal(weft_block(), dev, to, from, 65536, signal, 1, WEFT_SIGNAL_SET, 1);
}

extern "C" __global__ void use_signal_add(const __grid_constant__ weft_dev dev, unsigned long *signal)
{
    (void)weft_dev_signal(dev, signal, 1, WEFT_SIGNAL_ADD, 1);
}

extern "C" __global__ void use_wait(const __grid_constant__ weft_dev dev, const unsigned long *signal, int *status)
{
    *status = weft_dev_signal_wait_until(weft_warp(), dev, signal, WEFT_CMP_GE, 1);
}

extern "C" __global__ void use_sync(const __grid_constant__ weft_dev_team team, int *status)
{
    *status = weft_dev_sync(weft_block(), team);
}

extern "C" __global__ void use_bulk(const __grid_constant__ weft_dev dev, char *to, const char *from,
                                    unsigned long *signal)
{
    extern __shared__ __align__(128) unsigned char shared[];
    (void)weft_dev_put_bulk(weft_warp(), dev, to, from, 65536, 1, shared, 32768);
    if (threadIdx.x == 0) {
        (void)weft_dev_signal(dev, signal, 1, WEFT_SIGNAL_SET, 1);
    }
}

extern "C" __global__ void use_get(const __grid_constant__ weft_dev dev, char *to, const char *from)
{
    (void)weft_dev_get(weft_block(), dev, to, from, 65536, 1);
}

extern "C" __global__ void use_get_few(const __grid_constant__ weft_dev dev, char *to, const char *from)
{
    (void)weft_dev_get(weft_warp(), dev, to, from, 65536, 1);
}

extern "C" __global__ void use_get_long(const __grid_constant__ weft_dev dev, char *to, const char *from)
{
    (void)weft_dev_get(weft_block(), dev, to, from, 1 << 20, 1);
}

extern "C" __global__ void use_g(const __grid_constant__ weft_dev dev, unsigned long long *to,
                                 const unsigned long long *from)
{
    unsigned long long value = 0;
    (void)weft_dev_g(dev, from, 1, &value);
    *to = value;
}

extern "C" __global__ void use_iget(const __grid_constant__ weft_dev dev, int *to, const int *from)
{
    (void)weft_dev_iget(weft_thread(), dev, to, from, 2, 3, 100, 1);
}

extern "C" __global__ void use_order(const __grid_constant__ weft_dev dev)
{
    weft_dev_fence();
    (void)weft_dev_quiet(dev);
}

extern "C" __global__ void use_packed(const __grid_constant__ weft_dev_team team, char *to, const char *from)
{
    (void)weft_dev_alltoall(weft_block(), team, to, from, 1024);
}

extern "C" __global__ void use_plain(const __grid_constant__ weft_dev_team team, char *to, const char *from)
{
    (void)weft_dev_fcollect(weft_block(), team, to, from, 1 << 20);
}

#ifndef ONLY_CALLS_THAT_ARE_READ /* these take nine tenths of the time to optimise */

extern "C" __global__ void use_rest(const __grid_constant__ weft_dev dev, const __grid_constant__ weft_dev_team team,
                                    int *word, unsigned long long *wide, float *real, double *large, short *half)
{
    int old;
    unsigned long long old_wide;
    float old_real;
    (void)weft_dev_put(weft_thread(), dev, word, wide, 5, 1);
    (void)weft_dev_get(weft_warp(), dev, word, wide, 100, 1);
    (void)weft_dev_iput(weft_warp(), dev, word, word, 2, 3, 100, 1);
    (void)weft_dev_iget(weft_thread(), dev, half, half, 2, 3, 100, 1);
    (void)weft_dev_p(dev, half, (short)1, 1);
    (void)weft_dev_g(dev, half, 1, half);
    (void)weft_dev_atomic_fetch_add(dev, word, 1, 1, &old);
    (void)weft_dev_atomic_fetch_xor(dev, wide, 1ull, 1, &old_wide);
    (void)weft_dev_atomic_compare_swap(dev, wide, 1ull, 2ull, 1, &old_wide);
    (void)weft_dev_atomic_swap(dev, real, 1.0f, 1, &old_real);
    (void)weft_dev_atomic_add(dev, real, 1.0f, 1);
    (void)weft_dev_atomic_add(dev, large, 1.0, 1);
    (void)weft_dev_atomic_set(dev, word, old, 1);
    (void)weft_dev_atomic_fetch_inc(dev, word, 1, &old);
    (void)weft_dev_atomic_or(dev, word, 3, 1);
    (void)weft_dev_barrier(weft_thread(), team);
    (void)weft_dev_wait_until(weft_block(), dev, word, WEFT_CMP_NE, 0, 1);
    *word = weft_dev_test(word, WEFT_CMP_EQ, 1) + weft_dev_fault(dev) + old + (weft_dev_ptr(dev, word, 1) != 0) +
            (int)old_wide + (int)old_real;
}

extern "C" __global__ void use_collectives(const __grid_constant__ weft_dev_team team, float *real, int *number,
                                           unsigned long long *wide, weft_bf16 *half, weft_e4m3 *small)
{
    (void)weft_dev_broadcast(weft_warp(), team, real, number, *wide, 0);
    (void)weft_dev_broadcast_ready(weft_thread(), team, real, number, *wide, 0);
    (void)weft_dev_fcollect_ready(weft_block(), team, real, number, *wide);
    (void)weft_dev_alltoall_ready(weft_warp(), team, real, number, *wide);
    (void)weft_dev_collect(weft_thread(), team, real, number, *wide);
    (void)weft_dev_alltoallv(weft_block(), team, real, wide, number, wide, wide);
    (void)weft_dev_reduce<WEFT_OP_SUM>(weft_block(), team, real, real, *wide);
    (void)weft_dev_reduce<WEFT_OP_XOR>(weft_warp(), team, number, number, *wide);
    (void)weft_dev_reduce<WEFT_OP_MAX>(weft_thread(), team, half, half, *wide);
    (void)weft_dev_reduce_scatter<WEFT_OP_PROD>(weft_block(), team, small, small, *wide);
}

#endif
