/* weft_ep_combine, by pulling: each rank makes ready one row a received token (expert-major: the sum over the token's
 * choices here; rank-major: the row as it is) and tells the token's source where; each source adds up its tokens' rows in
 * ascending rank and tells the owners that it has read. Rows are read where they lie when the caller's are symmetric. */
#include "base/error.h"
#include "ep/check.h"
#include "ep/host/arithmetic.h"
#include "ep/host/call.h"
#include "ep/host/calls.h"
#include "ep/host/peers.h"
#include "ep/host/routing.h"
#include "ep/host/span.h"
#include "weft/protocol/mutate.h"

typedef struct combine_step {
    weft_ep *ep;
    const wefti_ep_routing *route;
    const wefti_ep_arithmetic *arithmetic;
    size_t hidden;
    int weighted;
    wefti_ep_span in;
    wefti_ep_span out;
    wefti_ep_span ready; /* what the sources read, by place: in, or the group's buffer */
    int staged; /* the latter */
    wefti_ep_call call;
} combine_step;

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out)
{
    static const char call[] = "weft_ep_combine";
    WEFT_TRY(wefti_ep_routing_check(route, call));
    WEFT_TRY(wefti_ep_rows_held(in, *route->rows, call, "in"));
    return wefti_ep_rows_held(out, route->tokens, call, "out");
}

static combine_step begin(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out,
                          unsigned flags)
{
    combine_step step;
    uint64_t shape = wefti_ep_rows_shape(WEFTI_EP_COMBINE, (unsigned)in->dtype, flags, (unsigned)in->hidden);
    step.ep = route->ep;
    step.route = route;
    step.arithmetic = wefti_ep_arithmetic_of(in->dtype);
    step.hidden = (size_t)in->hidden;
    step.weighted = (flags & WEFT_EP_WEIGHTED) != 0;
    step.in = wefti_ep_rows_span(in);
    step.out = wefti_ep_rows_span(out);
    step.staged = wefti_ep_is_expert_major(route) || !wefti_ep_span_is_symmetric(step.ep, &step.in, *route->rows);
    step.ready = step.staged ? wefti_ep_group_span(step.ep, step.in.row_bytes) : step.in;
    step.call = wefti_ep_call_begin(step.ep, "weft_ep_combine", shape, route->epoch);
    step.call.line.buffer = (uint64_t)((uintptr_t)step.ready.data - (uintptr_t)step.ep->host->base);
    step.call.line.pitch = step.ready.pitch | WEFTI_EP_BY_TOKEN;
    return step;
}

/* Expert-major: the sum of a received token's rows here, in ascending choice. */
static void reduce_token(const combine_step *step, int place, void *sum)
{
    const wefti_ep_routing *route = step->route;
    const wefti_ep_scratch *scratch = &step->ep->host->scratch;
    size_t topk = (size_t)route->plan.topk;
    size_t bytes = step->in.row_bytes;
    wefti_ep_record record = wefti_ep_record_of(route, place);
    const int32_t *rows = &route->record_rows[(size_t)place * topk];
    size_t count = 0;
    for (size_t k = 0; k < topk; k++) {
        if (rows[k] >= 0) {
            const void *row = wefti_ep_span_row(&step->in, (size_t)rows[k]);
            scratch->choice_at[count] = wefti_ep_row_read(row, scratch->choice_rows + count * bytes, bytes);
            scratch->choice_weight[count++] = record.weights[k];
        }
    }
    if (step->weighted) {
        step->arithmetic->fuse(sum, scratch->choice_at, scratch->choice_weight, count, step->hidden);
    } else {
        step->arithmetic->add(sum, scratch->choice_at, count, step->hidden);
    }
}

/* Make ready what another rank will read. */
static void make_ready(const combine_step *step, int source)
{
    const wefti_ep_routing *route = step->route;
    size_t bytes = step->in.row_bytes;
    for (int place = route->offset_of_source[source]; place < route->offset_of_source[source + 1]; place++) {
        unsigned char *ready = wefti_ep_span_row(&step->ready, (size_t)place);
        if (wefti_ep_is_expert_major(route)) {
            void *sum = wefti_ep_row_write(ready, step->ep->host->scratch.rows);
            reduce_token(step, place, sum);
            wefti_ep_row_written(ready, sum, bytes);
        } else {
            wefti_copy(ready, wefti_ep_span_row(&step->in, (size_t)place), bytes);
        }
    }
}

