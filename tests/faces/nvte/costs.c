/* Goal: what the calls of the NCCL EP face and of TransformerEngine's add to weft's own is at most 3 us of the CPU;
 * they allocate nothing, on the host or on the device, and wait for no stream; a dispatch of HT does not agree on a
 * routing that was agreed on with its counters.
 *
 * Method: one PE on the fake driver. The linker puts functions of this file before weft's, as the faces call them
 * (--wrap), and before malloc and its like. First some calls of each kind pass through to weft: what was allocated is
 * counted, and what the fake driver counts of waits and of device memory. Then some hundred end here, without a kernel:
 * their time, less that of the copies and fills on the stream, which the fake driver does at once, is the face's own.
 * Prints a line of JSON a call; "enqueues" are copies and fills a call. Usage: costs [LIMIT_NS], the limit of a median;
 * without it times are only printed. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include "weft_ep.h"
#include <nccl_ep.h>
#include <weft_nvte.h>

#define TOKENS 32
#define HIDDEN 64
#define TOPK 4
#define EXPERTS 8
#define ROWS (TOKENS * TOPK + EXPERTS * 8)
#define ROUNDS 201
#define ROUNDS_THROUGH 15

/* ---- what stands before weft's functions ---- */

static int ends_here;
static unsigned long allocations;

static uint64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#define WRAP(name, parameters, arguments)                                                                              \
    weft_status __real_##name parameters;                                                                              \
    weft_status __wrap_##name parameters;                                                                              \
    weft_status __wrap_##name parameters                                                                               \
    {                                                                                                                  \
        return ends_here ? WEFT_OK : __real_##name arguments;                                                          \
    }

WRAP(weft_ep_route_attach,
     (weft_ep_route * route, void *memory, size_t bytes, weft_ep_contents contents, weft_stream *stream),
     (route, memory, bytes, contents, stream))
WRAP(weft_ep_route_counts_to, (weft_ep_route * route, const weft_ep_count_arrays *arrays), (route, arrays))
WRAP(weft_ep_route_update, (weft_ep_route * route, const weft_ep_choices *choices, weft_stream *stream),
     (route, choices, stream))
WRAP(weft_ep_route_weigh, (weft_ep_route * route, const float *weights), (route, weights))
static unsigned long agreements; /* that a dispatch was to make */
weft_status __real_weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices);
weft_status __wrap_weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices);
weft_status __wrap_weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices)
{
    agreements++;
    return ends_here ? WEFT_OK : __real_weft_ep_route_choose(route, choices);
}

WRAP(weft_ep_dispatch,
     (weft_ep_route * route, const weft_ep_rows *in, const weft_ep_received *out, weft_stream *stream),
     (route, in, out, stream))
WRAP(weft_ep_combine,
     (weft_ep_route * route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags, weft_stream *stream),
     (route, in, out, flags, stream))
WRAP(weft_ep_combine_with,
     (weft_ep_route * route, const weft_ep_rows *in, const weft_ep_rows *out, const weft_ep_combine_options *options,
      weft_stream *stream),
     (route, in, out, options, stream))
WRAP(weft_ep_dispatch_bwd,
     (weft_ep_route * route, const weft_ep_rows *grad, const float *weights, const weft_ep_rows *out, float *back,
      weft_stream *stream),
     (route, grad, weights, out, back, stream))

WRAP(weft_ep_dispatch_send,
     (weft_ep_route * route, const weft_ep_rows *in, const weft_ep_received *out, weft_stream *stream),
     (route, in, out, stream))
WRAP(weft_ep_dispatch_recv, (weft_ep_route * route, weft_stream *stream), (route, stream))
WRAP(weft_ep_combine_send_with,
     (weft_ep_route * route, const weft_ep_rows *in, const weft_ep_rows *out, const weft_ep_combine_options *options,
      weft_stream *stream),
     (route, in, out, options, stream))
WRAP(weft_ep_combine_recv, (weft_ep_route * route, weft_stream *stream), (route, stream))

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    allocations++;
    return __real_realloc(memory, bytes);
}

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __real_aligned_alloc(alignment, bytes);
}

int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    allocations++;
    return __real_posix_memalign(memory, alignment, bytes);
}

/* ---- measuring ---- */

