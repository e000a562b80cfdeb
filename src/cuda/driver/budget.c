#include "cuda/driver/budget.h"

#include <string.h>

#include "base/log.h"
#include "cuda/driver/process_lock.h"
#include "os/os.h"

/* What a process counts of a GPU: its PEs, the multiprocessors (SMs) that it claims, its guests (budget.h), and how
 * many SMs there are. In its row of the table that the processes of a GPU share, or, alone, in `alone`. */
typedef enum number { PES, TAKEN, GUESTS, ALL_SMS } number;

static struct device {
    int holder; /* the process of which a thread holds the lock; atomic */
    int owner; /* the process that counted these: in a forked copy they mean nothing */
    int pes; /* of the process that use the GPU */
    int alone[WEFTI_OS_ROW_NUMBERS]; /* where no table is shared */
    wefti_os_rows rows;
} devices[WEFTI_CUDA_DEVICES_MAX];

/* Sums over one or all processes. */
typedef struct totals {
    int sms;
    int pes;
    int taken;
    int guests;
} totals;

/* ---- numbers ---- */

static int is_shared(const struct device *device)
{
    return device->rows.table != NULL;
}

static int *own_row(struct device *device)
{
    return is_shared(device) ? device->rows.table->row[device->rows.own] : device->alone;
}

static int *number_of(const wefti_cuda_budget *budget, number which)
{
    return &own_row(&devices[budget->device])[which];
}

static void add(const wefti_cuda_budget *budget, number which, int count)
{
    __atomic_fetch_add(number_of(budget, which), count, __ATOMIC_SEQ_CST);
}

static void add_row(totals *sums, const int *row)
{
    const int all_sms = __atomic_load_n(&row[ALL_SMS], __ATOMIC_RELAXED);
    sums->sms = all_sms > sums->sms ? all_sms : sums->sms;
    sums->pes += __atomic_load_n(&row[PES], __ATOMIC_RELAXED);
    sums->taken += __atomic_load_n(&row[TAKEN], __ATOMIC_SEQ_CST);
    sums->guests += __atomic_load_n(&row[GUESTS], __ATOMIC_RELAXED);
}

static totals own_sums(const wefti_cuda_budget *budget)
{
    totals own = {0};
    add_row(&own, own_row(&devices[budget->device]));
    own.sms = budget->sms;
    return own;
}

/* The sums over all processes of the GPU; where no table is shared, over this one. */
static totals all_sums(const wefti_cuda_budget *budget)
{
    const struct device *device = &devices[budget->device];
    if (!is_shared(device)) {
        return own_sums(budget);
    }
    totals all = {0};
    for (int i = 0; i < WEFTI_OS_ROWS_MAX; i++) {
        add_row(&all, device->rows.table->row[i]);
    }
    return all;
}

static void clear_dead(struct device *device)
{
    if (is_shared(device)) {
        wefti_os_rows_clear_dead(&device->rows);
    }
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

static int quota_of(const totals *sums)
{
    return (sums->sms - sums->taken) / (2 * sums->pes);
}

static int share_of(const totals *sums)
{
    const int most = sums->sms - sums->sms / 4;
    return lesser(sums->sms - sums->taken, most) / (sums->guests > 1 ? sums->guests : 1);
}

/* ---- one change at a time ---- */

/* For a claim. Returns 0 when another process has stopped where it makes one. */
static int lock(struct device *device)
{
    wefti_cuda_process_lock(&device->holder);
    if (!is_shared(device) || wefti_os_rows_lock(&device->rows)) {
        return 1;
    }
    wefti_cuda_process_unlock(&device->holder);
    return 0;
}

static void unlock(struct device *device)
{
    if (is_shared(device)) {
        wefti_os_rows_unlock(&device->rows);
    }
    wefti_cuda_process_unlock(&device->holder);
}

/* ---- joining and leaving ---- */

static void open_device(struct device *device, const wefti_cuda_gpu *gpu)
{
    wefti_error_expect(1);
    if (gpu->name != NULL && wefti_os_rows_open(&device->rows, gpu->name) != WEFT_OK) {
        wefti_log(WEFTI_LOG_WARN,
                  "claims of multiprocessors of GPU %d are counted by this process alone, though others may run on it "
                  "at the same time (MPS): %s",
                  gpu->device, wefti_thread_text());
    }
    wefti_error_expect(0);
    own_row(device)[ALL_SMS] = gpu->all_sms;
}

static void close_device(struct device *device)
{
    wefti_os_rows_close(&device->rows);
    memset(device->alone, 0, sizeof device->alone);
}

weft_status wefti_cuda_budget_join(wefti_cuda_budget *budget, const wefti_cuda_gpu *gpu, int *pes)
{
    if (gpu->device < 0 || gpu->device >= WEFTI_CUDA_DEVICES_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_device_attach: GPU %d; this library counts the multiprocessors of GPUs "
                           "0 to %d",
                           gpu->device, WEFTI_CUDA_DEVICES_MAX - 1);
    }
    struct device *device = &devices[gpu->device];
    *budget = (wefti_cuda_budget){.device = gpu->device, .sms = gpu->sms, .is_joined = 1};
    wefti_cuda_process_lock(&device->holder);
    if (device->pes > 0 && device->owner != wefti_os_owner_number()) {
        wefti_os_rows_forget(&device->rows);
        memset(device->alone, 0, sizeof device->alone);
        device->pes = 0;
    }
    if (device->pes == 0) {
        device->owner = wefti_os_owner_number();
        open_device(device, gpu);
    }
    *pes = ++device->pes;
    add(budget, PES, 1);
    clear_dead(device);
    wefti_cuda_process_unlock(&device->holder);
    return WEFT_OK;
}

