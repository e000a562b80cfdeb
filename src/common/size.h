/* common/size.h: sizes as variables of OpenSHMEM and NVSHMEM have them. */
#ifndef WEFTI_COMMON_SIZE_H
#define WEFTI_COMMON_SIZE_H

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The factor of a suffix, of which the first letter counts and no other is looked at; 0 for what is none. */
static inline double wefti_size_factor(const char *suffix)
{
    static const char letters[] = "kmgt";
    if (suffix[0] == 0) {
        return 1;
    }
    const char *letter = strchr(letters, tolower((unsigned char)suffix[0]));
    return letter == NULL ? 0 : ldexp(1, 10 * ((int)(letter - letters) + 1));
}

/* A positive number of bytes, up to 2^56, with k, m, g or t behind it or nothing. Returns 0 for what is none. */
static inline int wefti_size_parse(const char *text, uint64_t *size)
{
    char *end;
    const double number = strtod(text, &end);
    const double bytes = ceil(number * wefti_size_factor(end));
    if (end == text || !isdigit((unsigned char)text[text[0] == '.']) || !(bytes > 0) || bytes > ldexp(1, 56)) {
        return 0;
    }
    *size = (uint64_t)bytes;
    return 1;
}

#endif
