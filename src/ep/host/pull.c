#include "ep/host/pull.h"

#include <string.h>

#include "base/error.h"
#include "ep/host/crossing.h"
#include "ep/host/gradients.h"
#include "ep/host/notices.h"
#include "ep/host/peers.h"

/* Whether others read from the group's memory. */
static int is_staged(const wefti_ep_routing *route, const wefti_ep_span *in)
{
    return wefti_ep_own_places(route->ep) > 0 || !wefti_ep_is_by_source(route) ||
           !wefti_ep_span_is_symmetric(route->ep, in, *route->rows);
}

weft_status wefti_ep_pull_check(const wefti_ep_routing *route, const weft_ep_rows *in, const char *call,
                                const char *name)
{
    const wefti_ep_span span = wefti_ep_span_of(in);
    const int by_source = wefti_ep_is_by_source(route);
    if (wefti_ep_stages(route->ep) || (by_source && *route->rows == 0) || !is_staged(route, &span)) {
        return WEFT_OK;
    }
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "%s: %s, and the group has WEFT_EP_NO_STAGING; make it without, or give %s of the heap or of "
                       "weft_ep_window",
                       call,
                       by_source ? "others cannot read the rows where they are"
                                 : "rows of a layout by expert are added up in memory of the group",
                       by_source ? name : "a layout by source, and memory");
}

void wefti_ep_pull_init(wefti_ep_pull *pull, const wefti_ep_routing *route, const wefti_ep_call *call,
                        const weft_ep_rows *in, const weft_ep_rows *out, int weighted)
{
    weft_ep *ep = route->ep;
    memset(pull, 0, sizeof *pull);
    pull->ep = ep;
    pull->route = route;
    pull->call = *call;
    pull->arithmetic = wefti_ep_arithmetic_of(in->dtype);
    pull->narrows = out->dtype != in->dtype ? wefti_ep_arithmetic_of(out->dtype) : NULL;
    pull->hidden = (size_t)in->hidden;
    pull->crosses = wefti_ep_crossing_is_on(ep);
    pull->weighted = weighted;
    pull->in = wefti_ep_span_of(in);
    pull->out = wefti_ep_span_of(out);
    pull->staged = is_staged(route, &pull->in);
    pull->ready = pull->staged ? wefti_ep_span_by_place(ep, &pull->in) : pull->in;
    pull->call.header.buffer = (uint64_t)((uintptr_t)pull->ready.data - (uintptr_t)ep->host->base);
    pull->call.header.pitch = pull->ready.pitch | (pull->staged ? WEFTI_EP_BY_PLACE : 0);
}

void wefti_ep_pull_combining(wefti_ep_pull *pull, const wefti_ep_combining *combining)
{
    pull->combining = *combining;
    pull->sends_choices = wefti_ep_combining_has_choices(combining) && !wefti_ep_is_by_source(pull->route);
    for (int i = 0; i < combining->biases; i++) {
        pull->bias[i] = wefti_ep_span_of(&combining->bias[i]);
    }
}

/* The call's own weight of the choice at index `at` of [T][K], one that takes part. */
static float combine_weight(const wefti_ep_pull *pull, size_t at)
{
    return pull->combining.weights != NULL ? pull->combining.weights[at] : 1.0f;
}

/* ---- the call's own choices, on their way to the owners ---- */

/* The bits of a choice that takes no part. A weight of these bits, a NaN, goes as another NaN. */
#define LEFT_OUT UINT32_C(0xffffffff)
#define ANY_NAN UINT32_C(0x7fc00000)

static uint32_t choice_bits(const wefti_ep_pull *pull, size_t at)
{
    float weight = combine_weight(pull, at);
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return !wefti_ep_combining_takes(&pull->combining, at) ? LEFT_OUT : bits == LEFT_OUT ? ANY_NAN : bits;
}

static uint64_t choices_at(const wefti_ep_pull *pull, size_t place)
{
    return pull->ep->host->layout.choices + place * (size_t)pull->route->plan.topk * sizeof(uint32_t);
}

static weft_status send_choices(const wefti_ep_pull *pull, int rank)
{
    const wefti_ep_routing *route = pull->route;
    size_t topk = (size_t)route->plan.topk;
    size_t count = (size_t)wefti_ep_sends_to(route, rank);
    const int32_t *tokens = &route->send_token[route->rank_sends[rank]];
    uint32_t *words = (uint32_t *)(void *)pull->ep->host->scratch.records;
    for (size_t i = 0; i < count * topk; i++) {
        words[i] = choice_bits(pull, (size_t)tokens[i / topk] * topk + i % topk);
    }
    return count > 0 ? wefti_ep_put(pull->ep, rank, choices_at(pull, route->first_place[rank]), words,
                                    count * topk * sizeof *words)
                     : WEFT_OK;
}

