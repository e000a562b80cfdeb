/* ep/host/peers.h: how a rank reaches the group memory of another: by load and store where it is near, else by put and
 * get. */
#ifndef WEFTI_EP_HOST_PEERS_H
#define WEFTI_EP_HOST_PEERS_H

#include "ep/host/host.h"
#include "weft/protocol/mem.h"
#include "weft/rma.h"

/* `at` and `buffer` count bytes from the start of the group memory, modulo 2^64. The address in this process when
 * `rank` is near, else NULL. */
static inline unsigned char *wefti_ep_near(const weft_ep *ep, int rank, uint64_t at)
{
    unsigned char *near = ep->host->peers[rank].near;
    return near != NULL ? (unsigned char *)((uintptr_t)near + (uintptr_t)at) : NULL;
}

/* The symmetric address, for put and get. */
static inline unsigned char *wefti_ep_symmetric(const weft_ep *ep, uint64_t at)
{
    return (unsigned char *)((uintptr_t)ep->host->base + (uintptr_t)at);
}

/* Mask a rank that does not answer: the call goes on without it. */
void wefti_ep_give_up(const weft_ep *ep, int rank);

/* Whether a group goes on without who does not answer. */
static inline int wefti_ep_masks(const weft_ep *ep)
{
    return (ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) != 0;
}

/* A far rank that is gone is no reason to leave a call half-way: the other ranks are still told what they wait for, and
 * the call ends by the deadline, since that one's flags do not come. Nor is one that does not answer where the group
 * goes on without such. */
static inline weft_status wefti_ep_unless_gone(const weft_ep *ep, int rank, weft_status status)
{
    if (WEFTI_UNLIKELY(status == WEFT_ERR_TIMEOUT && wefti_ep_masks(ep))) {
        wefti_ep_give_up(ep, rank);
        return WEFT_OK;
    }
    return status == WEFT_ERR_PEER ? WEFT_OK : status;
}

/* Copy `bytes` bytes into `rank`'s memory. `source` can be reused on return. No order but by wefti_ep_post. */
static inline weft_status wefti_ep_put(const weft_ep *ep, int rank, uint64_t at, const void *source, size_t bytes)
{
    unsigned char *near = wefti_ep_near(ep, rank, at);
    if (near != NULL) {
        wefti_copy(near, source, bytes);
        return WEFT_OK;
    }
    if (ep->masked[rank]) { /* in this call */
        return WEFT_OK;
    }
    const int pe = ep->host->peers[rank].pe;
    return wefti_ep_unless_gone(ep, rank, weft_putmem(ep->world, wefti_ep_symmetric(ep, at), source, bytes, pe));
}

/* Copy `bytes` bytes out of the memory of a far rank. In a group that goes on without who does not answer the rank is
 * masked afterwards if they have not come. */
static inline weft_status wefti_ep_get(const weft_ep *ep, int rank, void *to, uint64_t at, size_t bytes)
{
    if (ep->masked[rank]) {
        return WEFT_OK;
    }
    const int pe = ep->host->peers[rank].pe;
    weft_status status = weft_getmem(ep->world, to, wefti_ep_symmetric(ep, at), bytes, pe);
    status = status == WEFT_ERR_PEER && wefti_ep_masks(ep) ? WEFT_ERR_TIMEOUT : status;
    return wefti_ep_unless_gone(ep, rank, status);
}

/* Put `bytes` bytes of `payload`, if any, at `at` in `rank`'s memory, and then set the flag at `flag_at` there: who
 * sees it sees them. Without a payload the flag comes behind all that this rank has put there before, too. */
static inline weft_status wefti_ep_post_apart(const weft_ep *ep, int rank, uint64_t at, const void *payload,
                                              size_t bytes, uint64_t flag_at, uint64_t value)
{
    unsigned char *near = wefti_ep_near(ep, rank, 0);
    if (near != NULL) {
        if (bytes > 0) {
            wefti_copy(near + at, payload, bytes);
        }
        wefti_st64(near + flag_at, value, WEFTI_RELEASE);
        return WEFT_OK;
    }
    if (ep->masked[rank]) {
        return WEFT_OK;
    }
    return wefti_ep_unless_gone(ep, rank,
                                weft_putmem_signal(ep->world, wefti_ep_symmetric(ep, at), bytes > 0 ? payload : &value,
                                                   bytes, (uint64_t *)(void *)wefti_ep_symmetric(ep, flag_at), value,
                                                   WEFT_SIGNAL_SET, ep->host->peers[rank].pe));
}

/* The same, behind all that this rank has put there before: who sees the flag sees that, too. Data behind a fence may
 * wait until the other side has taken what went before. */
static inline weft_status wefti_ep_post(const weft_ep *ep, int rank, uint64_t at, const void *payload, size_t bytes,
                                        uint64_t flag_at, uint64_t value)
{
    if (bytes > 0 && wefti_ep_near(ep, rank, 0) == NULL && !ep->masked[rank]) {
        WEFT_TRY(weft_fence(ep->world));
    }
    return wefti_ep_post_apart(ep, rank, at, payload, bytes, flag_at, value);
}

#endif
