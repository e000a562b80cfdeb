#include "ep/host/push.h"

#include <string.h>

#include "base/error.h"
#include "ep/host/crossing.h"
#include "ep/host/peers.h"
#include "os/os.h"

/* How long to wait for another rank to come before rows go to those that have: short beside the time of reading all
 * rows once more, long beside the usual lag of ranks that work in step. */
#define PATIENCE_NS 10000

/* Whether rows go through the group's memory. */
static int is_staged(const weft_ep *ep, const wefti_ep_span *out, int64_t rows, int stages)
{
    return stages || wefti_ep_own_places(ep) > 0 || out->group_rows != 0 || !wefti_ep_span_is_symmetric(ep, out, rows);
}

weft_status wefti_ep_push_check(const weft_ep *ep, const wefti_ep_span *out, int64_t rows, int stages, const char *call,
                                const char *name)
{
    if (wefti_ep_stages(ep) || rows == 0 || !is_staged(ep, out, rows, stages)) {
        return WEFT_OK;
    }
    return wefti_error(
        WEFT_ERR_UNSUPPORTED,
        "%s: %s %s, and the group has WEFT_EP_NO_STAGING; make it without, or give memory of the heap or "
        "of weft_ep_window",
        call, name,
        stages                        ? "is computed row by row from rows that arrive elsewhere"
        : wefti_ep_own_places(ep) > 0 ? "would be reached by ranks that are masked (WEFT_EP_MASK_ON_TIMEOUT)"
        : out->group_rows != 0        ? "has scale_group_stride, so that rows arrive elsewhere"
                                      : "is not symmetric, so that rows arrive elsewhere");
}

static void copy_row(void *to, const void *from, size_t bytes, int streams)
{
    if (streams) {
        wefti_copy_stream(to, from, bytes);
    } else {
        wefti_copy(to, from, bytes);
    }
}

static void copy_to(const wefti_ep_push *push, size_t row, const wefti_ep_wire *from)
{
    unsigned char *to = wefti_ep_span_row(&push->out, row);
    if (to == from->row) {
        return;
    }
    copy_row(to, from->row, push->out.row_bytes, push->streams);
    if (push->out.scale_words > 0) {
        wefti_ep_scales_copy(wefti_ep_span_scales(&push->out, row), push->out.scale_step, from->scales, from->step,
                             push->out.scale_words);
    }
}

/* The `deliver` of a dispatch. */
static void copy_rows(const wefti_ep_push *push, int source, int place, const wefti_ep_wire *row)
{
    const wefti_ep_routing *route = push->route;
    if (wefti_ep_is_by_source(route)) {
        copy_to(push, wefti_ep_row_of_place(route, source, place), row);
        return;
    }
    const int32_t *rows = wefti_ep_rows_at(route, place);
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] >= 0) {
            copy_to(push, (size_t)rows[k], row);
        }
    }
}

void wefti_ep_push_init(wefti_ep_push *push, wefti_ep_routing *route, const wefti_ep_call *call,
                        const wefti_ep_span *in, const wefti_ep_span *out, int64_t rows, int stages)
{
    weft_ep *ep = route->ep;
    memset(push, 0, sizeof *push);
    push->ep = ep;
    push->route = route;
    push->call = *call;
    push->flag = WEFTI_EP_WORD_DONE;
    push->in = *in;
    push->out = *out;
    push->staged = is_staged(ep, out, rows, stages);
    push->target = push->staged ? wefti_ep_span_by_place(ep, out) : *out;
    push->deliver = copy_rows;
    push->batch = 1;
    push->crosses = wefti_ep_crossing_is_on(ep);

    wefti_ep_call_header *header = &push->call.header;
    header->buffer = (uint64_t)((uintptr_t)push->target.data - (uintptr_t)ep->host->base);
    header->pitch = push->target.pitch | (push->staged ? WEFTI_EP_BY_PLACE : 0);
    if (!push->staged && out->scale_words > 0) {
        header->scales = (uint64_t)((uintptr_t)out->scales - (uintptr_t)ep->host->base);
        header->scale_strides = out->scale_pitch / 4 | out->scale_step / 4 << 32;
    }
}

