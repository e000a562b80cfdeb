/* ep/host/host.h: the host backend's part of a group: peers, the symmetric memory and private working memory. */
#ifndef WEFTI_EP_HOST_HOST_H
#define WEFTI_EP_HOST_HOST_H

#include "ep/backend.h"
#include "weft/protocol/ep_layout.h"

/* A rank as seen from here. */
typedef struct wefti_ep_peer {
    int pe; /* its number in the world */
    unsigned char *near; /* its group memory, where this process can load and store it; else NULL: by put and get */
} wefti_ep_peer;

/* What an owner says of the counts. */
typedef struct wefti_ep_verdict {
    int32_t status; /* a weft_status */
    int32_t cut; /* the source at whose tokens its limit falls, or -1 */
    int64_t limit;
    uint32_t kept; /* of this rank's tokens to it, the first so many are received */
} wefti_ep_verdict;

/* Where another rank has the rows that this rank reads or writes. */
typedef struct wefti_ep_lane {
    unsigned char *near; /* its first row, where this process can load and store it; else NULL */
    uint64_t buffer; /* where its first row lies, from the start of its group memory */
    size_t pitch;
    int by_place; /* a row lies at the place of its token, else where the layout has the row */
    unsigned char *near_scales; /* as near and buffer: the scales of the first row */
    uint64_t scales;
    size_t scale_pitch; /* bytes from the scales of one row to the next */
    size_t scale_step; /* bytes from one word of scales to the next */
    int streams; /* rows go past the caches */
    int batch; /* ranks with the same number are sent to together; 0: not yet, or not at all */
} wefti_ep_lane;

/* Private memory that a call works in; nothing in it outlives the call. */
typedef struct wefti_ep_scratch {
    int32_t *pending; /* [R] ranks awaited */
    int32_t *choices; /* [T][K] ids with what is dropped as -1 */
    uint32_t *counts; /* [1 + R + E] this rank's limit, then its messages to the owners */
    uint32_t *counts_in; /* [R][wefti_ep_counts_words] the sources' messages, turned into the answers to them */
    uint32_t *bases; /* [R + E] the owners' answers to this rank */
    wefti_ep_verdict *verdicts; /* [R] of the owners */
    int64_t *expert_next; /* [E] the rows of each expert, or the next of them */
    unsigned char *records; /* [T] records on their way to one rank */
    wefti_ep_lane *lanes; /* [R] */
    unsigned char *rows; /* [3 + topk_max] rows: a sum, and copies of the ranks' rows, or biases, not read in place */
    const void **row_at; /* [topk_max + 2] the ranks' rows of one token, and biases */
    float *row_weight; /* [topk_max + 2] the weights of row_at */
    float *wide; /* [row_bytes_max / 2] a sum whose type is not its rows' */
    unsigned char *narrow; /* [2 * row_bytes_max] a row of the type of such a sum */
    int32_t *pair_order; /* [topk_max] a token's pairs in the order in which they are added */
    int32_t *pair_last; /* [topk_max] of each pair the last choice on its rank */
    unsigned char *domain_rows; /* [domains of a token] the sums of a token's domains, if there are several */
    const void **domain_at; /* [domains of a token] where each of these sums is */
    float *domain_values; /* [topk_max] the values of a token, added up in one domain */
    unsigned char *choice_rows; /* [topk_max] rows: copies of the rows of one token's choices */
    const void **choice_at; /* [topk_max] the rows of one token's choices */
    float *choice_weight; /* [topk_max] the weights of choice_at */
    unsigned char *wire; /* one row with its scales, quantised */
} wefti_ep_scratch;

typedef struct wefti_ep_host {
    wefti_ep_limits limits;
    wefti_ep_layout layout;
    unsigned char *base; /* this rank's group memory */
    wefti_ep_peer *peers; /* [R] */
    wefti_ep_scratch scratch;
    struct wefti_ep_push *push; /* the last or current call of either kind, which may be between its halves */
    struct wefti_ep_pull *pull;
    struct wefti_ep_crossing *crossing; /* NULL in a group that has none */
    uint64_t begun_ns; /* when this rank began its last call, and the one before: */
    uint64_t begun_before_ns; /* nobody began to wait for the last one earlier */
} wefti_ep_host;

/* A half-built one is good for fini. */
weft_status wefti_ep_scratch_init(weft_ep *ep);
size_t wefti_ep_scratch_bytes(const weft_ep *ep); /* of one that is not there yet */
void wefti_ep_scratch_fini(wefti_ep_scratch *scratch); /* safe on zeroed memory */

/* The places that each source has at an owner, where a group goes on without who is late: what a masked rank writes
 * late then lands where no other rank's tokens are. 0: a source has as many as it sends tokens, behind those of the
 * sources before it. */
static inline size_t wefti_ep_own_places(const weft_ep *ep)
{
    const int most =
        ep->config.tokens_max > ep->config.slot_tokens_max ? ep->config.tokens_max : ep->config.slot_tokens_max;
    return (ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) != 0 ? (size_t)most : 0;
}

#endif
