#include "ep/host/exchange.h"

#include "ep/host/answers.h"
#include "ep/host/notices.h"
#include "ep/host/records.h"
#include "ep/host/sends.h"

weft_status wefti_ep_exchange_post(wefti_ep_routing *route, const wefti_ep_call *call, const weft_ep_choices *choices,
                                   int64_t limit)
{
    const weft_ep *ep = route->ep;
    route->epoch = 0;
    route->received = 0;
    int in_range = wefti_ep_choices_read(route, choices);
    in_range &= wefti_ep_sends_build(route, choices);
    *route->status = in_range && *route->dropped == 0 ? WEFT_OK : WEFT_ERR_RANGE;
    wefti_ep_counts_tell_limit(ep, limit);
    WEFT_TRY(wefti_ep_notices_send(ep, &call->header, call->epoch, 1));
    for (int i = 0; i < ep->ranks; i++) {
        int rank = (ep->rank + i) % ep->ranks;
        if (ep->masked[rank] || wefti_ep_notices_reach(ep, rank)) {
            continue;
        }
        WEFT_TRY(wefti_ep_counts_put(ep, rank));
        WEFT_TRY(wefti_ep_call_post(call, rank));
    }
    return WEFT_OK;
}

/* Ranks that were masked since the sends were built receive nothing. What they send has no record until it comes. */
static void forget_masked(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (ep->masked[rank]) {
            ep->host->scratch.verdicts[rank].kept = 0;
        }
    }
    wefti_ep_records_forget(route);
}

weft_status wefti_ep_exchange_agree(wefti_ep_routing *route, const wefti_ep_call *call, int64_t limit)
{
    const weft_ep *ep = route->ep;
    int cut = 0;
    wefti_ep_stage(route->ep, "agree on counts");
    wefti_ep_counts_read(ep, call->epoch);
    WEFT_TRY(wefti_ep_answers_exchange(route, call, limit));
    for (int owner = 0; owner < ep->ranks; owner++) {
        const wefti_ep_verdict *verdict = &ep->host->scratch.verdicts[owner];
        cut |= verdict->cut >= 0;
        if (verdict->status != WEFT_OK) {
            *route->status = verdict->status;
        }
    }
    if (*route->status == WEFT_ERR_OVERFLOW) {
        wefti_ep_routing_tell_counts(route);
        return WEFT_OK;
    }
    if (cut) {
        WEFT_TRY(wefti_ep_answers_cut(route, call));
    }
    if ((ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) != 0) {
        forget_masked(route);
    }
    if (cut || (ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) != 0) {
        wefti_ep_sends_cut(route);
    }
    wefti_ep_routing_tell_counts(route);
    wefti_ep_sends_place(route);
    route->received = (int)wefti_ep_tokens_received(route);
    return WEFT_OK;
}
