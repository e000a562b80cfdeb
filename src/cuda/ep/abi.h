/* cuda/ep/abi.h: what the host tells the kernels of expert parallelism, and what lies where in device memory.
 *
 * An area is a rank's symmetric memory of a group, in the device heap:
 *
 *   control     this rank's words: the epoch, the ranks alive, what went wrong
 *   headers     [2][R][WORDS + R] packed words: call header of source s: what it calls; by the parity of the epoch,
 *               because a rank that has ended a call may begin the next while a block here has not yet read its call
 *               header
 *   meta_ready  [R][U] packed words: unit u of source s has its records and given scales here; the value says which
 *               tokens they are: wefti_cuda_ep_unit_value. Where there are neither, nobody looks at it
 *   rows_ready  [R][P] packed words: unit u of rank s has its rows here; the value likewise, and of a dispatch by
 *               expert of grain u. Of a combine the number of its rows, and by expert of part u % parts of unit u /
 *               parts
 *   choices     [R][L] packed words: how many choices of local expert l source s has
 *   counts      [4][R][E] packed words, by the parity of the epoch and the round: by expert: how many rows of expert e
 *               source s has
 *   accepted    [R] packed words: by expert: how many tokens of source s are accepted here where some are dropped
 *   returned    [R][U] packed words: rank r has returned the values of this rank's unit u
 *   values      [T][K] floats: gradients of weights, or values, that come back; by source values of rank r from
 *               [r * tokens_max][K] on, if it is a combine's
 *   own_choices [2][M][K] words by the parity of the epoch: a combine's own weights of who was received, written as
 *               low_latency is, before the call header
 *   records     [M] who is received: source token, K local experts, K weights; by expert also K rows
 *   scales      [M] the scales of fp8 rows, W words each, made whole, written with the unit's records, or where those
 *               would be
 *   rows        rows that are received for a buffer that is not symmetric, or that come back to be added up
 *
 *   low_latency [2] by the parity of the epoch: words, records, scales and rows of slot layouts
 *               (low_latency/low_latency.cuh), and rows that return to few tokens as LL packets (device/packet.cuh).
 *               R * Tmax rows, those of source (or owner) s from row s * Tmax on, so that a sender knows the place of
 *               what it puts. It writes there without waiting for this rank's call header: it has had that of the call
 *               before, which this rank posted after it had done with the last call of that parity
 *
 * R ranks, U units, M the most tokens a rank receives. A packed word is {tag, 32 bits}, the tag twice the epoch, or one
 * more in a second round: it carries its own flag, and is compared for equality. Nothing is reset. A rank writes to
 * another only after that one's call header of the same call, except for the header itself, and for low-latency memory.
 *
 * A unit is what one warp moves at a time: in a dispatch U units of the source's tokens, in a combine at most P of the
 * rows that came from a source. Its size depends on their number only. Those of a combine are smaller, because a token
 * can be added up when all its units are there, and the warps' units are under way at the same time. For the same
 * reason a unit of a dispatch by expert comes in grains, of fewer tokens each: rows are copied where they arrive.
 *
 * "By source" are the layouts in which a row stands for all of its token's choices here, "by expert" those where it
 * stands for one.
 *
 * The route tables are a route's device memory, private to the rank. They hold the routing by unit: for unit u and rank
 * r the tokens of it that go there, as bits, and how many went there before: the place of every token in a few bits. */
#ifndef WEFTI_CUDA_EP_ABI_H
#define WEFTI_CUDA_EP_ABI_H

#include "weft/device/dev.h"

#ifdef __CUDACC__
#define WEFTI_CUDA_EP_FN static inline __host__ __device__
#else
#define WEFTI_CUDA_EP_FN static inline
#endif

#define WEFTI_CUDA_EP_RANKS_MAX 32
#define WEFTI_CUDA_EP_UNIT_MAX (1 << WEFTI_CUDA_EP_UNIT_SHIFT_MAX) /* tokens */
#define WEFTI_CUDA_EP_EXPERTS_MAX 16384
#define WEFTI_CUDA_EP_UNITS_MAX 512 /* of at most 16384 tokens */
#define WEFTI_CUDA_EP_PUSHES_MAX 2048 /* of at most 65536 rows */

