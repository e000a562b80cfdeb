/* Reduce by recursive doubling, for vectors that fit in a slot and teams too large for all to send to all. The members
 * beyond the largest power of two give their vector to a partner first and get the result from it. Both partners of a
 * round combine the same two vectors in the same order, so that all members have the same bits. */
#include "coll/reduce/reduce.h"

static weft_status take(wefti_step *step, const wefti_reduction *r, int from, void *sum)
{
    wefti_coll_slot *slot;
    WEFT_TRY(wefti_step_await(step, from, &slot));
    const void *part = wefti_coll_slot_data(slot);
    wefti_fold_chunk(&r->fold, sum, from < step->team->pe ? part : sum, from < step->team->pe ? sum : part, r->count);
    return WEFT_OK;
}

static weft_status give_and_get(wefti_step *step, const wefti_reduction *r, int partner)
{
    size_t bytes = r->count * r->fold.element;
    wefti_coll_slot *slot;
    WEFT_TRY(wefti_step_post(step, partner, 0, r->source, bytes));
    WEFT_TRY(wefti_step_await(step, partner, &slot));
    wefti_step_copy(r->dest, wefti_coll_slot_data(slot), bytes);
    wefti_step_leave(step);
    return WEFT_OK;
}

weft_status wefti_reduce_doubling(wefti_step *step, const wefti_reduction *r)
{
    int me = step->team->pe;
    int core = 1;
    size_t bytes = r->count * r->fold.element;
    void *sum = wefti_step_chunk(step, 1);
    wefti_step_carry(step, bytes);
    while (core <= step->team->pes / 2) {
        core *= 2;
    }
    if (me >= core) {
        return give_and_get(step, r, me - core);
    }
    wefti_step_copy(sum, r->source, bytes);
    int extra = me + core < step->team->pes;
    if (extra) {
        WEFT_TRY(take(step, r, me + core, sum));
    }
    for (int distance = 1; distance < core; distance *= 2) {
        WEFT_TRY(wefti_step_post(step, me ^ distance, 0, sum, bytes));
        WEFT_TRY(take(step, r, me ^ distance, sum));
    }
    if (extra) {
        WEFT_TRY(wefti_step_post(step, me + core, 0, sum, bytes));
    }
    wefti_step_copy(r->dest, sum, bytes);
    wefti_step_leave(step);
    return WEFT_OK;
}
