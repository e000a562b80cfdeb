/* Goal: a layer's step through the NCCL EP face gives each token x * sum over its choices of weight * (1 + expert), in
 * all layouts, whole and in halves, and the backward gives the weights back; wrong uses of groups and handles that live
 * are result codes with a text and leave the next step right; the communicator gathers at creation only.
 *
 * Method: PEs as threads (step.h), with the stand-in for NCCL and the fake driver (src/testing/fake_driver), whose
 * device memory is this machine's. Usage: steps RANKS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/step.h"
#include "weft.h"

/* ---- HT ---- */

enum { MANY_SCALES = 128 }; /* of a row: more than the group has memory for */

/* They move by a call of their own, which has no halves. */
static void many_scales(rig *r, const step *s, ncclEpHandle_t handle, ncclEpDispatchInputs_t *inputs,
                        ncclEpDispatchOutputs_t *outputs, ncclEpDispatchConfig_t *config, size_t rows_there)
{
    static _Alignas(16) unsigned char there[RANKS_MOST][SLOTS + ROWS][MANY_SCALES];
    _Alignas(16) unsigned char scales[MOST][MANY_SCALES];
    size_t in_sizes[2] = {r->tokens, MANY_SCALES};
    size_t out_sizes[3] = {s->row_sizes[0], s->dims == 3 ? s->row_sizes[1] : MANY_SCALES, MANY_SCALES};
    ncclEpTensor_t in = tensor(scales, ncclUint8, 2, in_sizes);
    ncclEpTensor_t out = tensor(there[r->rank], ncclUint8, s->dims, out_sizes);
    ncclEpTensor_t *few_in = inputs->scales;
    ncclEpTensor_t *few_out = outputs->scales;
    size_t came = 0;
    memset(scales, 7, sizeof scales);
    memset(there[r->rank], 0, sizeof there[0]);
    inputs->scales = &in;
    outputs->scales = &out;
    OK(ncclEpDispatch(handle, inputs, outputs, NULL, config, NULL));
    for (size_t row = 0; row < SLOTS + ROWS; row++) {
        came += there[r->rank][row][0] == 7 && there[r->rank][row][MANY_SCALES - 1] == 7;
    }
    r->failures += came != rows_there;
    if (s->dims == 3) {
        config->send_only = 1;
        EXPECT(ncclEpDispatch(handle, inputs, outputs, NULL, config, NULL), ncclInvalidUsage, "call it whole");
        config->send_only = 0;
    }
    inputs->scales = few_in;
    outputs->scales = few_out;
}

/* Rows of two 4-bit numbers a byte, or of fp8 without scales, that say who sent them, and scales that say the same,
 * move as they are, by handle's routing. */
