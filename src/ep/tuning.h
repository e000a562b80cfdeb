/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include "weft/status.h"

/* Whether counts go directly to all ranks, else through the owners: by the table, or as WEFT_EP_COUNTS says (owners,
 * direct; else WEFT_ERR_ARGUMENT). The results are the same. */
weft_status wefti_ep_counts_are_direct(int ranks, int experts, int *direct);

#endif
