#include "ep/host/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ep/check.h"
#include "ep/host/peers.h"
#include "weft/protocol/mutate.h"

wefti_ep_call wefti_ep_call_begin(weft_ep *ep, const char *name, uint64_t shape, uint64_t route)
{
    wefti_ep_call call;
    memset(&call, 0, sizeof call);
    call.ep = ep;
    call.name = name;
    call.epoch = wefti_ld64(ep->host->base + ep->host->layout.epoch, WEFTI_RELAXED) + 1;
    call.line.shape = shape;
    call.line.route = route;
    call.odd_rank = -1;
    return call;
}

weft_status wefti_ep_call_post(const wefti_ep_call *call, int rank)
{
    uint64_t at = wefti_ep_call_at(&call->ep->host->layout, call->ep->rank);
    return wefti_ep_post(call->ep, rank, at, &call->line, offsetof(wefti_ep_call_line, unused),
                         at + offsetof(wefti_ep_call_line, epoch), call->epoch);
}

int wefti_ep_call_meet(wefti_ep_call *call, int rank, wefti_ep_call_line *line)
{
    wefti_copy(line, call->ep->host->base + wefti_ep_call_at(&call->ep->host->layout, rank),
               offsetof(wefti_ep_call_line, unused));
    if (line->shape == call->line.shape && line->route == call->line.route) {
        return 1;
    }
    if (call->odd_rank < 0 || rank < call->odd_rank) {
        call->odd_rank = rank;
        call->odd_line = *line;
    }
    return 0;
}

weft_status wefti_ep_call_meet_all(wefti_ep_call *call)
{
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(call->ep, WEFTI_EP_WORD_CALL, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_call_line line;
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        (void)wefti_ep_call_meet(call, rank, &line);
    }
    return WEFT_OK;
}

weft_status wefti_ep_call_done(const wefti_ep_call *call, int rank)
{
    return wefti_ep_post(call->ep, rank, 0, NULL, 0, wefti_ep_done_at(&call->ep->host->layout, call->ep->rank),
                         call->epoch);
}

weft_status wefti_ep_call_done_all(const wefti_ep_call *call)
{
    for (int i = 0; i < call->ep->ranks; i++) {
        WEFT_TRY(wefti_ep_call_done(call, (call->ep->rank + i) % call->ep->ranks));
    }
    return WEFT_OK;
}

weft_status wefti_ep_call_await_done(const wefti_ep_call *call)
{
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(call->ep, WEFTI_EP_WORD_DONE, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
    }
    return WEFT_OK;
}

/* A call line as text. */
static void describe(const wefti_ep_call_line *line, char *text, size_t bytes)
{
    unsigned kind = line->shape & 15;
    unsigned form = line->shape >> 4 & 15;
    unsigned middle = line->shape >> 8 & 0xffffff;
    unsigned high = (unsigned)(line->shape >> 32);
    if (kind == WEFTI_EP_UPDATE) {
        snprintf(text, bytes, "an update of topk %u, %s, alignment %u", middle,
                 form == WEFT_EP_RANK_MAJOR ? "rank-major" : "expert-major", high);
        return;
    }
    snprintf(text, bytes, "a %s of %u %s%s on the route updated in call %" PRIu64,
             kind == WEFTI_EP_DISPATCH ? "dispatch" : "combine", high, wefti_ep_dtype_name((weft_ep_dtype)form),
             (middle & WEFT_EP_WEIGHTED) != 0 ? ", weighted," : "", line->route);
}

weft_status wefti_ep_call_end(const wefti_ep_call *call)
{
    weft_ep *ep = call->ep;
    wefti_st64(ep->host->base + ep->host->layout.epoch, WEFTI_MUTATE(EPOCH_NOT_ADVANCED, call->epoch - 1, call->epoch),
               WEFTI_RELAXED);
    if (call->odd_rank < 0) {
        return WEFT_OK;
    }
    char mine[112];
    char other[112];
    describe(&call->line, mine, sizeof mine);
    describe(&call->odd_line, other, sizeof other);
    return wefti_error(WEFT_ERR_MISMATCH,
                       "%s: call %" PRIu64 " of the group is %s on rank %d and %s on rank %d (PE %d); ranks must make "
                       "the same calls in the same order",
                       call->name, call->epoch, mine, ep->rank, other, call->odd_rank,
                       ep->host->peers[call->odd_rank].pe);
}
