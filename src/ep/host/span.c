#include "ep/host/span.h"

#include <string.h>

#include "ep/check.h"
#include "weft/heap.h"

#define WORD sizeof(uint32_t)

wefti_ep_span wefti_ep_span_of(const weft_ep_rows *rows)
{
    wefti_ep_span span;
    memset(&span, 0, sizeof span);
    span.data = rows->data;
    span.row_bytes = (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
    span.pitch = rows->stride_bytes != 0 ? rows->stride_bytes : span.row_bytes;
    if (rows->scale_type != WEFT_EP_SCALE_NONE) {
        int packed = rows->scale_row_stride == 0;
        span.scales = rows->scales;
        span.scale_words = wefti_ep_scale_words(rows);
        span.scale_pitch = WORD * (packed ? span.scale_words : rows->scale_row_stride);
        span.scale_step = WORD * (packed ? 1 : rows->scale_word_stride);
    }
    return span;
}

static int lies_there(const weft_ep *ep, const unsigned char *first, const unsigned char *last)
{
    int pe = ep->host->peers[ep->rank].pe;
    return weft_ptr(ep->world, first, pe) == first && weft_ptr(ep->world, last, pe) == last;
}

int wefti_ep_span_is_symmetric(const weft_ep *ep, const wefti_ep_span *span, int64_t count)
{
    if (count == 0) {
        return 0;
    }
    size_t last = (size_t)count - 1;
    if (!lies_there(ep, span->data, wefti_ep_span_row(span, last) + span->row_bytes - 1)) {
        return 0;
    }
    return span->scale_words == 0 ||
           lies_there(ep, span->scales,
                      wefti_ep_span_scales(span, last) + (span->scale_words - 1) * span->scale_step + WORD - 1);
}

wefti_ep_span wefti_ep_span_by_place(const weft_ep *ep, const wefti_ep_span *like)
{
    wefti_ep_span span = *like;
    span.data = ep->host->base + ep->host->layout.rows;
    span.pitch = wefti_ep_place_pitch(like->row_bytes, like->scale_words);
    span.scales = span.data + like->row_bytes;
    span.scale_pitch = span.pitch;
    span.scale_step = WORD;
    span.group_rows = 0;
    return span;
}

void wefti_ep_scales_copy(unsigned char *to, size_t to_step, const unsigned char *from, size_t step, size_t words)
{
    if (to_step == WORD && step == WORD) {
        wefti_copy(to, from, words * WORD);
        return;
    }
    for (size_t i = 0; i < words; i++) {
        wefti_copy(to + i * to_step, from + i * step, WORD);
    }
}

void wefti_ep_span_zero(const wefti_ep_span *span, size_t row)
{
    wefti_zero(wefti_ep_span_row(span, row), span->row_bytes);
    for (size_t i = 0; i < span->scale_words; i++) {
        wefti_zero(wefti_ep_span_scales(span, row) + i * span->scale_step, WORD);
    }
}
