/* Alltoalls of large blocks: each reads its elements in the sources of all others. */
#include "coll/alltoall/alltoall.h"

/* From beyond the link domain, with what lies between the elements: as many at once as fit in a chunk with it. */
static weft_status pull_far(wefti_step *step, const wefti_alltoall *a, int from, unsigned char *dest, uint64_t first)
{
    size_t dest_step = a->dest_stride * a->element;
    size_t source_step = a->source_stride * a->element;
    unsigned char *chunk = wefti_step_chunk(step, 1);
    size_t some = a->element < WEFTI_COLL_CHUNK_BYTES ? 1 + (WEFTI_COLL_CHUNK_BYTES - a->element) / source_step : 1;
    for (size_t k = 0; k < a->count; k += some) {
        some = some < a->count - k ? some : a->count - k;
        unsigned char *to = some == 1 ? dest + k * dest_step : chunk;
        WEFT_TRY(wefti_step_pull(step, from, to, first + k * source_step, (some - 1) * source_step + a->element));
        if (some > 1) {
            wefti_copy_strided(dest + k * dest_step, dest_step, chunk, source_step, some, a->element);
        }
    }
    return WEFT_OK;
}

static weft_status pull_block(wefti_step *step, const wefti_alltoall *a, int from, uint64_t source)
{
    int me = step->team->pe;
    size_t dest_step = a->dest_stride * a->element;
    size_t source_step = a->source_stride * a->element;
    unsigned char *dest = a->dest + (size_t)from * a->count * dest_step;
    uint64_t first = source + (size_t)me * a->count * source_step;
    const void *view = wefti_step_view(step, from, first);
    if (view != NULL) {
        wefti_copy_strided(dest, dest_step, view, source_step, a->count, a->element);
        return WEFT_OK;
    }
    return pull_far(step, a, from, dest, first);
}

weft_status wefti_alltoalls_pull(wefti_step *step, const wefti_alltoall *a)
{
    uint64_t source = wefti_slot_offset(step->team->world, a->source);
    wefti_step_share(step);
    WEFT_TRY(wefti_step_post_all(step, source, NULL, 0));
    WEFT_TRY(pull_block(step, a, step->team->pe, source));
    int from;
    wefti_coll_slot *slot;
    wefti_step_expect_all(step);
    WEFT_TRY(wefti_step_take(step, &from, &slot));
    while (from >= 0) {
        WEFT_TRY(pull_block(step, a, from, wefti_ld64(&slot->word, WEFTI_RELAXED)));
        WEFT_TRY(wefti_step_take(step, &from, &slot));
    }
    wefti_step_leave(step);
    return wefti_step_await_all_left(step);
}