/* The words of a call header before its counts. */
enum {
    WEFTI_CUDA_EP_SIGNATURE_LOW, /* what is called: equal on all ranks */
    WEFTI_CUDA_EP_SIGNATURE_HIGH,
    WEFTI_CUDA_EP_ROUTE, /* tag of the route's last update; in a call that updates it the alignment, or Tmax */
    WEFTI_CUDA_EP_BUFFER_LOW, /* where rows go: wefti_cuda_ep_place */
    WEFTI_CUDA_EP_BUFFER_HIGH,
    WEFTI_CUDA_EP_PITCH, /* from row to row there, in 16 bytes */
    WEFTI_CUDA_EP_CAPACITY, /* rows it holds */
    WEFTI_CUDA_EP_TOKENS, /* T */
    WEFTI_CUDA_EP_HEADER_WORDS
};

/* Where a buffer lies, the same on all ranks: the number of the registered region that has it, 0 for the heap, above an
 * offset of 46 bits. */
#define WEFTI_CUDA_EP_OFFSET_BITS 46
#define WEFTI_CUDA_EP_STAGED ((wefti_u64)1 << 63) /* by expert: rows are wanted there by their places, not by expert */
WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_place(unsigned region, wefti_u64 offset)
{
    return (wefti_u64)region << WEFTI_CUDA_EP_OFFSET_BITS | offset;
}

/* This rank's words. */
typedef struct wefti_cuda_ep_control {
    wefti_u64 epoch; /* of the last call */
    wefti_u64 half_epoch; /* of the last send: its recv goes on with it */
    wefti_u32 begun; /* blocks of this call that have read the epoch; wraps by itself */
    wefti_u32 masked; /* ranks that take no part, as bits; written by the host */
    wefti_u32 failed; /* 0, or -status of the first failure: no call works any more */
    wefti_u32 missing; /* the ranks it waited for in vain, as bits */
} wefti_cuda_ep_control;

/* Offsets of what there is twice. */
typedef struct wefti_cuda_ep_low_latency {
    wefti_u64 words; /* [R][low_latency_words] packed: a slice of a row, or a record, of source or owner s is here */
    wefti_u64 records;
    wefti_u64 scales;
    wefti_u64 rows;
    wefti_u64 ll_packets; /* [R][ll_packet_rows][ll_packets_each] of 16 bytes: what returns to few tokens */
} wefti_cuda_ep_low_latency;

/* Offsets in an area. */
typedef struct wefti_cuda_ep_layout {
    wefti_u64 control;
    wefti_u64 headers;
    wefti_u64 meta_ready;
    wefti_u64 rows_ready;
    wefti_u64 choices;
    wefti_u64 counts;
    wefti_u64 returned;
    wefti_u64 accepted;
    wefti_u64 cleared_bytes; /* must be zero before first use: all before `records` */
    wefti_u64 values;
    wefti_u64 own_choices[2];
    wefti_u64 records;
    wefti_u64 scales;
    wefti_u64 rows;
    wefti_cuda_ep_low_latency low_latency[2];
    wefti_u32 low_latency_words; /* of each source or owner; 0: there is no low-latency memory */
    wefti_u32 ll_packet_rows; /* of each owner, */
    wefti_u32 ll_packets_each; /* and of a row, at most */
    wefti_u64 bytes;
    wefti_u32 units; /* U, at most */
    wefti_u32 pushes; /* P, at least U, and at least as many as there are parts of few sums */
    wefti_u32 local_max; /* L of the rank with the most experts */
    wefti_u32 tokens_max; /* T of the rank with the most tokens, at most */
} wefti_cuda_ep_layout;

/* Tokens or rows a unit, as the power of two: 0 .. 5. Without divisions, because kernels ask often. */
#define WEFTI_CUDA_EP_UNIT_SHIFT_MAX 5
WEFTI_CUDA_EP_FN int wefti_cuda_ep_unit_shift_of(int count, int units_max)
{
    int shift = 0;
    while (shift < WEFTI_CUDA_EP_UNIT_SHIFT_MAX && (count + (1 << shift) - 1) >> shift > units_max) {
        shift++;
    }
    return shift;
}

WEFTI_CUDA_EP_FN int wefti_cuda_ep_unit_of(int count, int units_max)
{
    return 1 << wefti_cuda_ep_unit_shift_of(count, units_max);
}

WEFTI_CUDA_EP_FN int wefti_cuda_ep_unit(int tokens)
{
    return wefti_cuda_ep_unit_of(tokens, WEFTI_CUDA_EP_UNITS_MAX);
}

