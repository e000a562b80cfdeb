/* Fcollect of large blocks: each says where its block lies, reads those of all others, and waits until they have read
 * its own. That it copies in two halves, while the others' flags are on their way. */
#include "coll/fcollect/fcollect.h"

weft_status wefti_fcollect_pull(wefti_step *step, const wefti_fcollect *f)
{
    wefti_step_share(step);
    wefti_step_moves(step, wefti_coll_times(f->bytes, (size_t)step->team->pes));
    WEFT_TRY(wefti_step_post_all(step, wefti_slot_offset(step->team->world, f->source), NULL, 0));
    unsigned char *mine = f->dest + (size_t)step->team->pe * f->bytes;
    const unsigned char *source = f->source;
    size_t half = f->bytes / 2;
    wefti_step_copy(mine, source, half);
    int from;
    wefti_coll_slot *slot;
    wefti_step_expect_all(step);
    WEFT_TRY(wefti_step_take(step, &from, &slot));
    while (from >= 0) {
        WEFT_TRY(wefti_step_pull(step, from, f->dest + (size_t)from * f->bytes, wefti_ld64(&slot->word, WEFTI_RELAXED),
                                 f->bytes));
        WEFT_TRY(wefti_step_take(step, &from, &slot));
    }
    wefti_step_leave(step);
    wefti_step_copy(mine + half, source + half, f->bytes - half);
    return wefti_step_await_all_left(step);
}
