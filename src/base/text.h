/* base/text.h: a text that is put together of parts. */
#ifndef WEFTI_BASE_TEXT_H
#define WEFTI_BASE_TEXT_H

#include <stddef.h>

#include "weft/status.h"

/* In memory of the caller's, `size` bytes; `used` of them without the zero behind it. What does not fit is cut off. */
typedef struct wefti_text {
    char *bytes;
    size_t size;
    size_t used;
} wefti_text;

void wefti_text_append(wefti_text *to, const char *format, ...) WEFT_PRINTF(2, 3);

#endif
