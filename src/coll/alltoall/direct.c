/* Alltoall where every member's dest is ready before any member calls: each writes its blocks to where they belong,
 * and one meeting says that all have. No member waits in order to be written to. Near members only: a flag that
 * follows stores is seen after them, which no transport promises of a put and another PE's flag. */
#include "coll/alltoall/alltoall.h"

weft_status wefti_alltoall_direct(wefti_step *step, const wefti_alltoall *a)
{
    size_t mine = (size_t)step->team->pe * a->count;
    uint64_t dest = wefti_slot_offset(step->team->world, a->dest);
    wefti_step_moves(step, wefti_coll_times(a->count, (size_t)step->team->pes));
    for (int i = 1; i < step->team->pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_push(step, to, dest + mine, a->source + (size_t)to * a->count, a->count));
    }
    wefti_step_copy(a->dest + mine, a->source + mine, a->count);
    wefti_step_moved(step);
    WEFT_TRY(wefti_step_meet(step));
    wefti_step_leave(step);
    return WEFT_OK;
}
