// What pplx-kernels' all-to-all calls of NVSHMEM: counts and tokens by puts with signals of warps, waits of threads,
// buffers aligned and zeroed, a barrier on a stream. Written from the names alone.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void dispatch(uint32_t *counts, uint64_t *arrived, const std::byte *token, std::byte *to, size_t bytes,
                         int pes)
{
    const int warp = threadIdx.x / 32;
    const int peer = warp % pes;
    nvshmemx_putmem_signal_nbi_warp(to, token, bytes, arrived + warp, 1, NVSHMEM_SIGNAL_ADD, peer);
    nvshmemx_putmem_nbi_warp(to, token, bytes, peer);
    nvshmemx_putmem_warp(to, token, bytes, peer);
    nvshmemx_putmem_signal_nbi_block(to, token, bytes, arrived, 1, NVSHMEM_SIGNAL_SET, peer);
    if (threadIdx.x % 32 == 0) {
        nvshmemx_signal_op(&arrived[warp], bytes + 1, NVSHMEM_SIGNAL_SET, peer);
        nvshmem_uint32_p(counts, 1, peer);
        nvshmem_uint64_wait_until(&arrived[warp], NVSHMEM_CMP_NE, 0);
        nvshmem_uint64_wait_until_all(arrived, pes, nullptr, NVSHMEM_CMP_GE, 1);
        counts[0] += nvshmem_uint64_test(&arrived[warp], NVSHMEM_CMP_EQ, 1);
        counts[1] += nvshmem_uint64_wait_until_any(arrived, pes, nullptr, NVSHMEM_CMP_GE, 1);
        arrived[warp] = nvshmem_signal_fetch(&arrived[warp]);
    }
    if (nvshmem_ptr(to, peer) == nullptr) {
        nvshmem_fence();
    }
    nvshmem_quiet();
}

int main()
{
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_get_uniqueid(&id);
    nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != NVSHMEMX_SUCCESS ||
        nvshmemx_init_status() < NVSHMEM_STATUS_IS_INITIALIZED) {
        return 1;
    }
    const int pes = nvshmem_n_pes();
    std::byte *buffer = (std::byte *)nvshmem_align(128, 4096);
    uint64_t *arrived = (uint64_t *)nvshmem_calloc(64, sizeof *arrived);
    uint32_t *counts = (uint32_t *)nvshmem_malloc(64 * sizeof *counts);
    dispatch<<<dim3(1), dim3(64)>>>(counts, arrived, buffer, buffer, 16, pes);
    nvshmemx_barrier_all_on_stream(nullptr);
    nvshmemx_alltoallmem_on_stream(NVSHMEM_TEAM_WORLD, buffer, buffer, 16, nullptr);
    nvshmem_barrier_all();
    nvshmem_free(counts);
    nvshmem_free(arrived);
    nvshmem_free(buffer);
    nvshmem_finalize();
    return nvshmem_my_pe() > pes;
}
