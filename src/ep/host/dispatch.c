/* weft_ep_dispatch: every rank tells every rank where its rows go; each rank copies a token once to every rank that has
 * an expert of it, and says that it is done; the receiver makes the replicas of expert-major as sources are done.
 *
 * A rank writes several times the bytes that it reads, more than caches hold when there are many tokens: it then goes
 * through its rows once for all ranks, and stores them past the caches, but for first rows of expert-major on other
 * ranks, which are read again there. Its own replicas it makes as it goes. */
#include "base/error.h"
#include "ep/check.h"
#include "ep/host/call.h"
#include "ep/host/calls.h"
#include "ep/host/peers.h"
#include "ep/host/received.h"
#include "ep/host/routing.h"
#include "ep/host/span.h"
#include "os/os.h"
#include "weft/protocol/mutate.h"

/* How long to wait for another rank to come before rows go to those that have: short beside the time of reading all
 * rows once more, long beside the usual lag of ranks that work in step. */
#define PATIENCE_NS 10000

typedef struct dispatch_step {
    weft_ep *ep;
    const wefti_ep_routing *route;
    wefti_ep_span in;
    wefti_ep_span out;
    wefti_ep_span landing; /* where the other ranks write: out, or the group's buffer by place */
    int staged; /* the latter */
    int streams; /* what this rank writes to out goes past the caches */
    wefti_ep_call call;
} dispatch_step;

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    static const char call[] = "weft_ep_dispatch";
    WEFT_TRY(wefti_ep_routing_check(route, call));
    WEFT_TRY(wefti_ep_rows_held(in, route->tokens, call, "in"));
    WEFT_TRY(wefti_ep_rows_held(&out->rows, *route->rows, call, "out.rows"));
    if (out->rows_capacity < (size_t)*route->rows) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: out.rows holds %zu rows and %d come; size it by weft_ep_route_query or the group's "
                           "rows_max",
                           call, out->rows_capacity, *route->rows);
    }
    return WEFT_OK;
}

static dispatch_step begin(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    dispatch_step step;
    uint64_t shape = wefti_ep_rows_shape(WEFTI_EP_DISPATCH, (unsigned)in->dtype, 0, (unsigned)in->hidden);
    step.ep = route->ep;
    step.route = route;
    step.in = wefti_ep_rows_span(in);
    step.out = wefti_ep_rows_span(&out->rows);
    step.staged = !wefti_ep_span_is_symmetric(step.ep, &step.out, *route->rows);
    step.landing = step.staged ? wefti_ep_group_span(step.ep, step.in.row_bytes) : step.out;
    step.streams = (size_t)*route->rows * step.out.row_bytes >= WEFTI_STREAM_BYTES;
    step.call = wefti_ep_call_begin(step.ep, "weft_ep_dispatch", shape, route->epoch);
    step.call.line.buffer = (uint64_t)((uintptr_t)step.landing.data - (uintptr_t)step.ep->host->base);
    step.call.line.pitch = step.landing.pitch | (step.staged ? WEFTI_EP_BY_TOKEN : 0);
    return step;
}

/* Where the i-th token that this rank sends to `rank` goes: a place or a row there. */
static size_t target_row(const wefti_ep_routing *route, int rank, int i, int by_place)
{
    return by_place ? (size_t)route->first_place[rank] + (size_t)i
                    : (size_t)route->send_row[route->rank_sends[rank] + i];
}

/* Learn from the line of a rank that has come where its rows go. */
static void open_lane(dispatch_step *step, int rank, int batch)
{
    const wefti_ep_routing *route = step->route;
    wefti_ep_lane *lane = &step->ep->host->scratch.lanes[rank];
    int rank_major = !wefti_ep_is_expert_major(route);
    wefti_ep_call_line line;
    lane->batch = batch;
    if (!wefti_ep_call_meet(&step->call, rank, &line)) {
        return;
    }
    int lands = (line.pitch & WEFTI_EP_BY_TOKEN) != 0; /* and is copied from there */
    if (rank == step->ep->rank) {
        lane->near = step->out.data;
        lane->pitch = step->out.pitch;
        lane->by_place = rank_major;
    } else {
        lane->near = wefti_ep_near(step->ep, rank, line.buffer);
        lane->pitch = line.pitch & ~(uint64_t)WEFTI_EP_BY_TOKEN;
        lane->by_place = rank_major || lands;
    }
    lane->buffer = line.buffer;
    size_t sent_bytes = (size_t)route->rank_sends[step->ep->ranks] * step->in.row_bytes;
    lane->streams = rank_major && !lands && sent_bytes >= WEFTI_STREAM_BYTES;
}

static void copy_row(void *to, const void *from, size_t bytes, int streams)
{
    if (streams) {
        wefti_copy_stream(to, from, bytes);
    } else {
        wefti_copy(to, from, bytes);
    }
}

/* Expert-major: bring a received token from `from` to all its rows that are not there. */
static void replicate(const dispatch_step *step, int place, const unsigned char *from)
{
    const wefti_ep_routing *route = step->route;
    const int32_t *rows = &route->record_rows[(size_t)place * (size_t)route->plan.topk];
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] >= 0) {
            unsigned char *to = wefti_ep_span_row(&step->out, (size_t)rows[k]);
            if (to != from) {
                copy_row(to, from, step->out.row_bytes, step->streams);
            }
        }
    }
}

