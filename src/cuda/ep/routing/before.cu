/* cuda/ep/routing/before.cu: kernels that run before a call on its stream, and wait for nobody.
 *
 *     destinations   before a dispatch of a route of WEFT_EP_DESTINATIONS: a thread a pair of token and rank, its id
 *     positions      the same of a route whose choices are positions; which of its tokens has each number
 *     dropping       before a call that makes a routing where rows are dropped by themselves, after ranks have counted:
 *                    a thread a choice, what is left of it
 *     order          before a combine with options (device/combine_options.cuh; not by_rank): a warp a token: in which
 *                    order its results are added; by source the sums of its own weights; by expert its own choices to
 *                    their owners */
#include "cuda/ep/device/combine_options.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/routing/count.cuh"

typedef wefti_cuda_ep_drop_args ep_dropping;

EP_DEVICE int ep_tokens_told(const ep_choices &choices)
{
    const int told = choices.tokens_at != 0 ? *choices.tokens_at : choices.tokens;
    return told < 0 ? 0 : told > choices.tokens ? choices.tokens : told;
}

/* Destinations as ids: choice k of a token is rank k, or none. All threads of a grid. */
EP_DEVICE void ep_make_ids(const ep_dispatch &args)
{
    const ep_choices &choices = args.choices;
    const int count = ep_tokens_told(choices) * args.topk;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x)) {
        args.tables.ids[i] = choices.destinations[i] != 0 ? i % args.topk : -1;
    }
}

/* ---- positions ---- */

/* The tokens that go to a rank, and whether their positions are 0, 1 and so on, each once: whoever has a number is its
 * only one, if every token finds itself where its number says. A block; false in any of its threads: they are not. */
EP_DEVICE bool ep_number_tokens(const ep_dispatch &args, int tokens, int rank, int *count)
{
    const wefti_u64 ranks = (wefti_u64)args.group.ranks;
    const wefti_i32 *positions = (const wefti_i32 *)args.choices.destinations + rank;
    wefti_u32 *holders = args.tables.rows + rank;
    bool well = true;
    if (threadIdx.x == 0) {
        *count = 0;
    }
    __syncthreads();
    for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
        const bool goes = positions[(wefti_u64)token * ranks] >= 0;
        args.tables.ids[(wefti_u64)token * ranks + (wefti_u64)rank] = goes ? rank : -1;
        if (goes) {
            atomicAdd((wefti_u32 *)count, 1u);
        }
    }
    __syncthreads();
    for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
        const int position = positions[(wefti_u64)token * ranks];
        if (position >= 0 && position < *count) {
            holders[(wefti_u64)position * ranks] = (wefti_u32)token;
        }
        well = well && position < *count;
    }
    __syncthreads();
    for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
        const int position = positions[(wefti_u64)token * ranks];
        if (position >= 0 && position < *count) {
            well = well && holders[(wefti_u64)position * ranks] == (wefti_u32)token;
            args.tables.target[(wefti_u64)token * ranks + (wefti_u64)rank] = (wefti_u32)position;
        }
    }
    return well;
}

/* In place of positions that are none: tokens in their order. A warp a rank. */
EP_DEVICE void ep_keep_order(const ep_dispatch &args, int tokens)
{
    const wefti_u64 ranks = (wefti_u64)args.group.ranks;
    for (int rank = ep_warp(); rank < args.group.ranks; rank += ep_warps()) {
        wefti_u32 before = 0;
        for (int base = 0; base < tokens; base += 32) {
            const int token = base + ep_lane();
            const wefti_u64 at = (wefti_u64)token * ranks + (wefti_u64)rank;
            const wefti_u32 going = __ballot_sync(~0u, token < tokens && args.tables.ids[at] >= 0);
            if (token < tokens) {
                args.tables.target[at] = before + (wefti_u32)__popc(going & ((1u << ep_lane()) - 1));
            }
            before += (wefti_u32)__popc(going);
        }
    }
}

/* What a block of the kernel `positions` shares. */
typedef struct ep_positions {
    int count; /* tokens that go to the rank */
    int odd; /* a rank of this block's has positions that are none; then whether any has */
    int is_last;
} ep_positions;

