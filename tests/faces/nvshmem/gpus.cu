/* Goal: programs in the order that NVSHMEM's own have it run with a GPU a PE: init before a GPU is chosen, which is
 * then that of the PE's number on its node; launches with attributes and lent shared memory; puts from shared memory;
 * signals back and forth; gets behind barriers and waits; maxloc; barriers of warpgroups; regions of blocks; sums on
 * streams; modules that are loaded while it runs.
 *
 * Method: weftrun -n PES gpus [MODULE ...]; each PE checks what the one before it wrote. scripts/gpu_nvshmem.sh builds
 * it, and the modules, which are loaded.cu, with relocatable device code and without. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define COUNT 4096
#define BLOCKS 8
#define TRIPS 100
#define ROUNDS 50
#define WORDS 256

static int failures;
static int me;

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "PE %d, line %d: %s: %s\n", me, __LINE__, #call, cudaGetErrorString(error));               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "PE %d, line %d: not %s\n", me, __LINE__, #condition);                                     \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

extern "C" {
__global__ void put_lent(int *to, const int *from, int count, int peer)
{
    extern __shared__ char memory[];
    int *payload = (int *)(memory + nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY));
    const int each = count / gridDim.x;
    nvshmemx_give_smem(memory, nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED));
    for (int i = threadIdx.x; i < each; i += blockDim.x) {
        payload[i] = from[blockIdx.x * each + i];
    }
    __syncthreads();
    nvshmemx_putmem_nbi_block(to + blockIdx.x * each, payload, each * sizeof(int), peer);
    nvshmem_quiet();
    nvshmemx_release_smem();
}

__global__ void ping_pong(uint64_t *flag, int pe, int trips)
{
    const int peer = pe ^ 1;
    for (int i = 1; i <= trips; i++) {
        if (pe & 1) {
            nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, i);
            nvshmemx_signal_op(flag, i, NVSHMEM_SIGNAL_SET, peer);
        } else {
            nvshmemx_signal_op(flag, i, NVSHMEM_SIGNAL_SET, peer);
            nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, i);
        }
    }
    nvshmem_quiet();
}
}

/* Word i of this round. */
__device__ int word_of(int round, int i)
{
    return round * WORDS + i;
}

/* Each PE gets the words of the next one, which change in each round. The first get of a round is before anything says
 * that they have, and may leave old ones in a cache; those behind a barrier, or one thread's wait, see the new ones. */
__global__ void get_rounds(int *words, int *got, uint64_t *flag, int *wrong, int pe, int pes)
{
    const int next = (pe + 1) % pes;
    const int i = threadIdx.x;
    int bad = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        nvshmemx_int_get_block(got, words, WORDS, next);
        words[i] = word_of(round, i);
        if (round % 2 == 0) {
            nvshmemx_barrier_all_block();
        } else {
            __syncthreads();
            if (i == 0) {
                nvshmem_fence();
                nvshmemx_signal_op(flag, round, NVSHMEM_SIGNAL_SET, (pe + pes - 1) % pes);
                nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, round);
            }
            __syncthreads();
        }
        nvshmemx_int_get_block(got, words, WORDS, next);
        bad += got[i] != word_of(round, i);
        if (i < 32) {
            nvshmemx_int_get_warp(got + WORDS, words, 96, next);
            bad += got[WORDS + i] != word_of(round, i) || got[WORDS + 64 + i] != word_of(round, 64 + i);
        }
        if (i == 0) {
            nvshmem_int_get(got + 2 * WORDS, words + 1, 3, next);
            bad += got[2 * WORDS] != word_of(round, 1) || got[2 * WORDS + 2] != word_of(round, 3);
            bad += nvshmem_int_g(words, next) != word_of(round, 0);
        }
        nvshmemx_barrier_all_block(); /* all have read */
    }
    if (bad != 0) {
        atomicAdd(wrong, bad);
    }
}

__global__ void locate(double2 *to, double2 *from, int pe, int pes, int count)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        from[i] = make_double2((double)((i + pe) % pes), (double)pe);
    }
    __syncthreads();
    nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, to, from, count);
}

__device__ int is_active(uint32_t hint)
{
    int active = -1;
    return nvshmemx_region_is_active(hint, &active) == NVSHMEMX_SUCCESS ? active : -1;
}

