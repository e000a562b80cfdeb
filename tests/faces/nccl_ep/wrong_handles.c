/* Goal: as wrong_uses.c, of handles: what they are made of, where, and with which routing; handles and groups that
 * were.
 *
 * Method: as wrong_uses.c. */
#include "faces/nccl_ep/wrong.h"

/* ---- the calls ---- */

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

WRONG(nothing, (void)g)
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
WRONG(other_kind, g->info.recv_topk_idx_kind = (ncclEpExpertIdKind_t)5)
WRONG(square_memory, g->handle_mem.ndim = 2)
WRONG(odd_ids, g->idx.magic = NCCL_EP_MAGIC)
WRONG(two_counts,
      (g->experts.datatype = ncclInt64, g->info.expert_counters = &g->experts, g->out_weights.datatype = ncclInt32,
       g->out_weights.ndim = 1, g->place_sizes[0] = 1, g->info.recv_total_counter = &g->out_weights))
WRONG(endless_ids, g->choice_sizes[0] = SIZE_MAX / 2)
WRONG(deep_ids, (g->idx.ndim = 3, g->idx.sizes = g->row_sizes))
WRONG(no_choices, g->choice_sizes[1] = 0)
WRONG(odd_info, g->info.magic = 1)
WRONG(odd_handle, g->handle.magic = 9)
WRONG(square_counts, (g->experts.ndim = 2, g->experts.sizes = g->choice_sizes, g->info.expert_counters = &g->experts))
WRONG(no_total, (g->expert_sizes[0] = 0, g->info.recv_total_counter = &g->experts))
WRONG(null_counts, (g->experts.data = NULL, g->info.expert_counters = &g->experts))
WRONG(memory_off, g->handle_mem.data = memory + 8)
WRONG(no_window, (g->handle_mem.data = NULL, g->handle_mem.win_hdl = (ncclWindow_t)(void *)g))
WRONG(null_memory, g->handle_mem.data = NULL)
WRONG(shapeless_memory, g->handle_mem.sizes = NULL)
WRONG(odd_memory, g->handle_mem.magic = 0)

static const use uses[] = {
    {make_handle, small_handle, 0, ncclInvalidArgument, "8 bytes"},
    {make_handle, odd_alignment, 0, ncclInvalidArgument, "alignment is 6"},
    {make_handle, wide_alignment, 0, ncclInvalidArgument, "alignment is 2048"},
    {make_handle_there, little_memory, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, typed_memory, 0, ncclInvalidArgument, "ncclUint8"},
    {ask_size_of_many, nothing, 0, ncclInvalidArgument, "num_topk is 3"},
    {ask_size_of_slots, nothing, 0, ncclInvalidArgument, "layout is 2"},
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
    {update_ht, other_kind, 0, ncclInvalidArgument, "recv_topk_idx_kind is 5"},
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
    {update_ht, endless_ids, 0, ncclInvalidArgument, "which no memory holds"},
    {create_handle, endless_ids, 0, ncclInvalidArgument, "which no memory holds"},
    {update_ht, deep_ids, 0, ncclInvalidArgument, "two dimensions"},
    {update_ht, no_choices, 0, ncclInvalidArgument, "has 0 choices"},
    {create_handle, no_choices, 0, ncclInvalidArgument, "has 0 choices"},
    {update_ht, odd_info, 0, ncclInvalidArgument, "magic number 0x1"},
    {make_handle, odd_handle, 0, ncclInvalidArgument, "magic number 0x9"},
    {update_ht, square_counts, 0, ncclInvalidArgument, "has 2 dimensions, not 1"},
    {update_ht, no_total, 0, ncclInvalidArgument, "'recv_total_counter' is 0, not 1"},
    {update_ht, null_counts, 0, ncclInvalidArgument, "neither data nor a window"},
    {make_handle_there, memory_off, 0, ncclInvalidArgument, "at least"},
    {ask_size, small_handle, 0, ncclInvalidArgument, "8 bytes"},
    {ask_size, odd_alignment, 0, ncclInvalidArgument, "alignment is 6"},
    {make_slots_of_no_choices, nothing, 1, ncclInvalidArgument, "num_topk is -1"},
    {make_slots_of_ht, nothing, 1, ncclInvalidArgument, "layout is 3"},
    {create_of_no_layout, nothing, 0, ncclInvalidArgument, "layout is 0"},
    {make_handle_there, no_window, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, null_memory, 0, ncclInvalidArgument, "at least"},
    {make_handle_there, shapeless_memory, 0, ncclInvalidArgument, "has no dimensions"},
    {make_handle_there, odd_memory, 0, ncclInvalidArgument, "not initialised"},
    {update_ll, float_ids, 1, ncclInvalidArgument, "has type 7"},
    {update_ll, no_choices, 1, ncclInvalidArgument, "has 0 choices"},
    {update_ll, null_ids, 1, ncclInvalidArgument, "neither data nor a window"},
};

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

void wrong_handles(void)
{
    wrong_rows("handles", uses, sizeof uses / sizeof *uses);
    try_destroyed();
}
