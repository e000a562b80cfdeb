/* cuda/ep/domains/direct.cuh: calls of few tokens in slots that go directly. A dispatch sends each token's row once to
 * each rank with one of its experts, a combine sends one row back for each: so either is one flight, where a forwarder
 * makes it two. Sums are those of forwarders, to the bit: of each domain in ascending rank, rounded to the type of the
 * rows, then of the domains in ascending order; here the source makes both. The kernels: direct.cu.
 *
 * A call is one kernel, which takes the steps of local.cuh one after another; between them all blocks of the rank meet.
 * What crosses: each block serves some ends, one after another, and waits for none, as in crossing.cuh.
 *
 * Grid: blocks that run together; at least one for WEFTI_CUDA_EP_DOMAINS_ENDS ends, of which there are two a rank: end
 *     e is of block e mod gridDim.x, first those that send.
 * Warps, shared memory: as of crossing.cuh, and of local.cuh.
 * Flags: a chunk's flag and credits, as in crossing.cuh, in host memory, or, between ranks of a domain, in their device
 *     memory; `filled` of the proxy's ring; `came` and `met`, where blocks meet ("Words between domains" in
 *     docs/ep-gpu-ordering.md).
 *
 *     dispatch_direct   begins; numbers, of positions; packs, with the lists of what goes to each rank; rows cross,
 *                       into `received`; indexes, counts, scans, places. Of a combine's own choices: chooses, and they
 *                       cross
 *     combine_direct    results; they cross, into `received`, by (rank, token); totals
 *
 * Of halves the send goes as far as rows are sent for which slots are free; the recv sends the rest, and goes on.
 *
 * Of few rows more warps have something where they take parts of rows: those that are packed as they are, and sums.
 *
 * Bytes: a row a (token, rank) each way, outward with its scales and tail: written to the other's memory and read from
 * there, of another host's put by the transport between; packed, and copied to its place, as in local.cuh. Floor: one
 * flight of a row to another domain, and its copies. */
#ifndef WEFTI_CUDA_EP_DOMAINS_DIRECT_CUH
#define WEFTI_CUDA_EP_DOMAINS_DIRECT_CUH

#include "cuda/ep/domains/crossing.cuh"
#include "cuda/ep/domains/local.cuh"

typedef wefti_cuda_ep_direct_end ep_direct_end;

/* All blocks of this rank have come here, and know what the others stored before. Each comes, since what blocks wait
 * for between has a deadline. All threads. */
EP_DEVICE_SLOW void ep_direct_meet(wefti_cuda_ep_direct_control *control)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const wefti_u32 met = wefti_ld_relaxed(&control->met);
        wefti_fence_acq_rel();
        const bool is_last = atomicAdd(&control->came, 1u) == gridDim.x - 1;
        wefti_fence_acq_rel();
        if (is_last) {
            wefti_st_relaxed(&control->came, 0u);
            wefti_st_release(&control->met, met + 1);
        }
        while (!is_last && wefti_ld_acquire(&control->met) == met) {
            EP_PAUSE();
        }
    }
    __syncthreads();
}

/* ---- who gets what ---- */

/* Which of the 32 ranks from place `first` of the order on have an expert of a token of this rank. A warp. */
EP_DEVICE wefti_u32 ep_direct_goes(const ep_domains &args, int token, int first)
{
    const wefti_i32 *ids = args.tables.ids + (wefti_u64)token * (wefti_u64)args.topk;
    const int place = first + ep_lane();
    const wefti_i32 rank = place < args.group.ranks ? args.direct.order[place] : -1;
    bool goes = false;
    for (int k = 0; k < args.topk; k++) {
        const wefti_i32 choice = ep_domains_choice(args, ids, k);
        goes = goes || (choice >= 0 && (args.by_rank != 0 ? choice : args.group.rank_of[choice]) == rank);
    }
    return __ballot_sync(~0u, goes);
}

/* What ep_domains_begin leaves: lists by rank, and nothing has been received. All threads of the grid. */
EP_DEVICE void ep_direct_begin(const ep_domains &args)
{
    const ep_warp_group threads = ep_domains_grid();
    ep_domains_begin(args);
    for (int rank = threads.number; rank < args.group.ranks; rank += threads.count) {
        args.tables.sent_count[rank] = 0;
        args.tables.line_count[rank] = -1;
    }
    if (threads.number == 0) { /* as has set it before */
        *args.tables.inner_tokens = 0;
    }
}

enum { EP_DIRECT_PART = 32 * EP_DOMAINS_SUMS }; /* vectors of a row that a warp takes at a time */

