/* cuda/ep/many/combine.cuh: a combine of any layout, the backward of a dispatch where ranks are many, with options or
 * without, in one launch or as halves.
 *
 * Grid: as of throughput/combine.cuh; all warps of a block do the same. A token has a list of the ranks whose results
 * are added, in the order in which they are.
 * Shared memory: what the block knows of the call; a list a warp.
 * Flags: call header, which says where each owner's results are staged, DONE; next_unit, by which blocks meet.
 *
 *     blocks     own choices sent to the owners                                                    meet
 *     threads    the call header to each rank
 *     warps      a rank: its call header                                                           meet
 *     warps      a received token: its row, by expert the sum of its rows, to staging at its source  meet, DONE
 *     warps      a token: the sum of its results
 *
 * Bytes: each result is read once, written once, at its source, and read there. Floor: the links' rate. */
#ifndef WEFTI_CUDA_EP_MANY_COMBINE_CUH
#define WEFTI_CUDA_EP_MANY_COMBINE_CUH

#include "cuda/ep/device/combine_options.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/many/dispatch.cuh"

/* A result of a token's. */
typedef struct ep_many_result {
    wefti_u64 row; /* where it is staged */
    float weight;
    short rank;
    short key; /* those of smaller keys are added first; those of no row have only values */
} ep_many_result;
static_assert(sizeof(ep_many_result) == WEFTI_CUDA_EP_MANY_RESULT_BYTES, "as the host counts shared memory");
#define EP_MANY_NOT_ADDED ((short)-1)

/* ---- own choices ---- */

/* Those of a token of `source` at `rank`, where it is at `place`; of calls that pass ranks by its number among those of
 * the source. */
EP_DEVICE wefti_u32 *ep_many_combine_choices(const ep_combine &args, const ep_many_call *call, int rank, int source,
                                             wefti_u64 place)
{
    if constexpr (EP_MANY_PASSES) {
        const wefti_cuda_ep_passing choices = wefti_cuda_ep_passing_choices(&args.group.at, call->epoch & 1);
        return (wefti_u32 *)ep_many_passing_at(args.group, rank, source, choices) + place * (wefti_u64)args.topk;
    }
    return (wefti_u32 *)(ep_directory_of(args.group)->area[rank] + args.group.at.combine_choices[call->epoch & 1]) +
           place * (wefti_u64)args.topk;
}

