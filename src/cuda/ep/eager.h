/* cuda/ep/eager.h: rows of halves that leave with send (WEFT_EP_ROWS_WITH_SEND), before their receivers are in the
 * call, and what goes beside them: where they lie, and the arguments of the kernels that have to do with them. Host and
 * kernels.
 *
 * Behind the rest of an area, twice, by the parity of the epoch, but for `bases`:
 *
 *   words       [R][P] packed words: word u of rank s says that its unit u is here, as one of `rows_ready` does; but
 *               the value of a dispatch's counts tokens among those of s alone, since s does not know yet where its
 *               tokens begin. Of a dispatch a word is a unit's, by expert too
 *   meta_words  [R][U] packed words: likewise of the unit's records and given scales, as `meta_ready`
 *   choices     [R][L] packed words: as the area's `choices`
 *   bases       [L][R] packed words, between this rank's blocks: by expert, of a new routing: the row here of the first
 *               row that source s has of local expert l
 *   records     [R][T] who is received, of a new routing; by expert the K rows are numbers among those that the source
 *               has of the expert, since its first row here is known to the receiver alone; or new weights
 *   scales      [R][T] scales, W words each
 *   rows        [R][T] rows, those of rank s from row s * T on, in the order in which their tokens go here: of a
 *               dispatch those of its tokens, of a combine what it returns
 *
 * A sender knows these places by its own choices, or by the routing that is there. It writes without waiting for this
 * rank's call header: it has had that of the call before, which this rank posted after it had done with the last call
 * of that parity. */
#ifndef WEFTI_CUDA_EP_EAGER_H
#define WEFTI_CUDA_EP_EAGER_H

#include "cuda/ep/abi.h"

/* Offsets in an area, by the parity of the epoch. */
typedef struct wefti_cuda_ep_eager {
    wefti_u64 words[2];
    wefti_u64 meta_words[2];
    wefti_u64 choices[2];
    wefti_u64 bases; /* once */
    wefti_u64 records[2];
    wefti_u64 scales[2];
    wefti_u64 rows[2];
    wefti_u64 cleared_bytes; /* must be zero before first use: from the first words on; 0: there is no such memory */
} wefti_cuda_ep_eager;

/* The memory behind an area's other memory, which ends behind it then. */
WEFTI_CUDA_EP_FN wefti_cuda_ep_eager wefti_cuda_ep_eager_of(wefti_cuda_ep_layout *at, int ranks, int topk_max,
                                                            wefti_u64 row_bytes_max, int scale_words_max)
{
    wefti_cuda_ep_eager eager;
    const wefti_u64 rows = (wefti_u64)ranks * at->tokens_max;
    const wefti_u64 record_bytes = (wefti_u64)wefti_cuda_ep_record_words(topk_max, 1) * 4;
    const wefti_u64 scale_bytes = (wefti_u64)wefti_cuda_ep_padded(scale_words_max) * 4;
    for (int parity = 0; parity < 2; parity++) {
        eager.words[parity] = wefti_cuda_ep_take(&at->bytes, (wefti_u64)ranks * at->pushes * 8);
        eager.meta_words[parity] = wefti_cuda_ep_take(&at->bytes, (wefti_u64)ranks * at->units * 8);
        eager.choices[parity] = wefti_cuda_ep_take(&at->bytes, (wefti_u64)ranks * at->local_max * 8);
    }
    eager.bases = wefti_cuda_ep_take(&at->bytes, (wefti_u64)ranks * at->local_max * 8);
    eager.cleared_bytes = at->bytes - eager.words[0];
    for (int parity = 0; parity < 2; parity++) {
        eager.records[parity] = wefti_cuda_ep_take(&at->bytes, rows * record_bytes);
        eager.scales[parity] = wefti_cuda_ep_take(&at->bytes, rows * scale_bytes);
        eager.rows[parity] = wefti_cuda_ep_take(&at->bytes, rows * row_bytes_max);
    }
    return eager;
}

/* Arguments that begin with those of the call. */
typedef struct wefti_cuda_ep_eager_dispatch_args {
    wefti_cuda_ep_dispatch_args call;
    wefti_cuda_ep_eager eager;
    wefti_i32 is_by_expert; /* for the kernel behind send, which is the same for all layouts */
} wefti_cuda_ep_eager_dispatch_args;

typedef struct wefti_cuda_ep_eager_combine_args {
    wefti_cuda_ep_combine_args call;
    wefti_cuda_ep_eager eager;
} wefti_cuda_ep_eager_combine_args;

#endif
