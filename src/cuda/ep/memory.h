/* cuda/ep/memory.h: what lies where in a group's device memory, and into what calls cut their rows. Host and kernels.
 *
 * An area is a rank's symmetric memory of a group, in the device heap:
 *
 *   control     this rank's words: the epoch, the ranks alive, what went wrong
 *   headers     [2][R][WORDS + R] packed words: call header of source s: what it calls; by the parity of the epoch,
 *               because a rank that has ended a call may begin the next while a block here has not yet read its call
 *               header
 *   meta_ready  [R][U] packed words: unit u of source s has its records or new weights, and given scales here; the
 *               value says which tokens they are: wefti_cuda_ep_unit_value. Calls without any of these (ep_has_meta)
 *               have no such word
 *   rows_ready  [R][P] packed words: rows of rank s are here. Word u of a dispatch is that of unit u, by expert of
 *               grain u, and its value says which tokens, likewise. Word u of a combine is that of unit u, by expert of
 *               part u % parts of unit u / parts, and its value is how many rows
 *   choices     [R][L] packed words: how many choices of local expert l source s has
 *   counts      [4][R][E] packed words, by the parity of the epoch and the round: by expert: how many rows of expert e
 *               source s has
 *   accepted    [R] packed words: by expert: how many tokens of source s are accepted here where some are dropped
 *   returned    [R][U] packed words: rank r has returned the values of this rank's unit u
 *   values      [T][K] floats: gradients of weights, or values, that come back; by source values of rank r from
 *               [r * tokens_max][K] on, but in a backward of combine
 *   combine_choices [2][M][K] words by the parity of the epoch: a combine's own weights of who was received, written as
 *               low_latency is, before the call header
 *   records     [M] who is received: source token, K local experts, K weights; by expert also K rows
 *   scales      [M] the scales of rows that have some, W words each, made whole, written with the unit's records, or
 *               where those would be
 *   rows        rows that are received for a buffer that is not symmetric, or that come back to be added up
 *
 *   low_latency [2] by the parity of the epoch: words, records, scales and rows of slot layouts
 *               (low_latency/low_latency.cuh), and rows that return to few tokens as LL packets (device/packet.cuh).
 *               R * Tmax rows, those of source (or owner) s from row s * Tmax on, so that a sender knows the place of
 *               what it puts. It writes there without waiting for this rank's call header: it has had that of the call
 *               before, which this rank posted after it had done with the last call of that parity
 *
 * R ranks, U units, M the most tokens a rank receives. A packed word is {tag, 32 bits}, the tag twice the epoch, or one
 * more in a second round: it carries its own flag, and is compared for equality. No word is reset, but for call headers
 * that a mask takes back; all begin as zeroes. A rank writes to another only after that one's call header of the same
 * call, but for what there is by the parity of the epoch (headers, counts, combine_choices, low_latency, what leaves
 * with send): there it writes after that one's call header of the call before, which says that what the last call of
 * this parity wrote has been read.
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
#ifndef WEFTI_CUDA_EP_MEMORY_H
#define WEFTI_CUDA_EP_MEMORY_H

#include "cuda/ep/signal.h"

#define WEFTI_CUDA_EP_RANKS_MAX 32
#define WEFTI_CUDA_EP_UNIT_MAX (1 << WEFTI_CUDA_EP_UNIT_SHIFT_MAX) /* tokens */
#define WEFTI_CUDA_EP_EXPERTS_MAX 16384
#define WEFTI_CUDA_EP_UNITS_MAX 512 /* of at most 16384 tokens */
#define WEFTI_CUDA_EP_PUSHES_MAX 2048 /* of at most 65536 rows */

/* This rank's words. */
typedef struct wefti_cuda_ep_control {
    wefti_u64 epoch; /* of the last call */
    wefti_u64 half_epoch; /* of the last send: its recv goes on with it */
    wefti_u32 begun; /* blocks of this call that have read the epoch; wraps by itself */
    wefti_u32 masked; /* ranks that take no part, as bits; written by the host and by passing.cuh */
    wefti_u32 failed; /* 0, or -status of the first failure: no call works any more */
    wefti_u32 missing; /* the ranks it waited for in vain, as bits */
    wefti_u64 failed_epoch; /* with `failed`: calls before this one were complete; after a mask: have ended */
    /* With WEFT_EP_STATISTICS the address of [R]: the longest wait of a thread of the running call for each rank, in
     * ns; else 0. */
    wefti_u64 waits;
} wefti_cuda_ep_control;

/* Offsets of what there is twice. */
typedef struct wefti_cuda_ep_low_latency {
    wefti_u64 words; /* [R][low_latency_words] packed: a slice of a row, or a record, of source or owner s is here */
    wefti_u64 records;
    wefti_u64 scales;
    wefti_u64 rows;
    wefti_u64 ll_packets; /* [R][ll_packet_rows][ll_packets_each] of 16 bytes: sums; verdicts (passing.cuh) */
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
    wefti_u64 cleared_bytes; /* must be zero before first use: all before `values`, and low-latency words and packets */
    wefti_u64 values;
    wefti_u64 combine_choices[2];
    wefti_u64 records;
    wefti_u64 scales;
    wefti_u64 rows;
    wefti_cuda_ep_low_latency low_latency[2];
    wefti_u32 low_latency_words; /* of each source or owner; 0: there is no low-latency memory */
    wefti_u32 ll_packet_rows; /* how many rows of each owner go as LL packets */
    wefti_u32 ll_packets_each; /* how many packets a row has at most */
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

/* Tokens of a grain: no more than a unit has. A rank has as many words for the grains of a dispatch as for what a
 * combine pushes, so both have one limit. */
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

/* Words that bulk copies store, in vectors of four. */
WEFTI_CUDA_EP_FN int wefti_cuda_ep_padded(int words)
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
                                                              int scale_words_max, wefti_u64 staged_bytes,
                                                              int low_latency_tokens)
{
    wefti_cuda_ep_layout at;
    const wefti_u64 record_bytes = (wefti_u64)wefti_cuda_ep_record_words(topk_max, 1) * 4;
    const wefti_u64 scale_bytes = (wefti_u64)wefti_cuda_ep_padded(scale_words_max) * 4;
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
    at.combine_choices[0] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
    at.combine_choices[1] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
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

#endif
