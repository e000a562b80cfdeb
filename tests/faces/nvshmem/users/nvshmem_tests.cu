// What NVSHMEM's own test and performance programs take of its headers beside the routines: kernels that are made of
// lists of types, operations and scopes, lines of errors, descriptions of tiles, file names; and the forms in which
// they call. Written from the names alone.
#include <device_host/nvshmem_common.cuh>
#include <device_host/nvshmem_tensor.h>
#include <host/nvshmem_macros.h>
#include <non_abi/nvshmem_build_options.h>
#include <nvshmem.h>
#include <nvshmem_host.h>
#include <nvshmemx.h>

#include <memory>
#include <type_traits>

#if !defined(NVSHMEM_CFT_HANDLES_SUPPORT)
#error "the tests of counted signals ask for this name"
#endif

extern "C" {
#define DECLARE_REDUCE(SC, SUFFIX, PREFIX, NAME, TYPE, OP)                                                             \
    __global__ void reduce_##NAME##_##OP##SUFFIX(nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t count);
NVSHMEMI_REPT_TYPES_AND_OPS_AND_SCOPES2_FOR_REDUCE(DECLARE_REDUCE)

#define DECLARE_VALIDATE(NAME, TYPE, OP) __global__ void validate_##NAME##_##OP(nvshmem_team_t team, TYPE *dest);
NVSHMEMI_REPT_TYPES_AND_OPS_FOR_REDUCE(DECLARE_VALIDATE)

// Of the lists a few are compiled, since each kernel takes its time.
#define DEFINE_REDUCE(SC, SUFFIX, PREFIX, NAME, TYPE, OP)                                                              \
    __global__ void reduce_##NAME##_##OP##SUFFIX(nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t count)    \
    {                                                                                                                  \
        nvshmem##PREFIX##_barrier##SUFFIX(team);                                                                       \
        nvshmem##PREFIX##_##NAME##_##OP##_reduce##SUFFIX(team, dest, source, count);                                   \
    }
DEFINE_REDUCE(thread, , , half, half, sum)
DEFINE_REDUCE(warp, _warp, x, uchar, unsigned char, xor)
DEFINE_REDUCE(block, _block, x, bfloat16, __nv_bfloat16, max)

#define DEFINE_BARRIER(SC, SUFFIX, PREFIX)                                                                             \
    __global__ void barrier_##SC(nvshmem_team_t team)                                                                  \
    {                                                                                                                  \
        nvshmem##PREFIX##_barrier_all##SUFFIX();                                                                       \
        nvshmem##PREFIX##_barrier##SUFFIX(team);                                                                       \
        nvshmem##PREFIX##_team_sync##SUFFIX(team);                                                                     \
        nvshmem##PREFIX##_sync_all##SUFFIX();                                                                          \
        nvshmem##PREFIX##_flush##SUFFIX##_name();                                                                      \
    }
#define nvshmem_flush_name nvshmemx_flush
#define nvshmemx_flush_warp_name nvshmemx_flush_warp
#define nvshmemx_flush_block_name nvshmemx_flush_block
NVSHMEMI_REPT_FOR_SCOPES2(DEFINE_BARRIER)
}

#define PUT_ALL(NAME, TYPE) nvshmem_##NAME##_p((TYPE *)place, (TYPE)value, peer);
__global__ void put_all_types(void *place, int peer)
{
    const float value = 1;
    NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES(PUT_ALL)
}

#define PUT_SIZES(BITS, TYPE) nvshmem_put##BITS((TYPE *)to, (const TYPE *)from, 1, peer);
__global__ void put_all_sizes(void *to, const void *from, int peer)
{
    NVSHMEMI_REPT_FOR_SIZES_WITH_TYPE(PUT_SIZES)
}

