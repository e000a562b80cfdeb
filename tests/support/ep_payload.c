/* support/ep_payload.c: what rows hold. */
#include "support/ep_payload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/ep_draw.h"

/* The rows that all ranks together may receive, at most. */
static size_t rows_most(const ep_setup *setup, const weft_ep_plan *plan)
{
    size_t sent = (size_t)setup->ranks * (size_t)setup->config.tokens_max;
    switch (plan->layout) {
    case WEFT_EP_SLOTS_SOURCE:
        return (size_t)setup->ranks * (size_t)setup->ranks * (size_t)ep_slot_tokens(setup, plan);
    case WEFT_EP_SLOTS_EXPERT:
        return (size_t)setup->config.experts * (size_t)setup->ranks * (size_t)ep_slot_tokens(setup, plan);
    case WEFT_EP_EXPERT_MAJOR:
        return sent * (size_t)plan->topk + (size_t)setup->config.experts * (size_t)plan->alignment;
    default:
        return sent * (size_t)(plan->topk < setup->ranks ? plan->topk : setup->ranks);
    }
}

static int draw_hidden(uint64_t *state, const ep_payload *payload, size_t row_bytes_max, const ep_size *size)
{
    int per_grain = 16 / (int)ep_element_bytes(payload->dtype);
    int grains = row_bytes_max < 16 ? 1 : (int)(row_bytes_max / 16);
    if (grains > size->hidden_max / per_grain) {
        grains = size->hidden_max / per_grain;
    }
    return per_grain * (1 + ep_draw_skewed(state, grains < 1 ? 1 : grains));
}

static weft_ep_scale_type draw_scale_type(uint64_t *state)
{
    static const weft_ep_scale_type types[] = {WEFT_EP_SCALE_F32, WEFT_EP_SCALE_UE8M0, WEFT_EP_SCALE_UE8M0_32,
                                               WEFT_EP_SCALE_F32_POW2};
    return types[random_below(state, 4)];
}

static int scale_words_most(const ep_setup *setup)
{
    int of_fp8 = ep_scale_groups((int)setup->config.row_bytes_max);
    int most = setup->config.scale_bytes_max / 4 > of_fp8 ? setup->config.scale_bytes_max / 4 : of_fp8;
    return most > EP_SCALE_WORDS_MAX ? EP_SCALE_WORDS_MAX : most;
}

ep_payload ep_payload_draw(uint64_t seed, const ep_setup *setup, const ep_size *size, const weft_ep_plan *plan,
                           int adds, unsigned salt, ep_payload *received)
{
    static const weft_ep_dtype dtypes[] = {WEFT_EP_BF16, WEFT_EP_F32, WEFT_EP_F16, WEFT_EP_FP8_E4M3, WEFT_EP_BYTES};
    static const ep_fill values[] = {EP_FILL_REAL, EP_FILL_REAL, EP_FILL_REAL, EP_FILL_WILD};
    static const ep_fill quantised[] = {EP_FILL_REAL, EP_FILL_REAL, EP_FILL_TIE, EP_FILL_WILD};
    uint64_t state = seed;
    ep_payload payload = {.fill = EP_FILL_PATTERN, .salt = salt};
    size_t row_bytes = setup->config.row_bytes_max;
    size_t rows = rows_most(setup, plan);
    if (row_bytes * rows > 2 * size->bytes_max) {
        row_bytes = 2 * size->bytes_max / rows;
    }
    payload.dtype = dtypes[random_below(&state, adds ? 3 : 5)];
    payload.scale_type = WEFT_EP_SCALE_NONE;
    if (payload.dtype == WEFT_EP_FP8_E4M3) {
        payload.scale_type = draw_scale_type(&state);
    } else if (payload.dtype == WEFT_EP_BYTES && !ep_draw_one_in(&state, 4)) {
        payload.scale_type = WEFT_EP_SCALE_BYTES;
        payload.scale_bytes = 4 * (1 + ep_draw_skewed(&state, scale_words_most(setup)));
    }
    payload.hidden = draw_hidden(&state, &payload, row_bytes, size);
    if (adds) {
        payload.fill = values[random_below(&state, 4)];
    }
    int is_wide = payload.dtype != WEFT_EP_FP8_E4M3 && payload.dtype != WEFT_EP_BYTES;
    int quantises = !adds && is_wide && payload.hidden >= 16 && ep_draw_one_in(&state, 3);
    payload.hidden -= quantises ? payload.hidden % 16 : 0;
    *received = payload;
    if (quantises) {
        payload.fill = quantised[random_below(&state, 4)];
        received->dtype = WEFT_EP_FP8_E4M3;
        received->scale_type = draw_scale_type(&state);
    }
    return payload;
}

size_t ep_row_bytes(const ep_payload *payload)
{
    return (size_t)payload->hidden * ep_element_bytes(payload->dtype);
}

/* ---- elements ---- */

/* Rank: 7 bits, row: 9, word: 10, salt: 6. Rows of more than 512 tokens or words repeat. */
static uint32_t pattern_of(int rank, int row, int word, unsigned salt)
{
    return (uint32_t)rank << 25 | ((uint32_t)row & 511) << 16 | ((uint32_t)word & 1023) << 6 | (salt & 63);
}

int ep_scale_groups(int hidden)
{
    return (hidden + 127) / 128;
}

