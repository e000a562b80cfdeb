/* cuda/ep/routing/prefix.cuh: by expert, the row of each choice at its owner, known before rows move.
 *
 *     count     each block: its rows of each expert (routing/count.cuh)
 *     ahead     a warp an expert: the rows of the blocks before each, posted to them; all rows, posted to all ranks
 *     base      a warp an owner: from what all ranks have of its experts, where each expert begins there and where this
 *               rank's rows of it do; posted to all blocks
 *     number    each block: of each choice among its rows of the expert, by one warp in the order of choices, while the
 *               others wait for call headers; where rows are dropped once it is known which
 *     rows      base + ahead + number
 *     target    of each token and rank, the row that the token's first choice there has: where its row is sent
 *
 * Words that all blocks wait for are packed. */
#ifndef WEFTI_CUDA_EP_ROUTING_PREFIX_CUH
#define WEFTI_CUDA_EP_ROUTING_PREFIX_CUH

#include "cuda/ep/routing/count.cuh"

/* ---- counts ---- */

/* What the blocks counted of `expert`: the rows of those before each, posted to it, and of all. A warp. ~0: some block
 * did not count in time. */
EP_DEVICE wefti_u32 ep_scan_partials(const ep_dispatch &args, const ep_call *call, int expert)
{
    const int experts = args.group.first_expert[args.group.ranks];
    const int blocks = (int)gridDim.x;
    wefti_u32 run = 0;
    bool well = true;
    for (int base = 0; base < blocks; base += 32 * EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        const int block = base + ep_lane();
        const int left = block < blocks ? (blocks - block + 31) / 32 : 0;
        const wefti_u64 *partials =
            &args.tables.partials[(wefti_u64)(left > 0 ? block : 0) * (wefti_u64)(experts + 1) + (wefti_u64)expert];
        well = well && ep_await_values(args.group, partials, 32 * (experts + 1), left, call->tag, counts);
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            wefti_u32 count = i < left ? counts[i] : 0;
            wefti_u32 sum = ep_scan(count);
            if (i < left) {
                wefti_st_relaxed(
                    &args.tables.ahead[(wefti_u64)(block + 32 * i) * (wefti_u64)experts + (wefti_u64)expert],
                    ep_packed(call->tag, run + sum - count));
            }
            run += __shfl_sync(~0u, sum, 31);
        }
    }
    return __all_sync(~0u, well) ? run : ~0u;
}

/* Where `reader` has the counts of `source`'s rows, by expert. */
EP_DEVICE wefti_u64 *ep_counts(const ep_group &group, const ep_call *call, int reader, int source)
{
    wefti_u64 set = (call->epoch & 1) * 2 + (call->tag & 1);
    wefti_u64 number = set * (wefti_u64)group.ranks + (wefti_u64)source;
    return (wefti_u64 *)(group.area[reader] + group.at.counts) + number * (wefti_u64)group.first_expert[group.ranks];
}

/* This block's share of the experts. The warps that do not move. */
EP_DEVICE void ep_post_counts(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int experts = group.first_expert[group.ranks];
    const int skip = args.blocks.sender_warps;
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; ep_warp() >= skip && expert < experts;
         expert += (ep_warps() - skip) * (int)gridDim.x) {
        wefti_u32 sum = ep_scan_partials(args, call, expert);
        if (sum != ~0u && ep_lane() < group.ranks && (call->alive >> ep_lane() & 1) != 0) {
            wefti_st_relaxed(ep_counts(group, call, ep_lane(), group.rank) + expert, ep_packed(call->tag, sum));
        }
    }
}

/* ---- bases ---- */

/* The rows of `expert` that the sources from `base` on, before `end`, have, EP_AT_ONCE of them. A lane. False: they did
 * not come in time. */
EP_DEVICE bool ep_await_counts(const ep_dispatch &args, const ep_call *call, int expert, int base, int end,
                               wefti_u32 *counts)
{
    const ep_group &group = args.group;
    const wefti_u64 *first = ep_counts(group, call, group.rank, base) + expert;
    const int stride = group.first_expert[group.ranks];
    const wefti_u32 alive = call->alive >> base;
    return ep_await_each(
        group, end - base, call->tag, base, 1,
        [&](int i) { return (alive >> i & 1) != 0 ? first + (wefti_i64)i * stride : (const wefti_u64 *)0; }, counts);
}

