/* cuda/ep/hosts/crossing.cuh: rows between domains. Outward a rank sends each of its tokens once to each other domain
 * with one of its experts, and takes those that it forwards; back it sends the sums of these, and takes those of its
 * own. The kernels: crossing.cu.
 *
 * Each block serves some ends of rings, one after another, and waits for none: what it waits for is that any of them
 * can go on. So a rank takes what comes whatever becomes of what it sends, and no circle of ranks waits for each other.
 *
 * Grid: a block an end of a ring, or as many as there are multiprocessors for the call; they must be able to run
 *     together. End e is of block e mod gridDim.x: first those that send, then those that receive.
 * Warps: the first finds the tokens of the next chunk; thread 0 fills headers and descriptors, posts chunks, looks at
 *     flags and gives credits; all threads copy rows.
 * Shared memory: how far each end is, and the chunk that is being moved; static.
 * Flags: a chunk's flag, credits, `filled` of the proxy's ring ("Words between domains" in docs/ep-gpu-ordering.md).
 *
 *     block      of each of its ends in turn, until all are done:
 *                an end that sends: if a slot is free by the credits, a chunk of rows to pinned memory, posted
 *                an end that receives: if the next chunk's flag is there, its rows out of the slot; a credit when half
 *                of the slots are free
 *
 * Bytes: a row a (token, domain) each way, outward with its scales and tail: read on the GPU, written to pinned memory,
 * put by the transport, read from pinned memory and written on the GPU. Floor: these bytes over the rate at which the
 * transport puts, or the GPU and the host exchange them, whichever is lower. */
#ifndef WEFTI_CUDA_EP_HOSTS_CROSSING_CUH
#define WEFTI_CUDA_EP_HOSTS_CROSSING_CUH

#include "cuda/ep/hosts/call.cuh"
#include "cuda/proxy/move.h"
#include "weft/device/far.cuh"

/* How far an end is: in shared memory. */
typedef struct ep_hosts_progress {
    wefti_i32 is_done;
    wefti_i32 next; /* the next token */
    wefti_i32 count; /* rows that have passed so far */
    wefti_u32 chunks; /* ever */
} ep_hosts_progress;

typedef struct ep_hosts_crossing {
    ep_hosts_progress of[WEFTI_CUDA_EP_HOSTS_ENDS];
    wefti_i32 token[WEFTI_EP_RING_TOKENS_MAX]; /* of the chunk being filled */
    wefti_i32 rows; /* of it; -1: there is none to fill or take now */
    wefti_u32 first; /* where they go */
    wefti_u32 is_last;
    wefti_i32 progress; /* whether any end has gone on in this round */
    wefti_i32 failed;
    wefti_u32 looks;
    wefti_u64 start_ns;
} ep_hosts_crossing;

EP_DEVICE wefti_ep_ring_shape ep_hosts_shape(const ep_hosts_group &group)
{
    wefti_ep_ring_shape shape = {};
    shape.slots = group.slots;
    return shape;
}

/* ---- one thread ---- */

EP_DEVICE wefti_u64 ep_hosts_chunk_at(const ep_hosts_group &group, wefti_u64 of, wefti_u32 line, wefti_u32 number)
{
    const wefti_ep_ring_shape shape = ep_hosts_shape(group);
    return of + wefti_ep_ring_slot(&shape, line, number) * group.chunk_bytes;
}

EP_DEVICE wefti_u64 ep_hosts_flag_at(const ep_hosts_group &group, wefti_u64 of, wefti_u32 line, wefti_u32 number)
{
    const wefti_ep_ring_shape shape = ep_hosts_shape(group);
    return of + wefti_ep_ring_slot(&shape, line, number) * 8;
}

/* Have a chunk moved that lies at `from` of this rank's block: to its slot at the other end, whose flag is set
 * after. */