WEFTI_CUDA_EP_FN int wefti_cuda_ep_units(int tokens)
{
    const int shift = wefti_cuda_ep_unit_shift_of(tokens, WEFTI_CUDA_EP_UNITS_MAX);
    return (tokens + (1 << shift) - 1) >> shift;
}

WEFTI_CUDA_EP_FN int wefti_cuda_ep_push_unit(int rows)
{
    return wefti_cuda_ep_unit_of(rows, WEFTI_CUDA_EP_PUSHES_MAX);
}

/* Tokens of a grain: no more than a unit has. */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_grain(int tokens)
{
    return wefti_cuda_ep_push_unit(tokens);
}

/* By expert: into how many parts a combine cuts each of the `rows` sums that one of `ranks` sources gets, for as many
 * warps: few sums have several. By the shape only, because both sides count with it. */
#define WEFTI_CUDA_EP_PUSH_PART_BYTES 1536 /* at least: what a warp looks at at once */
#define WEFTI_CUDA_EP_PUSH_PARTS_MAX 1024 /* of all sums of a rank */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_push_parts(int rows, int ranks, wefti_u32 row_bytes)
{
    const int most = (int)((row_bytes + WEFTI_CUDA_EP_PUSH_PART_BYTES - 1) / WEFTI_CUDA_EP_PUSH_PART_BYTES);
    const int parts = rows > 0 ? WEFTI_CUDA_EP_PUSH_PARTS_MAX / ranks / rows : 1;
    return parts > most ? most : parts > 1 ? parts : 1;
}

/* The most units that up to `count` tokens or rows have. */
WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_units_bound(int count, int units_max)
{
    int most = (count + WEFTI_CUDA_EP_UNIT_MAX - 1) / WEFTI_CUDA_EP_UNIT_MAX;
    most = most > units_max ? most : units_max;
    return (wefti_u32)(most < count ? most : count);
}

