/* Fcollect of blocks that fit in a slot: each sends its block to all others. */
#include "coll/fcollect/fcollect.h"

weft_status wefti_fcollect_push(wefti_step *step, const wefti_fcollect *f)
{
    wefti_step_carry(step, f->bytes);
    wefti_step_share(step);
    WEFT_TRY(wefti_step_post_all(step, 0, f->source, f->bytes));
    wefti_step_copy(f->dest + (size_t)step->team->pe * f->bytes, f->source, f->bytes);
    /* in a fixed order: all are needed, and to look at a line in vain makes its writer wait for it */
    for (int i = 1; i < step->team->pes; i++) {
        int from = wefti_step_after(step, i);
        wefti_coll_slot *slot;
        WEFT_TRY(wefti_step_await(step, from, &slot));
        wefti_step_copy(f->dest + (size_t)from * f->bytes, wefti_coll_slot_data(slot), f->bytes);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
