/* ep/host/span.h: the caller's rows: checked, and where they lie. */
#ifndef WEFTI_EP_HOST_SPAN_H
#define WEFTI_EP_HOST_SPAN_H

#include "ep/host/host.h"
#include "weft/protocol/mem.h"

/* Row i begins at data + i * pitch. */
typedef struct wefti_ep_span {
    unsigned char *data;
    size_t pitch;
    size_t row_bytes;
} wefti_ep_span;

static inline unsigned char *wefti_ep_span_row(const wefti_ep_span *span, size_t row)
{
    return span->data + row * span->pitch;
}

/* Of rows that have been checked. */
wefti_ep_span wefti_ep_rows_span(const weft_ep_rows *rows);

/* Whether `count` rows lie in this rank's symmetric heap, all of them. */
int wefti_ep_span_is_symmetric(const weft_ep *ep, const wefti_ep_span *span, int64_t count);

/* The group's own buffer as rows of `row_bytes`. */
wefti_ep_span wefti_ep_group_span(const weft_ep *ep, size_t row_bytes);

/* Arithmetic reads and writes rows where they lie; only the simulator, which must see every access to symmetric memory,
 * goes through `copy`, a private row. */
static inline const void *wefti_ep_row_read(const void *row, void *copy, size_t bytes)
{
#ifdef WEFT_SIM
    wefti_copy(copy, row, bytes);
    return copy;
#else
    (void)copy;
    (void)bytes;
    return row;
#endif
}

/* Where to compute a row that shall come to lie at `row`, and when it is computed, bring it there. */
static inline void *wefti_ep_row_write(void *row, void *copy)
{
#ifdef WEFT_SIM
    (void)row;
    return copy;
#else
    (void)copy;
    return row;
#endif
}

static inline void wefti_ep_row_written(void *row, const void *copy, size_t bytes)
{
#ifdef WEFT_SIM
    wefti_copy(row, copy, bytes);
#else
    (void)row;
    (void)copy;
    (void)bytes;
#endif
}

#endif
