#include "ep/host/span.h"

#include "ep/check.h"
#include "weft/heap.h"

wefti_ep_span wefti_ep_rows_span(const weft_ep_rows *rows)
{
    wefti_ep_span span;
    span.data = rows->data;
    span.row_bytes = (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
    span.pitch = rows->stride_bytes != 0 ? rows->stride_bytes : span.row_bytes;
    return span;
}

int wefti_ep_span_is_symmetric(const weft_ep *ep, const wefti_ep_span *span, int64_t count)
{
    int pe = ep->host->peers[ep->rank].pe;
    if (count == 0) {
        return 0;
    }
    const unsigned char *last = wefti_ep_span_row(span, (size_t)count - 1) + span->row_bytes - 1;
    return weft_ptr(ep->world, span->data, pe) == span->data && weft_ptr(ep->world, last, pe) == last;
}

wefti_ep_span wefti_ep_group_span(const weft_ep *ep, size_t row_bytes)
{
    wefti_ep_span span;
    span.data = ep->host->base + ep->host->layout.rows;
    span.pitch = row_bytes;
    span.row_bytes = row_bytes;
    return span;
}