/* The weights [K] of the token at `place`, with the bits of those that take no part. */
static void read_choices(const wefti_ep_pull *pull, int place, float *weights)
{
    wefti_copy(weights, pull->ep->host->base + choices_at(pull, (size_t)place),
               (size_t)pull->route->plan.topk * sizeof *weights);
}

static int participates(const float *weight)
{
    uint32_t bits;
    memcpy(&bits, weight, sizeof bits);
    return bits != LEFT_OUT;
}

/* ---- what the sources read ---- */

/* By expert: add up a received token's rows here, in ascending choice. */
static void reduce_token(const wefti_ep_pull *pull, int place, void *sum)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    size_t bytes = pull->in.row_bytes;
    wefti_ep_record record = wefti_ep_record_of(pull->route, place);
    const int32_t *rows = wefti_ep_rows_at(pull->route, place);
    const float *weights = record.weights;
    size_t count = 0;
    if (pull->sends_choices) {
        read_choices(pull, place, scratch->choice_weight); /* the loop below overwrites them from the first on */
        weights = scratch->choice_weight;
    }
    for (int k = 0; k < pull->route->plan.topk; k++) {
        int is_in = rows[k] >= 0 && (!pull->sends_choices || participates(&weights[k]));
        if (is_in && !(pull->each_once && wefti_ep_is_again(rows, k))) {
            const void *row = wefti_ep_span_row(&pull->in, (size_t)rows[k]);
            scratch->choice_at[count] = wefti_ep_row_read(row, scratch->choice_rows + count * bytes, bytes);
            scratch->choice_weight[count++] = weights[k];
        }
    }
    if (pull->weighted) {
        pull->arithmetic->fuse(sum, scratch->choice_at, scratch->choice_weight, count, pull->hidden);
    } else {
        pull->arithmetic->add(sum, scratch->choice_at, count, pull->hidden);
    }
}

/* Make ready what another rank will read. */
static void make_ready(const wefti_ep_pull *pull, int source)
{
    const wefti_ep_routing *route = pull->route;
    size_t bytes = pull->in.row_bytes;
    for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
        unsigned char *ready = wefti_ep_span_row(&pull->ready, (size_t)place);
        if (wefti_ep_is_by_source(route)) {
            wefti_copy(ready, wefti_ep_span_row(&pull->in, wefti_ep_row_of_place(route, source, place)), bytes);
        } else {
            void *sum = wefti_ep_row_write(ready, pull->ep->host->scratch.rows);
            reduce_token(pull, place, sum);
            wefti_ep_row_written(ready, sum, bytes);
        }
    }
}

weft_status wefti_ep_pull_post(const wefti_ep_pull *pull)
{
    for (int i = 1; i <= pull->ep->ranks; i++) {
        int source = (pull->ep->rank + i) % pull->ep->ranks;
        if (pull->ep->masked[source]) {
            continue;
        }
        if (pull->sends_choices) {
            WEFT_TRY(send_choices(pull, source));
        } else if (pull->staged && source != pull->ep->rank) {
            make_ready(pull, source);
        }
        if (pull->sends_choices || !wefti_ep_notices_reach(pull->ep, source)) {
            WEFT_TRY(wefti_ep_call_post(&pull->call, source));
        }
    }
    return pull->sends_choices ? WEFT_OK /* which a notice might overtake */
                               : wefti_ep_notices_send(pull->ep, &pull->call.header, pull->call.epoch, 0);
}

/* ---- reading ---- */

/* The header of a source has come, and with it its choices: make the rows ready that waited for them. */
static weft_status make_ready_late(const wefti_ep_pull *pull, int source)
{
    if (source != pull->ep->rank) {
        make_ready(pull, source);
    }
    return wefti_ep_call_mark(&pull->call, source);
}

weft_status wefti_ep_pull_wait_headers(wefti_ep_pull *pull)
{
    weft_ep *ep = pull->ep;
    wefti_ep_stage(ep, "wait for ready");
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_CALL, pull->call.epoch, pull->call.name);
    wefti_ep_arrivals_measure(&arrivals, pull->wait_ns);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_call_header header;
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
        if (rank < 0) {
            break;
        }
        int is_alike = wefti_ep_call_compare(&pull->call, rank, &header);
        if (is_alike && pull->sends_choices) {
            WEFT_TRY(make_ready_late(pull, rank));
        }
        wefti_ep_lane *lane = &ep->host->scratch.lanes[rank];
        lane->buffer = header.buffer;
        lane->pitch = header.pitch & ~(uint64_t)WEFTI_EP_BY_PLACE;
        lane->by_place = (header.pitch & WEFTI_EP_BY_PLACE) != 0;
        lane->near = wefti_ep_near(ep, rank, header.buffer);
    }
    return WEFT_OK;
}

