/* rma/strided.h: copies of single elements that lie apart. */
#ifndef WEFTI_RMA_STRIDED_H
#define WEFTI_RMA_STRIDED_H

#include <stddef.h>

#include "weft/world.h"

/* slow.c: the errors of an access to `bytes` bytes at `address` on `pe`, with a local buffer. */
weft_status wefti_rma_check(weft_world *world, const char *call, const void *address, size_t bytes, const void *local,
                            int pe);
/* WEFT_ERR_RANGE: the world has no such PE. */
weft_status wefti_rma_check_pe(const weft_world *world, const char *call, int pe);
/* WEFT_ERR_ARGUMENT: the local buffer, the argument `name`, is NULL, and `bytes` are more than none. */
weft_status wefti_rma_check_local(const char *call, const char *name, const void *local, size_t bytes);

/* WEFT_ERR_ARGUMENT: a stride below 1, elements of no bytes. */
weft_status wefti_strided_check(const char *call, ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t element);
/* Bytes from the first to the last element; SIZE_MAX when they exceed the address space. */
size_t wefti_strided_span(size_t count, ptrdiff_t stride, size_t element);

/* `count` elements of `element` bytes, neighbours dest_step and source_step bytes apart; of symmetric memory or not. */
void wefti_copy_strided(void *dest, size_t dest_step, const void *source, size_t source_step, size_t count,
                        size_t element);

#endif