/* How many parts a row has: of few rows more warps have something. */
EP_DEVICE int ep_direct_parts(const ep_domains &args)
{
    return ((int)(args.row_bytes / 16) + EP_DIRECT_PART - 1) / EP_DIRECT_PART;
}

/* Rows that go as they are. Warps take parts. */
EP_DEVICE void ep_direct_pack_rows(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    const int parts = ep_direct_parts(args);
    for (int unit = warps.number; unit < args.tables.route_header->tokens * parts; unit += warps.count) {
        const wefti_u64 token = (wefti_u64)(unit / parts);
        const wefti_u32 first = (wefti_u32)(unit % parts) * EP_DIRECT_PART * 16;
        const wefti_u32 left = args.row_bytes - first;
        ep_copy_row(args.group.rows + token * args.wide_bytes + first, args.in + token * args.in_pitch + first,
                    left < EP_DIRECT_PART * 16 ? left : EP_DIRECT_PART * 16);
    }
}

/* This rank's own tokens as they go, and to which ranks. Warps take tokens. */
EP_DEVICE void ep_direct_pack(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const ep_warp_group warps = ep_domains_warps();
    const bool moves = (args.flags & WEFTI_CUDA_EP_MOVE) != 0;
    const bool by_parts = moves && args.wide.row_bytes == 0 && args.scale_words == 0;
    if (!ep_domains_is_well(group)) {
        return;
    }
    if (by_parts) {
        ep_direct_pack_rows(args);
    }
    for (int token = warps.number; token < args.tables.route_header->tokens; token += warps.count) {
        ep_domains_pack_token(args, token, moves && !by_parts);
        for (int first = 0; first < group.ranks; first += 32) {
            if ((ep_direct_goes(args, token, first) >> ep_lane() & 1) != 0) {
                const wefti_i32 rank = args.direct.order[first + ep_lane()];
                const wefti_u32 at = atomicAdd((wefti_u32 *)&args.tables.sent_count[rank], 1u);
                args.tables.sent_token[(wefti_u64)rank * (wefti_u64)group.tokens_max + at] = token;
            }
        }
    }
}

/* ---- one thread ---- */

EP_DEVICE wefti_ep_ring_shape ep_direct_shape(const ep_domains &args)
{
    wefti_ep_ring_shape shape = {};
    shape.slots = args.direct.slots;
    return shape;
}

EP_DEVICE wefti_u64 ep_direct_chunk_at(const ep_domains &args, wefti_u64 of, wefti_u32 line, wefti_u32 number)
{
    const wefti_ep_ring_shape shape = ep_direct_shape(args);
    return of + wefti_ep_ring_slot(&shape, line, number) * args.direct.chunk_bytes;
}

EP_DEVICE wefti_u64 ep_direct_flag_at(const ep_domains &args, const ep_direct_end &end, wefti_u32 line,
                                      wefti_u32 number)
{
    const wefti_ep_ring_shape shape = ep_direct_shape(args);
    return args.direct.at[end.block].flags + wefti_ep_ring_slot(&shape, line, number) * 8;
}

/* Where chunk `number` is filled: in its slot, or here. */
EP_DEVICE wefti_u64 ep_direct_fill_at(const ep_domains &args, const ep_direct_end &end, wefti_u32 number)
{
    const wefti_cuda_ep_direct_rings &at = args.direct.at[end.block];
    return end.is_mapped != 0 ? end.there + ep_direct_chunk_at(args, at.in, end.line_there, number)
                              : end.here + ep_direct_chunk_at(args, at.out, end.line_here, number);
}

/* The other may have the chunk: its flag is set once all of it is there. False: it cannot be moved. */
EP_DEVICE_SLOW bool ep_direct_post(const ep_domains *args, const ep_direct_end *end, wefti_u64 bytes, wefti_u32 number)
{
    const wefti_cuda_ep_direct_rings &at = args->direct.at[end->block];
    const wefti_u64 signal = ep_direct_flag_at(*args, *end, end->line_there, number);
    const wefti_u64 flag = ep_domains_flag(args->group, number);
    const wefti_u64 base = end->here - args->group.heap;
    if (end->is_mapped != 0) {
        wefti_st_release((wefti_u64 *)(end->there + signal), flag);
        return true;
    }
    const wefti_dev_move chunk = {base + ep_direct_chunk_at(*args, at.out, end->line_here, number), bytes,
                                  base + signal, flag};
    return ep_domains_move(&args->group, end->pe, base + ep_direct_chunk_at(*args, at.in, end->line_there, number),
                           chunk);
}

