/* weft_device.cuh: weft inside kernels. Includes all of the device API; see weft/device.h for the host's side.
 *
 *     __global__ void step(weft_dev dev, float *halo, const float *edge, uint64_t *ready, int right)
 *     {
 *         weft_dev_put_signal(weft_block(), dev, halo, edge, 4096, ready, 1, WEFT_SIGNAL_SET, right);
 *         if (weft_dev_signal_wait_until(weft_block(), dev, ready, WEFT_CMP_GE, 1) != WEFT_OK) {
 *             return; // latched: the host sees it in its next blocking call
 *         }
 *         ...
 *     }
 *
 * Header-only: nvcc or NVRTC, C++17, no relocatable device code, no library, no initialisation on the device. Calls
 * marked with a scope are made by all threads of it. sm_90 is the target; sm_80 and later compile. */
#ifndef WEFT_DEVICE_CUH
#define WEFT_DEVICE_CUH

#include "weft/device/dev.h"

#include "weft/device/address.cuh"
#include "weft/device/bulk.cuh"
#include "weft/device/coll.cuh"
#include "weft/device/reduce.cuh"
#include "weft/device/rma.cuh"
#include "weft/device/strided.cuh"
#include "weft/device/sync.cuh"
#include "weft/device/wait.cuh"

#endif
