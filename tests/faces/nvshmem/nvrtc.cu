// Kernels with NVSHMEM's routines that a program compiles at run time, by NVRTC: no header of the host is in reach. The
// program loads what comes of it, and gives it to nvshmemx_cumodule_init or nvshmemx_culibrary_init.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void ring(int *data, uint64_t *signal, __nv_bfloat16 *small)
{
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    nvshmem_int_p(data, nvshmem_int_g(data, next), next);
    nvshmemx_putmem_signal_nbi_block(data, data, 64, signal, 1, NVSHMEM_SIGNAL_ADD, next);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
    nvshmem_uint64_atomic_add(signal, 1, next);
    nvshmemx_bfloat16_sum_reduce_block(NVSHMEM_TEAM_WORLD, small, small, 8);
    nvshmemx_barrier_all_warp();
    nvshmem_quiet();
}
