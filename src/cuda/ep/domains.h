/* cuda/ep/domains.h: groups of several domains: what lies where, and the arguments of their kernels. Host and kernels.
 *
 * Inside its domain a rank belongs to a group of that domain (the inner group), in which a forwarder has the tokens
 * that it forwards beside its own. So a dispatch is a crossing, in which each token's row goes once to each other
 * domain with one of its experts; an inner dispatch of what the forwarders have then; and the arranging of what was
 * received into the caller's layout. A combine is the sum of each received token's results, an inner combine, a
 * crossing back, and the sum over domains.
 *
 * A row crosses with what goes with it, its *tail*: where it comes from, and the choices. It keeps that in the inner
 * dispatch, to which all of it is one row.
 *
 * Rings are those of weft/protocol/ep_ring.h, in the host heaps; a line has several, its *channels*. Chunk j of a call
 * goes by channel j mod channels; how many there are follows from the rows, which the first says. The chunks of a
 * channel are counted through all calls: chunk i lies in slot i mod slots, its flag is i + 1 and the number of the
 * call, and a credit is how many have been taken, ever. So a sender needs to know nothing of the receiver's call: what
 * it sends early waits in the ring. What a call left there that failed is dropped by a later one. A kernel stores
 * chunks, flags and credits to host heaps of its own host; for those of others it fills chunks in pinned memory, and
 * posts what is to be moved (cuda/proxy/move.h) to the PE's proxy. */
#ifndef WEFTI_CUDA_EP_DOMAINS_H
#define WEFTI_CUDA_EP_DOMAINS_H

#include "cuda/ep/abi.h"
#include "cuda/ep/direct.h"
#include "cuda/ep/many.h"
#include "weft/protocol/ep_ring.h"

#define WEFTI_CUDA_EP_DOMAINS_TILE 32 /* (source, token) pairs whose rows a block places at once: a lane each */
#define WEFTI_CUDA_EP_DOMAINS_ENDS 64 /* of rings that a block serves */
#define WEFTI_CUDA_EP_DOMAINS_CHANNELS 16 /* of a line, at most */
#define WEFTI_CUDA_EP_DOMAINS_SLOTS 4 /* of each of several channels, at most */
#define WEFTI_CUDA_EP_DOMAINS_RING_BYTES ((wefti_u64)8 << 20) /* of all channels one way, unless one a line is more */
#define WEFTI_CUDA_EP_DOMAINS_CHUNK 16 /* bytes of a chunk before its rows */

/* One end of a line: who is at the other. */
typedef struct wefti_cuda_ep_domains_end {
    wefti_i32 pe;
    wefti_i32 rank;
    wefti_i32 domain; /* of that rank */
    wefti_u32 line; /* of this rank there */
    wefti_u32 is_mapped; /* kernels here load and store its host heap */
    wefti_u32 unused;
    wefti_i64 delta; /* from an address in this rank's to the same in that */
} wefti_cuda_ep_domains_end;

/* A chunk begins with this. */
typedef struct wefti_cuda_ep_domains_chunk {
    wefti_u32 call; /* what is called, equal on all ranks */
    wefti_i32 total; /* rows of the call by this line */
    wefti_u64 unused;
} wefti_cuda_ep_domains_chunk;

/* Offsets in a rank's block of host memory, D domains, at most `lines` sources that a rank forwards for, C channels. */
typedef struct wefti_cuda_ep_domains_rings {
    wefti_u64 flags[2]; /* outward [lines][C][slots], and back [D][C][slots]; written by senders */
    wefti_u64 credits[2]; /* [D][C], and [lines][C]; written by receivers */
    wefti_u64 cleared_bytes; /* must be zero before first use */
    wefti_u64 in[2]; /* chunks, as flags */
    wefti_u64 out[2]; /* where those for the proxy are filled: [D][C][slots], and [lines][C][slots] */
    wefti_u64 bytes;
} wefti_cuda_ep_domains_rings;

