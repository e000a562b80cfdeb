/* cuda/ep/low_latency/dispatch.cuh: a dispatch into slots of few tokens, in one launch or as halves; by source, or by
 * expert. The kernels: dispatch.cu, dispatch_expert.cu.
 *
 * Grid: host/plan.c: a block for every few words of this rank's rows, at most the multiprocessors it may take.
 * Warps: the first 6 of a block send; the others post counts and, in block 0, the call header; then all take in.
 * Shared memory: what the block knows of the call, and the shared routing table (shared_table.cuh).
 * Flags: call header, counts, and a low-latency word for each record and slice; headers_here inside a block.
 *
 *     all        the shared routing table: where all tokens go
 *     block 0    its call header to all ranks
 *     senders    a record (word 0 of a row), or a slice of a row (the others): to all ranks of its token, then
 *                their words; what later calls are to find of the routing
 *     others     send counts to the owners of experts
 *     warps      a record or slice of any source, once call headers and its word are here: to where the caller wants it
 *
 * By expert a row's number among those of its source is known when it leaves; its place is found where it arrives, from
 * what all sources have of each expert.
 *
 * Bytes: each row is read once, written once to each of its ranks, and read and written once more there. Floor: these
 * over the links, and one flight of a word (bench/gpu/ep.md). */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_DISPATCH_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_DISPATCH_CUH

#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/low_latency/recv.cuh"
#include "cuda/ep/low_latency/send.cuh"
#include "cuda/ep/routing/told.cuh"

template <class LAYOUT> EP_DEVICE ep_call_header ep_low_latency_header(const ep_dispatch &args, const ep_call *call)
{
    ep_call_header header = ep_dispatch_header<LAYOUT>(args, call);
    header.place = 0;
    header.pitch = 0; /* rows arrive in low-latency memory, not at the caller's */
    return header;
}

/* Send: all that waits for no other rank. `id`: this thread's first choice, if ep_shared_table_first read it. Called by
 * all threads of all blocks. */
template <class LAYOUT, int GROUP>
EP_DEVICE void ep_low_latency_leave(const ep_dispatch &args, ep_call *call, const ep_shared_table &table, int id,
                                    bool posts_header)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    ep_sending sending;
    if (fresh) {
        ep_shared_table_fill<LAYOUT>(args, call, table, id);
    }
    if (ep_warp() < args.blocks.sender_warps) {
        sending = ep_sending_open<GROUP>(args, call);
    }
    if (fresh) {
        __syncthreads();
        ep_shared_table_add_up(args.group, call, table);
    }
    if (ep_warp() < args.blocks.sender_warps) {
        ep_send_rows<LAYOUT, GROUP>(args, call, table, &sending);
        if (fresh) {
            ep_shared_table_write_route<LAYOUT>(args, call, table);
        }
        return;
    }
    if (posts_header) {
        ep_post_header(args.group, call, ep_low_latency_header<LAYOUT>(args, call));
    }
    if (fresh) {
        ep_shared_table_post_counts<LAYOUT>(args, call, table);
    }
}

/* Lane r: what comes from source r. */
template <class LAYOUT> EP_DEVICE ep_inflow ep_inflow_of(const ep_dispatch &args, const ep_call *call)
{
    const int rank = ep_lane();
    ep_inflow inflow = {0, 0, 0};
    if (rank < args.group.ranks) {
        inflow.count = call->count[rank];
        const bool is_known = LAYOUT::ROWS_OF_CHOICES && !(ep_is(args, WEFTI_CUDA_EP_FRESH) && ep_passes_by(args));
        inflow.from = is_known ? call->from[rank] : (wefti_u32)rank * args.low_latency_slots;
        inflow.tokens = call->tokens_of[rank];
    }
    if (LAYOUT::ROWS_OF_CHOICES && ep_is(args, WEFTI_CUDA_EP_FRESH) && !ep_passes_by(args)) {
        inflow.from = ep_scan(inflow.count) - inflow.count;
    }
    return inflow;
}

/* Until it is known who calls what. All threads. False: a rank did not come. */
template <class LAYOUT> EP_DEVICE bool ep_low_latency_meet(const ep_dispatch &args, ep_call *call, bool fresh)
{
    const ep_group &group = args.group;
    const ep_call_header header = ep_low_latency_header<LAYOUT>(args, call);
    if (!ep_passes_by(args)) {
        return ep_wait_headers_once<false>(group, call, header, fresh);
    }
    const int experts = group.first_expert[group.ranks];
    const int first =
        LAYOUT::ROWS_OF_CHOICES ? 0 : group.first_expert[group.rank]; /* by expert all ranks place rows by all counts */
    const int end = LAYOUT::ROWS_OF_CHOICES ? experts : group.first_expert[group.rank + 1];
    const ep_source_words counts = {ep_counts(group, call, group.rank, 0) + first, fresh ? end - first : 0, experts};
    return ep_settle_sources(&group, call, &header, fresh, &counts);
}

