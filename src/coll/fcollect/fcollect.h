/* coll/fcollect/fcollect.h: the algorithms of fcollect. */
#ifndef WEFTI_COLL_FCOLLECT_FCOLLECT_H
#define WEFTI_COLL_FCOLLECT_FCOLLECT_H

#include "coll/step.h"

typedef struct wefti_fcollect {
    unsigned char *dest;
    const void *source;
    size_t bytes;
} wefti_fcollect;

weft_status wefti_fcollect_push(wefti_step *step, const wefti_fcollect *f);
weft_status wefti_fcollect_pull(wefti_step *step, const wefti_fcollect *f);

#endif
