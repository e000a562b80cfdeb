/* Scan of vectors that fit in a slot: each sends its vector to all members after it. */
#include "coll/scan/scan.h"

weft_status wefti_scan_push(wefti_step *step, const wefti_reduction *r, int inclusive)
{
    int me = step->team->pe;
    int parts = inclusive ? me + 1 : me; /* the members 0 .. parts - 1 count */
    size_t bytes = r->count * r->fold.element;
    wefti_step_carry(step, bytes);
    for (int to = me + 1; to < step->team->pes; to++) {
        WEFT_TRY(wefti_step_post(step, to, 0, r->source, bytes));
    }
    if (parts > 0) {
        WEFT_TRY(wefti_reduce_messages(step, r, r->source, parts));
    } else {
        wefti_fold_neutral(&r->fold, r->dest, r->count);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
