/* protocol/ep_ring.h: how rows cross between the domains of an expert-parallel group: once to each domain, through a
 * ring of chunks. On GPUs, too, where the last paragraph says what differs.
 *
 *   forwarder   the rank of a domain to which a rank of another domain sends: the one in the sender's slot, its place
 *               in its own domain, counted around when the domain has fewer ranks
 *   line        one of the sources whose rows a forwarder takes, in ascending order; for what comes back, one of the
 *               domains
 *   ring        a line's memory: some slots, of a chunk each, at the receiver; chunk i of a call lies in slot
 *               i mod slots
 *   flag        of a slot: the call's epoch and the number of the chunk, written by the sender after the chunk
 *   credit      of a domain, at the sender: the epoch and how many of its chunks the forwarder there has taken. A
 *               sender has as many chunks outstanding as there are slots
 *
 * Outward (dispatch, the backward of combine) a chunk holds a few tokens: where each one's row goes in the domain, and
 * the row. The forwarder brings them to their places and tells each rank, by the source's own flag, when the last one
 * has; it gives credits for several chunks at a time. Back (combine, the backward of dispatch) the source asks: an ask
 * is a chunk of a few tokens, with the rows that each one has in the domain; the forwarder adds them up and answers
 * with a chunk of the sums, in the order asked. An ask has the number of its answer and is sent when the slot of that
 * is free, so it is the credit, too. Either way a forwarder waits for nothing but chunks: what it hands on is in its
 * own domain where everyone has called, or goes to a slot that is free.
 *
 * Numbers count from 0 in each call. A sender begins when the call header of the forwarder is there, which has taken
 * all of the last call's chunks by then.
 *
 * Groups on GPUs (src/cuda/ep/domains.h) have the shape, the slots and the credits of this, but numbers of 32 bits that
 * count through all calls, alone in flags and credits, and no asks: what comes back is sent as what goes out. */
#ifndef WEFTI_PROTOCOL_EP_RING_H
#define WEFTI_PROTOCOL_EP_RING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEFTI_EP_RING_FN static inline __host__ __device__
#else
#define WEFTI_EP_RING_FN static inline
#endif

#define WEFTI_EP_RING_SLOTS_LEAST 2
#define WEFTI_EP_RING_SLOTS_MAX 8
#define WEFTI_EP_RING_TOKENS_MAX 4 /* of a chunk */
#define WEFTI_EP_RING_BYTES ((size_t)512 << 10) /* of the lines from a domain together, unless the least are more */

