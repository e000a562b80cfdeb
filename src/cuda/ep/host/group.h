/* cuda/ep/host/group.h: the device backend of expert parallelism: what hangs on a weft_ep and on its routes. */
#ifndef WEFTI_CUDA_EP_HOST_GROUP_H
#define WEFTI_CUDA_EP_HOST_GROUP_H

#include "cuda/device.h"
#include "cuda/ep/abi.h"
#include "cuda/ep/eager.h"
#include "cuda/ep/many.h"
#include "cuda/ep/passing.h"
#include "ep/backend.h"

/* What kernels do; the first four move rows to the owners of experts, the others back. */
typedef enum wefti_cuda_ep_work {
    WEFTI_CUDA_EP_WORK_DISPATCH,
    WEFTI_CUDA_EP_WORK_QUANTISE,
    WEFTI_CUDA_EP_WORK_QUANTISE_MX, /* to groups of 32 */
    WEFTI_CUDA_EP_WORK_COMBINE_BWD, /* weighted, with gradients of weights, or of rows that choices share */
    WEFTI_CUDA_EP_WORK_COMBINE,
    WEFTI_CUDA_EP_WORK_DISPATCH_BWD, /* by expert with gradients of weights, where ranks are few */
    WEFTI_CUDA_EP_WORK_COMBINE_WITH, /* with options (device/combine_options.cuh); other backwards of dispatch */
    WEFTI_CUDA_EP_WORK_COMBINE_ORDER, /* the kernel `order`, which comes before it */
    WEFTI_CUDA_EP_WORK_DESTINATIONS, /* what comes before a dispatch of WEFT_EP_DESTINATIONS */
    WEFTI_CUDA_EP_WORK_POSITIONS, /* the same of routes whose choices are positions */
    WEFTI_CUDA_EP_WORK_DROPPING, /* the same where rows are dropped by themselves, by what an update has counted */
    WEFTI_CUDA_EP_WORKS
} wefti_cuda_ep_work;

/* Which kernels of a work. */
typedef enum wefti_cuda_ep_way {
    WEFTI_CUDA_EP_WAY_THROUGHPUT,
    WEFTI_CUDA_EP_WAY_PIPED, /* by expert, of many rows: those that are added up come through shared memory */
    WEFTI_CUDA_EP_WAY_LOW_LATENCY,
    WEFTI_CUDA_EP_WAY_POSITIONS, /* of routes whose choices are positions; by source only */
    WEFTI_CUDA_EP_WAY_EAGER, /* of halves whose rows leave with send: what comes behind send, and recv */
    WEFTI_CUDA_EP_WAYS
} wefti_cuda_ep_way;

/* The multiprocessors of groups whose calls do not overlap (weft_ep_config.claim_with). */
typedef struct wefti_cuda_ep_claim {
    int groups; /* that share it */
    int sms; /* the most that a route has asked for, on all banks */
    int is_guest; /* a route has asked for none */
} wefti_cuda_ep_claim;

/* What of a group's limits says where things lie in its routes' memory. */
typedef struct wefti_cuda_ep_extent {
    uint64_t tokens; /* tokens_max */
    uint64_t units;
    uint64_t received; /* M */
} wefti_cuda_ep_extent;

typedef struct wefti_ep_device {
    wefti_cuda *cuda;
    wefti_cuda_ep_group group[WEFTI_EP_BANKS_MAX]; /* as kernels get it, on each bank */
    void *area; /* symmetric: that of the first bank, behind it that of the second */
    wefti_cuda_ep_eager eager; /* in each area, for rows that leave with send */
    int pe_of[WEFTI_CUDA_EP_MANY_MAX]; /* each rank's, in the world */
    uint64_t received_max; /* M */
    wefti_cuda_ep_extent extent; /* of today's limits */
    const struct wefti_cuda_ep_kind *kind;
    uint64_t own_area[WEFTI_EP_BANKS_MAX]; /* this rank's, as it addresses it */
    uint64_t *host_status; /* in the host heap: [banks][WEFTI_CUDA_EP_HOST_WORDS] */
    uint32_t masked[WEFTI_CUDA_EP_MANY_WORDS]; /* ranks, as bits; the area has a copy */
    uint64_t failed_epoch[WEFTI_EP_BANKS_MAX]; /* of the last failure that was masked; that of its last call */
    uint64_t failed_last[WEFTI_EP_BANKS_MAX];
    uint64_t mismatch_seen[WEFTI_EP_BANKS_MAX]; /* of host_status[..._MISMATCH]: reported */
    int sms; /* of the GPU, divided by the ranks that use it */
    wefti_cuda_ep_claim *claim;
    CUevent sent[WEFTI_EP_BANKS_MAX]; /* for a recv on another stream than its send */
    /* Where limits grow (growth.c): */
    weft_ep *meeting; /* a group of the host's memory, in which ranks compare calls */
    int has_met; /* they have compared one that this rank has still to make */
    int is_captured; /* a graph may have calls of the group */
    wefti_cuda_ep_extent *extents; /* of the limits that the group has had, the oldest first, without today's */
    size_t extents_count;
    CUevent last[WEFTI_EP_BANKS_MAX]; /* behind the last call on a bank, if there was one: */
    int has_last[WEFTI_EP_BANKS_MAX];
    uint64_t stats; /* with WEFT_EP_STATISTICS: the address behind the areas of the words that weft_ep.stats has, and of
                       [banks][R] waits of the running calls */
    CUfunction statistics; /* likewise */
    CUfunction masks; /* before each call of a group whose banks join their masks */
    CUfunction pad;
    /* [..][..][..][by expert]; NULL: there are no halves of it, or it is not there in this way, or no slots of few
     * tokens or no routes of positions in this group */
    CUfunction kernel[WEFTI_CUDA_EP_WAYS][WEFTI_CUDA_EP_PHASES][WEFTI_CUDA_EP_WORKS][2];
} wefti_ep_device;