/* The rows of all sources of an expert, and of those before this rank; of an expert of this rank, written down. A lane.
 * False: they did not come in time. */
EP_DEVICE bool ep_sum_counts(const ep_dispatch &args, const ep_call *call, int expert, wefti_u64 *sum,
                             wefti_u64 *before)
{
    const ep_group &group = args.group;
    const int local = expert - group.first_expert[group.rank];
    const bool own = expert >= group.first_expert[group.rank] && expert < group.first_expert[group.rank + 1];
    bool well = true;
    *sum = 0;
    *before = 0;
    for (int base = 0; base < group.ranks; base += EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        well = ep_await_counts(args, call, expert, base, group.ranks, counts) && well;
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            *before += base + i < group.rank ? counts[i] : 0;
            *sum += counts[i];
            if (own && base + i < group.ranks) {
                args.tables.rows_of_expert_source[local * group.ranks + base + i] = (wefti_i32)counts[i];
            }
        }
    }
    if (own) {
        args.tables.rows_of_expert[local] = (wefti_i32)*sum;
    }
    return well;
}

EP_DEVICE wefti_u32 ep_at_most_int(wefti_u64 rows)
{
    return rows > 0x7fffffffu ? 0x7fffffffu : (wefti_u32)rows;
}

/* Where the rows of `owner`'s experts begin there. A warp. */
EP_DEVICE void ep_find_bases(const ep_dispatch &args, const ep_call *call, int owner)
{
    const ep_group &group = args.group;
    const wefti_cuda_ep_experts &lie = args.experts;
    const int first = group.first_expert[owner];
    const int end = group.first_expert[owner + 1];
    const bool own = owner == group.rank;
    wefti_u64 run = 0;
    wefti_u32 total = 0; /* no more than there are choices */
    bool well = true;
    for (int base = first; base < end; base += 32) {
        const int expert = base + ep_lane();
        const bool is = expert < end;
        wefti_u64 sum = 0;
        wefti_u64 before = 0;
        if (is) {
            well = ep_sum_counts(args, call, expert, &sum, &before) && well;
        }
        const wefti_u32 aligned = ((wefti_u32)sum + lie.alignment - 1) / lie.alignment * lie.alignment;
        const wefti_u64 takes = lie.slots != 0 ? lie.slots : aligned;
        wefti_u64 behind = ep_scan(is ? takes : 0);
        wefti_u64 begin = run + behind - takes;
        if (is && well) {
            wefti_st_relaxed(&args.tables.base[expert], ep_packed(call->tag, (wefti_u32)(begin + before)));
        }
        if (is && well && own) {
            args.tables.offset_of_expert[expert - first] = (wefti_i32)ep_at_most_int(begin);
            wefti_st_relaxed(&args.tables.begin[expert - first], ep_packed(call->tag, ep_at_most_int(begin)));
            wefti_st_relaxed(&args.tables.end[expert - first], ep_packed(call->tag, ep_at_most_int(begin + sum)));
        }
        run += __shfl_sync(~0u, behind, 31);
        total += __reduce_add_sync(~0u, (wefti_u32)sum);
    }
    if (__all_sync(~0u, well) && ep_lane() == 0) {
        wefti_u32 rows = ep_at_most_int(run);
        wefti_st_relaxed(&args.tables.full[owner], ep_packed(call->tag, rows));
        if (own) {
            args.tables.offset_of_expert[end - first] = (wefti_i32)rows;
            wefti_st_relaxed(&args.tables.begin[end - first], ep_packed(call->tag, rows));
            wefti_st_relaxed(&args.tables.unpadded[call->tag & 1], ep_packed(call->tag, total));
        }
    }
}

EP_DEVICE bool ep_owns_experts(const ep_group &group, int rank)
{
    return rank < group.ranks && group.first_expert[rank] < group.first_expert[rank + 1];
}

/* Whether all rows fit everywhere: into call->status. Of a rank without experts nothing is awaited: its word waits for
 * no block, so that of the second round may replace that of the first before all have read it. A warp. */