#ifdef __cplusplus
extern "C" {
#endif

/* What sizes the rings of a group; all zero in a group of one domain. */
typedef struct wefti_ep_ring_shape {
    size_t domains;
    size_t lines; /* the most of a rank: sources that it forwards for, or domains */
    size_t slots; /* of each line */
    size_t tokens; /* of a chunk */
    size_t chunk_bytes; /* multiples of 64 */
    size_t ask_bytes;
} wefti_ep_ring_shape;

/* A chunk begins with this. */
typedef struct wefti_ep_chunk_header {
    uint32_t tokens;
    uint32_t is_last;
    uint32_t bytes; /* of the chunk, with this header */
    uint32_t call; /* on GPUs: what is called, equal on all ranks; else 0 */
} wefti_ep_chunk_header;

/* One rank to which a token's row goes: 12 bytes, after the token's number and how many of them there are. `row`:
 * there, or the place where rows lie by place. */
typedef struct wefti_ep_chunk_target {
    uint32_t rank;
    uint32_t row;
    uint32_t place;
} wefti_ep_chunk_target;

/* One row of a token that is asked for: 12 bytes, after how many of them there are. */
typedef struct wefti_ep_ask_row {
    uint32_t rank;
    uint32_t row;
    float weight;
} wefti_ep_ask_row;

/* The slot in its domain, of `size` ranks, of the forwarder for a source in slot `slot` of its own. */
WEFTI_EP_RING_FN int wefti_ep_forwarder_slot(int slot, int size)
{
    return slot % size;
}

/* The flag of chunk `number`; with the count of chunks in its place a credit. */
WEFTI_EP_RING_FN uint64_t wefti_ep_ring_word(uint64_t epoch, uint32_t number)
{
    return epoch << 32 | (uint32_t)(number + 1);
}

/* The chunks that a credit word tells of. */
WEFTI_EP_RING_FN uint32_t wefti_ep_ring_credit(uint64_t word, uint64_t epoch)
{
    return (uint32_t)(word >> 32) == (uint32_t)epoch && (uint32_t)word != 0 ? (uint32_t)word - 1 : 0;
}

/* Whether chunk `number` may be sent when `taken` have been taken. */
WEFTI_EP_RING_FN int wefti_ep_ring_has_room(const wefti_ep_ring_shape *shape, uint32_t number, uint32_t taken)
{
    return number - taken < shape->slots;
}

/* Whether who has taken `taken` chunks gives a credit now: when half of the slots are free again. */
WEFTI_EP_RING_FN int wefti_ep_ring_gives_credit(const wefti_ep_ring_shape *shape, uint32_t taken)
{
    return taken % (uint32_t)(shape->slots / 2) == 0;
}

WEFTI_EP_RING_FN size_t wefti_ep_ring_round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* What stands before a token's row in a chunk, K the choices that go with it, 0 on a known routing. */
WEFTI_EP_RING_FN size_t wefti_ep_chunk_entry_bytes(size_t targets, size_t topk)
{
    return wefti_ep_ring_round_up(2 * sizeof(uint32_t) + targets * sizeof(wefti_ep_chunk_target) + topk * 8, 16);
}

/* What is asked of a token. */
WEFTI_EP_RING_FN size_t wefti_ep_ask_entry_bytes(size_t rows)
{
    return sizeof(uint32_t) + rows * sizeof(wefti_ep_ask_row);
}

/* The shape for so many domains and lines, of which `sources` at most come from one domain; `pitch_max` is the widest
 * row with its scales, topk_max the most choices of a token, tokens_max the tokens of a call. A ring holds no more than
 * about half of the tokens of a call, since more has no use. */
WEFTI_EP_RING_FN wefti_ep_ring_shape wefti_ep_ring_shape_of(size_t domains, size_t lines, size_t sources,
                                                            size_t pitch_max, size_t topk_max, size_t tokens_max)
{
    wefti_ep_ring_shape shape = {0, 0, 0, 0, 0, 0};
    size_t token_bytes = wefti_ep_chunk_entry_bytes(topk_max, topk_max) + wefti_ep_ring_round_up(pitch_max, 16);
    size_t share = WEFTI_EP_RING_BYTES / (sources > 0 ? sources : 1);
    size_t tokens = share / token_bytes / WEFTI_EP_RING_SLOTS_MAX;
    shape.domains = domains;
    shape.lines = lines > domains ? lines : domains;
    shape.tokens = tokens < 1 ? 1 : tokens > WEFTI_EP_RING_TOKENS_MAX ? WEFTI_EP_RING_TOKENS_MAX : tokens;
    shape.chunk_bytes = wefti_ep_ring_round_up(sizeof(wefti_ep_chunk_header) + shape.tokens * token_bytes, 64);
    shape.ask_bytes =
        wefti_ep_ring_round_up(sizeof(wefti_ep_chunk_header) + shape.tokens * wefti_ep_ask_entry_bytes(topk_max), 64);
    size_t slots = share / shape.chunk_bytes;
    size_t half = tokens_max / shape.tokens / 2;
    slots = slots > half ? half : slots;
    slots = slots > WEFTI_EP_RING_SLOTS_MAX ? WEFTI_EP_RING_SLOTS_MAX : slots;
    shape.slots = slots < WEFTI_EP_RING_SLOTS_LEAST ? WEFTI_EP_RING_SLOTS_LEAST : slots;
    return shape;
}

/* Where slot `number mod slots` of a line is among all. */
WEFTI_EP_RING_FN size_t wefti_ep_ring_slot(const wefti_ep_ring_shape *shape, size_t line, uint32_t number)
{
    return line * shape->slots + number % shape->slots;
}

#ifdef __cplusplus
}
#endif
#endif
