#include "ep/host/call.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ep/check.h"
#include "ep/growth.h"
#include "ep/host/crossing.h"
#include "ep/host/notices.h"
#include "ep/host/peers.h"
#include "os/os.h"

#define CALL_BYTES 192 /* the words for a call */

wefti_ep_call wefti_ep_call_begin(weft_ep *ep, const char *name, const wefti_ep_signature_fields *fields)
{
    wefti_ep_call call;
    memset(&call, 0, sizeof call);
    call.ep = ep;
    call.name = name;
    call.epoch = ++*ep->started;
    ep->host->begun_before_ns = ep->host->begun_ns;
    ep->host->begun_ns = wefti_os_now_ns();
    wefti_ep_notices_begin(ep, call.epoch);
    call.header.signature = wefti_ep_signature(fields);
    if (fields->kind != WEFTI_EP_UPDATE && wefti_ep_crossing_is_on(ep)) {
        wefti_ep_signature_fields forwarded = *fields;
        forwarded.flags |= WEFTI_EP_FORWARDED;
        call.header.signature = wefti_ep_signature(&forwarded);
    }
    call.mismatched_rank = -1;
    call.refused_rank = -1;
    call.holds = wefti_ep_grows(ep) ? wefti_ep_holds(ep) : 0;
    return call;
}

static uint64_t with_holds(const wefti_ep_call *call, uint64_t route)
{
    return route | (uint64_t)call->holds << WEFTI_EP_ROUTE_BITS;
}

void wefti_ep_call_set_plan(wefti_ep_call *call, const weft_ep_plan *plan, int tokens)
{
    unsigned layout = (unsigned)plan->layout | (unsigned)plan->order << 2 | (wefti_ep_plan_is_by_rank(plan) ? 8u : 0u);
    call->header.plan = wefti_ep_plan_word(
        layout, (unsigned)plan->topk, (unsigned)(wefti_ep_plan_is_slots(plan) ? plan->slot_tokens : plan->alignment));
    call->header.route = wefti_ep_grows(call->ep) ? with_holds(call, (uint64_t)tokens) : 0;
}

void wefti_ep_call_set_route(wefti_ep_call *call, const wefti_ep_routing *route)
{
    call->header.route = with_holds(call, route->epoch);
}

void wefti_ep_call_set_meeting(wefti_ep_call *call, const wefti_ep_meeting *meeting)
{
    call->header.signature = meeting->signature;
    call->holds = meeting->holds;
    if (meeting->plan != NULL) {
        wefti_ep_call_set_plan(call, meeting->plan, meeting->tokens);
    } else {
        call->header.route = with_holds(call, WEFTI_EP_ROUTE_IN_KERNELS);
    }
}

weft_status wefti_ep_call_post(const wefti_ep_call *call, int rank)
{
    uint64_t at = wefti_ep_call_at(&call->ep->host->layout, call->ep->rank);
    return wefti_ep_post(call->ep, rank, at, &call->header, offsetof(wefti_ep_call_header, epoch),
                         at + offsetof(wefti_ep_call_header, epoch), call->epoch);
}

weft_status wefti_ep_call_post_all(const wefti_ep_call *call)
{
    const weft_ep *ep = call->ep;
    WEFT_TRY(wefti_ep_notices_send(ep, &call->header, call->epoch, 0));
    for (int i = 0; i < ep->ranks; i++) {
        int rank = (ep->rank + i) % ep->ranks;
        int is_told = ep->masked[rank] || wefti_ep_notices_reach(ep, rank);
        WEFT_TRY(is_told ? WEFT_OK : wefti_ep_call_post(call, rank));
    }
    return WEFT_OK;
}

/* Compare `route` of a header, and take from it what all ranks have together (WEFTI_EP_ROUTE_BITS). */
static int is_same_route(wefti_ep_call *call, int rank, const wefti_ep_call_header *header)
{
    const int tokens = (int)(header->route & WEFTI_EP_ROUTE_MASK);
    if (wefti_ep_grows(call->ep)) {
        const unsigned holds = (unsigned)(header->route >> WEFTI_EP_ROUTE_BITS);
        call->holds |= holds;
        call->refused_rank = (holds & WEFTI_EP_HOLD_REFUSED) != 0 ? rank : call->refused_rank;
    }
    if (header->plan == 0 || !wefti_ep_grows(call->ep)) {
        return ((header->route ^ call->header.route) & WEFTI_EP_ROUTE_MASK) == 0;
    }
    call->tokens_most = tokens > call->tokens_most ? tokens : call->tokens_most;
    return 1;
}

