/* Strided put and get. */
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

/* A local buffer is trusted to be there, but no object is larger than half of the address space. */
static weft_status check_local_span(const char *call, size_t count, ptrdiff_t stride, size_t element)
{
    if (wefti_strided_span(count, stride, element) > PTRDIFF_MAX) {
        return wefti_error(WEFT_ERR_RANGE, "%s: %zu local elements of %zu bytes, %td apart, exceed the address space",
                           call, count, element, stride);
    }
    return WEFT_OK;
}

weft_status weft_iputmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    WEFT_TRY(wefti_strided_check("iput", dest_stride, source_stride, element_bytes));
    WEFT_TRY(check_local_span("iput", count, source_stride, element_bytes));
    size_t span = wefti_strided_span(count, dest_stride, element_bytes);
    size_t dest_step = (size_t)dest_stride * element_bytes;
    size_t source_step = (size_t)source_stride * element_bytes;
    if (WEFTI_FAST(world, dest, span, pe) && source != NULL) {
        wefti_copy_strided(wefti_peer_address(world, dest, pe), dest_step, source, source_step, count, element_bytes);
        return WEFT_OK;
    }
    WEFT_TRY(wefti_rma_check(world, "iput", dest, span, source, pe));
    for (size_t k = 0; k < count; k++) {
        WEFT_TRY(weft_putmem(world, (unsigned char *)dest + k * dest_step,
                             (const unsigned char *)source + k * source_step, element_bytes, pe));
    }
    return WEFT_OK;
}

weft_status weft_igetmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    WEFT_TRY(wefti_strided_check("iget", dest_stride, source_stride, element_bytes));
    WEFT_TRY(check_local_span("iget", count, dest_stride, element_bytes));
    size_t span = wefti_strided_span(count, source_stride, element_bytes);
    size_t dest_step = (size_t)dest_stride * element_bytes;
    size_t source_step = (size_t)source_stride * element_bytes;
    if (WEFTI_FAST(world, source, span, pe) && dest != NULL) {
        wefti_copy_strided(dest, dest_step, wefti_peer_address(world, source, pe), source_step, count, element_bytes);
        return WEFT_OK;
    }
    WEFT_TRY(wefti_rma_check(world, "iget", source, span, dest, pe));
    for (size_t k = 0; k < count; k++) {
        WEFT_TRY(weft_getmem(world, (unsigned char *)dest + k * dest_step,
                             (const unsigned char *)source + k * source_step, element_bytes, pe));
    }
    return WEFT_OK;
}
