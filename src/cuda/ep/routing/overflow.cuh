/* cuda/ep/routing/overflow.cuh: rows beyond what a rank holds are dropped: the tokens of the longest prefix in (source,
 * token) order whose rows fit are accepted, the same for everybody who works it out.
 *
 * By source the call headers are enough. By expert the counts say at which source a rank is full, and that source's
 * first block walks its choices to the token; it posts to its blocks (`cut`) and to that rank (`accepted`) how many of
 * its tokens are accepted. Then what is accepted is counted anew, in a second round whose words have the odd tag.
 * `goes` holds the bits of what is accepted; the choices' bits stay as they are, since other blocks may still add them
 * up. */
#ifndef WEFTI_CUDA_EP_ROUTING_OVERFLOW_CUH
#define WEFTI_CUDA_EP_ROUTING_OVERFLOW_CUH

#include "cuda/ep/routing/prefix.cuh"

/* The most rows that `rank` may receive. */
EP_DEVICE wefti_u32 ep_limit_of(const ep_dispatch &args, const ep_call *call, int rank)
{
    const wefti_u32 capacity = call->headers[rank][WEFTI_CUDA_EP_CAPACITY];
    return args.group.rows_limit < capacity ? args.group.rows_limit : capacity;
}

/* ---- what is accepted, once it is known how many tokens ---- */

/* By position: of the tokens of a unit those whose numbers at `rank` are below `accepted`. */
EP_DEVICE wefti_u32 ep_accepted_by_position(const ep_dispatch &args, const ep_call *call, int unit, int rank,
                                            wefti_u32 bits, wefti_u32 accepted)
{
    const int first = unit * wefti_cuda_ep_unit(call->tokens);
    for (wefti_u32 left = bits; left != 0; left &= left - 1) {
        const int token = first + __ffs((int)left) - 1;
        if (args.tables.target[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)rank] >= accepted) {
            bits &= ~(left & -left);
        }
    }
    return bits;
}

/* Of this block's units: of the tokens that go to a rank the first call->total[rank]. All threads. */
EP_DEVICE void ep_write_accepted(const ep_dispatch &args, const ep_call *call, int first_unit, int end_unit)
{
    const ep_group &group = args.group;
    for (int i = first_unit * group.ranks + (int)threadIdx.x; i < end_unit * group.ranks; i += (int)blockDim.x) {
        wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&args.tables.bits[i]);
        const wefti_u32 accepted = call->total[i % group.ranks];
        if (EP_BY_POSITION) {
            bits = ep_accepted_by_position(args, call, i / group.ranks, i % group.ranks, bits, accepted);
        }
        while (!EP_BY_POSITION && bits != 0 && args.tables.before[i] + (wefti_u32)__popc(bits) > accepted) {
            bits &= ~(0x80000000u >> __clz((int)bits)); /* the last of them */
        }
        wefti_st_relaxed(&args.tables.goes[i], ep_packed(call->tag, bits));
    }
    __syncthreads();
}

/* Count the accepted choices of each expert. All threads. */
EP_DEVICE void ep_count_accepted(const ep_dispatch &args, const ep_call *call, int first_unit, int end_unit,
                                 wefti_u32 *partial)
{
    const ep_group &group = args.group;
    const int experts = group.first_expert[group.ranks];
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int first = first_unit * unit_tokens;
    const int end = end_unit * unit_tokens < call->tokens ? end_unit * unit_tokens : call->tokens;
    for (int i = (int)threadIdx.x; i <= experts; i += (int)blockDim.x) {
        partial[i] = 0;
    }
    __syncthreads();
    for (wefti_u64 i = (wefti_u64)threadIdx.x; i < (wefti_u64)(end > first ? end - first : 0) * (wefti_u64)args.topk;
         i += blockDim.x) {
        const wefti_u64 at = (wefti_u64)first * (wefti_u64)args.topk + i;
        const int k = (int)(at % (wefti_u64)args.topk);
        const int id = ep_id(args.choices, at, experts);
        const int owner = ep_owner(group, call->alive, id);
        const bool again =
            args.experts.slots != 0 && owner >= 0 && ep_is_again(args.choices, at - (wefti_u64)k, k, id, experts);
        if (id == -2 || (owner >= 0 && !again && ep_is_accepted(args, call, (int)(at / (wefti_u64)args.topk), owner))) {
            atomicAdd(&partial[id == -2 ? experts : id], 1u);
        }
    }
    __syncthreads();
    ep_post_partial(group, call, args.tables, partial);
    __syncthreads(); /* what comes next may number rows in `partial` */
}

