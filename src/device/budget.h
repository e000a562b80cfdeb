/* device/budget.h: the seam to GPUs: claims of multiprocessors, for kernels that wait. Any thread. */
#ifndef WEFTI_DEVICE_BUDGET_H
#define WEFTI_DEVICE_BUDGET_H

#include "device/access.h"

typedef struct wefti_device_budget_ops {
    weft_status (*take)(wefti_device *device, int sms);
    /* Claim this PE's part of what is free, at most `most`; returns how many, 0 when none is free. */
    int (*take_quota)(wefti_device *device, int most);
    void (*give)(wefti_device *device, int sms);
    int (*count_free)(const wefti_device *device);
} wefti_device_budget_ops;

#endif
