#include "ep/host/growth.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ep/agreement.h"
#include "ep/check.h"
#include "weft.h"

wefti_ep_need wefti_ep_need_of_routing(const weft_ep_plan *plan, int tokens)
{
    wefti_ep_need need = {.tokens_max = tokens, .topk_max = plan->topk};
    if (wefti_ep_plan_is_slots(plan)) {
        need.slot_tokens_max = plan->slot_tokens;
        need.tokens_max = tokens > plan->slot_tokens ? tokens : plan->slot_tokens;
    }
    return need;
}

void wefti_ep_need_rows(wefti_ep_need *need, const weft_ep_rows *rows)
{
    size_t row_bytes = (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
    int scale_bytes = rows->scale_type == WEFT_EP_SCALE_BYTES ? rows->scale_bytes : 0;
    need->row_bytes_max = row_bytes > need->row_bytes_max ? row_bytes : need->row_bytes_max;
    need->scale_bytes_max = scale_bytes > need->scale_bytes_max ? scale_bytes : need->scale_bytes_max;
}

int wefti_ep_need_exceeds(const weft_ep *ep, const wefti_ep_need *need)
{
    const weft_ep_config *config = &ep->config;
    return need->tokens_max > config->tokens_max || need->topk_max > config->topk_max ||
           need->slot_tokens_max > config->slot_tokens_max || need->row_bytes_max > config->row_bytes_max ||
           need->scale_bytes_max > config->scale_bytes_max;
}

/* ---- growing ---- */

static weft_ep_config widened(const weft_ep *ep, const wefti_ep_need *need)
{
    weft_ep_config config = ep->config;
#define WIDEN(field) config.field = need->field > config.field ? need->field : config.field
    WIDEN(tokens_max);
    WIDEN(topk_max);
    WIDEN(slot_tokens_max);
    WIDEN(row_bytes_max);
    WIDEN(scale_bytes_max);
#undef WIDEN
    config.scale_bytes_max = wefti_ep_scale_bytes_max(&config);
    return config;
}

/* The error of a group that cannot have these limits. */
static weft_status refuse(const weft_ep *ep, const weft_ep_config *to, const char *call, const char *why)
{
    const weft_ep_config *from = &ep->config;
    return wefti_error(
        WEFT_ERR_RANGE,
        "%s: tokens_max would grow from %d to %d, topk_max from %d to %d, slot_tokens_max from %d to %d, "
        "row_bytes_max from %zu to %zu, scale_bytes_max from %d to %d, and %s",
        call, from->tokens_max, to->tokens_max, from->topk_max, to->topk_max, from->slot_tokens_max,
        to->slot_tokens_max, from->row_bytes_max, to->row_bytes_max, from->scale_bytes_max, to->scale_bytes_max, why);
}

static weft_status check_bytes(weft_ep *ep, const weft_ep_config *to, const char *call)
{
    weft_ep_config from = ep->config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    char why[160];
    if (to->rows_max == 0 && (int64_t)ep->ranks * to->tokens_max > INT32_MAX / to->topk_max) {
        return refuse(ep, to, call, "the worst case is more than 2147483647 rows; make the group with rows_max");
    }
    ep->config = *to;
    weft_status status = ep->backend->group_bytes(ep, &memory);
    ep->host = ep->hosts[ep->channel];
    ep->config = from;
    WEFT_TRY(status);
    if (memory.symmetric_bytes > to->bytes_max) {
        (void)snprintf(why, sizeof why, "the group would take %zu bytes of symmetric memory; bytes_max is %zu",
                       memory.symmetric_bytes, to->bytes_max);
        return refuse(ep, to, call, why);
    }
    return WEFT_OK;
}

/* Have memory for the limits of the config, in place of what ep->hosts had. */
static weft_status open_memory(weft_ep *ep)
{
    weft_status verdict = ep->backend->group_init(ep);
    WEFT_TRY(wefti_ep_agree(ep->team, &ep->config, ep, verdict));
    WEFT_TRY(ep->backend->group_open(ep));
    for (int channel = 0; channel < wefti_ep_channels(ep); channel++) {
        wefti_ep_host *host = ep->hosts[channel];
        wefti_st64(host->base + host->layout.epoch, *ep->started, WEFTI_RELAXED);
    }
    return WEFT_OK;
}

static void swap_hosts(weft_ep *ep, wefti_ep_host *hosts[WEFTI_EP_CHANNELS_MAX])
{
    for (int i = 0; i < WEFTI_EP_CHANNELS_MAX; i++) {
        wefti_ep_host *other = ep->hosts[i];
        ep->hosts[i] = hosts[i];
        hosts[i] = other;
    }
    ep->host = ep->hosts[ep->channel];
}

/* All ranks, with the same need. */
static weft_status grow(weft_ep *ep, const wefti_ep_need *need, const char *call)
{
    const weft_ep_config from = ep->config;
    const weft_ep_config to = widened(ep, need);
    wefti_ep_host *hosts[WEFTI_EP_CHANNELS_MAX] = {NULL};
    if (memchr(ep->masked, 1, (size_t)ep->ranks) != NULL) {
        return refuse(ep, &to, call, "a rank is masked, which has no part in it");
    }
    WEFT_TRY(check_bytes(ep, &to, call));
    swap_hosts(ep, hosts); /* hosts: the old ones */
    ep->config = to;
    weft_status status = open_memory(ep);
    if (status != WEFT_OK) {
        ep->config = from;
        ep->backend->group_fini(ep);
        swap_hosts(ep, hosts);
    } else {
        swap_hosts(ep, hosts); /* hosts: the new ones */
        status = ep->backend->group_close(ep);
        ep->backend->group_fini(ep);
        swap_hosts(ep, hosts);
    }
    return status == WEFT_ERR_MEMORY ? refuse(ep, &to, call, weft_last_error()) : status;
}

/* ---- the calls ---- */

/* Headers and done flags, and nothing between. */
static weft_status end_without_moving(wefti_ep_call *call)
{
    WEFT_TRY(wefti_ep_call_done_all(call));
    WEFT_TRY(wefti_ep_call_await_done(call));
    return wefti_ep_call_end(call);
}

weft_status wefti_ep_grow_for_rows(const wefti_ep_routing *route, const char *name,
                                   const wefti_ep_signature_fields *fields, const wefti_ep_need *need)
{
    if (!wefti_ep_need_exceeds(route->ep, need)) {
        return WEFT_OK;
    }
    wefti_ep_call call = wefti_ep_call_begin(route->ep, name, fields);
    wefti_ep_call_follows(&call, route);
    WEFT_TRY(wefti_ep_call_post_all(&call));
    WEFT_TRY(wefti_ep_call_wait_headers(&call));
    WEFT_TRY(end_without_moving(&call));
    return grow(route->ep, need, name);
}

weft_status wefti_ep_grow_for_routing(wefti_ep_call *call, wefti_ep_need *need, int *again)
{
    *again = 0;
    need->tokens_max = call->tokens_most > need->tokens_max ? call->tokens_most : need->tokens_max;
    if (call->mismatched_rank >= 0 || !wefti_ep_need_exceeds(call->ep, need)) {
        return WEFT_OK;
    }
    WEFT_TRY(end_without_moving(call));
    WEFT_TRY(grow(call->ep, need, call->name));
    *again = 1;
    return WEFT_OK;
}