/* By expert: those of this block's tokens to the ranks that received them. All threads. */
EP_DEVICE void ep_many_send_combine_choices(const ep_combine &args, const ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_many_share share = ep_many_share_of(call);
    for (int token = share.first + ep_warp(); token < share.end; token += ep_warps()) {
        for (int base = 0; base < group.ranks; base += 32) {
            const int rank = base + ep_lane();
            ep_going going = {false, 0};
            if (rank < group.ranks && ep_many_is_alive(call, rank)) {
                going = ep_many_going(group, args.tables, token, share.unit_tokens, rank);
            }
            for (wefti_u32 left = __ballot_sync(~0u, going.goes); left != 0; left &= left - 1) {
                const int to = __ffs((int)left) - 1;
                const wefti_u64 place =
                    (EP_MANY_PASSES ? 0 : (wefti_u64)args.tables.place[base + to]) + __shfl_sync(~0u, going.index, to);
                wefti_u32 *there = ep_many_combine_choices(args, call, base + to, group.rank, place);
                for (int k = ep_lane(); k < args.topk; k += 32) {
                    there[k] = ep_combine_choice(args.options, (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k);
                }
            }
        }
    }
}

/* ---- values ---- */

/* Where those of `token` from rank `from` lie at its source: by source each rank's apart, as all are added. */
template <class LAYOUT>
EP_DEVICE float *ep_many_values_from(const ep_combine &args, int source, int from, wefti_u32 token)
{
    const wefti_u64 before = LAYOUT::SUMS_AT_OWNER ? 0 : (wefti_u64)from * args.group.at.tokens_max;
    return ep_many_values(args.group, source, args.topk, before + token);
}

/* Those of the token at `place` to its source. A warp. */
template <class LAYOUT> EP_DEVICE void ep_many_send_values(const ep_combine &args, int source, wefti_u64 place)
{
    const wefti_u32 *record = args.tables.records + place * (wefti_u64)LAYOUT::record_words(args.topk);
    float *to = ep_many_values_from<LAYOUT>(args, source, args.group.rank, record[0]);
    for (int k = ep_lane(); k < args.topk; k += 32) {
        if (!LAYOUT::SUMS_AT_OWNER || ep_is_here<LAYOUT>(record, args.topk, k)) {
            to[k] = ep_given_value<LAYOUT>(args.options.values_in, record, args.topk, place, k);
        }
    }
}

/* A token's values, to the caller: of the owner of each choice, or, by source, the sum of all its ranks'. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_take_values(const ep_combine &args, const ep_many_call *call, int token, int unit_tokens,
                                   const ep_many_result *list, int count)
{
    const ep_group &group = args.group;
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    for (int k = ep_lane(); k < args.topk; k += 32) {
        float sum = 0.0f;
        if (LAYOUT::SUMS_AT_OWNER || args.options.of_owners != 0) {
            const int owner = ep_many_owners(args.tables)[first + (wefti_u64)k];
            const bool owned = owner >= 0 && ep_many_is_alive(call, owner) &&
                               ep_many_going(group, args.tables, token, unit_tokens, owner).goes;
            const float value =
                owned ? ep_many_values_from<LAYOUT>(args, group.rank, owner, (wefti_u32)token)[k] : 0.0f;
            sum = args.options.of_owners != 0 ? value : __fadd_rn(sum, value);
        } else {
            for (int i = 0; i < count; i++) {
                sum = __fadd_rn(sum,
                                ep_many_values_from<ep_by_source>(args, group.rank, list[i].rank, (wefti_u32)token)[k]);
            }
        }
        args.options.values_out[first + (wefti_u64)k] = sum;
    }
}

/* ---- leaving ---- */

/* The result of the token at `place`, the i-th of its source's. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_return(const ep_combine &args, const ep_many_call *call, wefti_u64 place, int source, int i)
{
    const ep_directory *directory = ep_directory_of(args.group);
    const int vectors = (int)(args.row_bytes / 16);
    unsigned char *to =
        EP_MANY_PASSES
            ? (unsigned char *)ep_many_passing_rows(args.group, source, args.group.rank) + (wefti_u64)i * args.row_bytes
            : (unsigned char *)(directory->area[source] + args.group.at.rows) +
                  ((wefti_u64)wefti_ld_relaxed(&directory->first_there[source]) + (wefti_u64)i) * args.row_bytes;
    if (!LAYOUT::SUMS_AT_OWNER) {
        ep_copy_row(to, args.in + place * args.in_pitch, args.row_bytes);
    } else {
        const wefti_u32 *record = args.tables.records + place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
        if ((args.flags & (WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS)) != 0) {
            ep_fold_as<true>(
                ep_in_vectors(), args, record,
                ep_many_combine_choices(args, call, args.group.rank, source, EP_MANY_PASSES ? (wefti_u64)i : place), to,
                0, vectors);
        } else {
            ep_fold_as<false>(ep_in_vectors(), args, record, 0, to, 0, vectors);
        }
    }
    if ((args.flags & WEFTI_CUDA_EP_VALUES) != 0) {
        ep_many_send_values<LAYOUT>(args, source, place);
    }
}

/* ---- adding up ---- */

/* By source: what a token's own choices say of `rank`: the last that takes part there, or -1, and the sum of their
 * weights. */
EP_DEVICE int ep_many_last_of(const ep_combine &args, int token, int rank, float *weight)
{
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    int last = -1;
    float sum = 0.0f;
    for (int k = 0; k < args.topk; k++) {
        const wefti_u64 at = first + (wefti_u64)k;
        if (ep_many_owners(args.tables)[at] == rank && ep_participates(args.options, at)) {
            sum = __fadd_rn(sum, ep_combine_weight(args.options, at));
            last = k;
        }
    }
    *weight = sum;
    return last;
}

/* The list of a token, in the order in which results are added. Returns how many there are. A warp. */
template <class LAYOUT>
EP_DEVICE int ep_many_list(const ep_combine &args, const ep_many_call *call, int token, int unit_tokens,
                           ep_many_result *list)
{
    const ep_group &group = args.group;
    const ep_directory *directory = ep_directory_of(group);
    const bool by_choice = (args.flags & WEFTI_CUDA_EP_BY_CHOICE) != 0;
    const bool has_own = (args.flags & (WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS)) != 0;
    int count = 0;
    for (int base = 0; base < group.ranks; base += 32) {
        const int rank = base + ep_lane();
        ep_going going = {false, 0};
        if (rank < group.ranks && ep_many_is_alive(call, rank)) {
            going = ep_many_going(group, args.tables, token, unit_tokens, rank);
        }
        const wefti_u32 lanes = __ballot_sync(~0u, going.goes);
        if (going.goes) {
            ep_many_result result;
            int last = 0;
            float own = 0.0f;
            if (by_choice || has_own) {
                last = ep_many_last_of(args, token, rank, &own);
            }
            result.row = EP_MANY_PASSES
                             ? ep_many_passing_rows(group, group.rank, rank) + (wefti_u64)going.index * args.row_bytes
                             : group.area[0] + group.at.rows +
                                   ((wefti_u64)directory->first[rank] + going.index) * args.row_bytes;
            result.weight = !LAYOUT::KEEPS_WEIGHTS ? 0.0f
                            : (args.flags & WEFTI_CUDA_EP_COMBINE_WEIGHTS) != 0
                                ? own
                                : args.tables.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank];
            result.rank = (short)rank;
            result.key = last < 0 ? EP_MANY_NOT_ADDED : by_choice ? (short)last : (short)0;
            list[count + __popc(lanes & ((1u << ep_lane()) - 1))] = result;
        }
        count += __popc(lanes);
    }
    __syncwarp();
    if (by_choice && ep_lane() == 0) {
        for (int i = 1; i < count; i++) { /* few, and of the same key in ascending rank already */
            const ep_many_result moved = list[i];
            int at = i;
            for (; at > 0 && list[at - 1].key > moved.key; at--) {
                list[at] = list[at - 1];
            }
            list[at] = moved;
        }
    }
    __syncwarp();
    return count;
}

