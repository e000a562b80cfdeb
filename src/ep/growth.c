#include "ep/growth.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "ep/agreement.h"
#include "ep/check.h"

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

unsigned wefti_ep_holds(const weft_ep *ep)
{
    const wefti_ep_half beside = wefti_ep_banks(ep) == 2 ? ep->half[1 - ep->bank] : WEFTI_EP_HALF_NONE;
    const int is_captured = ep->backend->is_captured != NULL && ep->backend->is_captured(ep);
    return (memchr(ep->masked, 1, (size_t)ep->ranks) != NULL ? WEFTI_EP_HOLD_MASKED : 0u) |
           (beside != WEFTI_EP_HALF_NONE ? WEFTI_EP_HOLD_PAIR : 0u) | (is_captured ? WEFTI_EP_HOLD_CAPTURED : 0u);
}

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

/* The same, with the text of the last error as the reason. */
static weft_status refuse_by_last(const weft_ep *ep, const weft_ep_config *to, const char *call)
{
    char why[160];
    (void)snprintf(why, sizeof why, "%s", weft_last_error());
    return refuse(ep, to, call, why);
}

static weft_status check_holds(const weft_ep *ep, const weft_ep_config *to, unsigned holds, const char *call)
{
    const char *why = (holds & WEFTI_EP_HOLD_MASKED) != 0 ? "a rank is masked, which has no part in it"
                      : (holds & WEFTI_EP_HOLD_PAIR) != 0
                          ? "another pair of halves is outstanding, whose memory it is; call its recv first"
                      : (holds & WEFTI_EP_HOLD_CAPTURED) != 0
                          ? "a graph has calls of the group, whose memory it is; call once before a capture"
                          : NULL;
    return why == NULL ? WEFT_OK : refuse(ep, to, call, why);
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
    weft_status status = wefti_ep_memory_of(ep, &memory);
    ep->config = from;
    if (status != WEFT_OK) {
        return refuse_by_last(ep, to, call);
    }
    if (memory.symmetric_bytes > to->bytes_max) {
        (void)snprintf(why, sizeof why, "the group would take %zu bytes of symmetric memory; bytes_max is %zu",
                       memory.symmetric_bytes, to->bytes_max);
        return refuse(ep, to, call, why);
    }
    return WEFT_OK;
}

/* Ranks of which some may have grown and some not cannot go on together, whoever is masked. */
static weft_status note_parted(weft_ep *ep, weft_status status)
{
    ep->is_parted |= status != WEFT_OK && status != WEFT_ERR_RANGE;
    return status;
}

weft_status wefti_ep_grow(weft_ep_route *route, const wefti_ep_need *need, unsigned holds, int is_routing,
                          const char *call)
{
    weft_ep *ep = route->ep;
    const weft_ep_config from = ep->config;
    const weft_ep_config to = widened(ep, need);
    WEFT_TRY(check_holds(ep, &to, holds | wefti_ep_holds(ep), call));
    WEFT_TRY(check_bytes(ep, &to, call));
    ep->config = to;
    weft_status status = ep->backend->grow(ep, call);
    if (status != WEFT_OK) {
        ep->config = from;
        status = status == WEFT_ERR_MEMORY ? refuse_by_last(ep, &to, call) : status;
    } else if (is_routing) {
        status = wefti_ep_agree(ep->team, &ep->config, ep, ep->backend->route_fit(route, call), call);
    }
    return note_parted(ep, status);
}
