#include "ep/route.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "common/mix.h"
#include "ep/backend.h"
#include "weft/world.h"

static weft_status check_slots(const weft_ep *ep, const weft_ep_plan *plan, const char *call)
{
    int most = plan->slot_tokens > 0 && wefti_ep_grows(ep) ? wefti_ep_tokens_most(ep) : ep->config.slot_tokens_max;
    if (!wefti_ep_plan_is_slots(plan)) {
        return WEFT_OK;
    }
    if (most == 0 && ep->config.tokens_max > 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: the group has rows_max and no slot_tokens_max, so no memory for slot layouts; set it",
                           call);
    }
    if (plan->slot_tokens < 0 || plan->slot_tokens > most) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: slot_tokens is %d; give 0 .. %d, the group's slot_tokens_max", call,
                           plan->slot_tokens, most);
    }
    int64_t slots = (int64_t)ep->ranks * (plan->slot_tokens > 0 ? plan->slot_tokens : most);
    int64_t experts = plan->layout == WEFT_EP_SLOTS_EXPERT ? ep->owners.local_max : 1;
    if (slots > INT32_MAX || slots * experts > INT32_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: %d ranks, %d local experts and slots of %lld tokens are more than %d rows; lower "
                           "slot_tokens",
                           call, ep->ranks, (int)experts, (long long)slots / ep->ranks, INT32_MAX);
    }
    return WEFT_OK;
}

static weft_status check_destinations(const weft_ep *ep, const weft_ep_plan *plan, const char *call)
{
    if (!wefti_ep_plan_is_by_source(plan)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: layout is %d with WEFT_EP_DESTINATIONS; give one by source", call,
                           (int)plan->layout);
    }
    if ((plan->topk != 0 && plan->topk != ep->ranks) || ep->ranks > wefti_ep_topk_most(ep)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: topk is %d and the group's topk_max %d; with WEFT_EP_DESTINATIONS give 0 or the %d "
                           "ranks, of which the group must allow as many",
                           call, plan->topk, wefti_ep_topk_most(ep), ep->ranks);
    }
    return WEFT_OK;
}

static weft_status check_flags(const weft_ep_plan *plan, const char *call)
{
    int by_source = plan->layout == WEFT_EP_RANK_MAJOR || plan->layout == WEFT_EP_SLOTS_SOURCE;
    if ((plan->flags & ~(WEFT_EP_ZERO_PADDING | WEFT_EP_DESTINATIONS | WEFT_EP_ALL_WEIGHTS)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: flags is 0x%x; give 0, WEFT_EP_ZERO_PADDING, WEFT_EP_DESTINATIONS or "
                           "WEFT_EP_ALL_WEIGHTS",
                           call, plan->flags);
    }
    if ((plan->flags & WEFT_EP_ALL_WEIGHTS) != 0 && !by_source) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: layout is %d with WEFT_EP_ALL_WEIGHTS; give one by source", call,
                           (int)plan->layout);
    }
    return WEFT_OK;
}

/* *given becomes what can be read: see base/sized.h. */
static weft_status check_plan(const weft_ep *ep, const weft_ep_plan **given, weft_ep_plan *copy, const char *call)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_plan, layout, "WEFT_EP_PLAN_INIT");
    if (!wefti_ep_is_alive(ep) || *given == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           !wefti_ep_is_alive(ep) ? "argument 'ep' is NULL or destroyed" : "argument 'plan' is NULL");
    }
    WEFT_TRY(wefti_world_check_handle(ep->world, call));
    WEFTI_SIZED_TRY(&form, call, "plan", *given, copy);
    const weft_ep_plan *plan = *given;
    int by_rank = (plan->flags & WEFT_EP_DESTINATIONS) != 0;
    WEFT_TRY(by_rank ? check_destinations(ep, plan, call) : WEFT_OK);
    if (!by_rank && (plan->topk < 1 || plan->topk > wefti_ep_topk_most(ep))) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: topk is %d; give 1 .. %d, the group's topk_max", call, plan->topk,
                           wefti_ep_topk_most(ep));
    }
    if ((int)plan->layout < WEFT_EP_RANK_MAJOR || plan->layout > WEFT_EP_SLOTS_EXPERT) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: layout is %d; give a weft_ep_layout", call, (int)plan->layout);
    }
    if (plan->alignment < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: alignment is %d; give 0 or more rows", call, plan->alignment);
    }
    WEFT_TRY(check_flags(plan, call));
    if (plan->order != WEFT_EP_ORDER_RANK && plan->order != WEFT_EP_ORDER_CHOICE) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: order is %d; give a weft_ep_order", call, (int)plan->order);
    }
    if (plan->sms < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: sms is %d; give 0 or more", call, plan->sms);
    }
    return check_slots(ep, plan, call);
}

