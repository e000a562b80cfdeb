// What QUDA's dslash calls of NVSHMEM: ghost zones written by whole blocks, or by stores to a peer's address with a
// signal after them, sync words that count up, allocation with a size that all PEs agree on.
#include <nvshmem.h>
#include <nvshmemx.h>

template <bool is_by_address>
__global__ void pack(char *ghost, const char *face, size_t bytes, uint64_t *sync, uint64_t count, int pe)
{
    if (is_by_address) {
        char *there = static_cast<char *>(nvshmem_ptr(ghost, pe));
        for (size_t i = threadIdx.x; there != nullptr && i < bytes; i += blockDim.x) {
            there[i] = face[i];
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            nvshmemx_signal_op(sync, count, NVSHMEM_SIGNAL_SET, pe);
        }
    } else {
        nvshmemx_putmem_nbi_block(ghost, face, bytes, pe);
        nvshmem_fence();
        if (threadIdx.x == 0) {
            nvshmem_long_p(reinterpret_cast<long *>(sync), static_cast<long>(count), pe);
            nvshmem_uint64_p(sync, count, pe);
        }
        nvshmemx_putmem_signal_nbi_block(ghost, face, bytes, sync, count, NVSHMEM_SIGNAL_SET, pe);
    }
    nvshmem_quiet();
}

__global__ void unpack(uint64_t *sync, uint64_t count, const int *done)
{
    nvshmem_signal_wait_until(sync, NVSHMEM_CMP_GE, count);
    nvshmem_uint64_wait_until_all(sync, 2, done, NVSHMEM_CMP_GE, count);
    nvshmem_long_wait_until(reinterpret_cast<long *>(sync), NVSHMEM_CMP_GE, static_cast<long>(count));
    if (nvshmem_my_pe() < nvshmem_n_pes() && nvshmem_uint64_test(sync, NVSHMEM_CMP_EQ, 0)) {
        sync[0] = nvshmem_uint64_atomic_fetch(sync, 0);
    }
}

int main(int, char **argv)
{
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    void *communicator = argv; // an MPI_Comm
    nvshmemx_set_attr_mpi_comm_args(&communicator, &attributes);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes);
    char *ghost = static_cast<char *>(nvshmem_malloc(4096));
    uint64_t *sync = static_cast<uint64_t *>(nvshmem_malloc(64));
    cudaStream_t stream = nullptr;
    nvshmem_uint64_sum_reduce(NVSHMEM_TEAM_WORLD, sync, sync, 1);
    pack<true><<<1, 64, 0, stream>>>(ghost, ghost, 64, sync, 1, 0);
    pack<false><<<1, 64, 0, stream>>>(ghost, ghost, 64, sync, 1, 0);
    unpack<<<1, 1, 0, stream>>>(sync, 1, nullptr);
    nvshmemx_quiet_on_stream(stream);
    nvshmem_barrier_all();
    const bool is_near = nvshmem_ptr(ghost, 0) != nullptr && nvshmem_team_n_pes(NVSHMEM_TEAM_SHARED) > 0;
    nvshmem_free(sync);
    nvshmem_free(ghost);
    nvshmem_finalize();
    return is_near ? 0 : 1;
}
