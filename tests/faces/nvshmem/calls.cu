// Kernels and their host, as programs on NVSHMEM have them: compiled, with relocatable device code and without. What
// the routines do is tested where they run; here each family of theirs must be callable from both sides of one file.
#include <nvshmem.h>
#include <nvshmemx.h>

#define WORLD NVSHMEM_TEAM_WORLD

__global__ void ring(int *data, uint64_t *signal)
{
    const int me = nvshmem_my_pe();
    const int next = (me + 1) % nvshmem_n_pes();
    nvshmem_int_p(data, nvshmem_int_g(data, next), next);
    nvshmem_int_put_signal(data, data, 8, signal, 1, NVSHMEM_SIGNAL_SET, next);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, next);
    nvshmem_uint64_wait_until(signal, NVSHMEM_CMP_NE, 0);
    nvshmem_quiet();
    nvshmem_fence();
}

__global__ void scopes(char *data, uint64_t *signal, int pe)
{
    nvshmem_putmem_nbi(data, data, 64, pe);
    nvshmemx_putmem_warp(data, data, 64, pe);
    nvshmemx_putmem_nbi_block(data, data, 4096, pe);
    nvshmemx_getmem_block(data, data, 4096, pe);
    nvshmemx_getmem_nbi_warp(data, data, 4096, pe);
    nvshmemx_putmem_signal_block(data, data, 4096, signal, 1, NVSHMEM_SIGNAL_ADD, pe);
    nvshmemx_putmem_signal_nbi_warp(data, data, 4096, signal, 1, NVSHMEM_SIGNAL_SET, pe);
    nvshmemx_put128_block(data, data, 4, pe);
    nvshmemx_float_put_nbi_warp((float *)data, (float *)data, 4, pe);
    nvshmemx_half_put_block((half *)data, (half *)data, 4, pe);
    nvshmemx_qp_bfloat16_put_nbi_warp((__nv_bfloat16 *)data, (__nv_bfloat16 *)data, 4, pe, NVSHMEMX_QP_DEFAULT);
    nvshmem_double_iput((double *)data, (double *)data, 2, 1, 4, pe);
    nvshmemx_int_iget_block((int *)data, (int *)data, 2, 1, 4, pe);
    nvshmemx_barrier_all_block();
    nvshmemx_sync_all_warp();
    nvshmemx_barrier_warpgroup(WORLD);
    nvshmemx_barrier_block(WORLD);
    nvshmemx_team_sync_warp(WORLD);
    if (nvshmem_ptr(data, pe) == nullptr || nvshmemx_mc_ptr(WORLD, data) != nullptr) {
        data[0] = 1;
    }
}

__global__ void atomics(int *word, uint64_t *wide, float *real, int pe)
{
    nvshmem_int_atomic_add(word, 1, pe);
    nvshmemx_half_atomic_add((half *)word,
                             nvshmemx_half_atomic_fetch_add((half *)wide, nvshmem_half_g((half *)word, pe), pe), pe);
    nvshmem_int_atomic_inc(word, pe);
    *word = nvshmem_int_atomic_fetch_add(word, 1, pe) + nvshmem_int_atomic_compare_swap(word, 0, 1, pe);
    *wide = nvshmem_uint64_atomic_fetch_or(wide, 1, pe) + nvshmem_uint64_atomic_swap(wide, 1, pe);
    nvshmem_uint64_atomic_xor(wide, 1, pe);
    nvshmem_float_atomic_set(real, 1, pe);
    *real = nvshmem_float_atomic_fetch(real, pe) + nvshmemx_float_atomic_fetch_add(real, 1, pe);
}

__global__ void waits(int *words, size_t *indices, int *status, short *narrow)
{
    nvshmem_int_wait_until_all(words, 4, status, NVSHMEM_CMP_EQ, 1);
    indices[0] = nvshmem_int_wait_until_any(words, 4, nullptr, NVSHMEM_CMP_EQ, 1);
    indices[1] = nvshmem_int_wait_until_some_vector(words, 4, indices, status, NVSHMEM_CMP_LE, words);
    status[0] = nvshmem_int_test(words, NVSHMEM_CMP_GT, 1) + nvshmem_int_test_all(words, 4, status, NVSHMEM_CMP_LT, 1);
    nvshmem_short_wait_until(narrow, NVSHMEM_CMP_EQ, 1);
}

__global__ void collectives(float *to, const float *from, half *small, __nv_bfloat16 *brain, long *words)
{
    nvshmem_float_broadcast(WORLD, to, from, 8, 0);
    nvshmemx_float_fcollect_block(WORLD, to, from, 8);
    nvshmemx_fcollectmem_warp(WORLD, to, from, 8);
    nvshmemx_float_alltoall_warp(WORLD, to, from, 8);
    nvshmemx_float_sum_reduce_block(WORLD, to, from, 8);
    nvshmemx_float_sum_reducescatter_block(WORLD, to, from, 8);
    nvshmemx_half_max_reduce_warp(WORLD, small, small, 8);
    nvshmemx_bfloat16_sum_reduce_block(WORLD, brain, brain, 8);
    nvshmem_int64_and_reduce(WORLD, words, words, 8);
    words[0] = nvshmem_team_my_pe(WORLD) + nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) +
               nvshmem_team_translate_pe(NVSHMEM_TEAM_SHARED, 0, WORLD);
}

// What NVSHMEM 3.7 and later have beside.
__global__ void lends(char *data, double2 *pairs, int pe)
{
    extern __shared__ char memory[];
    char *payload = memory + nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY);
    nvshmemx_give_smem(memory, nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED));
    __syncthreads();
    nvshmemx_getmem_block(payload, data, 64, pe);
    nvshmemx_putmem_nbi_block(data, payload, 64, pe);
    nvshmemx_double2_maxloc_reduce_block(WORLD, pairs, pairs + 8, 8);
    nvshmemx_release_smem();
}

int main()
{
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_get_uniqueid(&id);
    nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attributes);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
    int *data = (int *)nvshmem_calloc(1024, sizeof *data);
    uint64_t *signal = (uint64_t *)nvshmem_align(256, 8);
    void *arguments[] = {&data, &signal};
    int blocks = 0;
    nvshmemx_collective_launch_query_gridsize((const void *)ring, dim3(32), arguments, 0, &blocks);
    nvshmemx_collective_launch((const void *)ring, dim3(1), dim3(32), arguments, 0, 0);
    nvshmemx_collective_launch_attr_t with = {};
    with.cuda_config.gridDim = dim3(1);
    with.cuda_config.blockDim = dim3(32);
    with.cuda_config.dynamicSmemBytes = nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED);
    nvshmemx_collective_launch_attr(&with, (const void *)lends, arguments);
    nvshmem_int_p(data, 3, nvshmem_my_pe()); // the host's, of the same name
    nvshmemx_int_sum_reduce_on_stream(WORLD, data, data, 1, 0);
    nvshmemx_barrier_all_on_stream(0);
    nvshmem_barrier_all();
    nvshmem_free(signal);
    nvshmem_free(data);
    nvshmem_finalize();
    return 0;
}