#define COUNT_TYPE(NAME, TYPE) +1
#define COUNT_SIZE(BITS) +1
#define COUNT_SCOPED(SC, NAME, TYPE) +1
#define COUNT_SCOPED2(SC, SUFFIX, PREFIX, NAME, TYPE) +1
#define COUNT_OP(NAME, TYPE, OP) +1
#define COUNT_OP2(SC, SUFFIX, PREFIX, NAME, TYPE, OP) +1
static_assert(0 NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES(COUNT_TYPE) == 25, "types of RMA");
static_assert(0 NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES_WITH_SCOPE(COUNT_SCOPED, warp) == 25, "with a scope");
static_assert(0 NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES_AND_SCOPES2(COUNT_SCOPED2) == 75, "in three scopes");
static_assert(0 NVSHMEMI_REPT_FOR_WAIT_TYPES(COUNT_TYPE) == 14, "types of waits");
static_assert(0 NVSHMEMI_REPT_FOR_SIZES(COUNT_SIZE) == 5, "sizes");
static_assert(0 NVSHMEMI_REPT_FOR_BITWISE_REDUCE_TYPES(COUNT_OP, and) == 14, "bitwise reductions");
static_assert(0 NVSHMEMI_REPT_FOR_STANDARD_REDUCE_TYPES_WITH_SCOPE2(COUNT_OP2, warp, _warp, x, max) == 24, "of order");
static_assert(0 NVSHMEMI_REPT_FOR_ARITH_REDUCE_TYPES(COUNT_OP, sum) == 24, "of sums");
static_assert(0 NVSHMEMI_REPT_TYPES_AND_OPS_FOR_REDUCE(COUNT_OP) == 3 * 14 + 4 * 24, "all reductions");

template <typename T> __global__ void tile(T *data, int *sum)
{
    auto layout =
        nvshmemx::make_layout(nvshmemx::make_shape(4, ConstInt<2>{}), nvshmemx::make_stride(ConstInt<1>{}, 4));
    nvshmemx::Tensor<T, decltype(layout)> tensor(data, layout);
    static_assert(std::is_same<typename decltype(tensor)::value_type, T>::value, "of what");
    *sum = cuda::std::get<0>(tensor.shape()) * cuda::std::get<1>(tensor.stride()) + (int)*(tensor.data() + 1);
}

__global__ void rings(int *dest, const int *source, uint64_t *signal, size_t count, int peer)
{
    const uint64_t phase = 1;
    nvshmem_signal_wait_until(&signal[0], NVSHMEM_CMP_EQ, phase);
    nvshmem_int_put_signal_nbi(dest, (peer == 0) ? source : dest, count, &signal[1], phase, NVSHMEM_SIGNAL_SET, peer);
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, peer);
}

__global__ void lent(char *to, int bytes, int peer)
{
    extern __shared__ char memory[];
    nvshmemx_give_smem(memory, nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED));
    __syncthreads();
    nvshmemx_putmem_nbi_block(to, memory + nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY), bytes, peer);
    nvshmemx_release_smem();
}

__global__ void in_regions(char *to, const char *from, uint64_t *signal, int peer, int *status)
{
    nvshmemx_region_handle_t handle = 0;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    int active = 0;
    *status = nvshmemx_region_start_block(&handle, &attrs) != NVSHMEMX_SUCCESS;
    *status |= nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &active) != NVSHMEMX_SUCCESS || !active;
    nvshmem_putmem_nbi(to, from, 8, peer);
    nvshmemx_getmem_nbi_block(to, from, 8, peer);
    *status |= nvshmemx_region_stop_block(handle) != NVSHMEMX_SUCCESS;
    *status |= nvshmemx_putmem_signal_counted_nbi_block(to, from, 16, signal, peer);
    nvshmemx_signal_counted_wait_until(signal, 16);
}

__global__ void all_queues(unsigned long long *to, uint64_t *counter, int peer)
{
    nvshmem_ulonglong_p(to, 1ull, peer);
    nvshmemx_qp_quiet_block(NVSHMEMX_PE_ALL, nullptr, NVSHMEMX_QP_ALL);
    nvshmemx_signal_op(counter, 1, NVSHMEM_SIGNAL_ADD, peer);
}

