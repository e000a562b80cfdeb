/* support/ep_arrays.c: the arrays that expert-parallel calls take. */
#include "support/ep_arrays.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* Scales: packed, or by row or by column with gaps. */
static void scales_create(const ep_array_source *source, ep_row_array *of, int64_t count)
{
    size_t words = (size_t)ep_scale_words(&of->payload);
    unsigned kind = random_below(source->random, 3);
    size_t gap = random_below(source->random, 3);
    size_t rows = count > 0 ? (size_t)count : 1;
    of->row_stride = kind == 2 ? 1 : words + (kind == 1 ? gap : 0);
    of->word_stride = kind == 2 ? rows + gap : 1;
    size_t all = (rows - 1) * of->row_stride + (words - 1) * of->word_stride + 1;
    of->scales = ep_tensor_create(source->memory, "scales", 4 * all);
    of->rows.scale_type = of->payload.scale_type;
    of->rows.scale_bytes = of->payload.scale_type == WEFT_EP_SCALE_BYTES ? of->payload.scale_bytes : -1;
    of->rows.scale_row_stride = kind == 0 ? 0 : of->row_stride;
    of->rows.scale_word_stride = kind == 0 ? 0 : of->word_stride;
}

ep_row_array ep_rows_create(const ep_array_source *source, const char *name, const ep_payload *payload, int64_t count)
{
    ep_row_array of;
    memset(&of, 0, sizeof of);
    size_t gap = random_below(source->random, 3) == 0 ? 16 * (size_t)random_below(source->random, 4) : 0;
    of.payload = *payload;
    of.row_bytes = ep_row_bytes(payload);
    of.pitch = of.row_bytes + gap;
    of.tensor = ep_tensor_create(source->memory, name, (size_t)count * of.pitch);
    of.tensor.is_f32 = payload->dtype == WEFT_EP_F32 && payload->fill != EP_FILL_PATTERN;
    of.rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    of.rows.dtype = payload->dtype;
    of.rows.hidden = payload->hidden;
    of.rows.stride_bytes = gap > 0 ? of.pitch : 0;
    if (payload->scale_type != WEFT_EP_SCALE_NONE) {
        scales_create(source, &of, count);
    }
    return of;
}

void *ep_rows_image(const ep_row_array *of, int64_t row)
{
    return (unsigned char *)ep_tensor_image(&of->tensor) + (size_t)row * of->pitch;
}

static size_t scale_at(const ep_row_array *of, size_t row, size_t word)
{
    size_t group = of->group_rows != 0 ? row / of->group_rows : 0;
    return group * of->group_stride + (row - group * of->group_rows) * of->row_stride + word * of->word_stride;
}

void ep_rows_group_scales(const ep_array_source *source, ep_row_array *of, int64_t group_rows, int64_t groups)
{
    ep_tensor_destroy(&of->scales);
    scales_create(source, of, group_rows); /* of one group */
    size_t extent = of->scales.bytes / 4;
    of->group_rows = (size_t)group_rows;
    of->group_stride = extent + random_below(source->random, 3);
    ep_tensor_destroy(&of->scales);
    of->scales = ep_tensor_create(source->memory, "scales", 4 * (size_t)groups * of->group_stride);
}

void ep_rows_set_scales(const ep_row_array *of, int64_t row, const uint32_t *words)
{
    uint32_t *scales = of->scales.image == NULL ? NULL : ep_tensor_image(&of->scales);
    for (int word = 0; word < ep_scale_words(&of->payload); word++) {
        scales[scale_at(of, (size_t)row, (size_t)word)] = words[word];
    }
}

/* Let row `row` of the image be the payload's row `number` of `rank`. */
void ep_rows_fill(const ep_row_array *of, int64_t row, int rank, int number)
{
    uint32_t words[EP_SCALE_WORDS_MAX];
    for (int word = 0; word < ep_scale_words(&of->payload); word++) {
        words[word] = ep_row_scale(&of->payload, rank, number, word);
    }
    ep_row_fill(&of->payload, rank, number, ep_rows_image(of, row));
    ep_rows_set_scales(of, row, words);
}

void ep_rows_zero(const ep_row_array *of, int64_t row)
{
    const uint32_t words[EP_SCALE_WORDS_MAX] = {0};
    memset(ep_rows_image(of, row), 0, of->row_bytes);
    ep_rows_set_scales(of, row, words);
}

void ep_rows_place(const ep_array_source *source, ep_row_array *of)
{
    of->rows.data = ep_tensor_place(&of->tensor, (unsigned)random_next(source->random));
    if (of->scales.image != NULL) {
        of->rows.scales = ep_tensor_place(&of->scales, (unsigned)random_next(source->random));
    }
}

void ep_rows_destroy(ep_row_array *of)
{
    ep_tensor_destroy(&of->tensor);
    ep_tensor_destroy(&of->scales);
}

