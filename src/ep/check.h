/* ep/check.h: what can be said of a caller's arguments without a backend. `call` begins the error's text. */
#ifndef WEFTI_EP_CHECK_H
#define WEFTI_EP_CHECK_H

#include "ep/route.h"

/* The remedy where ranks have made different calls. */
#define WEFTI_EP_SAME_CALLS "ranks must make the same calls in the same order"

/* The bytes of an element; 0 when `dtype` is no type. */
size_t wefti_ep_element_bytes(weft_ep_dtype dtype);

/* The words of scales of a row, 0: it has none. Of rows that have been checked. */
size_t wefti_ep_scale_words(const weft_ep_rows *rows);

/* Of rows that become fp8: whether their scales are powers of two, and whether those are kept as bytes. */
static inline int wefti_ep_rounds_scales_up(weft_ep_scale_type type)
{
    return type != WEFT_EP_SCALE_F32;
}

static inline int wefti_ep_has_byte_scales(weft_ep_scale_type type)
{
    return type == WEFT_EP_SCALE_UE8M0 || type == WEFT_EP_SCALE_UE8M0_32;
}

/* What signatures say of a row's width, less than 2^31: H; of WEFT_EP_BYTES with the bytes of its scales. And what it
 * says. */
unsigned wefti_ep_width(const weft_ep_rows *rows);
unsigned wefti_ep_width_hidden(weft_ep_dtype dtype, unsigned width);
unsigned wefti_ep_width_scale_bytes(weft_ep_dtype dtype, unsigned width);

/* The name of a type, as static text. */
const char *wefti_ep_dtype_name(weft_ep_dtype dtype);
const char *wefti_ep_layout_name(weft_ep_layout layout);

/* Read the caller's rows, of another version's header too (base/sized.h). WEFT_ERR_ARGUMENT also for *rows == NULL. */
weft_status wefti_ep_rows_take(const weft_ep_rows **rows, weft_ep_rows *copy, const char *call, const char *which);

/* Read the caller's choices likewise. */
weft_status wefti_ep_choices_take(const weft_ep_choices **choices, weft_ep_choices *copy, const char *call);

/* Check rows that have been read: type, width, strides and alignment; `which` names them. */
weft_status wefti_ep_rows_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which);

/* The same, and that their type can be added up. */
weft_status wefti_ep_sums_check(const weft_ep *ep, const weft_ep_rows *rows, const char *call, const char *which);

/* Check a combine's `out`, after `in`: it has in's width, and a type to which sums can be rounded. */
weft_status wefti_ep_combined_check(const weft_ep *ep, const weft_ep_rows *in, const weft_ep_rows *out,
                                    const char *call);

/* Whether two rows are of one type and width. */
weft_status wefti_ep_rows_alike(const weft_ep_rows *in, const weft_ep_rows *out, const char *call, const char *in_name,
                                const char *out_name);

/* Whether a dispatch can send `in` as `out`: alike, fp8 with scales of one type, or quantised to fp8. */
weft_status wefti_ep_rows_become(const weft_ep_rows *in, const weft_ep_rows *out, const char *call);

/* Check, after the above, that there is memory for `count` rows, and that none shares scales. */
weft_status wefti_ep_rows_held(const weft_ep_rows *rows, int64_t count, const char *call, const char *which);

/* Read the caller's arrays of what is received likewise; and check how received ids are to be given: their type,
 * whether they are global, and their alignment. */
weft_status wefti_ep_received_take(const weft_ep_received **out, weft_ep_received *copy, const char *call);
weft_status wefti_ep_received_ids_check(const weft_ep_route *route, const weft_ep_received *out, const char *call);

weft_status wefti_ep_choices_check(const weft_ep_route *route, const weft_ep_choices *choices, const char *call);

#endif
