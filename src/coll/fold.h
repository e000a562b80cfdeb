/* coll/fold.h: combining vectors. */
#ifndef WEFTI_COLL_FOLD_H
#define WEFTI_COLL_FOLD_H

#include <stddef.h>

#include "weft/reduce.h"

/* dest[k] = a[k] op b[k]; dest may equal a or b. Any alignment of the element's own for dest and a; b: any. */
typedef void (*wefti_fold_loop)(void *dest, const void *a, const void *b, size_t count);

typedef struct wefti_fold {
    wefti_fold_loop loop;
    wefti_op op;
    wefti_type type;
    size_t element; /* bytes */
} wefti_fold;

/* NULL loop: the type has no such operation. */
wefti_fold wefti_fold_of(wefti_op op, wefti_type type);

/* Fill with the neutral element. */
void wefti_fold_neutral(const wefti_fold *fold, void *dest, size_t count);

/* dest = a op b, at most WEFTI_FOLD_BYTES of each. Any of them may be symmetric memory. */
#define WEFTI_FOLD_BYTES ((size_t)8 << 10)
void wefti_fold_chunk(const wefti_fold *fold, void *dest, const void *a, const void *b, size_t count);

#endif
