#include "ep/check.h"

#include "base/error.h"
#include "base/sized.h"
#include "weft/protocol/fp8.h"

#define ROW_GRAIN 16 /* bytes */
#define OPAQUE_BYTES_MAX (1 << 24) /* H of WEFT_EP_BYTES: H / ROW_GRAIN has the bits below */
#define WIDTH_SCALES_SHIFT 21

size_t wefti_ep_element_bytes(weft_ep_dtype dtype)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return 4;
    case WEFT_EP_BF16:
    case WEFT_EP_F16:
        return 2;
    case WEFT_EP_FP8_E4M3:
    case WEFT_EP_BYTES:
        return 1;
    default:
        return 0;
    }
}

size_t wefti_ep_scale_words(const weft_ep_rows *rows)
{
    switch (rows->scale_type) {
    case WEFT_EP_SCALE_NONE:
        return 0;
    case WEFT_EP_SCALE_BYTES:
        return (size_t)rows->scale_bytes / sizeof(uint32_t);
    default:
        return wefti_fp8_scale_words((size_t)rows->hidden, rows->scale_type == WEFT_EP_SCALE_UE8M0);
    }
}

unsigned wefti_ep_width(const weft_ep_rows *rows)
{
    return rows->dtype != WEFT_EP_BYTES
               ? (unsigned)rows->hidden
               : (unsigned)rows->hidden / ROW_GRAIN | (unsigned)wefti_ep_scale_words(rows) << WIDTH_SCALES_SHIFT;
}

unsigned wefti_ep_width_hidden(weft_ep_dtype dtype, unsigned width)
{
    return dtype != WEFT_EP_BYTES ? width : (width & ((1u << WIDTH_SCALES_SHIFT) - 1)) * ROW_GRAIN;
}

unsigned wefti_ep_width_scale_bytes(weft_ep_dtype dtype, unsigned width)
{
    return dtype != WEFT_EP_BYTES ? 0 : (width >> WIDTH_SCALES_SHIFT) * (unsigned)sizeof(uint32_t);
}

const char *wefti_ep_dtype_name(weft_ep_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(name, value, bytes, text)                                                                            \
    case name:                                                                                                         \
        return text;
        WEFT_EP_DTYPE_TABLE(NAME_CASE)
#undef NAME_CASE
    }
    return "no type";
}

const char *wefti_ep_layout_name(weft_ep_layout layout)
{
    static const char *const names[] = {"rank-major", "expert-major", "slots by source", "slots by expert"};
    return (unsigned)layout < sizeof names / sizeof *names ? names[layout] : "no layout";
}

static weft_status check_shape(const weft_ep_rows *rows, size_t row_bytes_max, const char *call, const char *which)
{
    size_t element_bytes = wefti_ep_element_bytes(rows->dtype);
    if (element_bytes == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.dtype is %d; give a weft_ep_dtype", call, which,
                           (int)rows->dtype);
    }
    size_t row_bytes = rows->hidden > 0 ? (size_t)rows->hidden * element_bytes : 0;
    if (row_bytes == 0 || row_bytes % ROW_GRAIN != 0 || row_bytes > row_bytes_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.hidden is %d, rows of %zu bytes; give a multiple of %d bytes, at most %zu, the "
                           "group's row_bytes_max",
                           call, which, rows->hidden, row_bytes, ROW_GRAIN, row_bytes_max);
    }
    if (rows->dtype == WEFT_EP_BYTES && rows->hidden > OPAQUE_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.hidden is %d; rows of WEFT_EP_BYTES have at most %d bytes", call,
                           which, rows->hidden, OPAQUE_BYTES_MAX);
    }
    if (rows->stride_bytes != 0 && (rows->stride_bytes < row_bytes || rows->stride_bytes % ROW_GRAIN != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.stride_bytes is %zu; give 0, or a multiple of %d of at least the row's %zu", call,
                           which, rows->stride_bytes, ROW_GRAIN, row_bytes);
    }
    return WEFT_OK;
}

