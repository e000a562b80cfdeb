/* cuda/ep/throughput/dispatch.cuh: a new routing (FRESH), its rows (MOVE), or both, in one launch or as halves; by
 * source, or by expert. The kernels: dispatch.cu and its neighbours; backward/combine_bwd.cu.
 *
 * Grid: host/plan.c; any number of blocks of 512 threads, which must be able to run together.
 * Warps: sender warps move rows out; receiver warps send what goes beside them, and take in what comes; the last two of
 *     block 0, the header warps, post the call header first (device/warp_roles.cuh).
 * Shared memory: what the block knows of the call (device/call.cuh); a pipe a sender warp, counts of experts, a stage
 *     of scales for each of the others.
 * Flags: call header, counts, choices, accepted, meta_ready, rows_ready; between this rank's blocks bits, partials,
 *     ahead, base, full, begin, end, cut, next_unit (README.md has the writer and reader of each).
 *
 *     all        count: bits of all tokens, posted to this rank's blocks
 *     block 0    its call header to all ranks
 *     all        wait for all call headers; where rows go, where they come from, is all well?
 *     senders    of each unit of this block: its rows to all their ranks, then the unit's word in `rows_ready`, or its
 *                grains' words
 *     receivers  of each unit of this block: its records, then its word in `meta_ready`; of each unit of any source:
 *                once `meta_ready` is there, from the area to the route and the caller's arrays; then once `rows_ready`
 *                is there, what is left to do with its rows
 *
 * By expert there is between the call headers and the rows what routing/prefix.cuh says, and the receivers also copy
 * the rows of tokens with several experts here (replicate.cuh).
 *
 * Halves: send posts this rank's call header and waits for no other rank; recv waits for the others' and does the rest,
 * since a row's place depends on all of them.
 *
 * Where rows leave with send (dispatch_eager.cu; eager.cuh) a kernel behind that of send moves them, of both layouts,
 * and what goes beside them, to where their receivers have memory for this rank's, and recv copies them to their
 * places:
 *
 *     rows       ep_dispatch_rows. Grid: that of send; waits for nobody. Warps: sender warps; the others send what goes
 *                beside rows. Shared memory: what the block knows of the call; a pipe a sender warp, counts of experts,
 *                a stage of scales for each of the others. Flags: next_unit; the words beside the rows
 *                (cuda/ep/eager.h). Bytes: each row read once and written once to each of its ranks. Floor: as above
 *     recv       ep_dispatch_recv_eager. No senders. Of a new routing by source in a group that drops rows it tells
 *                owners how often their experts are chosen, which follows from all ranks' call headers; by expert there
 *                is a second round where rows are dropped. Else it waits for nothing that a recv sends. Bytes: each row
 *                read and written once more here, by expert as often as it has rows. Floor: these over the rate of a
 *                copy in this GPU's memory
 *
 * Bytes: each row is read once and written once to each of its ranks; by expert, read there once more if it has several
 * rows, and written to these. Floor: the bytes written to other ranks over the rate at which all GPUs together store to
 * each other by bulk copies (bench/gpu/ep.md measures both). */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_DISPATCH_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_DISPATCH_CUH

#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/values.cuh"
#include "cuda/ep/routing/overflow.cuh"
#include "cuda/ep/routing/told.cuh"
#include "cuda/ep/throughput/recv.cuh"
#include "cuda/ep/throughput/send_meta.cuh"

/* By expert: rows that were not accepted here. One thread, when all bases are posted. */
EP_DEVICE wefti_i32 ep_dropped_rows(const ep_dispatch &args, const ep_call *call)
{
    wefti_u32 all = 0;
    wefti_u32 accepted = 0;
    const int rank = args.group.rank;
    const bool cut = (call->tag & 1) != 0;
    if ((!cut && args.tables.asked == 0) ||
        !ep_await_value(args.group, &args.tables.unpadded[call->tag & 1], call->tag, rank, &accepted) ||
        (cut && !ep_await_value(args.group, &args.tables.unpadded[0], call->tag - 1, rank, &all))) {
        return 0;
    }
    return (wefti_i32)((args.tables.asked != 0 ? (wefti_u32)*args.tables.asked : all) - accepted);
}