size_t wefti_ep_pull_row(const wefti_ep_pull *pull, int rank, int index)
{
    const wefti_ep_routing *route = pull->route;
    size_t first = pull->ep->host->scratch.lanes[rank].by_place ? (size_t)route->first_place[rank]
                                                                : wefti_ep_first_row(route, rank);
    return first + (size_t)index;
}

weft_status wefti_ep_pull_fetch(const wefti_ep_pull *pull, int rank, size_t at, void *copy, const void **row)
{
    const wefti_ep_lane *lane = &pull->ep->host->scratch.lanes[rank];
    *row = copy;
    if (lane->near != NULL) {
        *row = wefti_ep_row_read(lane->near + at * lane->pitch, copy, pull->in.row_bytes);
        return WEFT_OK;
    }
    return wefti_ep_get(pull->ep, rank, copy, lane->buffer + at * lane->pitch, pull->in.row_bytes);
}

/* Make the row of the index-th token that this rank sent to `rank` readable; `copy` is a private row for when it must
 * be fetched. A row of this rank's own is summed only now, or read where the caller has it. */
static weft_status fetch_row(const wefti_ep_pull *pull, int rank, int index, void *copy, const void **row)
{
    const weft_ep *ep = pull->ep;
    const wefti_ep_routing *route = pull->route;
    size_t bytes = pull->in.row_bytes;
    *row = copy;
    if (rank == ep->rank && !wefti_ep_is_by_source(route)) {
        reduce_token(pull, (int)route->first_place[rank] + index, copy);
        return WEFT_OK;
    }
    if (rank == ep->rank) {
        size_t by_row = (size_t)route->offset_of_source[rank] + (size_t)index;
        *row = wefti_ep_row_read(wefti_ep_span_row(&pull->in, by_row), copy, bytes);
        return WEFT_OK;
    }
    return wefti_ep_pull_fetch(pull, rank, wefti_ep_pull_row(pull, rank, index), copy, row);
}

/* The last choice of the token on the pair's rank that takes part, or -1. */
static int last_choice(const wefti_ep_pull *pull, int token, int pair)
{
    const wefti_ep_routing *route = pull->route;
    size_t first = (size_t)token * (size_t)route->plan.topk;
    for (int k = route->plan.topk - 1; k >= 0; k--) {
        if (route->choice_rank[first + (size_t)k] == route->pair_rank[pair] &&
            wefti_ep_combining_takes(&pull->combining, first + (size_t)k)) {
            return k;
        }
    }
    return -1;
}

/* Whether pair `a` of a token is added after pair `b`, whose last choices are these. */
static int comes_after(const wefti_ep_pull *pull, int a, int32_t last_of_a, int b, int32_t last_of_b)
{
    const wefti_ep_routing *route = pull->route;
    const int32_t *domain_of = pull->ep->domains.of;
    int32_t domain_a = domain_of[route->pair_rank[a]];
    int32_t domain_b = domain_of[route->pair_rank[b]];
    return domain_a != domain_b ? domain_a > domain_b : last_of_a > last_of_b;
}

int wefti_ep_pull_order(const wefti_ep_pull *pull, int token)
{
    const wefti_ep_routing *route = pull->route;
    int32_t *order = pull->ep->host->scratch.pair_order;
    int32_t *last = pull->ep->host->scratch.pair_last;
    int count = route->token_pairs[token + 1] - route->token_pairs[token];
    for (int i = 0; i < count; i++) {
        int pair = route->token_pairs[token] + i;
        int by_choice = route->plan.order == WEFT_EP_ORDER_CHOICE;
        int32_t key = by_choice ? last_choice(pull, token, pair) : i;
        int at = i;
        for (; at > 0 && comes_after(pull, order[at - 1], last[at - 1], pair, key); at--) {
            order[at] = order[at - 1];
            last[at] = last[at - 1];
        }
        order[at] = pair;
        last[at] = key;
    }
    return count;
}

