/* ep/group.h: what hangs on a weft_ep: limits, owners, peers, the symmetric memory and private working memory. */
#ifndef WEFTI_EP_GROUP_H
#define WEFTI_EP_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "ep/owners.h"
#include "weft/protocol/attachment.h"
#include "weft/protocol/ep_layout.h"
#include "weft_ep.h"

#define WEFTI_EP_EXPERTS_MAX (1 << 24)
#define WEFTI_EP_TOPK_MAX 65535
#define WEFTI_EP_ROW_BYTES_MAX (1u << 30)

/* A rank as seen from here. */
typedef struct wefti_ep_peer {
    int pe; /* its number in the world */
    unsigned char *near; /* its group memory, where this process can load and store it; else NULL: by put and get */
} wefti_ep_peer;

/* Where another rank has the rows that this rank reads or writes. */
typedef struct wefti_ep_lane {
    unsigned char *near; /* its first row, where this process can load and store it; else NULL */
    uint64_t buffer; /* the same from the start of its group memory */
    size_t pitch;
    /* Of a dispatch: */
    int by_place; /* rows lie by received token */
    int streams; /* rows go past the caches */
    int batch; /* ranks of one number are sent to together; 0: not yet */
} wefti_ep_lane;

/* Private memory that a call works in; nothing in it outlives the call. */
typedef struct wefti_ep_scratch {
    int32_t *pending; /* [R] ranks awaited */
    int32_t *choices; /* [T][K] ids with what is dropped as -1 */
    uint32_t *counts; /* [R + E] messages to the owners */
    uint32_t *counts_in; /* [R][1 + L] the sources' messages to this owner, then the answers to them */
    uint32_t *bases; /* [R + E] the owners' answers */
    int64_t *expert_next; /* [E] the rows of each expert, or the next of them */
    unsigned char *records; /* [T] records on their way to one rank */
    wefti_ep_lane *lanes; /* [R] */
    unsigned char *rows; /* [1 + topk_max] rows: a sum, and copies of the ranks' rows that cannot be read in place */
    const void **row_at; /* [topk_max] the ranks' rows of one token */
    unsigned char *choice_rows; /* [topk_max] rows: copies of the rows of one token's choices */
    const void **choice_at; /* [topk_max] the rows of one token's choices */
    float *choice_weight; /* [topk_max] and their weights */
} wefti_ep_scratch;

struct weft_ep {
    wefti_attachment attachment;
    weft_world *world;
    weft_team *team;
    int rank;
    int ranks;
    weft_ep_config config; /* without the table */
    int64_t rows_limit; /* more rows than this overflow */
    wefti_ep_owners owners;
    wefti_ep_limits limits;
    wefti_ep_layout layout;
    unsigned char *base; /* this rank's group memory */
    wefti_ep_peer *peers;
    wefti_ep_scratch scratch;
    weft_ep_route *routes; /* alive */
    weft_status dead; /* why no call can work any more, or WEFT_OK */
    uint32_t busy; /* in a call; debug builds look */
};

/* Free a route's memory, if it is the library's, and take it off its group's list. */
void wefti_ep_route_end(weft_ep_route *route);

/* WEFT_OK, or what a dead group's calls return. */
weft_status wefti_ep_check_alive(const weft_ep *ep, const char *call);

/* Begin a collective call on a group that is alive. In debug builds WEFT_ERR_STATE when another thread is inside. */
weft_status wefti_ep_enter(weft_ep *ep, const char *call);

/* End it. A status that leaves ranks apart kills the group; returns `status`. */
weft_status wefti_ep_leave(weft_ep *ep, weft_status status);

static inline int wefti_ep_local_experts(const weft_ep *ep)
{
    return wefti_ep_owners_count(&ep->owners, ep->rank);
}

#endif
