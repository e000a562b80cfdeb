/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include "weft/status.h"
#include "weft_ep.h"

/* What a group does by its size, or as variables say. */
typedef struct wefti_ep_settings {
    int counts_direct; /* counts of routings go to all ranks, else through the owners; the results are the same */
} wefti_ep_settings;

/* For a valid config of so many ranks, without variables. */
wefti_ep_settings wefti_ep_settings_by_size(int ranks, const weft_ep_config *config);
/* The same, and then what variables say. */
weft_status wefti_ep_settings_read(wefti_ep_settings *settings, int ranks, const weft_ep_config *config);

#endif
