/* cuda/ep/domains/choices.cuh: weights and choices of a combine's own, in groups of several domains. Their owners add
 * up with them, so they go there first, as a dispatch would have them go on the routing that there is: rows of K
 * weights and a bit a choice, to the places that the last dispatch's rows had. They need no tails, and no table
 * changes.
 *
 * Grid, shared memory and flags: as of local.cuh.
 *
 *     combine_chooses   a warp a token: its weights, and which of its choices take part, as a row that goes
 *     (dispatch_crosses, with `is_kept`; the inner dispatch, on the routing that it has)
 *     combine_results   takes them from there (local.cuh)
 *
 * Bytes: 4 to 12 a (token, choice) read, and a row of 4 K bytes, and K bits, written. Floor: these bytes over the rate
 * of the GPU's memory. */
#ifndef WEFTI_CUDA_EP_DOMAINS_CHOICES_CUH
#define WEFTI_CUDA_EP_DOMAINS_CHOICES_CUH

#include "cuda/ep/domains/call.cuh"

/* A combine with choices of its own begins. All threads of the grid. */
EP_DEVICE void ep_domains_choose(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    const wefti_cuda_ep_domains_own &own = args.own;
    if (!ep_domains_begins(args.group)) {
        return;
    }
    if (ep_domains_grid().number == 0) {
        ep_domains_count_call(args.group);
    }
    for (int token = warps.number; token < args.tables.route_header->tokens; token += warps.count) {
        wefti_u32 *to = (wefti_u32 *)(args.group.rows + (wefti_u64)token * own.row_bytes);
        for (int base = 0; base < args.topk; base += 32) {
            const int k = base + ep_lane();
            const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k;
            const bool takes =
                k < args.topk && (own.ids == NULL || (own.wide != 0 ? ((const wefti_i64 *)own.ids)[at] != -1
                                                                    : ((const wefti_i32 *)own.ids)[at] != -1));
            const wefti_u32 all = __ballot_sync(~0u, takes);
            if (k < args.topk) {
                to[k] = __float_as_uint(own.weights != NULL ? own.weights[at] : 1.0f);
            }
            if (ep_lane() == 0) {
                to[args.topk + base / 32] = all;
            }
        }
    }
}

/* What came for a received token: K weights, then bits. */
EP_DEVICE float *ep_domains_own_weights(const ep_domains &args, wefti_u64 number)
{
    return (float *)(args.group.received + number * args.own.row_bytes);
}

EP_DEVICE bool ep_domains_takes_part(const ep_domains &args, const float *own, int k)
{
    return (((const wefti_u32 *)own)[args.topk + k / 32] >> (k & 31) & 1) != 0;
}

/* Which choices of the tokens that this rank has in its domain take part, for the order of the inner group's sums: rows
 * of them are still in `rows`. Warps take tokens. */
EP_DEVICE void ep_domains_tell_inner(const ep_domains &args)
{
    const wefti_u32 tells = WEFTI_CUDA_EP_BY_CHOICE | WEFTI_CUDA_EP_COMBINE_IDS;
    const ep_warp_group warps = ep_domains_warps();
    if ((args.flags & tells) != tells || args.by_rank != 0) {
        return;
    }
    for (int row = warps.number; row < *args.tables.inner_tokens; row += warps.count) {
        const float *own = (const float *)(args.group.rows + (wefti_u64)row * args.own.row_bytes);
        for (int k = ep_lane(); k < args.topk; k += 32) {
            const wefti_u64 at = (wefti_u64)row * (wefti_u64)args.topk + (wefti_u64)k;
            args.tables.own_ids[at] = ep_domains_takes_part(args, own, k) ? args.tables.inner_ids[at] : -1;
        }
    }
}

/* By source one row stands for all choices here: choice 0 comes to have the sum of the weights of those that take part,
 * and takes part if any does. A warp. */
EP_DEVICE void ep_domains_fold_own(const ep_domains &args, wefti_u64 number)
{
    float *own = ep_domains_own_weights(args, number);
    if (ep_lane() == 0) {
        float sum = 0.0f;
        bool any = false;
        for (int k = 0; k < args.topk; k++) {
            if (args.tables.here[number * (wefti_u64)args.topk + (wefti_u64)k] != 0 &&
                ep_domains_takes_part(args, own, k)) {
                sum = __fadd_rn(sum, own[k]);
                any = true;
            }
        }
        own[0] = sum;
        ((wefti_u32 *)own)[args.topk] = any;
    }
    __syncwarp();
}

#endif
