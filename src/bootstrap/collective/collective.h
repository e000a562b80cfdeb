/* bootstrap/collective/collective.h: processes that have an allgather of somebody else's (MPI, OpenSHMEM, a plugin):
 * by it they compare what they say they are, and get PE 0's unique id, with which they meet (bootstrap/uid). */
#ifndef WEFTI_BOOTSTRAP_COLLECTIVE_COLLECTIVE_H
#define WEFTI_BOOTSTRAP_COLLECTIVE_COLLECTIVE_H

#include "bootstrap/bootstrap.h"

typedef struct wefti_collective {
    const char *name; /* what error texts call the allgather */
    int pe; /* this process's place */
    int pes;
    void *context;
    /* As weft_callback_ops.allgather: 0 on success. It cannot be interrupted. */
    int (*allgather)(void *context, const void *mine, void *all, size_t bytes);
} wefti_collective;

/* What an `open` of wefti_bootstrap_ops does. It is called once, and not afterwards. */
weft_status wefti_collective_open(const wefti_collective *collective, const weft_world_config *config,
                                  wefti_bootstrap *bootstrap);

#endif
