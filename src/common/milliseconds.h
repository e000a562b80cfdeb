/* common/milliseconds.h: durations as variables of NCCL EP have them. */
#ifndef WEFTI_COMMON_MILLISECONDS_H
#define WEFTI_COMMON_MILLISECONDS_H

#include <stdint.h>

#include "base/durations.h"

/* A whole number of milliseconds, in ns. Returns 0 for what is none, or too large to count. */
static inline int wefti_milliseconds_parse(const char *text, uint64_t *ns)
{
    const uint64_t most = UINT64_MAX / WEFTI_MILLISECOND_NS;
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (number > (most - digit) / 10) {
            return 0;
        }
        number = 10 * number + digit;
    }
    if (at == text || *at != '\0') {
        return 0;
    }
    *ns = number * WEFTI_MILLISECOND_NS;
    return 1;
}

#endif
