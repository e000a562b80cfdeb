/* cuda/ep/host/calls.h: what the calls have in common: where rows lie, how grids are divided, launches. */
#ifndef WEFTI_CUDA_EP_HOST_CALLS_H
#define WEFTI_CUDA_EP_HOST_CALLS_H

#include "cuda/ep/host/group.h"

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

size_t wefti_cuda_ep_row_bytes(const weft_ep_rows *rows);
uint64_t wefti_cuda_ep_pitch(const weft_ep_rows *rows);

/* Where the area's rows are, for all ranks. */
uint64_t wefti_cuda_ep_area_rows(const weft_ep *ep);

/* Where `bytes` bytes at `address` are for all ranks. 0 when they are not symmetric, all of them. */
int wefti_cuda_ep_find_place(const wefti_cuda *cuda, const void *address, uint64_t bytes, wefti_u64 *place);

/* A call that agrees on a routing of these choices has been launched; NULL: one that does not. */
void wefti_cuda_ep_chosen(weft_ep_route *route, const weft_ep_choices *choices);

/* How the blocks of a call that moves rows of this size are divided; row_bytes 0: that moves none. */
wefti_cuda_ep_blocks wefti_cuda_ep_divide(const weft_ep_route *route, wefti_cuda_ep_work work, size_t row_bytes);

/* The same of a low-latency call. */
wefti_cuda_ep_blocks wefti_cuda_ep_low_latency_blocks(void);

/* What lies where in the shared memory of a dispatch whose blocks are divided. */
void wefti_cuda_ep_share_memory(wefti_cuda_ep_dispatch_args *args, const weft_ep_route *route);

/* Which kernel. */
typedef struct wefti_cuda_ep_kernel {
    wefti_cuda_ep_work work;
    wefti_cuda_ep_part part;
    int is_low_latency; /* its args have low_latency_slots */
} wefti_cuda_ep_kernel;

/* Tokens of a source, where its rows may leave before their receivers' call headers are here
 * (low_latency/low_latency.cuh), as in this part of a call; else 0. */
wefti_u32 wefti_cuda_ep_low_latency_slots(const weft_ep_route *route, wefti_cuda_ep_part part);

weft_status wefti_cuda_ep_launch(const weft_ep_route *route, wefti_cuda_ep_kernel kernel,
                                 const wefti_cuda_ep_blocks *parts, const void *args, weft_stream *stream,
                                 const char *call);

/* What a dispatch, or a combine, has for its kernel, as a whole or as halves, and which of them it is. */
weft_status wefti_cuda_ep_dispatch_prepare(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                           const weft_ep_received *out, wefti_cuda_ep_call call,
                                           wefti_cuda_ep_dispatch_args *args, wefti_cuda_ep_work *work);
/* Whether this part of a dispatch is a low-latency one; then it is divided accordingly. */
int wefti_cuda_ep_set_low_latency(wefti_cuda_ep_dispatch_args *args, const weft_ep_route *route,
                                  wefti_cuda_ep_part part);
weft_status wefti_cuda_ep_combine_prepare(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, wefti_cuda_ep_call call,
                                          wefti_cuda_ep_combine_args *args, wefti_cuda_ep_work *work);
/* Whether this part of a combine is a low-latency one; then it is divided accordingly. */
int wefti_cuda_ep_set_low_latency_combine(wefti_cuda_ep_combine_args *args, const weft_ep_route *route,
                                          wefti_cuda_ep_part part);

/* What comes before a dispatch or a combine on its stream, if anything does. */
weft_status wefti_cuda_ep_launch_destinations(const weft_ep_route *route, const wefti_cuda_ep_dispatch_args *args,
                                              weft_stream *stream, const char *call);
weft_status wefti_cuda_ep_launch_order(const weft_ep_route *route, wefti_cuda_ep_work work,
                                       const wefti_cuda_ep_combine_args *args, weft_stream *stream, const char *call);

#endif
