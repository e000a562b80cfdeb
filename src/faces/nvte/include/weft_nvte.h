/* weft_nvte.h: what TransformerEngine's calls of expert parallelism (transformer_engine/ep.h) have no names for:
 * whether the last one failed, and more groups than one. */
#ifndef WEFT_NVTE_H
#define WEFT_NVTE_H

#include "weft/status.h"
#include <transformer_engine/ep.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_nvte_group weft_nvte_group;

/* The status of the calling thread's last call of nvte_ep_* or of this header; WEFT_OK before the first. */
weft_status weft_nvte_status(void);

/* A further group of the communicator's device, as nvte_ep_initialize makes the default one. Collective over the
 * communicator. A device has at most 63 groups, the default one included. */
weft_status weft_nvte_group_create(void *ep_comm, const NVTEEpGroupConfig *config,
                                   weft_nvte_group **group) WEFT_MUST_CHECK;
/* End a group. Collective. Memory of its layers names no group from then on. NULL is allowed. */
weft_status weft_nvte_group_destroy(weft_nvte_group *group);
/* The group that this thread's nvte_ep_handle_mem_size is of, until it is destroyed; NULL: the default one. All other
 * calls take the group that their handle_mem names. */
weft_status weft_nvte_group_select(weft_nvte_group *group);

#ifdef __cplusplus
}
#endif
#endif