/* The kernel `positions`: a block a rank; the last block to end knows of all. */
EP_DEVICE void ep_take_positions(const ep_dispatch &args)
{
    EP_SHARED(ep_positions, here);
    const int tokens = ep_tokens_told(args.choices);
    wefti_u32 *ended = (wefti_u32 *)args.tables.unpadded; /* blocks; and those with odd ones */
    if (threadIdx.x == 0) {
        here.odd = 0;
    }
    __syncthreads();
    for (int rank = (int)blockIdx.x; rank < args.group.ranks; rank += (int)gridDim.x) {
        if (!ep_number_tokens(args, tokens, rank, &here.count)) {
            here.odd = 1;
        }
        __syncthreads();
    }
    wefti_fence_acq_rel();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (here.odd != 0) {
            atomicAdd(&ended[1], 1u);
        }
        wefti_fence_acq_rel();
        here.is_last = atomicAdd(&ended[0], 1u) == gridDim.x - 1;
        wefti_fence_acq_rel();
        if (here.is_last != 0) {
            here.odd = atomicAdd(&ended[1], 0u) != 0;
            args.tables.unpadded[1] = (wefti_u64)here.odd;
            args.tables.unpadded[0] = 0;
        }
    }
    __syncthreads();
    if (here.is_last != 0 && here.odd != 0) {
        ep_keep_order(args, tokens);
    }
}

/* ---- rows that are dropped ---- */

EP_DEVICE int ep_owner_of_choice(const ep_dropping &args, int at)
{
    return args.wide_owners != 0 ? ((const short *)args.tables.owner)[at] : args.tables.owner[at];
}

/* Whether a choice that `owner` has the expert of is kept there. */
EP_DEVICE bool ep_is_kept(const ep_dropping &args, int at, int owner, int unit_tokens)
{
    const int token = at / args.topk;
    const wefti_u64 unit = (wefti_u64)(token / unit_tokens) * (wefti_u64)args.ranks + (wefti_u64)owner;
    const wefti_u32 bits = (wefti_u32)args.tables.bits[unit] & ((1u << (token % unit_tokens)) - 1);
    const wefti_u64 place = (wefti_u64)args.tables.place[owner] + args.tables.before[unit] + (wefti_u32)__popc(bits);
    return place < args.tokens_limit && args.tables.rows[at] < args.rows_limit;
}

/* What this rank would receive: for the counts of the routing to come. One thread. */
EP_DEVICE void ep_note_asked(const ep_dropping &args)
{
    const wefti_cuda_ep_told &told = args.told;
    wefti_u64 rows = 0;
    for (int expert = 0; expert < told.experts; expert++) {
        rows += (wefti_u32)args.tables.rows_of_expert[expert];
    }
    *args.tables.asked = rows;
    if (told.tells != 0 && told.with_dropped != 0 && told.rows != 0) {
        const wefti_u64 slot = told.generation != 0 ? (*told.counted + 1) & 1 : 0;
        const wefti_i32 all = args.tables.offset_of_expert[told.experts];
        if (told.wide != 0) {
            ((wefti_i64 *)told.rows)[slot] = all;
        } else {
            ((wefti_i32 *)told.rows)[slot] = all;
        }
    }
}

/* The kernel `dropping`: a thread a choice. */
EP_DEVICE void ep_drop_rows(const ep_dropping &args)
{
    const int tokens = ep_tokens_told(args.choices);
    const int unit_tokens = wefti_cuda_ep_unit(tokens);
    const int count = tokens * args.topk;
    for (int at = (int)(blockIdx.x * blockDim.x + threadIdx.x); at < count; at += (int)(gridDim.x * blockDim.x)) {
        const int id = ep_id(args.choices, (wefti_u64)at, args.experts);
        const int owner = ep_owner_of_choice(args, at);
        const bool kept = owner < 0 || ep_is_kept(args, at, owner, unit_tokens);
        args.tables.kept[at] = id < -1 ? (wefti_i32)0x80000000 : kept ? id : -1;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        ep_note_asked(args);
    }
}

/* ---- the order of results ---- */

/* What lane r finds of rank r for a token: the last choice there that takes part (-1: none), and the sum of the call's
 * own weights of those that do, added in ascending choice. */
typedef struct ep_share_of_rank {
    int last;
    float weight;
} ep_share_of_rank;

EP_DEVICE ep_share_of_rank ep_share_of_token(const ep_combine &args, int token)
{
    ep_share_of_rank share = {-1, 0.0f};
    for (int first = 0; first < args.topk; first += 32) {
        const int k = first + ep_lane();
        const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k;
        const bool participates = k < args.topk && ep_participates(args.options, at);
        const int owner = participates ? (int)args.tables.owner[at] : -1;
        const float weight = participates ? ep_combine_weight(args.options, at) : 0.0f;
        for (int i = 0; i < 32 && first + i < args.topk; i++) {
            const int owner_of_choice = __shfl_sync(~0u, owner, i);
            const float its_weight = __shfl_sync(~0u, weight, i);
            if (owner_of_choice == ep_lane()) {
                share.weight = __fadd_rn(share.weight, its_weight);
                share.last = first + i;
            }
        }
    }
    return share;
}