EP_DEVICE_SLOW bool ep_hosts_post(const ep_hosts_group *group, int back, wefti_cuda_ep_hosts_end to, wefti_u64 from,
                                  wefti_u64 bytes, wefti_u32 number)
{
    const wefti_u64 base = group->memory - group->heap;
    const wefti_u64 ticket = wefti_far_claim(&group->dev);
    if (ticket == WEFTI_NO_TICKET) {
        return false;
    }
    wefti_dev_entry *entry = wefti_far_entry(&group->dev, ticket);
    wefti_dev_move *what = (wefti_dev_move *)entry->request.data;
    what->from = base + from;
    what->bytes = bytes;
    what->signal = base + ep_hosts_flag_at(*group, group->at.flags[back], to.line, number);
    what->value = (wefti_u64)number + 1;
    wefti_far_fill(
        entry, WEFTI_DEV_REQUEST_MOVE,
        WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, base + ep_hosts_chunk_at(*group, group->at.in[back], to.line, number)),
        bytes);
    wefti_far_post(entry, ticket, to.pe);
    return true;
}

EP_DEVICE_SLOW bool ep_hosts_give_credit(const ep_hosts_group *group, int back, wefti_cuda_ep_hosts_end to,
                                         wefti_u32 taken)
{
    const wefti_u64 place =
        WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, group->memory - group->heap + group->at.credits[back] + to.line * 8);
    return wefti_far_word(&group->dev, wefti_far_ask(WEFTI_DEV_REQUEST_SIGNAL, WEFT_SIGNAL_SET, 64, 0), place, taken, 0,
                          to.pe) != WEFTI_NO_TICKET;
}

/* ---- sending ---- */

/* The first token from `token` on that goes to the domain, or T. A warp. */
EP_DEVICE int ep_hosts_next_token(const ep_hosts &args, int domain, int token)
{
    const int tokens = args.tables.route_header->tokens;
    while (token < tokens) {
        const int mine = token + ep_lane();
        const wefti_u32 goes = __ballot_sync(~0u, mine < tokens && ep_hosts_goes(args, mine, domain));
        if (goes != 0) {
            return token + __ffs((int)goes) - 1;
        }
        token += 32;
    }
    return tokens;
}

/* What the next chunk to `end` holds, if there is a slot for it. The first warp. */
template <bool BACK>
EP_DEVICE void ep_hosts_plan_chunk(const ep_hosts &args, ep_hosts_crossing *state, ep_hosts_progress *of, int end)
{
    const ep_hosts_group &group = args.group;
    const wefti_u64 *credit = (const wefti_u64 *)(group.memory + group.at.credits[BACK]) + end;
    const wefti_ep_ring_shape shape = ep_hosts_shape(group);
    const bool has_room =
        __any_sync(~0u, wefti_ep_ring_has_room(&shape, of->chunks, (wefti_u32)wefti_ld_acquire(credit)) != 0);
    __syncwarp(); /* behind the acquire */
    int rows = -1;
    int next = of->next;
    if (has_room && BACK) {
        const int left = args.tables.line_count[end] - of->count;
        rows = left < (int)group.chunk_rows ? left : (int)group.chunk_rows;
        if (ep_lane() < rows) {
            state->token[ep_lane()] =
                args.tables.line_row[(wefti_u64)end * (wefti_u64)group.tokens_max + (wefti_u64)(of->count + ep_lane())];
        }
        state->is_last = rows == left;
    } else if (has_room) {
        next = ep_hosts_next_token(args, end, next);
        for (rows = 0; rows < (int)group.chunk_rows && next < args.tables.route_header->tokens; rows++) {
            state->token[rows] = next;
            next = ep_hosts_next_token(args, end, next + 1);
        }
        state->is_last = next >= args.tables.route_header->tokens;
    }
    __syncwarp();
    if (ep_lane() == 0) {
        state->rows = rows;
        of->next = next;
    }
}

