/* cuda/ep/domains/crossing.cuh: rows between domains. Outward a rank sends each of its tokens once to each other domain
 * with one of its experts, and takes those that it forwards; back it sends the sums of these, and takes those of its
 * own. The kernels: crossing.cu.
 *
 * Each block serves some ends of channels, one after another, and waits for none: what it waits for is that any of them
 * can go on. So a rank takes what comes whatever becomes of what it sends, and no circle of ranks waits for each other.
 *
 * Grid: a block an end of a channel, or as many as there are multiprocessors for the call; they must be able to run
 *     together. End e is of block e mod gridDim.x: first those that send, then those that receive.
 * Warps: thread 0 plans chunks, fills headers and descriptors, looks at flags and credits, and stores or posts them;
 *     all copy rows, a warp 32 * EP_DOMAINS_STEPS words at a time.
 * Shared memory: how far each end is, and the chunk that is being moved; static.
 * Flags: a chunk's flag, credits, `filled` of the proxy's ring, `line_count` ("Words between domains" in
 *     docs/ep-gpu-ordering.md).
 *
 *     block      of each of its ends in turn, until all are done:
 *                an end that sends: if a slot is free by the credits, a chunk of rows: to the slot and its flag where
 *                the other's host heap is mapped, else to pinned memory, posted
 *                an end that receives: if the next chunk's flag is there, its rows out of the slot; a credit when half
 *                of the slots are free
 *
 * Bytes: a row a (token, domain) each way, outward with its scales and tail: read on the GPU, written to host memory
 * and read from there, and written on the GPU; between hosts also put by the transport. Floor: these bytes over the
 * rate at which a GPU and the host exchange them, each way at once, or at which the transport puts, whichever is
 * lower. */
#ifndef WEFTI_CUDA_EP_DOMAINS_CROSSING_CUH
#define WEFTI_CUDA_EP_DOMAINS_CROSSING_CUH

#include "cuda/ep/domains/call.cuh"
#include "cuda/proxy/move.h"
#include "weft/device/far.cuh"

#define EP_DOMAINS_STEPS 8 /* words of 16 bytes that a lane has under way */

/* There is no chunk to fill or take now; there will be none in this call. */
enum { EP_DOMAINS_NONE = -1, EP_DOMAINS_NEVER = -2 };

/* How far an end is: in shared memory. */
typedef struct ep_domains_progress {
    wefti_i32 is_done;
    wefti_i32 total; /* rows of the call by this line; -1: not known yet */
    wefti_i32 chunk; /* of the call, the next by this channel */
    wefti_u32 number; /* of that, ever, by this channel */
    wefti_u32 credit; /* of an end that sends, as last seen */
    wefti_i32 is_here; /* directly, of one that receives: `here` counts it */
} ep_domains_progress;

typedef struct ep_domains_crossing {
    ep_domains_progress of[WEFTI_CUDA_EP_DOMAINS_ENDS];
    wefti_i32 rows; /* of the chunk, EP_DOMAINS_NONE or EP_DOMAINS_NEVER */
    wefti_u32 row; /* where they go */
    wefti_i32 progress; /* whether any end has gone on in this round */
    wefti_i32 has_begun; /* `of` is set */
    wefti_u32 awaited; /* of a direct call, as the group's control words had it */
    wefti_i32 failed;
    wefti_i32 ends; /* whether to end, as of when the round began: `failed` changes while others look */
    wefti_u32 looks;
    wefti_u64 start_ns;
} ep_domains_crossing;

/* An end of this call: who is at the other, by which channel. */
typedef struct ep_domains_side {
    wefti_cuda_ep_domains_end to;
    wefti_i32 peer; /* a domain or a line */
    wefti_i32 channel;
    wefti_u32 ring; /* here */
    bool sends;
} ep_domains_side;

EP_DEVICE int ep_domains_peers(const ep_domains_group &group, bool back)
{
    return back ? group.lines : group.domains;
}

EP_DEVICE int ep_domains_ends(const ep_domains_group &group)
{
    return (group.lines + group.domains) * (int)group.channels;
}