static void forwarded(rig *r, ncclEpLayout_t layout, int is_ll, ncclEpHandle_t handle, size_t rows_there)
{
    enum { BYTES = 64, SCALES = 8 }; /* as of NVFP4 */
    static _Alignas(16) unsigned char there[RANKS_MOST][SLOTS + ROWS][BYTES];
    static _Alignas(16) unsigned char scales_there[RANKS_MOST][SLOTS + ROWS][SCALES];
    _Alignas(16) unsigned char bytes[MOST][BYTES];
    _Alignas(16) unsigned char scales[MOST][SCALES];
    step s = step_of(r, layout, is_ll);
    fill_tensors(r, &s);
    size_t in_sizes[2] = {r->tokens, BYTES};
    size_t in_scale_sizes[2] = {r->tokens, SCALES};
    size_t out_sizes[3] = {s.row_sizes[0], is_ll ? s.row_sizes[1] : BYTES, BYTES};
    size_t out_scale_sizes[3] = {s.row_sizes[0], is_ll ? s.row_sizes[1] : SCALES, SCALES};
    ncclEpTensor_t in = tensor(bytes, ncclFloat4x2, 2, in_sizes);
    ncclEpTensor_t in_scales = tensor(scales, ncclUint8, 2, in_scale_sizes);
    ncclEpTensor_t out = tensor(there[r->rank], ncclFloat4x2, s.dims, out_sizes);
    ncclEpTensor_t out_scales = tensor(scales_there[r->rank], ncclUint8, s.dims, out_scale_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    size_t came = 0;
    for (size_t t = 0; t < r->tokens; t++) {
        memset(bytes[t], 1 + 16 * r->rank + (int)t, BYTES);
        memset(scales[t], 101 + 16 * r->rank + (int)t, SCALES);
    }
    memset(there[r->rank], 0, sizeof there[0]);
    memset(scales_there[r->rank], 0, sizeof scales_there[0]);
    inputs.tokens = &in;
    inputs.scales = &in_scales;
    inputs.topk_weights = &s.weights;
    outputs.tokens = &out;
    outputs.scales = &out_scales;
    config.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
    for (size_t row = 0; row < SLOTS + ROWS; row++) {
        const unsigned char *at = there[r->rank][row];
        came += at[0] != 0;
        for (size_t i = 0; i < BYTES; i++) {
            r->failures += at[i] != at[0];
        }
        for (size_t i = 0; i < SCALES; i++) {
            r->failures += scales_there[r->rank][row][i] != (at[0] != 0 ? at[0] + 100 : 0);
        }
    }
    if (came != rows_there) {
        (void)fprintf(stderr, "rank %d: %zu rows came, not %zu\n", r->rank, came, rows_there);
        r->failures++;
    }
    if (is_ll) { /* in halves */
        config.send_only = 1;
        memset(there[r->rank], 0, sizeof there[0]);
        OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        config.send_only = 0;
        size_t sent = 0;
        for (size_t row = 0; row < SLOTS + ROWS; row++) {
            sent += there[r->rank][row][0] != 0 && scales_there[r->rank][row][0] == there[r->rank][row][0] + 100;
        }
        r->failures += sent != came;
    }
    many_scales(r, &s, handle, &inputs, &outputs, &config, rows_there);
    inputs.scales = outputs.scales = NULL; /* as declared */
    config.quant_recipe = NCCL_EP_DISP_QUANT_NONE;
    for (int i = 0; i < 2; i++) {
        in.datatype = out.datatype = i == 0 ? ncclFloat8e5m2 : ncclUint8;
        memset(there[r->rank], 0, sizeof there[0]);
        OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
        size_t here = 0;
        for (size_t row = 0; row < SLOTS + ROWS; row++) {
            here += there[r->rank][row][BYTES - 1] != 0;
        }
        r->failures += here != came;
    }
    inputs.scales = &in_scales;
    outputs.scales = &out_scales;
    config.quantization_recipe = NCCL_EP_DISPATCH_QUANT_SCALES_FORWARD; /* by its names before the release of 0.2.0 */
    in_scale_sizes[1] = out_scale_sizes[s.dims - 1] = SCALES - 1;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "multiples of 16");
    in_scale_sizes[1] = SCALES;
    out_scale_sizes[s.dims - 1] = 2 * SCALES;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "another width");
}

/* Without counters the routing is agreed on once, by the dispatch: each rank's update is done while the others wait. */
static void update_in_turn(rig *r, ncclEpHandle_t handle, const ncclEpTensor_t *ids)
{
    for (int turn = 0; turn < r->ranks; turn++) {
        if (turn == r->rank) {
            OK(ncclEpUpdateHandle(handle, ids, NULL, NULL));
        }
        (void)pthread_barrier_wait(&turns);
    }
}

