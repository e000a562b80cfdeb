/* Alltoall of large blocks: each says where its source lies, reads its blocks in those of all others, and waits until
 * they have read theirs. Its own block it copies in two halves, while the others' flags are on their way. */
#include "coll/alltoall/alltoall.h"

weft_status wefti_alltoall_pull(wefti_step *step, const wefti_alltoall *a)
{
    size_t mine = (size_t)step->team->pe * a->count;
    size_t half = a->count / 2;
    wefti_step_share(step);
    wefti_step_moves(step, wefti_coll_times(a->count, (size_t)step->team->pes));
    WEFT_TRY(wefti_step_post_all(step, wefti_slot_offset(step->team->world, a->source), NULL, 0));
    wefti_step_copy(a->dest + mine, a->source + mine, half);
    int from;
    wefti_coll_slot *slot;
    wefti_step_expect_all(step);
    WEFT_TRY(wefti_step_take(step, &from, &slot));
    while (from >= 0) {
        WEFT_TRY(wefti_step_pull(step, from, a->dest + (size_t)from * a->count,
                                 wefti_ld64(&slot->word, WEFTI_RELAXED) + mine, a->count));
        WEFT_TRY(wefti_step_take(step, &from, &slot));
    }
    wefti_step_leave(step);
    wefti_step_copy(a->dest + mine + half, a->source + mine + half, a->count - half);
    return wefti_step_await_all_left(step);
}
