// The same calls by the face and by weft: kernels that costs.py compares. The state is in constant memory for both; of
// *_by_value it is a parameter of the kernel, as weft's programs have it.
#include <nvshmem.h>

__constant__ weft_nvshmem_state other;

#define PARAMETERS void *to, const void *from, size_t bytes, uint64_t *signal, int pe
#define COMPARE(NAME, FACE, WEFT)                                                                                      \
    extern "C" __global__ void NAME##_by_face(PARAMETERS)                                                              \
    {                                                                                                                  \
        FACE;                                                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void NAME##_by_weft(PARAMETERS)                                                              \
    {                                                                                                                  \
        const weft_dev_team &team = other.world;                                                                       \
        (void)WEFT;                                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void NAME##_by_value(PARAMETERS, const __grid_constant__ weft_dev_team team)                 \
    {                                                                                                                  \
        (void)WEFT;                                                                                                    \
    }

COMPARE(put, nvshmemx_putmem_block(to, from, bytes, pe), weft_dev_put(weft_block(), team.world, to, from, bytes, pe))
COMPARE(get, nvshmemx_getmem_block(to, from, bytes, pe), weft_dev_get(weft_block(), team.world, to, from, bytes, pe))
COMPARE(put_signal, nvshmemx_putmem_signal_warp(to, from, bytes, signal, 1, NVSHMEM_SIGNAL_ADD, pe),
        weft_dev_put_signal(weft_warp(), team.world, to, from, bytes, (wefti_u64 *)signal, 1, WEFT_SIGNAL_ADD, pe))
COMPARE(p, nvshmem_int_p((int *)to, 1, pe), weft_dev_p(team.world, (int *)to, 1, pe))
COMPARE(add, nvshmem_uint64_atomic_add(signal, 1, pe), weft_dev_atomic_add(team.world, signal, (uint64_t)1, pe))
COMPARE(quiet, nvshmem_quiet(), weft_dev_quiet(team.world))
COMPARE(barrier, nvshmemx_barrier_all_block(), weft_dev_barrier(weft_block(), team))
COMPARE(warpgroup, nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD), weft_dev_barrier(weft_warp(), team))
