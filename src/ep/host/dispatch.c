/* weft_ep_dispatch: rows to their owners (push.h), on the route's routing or on a fresh one, which is agreed on between
 * the call headers and the rows (exchange.h), and whose records go out with the rows. */
#include "base/error.h"
#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/exchange.h"
#include "ep/host/growth.h"
#include "ep/host/push.h"
#include "ep/host/received.h"
#include "ep/host/records.h"
#include "ep/host/sends.h"
#include "ep/host/weigh.h"

static const char call_name[] = "weft_ep_dispatch";

static int64_t rows_held(const weft_ep_received *out)
{
    return out->rows_capacity < INT32_MAX ? (int64_t)out->rows_capacity : INT32_MAX;
}

/* Rows of an expert whose slots have scales apart. */
static int64_t group_rows(const wefti_ep_routing *route)
{
    return (int64_t)route->ep->ranks * route->plan.slot_tokens;
}

static wefti_ep_span target_of(const wefti_ep_routing *route, const weft_ep_received *out)
{
    wefti_ep_span to = wefti_ep_span_of(&out->rows);
    if (out->scale_group_stride != 0) {
        to.group_rows = (size_t)group_rows(route);
        to.group_pitch = out->scale_group_stride * sizeof(uint32_t);
    }
    return to;
}

static weft_status check_staging(const wefti_ep_routing *route, const weft_ep_received *out, int64_t rows)
{
    const wefti_ep_span to = target_of(route, out);
    return wefti_ep_push_check(route->ep, &to, rows, 0, call_name, "out.rows");
}

static weft_status check_capacity(const wefti_ep_routing *route, const weft_ep_received *out, int64_t rows)
{
    int64_t held = out->scale_group_stride != 0 && rows > group_rows(route) ? group_rows(route) : rows;
    WEFT_TRY(wefti_ep_rows_held(&out->rows, held, call_name, "out.rows"));
    if (rows_held(out) < rows) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: out.rows holds %zu rows and %lld come; size it by weft_ep_route_query or the group's "
                           "rows_max",
                           call_name, out->rows_capacity, (long long)rows);
    }
    return WEFT_OK;
}

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    WEFT_TRY(wefti_ep_routing_check(route, call_name));
    WEFT_TRY(wefti_ep_rows_held(in, route->tokens, call_name, "in"));
    WEFT_TRY(check_capacity(route, out, *route->rows));
    return check_staging(route, out, *route->rows);
}

/* What can be said before the ranks agree. */
static weft_status check_fresh(const wefti_ep_routing *route, const weft_ep_choices *choices, const weft_ep_rows *in,
                               const weft_ep_received *out)
{
    WEFT_TRY(wefti_ep_rows_held(in, wefti_ep_choices_tokens(choices), call_name, "in"));
    int64_t slots = wefti_ep_slot_rows(&route->plan, route->ep->ranks, wefti_ep_local_experts(route->ep));
    WEFT_TRY(check_capacity(route, out, wefti_ep_plan_is_slots(&route->plan) ? slots : rows_held(out)));
    return check_staging(route, out, rows_held(out));
}

/* ---- the caller's arrays ---- */

static void fill_padding(const wefti_ep_push *push)
{
    wefti_ep_received_padding(push->route, &push->received);
    wefti_ep_push_zero_padding(push);
}

static void fill_all(const wefti_ep_push *push)
{
    fill_padding(push);
    for (int source = 0; source < push->ep->ranks; source++) {
        wefti_ep_received_source(push->route, &push->received, source);
    }
}

/* ---- a fresh routing ---- */

static weft_status send_records(const wefti_ep_push *push, int rank)
{
    return rank == push->ep->rank ? WEFT_OK : wefti_ep_records_put(push->route, push->choices.weights, rank);
}

static void take_records(wefti_ep_push *push, int source)
{
    if (source != push->ep->rank) {
        wefti_ep_records_take(push->route, source);
    }
    wefti_ep_received_source(push->route, &push->received, source);
}