static weft_status check_scale_strides(const weft_ep_rows *rows, const char *call, const char *which)
{
    size_t row = rows->scale_row_stride;
    size_t word = rows->scale_word_stride;
    if ((row == 0) != (word == 0) || row > UINT32_MAX || word > UINT32_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.scale_row_stride is %zu and scale_word_stride %zu words; give both, or 0 and 0",
                           call, which, row, word);
    }
    return WEFT_OK;
}

/* Words lie apart when a row's all come before the next row's, or a word's of all rows before the next word's. */
static weft_status check_scales_apart(const weft_ep_rows *rows, int64_t count, const char *call, const char *which)
{
    size_t words = wefti_ep_scale_words(rows);
    size_t row = rows->scale_row_stride;
    size_t word = rows->scale_word_stride;
    if (row != 0 && count > 1 && row <= (words - 1) * word && word <= (uint64_t)(count - 1) * row) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "%s: %s.scale_row_stride is %zu and scale_word_stride %zu words, so that of %lld rows of %zu "
            "words some share a place; make one larger",
            call, which, row, word, (long long)count, words);
    }
    return WEFT_OK;
}

/* Rows of bytes with scales. */
static weft_status check_scale_bytes(const weft_ep_rows *rows, int scale_bytes_max, const char *call, const char *which)
{
    if (rows->scale_type != WEFT_EP_SCALE_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.scale_type is %d; rows of bytes have WEFT_EP_SCALE_BYTES, or WEFT_EP_SCALE_NONE and "
                           "no scales and strides of scales",
                           call, which, (int)rows->scale_type);
    }
    if (rows->scale_bytes < 4 || rows->scale_bytes % 4 != 0 || rows->scale_bytes > scale_bytes_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.scale_bytes is %d; give a multiple of 4, at most %d, the group's scale_bytes_max",
                           call, which, rows->scale_bytes, scale_bytes_max);
    }
    return WEFT_OK;
}

static weft_status check_scales(const weft_ep_rows *rows, int scale_bytes_max, const char *call, const char *which)
{
    int is_fp8 = rows->dtype == WEFT_EP_FP8_E4M3;
    int has_scales = rows->scales != NULL || rows->scale_type != WEFT_EP_SCALE_NONE || rows->scale_row_stride != 0 ||
                     rows->scale_word_stride != 0;
    if (!is_fp8 && !has_scales) {
        return WEFT_OK;
    }
    if (!is_fp8 && rows->dtype != WEFT_EP_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s has scales with rows of %s; only fp8 rows and WEFT_EP_BYTES have them", call, which,
                           wefti_ep_dtype_name(rows->dtype));
    }
    if (!is_fp8) {
        WEFT_TRY(check_scale_bytes(rows, scale_bytes_max, call, which));
    }
    if (is_fp8 && (rows->scale_type < WEFT_EP_SCALE_F32 || rows->scale_type > WEFT_EP_SCALE_UE8M0_32) &&
        rows->scale_type != WEFT_EP_SCALE_F32_POW2) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.scale_type is %d; fp8 rows need WEFT_EP_SCALE_F32, _F32_POW2, _UE8M0 or _UE8M0_32",
                           call, which, (int)rows->scale_type);
    }
    if ((uintptr_t)rows->scales % sizeof(uint32_t) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.scales is %p; give memory aligned to 4 bytes", call, which,
                           rows->scales);
    }
    return check_scale_strides(rows, call, which);
}

weft_status wefti_ep_rows_take(const weft_ep_rows **rows, weft_ep_rows *copy, const char *call, const char *which)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_rows, hidden, "WEFT_EP_ROWS_INIT");
    if (*rows == NULL) {
        return wefti_error_null(call, which);
    }
    WEFTI_SIZED_TRY(&form, call, which, *rows, copy);
    return WEFT_OK;
}