/* End number `end` of this call. */
EP_DEVICE ep_domains_side ep_domains_side_of(const ep_domains_group &group, bool back, int end)
{
    const int sends = ep_domains_peers(group, back);
    const int number = end / (int)group.channels;
    ep_domains_side side;
    side.sends = number < sends;
    side.peer = side.sends ? number : number - sends;
    side.channel = end % (int)group.channels;
    side.ring = (wefti_u32)side.peer * group.channels + (wefti_u32)side.channel;
    side.to = (back == side.sends ? group.sources : group.forwarders)[side.peer];
    return side;
}

/* Rows of each chunk but the last: as many as spread them over all channels, within limits. */
EP_DEVICE int ep_domains_chunk_rows(const ep_domains_group &group, wefti_u64 row_bytes, int total)
{
    const int fit = (int)((group.chunk_bytes - WEFTI_CUDA_EP_DOMAINS_CHUNK) / row_bytes);
    const int share = (total + (int)group.channels - 1) / (int)group.channels;
    const int rows = share < (int)group.chunk_rows ? (int)group.chunk_rows : share;
    return rows < fit ? rows : fit;
}

/* Whether chunk `chunk` of a call with `total` rows is behind the last. Outward there is a first in any case, which
 * tells how many there are. */
template <bool BACK> EP_DEVICE bool ep_domains_is_behind(int chunk, int rows, int total)
{
    return (BACK || chunk > 0) && (wefti_i64)chunk * rows >= total;
}

/* ---- one thread ---- */

EP_DEVICE wefti_u64 ep_domains_slot(const ep_domains_group &group, wefti_u32 ring, wefti_u32 number)
{
    wefti_ep_ring_shape shape = {};
    shape.slots = group.slots;
    return wefti_ep_ring_slot(&shape, ring, number);
}

EP_DEVICE wefti_u64 ep_domains_chunk_at(const ep_domains_group &group, wefti_u64 of, wefti_u32 ring, wefti_u32 number)
{
    return of + ep_domains_slot(group, ring, number) * group.chunk_bytes;
}

EP_DEVICE wefti_u64 ep_domains_flag_at(const ep_domains_group &group, wefti_u64 of, wefti_u32 ring, wefti_u32 number)
{
    return of + ep_domains_slot(group, ring, number) * 8;
}

/* The flag of a chunk of this call. A channel may have none, and then one of the next call, early. */
EP_DEVICE wefti_u64 ep_domains_flag(const ep_domains_group &group, wefti_u32 number)
{
    return (wefti_u64)group.control->calls << 32 | (wefti_u32)(number + 1);
}

/* The ring at the other end. */
EP_DEVICE wefti_u32 ep_domains_ring_there(const ep_domains_group &group, const ep_domains_side &side)
{
    return side.to.line * group.channels + (wefti_u32)side.channel;
}

/* Where chunk `number` is filled: in its slot, or here. */
EP_DEVICE wefti_u64 ep_domains_fill_at(const ep_domains_group &group, int back, const ep_domains_side &side,
                                       wefti_u32 number)
{
    return side.to.is_mapped != 0
               ? group.memory + (wefti_u64)side.to.delta +
                     ep_domains_chunk_at(group, group.at.in[back], ep_domains_ring_there(group, side), number)
               : group.memory + ep_domains_chunk_at(group, group.at.out[back], side.ring, number);
}

/* Have the proxy move a chunk to `to` of PE `pe`, and set its flag there once all of it is there; all are offsets in
 * host heaps. False: it cannot be moved. One thread. */
EP_DEVICE_SLOW bool ep_domains_move(const ep_domains_group *group, int pe, wefti_u64 to, wefti_dev_move chunk)
{
    const wefti_u64 ticket = wefti_far_claim(&group->dev);
    if (ticket == WEFTI_NO_TICKET) {
        return false;
    }
    wefti_dev_entry *entry = wefti_far_entry(&group->dev, ticket);
    *(wefti_dev_move *)entry->request.data = chunk;
    wefti_far_fill(entry, WEFTI_DEV_REQUEST_MOVE, WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, to), chunk.bytes);
    wefti_far_post(entry, ticket, pe);
    return true;
}

