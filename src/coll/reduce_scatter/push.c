/* Reduce_scatter of blocks that fit in a slot: each sends each other member its block; who receives combines. */
#include "coll/reduce_scatter/reduce_scatter.h"

weft_status wefti_reduce_scatter_push(wefti_step *step, const wefti_reduction *r)
{
    size_t bytes = r->count * r->fold.element;
    wefti_step_carry(step, bytes);
    for (int i = 1; i < step->team->pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_post(step, to, 0, r->source + (size_t)to * bytes, bytes));
    }
    WEFT_TRY(wefti_reduce_messages(step, r, r->source + (size_t)step->team->pe * bytes, step->team->pes));
    wefti_step_leave(step);
    return WEFT_OK;
}
