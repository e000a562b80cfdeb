/* rma/strided.c: strided put and get. */
#include "rma/strided.h"

#include "base/error.h"
#include "weft/strided.h"

/* One loop an element size, so that each element moves by one load and one store. */
void wefti_copy_strided(void *dest, size_t dest_step, const void *source, size_t source_step, size_t count,
                        size_t element)
{
    unsigned char *to = dest;
    const unsigned char *from = source;
    if (count > 0 && dest_step == element && source_step == element) {
        wefti_copy(to, from, count * element);
        return;
    }
#define LOOP(BYTES)                                                                                                    \
    case BYTES:                                                                                                        \
        for (size_t k = 0; k < count; k++, to += dest_step, from += source_step) {                                     \
            wefti_copy(to, from, BYTES);                                                                               \
        }                                                                                                              \
        break;
    switch (element) {
        LOOP(1)
        LOOP(2)
        LOOP(4)
        LOOP(8)
        LOOP(16)
    default:
        for (size_t k = 0; k < count; k++, to += dest_step, from += source_step) {
            wefti_copy(to, from, element);
        }
        break;
    }
#undef LOOP
}

weft_status wefti_strided_check(const char *call, ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t element)
{
    if (dest_stride < 1 || source_stride < 1 || element == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: strides and the size of an element are at least 1", call);
    }
    return WEFT_OK;
}

size_t wefti_strided_span(size_t count, ptrdiff_t stride, size_t element)
{
    size_t steps;
    size_t bytes;
    if (count == 0) {
        return 0;
    }
    if (__builtin_mul_overflow(count - 1, (size_t)stride, &steps) || __builtin_add_overflow(steps, 1, &steps) ||
        __builtin_mul_overflow(steps, element, &bytes)) {
        return SIZE_MAX;
    }
    return bytes;
}

/* `blocks` blocks of `block` elements of `element` bytes; the firsts of neighbours lie dest_stride and source_stride
 * elements apart. */
typedef struct blocks_shape {
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    size_t block;
    size_t blocks;
    size_t element;
} blocks_shape;

/* Bytes from the first to the last element; SIZE_MAX when they exceed the address space. */
static size_t span_of(const blocks_shape *shape, ptrdiff_t stride)
{
    size_t steps;
    size_t bytes;
    if (shape->blocks == 0 || shape->block == 0) {
        return 0;
    }
    if (__builtin_mul_overflow(shape->blocks - 1, (size_t)stride, &steps) ||
        __builtin_add_overflow(steps, shape->block, &steps) || __builtin_mul_overflow(steps, shape->element, &bytes)) {
        return SIZE_MAX;
    }
    return bytes;
}

/* A local buffer is trusted to be there, but no object is larger than half of the address space. */
static weft_status check_shape(const char *call, const blocks_shape *shape, ptrdiff_t local_stride)
{
    WEFT_TRY(wefti_strided_check(call, shape->dest_stride, shape->source_stride, shape->element));
    if ((size_t)shape->dest_stride < shape->block || (size_t)shape->source_stride < shape->block) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: strides of %td and %td elements; blocks of %zu need at least that",
                           call, shape->dest_stride, shape->source_stride, shape->block);
    }
    if (span_of(shape, local_stride) > PTRDIFF_MAX) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: %zu local blocks of %zu elements of %zu bytes, %td apart, exceed the address space",
                           call, shape->blocks, shape->block, shape->element, local_stride);
    }
    return WEFT_OK;
}

static weft_status put(weft_world *world, const char *call, void *dest, const void *source, const blocks_shape *shape,
                       int pe)
{
    WEFT_TRY(check_shape(call, shape, shape->source_stride));
    const size_t span = span_of(shape, shape->dest_stride);
    const size_t bytes = shape->block * shape->element;
    const size_t dest_step = (size_t)shape->dest_stride * shape->element;
    const size_t source_step = (size_t)shape->source_stride * shape->element;
    if (WEFTI_FAST(world, dest, span, pe) && source != NULL) {
        wefti_copy_strided(wefti_peer_address(world, dest, pe), dest_step, source, source_step, shape->blocks, bytes);
        return WEFT_OK;
    }
    WEFT_TRY(wefti_rma_check(world, call, dest, span, source, pe));
    for (size_t k = 0; k < shape->blocks; k++) {
        WEFT_TRY(weft_putmem(world, (unsigned char *)dest + k * dest_step,
                             (const unsigned char *)source + k * source_step, bytes, pe));
    }
    return WEFT_OK;
}

static weft_status get(weft_world *world, const char *call, void *dest, const void *source, const blocks_shape *shape,
                       int pe)
{
    WEFT_TRY(check_shape(call, shape, shape->dest_stride));
    const size_t span = span_of(shape, shape->source_stride);
    const size_t bytes = shape->block * shape->element;
    const size_t dest_step = (size_t)shape->dest_stride * shape->element;
    const size_t source_step = (size_t)shape->source_stride * shape->element;
    if (WEFTI_FAST(world, source, span, pe) && dest != NULL) {
        wefti_copy_strided(dest, dest_step, wefti_peer_address(world, source, pe), source_step, shape->blocks, bytes);
        return WEFT_OK;
    }
    WEFT_TRY(wefti_rma_check(world, call, source, span, dest, pe));
    for (size_t k = 0; k < shape->blocks; k++) {
        WEFT_TRY(weft_getmem(world, (unsigned char *)dest + k * dest_step,
                             (const unsigned char *)source + k * source_step, bytes, pe));
    }
    return WEFT_OK;
}

weft_status weft_iputmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    const blocks_shape shape = {dest_stride, source_stride, 1, count, element_bytes};
    return put(world, "iput", dest, source, &shape, pe);
}

weft_status weft_igetmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    const blocks_shape shape = {dest_stride, source_stride, 1, count, element_bytes};
    return get(world, "iget", dest, source, &shape, pe);
}

weft_status weft_ibputmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                          ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe)
{
    const blocks_shape shape = {dest_stride, source_stride, block, blocks, element_bytes};
    return put(world, "ibput", dest, source, &shape, pe);
}

weft_status weft_ibgetmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                          ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe)
{
    const blocks_shape shape = {dest_stride, source_stride, block, blocks, element_bytes};
    return get(world, "ibget", dest, source, &shape, pe);
}
