/* Goal: as wrong_uses.c, of groups: what they are made of, masks, errors, allocators, timeouts, and groups that end
 * before their handles.
 *
 * Method: as wrong_uses.c. */
#include <stdlib.h>

#include "faces/nccl_ep/wrong.h"

/* ---- the calls ---- */

static ncclResult_t make_group(given *g)
{
    ncclEpGroup_t made = NULL;
    ncclResult_t result = ncclEpCreateGroup(&made, comm, &g->group);
    return made == NULL ? result : ncclInternalError;
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

/* ---- what is wrong ---- */

WRONG(nothing, (void)g)
WRONG(older_than_first, g->group.size = 12)
WRONG(other_magic, g->group.magic = 5)
WRONG(no_experts, g->group.num_experts = 0)
WRONG(no_tokens, g->group.max_dispatch_tokens_per_rank = 0)
WRONG(odd_bytes, g->group.max_token_bytes = 24)
WRONG(other_policy, g->group.overflow_policy = (ncclEpOverflowPolicy_t)9)
WRONG(other_zero_copy, g->group.zero_copy = (ncclEpZeroCopyMode_t)9)
WRONG(half_alloc, g->group.alloc.free_fn = (ncclEpFreeFn_t)(void *)abort)
WRONG(other_algorithm, g->group.algorithm = (ncclEpAlgorithm_t)2)
WRONG(no_bytes, g->group.max_token_bytes = 0)
WRONG(few_received, g->group.max_recv_tokens_per_rank = TOKENS - 1)
WRONG(drop_of_no_limit,
      (g->group.max_recv_tokens_per_rank = NCCL_EP_AUTO, g->group.overflow_policy = NCCL_EP_OVERFLOW_DROP))
WRONG(more_choices_than_possible, g->group.num_topk = 65536)
WRONG(negative_choices, g->group.num_topk = 1u << 31)
WRONG(negative_sms, g->group.max_num_sms = UINT32_MAX)
WRONG(negative_dispatch_sms, g->group.dispatch_num_sms = UINT32_MAX)
WRONG(negative_combine_sms, g->group.combine_num_sms = UINT32_MAX)
WRONG(endless_tokens, g->group.max_dispatch_tokens_per_rank = g->group.max_recv_tokens_per_rank = INT32_MAX)
WRONG(endless_bytes, g->group.max_token_bytes = INT32_MAX / 16 * 16)
WRONG(endless_row, g->group.max_token_bytes = UINT32_MAX)
WRONG(endless_experts, g->group.num_experts = UINT32_MAX)
WRONG(most_tokens, g->group.max_dispatch_tokens_per_rank = UINT32_MAX)
WRONG(half_free, g->group.alloc.alloc_fn = (ncclEpAllocFn_t)(void *)abort)

static const use uses[] = {
    {make_group, older_than_first, 0, ncclInvalidArgument, "12 bytes"},
    {make_group, other_magic, 0, ncclInvalidArgument, "magic number 0x5"},
    {make_group, no_experts, 0, ncclInvalidArgument, "num_experts is 0"},
    {make_group, no_tokens, 0, ncclInvalidArgument, "max_dispatch_tokens_per_rank is 0"},
    {make_group, odd_bytes, 0, ncclInvalidArgument, "max_token_bytes is 24"},
    {make_group, other_policy, 0, ncclInvalidArgument, "overflow_policy 9"},
    {make_group, other_zero_copy, 0, ncclInvalidArgument, "zero_copy is 9"},
    {make_group, half_alloc, 0, ncclInvalidUsage, "both or neither"},
    {ask_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {ask_error_of_unmasked, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {ask_error_of_ht_nowhere, nothing, 0, ncclInvalidArgument, "'error_out' is NULL"},
    {make_group, other_algorithm, 0, ncclInvalidArgument, "algorithm is 2"},
    {make_group, no_bytes, 0, ncclInvalidArgument, "max_token_bytes is 0"},
    {make_group, few_received, 0, ncclInvalidArgument, "max_recv_tokens_per_rank is 3"},
    {make_group, drop_of_no_limit, 0, ncclInvalidUsage, "NCCL_EP_OVERFLOW_DROP needs"},
    {ask_masks_nowhere, nothing, 1, ncclInvalidArgument, "'mask_status' is NULL"},
    {set_no_masks, nothing, 1, ncclInvalidArgument, "'mask' is NULL"},
    {ask_error_nowhere, nothing, 1, ncclInvalidArgument, "'error_out' is NULL"},
    {set_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {clean_masks_of_ht, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {clear_error_of_unmasked, nothing, 0, ncclInvalidUsage, "without enable_mask"},
    {make_group, more_choices_than_possible, 0, ncclInvalidArgument, "topk_max is 65536"},
    {make_group, negative_choices, 0, ncclInvalidArgument, "num_topk is 2147483648"},
    {make_group, negative_sms, 0, ncclInvalidArgument, "max_num_sms 4294967295"},
    {make_group, negative_dispatch_sms, 0, ncclInvalidArgument, "dispatch_num_sms 4294967295"},
    {make_group, negative_combine_sms, 0, ncclInvalidArgument, "combine_num_sms 4294967295"},
    {make_group, endless_tokens, 0, ncclInvalidArgument, "tokens_max 2147483647"},
    {make_group, endless_bytes, 0, ncclInvalidArgument, "row_bytes_max is 2147483632"},
    {make_group, endless_row, 0, ncclInvalidArgument, "max_token_bytes is 4294967295"},
    {make_group, endless_experts, 0, ncclInvalidArgument, "num_experts is 4294967295"},
    {set_own_mask, nothing, 1, ncclInvalidArgument, "cannot mask itself"},
    {make_group, most_tokens, 0, ncclInvalidArgument, "max_dispatch_tokens_per_rank is 4294967295"},
    {make_group, half_free, 0, ncclInvalidUsage, "both or neither"},
};

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
void wrong_left(void)
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

void wrong_groups(void)
{
    wrong_rows("groups", uses, sizeof uses / sizeof *uses);
    try_allocators();
    try_timeouts();
}
