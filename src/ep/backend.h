/* ep/backend.h: the seam between the calls of weft_ep.h and what carries them out. There are three backends, of which a
 * group has one for life: in the PEs' host memory (src/ep/host); on their GPUs, in one link domain; and on their GPUs,
 * in several (both src/cuda/ep).
 *
 * The public functions check what can be checked without a backend (NULL, sizes, ranges, types, shapes, alignment, the
 * state of the group) and then call these. Functions that return a status have decided the error. All run on the thread
 * that calls, one at a time a group. */
#ifndef WEFTI_EP_BACKEND_H
#define WEFTI_EP_BACKEND_H

#include "ep/combining.h"
#include "ep/route.h"

/* A call of a group on GPUs that its ranks compare on the host, through a group of the host's backend. */
typedef struct wefti_ep_meeting {
    uint64_t signature; /* protocol/ep_layout.h */
    const weft_ep_plan *plan; /* of a call that routes, else NULL */
    int tokens; /* T of such a call; becomes the most of all ranks */
    unsigned holds; /* WEFTI_EP_HOLD_...; becomes those of all ranks */
    int refused_rank; /* becomes a rank with WEFTI_EP_HOLD_REFUSED, if there is one */
} wefti_ep_meeting;

struct wefti_ep_backend {
    const char *name;
    int has_streams; /* 0: calls run inline, and a stream that is not NULL is refused before they are made */

    /* The number of the PE's link domain, of the memory that such groups use: that of its lowest PE. Local. */
    int (*link_domain)(const weft_world *world, int pe);

    /* The memory of such a group, of which there are only limits and owners: all fields but the size. Local. */
    weft_status (*group_bytes)(weft_ep *ep, weft_ep_memory *memory);

    /* Private memory of a group whose common part is complete. Local, before the ranks agree. On failure
     * group_fini is called. */
    weft_status (*group_init)(weft_ep *ep);
    /* Its symmetric memory. Collective over ep->team; may block, at most the deadline. On failure, which is the same on
     * all ranks or leaves the team dead, group_fini is called. */
    weft_status (*group_open)(weft_ep *ep);
    /* Give the symmetric memory back. Collective over ep->team; called only while everybody is alive. */
    weft_status (*group_close)(weft_ep *ep);
    /* The config's limits have grown: have memory for them in place of what there is, with the calls counted that were
     * made. Collective over ep->team, in a call. On failure the group has what it had, but for the config. NULL: limits
     * do not grow. */
    weft_status (*grow)(weft_ep *ep, const char *call);
    /* Whether the memory must stay, since a graph has calls of the group. NULL: never. */
    int (*is_captured)(const weft_ep *ep);
    /* In a group of this backend that is there for that: all ranks make a call alike. Collective over the group; a call
     * by itself. WEFT_ERR_MISMATCH: they do not. NULL: cannot. */
    weft_status (*meet)(weft_ep *ep, wefti_ep_meeting *meeting, const char *call);
    /* Free what is private; local, never waits for other ranks. Safe after a group_init that failed half-way or was
     * never called. */
    void (*group_fini)(weft_ep *ep);

    /* A rank of the group, not this one, is to be masked or unmasked; the call is valid. Local. The backend sets
     * ep->late when a call returns WEFT_ERR_TIMEOUT, and counts such a call like one that was completed. */
    weft_status (*mask)(weft_ep *ep, int rank, int alive);

    /* What has failed since a call was made last; WEFT_OK: nothing. Any thread. NULL: calls fail where they are
     * made. */
    weft_status (*failure)(const weft_ep *ep);

    /* Fill `report`, of which the size is set. Any thread. NULL: calls return WEFT_ERR_OVERFLOW themselves. */
    void (*overflow)(const weft_ep *ep, weft_ep_overflow_report *report);

    /* What WEFT_EP_STATISTICS keeps elsewhere, into ep->stats; and set that to zero. NULL, both: it is kept there. */
    weft_status (*stats_fetch)(const weft_ep *ep);
    weft_status (*stats_clear)(const weft_ep *ep);

    /* The collective calls made, and be in step with ranks that have made so many. Local. WEFT_ERR_ARGUMENT: this rank
     * has made more. NULL, both: cannot. */
    weft_status (*calls)(const weft_ep *ep, uint64_t *calls);
    weft_status (*rejoin)(weft_ep *ep, uint64_t calls);

    /* What weft_ep_sms_hint tells of a plan, which is valid. NULL: 0. */
    int (*sms_hint)(const weft_ep *ep, const weft_ep_plan *plan);

