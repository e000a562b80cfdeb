/* device/launch.h: the seam to GPUs: users' kernels whose blocks wait for one another. */
#ifndef WEFTI_DEVICE_LAUNCH_H
#define WEFTI_DEVICE_LAUNCH_H

#include "device/access.h"
#include "weft/stream.h"

typedef struct wefti_device_launch_ops {
    /* Blocks of a user's kernel that one multiprocessor runs at the same time, and the multiprocessors of the GPU. Any
     * thread. */
    weft_status (*occupancy)(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                             int *blocks_per_sm, int *sms);
    /* A cooperative launch of launch->blocks blocks. Any thread. */
    weft_status (*launch)(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                          void *const *arguments, weft_stream *stream);
} wefti_device_launch_ops;

#endif
