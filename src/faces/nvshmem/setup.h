/* faces/nvshmem/setup.h: what init is made of. */
#ifndef WEFTI_NVSHMEM_SETUP_H
#define WEFTI_NVSHMEM_SETUP_H

#include "faces/nvshmem/face.h"

/* How the PEs of this init meet, as its attributes say it. */
typedef struct wefti_nv_meeting {
    weft_bootstrap_kind bootstrap;
    int pe;
    int pes; /* 0: the launcher knows both */
    weft_uid uid;
    void *mpi_comm;
    int device; /* the number of the GPU; -1: the current one */
} wefti_nv_meeting;

/* Read flags and attributes, and where they say nothing the environment. A status of NVSHMEM, told of by `call`. */
HIDDEN int wefti_nv_meeting_read(const char *call, unsigned flags, const nvshmemx_init_attr_t *attributes,
                                 wefti_nv_meeting *meeting);

/* The value of NVSHMEM_NAME; NULL when it is not set or empty. */
HIDDEN const char *wefti_nv_variable(const char *name);

/* Whether NVSHMEM_NAME is set and says yes. */
HIDDEN int wefti_nv_is_on(const char *name);

/* What the variables NVSHMEM_... say of the world. A status of NVSHMEM. */
HIDDEN int wefti_nv_environment(const char *call, weft_world_config *config);

/* What NVSHMEM_VERSION, NVSHMEM_INFO and NVSHMEM_DEBUG ask for, and one line for each variable that is not honoured. */
HIDDEN void wefti_nv_print(void);

#endif
