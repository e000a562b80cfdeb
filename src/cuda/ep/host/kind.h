/* cuda/ep/host/kind.h: the kinds of groups inside one domain, as tables of what they have and do. A kind is chosen
 * when a group is created, by its ranks and flags; nothing else asks which it is. Groups of several domains are a
 * backend of their own (cuda/ep/host/domains.h), with a group of one of these kinds in each domain. */
#ifndef WEFTI_CUDA_EP_HOST_KIND_H
#define WEFTI_CUDA_EP_HOST_KIND_H

#include "cuda/ep/host/kernels.h"
#include "cuda/ep/host/plan.h"

/* Kernels of all works that a group may have, and what ends their names. */
typedef enum wefti_cuda_ep_set {
    WEFTI_CUDA_EP_SET_THROUGHPUT,
    WEFTI_CUDA_EP_SET_LOW_LATENCY,
    WEFTI_CUDA_EP_SET_PASSING, /* in place of those, of groups that mask by themselves */
    WEFTI_CUDA_EP_SET_MANY,
    WEFTI_CUDA_EP_SET_POSITIONS, /* by source, in place of those of throughput, of routes whose choices are positions */
    WEFTI_CUDA_EP_SET_MANY_POSITIONS, /* the same in place of those of many ranks */
    WEFTI_CUDA_EP_SET_MANY_PASSING, /* of slots, in place of those, of groups that mask by themselves */
    WEFTI_CUDA_EP_SETS
} wefti_cuda_ep_set;

typedef struct wefti_cuda_ep_kind {
    wefti_cuda_ep_set set; /* of throughput calls */
    wefti_cuda_ep_set low_latency; /* of calls of low latency, in groups with memory for them */
    wefti_cuda_ep_set positions; /* of calls of routes whose choices are positions */
    unsigned families; /* the modules of throughput calls, as bits */
    unsigned low_latency_families; /* those of low latency */
    unsigned eager_families; /* those of rows that leave with send; 0: there are none */
    unsigned positions_families; /* those of routes of positions */
    uint64_t low_latency_copies; /* of the rows of slots, that calls of low latency have memory for */
    size_t owner_bytes; /* of an element of the tables' `owner` */
    /* A kernel is whole, send and recv of its call, with options or without, and none comes before a combine with
     * some. */
    int all_in_one;

    /* What lies where in the area of a bank. */
    wefti_cuda_ep_layout (*layout)(const weft_ep *ep, uint64_t staged_bytes, int low_latency_tokens);

    /* Where kernels find the first expert of each rank, [R + 1], and a rank's PE and area. */
    void (*set_experts)(wefti_cuda_ep_group *group, const int32_t *first);
    void (*set_rank)(wefti_cuda_ep_group *group, wefti_cuda_ep_directory *directory, int rank, int pe, uint64_t area);
    /* Once all are set: the directory to this rank's area, if kernels read it. */
    weft_status (*write_directory)(const weft_ep *ep, int bank, wefti_cuda_ep_directory *directory);

    /* The rest of a launch plan of which `kernel` is set. */
    void (*plan)(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan);

    /* Whether a kernel waited in vain for `rank`: by what it told the host, of which `failed` is one word. */
    int (*is_missing)(const uint64_t *told, uint64_t failed, int rank);

    /* Take what this rank has told `rank` on a bank back: its kernels that begin from now on store nothing here. */
    weft_status (*revoke)(const weft_ep *ep, int bank, int rank);
    /* Who is masked on a bank, to where kernels look beside the control words. */
    weft_status (*tell_masked)(const weft_ep *ep, int bank, const uint32_t *masked);
    /* Where in the area kernels look for it, and write whom they mask: a word for each 32 ranks. */
    uint64_t (*masked_at)(const wefti_cuda_ep_layout *at);
} wefti_cuda_ep_kind;

/* The kind of a group of which config and ranks are known. */
const wefti_cuda_ep_kind *wefti_cuda_ep_find_kind(const weft_ep *ep);

/* What the kinds do differently, where it is more than a few lines: plan.c, masks.c. */
void wefti_cuda_ep_plan_few(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan);
void wefti_cuda_ep_plan_many(const weft_ep_route *route, wefti_cuda_ep_launch_plan *plan);
weft_status wefti_cuda_ep_revoke_few(const weft_ep *ep, int bank, int rank);
weft_status wefti_cuda_ep_revoke_many(const weft_ep *ep, int bank, int rank);
weft_status wefti_cuda_ep_tell_masked_few(const weft_ep *ep, int bank, const uint32_t *masked);
weft_status wefti_cuda_ep_tell_masked_many(const weft_ep *ep, int bank, const uint32_t *masked);
uint64_t wefti_cuda_ep_masked_at_few(const wefti_cuda_ep_layout *at);
uint64_t wefti_cuda_ep_masked_at_many(const wefti_cuda_ep_layout *at);

/* Load the modules whose kernels the group may launch, and find these (find.c). */
weft_status wefti_cuda_ep_find_kernels(weft_ep *ep);

#endif