/* A unit at its receiver: the place of its first token, and how many it has. */
#define WEFTI_CUDA_EP_COUNT_BITS 6
#define WEFTI_CUDA_EP_PLACES_MAX (UINT32_C(1) << (32 - WEFTI_CUDA_EP_COUNT_BITS))
WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_unit_value(wefti_u32 place, wefti_u32 count)
{
    return place << WEFTI_CUDA_EP_COUNT_BITS | count;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_place_of(wefti_u32 value)
{
    return value >> WEFTI_CUDA_EP_COUNT_BITS;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_count_of(wefti_u32 value)
{
    return value & ((1u << WEFTI_CUDA_EP_COUNT_BITS) - 1);
}

/* Words that bulk copies store, in vectors of four. */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_whole(int words)
{
    return (words + 3) / 4 * 4;
}

/* Words of a record. */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_record_words(int topk, int by_expert)
{
    return 1 + (by_expert ? 3 : 2) * topk;
}

WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_take(wefti_u64 *end, wefti_u64 bytes)
{
    wefti_u64 at = *end;
    *end = at + (bytes + 255) / 256 * 256;
    return at;
}

/* ---- low latency ---- */

/* Words of a source: a row has one for its record and one for each of its slices, which are many where rows are few. */
#define WEFTI_CUDA_EP_LOW_LATENCY_WORDS 384
WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_low_latency_words(int slot_tokens)
{
    wefti_u32 least = 2 * (wefti_u32)slot_tokens;
    return least > WEFTI_CUDA_EP_LOW_LATENCY_WORDS ? least : WEFTI_CUDA_EP_LOW_LATENCY_WORDS;
}

/* How rows are cut into slices, each a warp's, when there are `rows` of them and `words` words. By the shape only,
 * because both sides count with it. In vectors of 16 bytes; whole groups of fp8 in any type. */
#define WEFTI_CUDA_EP_SLICE_GRAIN 32
typedef struct wefti_cuda_ep_slices {
    wefti_i32 count; /* of a row */
    wefti_i32 each; /* vectors; of the last what is left */
} wefti_cuda_ep_slices;
WEFTI_CUDA_EP_FN wefti_cuda_ep_slices wefti_cuda_ep_slices_of(int rows, wefti_u32 row_bytes, wefti_u32 words)
{
    const int grains = ((int)(row_bytes / 16) + WEFTI_CUDA_EP_SLICE_GRAIN - 1) / WEFTI_CUDA_EP_SLICE_GRAIN;
    int count = (int)words / (rows > 0 ? rows : 1) - 1;
    count = count < 1 ? 1 : count > grains ? grains : count;
    const int each = (grains + count - 1) / count;
    wefti_cuda_ep_slices slices = {(grains + each - 1) / each, each * WEFTI_CUDA_EP_SLICE_GRAIN};
    return slices;
}

/* What a combine returns to a rank of few tokens travels as LL packets (as in NCCL's protocol LL): three words and the
 * tag of the call, stored and read as one, which need neither a word nor a release. They are a third more bytes and
 * many more slices, which few rows do not mind. By T of that rank only, because both sides go by it. */
#define WEFTI_CUDA_EP_LL_PACKET_TOKENS 16
WEFTI_CUDA_EP_FN int wefti_cuda_ep_uses_ll_packets(int tokens)
{
    return tokens <= WEFTI_CUDA_EP_LL_PACKET_TOKENS;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_ll_packets(wefti_u32 row_bytes)
{
    return (row_bytes / 4 + 2) / 3;
}

/* Their slices, of which no word is sent. */
WEFTI_CUDA_EP_FN wefti_cuda_ep_slices wefti_cuda_ep_slices_of_ll_packets(wefti_u32 row_bytes)
{
    wefti_cuda_ep_slices slices = {((int)wefti_cuda_ep_ll_packets(row_bytes) + 31) / 32, 32};
    return slices;
}

/* What a block of a fresh dispatch knows of all choices, in words of shared memory: by rank, and by expert where rows
 * are, which tokens; how many tokens were before; choices of each expert. */
typedef struct wefti_cuda_ep_shared_table {
    wefti_u32 words; /* of 32 tokens */
    wefti_u32 ranks_at; /* [R][words] */
    wefti_u32 before_at; /* [R][words] */
    wefti_u32 choices_at; /* [E + 1]: at last, those out of range */
    wefti_u32 experts_at; /* [E][words] */
    wefti_u32 end;
} wefti_cuda_ep_shared_table;
WEFTI_CUDA_EP_FN wefti_cuda_ep_shared_table wefti_cuda_ep_shared_table_of(int slot_tokens, int ranks, int experts,
                                                                          int by_expert)
{
    wefti_cuda_ep_shared_table table;
    table.words = ((wefti_u32)slot_tokens + 31) / 32;
    table.ranks_at = 0;
    table.before_at = table.ranks_at + (wefti_u32)ranks * table.words;
    table.choices_at = table.before_at + (wefti_u32)ranks * table.words;
    table.experts_at = table.choices_at + (wefti_u32)experts + 1;
    table.end = table.experts_at + (by_expert ? (wefti_u32)experts * table.words : 0);
    return table;
}

/* The most shared memory of a shared routing table, and the most memory of a rank for low-latency rows. LL packets take
 * at most four thirds of that again. */
#define WEFTI_CUDA_EP_SHARED_TABLE_BYTES_MAX (128 << 10)
#define WEFTI_CUDA_EP_LOW_LATENCY_BYTES_MAX ((wefti_u64)256 << 20)

/* `received`: M; `staged_bytes`: of `rows`; `low_latency_tokens`: Tmax of low-latency memory, or 0. */
WEFTI_CUDA_EP_FN wefti_cuda_ep_layout wefti_cuda_ep_layout_of(int ranks, int experts, int local_max, int tokens_max,
                                                              int topk_max, wefti_u64 received, wefti_u64 row_bytes_max,
                                                              wefti_u64 staged_bytes, int low_latency_tokens)
{
    wefti_cuda_ep_layout at;
    const wefti_u64 record_bytes = (wefti_u64)wefti_cuda_ep_record_words(topk_max, 1) * 4;
    const wefti_u64 scale_bytes = (row_bytes_max + 511) / 512 * 16; /* of fp8 rows */
    const wefti_u64 low_latency_rows = (wefti_u64)ranks * (wefti_u64)low_latency_tokens;
    wefti_u64 end = 0;
    at.units = wefti_cuda_ep_units_bound(tokens_max, WEFTI_CUDA_EP_UNITS_MAX);
    at.pushes = wefti_cuda_ep_units_bound(tokens_max, WEFTI_CUDA_EP_PUSHES_MAX);
    at.pushes = at.pushes > WEFTI_CUDA_EP_PUSH_PARTS_MAX ? at.pushes : WEFTI_CUDA_EP_PUSH_PARTS_MAX;
    at.control = wefti_cuda_ep_take(&end, sizeof(wefti_cuda_ep_control));
    at.headers = wefti_cuda_ep_take(&end, (wefti_u64)(2 * ranks * (WEFTI_CUDA_EP_HEADER_WORDS + ranks)) * 8);
    at.meta_ready = wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.units * 8);
    at.rows_ready = wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.pushes * 8);
    at.local_max = (wefti_u32)local_max;
    at.choices = wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.local_max * 8);
    at.counts = wefti_cuda_ep_take(&end, 4 * (wefti_u64)ranks * (wefti_u64)experts * 8);
    at.returned = wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.units * 8);
    at.accepted = wefti_cuda_ep_take(&end, (wefti_u64)ranks * 8);
    at.ll_packet_rows =
        (wefti_u32)(low_latency_tokens < WEFTI_CUDA_EP_LL_PACKET_TOKENS ? low_latency_tokens
                                                                        : WEFTI_CUDA_EP_LL_PACKET_TOKENS);
    at.ll_packets_each = wefti_cuda_ep_ll_packets((wefti_u32)row_bytes_max);
    at.low_latency_words = low_latency_tokens > 0 ? wefti_cuda_ep_low_latency_words(low_latency_tokens) : 0;
    for (int parity = 0; parity < 2; parity++) {
        at.low_latency[parity].words = wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.low_latency_words * 8);
        at.low_latency[parity].ll_packets =
            wefti_cuda_ep_take(&end, (wefti_u64)ranks * at.ll_packet_rows * at.ll_packets_each * 16);
    }
    at.cleared_bytes = end;
    at.tokens_max = (wefti_u32)tokens_max;
    at.values = wefti_cuda_ep_take(&end, (wefti_u64)ranks * (wefti_u64)tokens_max * (wefti_u64)topk_max * 4);
    at.own_choices[0] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
    at.own_choices[1] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
    at.records = wefti_cuda_ep_take(&end, received * record_bytes);
    at.scales = wefti_cuda_ep_take(&end, received * scale_bytes);
    at.rows = wefti_cuda_ep_take(&end, staged_bytes);
    for (int parity = 0; parity < 2; parity++) {
        at.low_latency[parity].records = wefti_cuda_ep_take(&end, low_latency_rows * record_bytes);
        at.low_latency[parity].scales = wefti_cuda_ep_take(&end, low_latency_rows * scale_bytes);
        at.low_latency[parity].rows = wefti_cuda_ep_take(&end, low_latency_rows * row_bytes_max);
    }
    at.bytes = end;
    return at;
}