/* ---- by source ---- */

/* Of `sent` tokens, behind `before` of other sources, how many are accepted. */
EP_DEVICE wefti_u32 ep_accepted_of(wefti_u32 sent, wefti_u64 before, wefti_u32 limit)
{
    const wefti_u32 left = before < limit ? limit - (wefti_u32)before : 0;
    return sent < left ? sent : left;
}

/* From the call headers. All threads. */
EP_DEVICE_SLOW void ep_drop_by_source(const ep_dispatch *given, ep_call *call, int first_unit, int end_unit,
                                      wefti_u32 *partial)
{
    const ep_dispatch &args = *given;
    const ep_group &group = args.group;
    const int rank = (int)threadIdx.x;
    if (args.slots == 0 && rank < group.ranks && (call->alive >> rank & 1) != 0) {
        call->total[rank] = ep_accepted_of(call->total[rank], call->place[rank], ep_limit_of(args, call, rank));
    }
    __syncthreads();
    if (threadIdx.x == 0 && args.slots == 0) {
        const wefti_u32 all = call->from[group.ranks];
        wefti_u32 end = 0;
        for (int source = 0; source < group.ranks; source++) {
            const wefti_u32 accepted =
                ep_accepted_of(call->count[source], call->from[source], ep_limit_of(args, call, group.rank));
            call->count[source] = accepted;
            call->from[source] = end;
            end += accepted;
        }
        call->from[group.ranks] = end;
        call->wanted = all;
        if (blockIdx.x == 0) {
            args.tables.route_header->dropped_rows = (wefti_i32)(all - end);
        }
    }
    __syncthreads();
    ep_write_accepted(args, call, first_unit, end_unit);
    ep_count_accepted(args, call, first_unit, end_unit, partial);
}

/* ---- by expert ---- */

EP_DEVICE wefti_u64 ep_aligned(const ep_dispatch &args, wefti_u64 rows)
{
    return (rows + args.experts.alignment - 1) / args.experts.alignment * args.experts.alignment;
}

/* The rows, padding included, that `rank` has from the sources before `end`; what these have of each of its experts
 * into `counts`. A warp. */
EP_DEVICE wefti_u64 ep_rows_before(const ep_dispatch &args, const ep_call *call, int rank, int end, wefti_u32 *counts)
{
    const ep_group &group = args.group;
    wefti_u64 rows = 0;
    for (int base = group.first_expert[rank]; base < group.first_expert[rank + 1]; base += 32) {
        const int expert = base + ep_lane();
        wefti_u32 sum = 0;
        for (int source = 0; source < end && expert < group.first_expert[rank + 1]; source++) {
            wefti_u32 count = 0; /* is there: all bases are posted */
            if ((call->alive >> source & 1) != 0) {
                (void)ep_await_value(group, ep_counts(group, call, group.rank, source) + expert, call->tag, source,
                                     &count);
            }
            sum += count;
        }
        if (expert < group.first_expert[rank + 1]) {
            counts[expert] = sum;
        }
        rows += __shfl_sync(~0u, ep_scan(ep_aligned(args, sum)), 31);
    }
    __syncwarp();
    return rows;
}

/* The first of this rank's tokens with rows at `rank` that do not all fit behind `rows` rows of the sources before. A
 * warp. */
EP_DEVICE int ep_find_cut(const ep_dispatch &args, const ep_call *call, int rank, wefti_u64 rows, wefti_u32 *counts)
{
    const int experts = args.group.first_expert[args.group.ranks];
    const wefti_u64 end = (wefti_u64)call->tokens * (wefti_u64)args.topk;
    const wefti_u32 limit = ep_limit_of(args, call, rank);
    const wefti_u32 below = (1u << ep_lane()) - 1;
    for (wefti_u64 base = 0; base < end; base += 32) {
        const wefti_u64 at = base + (wefti_u64)ep_lane();
        const int id = at < end ? ep_id(args.choices, at, experts) : -1;
        const bool here = ep_owner(args.group, call->alive, id) == rank;
        const wefti_u32 alike = __match_any_sync(~0u, here ? id : -1 - ep_lane());
        const wefti_u32 number = here ? counts[id] + (wefti_u32)__popc(alike & below) : 1;
        const wefti_u32 begins = __ballot_sync(~0u, here && number % args.experts.alignment == 0);
        const wefti_u64 sum = rows + (wefti_u64)__popc(begins & (below | 1u << ep_lane())) * args.experts.alignment;
        const wefti_u32 beyond = __ballot_sync(~0u, here && sum > limit);
        if (beyond != 0) {
            return (int)((base + (wefti_u64)__ffs((int)beyond) - 1) / (wefti_u64)args.topk);
        }
        if (here && alike >> ep_lane() == 1) {
            counts[id] = number + 1;
        }
        rows += (wefti_u64)__popc(begins) * args.experts.alignment;
        __syncwarp();
    }
    return call->tokens;
}