    /* The bytes that route_open wants of a route of this plan, which is valid. */
    size_t (*route_bytes)(const weft_ep *ep, const weft_ep_plan *plan);
    /* Make the backend's part of a route, in `memory`, which has route_bytes bytes aligned to 64 and stays the
     * caller's, or, NULL, in memory of its own. On failure nothing is left. */
    weft_status (*route_open)(weft_ep_route *route, void *memory);
    void (*route_close)(weft_ep_route *route);
    /* Before the route has another routing: have memory for the group's limits, if these have grown. Local.
     * WEFT_ERR_RANGE: it is the caller's, and too small. NULL: limits do not grow. */
    weft_status (*route_fit)(weft_ep_route *route, const char *call);
    /* Move the route, which lies in memory of the caller's, to memory of so many bytes, at least route_bytes, that do
     * not overlap it. */
    weft_status (*route_move)(weft_ep_route *route, void *memory, size_t bytes);
    /* As weft_ep_route_attach says of valid arguments, but for `bytes` of a routing where limits grow; on failure the
     * route is as it was. NULL: cannot. */
    weft_status (*route_attach)(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                weft_stream *stream);

    /* Before a call that makes a routing where rows are dropped by themselves (wefti_ep_drops_rows): *kept becomes what
     * is left of the choices, in memory of the route, or, is_counted, what it became before. Collective. NULL: there
     * are no such groups. */
    weft_status (*drop_rows)(weft_ep_route *route, const weft_ep_choices *choices, int is_counted,
                             weft_ep_choices *kept, weft_stream *stream);

    /* weft_ep.h's calls of these names. Each sets route->is_routed to whether the route has a routing now. */
    weft_status (*update)(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream);
    weft_status (*counts)(const weft_ep_route *route, weft_ep_counts *counts);
    /* The route's counts are to be told there, its next routing as number 1; or not any more: generation NULL. */
    weft_status (*counts_told)(weft_ep_route *route, const weft_ep_count_arrays *arrays);
    weft_status (*query)(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts);
    /* `fresh`: the choices of a routing to be agreed on in the way, or NULL: on the routing that the route has. */
    weft_status (*dispatch)(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                            const weft_ep_received *out, weft_stream *stream);
    weft_status (*combine)(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                           const wefti_ep_combining *combining, weft_stream *stream);
    /* The halves. A send that fails needs no recv. Between them no other collective call of the group is made; the
     * structs given to send are gone, the arrays that they name are not. */
    weft_status (*dispatch_send)(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                 const weft_ep_received *out, weft_stream *stream);
    weft_status (*dispatch_recv)(weft_ep_route *route, weft_stream *stream);
    weft_status (*combine_send)(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                const wefti_ep_combining *combining, weft_stream *stream);
    weft_status (*combine_recv)(weft_ep_route *route, weft_stream *stream);
    weft_status (*dispatch_bwd)(weft_ep_route *route, const weft_ep_rows *grad_received,
                                const float *grad_weights_received, const weft_ep_rows *grad_in, float *grad_weights,
                                weft_stream *stream);
    weft_status (*combine_bwd)(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                               const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags, weft_stream *stream);
    /* weft_ep_route_pad, on a routing and of no slot layout. Local. */
    weft_status (*pad)(const weft_ep_route *route, const weft_ep_received *out, uint64_t *mark, weft_stream *stream);
};

/* What a group of this config takes, of which there are only limits and owners: all fields but the size. */
static inline weft_status wefti_ep_memory_of(weft_ep *ep, weft_ep_memory *memory)
{
    weft_status status = ep->backend->group_bytes(ep, memory);
    memory->window_bytes = (size_t)ep->config.windows * wefti_ep_window_pitch(&ep->config);
    memory->symmetric_bytes += memory->window_bytes;
    return status;
}

/* What a backend calls on groups of its own, as one between domains does on that of its domain: by a table, since these
 * functions stand above the backends. */
typedef struct wefti_ep_calls {
    weft_status (*create)(weft_team *team, const weft_ep_config *config, weft_ep **ep);
    weft_status (*destroy)(weft_ep *ep);
    weft_status (*bytes)(const weft_ep_config *config, int ranks, weft_ep_memory *memory);
    weft_status (*route_create)(weft_ep *ep, const weft_ep_plan *plan, void *memory, weft_ep_route **route);
    weft_status (*route_destroy)(weft_ep_route *route);
    weft_status (*route_choose)(weft_ep_route *route, const weft_ep_choices *choices);
    weft_status (*dispatch)(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                            weft_stream *stream);
    weft_status (*combine_with)(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                const weft_ep_combine_options *options, weft_stream *stream);
} wefti_ep_calls;

/* The backend of host memory. */
extern const wefti_ep_backend wefti_ep_host_backend;

/* The backend of GPUs; NULL in a build without. */
extern const wefti_ep_backend *const wefti_ep_device_backend;

/* The backend of GPUs in groups of several domains; NULL likewise. */
extern const wefti_ep_backend *const wefti_ep_domains_backend;

#endif