EP_DEVICE void ep_judge(const ep_dispatch &args, ep_call *call, bool fresh)
{
    const ep_group &group = args.group;
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    wefti_u32 rows = 0;
    bool well = true;
    if (ep_owns_experts(group, rank) && fresh) {
        well = ep_await_value(group, &args.tables.full[rank], call->tag, group.rank, &rows);
    } else if (ep_owns_experts(group, rank) && here) {
        rows = (wefti_u32)wefti_ld_relaxed(&args.tables.full[rank]);
    }
    const wefti_u32 capacity = call->headers[rank < group.ranks ? rank : 0][WEFTI_CUDA_EP_CAPACITY];
    const wefti_u32 limit = group.rows_limit < capacity ? group.rows_limit : capacity;
    const bool overflows = here && args.experts.slots == 0 && rows > limit;
    const bool full = __any_sync(~0u, overflows);
    if (!__all_sync(~0u, well)) {
        call->failed = 1;
    }
    if (rank == 0 && full) {
        call->status = WEFT_ERR_OVERFLOW;
    }
    if (full && (group.drops == 0 || !fresh) && !ep_is(args, WEFTI_CUDA_EP_COUNTS)) {
        ep_report_overflow(&group, call, overflows, limit);
    }
}

/* ---- rows ---- */

/* Where this block's rows of each expert begin at its owner. All threads. */
EP_DEVICE void ep_find_starts(const ep_dispatch &args, ep_call *call, wefti_u32 *starts)
{
    const int experts = args.group.first_expert[args.group.ranks];
    const wefti_u64 *ahead = args.tables.ahead + (wefti_u64)blockIdx.x * (wefti_u64)experts;
    for (int expert = (int)threadIdx.x; expert < experts; expert += (int)blockDim.x) {
        const wefti_u64 *base = &args.tables.base[expert];
        wefti_u32 values[EP_AT_ONCE];
        if (!ep_await_each(
                args.group, 2, call->tag, args.group.rank, 0, [&](int i) { return i == 0 ? base : &ahead[expert]; },
                values)) {
            call->failed = 1;
        }
        starts[expert] = values[0] + values[1];
    }
}

/* Whether a token that goes to `rank` is accepted there. */
EP_DEVICE bool ep_is_accepted(const ep_dispatch &args, const ep_call *call, int token, int rank)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const wefti_u64 at = (wefti_u64)(token / unit_tokens) * (wefti_u64)args.group.ranks + (wefti_u64)rank;
    return args.group.drops == 0 ||
           ((wefti_u32)wefti_ld_relaxed(&args.tables.goes[at]) >> (token % unit_tokens) & 1) != 0;
}

/* The number of each choice of tokens first .. end - 1 among this block's rows of its expert, in place of the row; with
 * IS_EAGER also of tokens that may not be accepted: those are behind the ones that are, whose numbers stay as they are.
 * `numbers`: a word an expert. A warp. */
template <bool IS_EAGER>
EP_DEVICE void ep_number_rows(const ep_dispatch &args, const ep_call *call, int first, int end, wefti_u32 *numbers)
{
    const int experts = args.group.first_expert[args.group.ranks];
    const int count = end > first ? (end - first) * args.topk : 0;
    const wefti_u64 at = (wefti_u64)first * (wefti_u64)args.topk;
    const wefti_u32 below = (1u << ep_lane()) - 1;
    for (int expert = ep_lane(); expert < experts; expert += 32) {
        numbers[expert] = 0;
    }
    __syncwarp();
    int next = ep_lane() < count ? ep_id(args.choices, at + (wefti_u64)ep_lane(), experts) : -1;
    for (int base = 0; base < count; base += 32) {
        const int i = base + ep_lane();
        const int id = next;
        next = i + 32 < count ? ep_id(args.choices, at + (wefti_u64)(i + 32), experts) : -1;
        const int token = i / args.topk;
        const int owner = ep_owner(args.group, call->alive, id);
        const bool numbered =
            owner >= 0 && (IS_EAGER || ep_is_accepted(args, call, first + token, owner)) &&
            !(args.experts.slots != 0 &&
              ep_is_again(args.choices, at + (wefti_u64)(token * args.topk), i - token * args.topk, id, experts));
        const wefti_u32 alike = __match_any_sync(~0u, numbered ? id : -1 - ep_lane());
        const wefti_u32 number = numbered ? numbers[id] + (wefti_u32)__popc(alike & below) : WEFTI_CUDA_EP_NO_ROW;
        __syncwarp();
        if (numbered && alike >> ep_lane() == 1) { /* the last of its expert */
            numbers[id] = number + 1;
        }
        __syncwarp();
        if (i < count) {
            args.tables.rows[at + (wefti_u64)i] = number;
        }
    }
}