static void ht_layout(rig *r, ncclEpLayout_t layout)
{
    size_t one = 1;
    size_t local = LOCAL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    config.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_offsets = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? &offsets : NULL;
    info.expert_counters = &padded;
    choose(r, 1);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    one_step(r, &s, handle, __LINE__);
    s.is_global = 1;
    weigh(r, 4);
    one_step(r, &s, handle, __LINE__);
    backward(r, &s, handle);
    choose(r, 5);
    info.size = NCCL_EP_LAYOUT_INFO_V1_SIZE; /* an older caller's */
    OK(ncclEpUpdateHandle(handle, &s.ids, &info, NULL));
    one_step(r, &s, handle, __LINE__);
    if (layout == NCCL_EP_LAYOUT_FLAT) {
        forwarded(r, layout, 0, handle, (size_t)r->total);
    }
    update_in_turn(r, handle, &s.ids); /* the counters are as they were, and so are the choices */
    one_step(r, &s, handle, __LINE__);
    weigh(r, 0.5f);
    one_step(r, &s, handle, __LINE__);
    update_in_turn(r, handle, &s.ids);
    backward(r, &s, handle); /* which has the weights of the step before */
    padded.datatype = ncclInt64;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, &info, NULL), ncclInvalidArgument, "two types");
    OK(ncclEpHandleDestroy(handle));
    EXPECT(ncclEpHandleDestroy(handle), ncclInvalidArgument, "was destroyed");
}

static void ht(rig *r, unsigned most_rows)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = most_rows;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    int gathers = standin_gathers(r->comm);
    if (r->group == NULL) {
        return;
    }
    ht_layout(r, NCCL_EP_LAYOUT_FLAT);
    ht_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    if (standin_gathers(r->comm) != gathers) {
        (void)fprintf(stderr, "rank %d: the communicator gathered after creation\n", r->rank);
        r->failures++;
    }
    ncclEpGroup_t gone = r->group;
    OK(ncclEpGroupDestroy(r->group));
    EXPECT(ncclEpGroupDestroy(gone), ncclInvalidArgument, "was destroyed");
}

/* ---- LL ---- */

static void wrong_routings(rig *r, const step *good, ncclEpHandle_t handle)
{
    step s = *good;
    size_t sizes[2] = {MOST + 1, TOPK};
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    EXPECT(ncclEpUpdateHandle(handle, NULL, NULL, NULL), ncclInvalidArgument, "NULL");
    s.ids.magic = 7;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "not initialised");
    s.ids = good->ids;
    s.ids.datatype = ncclFloat32;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "has type 7");
    s.ids = good->ids;
    s.ids.sizes = sizes;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "has 9 tokens");
    sizes[0] = 1;
    sizes[1] = TOPK + 1;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "3 choices");
    EXPECT(ncclEpUpdateHandle(handle, &good->ids, &info, NULL), ncclInvalidArgument, "layout_info");
}

static void wrong_dispatches(rig *r, const step *good, ncclEpHandle_t handle)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpTensor_t x = good->x;
    ncclEpTensor_t rows = good->rows;
    ncclEpTensor_t ids = good->row_ids;
    ncclEpTensor_t weights = good->weights;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    EXPECT(ncclEpDispatch(handle, NULL, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "'inputs' is NULL");
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "needed");
    inputs.tokens = &x;
    x.datatype = ncclInt8;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "has type 0");
    x = good->x;
    x.data = NULL;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "neither data");
    x.win_hdl = (ncclWindow_t)&x; /* the stand-in is an older NCCL, which says no address */
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidUsage, "2.29.2");
    x = good->x;
    rows.ndim = 2;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "rows, not");
    rows = good->rows;
    ids.datatype = ncclFloat32;
    outputs.topk_idx = &ids;
    if (good->layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "ncclInt64 or");
    } else {
        EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "expert-major");
    }
    outputs.topk_idx = NULL;
    weights.datatype = ncclFloat16;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "ncclFloat32");
    weights = good->weights;
    config.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "scales");
    config.size = 8;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "8 bytes");
}

static void wrong_handles(rig *r)
{
    size_t bytes = 0;
    ncclEpHandle_t handle = NULL;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    OK(ncclEpHandleMemSize(r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, &bytes, TOPK));
    size_t small = bytes - 1;
    ncclEpTensor_t memory = tensor(aligned_alloc(64, (bytes + 63) / 64 * 64), ncclUint8, 1, &small);
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL), ncclInvalidArgument,
           "layout is 3");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_UNSET, NULL, TOPK, NULL), ncclInvalidArgument, "layout");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, -1, NULL), ncclInvalidArgument, "topk");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, 3, NULL), ncclInvalidArgument, "topk");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, &memory), ncclInvalidArgument,
           "at least");
    config.dispatch_output_per_expert_alignment = 3;
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, &config, TOPK, NULL), ncclInvalidArgument,
           "power of two");
    small = bytes;
    OK(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, &memory));
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    EXPECT(ncclEpDispatch(handle, &inputs, NULL, NULL, NULL, NULL), ncclInvalidUsage, "no routing");
    OK(ncclEpHandleDestroy(handle));
    free(memory.data);
}