/* The other end may have the chunk: its flag is set once all of it is there. False: it cannot be moved. */
EP_DEVICE_SLOW bool ep_domains_post(const ep_domains_group *group, int back, const ep_domains_side *side,
                                    wefti_u64 bytes, wefti_u32 number)
{
    const wefti_u32 ring = ep_domains_ring_there(*group, *side);
    const wefti_u64 at = ep_domains_flag_at(*group, group->at.flags[back], ring, number);
    const wefti_u64 base = group->memory - group->heap;
    if (side->to.is_mapped != 0) {
        wefti_st_release((wefti_u64 *)(group->memory + (wefti_u64)side->to.delta + at),
                         ep_domains_flag(*group, number));
        return true;
    }
    const wefti_dev_move chunk = {base + ep_domains_chunk_at(*group, group->at.out[back], side->ring, number), bytes,
                                  base + at, ep_domains_flag(*group, number)};
    return ep_domains_move(group, side->to.pe, base + ep_domains_chunk_at(*group, group->at.in[back], ring, number),
                           chunk);
}

/* So many chunks have been taken, half of the slots more than at the last credit: by the proxy that is added, since
 * additions may come in any order. */
EP_DEVICE_SLOW bool ep_domains_give_credit(const ep_domains_group *group, int back, const ep_domains_side *side,
                                           wefti_u32 taken)
{
    const wefti_u64 at = group->at.credits[back] + ep_domains_ring_there(*group, *side) * 8;
    if (side->to.is_mapped != 0) {
        wefti_st_release((wefti_u64 *)(group->memory + (wefti_u64)side->to.delta + at), (wefti_u64)taken);
        return true;
    }
    return wefti_far_word(&group->dev, wefti_far_ask(WEFTI_DEV_REQUEST_SIGNAL, WEFT_SIGNAL_ADD, 64, 0),
                          WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, group->memory - group->heap + at), group->slots / 2, 0,
                          side->to.pe) != WEFTI_NO_TICKET;
}

/* ---- rows ---- */

/* Rows of `bytes` bytes, a multiple of 16: row i is at number i, or at the number that `to_at` or `from_at` says. All
 * threads. */
EP_DEVICE void ep_domains_copy_rows(int rows, wefti_u64 bytes, unsigned char *to, const wefti_i32 *to_at,
                                    const unsigned char *from, const wefti_i32 *from_at)
{
    const int words = (int)(bytes / 16);
    const int parts = (words + 32 * EP_DOMAINS_STEPS - 1) / (32 * EP_DOMAINS_STEPS);
    for (int unit = ep_warp(); unit < rows * parts; unit += ep_warps()) {
        const int row = unit / parts;
        const int first = unit % parts * 32 * EP_DOMAINS_STEPS + ep_lane();
        const uint4 *in = (const uint4 *)(from + (wefti_u64)(from_at == NULL ? row : from_at[row]) * bytes);
        uint4 *out = (uint4 *)(to + (wefti_u64)(to_at == NULL ? row : to_at[row]) * bytes);
        uint4 values[EP_DOMAINS_STEPS];
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_STEPS; i++) {
            if (first + i * 32 < words) {
                values[i] = in[first + i * 32];
            }
        }
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_STEPS; i++) {
            if (first + i * 32 < words) {
                out[first + i * 32] = values[i];
            }
        }
    }
}

/* ---- sending ---- */

