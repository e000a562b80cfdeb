// What flux and Triton-distributed call of NVSHMEM: tensors of the node's PEs by address, tiles put with signals, rows
// put by warps to PEs of a team, the names that their Python module has, made of the lists of types. Written from the
// names alone.
#include <nvshmemx.h>

#include <nvshmem.h>

__global__ void tiles(char *to, const char *from, uint64_t *signals, int *flags, int tile, int peer)
{
    nvshmemx_putmem_nbi_block(to + tile, from + tile, 4096, peer);
    nvshmemx_putmem_signal_nbi_block(to, from, 4096, signals + tile, 1, NVSHMEM_SIGNAL_SET, peer);
    nvshmemx_putmem_signal_block(to, from, 4096, signals + tile, 1, NVSHMEM_SIGNAL_ADD, peer);
    nvshmemx_putmem_signal_warp(to, from, 4096, signals + tile, 1, NVSHMEM_SIGNAL_ADD, peer);
    nvshmemx_getmem_warp(to, from, 64, peer);
    nvshmemx_getmem_nbi_warp(to, from, 64, peer);
    nvshmem_putmem_signal_nbi(to, from, 64, signals, 1, NVSHMEM_SIGNAL_SET, peer);
    nvshmemx_fcollectmem_block(NVSHMEM_TEAM_WORLD, to, from, 64);
    nvshmemx_broadcastmem_warp(NVSHMEM_TEAM_WORLD, to, from, 64, 0);
    if (threadIdx.x == 0) {
        nvshmem_int_p(flags, 1, peer);
        nvshmem_int_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        flags[1] = nvshmem_int_g(flags, peer) + nvshmem_int_atomic_fetch_add(flags, 1, peer);
        nvshmem_fence();
    }
    nvshmemx_sync_all_block();
    nvshmemx_sync_all_warp();
    nvshmemx_barrier_all_warp();
    nvshmemx_barrier_all_block();
    nvshmemx_barrier_warp(NVSHMEMX_TEAM_NODE);
    if (nvshmemx_mc_ptr(NVSHMEM_TEAM_SHARED, to) != nullptr) {
        to[0] = 0;
    }
}

/* Warps send, say that they have, and wait for other nodes' rows; the PE is the team's. */
__global__ void rows(char *to, const char *from, uint64_t *signals, nvshmem_team_t team, int peer, int node)
{
    const int pe = nvshmem_team_translate_pe(team, peer, NVSHMEM_TEAM_WORLD);
    nvshmemx_putmem_nbi_warp(to, from, 4096, pe);
    __threadfence();
    nvshmem_fence();
    if (threadIdx.x % 32 == 0) {
        nvshmemx_signal_op(signals + node, 1, NVSHMEM_SIGNAL_ADD, pe);
    }
    nvshmem_signal_wait_until(signals + node, NVSHMEM_CMP_EQ, 4);
}

#define STORE(NAME, TYPE)                                                                                              \
    void store_##NAME(ptrdiff_t at, TYPE value, int peer, void *stream)                                                \
    {                                                                                                                  \
        nvshmem_##NAME##_p((TYPE *)at, value, peer);                                                                   \
        nvshmemx_##NAME##_p_on_stream((TYPE *)at, value, peer, (cudaStream_t)stream);                                  \
    }
NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES(STORE)

int main()
{
    nvshmemx_init_attr_t attributes;
    attributes.mpi_comm = &attributes;
    if (nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED ||
        nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) != 0) {
        return 1;
    }
    const int local = nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE);
    char *data = static_cast<char *>(nvshmem_malloc(8192));
    uint64_t *signals = static_cast<uint64_t *>(nvshmem_calloc(64, 8));
    for (int i = 0; i < nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE); i++) {
        if (nvshmem_ptr(data, nvshmem_my_pe() - local + i) == nullptr) {
            return 1;
        }
    }
    nvshmem_team_t row;
    nvshmem_team_t column;
    nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column);
    tiles<<<1, 128>>>(data, data, signals, reinterpret_cast<int *>(data), 0, 0);
    rows<<<1, 1024>>>(data, data, signals, row, 0, 0);
    nvshmemx_barrier_on_stream(row, nullptr);
    nvshmemx_putmem_on_stream(data, data, 64, 0, nullptr);
    store_int(reinterpret_cast<ptrdiff_t>(data), 1, 0, nullptr);
    nvshmem_quiet();
    nvshmemx_putmem_signal_nbi_on_stream(data, data, 64, signals, 1, NVSHMEM_SIGNAL_SET, 0, nullptr);
    nvshmemx_getmem_nbi_on_stream(data, data, 64, 0, nullptr);
    nvshmemx_fcollectmem_on_stream(row, data, data, 64, nullptr);
    nvshmemx_sync_all_on_stream(nullptr);
    nvshmemx_barrier_all_on_stream(nullptr);
    nvshmem_team_destroy(column);
    nvshmem_team_destroy(row);
    nvshmem_free(signals);
    nvshmem_free(data);
    nvshmem_finalize();
    return 0;
}