/* A group as its kernels see it. */
typedef struct wefti_cuda_ep_group {
    weft_dev dev;
    wefti_i32 rank;
    wefti_i32 ranks;
    wefti_i32 pe_of[WEFTI_CUDA_EP_RANKS_MAX];
    wefti_i32 first_expert[WEFTI_CUDA_EP_RANKS_MAX + 1];
    wefti_u64 area[WEFTI_CUDA_EP_RANKS_MAX]; /* each rank's, as this one addresses it */
    wefti_cuda_ep_layout at;
    wefti_u32 rows_limit; /* more rows overflow, */
    wefti_u32 drops; /* or are dropped */
    wefti_u64 *host_status; /* host memory: what the host is to know at its next call, see wefti_cuda_ep_host_status */
} wefti_cuda_ep_group;

/* Words of `host_status`, in pinned host memory. */
enum {
    WEFTI_CUDA_EP_HOST_STATUS_FAILED, /* 0, or {ranks waited for in vain, -status}: no call works any more */
    /* 0, or {a rank + 1 that called something else, its epoch}: the last such call. Written after what that rank
     * called and what this one did: the signatures, and {that rank's, this one's} WEFTI_CUDA_EP_ROUTE. */
    WEFTI_CUDA_EP_HOST_STATUS_MISMATCH,
    WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL,
    WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL,
    WEFTI_CUDA_EP_HOST_STATUS_ROUTES,
    WEFTI_CUDA_EP_HOST_STATUS_WORDS
};

