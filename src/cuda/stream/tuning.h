/* cuda/stream/tuning.h: which way a collective on a stream takes, and with how many blocks: a function of what is equal
 * on all members. */
#ifndef WEFTI_CUDA_TUNING_H
#define WEFTI_CUDA_TUNING_H

#include "device/device.h"

typedef struct wefti_cuda_choice {
    /* A wefti_way; of a team with far members a wefti_wide_kind of weft/device/wide.cuh, or WEFTI_CUDA_WIDE_REDUCE. */
    int way;
    int blocks;
} wefti_cuda_choice;

wefti_cuda_choice wefti_cuda_choose(const weft_dev_team *team, const wefti_device_coll *coll);
/* The choice for a team with far members. */
wefti_cuda_choice wefti_cuda_choose_wide(const weft_dev_team *team, const wefti_device_coll *coll);

#endif