/* What lane i adds of the results from `base` on. */
typedef struct ep_many_term {
    wefti_u32 lanes;
    wefti_u64 row;
    float weight;
} ep_many_term;

EP_DEVICE ep_many_term ep_many_term_of(const ep_many_result *list, int count, int base)
{
    const int i = base + ep_lane();
    ep_many_term term = {0, 0, 0.0f};
    bool adds = false;
    if (i < count) {
        term.row = list[i].row;
        term.weight = list[i].weight;
        adds = list[i].key != EP_MANY_NOT_ADDED;
    }
    term.lanes = __ballot_sync(~0u, adds);
    return term;
}

template <int DTYPE>
EP_DEVICE void ep_many_sum(const ep_combine &args, const ep_many_result *list, int count, bool scaled,
                           unsigned char *out, const ep_biases &biases)
{
    const ep_in_vectors form;
    const int vectors = (int)(args.row_bytes / 16);
    ep_many_term term = ep_many_term_of(list, count, 0);
    for (int at = ep_lane(); at - ep_lane() < vectors; at += 32 * ep_in_vectors::AT_ONCE) {
        float sum[ep_in_vectors::AT_ONCE][ep_type<DTYPE>::ELEMENTS] = {};
        if (biases.first) {
            ep_add_biases<DTYPE>(form, biases, sum, at, vectors);
        }
        for (int base = 0; base < count; base += 32) {
            if (count > 32) {
                term = ep_many_term_of(list, count, base);
            }
            ep_include<DTYPE, false>(form, sum, term.lanes, term.row, term.weight, scaled, at, vectors);
        }
        if (!biases.first) {
            ep_add_biases<DTYPE>(form, biases, sum, at, vectors);
        }
        ep_store_sums_as<DTYPE>(form, biases.out_dtype, out, sum, at, vectors);
    }
}

