/* faces/nccl_ep/face.h: what the files of the NCCL EP face share. */
#ifndef WEFTI_FACES_NCCL_EP_FACE_H
#define WEFTI_FACES_NCCL_EP_FACE_H

#include <nccl_ep.h>
#include <pthread.h>
#include <stdint.h>

#include "weft.h"
#include "weft_ep.h"

#define NEP_DIMS_MAX 16 /* of a tensor */
#define TOPK_DEFAULT 64
#define TOPK_DEFAULT_WORST 16 /* where rows of the worst case are to be held */
#define TIMEOUT_DEFAULT_NS 100000000000u

/* ---- results.c ---- */

/* Decide an error: its text becomes weft_last_error's. Returns `result`. */
ncclResult_t nep_fail(ncclResult_t result, const char *format, ...) WEFT_PRINTF(2, 3);

/* The status that stands for a result. */
weft_status nep_status_of(ncclResult_t result);

/* What a status of weft is here; the text is weft's. */
ncclResult_t nep_result_of(weft_status status);

#define NEP_TRY(call)                                                                                                  \
    do {                                                                                                               \
        ncclResult_t nep_try_result = (call);                                                                          \
        if (nep_try_result != ncclSuccess) {                                                                           \
            return nep_try_result;                                                                                     \
        }                                                                                                              \
    } while (0)

/* ---- structs.c ---- */

/* Copy the caller's struct, of any version, to `copy`, whose further fields become zero. `need`: the size of the first
 * version. */
ncclResult_t nep_read(const char *call, const char *name, const void *theirs, size_t need, void *copy,
                      size_t copy_bytes);

/* Tensors are of one version. NULL is "not given" and leaves *own with magic 0. */
ncclResult_t nep_read_tensor(const char *call, const char *name, const ncclEpTensor_t *theirs, ncclEpTensor_t *copy);

/* ---- driver.c ---- */

/* CUDA's driver, as far as the face calls it. Addresses are CUdeviceptr, errors CUresult. */
typedef struct nep_cuda {
    int (*ctx_get_device)(int *device);
    int (*ctx_get_current)(void **context);
    int (*ctx_set_current)(void *context);
    int (*ctx_synchronize)(void);
    int (*primary_ctx_retain)(void **context, int device);
    int (*device_get_attribute)(int *value, int attribute, int device);
    int (*pointer_get_attribute)(void *value, int attribute, uint64_t at);
    int (*mem_alloc)(uint64_t *at, size_t bytes);
    int (*mem_free)(uint64_t at);
    int (*exchange_capture_mode)(int *mode); /* of this thread */
    int (*memcpy_async)(uint64_t to, uint64_t from, size_t bytes, cudaStream_t stream);
    int (*memset_async)(uint64_t at, unsigned char value, size_t bytes, cudaStream_t stream);
    int (*stream_create)(cudaStream_t *stream, unsigned flags, int priority);
    int (*stream_synchronize)(cudaStream_t stream);
    int (*stream_destroy)(cudaStream_t stream);
} nep_cuda;

typedef struct nep_nccl {
    ncclResult_t (*comm_count)(ncclComm_t comm, int *count);
    ncclResult_t (*comm_rank)(ncclComm_t comm, int *rank);
    ncclResult_t (*comm_device)(ncclComm_t comm, int *device); /* NULL: NCCL does not say */
    ncclResult_t (*all_gather)(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream);
    ncclResult_t (*window_pointer)(ncclComm_t comm, ncclWindow_t window, void **pointer); /* NULL before 2.29.2 */
    int has_windows; /* all that follows, from 2.29.2 on */
    ncclResult_t (*mem_alloc)(void **pointer, size_t bytes);
    ncclResult_t (*mem_free)(void *pointer);
    ncclResult_t (*window_register)(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags);
    ncclResult_t (*window_deregister)(ncclComm_t comm, ncclWindow_t window);
    ncclResult_t (*lsa_pointer)(ncclWindow_t window, size_t offset, int lsa_rank, void **pointer);
} nep_nccl;

/* Loaded when first asked for; NULL, with a text, when the library or a function is not there. Any thread. */
const nep_cuda *nep_load_cuda(const char *call);
const nep_nccl *nep_load_nccl(const char *call);