/* The route header of a new routing, by one warp. */
template <class LAYOUT> EP_DEVICE void ep_note(const ep_dispatch &args, const ep_call *call)
{
    int rank = ep_lane();
    const ep_group &group = args.group;
    wefti_cuda_ep_route_header *route_header = args.tables.route_header;
    wefti_u32 dropped = ep_sum_partials(group, call, args.tables, group.first_expert[group.ranks]);
    const wefti_u32 received = __reduce_add_sync(~0u, rank < group.ranks ? call->count[rank] : 0);
    if (rank < group.ranks) {
        args.tables.sent[rank] = call->total[rank];
        args.tables.place[rank] = call->place[rank];
        args.tables.rows_of_source[rank] = (wefti_i32)call->count[rank];
        args.tables.offset_of_source[rank] = (wefti_i32)call->from[rank];
        args.tables.tokens_of[rank] = call->tokens_of[rank];
    }
    if (rank == 0) {
        args.tables.offset_of_source[group.ranks] = (wefti_i32)call->from[group.ranks];
        route_header->tokens = call->tokens;
        if (LAYOUT::ROWS_OF_CHOICES) {
            route_header->dropped_rows = ep_dropped_rows(args, call);
        }
        route_header->rows = !LAYOUT::ROWS_OF_CHOICES ? (wefti_i32)call->from[group.ranks]
                             : ep_owns_experts(group, group.rank)
                                 ? (wefti_i32)wefti_ld_relaxed(&args.tables.full[group.rank])
                                 : 0;
        route_header->received = (wefti_i32)received;
        route_header->tag = call->status == WEFT_ERR_MISMATCH ? 0 : call->tag;
        route_header->dropped = (wefti_i32)dropped;
        route_header->routed = call->status != WEFT_OK            ? call->status
                               : dropped != 0 || call->odd_tokens ? WEFT_ERR_RANGE
                                                                  : WEFT_OK;
        route_header->status = route_header->routed;
    }
}

/* Where in an area owners are told how often their experts are chosen. */
template <class WAY> EP_DEVICE wefti_u64 ep_choices_of_call(const ep_dispatch &args, const ep_call *call)
{
    if constexpr (WAY::IS_EAGER) {
        return ep_eager_of(args).choices[call->epoch & 1];
    } else {
        return args.group.at.choices;
    }
}

/* The warp that tells the counts of a new routing. */
EP_DEVICE bool ep_is_teller()
{
    return blockIdx.x == gridDim.x - 1 && ep_warp() == ep_warps() - 2;
}

/* The tokens from the lane's rank. */
EP_DEVICE wefti_u32 ep_of_source(const ep_group &group, const ep_call *call)
{
    return ep_lane() < group.ranks ? call->count[ep_lane()] : 0;
}

/* The counts of a new routing, to the caller's arrays, by one warp of the call: by expert as soon as it is known where
 * rows lie, and where tokens are dropped once those are known. */
EP_DEVICE void ep_tell_by_expert(const ep_dispatch &args, const ep_call *call)
{
    ep_tell_counts(&args, call, true, ep_of_source(args.group, call),
                   ep_counts(args.group, call, args.group.rank, 0) + ep_first_own(args.group),
                   (wefti_u32)args.group.first_expert[args.group.ranks]);
}

template <class WAY> EP_DEVICE void ep_tell_by_source(const ep_dispatch &args, const ep_call *call)
{
    ep_tell_counts(&args, call, false, ep_of_source(args.group, call),
                   ep_choices_from(args.group, ep_choices_of_call<WAY>(args, call), 0), args.group.at.local_max);
}

/* What warps do that are no sender warps. `goes`: rows move; not when a new routing overflows, of which the counts are
 * told all the same. */