/* What a valid plan stands for. */
static weft_ep_plan resolve(const weft_ep *ep, const weft_ep_plan *plan)
{
    weft_ep_plan resolved = *plan;
    resolved.topk = (plan->flags & WEFT_EP_DESTINATIONS) != 0 ? ep->ranks : plan->topk;
    if (!wefti_ep_plan_is_slots(plan)) {
        resolved.slot_tokens = 0;
    } else if (plan->slot_tokens == 0) {
        resolved.slot_tokens = ep->config.slot_tokens_max;
    }
    resolved.alignment = plan->layout == WEFT_EP_EXPERT_MAJOR && plan->alignment > 1 ? plan->alignment : 1;
    return resolved;
}

weft_status weft_ep_route_bytes(const weft_ep *ep, const weft_ep_plan *plan, size_t *bytes)
{
    weft_ep_plan copy;
    WEFT_TRY(check_plan(ep, &plan, &copy, "weft_ep_route_bytes"));
    if (bytes == NULL) {
        return wefti_error_null("weft_ep_route_bytes", "bytes");
    }
    weft_ep_plan resolved = resolve(ep, plan);
    *bytes = ep->backend->route_bytes(ep, &resolved);
    return WEFT_OK;
}

weft_status weft_ep_sms_hint(const weft_ep *ep, const weft_ep_plan *plan, int *sms)
{
    weft_ep_plan copy;
    WEFT_TRY(check_plan(ep, &plan, &copy, "weft_ep_sms_hint"));
    if (sms == NULL) {
        return wefti_error_null("weft_ep_sms_hint", "sms");
    }
    weft_ep_plan resolved = resolve(ep, plan);
    *sms = ep->backend->sms_hint != NULL ? ep->backend->sms_hint(ep, &resolved) : 0;
    return WEFT_OK;
}

weft_status weft_ep_route_create(weft_ep *ep, const weft_ep_plan *plan, void *memory, weft_ep_route **out)
{
    weft_ep_plan copy;
    WEFT_TRY(check_plan(ep, &plan, &copy, "weft_ep_route_create"));
    if (out == NULL || (uintptr_t)memory % WEFTI_EP_MEMORY_ALIGNMENT != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_create: %s",
                           out == NULL ? "argument 'route' is NULL"
                                       : "argument 'memory' is not aligned to 64 bytes; align it");
    }
    weft_ep_route *route = wefti_alloc_zeroed(1, sizeof *route);
    if (route == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for the route");
    }
    route->ep = ep;
    route->plan = resolve(ep, plan);
    weft_status status = ep->backend->route_open(route, memory);
    if (status != WEFT_OK) {
        wefti_free(route);
        return status;
    }
    route->next = ep->routes;
    route->link = &ep->routes;
    if (route->next != NULL) {
        route->next->link = &route->next;
    }
    ep->routes = route;
    *out = route;
    return WEFT_OK;
}

/* Whether the route's tables may lie in other memory from now on. */
static weft_status check_memory(const weft_ep_route *route, const void *memory, const char *call)
{
    if (!wefti_ep_route_is_alive(route) || memory == NULL || (uintptr_t)memory % WEFTI_EP_MEMORY_ALIGNMENT != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           !wefti_ep_route_is_alive(route) ? "argument 'route' is NULL or destroyed"
                                                           : "argument 'memory' is NULL or not aligned to 64 bytes");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    return wefti_ep_check_unused(route, call);
}

static weft_status check_bytes(const weft_ep_route *route, size_t bytes, const char *call)
{
    size_t wanted = route->ep->backend->route_bytes(route->ep, &route->plan);
    if (bytes < wanted) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %zu bytes; the route takes %zu", call, bytes, wanted);
    }
    return WEFT_OK;
}

weft_status weft_ep_route_move(weft_ep_route *route, void *memory, size_t bytes)
{
    static const char call[] = "weft_ep_route_move";
    WEFT_TRY(check_memory(route, memory, call));
    WEFT_TRY(check_bytes(route, bytes, call));
    WEFT_TRY(route->ep->backend->route_move(route, memory, bytes));
    route->memory = route->memory != NULL ? memory : NULL;
    return WEFT_OK;
}

