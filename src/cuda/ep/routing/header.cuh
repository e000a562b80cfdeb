/* cuda/ep/routing/header.cuh: the beginning of a call: every rank tells every rank what it calls, where its rows go and
 * how many it sends to whom; every block waits for all of these call headers.
 *
 * The call header is the ready word: it is sent after what came before on this rank's stream, so whoever has it may
 * write here: docs/ep-gpu-ordering.md, "Buffers are free". Its words are stored relaxed after a fence by the same
 * threads, which runs while others still count. */
#ifndef WEFTI_CUDA_EP_ROUTING_HEADER_CUH
#define WEFTI_CUDA_EP_ROUTING_HEADER_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/device/signal.cuh"
#include "cuda/ep/device/warp_roles.cuh"

/* What this rank's call header has. */
typedef struct ep_call_header {
    wefti_u64 signature;
    wefti_u32 route;
    wefti_u64 place;
    wefti_u64 pitch;
    wefti_u32 capacity;
    wefti_u32 slots; /* of a source, at each rank; 0: rows are packed */
    bool by_expert; /* rows are counted elsewhere, not here */
} ep_call_header;

/* The call of this epoch begins; not on a PE whose kernels have a fault latched, by whatever it was, since waits of the
 * call would end with it or not, as they are long or short. One thread. */
EP_DEVICE void ep_begin_at(const ep_group &group, ep_call *call, wefti_u64 epoch)
{
    wefti_cuda_ep_control *control = ep_control(group);
    call->epoch = epoch;
    call->tag = (wefti_u32)call->epoch << 1;
    call->alive = ~wefti_ld_relaxed(&control->masked) & (wefti_u32)((1ull << group.ranks) - 1);
    const wefti_u32 failed = wefti_ld_relaxed(&control->failed);
    const wefti_u64 fault = wefti_ld_relaxed(&group.dev.control->fault);
    call->failed = failed != 0 || fault != 0;
    call->status = WEFT_OK;
    if (__builtin_expect(fault != 0, 0)) {
        ep_fail(&group, wefti_dev_fault_status(fault), 0);
    }
}

/* Have a call's arguments in the multiprocessor's cache of constants, a cache line a warp. The prologue warps. */
template <class ARGS> EP_DEVICE void ep_touch(const ARGS &args)
{
    const wefti_u32 *words = (const wefti_u32 *)&args;
    for (int i = ep_warp() * 16; i < (int)(sizeof(ARGS) / 4); i += ep_prologue_threads() / 32 * 16) {
        wefti_u32 word = words[i];
        asm volatile("" : : "r"(word));
    }
}

EP_DEVICE void ep_clear_totals(ep_call *call)
{
    if (threadIdx.x < WEFTI_CUDA_EP_RANKS_MAX) {
        call->total[threadIdx.x] = 0;
        call->before[threadIdx.x] = 0;
    }
}

/* This block has read the epoch; the last one advances it for the next call. An epoch whose tag would be 0 is left out,
 * together with the one after it: what lies by parity must not lie in the same place in two calls that follow each
 * other. One thread. */
EP_DEVICE void ep_advance(const ep_group &group, const ep_call *call)
{
    wefti_cuda_ep_control *control = ep_control(group);
    if (atomicInc(&control->begun, gridDim.x - 1) == gridDim.x - 1) {
        wefti_u64 next = call->epoch + ((wefti_u32)(call->epoch + 1) << 1 == 0 ? 2 : 0);
        wefti_st_relaxed(&control->epoch, next);
    }
}

EP_DEVICE void ep_look_up(const ep_group &group, ep_call *call)
{
    if (ep_looks_up()) {
        ep_begin_at(group, call, wefti_ld_relaxed(&ep_control(group)->epoch) + 1);
    }
}

/* After ep_look_up: the epoch, and what other threads have read or cleared before, are there. False: the group has
 * failed. All threads. */
EP_DEVICE bool ep_begin(const ep_group &group, ep_call *call)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        ep_advance(group, call);
    }
    return call->failed == 0;
}