static int failures;
static uint64_t limit_ns;

static void fail(const char *format, ...) WEFT_PRINTF(1, 2);
static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    failures++;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

static unsigned long (*waits_or_takes)(void);
static unsigned long (*copies)(unsigned long long *ns);

typedef struct call {
    const char *face;
    const char *name;
    int (*make)(void); /* returns 0 */
} call;

static int make(const call *one)
{
    if (one->make() == 0) {
        return 1;
    }
    fail("%s: %s failed: %s\n", one->face, one->name, weft_last_error());
    return 0;
}

/* Through to weft; the first finds what it needs. */
static void count(const call *one)
{
    int goes_on = make(one);
    unsigned long allocated = allocations;
    unsigned long waited = waits_or_takes();
    for (int i = 0; i < ROUNDS_THROUGH && goes_on; i++) {
        goes_on = make(one);
    }
    allocated = allocations - allocated;
    waited = waits_or_takes() - waited;
    if (allocated != 0 || waited != 0) {
        fail("%s: %s allocated %lu times and waited, or took or gave device memory, %lu times in %d calls\n", one->face,
             one->name, allocated, waited, ROUNDS_THROUGH);
    }
}

static void measure(const char *face, const char *name, int (*make_one)(void))
{
    static uint64_t own[ROUNDS];
    const call one = {face, name, make_one};
    unsigned long long copies_ns = 0;
    count(&one);
    unsigned long enqueues = copies(&copies_ns);
    ends_here = 1;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned long long before_ns = 0;
        (void)copies(&before_ns);
        uint64_t start = now();
        int goes_on = make(&one);
        uint64_t all = now() - start;
        (void)copies(&copies_ns);
        own[i] = goes_on ? all - (copies_ns - before_ns) : 0;
    }
    ends_here = 0;
    enqueues = copies(&copies_ns) - enqueues;
    qsort(own, ROUNDS, sizeof *own, by_size);
    uint64_t median = own[ROUNDS / 2];
    (void)printf("{\"name\": \"face_call\", \"impl\": \"%s\", \"call\": \"%s\", \"value\": %llu, \"unit\": \"ns\", "
                 "\"stat\": \"median\", \"n\": %d, \"enqueues\": %lu}\n",
                 face, name, (unsigned long long)median, ROUNDS, enqueues / ROUNDS);
    if (limit_ns != 0 && median > limit_ns) {
        fail("%s: %s takes %llu ns beside weft's own calls; the limit is %llu\n", face, name,
             (unsigned long long)median, (unsigned long long)limit_ns);
    }
}

/* ---- the calls ---- */

static _Alignas(16) float x[TOKENS][HIDDEN];
static _Alignas(16) float y[TOKENS][HIDDEN];
static _Alignas(16) float rows[EXPERTS * TOKENS * TOPK + ROWS][HIDDEN];
static float row_weights[EXPERTS * TOKENS * TOPK + ROWS];
static float weights[TOKENS][TOPK];
static int64_t ids[TOKENS][TOPK];
static int32_t row_ids[(EXPERTS * TOKENS + ROWS) * TOPK];
static int32_t counts[EXPERTS];
static int32_t total;

static ncclEpGroup_t group;
static ncclEpHandle_t handle;
static ncclEpAlgorithm_t algorithm;
static ncclEpLayout_t layout;
static unsigned send_only;
static size_t token_sizes[] = {TOKENS, HIDDEN};
static size_t choice_sizes[] = {TOKENS, TOPK};
static size_t row_sizes[3];
static size_t place_sizes[3];
static size_t expert_sizes[] = {EXPERTS};
static size_t one[] = {1};

static int is_ht(void)
{
    return algorithm == NCCL_EP_ALGO_HIGH_THROUGHPUT;
}

static int is_by_expert(void)
{
    return layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
}