/* ---- which routings lie where ---- */

/* Of memory that routes were attached to, by a hash of its address: the last routing made there. */
#define MADE_COUNT 1024
typedef struct wefti_ep_made {
    struct {
        const void *memory;
        const weft_ep_route *route;
        uint64_t generation;
    } at[MADE_COUNT];
} wefti_ep_made;

static size_t made_index(const void *memory)
{
    return (size_t)(wefti_mix((uintptr_t)memory) >> 54);
}

/* Lost without memory for it, which is as if others had taken its place. */
void wefti_ep_route_made(weft_ep_route *route)
{
    weft_ep *ep = route->ep;
    route->held = route->generation;
    if (route->memory == NULL) {
        return;
    }
    if (ep->made == NULL) {
        ep->made = wefti_alloc_zeroed(1, sizeof *ep->made);
    }
    if (ep->made != NULL) {
        const size_t i = made_index(route->memory);
        ep->made->at[i].memory = route->memory;
        ep->made->at[i].route = route;
        ep->made->at[i].generation = route->generation;
    }
}

static uint64_t find_made(const weft_ep_route *route, const void *memory)
{
    const wefti_ep_made *made = route->ep->made;
    const size_t i = made_index(memory);
    return made == NULL || made->at[i].memory != memory ? WEFTI_EP_UNKNOWN
           : made->at[i].route != route                 ? WEFTI_EP_OF_OTHERS
                                                        : made->at[i].generation;
}

/* Nobody calls a route that is gone by another that lies where it lay. */
static void forget_made(const weft_ep_route *route)
{
    wefti_ep_made *made = route->ep->made;
    for (size_t i = 0; made != NULL && i < MADE_COUNT; i++) {
        if (made->at[i].route == route) {
            made->at[i].memory = NULL;
        }
    }
}

weft_status weft_ep_route_attach(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                 weft_stream *stream)
{
    static const char call[] = "weft_ep_route_attach";
    WEFT_TRY(check_memory(route, memory, call));
    if (contents != WEFT_EP_CONTENTS_NONE && contents != WEFT_EP_CONTENTS_ROUTING) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: contents is %d; give a weft_ep_contents", call, (int)contents);
    }
    if (contents == WEFT_EP_CONTENTS_NONE || !wefti_ep_grows(route->ep)) { /* else it is as large as it was then */
        WEFT_TRY(check_bytes(route, bytes, call));
    }
    if (route->ep->backend->route_attach == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: the group is not on GPUs; give each routing a route", call);
    }
    WEFT_TRY(wefti_ep_check_stream(route->ep, stream, call));
    WEFT_TRY(route->ep->backend->route_attach(route, memory, bytes, contents, stream));
    route->is_chosen = 0;
    route->is_counted = 0;
    route->is_weighed = 0;
    route->is_routed = contents == WEFT_EP_CONTENTS_ROUTING;
    route->memory = memory;
    route->held = find_made(route, memory);
    return WEFT_OK;
}

weft_status weft_ep_route_generation(const weft_ep_route *route, uint64_t *generation)
{
    if (!wefti_ep_route_is_alive(route) || generation == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_generation: %s",
                           generation == NULL ? "argument 'generation' is NULL"
                                              : "argument 'route' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, "weft_ep_route_generation"));
    *generation = route->generation;
    return WEFT_OK;
}

weft_status weft_ep_route_expect(const weft_ep_route *route, uint64_t generation)
{
    uint64_t now;
    WEFT_TRY(weft_ep_route_generation(route, &now));
    if (now != generation) {
        return wefti_error(WEFT_ERR_STATE,
                           "weft_ep_route_expect: the route has routing %llu, not %llu: it was routed again; give "
                           "each step that has a backward to come a route of its own",
                           (unsigned long long)now, (unsigned long long)generation);
    }
    return WEFT_OK;
}

weft_status weft_ep_route_require(weft_ep_route *route, uint64_t generation)
{
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_require: argument 'route' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, "weft_ep_route_require"));
    route->required = generation;
    return WEFT_OK;
}

weft_status weft_ep_route_sms(weft_ep_route *route, int sms)
{
    static const char call[] = "weft_ep_route_sms";
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'route' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    if (sms < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: sms is %d; give 0 or more", call, sms);
    }
    route->sms = sms;
    return WEFT_OK;
}