int wefti_ep_call_compare(wefti_ep_call *call, int rank, wefti_ep_call_header *header)
{
    const weft_ep *ep = call->ep;
    uint64_t at = wefti_ep_notices_has(ep, rank, call->epoch) ? wefti_ep_handed_at(&ep->host->layout, rank)
                                                              : wefti_ep_call_at(&ep->host->layout, rank);
    wefti_copy(header, ep->host->base + at, offsetof(wefti_ep_call_header, epoch));
    if (header->signature == call->header.signature && header->plan == call->header.plan &&
        is_same_route(call, rank, header)) {
        return 1;
    }
    if (call->mismatched_rank < 0 || rank < call->mismatched_rank) {
        call->mismatched_rank = rank;
        call->mismatched_header = *header;
    }
    return 0;
}

weft_status wefti_ep_call_wait_headers(wefti_ep_call *call)
{
    wefti_ep_stage(call->ep, "wait for ready");
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(call->ep, WEFTI_EP_WORD_CALL, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_call_header header;
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        if (rank < 0) {
            break;
        }
        (void)wefti_ep_call_compare(call, rank, &header);
    }
    return WEFT_OK;
}

weft_status wefti_ep_call_mark(const wefti_ep_call *call, int rank)
{
    return wefti_ep_post(call->ep, rank, 0, NULL, 0, wefti_ep_mark_at(&call->ep->host->layout, call->ep->rank),
                         call->epoch);
}

weft_status wefti_ep_call_reply(const wefti_ep_call *call, int rank)
{
    uint64_t flag = wefti_ep_reply_at(&call->ep->host->layout, call->ep->rank) + offsetof(wefti_ep_reply, epoch);
    return wefti_ep_post(call->ep, rank, 0, NULL, 0, flag, call->epoch);
}

weft_status wefti_ep_call_done(const wefti_ep_call *call, int rank)
{
    return wefti_ep_post(call->ep, rank, 0, NULL, 0, wefti_ep_done_at(&call->ep->host->layout, call->ep->rank),
                         call->epoch);
}

weft_status wefti_ep_call_done_all(const wefti_ep_call *call)
{
    for (int i = 0; i < call->ep->ranks; i++) {
        int rank = (call->ep->rank + i) % call->ep->ranks;
        WEFT_TRY(call->ep->masked[rank] ? WEFT_OK : wefti_ep_call_done(call, rank));
    }
    return WEFT_OK;
}

weft_status wefti_ep_call_await_done(const wefti_ep_call *call)
{
    wefti_ep_stage(call->ep, "wait for done");
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(call->ep, WEFTI_EP_WORD_DONE, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
    }
    return WEFT_OK;
}

static void append_plan(wefti_text *to, uint64_t plan)
{
    unsigned layout = plan & 3;
    wefti_text_append(to, ", topk %u, %s, %s %u", (unsigned)(plan >> 8 & 0xffffff),
                      wefti_ep_layout_name((weft_ep_layout)layout),
                      layout >= WEFT_EP_SLOTS_SOURCE ? "Tmax" : "alignment", (unsigned)(plan >> 32));
    wefti_text_append(to, "%s%s", (plan >> 2 & 1) != 0 ? ", summed by choice" : "",
                      (plan >> 3 & 1) != 0 ? ", of destinations" : "");
}