weft_status wefti_ep_push_post(const wefti_ep_push *push)
{
    return wefti_ep_call_post_all(&push->call);
}

void wefti_ep_push_zero_padding(const wefti_ep_push *push)
{
    const wefti_ep_routing *route = push->route;
    int zeroes = (route->plan.flags & WEFT_EP_ZERO_PADDING) != 0 && route->plan.layout == WEFT_EP_EXPERT_MAJOR;
    for (int expert = 0; zeroes && expert < wefti_ep_local_experts(push->ep); expert++) {
        int row = route->offset_of_expert[expert] + route->rows_of_expert[expert];
        for (; row < route->offset_of_expert[expert + 1]; row++) {
            wefti_ep_span_zero(&push->out, (size_t)row);
        }
    }
}

/* ---- to the owners ---- */

/* Learn from the call header of a rank that has come where its rows go. */
static void open_lane(wefti_ep_push *push, int rank)
{
    const wefti_ep_routing *route = push->route;
    wefti_ep_lane *lane = &push->ep->host->scratch.lanes[rank];
    wefti_ep_call_header header;
    lane->batch = push->batch;
    if (!wefti_ep_call_compare(&push->call, rank, &header)) {
        return;
    }
    int staged = (header.pitch & WEFTI_EP_BY_PLACE) != 0; /* and is copied from there */
    lane->near = wefti_ep_near(push->ep, rank, header.buffer);
    lane->buffer = header.buffer;
    lane->pitch = header.pitch & ~(uint64_t)WEFTI_EP_BY_PLACE;
    lane->by_place = staged;
    lane->scales = staged ? header.buffer + push->out.row_bytes : header.scales;
    lane->near_scales = wefti_ep_near(push->ep, rank, lane->scales);
    lane->scale_pitch = staged ? lane->pitch : (size_t)(header.scale_strides & 0xffffffffu) * 4;
    lane->scale_step = staged ? 4 : (size_t)(header.scale_strides >> 32) * 4;
    size_t sent_bytes = (size_t)route->rank_sends[push->ep->ranks] * push->out.row_bytes;
    lane->streams = wefti_ep_is_by_source(route) && !staged && sent_bytes >= wefti_stream_bytes();
}

size_t wefti_ep_push_target(const wefti_ep_push *push, int rank, int index)
{
    const wefti_ep_routing *route = push->route;
    if (push->ep->host->scratch.lanes[rank].by_place) {
        return (size_t)route->first_place[rank] + (size_t)index;
    }
    return wefti_ep_is_by_source(route) ? wefti_ep_first_row(route, rank) + (size_t)index
                                        : (size_t)route->send_row[route->rank_sends[rank] + index];
}

static weft_status put_far(const wefti_ep_push *push, int rank, size_t row, const wefti_ep_wire *from)
{
    const wefti_ep_lane *lane = &push->ep->host->scratch.lanes[rank];
    WEFT_TRY(wefti_ep_put(push->ep, rank, lane->buffer + row * lane->pitch, from->row, push->out.row_bytes));
    uint64_t scales = lane->scales + row * lane->scale_pitch;
    if (lane->scale_step == 4 && from->step == 4) {
        return push->out.scale_words > 0 ? wefti_ep_put(push->ep, rank, scales, from->scales, 4 * push->out.scale_words)
                                         : WEFT_OK;
    }
    for (size_t i = 0; i < push->out.scale_words; i++) {
        WEFT_TRY(wefti_ep_put(push->ep, rank, scales + i * lane->scale_step, from->scales + i * from->step, 4));
    }
    return WEFT_OK;
}

weft_status wefti_ep_push_place(const wefti_ep_push *push, int rank, size_t row, const wefti_ep_wire *from)
{
    const wefti_ep_lane *lane = &push->ep->host->scratch.lanes[rank];
    if (lane->near == NULL) {
        return put_far(push, rank, row, from);
    }
    copy_row(lane->near + row * lane->pitch, from->row, push->out.row_bytes, lane->streams);
    if (push->out.scale_words > 0) {
        wefti_ep_scales_copy(lane->near_scales + row * lane->scale_pitch, lane->scale_step, from->scales, from->step,
                             push->out.scale_words);
    }
    return WEFT_OK;
}