template <bool BACK>
EP_DEVICE void ep_domains_send(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of,
                               const ep_domains_side &side)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    const int chunk_rows = ep_domains_chunk_rows(group, row_bytes, of->total);
    const int first = of->chunk * chunk_rows;
    if (threadIdx.x == 0) {
        wefti_ep_ring_shape shape = {};
        shape.slots = group.slots;
        if (!wefti_ep_ring_has_room(&shape, of->number, of->credit)) {
            of->credit =
                (wefti_u32)wefti_ld_acquire((const wefti_u64 *)(group.memory + group.at.credits[BACK]) + side.ring);
        }
        state->rows = !wefti_ep_ring_has_room(&shape, of->number, of->credit) ? EP_DOMAINS_NONE
                      : of->total - first < chunk_rows                        ? of->total - first
                                                                              : chunk_rows;
    }
    __syncthreads();
    const int rows = state->rows;
    if (rows >= 0) {
        unsigned char *chunk = (unsigned char *)ep_domains_fill_at(group, BACK, side, of->number);
        const wefti_i32 *numbers = (BACK ? args.tables.line_row : args.tables.sent_token) +
                                   (wefti_u64)side.peer * (wefti_u64)group.tokens_max + (wefti_u64)first;
        ep_domains_copy_rows(rows, row_bytes, chunk + WEFTI_CUDA_EP_DOMAINS_CHUNK, NULL, BACK ? group.sums : group.rows,
                             numbers);
        if (threadIdx.x == 0) {
            const wefti_cuda_ep_domains_chunk header = {args.call, of->total, 0};
            *(wefti_cuda_ep_domains_chunk *)chunk = header;
        }
        __syncthreads(); /* all of it is there before it is posted by release */
        if (threadIdx.x == 0) {
            if (ep_domains_post(&group, BACK, &side, WEFTI_CUDA_EP_DOMAINS_CHUNK + (wefti_u64)rows * row_bytes,
                                of->number)) {
                of->number++;
            } else {
                state->failed = -(int)WEFT_ERR_TIMEOUT;
            }
            of->chunk += (int)group.channels;
            of->is_done = ep_domains_is_behind<BACK>(of->chunk, chunk_rows, of->total);
            state->progress = 1;
        }
    }
    __syncthreads();
}

/* ---- receiving ---- */

/* Whether the next chunk by this channel is of a call that failed here before it was taken: it is dropped. Thread 0. */
EP_DEVICE_SLOW bool ep_domains_drop(const ep_domains_group *group, int back, ep_domains_progress *of,
                                    const ep_domains_side *side, wefti_u64 flag, wefti_i32 *failed)
{
    wefti_ep_ring_shape shape = {};
    shape.slots = group->slots;
    if ((wefti_u32)flag != of->number + 1 ||
        !wefti_cuda_ep_domains_is_before((wefti_u32)(flag >> 32), group->control->calls)) {
        return false;
    }
    of->number++;
    if (wefti_ep_ring_gives_credit(&shape, of->number) && !ep_domains_give_credit(group, back, side, of->number)) {
        *failed = -(int)WEFT_ERR_TIMEOUT;
    }
    return true;
}

/* Whether the next chunk is there, or will never be. Thread 0. */
template <bool BACK>
EP_DEVICE void ep_domains_look(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of,
                               const ep_domains_side &side, const unsigned char *chunk)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    const wefti_u64 *flag =
        (const wefti_u64 *)(group.memory + ep_domains_flag_at(group, group.at.flags[BACK], side.ring, of->number));
    wefti_i32 *count = BACK ? NULL : &args.tables.line_count[side.peer];
    const wefti_u64 seen = wefti_ld_acquire(flag);
    const bool is_here = seen == ep_domains_flag(group, of->number);
    state->rows = EP_DOMAINS_NONE;
    if (!is_here && ep_domains_drop(&group, BACK, of, &side, seen, &state->failed)) {
        state->progress = 1;
        return;
    }
    if (is_here && of->chunk == side.channel) { /* of this call the first by this channel */
        const wefti_cuda_ep_domains_chunk header = *(const wefti_cuda_ep_domains_chunk *)chunk;
        if (header.call != args.call || header.total < 0 || header.total > group.tokens_max ||
            (BACK && header.total != of->total)) {
            state->failed = -(int)WEFT_ERR_MISMATCH;
            return;
        }
        of->total = header.total;
        if (!BACK && side.channel == 0) {
            wefti_st_relaxed((wefti_u32 *)count, (wefti_u32)header.total);
        }
    } else if (!BACK && !is_here && of->total < 0) {
        of->total = (wefti_i32)wefti_ld_relaxed((const wefti_u32 *)count);
    }
    if (of->total >= 0) {
        const int chunk_rows = ep_domains_chunk_rows(group, row_bytes, of->total);
        const int left = of->total - of->chunk * chunk_rows;
        state->rows = ep_domains_is_behind<BACK>(of->chunk, chunk_rows, of->total) ? EP_DOMAINS_NEVER
                      : !is_here                                                   ? EP_DOMAINS_NONE
                      : left < chunk_rows                                          ? left
                                                                                   : chunk_rows;
    }
    if (!BACK && args.is_kept == 0 && state->rows > 0) {
        state->row = atomicAdd((wefti_u32 *)args.tables.inner_tokens, (wefti_u32)state->rows);
    }
}

