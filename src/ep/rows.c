#include "ep/rows.h"

#include "base/error.h"
#include "ep/arithmetic.h"
#include "weft/heap.h"

#define ROW_GRAIN 16 /* bytes */

static weft_status check_shape(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    const wefti_ep_arithmetic *arithmetic = wefti_ep_arithmetic_of(rows->dtype);
    if (arithmetic == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.dtype is %d; give a weft_ep_dtype", call, which,
                           (int)rows->dtype);
    }
    size_t row_bytes = rows->hidden > 0 ? (size_t)rows->hidden * arithmetic->element_bytes : 0;
    if (row_bytes == 0 || row_bytes % ROW_GRAIN != 0 || row_bytes > ep->config.row_bytes_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.hidden is %d, rows of %zu bytes; give a multiple of %d bytes, at most %zu, the "
                           "group's row_bytes_max",
                           call, which, rows->hidden, row_bytes, ROW_GRAIN, ep->config.row_bytes_max);
    }
    if (rows->stride_bytes != 0 && (rows->stride_bytes < row_bytes || rows->stride_bytes % ROW_GRAIN != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.stride_bytes is %zu; give 0, or a multiple of %d of at least the row's %zu", call,
                           which, rows->stride_bytes, ROW_GRAIN, row_bytes);
    }
    return WEFT_OK;
}

weft_status wefti_ep_rows_check(const weft_ep *ep, const weft_ep_rows *rows, int64_t count, const char *call,
                                const char *which)
{
    if (rows == NULL || rows->size != sizeof *rows) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s %s", call, which,
                           rows == NULL ? "is NULL" : "has a wrong size; start from WEFT_EP_ROWS_INIT");
    }
    WEFT_TRY(check_shape(ep, rows, call, which));
    if (count > 0 && (rows->data == NULL || (uintptr_t)rows->data % ROW_GRAIN != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.data is %p with %lld rows; give memory aligned to %d bytes", call,
                           which, rows->data, (long long)count, ROW_GRAIN);
    }
    return WEFT_OK;
}

wefti_ep_span wefti_ep_rows_span(const weft_ep_rows *rows)
{
    wefti_ep_span span;
    span.data = rows->data;
    span.row_bytes = (size_t)rows->hidden * wefti_ep_arithmetic_of(rows->dtype)->element_bytes;
    span.pitch = rows->stride_bytes != 0 ? rows->stride_bytes : span.row_bytes;
    return span;
}

int wefti_ep_span_is_symmetric(const weft_ep *ep, const wefti_ep_span *span, int64_t count)
{
    int pe = ep->peers[ep->rank].pe;
    if (count == 0) {
        return 0;
    }
    const unsigned char *last = wefti_ep_span_row(span, (size_t)count - 1) + span->row_bytes - 1;
    return weft_ptr(ep->world, span->data, pe) == span->data && weft_ptr(ep->world, last, pe) == last;
}

wefti_ep_span wefti_ep_group_span(const weft_ep *ep, size_t row_bytes)
{
    wefti_ep_span span;
    span.data = ep->base + ep->layout.rows;
    span.pitch = row_bytes;
    span.row_bytes = row_bytes;
    return span;
}