/* Channels of a line: as many as are wanted, as far as they have room. */
WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_domains_channels(const wefti_ep_ring_shape *shape, wefti_u64 wanted)
{
    const wefti_u64 slots = shape->slots < WEFTI_CUDA_EP_DOMAINS_SLOTS ? shape->slots : WEFTI_CUDA_EP_DOMAINS_SLOTS;
    const wefti_u64 room = WEFTI_CUDA_EP_DOMAINS_RING_BYTES / (shape->lines * slots * shape->chunk_bytes);
    const wefti_u64 most = room < WEFTI_CUDA_EP_DOMAINS_CHANNELS ? room : WEFTI_CUDA_EP_DOMAINS_CHANNELS;
    const wefti_u64 channels = wanted < most ? wanted : most;
    return channels < 1 ? 1 : (wefti_u32)channels;
}

WEFTI_CUDA_EP_FN wefti_cuda_ep_domains_rings wefti_cuda_ep_domains_rings_of(const wefti_ep_ring_shape *shape,
                                                                            wefti_u32 channels)
{
    wefti_cuda_ep_domains_rings at;
    const wefti_u64 ends = shape->lines * channels; /* lines: at least D */
    const wefti_u64 chunks = ends * shape->slots;
    wefti_u64 end = 0;
    for (int back = 0; back < 2; back++) {
        at.flags[back] = wefti_cuda_ep_take(&end, chunks * 8);
        at.credits[back] = wefti_cuda_ep_take(&end, ends * 8);
    }
    at.cleared_bytes = end;
    for (int back = 0; back < 2; back++) {
        at.in[back] = wefti_cuda_ep_take(&end, chunks * shape->chunk_bytes);
        at.out[back] = wefti_cuda_ep_take(&end, chunks * shape->chunk_bytes);
    }
    at.bytes = end;
    return at;
}

/* Scales of a fp8 row, behind it. */
WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_domains_scale_bytes(wefti_u64 words)
{
    return (words * 4 + 15) / 16 * 16;
}

/* What stands behind a row and its scales: the rank and number of the token, K ids of experts or -1, K weights. */
typedef struct wefti_cuda_ep_domains_tail {
    wefti_i32 source;
    wefti_i32 token;
} wefti_cuda_ep_domains_tail;

WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_domains_row_bytes(wefti_u64 row_bytes, int topk)
{
    return row_bytes + (sizeof(wefti_cuda_ep_domains_tail) + (wefti_u64)topk * 8 + 15) / 16 * 16;
}

/* Numbers of calls: how many ranks are masked, in the highest 8 bits, and a count of calls, which begins anew when a
 * rank is masked and wraps. So ranks that mask the same ranks agree on the next number, though the call that failed was
 * not the same one on all of them. */
#define WEFTI_CUDA_EP_DOMAINS_COUNT_BITS 24

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_domains_next_call(wefti_u32 call)
{
    const wefti_u32 count = (1u << WEFTI_CUDA_EP_DOMAINS_COUNT_BITS) - 1;
    return (call & ~count) | ((call + 1) & count);
}

/* Whether call `call` is before call `running`. */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_domains_is_before(wefti_u32 call, wefti_u32 running)
{
    const wefti_u32 masks = call >> WEFTI_CUDA_EP_DOMAINS_COUNT_BITS;
    const wefti_u32 masks_now = running >> WEFTI_CUDA_EP_DOMAINS_COUNT_BITS;
    return masks != masks_now ? masks < masks_now
                              : (wefti_i32)((call - running) << (32 - WEFTI_CUDA_EP_DOMAINS_COUNT_BITS)) < 0;
}

