/* protocol/ep_layout.h: the symmetric memory of an expert-parallel group on the host: what lies where, who writes it
 * and when. That of groups on GPUs is another one: src/cuda/ep/memory.h.
 *
 *   epoch    the last collective call of the group that this rank has ended; this rank's own word
 *   calls    [R] call headers: what source s calls, written by s at the start of each of its calls
 *   replies  [R] replies: the verdict of owner d on the counts, written by d once it has those of all sources (not
 *            where counts are direct); its answer again where rows are dropped; that it has worked on this rank's rows
 *   marks    [R] words: the epoch of the last call in which s is half-way: its counts are there again, or its rows
 *   dones    [R] words: the epoch of the last call in which s is done with this rank's memory; written by s
 *   counts   [R]: what s sends, written by s before its call header. Through the owners: its message to this rank.
 *            Direct: the rows that s can take, and its messages to all
 *   bases    [R + E]: the answers of all owners; d's is written by d before its reply
 *   recount  [1 + L] what the source at whose tokens this rank's limit falls sends instead; written by it before its
 *            mark
 *   records  [M] who is received: source token, K local experts, K weights; written by the sources before their done
 *            flag, at the bases they were given. In the backward calls: K gradients each, written by this rank
 *   choices  [M] K floats each: a combine's own weights, and new ones of a routing that is there, written by the
 *            sources before their call headers
 *   rows     [M] rows received for a caller whose buffer is not symmetric, and partial sums on their way back
 *   chunk_flags, ask_flags, credits, chunks, asks  rings for what crosses between domains: see ep_ring.h
 *   notices  [lines] what a source of another domain tells this whole domain by this rank, its forwarder: its call
 *            header, in whose `epoch` the number of words that follow is, and its counts for each rank of the domain in
 *            ascending order or, direct, its one message. The flags are notice_flags
 *   handed   [R] a notice as its forwarder has handed it on to this rank: the call header of source s, and its counts
 *            for this rank. The flags are handed_flags. What is handed on late does not touch what s writes to `calls`
 *            and `counts`
 *
 * A message to an owner is 1 + L words: the tokens that go there, then the rows of each of its experts; its answer is
 * the place of the source's first token there, then its first row of each of the experts. R ranks, E experts, L those
 * of an owner, M the most tokens a rank receives. Flags are 64-bit epochs, one more with each call, stored with release
 * after what they announce and compared for equality. Nothing is reset. */
#ifndef WEFTI_PROTOCOL_EP_LAYOUT_H
#define WEFTI_PROTOCOL_EP_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/protocol/ep_ring.h"
#include "weft/protocol/fp8.h"

#ifdef __CUDACC__
#define WEFTI_EP_FN static inline __host__ __device__
#else
#define WEFTI_EP_FN static inline
#endif

#define WEFTI_EP_CACHE_LINE_BYTES 64