weft_status wefti_ep_choices_take(const weft_ep_choices **choices, weft_ep_choices *copy, const char *call)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_choices, ids, "WEFT_EP_CHOICES_INIT");
    WEFTI_SIZED_TRY(&form, call, "choices", *choices, copy);
    return WEFT_OK;
}

static weft_status check_rows(const weft_ep *ep, const weft_ep_rows *rows, size_t row_bytes_max, const char *call,
                              const char *which)
{
    WEFT_TRY(check_shape(rows, row_bytes_max, call, which));
    if ((uintptr_t)rows->data % ROW_GRAIN != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.data is %p; give memory aligned to %d bytes", call, which,
                           rows->data, ROW_GRAIN);
    }
    return check_scales(rows, wefti_ep_scale_bytes_most(ep), call, which);
}

weft_status wefti_ep_rows_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    return check_rows(ep, rows, wefti_ep_row_bytes_most(ep), call, which);
}

static weft_status check_sums(const weft_ep *ep, const weft_ep_rows *rows, size_t row_bytes_max, const char *call,
                              const char *which)
{
    WEFT_TRY(check_rows(ep, rows, row_bytes_max, call, which));
    if (rows->dtype == WEFT_EP_FP8_E4M3 || rows->dtype == WEFT_EP_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.dtype is %s, which cannot be added up; give a wider type", call,
                           which, rows->dtype == WEFT_EP_BYTES ? "WEFT_EP_BYTES" : "fp8");
    }
    return WEFT_OK;
}

weft_status wefti_ep_sums_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    return check_sums(ep, rows, wefti_ep_row_bytes_most(ep), call, which);
}

weft_status wefti_ep_combined_check(const weft_ep *ep, const weft_ep_rows *in, const weft_ep_rows *out,
                                    const char *call)
{
    size_t elements_max = wefti_ep_row_bytes_most(ep) / wefti_ep_element_bytes(in->dtype);
    WEFT_TRY(check_sums(ep, out, elements_max * wefti_ep_element_bytes(out->dtype), call, "out"));
    weft_ep_rows alike = *out;
    alike.dtype = in->dtype;
    return wefti_ep_rows_alike(in, &alike, call, "in", "out");
}

/* Whether a dispatch can make the one of the other. */
weft_status wefti_ep_rows_become(const weft_ep_rows *in, const weft_ep_rows *out, const char *call)
{
    if (out->dtype == WEFT_EP_FP8_E4M3 && out->hidden == in->hidden && in->dtype != WEFT_EP_BYTES &&
        (in->dtype != WEFT_EP_FP8_E4M3 || in->scale_type == out->scale_type)) {
        return WEFT_OK;
    }
    if (in->scale_type != out->scale_type && in->dtype == out->dtype) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: in.scale_type is %d and out.rows.scale_type %d; give the same", call,
                           (int)in->scale_type, (int)out->scale_type);
    }
    if (in->dtype == WEFT_EP_BYTES && out->dtype == WEFT_EP_BYTES &&
        wefti_ep_scale_words(in) != wefti_ep_scale_words(out)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: in.scale_bytes is %d and out.rows.scale_bytes %d; give the same",
                           call, in->scale_bytes, out->scale_bytes);
    }
    return wefti_ep_rows_alike(in, out, call, "in", "out.rows");
}

weft_status wefti_ep_rows_alike(const weft_ep_rows *in, const weft_ep_rows *out, const char *call, const char *in_name,
                                const char *out_name)
{
    if (out->dtype != in->dtype || out->hidden != in->hidden) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s has %d elements of dtype %d and %s %d of dtype %d; give the same",
                           call, in_name, in->hidden, (int)in->dtype, out_name, out->hidden, (int)out->dtype);
    }
    return WEFT_OK;
}