/* Every block has regions of its own, one at a time. */
__global__ void open_regions(int *wrong)
{
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_handle_t other = 0;
    nvshmemx_region_attrs_t batch = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    batch.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    int bad = is_active(NVSHMEMX_REGION_HINT_NONE) != 0;
    for (unsigned i = 0; i <= blockIdx.x; i++) {
        bad += nvshmemx_region_start_block(&region, &batch) != NVSHMEMX_SUCCESS;
        bad += is_active(NVSHMEMX_REGION_HINT_BATCH_RMA) != 1;
        bad += nvshmemx_region_start_block(&other, NULL) != NVSHMEMX_ERROR_INVALID_VALUE;
        bad += nvshmemx_region_stop_block(region + 1) != NVSHMEMX_ERROR_INVALID_VALUE;
        bad += nvshmemx_region_stop_block(region) != NVSHMEMX_SUCCESS;
        bad += is_active(NVSHMEMX_REGION_HINT_NONE) != 0;
    }
    bad += nvshmemx_region_start_block(&other, NULL) != NVSHMEMX_SUCCESS || other == region;
    bad += is_active(NVSHMEMX_REGION_HINT_NONE) != 1 || is_active(NVSHMEMX_REGION_HINT_BATCH_RMA) != 0;
    if (bad != 0) {
        atomicAdd(wrong, bad); /* the last region stays open: the next launch does not see it */
    }
}

/* Each of a block's two warpgroups in its turn, while the other one is in none of NVSHMEM's calls: all of its threads
 * put to the next PE, and find after the barrier what another warp's threads of the PE before put. */
__global__ void meet_in_groups(int *to, int *wrong, int pe, int pes)
{
    const int thread = threadIdx.x;
    const int other = thread ^ 96;
    for (int group = 0; group < 2; group++) {
        if (thread / 128 == group) {
            nvshmem_int_p(to + thread, pe * 1000 + thread, (pe + 1) % pes);
            const int status = nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD);
            if (status != 0 || *(volatile int *)(to + other) != (pe + pes - 1) % pes * 1000 + other) {
                atomicAdd(wrong, 1);
            }
        }
        __syncthreads();
    }
}

