/* faces/shmem/setup.h: what init and finalize are made of. */
#ifndef WEFTI_SHMEM_SETUP_H
#define WEFTI_SHMEM_SETUP_H

#include "faces/shmem/face.h"

/* What the variables SHMEM_... and SMA_... say of the world. Ends the program where they say what cannot be. */
HIDDEN void wefti_shmem_environment(const char *call, weft_world_config *config);

/* What SHMEM_VERSION, SHMEM_INFO and SHMEM_DEBUG ask for. */
HIDDEN void wefti_shmem_print(void);

/* One finalize: a barrier, and the end of the world with the last. The caller has locked. */
HIDDEN void wefti_shmem_close(const char *call);

#endif
