/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include "common/attachment.h"

/* Whether counts go directly to all ranks, else through the owners: as the world was told, else by the table. The
 * results are the same. */
int wefti_ep_counts_are_direct(wefti_ep_counts_way way, int ranks, int experts);

#endif
