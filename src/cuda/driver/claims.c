/* cuda/driver/claims.c: the table of claims of multiprocessors: a device's part of what its process may claim. */
#include "cuda/device.h"

static weft_status sms_take(wefti_device *device, int sms)
{
    return wefti_cuda_budget_take(&wefti_cuda_of(device)->budget, sms, "weft_device_sms_take");
}

static int sms_take_quota(wefti_device *device, int most)
{
    return wefti_cuda_budget_take_quota(&wefti_cuda_of(device)->budget, most);
}

static void sms_give(wefti_device *device, int sms)
{
    wefti_cuda_budget_give(&wefti_cuda_of(device)->budget, sms);
}

static int sms_free(const wefti_device *device)
{
    return wefti_cuda_budget_free(&wefti_cuda_of(device)->budget);
}

const wefti_device_budget_ops wefti_cuda_budget_table = {
    .take = sms_take,
    .take_quota = sms_take_quota,
    .give = sms_give,
    .count_free = sms_free,
};