weft_status wefti_ep_rows_held(const weft_ep_rows *rows, int64_t count, const char *call, const char *which)
{
    if (count > 0 && rows->data == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.data is NULL with %lld rows", call, which, (long long)count);
    }
    int has_scales = rows->scale_type != WEFT_EP_SCALE_NONE;
    if (count > 0 && has_scales && rows->scales == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.scales is NULL with %lld rows of %s", call, which,
                           (long long)count, wefti_ep_dtype_name(rows->dtype));
    }
    return has_scales ? check_scales_apart(rows, count, call, which) : WEFT_OK;
}

/* The rows in the struct have a fixed size, whatever their header: the fields behind them stay where they are. */
weft_status wefti_ep_received_take(const weft_ep_received **out, weft_ep_received *copy, const char *call)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_received, rows_capacity, "WEFT_EP_RECEIVED_INIT");
    if (*out == NULL) {
        return wefti_error_null(call, "out");
    }
    WEFTI_SIZED_TRY(&form, call, "out", *out, copy);
    if ((*out)->rows.size != sizeof(weft_ep_rows)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: out.rows has a wrong size; start from WEFT_EP_ROWS_INIT", call);
    }
    return WEFT_OK;
}

weft_status wefti_ep_received_ids_check(const weft_ep_route *route, const weft_ep_received *out, const char *call)
{
    size_t bytes = out->expert_type == WEFT_EP_INT64 ? 8 : 4;
    if (out->expert_type != WEFT_EP_INT32 && out->expert_type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: out.expert_type is %d; give a weft_ep_id_type", call,
                           (int)out->expert_type);
    }
    if ((uintptr_t)out->experts % bytes != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: out.experts is at %p; align it to its elements of %zu bytes", call,
                           (void *)out->experts, bytes);
    }
    if ((out->experts_are_global & ~1) != 0 || (out->experts_are_global && wefti_ep_plan_is_by_rank(&route->plan))) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: out.experts_are_global is %d; give 0, or 1 without WEFT_EP_DESTINATIONS", call,
                           out->experts_are_global);
    }
    return WEFT_OK;
}

static weft_status check_destinations(const weft_ep_route *route, const weft_ep_choices *choices, const char *call)
{
    int given = (choices->destinations != NULL) + (choices->positions != NULL);
    if (!wefti_ep_plan_is_by_rank(&route->plan)) {
        return given == 0 ? WEFT_OK
                          : wefti_error(WEFT_ERR_ARGUMENT,
                                        "%s: %s is given, and the route's plan has no WEFT_EP_DESTINATIONS; give NULL",
                                        call, choices->destinations != NULL ? "destinations" : "positions");
    }
    if (choices->ids != NULL || given > 1 || (choices->tokens > 0 && given == 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: the route's plan has WEFT_EP_DESTINATIONS: give destinations or positions, and no ids",
                           call);
    }
    return WEFT_OK;
}

weft_status wefti_ep_choices_check(const weft_ep_route *route, const weft_ep_choices *choices, const char *call)
{
    int slots = wefti_ep_plan_is_slots(&route->plan);
    int tokens_max = slots ? route->plan.slot_tokens : wefti_ep_tokens_most(route->ep);
    if (choices->tokens < 0 || choices->tokens > tokens_max) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: tokens is %d; give 0 .. %d, the %s", call, choices->tokens,
                           tokens_max, slots ? "plan's slot_tokens" : "group's tokens_max");
    }
    if (choices->id_type != WEFT_EP_INT32 && choices->id_type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: id_type is %d; give a weft_ep_id_type", call, (int)choices->id_type);
    }
    WEFT_TRY(check_destinations(route, choices, call));
    if (choices->tokens > 0 && choices->ids == NULL && !wefti_ep_plan_is_by_rank(&route->plan)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: ids is NULL with %d tokens", call, choices->tokens);
    }
    if ((uintptr_t)choices->tokens_at % sizeof(int32_t) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: tokens_at is %p; give memory aligned to 4 bytes", call,
                           (const void *)choices->tokens_at);
    }
    return WEFT_OK;
}
