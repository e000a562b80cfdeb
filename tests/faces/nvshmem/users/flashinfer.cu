// What FlashInfer's binding calls of NVSHMEM: ids as bytes of a tensor, all-to-all and sums of three types on a stream.
// Written from the names alone.
#include <nvshmem.h>
#include <nvshmemx.h>

template <class Call> static int must(Call call)
{
    const int result = call();
    return NVSHMEMX_SUCCESS != result;
}

int main()
{
    constexpr int bytes = sizeof(nvshmemx_uniqueid_t);
    static char tensor[bytes];
    nvshmemx_uniqueid_t *id = reinterpret_cast<nvshmemx_uniqueid_t *>(tensor);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    cudaStream_t stream = nullptr;
    *id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_get_uniqueid(id);
    nvshmemx_set_attr_uniqueid_args(0, 1, id, &attributes);
    int wrong = nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
    void *data = nvshmem_malloc(4096);
    const int64_t me = nvshmem_my_pe();
    const int64_t pes = nvshmem_n_pes();
    wrong += must([&] {
        return nvshmemx_alltoallmem_on_stream(NVSHMEM_TEAM_WORLD, static_cast<uint8_t *>(data),
                                              static_cast<uint8_t *>(data), 64, stream);
    });
    wrong += must([&] {
        return nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, static_cast<nv_half *>(data),
                                                  static_cast<nv_half *>(data), 64, stream);
    });
    wrong += must([&] {
        return nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, static_cast<float *>(data),
                                                   static_cast<float *>(data), 64, stream);
    });
    wrong += must([&] {
        return nvshmemx_bfloat16_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, static_cast<nv_bfloat16 *>(data),
                                                      static_cast<nv_bfloat16 *>(data), 64, stream);
    });
    nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmem_barrier_all();
    nvshmem_free(data);
    nvshmem_finalize();
    return wrong != 0 || me >= pes;
}