/* The first words of the route tables. */
typedef struct wefti_cuda_ep_route_header {
    wefti_u32 epoch; /* of the call that made this routing; 0: none */
    wefti_i32 tokens; /* T */
    wefti_i32 received; /* tokens received, or that would have been */
    wefti_i32 rows; /* N, as the caller sees it */
    wefti_i32 status; /* as the caller sees it: of the routing, or that the last dispatch on it did not fit */
    wefti_i32 dropped;
    wefti_i32 dropped_rows;
    wefti_i32 routed; /* status of the routing */
} wefti_cuda_ep_route_header;

/* The route tables: device addresses. */
typedef struct wefti_cuda_ep_tables {
    wefti_cuda_ep_route_header *route_header;
    wefti_i32 *rows_of_expert; /* [L] */
    wefti_i32 *rows_of_expert_source; /* [L][R] */
    wefti_i32 *offset_of_expert; /* [L + 1] */
    wefti_i32 *rows_of_source; /* [R] */
    wefti_i32 *offset_of_source; /* [R + 1] */
    wefti_i32 *tokens_of; /* [R] T of each rank */
    wefti_u32 *sent; /* [R] tokens of this rank that go to each rank */
    wefti_u32 *place; /* [R] the place there of the first of them */
    wefti_u64 *bits; /* [U][R] packed words: the tokens of each unit that go to each rank */
    wefti_u64 *goes; /* [U][R] the same of those that are accepted; where nothing is dropped, the same words */
    wefti_u32 *before; /* [U][R] how many went there before */
    /* [B] packed words: next-unit counter: of block b's units, the first that no warp has taken */
    wefti_u64 *next_unit;
    wefti_u64
        *parts; /* [B][E + 1] packed words: the choices of each expert that block b counted, and those out of range */
    float *weights; /* by source: [T][R] the sum of a token's weights on each rank, in ascending choice */
    float *own_weights; /* the same of the running combine's own weights */
    signed char *owner; /* [T][K] the rank of each choice, or -1 */
    /* Of the running combine, in which order a token's results are added: [T][R] ranks, and NOT_ADDED on those that
     * only have values; NO_RANK behind the last. */
    unsigned char *order;
    wefti_u64 *counted; /* routings told since weft_ep_route_counts_to */
    wefti_i32 *ids; /* of a route of destinations: [T][R] */
    wefti_i32 *no_rows; /* the same: [L][R], at least one more: zeroes, in place of rows of experts */
    wefti_u32 *records; /* [M] as the sources wrote them */
    /* By expert: */
    wefti_u64 *ahead; /* [B][E] packed words: this rank's rows of each expert that the blocks before b have */
    wefti_u64 *base; /* [E] packed words: the row at its owner of the first of this rank's rows of each expert */
    wefti_u64 *full; /* [R] packed words: all rows of each rank, padding included */
    wefti_u64 *cut; /* [R] packed words: how many tokens of this rank each rank accepts */
    wefti_u64 *whole; /* [2] packed words: this rank's rows without padding, in the first and second round */
    wefti_u64 *begin; /* [L + 1] packed words: the first row of each local expert */
    wefti_u64 *end; /* [L] packed words: the row behind its last */
    wefti_u32 *rows; /* [T][K] the row of each choice at its owner; NO_ROW: none, or that of an earlier choice */
    wefti_u32 *target; /* [T][R] the row of a token's first choice at each rank */
} wefti_cuda_ep_tables;

#define WEFTI_CUDA_EP_NO_ROW 0xffffffffu
#define WEFTI_CUDA_EP_NO_RANK 0xffu
#define WEFTI_CUDA_EP_NOT_ADDED 0x80u
#define WEFTI_CUDA_EP_TAKES_NO_PART 0xffffffffu /* in own_choices; a weight of these bits, a NaN, goes as another */

/* The caller's choices. */
typedef struct wefti_cuda_ep_choices {
    const void *ids;
    const float *weights; /* or NULL */
    const wefti_i32 *tokens_at; /* or NULL */
    const unsigned char *destinations; /* [T][R], from which the ids are made; or NULL */
    wefti_i32 tokens;
    wefti_i32 wide; /* ids are 64 bits */
    wefti_i32 all_weights; /* also to ranks without the choice */
} wefti_cuda_ep_choices;

/* The caller's arrays of what is received; each may be NULL. */
typedef struct wefti_cuda_ep_arrays {
    float *weights;
    wefti_i32 *experts; /* the address of wefti_i64 if they are wide */
    wefti_i32 *source_rank;
    wefti_i32 *source_token;
    wefti_i32 wide_experts; /* ids of 64 bits */
    wefti_i32 first_expert; /* the id of local expert 0 */
} wefti_cuda_ep_arrays;

