/* Alltoall of blocks that fit in a slot. Where members share processors and all blocks of a member fit in one, it is
 * one message: all of its source. */
#include "coll/alltoall/alltoall.h"

static weft_status post_blocks(wefti_step *step, const wefti_alltoall *a)
{
    for (int i = 1; i < step->team->pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(wefti_step_post(step, to, 0, a->source + (size_t)to * a->count, a->count));
    }
    return WEFT_OK;
}

weft_status wefti_alltoall_push(wefti_step *step, const wefti_alltoall *a)
{
    size_t mine = (size_t)step->team->pe * a->count;
    size_t all = (size_t)step->team->pes * a->count;
    int whole = step->team->oversubscribed && all <= step->coll->slot_data_bytes;
    wefti_step_carry(step, whole ? all : a->count);
    if (whole) {
        wefti_step_share(step);
    }
    WEFT_TRY(whole ? wefti_step_post_all(step, 0, a->source, all) : post_blocks(step, a));
    wefti_step_copy(a->dest + mine, a->source + mine, a->count);
    /* in a fixed order: all are needed, and to look at a line in vain makes its writer wait for it */
    for (int i = 1; i < step->team->pes; i++) {
        int from = wefti_step_after(step, i);
        wefti_coll_slot *slot;
        WEFT_TRY(wefti_step_await(step, from, &slot));
        const unsigned char *block = wefti_coll_slot_data(slot);
        wefti_step_copy(a->dest + (size_t)from * a->count, whole ? block + mine : block, a->count);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
