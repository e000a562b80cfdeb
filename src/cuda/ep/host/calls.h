/* cuda/ep/host/calls.h: what the calls have in common: where rows lie, launches. */
#ifndef WEFTI_CUDA_EP_HOST_CALLS_H
#define WEFTI_CUDA_EP_HOST_CALLS_H

#include "cuda/ep/host/kind.h"
#include "weft/protocol/ep_layout.h"

static inline int wefti_cuda_ep_is_by_expert(const weft_ep_route *route)
{
    return !wefti_ep_plan_is_by_source(&route->plan);
}

/* The layout's part in what is called. */
static inline unsigned wefti_cuda_ep_layout_flags(const weft_ep_route *route)
{
    return (unsigned)route->plan.layout << WEFTI_CUDA_EP_LAYOUT_SHIFT;
}

/* What its kernels count choices of: experts, or ranks. */
static inline int wefti_cuda_ep_experts_of(const weft_ep *ep, const weft_ep_plan *plan)
{
    return wefti_ep_plan_is_by_rank(plan) ? ep->ranks : ep->config.experts;
}

/* Device memory from the world's pool for expert parallelism, and back. */
weft_status wefti_cuda_ep_allocate(const wefti_cuda *cuda, size_t bytes, CUdeviceptr *memory);
void wefti_cuda_ep_free(const wefti_cuda *cuda, CUdeviceptr memory);

/* Before the first call of a route: clear *bytes bytes of its tables, then none, where the call's stream comes to it:
 * until then the memory may be in use by what was enqueued there before. While the stream captures, at once. */
weft_status wefti_cuda_ep_clear_dirty(wefti_cuda *cuda, void *tables, size_t *bytes, weft_stream *stream);

/* Wait for the caller's stream, and copy on it what a routing has come to: the library's own stream may have no
 * hardware queue to itself where many PEs share the GPU. */
weft_status wefti_cuda_ep_fetch_header(const wefti_cuda *cuda, const wefti_cuda_ep_route_header *there,
                                       weft_stream *stream, wefti_cuda_ep_route_header *header);
void wefti_cuda_ep_tell_counts(const weft_ep *ep, const wefti_cuda_ep_route_header *header,
                               weft_ep_host_counts *counts);

size_t wefti_cuda_ep_row_bytes(const weft_ep_rows *rows);
uint64_t wefti_cuda_ep_pitch(const weft_ep_rows *rows);

/* The scales of fp8 rows: words of a row, and where they are. */
wefti_cuda_ep_scales wefti_cuda_ep_scales_of(const weft_ep_rows *rows);
wefti_cuda_ep_made_scales wefti_cuda_ep_made_scales_of(weft_ep_scale_type type);

/* Where the area's rows are, for all ranks. */
uint64_t wefti_cuda_ep_area_rows(const weft_ep *ep);

/* Where `bytes` bytes at `address` are for all ranks, and how many bytes are symmetric from there on. is_open: more may
 * be wanted than `bytes`. 0 when not all ranks reach all of them: each rank may answer otherwise. */
int wefti_cuda_ep_find_place(const weft_ep *ep, const void *address, uint64_t bytes, int is_open, wefti_u64 *place,
                             uint64_t *held);

/* Where kernels tell the counts of a routing, as weft_ep_route_counts_to asked; `counted`: routings told so far. */
wefti_cuda_ep_told wefti_cuda_ep_told_of(const weft_ep_route *route, wefti_u64 *counted);

/* A call that agrees on a routing of these choices is begun; NULL: one that does not. Returns whether the choices of
 * the last routing were positions. */
int wefti_cuda_ep_begin_choices(const weft_ep_route *route, const weft_ep_choices *fresh);
/* It has been launched, or, with another status, which is returned, not. */
weft_status wefti_cuda_ep_chosen(weft_ep_route *route, const weft_ep_choices *choices, int before, weft_status status);

weft_status wefti_cuda_ep_launch(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan, const void *args,
                                 weft_stream *stream, const char *call);

/* Before a call is made of which the arguments are checked: WEFT_OK, what kernels have found out since the last one
 * (wefti_cuda_ep_host_status), or why it cannot be launched. Where limits grow, all ranks' hosts compare the call, also
 * if it cannot, so that all learn so; then the group has memory for it. `in`, `out`: rows that move, or NULL. */
typedef struct wefti_cuda_ep_beginning {
    weft_ep_route *route;
    wefti_cuda_ep_kernel kernel; /* what is launched first, but for its rows' bytes */
    /* Why it needs the area's rows, unless it is one of low latency or its rows leave with send; NULL: it does not. */
    const char *staging;
    const weft_ep_choices *fresh; /* of a call that routes, else NULL */
    unsigned kind; /* a wefti_ep_kind */
    unsigned flags; /* of a signature of protocol/ep_layout.h */
    const weft_ep_rows *in;
    const weft_ep_rows *out;
} wefti_cuda_ep_beginning;
weft_status wefti_cuda_ep_begin(const wefti_cuda_ep_beginning *beginning, weft_stream *stream, const char *call);

/* What a dispatch, or a combine, has for its kernel, as a whole or as halves, and which of them it is. */
weft_status wefti_cuda_ep_dispatch_prepare(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                           const weft_ep_received *out, wefti_cuda_ep_call call,
                                           wefti_cuda_ep_dispatch_args *args, wefti_cuda_ep_work *work,
                                           weft_stream *stream);
weft_status wefti_cuda_ep_combine_prepare(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, wefti_cuda_ep_call call,
                                          wefti_cuda_ep_combine_args *args, wefti_cuda_ep_work *work,
                                          weft_stream *stream);

/* The plan of a phase of it, which the arguments take over. */
wefti_cuda_ep_launch_plan wefti_cuda_ep_dispatch_plan(const weft_ep_route *route, wefti_cuda_ep_work work,
                                                      wefti_cuda_ep_phase phase, wefti_cuda_ep_dispatch_args *args);
wefti_cuda_ep_launch_plan wefti_cuda_ep_combine_plan(const weft_ep_route *route, wefti_cuda_ep_work work,
                                                     wefti_cuda_ep_phase phase, wefti_cuda_ep_combine_args *args);

/* Whether a call that needs the area's rows, unless it is one of low latency or its rows leave with send, has them. */
weft_status wefti_cuda_ep_check_staging(const weft_ep *ep, const wefti_cuda_ep_launch_plan *plan, const char *why,
                                        const char *call);

/* What comes after a call of a group with WEFT_EP_STATISTICS. */
weft_status wefti_cuda_ep_launch_statistics(const weft_ep_route *route, wefti_cuda_ep_counted counted,
                                            weft_stream *stream, const char *call);

/* What comes before a dispatch or a combine on its stream, if anything does. */
weft_status wefti_cuda_ep_launch_destinations(const weft_ep_route *route, const wefti_cuda_ep_dispatch_args *args,
                                              weft_stream *stream, const char *call);
weft_status wefti_cuda_ep_launch_dropping(const weft_ep_route *route, const wefti_cuda_ep_drop_args *args,
                                          weft_stream *stream, const char *call);
weft_status wefti_cuda_ep_launch_order(const weft_ep_route *route, wefti_cuda_ep_work work,
                                       const wefti_cuda_ep_combine_args *args, weft_stream *stream, const char *call);

#endif
