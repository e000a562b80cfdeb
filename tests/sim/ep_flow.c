#include "sim/ep_flow.h"

#include <stdlib.h>
#include <string.h>

#include "common/mix.h"

#define POISON (-77.0f)

/* ---- what is sent ---- */

static uint64_t mixed(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t state = wefti_fnv(wefti_fnv(wefti_fnv(wefti_fnv(WEFTI_FNV, a), b), c), d);
    return wefti_split_mix(&state);
}

static int tokens_of(uint64_t routing, int rank)
{
    return (int)(mixed(routing, (uint64_t)rank, 1, 1) % (FLOW_TOKENS + 1));
}

/* The choice of a rank's token, -1: none. */
static int choice_of(const flow *f, uint64_t routing, int rank, int token, int k)
{
    const uint64_t first = mixed(routing, (uint64_t)rank, (uint64_t)token, 2);
    const int is_one = mixed(routing, (uint64_t)rank, (uint64_t)(token * FLOW_TOPK + k), 3) % 4 != 0;
    return is_one && k < f->ranks && token < tokens_of(routing, rank) ? (int)(first + (uint64_t)k) % f->ranks : -1;
}

static float weight_of(uint64_t weights, int rank, int token, int k)
{
    return (float)(1 << mixed(weights, (uint64_t)rank, (uint64_t)(token * FLOW_TOPK + k), 4) % 3);
}

/* Which of the token's choices is a rank; -1: none. */
static int choice_at(const flow *f, uint64_t routing, int rank, int token, int owner)
{
    for (int k = 0; k < FLOW_TOPK; k++) {
        if (choice_of(f, routing, rank, token, k) == owner) {
            return k;
        }
    }
    return -1;
}

/* An element of the row of a source's token, on its way to its owners, or of what one owner returns. Sums are exact. */
static float sent_value(uint64_t call, int source, int token, int element)
{
    return (float)(1 + mixed(call, (uint64_t)source, (uint64_t)(token * FLOW_HIDDEN + element), 5) % 1000);
}

static float returned_value(uint64_t call, int owner, int source, int token, int element)
{
    const uint64_t of = (uint64_t)((source * FLOW_TOKENS + token) * FLOW_HIDDEN + element);
    return (float)(1 + mixed(call, (uint64_t)owner, of, 6) % 1000);
}

int flow_rows(const flow *f, uint64_t routing, int rank)
{
    int rows = 0;
    for (int i = 0; i < f->ranks * FLOW_TOKENS; i++) {
        rows += choice_at(f, routing, i / FLOW_TOKENS, i % FLOW_TOKENS, rank) >= 0;
    }
    return rows;
}

/* ---- calls ---- */

weft_ep_rows flow_rows_at(float *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = FLOW_HIDDEN;
    return rows;
}

uint64_t flow_made(const flow *f)
{
    uint64_t calls;
    MUST(weft_ep_calls(f->ep, &calls));
    return calls;
}

uint64_t flow_masked(const flow *f)
{
    return masked_ranks(f->ep, f->ranks);
}

flow_kind flow_draw(const flow_route *on, uint64_t *common)
{
    const flow_kind kind = (flow_kind)common_below(common, FLOW_KINDS);
    return on->routing == 0 && !flow_routes_anew(kind) ? (flow_kind)common_below(common, 2) : kind;
}

/* The rows that this rank returns, in the order in which they came: of ranks that are not part of the routing as many
 * as are counted, of any value. */
static void fill_returned(const flow *f, const flow_call *call)
{
    weft_ep_counts counts;
    float *row = call->in;
    MUST(weft_ep_route_counts(call->on->route, &counts));
    for (int source = 0; source < f->ranks; source++) {
        float *const next = row + counts.rows_of_source[source] * FLOW_HIDDEN;
        for (int token = 0; token < FLOW_TOKENS && row < next; token++) {
            if (choice_at(f, call->routing, source, token, f->rank) >= 0) {
                for (int i = 0; i < FLOW_HIDDEN; i++) {
                    *row++ = returned_value(call->number, f->rank, source, token, i);
                }
            }
        }
        row = next;
    }
}

static void fill(const flow *f, const flow_call *call)
{
    for (int i = 0; i < FLOW_ROWS * FLOW_HIDDEN; i++) {
        call->in[i] = -1;
        call->out[i] = POISON;
    }
    if (flow_returns(call->kind)) {
        fill_returned(f, call);
        return;
    }
    for (int i = 0; i < FLOW_TOKENS * FLOW_HIDDEN; i++) {
        call->in[i] = sent_value(call->number, f->rank, i / FLOW_HIDDEN, i % FLOW_HIDDEN);
    }
}