/* ---- group.c ---- */

/* What the group's ranks meet by while it is made: NCCL's allgather on a stream. */
typedef struct nep_meeting {
    const nep_cuda *cuda;
    const nep_nccl *nccl;
    ncclComm_t comm;
    cudaStream_t stream;
    int ranks;
} nep_meeting;

/* Of `bytes` bytes of each rank, in the order of ranks. A callback of weft's: 0 where it went well. */
int nep_allgather(void *meeting, const void *mine, void *all, size_t bytes);

/* What routings a group has agreed on in memory of the caller's, where handles that are made later may find them. */
typedef struct nep_routed {
    struct nep_routed *next;
    weft_ep_plan plan;
    weft_ep_id_type id_type; /* of the last one */
    int agreed_at; /* group->mask_changes when it was agreed on */
    unsigned char tokens[]; /* bit T: one of T tokens */
} nep_routed;

/* What ncclEpMaskClean meets by, in the symmetric heap. What is told lies there twice, by the meeting's parity: a rank
 * that is ahead tells of the next meeting while others still read of this one. */
typedef struct nep_clean {
    uint64_t *came[2]; /* [R], one behind the other: the meeting to which each rank has come last */
    struct nep_told *tells[2]; /* [R] */
    uint64_t meetings; /* that this rank has been in */
} nep_clean;

/* Where NCCL maps the windows of a communicator: a range of addresses a rank, one behind the other. */
typedef struct nep_windows {
    char *base; /* this rank's; NULL: not known, so that rows in windows are staged */
    size_t bytes;
} nep_windows;

struct ncclEpGroup {
    struct ncclEpGroup *next; /* of all that live */
    weft_world *world;
    weft_ep *ep;
    ncclComm_t comm;
    nep_windows windows;
    void *context; /* of its GPU */
    int rank;
    int ranks;
    int local_experts;
    int topk_max;
    int capability_major; /* compute capability of the group's GPU */
    int scale_bytes_max; /* the most bytes of scales that move with a row */
    int has_timed_out;
    uint64_t overflow_cleared; /* weft_ep_overflow_report.event of the last one that ncclEpErrorClear has cleared */
    uint64_t *known; /* ceil(R / 64) words of ranks that are known to be masked: others were by calls that timed out */
    nep_routed *routed;
    pthread_mutex_t scratch_lock; /* a lock of this group, since its holder waits for the group's GPU */
    uint64_t scratch; /* device memory on which routes of handles with memory of the caller's are made, or 0 */
    size_t scratch_bytes;
    int mask_changes; /* how often masks have changed: routings of HT from before one may not hold any more */
    nep_clean clean; /* with enable_mask */
    ncclEpGroupConfig_t config;
    pthread_mutex_t mask_lock;
    int *mask; /* [ranks], copied from by ncclEpMaskQuery, which may run on several threads and streams */
};

/* Check that the group is one that lives. In a thread where no GPU is current its own becomes so. */
ncclResult_t nep_check_group(const char *call, const struct ncclEpGroup *group);
void nep_have_gpu(const char *call, void *context);

/* The multiprocessors of its dispatches and combines, or 0: a share of those that nothing claims; and for sms of a
 * plan, the most of both. */
unsigned nep_sms_of_dispatch(const struct ncclEpGroup *group);
unsigned nep_sms_of_combine(const struct ncclEpGroup *group);
int nep_sms_most(const struct ncclEpGroup *group);

/* The group that lives, or NULL: none does, or several do. */
struct ncclEpGroup *nep_only_group(void);

/* The communicator's GPU becomes the thread's, as there; where NCCL does not tell it, the thread's is taken. */
ncclResult_t nep_take_gpu(const char *call, const nep_cuda *cuda, const nep_nccl *nccl, ncclComm_t comm, int *device);

/* nep_result_of, and remember that a call met its deadline. */
ncclResult_t nep_group_result(struct ncclEpGroup *group, weft_status status);

/* ---- clean.c ---- */

/* Collective. Its memory ends with the world. */
weft_status nep_clean_open(struct ncclEpGroup *group);

/* Meet the ranks that are left, this one having masked `masked` and made `calls` calls: the most that any has made.
 * ncclRemoteError: one that nobody has masked did not come in time. */