/* As ep_domains_give_credit. */
EP_DEVICE_SLOW bool ep_direct_give_credit(const ep_domains *args, const ep_direct_end *end, wefti_u32 taken)
{
    const wefti_u64 at = args->direct.at[end->block].credits + end->line_there * 8;
    if (end->is_mapped != 0) {
        wefti_st_release((wefti_u64 *)(end->there + at), (wefti_u64)taken);
        return true;
    }
    return wefti_far_word(&args->group.dev, wefti_far_ask(WEFTI_DEV_REQUEST_SIGNAL, WEFT_SIGNAL_ADD, 64, 0),
                          WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, end->here - args->group.heap + at),
                          args->direct.slots / 2, 0, end->pe) != WEFTI_NO_TICKET;
}

/* ---- ends ---- */

/* Whom end number `end` of this call is for: this rank comes last. */
EP_DEVICE int ep_direct_peer(const ep_domains_group &group, int end)
{
    return (group.rank + 1 + end) % group.ranks;
}

template <bool BACK> EP_DEVICE wefti_u64 ep_direct_row_bytes(const ep_domains &args)
{
    return BACK ? args.row_bytes : args.wide_bytes;
}

/* Rows of each chunk but the last. */
template <bool BACK> EP_DEVICE int ep_direct_chunk_rows(const ep_domains &args)
{
    return (int)((args.direct.chunk_bytes - WEFTI_CUDA_EP_DOMAINS_CHUNK) / ep_direct_row_bytes<BACK>(args));
}

/* A chunk has been sent or taken. Thread 0. */
template <bool BACK>
EP_DEVICE void ep_direct_go_on(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of)
{
    of->number++;
    of->chunk++;
    of->is_done = ep_domains_is_behind<BACK>(of->chunk, ep_direct_chunk_rows<BACK>(args), of->total);
    state->progress = 1;
}

/* ---- sending ---- */

/* The next chunk to rank `peer`, if a slot is free. All threads. */
template <bool BACK>
EP_DEVICE void ep_direct_send(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of, int peer)
{
    const ep_domains_group &group = args.group;
    const ep_direct_end &end = args.direct.ends[peer];
    const wefti_u64 row_bytes = ep_direct_row_bytes<BACK>(args);
    const int chunk_rows = ep_direct_chunk_rows<BACK>(args);
    const int first = of->chunk * chunk_rows;
    if (threadIdx.x == 0) {
        const wefti_ep_ring_shape shape = ep_direct_shape(args);
        if (!wefti_ep_ring_has_room(&shape, of->number, of->credit)) {
            of->credit = (wefti_u32)wefti_ld_acquire((const wefti_u64 *)(end.here + args.direct.at[end.block].credits) +
                                                     end.line_here);
        }
        state->rows = !wefti_ep_ring_has_room(&shape, of->number, of->credit) ? EP_DOMAINS_NONE
                      : of->total - first < chunk_rows                        ? of->total - first
                                                                              : chunk_rows;
    }
    __syncthreads();
    const int rows = state->rows;
    if (rows >= 0) {
        unsigned char *chunk = (unsigned char *)ep_direct_fill_at(args, end, of->number);
        const wefti_i32 *numbers = (BACK ? args.tables.line_row : args.tables.sent_token) +
                                   (wefti_u64)peer * (wefti_u64)group.tokens_max + (wefti_u64)first;
        ep_domains_copy_rows(rows, row_bytes, chunk + WEFTI_CUDA_EP_DOMAINS_CHUNK, NULL,
                             BACK ? group.results : group.rows, numbers);
        if (threadIdx.x == 0) {
            const wefti_cuda_ep_domains_chunk header = {args.call, of->total, 0};
            *(wefti_cuda_ep_domains_chunk *)chunk = header;
        }
        __syncthreads(); /* all of it is there before it is posted by release */
        if (threadIdx.x == 0) {
            if (!ep_direct_post(&args, &end, WEFTI_CUDA_EP_DOMAINS_CHUNK + (wefti_u64)rows * row_bytes, of->number)) {
                state->failed = -(int)WEFT_ERR_TIMEOUT;
            } else {
                ep_direct_go_on<BACK>(args, state, of);
            }
        }
    }
    __syncthreads();
}

/* ---- receiving ---- */

/* So many rows from rank `peer`, the first of which is its row number `first` of the call, to their places in
 * `received`: a dispatch's from `row` on. All threads. */
