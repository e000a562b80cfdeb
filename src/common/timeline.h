/* common/timeline.h: spans of time for WEFT_TRACE, the timeline of what a PE does, and WEFT_NVTX, the same for
 * NVIDIA's tools. For all layers above a world.
 *
 * A world that is not traced costs a span one test. Names are static text. Spans of one thread nest. */
#ifndef WEFTI_COMMON_TIMELINE_H
#define WEFTI_COMMON_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/world.h"

typedef struct wefti_span {
    weft_world *world; /* NULL: not traced */
    const char *name;
    uint64_t start_ns;
    uint64_t range; /* of NVTX */
} wefti_span;

/* What a span says beside its name and times. */
typedef struct wefti_span_details {
    int members; /* of the team; 0: not said */
    size_t bytes; /* as the call's arguments count them; SIZE_MAX: not said */
    weft_status status;
} wefti_span_details;

/* Begin a span of this thread. Any thread. */
wefti_span wefti_span_begin(weft_world *world, const char *name);
/* End it; a failure is also written to the file at once. */
void wefti_span_end(const wefti_span *span, wefti_span_details details);
/* The same without details, between two parts of a call: end one, begin the next. */
void wefti_span_next(wefti_span *span, const char *name);

/* A span of the rest of the block, without details. */
static inline void wefti_span_leave(const wefti_span *span)
{
    if (span->world != NULL) {
        wefti_span_end(span, (wefti_span_details){.bytes = SIZE_MAX});
    }
}
#define WEFTI_SPAN_OF_BLOCK(world, name)                                                                               \
    __attribute__((cleanup(wefti_span_leave))) const wefti_span span_of_block = wefti_span_begin(world, name)

#endif
