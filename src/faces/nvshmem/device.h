/* faces/nvshmem/device.h: what kernels are told, for modules.c. */
#ifndef WEFTI_NVSHMEM_DEVICE_H
#define WEFTI_NVSHMEM_DEVICE_H

#include "faces/nvshmem/driver.h"
#include "faces/nvshmem/state.h"

/* The state of units and modules; abi is 0 without a device heap. */
extern HIDDEN weft_nvshmem_state wefti_nv_state;

/* Make the GPU's context current for some calls of the driver. 0: it is, and wefti_nv_device_leave ends that. */
HIDDEN int wefti_nv_device_enter(void);
HIDDEN void wefti_nv_device_leave(void);

/* Copy to memory of the device, and wait. */
HIDDEN weft_status wefti_nv_device_write(wefti_nv_address to, const void *from, size_t bytes);

/* Give the state to all units that have been loaded and do not have it; the caller has locked. */
HIDDEN void wefti_nv_units_fill(void);
/* Take it from them all, before the device heap ends. */
HIDDEN void wefti_nv_units_empty(void);

#endif