static int update(void)
{
    ncclEpTensor_t idx = tensor(ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t experts = tensor(counts, ncclInt32, 1, expert_sizes);
    ncclEpTensor_t all = tensor(&total, ncclInt32, 1, one);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    info.expert_counters = &experts;
    info.recv_total_counter = &all;
    return (int)ncclEpUpdateHandle(handle, &idx, is_ht() ? &info : NULL, NULL);
}

static int dispatch_to(ncclEpPassDir_t direction)
{
    int is_forward = direction == NCCL_EP_FWD_PASS;
    ncclEpTensor_t in = tensor(x, ncclFloat32, 2, token_sizes);
    ncclEpTensor_t in_weights = tensor(weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t out = tensor(rows, ncclFloat32, is_ht() ? 2 : 3, row_sizes);
    unsigned places = !is_ht() ? 3 : is_by_expert() ? 1 : 2;
    ncclEpTensor_t out_weights = tensor(row_weights, ncclFloat32, places, place_sizes);
    ncclEpTensor_t out_ids = tensor(row_ids, ncclInt32, places, place_sizes);
    ncclEpTensor_t experts = tensor(counts, ncclInt32, 1, expert_sizes);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    config.pass_direction = direction;
    config.send_only = send_only;
    info.expert_counters = &experts;
    inputs.tokens = &in;
    outputs.tokens = &out;
    if (is_forward) {
        inputs.topk_weights = &in_weights;
        outputs.topk_weights = is_ht() || !is_by_expert() ? &out_weights : NULL;
        outputs.topk_idx = is_by_expert() ? NULL : &out_ids;
    }
    return (int)ncclEpDispatch(handle, &inputs, &outputs, !is_ht() && is_by_expert() ? &info : NULL, &config, NULL);
}

static int dispatch(void)
{
    return dispatch_to(NCCL_EP_FWD_PASS);
}

static int dispatch_back(void)
{
    return dispatch_to(NCCL_EP_BWD_PASS);
}

static int combine(void)
{
    ncclEpTensor_t in = tensor(rows, ncclFloat32, is_ht() ? 2 : 3, row_sizes);
    ncclEpTensor_t out = tensor(y, ncclFloat32, 2, token_sizes);
    ncclEpTensor_t out_weights = tensor(weights, ncclFloat32, 2, choice_sizes);
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    config.send_only = send_only;
    inputs.tokens = &in;
    outputs.tokens = &out;
    outputs.topk_weights = &out_weights;
    return (int)ncclEpCombine(handle, &inputs, &outputs, &config, NULL);
}

static int combine_back(void)
{
    ncclEpTensor_t in = tensor(rows, ncclFloat32, 2, row_sizes);
    ncclEpTensor_t in_weights = tensor(row_weights, ncclFloat32, is_by_expert() ? 1 : 2, place_sizes);
    ncclEpTensor_t out = tensor(y, ncclFloat32, 2, token_sizes);
    ncclEpTensor_t out_weights = tensor(weights, ncclFloat32, 2, choice_sizes);
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    config.pass_direction = NCCL_EP_BWD_PASS;
    inputs.tokens = &in;
    inputs.topk_weights = &in_weights;
    outputs.tokens = &out;
    outputs.topk_weights = &out_weights;
    return (int)ncclEpCombine(handle, &inputs, &outputs, &config, NULL);
}

static int complete(void)
{
    return (int)ncclEpComplete(handle, NULL, NULL);
}

static int dispatch_in_halves(void)
{
    return dispatch() != 0 || complete() != 0;
}

static int combine_in_halves(void)
{
    return combine() != 0 || complete() != 0;
}

static void choose_layout(ncclEpAlgorithm_t with, ncclEpLayout_t of)
{
    size_t slots = of == NCCL_EP_LAYOUT_EXPERT_MAJOR ? EXPERTS : 1;
    algorithm = with;
    layout = of;
    memcpy(row_sizes, is_ht() ? (size_t[]){ROWS, HIDDEN, 0} : (size_t[]){slots, TOKENS, HIDDEN}, sizeof row_sizes);
    memcpy(place_sizes, is_ht() ? (size_t[]){ROWS, TOPK, 0} : (size_t[]){1, TOKENS, TOPK}, sizeof place_sizes);
}

static void nccl_ep(ncclComm_t comm, ncclEpAlgorithm_t with, ncclEpLayout_t of, const char *name)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    choose_layout(with, of);
    agreements = 0;
    config.algorithm = algorithm;
    config.num_experts = EXPERTS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_token_bytes = sizeof x[0];
    config.num_topk = TOPK;
    if (ncclEpCreateGroup(&group, comm, &config) != ncclSuccess ||
        ncclEpInitHandle(&handle, group, layout, NULL, TOPK, NULL) != ncclSuccess) {
        fail("%s: no group: %s\n", name, weft_last_error());
        return;
    }
    measure(name, "ncclEpUpdateHandle", update);
    measure(name, "ncclEpDispatch", dispatch);
    measure(name, "ncclEpCombine", combine);
    if (is_ht()) {
        measure(name, "ncclEpDispatch, backward", dispatch_back);
        measure(name, "ncclEpCombine, backward", combine_back);
    } else {
        send_only = 1;
        measure(name, "ncclEpDispatch and ncclEpComplete", dispatch_in_halves);
        measure(name, "ncclEpCombine and ncclEpComplete", combine_in_halves);
        send_only = 0;
    }
    measure(name, "ncclEpComplete", complete);
    if (is_ht() && agreements != 0) {
        fail("%s: a dispatch agrees on the routing that the update has agreed on\n", name);
    }
    if (ncclEpHandleDestroy(handle) != ncclSuccess || ncclEpGroupDestroy(group) != ncclSuccess) {
        fail("%s: %s\n", name, weft_last_error());
    }
}

static const NVTECommWindow none;
static const NVTEEpLayerConfig layer = {
    .struct_size = sizeof layer, .top_k = TOPK, .dispatch_output_per_expert_alignment = 8};
static weft_nvte_tensor handle_mem;

static weft_nvte_tensor nvte_tensor(void *data, NVTEDType type, size_t count, size_t columns)
{
    weft_nvte_tensor made = {.magic = WEFT_NVTE_TENSOR_MAGIC};
    made.data.data_ptr = data;
    made.data.dtype = type;
    made.data.shape.data[0] = count;
    made.data.shape.data[1] = columns;
    made.data.shape.ndim = columns == 0 ? 1 : 2;
    return made;
}

static int nvte_prepare(void)
{
    weft_nvte_tensor idx = nvte_tensor(ids, kNVTEInt64, TOKENS, TOPK);
    weft_nvte_tensor experts = nvte_tensor(counts, kNVTEInt32, EXPERTS, 0);
    weft_nvte_tensor all = nvte_tensor(&total, kNVTEInt32, 1, 0);
    nvte_ep_prepare(&handle_mem, &idx, &experts, &all, &layer, NULL);
    return (int)weft_nvte_status();
}

static int nvte_dispatch(void)
{
    weft_nvte_tensor idx = nvte_tensor(ids, kNVTEInt64, TOKENS, TOPK);
    weft_nvte_tensor in = nvte_tensor(x, kNVTEFloat32, TOKENS, HIDDEN);
    weft_nvte_tensor in_weights = nvte_tensor(weights, kNVTEFloat32, TOKENS, TOPK);
    weft_nvte_tensor out = nvte_tensor(rows, kNVTEFloat32, ROWS, HIDDEN);
    weft_nvte_tensor out_weights = nvte_tensor(row_weights, kNVTEFloat32, ROWS, 0);
    nvte_ep_dispatch(&handle_mem, &idx, &in, none, &in_weights, none, &out, none, &out_weights, none, NULL);
    return (int)weft_nvte_status();
}

static int nvte_prepare_and_dispatch(void)
{
    weft_nvte_tensor idx = nvte_tensor(ids, kNVTEInt64, TOKENS, TOPK);
    weft_nvte_tensor in = nvte_tensor(x, kNVTEFloat32, TOKENS, HIDDEN);
    weft_nvte_tensor in_weights = nvte_tensor(weights, kNVTEFloat32, TOKENS, TOPK);
    weft_nvte_tensor out = nvte_tensor(rows, kNVTEFloat32, ROWS, HIDDEN);
    weft_nvte_tensor out_weights = nvte_tensor(row_weights, kNVTEFloat32, ROWS, 0);
    weft_nvte_tensor experts = nvte_tensor(counts, kNVTEInt32, EXPERTS, 0);
    nvte_ep_prepare_and_dispatch(&handle_mem, &idx, &in, none, &in_weights, none, &out, none, &out_weights, none,
                                 &experts, NULL, &layer, NULL);
    return (int)weft_nvte_status();
}

static int nvte_combine(void)
{
    weft_nvte_tensor in = nvte_tensor(rows, kNVTEFloat32, ROWS, HIDDEN);
    weft_nvte_tensor out = nvte_tensor(y, kNVTEFloat32, TOKENS, HIDDEN);
    nvte_ep_combine(&handle_mem, &in, none, &out, NULL);
    return (int)weft_nvte_status();
}

static int nvte_combine_bwd(void)
{
    weft_nvte_tensor in = nvte_tensor(x, kNVTEFloat32, TOKENS, HIDDEN);
    weft_nvte_tensor out = nvte_tensor(rows, kNVTEFloat32, ROWS, HIDDEN);
    nvte_ep_combine_bwd(&handle_mem, &in, none, &out, none, NULL);
    return (int)weft_nvte_status();
}

static int nvte_dispatch_bwd(void)
{
    weft_nvte_tensor in = nvte_tensor(rows, kNVTEFloat32, ROWS, HIDDEN);
    weft_nvte_tensor in_weights = nvte_tensor(row_weights, kNVTEFloat32, ROWS, 0);
    weft_nvte_tensor out = nvte_tensor(y, kNVTEFloat32, TOKENS, HIDDEN);
    weft_nvte_tensor back = nvte_tensor(weights, kNVTEFloat32, TOKENS, TOPK);
    nvte_ep_dispatch_bwd(&handle_mem, &in, none, &in_weights, none, &out, &back, NULL);
    return (int)weft_nvte_status();
}

static void nvte_ep(ncclComm_t comm)
{
    static const char name[] = "nvte_ep";
    NVTEEpGroupConfig config = NVTE_EP_GROUP_CONFIG_INIT;
    config.ep_size = 1;
    config.num_experts = EXPERTS;
    config.max_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = ROWS;
    config.hidden_dim = HIDDEN;
    config.max_token_dtype = kNVTEFloat32;
    nvte_ep_initialize(comm, &config);
    size_t bytes = nvte_ep_handle_mem_size(&layer);
    handle_mem = nvte_tensor(aligned_alloc(64, (bytes + 63) / 64 * 64), kNVTEByte, bytes, 0);
    measure(name, "nvte_ep_prepare", nvte_prepare);
    agreements = 0;
    measure(name, "nvte_ep_dispatch", nvte_dispatch);
    if (agreements != 0) {
        fail("%s: a dispatch agrees on the routing once more\n", name);
    }
    measure(name, "nvte_ep_prepare_and_dispatch", nvte_prepare_and_dispatch);
    measure(name, "nvte_ep_combine", nvte_combine);
    measure(name, "nvte_ep_combine_bwd", nvte_combine_bwd);
    measure(name, "nvte_ep_dispatch_bwd", nvte_dispatch_bwd);
    nvte_ep_shutdown();
    free(handle_mem.data.data_ptr);
}

static int take_device(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library != NULL) {
        *(void **)&waits_or_takes = dlsym(library, "fakeWaitsOrTakes");
        *(void **)&copies = dlsym(library, "fakeCopies");
    }
    return waits_or_takes != NULL && copies != NULL && standin_choose_gpu(0);
}

int main(int argc, char **argv)
{
    ncclComm_t comm = NULL;
    limit_ns = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    if (!take_device()) {
        (void)fprintf(stderr, "no fake driver\n");
        return 1;
    }
    for (int t = 0; t < TOKENS; t++) {
        for (int k = 0; k < TOPK; k++) {
            ids[t][k] = (t + k) % EXPERTS;
        }
    }
    standin_comms(1, &comm);
    nccl_ep(comm, NCCL_EP_ALGO_HIGH_THROUGHPUT, NCCL_EP_LAYOUT_FLAT, "nccl_ep HT flat");
    nccl_ep(comm, NCCL_EP_ALGO_HIGH_THROUGHPUT, NCCL_EP_LAYOUT_EXPERT_MAJOR, "nccl_ep HT expert-major");
    nccl_ep(comm, NCCL_EP_ALGO_LOW_LATENCY, NCCL_EP_LAYOUT_RANK_MAJOR, "nccl_ep LL rank-major");
    nccl_ep(comm, NCCL_EP_ALGO_LOW_LATENCY, NCCL_EP_LAYOUT_EXPERT_MAJOR, "nccl_ep LL expert-major");
    nvte_ep(comm);
    return failures != 0;
}
