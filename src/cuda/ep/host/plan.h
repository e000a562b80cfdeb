/* cuda/ep/host/plan.h: the launch plan of a kernel: its grid, the roles of its warps and its shared memory. It is made
 * here once for each launch; the kernel's arguments take over what device code has to know of it. */
#ifndef WEFTI_CUDA_EP_HOST_PLAN_H
#define WEFTI_CUDA_EP_HOST_PLAN_H

#include "cuda/ep/host/group.h"

/* What is to be launched. */
typedef struct wefti_cuda_ep_kernel {
    wefti_cuda_ep_work work;
    wefti_cuda_ep_phase phase;
    size_t row_bytes; /* of the rows that it moves, before they become fp8; 0: it moves none */
    int may_be_low_latency; /* where the route's slots are of few tokens */
    int may_leave; /* of halves: rows may leave with send, where there is memory for them */
    int is_fresh; /* it makes a routing, or its send did */
    wefti_cuda_ep_counted counted; /* as what WEFT_EP_STATISTICS counts the call */
} wefti_cuda_ep_kernel;

typedef struct wefti_cuda_ep_launch_plan {
    wefti_cuda_ep_kernel kernel;
    wefti_u32 low_latency_slots; /* tokens of a source, in a low-latency call (low_latency/low_latency.cuh); else 0 */
    int is_eager; /* a half of which the rows leave with send */
    int is_piped; /* rows to be added up come through shared memory */
    int blocks; /* 0: others have claimed all multiprocessors or, of a recv, some of its send's */
    wefti_cuda_ep_blocks roles; /* of the warps of a block */
    wefti_u32 counts_at; /* in dynamic shared memory, behind the pipes: [E + 1] counts; */
    wefti_u32 meta_stages_at; /* behind these a stage for each warp that sends scales */
    unsigned shared_bytes;
} wefti_cuda_ep_launch_plan;

static inline int wefti_cuda_ep_quantises(wefti_cuda_ep_work work)
{
    return work == WEFTI_CUDA_EP_WORK_QUANTISE || work == WEFTI_CUDA_EP_WORK_QUANTISE_MX;
}

wefti_cuda_ep_launch_plan wefti_cuda_ep_plan_launch(const weft_ep_route *route, wefti_cuda_ep_kernel kernel);

/* Multiprocessors that a launch of a call may take, none of which another waiting kernel may, as the route, or, of what
 * follows a send, as it said then; 0: there are none. */
int wefti_cuda_ep_sms_of(const weft_ep_route *route, wefti_cuda_ep_phase phase);

/* Whether a recv is on another stream than its send. */
static inline int wefti_cuda_ep_is_apart(const weft_ep_route *route, const weft_stream *stream,
                                         wefti_cuda_ep_phase phase)
{
    const weft_ep *ep = route->ep;
    return phase == WEFTI_CUDA_EP_RECV && stream != ep->half_stream[ep->bank];
}

/* Whether a kernel can be launched on a stream now: as what is claimed of multiprocessors, and other pairs. */
weft_status wefti_cuda_ep_check_plan(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan,
                                     const weft_stream *stream, const char *call);

/* What the arguments of a kernel have of its plan. */
void wefti_cuda_ep_dispatch_take_plan(wefti_cuda_ep_dispatch_args *args, const wefti_cuda_ep_launch_plan *plan);
void wefti_cuda_ep_combine_take_plan(wefti_cuda_ep_combine_args *args, const wefti_cuda_ep_launch_plan *plan);

#endif