/* Once a call has begun: of a send, its epoch for the recv. All threads of all blocks. */
template <ep_phase PHASE, class ARGS> EP_DEVICE void ep_note_half(const ARGS &args, const ep_call *call)
{
    if (ep_does<PHASE, EP_SEND>(args) && blockIdx.x == 0 && threadIdx.x == 0) {
        ep_control(args.group)->half_epoch = call->epoch;
    }
}

/* A recv begins: after it its epoch, which is its send's, and what other threads have read or cleared before, are
 * there. False: the group has failed. All threads. */
EP_DEVICE bool ep_begin_recv(const ep_group &group, ep_call *call)
{
    if (threadIdx.x == 0) {
        ep_begin_at(group, call, ep_control(group)->half_epoch);
    }
    __syncthreads();
    return call->failed == 0;
}

EP_DEVICE wefti_u64 *ep_header_words(const ep_group &group, const ep_call *call, int reader, int writer)
{
    wefti_u64 number = (call->epoch & 1) * (wefti_u64)group.ranks + (wefti_u64)writer;
    return (wefti_u64 *)(group.area[reader] + group.at.headers) +
           number * (wefti_u64)(WEFTI_CUDA_EP_HEADER_WORDS + group.ranks);
}

/* A word of this rank's call header, without a branch: each lane has another. */
EP_DEVICE wefti_u32 ep_header_word(const ep_call *call, const ep_call_header &header, int word)
{
    wefti_u32 value =
        word >= WEFTI_CUDA_EP_HEADER_WORDS ? call->total[word - WEFTI_CUDA_EP_HEADER_WORDS] : (wefti_u32)call->tokens;
    value = word == WEFTI_CUDA_EP_SIGNATURE_LOW ? (wefti_u32)header.signature : value;
    value = word == WEFTI_CUDA_EP_SIGNATURE_HIGH ? (wefti_u32)(header.signature >> 32) : value;
    value = word == WEFTI_CUDA_EP_ROUTE ? header.route : value;
    value = word == WEFTI_CUDA_EP_BUFFER_LOW ? (wefti_u32)header.place : value;
    value = word == WEFTI_CUDA_EP_BUFFER_HIGH ? (wefti_u32)(header.place >> 32) : value;
    value = word == WEFTI_CUDA_EP_PITCH ? (wefti_u32)(header.pitch / 16) : value;
    return word == WEFTI_CUDA_EP_CAPACITY ? header.capacity : value;
}

/* Post the call header to all ranks, the others first. The header warps, each thread of which has fenced before. */
EP_DEVICE void ep_post_header(const ep_group &group, const ep_call *call, const ep_call_header &header)
{
    for (int word = (int)threadIdx.x - ep_prologue_threads(); word < WEFTI_CUDA_EP_HEADER_WORDS + group.ranks;
         word += EP_HEADER_WARPS * 32) {
        const wefti_u64 packed = ep_packed(call->tag, ep_header_word(call, header, word));
        int rank = group.rank;
        do {
            rank = rank + 1 < group.ranks ? rank + 1 : 0;
            if ((call->alive >> rank & 1) != 0) {
                wefti_st_relaxed(ep_header_words(group, call, rank, group.rank) + word, packed);
            }
        } while (rank != group.rank);
    }
}

/* Wait for the call headers of all ranks. All threads. False: a rank did not come. */
EP_DEVICE bool ep_wait_headers(const ep_group &group, ep_call *call)
{
    int words = WEFTI_CUDA_EP_HEADER_WORDS + group.ranks;
    for (int i = (int)threadIdx.x; i < words * group.ranks; i += (int)blockDim.x) {
        int rank = i / words;
        int word = i - rank * words;
        wefti_u32 value = 0;
        if ((call->alive >> rank & 1) != 0 &&
            !ep_await_value(group, ep_header_words(group, call, group.rank, rank) + word, call->tag, rank, &value)) {
            call->failed = 1;
        }
        call->headers[rank][word] = value;
    }
    __syncthreads();
    return call->failed == 0;
}