template <bool BACK>
EP_DEVICE void ep_direct_land(const ep_domains &args, int peer, int first, int rows, wefti_u32 row,
                              const unsigned char *from, const wefti_i32 *from_at)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 row_bytes = ep_direct_row_bytes<BACK>(args);
    const wefti_u64 at = (wefti_u64)peer * (wefti_u64)group.tokens_max;
    wefti_i32 *numbers = args.tables.line_row + at + (wefti_u64)first;
    if (BACK) {
        ep_domains_copy_rows(rows, row_bytes, group.received + at * row_bytes,
                             args.tables.sent_token + at + (wefti_u64)first, from, from_at);
    } else if (args.is_kept != 0) {
        ep_domains_copy_rows(rows, row_bytes, group.received, numbers, from, from_at);
    } else {
        ep_domains_copy_rows(rows, row_bytes, group.received + (wefti_u64)row * row_bytes, NULL, from, from_at);
        for (int i = (int)threadIdx.x; i < rows; i += (int)blockDim.x) {
            numbers[i] = (wefti_i32)row + i;
        }
    }
}

/* So many rows come from a rank. Thread 0. */
template <bool BACK>
EP_DEVICE void ep_direct_note(const ep_domains &args, ep_domains_crossing *state, int peer, int total, int rows)
{
    if (!BACK && args.is_kept == 0) {
        args.tables.line_count[peer] = total;
        state->row = atomicAdd((wefti_u32 *)args.tables.inner_tokens, (wefti_u32)rows);
    }
}

/* Whether rows may go to `received`, where live ranks of the domain may still store those of an inner dispatch that
 * failed here: not before all are in this call, as rank `peer` is. Thread 0. */
template <bool BACK>
EP_DEVICE bool ep_direct_may_place(const ep_domains &args, const ep_domains_crossing *state, ep_domains_progress *of,
                                   int peer)
{
    const ep_domains_group &group = args.group;
    if (BACK || state->awaited == 0) {
        return true;
    }
    if (of->is_here == 0 && peer != group.rank && group.domain_of_rank[peer] == group.domain) {
        wefti_fence_acq_rel();
        atomicAdd(&group.control->here, 1u);
        of->is_here = 1;
    }
    return wefti_ld_acquire(&group.control->here) >= state->awaited;
}

/* What this rank has for itself. All threads. */
template <bool BACK>
EP_DEVICE void ep_direct_keep(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 at = (wefti_u64)group.rank * (wefti_u64)group.tokens_max;
    if (threadIdx.x == 0) {
        state->rows = ep_direct_may_place<BACK>(args, state, of, group.rank) ? of->total : EP_DOMAINS_NONE;
    }
    if (threadIdx.x == 0 && state->rows >= 0) {
        ep_direct_note<BACK>(args, state, group.rank, of->total, of->total);
    }
    __syncthreads();
    const bool may_go = state->rows >= 0;
    __syncthreads(); /* the state has been read */
    if (!may_go) {
        return;
    }
    ep_direct_land<BACK>(args, group.rank, 0, of->total, state->row, BACK ? group.results : group.rows,
                         (BACK ? args.tables.line_row : args.tables.sent_token) + at);
    __syncthreads();
    if (threadIdx.x == 0) {
        of->chunk = 1;
        of->is_done = 1;
        state->progress = 1;
    }
    __syncthreads();
}

/* A chunk has been taken, or dropped: a credit, if one is due. Thread 0. */
EP_DEVICE void ep_direct_give_back(const ep_domains &args, ep_domains_crossing *state, const ep_direct_end &end,
                                   wefti_u32 taken)
{
    const wefti_ep_ring_shape shape = ep_direct_shape(args);
    if (wefti_ep_ring_gives_credit(&shape, taken) && !ep_direct_give_credit(&args, &end, taken)) {
        state->failed = -(int)WEFT_ERR_TIMEOUT;
    }
}

/* Whether the next chunk from a rank is there; one of a call that failed here before it was taken is dropped. Thread
 * 0. */
template <bool BACK>
EP_DEVICE void ep_direct_look(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of, int peer,
                              const unsigned char *chunk)
{
    const ep_domains_group &group = args.group;
    const ep_direct_end &end = args.direct.ends[peer];
    const int chunk_rows = ep_direct_chunk_rows<BACK>(args);
    const wefti_u64 seen =
        wefti_ld_acquire((const wefti_u64 *)(end.here + ep_direct_flag_at(args, end, end.line_here, of->number)));
    state->rows = EP_DOMAINS_NONE;
    if (seen != ep_domains_flag(group, of->number)) {
        if ((wefti_u32)seen == of->number + 1 &&
            wefti_cuda_ep_domains_is_before((wefti_u32)(seen >> 32), group.control->calls)) {
            of->number++;
            state->progress = 1;
            ep_direct_give_back(args, state, end, of->number);
        }
        return;
    }
    if (!ep_direct_may_place<BACK>(args, state, of, peer)) {
        return;
    }
    if (of->chunk == 0) {
        const wefti_cuda_ep_domains_chunk header = *(const wefti_cuda_ep_domains_chunk *)chunk;
        if (header.call != args.call || header.total < 0 || header.total > group.tokens_max ||
            (BACK && header.total != of->total)) {
            state->failed = -(int)WEFT_ERR_MISMATCH;
            return;
        }
        of->total = header.total;
    }
    const int left = of->total - of->chunk * chunk_rows;
    state->rows = left < chunk_rows ? left : chunk_rows;
    ep_direct_note<BACK>(args, state, peer, of->total, state->rows);
}

