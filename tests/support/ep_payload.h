/* support/ep_payload.h: what rows hold: a pure function of the payload, the rank, the row and the column, so that every
 * rank knows what all rows hold, and a wrong one tells where it comes from. */
#ifndef SUPPORT_EP_PAYLOAD_H
#define SUPPORT_EP_PAYLOAD_H

#include "support/ep_case.h"
#include "support/ep_number.h"

#define EP_SCALE_WORDS_MAX 64 /* a row; of bytes, too */

typedef enum ep_fill {
    EP_FILL_PATTERN, /* 32-bit words that name rank, row and place: for what is moved */
    EP_FILL_REAL, /* finite values of moderate size: for what is added */
    EP_FILL_INTEGER, /* from -4 to 4, so that sums of products are exact */
    EP_FILL_WILD, /* any bits: infinities, NaN, denormals, zeros of both signs */
    /* Ties of e4m3 and their neighbours, in groups with a scale of 1; zeros, denormals, NaN of both kinds. */
    EP_FILL_TIE
} ep_fill;

typedef struct ep_payload {
    weft_ep_dtype dtype; /* of the rows that are there before the call */
    weft_ep_scale_type scale_type; /* of them */
    int scale_bytes; /* with WEFT_EP_SCALE_BYTES */
    int hidden;
    ep_fill fill;
    unsigned salt; /* of the call: tells its rows from those of the calls before */
} ep_payload;

/* For a call that adds, or a dispatch: bit patterns then, or, with *received of another type, values. */
ep_payload ep_payload_draw(uint64_t seed, const ep_setup *setup, const ep_size *size, const weft_ep_plan *plan,
                           int adds, unsigned salt, ep_payload *received);

size_t ep_row_bytes(const ep_payload *payload);
/* Scales a row: one for 128 elements; and the words that hold them. */
int ep_scale_groups(int hidden);
int ep_scale_words(const ep_payload *payload);
/* The words of scales that come with a row of fp8, or of bytes. */
uint32_t ep_row_scale(const ep_payload *payload, int rank, int row, int word);

/* The row number `row` of `rank`: row_bytes bytes. */
void ep_row_fill(const ep_payload *payload, int rank, int row, void *bytes);
/* The bits of one element of it. */
uint32_t ep_row_element(const ep_payload *payload, int rank, int row, int column);

uint32_t ep_element_get(weft_ep_dtype dtype, const void *row, int column);
void ep_element_set(weft_ep_dtype dtype, void *row, int column, uint32_t bits);

/* What a word of EP_FILL_PATTERN says, as text. */
const char *ep_pattern_text(uint32_t pattern, char *text, size_t bytes);

#endif