/* The address here of what `rank` calls its `place`. */
EP_DEVICE wefti_u64 ep_resolve(const ep_group &group, wefti_u64 place, int rank)
{
    wefti_u64 offset = place & (((wefti_u64)1 << WEFTI_CUDA_EP_OFFSET_BITS) - 1);
    wefti_u64 region = place >> WEFTI_CUDA_EP_OFFSET_BITS;
    const weft_dev &dev = group.dev;
    wefti_u64 here = region == 0 ? dev.heap + offset : wefti_dev_region_base(dev, region - 1) + offset;
    return wefti_dev_peer(dev, (const void *)here, 1, group.pe_of[rank]);
}

/* Whether `rank` calls the same. */
EP_DEVICE bool ep_agrees(const ep_call *call, const ep_call_header &header, int rank)
{
    const wefti_u32 *theirs = call->headers[rank];
    return theirs[WEFTI_CUDA_EP_SIGNATURE_LOW] == (wefti_u32)header.signature &&
           theirs[WEFTI_CUDA_EP_SIGNATURE_HIGH] == (wefti_u32)(header.signature >> 32) &&
           theirs[WEFTI_CUDA_EP_ROUTE] == header.route;
}

/* ---- what follows from the call headers: by lane r of a warp for rank r, each part by a warp of its own ---- */

/* Where this rank's rows go. */
EP_DEVICE void ep_study_buffers(const ep_group &group, ep_call *call, const ep_call_header &header)
{
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    const wefti_u32 *theirs = call->headers[rank];
    if (header.by_expert) {
        const wefti_u32 staged = __ballot_sync(~0u, here && theirs[WEFTI_CUDA_EP_BUFFER_HIGH] >> 31 != 0);
        if (rank == 0) {
            call->staged = staged;
        }
    }
    if (rank < group.ranks) {
        wefti_u64 place = (wefti_u64)theirs[WEFTI_CUDA_EP_BUFFER_HIGH] << 32 | theirs[WEFTI_CUDA_EP_BUFFER_LOW];
        place &= header.by_expert ? ~WEFTI_CUDA_EP_STAGED : ~(wefti_u64)0;
        const wefti_u64 pitch = (wefti_u64)theirs[WEFTI_CUDA_EP_PITCH] * 16;
        call->pitch[rank] = pitch;
        call->to[rank] = here && pitch != 0 ? ep_resolve(group, place, rank) : 0;
        call->tokens_of[rank] = here ? (int)theirs[WEFTI_CUDA_EP_TOKENS] : 0;
    }
    __syncwarp();
}

/* Of a new routing, where this rank's tokens begin at each rank, and those of each rank here. */
EP_DEVICE void ep_study_places(const ep_group &group, ep_call *call, const ep_call_header &header)
{
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    wefti_u32 place = (wefti_u32)group.rank * header.slots;
    for (int source = 0; source < group.rank && here && header.slots == 0; source++) {
        place += call->headers[source][WEFTI_CUDA_EP_HEADER_WORDS + rank];
    }
    const wefti_u32 count = here ? call->headers[rank][WEFTI_CUDA_EP_HEADER_WORDS + group.rank] : 0;
    const wefti_u32 takes = rank >= group.ranks ? 0 : header.slots != 0 ? header.slots : count;
    const wefti_u32 behind = ep_scan(takes);
    if (rank < group.ranks) {
        call->place[rank] = place;
        call->count[rank] = count;
        call->from[rank] = behind - takes;
    }
    if (rank == group.ranks - 1) {
        call->from[group.ranks] = behind;
    }
}

/* Tell the host of the first rank that calls something else, and of both calls. By a warp of which lane r knows whether
 * rank r does; block 0 writes. */
EP_DEVICE void ep_report_mismatch(const ep_group &group, const ep_call *call, const ep_call_header &header,
                                  bool differs)
{
    const int rank = __ffs((int)__ballot_sync(~0u, differs)) - 1;
    if (blockIdx.x == 0 && differs && rank == ep_lane()) {
        const wefti_u32 *theirs = call->headers[rank];
        const wefti_u64 signature =
            (wefti_u64)theirs[WEFTI_CUDA_EP_SIGNATURE_HIGH] << 32 | theirs[WEFTI_CUDA_EP_SIGNATURE_LOW];
        wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL], signature);
        wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL], header.signature);
        wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_ROUTES],
                         (wefti_u64)theirs[WEFTI_CUDA_EP_ROUTE] << 32 | header.route);
        wefti_st_release(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH],
                         (wefti_u64)(rank + 1) << 32 | call->tag);
    }
}

