/* Goal: every wrong use of NCCL EP's interface is a result code with a text that names it, on a group that lives, and
 * changes nothing: a step after all of them is right.
 *
 * Method: one rank on the fake driver, a group of each algorithm and a handle with a routing of each. Rows of a table:
 * a call with one thing wrong, the result, a word of the text. Before each call the last text is another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

#define TOKENS 4
#define TOPK 2
#define HIDDEN 16
#define EXPERTS 4
#define ROWS (TOKENS * TOPK + EXPERTS * 4)

static ncclEpGroup_t ht;
static ncclEpGroup_t ll;
static ncclEpGroup_t unmasked; /* as ll, without enable_mask */
static ncclEpHandle_t flat; /* of ht, with a routing */
static ncclEpHandle_t slots; /* of ll, rank-major, likewise */
static ncclEpHandle_t fresh; /* of ht, without one */
static ncclEpGroup_t direct; /* as ht, with zero-copy ON */
static ncclEpHandle_t windowed; /* of direct, with a routing */
static ncclComm_t comm;
static _Alignas(64) float x[TOKENS][HIDDEN];
static _Alignas(64) float y[TOKENS][HIDDEN];
static _Alignas(64) float received[ROWS][HIDDEN];
static float row_weights[ROWS][TOPK];
static float weights[TOKENS][TOPK];
static int64_t ids[TOKENS][TOPK];
static int32_t counts[EXPERTS];
static char memory[64] __attribute__((aligned(64)));

/* What a good call of either handle is given; a row changes one thing of it. */
typedef struct given {
    size_t token_sizes[2];
    size_t choice_sizes[2];
    size_t row_sizes[3];
    size_t place_sizes[3];
    size_t expert_sizes[1];
    size_t memory_sizes[2];
    ncclEpTensor_t in, out, rows, in_weights, out_weights, idx, experts, handle_mem;
    ncclEpDispatchInputs_t dispatch_in;
    ncclEpDispatchOutputs_t dispatch_out;
    ncclEpDispatchConfig_t dispatch;
    ncclEpCombineInputs_t combine_in;
    ncclEpCombineOutputs_t combine_out;
    ncclEpCombineConfig_t combine;
    ncclEpLayoutInfo_t info;
    ncclEpHandleConfig_t handle;
    ncclEpGroupConfig_t group;
    ncclEpCompleteConfig_t complete;
} given;

static void fill(given *g, int is_ll)
{
    unsigned dims = is_ll ? 3 : 2;
    memset(g, 0, sizeof *g);
    memcpy(g->token_sizes, (size_t[]){TOKENS, HIDDEN}, sizeof g->token_sizes);
    memcpy(g->choice_sizes, (size_t[]){TOKENS, TOPK}, sizeof g->choice_sizes);
    memcpy(g->row_sizes, is_ll ? (size_t[]){1, TOKENS, HIDDEN} : (size_t[]){ROWS, HIDDEN, 0}, sizeof g->row_sizes);
    memcpy(g->place_sizes, is_ll ? (size_t[]){1, TOKENS, TOPK} : (size_t[]){ROWS, TOPK, 0}, sizeof g->place_sizes);
    g->expert_sizes[0] = EXPERTS;
    memcpy(g->memory_sizes, (size_t[]){sizeof memory, 1}, sizeof g->memory_sizes);
    g->in = tensor(x, ncclFloat32, 2, g->token_sizes);
    g->out = tensor(y, ncclFloat32, 2, g->token_sizes);
    g->rows = tensor(received, ncclFloat32, dims, g->row_sizes);
    g->in_weights = tensor(weights, ncclFloat32, 2, g->choice_sizes);
    g->out_weights = tensor(row_weights, ncclFloat32, dims, g->place_sizes);
    g->idx = tensor(ids, ncclInt64, 2, g->choice_sizes);
    g->experts = tensor(counts, ncclInt32, 1, g->expert_sizes);
    g->handle_mem = tensor(memory, ncclUint8, 1, g->memory_sizes);
    g->dispatch_in = NCCL_EP_DISPATCH_INPUTS_INIT;
    g->dispatch_in.tokens = &g->in;
    g->dispatch_in.topk_weights = &g->in_weights;
    g->dispatch_out = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    g->dispatch_out.tokens = &g->rows;
    g->dispatch_out.topk_weights = &g->out_weights;
    g->dispatch = NCCL_EP_DISPATCH_CONFIG_INIT;
    g->combine_in = NCCL_EP_COMBINE_INPUTS_INIT;
    g->combine_in.tokens = &g->rows;
    g->combine_out = NCCL_EP_COMBINE_OUTPUTS_INIT;
    g->combine_out.tokens = &g->out;
    g->combine = NCCL_EP_COMBINE_CONFIG_INIT;
    g->info = NCCL_EP_LAYOUT_INFO_INIT;
    g->handle = NCCL_EP_HANDLE_CONFIG_INIT;
    g->complete = NCCL_EP_COMPLETE_CONFIG_INIT;
    g->group = NCCL_EP_GROUP_CONFIG_INIT;
    g->group.algorithm = is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT;
    g->group.num_experts = EXPERTS;
    g->group.max_dispatch_tokens_per_rank = TOKENS;
    g->group.max_recv_tokens_per_rank = is_ll ? 0 : ROWS;
    g->group.max_token_bytes = sizeof x[0];
    g->group.num_topk = TOPK;
    g->group.enable_mask = (unsigned)is_ll;
}

/* ---- the calls ---- */

