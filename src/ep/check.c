#include "ep/check.h"

#include "base/error.h"

#define ROW_GRAIN 16 /* bytes */

size_t wefti_ep_element_bytes(weft_ep_dtype dtype)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return 4;
    case WEFT_EP_BF16:
    case WEFT_EP_F16:
        return 2;
    default:
        return 0;
    }
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

static weft_status check_shape(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    size_t element_bytes = wefti_ep_element_bytes(rows->dtype);
    if (element_bytes == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.dtype is %d; give a weft_ep_dtype", call, which,
                           (int)rows->dtype);
    }
    size_t row_bytes = rows->hidden > 0 ? (size_t)rows->hidden * element_bytes : 0;
    if (row_bytes == 0 || row_bytes % ROW_GRAIN != 0 || row_bytes > ep->config.row_bytes_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.hidden is %d, rows of %zu bytes; give a multiple of %d bytes, at most %zu, the "
                           "group's row_bytes_max",
                           call, which, rows->hidden, row_bytes, ROW_GRAIN, ep->config.row_bytes_max);
    }
    if (rows->stride_bytes != 0 && (rows->stride_bytes < row_bytes || rows->stride_bytes % ROW_GRAIN != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %s.stride_bytes is %zu; give 0, or a multiple of %d of at least the row's %zu", call,
                           which, rows->stride_bytes, ROW_GRAIN, row_bytes);
    }
    return WEFT_OK;
}

weft_status wefti_ep_rows_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    if (rows == NULL || rows->size != sizeof *rows) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s %s", call, which,
                           rows == NULL ? "is NULL" : "has a wrong size; start from WEFT_EP_ROWS_INIT");
    }
    WEFT_TRY(check_shape(ep, rows, call, which));
    if ((uintptr_t)rows->data % ROW_GRAIN != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s.data is %p; give memory aligned to %d bytes", call, which,
                           rows->data, ROW_GRAIN);
    }
    if (rows->scales != NULL || rows->scale_type != WEFT_EP_SCALE_NONE || rows->scale_row_stride != 0 ||
        rows->scale_word_stride != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s has scales, and dtype %d; only fp8 rows have scales", call, which,
                           (int)rows->dtype);
    }
    return WEFT_OK;
}

weft_status wefti_ep_sums_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which)
{
    return wefti_ep_rows_check(ep, rows, call, which);
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
    return WEFT_OK;
}

weft_status wefti_ep_choices_check(const weft_ep_route *route, const weft_ep_choices *choices, const char *call)
{
    int tokens_max = route->ep->config.tokens_max;
    if (choices->size != sizeof *choices) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the choices have a wrong size; start from WEFT_EP_CHOICES_INIT",
                           call);
    }
    if (choices->tokens < 0 || choices->tokens > tokens_max) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: tokens is %d; give 0 .. %d, the group's tokens_max", call,
                           choices->tokens, tokens_max);
    }
    if (choices->id_type != WEFT_EP_INT32 && choices->id_type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: id_type is %d; give a weft_ep_id_type", call, (int)choices->id_type);
    }
    if (choices->tokens > 0 && choices->ids == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: ids is NULL with %d tokens", call, choices->tokens);
    }
    if (choices->tokens_at != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: tokens_at is not NULL; give the number in tokens", call);
    }
    return WEFT_OK;
}