/* Tell the host that more rows would come to a rank than it has room for. By a warp of which lane r knows whether that
 * is so of rank r, and its limit; block 0 writes. */
EP_DEVICE_SLOW void ep_report_overflow(const ep_group *group, const ep_call *call, bool overflows, wefti_u32 limit)
{
    const int rank = __ffs((int)__ballot_sync(~0u, overflows)) - 1;
    if (blockIdx.x == 0 && rank == ep_lane()) {
        wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_OVERFLOW],
                         wefti_cuda_ep_overflow(rank, limit, call->tag));
    }
}

/* Whether all is well. `fresh`: the counts are this call's. */
EP_DEVICE void ep_study_calls(const ep_group &group, ep_call *call, const ep_call_header &header, bool fresh)
{
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    const wefti_u32 *theirs = call->headers[rank];
    const bool differs = here && !ep_agrees(call, header, rank);
    wefti_u32 received = 0; /* by that rank */
    for (int source = 0; source < group.ranks && here; source++) {
        received += call->headers[source][WEFTI_CUDA_EP_HEADER_WORDS + rank];
    }
    wefti_u32 limit =
        group.rows_limit < theirs[WEFTI_CUDA_EP_CAPACITY] ? group.rows_limit : theirs[WEFTI_CUDA_EP_CAPACITY];
    bool overflows = here && header.slots == 0 && !header.by_expert && (group.drops == 0 || !fresh) && received > limit;
    bool mismatch = __any_sync(~0u, differs);
    bool full = __any_sync(~0u, overflows);
    if (mismatch) {
        ep_report_mismatch(group, call, header, differs);
    } else if (full) {
        ep_report_overflow(&group, call, overflows, limit);
    }
    if (rank == 0) {
        call->status = mismatch ? WEFT_ERR_MISMATCH : full ? WEFT_ERR_OVERFLOW : WEFT_OK;
    }
}

/* ---- the call headers of dispatches and combines ---- */

template <class LAYOUT> EP_DEVICE ep_call_header ep_dispatch_header(const ep_dispatch &args, const ep_call *call)
{
    ep_call_header header;
    header.signature = args.signature;
    header.by_expert = LAYOUT::ROWS_OF_CHOICES;
    header.route = call->route;
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        header.route =
            LAYOUT::ROWS_OF_CHOICES ? args.experts.alignment + args.experts.slots : args.slots; /* equal on all ranks */
    }
    header.place = args.place;
    header.pitch = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.pitch : 0;
    header.capacity = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.capacity : ~0u;
    header.slots = args.slots;
    return header;
}

/* Read T, the tokens of the call. Called by one thread. */
EP_DEVICE int ep_tokens_of_call(const ep_dispatch &args, ep_call *call)
{
    call->odd_tokens = 0;
    if (!ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        return args.tables.route_header->tokens;
    }
    if (EP_BY_POSITION) {
        call->odd_tokens = args.tables.unpadded[1] != 0;
    }
    if (args.choices.tokens_at == 0) {
        return args.choices.tokens;
    }
    int tokens = *args.choices.tokens_at;
    call->odd_tokens = (EP_BY_POSITION && call->odd_tokens) || tokens < 0 || tokens > args.choices.tokens;
    return tokens < 0 ? 0 : tokens > args.choices.tokens ? args.choices.tokens : tokens;
}

EP_DEVICE ep_call_header ep_combine_header(const ep_combine &args, const ep_call *call)
{
    ep_call_header header;
    header.signature = args.signature;
    header.route = call->route;
    header.place = args.place;
    header.pitch = args.row_bytes;
    header.capacity = ~0u;
    header.by_expert = false;
    header.slots = 1; /* nothing is received that could overflow */
    return header;
}

#endif
