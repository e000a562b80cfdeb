/* weft_ep_combine_bwd: gradients of tokens go to the owners (push.h), which make those of rows of them and, if asked
 * for, of weights, and answer each source when these can be read:
 *
 *     every rank to every rank    its call header
 *     source to owner             gradients of tokens, then its done flag; with weights its mark
 *     with weights: owner to source    the gradients of weights (gradients.h), then the flag of its reply
 *                   source to owner    has read them: its done flag */
#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/gradients.h"
#include "ep/host/growth.h"
#include "ep/host/push.h"

static const char call_name[] = "weft_ep_combine_bwd";

typedef struct backward {
    wefti_ep_push push; /* first, so that what the engine hands on is this */
    const wefti_ep_arithmetic *arithmetic;
    int weighted;
    wefti_ep_span rows; /* what combine was given */
    float *grad_weights; /* or NULL */
} backward;

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *rows,
                         const weft_ep_rows *out, int computes)
{
    WEFT_TRY(wefti_ep_routing_check(route, call_name));
    WEFT_TRY(wefti_ep_rows_held(in, route->tokens, call_name, "grad_out"));
    WEFT_TRY(wefti_ep_rows_held(out, *route->rows, call_name, "grad_rows"));
    WEFT_TRY(rows != NULL ? wefti_ep_rows_held(rows, *route->rows, call_name, "rows") : WEFT_OK);
    const wefti_ep_span to = wefti_ep_span_of(out);
    return wefti_ep_push_check(route->ep, &to, *route->rows, computes, call_name, "grad_rows");
}

/* ---- one received token ---- */

/* grad_rows[row] = round(factor * gradient). */
static void scale_row(const backward *step, size_t row, float factor, const void *gradient)
{
    const wefti_ep_push *push = &step->push;
    unsigned char *to = wefti_ep_span_row(&push->out, row);
    void *at = wefti_ep_row_write(to, push->ep->host->scratch.rows + push->out.row_bytes);
    step->arithmetic->scale(at, gradient, factor, push->hidden);
    wefti_ep_row_written(to, at, push->out.row_bytes);
}

static void copy_row(const backward *step, size_t row, const void *gradient)
{
    wefti_copy(wefti_ep_span_row(&step->push.out, row), gradient, step->push.out.row_bytes);
}

static float dot_row(const backward *step, size_t row, const void *gradient)
{
    const wefti_ep_push *push = &step->push;
    const void *at = wefti_ep_row_read(wefti_ep_span_row(&step->rows, row), push->ep->host->scratch.choice_rows,
                                       push->out.row_bytes);
    return step->arithmetic->dot(at, gradient, push->hidden);
}

/* How often, or with which weights in sum, combine added choice k's row, which those after it may share. */
static float factor_of(const backward *step, const wefti_ep_record *record, const int32_t *rows, int k)
{
    const weft_ep_plan *plan = &step->push.route->plan;
    int end = wefti_ep_shares_rows(step->push.route) ? plan->topk : k + 1;
    float factor = 0.0f;
    for (int j = k; j < end; j++) {
        if (rows[j] == rows[k]) {
            factor += step->weighted ? record->weights[j] : 1.0f;
        }
    }
    return factor;
}

static void deliver_by_expert(const backward *step, int place, const void *gradient)
{
    const wefti_ep_routing *route = step->push.route;
    float *values = route->ep->host->scratch.choice_weight;
    wefti_ep_record record = wefti_ep_record_of(route, place);
    const int32_t *rows = wefti_ep_rows_at(route, place);
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] >= 0 && !(wefti_ep_shares_rows(route) && wefti_ep_is_again(rows, k))) {
            float factor = factor_of(step, &record, rows, k);
            if (step->weighted || factor > 1.0f) {
                scale_row(step, (size_t)rows[k], factor, gradient);
            } else {
                copy_row(step, (size_t)rows[k], gradient);
            }
        }
    }
    for (int k = 0; k < route->plan.topk && step->grad_weights != NULL; k++) {
        values[k] = rows[k] >= 0 ? dot_row(step, (size_t)rows[k], gradient) : 0.0f;
    }
}

