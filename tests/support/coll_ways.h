/* support/coll_ways.h: values of WEFT_COLL that put an algorithm of each collective first, whichever there are. */
#ifndef SUPPORT_COLL_WAYS_H
#define SUPPORT_COLL_WAYS_H

#include <stdio.h>

#include "world/tuning.h"

enum { COLL_WAYS_BYTES = 512 };

/* Add the algorithm at `place` among the rules of a collective to the text. Returns whether it has so many. */
static inline int coll_ways_add(char *text, size_t *length, wefti_collective collective, int place)
{
    static const char *const collectives[] = {
#define NAME(id, name) name,
        WEFTI_COLLECTIVE_TABLE(NAME)
#undef NAME
    };
    const wefti_algorithm algorithm = wefti_algorithm_of(collective, place);
    if (algorithm == WEFTI_ALGORITHMS) {
        return 0;
    }
    *length += (size_t)snprintf(text + *length, COLL_WAYS_BYTES - *length, "%s:%s,", collectives[collective],
                                wefti_algorithm_name(algorithm));
    return 1;
}

#endif