static bool amounts_rise()
{
    return nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY) > 0 &&
           nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM) >= nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY) &&
           nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED) >= nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM);
}

static int checked(void *pointer, int status)
{
    NVSHMEMI_NULL_ERROR_JMP(pointer, status, NVSHMEMX_ERROR_OUT_OF_MEMORY, out, "no %s", "pointer");
    NVSHMEMI_NZ_ERROR_JMP(status, NVSHMEMX_ERROR_INTERNAL, out, "failed");
    NVSHMEMI_NE_ERROR_JMP(status, NVSHMEMX_SUCCESS, NVSHMEMX_ERROR_INTERNAL, out, "failed with %d", status);
    NVSHMEMI_EQ_ERROR_JMP(status, NVSHMEMX_ERROR_SYMMETRY, NVSHMEMX_ERROR_INTERNAL, out, "failed");
    NVSHMEMI_NZ_EXIT(status, "failed");
    NVSHMEMI_NZ_ERROR_RET(status, NVSHMEMX_ERROR_INTERNAL, "failed");
    if (status != 0) {
        NVSHMEMI_WARN_PRINT("a warning of %d", status);
        NVSHMEMI_ERROR_PRINT("Retrieve %s failed", "it");
        NVSHMEMI_ERROR_JMP(status, NVSHMEMX_ERROR_INTERNAL, out, "failed");
    }
out:
    return status;
}

int main()
{
    const nvshmemi_version_t version = {NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION,
                                        NVSHMEM_VENDOR_PATCH_VERSION};
    int status = checked(&status, version.major - 3);
    assert(status == 0 && nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    nvshmem_init();
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmemx_team_uniqueid_t id;
    nvshmem_team_t team;
    status = nvshmemx_team_get_uniqueid(&id);
    config.uniqueid = id;
    status |= nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 0);
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, 1, NULL, 0, &team);
    nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, &team);
    int gridsize;
    void *args[] = {&team};
    status |= nvshmemx_collective_launch_query_gridsize((const void *)barrier_block, 256, args, 0, &gridsize);
    status |= nvshmemx_collective_launch((const void *)barrier_block, gridsize, 256, args, 0, 0);
    tile<float><<<1, 1>>>((float *)nvshmem_malloc(64), (int *)nvshmem_calloc(1, 4));
    put_all_types<<<1, 1>>>(nvshmem_malloc(64), 0);
    put_all_sizes<<<1, 1>>>(nvshmem_malloc(64), nvshmem_align(64, 64), 0);
    rings<<<1, 1>>>((int *)nvshmem_malloc(64), (int *)nvshmem_malloc(64), (uint64_t *)nvshmem_calloc(2, 8), 1, 0);
    lent<<<1, 32, 65536>>>((char *)nvshmem_malloc(64), 64, 0);
    in_regions<<<1, 32>>>((char *)nvshmem_malloc(64), (char *)nvshmem_malloc(64), (uint64_t *)nvshmem_calloc(1, 8), 0,
                          (int *)nvshmem_calloc(1, 4));
    all_queues<<<1, 32>>>((unsigned long long *)nvshmem_malloc(64), (uint64_t *)nvshmem_calloc(1, 8), 0);
    auto owned = std::unique_ptr<int, decltype(&nvshmem_free)>((int *)nvshmem_malloc(sizeof(int)), nvshmem_free);
    nvshmemx_qp_handle_t *queues = NULL;
    status |= nvshmemx_qp_create(4, &queues) || queues[0] != NVSHMEMX_QP_DEFAULT || !amounts_rise() || !owned;
    owned.reset();
    nvshmemx_flush();
    nvshmemx_barrier_all_on_stream(0);
    nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (half *)nvshmem_malloc(64), (half *)nvshmem_malloc(64), 1,
                                       0);
    nvshmemx_bfloat16_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, (__nv_bfloat16 *)nvshmem_malloc(64),
                                           (const __nv_bfloat16 *)nvshmem_malloc(64), 1, 0);
    nvshmem_finalize();
    return status;
}
