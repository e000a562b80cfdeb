/* Alltoall of blocks that fit in a slot. */
#include "coll/alltoall/alltoall.h"

weft_status wefti_alltoall_push(wefti_step *step, const wefti_alltoall *a)
{
    int pes = step->team->pes;
    int me = step->team->pe;
    for (int i = 1; i < pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_post(step, to, 0, a->source + (size_t)to * a->count, a->count));
    }
    wefti_step_copy(a->dest + (size_t)me * a->count, a->source + (size_t)me * a->count, a->count);
    for (int i = pes - 1; i > 0; i--) {
        int from = wefti_step_after(step, i);
        wefti_coll_slot *slot;
        WEFT_TRY(wefti_step_await(step, from, &slot));
        wefti_step_copy(a->dest + (size_t)from * a->count, wefti_coll_slot_data(slot), a->count);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
