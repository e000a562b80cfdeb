/* ep/combining.h: what a combine does beside adding up rows: weft_ep_combine_options that have been checked. */
#ifndef WEFTI_EP_COMBINING_H
#define WEFTI_EP_COMBINING_H

#include "weft/protocol/ep_layout.h"
#include "weft_ep.h"

typedef struct wefti_ep_combining {
    unsigned flags; /* WEFT_EP_WEIGHTED or 0 */
    const float *weights; /* [T][K] or NULL: the route's */
    const void *ids; /* [T][K] or NULL: all choices take part */
    int ids_are_wide;
    int biases;
    weft_ep_rows bias[2];
    const float *values_in; /* by source [N][K], by expert [N]; or NULL, both */
    float *values_out; /* [T][K] */
} wefti_ep_combining;

/* Weights or choices of the call's own. */
static inline int wefti_ep_combining_has_choices(const wefti_ep_combining *combining)
{
    return combining->weights != NULL || combining->ids != NULL;
}

/* The flags of the call's signature. Biases are not compared. */
static inline unsigned wefti_ep_combining_signature_flags(const wefti_ep_combining *combining)
{
    return combining->flags | (combining->weights != NULL ? WEFTI_EP_OWN_WEIGHTS : 0) |
           (combining->ids != NULL ? WEFTI_EP_OWN_IDS : 0) | (combining->values_in != NULL ? WEFTI_EP_VALUES : 0);
}

/* Whether the choice at `at` of [T][K] takes part. */
static inline int wefti_ep_combining_takes(const wefti_ep_combining *combining, size_t at)
{
    return combining->ids == NULL || (combining->ids_are_wide ? ((const int64_t *)combining->ids)[at] != -1
                                                              : ((const int32_t *)combining->ids)[at] != -1);
}

#endif
