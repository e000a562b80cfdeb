/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include <stdint.h>

#include "weft/status.h"
#include "weft_ep.h"

/* What a group does by its size, or as variables say. */
typedef struct wefti_ep_settings {
    int counts_direct; /* counts of routings go to all ranks, else through the owners; the results are the same */
    /* on GPUs, by variables alone: */
    uint64_t few_ranks; /* the most ranks for which the kernels for few are taken */
    uint64_t first_call; /* calls that count as made */
    uint64_t channels; /* rings between two ranks of different domains */
    uint64_t chunk_rows; /* of these rings; 0: up to 4 */
    uint64_t direct; /* tokens in slots, times ranks of the largest domain, that go directly between domains */
    uint64_t maps; /* not 0: rings of this host are stored to by kernels */
} wefti_ep_settings;

/* For a valid config of so many ranks: by its size, unless variables say otherwise. */
weft_status wefti_ep_settings_read(wefti_ep_settings *settings, int ranks, const weft_ep_config *config);

#endif