template <class LAYOUT, class WAY>
EP_DEVICE void ep_serve(const ep_dispatch &args, const ep_call *call, bool goes, unsigned char *stages)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const int skip = args.blocks.sender_warps;
    if (LAYOUT::ROWS_OF_CHOICES && fresh && args.group.drops != 0 && ep_tells(args) && ep_is_teller()) {
        ep_tell_by_expert(args, call);
    }
    if constexpr (WAY::IS_EAGER) {
        if (LAYOUT::ROWS_OF_CHOICES && goes && fresh) {
            ep_post_eager_bases(args, call);
        }
        if (LAYOUT::KEEPS_WEIGHTS && goes && ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS)) {
            ep_write_all_new_weights(args, call);
        }
    } else if (goes && ep_has_meta(args)) {
        ep_send_meta<LAYOUT>(args, call, stages);
    }
    if (goes && !fresh) {
        ep_receive_cached<LAYOUT>(args, call);
    }
    if (fresh) {
        if (!LAYOUT::ROWS_OF_CHOICES && (!WAY::IS_EAGER || args.group.drops != 0)) {
            ep_post_choices(args.group, call, args.tables, ep_choices_of_call<WAY>(args, call), skip);
        }
        if (blockIdx.x == 0 && ep_warp() == ep_warps() - 1) {
            ep_note<LAYOUT>(args, call);
        }
        if (!LAYOUT::ROWS_OF_CHOICES && ep_tells(args) && ep_is_teller()) {
            ep_tell_by_source<WAY>(args, call);
        }
    }
    if (LAYOUT::ROWS_OF_CHOICES && goes && args.experts.slots == 0 && !ep_pad(args, call, skip)) {
        return;
    }
    if (goes) {
        ep_receive<LAYOUT, WAY>(args, call);
    }
    if constexpr (WAY::IS_BACKWARD) {
        WAY::finish(args, call, goes, skip);
    }
    if (!LAYOUT::ROWS_OF_CHOICES && fresh) {
        ep_wait_choices(args.group, call, args.tables, ep_choices_of_call<WAY>(args, call), skip);
    }
}

/* By expert: the rows of a new routing, or whether those of the one that is there fit. All threads. False: a rank or
 * block did not come. */
EP_DEVICE bool ep_find_rows(const ep_dispatch &args, ep_call *call, unsigned char *shared, int first_unit, int end_unit)
{
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        wefti_u32 *starts = (wefti_u32 *)(shared + args.experts.starts_at);
        const bool tells = ep_tells(args) && ep_is_teller();
        if (tells) {
            ep_tell_counts(&args, call, true, 0, 0, 0);
        }
        ep_find_all_bases(args, call);
        if (tells && args.group.drops == 0) {
            ep_tell_by_expert(args, call);
        }
        if (args.group.drops != 0) {
            if (ep_warp() == ep_warps() - 1) {
                ep_judge(args, call, true);
            }
            __syncthreads();
            const bool full = call->status == WEFT_ERR_OVERFLOW;
            __syncthreads();
            if (call->failed != 0 || !ep_drop_by_expert(args, call, full, first_unit, end_unit, starts)) {
                return false;
            }
            ep_number_share(args, call, first_unit, end_unit, starts);
            __syncthreads();
        }
        return ep_place_rows(args, call, first_unit, end_unit, starts);
    }
    if (ep_warp() == ep_warps() - 1) {
        ep_judge(args, call, false);
    }
    __syncthreads();
    return true;
}

/* Once this rank's call header is posted: until all has come. All threads of all blocks. */
template <class LAYOUT, class WAY>
EP_DEVICE void ep_finish_dispatch(const ep_dispatch &args, ep_call *call, const ep_call_header &header,
                                  ep_sender *sender, bool moves, unsigned char *stages, int first_unit, int end_unit)
{
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (LAYOUT::ROWS_OF_CHOICES && fresh && group.drops == 0 && !WAY::IS_EAGER) {
        ep_number_share(args, call, first_unit, end_unit, (wefti_u32 *)(stages + args.experts.starts_at));
    }
    if (!ep_wait_headers(group, call)) {
        if (moves) {
            ep_pipe_drain(&sender->pipe);
        }
        return;
    }
    if (ep_warp() == ep_warps() - 1) {
        ep_study_calls(group, call, header, fresh);
    } else if (ep_warp() == ep_warps() - 2) {
        ep_study_buffers(group, call, header);
        if (ep_lane() == group.rank && ep_is(args, WEFTI_CUDA_EP_MOVE)) {
            /* This rank's own rows are never staged. */
            call->to[group.rank] = (wefti_u64)args.out;
            call->pitch[group.rank] = args.out_pitch;
            if (LAYOUT::ROWS_OF_CHOICES) {
                call->staged &= ~(1u << group.rank);
            }
        }
    } else if (ep_warp() == ep_warps() - 3 && fresh) {
        ep_study_places(group, call, header);
    } else if (moves) {
        ep_sender_look(args, call, sender);
    }
    __syncthreads();
    if (fresh && call->status == WEFT_ERR_MISMATCH && blockIdx.x == 0 && ep_warp() == 0) {
        ep_forget_routing(group, args.tables);
    }
    if (LAYOUT::ROWS_OF_CHOICES && call->status != WEFT_ERR_MISMATCH &&
        !ep_find_rows(args, call, stages, first_unit, end_unit)) {
        if (moves) {
            ep_pipe_drain(&sender->pipe);
        }
        return;
    }
    if (!fresh && call->status != WEFT_ERR_MISMATCH && blockIdx.x == 0 && threadIdx.x == 0) {
        /* Some rank's buffer may be too small for this dispatch; the next may fit. */
        args.tables.route_header->status = call->status != WEFT_OK ? call->status : call->route_status;
    }
    if (!LAYOUT::ROWS_OF_CHOICES && fresh && group.drops != 0 && call->status == WEFT_OK) {
        ep_drop_by_source(&args, call, first_unit, end_unit, (wefti_u32 *)(stages + args.experts.starts_at));
    }
    const bool goes = call->status == WEFT_OK &&
                      (fresh || (call->route_status != WEFT_ERR_OVERFLOW && call->route_status != WEFT_ERR_MISMATCH));
    if (goes && ep_is(args, WEFTI_CUDA_EP_MOVE) && threadIdx.x == blockDim.x - 1) {
        ep_offer_units(args, call, first_unit, end_unit);
    }
    if (moves) {
        if (goes) {
            ep_sender_run<LAYOUT, WAY>(args, call, sender);
        } else {
            ep_pipe_drain(&sender->pipe);
        }
    } else if (call->status != WEFT_ERR_MISMATCH) {
        ep_serve<LAYOUT, WAY>(args, call, goes, stages);
    }
}