ncclResult_t nep_clean_meet(struct ncclEpGroup *group, const uint64_t *masked, uint64_t calls, uint64_t *most);

/* ---- handle.c ---- */

struct ncclEpHandle {
    struct ncclEpHandle *next; /* of all that live */
    struct ncclEpGroup *group; /* NULL: it was destroyed */
    int is_left; /* it was, and has had its part of the handle */
    weft_ep_plan plan; /* topk 0: not known before the first routing */
    weft_ep_route *route; /* NULL: likewise */
    void *memory; /* of the route, then ids */
    int is_own_memory;
    nep_routed *routed; /* HT, in memory of the caller's: the routings of its plan */
    int is_attached; /* the route lies in `memory` */
    size_t route_bytes;
    int topk_most; /* the most choices a token that there is memory for */
    weft_ep_choices choices; /* the routing; ids in `memory` */
    int is_routed;
    int is_agreed; /* HT: all ranks have this routing, so that a dispatch has but to bring its weights */
    int agreed_at; /* group->mask_changes when that was so */
    int has_sent; /* ncclEpComplete is to come: 1: of a dispatch, 2: of a combine */
};

/* Where a routing's counts go; magic 0: not wanted. */
typedef struct nep_counters {
    ncclEpTensor_t experts; /* HT: padding included */
    ncclEpTensor_t offsets;
    ncclEpTensor_t total;
    ncclEpTensor_t sources;
} nep_counters;

/* Have the handle's next routings counted there, by their calls; checked tensors, of one type. `to` of zeroes:
 * nowhere. */
ncclResult_t nep_count_to(const char *call, struct ncclEpHandle *handle, const nep_counters *to);

/* HT: read where a call is to count, if anywhere, and have the next routing counted there by the call that agrees on
 * it: the total may be int64 beside int32 counters of experts. */
ncclResult_t nep_read_counters(const char *call, const struct ncclEpHandle *handle, const ncclEpLayoutInfo_t *info,
                               nep_counters *out);
int nep_asks_counts(const nep_counters *of);
ncclResult_t nep_count_routing_to(const char *call, struct ncclEpHandle *handle, const nep_counters *to,
                                  cudaStream_t stream);

/* A call has been made that agrees on the handle's routing, with room for as many rows as the group allows. */
void nep_agreed(struct ncclEpHandle *handle);

/* Before a dispatch or combine of so many tokens: a handle that has had no routing since it was made goes on with the
 * one that is in its memory, if the group has had such a one. */
ncclResult_t nep_have_routing(const char *call, struct ncclEpHandle *handle, size_t tokens);

/* The group ends: its handles have nothing of it any more, and wait but for their own end. */
ncclResult_t nep_leave_handles(const struct ncclEpGroup *group);

ncclResult_t nep_check_handle(const char *call, const struct ncclEpHandle *handle);
int nep_is_ll(const struct ncclEpGroup *group);

/* ---- windows.c ---- */

/* Learn where the communicator's windows are mapped and tell the world, so that rows move into and out of them in
 * place. Collective; where NCCL has no windows of all ranks nothing is known, which is no error. */
weft_status nep_windows_open(struct ncclEpGroup *group, nep_meeting *at);

/* The address at which a tensor's window is mapped there, or NULL. */
void *nep_window_place(const struct ncclEpGroup *group, const nep_nccl *nccl, const ncclEpTensor_t *tensor);

/* ---- tensors.c ---- */

/* The address of a tensor's data, of a window's too. */
ncclResult_t nep_data_of(const char *call, const char *name, const struct ncclEpGroup *group,
                         const ncclEpTensor_t *tensor, void **data);

/* The data of a tensor of `count` elements of that type in all. */
ncclResult_t nep_array_of(const char *call, const char *name, const struct ncclEpGroup *group,
                          const ncclEpTensor_t *tensor, ncclDataType_t type, size_t count, void **data);

/* A float32 tensor of `count` elements in all. */
ncclResult_t nep_floats_of(const char *call, const char *name, const struct ncclEpGroup *group,
                           const ncclEpTensor_t *tensor, size_t count, float **data);

/* Check that `count` counts can be written to this tensor, if it is given. */
ncclResult_t nep_check_counts(const char *call, const char *name, const ncclEpTensor_t *tensor, size_t count);

#endif
