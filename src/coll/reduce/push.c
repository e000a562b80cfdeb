/* Reduce of vectors that fit in a slot: each sends its vector to all others and combines all, in the members' order. */
#include "coll/reduce/reduce.h"

weft_status wefti_reduce_push(wefti_step *step, const wefti_reduction *r)
{
    int pes = step->team->pes;
    size_t bytes = r->count * r->fold.element;
    const void *sum = NULL;
    wefti_step_carry(step, bytes);
    wefti_step_share(step);
    WEFT_TRY(wefti_step_post_all(step, 0, r->source, bytes));
    for (int from = 0; from < pes; from++) {
        const void *part = r->source;
        if (from != step->team->pe) {
            wefti_coll_slot *slot;
            WEFT_TRY(wefti_step_await(step, from, &slot));
            part = wefti_coll_slot_data(slot);
        }
        if (from > 0) {
            /* dest may be source, so only the last combination goes there */
            void *to = from == pes - 1 ? r->dest : wefti_step_chunk(step, 1);
            wefti_fold_chunk(&r->fold, to, sum, part, r->count);
            sum = to;
        } else {
            sum = part;
        }
    }
    wefti_step_copy(r->dest, sum, bytes);
    wefti_step_leave(step);
    return WEFT_OK;
}
