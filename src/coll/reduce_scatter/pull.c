/* Reduce_scatter of large blocks: each reads its block in all sources and combines it, piece by piece; then all wait
 * until nobody reads any more. */
#include "coll/reduce_scatter/reduce_scatter.h"

/* Combine `count` elements of this member's block from element `first` on. */
static weft_status reduce_piece(wefti_step *step, const wefti_reduction *r, size_t first, size_t count)
{
    int pes = step->team->pes;
    size_t at = first * r->fold.element;
    size_t bytes = count * r->fold.element;
    size_t block = (size_t)step->team->pe * r->count * r->fold.element;
    uint64_t offset = wefti_step_offset(step, r->source + block + at);
    void *sum = wefti_step_chunk(step, 1);
    const void *before = NULL;
    for (int from = 0; from < pes; from++) {
        const void *part;
        WEFT_TRY(wefti_slice_part(step, from, offset, bytes, from == 0 ? sum : wefti_step_chunk(step, 2), &part));
        if (from > 0) {
            void *to = from == pes - 1 ? r->dest + at : sum;
            wefti_fold_chunk(&r->fold, to, before, part, count);
            before = to;
        } else {
            before = part;
        }
    }
    wefti_step_copy(r->dest + at, before, bytes);
    return WEFT_OK;
}

weft_status wefti_reduce_scatter_pull(wefti_step *step, const wefti_reduction *r)
{
    size_t piece = WEFTI_FOLD_BYTES / r->fold.element;
    wefti_step_sign(step, wefti_step_offset(step, r->source));
    WEFT_TRY(wefti_step_meet(step));
    for (size_t first = 0; first < r->count; first += piece) {
        WEFT_TRY(reduce_piece(step, r, first, r->count - first < piece ? r->count - first : piece));
    }
    wefti_step_leave(step);
    return wefti_step_await_all_left(step);
}