static weft_status send_row(const wefti_ep_push *push, int rank, int index, const wefti_ep_wire *from)
{
    if (rank == push->ep->rank) {
        push->deliver(push, rank, (int)push->route->first_place[rank] + index, from);
        return WEFT_OK;
    }
    return wefti_ep_push_place(push, rank, wefti_ep_push_target(push, rank, index), from);
}

wefti_ep_wire wefti_ep_push_wire(const wefti_ep_push *push, int token)
{
    wefti_ep_wire wire = {.row = wefti_ep_span_row(&push->in, (size_t)token)};
    if (push->quantises != NULL) {
        unsigned char *to = push->ep->host->scratch.wire;
        unsigned char *copy = push->ep->host->scratch.rows;
        uint32_t *scales = (uint32_t *)(void *)(to + push->out.row_bytes); /* rows are multiples of 16 bytes */
        const void *row = wefti_ep_row_read(wire.row, copy, push->in.row_bytes);
        push->quantises->quantise(to, scales, row, push->hidden, push->scale_type);
        wire.row = to;
        wire.scales = (const unsigned char *)scales;
        wire.step = 4;
    } else if (push->in.scale_words > 0) {
        wire.scales = wefti_ep_span_scales(&push->in, (size_t)token);
        wire.step = push->in.scale_step;
    }
    return wire;
}

/* Whether a token goes to any rank of the batch. */
static int is_in_batch(const wefti_ep_push *push, int token)
{
    const wefti_ep_routing *route = push->route;
    for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
        if (push->ep->host->scratch.lanes[route->pair_rank[pair]].batch == push->batch) {
            return 1;
        }
    }
    return 0;
}

/* Token by token, so that a row that goes to several ranks of the batch comes from memory once. */
static weft_status send_rows(const wefti_ep_push *push)
{
    const wefti_ep_routing *route = push->route;
    const wefti_ep_lane *lanes = push->ep->host->scratch.lanes;
    for (int token = 0; token < route->tokens; token++) {
        if (!is_in_batch(push, token)) {
            continue;
        }
        wefti_ep_wire wire = wefti_ep_push_wire(push, token);
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            int rank = route->pair_rank[pair];
            if (lanes[rank].batch == push->batch) {
                WEFT_TRY(send_row(push, rank, route->pair_index[pair], &wire));
            }
        }
    }
    wefti_copy_stream_end();
    return WEFT_OK;
}

static weft_status leave_for(const wefti_ep_push *push, int rank)
{
    if (push->call.mismatched_rank < 0 && push->leaving != NULL) {
        WEFT_TRY(push->leaving(push, rank));
    }
    return push->flag == WEFTI_EP_WORD_DONE ? wefti_ep_call_done(&push->call, rank)
                                            : wefti_ep_call_mark(&push->call, rank);
}

static weft_status send_batch(wefti_ep_push *push)
{
    if (push->call.mismatched_rank < 0) {
        WEFT_TRY(send_rows(push));
    }
    for (int i = 0; i < push->ep->ranks; i++) {
        int rank = (push->ep->rank + i) % push->ep->ranks;
        if (push->ep->host->scratch.lanes[rank].batch == push->batch) {
            WEFT_TRY(leave_for(push, rank));
        }
    }
    push->batch++;
    push->open = 0;
    return WEFT_OK;
}

static void forget_lanes(const wefti_ep_push *push)
{
    for (int rank = 0; rank < push->ep->ranks; rank++) {
        push->ep->host->scratch.lanes[rank].batch = 0;
    }
}

void wefti_ep_push_listen(wefti_ep_push *push)
{
    forget_lanes(push);
    push->arrivals = wefti_ep_arrivals_start(push->ep, WEFTI_EP_WORD_CALL, push->call.epoch, push->call.name);
}