static void ll_layout(rig *r, ncclEpLayout_t layout)
{
    step s = step_of(r, layout, 1);
    ncclEpHandle_t handle = NULL;
    fill_tensors(r, &s);
    choose(r, 2);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    one_step(r, &s, handle, __LINE__);
    wrong_routings(r, &s, handle);
    if (r->tokens != 0) { /* whose rows may be NULL */
        wrong_dispatches(r, &s, handle);
    }
    choose(r, 4);
    OK(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL));
    one_step(r, &s, handle, __LINE__);
    if (layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        size_t came = 0;
        for (int source = 0; source < r->ranks; source++) {
            came += (size_t)r->sources[source];
        }
        forwarded(r, layout, 1, handle, came);
    }
    s.in_halves = 1;
    s.is_global = 1;
    one_step(r, &s, handle, __LINE__);
    OK(ncclEpHandleDestroy(handle));
}

static void masks(rig *r)
{
    int mask[RANKS_MOST] = {0};
    int error = 7;
    OK(ncclEpMaskQuery(r->group, mask, NULL));
    for (int i = 0; i < r->ranks; i++) {
        r->failures += mask[i] != 1;
    }
    OK(ncclEpMaskUpdate(r->group, mask, NULL));
    EXPECT(ncclEpMaskUpdate(r->group, NULL, NULL), ncclInvalidArgument, "NULL");
    mask[r->rank] = 0;
    EXPECT(ncclEpMaskUpdate(r->group, mask, NULL), ncclInvalidArgument, "mask itself");
    OK(ncclEpMaskClean(r->group, NULL));
    OK(ncclEpGetAsyncError(r->group, &error));
    EXPECT(ncclEpGetAsyncError(r->group, NULL), ncclInvalidArgument, "NULL");
    OK(ncclEpErrorClear(r->group));
    r->failures += error != 0;
}

static void wrong_groups(rig *r)
{
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.max_token_bytes = 15;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_token_bytes");
    config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.max_dispatch_tokens_per_rank = 0;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_dispatch_tokens_per_rank");
    config = config_of(r, (ncclEpAlgorithm_t)2);
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "algorithm is 2");
    config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = 1;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_recv_tokens_per_rank is 1");
    config.max_recv_tokens_per_rank = 0;
    config.overflow_policy = NCCL_EP_OVERFLOW_DROP;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidUsage, "OVERFLOW_DROP");
}

static void ll(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.size = NCCL_EP_GROUP_CONFIG_V1_SIZE; /* an older caller's: no num_topk */
    config.version = 1;
    r->group = NULL;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    if (r->group == NULL) {
        return;
    }
    if (r->ranks > 1) { /* 16 or all experts is the group's most */
        ll_layout(r, NCCL_EP_LAYOUT_RANK_MAJOR);
        ll_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    }
    OK(ncclEpGroupDestroy(r->group));
    config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    ll_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    wrong_handles(r);
    masks(r);
    OK(ncclEpGroupDestroy(r->group));
}

/* ---- all ---- */

static void all(rig *r)
{
    wrong_groups(r);
    ht(r, NCCL_EP_AUTO);
    ht(r, ROWS);
    ll(r);
    r->tokens = r->rank == r->ranks - 1 ? 0 : r->tokens; /* a rank without any, or nobody has one */
    ht(r, NCCL_EP_AUTO);
    ht(r, ROWS);
    ll(r);
}

int main(int argc, char **argv)
{
    return run_ranks(argc, argv, all);
}