/* Rows that all ranks have agreed on. */
static weft_status move_fresh(wefti_ep_push *push)
{
    push->arrived = take_records;
    push->leaving = send_records;
    push->streams = (size_t)*push->route->rows * push->out.row_bytes >= wefti_stream_bytes();
    fill_padding(push);
    WEFT_TRY(wefti_ep_records_put(push->route, push->choices.weights, push->ep->rank));
    wefti_ep_records_take(push->route, push->ep->rank);
    WEFT_TRY(wefti_ep_push_send_once(push));
    return wefti_ep_push_receive(push);
}

static weft_status send(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                        const weft_ep_received *out);

/* If any rank needs more, grow and begin anew, with what the call was given; growing ends what holds it. */
static weft_status grow(weft_ep_route *handle, wefti_ep_push *push, int *again)
{
    const weft_ep_choices choices = push->choices;
    const weft_ep_rows in = push->given;
    const weft_ep_received out = push->received;
    wefti_ep_need need = push->need;
    WEFT_TRY(wefti_ep_grow_for_routing(handle, &push->call, &need, again));
    return *again ? send(handle, &choices, &in, &out) : WEFT_OK;
}

static weft_status receive_fresh(weft_ep_route *handle)
{
    wefti_ep_push *push = handle->ep->host->push;
    int again = 0;
    WEFT_TRY(wefti_ep_call_wait_headers(&push->call));
    WEFT_TRY(wefti_ep_grows(handle->ep) ? grow(handle, push, &again) : WEFT_OK);
    if (again) {
        return receive_fresh(handle);
    }
    wefti_ep_routing *route = push->route;
    if (push->call.mismatched_rank < 0) {
        WEFT_TRY(wefti_ep_exchange_agree(route, &push->call, push->limit));
    }
    if (push->call.mismatched_rank >= 0 || *route->status == WEFT_ERR_OVERFLOW) {
        WEFT_TRY(wefti_ep_call_done_all(&push->call));
        WEFT_TRY(wefti_ep_call_await_done(&push->call));
    } else {
        WEFT_TRY(move_fresh(push));
    }
    return wefti_ep_call_end_routed(&push->call, route);
}

/* ---- the call ---- */

static wefti_ep_signature_fields fields_of(const weft_ep_route *handle, const weft_ep_choices *fresh,
                                           const weft_ep_rows *in, const weft_ep_received *out)
{
    return (wefti_ep_signature_fields){.kind = WEFTI_EP_DISPATCH,
                                       .dtype = (unsigned)in->dtype,
                                       .out_dtype = (unsigned)out->rows.dtype,
                                       .scale_type = (unsigned)out->rows.scale_type,
                                       .flags = fresh != NULL        ? WEFTI_EP_FRESH
                                                : handle->is_weighed ? WEFTI_EP_NEW_WEIGHTS
                                                                     : 0,
                                       .hidden = wefti_ep_width(in)};
}

static void begin(wefti_ep_push *push, const weft_ep_route *handle, const weft_ep_choices *fresh,
                  const weft_ep_rows *in, const weft_ep_received *out)
{
    wefti_ep_routing *route = handle->host;
    wefti_ep_signature_fields fields = fields_of(handle, fresh, in, out);
    wefti_ep_call call = wefti_ep_call_begin(route->ep, call_name, &fields);
    wefti_ep_span from = wefti_ep_span_of(in);
    wefti_ep_span to = target_of(route, out);
    int64_t rows = fresh != NULL ? rows_held(out) : *route->rows;
    if (fresh != NULL) {
        wefti_ep_call_set_plan(&call, &route->plan, fresh->tokens);
    } else {
        wefti_ep_call_set_route(&call, route);
    }
    wefti_ep_push_init(push, route, &call, &from, &to, rows, 0);
    push->received = *out;
    push->given = *in;
    push->wait_ns = wefti_ep_stats_waits(route->ep, 0);
    if (in->dtype != out->rows.dtype) {
        push->quantises = wefti_ep_arithmetic_of(in->dtype);
        push->hidden = (size_t)in->hidden;
        push->scale_type = out->rows.scale_type;
    }
    if (fresh != NULL) {
        push->is_fresh = 1;
        push->choices = *fresh;
        push->limit = rows < route->ep->rows_limit ? rows : route->ep->rows_limit;
    } else if (handle->is_weighed) {
        push->brings_weights = 1;
        push->choices.weights = handle->weights;
    }
}