static weft_status send_row(const dispatch_step *step, int rank, int index, const unsigned char *from)
{
    const wefti_ep_lane *lane = &step->ep->host->scratch.lanes[rank];
    if (rank == step->ep->rank && wefti_ep_is_expert_major(step->route)) {
        replicate(step, (int)step->route->first_place[rank] + index, from);
        return WEFT_OK;
    }
    size_t row = target_row(step->route, rank, index, lane->by_place);
    size_t at = WEFTI_MUTATE(ROW_OFF_BY_ONE, row + (row > 0), row) * lane->pitch;
    if (lane->near == NULL) {
        return wefti_ep_put(step->ep, rank, lane->buffer + at, from, step->in.row_bytes);
    }
    copy_row(lane->near + at, from, step->in.row_bytes, lane->streams);
    return WEFT_OK;
}

/* Token by token, so that a row that goes to several ranks of the batch comes from memory once. */
static weft_status send_rows(const dispatch_step *step, int batch)
{
    const wefti_ep_routing *route = step->route;
    const wefti_ep_lane *lanes = step->ep->host->scratch.lanes;
    for (int token = 0; token < route->tokens; token++) {
        const unsigned char *from = wefti_ep_span_row(&step->in, (size_t)token);
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            int rank = route->pair_rank[pair];
            if (lanes[rank].batch == batch) {
                WEFT_TRY(send_row(step, rank, route->pair_index[pair], from));
            }
        }
    }
    wefti_copy_stream_end();
    return WEFT_OK;
}

static weft_status send_batch(const dispatch_step *step, int batch)
{
    if (step->call.odd_rank < 0 && !WEFTI_MUTATED(DONE_BEFORE_ROWS)) {
        WEFT_TRY(send_rows(step, batch));
    }
    for (int i = 0; i < step->ep->ranks; i++) {
        int rank = (step->ep->rank + i) % step->ep->ranks;
        if (step->ep->host->scratch.lanes[rank].batch == batch) {
            WEFT_TRY(wefti_ep_call_done(&step->call, rank));
        }
    }
    return WEFTI_MUTATED(DONE_BEFORE_ROWS) && step->call.odd_rank < 0 ? send_rows(step, batch) : WEFT_OK;
}

/* Ranks are sent to in batches: those that have come, once all have or none has come for PATIENCE_NS. */
static weft_status send_all(dispatch_step *step)
{
    weft_ep *ep = step->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_CALL, step->call.epoch, step->call.name);
    int batch = 1;
    int open = 0; /* ranks in this batch */
    uint64_t last_ns = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->host->scratch.lanes[rank].batch = 0;
    }
    while (open > 0 || wefti_ep_arrivals_left(&arrivals)) {
        int rank;
        if (wefti_ep_arrivals_poll(&arrivals, &rank)) {
            open_lane(step, rank, batch);
            open++;
            last_ns = wefti_os_now_ns();
        } else if (open > 0 && (!wefti_ep_arrivals_left(&arrivals) || wefti_os_now_ns() - last_ns > PATIENCE_NS)) {
            WEFT_TRY(send_batch(step, batch++));
            open = 0;
        } else {
            WEFT_TRY(wefti_ep_arrivals_pause(&arrivals));
        }
    }
    return WEFT_OK;
}

/* A token that another rank has sent: to where it belongs, from where it landed. */
static void settle_token(const dispatch_step *step, int place)
{
    const wefti_ep_routing *route = step->route;
    const unsigned char *landed = wefti_ep_span_row(&step->landing, (size_t)place);
    if (!wefti_ep_is_expert_major(route)) {
        copy_row(wefti_ep_span_row(&step->out, (size_t)place), landed, step->out.row_bytes, step->streams);
        return;
    }
    if (!step->staged) {
        const int32_t *rows = &route->record_rows[(size_t)place * (size_t)route->plan.topk];
        while (*rows < 0) {
            rows++;
        }
        landed = wefti_ep_span_row(&step->out, (size_t)*rows);
    }
    replicate(step, place, landed);
}

static void settle_source(const dispatch_step *step, int source)
{
    const wefti_ep_routing *route = step->route;
    if (source == step->ep->rank || (!step->staged && !wefti_ep_is_expert_major(route))) {
        return;
    }
    for (int place = route->offset_of_source[source]; place < route->offset_of_source[source + 1]; place++) {
        settle_token(step, place);
    }
    wefti_copy_stream_end();
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

static weft_status dispatch(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
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

weft_status wefti_ep_host_dispatch(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_received *out,
                                   weft_stream *stream)
{
    const wefti_ep_routing *route = handle->host;
    (void)stream;
    WEFT_TRY(check(route, in, out));
    WEFT_TRY(dispatch(route, in, out));
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_dispatches, 1);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_sent, (uint64_t)route->token_pairs[route->tokens]);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_received, (uint64_t)route->received);
    return WEFT_OK;
}