/* The next chunk from rank `peer`, if it is there. All threads. */
template <bool BACK>
EP_DEVICE void ep_direct_take(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of, int peer)
{
    const ep_direct_end &end = args.direct.ends[peer];
    const unsigned char *chunk =
        (const unsigned char *)(end.here +
                                ep_direct_chunk_at(args, args.direct.at[end.block].in, end.line_here, of->number));
    if (threadIdx.x == 0) {
        ep_direct_look<BACK>(args, state, of, peer, chunk);
    }
    __syncthreads();
    const int rows = state->rows;
    if (rows >= 0 && state->failed == 0) {
        ep_direct_land<BACK>(args, peer, of->chunk * ep_direct_chunk_rows<BACK>(args), rows, state->row,
                             chunk + WEFTI_CUDA_EP_DOMAINS_CHUNK, NULL);
        __syncthreads(); /* all of it has been read before the slot is given back */
        if (threadIdx.x == 0) {
            ep_direct_go_on<BACK>(args, state, of);
            ep_direct_give_back(args, state, end, of->number);
        }
    }
    __syncthreads(); /* the state has been read */
}

/* ---- all of it ---- */

/* As ep_domains_note_waits. Thread 0. */
EP_DEVICE void ep_direct_note_waits(const ep_domains_group &group, ep_domains_crossing *state)
{
    const wefti_u64 now = wefti_time_ns();
    state->start_ns = state->start_ns == 0 ? now : state->start_ns;
    for (int i = 0, end = (int)blockIdx.x; end < 2 * group.ranks; i++, end += (int)gridDim.x) {
        if (!state->of[i].is_done && end >= group.ranks) {
            atomicMax((unsigned long long *)&group.waits[ep_direct_peer(group, end)],
                      (unsigned long long)(now - state->start_ns));
        }
    }
}

/* Note the ranks that this block has waited for in vain. Thread 0. */
EP_DEVICE void ep_direct_note_missing(const ep_domains_group &group, const ep_domains_crossing *state)
{
    for (int i = 0, end = (int)blockIdx.x; end < 2 * group.ranks; i++, end += (int)gridDim.x) {
        const int rank = ep_direct_peer(group, end);
        if (!state->of[i].is_done) {
            atomicOr(&group.control->missing[rank >> 5], 1u << (rank & 31));
        }
    }
}

/* As ep_domains_rest: nothing has gone on. When another block has failed this one does, and names whom it has waited
 * for nearly as long: each rank waits for all. Thread 0. */
EP_DEVICE_SLOW void ep_direct_rest(const ep_domains *args, ep_domains_crossing *state)
{
    const ep_domains_group &group = args->group;
    EP_PAUSE();
    if (group.waits != NULL) {
        ep_direct_note_waits(group, state);
    }
    if (++state->looks % WEFTI_DEV_LOOKS != 0) {
        return;
    }
    state->start_ns = state->start_ns == 0 ? wefti_time_ns() : state->start_ns;
    const wefti_u64 waited_ns = wefti_time_ns() - state->start_ns;
    const bool has_failed = wefti_ld_relaxed(&group.control->failed) != 0;
    const int status = has_failed ? (int)WEFT_ERR_TIMEOUT : wefti_dev_pause_slow(&group.dev, state->start_ns);
    if (status == WEFT_ERR_TIMEOUT &&
        (!has_failed || 2 * waited_ns > wefti_ld_relaxed(&group.dev.control->deadline_ns))) {
        ep_direct_note_missing(group, state);
    }
    state->failed = status == WEFT_OK ? 0 : -status;
}