/* What a send of a pair of halves leaves to its recv. */
typedef struct wefti_cuda_ep_sent {
    int blocks; /* of the send */
    int sms; /* that the route said then (weft_ep_route_sms) */
    wefti_cuda_ep_work work; /* what it began */
    union {
        wefti_cuda_ep_dispatch_args dispatch;
        wefti_cuda_ep_combine_args combine;
    } args; /* and with what */
} wefti_cuda_ep_sent;

typedef struct wefti_ep_device_route {
    wefti_cuda_ep_tables tables; /* of the first bank: wefti_cuda_ep_tables_of */
    CUdeviceptr owned; /* the memory, if it is the library's */
    size_t dirty_bytes; /* of the tables, that the first call clears */
    size_t bytes; /* of the memory */
    size_t laid_bytes; /* of these, those that the limits took when it was laid out last */
    int tokens_least; /* T of the last routing is at least so much */
    int is_unseen; /* whether the calls that made the last routing succeeded is not known */
    int by_position; /* the choices of the last routing were positions */
    wefti_cuda_ep_sent sent[WEFTI_EP_BANKS_MAX]; /* the last one on each bank */
} wefti_ep_device_route;

/* The group on the bank of the call that runs. */
static inline const wefti_cuda_ep_group *wefti_cuda_ep_group_of(const weft_ep *ep)
{
    return &ep->device->group[ep->bank];
}

/* What the last send on that bank has left. */
static inline wefti_cuda_ep_sent *wefti_cuda_ep_sent_of(const weft_ep_route *route)
{
    return &route->device->sent[route->ep->bank];
}

static inline uint64_t *wefti_cuda_ep_host_words(const weft_ep *ep, int bank)
{
    return ep->device->host_status + bank * WEFTI_CUDA_EP_HOST_WORDS;
}

/* Whether low-latency calls of the group mask ranks that do not come, and go on. */
static inline int wefti_cuda_ep_passes_by(const weft_ep *ep)
{
    return (ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) != 0;
}

/* Whether what they mask on one bank has to be brought to the other. */
static inline int wefti_cuda_ep_joins_masks(const weft_ep *ep)
{
    return wefti_cuda_ep_passes_by(ep) && wefti_ep_banks(ep) == 2;
}

/* Before a call that is launched next. */
weft_status wefti_cuda_ep_launch_masks(const weft_ep *ep, weft_stream *stream, const char *call);

/* Whether the group has memory for calls of low latency. */
static inline int wefti_cuda_ep_has_low_latency(const weft_ep *ep)
{
    return ep->device->group[0].at.low_latency_words != 0;
}

/* Whether it has memory for rows of all layouts that leave with send. */
static inline int wefti_cuda_ep_has_eager(const weft_ep *ep)
{
    return ep->device->eager.cleared_bytes != 0;
}

/* This rank's area on a bank. */
static inline uint64_t wefti_cuda_ep_own_area(const weft_ep *ep, int bank)
{
    return ep->device->own_area[bank];
}

/* Multiprocessors that a call of such a plan may take, if the plan says: those of two banks fit beside each
 * other. */
static inline int wefti_cuda_ep_sms_asked(const weft_ep *ep, const weft_ep_plan *plan)
{
    int most = ep->device->sms / wefti_ep_banks(ep);
    return plan->sms < most || most == 0 ? plan->sms : most;
}