int ep_scale_words(const ep_payload *payload)
{
    int groups = ep_scale_groups(payload->hidden);
    switch (payload->scale_type) {
    case WEFT_EP_SCALE_F32:
    case WEFT_EP_SCALE_F32_POW2:
    case WEFT_EP_SCALE_UE8M0_32: /* four bytes a word */
        return groups;
    case WEFT_EP_SCALE_UE8M0:
        return (groups + 3) / 4;
    case WEFT_EP_SCALE_BYTES:
        return payload->scale_bytes / 4;
    default:
        return 0;
    }
}

uint32_t ep_row_scale(const ep_payload *payload, int rank, int row, int word)
{
    return ~pattern_of(rank, row, word, payload->salt);
}

const char *ep_pattern_text(uint32_t pattern, char *text, size_t bytes)
{
    snprintf(text, bytes, "0x%08x (rank %u, token %u, word %u, salt %u)", pattern, pattern >> 25, pattern >> 16 & 511,
             pattern >> 6 & 1023, pattern & 63);
    return text;
}

/* A finite value whose exponent is one of eight below 1. */
static uint32_t real_of(weft_ep_dtype dtype, uint64_t bits)
{
    int mantissa = (int)(bits >> 8 & 0xffffff);
    float value = (1.0f + (float)mantissa * 0x1p-24f) * (float)(1 << (bits >> 1 & 7)) * 0x1p-8f;
    return ep_value_bits(dtype, bits & 1 ? -value : value);
}

/* Bits of any kind; in one of four cases those of a special value. */
static uint32_t wild_of(weft_ep_dtype dtype, uint64_t bits)
{
    uint32_t any = (uint32_t)(bits >> 16) & (uint32_t)((UINT64_C(1) << (8 * ep_element_bytes(dtype))) - 1);
    const float special[] = {0.0f, -0.0f, 1.0f / 0.0f, -1.0f / 0.0f};
    return (bits & 3) == 0   ? ep_value_bits(dtype, special[bits >> 2 & 3])
           : (bits & 3) == 1 ? any
                             : real_of(dtype, bits >> 4);
}

/* The first of each group is 448, so that its scale is 1. */
static uint32_t tie_of(weft_ep_dtype dtype, uint64_t bits, int column)
{
    const float special[] = {0.0f, 1e-40f, NAN, INFINITY};
    uint32_t sign = (uint32_t)(bits & 1) << (8 * ep_element_bytes(dtype) - 1);
    uint32_t code = (uint32_t)(bits >> 16) % 126;
    double sum = ep_bits_value(WEFT_EP_FP8_E4M3, code) + ep_bits_value(WEFT_EP_FP8_E4M3, code + 1);
    uint32_t near = ep_value_bits(dtype, (float)(sum / 2)) + (uint32_t)(bits >> 8 & 3) % 3 - 1;
    if (column % 128 == 0) {
        near = ep_value_bits(dtype, 448.0f);
    } else if ((bits >> 1 & 15) == 0) {
        float value = special[bits >> 5 & 3];
        near = ep_value_bits(dtype, value) + (isinf(value) ? 1 : 0); /* a signalling NaN */
    }
    return near | sign;
}

static uint64_t key_of(const ep_payload *payload, int rank, int row, int column)
{
    uint64_t state = ((uint64_t)(unsigned)rank << 56) ^ ((uint64_t)(unsigned)row << 32) ^
                     ((uint64_t)payload->salt << 16) ^ (uint64_t)(unsigned)column;
    return random_next(&state);
}

uint32_t ep_row_element(const ep_payload *payload, int rank, int row, int column)
{
    uint64_t key = key_of(payload, rank, row, column);
    size_t bytes = ep_element_bytes(payload->dtype);
    size_t at = (size_t)column * bytes;
    switch (payload->fill) {
    case EP_FILL_REAL:
        return real_of(payload->dtype, key);
    case EP_FILL_INTEGER:
        return ep_value_bits(payload->dtype, (float)((int)(key % 9) - 4));
    case EP_FILL_WILD:
        return wild_of(payload->dtype, key);
    case EP_FILL_TIE:
        return tie_of(payload->dtype, key, column);
    case EP_FILL_PATTERN:
    default:
        return (uint32_t)((uint64_t)pattern_of(rank, row, (int)(at / 4), payload->salt) >> 8 * (at % 4)) &
               (uint32_t)((UINT64_C(1) << 8 * bytes) - 1);
    }
}

/* What the elements of a pattern are together: its words. */
static void fill_words(const ep_payload *payload, int rank, int row, void *bytes)
{
    const size_t size = ep_row_bytes(payload);
    for (size_t at = 0; at < size; at += 4) {
        const uint32_t word = pattern_of(rank, row, (int)(at / 4), payload->salt);
        memcpy((unsigned char *)bytes + at, &word, size - at < 4 ? size - at : 4);
    }
}

void ep_row_fill(const ep_payload *payload, int rank, int row, void *bytes)
{
    if (payload->fill == EP_FILL_PATTERN) {
        fill_words(payload, rank, row, bytes);
        return;
    }
    for (int column = 0; column < payload->hidden; column++) {
        ep_element_set(payload->dtype, bytes, column, ep_row_element(payload, rank, row, column));
    }
}

uint32_t ep_element_get(weft_ep_dtype dtype, const void *row, int column)
{
    size_t bytes = ep_element_bytes(dtype);
    uint32_t bits = 0;
    memcpy(&bits, (const unsigned char *)row + (size_t)column * bytes, bytes); /* little-endian, as the library is */
    return bits;
}

void ep_element_set(weft_ep_dtype dtype, void *row, int column, uint32_t bits)
{
    size_t bytes = ep_element_bytes(dtype);
    memcpy((unsigned char *)row + (size_t)column * bytes, &bits, bytes);
}
