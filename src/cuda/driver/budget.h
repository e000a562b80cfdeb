/* cuda/driver/budget.h: how many multiprocessors of a GPU are claimed for kernels that wait for others.
 *
 * Kernels that wait for each other must run at the same time, whichever world and PE launched them: so the sum is the
 * process's, a GPU at a time; and, where processes run on a GPU at the same time (MPS), that of all of them. Without
 * MPS processes take turns, and each has the whole GPU in its turn. No world owns these sums.
 * Any thread. */
#ifndef WEFTI_CUDA_BUDGET_H
#define WEFTI_CUDA_BUDGET_H

#include "base/error.h"

#define WEFTI_CUDA_DEVICES_MAX 64

/* The GPU, as this process sees it. */
typedef struct wefti_cuda_gpu {
    int device; /* its CUdevice */
    int sms; /* that this process may use */
    int all_sms; /* of the GPU; more than sms where CUDA_MPS_ACTIVE_THREAD_PERCENTAGE divides it */
    const char *name; /* equal in all processes that run on it at the same time; NULL: none but this one does */
} wefti_cuda_gpu;

/* One PE's part in the budget of its GPU. */
typedef struct wefti_cuda_budget {
    int device; /* its CUdevice */
    int sms; /* that the process may use */
    int claimed; /* by this PE and not yet given back; atomic */
    int is_joined;
    int guests; /* how many guests (below) this PE has; atomic */
} wefti_cuda_budget;

/* Count a PE among those of its GPU: *pes is how many there are now in this process. */
weft_status wefti_cuda_budget_join(wefti_cuda_budget *budget, const wefti_cuda_gpu *gpu, int *pes);
/* Give back all that is left, and leave; nothing if never joined. */
void wefti_cuda_budget_leave(wefti_cuda_budget *budget);

/* Claim `sms` multiprocessors for `call`; WEFT_ERR_STATE when fewer are free. */
weft_status wefti_cuda_budget_take(wefti_cuda_budget *budget, int sms, const char *call);
/* Claim at most `most`, and at most this PE's equal part of half of what is free, so that other PEs and the next claim
 * find some too; at least one if any is free. Returns how many. */
int wefti_cuda_budget_take_quota(wefti_cuda_budget *budget, int most);
/* Give back; of more than this PE has claimed, what it has. */
void wefti_cuda_budget_give(wefti_cuda_budget *budget, int sms);
int wefti_cuda_budget_free(const wefti_cuda_budget *budget);

/* Guests claim nothing: each has an equal share of what nobody has claimed when it launches. All guests together have
 * at most three quarters of the GPU: the rest is for kernels of other libraries that wait for their peers, too. If an
 * all_reduce of NCCL's and a guest's kernel filled two GPUs in opposite orders, neither would end. */
void wefti_cuda_budget_add_guest(wefti_cuda_budget *budget);
void wefti_cuda_budget_remove_guest(wefti_cuda_budget *budget); /* nothing if this PE has none */
/* The multiprocessors of one guest; 0 when there are no guests. */
int wefti_cuda_budget_share(const wefti_cuda_budget *budget);

#endif