template <bool BACK>
EP_DEVICE void ep_domains_take(const ep_domains &args, ep_domains_crossing *state, ep_domains_progress *of,
                               const ep_domains_side &side)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    unsigned char *chunk =
        (unsigned char *)(group.memory + ep_domains_chunk_at(group, group.at.in[BACK], side.ring, of->number));
    if (threadIdx.x == 0) {
        ep_domains_look<BACK>(args, state, of, side, chunk);
    }
    __syncthreads();
    const int rows = state->rows;
    if (rows < 0 || state->failed != 0) {
        if (threadIdx.x == 0 && rows == EP_DOMAINS_NEVER) {
            of->is_done = 1;
        }
        __syncthreads(); /* the state has been read */
        return;
    }
    const int chunk_rows = ep_domains_chunk_rows(group, row_bytes, of->total);
    const wefti_u64 at = (wefti_u64)side.peer * (wefti_u64)group.tokens_max;
    const wefti_u64 first = at + (wefti_u64)(of->chunk * chunk_rows);
    const unsigned char *from = chunk + WEFTI_CUDA_EP_DOMAINS_CHUNK;
    if (BACK) {
        ep_domains_copy_rows(rows, row_bytes, group.domain_sums + at * row_bytes, args.tables.sent_token + first, from,
                             NULL);
    } else if (args.is_kept != 0) {
        ep_domains_copy_rows(rows, row_bytes, group.rows, args.tables.line_row + first, from, NULL);
    } else {
        ep_domains_copy_rows(rows, row_bytes, group.rows + (wefti_u64)state->row * row_bytes, NULL, from, NULL);
        for (int i = ep_warp(); i < rows; i += ep_warps()) {
            const wefti_u32 row = state->row + (wefti_u32)i;
            unsigned char *tail = (unsigned char *)ep_domains_tail(args, chunk + WEFTI_CUDA_EP_DOMAINS_CHUNK);
            ep_domains_choose_inner(args, ep_domains_lanes(), row,
                                    ep_domains_ids((wefti_cuda_ep_domains_tail *)(tail + (wefti_u64)i * row_bytes)));
            if (ep_lane() == 0) {
                args.tables.line_row[first + (wefti_u64)i] = (wefti_i32)row;
            }
        }
    }
    __syncthreads(); /* all of it has been read before the slot is given back */
    if (threadIdx.x == 0) {
        wefti_ep_ring_shape shape = {};
        shape.slots = group.slots;
        of->number++;
        of->chunk += (int)group.channels;
        of->is_done = ep_domains_is_behind<BACK>(of->chunk, chunk_rows, of->total);
        state->progress = 1;
        if (wefti_ep_ring_gives_credit(&shape, of->number) &&
            !ep_domains_give_credit(&group, BACK, &side, of->number)) {
            state->failed = -(int)WEFT_ERR_TIMEOUT;
        }
    }
    __syncthreads();
}

/* ---- all of it ---- */

/* In a group with WEFT_EP_STATISTICS: how long nothing has gone on while rows were to come. Each look is timed, as one
 * is a round of all ends. Thread 0. */
EP_DEVICE void ep_domains_note_waits(const ep_domains_group &group, bool back, ep_domains_crossing *state)
{
    const wefti_u64 now = wefti_time_ns();
    state->start_ns = state->start_ns == 0 ? now : state->start_ns;
    const wefti_u64 waited = now - state->start_ns;
    for (int i = 0, end = (int)blockIdx.x; end < ep_domains_ends(group); i++, end += (int)gridDim.x) {
        const ep_domains_side side = ep_domains_side_of(group, back, end);
        if (!state->of[i].is_done && !side.sends) {
            atomicMax((unsigned long long *)&group.waits[side.to.rank], (unsigned long long)waited);
        }
    }
}

