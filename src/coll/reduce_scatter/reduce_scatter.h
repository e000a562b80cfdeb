/* coll/reduce_scatter/reduce_scatter.h: the algorithms of reduce_scatter. r->count: elements of one member's block. */
#ifndef WEFTI_COLL_REDUCE_SCATTER_REDUCE_SCATTER_H
#define WEFTI_COLL_REDUCE_SCATTER_REDUCE_SCATTER_H

#include "coll/reduce/reduce.h"

weft_status wefti_reduce_scatter_push(wefti_step *step, const wefti_reduction *r);
weft_status wefti_reduce_scatter_pull(wefti_step *step, const wefti_reduction *r);

#endif
