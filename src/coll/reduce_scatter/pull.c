/* Reduce_scatter of large blocks: each reads its block in all sources and combines it, piece by piece; then all wait
 * until nobody reads any more. */
#include "coll/reduce_scatter/reduce_scatter.h"

weft_status wefti_reduce_scatter_pull(wefti_step *step, const wefti_reduction *r)
{
    size_t piece = WEFTI_FOLD_BYTES / r->fold.element;
    size_t block = (size_t)step->team->pe * r->count * r->fold.element;
    uint64_t offset = wefti_slot_offset(step->team->world, r->source + block);
    wefti_step_sign(step, wefti_slot_offset(step->team->world, r->source));
    WEFT_TRY(wefti_step_meet(step));
    for (size_t first = 0; first < r->count; first += piece) {
        size_t count = r->count - first < piece ? r->count - first : piece;
        size_t at = first * r->fold.element;
        WEFT_TRY(wefti_slice_reduce(step, &r->fold, offset + at, count, r->dest + at));
    }
    wefti_step_leave(step);
    return wefti_step_await_all_left(step);
}
