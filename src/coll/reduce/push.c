/* Reduce of vectors that fit in a slot: each sends its vector to all others and combines all, in the members' order. */
#include "coll/reduce/reduce.h"

weft_status wefti_reduce_push(wefti_step *step, const wefti_reduction *r)
{
    size_t bytes = r->count * r->fold.element;
    wefti_step_carry(step, bytes);
    wefti_step_share(step);
    WEFT_TRY(wefti_step_post_all(step, 0, r->source, bytes));
    WEFT_TRY(wefti_reduce_messages(step, r, r->source, step->team->pes));
    wefti_step_leave(step);
    return WEFT_OK;
}
