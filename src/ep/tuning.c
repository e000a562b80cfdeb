#include "ep/tuning.h"

#include <stdint.h>

/* Counts through the owners cost a hop more; directly, each rank reads R (R + E) words, which beyond so many takes
 * longer than the hop. */
#define DIRECT_WORDS_MAX 4096

int wefti_ep_counts_are_direct(wefti_ep_counts_way way, int ranks, int experts)
{
    return way == WEFTI_EP_COUNTS_BY_SIZE ? (int64_t)ranks * (ranks + experts) <= DIRECT_WORDS_MAX
                                          : way == WEFTI_EP_COUNTS_DIRECT;
}