/* The call of a header in words. */
static void describe(char bytes[CALL_BYTES], const wefti_ep_call_header *header)
{
    static const char *const kinds[] = {"no call",   "an update",           "a dispatch",
                                        "a combine", "a dispatch backward", "a combine backward"};
    wefti_ep_signature_fields fields = wefti_ep_signature_split(header->signature);
    wefti_text to = {.bytes = bytes, .size = CALL_BYTES};
    wefti_text_append(&to, "%s", kinds[fields.kind <= WEFTI_EP_COMBINE_BWD ? fields.kind : 0]);
    if (fields.hidden != 0) {
        wefti_text_append(&to, " of %u %s", wefti_ep_width_hidden((weft_ep_dtype)fields.dtype, fields.hidden),
                          wefti_ep_dtype_name((weft_ep_dtype)fields.dtype));
    }
    if (fields.out_dtype != 0 && fields.out_dtype != fields.dtype) {
        wefti_text_append(&to, " to %s", wefti_ep_dtype_name((weft_ep_dtype)fields.out_dtype));
    }
    if (fields.scale_type == WEFT_EP_SCALE_BYTES) {
        wefti_text_append(&to, " with %u of scales",
                          wefti_ep_width_scale_bytes((weft_ep_dtype)fields.dtype, fields.hidden));
    } else if (fields.scale_type != 0) {
        static const char *const names[] = {"no", "float32", "ue8m0", "ue8m0 (of 32)", "no", "float32 (powers of two)"};
        wefti_text_append(&to, ", %s scales",
                          names[fields.scale_type < sizeof names / sizeof *names ? fields.scale_type : 0]);
    }
    if ((fields.flags & WEFT_EP_WEIGHTED) != 0) {
        wefti_text_append(&to, ", weighted");
    }
    if ((fields.flags & WEFTI_EP_FORWARDED) != 0) {
        wefti_text_append(&to, ", forwarded");
    }
    if ((fields.flags & WEFTI_EP_NEW_WEIGHTS) != 0) {
        wefti_text_append(&to, ", with new weights");
    }
    if (fields.kind == WEFTI_EP_UPDATE && (fields.flags & WEFTI_EP_COUNTING) != 0) {
        wefti_text_append(&to, ", counting rows to drop");
    }
    if (fields.kind == WEFTI_EP_COMBINE && (fields.flags & WEFTI_EP_OWN_WEIGHTS) != 0) {
        wefti_text_append(&to, ", own weights");
    }
    if (fields.kind == WEFTI_EP_COMBINE && (fields.flags & WEFTI_EP_OWN_IDS) != 0) {
        wefti_text_append(&to, ", own ids");
    }
    if ((fields.flags & WEFTI_EP_VALUES) != 0) {
        wefti_text_append(&to, fields.kind == WEFTI_EP_COMBINE ? ", with values" : ", with weights");
    }
    if (header->plan != 0) {
        append_plan(&to, header->plan);
    } else if ((header->route & WEFTI_EP_ROUTE_MASK) != WEFTI_EP_ROUTE_IN_KERNELS) {
        wefti_text_append(&to, ", on the route updated in call %" PRIu64, header->route & WEFTI_EP_ROUTE_MASK);
    }
}

/* Whether rows of the call may be in the caller's arrays before all headers have come: wefti_ep_push_send_all sends to
 * the ranks that are there. */
static int sends_early(const wefti_ep_call_header *header)
{
    const wefti_ep_signature_fields fields = wefti_ep_signature_split(header->signature);
    const int sends = fields.kind == WEFTI_EP_COMBINE_BWD ||
                      (fields.kind == WEFTI_EP_DISPATCH && (fields.flags & WEFTI_EP_NEW_WEIGHTS) == 0);
    return sends && header->plan == 0 && (header->route & WEFTI_EP_ROUTE_MASK) != WEFTI_EP_ROUTE_IN_KERNELS;
}

weft_status wefti_ep_call_end(const wefti_ep_call *call)
{
    weft_ep *ep = call->ep;
    wefti_st64(ep->host->base + ep->host->layout.epoch, call->epoch, WEFTI_RELAXED);
    wefti_fence_release(); /* who still reads rows here sees that before what is put there next */
    wefti_ep_notices_end(ep);
    if (call->mismatched_rank < 0) {
        return WEFT_OK;
    }
    char mine[CALL_BYTES], other[CALL_BYTES];
    describe(mine, &call->header);
    describe(other, &call->mismatched_header);
    return wefti_error(WEFT_ERR_MISMATCH,
                       "%s: call %" PRIu64
                       " of the group is %s on rank %d and %s on rank %d (PE %d); %s; " WEFTI_EP_SAME_CALLS,
                       call->name, call->epoch, mine, ep->rank, other, call->mismatched_rank,
                       ep->host->peers[call->mismatched_rank].pe,
                       sends_early(&call->header) ? "rows may have been moved" : "nothing was moved");
}

weft_status wefti_ep_call_end_routed(const wefti_ep_call *call, wefti_ep_routing *route)
{
    route->epoch = call->mismatched_rank < 0 ? call->epoch : 0;
    return wefti_ep_call_end(call);
}
