/* faces/nvshmem/pages.h: pages of registered host memory, which are locked so that kernels reach them. */
#ifndef WEFTI_NVSHMEM_PAGES_H
#define WEFTI_NVSHMEM_PAGES_H

#include "faces/nvshmem/face.h"

/* Lock the pages of these bytes, those not locked yet; each call wants one wefti_nv_pages_unlock. The caller has
 * locked, and there is a GPU. Memory that CUDA knows stays as it is. 0, or CUDA's error, and then nothing is locked. */
HIDDEN int wefti_nv_pages_lock(const void *address, size_t bytes);
HIDDEN void wefti_nv_pages_unlock(const void *address, size_t bytes);

#endif