/* Limits that grow (growth.c). A group in which calls are compared; ending it. */
weft_status wefti_cuda_ep_open_meeting(weft_ep *ep);
weft_status wefti_cuda_ep_close_meeting(const weft_ep *ep);
/* How many calls have been compared there; be in step with ranks that have compared so many. */
uint64_t wefti_cuda_ep_meetings(const weft_ep *ep);
weft_status wefti_cuda_ep_rejoin_meeting(weft_ep *ep, uint64_t meetings);
int wefti_cuda_ep_is_captured(const weft_ep *ep);
/* Wait until the calls that were made have ended here. */
weft_status wefti_cuda_ep_settle(const weft_ep *ep, const char *call);
/* A call has been launched. */
weft_status wefti_cuda_ep_note_launch(const weft_ep *ep, const weft_stream *stream, const char *call);

/* Load the modules of these families, as bits, each once a world. */
weft_status wefti_cuda_ep_load_modules(wefti_cuda *cuda, unsigned wanted);

/* Whether a kernel of the group that has failed waited in vain for `rank`. */
int wefti_cuda_ep_is_missing(const weft_ep *ep, int rank);

/* WEFT_OK, or what kernels have found out since the last call: WEFT_ERR_TIMEOUT, naming the ranks;
 * WEFT_ERR_MISMATCH. */
weft_status wefti_cuda_ep_host_status(weft_ep *ep, const char *call);

/* weft_ep_overflow_query. */
void wefti_cuda_ep_overflow_query(const weft_ep *ep, weft_ep_overflow_report *report);

/* Whether a call has failed on a bank: 0, or the word that says it. */
uint64_t wefti_cuda_ep_failed_word(const weft_ep *ep);
weft_status wefti_cuda_ep_mask(weft_ep *ep, int rank, int alive);
weft_status wefti_cuda_ep_calls(const weft_ep *ep, uint64_t *calls);
weft_status wefti_cuda_ep_rejoin(weft_ep *ep, uint64_t calls);

/* WEFT_EP_STATISTICS: its words in the area's block; from there to the group's; zero. */
uint64_t wefti_cuda_ep_stats_words(const weft_ep *ep);
weft_status wefti_cuda_ep_stats_open(weft_ep *ep);
weft_status wefti_cuda_ep_stats_fetch(const weft_ep *ep);
weft_status wefti_cuda_ep_stats_clear(const weft_ep *ep);

/* The backend's part of weft_ep_sms_hint. */
int wefti_cuda_ep_sms_hint(const weft_ep *ep, const weft_ep_plan *plan);

/* The route's tables for the bank of the call that runs. */
wefti_cuda_ep_tables wefti_cuda_ep_tables_of(const weft_ep_route *route);

size_t wefti_cuda_ep_route_bytes(const weft_ep *ep, const weft_ep_plan *plan);
weft_status wefti_cuda_ep_route_open(weft_ep_route *route, void *memory);
weft_status wefti_cuda_ep_route_fit(weft_ep_route *route, const char *call);
weft_status wefti_cuda_ep_route_move(weft_ep_route *route, void *memory, size_t bytes);
weft_status wefti_cuda_ep_route_attach(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                       weft_stream *stream);
void wefti_cuda_ep_route_close(weft_ep_route *route);
weft_status wefti_cuda_ep_counts(const weft_ep_route *route, weft_ep_counts *counts);
/* Whether kernels reach the arrays at the host's addresses. */
weft_status wefti_cuda_ep_check_told(const wefti_cuda *cuda, const weft_ep_count_arrays *arrays);
weft_status wefti_cuda_ep_counts_told(weft_ep_route *route, const weft_ep_count_arrays *arrays);
weft_status wefti_cuda_ep_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts);

weft_status wefti_cuda_ep_drop_rows(weft_ep_route *route, const weft_ep_choices *choices, int is_counted,
                                    weft_ep_choices *kept, weft_stream *stream);
weft_status wefti_cuda_ep_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream);
weft_status wefti_cuda_ep_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                   const weft_ep_received *out, weft_stream *stream);
weft_status wefti_cuda_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                  const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_cuda_ep_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                       const float *grad_weights_received, const weft_ep_rows *grad_in,
                                       float *grad_weights, weft_stream *stream);
weft_status wefti_cuda_ep_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                      const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                      weft_stream *stream);
weft_status wefti_cuda_ep_pad(const weft_ep_route *route, const weft_ep_received *out, uint64_t *mark,
                              weft_stream *stream);
weft_status wefti_cuda_ep_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream);
weft_status wefti_cuda_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream);
weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream);

#endif
