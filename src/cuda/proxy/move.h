/* cuda/proxy/move.h: what a kernel of the library's asks the proxy to move between host heaps: more than a request
 * carries, from where it lies in this PE's heap. Host and kernels. The request's place is where it goes; its data is
 * this. The signal is set once all of it is there. Moves may take effect in any order. */
#ifndef WEFTI_CUDA_PROXY_MOVE_H
#define WEFTI_CUDA_PROXY_MOVE_H

#include "weft/device/dev.h"

#define WEFTI_DEV_REQUEST_MOVE (WEFTI_DEV_REQUEST_SIGNAL + 1)

typedef struct wefti_dev_move {
    wefti_u64 from; /* offset in this PE's host heap */
    wefti_u64 bytes;
    wefti_u64 signal; /* offset in the other's */
    wefti_u64 value;
} wefti_dev_move;

#endif
