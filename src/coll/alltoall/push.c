/* Alltoall of blocks that fit in a slot. */
#include "coll/alltoall/alltoall.h"

weft_status wefti_alltoall_push(wefti_step *step, const wefti_alltoall *a)
{
    int pes = step->team->pes;
    int me = step->team->pe;
    wefti_step_carry(step, a->count);
    for (int i = 1; i < pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_post(step, to, 0, a->source + (size_t)to * a->count, a->count));
    }
    wefti_step_copy(a->dest + (size_t)me * a->count, a->source + (size_t)me * a->count, a->count);
    int from;
    wefti_coll_slot *slot;
    wefti_step_expect_all(step);
    WEFT_TRY(wefti_step_take(step, &from, &slot));
    while (from >= 0) {
        wefti_step_copy(a->dest + (size_t)from * a->count, wefti_coll_slot_data(slot), a->count);
        WEFT_TRY(wefti_step_take(step, &from, &slot));
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