static int open_next(wefti_ep_push *push)
{
    int rank;
    if (!wefti_ep_arrivals_poll(&push->arrivals, &rank)) {
        return 0;
    }
    open_lane(push, rank);
    push->open++;
    return 1;
}

weft_status wefti_ep_push_send_some(wefti_ep_push *push)
{
    if (push->crosses) {
        return WEFT_OK; /* once all are there */
    }
    while (open_next(push)) {
    }
    return push->open > 0 ? send_batch(push) : WEFT_OK;
}

/* A batch is those that have come, once all have or none has come for PATIENCE_NS. */
weft_status wefti_ep_push_send_all(wefti_ep_push *push)
{
    if (push->crosses) {
        WEFT_TRY(wefti_ep_call_wait_headers(&push->call));
        return wefti_ep_push_send_once(push);
    }
    wefti_ep_stage(push->ep, "move to those who are ready");
    while (push->open > 0 || wefti_ep_arrivals_left(&push->arrivals)) {
        if (open_next(push)) {
            push->last_ns = wefti_os_now_ns();
        } else if (push->open > 0 &&
                   (!wefti_ep_arrivals_left(&push->arrivals) || wefti_os_now_ns() - push->last_ns > PATIENCE_NS)) {
            WEFT_TRY(send_batch(push));
        } else {
            WEFT_TRY(wefti_ep_arrivals_pause(&push->arrivals));
        }
    }
    return WEFT_OK;
}

weft_status wefti_ep_push_send_once(wefti_ep_push *push)
{
    wefti_ep_stage(push->ep, "move");
    forget_lanes(push);
    for (int rank = 0; rank < push->ep->ranks; rank++) {
        if (!push->ep->masked[rank]) {
            open_lane(push, rank);
        }
    }
    if (!push->crosses || push->call.mismatched_rank >= 0) {
        return send_batch(push);
    }
    for (int rank = 0; rank < push->ep->ranks; rank++) { /* to the other domains through forwarders */
        if (push->ep->domains.of[rank] != push->ep->domains.of[push->ep->rank]) {
            push->ep->host->scratch.lanes[rank].batch = 0;
        }
    }
    WEFT_TRY(wefti_ep_cross_push_begin(push));
    WEFT_TRY(send_batch(push));
    return wefti_ep_cross_push_end(push);
}

/* ---- from the sources ---- */

/* A token that another rank has sent, where it was written. */
static wefti_ep_wire received_wire(const wefti_ep_push *push, int place)
{
    size_t row = (size_t)place;
    if (!push->staged) {
        const int32_t *rows = wefti_ep_rows_at(push->route, place);
        while (*rows < 0) {
            rows++;
        }
        row = (size_t)*rows;
    }
    wefti_ep_wire wire = {wefti_ep_span_row(&push->target, row), NULL, push->target.scale_step};
    if (push->target.scale_words > 0) {
        wire.scales = wefti_ep_span_scales(&push->target, row);
    }
    return wire;
}

static void settle(wefti_ep_push *push, int source)
{
    const wefti_ep_routing *route = push->route;
    if (push->arrived != NULL) {
        push->arrived(push, source);
    }
    if (source == push->ep->rank || (!push->staged && wefti_ep_is_by_source(route))) {
        return;
    }
    for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
        wefti_ep_wire wire = received_wire(push, place);
        push->deliver(push, source, place, &wire);
    }
    wefti_copy_stream_end();
}

weft_status wefti_ep_push_receive(wefti_ep_push *push)
{
    wefti_ep_stage(push->ep, "wait for done");
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(push->ep, push->flag, push->call.epoch, push->call.name);
    wefti_ep_arrivals_measure(&arrivals, push->wait_ns);
    arrivals.through_forwarders = push->crosses && push->call.mismatched_rank < 0; /* else each tells all itself */
    while (wefti_ep_arrivals_left(&arrivals)) {
        int source;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &source));
        if (source < 0) {
            break;
        }
        if (push->call.mismatched_rank < 0) {
            settle(push, source);
            WEFT_TRY(push->settled != NULL ? push->settled(push, source) : WEFT_OK);
        }
    }
    return WEFT_OK;
}