/* Of the running call, and through all. In device memory. */
typedef struct wefti_cuda_ep_domains_control {
    wefti_u32 failed; /* 0, or -status of the first failure: no call works any more */
    wefti_u32 missing[WEFTI_CUDA_EP_MANY_WORDS]; /* ranks waited for in vain, as bits */
    wefti_u32 masked[WEFTI_CUDA_EP_MANY_WORDS]; /* domains of which all ranks are masked, as bits; the host's */
    wefti_u32 masked_ranks[WEFTI_CUDA_EP_MANY_WORDS]; /* ranks that the group goes on without, likewise */
    /* From a mask or revival after a failed call on, until a direct dispatch is complete: how many other ranks of this
     * domain live, and of how many it has seen that they are in that dispatch; else 0. */
    wefti_u32 awaited;
    wefti_u32 here;
    wefti_u32 calls; /* the number of the running call, as below; equal on all ranks */
    /* Chunks of each channel, by domain, and back by line; and by line, and back by domain. */
    wefti_u32 sent[2][WEFTI_CUDA_EP_MANY_MAX * WEFTI_CUDA_EP_DOMAINS_CHANNELS];
    wefti_u32 taken[2][WEFTI_CUDA_EP_MANY_MAX * WEFTI_CUDA_EP_DOMAINS_CHANNELS];
} wefti_cuda_ep_domains_control;

typedef struct wefti_cuda_ep_domains_group {
    weft_dev dev;
    wefti_u64 memory; /* this rank's block of host memory */
    wefti_u64 heap; /* the host heap */
    wefti_cuda_ep_domains_rings at;
    wefti_i32 rank;
    wefti_i32 ranks;
    wefti_i32 domain; /* this rank's */
    wefti_i32 domains; /* D */
    wefti_i32 lines; /* sources that this rank forwards for */
    wefti_i32 tokens_max;
    wefti_i32 experts;
    wefti_i32 first_expert; /* this rank's, and how many it has */
    wefti_i32 local_experts;
    wefti_u32 channels; /* of a line */
    wefti_u32 slots; /* of a channel */
    wefti_u32 chunk_rows; /* a chunk has fewer only where all rows, or the bytes, are fewer */
    wefti_u64 chunk_bytes;
    const wefti_cuda_ep_domains_end *forwarders; /* [D] */
    const wefti_cuda_ep_domains_end *sources; /* [lines] */
    const wefti_i32 *domain_of; /* [E] of each expert */
    const wefti_i32 *rank_of; /* [E] */
    const wefti_i32 *inner_expert; /* [E] its number in the group of its domain */
    const wefti_i32 *domain_of_rank; /* [R] */
    const wefti_i32 *inner_rank; /* [R] its rank in the group of its domain */
    wefti_cuda_ep_domains_control *control;
    wefti_u64 *host_status; /* as of groups of many ranks */
    wefti_cuda_ep_control *inner_control; /* of the inner group */
    unsigned char *rows; /* what this rank sends in its domain: its own tokens' rows, then those it forwards; tails */
    unsigned char *received; /* the same of what comes */
    unsigned char *results; /* a row for each of these: the sum of its results */
    unsigned char *sums; /* for each of `rows`: the sum in this domain */
    unsigned char *domain_sums; /* [D][tokens_max]: those of other domains */
    wefti_u32 *row_of; /* [R][tokens_max]: 0, or where the token is in `received`, + 1 */
    wefti_u32 *tile_counts; /* [L or 1][tiles] */
    wefti_u64 *stats; /* what WEFT_EP_STATISTICS keeps (host/domains_statistics.c) */
    wefti_u64 *waits; /* [R] how long crossings of the running call have waited for rows, or NULL */
} wefti_cuda_ep_domains_group;

/* A route's tables: device addresses. */
typedef struct wefti_cuda_ep_domains_tables {
    wefti_cuda_ep_route_header *route_header;
    wefti_i32 *rows_of_expert; /* as wefti_cuda_ep_tables */
    wefti_i32 *rows_of_expert_source;
    wefti_i32 *rows_of_source;
    wefti_i32 *offset_of_expert;
    wefti_i32 *offset_of_source;
    wefti_i32 *before_source; /* [R] tokens received from the sources before */
    wefti_i32 *inner_tokens; /* [1] rows that this rank sends in its domain */
    wefti_i32 *sent_count; /* [D] tokens that cross to each domain */
    wefti_i32 *line_count; /* [lines] tokens that came; -1: not known yet */
    wefti_u64 *counted;
    wefti_u32 *are_odd; /* [1] whether the positions given are none */
    wefti_i32 *ids; /* [T][K] this rank's choices, or -1; where they are ranks the token's number there */
    float *weights; /* [T][K] */
    wefti_i32 *sent_token; /* [D][T] which they are, in any order */
    wefti_i32 *line_row; /* [lines][T] where they are in `rows` */
    wefti_i32
        *inner_ids; /* [T'][K] choices of what this rank sends in its domain; where they are ranks bytes, [T'][S] */
    wefti_i32 *row; /* [M][K] of each received token the row of each choice here, or -1; by source one for all */
    float *row_weight; /* [M][K] */
    unsigned char *here; /* [M][K] whether the choice is of this rank */
    wefti_i32 *own_ids; /* [T'][K] inner_ids of a combine's own choices, of plans whose order they change */
} wefti_cuda_ep_domains_tables;

