/* cuda/ep/many.h: what groups of more ranks than a warp has lanes have in place of parts of cuda/ep/memory.h and
 * cuda/ep/signal.h. Host and kernels.
 *
 * Their arrays of ranks lie in the area, and not in the arguments of kernels, of which `group.area[0]` is this rank's
 * area, whatever its rank. Offsets of wefti_cuda_ep_layout that mean something else here:
 *
 *   headers     [2][R][HEADER_WORDS + 1 + L] packed words, by the parity of the epoch: the call header of source s to
 *               this rank: behind what is called, of a dispatch the tokens that come here and the choices of each
 *               expert here, of a combine the first of the rows where this rank's results are staged at the source
 *   meta_ready  wefti_cuda_ep_directory_at: a wefti_cuda_ep_directory of this rank alone
 *   rows_ready  [WORDS_OF_RANK][R] packed words: DONE: rank s has stored all that it stores here in this call;
 *               RETURNED: likewise values
 *   choices     [R][1 + L] packed words, in the second round of a dispatch that drops rows: the tokens of source s
 *               that are accepted here, and their choices of each expert
 *   counts      [R][REPLY_WORDS + L] packed words: what rank r, an owner, answers this rank's call header
 *   low_latency wefti_cuda_ep_passing_rows and so on: memory of calls that pass ranks by (WEFT_EP_MASK_ON_TIMEOUT);
 *               low_latency_words is not 0 where there is some
 *
 * So each rank tells an owner what concerns that owner, and the owner, who alone adds up its sources, tells each of
 * them where its rows go: messages and memory grow with R, not with R times R. */
#ifndef WEFTI_CUDA_EP_MANY_H
#define WEFTI_CUDA_EP_MANY_H

#include "cuda/ep/memory.h"

#define WEFTI_CUDA_EP_MANY_MAX 256
#define WEFTI_CUDA_EP_MANY_WORDS (WEFTI_CUDA_EP_MANY_MAX / 32) /* of a set of ranks */

/* Shared memory of a warp: of a dispatch a piece of a row that becomes fp8, of a combine for each rank. */
#define WEFTI_CUDA_EP_MANY_PIECE_BYTES 4096
#define WEFTI_CUDA_EP_MANY_RESULT_BYTES 16

/* The words of an owner's answer before its first row of each expert. */
enum {
    WEFTI_CUDA_EP_REPLY_FULL, /* whether what comes is more than it holds */
    WEFTI_CUDA_EP_REPLY_PLACE, /* of the source's first token; by expert, of tokens */
    WEFTI_CUDA_EP_REPLY_BEFORE, /* by expert: rows of the sources before this one, with padding */
    WEFTI_CUDA_EP_REPLY_UNTIL, /* by expert: the same with this source's own rows */
    WEFTI_CUDA_EP_REPLY_WORDS
};

enum { WEFTI_CUDA_EP_DONE, WEFTI_CUDA_EP_RETURNED, WEFTI_CUDA_EP_WORDS_OF_RANK };

/* What a rank knows of all ranks. */
typedef struct wefti_cuda_ep_directory {
    /* Written by the host: */
    wefti_u64 area[WEFTI_CUDA_EP_MANY_MAX]; /* each rank's, as this one addresses it */
    wefti_i32 pe_of[WEFTI_CUDA_EP_MANY_MAX];
    wefti_i32 first_expert[WEFTI_CUDA_EP_MANY_MAX + 1];
    wefti_i32 itself[WEFTI_CUDA_EP_MANY_MAX + 1]; /* of a route of destinations, where a rank is its one expert */
    wefti_u32 masked[WEFTI_CUDA_EP_MANY_WORDS]; /* ranks that take no part, as bits; behind these */
    wefti_u32 missing[WEFTI_CUDA_EP_MANY_WORDS]; /* those waited for in vain; both are written together */
    /* Of the running call, between the blocks of this rank: */
    wefti_u32 differs[WEFTI_CUDA_EP_MANY_MAX]; /* whether the rank calls something else */
    wefti_u32 full[WEFTI_CUDA_EP_MANY_MAX]; /* whether it holds too few rows */
    wefti_u32 until[WEFTI_CUDA_EP_MANY_MAX]; /* REPLY_UNTIL */
    wefti_u32 ahead[WEFTI_CUDA_EP_MANY_MAX]; /* REPLY_BEFORE */
    wefti_u32 capacity[WEFTI_CUDA_EP_MANY_MAX]; /* rows of its buffer */
    wefti_u32 staged[WEFTI_CUDA_EP_MANY_MAX]; /* by expert: whether it wants rows by their places */
    wefti_u32 first[WEFTI_CUDA_EP_MANY_MAX]; /* of a combine: the first row where the rank's results are staged here */
    wefti_u32 first_there[WEFTI_CUDA_EP_MANY_MAX]; /* the first where this rank's are staged there */
    wefti_u64 to[WEFTI_CUDA_EP_MANY_MAX]; /* where rows for it go */
    wefti_u64 pitch[WEFTI_CUDA_EP_MANY_MAX]; /* bytes from one of them to the next */
} wefti_cuda_ep_directory;

/* Words of `host_status` behind those of all groups: the ranks waited for in vain, as bits. */
enum {
    WEFTI_CUDA_EP_HOST_STATUS_MISSING = WEFTI_CUDA_EP_HOST_STATUS_WORDS,
    WEFTI_CUDA_EP_HOST_STATUS_ALL_WORDS = WEFTI_CUDA_EP_HOST_STATUS_MISSING + WEFTI_CUDA_EP_MANY_MAX / 64
};

WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_directory_at(const wefti_cuda_ep_layout *at)
{
    return at->meta_ready;
}

/* Memory of calls that pass ranks by. Each rank, a source or an owner, has a place of its own there for what it stores,
 * whatever the call, so that one that is late spoils nobody else's: `each` bytes, that of rank s from at + s * each on.
 * Rows, records and scales need no second copy: a rank stores them after this rank's call header of the same call. For
 * choices of a combine's own, which do not wait for that, there are two, by the parity of the epoch. */
typedef struct wefti_cuda_ep_passing {
    wefti_u64 at; /* offset in the area */
    wefti_u64 each;
} wefti_cuda_ep_passing;

/* What groups of few ranks have as low_latency[0] are offsets here too; the fields of low_latency[1] and
 * low_latency[0].ll_packets have the bytes of one rank. Only these functions and the next know that. */
WEFTI_CUDA_EP_FN wefti_cuda_ep_passing wefti_cuda_ep_passing_rows(const wefti_cuda_ep_layout *at)
{
    const wefti_cuda_ep_passing rows = {at->low_latency[0].rows, at->low_latency[1].rows};
    return rows;
}

WEFTI_CUDA_EP_FN wefti_cuda_ep_passing wefti_cuda_ep_passing_records(const wefti_cuda_ep_layout *at)
{
    const wefti_cuda_ep_passing records = {at->low_latency[0].records, at->low_latency[1].records};
    return records;
}

WEFTI_CUDA_EP_FN wefti_cuda_ep_passing wefti_cuda_ep_passing_scales(const wefti_cuda_ep_layout *at)
{
    const wefti_cuda_ep_passing scales = {at->low_latency[0].scales, at->low_latency[1].scales};
    return scales;
}

WEFTI_CUDA_EP_FN wefti_cuda_ep_passing wefti_cuda_ep_passing_choices(const wefti_cuda_ep_layout *at, wefti_u64 parity)
{
    const wefti_cuda_ep_passing choices = {at->low_latency[parity].words, at->low_latency[0].ll_packets};
    return choices;
}

/* As wefti_cuda_ep_layout_of. */
WEFTI_CUDA_EP_FN wefti_cuda_ep_layout wefti_cuda_ep_many_layout_of(int ranks, int local_max, int tokens_max,
                                                                   int topk_max, wefti_u64 received,
                                                                   wefti_u64 row_bytes_max, int scale_words_max,
                                                                   wefti_u64 staged_bytes, int low_latency_tokens)
{
    wefti_cuda_ep_layout at = {0};
    const wefti_u64 record_bytes = (wefti_u64)wefti_cuda_ep_record_words(topk_max, 1) * 4;
    const wefti_u64 scale_bytes = (wefti_u64)wefti_cuda_ep_padded(scale_words_max) * 4;
    const wefti_u64 all = (wefti_u64)ranks;
    const wefti_u64 local = (wefti_u64)local_max;
    wefti_u64 end = 0;
    at.units = wefti_cuda_ep_units_bound(tokens_max, WEFTI_CUDA_EP_UNITS_MAX);
    at.local_max = (wefti_u32)local_max;
    at.tokens_max = (wefti_u32)tokens_max;
    at.control = wefti_cuda_ep_take(&end, sizeof(wefti_cuda_ep_control));
    at.meta_ready = wefti_cuda_ep_take(&end, sizeof(wefti_cuda_ep_directory));
    at.headers = wefti_cuda_ep_take(&end, 2 * all * (WEFTI_CUDA_EP_HEADER_WORDS + 1 + local) * 8);
    at.counts = wefti_cuda_ep_take(&end, all * (WEFTI_CUDA_EP_REPLY_WORDS + local) * 8);
    at.choices = wefti_cuda_ep_take(&end, all * (1 + local) * 8);
    at.rows_ready = wefti_cuda_ep_take(&end, WEFTI_CUDA_EP_WORDS_OF_RANK * all * 8);
    at.cleared_bytes = end;
    at.values = wefti_cuda_ep_take(&end, all * (wefti_u64)tokens_max * (wefti_u64)topk_max * 4);
    at.combine_choices[0] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
    at.combine_choices[1] = wefti_cuda_ep_take(&end, received * (wefti_u64)topk_max * 4);
    at.records = wefti_cuda_ep_take(&end, received * record_bytes);
    at.scales = wefti_cuda_ep_take(&end, received * scale_bytes);
    at.rows = wefti_cuda_ep_take(&end, staged_bytes);
    if (low_latency_tokens > 0) {
        const wefti_u64 tokens = (wefti_u64)low_latency_tokens;
        at.low_latency_words = (wefti_u32)low_latency_tokens;
        at.low_latency[1].records = tokens * record_bytes;
        at.low_latency[1].scales = tokens * scale_bytes;
        at.low_latency[1].rows = tokens * row_bytes_max;
        at.low_latency[0].ll_packets = tokens * (wefti_u64)topk_max * 4;
        at.low_latency[0].records = wefti_cuda_ep_take(&end, all * at.low_latency[1].records);
        at.low_latency[0].scales = wefti_cuda_ep_take(&end, all * at.low_latency[1].scales);
        at.low_latency[0].rows = wefti_cuda_ep_take(&end, all * at.low_latency[1].rows);
        at.low_latency[0].words = wefti_cuda_ep_take(&end, all * at.low_latency[0].ll_packets);
        at.low_latency[1].words = wefti_cuda_ep_take(&end, all * at.low_latency[0].ll_packets);
    }
    at.bytes = end;
    return at;
}

#endif