#ifdef __cplusplus
extern "C" {
#endif

/* One source's current call: 64 bytes, so that sources do not share cache lines. */
typedef struct wefti_ep_call_header {
    uint64_t signature; /* wefti_ep_signature; equal on all ranks */
    uint64_t plan; /* wefti_ep_plan_word of a call that agrees on a routing, else 0; equal on all ranks */
    uint64_t route; /* on which routing the call is, and what holds this rank: see WEFTI_EP_ROUTE_BITS */
    uint64_t buffer; /* where rows lie on s: bytes from its group memory to its buffer, modulo 2^64 */
    uint64_t pitch; /* bytes from row to row there, and WEFTI_EP_BY_PLACE */
    uint64_t scales; /* where their scales lie, as `buffer`; not by place, where they follow each row */
    uint64_t scale_strides; /* in words: from row to row, and << 32 from word to word */
    uint64_t epoch; /* the flag */
} wefti_ep_call_header;

/* `route` has two parts. Its lower 60 bits are one of these:
 *   - of a call on a routing that is there the epoch of the call that agreed on it; equal on all ranks
 *   - of a call that agrees on a routing 0 or, in a group whose limits grow (weft_ep_config.bytes_max), T, of which the
 *     ranks take the largest
 *   - of a call of a group on GPUs, which is compared on the host before kernels run it (wefti_ep_meeting of
 *     src/ep/backend.h), WEFTI_EP_ROUTE_IN_KERNELS: the kernels compare the routing
 * The upper bits are not 0 in a group whose limits grow only: why this rank cannot have other memory now
 * (WEFTI_EP_HOLD_MASKED .. of src/ep/growth.h). They may differ from rank to rank, and the ranks take all of them. */
#define WEFTI_EP_ROUTE_BITS 60
#define WEFTI_EP_ROUTE_MASK ((UINT64_C(1) << WEFTI_EP_ROUTE_BITS) - 1)
#define WEFTI_EP_ROUTE_IN_KERNELS WEFTI_EP_ROUTE_MASK

/* In `pitch`, a multiple of 16: rows lie by place (the number of a received token in the order of source and token),
 * whatever the layout, their scales after them. */
#define WEFTI_EP_BY_PLACE 1u

typedef struct wefti_ep_reply {
    uint64_t status; /* a weft_status */
    uint64_t cut; /* 0, or 1 + the source at whose tokens the owner's limit falls: an answer follows under `final` */
    uint64_t limit; /* the rows that the owner takes, padding included */
    uint64_t
        kept; /* of this rank's tokens to the owner, the first so many are received; set before the answer's flag */
    uint64_t unused[2];
    uint64_t final; /* the flag of the answer of an owner whose `cut` is not 0 */
    uint64_t epoch; /* the flag */
} wefti_ep_reply;

/* What a call is. */
typedef enum wefti_ep_kind {
    WEFTI_EP_UPDATE = 1,
    WEFTI_EP_DISPATCH = 2,
    WEFTI_EP_COMBINE = 3,
    WEFTI_EP_DISPATCH_BWD = 4,
    WEFTI_EP_COMBINE_BWD = 5
} wefti_ep_kind;

/* Flags of a signature beside those of weft_ep.h. */
#define WEFTI_EP_NEW_WEIGHTS 0x08u /* a dispatch that brings new weights for the routing that there is */
#define WEFTI_EP_OWN_WEIGHTS 0x20u /* a combine with weights of its own */
#define WEFTI_EP_OWN_IDS 0x02u /* a combine with ids of its own */
#define WEFTI_EP_FORWARDED 0x10u /* rows cross between domains through forwarders */
#define WEFTI_EP_FRESH 0x40u /* a dispatch that agrees on a routing on its way */
#define WEFTI_EP_COUNTING 0x40u /* an update that makes no routing: ranks count what WEFT_EP_OVERFLOW_DROP_ROWS drops */
#define WEFTI_EP_VALUES 0x80u /* a backward with the gradients of weights; a combine with values */

/* All that must be equal of the rows of a call; 0 for what a call has not. */
typedef struct wefti_ep_signature_fields {
    unsigned kind;
    unsigned dtype;
    unsigned out_dtype;
    unsigned scale_type;
    unsigned flags;
    unsigned hidden; /* of a dispatch wefti_ep_width (src/ep/check.h) */
} wefti_ep_signature_fields;

WEFTI_EP_FN uint64_t wefti_ep_signature(const wefti_ep_signature_fields *fields)
{
    return (uint64_t)fields->kind | (uint64_t)fields->dtype << 4 | (uint64_t)fields->out_dtype << 8 |
           (uint64_t)fields->scale_type << 12 | (uint64_t)fields->flags << 16 | (uint64_t)fields->hidden << 32;
}

WEFTI_EP_FN wefti_ep_signature_fields wefti_ep_signature_split(uint64_t signature)
{
    wefti_ep_signature_fields fields;
    fields.kind = (unsigned)(signature & 15);
    fields.dtype = (unsigned)(signature >> 4 & 15);
    fields.out_dtype = (unsigned)(signature >> 8 & 15);
    fields.scale_type = (unsigned)(signature >> 12 & 15);
    fields.flags = (unsigned)(signature >> 16 & 255);
    fields.hidden = (unsigned)(signature >> 32);
    return fields;
}

/* `layout`: in its lowest two bits, above them the order of addition, then whether choices are ranks. `extent`: the
 * alignment, or in slot layouts Tmax. */
WEFTI_EP_FN uint64_t wefti_ep_plan_word(unsigned layout, unsigned topk, unsigned extent)
{
    return (uint64_t)layout | (uint64_t)topk << 8 | (uint64_t)extent << 32;
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
    size_t scale_bytes_max; /* of opaque rows */
    int direct; /* counts go to all ranks directly */
    int unstaged; /* no memory for rows that have no place of their own */
    wefti_ep_ring_shape ring;
    size_t notice_words; /* the most that follow the header of a notice */
} wefti_ep_limits;

/* The words that a source writes to a rank before its call header. */
WEFTI_EP_FN size_t wefti_ep_counts_words(const wefti_ep_limits *limits)
{
    return limits->direct ? 1 + limits->ranks + limits->experts : 1 + limits->local_experts_max;
}

/* A row by place, of this many bytes and scale words. */
WEFTI_EP_FN size_t wefti_ep_place_pitch(size_t row_bytes, size_t scale_words)
{
    return (row_bytes + 4 * scale_words + 15) / 16 * 16;
}

/* The most of them: fp8 rows have an element a byte; and opaque rows scales of up to so many bytes. */
WEFTI_EP_FN size_t wefti_ep_row_pitch_max(size_t row_bytes_max, size_t scale_bytes_max)
{
    size_t words = wefti_fp8_groups(row_bytes_max);
    return wefti_ep_place_pitch(row_bytes_max, words > scale_bytes_max / 4 ? words : scale_bytes_max / 4);
}

/* Offsets from the start of a group's memory. */
typedef struct wefti_ep_layout {
    size_t epoch;
    size_t calls;
    size_t replies;
    size_t marks;
    size_t dones;
    size_t counts;
    size_t counts_pitch; /* bytes from source to source */
    size_t bases;
    size_t recount;
    size_t records;
    size_t choices;
    size_t rows;
    size_t chunk_flags; /* [lines][slots] */
    size_t ask_flags; /* the same */
    size_t credits; /* [domains] */
    size_t notice_flags; /* [lines] */
    size_t handed_flags; /* [R], without rings none */
    size_t notices;
    size_t notice_pitch;
    size_t handed;
    size_t handed_pitch;
    size_t chunks; /* [lines][slots] */
    size_t asks; /* the same */
    size_t words_bytes; /* what must be zero before first use: all before `counts` */
    size_t bytes;
} wefti_ep_layout;

WEFTI_EP_FN size_t wefti_ep_round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Take `bytes` at the next cache line. */
WEFTI_EP_FN size_t wefti_ep_take(size_t *end, size_t bytes)
{
    size_t at = *end;
    *end = at + wefti_ep_round_up(bytes, WEFTI_EP_CACHE_LINE_BYTES);
    return at;
}

WEFTI_EP_FN wefti_ep_layout wefti_ep_layout_of(const wefti_ep_limits *limits)
{
    wefti_ep_layout layout;
    size_t end = 0;
    layout.epoch = wefti_ep_take(&end, sizeof(uint64_t));
    layout.calls = wefti_ep_take(&end, limits->ranks * sizeof(wefti_ep_call_header));
    layout.replies = wefti_ep_take(&end, limits->ranks * sizeof(wefti_ep_reply));
    layout.marks = wefti_ep_take(&end, limits->ranks * sizeof(uint64_t));
    layout.dones = wefti_ep_take(&end, limits->ranks * sizeof(uint64_t));
    size_t slots = limits->ring.lines * limits->ring.slots;
    layout.chunk_flags = wefti_ep_take(&end, slots * sizeof(uint64_t));
    layout.ask_flags = wefti_ep_take(&end, slots * sizeof(uint64_t));
    layout.credits = wefti_ep_take(&end, limits->ring.domains * sizeof(uint64_t));
    size_t handed = limits->ring.domains > 0 ? limits->ranks : 0;
    layout.notice_flags = wefti_ep_take(&end, limits->ring.lines * sizeof(uint64_t));
    layout.handed_flags = wefti_ep_take(&end, handed * sizeof(uint64_t));
    layout.words_bytes = end;
    layout.counts_pitch = wefti_ep_round_up(wefti_ep_counts_words(limits) * sizeof(uint32_t), 16);
    layout.counts = wefti_ep_take(&end, limits->ranks * layout.counts_pitch);
    layout.notice_pitch = wefti_ep_round_up(sizeof(wefti_ep_call_header) + limits->notice_words * sizeof(uint32_t),
                                            WEFTI_EP_CACHE_LINE_BYTES);
    layout.notices = wefti_ep_take(&end, limits->ring.lines * layout.notice_pitch);
    layout.handed_pitch =
        wefti_ep_round_up(sizeof(wefti_ep_call_header) + layout.counts_pitch, WEFTI_EP_CACHE_LINE_BYTES);
    layout.handed = wefti_ep_take(&end, handed * layout.handed_pitch);
    layout.bases = wefti_ep_take(&end, (limits->ranks + limits->experts) * sizeof(uint32_t));
    layout.recount = wefti_ep_take(&end, (1 + limits->local_experts_max) * sizeof(uint32_t));
    layout.records = wefti_ep_take(&end, limits->received_max * wefti_ep_record_bytes(limits->topk_max));
    layout.choices = wefti_ep_take(&end, limits->received_max * limits->topk_max * sizeof(float));
    layout.rows = wefti_ep_take(&end, limits->unstaged
                                          ? 0
                                          : limits->received_max *
                                                wefti_ep_row_pitch_max(limits->row_bytes_max, limits->scale_bytes_max));
    layout.chunks = wefti_ep_take(&end, slots * limits->ring.chunk_bytes);
    layout.asks = wefti_ep_take(&end, slots * limits->ring.ask_bytes);
    layout.bytes = end;
    return layout;
}

WEFTI_EP_FN size_t wefti_ep_call_at(const wefti_ep_layout *layout, int source)
{
    return layout->calls + (size_t)source * sizeof(wefti_ep_call_header);
}

WEFTI_EP_FN size_t wefti_ep_reply_at(const wefti_ep_layout *layout, int owner)
{
    return layout->replies + (size_t)owner * sizeof(wefti_ep_reply);
}

WEFTI_EP_FN size_t wefti_ep_mark_at(const wefti_ep_layout *layout, int source)
{
    return layout->marks + (size_t)source * sizeof(uint64_t);
}

WEFTI_EP_FN size_t wefti_ep_done_at(const wefti_ep_layout *layout, int source)
{
    return layout->dones + (size_t)source * sizeof(uint64_t);
}

WEFTI_EP_FN size_t wefti_ep_counts_at(const wefti_ep_layout *layout, int source)
{
    return layout->counts + (size_t)source * layout->counts_pitch;
}

WEFTI_EP_FN size_t wefti_ep_handed_at(const wefti_ep_layout *layout, int source)
{
    return layout->handed + (size_t)source * layout->handed_pitch;
}

WEFTI_EP_FN size_t wefti_ep_handed_flag_at(const wefti_ep_layout *layout, int source)
{
    return layout->handed_flags + (size_t)source * sizeof(uint64_t);
}

#ifdef __cplusplus
}
#endif
#endif