/* Write down the order of a token's ranks, those of `ranks`. A warp. */
EP_DEVICE void ep_write_order(const ep_combine &args, int token, wefti_u32 ranks, int last)
{
    const int all = args.group.ranks;
    const int rank = ep_lane();
    const int key = (args.flags & WEFTI_CUDA_EP_BY_CHOICE) != 0 ? last : 0;
    int before = 0; /* ranks that come before this lane's */
    for (wefti_u32 left = ranks; left != 0; left &= left - 1) {
        const int other = __ffs((int)left) - 1;
        const int other_key = __shfl_sync(~0u, key, other);
        before += other_key < key || (other_key == key && other < rank);
    }
    unsigned char *order = args.tables.order + (wefti_u64)token * (wefti_u64)all;
    if ((ranks >> rank & 1) != 0) {
        order[before] = (unsigned char)((wefti_u32)rank | (last < 0 ? WEFTI_CUDA_EP_NOT_ADDED : 0u));
    }
    if (rank >= __popc(ranks) && rank < all) {
        order[rank] = WEFTI_CUDA_EP_NO_RANK;
    }
}

/* By expert: send a token's own choices to the ranks that received it; lane r has the place at rank r. Called by a
 * warp. */
EP_DEVICE void ep_send_combine_choices(const ep_combine &args, wefti_u64 epoch, int token, wefti_u32 ranks,
                                       wefti_u64 place)
{
    for (wefti_u32 left = ranks; left != 0; left &= left - 1) {
        const int rank = __ffs((int)left) - 1;
        wefti_u32 *to = ep_combine_choices(args, epoch, rank, __shfl_sync(~0u, place, rank));
        for (int k = ep_lane(); k < args.topk; k += 32) {
            to[k] = ep_combine_choice(args.options, (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k);
        }
    }
}

/* The kernel `order`: a warp a token; no block waits for another. */
template <class LAYOUT> EP_DEVICE void ep_combine_order(const ep_combine &args)
{
    const ep_group &group = args.group;
    const ep_tables &tables = args.tables;
    const wefti_cuda_ep_control *control = ep_control(group);
    const wefti_u64 epoch = wefti_ld_relaxed(&control->epoch) + 1; /* of the combine */
    const wefti_u32 alive = ~wefti_ld_relaxed(&control->masked);
    const int tokens = tables.route_header->tokens;
    const int unit_tokens = wefti_cuda_ep_unit(tokens);
    const int rank = ep_lane();
    if (wefti_ld_relaxed(&control->failed) != 0 || tables.route_header->routed == WEFT_ERR_OVERFLOW) {
        return; /* after an overflow places may lie behind the end of the tables */
    }
    for (int token = ep_warp() * (int)gridDim.x + (int)blockIdx.x; token < tokens;
         token += ep_warps() * (int)gridDim.x) {
        const ep_share_of_rank share = ep_share_of_token(args, token);
        ep_going going = {false, 0};
        wefti_u64 place = 0;
        if (rank < group.ranks) {
            going = ep_going_of(group, tables, token, unit_tokens, rank);
            going.goes = going.goes && (alive >> rank & 1) != 0;
            place = (wefti_u64)tables.place[rank] + (wefti_u64)going.index;
        }
        const wefti_u32 ranks = __ballot_sync(~0u, going.goes);
        ep_write_order(args, token, ranks, share.last);
        if (LAYOUT::KEEPS_WEIGHTS && rank < group.ranks) {
            tables.combine_weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank] = share.weight;
        }
        if (LAYOUT::SUMS_AT_OWNER && ep_has_combine_choices(args)) {
            ep_send_combine_choices(args, epoch, token, ranks, place);
        }
    }
}

EP_KERNEL(12destinations, C1, ep_dispatch, ep_make_ids)
EP_KERNEL(8dropping, C1, ep_dropping, ep_drop_rows)
EP_KERNEL(9positions, C1, ep_dispatch, ep_take_positions)
EP_KERNEL(5order, C1, ep_combine, ep_combine_order<ep_by_source>)
EP_KERNEL(12order_expert, C1, ep_combine, ep_combine_order<ep_by_expert>)
