/* protocol/ep_layout.h: the symmetric memory of an expert-parallel group: what lies where, who writes it and when. Host
 * and device share it.
 *
 *   epoch    the last collective call of the group that this rank has completed; this rank's own word
 *   calls    [R] lines: what source s calls, written by s at the start of each of its calls
 *   replies  [R] lines: the verdict of owner d on an update, written by d once it has the counts of all sources
 *   dones    [R] words: the epoch of the last call in which s is done with this rank's memory; written by s
 *   counts   [R][1 + Lmax]: tokens, then choices per local expert, that s sends here; written by s before its call line
 *   bases    [R + E]: per owner d the first token of this rank there, then the first row of this rank in each of d's
 *            experts; written by d before its reply line
 *   records  [M] who is received: source token, K local experts, K weights; written by the sources after this rank's
 *            reply, at the bases it gave
 *   rows     [M] rows received for a caller whose buffer is not symmetric, and partial sums on their way back
 *
 * R ranks, E experts, Lmax the most experts of a rank, M the most tokens a rank receives. Flags are 64-bit epochs, one
 * more with each call, stored with release after what they announce and compared for equality. Nothing is reset. */
#ifndef WEFTI_PROTOCOL_EP_LAYOUT_H
#define WEFTI_PROTOCOL_EP_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEFTI_EP_FN static inline __host__ __device__
#else
#define WEFTI_EP_FN static inline
#endif

#define WEFTI_EP_LINE_BYTES 64

#ifdef __cplusplus
extern "C" {
#endif

/* One source's current call: 64 bytes, so that sources do not share lines. */
typedef struct wefti_ep_call_line {
    uint64_t shape; /* wefti_ep_update_shape or wefti_ep_rows_shape; equal on all ranks */
    uint64_t route; /* the epoch of the route's last update, 0 in an update; equal on all ranks */
    uint64_t buffer; /* where rows lie on s: bytes from its group memory to its buffer, modulo 2^64 */
    uint64_t pitch; /* bytes from row to row there, and WEFTI_EP_BY_TOKEN */
    uint64_t unused[3];
    uint64_t epoch; /* the flag */
} wefti_ep_call_line;

/* In `pitch`, a multiple of 16: rows lie by received token, also on an expert-major route. */
#define WEFTI_EP_BY_TOKEN 1u

typedef struct wefti_ep_reply_line {
    uint64_t status; /* a weft_status */
    uint64_t unused[6];
    uint64_t epoch; /* the flag */
} wefti_ep_reply_line;

/* What a call is, in 64 bits. */
typedef enum wefti_ep_kind { WEFTI_EP_UPDATE = 1, WEFTI_EP_DISPATCH = 2, WEFTI_EP_COMBINE = 3 } wefti_ep_kind;

WEFTI_EP_FN uint64_t wefti_ep_update_shape(unsigned layout, unsigned topk, unsigned alignment)
{
    return (uint64_t)WEFTI_EP_UPDATE | (uint64_t)layout << 4 | (uint64_t)topk << 8 | (uint64_t)alignment << 32;
}

WEFTI_EP_FN uint64_t wefti_ep_rows_shape(wefti_ep_kind kind, unsigned dtype, unsigned flags, unsigned hidden)
{
    return (uint64_t)kind | (uint64_t)dtype << 4 | (uint64_t)flags << 8 | (uint64_t)hidden << 32;
}

/* One received token. The words after `token`: K int32 local experts (-1: not of this rank), K float weights. */
WEFTI_EP_FN size_t wefti_ep_record_bytes(size_t topk)
{
    return (1 + 2 * topk) * 4;
}

/* What sizes a group's memory. */
typedef struct wefti_ep_limits {
    size_t ranks;
    size_t experts;
    size_t local_experts_max;
    size_t received_max; /* M */
    size_t topk_max;
    size_t row_bytes_max;
} wefti_ep_limits;

/* Offsets from the start of a group's memory. */
typedef struct wefti_ep_layout {
    size_t epoch;
    size_t calls;
    size_t replies;
    size_t dones;
    size_t counts;
    size_t counts_pitch; /* bytes from source to source */
    size_t bases;
    size_t records;
    size_t rows;
    size_t words_bytes; /* what must be zero before first use: all before `counts` */
    size_t bytes;
} wefti_ep_layout;

WEFTI_EP_FN size_t wefti_ep_round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Take `bytes` at the next line. */
WEFTI_EP_FN size_t wefti_ep_take(size_t *end, size_t bytes)
{
    size_t at = *end;
    *end = at + wefti_ep_round_up(bytes, WEFTI_EP_LINE_BYTES);
    return at;
}

WEFTI_EP_FN wefti_ep_layout wefti_ep_layout_of(const wefti_ep_limits *limits)
{
    wefti_ep_layout layout;
    size_t end = 0;
    layout.epoch = wefti_ep_take(&end, sizeof(uint64_t));
    layout.calls = wefti_ep_take(&end, limits->ranks * sizeof(wefti_ep_call_line));
    layout.replies = wefti_ep_take(&end, limits->ranks * sizeof(wefti_ep_reply_line));
    layout.dones = wefti_ep_take(&end, limits->ranks * sizeof(uint64_t));
    layout.words_bytes = end;
    layout.counts_pitch = wefti_ep_round_up((1 + limits->local_experts_max) * sizeof(uint32_t), 16);
    layout.counts = wefti_ep_take(&end, limits->ranks * layout.counts_pitch);
    layout.bases = wefti_ep_take(&end, (limits->ranks + limits->experts) * sizeof(uint32_t));
    layout.records = wefti_ep_take(&end, limits->received_max * wefti_ep_record_bytes(limits->topk_max));
    layout.rows = wefti_ep_take(&end, limits->received_max * limits->row_bytes_max);
    layout.bytes = end;
    return layout;
}

WEFTI_EP_FN size_t wefti_ep_call_at(const wefti_ep_layout *layout, int source)
{
    return layout->calls + (size_t)source * sizeof(wefti_ep_call_line);
}

WEFTI_EP_FN size_t wefti_ep_reply_at(const wefti_ep_layout *layout, int owner)
{
    return layout->replies + (size_t)owner * sizeof(wefti_ep_reply_line);
}

WEFTI_EP_FN size_t wefti_ep_done_at(const wefti_ep_layout *layout, int source)
{
    return layout->dones + (size_t)source * sizeof(uint64_t);
}

WEFTI_EP_FN size_t wefti_ep_counts_at(const wefti_ep_layout *layout, int source)
{
    return layout->counts + (size_t)source * layout->counts_pitch;
}

#ifdef __cplusplus
}
#endif
#endif
