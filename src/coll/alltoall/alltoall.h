/* coll/alltoall/alltoall.h: the algorithms of alltoall and alltoalls. */
#ifndef WEFTI_COLL_ALLTOALL_ALLTOALL_H
#define WEFTI_COLL_ALLTOALL_ALLTOALL_H

#include "coll/step.h"
#include "rma/strided.h"

/* Blocks of `count` elements; strides 1 are alltoall, with elements of one byte. */
typedef struct wefti_alltoall {
    unsigned char *dest;
    const unsigned char *source;
    size_t dest_stride;
    size_t source_stride;
    size_t count;
    size_t element;
} wefti_alltoall;

weft_status wefti_alltoall_push(wefti_step *step, const wefti_alltoall *a);
weft_status wefti_alltoall_pull(wefti_step *step, const wefti_alltoall *a);
weft_status wefti_alltoall_pairs(wefti_step *step, const wefti_alltoall *a);
/* Only where every member's dest was ready before any member called, on a team of near members. */
weft_status wefti_alltoall_direct(wefti_step *step, const wefti_alltoall *a);
weft_status wefti_alltoalls_push(wefti_step *step, const wefti_alltoall *a);
weft_status wefti_alltoalls_pull(wefti_step *step, const wefti_alltoall *a);

#endif