int wefti_ep_pull_participates(const wefti_ep_pull *pull, int token, int pair, float *weight)
{
    const wefti_ep_routing *route = pull->route;
    size_t first = (size_t)token * (size_t)route->plan.topk;
    int is_in = 0;
    *weight = route->pair_weight[pair];
    if (!wefti_ep_combining_has_choices(&pull->combining)) {
        return 1;
    }
    for (size_t at = first; at < first + (size_t)route->plan.topk; at++) {
        if (route->choice_rank[at] == route->pair_rank[pair] && wefti_ep_combining_takes(&pull->combining, at)) {
            *weight = (is_in ? *weight : 0.0f) + combine_weight(pull, at);
            is_in = 1;
        }
    }
    return is_in;
}

/* The biases of a token, as rows of weight 1 from number `count` on. Returns the new number. */
static size_t add_biases(const wefti_ep_pull *pull, int token, size_t count)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    size_t bytes = pull->in.row_bytes;
    for (int i = 0; i < pull->combining.biases; i++) {
        scratch->row_weight[count] = 1.0f;
        scratch->row_at[count] = wefti_ep_row_read(wefti_ep_span_row(&pull->bias[i], (size_t)token),
                                                   scratch->rows + (count + 1) * bytes, bytes);
        count++;
    }
    return count;
}

/* Whether rows are multiplied by their weights where ranks are added. */
static int is_scaled(const wefti_ep_pull *pull)
{
    return pull->weighted && wefti_ep_is_by_source(pull->route);
}

/* Add the first `count` rows of scratch into `sum`. */
static void add_rows(const wefti_ep_pull *pull, size_t count, int scaled, void *sum)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    const wefti_ep_arithmetic *arithmetic = pull->arithmetic;
    if (pull->narrows != NULL && scaled) {
        arithmetic->add_scaled_to_f32(scratch->wide, scratch->row_at, scratch->row_weight, count, pull->hidden);
    } else if (pull->narrows != NULL) {
        arithmetic->add_to_f32(scratch->wide, scratch->row_at, count, pull->hidden);
    } else if (scaled) {
        arithmetic->add_scaled(sum, scratch->row_at, scratch->row_weight, count, pull->hidden);
    } else {
        arithmetic->add(sum, scratch->row_at, count, pull->hidden);
    }
    if (pull->narrows != NULL) {
        pull->narrows->round(sum, scratch->wide, pull->hidden);
    }
}

weft_status wefti_ep_pull_take(const wefti_ep_pull *pull, int token, int pair, size_t at, int *added)
{
    const wefti_ep_routing *route = pull->route;
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    const int rank = route->pair_rank[pair];
    *added = !pull->ep->masked[rank] && wefti_ep_pull_participates(pull, token, pair, &scratch->row_weight[at]);
    if (*added) {
        WEFT_TRY(fetch_row(pull, rank, route->pair_index[pair], scratch->rows + (at + 1) * pull->in.row_bytes,
                           &scratch->row_at[at]));
        *added = !pull->ep->masked[rank]; /* one that did not answer is */
    }
    return WEFT_OK;
}

void wefti_ep_pull_add_domain(const wefti_ep_pull *pull, size_t count, void *sum)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    if (is_scaled(pull)) {
        pull->arithmetic->add_scaled(sum, scratch->row_at, scratch->row_weight, count, pull->hidden);
    } else {
        pull->arithmetic->add(sum, scratch->row_at, count, pull->hidden);
    }
}

static void add_up(const wefti_ep_pull *pull, int token, size_t count, int scaled)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    unsigned char *out = wefti_ep_span_row(&pull->out, (size_t)token);
    void *sum = wefti_ep_row_write(out, pull->narrows != NULL ? scratch->narrow : scratch->rows);
    add_rows(pull, count, scaled, sum);
    wefti_ep_row_written(out, sum, pull->out.row_bytes);
}

void wefti_ep_pull_add_domains(const wefti_ep_pull *pull, int token, size_t domains)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    int biases_first = pull->route->plan.order == WEFT_EP_ORDER_CHOICE;
    size_t count = biases_first ? add_biases(pull, token, 0) : 0;
    for (size_t i = 0; i < domains; i++) {
        scratch->row_at[count++] = scratch->domain_at[i];
    }
    count = biases_first ? count : add_biases(pull, token, count);
    add_up(pull, token, count, 0);
}

