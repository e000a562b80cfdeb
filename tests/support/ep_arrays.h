/* support/ep_arrays.h: the arrays that expert-parallel calls take, as tensors (support/ep_tensor.h): rows, packed or
 * with a stride, with the scales of fp8; and arrays of 4-byte words. How they lie in memory is drawn. */
#ifndef SUPPORT_EP_ARRAYS_H
#define SUPPORT_EP_ARRAYS_H

#include "support/ep_payload.h"
#include "support/ep_tensor.h"

/* Whose arrays they are. */
typedef struct ep_array_source {
    const ep_memory *memory;
    uint64_t *random; /* of this rank: strides, what is left out, where things lie */
    const char *what; /* which call it is, for messages */
} ep_array_source;

typedef struct ep_row_array {
    ep_payload payload;
    ep_tensor tensor;
    size_t row_bytes;
    size_t pitch;
    ep_tensor scales; /* none unless the payload has some */
    size_t row_stride; /* of the scales, in words */
    size_t word_stride;
    size_t group_rows; /* 0, or every so many rows their scales begin `group_stride` words on */
    size_t group_stride;
    weft_ep_rows rows; /* as calls take them, once placed */
} ep_row_array;

ep_row_array ep_rows_create(const ep_array_source *source, const char *name, const ep_payload *payload, int64_t count);
/* Let the scales of every `group_rows` rows lie apart. Before any is set. */
void ep_rows_group_scales(const ep_array_source *source, ep_row_array *of, int64_t group_rows, int64_t groups);
/* A row of the image. */
void *ep_rows_image(const ep_row_array *of, int64_t row);
/* Let row `row` of the image be the payload's row `number` of `rank`, with its scales; or zero; or set the scales. */
void ep_rows_fill(const ep_row_array *of, int64_t row, int rank, int number);
void ep_rows_zero(const ep_row_array *of, int64_t row);
void ep_rows_set_scales(const ep_row_array *of, int64_t row, const uint32_t *words);
void ep_rows_place(const ep_array_source *source, ep_row_array *of);
/* Compare what lies there with the image; what differs is a failed check. */
void ep_rows_check(const ep_array_source *source, const ep_row_array *of);
void ep_rows_destroy(ep_row_array *of);

/* Floats or int32. */
typedef struct ep_word_array {
    ep_tensor tensor; /* none: the array is left out, and nothing is expected of it */
    int is_float;
} ep_word_array;

ep_word_array ep_words_create(const ep_array_source *source, const char *name, size_t count, int is_float);
void ep_words_set(const ep_word_array *of, size_t at, const void *words, size_t count);
/* Where it lies, or NULL. */
void *ep_words_place(const ep_array_source *source, ep_word_array *of);
void ep_words_check(const ep_array_source *source, const ep_word_array *of);
void ep_words_destroy(ep_word_array *of);

#endif