static weft_ep_choices choices_of(const flow *f, flow_call *call)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = call->tokens = tokens_of(call->routing, f->rank);
    choices.ids = call->ids;
    choices.weights = call->of_choices;
    for (int i = 0; i < FLOW_TOKENS * FLOW_TOPK; i++) {
        call->ids[i] = choice_of(f, call->routing, f->rank, i / FLOW_TOPK, i % FLOW_TOPK);
        call->of_choices[i] = weight_of(call->weights, f->rank, i / FLOW_TOPK, i % FLOW_TOPK);
    }
    return choices;
}

void flow_prepare(flow *f, flow_call *call, flow_kind kind, flow_route *on)
{
    call->kind = kind;
    call->on = on;
    call->number = flow_made(f) + 1;
    call->routing = flow_routes_anew(kind) ? call->number : on->routing;
    call->weights = flow_routes_anew(kind) || kind == FLOW_WEIGHED ? call->number : on->weights;
    call->weighted = (kind == FLOW_COMBINE || kind == FLOW_COMBINE_BWD) && call->number % 3 != 0;
    call->in = weft_sim_random(2) == 0 ? call->own_in : call->shared;
    call->out = weft_sim_random(2) == 0 ? call->own_out : call->shared + FLOW_ROWS * FLOW_HIDDEN;
    fill(f, call);
    const weft_ep_choices choices = choices_of(f, call);
    if (kind == FLOW_FRESH) {
        MUST(weft_ep_route_choose(on->route, &choices));
    } else if (kind == FLOW_WEIGHED) {
        MUST(weft_ep_route_weigh(on->route, call->of_choices));
    }
}

static weft_ep_received received_of(const flow_call *call)
{
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    to.rows = flow_rows_at(call->out);
    to.rows_capacity = FLOW_ROWS;
    to.weights = (float *)(uintptr_t)call->received_weights;
    return to;
}

static weft_status update(const flow_call *call)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.ids = call->ids;
    choices.weights = call->of_choices;
    choices.tokens = call->tokens;
    return weft_ep_route_update(call->on->route, &choices, NULL);
}

weft_status flow_whole(const flow_call *call)
{
    weft_ep_route *route = call->on->route;
    const weft_ep_rows in = flow_rows_at(call->in);
    const weft_ep_rows out = flow_rows_at(call->out);
    const weft_ep_received to = received_of(call);
    const unsigned flags = call->weighted ? WEFT_EP_WEIGHTED : 0;
    switch (call->kind) {
    case FLOW_UPDATE:
        return update(call);
    case FLOW_COMBINE:
        return weft_ep_combine(route, &in, &out, flags, NULL);
    case FLOW_COMBINE_BWD:
        return weft_ep_combine_bwd(route, &in, NULL, &out, NULL, flags, NULL);
    case FLOW_DISPATCH_BWD:
        return weft_ep_dispatch_bwd(route, &in, NULL, &out, NULL, NULL);
    default:
        return weft_ep_dispatch(route, &in, &to, NULL);
    }
}

weft_status flow_without_room(const flow_call *call)
{
    const weft_ep_rows in = flow_rows_at(call->in);
    weft_ep_received to = received_of(call);
    to.rows.data = NULL;
    if (flow_has_halves(call->kind) && weft_sim_random(2) == 0) {
        return weft_ep_dispatch_send(call->on->route, &in, &to, NULL);
    }
    return weft_ep_dispatch(call->on->route, &in, &to, NULL);
}

weft_status flow_send(const flow_call *call)
{
    const weft_ep_rows in = flow_rows_at(call->in);
    const weft_ep_rows out = flow_rows_at(call->out);
    const weft_ep_received to = received_of(call);
    return call->kind == FLOW_COMBINE
               ? weft_ep_combine_send(call->on->route, &in, &out, call->weighted ? WEFT_EP_WEIGHTED : 0, NULL)
               : weft_ep_dispatch_send(call->on->route, &in, &to, NULL);
}

weft_status flow_recv(const flow_call *call)
{
    return call->kind == FLOW_COMBINE ? weft_ep_combine_recv(call->on->route, NULL)
                                      : weft_ep_dispatch_recv(call->on->route, NULL);
}

/* ---- what has come ---- */