/* Whether a choice before choice `k` of a token is of the same owner. */
EP_DEVICE bool ep_is_later(const ep_dispatch &args, const ep_call *call, wefti_u64 first, int k, int owner)
{
    const int experts = args.group.first_expert[args.group.ranks];
    bool later = false;
    for (int before = 0; before < k; before++) {
        later = later ||
                ep_owner(args.group, call->alive, ep_id(args.choices, first + (wefti_u64)before, experts)) == owner;
    }
    return later;
}

/* From numbers to rows; that of a token's first choice at a rank is where it is sent. A thread a choice. All
 * threads. */
EP_DEVICE void ep_find_targets(const ep_dispatch &args, const ep_call *call, int first, int end,
                               const wefti_u32 *starts)
{
    const ep_group &group = args.group;
    const int experts = group.first_expert[group.ranks];
    for (int i = (int)threadIdx.x; i < (end - first) * args.topk; i += (int)blockDim.x) {
        const int k = i % args.topk;
        const wefti_u64 token = (wefti_u64)(first + i / args.topk);
        const wefti_u64 at = token * (wefti_u64)args.topk + (wefti_u64)k;
        const int id = ep_id(args.choices, at, experts);
        const int owner = ep_owner(group, call->alive, id);
        wefti_u32 row = args.tables.rows[at];
        if (row != WEFTI_CUDA_EP_NO_ROW) {
            row += starts[id];
            args.tables.rows[at] = row;
        }
        if (owner >= 0 && !ep_is_later(args, call, at - (wefti_u64)k, k, owner)) {
            args.tables.target[token * (wefti_u64)group.ranks + (wefti_u64)owner] = row;
        }
    }
}

/* The warps that do not move. */
EP_DEVICE void ep_find_all_bases(const ep_dispatch &args, const ep_call *call)
{
    const int skip = args.blocks.sender_warps;
    for (int owner = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x;
         ep_warp() >= skip && owner < args.group.ranks; owner += (ep_warps() - skip) * (int)gridDim.x) {
        ep_find_bases(args, call, owner);
    }
}

/* The tokens of this block's units: first .. end - 1. */
EP_DEVICE void ep_find_tokens(const ep_call *call, int first_unit, int end_unit, int *first, int *end)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    *first = first_unit * unit_tokens;
    *end = end_unit * unit_tokens < call->tokens ? end_unit * unit_tokens : call->tokens;
}

/* Number this block's rows. One warp. */
template <bool IS_EAGER = false>
EP_DEVICE void ep_number_share(const ep_dispatch &args, const ep_call *call, int first_unit, int end_unit,
                               wefti_u32 *numbers)
{
    int first;
    int end;
    if (ep_warp() == ep_warps() - 3) { /* neither sends rows nor posts the call header */
        ep_find_tokens(call, first_unit, end_unit, &first, &end);
        ep_number_rows<IS_EAGER>(args, call, first, end, numbers);
    }
}

/* The rows of this block's units, which are numbered, once bases are posted. All threads. False: a rank or block did
 * not come. */
EP_DEVICE bool ep_place_rows(const ep_dispatch &args, ep_call *call, int first_unit, int end_unit, wefti_u32 *starts)
{
    int first;
    int end;
    ep_find_tokens(call, first_unit, end_unit, &first, &end);
    if (ep_warp() == ep_warps() - 1) {
        ep_judge(args, call, true);
    }
    ep_find_starts(args, call, starts);
    __syncthreads();
    if (call->failed != 0) {
        return false;
    }
    ep_find_targets(args, call, first, end, starts);
    __syncthreads();
    return true;
}

#endif