void wefti_cuda_budget_leave(wefti_cuda_budget *budget)
{
    if (!budget->is_joined) {
        return;
    }
    struct device *device = &devices[budget->device];
    wefti_cuda_budget_give(budget, budget->sms);
    while (budget->guests > 0) {
        wefti_cuda_budget_remove_guest(budget);
    }
    wefti_cuda_process_lock(&device->holder);
    add(budget, PES, -1);
    if (--device->pes == 0) {
        close_device(device);
    }
    wefti_cuda_process_unlock(&device->holder);
    budget->is_joined = 0;
}

/* ---- claims ---- */

int wefti_cuda_budget_free(const wefti_cuda_budget *budget)
{
    const totals own = own_sums(budget);
    const totals all = all_sums(budget);
    return lesser(own.sms - own.taken, all.sms - all.taken);
}

static void claim(wefti_cuda_budget *budget, int sms)
{
    add(budget, TAKEN, sms);
    __atomic_fetch_add(&budget->claimed, sms, __ATOMIC_RELAXED);
}

static weft_status refuse_claim(const wefti_cuda_budget *budget, int sms, const char *call)
{
    return wefti_error(WEFT_ERR_STATE,
                       "%s: %d multiprocessors for a waiting kernel, but %d of the device's %d are "
                       "claimed by others that may wait for it; use fewer blocks or wait for those to end",
                       call, sms, budget->sms - wefti_cuda_budget_free(budget), budget->sms);
}

weft_status wefti_cuda_budget_take(wefti_cuda_budget *budget, int sms, const char *call)
{
    struct device *device = &devices[budget->device];
    if (!lock(device)) {
        return wefti_error(WEFT_ERR_TIMEOUT,
                           "%s: another process of this user, which shares GPU %d, has stopped while it claimed "
                           "multiprocessors; let it go on or end it",
                           call, budget->device);
    }
    if (sms > wefti_cuda_budget_free(budget)) {
        clear_dead(device);
    }
    const int is_free = sms <= wefti_cuda_budget_free(budget);
    if (is_free) {
        claim(budget, sms);
    }
    unlock(device);
    return is_free ? WEFT_OK : refuse_claim(budget, sms, call);
}

int wefti_cuda_budget_take_quota(wefti_cuda_budget *budget, int most)
{
    struct device *device = &devices[budget->device];
    if (!lock(device)) {
        return 0;
    }
    const totals own = own_sums(budget);
    const totals all = all_sums(budget);
    const int quota = lesser(quota_of(&own), quota_of(&all));
    const int sms = quota > 1 ? lesser(quota, most) : lesser(wefti_cuda_budget_free(budget) > 0, most);
    claim(budget, sms);
    unlock(device);
    return sms;
}

void wefti_cuda_budget_give(wefti_cuda_budget *budget, int sms)
{
    int claimed = __atomic_load_n(&budget->claimed, __ATOMIC_RELAXED);
    int given;
    do {
        given = lesser(sms, claimed);
    } while (!__atomic_compare_exchange_n(&budget->claimed, &claimed, claimed - given, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    add(budget, TAKEN, -given);
}

void wefti_cuda_budget_add_guest(wefti_cuda_budget *budget)
{
    __atomic_fetch_add(&budget->guests, 1, __ATOMIC_RELAXED);
    add(budget, GUESTS, 1);
}

void wefti_cuda_budget_remove_guest(wefti_cuda_budget *budget)
{
    if (budget->guests > 0) {
        __atomic_fetch_sub(&budget->guests, 1, __ATOMIC_RELAXED);
        add(budget, GUESTS, -1);
    }
}

int wefti_cuda_budget_share(const wefti_cuda_budget *budget)
{
    const totals own = own_sums(budget);
    const totals all = all_sums(budget);
    const int share = lesser(share_of(&own), share_of(&all));
    return share > 0 ? share : 0;
}
