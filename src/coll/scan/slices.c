/* Scan of long vectors: member i goes through the members with its slice, combines, and writes to each what it gets.
 * dest may be source: a piece of a member's source is read before that piece of its destination is written. */
#include "coll/scan/scan.h"

static weft_status scan_piece(wefti_step *step, const wefti_reduction *r, int inclusive, size_t first, size_t count)
{
    size_t at = first * r->fold.element;
    size_t bytes = count * r->fold.element;
    uint64_t source = wefti_slot_offset(step->team->world, r->source + at);
    uint64_t dest = wefti_slot_offset(step->team->world, r->dest + at);
    unsigned char *sum = wefti_step_chunk(step, 1); /* of the members before */
    unsigned char *next = wefti_step_chunk(step, 2);
    wefti_fold_neutral(&r->fold, sum, count);
    for (int m = 0; m < step->team->pes; m++) {
        const void *part;
        WEFT_TRY(wefti_slice_part(step, m, source, bytes, wefti_step_chunk(step, 3), &part));
        if (m > 0) {
            wefti_fold_chunk(&r->fold, next, sum, part, count);
        } else {
            wefti_step_copy(next, part, bytes);
        }
        WEFT_TRY(wefti_step_push(step, m, dest, inclusive ? next : sum, bytes));
        unsigned char *other = sum;
        sum = next;
        next = other;
    }
    return WEFT_OK;
}

weft_status wefti_scan_slices(wefti_step *step, const wefti_reduction *r, int inclusive)
{
    size_t piece = WEFTI_FOLD_BYTES / r->fold.element;
    size_t first;
    size_t last;
    wefti_slice_of(step, step->team->pe, r->count, r->fold.element, &first, &last);
    wefti_slice_sign(step, r);
    WEFT_TRY(wefti_step_meet(step));
    for (; first < last; first += piece) {
        WEFT_TRY(scan_piece(step, r, inclusive, first, last - first < piece ? last - first : piece));
    }
    WEFT_TRY(wefti_slice_complete(step));
    wefti_step_next(step);
    WEFT_TRY(wefti_step_meet(step));
    wefti_step_leave(step);
    return WEFT_OK;
}