/* All warps of the grid: this rank's tokens. */
template <class LAYOUT>
EP_DEVICE void ep_many_add_up(const ep_combine &args, const ep_many_call *call, unsigned char *shared)
{
    const ep_warp_group warps = ep_many_warps();
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const bool scaled = LAYOUT::KEEPS_WEIGHTS && (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    ep_many_result *list = (ep_many_result *)shared + ep_warp() * args.group.ranks;
    for (int token = warps.number; token < call->tokens; token += warps.count) {
        const int count = ep_many_list<LAYOUT>(args, call, token, unit_tokens, list);
        unsigned char *out = args.out + (wefti_u64)token * args.out_pitch;
        const ep_biases biases = ep_biases_of(args, token);
        if ((args.flags & WEFTI_CUDA_EP_VALUES) != 0) {
            ep_many_take_values<LAYOUT>(args, call, token, unit_tokens, list, count);
        }
        if (args.dtype == WEFT_EP_BF16) {
            ep_many_sum<WEFT_EP_BF16>(args, list, count, scaled, out, biases);
        } else if (args.dtype == WEFT_EP_F16) {
            ep_many_sum<WEFT_EP_F16>(args, list, count, scaled, out, biases);
        } else {
            ep_many_sum<WEFT_EP_F32>(args, list, count, scaled, out, biases);
        }
        __syncwarp(); /* the list is read before the next is written */
    }
}

/* ---- the call ---- */

EP_DEVICE ep_many_header ep_many_combine_header(const ep_combine &args, const ep_many_call *call)
{
    ep_many_header header;
    header.signature = args.signature;
    header.route = call->route;
    header.place = 0;
    header.pitch = args.row_bytes;
    header.capacity = ~0u;
    return header;
}

/* Until the call header is posted. All threads of all blocks. False: a block did not come. */
template <class LAYOUT> EP_DEVICE bool ep_many_combine_open(const ep_combine &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    ep_directory *directory = ep_directory_of(group);
    const ep_warp_group threads = ep_many_threads();
    const bool goes = call->route_status != WEFT_ERR_OVERFLOW; /* or its places are more than there are */
    const bool sends = LAYOUT::SUMS_AT_OWNER && goes &&
                       (args.flags & (WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS)) != 0;
    if (sends) {
        ep_many_send_combine_choices(args, call);
        if (!ep_many_meet(&group, &args.tables, call)) {
            return false;
        }
    }
    wefti_fence_acq_rel();
    __syncthreads();
    if constexpr (!EP_MANY_PASSES) { /* in which each rank's results have a place of their own */
        for (int rank = threads.number; rank < group.ranks; rank += threads.count) {
            wefti_u32 first = 0;
            for (int before = 0; before < rank; before++) {
                first += args.tables.sent[before];
            }
            directory->first[rank] = first;
            ep_many_post_word(group, call, rank, WEFTI_CUDA_EP_HEADER_WORDS, first);
        }
    }
    ep_many_post_call(group, call, ep_many_combine_header(args, call));
    return true;
}

template <class LAYOUT>
EP_DEVICE void ep_many_combine_finish(const ep_combine &args, ep_many_call *call, unsigned char *shared)
{
    const ep_group &group = args.group;
    const ep_tables &tables = args.tables;
    const ep_many_header header = ep_many_combine_header(args, call);
    if (!ep_many_study(group, tables, call, header, 0, [&](int rank, const wefti_u32 *) {
            if (EP_MANY_PASSES) {
                return; /* each rank's results have a place of their own */
            }
            const wefti_u64 *word = ep_many_header_words(group, call, group.rank, rank) + WEFTI_CUDA_EP_HEADER_WORDS;
            wefti_st_relaxed(&ep_directory_of(group)->first_there[rank],
                             ep_directory_of(group)->differs[rank] != 0 ? 0 : ep_many_await(&group, call, word, rank));
        })) {
        return;
    }
    if (call->status != WEFT_OK || call->route_status == WEFT_ERR_OVERFLOW) {
        return;
    }
    ep_many_of_received(group, tables, [&](wefti_u64 place, int source, int i) {
        if (ep_many_is_alive(call, source)) {
            ep_many_return<LAYOUT>(args, call, place, source, i);
        }
    });
    if (ep_many_exchange(group, tables, call, WEFTI_CUDA_EP_DONE, EP_MANY_IN_DONE_OF_COMBINE)) {
        ep_many_add_up<LAYOUT>(args, call, shared);
    }
}

/* All threads of all blocks. */
template <class LAYOUT> EP_DEVICE void ep_many_combine(const ep_combine &args)
{
    EP_SHARED(ep_many_call, call);
    EP_DYNAMIC_SHARED(shared);
    const wefti_cuda_ep_phase phase = (wefti_cuda_ep_phase)args.blocks.phase;
    if (threadIdx.x == 0) {
        call.tokens = args.tables.route_header->tokens;
    }
    if (!ep_many_begin(args.group, args.tables, &call, phase)) {
        return;
    }
    if (phase != WEFTI_CUDA_EP_RECV && !ep_many_combine_open<LAYOUT>(args, &call)) {
        return;
    }
    if (phase != WEFTI_CUDA_EP_SEND) {
        ep_many_combine_finish<LAYOUT>(args, &call, shared);
    }
}

#endif
