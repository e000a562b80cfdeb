/* ep/host/span.h: rows, and where they lie. */
#ifndef WEFTI_EP_HOST_SPAN_H
#define WEFTI_EP_HOST_SPAN_H

#include "ep/host/host.h"
#include "weft/protocol/mem.h"

/* Row i begins at data + i * pitch, word w of its scales at scales + i * scale_pitch + w * scale_step. */
typedef struct wefti_ep_span {
    unsigned char *data;
    size_t pitch;
    size_t row_bytes;
    unsigned char *scales;
    size_t scale_pitch; /* bytes */
    size_t scale_step; /* bytes */
    size_t scale_words; /* 0: rows without scales */
    size_t group_rows; /* 0, or every so many rows their scales begin `group_pitch` bytes on */
    size_t group_pitch;
} wefti_ep_span;

static inline unsigned char *wefti_ep_span_row(const wefti_ep_span *span, size_t row)
{
    return span->data + row * span->pitch;
}

static inline unsigned char *wefti_ep_span_scales(const wefti_ep_span *span, size_t row)
{
    size_t group = span->group_rows != 0 ? row / span->group_rows : 0;
    return span->scales + group * span->group_pitch + (row - group * span->group_rows) * span->scale_pitch;
}

/* Where rows lie in memory; they have been checked. */
wefti_ep_span wefti_ep_span_of(const weft_ep_rows *rows);

/* Whether `count` rows, and their scales, lie in this rank's symmetric heap, all of them. */
int wefti_ep_span_is_symmetric(const weft_ep *ep, const wefti_ep_span *span, int64_t count);

/* The group's own buffer as rows like these, by place, their scales after each. */
wefti_ep_span wefti_ep_span_by_place(const weft_ep *ep, const wefti_ep_span *like);

/* Copy scales, `words` words `step` bytes apart, to words `to_step` bytes apart. */
void wefti_ep_scales_copy(unsigned char *to, size_t to_step, const unsigned char *from, size_t step, size_t words);

/* Set a row and its scales to zero. */
void wefti_ep_span_zero(const wefti_ep_span *span, size_t row);

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
