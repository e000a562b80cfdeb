/* cuda/ep/host/domains.h: the device backend of groups of several domains (cuda/ep/domains.h): what hangs on a weft_ep
 * and on its routes. */
#ifndef WEFTI_CUDA_EP_HOST_DOMAINS_H
#define WEFTI_CUDA_EP_HOST_DOMAINS_H

#include "cuda/ep/domains.h"
#include "cuda/ep/host/calls.h"

/* X(NAME, its length and name, module) */
#define WEFTI_CUDA_EP_DOMAINS_KERNELS(X)                                                                               \
    X(BEGIN, "15dispatch_begins", domains_local)                                                                       \
    X(NUMBER, "16dispatch_numbers", domains_local)                                                                     \
    X(PACK, "14dispatch_packs", domains_local)                                                                         \
    X(CROSS, "16dispatch_crosses", domains_crossing)                                                                   \
    X(INDEX, "16dispatch_indexes", domains_local)                                                                      \
    X(COUNT, "15dispatch_counts", domains_local)                                                                       \
    X(SCAN, "14dispatch_scans", domains_local)                                                                         \
    X(PLACE, "15dispatch_places", domains_local)                                                                       \
    X(CHOOSE, "15combine_chooses", domains_local)                                                                      \
    X(RESULTS, "15combine_results", domains_local)                                                                     \
    X(CROSS_BACK, "15combine_crosses", domains_crossing)                                                               \
    X(TOTALS, "14combine_totals", domains_local)                                                                       \
    X(SPREAD, "15combine_spreads", domains_values)                                                                     \
    X(DOTS, "12combine_dots", domains_values)                                                                          \
    X(GATHER, "15combine_gathers", domains_values)                                                                     \
    X(DISPATCH_DIRECT, "15dispatch_direct", domains_direct)                                                            \
    X(COMBINE_DIRECT, "14combine_direct", domains_direct)                                                              \
    X(STATISTICS, "10statistics", routing_after)

typedef enum wefti_ep_between_kernel {
#define WEFTI_CUDA_EP_DOMAINS_KERNEL(NAME, name, module) WEFTI_EP_BETWEEN_##NAME,
    WEFTI_CUDA_EP_DOMAINS_KERNELS(WEFTI_CUDA_EP_DOMAINS_KERNEL)
#undef WEFTI_CUDA_EP_DOMAINS_KERNEL
        WEFTI_EP_BETWEEN_KERNELS
} wefti_ep_between_kernel;

typedef struct wefti_ep_between {
    wefti_cuda *cuda;
    wefti_ep_ring_shape ring;
    uint32_t channels; /* of a line */
    int lines_max; /* the most sources that a rank of this domain forwards for */
    int is_partial; /* some ranks of a domain are masked, and not all */
    weft_team *team; /* the ranks of this domain */
    weft_ep *inner; /* their group */
    wefti_cuda_ep_domains_group group; /* as kernels get it */
    wefti_cuda_ep_direct direct; /* of calls that go directly, as kernels get it */
    void *rings; /* symmetric: this rank's block of host memory; behind it the words that kernels tell, direct rings */
    void *received; /* symmetric in the domain; behind it direct rings */
    CUdeviceptr owned; /* all other device memory */
    CUfunction kernel[WEFTI_EP_BETWEEN_KERNELS];
} wefti_ep_between;

/* A dispatch or combine whose recv is to come: all of it is made then, or, if it has left, what its send has not. */
typedef struct wefti_ep_between_half {
    int has_left;
    int is_fresh;
    int is_weighed; /* choices.weights are new ones of the routing that there is */
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_rows out;
    weft_ep_received received;
    wefti_ep_combining combining;
} wefti_ep_between_half;

typedef struct wefti_ep_between_route {
    wefti_cuda_ep_domains_tables tables;
    CUdeviceptr owned; /* the memory, if it is the library's */
    int is_few; /* its calls go directly always */
    size_t dirty_bytes; /* of the tables, that the first call clears */
    weft_ep_route *inner;
    const int32_t *inner_rows; /* of the inner routing: how many have been received */
    int tokens_least; /* T of the last routing is at least so much */
    wefti_ep_between_half half[WEFTI_EP_BANKS_MAX]; /* by the bank of the send */
} wefti_ep_between_route;

