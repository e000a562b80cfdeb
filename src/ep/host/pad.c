/* ep/host/pad.c: weft_ep_route_pad in host memory. */
#include <string.h>

#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/routing.h"

static void pad_row(const weft_ep_route *route, const weft_ep_received *out, size_t row)
{
    const weft_ep_rows *rows = &out->rows;
    const size_t bytes = (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
    const size_t words = wefti_ep_scale_words(rows);
    const int is_packed = rows->scale_row_stride == 0;
    const size_t places = wefti_ep_plan_is_by_source(&route->plan) ? (size_t)route->plan.topk : 1;
    if (bytes > 0) {
        memset((unsigned char *)rows->data + row * (rows->stride_bytes == 0 ? bytes : rows->stride_bytes), 0, bytes);
    }
    for (size_t word = 0; word < words; word++) {
        const size_t at =
            is_packed ? row * words + word : row * rows->scale_row_stride + word * rows->scale_word_stride;
        ((uint32_t *)rows->scales)[at] = 0;
    }
    for (size_t i = row * places; i < (row + 1) * places; i++) {
        if (out->weights != NULL) {
            out->weights[i] = 0;
        }
        if (out->experts != NULL && out->expert_type == WEFT_EP_INT64) {
            ((int64_t *)(void *)out->experts)[i] = -1;
        } else if (out->experts != NULL) {
            out->experts[i] = -1;
        }
    }
    if (out->source_rank != NULL) {
        out->source_rank[row] = -1;
    }
    if (out->source_token != NULL) {
        out->source_token[row] = -1;
    }
}

weft_status wefti_ep_host_pad(const weft_ep_route *route, const weft_ep_received *out, uint64_t *mark,
                              weft_stream *stream)
{
    weft_ep_counts counts;
    (void)stream;
    WEFT_TRY(wefti_ep_routing_counts(route, &counts));
    const size_t came = *counts.status == WEFT_ERR_OVERFLOW ? 0 : (size_t)*counts.rows;
    const size_t dirty = mark == NULL || *mark > out->rows_capacity ? out->rows_capacity : (size_t)*mark;
    for (size_t row = came; row < dirty; row++) {
        pad_row(route, out, row);
    }
    if (mark != NULL) {
        *mark = came;
    }
    return WEFT_OK;
}
