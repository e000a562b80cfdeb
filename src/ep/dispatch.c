/* weft_ep_dispatch: every rank tells every rank where its rows go; each rank copies a token once to every rank that has
 * an expert of it, and says that it is done; the receiver makes the replicas of expert-major as sources are done. */
#include "base/error.h"
#include "ep/call.h"
#include "ep/peers.h"
#include "ep/received.h"
#include "ep/route.h"
#include "ep/rows.h"

typedef struct dispatch_step {
    weft_ep *ep;
    const weft_ep_route *route;
    wefti_ep_span in;
    wefti_ep_span out;
    wefti_ep_span landing; /* where the other ranks write: out, or the group's buffer by place */
    int staged; /* the latter */
    wefti_ep_call call;
} dispatch_step;

static weft_status check_out(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    static const char call[] = "weft_ep_dispatch";
    if (out == NULL || out->size != sizeof *out) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: out %s", call,
                           out == NULL ? "is NULL" : "has a wrong size; start from WEFT_EP_RECEIVED_INIT");
    }
    WEFT_TRY(wefti_ep_rows_check(route->ep, &out->rows, *route->rows, call, "out.rows"));
    if (out->rows.dtype != in->dtype || out->rows.hidden != in->hidden) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: in has %d elements of dtype %d and out.rows %d of dtype %d; both must be what is sent",
                           call, in->hidden, (int)in->dtype, out->rows.hidden, (int)out->rows.dtype);
    }
    if (out->rows_capacity < (size_t)*route->rows) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: out.rows holds %zu rows and %d come; size it by weft_ep_route_query or the group's "
                           "rows_max",
                           call, out->rows_capacity, *route->rows);
    }
    return WEFT_OK;
}

static weft_status check(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                         const weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_rows_check(route->ep, in, route->tokens, call, "in"));
    WEFT_TRY(check_out(route, in, out));
    if (stream != NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: this build has no streams; give NULL", call);
    }
    return WEFT_OK;
}

static dispatch_step begin(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    dispatch_step step;
    uint64_t shape = wefti_ep_rows_shape(WEFTI_EP_DISPATCH, (unsigned)in->dtype, 0, (unsigned)in->hidden);
    step.ep = route->ep;
    step.route = route;
    step.in = wefti_ep_rows_span(in);
    step.out = wefti_ep_rows_span(&out->rows);
    step.staged = !wefti_ep_span_is_symmetric(step.ep, &step.out, *route->rows);
    step.landing = step.staged ? wefti_ep_group_span(step.ep, step.in.row_bytes) : step.out;
    step.call = wefti_ep_call_begin(step.ep, "weft_ep_dispatch", shape, route->epoch);
    step.call.line.buffer = (uint64_t)((uintptr_t)step.landing.data - (uintptr_t)step.ep->base);
    step.call.line.pitch = step.landing.pitch | (step.staged ? WEFTI_EP_BY_TOKEN : 0);
    return step;
}

/* Where the i-th token that this rank sends to `rank` goes: a place or a row there. */
static size_t target_row(const weft_ep_route *route, int rank, int i, int by_place)
{
    return by_place ? (size_t)route->first_place[rank] + (size_t)i
                    : (size_t)route->send_row[route->rank_sends[rank] + i];
}

/* Rows to a rank whose memory can be stored to. */
static void copy_rows(const dispatch_step *step, int rank, const wefti_ep_span *to, int by_place)
{
    const weft_ep_route *route = step->route;
    const int32_t *tokens = &route->send_token[route->rank_sends[rank]];
    int count = wefti_ep_sends_to(route, rank);
    for (int i = 0; i < count; i++) {
        wefti_copy(wefti_ep_span_row(to, target_row(route, rank, i, by_place)),
                   wefti_ep_span_row(&step->in, (size_t)tokens[i]), step->in.row_bytes);
    }
}

