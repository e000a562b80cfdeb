/* Reduce of long vectors: member i combines slice i of all sources, piece by piece while it is in the first cache, and
 * writes it to all destinations. Before: all have come. After: all have finished. dest may be source, because slice i
 * of every source is read by member i alone, before that piece is written. */
#include "coll/reduce/reduce.h"

#include "weft/inline/rma.h"

void wefti_slice_of(const wefti_step *step, int member, size_t count, size_t element, size_t *first, size_t *last)
{
    size_t pes = (size_t)step->team->pes;
    size_t line = element < WEFTI_CACHE_LINE ? WEFTI_CACHE_LINE / element : 1; /* elements */
    size_t share = (count / pes + (count % pes != 0) + line - 1) / line * line;
    *first = share * (size_t)member;
    *first = *first < count ? *first : count;
    *last = count - *first < share ? count : *first + share;
}

void wefti_slice_sign(wefti_step *step, const wefti_reduction *r)
{
    wefti_step_sign(step, wefti_slot_offset(step->team->world, r->source));
    wefti_step_sign(step, ~wefti_slot_offset(step->team->world, r->dest));
}

weft_status wefti_slice_part(wefti_step *step, int from, uint64_t offset, size_t bytes, void *room, const void **part)
{
    *part = wefti_step_view(step, from, offset);
    if (WEFTI_LIKELY(*part != NULL)) {
        return WEFT_OK;
    }
    *part = room;
    return wefti_step_pull(step, from, room, offset, bytes);
}

weft_status wefti_slice_complete(const wefti_step *step)
{
    return step->team->world->view.remote != 0 ? weft_quiet(step->team->world) : WEFT_OK;
}

weft_status wefti_slice_reduce(wefti_step *step, const wefti_fold *fold, uint64_t offset, size_t count, void *dest)
{
    int pes = step->team->pes;
    size_t bytes = count * fold->element;
    void *sum = wefti_step_chunk(step, 1);
    const void *before = NULL;
    for (int from = 0; from < pes; from++) {
        const void *part;
        WEFT_TRY(wefti_slice_part(step, from, offset, bytes, from == 0 ? sum : wefti_step_chunk(step, 2), &part));
        if (from > 0) {
            void *to = from == pes - 1 ? dest : sum;
            wefti_fold_chunk(fold, to, before, part, count);
            before = to;
        } else {
            before = part;
        }
    }
    wefti_step_copy(dest, before, bytes);
    return WEFT_OK;
}

/* Combine `count` elements from element `first` on and write them to all. */
static weft_status reduce_piece(wefti_step *step, const wefti_reduction *r, size_t first, size_t count)
{
    int pes = step->team->pes;
    size_t at = first * r->fold.element;
    size_t bytes = count * r->fold.element;
    WEFT_TRY(
        wefti_slice_reduce(step, &r->fold, wefti_slot_offset(step->team->world, r->source) + at, count, r->dest + at));
    for (int i = 1; i < pes; i++) {
        WEFT_TRY(wefti_step_push(step, wefti_step_after(step, i), wefti_slot_offset(step->team->world, r->dest + at),
                                 r->dest + at, bytes));
    }
    return WEFT_OK;
}

weft_status wefti_reduce_slices(wefti_step *step, const wefti_reduction *r)
{
    size_t piece = WEFTI_FOLD_BYTES / r->fold.element;
    size_t first;
    size_t last;
    wefti_slice_of(step, step->team->pe, r->count, r->fold.element, &first, &last);
    wefti_slice_sign(step, r);
    WEFT_TRY(wefti_step_meet(step));
    for (; first < last; first += piece) {
        WEFT_TRY(reduce_piece(step, r, first, last - first < piece ? last - first : piece));
    }
    WEFT_TRY(wefti_slice_complete(step));
    wefti_step_next(step);
    WEFT_TRY(wefti_step_meet(step));
    wefti_step_leave(step);
    return WEFT_OK;
}