/* What is read before it is known which call this is: the routing that is there, or, on its way, what a new one comes
 * from. Before ep_begin. The prologue warps. */
EP_DEVICE void ep_open(const ep_dispatch &args, ep_call *call, unsigned char *shared)
{
    if (threadIdx.x == 32 * 4) {
        call->tokens = ep_tokens_of_call(args, call);
    }
    if (!ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        ep_recall(args.group, call, args.tables);
        return;
    }
    ep_prefetch_choices(args.choices, args.topk);
    ep_clear_totals(call);
    ep_clear_partial(args.group, (wefti_u32 *)(shared + args.experts.starts_at));
}

/* How many tokens of this rank go to each rank. False: a block did not count in time. All threads. */
template <class LAYOUT> EP_DEVICE bool ep_find_totals(const ep_dispatch &args, ep_call *call, unsigned char *shared)
{
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        return ep_count(
            args.group, call, args.tables, args.choices, args.topk, LAYOUT::ROWS_OF_CHOICES && args.experts.slots != 0,
            LAYOUT::ROWS_OF_CHOICES || args.group.drops == 0, (wefti_u32 *)(shared + args.experts.starts_at));
    }
    ep_forget_masked(args.group, call);
    return true;
}

/* The same of a recv: its send's blocks have counted, each its part. */
EP_DEVICE bool ep_recall_totals(const ep_dispatch &args, ep_call *call, int first_unit)
{
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        return ep_gather(args.group, call, args.tables, first_unit);
    }
    ep_forget_masked(args.group, call);
    return true;
}

/* A call begins. False: it ends here. All threads of all blocks. */
template <ep_phase PHASE>
EP_DEVICE bool ep_dispatch_begins(const ep_dispatch &args, ep_call *call, unsigned char *stages)
{
    if (ep_posts_header()) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_look_up(args.group, call);
        if (PHASE != EP_SEND) {
            ep_touch(args);
        }
        ep_open(args, call, stages);
    }
    if (!ep_begin(args.group, call)) {
        return false;
    }
    ep_note_half<PHASE>(args, call);
    return true;
}

/* As ep_dispatch_begins, of a recv. All threads of all blocks. */
EP_DEVICE bool ep_dispatch_goes_on(const ep_dispatch &args, ep_call *call, unsigned char *stages)
{
    if (ep_in_prologue()) {
        ep_open(args, call, stages);
    }
    return ep_begin_recv(args.group, call);
}

/* This rank's call header leaves, when the call has begun. All threads of all blocks. */
template <class WAY>
EP_DEVICE void ep_dispatch_posts(const ep_dispatch &args, const ep_call *call, const ep_call_header &header)
{
    if (WAY::IS_BACKWARD && ep_is(args, WEFTI_CUDA_EP_VALUES) && blockIdx.x == 0) {
        ep_clear_values(args.group, call, args.topk);
        if (ep_posts_header()) {
            wefti_fence_acq_rel();
        }
    }
    if (ep_posts_header()) {
        __syncwarp();
        ep_post_header(args.group, call, header);
    }
}