/* What is called, in 64 bits: equal on all ranks. */
typedef enum wefti_cuda_ep_call {
    WEFTI_CUDA_EP_DISPATCH = 1,
    WEFTI_CUDA_EP_COMBINE,
    WEFTI_CUDA_EP_DISPATCH_BWD,
    WEFTI_CUDA_EP_COMBINE_BWD,
    WEFTI_CUDA_EP_DISPATCH_HALVES,
    WEFTI_CUDA_EP_COMBINE_HALVES
} wefti_cuda_ep_call;
WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_signature(wefti_cuda_ep_call call, unsigned flags, unsigned dtype,
                                                   unsigned hidden, unsigned topk)
{
    return (wefti_u64)call | (wefti_u64)flags << 4 | (wefti_u64)dtype << 12 | (wefti_u64)topk << 16 |
           (wefti_u64)hidden << 32;
}

typedef struct wefti_cuda_ep_signature_fields {
    unsigned call; /* a wefti_cuda_ep_call */
    unsigned flags; /* WEFTI_CUDA_EP_FRESH .., and the layout from WEFTI_CUDA_EP_LAYOUT_SHIFT on */
    unsigned dtype;
    unsigned topk;
    unsigned hidden;
} wefti_cuda_ep_signature_fields;

WEFTI_CUDA_EP_FN wefti_cuda_ep_signature_fields wefti_cuda_ep_signature_split(wefti_u64 signature)
{
    wefti_cuda_ep_signature_fields fields;
    fields.call = (unsigned)(signature & 0xf);
    fields.flags = (unsigned)(signature >> 4 & 0xff);
    fields.dtype = (unsigned)(signature >> 12 & 0xf);
    fields.topk = (unsigned)(signature >> 16 & 0xffff);
    fields.hidden = (unsigned)(signature >> 32);
    return fields;
}

#define WEFTI_CUDA_EP_LAYOUT_SHIFT 6
#define WEFTI_CUDA_EP_TO_RANKS (1u << 31) /* beside the hidden of a dispatch: the route is of destinations */

enum {
    WEFTI_CUDA_EP_FRESH = 1,
    WEFTI_CUDA_EP_MOVE = 2,
    WEFTI_CUDA_EP_STAGE = 4, /* of this rank only */
    WEFTI_CUDA_EP_WEIGHTED = 8,
    WEFTI_CUDA_EP_VALUES = 16, /* of a backward: with gradients of weights */
    WEFTI_CUDA_EP_ONCE = 4, /* of a combine: a row that choices share is added once */
    WEFTI_CUDA_EP_OWN_WEIGHTS = 1, /* of a combine: it has weights of its own, */
    WEFTI_CUDA_EP_OWN_IDS = 2, /* and choices of its own */
    WEFTI_CUDA_EP_BY_CHOICE = 32 /* of a combine: WEFT_EP_ORDER_CHOICE */
};

/* Scales of fp8 rows: word w of row i is at words[i * row_stride + w * word_stride]. */
typedef struct wefti_cuda_ep_scales {
    wefti_u32 *words;
    wefti_u64 row_stride;
    wefti_u64 word_stride;
} wefti_cuda_ep_scales;

/* How rows lie by expert. */
typedef struct wefti_cuda_ep_experts {
    wefti_u32 slots; /* of each expert, which choices of the same expert share; 0: packed, */
    wefti_u32 alignment; /* each expert's first row a multiple of it */
    wefti_u32 starts_at; /* of [E] words in dynamic shared memory, behind the pipes */
    wefti_u32 zeroes; /* padding is zeroed */
} wefti_cuda_ep_experts;

/* Rows that become fp8 on their way. */
typedef struct wefti_cuda_ep_wide {
    wefti_u32 row_bytes; /* before */
    wefti_u32 element_bytes;
    wefti_i32 dtype; /* a weft_ep_dtype */
    wefti_u32 is_ue8m0;
} wefti_cuda_ep_wide;

/* Of the backward calls. */
typedef struct wefti_cuda_ep_backward {
    const float *given; /* of dispatch: gradients of received weights */
    const unsigned char *rows; /* of combine: what it was given */
    wefti_u64 rows_pitch;
    float *grad_weights;
    wefti_i32 dtype; /* a weft_ep_dtype */
} wefti_cuda_ep_backward;