/* How far an end is when rows begin to cross. Thread 0. */
template <bool BACK> EP_DEVICE ep_domains_progress ep_direct_start(const ep_domains &args, int peer, bool sends)
{
    const wefti_cuda_ep_direct_control *control = args.direct.control;
    const bool is_own = peer == args.group.rank;
    ep_domains_progress of = {};
    of.number = (sends ? control->sent : control->taken)[peer];
    of.credit = of.number - args.direct.slots; /* as far as is known: what there is, is looked at first */
    of.total = BACK && is_own  ? args.tables.line_count[peer]
               : BACK != sends ? args.tables.sent_count[peer]
               : BACK          ? args.tables.line_count[peer]
                               : -1;
    of.chunk = sends && args.direct.phase == WEFTI_CUDA_EP_RECV ? control->left[peer] : 0;
    of.is_done = is_own ? !sends || of.chunk != 0 : ep_domains_is_rank_masked(args.group, peer);
    if (!of.is_done && !is_own && of.total >= 0) {
        of.is_done = ep_domains_is_behind<BACK>(of.chunk, ep_direct_chunk_rows<BACK>(args), of.total);
    }
    of.is_done = of.is_done || (!sends && args.direct.phase == WEFTI_CUDA_EP_SEND);
    return of;
}

/* The ends of this block that are not done, each once. How many they are. All threads. */
template <bool BACK> EP_DEVICE int ep_direct_serve(const ep_domains &args, ep_domains_crossing *state)
{
    const int ranks = args.group.ranks;
    int left = 0;
    for (int i = 0, end = (int)blockIdx.x; end < 2 * ranks; i++, end += (int)gridDim.x) {
        const int peer = ep_direct_peer(args.group, end);
        ep_domains_progress *of = &state->of[i];
        if (of->is_done) {
            continue;
        }
        left++;
        if (peer == args.group.rank) {
            ep_direct_keep<BACK>(args, state, of);
        } else if (end < ranks) {
            ep_direct_send<BACK>(args, state, of, peer);
        } else {
            ep_direct_take<BACK>(args, state, of, peer);
        }
    }
    return left;
}