void wefti_ep_route_end(weft_ep_route *route)
{
    forget_made(route);
    *route->link = route->next;
    if (route->next != NULL) {
        route->next->link = route->link;
    }
    route->ep->backend->route_close(route);
    weft_world *world = route->ep->world;
    memset(route, 0, sizeof *route);
    wefti_world_free_late(world, route);
}

weft_status weft_ep_route_destroy(weft_ep_route *route)
{
    if (route == NULL) {
        return WEFT_OK;
    }
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_destroy: the route has been destroyed already");
    }
    if (wefti_world_is_forked(route->ep->world)) {
        return WEFT_OK;
    }
    if (wefti_ep_has_half_of(route->ep, route)) {
        return wefti_error(WEFT_ERR_STATE, "weft_ep_route_destroy: a send of the route waits for its recv; call that");
    }
    wefti_ep_route_end(route);
    return WEFT_OK;
}

static weft_status check_routed(const weft_ep_route *route, const char *call)
{
    if (!route->is_routed) {
        return wefti_error(
            WEFT_ERR_STATE,
            "%s: the route has no routing yet; call weft_ep_route_update first, or weft_ep_route_choose and "
            "dispatch",
            call);
    }
    return WEFT_OK;
}

static weft_status check_required(const weft_ep_route *route, const char *call)
{
    if (route->required == 0 || route->held == WEFTI_EP_UNKNOWN || route->held == route->required) {
        return WEFT_OK;
    }
    if (route->held == WEFTI_EP_OF_OTHERS) {
        return wefti_error(
            WEFT_ERR_STATE,
            "%s: routing %llu of the route is required, and another route has routed in its memory since; "
            "give each step that has a backward to come memory of its own",
            call, (unsigned long long)route->required);
    }
    return wefti_error(
        WEFT_ERR_STATE,
        "%s: routing %llu of the route is required, and it has %llu: it was routed again; give each step "
        "that has a backward to come a route, or memory, of its own",
        call, (unsigned long long)route->required, (unsigned long long)route->held);
}

weft_status wefti_ep_route_check(const weft_ep_route *route, const char *call)
{
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'route' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_ep_check_alive(route->ep, call));
    if (wefti_ep_has_routing_half_of(route->ep, route)) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: a send with a new routing or new weights of the route waits for its "
                           "weft_ep_dispatch_recv; call that first",
                           call);
    }
    WEFT_TRY(check_routed(route, call));
    return check_required(route, call);
}

weft_status wefti_ep_check_unused(const weft_ep_route *route, const char *call)
{
    if (wefti_ep_has_half_of(route->ep, route)) {
        return wefti_error(WEFT_ERR_STATE, "%s: a send of the route waits for its recv; call that first", call);
    }
    return WEFT_OK;
}

weft_status wefti_ep_check_half(const weft_ep_route *route, wefti_ep_half half, const weft_stream *stream,
                                const char *call, int *bank)
{
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'route' is NULL or destroyed", call);
    }
    const weft_ep *ep = route->ep;
    WEFT_TRY(wefti_ep_check_alive(ep, call));
    *bank = wefti_ep_next_bank(ep); /* of the older of two */
    if (ep->half[*bank] != half || ep->half_route[*bank] != route) {
        *bank = wefti_ep_banks(ep) - 1 - *bank;
    }
    if (ep->half[*bank] != half || ep->half_route[*bank] != route) {
        return wefti_error(WEFT_ERR_STATE, "%s: no send of this route waits for it; call the send first", call);
    }
    return wefti_ep_check_stream(ep, stream, call);
}

static weft_status check_result(const weft_ep_route *route, const void *result, const char *call)
{
    if (!wefti_ep_route_is_alive(route) || result == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           result == NULL ? "argument 'counts' is NULL" : "argument 'route' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    return check_routed(route, call);
}

weft_status weft_ep_route_counts(const weft_ep_route *route, weft_ep_counts *counts)
{
    WEFT_TRY(check_result(route, counts, "weft_ep_route_counts"));
    return route->ep->backend->counts(route, counts);
}

weft_status weft_ep_route_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts)
{
    static const char call[] = "weft_ep_route_query";
    WEFT_TRY(check_result(route, counts, call));
    WEFT_TRY(wefti_ep_check_stream(route->ep, stream, call));
    return route->ep->backend->query(route, stream, counts);
}
