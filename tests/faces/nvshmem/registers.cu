// Kernels whose registers registers.py looks at: blocks of as many threads as NVSHMEM's programs launch must start.
// Loops, since what a loop keeps across calls counts, too.
#include <nvshmem.h>
#include <nvshmemx.h>

#define KERNEL_OF(T, THREADS, NAME, CALL)                                                                              \
    extern "C" __global__ void threads_##THREADS##_##NAME(T *to, const T *from, size_t count, uint64_t *signal,        \
                                                          int pe)                                                      \
    {                                                                                                                  \
        for (int i = 1; i < pe; i++) {                                                                                 \
            CALL;                                                                                                      \
            if (threadIdx.x == 0) {                                                                                    \
                nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, i);                                                  \
            }                                                                                                          \
            __syncthreads();                                                                                           \
        }                                                                                                              \
    }
#define KERNEL(THREADS, NAME, CALL) KERNEL_OF(float, THREADS, NAME, CALL)
#define TEAM (nvshmem_team_t)(count & 7)

KERNEL(1024, put, nvshmem_float_put(to, from, count, pe))
KERNEL(1024, put_warp, nvshmemx_float_put_warp(to, from, count, pe))
KERNEL(1024, put_block, nvshmemx_float_put_block(to, from, count, pe))
KERNEL(1024, get_block, nvshmemx_float_get_block(to, from, count, pe))
KERNEL(1024, get_warp, nvshmemx_float_get_warp(to, from, count, pe))
KERNEL(1024, p, nvshmem_float_p(to, 1, pe))
KERNEL(1024, g, *to += nvshmem_float_g(from, pe))
KERNEL(1024, iput_block, nvshmemx_float_iput_block(to, from, 2, 3, count, pe))
KERNEL(1024, put_signal_warp, nvshmemx_float_put_signal_warp(to, from, count, signal, i, NVSHMEM_SIGNAL_SET, pe))
KERNEL(1024, put_signal_block, nvshmemx_float_put_signal_block(to, from, count, signal, i, NVSHMEM_SIGNAL_SET, pe))
KERNEL(1024, quiet, nvshmemx_float_put_nbi_block(to, from, count, pe); nvshmem_quiet())
KERNEL(1024, fetch_add, *signal += nvshmem_uint64_atomic_fetch_add(signal, 1, pe))
KERNEL(1024, compare_swap, *signal += nvshmem_uint64_atomic_compare_swap(signal, 1, 2, pe))
KERNEL(1024, barrier, nvshmem_barrier_all())
KERNEL(1024, barrier_block, nvshmemx_barrier_all_block())
KERNEL(1024, fcollect, nvshmemx_float_fcollect_block(NVSHMEM_TEAM_WORLD, to, from, count))
KERNEL(1024, alltoall, nvshmemx_float_alltoall_block(NVSHMEM_TEAM_WORLD, to, from, count))
KERNEL(640, fcollect_team, nvshmemx_float_fcollect_block(TEAM, to, from, count))
KERNEL(640, alltoall_warp, nvshmemx_float_alltoall_warp(TEAM, to, from, count))
KERNEL(640, broadcast, nvshmemx_float_broadcast_block(NVSHMEM_TEAM_WORLD, to, from, count, 0))
KERNEL(640, broadcast_warp, nvshmemx_float_broadcast_warp(TEAM, to, from, count, 0))
KERNEL(640, reduce, nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, to, from, count))
KERNEL(640, reduce_warp, nvshmemx_float_sum_reduce_warp(TEAM, to, from, count))
KERNEL_OF(double, 640, reduce_double, nvshmemx_double_prod_reduce_block(TEAM, to, from, count))
KERNEL_OF(int8_t, 640, reduce_int8, nvshmemx_int8_max_reduce_block(TEAM, to, from, count))
KERNEL_OF(__nv_bfloat16, 640, reduce_bfloat16, nvshmemx_bfloat16_sum_reduce_block(TEAM, to, from, count))
KERNEL(640, reducescatter, nvshmemx_float_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, to, from, count))
KERNEL_OF(half, 640, reducescatter_half, nvshmemx_half_sum_reducescatter_block(TEAM, to, from, count))