static ncclResult_t make_group(given *g)
{
    ncclEpGroup_t made = NULL;
    ncclResult_t result = ncclEpCreateGroup(&made, comm, &g->group);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t make_handle(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpInitHandle(&made, ht, NCCL_EP_LAYOUT_FLAT, &g->handle, TOPK, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t make_handle_there(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpInitHandle(&made, ht, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, &g->handle_mem);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t update_ht(given *g)
{
    return ncclEpUpdateHandle(flat, &g->idx, &g->info, NULL);
}

static ncclResult_t update_ll(given *g)
{
    return ncclEpUpdateHandle(slots, &g->idx, NULL, NULL);
}

static ncclResult_t dispatch_ht(given *g)
{
    return ncclEpDispatch(flat, &g->dispatch_in, &g->dispatch_out, &g->info, &g->dispatch, NULL);
}

static ncclResult_t dispatch_ll(given *g)
{
    return ncclEpDispatch(slots, &g->dispatch_in, &g->dispatch_out, &g->info, &g->dispatch, NULL);
}

static ncclResult_t dispatch_fresh(given *g)
{
    return ncclEpDispatch(fresh, &g->dispatch_in, &g->dispatch_out, NULL, NULL, NULL);
}

static ncclResult_t dispatch_direct(given *g)
{
    return ncclEpDispatch(windowed, &g->dispatch_in, &g->dispatch_out, NULL, &g->dispatch, NULL);
}

static ncclResult_t combine_direct(given *g)
{
    return ncclEpCombine(windowed, &g->combine_in, &g->combine_out, &g->combine, NULL);
}

static ncclResult_t combine_ht(given *g)
{
    return ncclEpCombine(flat, &g->combine_in, &g->combine_out, &g->combine, NULL);
}

static ncclResult_t combine_ll(given *g)
{
    return ncclEpCombine(slots, &g->combine_in, &g->combine_out, &g->combine, NULL);
}

static ncclResult_t update_nothing(given *g)
{
    return ncclEpUpdateHandle(flat, NULL, &g->info, NULL);
}

static ncclResult_t update_ll_with_info(given *g)
{
    return ncclEpUpdateHandle(slots, &g->idx, &g->info, NULL);
}

static ncclResult_t create_handle(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpCreateHandle(&made, ht, NCCL_EP_LAYOUT_FLAT, &g->idx, &g->info, &g->handle, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t create_handle_of_nothing(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpCreateHandle(&made, ht, NCCL_EP_LAYOUT_FLAT, NULL, &g->info, &g->handle, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t create_nowhere(given *g)
{
    return ncclEpCreateHandle(NULL, ht, NCCL_EP_LAYOUT_FLAT, &g->idx, &g->info, &g->handle, NULL);
}

static ncclResult_t init_nowhere(given *g)
{
    return ncclEpInitHandle(NULL, ht, NCCL_EP_LAYOUT_FLAT, &g->handle, TOPK, NULL);
}

static ncclResult_t ask_size_nowhere(given *g)
{
    return ncclEpHandleMemSize(ht, NCCL_EP_LAYOUT_FLAT, &g->handle, NULL, TOPK);
}

static ncclResult_t dispatch_nothing(given *g)
{
    return ncclEpDispatch(flat, NULL, &g->dispatch_out, NULL, &g->dispatch, NULL);
}

static ncclResult_t dispatch_nowhere(given *g)
{
    return ncclEpDispatch(flat, &g->dispatch_in, NULL, NULL, &g->dispatch, NULL);
}

static ncclResult_t combine_nothing(given *g)
{
    return ncclEpCombine(flat, NULL, &g->combine_out, &g->combine, NULL);
}

static ncclResult_t combine_nowhere(given *g)
{
    return ncclEpCombine(flat, &g->combine_in, NULL, &g->combine, NULL);
}

static ncclResult_t combine_fresh(given *g)
{
    return ncclEpCombine(fresh, &g->combine_in, &g->combine_out, &g->combine, NULL);
}

static ncclResult_t ask_masks_nowhere(given *g)
{
    (void)g;
    return ncclEpMaskQuery(ll, NULL, NULL);
}

static ncclResult_t set_no_masks(given *g)
{
    (void)g;
    return ncclEpMaskUpdate(ll, NULL, NULL);
}

static ncclResult_t set_masks_of_ht(given *g)
{
    (void)g;
    return ncclEpMaskUpdate(ht, counts, NULL);
}

static ncclResult_t clean_masks_of_ht(given *g)
{
    (void)g;
    return ncclEpMaskClean(ht, NULL);
}

static ncclResult_t set_own_mask(given *g)
{
    static const int mask[1] = {0};
    (void)g;
    return ncclEpMaskUpdate(ll, mask, NULL);
}

static ncclResult_t ask_size(given *g)
{
    size_t bytes = 0;
    return ncclEpHandleMemSize(ht, NCCL_EP_LAYOUT_FLAT, &g->handle, &bytes, TOPK);
}

static ncclResult_t make_slots_of_no_choices(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpInitHandle(&made, ll, NCCL_EP_LAYOUT_RANK_MAJOR, &g->handle, -1, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t make_slots_of_ht(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpInitHandle(&made, ll, NCCL_EP_LAYOUT_FLAT, &g->handle, TOPK, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t create_of_no_layout(given *g)
{
    ncclEpHandle_t made = NULL;
    ncclResult_t result = ncclEpCreateHandle(&made, ht, NCCL_EP_LAYOUT_UNSET, &g->idx, NULL, NULL, NULL);
    return made == NULL ? result : ncclInternalError;
}

static ncclResult_t clear_error_of_unmasked(given *g)
{
    (void)g;
    return ncclEpErrorClear(unmasked);
}

static ncclResult_t ask_error_nowhere(given *g)
{
    (void)g;
    return ncclEpGetAsyncError(ll, NULL);
}

static ncclResult_t complete_ll(given *g)
{
    return ncclEpComplete(slots, &g->complete, NULL);
}

static ncclResult_t ask_masks_of_ht(given *g)
{
    (void)g;
    return ncclEpMaskQuery(ht, counts, NULL);
}

static ncclResult_t ask_error_of_unmasked(given *g)
{
    (void)g;
    return ncclEpGetAsyncError(unmasked, counts);
}

static ncclResult_t ask_error_of_ht_nowhere(given *g)
{
    (void)g;
    return ncclEpGetAsyncError(ht, NULL);
}

static ncclResult_t ask_size_of_many(given *g)
{
    size_t bytes = 0;
    (void)g;
    return ncclEpHandleMemSize(ht, NCCL_EP_LAYOUT_FLAT, NULL, &bytes, TOPK + 1);
}

static ncclResult_t ask_size_of_slots(given *g)
{
    size_t bytes = 0;
    (void)g;
    return ncclEpHandleMemSize(ht, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, &bytes, TOPK);
}

/* ---- what is wrong ---- */

#define WRONG(name, what)                                                                                              \
    static void name(given *g)                                                                                         \
    {                                                                                                                  \
        what;                                                                                                          \
    }
WRONG(nothing, (void)g)
WRONG(older_than_first, g->group.size = 12)
WRONG(other_magic, g->group.magic = 5)
WRONG(no_experts, g->group.num_experts = 0)
WRONG(no_tokens, g->group.max_dispatch_tokens_per_rank = 0)
WRONG(odd_bytes, g->group.max_token_bytes = 24)
WRONG(other_policy, g->group.overflow_policy = (ncclEpOverflowPolicy_t)9)
WRONG(other_zero_copy, g->group.zero_copy = (ncclEpZeroCopyMode_t)9)
WRONG(half_alloc, g->group.alloc.free_fn = (ncclEpFreeFn_t)(void *)abort)
WRONG(small_handle, g->handle.size = 8)
WRONG(odd_alignment, g->handle.dispatch_output_per_expert_alignment = 6)
WRONG(wide_alignment, g->handle.dispatch_output_per_expert_alignment = 2048)
WRONG(little_memory, (void)g)
WRONG(typed_memory, g->handle_mem.datatype = ncclInt32)
WRONG(float_ids, g->idx.datatype = ncclFloat32)
WRONG(flat_ids, g->idx.ndim = 1)
WRONG(no_dimensions, g->idx.sizes = NULL)
WRONG(many_tokens, g->choice_sizes[0] = TOKENS + 1)
WRONG(many_choices, g->choice_sizes[1] = TOPK + 1)
WRONG(null_ids, g->idx.data = NULL)
WRONG(short_tensor, g->idx.size = 4)
WRONG(float_counts, (g->experts.datatype = ncclFloat32, g->info.expert_counters = &g->experts))
WRONG(few_counts, (g->expert_sizes[0] = 1, g->info.expert_counters = &g->experts))
WRONG(small_info, g->info.size = 8)
WRONG(no_rows_in, g->dispatch_in.tokens = NULL)
WRONG(no_rows_out, g->dispatch_out.tokens = NULL)
WRONG(small_in, g->dispatch_in.size = 8)
WRONG(small_out, g->dispatch_out.size = 8)
WRONG(few_rows_in, g->token_sizes[0] = TOKENS - 1)
WRONG(other_width, g->row_sizes[1] = HIDDEN / 2)
WRONG(wider_than_group, (g->token_sizes[1] = 2 * HIDDEN, g->row_sizes[1] = 2 * HIDDEN))
WRONG(int_rows, g->in.datatype = ncclInt32)
WRONG(odd_fp8_rows, (g->in.datatype = g->rows.datatype = ncclFloat8e4m3, g->token_sizes[1] = g->row_sizes[1] = 8))
WRONG(two_types, g->rows.datatype = ncclBfloat16)
WRONG(null_rows, g->in.data = NULL)
WRONG(odd_rows, g->in.data = (char *)x + 4)
WRONG(no_weights, g->dispatch_in.topk_weights = NULL)
WRONG(half_weights, g->in_weights.datatype = ncclFloat16)
WRONG(few_weights, g->place_sizes[0] = ROWS - 1)
WRONG(float_row_ids, (g->out_weights.datatype = ncclFloat32, g->dispatch_out.topk_idx = &g->out_weights))
WRONG(send_only, g->dispatch.send_only = 1)
WRONG(rounded, (g->in.datatype = g->rows.datatype = ncclFloat8e4m3, g->dispatch.round_scales = 1,
                g->dispatch_in.scales = &g->in_weights, g->dispatch_out.scales = &g->out_weights,
                g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_FWD))
WRONG(other_recipe, g->dispatch.quant_recipe = (ncclEpDispQuant_t)7)
WRONG(scales_missing, g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_FWD)
WRONG(quantised_ht,
      (g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_DS_FP8E3M4, g->dispatch_out.scales = &g->out_weights))
WRONG(few_rows_out, g->row_sizes[0] = g->place_sizes[0] = ROWS - 1)
WRONG(other_bytes,
      (g->in.datatype = ncclFloat8e4m3, g->rows.datatype = ncclFloat8e5m2, g->dispatch_in.scales = &g->in_weights,
       g->dispatch_out.scales = &g->out_weights, g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_FWD))
WRONG(half_in_window, (g->rows.win_hdl = (ncclWindow_t)(void *)g, g->dispatch_in.scales = &g->in_weights,
                       g->dispatch_out.scales = &g->out_weights, g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_FWD))
WRONG(other_kind, g->info.recv_topk_idx_kind = (ncclEpExpertIdKind_t)5)
WRONG(backward_with_weights, g->dispatch.pass_direction = NCCL_EP_BWD_PASS)
WRONG(other_direction, g->dispatch.pass_direction = g->combine.pass_direction = (ncclEpPassDir_t)2)
WRONG(other_sums, g->combine.quant_recipe = (ncclEpCombQuant_t)9)
WRONG(few_slots, g->row_sizes[1] = TOKENS - 1)
WRONG(no_results, g->combine_in.tokens = NULL)
WRONG(no_sums, g->combine_out.tokens = NULL)
WRONG(few_sums, g->token_sizes[0] = TOKENS - 1)
WRONG(nvfp4, g->combine.quant_recipe = NCCL_EP_COMB_QUANT_NVFP4)
WRONG(combine_send_only, g->combine.send_only = 1)
WRONG(combine_weights, g->combine_in.topk_weights = &g->out_weights)
WRONG(combine_backward, g->combine.pass_direction = NCCL_EP_BWD_PASS)
WRONG(small_combine, g->combine.size = 8)
WRONG(small_complete, g->complete.size = 4)
WRONG(other_algorithm, g->group.algorithm = (ncclEpAlgorithm_t)2)
WRONG(no_bytes, g->group.max_token_bytes = 0)
WRONG(few_received, g->group.max_recv_tokens_per_rank = TOKENS - 1)
WRONG(drop_of_no_limit,
      (g->group.max_recv_tokens_per_rank = NCCL_EP_AUTO, g->group.overflow_policy = NCCL_EP_OVERFLOW_DROP))
WRONG(square_memory, g->handle_mem.ndim = 2)
WRONG(odd_ids, g->idx.magic = NCCL_EP_MAGIC)
WRONG(two_counts,
      (g->experts.datatype = ncclInt64, g->info.expert_counters = &g->experts, g->out_weights.datatype = ncclInt32,
       g->out_weights.ndim = 1, g->place_sizes[0] = 1, g->info.recv_total_counter = &g->out_weights))
WRONG(int_weights, g->in_weights.datatype = ncclInt32)
WRONG(many_tokens_in, g->token_sizes[0] = TOKENS + 1)
WRONG(few_source_counts, (g->expert_sizes[0] = 2, g->info.src_rank_counters = &g->experts))
WRONG(small_dispatch, g->dispatch.size = 8)
WRONG(small_combine_in, g->combine_in.size = 8)
WRONG(small_combine_out, g->combine_out.size = 8)
WRONG(int_results, g->rows.datatype = ncclInt32)
WRONG(int_sums, g->out.datatype = ncclInt64)
WRONG(null_sums, g->out.data = NULL)
WRONG(many_sums, g->token_sizes[0] = TOKENS + 1)
WRONG(many_dimensions, g->in.ndim = 1000)
WRONG(endless_rows, g->row_sizes[0] = SIZE_MAX)
WRONG(endless_ids, g->choice_sizes[0] = SIZE_MAX / 2)
WRONG(deep_ids, (g->idx.ndim = 3, g->idx.sizes = g->row_sizes))
WRONG(no_choices, g->choice_sizes[1] = 0)
WRONG(more_choices_than_possible, g->group.num_topk = 65536)
WRONG(negative_choices, g->group.num_topk = 1u << 31)
WRONG(negative_sms, g->group.max_num_sms = UINT32_MAX)
WRONG(endless_tokens, g->group.max_dispatch_tokens_per_rank = g->group.max_recv_tokens_per_rank = INT32_MAX)
WRONG(endless_bytes, g->group.max_token_bytes = INT32_MAX / 16 * 16)
WRONG(endless_row, g->group.max_token_bytes = UINT32_MAX)
WRONG(endless_experts, g->group.num_experts = UINT32_MAX)
WRONG(odd_info, g->info.magic = 1)
WRONG(odd_in, g->dispatch_in.magic = 2)
WRONG(odd_out, g->dispatch_out.magic = 3)
WRONG(odd_dispatch, g->dispatch.magic = 4)
WRONG(odd_combine, g->combine.magic = 5)
WRONG(odd_combine_in, g->combine_in.magic = 6)
WRONG(odd_combine_out, g->combine_out.magic = 7)
WRONG(odd_complete, g->complete.magic = 8)
WRONG(odd_handle, g->handle.magic = 9)
WRONG(short_rows, g->rows.size = 47)
WRONG(half_row_weights, g->out_weights.datatype = ncclFloat16)
WRONG(square_counts, (g->experts.ndim = 2, g->experts.sizes = g->choice_sizes, g->info.expert_counters = &g->experts))
WRONG(no_total, (g->expert_sizes[0] = 0, g->info.recv_total_counter = &g->experts))
WRONG(null_counts, (g->experts.data = NULL, g->info.expert_counters = &g->experts))
WRONG(scales_of_none, (g->dispatch_in.scales = &g->in_weights, g->dispatch_out.scales = &g->out_weights))
WRONG(scales_of_sums, g->combine_in.scales = &g->out_weights)
WRONG(other_sum_width, g->token_sizes[1] = HIDDEN / 2)
WRONG(memory_off, g->handle_mem.data = memory + 8)

/* Rows of fp8 with a scale each, and one thing wrong with those. */
#define FORWARDED(what)                                                                                                \
    (g->in.datatype = g->rows.datatype = ncclFloat8e4m3, g->dispatch_in.scales = &g->in_weights,                       \
     g->dispatch_out.scales = &g->out_weights, g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_FWD, what)
WRONG(few_scales, FORWARDED((g->handle_mem = g->in_weights, g->handle_mem.sizes = g->row_sizes,
                             g->dispatch_in.scales = &g->handle_mem)))
WRONG(flat_scales, FORWARDED(g->in_weights.ndim = g->out_weights.ndim = 1))
WRONG(long_scales, FORWARDED(g->in_weights.datatype = g->out_weights.datatype = ncclInt64))
WRONG(other_scales, FORWARDED(g->in_weights.datatype = ncclUint8))
WRONG(no_scales_out, FORWARDED(g->dispatch_out.scales = NULL))
WRONG(no_scales_in, FORWARDED(g->dispatch_in.scales = NULL))
WRONG(null_scales,
      FORWARDED((g->handle_mem = g->in_weights, g->handle_mem.data = NULL, g->dispatch_in.scales = &g->handle_mem)))
WRONG(odd_scales, FORWARDED((g->handle_mem = g->in_weights, g->handle_mem.data = (char *)weights + 1,
                             g->dispatch_in.scales = &g->handle_mem)))

WRONG(no_window, (g->handle_mem.data = NULL, g->handle_mem.win_hdl = (ncclWindow_t)(void *)g))
WRONG(null_memory, g->handle_mem.data = NULL)
WRONG(shapeless_memory, g->handle_mem.sizes = NULL)
WRONG(odd_memory, g->handle_mem.magic = 0)
WRONG(rows_in_line, g->in.ndim = 1)
WRONG(received_in_line, g->rows.ndim = 1)
WRONG(sums_in_line, g->out.ndim = 1)
WRONG(few_places, g->place_sizes[1] = TOKENS - 1)
WRONG(few_ids, (g->place_sizes[1] = TOKENS - 1, g->out_weights.datatype = ncclInt32,
                g->dispatch_out.topk_idx = &g->out_weights, g->dispatch_out.topk_weights = NULL))
WRONG(few_weights_in, g->choice_sizes[0] = TOKENS - 1)
WRONG(null_weights_in, g->in_weights.data = NULL)
WRONG(null_weights_out, g->out_weights.data = NULL)
WRONG(no_scales_made, g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_DS_FP8E3M4)
WRONG(scales_of_made, (g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_DS_FP8E3M4, g->dispatch_in.scales = &g->in_weights,
                       g->dispatch_out.scales = &g->out_weights))
WRONG(made_of_floats,
      (g->dispatch.quant_recipe = NCCL_EP_DISP_QUANT_DS_FP8E3M4, g->dispatch_out.scales = &g->out_weights))
WRONG(backward_with_ids, (g->dispatch.pass_direction = NCCL_EP_BWD_PASS, g->dispatch_in.topk_weights = NULL,
                          g->dispatch_out.topk_weights = NULL, g->dispatch_out.topk_idx = &g->idx))
WRONG(backward_to_nothing, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->combine_in.topk_weights = &g->out_weights))
WRONG(backward_of_halves, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->out_weights.datatype = ncclFloat16,
                           g->combine_in.topk_weights = &g->out_weights, g->combine_out.topk_weights = &g->in_weights))
WRONG(backward_to_few, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->combine_in.topk_weights = &g->out_weights,
                        g->combine_out.topk_weights = &g->in_weights, g->choice_sizes[0] = TOKENS - 1))
WRONG(most_tokens, g->group.max_dispatch_tokens_per_rank = UINT32_MAX)
WRONG(half_free, g->group.alloc.alloc_fn = (ncclEpAllocFn_t)(void *)abort)

typedef struct use {
    ncclResult_t (*call)(given *g);
    void (*spoil)(given *g);
    int is_ll;
    ncclResult_t wanted;
    const char *word;
} use;

static const use uses[] = {
    {make_group, older_than_first, 0, ncclInvalidArgument, "12 bytes"},
    {make_group, other_magic, 0, ncclInvalidArgument, "magic number 0x5"},
    {make_group, no_experts, 0, ncclInvalidArgument, "num_experts is 0"},
    {make_group, no_tokens, 0, ncclInvalidArgument, "max_dispatch_tokens_per_rank is 0"},
    {make_group, odd_bytes, 0, ncclInvalidArgument, "max_token_bytes is 24"},
    {make_group, other_policy, 0, ncclInvalidArgument, "overflow_policy 9"},
    {make_group, other_zero_copy, 0, ncclInvalidArgument, "zero_copy is 9"},
    {make_group, half_alloc, 0, ncclInvalidUsage, "both or neither"},
    {make_handle, small_handle, 0, ncclInvalidArgument, "8 bytes"},
    {make_handle, odd_alignment, 0, ncclInvalidArgument, "alignment is 6"},
    {make_handle, wide_alignment, 0, ncclInvalidArgument, "alignment is 2048"},
    {make_handle_there, little_memory, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, typed_memory, 0, ncclInvalidArgument, "ncclUint8"},
    {ask_size_of_many, nothing, 0, ncclInvalidArgument, "num_topk is 3"},
    {ask_size_of_slots, nothing, 0, ncclInvalidArgument, "layout is 2"},
    {ask_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {ask_error_of_unmasked, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {ask_error_of_ht_nowhere, nothing, 0, ncclInvalidArgument, "'error_out' is NULL"},
    {update_ht, float_ids, 0, ncclInvalidArgument, "has type 7"},
    {update_ht, flat_ids, 0, ncclInvalidArgument, "two dimensions"},
    {update_ht, no_dimensions, 0, ncclInvalidArgument, "has no dimensions"},
    {update_ht, many_tokens, 0, ncclInvalidArgument, "has 5 tokens"},
    {update_ht, many_choices, 0, ncclInvalidArgument, "has 3 choices"},
    {update_ll, many_choices, 1, ncclInvalidArgument, "has 3 choices"},
    {update_ht, null_ids, 0, ncclInvalidArgument, "neither data nor a window"},
    {update_ht, short_tensor, 0, ncclInvalidArgument, "4 bytes"},
    {update_ht, float_counts, 0, ncclInvalidArgument, "ncclInt32 or ncclInt64"},
    {update_ht, few_counts, 0, ncclInvalidArgument, "dimension 0 of tensor 'expert_counters' is 1"},
    {update_ht, small_info, 0, ncclInvalidArgument, "8 bytes"},
    {dispatch_fresh, nothing, 0, ncclInvalidUsage, "no routing"},
    {dispatch_ht, no_rows_in, 0, ncclInvalidArgument, "'inputs.tokens' is needed"},
    {dispatch_ht, no_rows_out, 0, ncclInvalidArgument, "'outputs.tokens' is needed"},
    {dispatch_ht, small_in, 0, ncclInvalidArgument, "'inputs' says that it has 8 bytes"},
    {dispatch_ht, small_out, 0, ncclInvalidArgument, "'outputs' says that it has 8 bytes"},
    {dispatch_ht, few_rows_in, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {dispatch_ht, other_width, 0, ncclInvalidArgument, "give the same"},
    {dispatch_ht, wider_than_group, 0, ncclInvalidArgument, "row_bytes_max"},
    {dispatch_ht, int_rows, 0, ncclInvalidArgument, "has type 2"},
    {dispatch_ht, odd_fp8_rows, 0, ncclInvalidArgument, "rows of 8 bytes"},
    {dispatch_ht, two_types, 0, ncclInvalidArgument, "another type"},
    {dispatch_ht, null_rows, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ht, odd_rows, 0, ncclInvalidArgument, "aligned to 16"},
    {dispatch_ht, no_weights, 0, ncclInvalidArgument, "topk_weights is needed"},
    {dispatch_ht, half_weights, 0, ncclInvalidArgument, "ncclFloat32"},
    {dispatch_ht, few_weights, 0, ncclInvalidArgument, "'outputs.topk_weights' has 23 rows"},
    {dispatch_ht, float_row_ids, 0, ncclInvalidArgument, "ncclInt64 or ncclInt32"},
    {dispatch_ht, send_only, 0, ncclInvalidUsage, "send_only is of LL"},
    {dispatch_ht, rounded, 0, ncclInvalidArgument, "round_scales"},
    {dispatch_ht, other_recipe, 0, ncclInvalidArgument, "quant_recipe is 7"},
    {dispatch_ht, scales_missing, 0, ncclInvalidArgument, "scales given are not those"},
    {dispatch_ht, quantised_ht, 0, ncclInvalidArgument, "is of LL"},
    {dispatch_ht, few_rows_out, 0, ncclInvalidArgument, "max_recv_tokens_per_rank, 24"},
    {dispatch_ht, other_bytes, 0, ncclInvalidArgument, "another type"},
    {dispatch_ht, half_in_window, 0, ncclInvalidArgument, "one is in a window"},
    {dispatch_direct, nothing, 0, ncclInvalidArgument, "'outputs.tokens' is in no window"},
    {combine_direct, nothing, 0, ncclInvalidArgument, "'inputs.tokens' is in no window"},
    {dispatch_ht, other_kind, 0, ncclInvalidArgument, "recv_topk_idx_kind is 5"},
    {dispatch_ht, backward_with_weights, 0, ncclInvalidArgument, "takes neither"},
    {dispatch_ht, other_direction, 0, ncclInvalidArgument, "pass_direction is 2"},
    {combine_ht, other_direction, 0, ncclInvalidArgument, "pass_direction is 2"},
    {dispatch_ll, other_direction, 1, ncclInvalidUsage, "pass_direction is 2; in LL give"},
    {combine_ll, other_direction, 1, ncclInvalidUsage, "pass_direction is 2; in LL give"},
    {combine_ll, combine_backward, 1, ncclInvalidUsage, "pass_direction is 1; in LL give"},
    {combine_ht, other_sums, 0, ncclInvalidArgument, "quant_recipe is 9"},
    {update_ht, other_kind, 0, ncclInvalidArgument, "recv_topk_idx_kind is 5"},
    {dispatch_ll, few_slots, 1, ncclInvalidArgument, "has 3 rows, not 4"},
    {combine_ht, no_results, 0, ncclInvalidArgument, "'inputs.tokens' is needed"},
    {combine_ht, no_sums, 0, ncclInvalidArgument, "'outputs.tokens' is needed"},
    {combine_ht, few_sums, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {combine_ht, nvfp4, 0, ncclInvalidUsage, "compute capability 10.0"},
    {combine_ht, combine_send_only, 0, ncclInvalidUsage, "send_only is of LL"},
    {combine_ht, combine_weights, 0, ncclInvalidArgument, "of NCCL_EP_BWD_PASS"},
    {combine_ht, combine_backward, 0, ncclInvalidArgument, "needed with NCCL_EP_BWD_PASS"},
    {combine_ht, small_combine, 0, ncclInvalidArgument, "8 bytes"},
    {complete_ll, small_complete, 1, ncclInvalidArgument, "4 bytes"},
    {make_group, other_algorithm, 0, ncclInvalidArgument, "algorithm is 2"},
    {make_group, no_bytes, 0, ncclInvalidArgument, "max_token_bytes is 0"},
    {make_group, few_received, 0, ncclInvalidArgument, "max_recv_tokens_per_rank is 3"},
    {make_group, drop_of_no_limit, 0, ncclInvalidUsage, "NCCL_EP_OVERFLOW_DROP needs"},
    {make_handle_there, square_memory, 0, ncclInvalidArgument, "handle_mem has 2 dimensions"},
    {init_nowhere, nothing, 0, ncclInvalidArgument, "'handle' is NULL"},
    {create_nowhere, nothing, 0, ncclInvalidArgument, "'handle' is NULL"},
    {create_handle_of_nothing, nothing, 0, ncclInvalidArgument, "topk_idx is NULL"},
    {create_handle, flat_ids, 0, ncclInvalidArgument, "two dimensions"},
    {create_handle, float_ids, 0, ncclInvalidArgument, "has type 7"},
    {create_handle, many_tokens, 0, ncclInvalidArgument, "has 5 tokens"},
    {create_handle, many_choices, 0, ncclInvalidArgument, "num_topk is 3"},
    {create_handle, small_handle, 0, ncclInvalidArgument, "8 bytes"},
    {ask_size_nowhere, nothing, 0, ncclInvalidArgument, "'size_out' is NULL"},
    {update_nothing, nothing, 0, ncclInvalidArgument, "topk_idx is NULL"},
    {update_ht, odd_ids, 0, ncclInvalidArgument, "not initialised"},
    {update_ht, two_counts, 0, ncclInvalidArgument, "counters of two types"},
    {update_ll_with_info, nothing, 1, ncclInvalidArgument, "it comes with the dispatch"},
    {update_ll, many_tokens, 1, ncclInvalidArgument, "has 5 tokens"},
    {dispatch_nothing, nothing, 0, ncclInvalidArgument, "'inputs' is NULL"},
    {dispatch_nowhere, nothing, 0, ncclInvalidArgument, "'outputs' is NULL"},
    {dispatch_ht, int_weights, 0, ncclInvalidArgument, "ncclFloat32"},
    {dispatch_ht, many_tokens_in, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {dispatch_ht, small_dispatch, 0, ncclInvalidArgument, "8 bytes"},
    {dispatch_ll, few_source_counts, 1, ncclInvalidArgument, "'src_rank_counters' is 2, not 1"},
    {dispatch_ll, few_rows_in, 1, ncclInvalidArgument, "the routing has 4 tokens"},
    {dispatch_ll, no_weights, 1, ncclInvalidArgument, "topk_weights is needed"},
    {combine_nothing, nothing, 0, ncclInvalidArgument, "'inputs' is NULL"},
    {combine_nowhere, nothing, 0, ncclInvalidArgument, "'outputs' is NULL"},
    {combine_fresh, nothing, 0, ncclInvalidUsage, "no routing"},
    {combine_ht, small_combine_in, 0, ncclInvalidArgument, "8 bytes"},
    {combine_ht, small_combine_out, 0, ncclInvalidArgument, "8 bytes"},
    {combine_ht, int_results, 0, ncclInvalidArgument, "has type 2"},
    {combine_ht, int_sums, 0, ncclInvalidArgument, "has type 4"},
    {combine_ht, null_sums, 0, ncclInvalidArgument, "neither data nor a window"},
    {combine_ht, many_sums, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {combine_ll, few_slots, 1, ncclInvalidArgument, "has 3 rows, not 4"},
    {combine_ll, few_sums, 1, ncclInvalidArgument, "the routing has 4 tokens"},
    {ask_masks_nowhere, nothing, 1, ncclInvalidArgument, "'mask_status' is NULL"},
    {set_no_masks, nothing, 1, ncclInvalidArgument, "'mask' is NULL"},
    {ask_error_nowhere, nothing, 1, ncclInvalidArgument, "'error_out' is NULL"},
    {set_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {clean_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {clear_error_of_unmasked, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {dispatch_ht, many_dimensions, 0, ncclInvalidArgument, "has 1000 dimensions"},
    {dispatch_ht, endless_rows, 0, ncclInvalidArgument, "which no memory holds"},
    {combine_ht, endless_rows, 0, ncclInvalidArgument, "which no memory holds"},
    {update_ht, endless_ids, 0, ncclInvalidArgument, "which no memory holds"},
    {create_handle, endless_ids, 0, ncclInvalidArgument, "which no memory holds"},
    {update_ht, deep_ids, 0, ncclInvalidArgument, "two dimensions"},
    {update_ht, no_choices, 0, ncclInvalidArgument, "has 0 choices"},
    {create_handle, no_choices, 0, ncclInvalidArgument, "has 0 choices"},
    {make_group, more_choices_than_possible, 0, ncclInvalidArgument, "topk_max is 65536"},
    {make_group, negative_choices, 0, ncclInvalidArgument, "num_topk is 2147483648"},
    {make_group, negative_sms, 0, ncclInvalidArgument, "max_num_sms 4294967295"},
    {make_group, endless_tokens, 0, ncclInvalidArgument, "tokens_max 2147483647"},
    {make_group, endless_bytes, 0, ncclInvalidArgument, "row_bytes_max is 2147483632"},
    {make_group, endless_row, 0, ncclInvalidArgument, "max_token_bytes is 4294967295"},
    {make_group, endless_experts, 0, ncclInvalidArgument, "num_experts is 4294967295"},
    {update_ht, odd_info, 0, ncclInvalidArgument, "magic number 0x1"},
    {dispatch_ht, odd_info, 0, ncclInvalidArgument, "magic number 0x1"},
    {dispatch_ht, odd_in, 0, ncclInvalidArgument, "magic number 0x2"},
    {dispatch_ht, odd_out, 0, ncclInvalidArgument, "magic number 0x3"},
    {dispatch_ht, odd_dispatch, 0, ncclInvalidArgument, "magic number 0x4"},
    {combine_ht, odd_combine, 0, ncclInvalidArgument, "magic number 0x5"},
    {combine_ht, odd_combine_in, 0, ncclInvalidArgument, "magic number 0x6"},
    {combine_ht, odd_combine_out, 0, ncclInvalidArgument, "magic number 0x7"},
    {complete_ll, odd_complete, 1, ncclInvalidArgument, "magic number 0x8"},
    {make_handle, odd_handle, 0, ncclInvalidArgument, "magic number 0x9"},
    {dispatch_ht, short_rows, 0, ncclInvalidArgument, "47 bytes"},
    {dispatch_ht, half_row_weights, 0, ncclInvalidArgument, "ncclFloat32"},
    {update_ht, square_counts, 0, ncclInvalidArgument, "has 2 dimensions, not 1"},
    {update_ht, no_total, 0, ncclInvalidArgument, "'recv_total_counter' is 0, not 1"},
    {update_ht, null_counts, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ht, scales_of_none, 0, ncclInvalidArgument, "not those of config.quant_recipe 0"},
    {combine_ht, scales_of_sums, 0, ncclInvalidArgument, "of NCCL_EP_COMB_QUANT_NVFP4"},
    {combine_ht, other_sum_width, 0, ncclInvalidArgument, "give the same"},
    {make_handle_there, memory_off, 0, ncclInvalidArgument, "at least"},
    {dispatch_ht, few_scales, 0, ncclInvalidArgument, "has 24 rows"},
    {dispatch_ht, flat_scales, 0, ncclInvalidArgument, "give one a token"},
    {dispatch_ht, long_scales, 0, ncclInvalidArgument, "scales are floats or ncclUint8"},
    {dispatch_ht, other_scales, 0, ncclInvalidArgument, "another type"},
    {dispatch_ht, no_scales_out, 0, ncclInvalidArgument, "not those of config.quant_recipe 1"},
    {dispatch_ht, no_scales_in, 0, ncclInvalidArgument, "not those of config.quant_recipe 1"},
    {dispatch_ht, null_scales, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ht, odd_scales, 0, ncclInvalidArgument, "align"},
    {set_own_mask, nothing, 1, ncclInvalidArgument, "cannot mask itself"},
    {ask_size, small_handle, 0, ncclInvalidArgument, "8 bytes"},
    {ask_size, odd_alignment, 0, ncclInvalidArgument, "alignment is 6"},
    {make_slots_of_no_choices, nothing, 1, ncclInvalidArgument, "num_topk is -1"},
    {make_slots_of_ht, nothing, 1, ncclInvalidArgument, "layout is 3"},
    {create_of_no_layout, nothing, 0, ncclInvalidArgument, "layout is 0"},
    {make_handle_there, no_window, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, null_memory, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, shapeless_memory, 0, ncclInvalidArgument, "has no dimensions"},
    {make_handle_there, odd_memory, 0, ncclInvalidArgument, "not initialised"},
    {dispatch_ht, rows_in_line, 0, ncclInvalidArgument, "'inputs.tokens' is not rows"},
    {dispatch_ht, received_in_line, 0, ncclInvalidArgument, "'outputs.tokens' is not rows"},
    {combine_ht, received_in_line, 0, ncclInvalidArgument, "'inputs.tokens' is not rows"},
    {combine_ht, sums_in_line, 0, ncclInvalidArgument, "'outputs.tokens' is not rows"},
    {update_ll, float_ids, 1, ncclInvalidArgument, "has type 7"},
    {update_ll, no_choices, 1, ncclInvalidArgument, "has 0 choices"},
    {update_ll, null_ids, 1, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ll, few_places, 1, ncclInvalidArgument, "'outputs.topk_weights' has 6 elements, not 8"},
    {dispatch_ll, few_ids, 1, ncclInvalidArgument, "'outputs.topk_idx' has 6 elements, not 8"},
    {dispatch_ll, few_weights_in, 1, ncclInvalidArgument, "'inputs.topk_weights' has 6 elements, not 8"},
    {dispatch_ht, few_weights_in, 0, ncclInvalidArgument, "'inputs.topk_weights' has 6 elements, not 8"},
    {dispatch_ht, null_weights_in, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ht, null_weights_out, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ll, no_scales_made, 1, ncclInvalidArgument, "not those of config.quant_recipe 2"},
    {dispatch_ll, scales_of_made, 1, ncclInvalidArgument, "not those of config.quant_recipe 2"},
    {dispatch_ll, made_of_floats, 1, ncclInvalidArgument, "from ncclBfloat16"},
    {dispatch_ll, other_kind, 1, ncclInvalidArgument, "recv_topk_idx_kind is 5"},
    {dispatch_ll, other_recipe, 1, ncclInvalidArgument, "quant_recipe is 7"},
    {dispatch_ht, backward_with_ids, 0, ncclInvalidArgument, "takes neither"},
    {combine_ll, combine_weights, 1, ncclInvalidArgument, "of NCCL_EP_BWD_PASS"},
    {combine_ll, no_results, 1, ncclInvalidArgument, "'inputs.tokens' is needed"},
    {combine_ll, other_sums, 1, ncclInvalidArgument, "quant_recipe is 9"},
    {combine_ht, backward_to_nothing, 0, ncclInvalidArgument, "outputs.topk_weights is needed"},
    {combine_ht, backward_of_halves, 0, ncclInvalidArgument, "ncclFloat32"},
    {combine_ht, backward_to_few, 0, ncclInvalidArgument, "'outputs.topk_weights' has 6 elements, not 8"},
    {make_group, most_tokens, 0, ncclInvalidArgument, "max_dispatch_tokens_per_rank is 4294967295"},
    {make_group, half_free, 0, ncclInvalidUsage, "both or neither"},
};

static int failures;

#undef OK
#define OK(call) expect(&failures, 0, __LINE__, call, ncclSuccess, NULL)

static void run(size_t row)
{
    const use *one = &uses[row];
    given g;
    fill(&g, one->is_ll);
    one->spoil(&g);
    (void)weft_last_error_set(WEFT_ERR_STATE, "before");
    ncclResult_t result = one->call(&g);
    if (result != one->wanted || strstr(weft_last_error(), one->word) == NULL ||
        strchr(weft_last_error(), ':') == NULL) {
        (void)fprintf(stderr, "row %zu: result %d, wanted %d with \"%s\"; text \"%s\"\n", row, (int)result,
                      (int)one->wanted, one->word, weft_last_error());
        failures++;
    }
}

/* The experts do nothing: each token comes back once for its one rank. */
static void step(ncclEpHandle_t handle, int is_ll)
{
    given g;
    fill(&g, is_ll);
    memset(y, 0xff, sizeof y);
    OK(ncclEpUpdateHandle(handle, &g.idx, NULL, NULL));
    OK(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, is_ll ? &g.info : NULL, &g.dispatch, NULL));
    OK(ncclEpCombine(handle, &g.combine_in, &g.combine_out, &g.combine, NULL));
    OK(ncclEpComplete(handle, &g.complete, NULL));
    if (memcmp(x, y, sizeof x) != 0) {
        (void)fprintf(stderr, "a step of %s is wrong\n", is_ll ? "LL" : "HT");
        failures++;
    }
}

static void refuse(int line, ncclResult_t result, ncclResult_t wanted, const char *word)
{
    if (result != wanted || strstr(weft_last_error(), word) == NULL) {
        (void)fprintf(stderr, "line %d: result %d, wanted %d with \"%s\"; text \"%s\"\n", line, (int)result,
                      (int)wanted, word, weft_last_error());
        failures++;
    }
}

#define REFUSED(call, wanted, word) refuse(__LINE__, call, wanted, word)

/* Between the halves of a call its handle takes ncclEpComplete only. */
static void try_between_halves(void)
{
    static const char word[] = "ncclEpComplete of the handle is still to come";
    given g;
    fill(&g, 1);
    g.dispatch.send_only = 1;
    OK(ncclEpUpdateHandle(slots, &g.idx, NULL, NULL));
    OK(ncclEpDispatch(slots, &g.dispatch_in, &g.dispatch_out, &g.info, &g.dispatch, NULL));
    REFUSED(update_ll(&g), ncclInvalidUsage, word);
    REFUSED(dispatch_ll(&g), ncclInvalidUsage, word);
    REFUSED(combine_ll(&g), ncclInvalidUsage, word);
    REFUSED(ncclEpHandleDestroy(slots), ncclInvalidUsage, word);
    OK(complete_ll(&g));
    OK(complete_ll(&g)); /* nothing is outstanding */
}

/* Handles and groups that were. Nothing is made in between, so that no other one lies there. */
static void try_destroyed(void)
{
    static const char gone[] = "none, or was destroyed";
    size_t bytes = 0;
    ncclEpGroup_t group = NULL;
    ncclEpHandle_t handle = NULL;
    given g;
    fill(&g, 1);
    OK(ncclEpCreateGroup(&group, comm, &g.group));
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, &g.idx, NULL, NULL, NULL));
    OK(ncclEpHandleDestroy(handle));
    REFUSED(ncclEpHandleDestroy(handle), ncclInvalidArgument, gone);
    REFUSED(ncclEpUpdateHandle(handle, &g.idx, NULL, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, &g.info, NULL, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpCombine(handle, &g.combine_in, &g.combine_out, NULL, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpComplete(handle, NULL, NULL), ncclInvalidArgument, gone);
    OK(ncclEpGroupDestroy(group));
    REFUSED(ncclEpGroupDestroy(group), ncclInvalidArgument, gone);
    REFUSED(ncclEpHandleMemSize(group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, &bytes, TOPK), ncclInvalidArgument, gone);
    REFUSED(ncclEpInitHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, &g.idx, NULL, NULL, NULL),
            ncclInvalidArgument, gone);
    REFUSED(ncclEpMaskQuery(group, counts, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpMaskUpdate(group, counts, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpMaskClean(group, NULL), ncclInvalidArgument, gone);
    REFUSED(ncclEpGetAsyncError(group, counts), ncclInvalidArgument, gone);
    REFUSED(ncclEpErrorClear(group), ncclInvalidArgument, gone);
}

/* Expert-major slots want counters and weights of their own; layouts that are none. */
static void try_expert_slots(void)
{
    ncclEpHandle_t handle = NULL;
    size_t bytes = 0;
    given g;
    fill(&g, 1);
    g.row_sizes[0] = EXPERTS;
    OK(ncclEpCreateHandle(&handle, ll, NCCL_EP_LAYOUT_EXPERT_MAJOR, &g.idx, NULL, NULL, NULL));
    g.dispatch_out.topk_weights = NULL;
    REFUSED(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, NULL, NULL, NULL), ncclInvalidArgument,
            "expert_counters is needed");
    REFUSED(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, &g.info, NULL, NULL), ncclInvalidArgument,
            "expert_counters is needed");
    REFUSED(ncclEpCombine(handle, &g.combine_in, &g.combine_out, NULL, NULL), ncclInvalidArgument,
            "outputs.topk_weights is needed");
    g.combine_out.topk_weights = &g.in_weights;
    g.in_weights.datatype = ncclBfloat16;
    REFUSED(ncclEpCombine(handle, &g.combine_in, &g.combine_out, NULL, NULL), ncclInvalidArgument, "ncclFloat32");
    g.in_weights = g.out_weights;
    g.in_weights.ndim = 1;
    REFUSED(ncclEpCombine(handle, &g.combine_in, &g.combine_out, NULL, NULL), ncclInvalidArgument, "elements, not 8");
    OK(ncclEpHandleDestroy(handle));
    REFUSED(ncclEpInitHandle(&handle, ll, (ncclEpLayout_t)77, NULL, TOPK, NULL), ncclInvalidArgument, "layout is 77");
    REFUSED(ncclEpHandleMemSize(ll, NCCL_EP_LAYOUT_UNSET, NULL, &bytes, TOPK), ncclInvalidArgument, "layout is 0");
    REFUSED(ncclEpHandleMemSize(ll, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, &bytes, 0), ncclInvalidArgument, "num_topk is 0");
}

/* An allocator that fails, that has nothing, and whose memory is not aligned. */
static int allocations;
static int frees;

static cudaError_t give(void **ptr, size_t size, void *context)
{
    static _Alignas(64) char there[1 << 20];
    int way = *(const int *)context;
    allocations++;
    *ptr = way == 1 ? NULL : there + (way == 2 ? 4 : 0);
    return (cudaError_t)(way == 0 || size > sizeof there - 4 ? 2 : 0);
}

static cudaError_t take(void *ptr, void *context)
{
    (void)ptr, (void)context;
    frees++;
    return (cudaError_t)0;
}

static void try_allocators(void)
{
    ncclEpGroup_t group = NULL;
    ncclEpHandle_t handle = NULL;
    int way;
    given g;
    fill(&g, 0);
    g.group.alloc = (ncclEpAllocConfig_t){.alloc_fn = give, .free_fn = take, .context = &way};
    g.group.max_num_sms = 100000; /* more than there are: all */
    g.group.timeout_ns = UINT64_MAX;
    g.group.version = 0; /* nor is it looked at */
    OK(ncclEpCreateGroup(&group, comm, &g.group));
    for (way = 0; way < 2; way++) {
        REFUSED(ncclEpInitHandle(&handle, group, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL), ncclUnhandledCudaError,
                "no device memory");
    }
    REFUSED(ncclEpInitHandle(&handle, group, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL), ncclInvalidArgument, "align");
    if (allocations != 3 || frees != 1 || handle != NULL) {
        (void)fprintf(stderr, "%d allocations and %d frees, where one succeeded\n", allocations, frees);
        failures++;
    }
    OK(ncclEpGroupDestroy(group));
}

/* A group that ends before its handles: they give back what they have, and take nothing but their own end. */
static void try_left(void)
{
    static const char word[] = "group was destroyed; destroy the handle, too";
    ncclEpGroup_t group = NULL;
    ncclEpHandle_t handle = NULL;
    ncclEpHandle_t other = NULL;
    int way = 3;
    given g;
    fill(&g, 1);
    g.group.alloc = (ncclEpAllocConfig_t){.alloc_fn = give, .free_fn = take, .context = &way};
    OK(ncclEpCreateGroup(&group, comm, &g.group));
    OK(ncclEpInitHandle(&other, group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, NULL));
    OK(ncclEpHandleDestroy(other)); /* all memory of give() is at one place */
    OK(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, &g.idx, NULL, NULL, NULL));
    g.dispatch.send_only = 1;
    OK(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, &g.info, &g.dispatch, NULL));
    REFUSED(ncclEpGroupDestroy(group), ncclInvalidUsage, "ncclEpComplete of a handle is still to come");
    OK(ncclEpComplete(handle, NULL, NULL));
    frees = 0;
    (void)setenv("WEFT_FAKE_LATE", "1", 1);
    OK(ncclEpMaskQuery(group, &way, NULL)); /* a copy on the stream */
    OK(ncclEpGroupDestroy(group));
    (void)unsetenv("WEFT_FAKE_LATE");
    if (way != 1) {
        (void)fprintf(stderr, "a group has ended before its call\n");
        failures++;
    }
    REFUSED(ncclEpUpdateHandle(handle, &g.idx, NULL, NULL), ncclInvalidUsage, word);
    REFUSED(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, &g.info, NULL, NULL), ncclInvalidUsage, word);
    REFUSED(ncclEpCombine(handle, &g.combine_in, &g.combine_out, NULL, NULL), ncclInvalidUsage, word);
    REFUSED(ncclEpComplete(handle, NULL, NULL), ncclInvalidUsage, word);
    OK(ncclEpHandleDestroy(handle));
    REFUSED(ncclEpHandleDestroy(handle), ncclInvalidArgument, "none, or was destroyed");
    if (frees != 1) {
        (void)fprintf(stderr, "%d frees of the memory of a handle whose group was destroyed\n", frees);
        failures++;
    }
}

/* NCCL_EP_TIMEOUT_MS is a number or nothing. */
static void try_timeouts(void)
{
    static const char *const wrong[] = {"soon", "3s", "-1", "1e3", " 5", "99999999999999999999", "20000000000000"};
    given g;
    ncclEpGroup_t group;
    fill(&g, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)setenv("NCCL_EP_TIMEOUT_MS", wrong[i], 1);
        if (ncclEpCreateGroup(&group, comm, &g.group) != ncclInvalidArgument ||
            strstr(weft_last_error(), wrong[i]) == NULL || strstr(weft_last_error(), "NCCL_EP_TIMEOUT_MS") == NULL) {
            (void)fprintf(stderr, "NCCL_EP_TIMEOUT_MS=%s: \"%s\"\n", wrong[i], weft_last_error());
            failures++;
        }
    }
    (void)setenv("NCCL_EP_TIMEOUT_MS", "", 1);
    OK(ncclEpCreateGroup(&group, comm, &g.group));
    OK(ncclEpGroupDestroy(group));
    (void)unsetenv("NCCL_EP_TIMEOUT_MS");
}

int main(void)
{
    given g;
    if (!standin_choose_gpu(0)) {
        (void)fprintf(stderr, "no fake driver\n");
        return 1;
    }
    for (int t = 0; t < TOKENS; t++) {
        for (int k = 0; k < TOPK; k++) {
            ids[t][k] = (t + k) % EXPERTS;
        }
        for (int h = 0; h < HIDDEN; h++) {
            x[t][h] = (float)(1 + t + h);
        }
    }
    standin_comms(1, &comm);
    fill(&g, 0);
    OK(ncclEpCreateGroup(&ht, comm, &g.group));
    g.group.zero_copy = NCCL_EP_ZERO_COPY_ON;
    OK(ncclEpCreateGroup(&direct, comm, &g.group));
    OK(ncclEpInitHandle(&windowed, direct, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpUpdateHandle(windowed, &g.idx, NULL, NULL));
    fill(&g, 1);
    OK(ncclEpCreateGroup(&ll, comm, &g.group));
    g.group.enable_mask = 0;
    OK(ncclEpCreateGroup(&unmasked, comm, &g.group));
    OK(ncclEpInitHandle(&flat, ht, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpInitHandle(&fresh, ht, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpInitHandle(&slots, ll, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, NULL));
    if (failures != 0) {
        return 1;
    }
    step(flat, 0);
    step(slots, 1);
    for (size_t row = 0; row < sizeof uses / sizeof *uses; row++) {
        run(row);
    }
    try_between_halves();
    try_expert_slots();
    try_allocators();
    try_destroyed();
    try_timeouts();
    step(flat, 0);
    step(slots, 1);
    OK(ncclEpHandleDestroy(flat));
    OK(ncclEpHandleDestroy(fresh));
    OK(ncclEpHandleDestroy(slots));
    OK(ncclEpHandleDestroy(windowed));
    OK(ncclEpGroupDestroy(direct));
    OK(ncclEpGroupDestroy(ht));
    OK(ncclEpGroupDestroy(ll));
    OK(ncclEpGroupDestroy(unmasked));
    try_left(); /* with all multiprocessors */
    return failures != 0;
}