/* Tokens that a rank sends in its domain, at most. */
static inline uint64_t wefti_ep_between_tokens_max(const weft_ep *ep)
{
    return (1 + (uint64_t)ep->between->lines_max) * (uint64_t)ep->config.tokens_max;
}

/* Tokens that a rank receives, at most. */
static inline uint64_t wefti_ep_between_received_max(const weft_ep *ep)
{
    return (uint64_t)ep->ranks * (uint64_t)ep->config.tokens_max;
}

/* Floats of a row of values that goes back: K, to 16 bytes. */
static inline uint32_t wefti_ep_between_places(int topk)
{
    return ((uint32_t)topk + 3) / 4 * 4;
}

/* Whether ranks of a domain are added by their last choices. Where choices are ranks, that is in ascending rank. */
static inline int wefti_ep_between_orders_inside(const weft_ep_plan *plan)
{
    return plan->order == WEFT_EP_ORDER_CHOICE && !wefti_ep_plan_is_by_rank(plan);
}

/* Whether calls of the route go from rank to rank now: no rank forwards while a domain has masked ranks and others. */
static inline int wefti_ep_between_goes_directly(const weft_ep_route *route)
{
    return route->between->is_few || route->ep->between->is_partial;
}

/* WEFT_OK, or what kernels have found out since the last call. */
weft_status wefti_ep_between_status(weft_ep *ep, const char *call);
/* Why no call works any more, of the group or the one inside: 0, or the word that says it. */
uint64_t wefti_ep_between_failed(const weft_ep *ep);

/* Calls that go directly (domains_direct.c). The shape of their rings, of rows of so many bytes at most. */
void wefti_ep_direct_shape(weft_ep *ep, uint64_t row_bytes);
/* Bytes of rings that come behind what else is symmetric, of device memory (block INSIDE) or host memory. */
size_t wefti_ep_direct_bytes(const weft_ep *ep, int block);
/* Set the pointers of tables in private device memory, from *end on of what begins at `memory`. */
void wefti_ep_direct_lay_out(weft_ep *ep, uint64_t memory, wefti_u64 *end);
/* Write the tables, and empty the rings, which begin at these addresses. */
weft_status wefti_ep_direct_open(weft_ep *ep, void *inside, void *outside);
/* Whether calls of such a route go directly always; slot_tokens is as resolved. */
int wefti_ep_direct_takes(const weft_ep *ep, const weft_ep_plan *plan);

/* What WEFT_EP_STATISTICS keeps: words of device memory, and what comes after a call. */
uint64_t wefti_ep_between_stats_words(const weft_ep *ep);
weft_status wefti_ep_between_stats_open(weft_ep *ep);
weft_status wefti_ep_between_stats_fetch(const weft_ep *ep);
weft_status wefti_ep_between_stats_clear(const weft_ep *ep);
weft_status wefti_ep_between_count(const weft_ep_route *route, wefti_cuda_ep_counted counted, weft_stream *stream,
                                   const char *call);

weft_status wefti_ep_between_mask(weft_ep *ep, int rank, int alive);

size_t wefti_ep_between_route_bytes(const weft_ep *ep, const weft_ep_plan *plan);
weft_status wefti_ep_between_route_open(weft_ep_route *route, void *memory);
void wefti_ep_between_route_close(weft_ep_route *route);
weft_status wefti_ep_between_route_move(weft_ep_route *route, void *memory, size_t bytes);
weft_status wefti_ep_between_counts(const weft_ep_route *route, weft_ep_counts *counts);
weft_status wefti_ep_between_counts_told(weft_ep_route *route, const weft_ep_count_arrays *arrays);
weft_status wefti_ep_between_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts);

weft_status wefti_ep_between_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream);
weft_status wefti_ep_between_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                      const weft_ep_received *out, weft_stream *stream);
weft_status wefti_ep_between_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                           const weft_ep_received *out, weft_stream *stream);
weft_status wefti_ep_between_dispatch_recv(weft_ep_route *route, weft_stream *stream);
weft_status wefti_ep_between_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                     const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_ep_between_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_ep_between_combine_recv(weft_ep_route *route, weft_stream *stream);
weft_status wefti_ep_between_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                          const float *grad_weights_received, const weft_ep_rows *grad_in,
                                          float *grad_weights, weft_stream *stream);
weft_status wefti_ep_between_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                         const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                         weft_stream *stream);

#endif