static weft_status put_rows(const dispatch_step *step, int rank, const wefti_ep_call_line *line, size_t pitch,
                            int by_place)
{
    const weft_ep_route *route = step->route;
    const int32_t *tokens = &route->send_token[route->rank_sends[rank]];
    int count = wefti_ep_sends_to(route, rank);
    for (int i = 0; i < count; i++) {
        WEFT_TRY(wefti_ep_put(step->ep, rank, line->buffer + target_row(route, rank, i, by_place) * pitch,
                              wefti_ep_span_row(&step->in, (size_t)tokens[i]), step->in.row_bytes));
    }
    return WEFT_OK;
}

static weft_status send_rows(const dispatch_step *step, int rank, const wefti_ep_call_line *line)
{
    int rank_major = !wefti_ep_is_expert_major(step->route);
    if (rank == step->ep->rank) {
        copy_rows(step, rank, &step->out, rank_major);
        return WEFT_OK;
    }
    size_t pitch = line->pitch & ~(uint64_t)WEFTI_EP_BY_TOKEN;
    int by_place = rank_major || (line->pitch & WEFTI_EP_BY_TOKEN) != 0;
    wefti_ep_span to = {wefti_ep_near(step->ep, rank, line->buffer), pitch, step->in.row_bytes};
    if (to.data == NULL) {
        return put_rows(step, rank, line, pitch, by_place);
    }
    copy_rows(step, rank, &to, by_place);
    return WEFT_OK;
}

static weft_status send_all(dispatch_step *step)
{
    wefti_ep_arrivals arrivals =
        wefti_ep_arrivals_start(step->ep, WEFTI_EP_WORD_CALL, step->call.epoch, step->call.name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_call_line line;
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        if (wefti_ep_call_meet(&step->call, rank, &line)) {
            WEFT_TRY(send_rows(step, rank, &line));
        }
        WEFT_TRY(wefti_ep_call_done(&step->call, rank));
    }
    return WEFT_OK;
}

/* From where it landed, bring a received token to all its rows. */
static void settle_token(const dispatch_step *step, int place, int landed)
{
    const weft_ep_route *route = step->route;
    const unsigned char *from = landed ? wefti_ep_span_row(&step->landing, (size_t)place) : NULL;
    if (!wefti_ep_is_expert_major(route)) {
        wefti_copy(wefti_ep_span_row(&step->out, (size_t)place), from, step->out.row_bytes);
        return;
    }
    const int32_t *rows = &route->record_rows[(size_t)place * (size_t)route->plan.topk];
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] < 0) {
            continue;
        }
        unsigned char *to = wefti_ep_span_row(&step->out, (size_t)rows[k]);
        if (from == NULL) {
            from = to; /* the sender wrote the first */
        } else {
            wefti_copy(to, from, step->out.row_bytes);
        }
    }
}

static void settle_source(const dispatch_step *step, int source)
{
    const weft_ep_route *route = step->route;
    int landed = step->staged && source != step->ep->rank;
    if (!landed && !wefti_ep_is_expert_major(route)) {
        return;
    }
    for (int place = route->offset_of_source[source]; place < route->offset_of_source[source + 1]; place++) {
        settle_token(step, place, landed);
    }
}

static weft_status receive_all(const dispatch_step *step)
{
    wefti_ep_arrivals arrivals =
        wefti_ep_arrivals_start(step->ep, WEFTI_EP_WORD_DONE, step->call.epoch, step->call.name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int source;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &source));
        if (step->call.odd_rank < 0) {
            settle_source(step, source);
        }
    }
    return WEFT_OK;
}

static weft_status dispatch(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    dispatch_step step = begin(route, in, out);
    for (int i = 0; i < step.ep->ranks; i++) {
        WEFT_TRY(wefti_ep_call_post(&step.call, (step.ep->rank + i) % step.ep->ranks));
    }
    WEFT_TRY(send_all(&step));
    wefti_ep_received_fill(route, out);
    WEFT_TRY(receive_all(&step));
    return wefti_ep_call_end(&step.call);
}

weft_status weft_ep_dispatch(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                             weft_stream *stream)
{
    WEFT_TRY(check(route, in, out, stream));
    WEFT_TRY(wefti_ep_enter(route->ep, "weft_ep_dispatch"));
    return wefti_ep_leave(route->ep, dispatch(route, in, out));
}