template <bool BACK>
EP_DEVICE void ep_hosts_send(const ep_hosts &args, ep_hosts_crossing *state, ep_hosts_progress *of, int end)
{
    const ep_hosts_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    if (ep_warp() == 0) {
        ep_hosts_plan_chunk<BACK>(args, state, of, end);
    }
    __syncthreads();
    const int rows = state->rows;
    if (rows >= 0) {
        const wefti_u64 from = ep_hosts_chunk_at(group, group.at.out[BACK], (wefti_u32)end, of->chunks);
        unsigned char *chunk = (unsigned char *)(group.memory + from);
        for (int i = 0; i < rows; i++) {
            unsigned char *to = chunk + WEFTI_CUDA_EP_HOSTS_CHUNK + (wefti_u64)i * row_bytes;
            const int token = state->token[i];
            ep_hosts_copy(ep_hosts_block_threads(), to, (BACK ? group.sums : group.rows) + (wefti_u64)token * row_bytes,
                          row_bytes);
            if (!BACK && threadIdx.x == 0) {
                args.tables.sent_token[(wefti_u64)end * (wefti_u64)group.tokens_max + (wefti_u64)(of->count + i)] =
                    token;
            }
        }
        if (threadIdx.x == 0) {
            wefti_ep_chunk_header *header = (wefti_ep_chunk_header *)chunk;
            header->tokens = (uint32_t)rows;
            header->is_last = state->is_last;
            header->bytes = (uint32_t)(WEFTI_CUDA_EP_HOSTS_CHUNK + (wefti_u64)rows * row_bytes);
            header->call = args.call;
        }
        __syncthreads(); /* all of it is there before it is posted by release */
        if (threadIdx.x == 0) {
            const wefti_cuda_ep_hosts_end to = BACK ? group.sources[end] : group.forwarders[end];
            wefti_fence_acq_rel();
            if (!ep_hosts_post(&group, BACK, to, from, WEFTI_CUDA_EP_HOSTS_CHUNK + (wefti_u64)rows * row_bytes,
                               of->chunks)) {
                state->failed = -(int)WEFT_ERR_TIMEOUT;
            }
            of->chunks++;
            of->count += rows;
            of->is_done = (int)state->is_last;
            state->progress = 1;
        }
    }
    __syncthreads();
}

/* ---- receiving ---- */

template <bool BACK>
EP_DEVICE void ep_hosts_take(const ep_hosts &args, ep_hosts_crossing *state, ep_hosts_progress *of, int end)
{
    const ep_hosts_group &group = args.group;
    const wefti_u64 row_bytes = BACK ? args.row_bytes : args.wide_bytes;
    unsigned char *chunk =
        (unsigned char *)(group.memory + ep_hosts_chunk_at(group, group.at.in[BACK], (wefti_u32)end, of->chunks));
    if (threadIdx.x == 0) {
        const wefti_u64 *flag = (const wefti_u64 *)(group.memory + ep_hosts_flag_at(group, group.at.flags[BACK],
                                                                                    (wefti_u32)end, of->chunks));
        const wefti_ep_chunk_header *header = (const wefti_ep_chunk_header *)chunk;
        const bool is_here = wefti_ld_acquire(flag) == (wefti_u64)of->chunks + 1;
        const int most = BACK ? args.tables.sent_count[end] : group.tokens_max;
        state->rows = -1;
        if (is_here && (header->call != args.call || (int)header->tokens > most - of->count)) {
            state->failed = -(int)WEFT_ERR_MISMATCH;
        } else if (is_here) {
            state->rows = (int)header->tokens;
            state->is_last = header->is_last;
            state->first = BACK ? 0 : atomicAdd((wefti_u32 *)args.tables.inner_tokens, header->tokens);
        }
    }
    __syncthreads();
    const int rows = state->rows;
    for (int i = 0; i < rows; i++) {
        unsigned char *from = chunk + WEFTI_CUDA_EP_HOSTS_CHUNK + (wefti_u64)i * row_bytes;
        const wefti_u64 at = (wefti_u64)end * (wefti_u64)group.tokens_max;
        const wefti_u64 number = at + (wefti_u64)(of->count + i);
        const wefti_u32 row = state->first + (wefti_u32)i;
        if (BACK) {
            ep_hosts_copy(ep_hosts_block_threads(),
                          group.domain_sums + (at + (wefti_u64)args.tables.sent_token[number]) * row_bytes, from,
                          row_bytes);
        } else {
            ep_hosts_copy(ep_hosts_block_threads(), group.rows + (wefti_u64)row * row_bytes, from, row_bytes);
            ep_hosts_choose_inner(args, ep_hosts_block_threads(), row, ep_hosts_ids(ep_hosts_tail(args, from)));
            if (threadIdx.x == 0) {
                args.tables.line_row[number] = (wefti_i32)row;
            }
        }
    }
    __syncthreads(); /* all of it has been read before the slot is given back */
    if (threadIdx.x == 0 && rows >= 0) {
        const wefti_cuda_ep_hosts_end to = BACK ? group.forwarders[end] : group.sources[end];
        const wefti_ep_ring_shape shape = ep_hosts_shape(group);
        of->chunks++;
        of->count += rows;
        of->is_done = (int)state->is_last;
        state->progress = 1;
        if (wefti_ep_ring_gives_credit(&shape, of->chunks) && !ep_hosts_give_credit(&group, BACK, to, of->chunks)) {
            state->failed = -(int)WEFT_ERR_TIMEOUT;
        }
    }
    __syncthreads();
}

