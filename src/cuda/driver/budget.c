#include "cuda/driver/budget.h"

static struct {
    int pes;
    int taken;
    int guests;
} devices[WEFTI_CUDA_DEVICES_MAX]; /* atomic, all */

weft_status wefti_cuda_budget_join(wefti_cuda_budget *budget, int device, int sms, int *pes)
{
    if (device < 0 || device >= WEFTI_CUDA_DEVICES_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_device_attach: GPU %d; this library counts the multiprocessors of GPUs "
                           "0 to %d",
                           device, WEFTI_CUDA_DEVICES_MAX - 1);
    }
    *budget = (wefti_cuda_budget){.device = device, .sms = sms, .is_joined = 1};
    *pes = __atomic_add_fetch(&devices[device].pes, 1, __ATOMIC_RELAXED);
    return WEFT_OK;
}

void wefti_cuda_budget_leave(wefti_cuda_budget *budget)
{
    if (budget->is_joined) {
        wefti_cuda_budget_give(budget, budget->sms);
        while (budget->guests > 0) {
            wefti_cuda_budget_remove_guest(budget);
        }
        __atomic_fetch_sub(&devices[budget->device].pes, 1, __ATOMIC_RELAXED);
        budget->is_joined = 0;
    }
}

int wefti_cuda_budget_free(const wefti_cuda_budget *budget)
{
    return budget->sms - __atomic_load_n(&devices[budget->device].taken, __ATOMIC_RELAXED);
}

/* Returns the sum before, of which the claim is a part if it fits. */
static int try_take(wefti_cuda_budget *budget, int sms)
{
    int *all = &devices[budget->device].taken;
    int taken = __atomic_load_n(all, __ATOMIC_RELAXED);
    while (sms <= budget->sms - taken &&
           !__atomic_compare_exchange_n(all, &taken, taken + sms, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (sms <= budget->sms - taken) {
        __atomic_fetch_add(&budget->claimed, sms, __ATOMIC_RELAXED);
    }
    return taken;
}

weft_status wefti_cuda_budget_take(wefti_cuda_budget *budget, int sms, const char *call)
{
    const int taken = try_take(budget, sms);
    if (sms > budget->sms - taken) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: %d multiprocessors for a waiting kernel, but %d of the device's %d are "
                           "claimed by others that may wait for it; use fewer blocks or wait for those to end",
                           call, sms, taken, budget->sms);
    }
    return WEFT_OK;
}

int wefti_cuda_budget_take_part(wefti_cuda_budget *budget, int most)
{
    for (;;) {
        const int unclaimed = wefti_cuda_budget_free(budget);
        const int pes = __atomic_load_n(&devices[budget->device].pes, __ATOMIC_RELAXED);
        const int part = unclaimed / (2 * pes);
        const int sms = part > most ? most : part > 1 ? part : unclaimed > 0 ? 1 : 0;
        if (sms == 0 || sms <= budget->sms - try_take(budget, sms)) {
            return sms;
        }
    }
}

void wefti_cuda_budget_give(wefti_cuda_budget *budget, int sms)
{
    int claimed = __atomic_load_n(&budget->claimed, __ATOMIC_RELAXED);
    int given;
    do {
        given = sms < claimed ? sms : claimed;
    } while (!__atomic_compare_exchange_n(&budget->claimed, &claimed, claimed - given, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_fetch_sub(&devices[budget->device].taken, given, __ATOMIC_RELAXED);
}

void wefti_cuda_budget_add_guest(wefti_cuda_budget *budget)
{
    __atomic_fetch_add(&budget->guests, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&devices[budget->device].guests, 1, __ATOMIC_RELAXED);
}

void wefti_cuda_budget_remove_guest(wefti_cuda_budget *budget)
{
    if (budget->guests > 0) {
        __atomic_fetch_sub(&budget->guests, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&devices[budget->device].guests, 1, __ATOMIC_RELAXED);
    }
}

int wefti_cuda_budget_share(const wefti_cuda_budget *budget)
{
    const int guests = __atomic_load_n(&devices[budget->device].guests, __ATOMIC_RELAXED);
    const int most = budget->sms - budget->sms / 4;
    const int left = wefti_cuda_budget_free(budget);
    return (left < most ? left : most) / (guests > 1 ? guests : 1);
}
