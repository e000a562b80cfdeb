/* Goal: as wrong_uses.c, of combines.
 *
 * Method: as wrong_uses.c. */
#include "faces/nccl_ep/wrong.h"

/* ---- the calls ---- */

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

/* ---- what is wrong ---- */

WRONG(nothing, (void)g)
WRONG(other_direction, g->dispatch.pass_direction = g->combine.pass_direction = (ncclEpPassDir_t)2)
WRONG(other_sums, g->combine.quant_recipe = (ncclEpCombQuant_t)9)
WRONG(few_slots, g->row_sizes[1] = TOKENS - 1)
WRONG(no_results, g->combine_in.tokens = NULL)
WRONG(no_sums, g->combine_out.tokens = NULL)
WRONG(few_sums, g->token_sizes[0] = TOKENS - 1)
WRONG(nvfp4, g->combine.quant_recipe = NCCL_EP_COMB_QUANT_NVFP4)
WRONG(mxfp8, g->combine.quant_recipe = NCCL_EP_COMB_QUANT_MXFP8)
WRONG(combine_send_only, g->combine.send_only = 1)
WRONG(combine_weights, g->combine_in.topk_weights = &g->out_weights)
WRONG(combine_backward, g->combine.pass_direction = NCCL_EP_BWD_PASS)
WRONG(small_combine, g->combine.size = 8)
WRONG(small_combine_in, g->combine_in.size = 8)
WRONG(small_combine_out, g->combine_out.size = 8)
WRONG(int_results, g->rows.datatype = ncclInt32)
WRONG(int_sums, g->out.datatype = ncclInt64)
WRONG(null_sums, g->out.data = NULL)
WRONG(many_sums, g->token_sizes[0] = TOKENS + 1)
WRONG(endless_rows, g->row_sizes[0] = SIZE_MAX)
WRONG(odd_combine, g->combine.magic = 5)
WRONG(odd_combine_in, g->combine_in.magic = 6)
WRONG(odd_combine_out, g->combine_out.magic = 7)
WRONG(scales_of_sums, g->combine_in.scales = &g->out_weights)
WRONG(other_sum_width, g->token_sizes[1] = HIDDEN / 2)
WRONG(received_in_line, g->rows.ndim = 1)
WRONG(sums_in_line, g->out.ndim = 1)
WRONG(backward_to_nothing, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->combine_in.topk_weights = &g->out_weights))
WRONG(backward_of_halves, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->out_weights.datatype = ncclFloat16,
                           g->combine_in.topk_weights = &g->out_weights, g->combine_out.topk_weights = &g->in_weights))
WRONG(backward_to_few, (g->combine.pass_direction = NCCL_EP_BWD_PASS, g->combine_in.topk_weights = &g->out_weights,
                        g->combine_out.topk_weights = &g->in_weights, g->choice_sizes[0] = TOKENS - 1))

static const use uses[] = {
    {combine_direct, nothing, 0, ncclInvalidArgument, "'inputs.tokens' is in no window"},
    {combine_ht, other_direction, 0, ncclInvalidArgument, "pass_direction is 2"},
    {combine_ll, other_direction, 1, ncclInvalidUsage, "pass_direction is 2; in LL give"},
    {combine_ll, combine_backward, 1, ncclInvalidUsage, "pass_direction is 1; in LL give"},
    {combine_ht, other_sums, 0, ncclInvalidArgument, "quant_recipe is 9"},
    {combine_ht, no_results, 0, ncclInvalidArgument, "'inputs.tokens' is needed"},
    {combine_ht, no_sums, 0, ncclInvalidArgument, "'outputs.tokens' is needed"},
    {combine_ht, few_sums, 0, ncclInvalidArgument, "the routing has 4 tokens"},
    {combine_ht, nvfp4, 0, ncclInvalidUsage, "compute capability 10.0"},
    {combine_ht, combine_send_only, 0, ncclInvalidUsage, "send_only is of LL"},
    {combine_ht, combine_weights, 0, ncclInvalidArgument, "of NCCL_EP_BWD_PASS"},
    {combine_ht, combine_backward, 0, ncclInvalidArgument, "needed with NCCL_EP_BWD_PASS"},
    {combine_ht, small_combine, 0, ncclInvalidArgument, "8 bytes"},
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
    {combine_ht, endless_rows, 0, ncclInvalidArgument, "which no memory holds"},
    {combine_ht, odd_combine, 0, ncclInvalidArgument, "magic number 0x5"},
    {combine_ht, odd_combine_in, 0, ncclInvalidArgument, "magic number 0x6"},
    {combine_ht, odd_combine_out, 0, ncclInvalidArgument, "magic number 0x7"},
    {combine_ht, scales_of_sums, 0, ncclInvalidArgument, "of NCCL_EP_COMB_QUANT_NVFP4"},
    {combine_ht, mxfp8, 0, ncclInvalidArgument, "MXFP8 is of HT expert-major"},
    {combine_ll, mxfp8, 1, ncclInvalidArgument, "MXFP8 is of HT expert-major"},
    {combine_ht, other_sum_width, 0, ncclInvalidArgument, "give the same"},
    {combine_ht, received_in_line, 0, ncclInvalidArgument, "'inputs.tokens' is not rows"},
    {combine_ht, sums_in_line, 0, ncclInvalidArgument, "'outputs.tokens' is not rows"},
    {combine_ll, combine_weights, 1, ncclInvalidArgument, "of NCCL_EP_BWD_PASS"},
    {combine_ll, no_results, 1, ncclInvalidArgument, "'inputs.tokens' is needed"},
    {combine_ll, other_sums, 1, ncclInvalidArgument, "quant_recipe is 9"},
    {combine_ht, backward_to_nothing, 0, ncclInvalidArgument, "outputs.topk_weights is needed"},
    {combine_ht, backward_of_halves, 0, ncclInvalidArgument, "ncclFloat32"},
    {combine_ht, backward_to_few, 0, ncclInvalidArgument, "'outputs.topk_weights' has 6 elements, not 8"},
};

void wrong_combine(void)
{
    wrong_rows("combine", uses, sizeof uses / sizeof *uses);
}