/* A combine's own weights and choices go to owners as a row a token: K weights, then, as bits, which choices take part;
 * never more bytes than a tail has. */
WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_domains_own_bytes(int topk)
{
    return ((wefti_u64)topk * 4 + ((wefti_u64)topk + 31) / 32 * 4 + 15) / 16 * 16;
}

typedef struct wefti_cuda_ep_domains_own {
    wefti_u64 row_bytes; /* 0: the combine has none */
    const float *weights; /* [T][K] or NULL */
    const void *ids; /* [T][K] or NULL: all choices take part */
    wefti_i32 wide; /* ids are 64 bits */
} wefti_cuda_ep_domains_own;

typedef struct wefti_cuda_ep_domains_args {
    wefti_cuda_ep_domains_group group;
    wefti_cuda_ep_domains_tables tables;
    wefti_cuda_ep_choices choices; /* FRESH */
    wefti_i32 by_rank; /* choice k is rank k, one of the S of this domain or another's */
    wefti_i32 inner_ranks; /* S */
    const wefti_i32 *positions; /* FRESH: of such choices, or NULL */
    wefti_cuda_ep_told told; /* FRESH */
    wefti_cuda_ep_arrays arrays;
    const wefti_i32 *inner_rows; /* [1] how many have been received in the domain */
    wefti_u32 call; /* what is called: equal on all ranks */
    wefti_u32 flags; /* FRESH, MOVE, WEIGHTED */
    wefti_i32 is_kept; /* rows go to the places that those of the last dispatch had */
    wefti_i32 topk;
    wefti_i32 by_expert;
    wefti_u32 slots; /* of slot layouts: of each source, or of each expert */
    wefti_u32 alignment;
    wefti_u32 zeroes; /* padding is zeroed */
    wefti_i32 dtype; /* of a combine, or its backward; else 0 */
    wefti_i32 out_dtype; /* of a combine: what its sums are rounded to */
    wefti_u32 row_bytes;
    wefti_u64 data_bytes; /* of a row with its scales */
    wefti_u64 wide_bytes; /* of these and the tail */
    wefti_u32 scale_words; /* of a row; 0: rows have no scales */
    wefti_cuda_ep_scales in_scales; /* as they are given, unless rows become fp8 on their way */
    wefti_cuda_ep_scales out_scales;
    wefti_u64 scale_group_step; /* so many words more from the last row of an expert to the first of the next */
    wefti_cuda_ep_wide wide; /* row_bytes not 0: rows become fp8 */
    int scale_group; /* so many elements of such a row share a scale */
    const unsigned char *in;
    wefti_u64 in_pitch;
    unsigned char *out;
    wefti_u64 out_pitch;
    wefti_u64 capacity; /* rows of out */
    const unsigned char *bias[2]; /* of a combine: what is added behind the domains, or NULL */
    wefti_u64 bias_pitch[2];
    wefti_cuda_ep_domains_own own;
    /* Values that go back beside rows, a sum of rows of their own (domains/values.cuh): */
    wefti_u32 places; /* of such a row: K, to a multiple of 4 */
    wefti_i32 of_owners; /* by source: only those of choices of this rank */
    const float *values_in;
    float *values_out; /* [T][K] */
    const unsigned char *rows; /* of a backward of a combine: what that was given, for dot products */
    wefti_u64 rows_pitch;
    wefti_cuda_ep_direct direct; /* of a route whose calls go directly */
} wefti_cuda_ep_domains_args;

#endif
