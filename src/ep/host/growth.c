#include "ep/host/growth.h"

#include "ep/agreement.h"
#include "weft.h"

/* The group is as after the calls that have been made; the next one is on this call's bank again. */
static void number_calls(const weft_ep *ep)
{
    const uint64_t banks = (uint64_t)wefti_ep_banks(ep);
    *ep->started += banks - 1;
    for (uint64_t i = 0; i < banks && i < *ep->started; i++) {
        wefti_ep_host *host = ep->host_of[(*ep->started - i) % banks];
        wefti_st64(host->base + host->layout.epoch, *ep->started - i, WEFTI_RELAXED);
    }
}

/* Have memory for the limits of the config, in place of what ep->host_of had. */
static weft_status open_memory(weft_ep *ep, const char *call)
{
    weft_status verdict = ep->backend->group_init(ep);
    WEFT_TRY(wefti_ep_agree(ep->team, &ep->config, ep, verdict, call));
    return ep->backend->group_open(ep);
}

static void swap_host_of(weft_ep *ep, wefti_ep_host *hosts[WEFTI_EP_BANKS_MAX])
{
    for (int i = 0; i < WEFTI_EP_BANKS_MAX; i++) {
        wefti_ep_host *other = ep->host_of[i];
        ep->host_of[i] = hosts[i];
        hosts[i] = other;
    }
    ep->host = ep->host_of[ep->bank];
}

weft_status wefti_ep_host_grow(weft_ep *ep, const char *call)
{
    wefti_ep_host *hosts[WEFTI_EP_BANKS_MAX] = {NULL};
    swap_host_of(ep, hosts); /* hosts: the old ones */
    weft_status status = open_memory(ep, call);
    if (status != WEFT_OK) {
        ep->backend->group_fini(ep);
        swap_host_of(ep, hosts);
        return status;
    }
    swap_host_of(ep, hosts); /* hosts: the new ones */
    status = ep->backend->group_close(ep);
    ep->backend->group_fini(ep);
    swap_host_of(ep, hosts);
    number_calls(ep);
    return status;
}

/* ---- the calls ---- */

/* End the call after its headers: done flags, and no data between. */
static weft_status end_without_moving(wefti_ep_call *call)
{
    WEFT_TRY(wefti_ep_call_done_all(call));
    WEFT_TRY(wefti_ep_call_await_done(call));
    return wefti_ep_call_end(call);
}

weft_status wefti_ep_grow_for_rows(weft_ep_route *handle, const char *name, const wefti_ep_signature_fields *fields,
                                   const wefti_ep_need *need)
{
    if (!wefti_ep_need_exceeds(handle->ep, need)) {
        return WEFT_OK;
    }
    wefti_ep_call call = wefti_ep_call_begin(handle->ep, name, fields);
    wefti_ep_call_set_route(&call, handle->host);
    WEFT_TRY(wefti_ep_call_post_all(&call));
    WEFT_TRY(wefti_ep_call_wait_headers(&call));
    WEFT_TRY(end_without_moving(&call));
    return wefti_ep_grow(handle, need, call.holds, 0, name);
}

weft_status wefti_ep_grow_for_routing(weft_ep_route *handle, wefti_ep_call *call, wefti_ep_need *need, int *again)
{
    const char *name = call->name;
    const unsigned holds = call->holds;
    *again = 0;
    need->tokens_max = call->tokens_most > need->tokens_max ? call->tokens_most : need->tokens_max;
    if (call->mismatched_rank >= 0 || !wefti_ep_need_exceeds(call->ep, need)) {
        return WEFT_OK;
    }
    WEFT_TRY(end_without_moving(call));
    WEFT_TRY(wefti_ep_grow(handle, need, holds, 1, name));
    *again = 1;
    return WEFT_OK;
}

weft_status wefti_ep_host_meet(weft_ep *ep, wefti_ep_meeting *meeting, const char *call)
{
    const wefti_ep_signature_fields fields = wefti_ep_signature_split(meeting->signature);
    wefti_ep_call own = wefti_ep_call_begin(ep, call, &fields);
    wefti_ep_call_set_meeting(&own, meeting);
    WEFT_TRY(wefti_ep_call_post_all(&own));
    WEFT_TRY(wefti_ep_call_wait_headers(&own));
    meeting->tokens = own.tokens_most > meeting->tokens ? own.tokens_most : meeting->tokens;
    meeting->holds = own.holds;
    meeting->refused_rank = own.refused_rank;
    return end_without_moving(&own);
}