/* Receive: wait for call headers and rows, and write the routing down. Called by all threads of all blocks. */
template <class LAYOUT, int GROUP> EP_DEVICE void ep_low_latency_arrive(const ep_dispatch &args, ep_call *call)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const bool sends = ep_warp() < args.blocks.sender_warps;
    if (!ep_low_latency_meet<LAYOUT>(args, call, fresh)) {
        return;
    }
    if (call->status != WEFT_OK) {
        if (fresh && ep_writes_route_header(args)) {
            ep_forget_routing(args.group, args.tables);
        }
        return;
    }
    const ep_inflow inflow = ep_inflow_of<LAYOUT>(args, call);
    if (sends && fresh) {
        if (ep_tells(args) && blockIdx.x == gridDim.x - 1 && ep_warp() == args.blocks.sender_warps - 1) {
            ep_tell_counts(&args, call, LAYOUT::ROWS_OF_CHOICES, inflow.count,
                           ep_counts(args.group, call, args.group.rank, 0) + ep_first_own(args.group),
                           (wefti_u32)args.group.first_expert[args.group.ranks]);
        }
        ep_note_experts<LAYOUT>(args, call);
        if (ep_writes_route_header(args)) {
            ep_note_received<LAYOUT>(args, call, inflow);
        }
        if (LAYOUT::ROWS_OF_CHOICES) {
            ep_find_own_rows(args, call);
        }
    }
    if (ep_take_rows<LAYOUT, GROUP>(args, call, inflow) && !sends && !fresh) {
        ep_receive_cached<LAYOUT>(args, call);
    }
}

/* Read what does not depend on the call's epoch. Called by the prologue warps, before ep_low_latency_begin. */
template <class LAYOUT, int GROUP, ep_phase PHASE>
EP_DEVICE void ep_low_latency_open(const ep_dispatch &args, ep_call *call, const ep_shared_table &table)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (!ep_does<PHASE, EP_RECV>(args) && fresh) {
        ep_shared_table_prefetch(args);
        ep_prefetch_row<GROUP>(args, args.choices.tokens);
        ep_shared_table_clear(table);
    }
    if (!fresh) {
        ep_recall(args.group, call, args.tables);
    }
    if (threadIdx.x == 64) {
        call->tokens = ep_does<PHASE, EP_RECV>(args) ? args.tables.route_header->tokens : ep_tokens_of_call(args, call);
    }
}

template <class LAYOUT, int GROUP, ep_phase PHASE> EP_DEVICE void ep_low_latency_dispatch(const ep_dispatch &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(shared);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    /* Header warps do, but not in a recv. A kernel of one phase has ep_posts_header() alone to test; one of several
     * phases also tests which one the call is. */
    const bool posts_header =
        PHASE != EP_RECV && ep_posts_header() && !(PHASE == EP_ANY_PHASE && ep_does<PHASE, EP_RECV>(args));
    const ep_shared_table table = ep_shared_table_of<LAYOUT>(args, shared);
    const int id = !ep_does<PHASE, EP_RECV>(args) && fresh ? ep_shared_table_first(args) : -1;
    if (posts_header) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_low_latency_look_up<PHASE>(args, &call);
        ep_touch(args);
        ep_low_latency_open<LAYOUT, GROUP, PHASE>(args, &call, table);
    }
    if (!ep_low_latency_begin<PHASE>(args, &call)) {
        return;
    }
    if (!ep_does<PHASE, EP_RECV>(args)) {
        ep_low_latency_leave<LAYOUT, GROUP>(args, &call, table, id, posts_header);
    }
    if (!ep_does<PHASE, EP_SEND>(args)) {
        ep_low_latency_arrive<LAYOUT, GROUP>(args, &call);
    }
}

/* The kernels of a layout and of a kind of rows: whole, send, recv, in one where calls pass ranks by. */
#if defined(WEFTI_CUDA_EP_PASSING)
#define EP_LOW_LATENCY_DISPATCH(NAME, LAYOUT, GROUP)                                                                   \
    EP_KERNEL(NAME, C1, ep_dispatch, ep_low_latency_dispatch<LAYOUT, GROUP, EP_ANY_PHASE>)
#else
#define EP_LOW_LATENCY_DISPATCH(NAME, LAYOUT, GROUP)                                                                   \
    EP_KERNEL(NAME, C1, ep_dispatch, ep_low_latency_dispatch<LAYOUT, GROUP, EP_FUSED>)                                 \
    EP_KERNEL(NAME, C2, ep_dispatch, ep_low_latency_dispatch<LAYOUT, GROUP, EP_SEND>)                                  \
    EP_KERNEL(NAME, C3, ep_dispatch, ep_low_latency_dispatch<LAYOUT, GROUP, EP_RECV>)
#endif

#endif