/* Row `row` is a token of a source; of a dispatch with its weights. */
static void check_row(const flow *f, const flow_call *call, int source, int token, int row)
{
    const int k = choice_at(f, call->routing, source, token, f->rank);
    const float weight = weight_of(call->weights, source, token, k);
    const float factor = call->weighted ? weight : 1;
    for (int i = 0; i < FLOW_HIDDEN; i++) {
        const float wanted = factor * sent_value(call->number, source, token, i);
        if (call->out[row * FLOW_HIDDEN + i] != wanted) {
            weft_sim_fail("rank %d, call %d of kind %d: element %d of token %d of rank %d came as %g, not %g", f->rank,
                          (int)call->number, (int)call->kind, i, token, source,
                          (double)call->out[row * FLOW_HIDDEN + i], (double)wanted);
        }
    }
    for (int i = 0; i < (f->by_expert ? 1 : FLOW_TOPK) && call->kind != FLOW_COMBINE_BWD; i++) {
        const float told = call->received_weights[f->by_expert ? row : row * FLOW_TOPK + i];
        if (told != (f->by_expert || i == k ? weight : 0)) {
            weft_sim_fail("rank %d, call %d: of choice %d of token %d of rank %d is told weight %g, and it is %g",
                          f->rank, (int)call->number, i, token, source, (double)told, (double)weight);
        }
    }
}

/* The rows of sources that are not absent, in their order, and nothing behind all. */
static void check_rows(const flow *f, const flow_call *call)
{
    weft_ep_counts counts;
    int row = 0;
    MUST(weft_ep_route_counts(call->on->route, &counts));
    for (int source = 0; source < f->ranks; source++) {
        const int next = row + counts.rows_of_source[source];
        for (int token = 0; token < FLOW_TOKENS && (f->absent >> source & 1) == 0; token++) {
            if (choice_at(f, call->routing, source, token, f->rank) >= 0 && call->kind == FLOW_UPDATE) {
                row++;
            } else if (choice_at(f, call->routing, source, token, f->rank) >= 0) {
                check_row(f, call, source, token, row++);
            }
        }
        if (row != next && (f->absent >> source & 1) == 0) {
            weft_sim_fail("rank %d, call %d: rank %d is told to have sent %d rows, and %d are missing", f->rank,
                          (int)call->number, source, (int)counts.rows_of_source[source], next - row);
        }
        row = next;
    }
    for (int i = row * FLOW_HIDDEN; i < FLOW_ROWS * FLOW_HIDDEN && call->kind != FLOW_UPDATE; i++) {
        if (call->out[i] != POISON && !f->is_soiled) {
            weft_sim_fail("rank %d, call %d: element %d behind %d rows is %g", f->rank, (int)call->number, i, row,
                          (double)call->out[i]);
        }
    }
}

/* Each token comes back from the ranks that it went to and that are not absent. */
static void check_sums(const flow *f, const flow_call *call)
{
    for (int i = 0; i < tokens_of(call->routing, f->rank) * FLOW_HIDDEN; i++) {
        const int token = i / FLOW_HIDDEN;
        float wanted = 0;
        for (int k = 0; k < FLOW_TOPK; k++) {
            const int owner = choice_of(f, call->routing, f->rank, token, k);
            if (owner >= 0 && (f->absent >> owner & 1) == 0) {
                wanted += (call->weighted ? weight_of(call->weights, f->rank, token, k) : 1) *
                          returned_value(call->number, owner, f->rank, token, i % FLOW_HIDDEN);
            }
        }
        if (call->out[i] != wanted) {
            weft_sim_fail("rank %d, call %d of kind %d: element %d of token %d came back as %g, not %g, without 0x%llx",
                          f->rank, (int)call->number, (int)call->kind, i % FLOW_HIDDEN, token, (double)call->out[i],
                          (double)wanted, (unsigned long long)f->absent);
        }
    }
}

void flow_check(const flow *f, const flow_call *call)
{
    if (flow_returns(call->kind)) {
        check_sums(f, call);
    } else {
        check_rows(f, call);
    }
}

void flow_done(const flow *f, const flow_call *call)
{
    call->on->routing = call->routing;
    call->on->weights = call->weights;
    flow_check(f, call);
}

/* ---- what is refused ---- */

void flow_expect(const flow *f, weft_status status, weft_status wanted, const char *what)
{
    if (status != wanted) {
        weft_sim_fail("rank %d, after call %d: %s gives %s, not %s: %s", f->rank, (int)flow_made(f), what,
                      weft_status_name(status), weft_status_name(wanted), status == WEFT_OK ? "" : weft_last_error());
    }
}