template <bool BACK> EP_DEVICE void ep_direct_cross(const ep_domains &args)
{
    EP_SHARED(ep_domains_crossing, state);
    const ep_domains_group &group = args.group;
    wefti_cuda_ep_direct_control *control = args.direct.control;
    const int ends = 2 * group.ranks;
    const bool is_send = args.direct.phase == WEFTI_CUDA_EP_SEND; /* which waits for no slot */
    if (threadIdx.x == 0) {
        state.progress = 1;
        state.failed = ep_domains_is_well(group) ? 0 : -(int)WEFT_ERR_TIMEOUT;
        state.looks = 0;
        state.has_begun = state.failed == 0;
        state.start_ns = 0;
        state.awaited = wefti_ld_relaxed(&group.control->awaited);
        for (int i = 0, end = (int)blockIdx.x; end < ends && state.failed == 0; i++, end += (int)gridDim.x) {
            state.of[i] = ep_direct_start<BACK>(args, ep_direct_peer(group, end), end < group.ranks);
        }
    }
    for (;;) {
        if (threadIdx.x == 0) {
            state.ends = state.failed != 0 || (is_send && state.progress == 0);
            state.progress = 0;
        }
        __syncthreads();
        if (state.ends != 0 || ep_direct_serve<BACK>(args, &state) == 0) {
            break;
        }
        if (threadIdx.x == 0 && state.progress != 0) {
            state.start_ns = 0;
        } else if (threadIdx.x == 0 && state.failed == 0 && !is_send) {
            ep_direct_rest(&args, &state);
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) {
        return;
    }
    if (state.failed != 0) {
        ep_domains_fail(&group, -state.failed);
    }
    /* Also of a call that failed: what was sent is in the ring, and is dropped there. */
    for (int i = 0, end = (int)blockIdx.x; end < ends && state.has_begun != 0; i++, end += (int)gridDim.x) {
        const int peer = ep_direct_peer(group, end);
        (end < group.ranks ? control->sent : control->taken)[peer] = state.of[i].number;
        if (is_send && end < group.ranks) {
            control->left[peer] = state.of[i].chunk;
        }
    }
}

/* ---- sums ---- */

/* Whether choice k of a token takes part in a combine. */
EP_DEVICE bool ep_direct_takes_part(const ep_domains &args, int token, int k)
{
    const wefti_cuda_ep_domains_own &own = args.own;
    const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k;
    const bool is_left_out =
        own.row_bytes != 0 && own.ids != NULL &&
        (own.wide != 0 ? ((const wefti_i64 *)own.ids)[at] == -1 : ((const wefti_i32 *)own.ids)[at] == -1);
    return args.tables.ids[at] >= 0 && !is_left_out;
}

/* The rank of choice k of a token, if it is the last of that rank which takes part; else -1. */
EP_DEVICE wefti_i32 ep_direct_last_of(const ep_domains &args, int token, int k)
{
    const wefti_i32 *ids = args.tables.ids + (wefti_u64)token * (wefti_u64)args.topk;
    bool is_last = ep_direct_takes_part(args, token, k);
    for (int i = k + 1; i < args.topk && is_last; i++) {
        is_last = !ep_direct_takes_part(args, token, i) || args.group.rank_of[ids[i]] != args.group.rank_of[ids[k]];
    }
    return is_last ? args.group.rank_of[ids[k]] : -1;
}

/* Vector `vector` of what rank `rank` has sent back for a token. */
EP_DEVICE uint4 ep_direct_given(const ep_domains &args, int token, wefti_i32 rank, wefti_u32 vector)
{
    const wefti_u64 number = (wefti_u64)rank * (wefti_u64)args.group.tokens_max + (wefti_u64)token;
    return ((const uint4 *)(args.group.received + number * args.row_bytes))[vector];
}

/* As ep_direct_total, ranks of a domain by their last choices that take part, which are no ranks: what others send back
 * is 0. Biases come first. */
template <int DTYPE>
EP_DEVICE void ep_direct_total_by_choice(const ep_domains &args, int token, wefti_u32 vector, wefti_u32 goes,
                                         float *sum)
{
    const ep_domains_group &group = args.group;
    int domain = -1;
    for (int first = 0; first < group.ranks; first += 32) {
        for (wefti_u32 left = first == 0 ? goes : ep_direct_goes(args, token, first); left != 0; left &= left - 1) {
            const wefti_i32 next = group.domain_of_rank[args.direct.order[first + __ffs((int)left) - 1]];
            float inside[ep_type<DTYPE>::ELEMENTS] = {};
            for (int k = 0; next != domain && k < args.topk; k++) {
                const wefti_i32 rank = ep_direct_last_of(args, token, k);
                if (rank >= 0 && group.domain_of_rank[rank] == next) {
                    ep_add<DTYPE>(inside, ep_direct_given(args, token, rank, vector));
                }
            }
            if (next != domain) {
                ep_add<DTYPE>(sum, ep_type<DTYPE>::round(inside));
            }
            domain = next;
        }
    }
}

/* The sum of a token's domains, each the rounded sum of its ranks; `goes` has the first 32 ranks. All threads of a
 * warp. */
template <int DTYPE>
EP_DEVICE void ep_direct_total(const ep_domains &args, int token, wefti_u32 vector, wefti_u32 goes, float *sum)
{
    const ep_domains_group &group = args.group;
    float inside[ep_type<DTYPE>::ELEMENTS] = {};
    int domain = -1;
    for (int first = 0; first < group.ranks; first += 32) {
        for (wefti_u32 left = first == 0 ? goes : ep_direct_goes(args, token, first); left != 0; left &= left - 1) {
            const wefti_i32 rank = args.direct.order[first + __ffs((int)left) - 1];
            if (domain >= 0 && group.domain_of_rank[rank] != domain) {
                ep_add<DTYPE>(sum, ep_type<DTYPE>::round(inside));
                for (int i = 0; i < ep_type<DTYPE>::ELEMENTS; i++) {
                    inside[i] = 0.0f;
                }
            }
            domain = group.domain_of_rank[rank];
            ep_add<DTYPE>(inside, ep_direct_given(args, token, rank, vector));
        }
    }
    if (domain >= 0) {
        ep_add<DTYPE>(sum, ep_type<DTYPE>::round(inside));
    }
}

/* A token's sum, with biases, which come first where the order is that of choices. All threads of a warp. */
template <int DTYPE, bool BY_CHOICE>
EP_DEVICE void ep_direct_total_with(const ep_domains &args, int token, wefti_u32 vector, wefti_u32 goes, float *sum)
{
    if (BY_CHOICE) {
        ep_domains_add_biases<DTYPE>(args, token, vector, sum);
    }
    if (BY_CHOICE && args.by_rank == 0) {
        ep_direct_total_by_choice<DTYPE>(args, token, vector, goes, sum);
    } else {
        ep_direct_total<DTYPE>(args, token, vector, goes, sum);
    }
    if (!BY_CHOICE) {
        ep_domains_add_biases<DTYPE>(args, token, vector, sum);
    }
}

/* Sums of all received tokens' results, or totals. Warps take parts of rows, EP_DOMAINS_SUMS vectors a lane. */
template <int DTYPE, bool TOTAL, bool BY_CHOICE> EP_DEVICE void ep_direct_add(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    const int rows = TOTAL ? args.tables.route_header->tokens : *args.inner_rows;
    const int vectors = (int)(args.row_bytes / 16);
    const int parts = ep_direct_parts(args);
    for (int unit = warps.number; unit < rows * parts; unit += warps.count) {
        const int row = unit / parts;
        const int at = unit % parts * EP_DIRECT_PART + ep_lane();
        const wefti_u32 goes = TOTAL ? ep_direct_goes(args, row, 0) : 0;
        unsigned char *out =
            TOTAL ? args.out + (wefti_u64)row * args.out_pitch : args.group.results + (wefti_u64)row * args.row_bytes;
        float sums[EP_DOMAINS_SUMS][ep_type<DTYPE>::ELEMENTS] = {};
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_SUMS; i++) { /* without a condition, as in ep_include */
            const wefti_u32 vector = (wefti_u32)(at + i * 32 < vectors ? at + i * 32 : vectors - 1);
            if (TOTAL) {
                ep_direct_total_with<DTYPE, BY_CHOICE>(args, row, vector, goes, sums[i]);
            } else {
                ep_domains_result<DTYPE, false>(args, (wefti_u64)row, vector, sums[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_SUMS; i++) {
            if (at + i * 32 < vectors) {
                ep_domains_store<DTYPE, TOTAL>(args, out, (wefti_u32)(at + i * 32), sums[i]);
            }
        }
    }
}

template <bool TOTAL, bool BY_CHOICE> EP_DEVICE void ep_direct_add_as(const ep_domains &args)
{
    if (args.dtype == WEFT_EP_F32) {
        ep_direct_add<WEFT_EP_F32, TOTAL, BY_CHOICE>(args);
    } else if (args.dtype == WEFT_EP_BF16) {
        ep_direct_add<WEFT_EP_BF16, TOTAL, BY_CHOICE>(args);
    } else {
        ep_direct_add<WEFT_EP_F16, TOTAL, BY_CHOICE>(args);
    }
}

/* A combine begins: received tokens' results. With choices of its own those are made once a row. */
EP_DEVICE void ep_direct_results(const ep_domains &args)
{
    if (!ep_domains_begins(args.group)) {
        return;
    }
    if (ep_domains_grid().number == 0) {
        ep_domains_count_call(args.group);
    }
    if (args.own.row_bytes != 0) {
        ep_domains_add_as<false, true>(args);
    } else {
        ep_direct_add_as<false, false>(args);
    }
}

EP_DEVICE void ep_direct_totals(const ep_domains &args)
{
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    if (args.direct.by_choice != 0) {
        ep_direct_add_as<true, true>(args);
    } else {
        ep_direct_add_as<true, false>(args);
    }
}

/* ---- calls ---- */

/* A routing begins, or a dispatch on one that there is: rows as they go, and to whom. */
EP_DEVICE void ep_direct_prepare(const ep_domains &args)
{
    wefti_cuda_ep_direct_control *control = args.direct.control;
    ep_direct_begin(args);
    ep_direct_meet(control);
    if (args.positions != NULL) {
        ep_domains_number(args);
        ep_direct_meet(control);
    }
    ep_direct_pack(args);
    ep_direct_meet(control);
}

/* What has been received, to its places. */
EP_DEVICE void ep_direct_arrange(const ep_domains &args)
{
    wefti_cuda_ep_direct_control *control = args.direct.control;
    ep_domains_index(args);
    ep_direct_meet(control);
    ep_domains_count(args);
    ep_direct_meet(control);
    if (blockIdx.x == 0) {
        ep_domains_scan(args);
    }
    ep_direct_meet(control);
    ep_domains_place(args);
}

EP_DEVICE void ep_direct_dispatch(const ep_domains &args)
{
    const bool begins = args.direct.phase != WEFTI_CUDA_EP_RECV;
    if (begins && args.is_kept != 0) {
        ep_domains_choose(args);
        ep_direct_meet(args.direct.control);
    } else if (begins) {
        ep_direct_prepare(args);
    }
    ep_direct_cross<false>(args);
    if (args.direct.phase != WEFTI_CUDA_EP_SEND && args.is_kept == 0) {
        ep_direct_meet(args.direct.control);
        if (ep_domains_grid().number == 0 && ep_domains_is_well(args.group)) {
            args.group.control->awaited = 0;
        }
        ep_direct_arrange(args);
    }
}

EP_DEVICE void ep_direct_combine(const ep_domains &args)
{
    if (args.direct.only_back == 0 && args.direct.phase != WEFTI_CUDA_EP_RECV) {
        ep_direct_results(args);
        ep_direct_meet(args.direct.control);
    }
    ep_direct_cross<true>(args);
    if (args.direct.phase != WEFTI_CUDA_EP_SEND) {
        ep_direct_meet(args.direct.control);
        ep_direct_totals(args);
    }
}

#endif
