/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include "weft/status.h"

/* Whether counts of routings go directly to all ranks, else through the owners; the results are the same. */
int wefti_ep_counts_by_size(int ranks, int experts);
/* The same as WEFT_EP_COUNTS says; where it says nothing, by size. */
weft_status wefti_ep_counts_choose(int ranks, int experts, int *direct);

#endif