/* In a group of several domains: add up each domain's rows, round to the rows' type, then add the domains' sums. */
static weft_status sum_token_by_domain(const wefti_ep_pull *pull, int token)
{
    const wefti_ep_routing *route = pull->route;
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    size_t bytes = pull->in.row_bytes;
    int pairs = wefti_ep_pull_order(pull, token);
    size_t domains = 0;
    for (int i = 0; i < pairs;) {
        int32_t domain = pull->ep->domains.of[route->pair_rank[scratch->pair_order[i]]];
        size_t count = 0;
        for (; i < pairs && pull->ep->domains.of[route->pair_rank[scratch->pair_order[i]]] == domain; i++) {
            int added;
            WEFT_TRY(wefti_ep_pull_take(pull, token, scratch->pair_order[i], count, &added));
            count += (size_t)added;
        }
        if (count > 0) {
            scratch->domain_at[domains] = scratch->domain_rows + domains * bytes;
            wefti_ep_pull_add_domain(pull, count, scratch->domain_rows + domains++ * bytes);
        }
    }
    wefti_ep_pull_add_domains(pull, token, domains);
    return WEFT_OK;
}

static weft_status sum_token(const wefti_ep_pull *pull, int token)
{
    const wefti_ep_routing *route = pull->route;
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    int biases_first = route->plan.order == WEFT_EP_ORDER_CHOICE;
    size_t count = biases_first ? add_biases(pull, token, 0) : 0;
    int pairs = wefti_ep_pull_order(pull, token);
    for (int i = 0; i < pairs; i++) {
        int added;
        WEFT_TRY(wefti_ep_pull_take(pull, token, scratch->pair_order[i], count, &added));
        count += (size_t)added;
    }
    count = biases_first ? count : add_biases(pull, token, count);
    add_up(pull, token, count, is_scaled(pull));
    return WEFT_OK;
}

static weft_status await_rows(const wefti_ep_pull *pull)
{
    wefti_ep_stage(pull->ep, "wait for rows");
    wefti_ep_arrivals arrivals =
        wefti_ep_arrivals_start(pull->ep, WEFTI_EP_WORD_MARK, pull->call.epoch, pull->call.name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int rank;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &rank));
    }
    return WEFT_OK;
}

weft_status wefti_ep_pull_sums(const wefti_ep_pull *pull)
{
    WEFT_TRY(pull->sends_choices ? await_rows(pull) : WEFT_OK);
    wefti_ep_stage(pull->ep, "move");
    if (pull->crosses) {
        return wefti_ep_cross_pull(pull);
    }
    int is_one = pull->ep->domains.count == 1;
    for (int token = 0; token < pull->route->tokens; token++) {
        WEFT_TRY(is_one ? sum_token(pull, token) : sum_token_by_domain(pull, token));
    }
    return WEFT_OK;
}

weft_status wefti_ep_pull_verify(const wefti_ep_pull *pull, int *again)
{
    const int given_up = wefti_ep_find_given_up(pull->ep, pull->call.epoch) > 0;
    *again = given_up && wefti_ep_masks(pull->ep);
    return given_up && !*again ? wefti_ep_given_up(pull->ep, pull->call.epoch, pull->call.name) : WEFT_OK;
}

/* ---- values ---- */

static void add_values_to(float *sum, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum[i] += values[i];
    }
}

static weft_status add_values(const wefti_ep_pull *pull, int token)
{
    const wefti_ep_routing *route = pull->route;
    size_t topk = (size_t)route->plan.topk;
    float *values = pull->ep->host->scratch.choice_weight;
    float *out = &pull->combining.values_out[(size_t)token * topk];
    float *sum = pull->ep->host->scratch.domain_values;
    memset(out, 0, topk * sizeof *out);
    memset(sum, 0, topk * sizeof *sum);
    int pairs = wefti_ep_pull_order(pull, token);
    int32_t domain = 0;
    for (int i = 0; i < pairs; i++) {
        int pair = pull->ep->host->scratch.pair_order[i];
        int rank = route->pair_rank[pair];
        if (pull->ep->domains.of[rank] != domain) {
            add_values_to(out, sum, topk);
            memset(sum, 0, topk * sizeof *sum);
            domain = pull->ep->domains.of[rank];
        }
        if (!pull->ep->masked[rank]) {
            WEFT_TRY(wefti_ep_gradients_fetch(route, rank, route->pair_index[pair], values));
        }
        if (!pull->ep->masked[rank]) { /* one that did not answer is */
            add_values_to(sum, values, topk);
        }
    }
    add_values_to(out, sum, topk);
    return WEFT_OK;
}

weft_status wefti_ep_pull_values(const wefti_ep_pull *pull)
{
    for (int token = 0; token < pull->route->tokens; token++) {
        WEFT_TRY(add_values(pull, token));
    }
    return WEFT_OK;
}

weft_status wefti_ep_pull_end(const wefti_ep_pull *pull)
{
    WEFT_TRY(wefti_ep_call_done_all(&pull->call));
    WEFT_TRY(wefti_ep_call_await_done(&pull->call));
    return wefti_ep_call_end(&pull->call);
}