/* Nothing has gone on: whether to look again. Thread 0. */
template <bool BACK> EP_DEVICE_SLOW void ep_domains_rest(const ep_domains *args, ep_domains_crossing *state)
{
    const ep_domains_group &group = args->group;
    const int ends = ep_domains_ends(group);
    EP_PAUSE();
    if (group.waits != NULL) {
        ep_domains_note_waits(group, BACK, state);
    }
    if (++state->looks % WEFTI_DEV_LOOKS != 0) {
        return;
    }
    if (wefti_ld_relaxed(&group.control->failed) != 0) {
        state->failed = -(int)WEFT_ERR_TIMEOUT; /* another block has told who is missing */
        return;
    }
    state->start_ns = state->start_ns == 0 ? wefti_time_ns() : state->start_ns;
    const int status = wefti_dev_pause_slow(&group.dev, state->start_ns);
    for (int i = 0; status == WEFT_ERR_TIMEOUT && (int)blockIdx.x + i * (int)gridDim.x < ends; i++) {
        const int rank = ep_domains_side_of(group, BACK, (int)blockIdx.x + i * (int)gridDim.x).to.rank;
        if (!state->of[i].is_done) {
            atomicOr(&group.control->missing[rank >> 5], 1u << (rank & 31));
        }
    }
    state->failed = status == WEFT_OK ? 0 : -status;
}

/* How far an end is when the kernel begins. Thread 0. */
template <bool BACK> EP_DEVICE ep_domains_progress ep_domains_start(const ep_domains &args, const ep_domains_side &side)
{
    const ep_domains_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    const bool is_forwarder = BACK != side.sends; /* the other; else it is a source */
    ep_domains_progress of = {};
    of.chunk = side.channel;
    of.number = (side.sends ? group.control->sent : group.control->taken)[BACK][side.ring];
    of.credit = of.number - group.slots; /* as far as is known: what there is, is looked at first */
    of.total = is_forwarder ? args.tables.sent_count[side.peer] : BACK ? args.tables.line_count[side.peer] : -1;
    of.is_done = (is_forwarder && side.peer == group.domain) || ep_domains_is_masked(group, side.to.domain);
    if (!of.is_done && of.total >= 0) {
        of.is_done = ep_domains_is_behind<BACK>(of.chunk, ep_domains_chunk_rows(group, row_bytes, of.total), of.total);
    }
    return of;
}

template <bool BACK> EP_DEVICE void ep_domains_cross(const ep_domains &args)
{
    EP_SHARED(ep_domains_crossing, state);
    const ep_domains_group &group = args.group;
    const int ends = ep_domains_ends(group);
    if (threadIdx.x == 0) {
        state.failed = ep_domains_is_well(group) ? 0 : -(int)WEFT_ERR_TIMEOUT;
        state.looks = 0;
        state.has_begun = state.failed == 0;
        state.start_ns = 0;
        for (int i = 0, end = (int)blockIdx.x; end < ends && state.failed == 0; i++, end += (int)gridDim.x) {
            state.of[i] = ep_domains_start<BACK>(args, ep_domains_side_of(group, BACK, end));
        }
    }
    for (;;) {
        int left = 0;
        if (threadIdx.x == 0) {
            state.progress = 0;
            state.ends = state.failed;
        }
        __syncthreads();
        if (state.ends != 0) {
            break;
        }
        for (int i = 0, end = (int)blockIdx.x; end < ends; i++, end += (int)gridDim.x) {
            if (state.of[i].is_done) {
                continue;
            }
            left++;
            const ep_domains_side side = ep_domains_side_of(group, BACK, end);
            if (side.sends) {
                ep_domains_send<BACK>(args, &state, &state.of[i], side);
            } else {
                ep_domains_take<BACK>(args, &state, &state.of[i], side);
            }
        }
        if (left == 0) {
            break;
        }
        if (threadIdx.x == 0 && state.progress != 0) {
            state.start_ns = 0;
        } else if (threadIdx.x == 0 && state.failed == 0) {
            ep_domains_rest<BACK>(&args, &state);
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
        const ep_domains_side side = ep_domains_side_of(group, BACK, end);
        (side.sends ? group.control->sent : group.control->taken)[BACK][side.ring] = state.of[i].number;
    }
}

#endif
