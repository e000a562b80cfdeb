/* coll/reduce/reduce.h: the algorithms of reduce. */
#ifndef WEFTI_COLL_REDUCE_REDUCE_H
#define WEFTI_COLL_REDUCE_REDUCE_H

#include "coll/fold.h"
#include "coll/step.h"

typedef struct wefti_reduction {
    wefti_fold fold;
    unsigned char *dest;
    const unsigned char *source;
    size_t count;
} wefti_reduction;

weft_status wefti_reduce_push(wefti_step *step, const wefti_reduction *r);
weft_status wefti_reduce_doubling(wefti_step *step, const wefti_reduction *r);
weft_status wefti_reduce_slices(wefti_step *step, const wefti_reduction *r);

/* reduce.c: the fold, WEFT_ERR_ARGUMENT when the type has no such operation. */
weft_status wefti_reduction_init(wefti_reduction *r, const char *call, wefti_op op, wefti_type type);

/* messages.c: the messages of members 0 .. parts - 1 (>= 1) of this step into dest; this member's own part is `own`. */
weft_status wefti_reduce_messages(wefti_step *step, const wefti_reduction *r, const void *own, int parts);

/* slices.c: the elements [first, last) that `member` does for all. */
void wefti_slice_of(const wefti_step *step, int member, size_t count, size_t element, size_t *first, size_t *last);
/* Members use their own offsets in the others' heaps: tell those whose buffers lie elsewhere. */
void wefti_slice_sign(wefti_step *step, const wefti_reduction *r);
/* `bytes` bytes at `offset` in the window slot of member `from`: in place, or read into `room`. */
weft_status wefti_slice_part(wefti_step *step, int from, uint64_t offset, size_t bytes, void *room, const void **part);
/* dest becomes the combination of the `count` elements, of at most WEFTI_FOLD_BYTES bytes, at `offset` in the slots of
 * all members, in their order. It may be where this member's are. */
weft_status wefti_slice_reduce(wefti_step *step, const wefti_fold *fold, uint64_t offset, size_t count, void *dest);
/* What was pushed is at its targets before the next message. */
weft_status wefti_slice_complete(const wefti_step *step);

#endif
