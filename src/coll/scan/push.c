/* Scan of vectors that fit in a slot: each sends its vector to all members after it. */
#include "coll/scan/scan.h"

weft_status wefti_scan_push(wefti_step *step, const wefti_reduction *r, int inclusive)
{
    int me = step->team->pe;
    int parts = inclusive ? me + 1 : me; /* the members 0 .. parts - 1 count */
    size_t bytes = r->count * r->fold.element;
    const void *sum = NULL;
    wefti_step_carry(step, bytes);
    for (int to = me + 1; to < step->team->pes; to++) {
        WEFT_TRY(wefti_step_post(step, to, 0, r->source, bytes));
    }
    for (int from = 0; from < parts; from++) {
        const void *part = r->source;
        if (from != me) {
            wefti_coll_slot *slot;
            WEFT_TRY(wefti_step_await(step, from, &slot));
            part = wefti_coll_slot_data(slot);
        }
        if (from > 0) {
            void *to = from == parts - 1 ? r->dest : wefti_step_chunk(step, 1);
            wefti_fold_chunk(&r->fold, to, sum, part, r->count);
            sum = to;
        } else {
            sum = part;
        }
    }
    if (parts > 0) {
        wefti_step_copy(r->dest, sum, bytes);
    } else {
        wefti_fold_neutral(&r->fold, r->dest, r->count);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