static weft_status send_fresh(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                              const weft_ep_received *out, const wefti_ep_need *need)
{
    WEFT_TRY(check_fresh(handle->host, fresh, in, out));
    WEFT_TRY(wefti_ep_routing_fit(handle, call_name));
    wefti_ep_routing *route = handle->host;
    wefti_ep_push *push = route->ep->host->push;
    begin(push, handle, fresh, in, out);
    push->need = *need;
    handle->is_routed = 0;
    return wefti_ep_need_exceeds(route->ep, need)
               ? wefti_ep_call_post_all(&push->call)
               : wefti_ep_exchange_post(route, &push->call, &push->choices, push->limit);
}

/* Rows on the routing that there is, with new weights or without. */
static weft_status send_all(wefti_ep_push *push)
{
    if (!push->brings_weights) {
        return wefti_ep_push_send_all(push);
    }
    WEFT_TRY(wefti_ep_weigh_take(push));
    return wefti_ep_push_send_once(push);
}

/* Up to where another rank is needed. */
static weft_status send(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                        const weft_ep_received *out)
{
    wefti_ep_need need = wefti_ep_need_of_routing(&handle->plan, fresh != NULL ? fresh->tokens : 0);
    wefti_ep_need_rows(&need, in);
    wefti_ep_need_rows(&need, &out->rows);
    if (fresh != NULL) {
        return send_fresh(handle, fresh, in, out, &need);
    }
    wefti_ep_routing *route = handle->host;
    wefti_ep_signature_fields fields = fields_of(handle, NULL, in, out);
    WEFT_TRY(check(route, in, out));
    WEFT_TRY(wefti_ep_grow_for_rows(handle, call_name, &fields, &need));
    wefti_ep_push *push = route->ep->host->push;
    begin(push, handle, NULL, in, out);
    push->streams = (size_t)*route->rows * push->out.row_bytes >= wefti_stream_bytes();
    if (push->brings_weights) {
        return wefti_ep_weigh_post(push);
    }
    WEFT_TRY(wefti_ep_push_post(push));
    wefti_ep_push_listen(push);
    return WEFT_OK;
}

static void add_rows(const wefti_ep_routing *route)
{
    for (int expert = 0; expert < wefti_ep_local_experts(route->ep); expert++) {
        route->ep->stats[expert] += (uint64_t)route->rows_of_expert[expert];
    }
    ++*wefti_ep_stats_calls(route->ep, 0);
}

static weft_status receive(weft_ep_route *handle)
{
    int is_fresh = handle->ep->host->push->is_fresh;
    WEFT_TRY(is_fresh ? receive_fresh(handle) : WEFT_OK);
    wefti_ep_routing *route = handle->host;
    wefti_ep_push *push = route->ep->host->push;
    if (is_fresh) {
        handle->is_routed = 1;
        WEFT_TRY(wefti_ep_routing_check(route, call_name));
    } else {
        WEFT_TRY(send_all(push));
        fill_all(push);
        WEFT_TRY(wefti_ep_push_receive(push));
        WEFT_TRY(wefti_ep_call_end(&push->call));
    }
    if (route->ep->stats != NULL) {
        add_rows(route);
    }
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_dispatches, 1);
    uint64_t sent = (uint64_t)route->token_pairs[route->tokens];
    uint64_t received = (uint64_t)route->received;
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_sent, sent);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_received, received);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_bytes_sent, sent * push->out.row_bytes);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_bytes_received, received * push->out.row_bytes);
    return WEFT_OK;
}

weft_status wefti_ep_host_dispatch(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                   const weft_ep_received *out, weft_stream *stream)
{
    (void)stream;
    WEFT_TRY(send(handle, fresh, in, out));
    return receive(handle);
}

weft_status wefti_ep_host_dispatch_send(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream)
{
    (void)stream;
    WEFT_TRY(send(handle, fresh, in, out));
    wefti_ep_push *push = handle->ep->host->push;
    return push->is_fresh || push->brings_weights ? WEFT_OK : wefti_ep_push_send_some(push);
}

weft_status wefti_ep_host_dispatch_recv(weft_ep_route *handle, weft_stream *stream)
{
    (void)stream;
    return receive(handle);
}
