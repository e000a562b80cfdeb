/* Goal: as wrong_uses.c, of dispatches, whole and in halves.
 *
 * Method: as wrong_uses.c. */
#include "faces/nccl_ep/wrong.h"

/* ---- the calls ---- */

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

static ncclResult_t dispatch_nothing(given *g)
{
    return ncclEpDispatch(flat, NULL, &g->dispatch_out, NULL, &g->dispatch, NULL);
}

static ncclResult_t dispatch_nowhere(given *g)
{
    return ncclEpDispatch(flat, &g->dispatch_in, NULL, NULL, &g->dispatch, NULL);
}

static ncclResult_t complete_ll(given *g)
{
    return ncclEpComplete(slots, &g->complete, NULL);
}

/* ---- what is wrong ---- */

WRONG(nothing, (void)g)
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
WRONG(few_slots, g->row_sizes[1] = TOKENS - 1)
WRONG(small_complete, g->complete.size = 4)
WRONG(int_weights, g->in_weights.datatype = ncclInt32)
WRONG(many_tokens_in, g->token_sizes[0] = TOKENS + 1)
WRONG(few_source_counts, (g->expert_sizes[0] = 2, g->info.src_rank_counters = &g->experts))
WRONG(small_dispatch, g->dispatch.size = 8)
WRONG(many_dimensions, g->in.ndim = 1000)
WRONG(endless_rows, g->row_sizes[0] = SIZE_MAX)
WRONG(odd_info, g->info.magic = 1)
WRONG(odd_in, g->dispatch_in.magic = 2)
WRONG(odd_out, g->dispatch_out.magic = 3)
WRONG(odd_dispatch, g->dispatch.magic = 4)
WRONG(odd_complete, g->complete.magic = 8)
WRONG(short_rows, g->rows.size = 47)
WRONG(half_row_weights, g->out_weights.datatype = ncclFloat16)
WRONG(scales_of_none, (g->dispatch_in.scales = &g->in_weights, g->dispatch_out.scales = &g->out_weights))

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
WRONG(rows_in_line, g->in.ndim = 1)
WRONG(received_in_line, g->rows.ndim = 1)
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

static const use uses[] = {
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
    {dispatch_ht, other_kind, 0, ncclInvalidArgument, "recv_topk_idx_kind is 5"},
    {dispatch_ht, backward_with_weights, 0, ncclInvalidArgument, "takes neither"},
    {dispatch_ht, other_direction, 0, ncclInvalidArgument, "pass_direction is 2"},
    {dispatch_ll, other_direction, 1, ncclInvalidUsage, "pass_direction is 2; in LL give"},
    {dispatch_ll, few_slots, 1, ncclInvalidArgument, "has 3 rows, not 4"},
    {complete_ll, small_complete, 1, ncclInvalidArgument, "4 bytes"},
    {dispatch_nothing, nothing, 0, ncclInvalidArgument, "'inputs' is NULL"},
    {dispatch_nowhere, nothing, 0, ncclInvalidArgument, "'outputs' is NULL"},
    {dispatch_ht, int_weights, 0, ncclInvalidArgument, "ncclFloat32"},
    {dispatch_ht, many_tokens_in, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {dispatch_ht, small_dispatch, 0, ncclInvalidArgument, "8 bytes"},
    {dispatch_ll, few_source_counts, 1, ncclInvalidArgument, "'src_rank_counters' is 2, not 1"},
    {dispatch_ll, few_rows_in, 1, ncclInvalidArgument, "the routing has 4 tokens"},
    {dispatch_ll, no_weights, 1, ncclInvalidArgument, "topk_weights is needed"},
    {dispatch_ht, many_dimensions, 0, ncclInvalidArgument, "has 1000 dimensions"},
    {dispatch_ht, endless_rows, 0, ncclInvalidArgument, "which no memory holds"},
    {dispatch_ht, odd_info, 0, ncclInvalidArgument, "magic number 0x1"},
    {dispatch_ht, odd_in, 0, ncclInvalidArgument, "magic number 0x2"},
    {dispatch_ht, odd_out, 0, ncclInvalidArgument, "magic number 0x3"},
    {dispatch_ht, odd_dispatch, 0, ncclInvalidArgument, "magic number 0x4"},
    {complete_ll, odd_complete, 1, ncclInvalidArgument, "magic number 0x8"},
    {dispatch_ht, short_rows, 0, ncclInvalidArgument, "47 bytes"},
    {dispatch_ht, half_row_weights, 0, ncclInvalidArgument, "ncclFloat32"},
    {dispatch_ht, scales_of_none, 0, ncclInvalidArgument, "not those of config.quant_recipe 0"},
    {dispatch_ht, few_scales, 0, ncclInvalidArgument, "has 24 rows"},
    {dispatch_ht, flat_scales, 0, ncclInvalidArgument, "give one a token"},
    {dispatch_ht, long_scales, 0, ncclInvalidArgument, "scales are floats or ncclUint8"},
    {dispatch_ht, other_scales, 0, ncclInvalidArgument, "another type"},
    {dispatch_ht, no_scales_out, 0, ncclInvalidArgument, "not those of config.quant_recipe 1"},
    {dispatch_ht, no_scales_in, 0, ncclInvalidArgument, "not those of config.quant_recipe 1"},
    {dispatch_ht, null_scales, 0, ncclInvalidArgument, "neither data nor a window"},
    {dispatch_ht, odd_scales, 0, ncclInvalidArgument, "align"},
    {dispatch_ht, rows_in_line, 0, ncclInvalidArgument, "'inputs.tokens' is not rows"},
    {dispatch_ht, received_in_line, 0, ncclInvalidArgument, "'outputs.tokens' is not rows"},
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
};

/* Between the halves of a call its handle takes ncclEpComplete only. */
static void try_between_halves(void)
{
    static const char word[] = "ncclEpComplete of the handle is still to come";
    given g;
    fill(&g, 1);
    g.dispatch.send_only = 1;
    OK(ncclEpUpdateHandle(slots, &g.idx, NULL, NULL));
    OK(ncclEpDispatch(slots, &g.dispatch_in, &g.dispatch_out, &g.info, &g.dispatch, NULL));
    REFUSED(ncclEpUpdateHandle(slots, &g.idx, NULL, NULL), ncclInvalidUsage, word);
    REFUSED(dispatch_ll(&g), ncclInvalidUsage, word);
    REFUSED(ncclEpCombine(slots, &g.combine_in, &g.combine_out, &g.combine, NULL), ncclInvalidUsage, word);
    REFUSED(ncclEpHandleDestroy(slots), ncclInvalidUsage, word);
    OK(complete_ll(&g));
    OK(complete_ll(&g)); /* nothing is outstanding */
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

void wrong_dispatch(void)
{
    wrong_rows("dispatch", uses, sizeof uses / sizeof *uses);
    try_between_halves();
    try_expert_slots();
}