/* How many of this rank's tokens before `token` go to `rank`. A warp. */
EP_DEVICE wefti_u32 ep_tokens_before(const ep_dispatch &args, const ep_call *call, int rank, int token)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    wefti_u32 count = 0;
    for (int unit = ep_lane(); unit * unit_tokens < token; unit += 32) {
        const wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&args.tables.bits[unit * args.group.ranks + rank]);
        const int left = token - unit * unit_tokens;
        count += (wefti_u32)__popc(left < 32 ? bits & ((1u << left) - 1) : bits);
    }
    return __reduce_add_sync(~0u, count);
}

/* How many of this rank's tokens `rank` accepts: posted to it and to this rank's blocks. A warp. */
EP_DEVICE void ep_cut_rank(const ep_dispatch &args, const ep_call *call, int rank, wefti_u32 *counts)
{
    const ep_group &group = args.group;
    const wefti_u32 limit = ep_limit_of(args, call, rank);
    wefti_u32 accepted = call->total[rank];
    if (ep_rows_before(args, call, rank, group.rank + 1, counts) > limit) {
        wefti_u64 rows = ep_rows_before(args, call, rank, group.rank, counts);
        accepted = rows > limit ? 0 : ep_tokens_before(args, call, rank, ep_find_cut(args, call, rank, rows, counts));
    }
    if (ep_lane() == 0) {
        wefti_st_relaxed(&args.tables.cut[rank], ep_packed(call->tag, accepted));
        wefti_st_relaxed((wefti_u64 *)(group.area[rank] + group.at.accepted) + group.rank,
                         ep_packed(call->tag, accepted));
    }
}

/* Wait for how many tokens are accepted, of this rank elsewhere and of others here. All threads. */
EP_DEVICE void ep_wait_accepted(const ep_dispatch &args, ep_call *call)
{
    const ep_group &group = args.group;
    const int rank = (int)threadIdx.x;
    if (rank < group.ranks && (call->alive >> rank & 1) != 0) {
        const wefti_u64 *here = (const wefti_u64 *)(group.area[group.rank] + group.at.accepted) + rank;
        if (!ep_await_value(group, &args.tables.cut[rank], call->tag, group.rank, &call->total[rank]) ||
            !ep_await_value(group, here, call->tag, rank, &call->count[rank])) {
            call->failed = 1;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        wefti_u32 end = 0;
        for (int source = 0; source < group.ranks; source++) {
            call->from[source] = end;
            end += call->count[source];
        }
        call->from[group.ranks] = end;
    }
    __syncthreads();
}

/* Once all counts are here. `full`: some rank cannot hold all. All threads. False: a rank or block did not
 * come. */
EP_DEVICE bool ep_drop_by_expert(const ep_dispatch &args, ep_call *call, bool full, int first_unit, int end_unit,
                                 wefti_u32 *counts)
{
    const ep_group &group = args.group;
    if (threadIdx.x == 0) { /* of the first round: a second one begins when all blocks have counted for it */
        call->wanted = (wefti_u32)wefti_ld_relaxed(&args.tables.full[group.rank]);
    }
    if (!full) {
        ep_write_accepted(args, call, first_unit, end_unit);
        return true;
    }
    for (int rank = ep_warp(); rank < group.ranks && blockIdx.x == 0; rank += ep_warps()) {
        if ((call->alive >> rank & 1) != 0) {
            ep_cut_rank(args, call, rank, counts);
        }
    }
    ep_wait_accepted(args, call);
    if (call->failed != 0) {
        return false;
    }
    if (threadIdx.x == 0) {
        call->tag |= 1; /* the second round */
        call->status = WEFT_OK;
    }
    __syncthreads();
    ep_write_accepted(args, call, first_unit, end_unit);
    ep_count_accepted(args, call, first_unit, end_unit, counts);
    ep_post_counts(args, call);
    ep_find_all_bases(args, call);
    return true;
}

#endif