/* ---- all of it ---- */

/* Who is at end number `end` of this call; the first `sends` of them send. */
EP_DEVICE wefti_cuda_ep_hosts_end ep_hosts_end_of(const ep_hosts_group &group, bool back, int end)
{
    const int sends = back ? group.lines : group.domains;
    const bool is_source = back == (end < sends);
    const int number = end < sends ? end : end - sends;
    return is_source ? group.sources[number] : group.forwarders[number];
}

/* Nothing has gone on: whether to look again. Thread 0. */
template <bool BACK> EP_DEVICE_SLOW void ep_hosts_rest(const ep_hosts *args, ep_hosts_crossing *state, int ends)
{
    const ep_hosts_group &group = args->group;
    EP_PAUSE();
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
        const int rank = ep_hosts_end_of(group, BACK, (int)blockIdx.x + i * (int)gridDim.x).rank;
        if (!state->of[i].is_done) {
            atomicOr(&group.control->missing[rank >> 5], 1u << (rank & 31));
        }
    }
    state->failed = status == WEFT_OK ? 0 : -status;
}

template <bool BACK> EP_DEVICE void ep_hosts_cross(const ep_hosts &args)
{
    EP_SHARED(ep_hosts_crossing, state);
    const ep_hosts_group &group = args.group;
    const int sends = BACK ? group.lines : group.domains;
    const int ends = group.lines + group.domains;
    wefti_cuda_ep_hosts_control *control = group.control;
    if (threadIdx.x == 0) {
        for (int i = 0, end = (int)blockIdx.x; end < ends; i++, end += (int)gridDim.x) {
            const bool is_own = end == (BACK ? group.lines : 0) + group.domain;
            ep_hosts_progress fresh = {is_own, 0, 0,
                                       end < sends ? control->sent[BACK][end] : control->taken[BACK][end - sends]};
            state.of[i] = fresh;
        }
        state.failed = ep_hosts_is_well(group) ? 0 : -(int)WEFT_ERR_TIMEOUT;
        state.looks = 0;
        state.start_ns = 0;
    }
    for (;;) {
        int left = 0;
        if (threadIdx.x == 0) {
            state.progress = 0;
        }
        __syncthreads();
        if (state.failed != 0) {
            break;
        }
        for (int i = 0, end = (int)blockIdx.x; end < ends; i++, end += (int)gridDim.x) {
            if (state.of[i].is_done) {
                continue;
            }
            left++;
            if (end < sends) {
                ep_hosts_send<BACK>(args, &state, &state.of[i], end);
            } else {
                ep_hosts_take<BACK>(args, &state, &state.of[i], end - sends);
            }
        }
        if (left == 0) {
            break;
        }
        if (threadIdx.x == 0 && state.progress != 0) {
            state.start_ns = 0;
        } else if (threadIdx.x == 0 && state.failed == 0) {
            ep_hosts_rest<BACK>(&args, &state, ends);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && state.failed != 0) {
        ep_hosts_fail(&group, -state.failed);
    }
    for (int i = 0, end = (int)blockIdx.x; end < ends && threadIdx.x == 0; i++, end += (int)gridDim.x) {
        if (end < sends) {
            control->sent[BACK][end] = state.of[i].chunks;
        } else {
            control->taken[BACK][end - sends] = state.of[i].chunks;
        }
        if (!BACK) {
            (end < sends ? args.tables.sent_count[end] : args.tables.line_count[end - sends]) = state.of[i].count;
        }
    }
}

#endif
