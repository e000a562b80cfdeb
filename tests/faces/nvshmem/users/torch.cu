// What PyTorch's symmetric memory calls of NVSHMEM: allocation and rendezvous over a store, teams of process groups,
// copies on streams, all-to-all with sizes in device memory, Triton's kernels as modules. Written from the names alone.
#include <host/nvshmem_api.h>
#include <host/nvshmemx_api.h>
#include <nvshmem.h>
#include <nvshmemx.h>

namespace users
{
extern "C" void nvshmem_init() __attribute__((weak)); // whether the library is there at all

__global__ void exchange_splits(int64_t *splits, int me, int pes)
{
    __shared__ int64_t offsets[512];
    const int peer = threadIdx.x;
    offsets[peer] = peer;
    __syncthreads();
    if (peer < pes) {
        nvshmem_int64_p(splits + 2 * pes + me, offsets[peer], peer);
        nvshmem_int64_p(splits + pes + me, splits[peer], peer);
    }
    nvshmemx_barrier_all_block();
}

__global__ void exchange(void *from, void *to, const int64_t *splits, int me, nvshmem_team_t team)
{
    const int pes = nvshmem_team_n_pes(team);
    for (int i = blockIdx.x; i < pes; i += gridDim.x) {
        const int peer = nvshmem_team_translate_pe(team, (nvshmem_team_my_pe(team) + i) % pes, NVSHMEM_TEAM_WORLD);
        nvshmemx_getmem_nbi_block(to, from, splits[peer], peer);
        nvshmemx_getmem_block(to, from, splits[peer], peer);
        nvshmemx_putmem_block(to, from, splits[peer], peer);
        nvshmemx_putmem_nbi_block(to, from, splits[peer], peer);
    }
    nvshmem_quiet();
    nvshmemx_sync_block(team);
    nvshmemx_barrier_block(team);
    (void)me;
}

__global__ void signals(char *to, const char *from, uint64_t *signal, long long *word, int peer)
{
    nvshmemx_putmem_signal_block(to, from, 64, signal, 1, NVSHMEM_SIGNAL_ADD, peer);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
    nvshmem_longlong_wait_until(word, NVSHMEM_CMP_EQ, 1);
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, peer);
    nvshmem_fence();
    nvshmemx_alltoallmem_block(NVSHMEM_TEAM_WORLD, to, from, 64);
    nvshmemx_broadcastmem_block(NVSHMEM_TEAM_WORLD, to, from, 64, 0);
    nvshmem_float_sum_reduce(NVSHMEM_TEAM_WORLD, (float *)to, (const float *)from, 16);
    nvshmemx_bfloat16_sum_reduce_block(NVSHMEM_TEAM_WORLD, (nv_bfloat16 *)to, (const nv_bfloat16 *)from, 16);
    nvshmemx_half_prod_reduce_warp(NVSHMEM_TEAM_WORLD, (half *)to, (const half *)from, 16);
    (void)nvshmemx_half_atomic_fetch_add((half *)to, *(const half *)from, peer);
    nvshmem_barrier_all();
    nvshmem_sync_all();
}

static void cumodule_init(uintptr_t module)
{
    ::nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(module));
    ::nvshmemx_cumodule_finalize(reinterpret_cast<CUmodule>(module));
}

static int meet(int rank, int ranks)
{
    nvshmemx_uniqueid_t id;
    nvshmemx_init_attr_t attributes;
    int major = 0;
    int minor = 0;
    nvshmemx_get_uniqueid(&id);
    nvshmemx_set_attr_uniqueid_args(rank, ranks, &id, &attributes);
    int result = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
    result = result == NVSHMEMX_SUCCESS ? nvshmemx_hostlib_init_attr(0, nullptr) : result;
    ::nvshmem_info_get_version(&major, &minor);
    return result;
}

static void use(cudaStream_t stream)
{
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    nvshmem_team_config_t config;
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), &config, 0, &team);
    void *buffer = nvshmem_malloc(4096);
    void *peer = nvshmem_ptr(buffer, nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD));
    void *multicast = nvshmemx_mc_ptr(team, buffer);
    uint64_t *signal = (uint64_t *)nvshmem_calloc(8, sizeof *signal);
    nvshmemx_broadcastmem_on_stream(team, buffer, buffer, 64, 0, stream);
    nvshmemx_putmem_on_stream(buffer, buffer, 64, 0, stream);
    nvshmemx_getmem_on_stream(buffer, buffer, 64, 0, stream);
    nvshmemx_alltoallmem_on_stream(team, buffer, buffer, 64, stream);
    nvshmemx_fcollectmem_on_stream(team, buffer, buffer, 64, stream);
    nvshmemx_putmem_signal_on_stream(buffer, buffer, 64, signal, 1, NVSHMEM_SIGNAL_SET, 0, stream);
    nvshmemx_signal_op_on_stream(signal, 1, NVSHMEM_SIGNAL_SET, 0, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 1, stream);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_barrier_on_stream(team, stream);
    nvshmemx_barrier_all_on_stream(stream);
    int me = nvshmem_my_pe();
    int pes = nvshmem_team_n_pes(NVSHMEM_TEAM_SHARED);
    int64_t *splits = (int64_t *)buffer;
    void *arguments[] = {&splits, &me, &pes};
    nvshmemx_collective_launch((const void *)exchange_splits, dim3(1), dim3(512), arguments, 0, stream);
    exchange<<<1, 512, 0, stream>>>(buffer, buffer, splits, me, team);
    signals<<<1, 32, 0, stream>>>((char *)buffer, (char *)buffer, signal, (long long *)buffer, 0);
    nvshmem_team_destroy(team);
    nvshmem_free(peer == multicast ? nullptr : buffer);
}
} // namespace users

int main(int argc, char **argv)
{
    (void)argv;
    if (!users::nvshmem_init || users::meet(0, 1) != NVSHMEMX_SUCCESS) {
        return 1;
    }
    users::use(nullptr);
    users::cumodule_init((uintptr_t)(argc - 1));
    nvshmem_finalize();
    return 0;
}
