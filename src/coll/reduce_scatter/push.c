/* Reduce_scatter of blocks that fit in a slot: each sends each other member its block; who receives combines. */
#include "coll/reduce_scatter/reduce_scatter.h"

weft_status wefti_reduce_scatter_push(wefti_step *step, const wefti_reduction *r)
{
    int pes = step->team->pes;
    size_t bytes = r->count * r->fold.element;
    const void *sum = NULL;
    wefti_step_carry(step, bytes);
    for (int i = 1; i < pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_post(step, to, 0, r->source + (size_t)to * bytes, bytes));
    }
    for (int from = 0; from < pes; from++) {
        const void *part = r->source + (size_t)from * bytes;
        if (from != step->team->pe) {
            wefti_coll_slot *slot;
            WEFT_TRY(wefti_step_await(step, from, &slot));
            part = wefti_coll_slot_data(slot);
        }
        if (from > 0) {
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