void flow_refused(const flow *f, const flow_route *on, weft_status wanted)
{
    static const flow_kind kinds[] = {FLOW_DISPATCH, FLOW_COMBINE, FLOW_COMBINE_BWD, FLOW_DISPATCH_BWD};
    const uint64_t made = flow_made(f);
    flow_call call = f->calls[FLOW_CALLS - 1];
    call.on = (flow_route *)(uintptr_t)on;
    call.in = call.own_in;
    call.out = call.own_out;
    for (int i = 0; i < 4; i++) {
        call.kind = kinds[i];
        flow_expect(f, flow_whole(&call), wanted, "a call on the route");
    }
    if (wanted != WEFT_ERR_OVERFLOW) {
        flow_expect(f, weft_ep_route_weigh(on->route, NULL), wanted, "weft_ep_route_weigh");
    }
    if (flow_made(f) != made) {
        weft_sim_fail("rank %d: calls that were refused are counted: %d, and there were %d", f->rank, (int)flow_made(f),
                      (int)made);
    }
}

void flow_told(const flow *f, const flow_route *on, int has_routing)
{
    weft_ep_counts counts;
    weft_ep_host_counts by_value;
    const weft_status wanted = has_routing ? WEFT_OK : WEFT_ERR_STATE;
    flow_expect(f, weft_ep_route_counts(on->route, &counts), wanted, "weft_ep_route_counts");
    flow_expect(f, weft_ep_route_query(on->route, NULL, &by_value), wanted, "weft_ep_route_query");
}

/* ---- groups ---- */

int flow_pe(const flow *f, int rank)
{
    return turned(f->run, rank);
}

/* At least two domains where there are two ranks. */
static void draw_domains(uint64_t *common, int ranks, int *labels)
{
    const int count = ranks > 1 ? 2 + common_below(common, ranks - 1) : 1;
    for (int rank = 0; rank < ranks; rank++) {
        labels[rank] = rank < 2 ? rank % count : common_below(common, count);
    }
}

static void open_world(flow *f, uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_sim_world_config(&config);
    config.deadline_ns = deadline_ns != 0 ? deadline_ns : config.deadline_ns;
    MUST(weft_world_create(&config, &f->world));
    for (int i = 0; i < FLOW_CALLS; i++) {
        MUST(weft_malloc(f->world, 2 * FLOW_ROWS * FLOW_HIDDEN * sizeof(float), (void **)&f->calls[i].shared));
    }
}

void flow_open(flow *f, case_run *run, uint64_t *common, const flow_plan *plan)
{
    int labels[FLOW_RANKS];
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan of_route = WEFT_EP_PLAN_INIT;
    (void)setenv("WEFT_EP_COUNTS", run->seed % 2 == 0 ? "owners" : "direct", 1);
    memset(f, 0, sizeof *f);
    f->run = run;
    f->ranks = run->pes;
    f->rank = turned(run, weft_sim_pe());
    f->by_expert = common_below(common, 2);
    open_world(f, plan->deadline_ns);
    config.experts = run->pes;
    config.tokens_max = FLOW_TOKENS;
    config.topk_max = of_route.topk = FLOW_TOPK;
    config.row_bytes_max = FLOW_HIDDEN * sizeof(float);
    config.rows_max = (size_t)plan->rows_max;
    if (plan->drops_rows) {
        config.rows_max = FLOW_ROWS;
        config.overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    }
    config.flags = plan->flags;
    config.pairs_max = plan->pairs_max;
    if (plan->crosses) {
        draw_domains(common, run->pes, labels);
        config.domain_of = labels;
    }
    of_route.layout = f->by_expert ? WEFT_EP_EXPERT_MAJOR : WEFT_EP_RANK_MAJOR;
    MUST(weft_ep_create(turned_team(run, f->world), &config, &f->ep));
    MUST(weft_ep_domains(f->ep, f->domain_of, &f->domains));
    for (int i = 0; i < 2; i++) {
        MUST(weft_ep_route_create(f->ep, &of_route, NULL, &f->routes[i].route));
    }
    MUST(weft_barrier(f->world)); /* all have made the group */
}

void flow_close(flow *f)
{
    MUST(weft_world_destroy(f->world));
}

enum { BOARD_POINTS = 1024 };

void flow_meet(const flow *f, uint64_t number, int count)
{
    f->run->board[BOARD_POINTS + f->rank] = number;
    for (int there = 0; there < count;) {
        there = 0;
        for (int rank = 0; rank < f->ranks; rank++) {
            there += f->run->board[BOARD_POINTS + rank] >= number;
        }
        if (there < count) {
            weft_sim_sleep_ns(100000);
        }
    }
}