/* All threads of all blocks. */
template <class LAYOUT, class WAY, ep_phase PHASE> EP_DEVICE void ep_dispatch_call(const ep_dispatch &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(stages);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const bool is_recv = ep_does<PHASE, EP_RECV>(args);
    if (is_recv ? !ep_dispatch_goes_on(args, &call, stages) : !ep_dispatch_begins<PHASE>(args, &call, stages)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call.tokens), &first_unit, &end_unit);
    if (is_recv ? !ep_recall_totals(args, &call, first_unit) : !ep_find_totals<LAYOUT>(args, &call, stages)) {
        return;
    }
    const ep_call_header header = ep_dispatch_header<LAYOUT>(args, &call);
    if (!is_recv) {
        ep_dispatch_posts<WAY>(args, &call, header);
    }
    if (fresh && !is_recv) {
        ep_write_before(args.group, &call, args.tables, first_unit, end_unit);
    }
    const bool moves = PHASE != EP_SEND && !WAY::IS_EAGER && ep_warp() < args.blocks.sender_warps &&
                       (PHASE == EP_RECV || ep_is(args, WEFTI_CUDA_EP_MOVE));
    ep_sender sender;
    if (moves) {
        sender = ep_sender_open<WAY::QUANTISES>(args, &call, stages);
    }
    if (LAYOUT::ROWS_OF_CHOICES && fresh && !is_recv) {
        ep_post_counts(args, &call);
    }
    if (!ep_does<PHASE, EP_SEND>(args)) {
        ep_finish_dispatch<LAYOUT, WAY>(args, &call, header, &sender, moves, stages, first_unit, end_unit);
    }
}

/* ---- rows that leave with send ---- */

/* Behind send: what goes beside the rows leaves. The warps that do not move. */
EP_DEVICE void ep_dispatch_beside_rows(const wefti_cuda_ep_eager_dispatch_args &all, const ep_call *call,
                                       unsigned char *stages)
{
    const ep_dispatch &args = all.call;
    if (ep_has_meta(args) && all.is_by_expert != 0) {
        ep_send_meta<ep_by_expert, true>(args, call, stages);
    } else if (ep_has_meta(args)) {
        ep_send_meta<ep_by_source, true>(args, call, stages);
    }
    if (ep_is(args, WEFTI_CUDA_EP_FRESH) && all.is_by_expert == 0 && args.group.drops == 0) {
        ep_post_choices(args.group, call, args.tables, ep_eager_of(args).choices[call->epoch & 1],
                        args.blocks.sender_warps);
    }
}

/* Behind send: the rows leave, also those of a new routing that may turn out to overflow, and what goes beside them.
 * Where they go is counted by token in all layouts. All threads of all blocks. */
template <class WAY> EP_DEVICE void ep_dispatch_rows(const wefti_cuda_ep_eager_dispatch_args &all)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(stages);
    const ep_dispatch &args = all.call;
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (threadIdx.x == 32 * 4) {
        call.tokens = ep_tokens_of_call(args, &call);
    }
    if (!fresh) {
        ep_recall(group, &call, args.tables);
    }
    if (!ep_begin_recv(group, &call) ||
        (!fresh && (call.route_status == WEFT_ERR_OVERFLOW || call.route_status == WEFT_ERR_MISMATCH))) {
        return;
    }
    if (threadIdx.x < (unsigned)group.ranks) {
        call.to[threadIdx.x] = ep_eager_rows(args, &call, (int)threadIdx.x, group.rank);
        call.pitch[threadIdx.x] = args.row_bytes;
        call.place[threadIdx.x] = 0;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call.tokens), &first_unit, &end_unit);
    if (fresh && all.is_by_expert != 0) {
        ep_number_share<true>(args, &call, first_unit, end_unit, (wefti_u32 *)(stages + args.experts.starts_at));
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        ep_offer_units(args, &call, first_unit, end_unit);
    }
    if (ep_warp() < args.blocks.sender_warps) {
        ep_sender sender = ep_sender_open<WAY::QUANTISES>(args, &call, stages);
        ep_sender_run<ep_by_source, WAY>(args, &call, &sender);
    } else {
        ep_dispatch_beside_rows(all, &call, stages);
    }
}

/* The recv to it. All threads of all blocks. */
template <class LAYOUT> EP_DEVICE void ep_dispatch_recv_eager(const wefti_cuda_ep_eager_dispatch_args &all)
{
    ep_dispatch_call<LAYOUT, ep_eager<ep_as_they_are>, EP_RECV>(all.call);
}

#endif
