/* Broadcast of a large message: the root says where it lies, all others read it there, and the root waits for them. */
#include "coll/broadcast/broadcast.h"

static weft_status give(wefti_step *step, const wefti_broadcast *b)
{
    WEFT_TRY(wefti_step_post_all(step, wefti_slot_offset(step->team->world, b->source), NULL, 0));
    wefti_step_copy(b->dest, b->source, b->bytes);
    wefti_step_leave(step);
    return wefti_step_await_all_left(step);
}

weft_status wefti_broadcast_pull(wefti_step *step, const wefti_broadcast *b)
{
    wefti_step_share(step);
    if (step->team->pe == b->root) {
        return give(step, b);
    }
    wefti_coll_slot *slot;
    WEFT_TRY(wefti_step_await(step, b->root, &slot));
    WEFT_TRY(wefti_step_pull(step, b->root, b->dest, wefti_ld64(&slot->word, WEFTI_RELAXED), b->bytes));
    wefti_step_leave(step);
    return WEFT_OK;
}
