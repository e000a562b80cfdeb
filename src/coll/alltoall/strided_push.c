/* Alltoalls of blocks that fit in a slot: packed, sent, unpacked. */
#include "coll/alltoall/alltoall.h"

/* The first byte of block `index`. */
static unsigned char *dest_block(const wefti_alltoall *a, int index)
{
    return a->dest + (size_t)index * a->count * a->dest_stride * a->element;
}

static const unsigned char *source_block(const wefti_alltoall *a, int index)
{
    return a->source + (size_t)index * a->count * a->source_stride * a->element;
}

weft_status wefti_alltoalls_push(wefti_step *step, const wefti_alltoall *a)
{
    int pes = step->team->pes;
    int me = step->team->pe;
    size_t dest_step = a->dest_stride * a->element;
    size_t source_step = a->source_stride * a->element;
    unsigned char *packed = wefti_step_chunk(step, 1);
    wefti_step_carry(step, a->count * a->element);
    for (int i = 1; i < pes; i++) {
        int to = wefti_step_after(step, i);
        wefti_copy_strided(packed, a->element, source_block(a, to), source_step, a->count, a->element);
        WEFT_TRY(wefti_step_post(step, to, 0, packed, a->count * a->element));
    }
    wefti_copy_strided(dest_block(a, me), dest_step, source_block(a, me), source_step, a->count, a->element);
    for (int i = 1; i < pes; i++) {
        int from = wefti_step_after(step, i);
        wefti_coll_slot *slot;
        WEFT_TRY(wefti_step_await(step, from, &slot));
        wefti_copy_strided(dest_block(a, from), dest_step, wefti_coll_slot_data(slot), a->element, a->count,
                           a->element);
    }
    wefti_step_leave(step);
    return WEFT_OK;
}