static weft_status announce(const combine_step *step)
{
    for (int i = 1; i <= step->ep->ranks; i++) {
        int source = (step->ep->rank + i) % step->ep->ranks;
        if (step->staged && source != step->ep->rank) {
            make_ready(step, source);
        }
        WEFT_TRY(wefti_ep_call_post(&step->call, source));
    }
    return WEFT_OK;
}

static weft_status meet_all(combine_step *step)
{
    weft_ep *ep = step->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_CALL, step->call.epoch, step->call.name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_call_line line;
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        (void)wefti_ep_call_meet(&step->call, rank, &line);
        wefti_ep_lane *lane = &ep->host->scratch.lanes[rank];
        lane->buffer = line.buffer;
        lane->pitch = line.pitch & ~(uint64_t)WEFTI_EP_BY_TOKEN;
        lane->near = wefti_ep_near(ep, rank, line.buffer);
    }
    ep->host->scratch.lanes[ep->rank].near = step->in.data;
    ep->host->scratch.lanes[ep->rank].pitch = step->in.pitch;
    return WEFT_OK;
}

/* Make the row of `place` on `rank` readable; `copy` is a private row for when it must be fetched. This rank's own it
 * sums only now, or reads where the caller has it. */
static weft_status fetch_row(const combine_step *step, int rank, size_t place, void *copy, const void **row)
{
    const weft_ep *ep = step->ep;
    const wefti_ep_lane *lane = &ep->host->scratch.lanes[rank];
    size_t bytes = step->out.row_bytes;
    *row = copy;
    if (rank == ep->rank && wefti_ep_is_expert_major(step->route)) {
        reduce_token(step, (int)place, copy);
        return WEFT_OK;
    }
    if (lane->near != NULL) {
        *row = wefti_ep_row_read(lane->near + place * lane->pitch, copy, bytes);
        return WEFT_OK;
    }
    return weft_getmem(ep->world, copy, wefti_ep_symmetric(ep, lane->buffer + place * lane->pitch), bytes,
                       ep->host->peers[rank].pe);
}

static weft_status sum_token(const combine_step *step, int token)
{
    const wefti_ep_routing *route = step->route;
    const wefti_ep_scratch *scratch = &step->ep->host->scratch;
    size_t bytes = step->out.row_bytes;
    size_t first = (size_t)route->token_pairs[token];
    size_t count = (size_t)route->token_pairs[token + 1] - first;
    for (size_t i = 0; i < count; i++) {
        int rank = route->pair_rank[first + i];
        size_t place = (size_t)route->first_place[rank] + (size_t)route->pair_index[first + i];
        WEFT_TRY(fetch_row(step, rank, place, scratch->rows + (i + 1) * bytes, &scratch->row_at[i]));
    }
    unsigned char *out = wefti_ep_span_row(&step->out, (size_t)token);
    void *sum = wefti_ep_row_write(out, scratch->rows);
    if (step->weighted && !wefti_ep_is_expert_major(route)) {
        step->arithmetic->add_scaled(sum, scratch->row_at, &route->pair_weight[first], count, step->hidden);
    } else {
        step->arithmetic->add(sum, scratch->row_at, count, step->hidden);
    }
    wefti_ep_row_written(out, sum, bytes);
    return WEFT_OK;
}

static weft_status combine(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out,
                           unsigned flags)
{
    combine_step step = begin(route, in, out, flags);
    WEFT_TRY(announce(&step));
    WEFT_TRY(meet_all(&step));
    for (int token = 0; token < route->tokens && step.call.odd_rank < 0; token++) {
        WEFT_TRY(sum_token(&step, token));
    }
    WEFT_TRY(wefti_ep_call_done_all(&step.call));
    WEFT_TRY(WEFTI_MUTATE(BUFFER_REUSED, WEFT_OK, wefti_ep_call_await_done(&step.call)));
    return wefti_ep_call_end(&step.call);
}

weft_status wefti_ep_host_combine(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                                  unsigned flags, weft_stream *stream)
{
    const wefti_ep_routing *route = handle->host;
    (void)stream;
    WEFT_TRY(check(route, in, out));
    WEFT_TRY(combine(route, in, out, flags));
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_combines, 1);
    return WEFT_OK;
}