static void deliver_by_source(const backward *step, int source, int place, const void *gradient)
{
    const wefti_ep_routing *route = step->push.route;
    float *values = route->ep->host->scratch.choice_weight;
    wefti_ep_record record = wefti_ep_record_of(route, place);
    size_t row = wefti_ep_row_of_place(route, source, place);
    float factor = 0.0f;
    float dot = step->grad_weights != NULL ? dot_row(step, row, gradient) : 0.0f;
    for (int k = 0; k < route->plan.topk; k++) {
        factor += record.experts[k] >= 0 ? record.weights[k] : 0.0f;
        values[k] = dot;
    }
    if (step->weighted) {
        scale_row(step, row, factor, gradient);
    } else {
        copy_row(step, row, gradient);
    }
}

static void deliver(const wefti_ep_push *push, int source, int place, const wefti_ep_wire *wire)
{
    const backward *step = (const backward *)(const void *)push;
    const void *gradient = wefti_ep_row_read(wire->row, push->ep->host->scratch.rows, push->out.row_bytes);
    if (wefti_ep_is_by_source(push->route)) {
        deliver_by_source(step, source, place, gradient);
    } else {
        deliver_by_expert(step, place, gradient);
    }
    if (step->grad_weights != NULL) {
        wefti_ep_gradients_keep(push->route, place, push->ep->host->scratch.choice_weight);
    }
}

/* ---- the call ---- */

static weft_status reply(wefti_ep_push *push, int source)
{
    return wefti_ep_call_reply(&push->call, source);
}

static weft_status read_weights(const backward *step)
{
    const wefti_ep_call *call = &step->push.call;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(call->ep, WEFTI_EP_WORD_REPLY, call->epoch, call->name);
    wefti_ep_gradients_clear(step->push.route, step->grad_weights);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        if (rank < 0) {
            break;
        }
        WEFT_TRY(wefti_ep_gradients_read(step->push.route, rank, step->grad_weights));
        WEFT_TRY(wefti_ep_call_done(call, rank));
    }
    return wefti_ep_call_await_done(call);
}

static weft_status move(backward *step)
{
    wefti_ep_push *push = &step->push;
    WEFT_TRY(wefti_ep_push_post(push));
    wefti_ep_push_listen(push);
    WEFT_TRY(wefti_ep_push_send_all(push));
    wefti_ep_push_zero_padding(push);
    if (step->grad_weights == NULL) {
        return wefti_ep_push_receive(push);
    }
    if (push->call.mismatched_rank >= 0) { /* ranks in other calls know of no marks */
        WEFT_TRY(wefti_ep_call_done_all(&push->call));
        return wefti_ep_call_await_done(&push->call);
    }
    WEFT_TRY(wefti_ep_push_receive(push));
    return read_weights(step);
}

weft_status wefti_ep_host_combine_bwd(weft_ep_route *handle, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                      const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                      weft_stream *stream)
{
    wefti_ep_routing *route = handle->host;
    wefti_ep_signature_fields fields = {.kind = WEFTI_EP_COMBINE_BWD,
                                        .dtype = (unsigned)grad_out->dtype,
                                        .flags = flags | (grad_weights != NULL ? WEFTI_EP_VALUES : 0),
                                        .hidden = (unsigned)grad_out->hidden};
    wefti_ep_need need = {.tokens_max = 0};
    backward step = {.weighted = flags != 0, .grad_weights = grad_weights};
    (void)stream;
    wefti_ep_need_rows(&need, grad_out);
    const int computes = step.weighted || wefti_ep_shares_rows(route);
    WEFT_TRY(check(route, grad_out, rows, grad_rows, computes));
    WEFT_TRY(wefti_ep_grow_for_rows(handle, call_name, &fields, &need));
    wefti_ep_call call = wefti_ep_call_begin(route->ep, call_name, &fields);
    wefti_ep_call_set_route(&call, route);
    wefti_ep_span in = wefti_ep_span_of(grad_out);
    wefti_ep_span out = wefti_ep_span_of(grad_rows);
    wefti_ep_push_init(&step.push, route, &call, &in, &out, *route->rows, computes);
    step.arithmetic = wefti_ep_arithmetic_of(grad_out->dtype);
    step.push.hidden = (size_t)grad_out->hidden;
    if (computes) {
        step.push.deliver = deliver;
    }
    if (grad_weights != NULL) {
        step.rows = wefti_ep_span_of(rows);
        step.push.flag = WEFTI_EP_WORD_MARK;
        step.push.settled = reply;
    }
    WEFT_TRY(move(&step));
    return wefti_ep_call_end(&step.push.call);
}