static void scales_check(const ep_array_source *source, const ep_row_array *of)
{
    long at;
    unsigned char *found = of->scales.image == NULL ? NULL : ep_tensor_differs(&of->scales, &at);
    if (found != NULL) {
        int inside = at >= 0 && (size_t)at < of->scales.bytes;
        const uint32_t *got = (const uint32_t *)(const void *)found;
        const uint32_t *wanted = ep_tensor_image(&of->scales);
        CHECK_SAY(0, "%s: %s: scales (strides %zu, %zu): word %ld of %zu is 0x%x, not 0x%x", source->what,
                  of->tensor.name, of->row_stride, of->word_stride, at / 4, of->scales.bytes / 4,
                  inside ? got[at / 4] : 0, inside ? wanted[at / 4] : 0);
        free(found);
    }
}

static void rows_say(const ep_array_source *source, const ep_row_array *of, const unsigned char *found, long at)
{
    if (at < 0 || (size_t)at >= of->tensor.bytes || (size_t)at % of->pitch >= of->row_bytes) {
        CHECK_SAY(0, "%s: %s: wrote %s the rows, at byte %ld of %zu", source->what, of->tensor.name,
                  at < 0 || (size_t)at >= of->tensor.bytes ? "outside of" : "between", at, of->tensor.bytes);
        return;
    }
    weft_ep_dtype dtype = of->payload.dtype;
    size_t row = (size_t)at / of->pitch;
    size_t size = of->payload.fill == EP_FILL_PATTERN ? 4 : ep_element_bytes(dtype);
    size_t column = (size_t)at % of->pitch / size;
    uint32_t got = 0;
    uint32_t wanted = 0;
    memcpy(&got, found + row * of->pitch + column * size, size);
    memcpy(&wanted, (unsigned char *)ep_rows_image(of, (int64_t)row) + column * size, size);
    if (of->payload.fill == EP_FILL_PATTERN) {
        char got_text[80];
        char wanted_text[80];
        CHECK_SAY(0, "%s: %s: word %zu of row %zu is %s, not %s", source->what, of->tensor.name, column, row,
                  ep_pattern_text(got, got_text, sizeof got_text),
                  ep_pattern_text(wanted, wanted_text, sizeof wanted_text));
    } else {
        CHECK_SAY(0, "%s: %s: element %zu of row %zu is %g (0x%x), not %g (0x%x)", source->what, of->tensor.name,
                  column, row, ep_bits_value(dtype, got), got, ep_bits_value(dtype, wanted), wanted);
    }
}

void ep_rows_check(const ep_array_source *source, const ep_row_array *of)
{
    long at;
    unsigned char *found = ep_tensor_differs(&of->tensor, &at);
    if (found != NULL) {
        rows_say(source, of, found, at);
        free(found);
    }
    scales_check(source, of);
}

ep_word_array ep_words_create(const ep_array_source *source, const char *name, size_t count, int is_float)
{
    ep_word_array of = {.tensor = ep_tensor_create(source->memory, name, 4 * count), .is_float = is_float};
    of.tensor.is_f32 = is_float;
    return of;
}

void *ep_words_place(const ep_array_source *source, ep_word_array *of)
{
    return of->tensor.image == NULL ? NULL : ep_tensor_place(&of->tensor, (unsigned)random_next(source->random));
}

void ep_words_set(const ep_word_array *of, size_t at, const void *words, size_t count)
{
    if (of->tensor.image != NULL) {
        memcpy((unsigned char *)ep_tensor_image(&of->tensor) + 4 * at, words, 4 * count);
    }
}

void ep_words_check(const ep_array_source *source, const ep_word_array *of)
{
    long at = 0;
    unsigned char *found = of->tensor.image == NULL ? NULL : ep_tensor_differs(&of->tensor, &at);
    if (found == NULL) {
        return;
    }
    if (at < 0 || (size_t)at >= of->tensor.bytes) {
        CHECK_SAY(0, "%s: wrote outside of %s, at byte %ld of %zu", source->what, of->tensor.name, at,
                  of->tensor.bytes);
    } else if (of->is_float) {
        const float *got = (const float *)(const void *)found;
        const float *wanted = ep_tensor_image(&of->tensor);
        CHECK_SAY(0, "%s: %s[%ld] is %.9g, not %.9g", source->what, of->tensor.name, at / 4, (double)got[at / 4],
                  (double)wanted[at / 4]);
    } else {
        const int32_t *got = (const int32_t *)(const void *)found;
        const int32_t *wanted = ep_tensor_image(&of->tensor);
        CHECK_SAY(0, "%s: %s[%ld] is %d, not %d", source->what, of->tensor.name, at / 4, got[at / 4], wanted[at / 4]);
    }
    free(found);
}

void ep_words_destroy(ep_word_array *of)
{
    ep_tensor_destroy(&of->tensor);
}