/* How a block is divided. */
typedef struct wefti_cuda_ep_blocks {
    wefti_i32 sender_warps; /* warps that send rows */
    wefti_i32 receiver_warps; /* warps that receive what has come, of the others */
    wefti_u32 rest_ns; /* between two looks at a word of theirs */
    wefti_u32 stage_bytes; /* of one of their WEFTI_CUDA_EP_STAGES stages in shared memory */
    wefti_i32 pushes_at_once; /* units of a combine whose words a warp posts at once */
} wefti_cuda_ep_blocks;

/* Where a new routing's counts are told: weft_ep_count_arrays. */
typedef struct wefti_cuda_ep_told {
    wefti_u64 *generation; /* [2]; NULL: of one slot */
    wefti_u64 *counted; /* in device memory: routings so far */
    void *rows; /* these may be NULL */
    void *rows_of_expert;
    void *rows_of_expert_aligned;
    void *rows_of_source;
    void *offset_of_expert;
    wefti_i32 tells; /* 0: nothing of this is wanted */
    wefti_i32 wide; /* elements are 64 bits */
    wefti_i32 experts; /* of this rank, */
    wefti_i32 has_no_experts; /* of which a route of destinations knows nothing */
} wefti_cuda_ep_told;

typedef struct wefti_cuda_ep_dispatch_args {
    wefti_cuda_ep_group group;
    wefti_cuda_ep_tables tables;
    wefti_cuda_ep_choices choices; /* FRESH, */
    wefti_cuda_ep_told told; /* the same */
    wefti_cuda_ep_arrays arrays;
    wefti_cuda_ep_blocks blocks;
    wefti_u64 signature;
    wefti_i32 topk;
    wefti_u32 slots; /* of each source; 0: rows are packed */
    wefti_u32 low_latency_slots; /* of each source, of a low-latency call; else 0 */
    wefti_u32 flags;
    /* MOVE: */
    const unsigned char *in;
    wefti_u64 in_pitch;
    unsigned char *out;
    wefti_u64 out_pitch;
    wefti_u64 place; /* where the others write, and their pitch there: out, or with STAGE the area's rows */
    wefti_u64 pitch;
    wefti_u32 row_bytes;
    wefti_u32 capacity; /* rows of out */
    wefti_u32 scale_words; /* of a row; 0: rows have no scales */
    wefti_u32 given_words; /* of them, that are given with the rows: all or none */
    wefti_u32 meta_stages_at; /* stages of warps that send these, in dynamic shared memory */
    wefti_cuda_ep_scales in_scales;
    wefti_cuda_ep_scales out_scales;
    wefti_u64 scale_group_step; /* so many words more from the last row of an expert to the first of the next */
    /* By expert: */
    wefti_cuda_ep_experts experts;
    /* Quantising: */
    wefti_cuda_ep_wide wide;
    /* The backward of combine: */
    wefti_cuda_ep_backward backward;
} wefti_cuda_ep_dispatch_args;

/* Of a combine: weft_ep_combine_options, each NULL if it is not given. */
typedef struct wefti_cuda_ep_options {
    const float *weights;
    const void *ids;
    const unsigned char *bias[2];
    wefti_u64 bias_pitch[2];
    const float *values_in;
    float *values_out;
    wefti_i32 wide; /* ids are 64 bits */
    wefti_i32 of_owners; /* the value of a choice is that of its owner: the backward of a dispatch */
} wefti_cuda_ep_options;

typedef struct wefti_cuda_ep_combine_args {
    wefti_cuda_ep_group group;
    wefti_cuda_ep_tables tables;
    wefti_cuda_ep_blocks blocks;
    wefti_u64 signature;
    const unsigned char *in;
    wefti_u64 in_pitch;
    unsigned char *out;
    wefti_u64 out_pitch;
    wefti_u64 place; /* of the area's rows */
    wefti_u32 row_bytes;
    wefti_u32 low_latency_slots; /* as in a dispatch, of each owner */
    wefti_i32 dtype; /* a weft_ep_dtype */
    wefti_u32 flags;
    wefti_i32 topk; /* by expert, or with values */
    wefti_cuda_ep_backward backward; /* of dispatch, with VALUES */
    wefti_cuda_ep_options options; /* device/combine_options.cuh */
} wefti_cuda_ep_combine_args;

#endif
