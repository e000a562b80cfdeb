// What GROMACS' halo exchange and FFT grids call of NVSHMEM: a communicator of MPI, a team of the PP ranks, zeroed and
// aligned buffers, puts of blocks with signals, waits, addresses of peers. Written from the names alone.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void halo(float *data, float *packed, int count, uint64_t *to, uint64_t *from, uint64_t counter, int peer)
{
    if (blockIdx.x == 0 && count > 0) {
        nvshmemx_float_put_signal_nbi_block(packed, data, count, to, counter, NVSHMEM_SIGNAL_SET, peer);
    }
    if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(from, NVSHMEM_CMP_EQ, counter);
        nvshmem_uint64_wait_until_any(from, 2, nullptr, NVSHMEM_CMP_GE, counter);
    }
    __syncthreads();
    float *there = static_cast<float *>(nvshmem_ptr(packed, peer));
    if (there != nullptr && threadIdx.x < count) {
        there[threadIdx.x] = data[threadIdx.x];
    }
    nvshmem_fence();
    if (threadIdx.x == 0) {
        nvshmemx_signal_op(to, counter, NVSHMEM_SIGNAL_SET, peer);
        nvshmem_uint64_p(to, counter, peer);
    }
    nvshmemx_float_put_nbi_block(packed, data, count, peer);
    nvshmemx_float_get_block(packed, data, count, peer);
    nvshmem_quiet();
}

int main(int, char **argv)
{
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    void *communicator = argv; // an MPI_Comm
    attributes.mpi_comm = &communicator;
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) != 0) {
        return 1;
    }
    nvshmem_team_t team;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), &config, 0, &team);
    float *data = static_cast<float *>(nvshmem_align(256, 4096));
    uint64_t *signals = static_cast<uint64_t *>(nvshmem_calloc(16, sizeof(uint64_t)));
    int most = 0;
    const int result = nvshmem_int_max_reduce(team, &most, &most, 1);
    nvshmemx_uint64_max_reduce_on_stream(team, signals, signals, 1, nullptr);
    nvshmemx_barrier_on_stream(team, nullptr);
    nvshmemx_sync_on_stream(team, nullptr);
    halo<<<1, 32>>>(data, data, 8, signals, signals, 1, nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD));
    nvshmem_sync(team);
    nvshmem_free(signals);
    nvshmem_free(data);
    nvshmem_team_destroy(team);
    nvshmemx_hostlib_finalize();
    return result;
}
