/* What the push algorithms of reduce, reduce_scatter and scan have in common: the members' messages combined in their
 * order. */
#include "coll/reduce/reduce.h"

weft_status wefti_reduce_messages(wefti_step *step, const wefti_reduction *r, const void *own, int parts)
{
    const void *sum = NULL;
    for (int from = 0; from < parts; from++) {
        const void *part = own;
        if (from != step->team->pe) {
            wefti_coll_slot *slot;
            WEFT_TRY(wefti_step_await(step, from, &slot));
            part = wefti_coll_slot_data(slot);
        }
        if (from > 0) {
            /* dest may be source, so only the last combination goes there */
            void *to = from == parts - 1 ? r->dest : wefti_step_chunk(step, 1);
            wefti_fold_chunk(&r->fold, to, sum, part, r->count);
            sum = to;
        } else {
            sum = part;
        }
    }
    wefti_step_copy(r->dest, sum, r->count * r->fold.element);
    return WEFT_OK;
}