template <class T> static std::vector<T> values_of(const T *device, size_t count)
{
    std::vector<T> host(count);
    CUDA(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

static void puts_from_lent(int pes)
{
    int *to = (int *)nvshmem_malloc(COUNT * sizeof(int));
    int *from = (int *)nvshmem_malloc(COUNT * sizeof(int));
    std::vector<int> host(COUNT);
    for (int i = 0; i < COUNT; i++) {
        host[i] = me * COUNT + i;
    }
    CUDA(cudaMemcpy(from, host.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
    int count = COUNT;
    int peer = (me + 1) % pes;
    const int bytes = nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED);
    CUDA(cudaFuncSetAttribute(put_lent, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    nvshmemx_collective_launch_attr_t with = {};
    with.cuda_config.gridDim = dim3(BLOCKS);
    with.cuda_config.blockDim = dim3(256);
    with.cuda_config.dynamicSmemBytes = bytes;
    void *arguments[] = {&to, &from, &count, &peer};
    CHECK(nvshmemx_collective_launch_attr(&with, (const void *)put_lent, arguments) == NVSHMEMX_SUCCESS);
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    const std::vector<int> got = values_of(to, COUNT);
    const int before = (me + pes - 1) % pes;
    CHECK(got[0] == before * COUNT && got[COUNT - 1] == before * COUNT + COUNT - 1);
    nvshmem_free(from);
    nvshmem_free(to);
}

static void signals(int pes)
{
    uint64_t *flag = (uint64_t *)nvshmem_calloc(1, sizeof *flag);
    int trips = TRIPS;
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *arguments[] = {&flag, &me, &trips};
    nvshmem_barrier_all();
    if (pes % 2 == 0) {
        CHECK(nvshmemx_collective_launch((const void *)ping_pong, 1, 1, arguments, 0, stream) == NVSHMEMX_SUCCESS);
        CUDA(cudaStreamSynchronize(stream));
        CHECK(values_of(flag, 1)[0] == TRIPS);
    }
    nvshmem_barrier_all();
    CUDA(cudaStreamDestroy(stream));
    nvshmem_free(flag);
}

static void gets(int pes)
{
    int *words = (int *)nvshmem_calloc(WORDS, sizeof *words);
    int *got = (int *)nvshmem_calloc(3 * WORDS, sizeof *got);
    uint64_t *flag = (uint64_t *)nvshmem_calloc(1, sizeof *flag);
    int *wrong = (int *)nvshmem_calloc(1, sizeof *wrong);
    void *arguments[] = {&words, &got, &flag, &wrong, &me, &pes};
    CHECK(nvshmemx_collective_launch((const void *)get_rounds, 1, WORDS, arguments, 0, 0) == NVSHMEMX_SUCCESS);
    CUDA(cudaDeviceSynchronize());
    CHECK(values_of(wrong, 1)[0] == 0);
    nvshmem_barrier_all();
    nvshmem_free(wrong);
    nvshmem_free(flag);
    nvshmem_free(got);
    nvshmem_free(words);
}

static void maxima(int pes)
{
    int count = 64;
    double2 *to = (double2 *)nvshmem_malloc(count * sizeof *to);
    double2 *from = (double2 *)nvshmem_malloc(count * sizeof *from);
    void *arguments[] = {&to, &from, &me, &pes, &count};
    CHECK(nvshmemx_collective_launch((const void *)locate, 1, 128, arguments, 0, 0) == NVSHMEMX_SUCCESS);
    CUDA(cudaDeviceSynchronize());
    const std::vector<double2> got = values_of(to, count);
    for (int i = 0; i < count; i++) {
        const int whose = (2 * pes - 1 - i % pes) % pes; /* (i + whose) % pes is pes - 1 */
        CHECK(got[i].x == pes - 1 && got[i].y == whose);
    }
    nvshmem_free(from);
    nvshmem_free(to);
}

static void warpgroups(int pes)
{
    int *to = (int *)nvshmem_calloc(257, sizeof *to);
    int *wrong = to + 256;
    void *arguments[] = {&to, &wrong, &me, &pes};
    CHECK(nvshmemx_collective_launch((const void *)meet_in_groups, 1, 256, arguments, 0, 0) == NVSHMEMX_SUCCESS);
    CUDA(cudaDeviceSynchronize());
    CHECK(values_of(wrong, 1)[0] == 0);
    nvshmem_barrier_all();
    nvshmem_free(to);
}

static void regions()
{
    int *wrong = (int *)nvshmem_calloc(1, sizeof *wrong);
    for (int i = 0; i < 3; i++) {
        open_regions<<<dim3(4, 2), 96>>>(wrong);
    }
    CUDA(cudaDeviceSynchronize());
    CHECK(values_of(wrong, 1)[0] == 0);
    nvshmem_free(wrong);
}

static void sums_on_streams(int pes)
{
    const int count = 1000;
    float *to = (float *)nvshmem_malloc(count * sizeof *to);
    float *from = (float *)nvshmem_malloc(count * sizeof *from);
    std::vector<float> host(count, (float)(me + 1));
    CUDA(cudaMemcpy(from, host.data(), count * sizeof *from, cudaMemcpyHostToDevice));
    nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, count, 0);
    nvshmemx_barrier_all_on_stream(0);
    CUDA(cudaStreamSynchronize(0));
    const std::vector<float> got = values_of(to, count);
    CHECK(got[0] == (float)(pes * (pes + 1) / 2) && got[count - 1] == got[0]);
    nvshmem_free(from);
    nvshmem_free(to);
}

/* The kernel of a module that the driver loads, by functions of the driver's, which is not linked. */
static void loaded(const char *path, int pes)
{
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*load)(CUmodule * module, const char *path);
    int (*find)(void **kernel, CUmodule module, const char *name);
    int (*launch)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, cudaStream_t stream, void **arguments, void **extra);
    int (*unload)(CUmodule module);
    *(void **)&load = dlsym(driver, "cuModuleLoad");
    *(void **)&find = dlsym(driver, "cuModuleGetFunction");
    *(void **)&launch = dlsym(driver, "cuLaunchKernel");
    *(void **)&unload = dlsym(driver, "cuModuleUnload");
    CUmodule module;
    void *kernel;
    int *data = (int *)nvshmem_calloc(1, sizeof *data);
    void *arguments[] = {&data};
    const int is_there = load(&module, path) == 0 && find(&kernel, module, "tell_next") == 0;
    CHECK(is_there);
    if (is_there) {
        CHECK(nvshmemx_cumodule_init(module) == NVSHMEMX_SUCCESS);
        CHECK(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == 0);
    }
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    CHECK(values_of(data, 1)[0] == 100 + (me + pes - 1) % pes);
    if (is_there) {
        CHECK(nvshmemx_cumodule_finalize(module) == NVSHMEMX_SUCCESS && unload(module) == 0);
    }
    nvshmem_free(data);
}

int main(int argc, char **argv)
{
    int gpus;
    nvshmem_init();
    me = nvshmem_my_pe();
    const int pes = nvshmem_n_pes();
    CUDA(cudaGetDeviceCount(&gpus));
    CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % gpus));
    nvshmem_barrier_all();
    puts_from_lent(pes);
    signals(pes);
    gets(pes);
    maxima(pes);
    warpgroups(pes);
    regions();
    sums_on_streams(pes);
    for (int i = 1; i < argc; i++) {
        loaded(argv[i], pes);
    }
    nvshmem_barrier_all();
    if (me == 0) {
        printf("%d PEs on %d GPUs: %s\n", pes, gpus, failures == 0 ? "ok" : "FAILED");
    }
    nvshmem_finalize();
    return failures != 0;
}
