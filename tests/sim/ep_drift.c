/* sim/ep_drift.c: ranks that mask who is late make steps of drawn tokens and choices, whole or in halves, on one
 * routing or several, by one pair or two, while a rank is late, between halves too, or lost. Each dispatch has rows
 * that no other has, and each rank tells what it sends beside weft: so what comes is of this call, token by token, with
 * the source, experts and weights that it has, and what comes back is of the ranks that it went to. */
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "weft_ep.h"

#define RANKS_MAX 8
#define TOKENS 3
#define TOPK 3
#define HIDDEN 4
#define ROWS (RANKS_MAX * TOKENS)
#define STEPS 6
#define DEADLINE_NS UINT64_C(50000000)
#define TOLD 32 /* calls of a rank that are told of at once */
#define NOTHING (-7)

/* One dispatch, what it was given and what came of it. */
typedef struct shipment {
    uint64_t call; /* its number */
    int32_t ids[TOKENS * TOPK];
    float weights[TOKENS * TOPK];
    uint64_t to; /* a bit for each rank, RANKS_MAX of them a token */
    int tokens;
    int is_fresh; /* it makes its routing */
    _Alignas(16) float in[TOKENS * HIDDEN];
    _Alignas(16) float rows[ROWS * HIDDEN];
    _Alignas(16) float out[TOKENS * HIDDEN];
    float received_weights[ROWS * TOPK];
    int32_t experts[ROWS * TOPK];
    int32_t source_rank[ROWS];
    int32_t source_token[ROWS];
} shipment;

/* What is done to the late rank, or what it does, at a point of its steps. */
typedef struct lateness {
    int rank;
    int point; /* calls of the group before it */
    int dies;
    int by_itself; /* it sleeps there, else another stalls it */
    int in_halves; /* it sleeps at the first point from there on at which it is seen to be in a call */
    uint64_t for_ns;
} lateness;

typedef struct drift {
    case_run *run;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *routes[2];
    shipment shipments[2]; /* of each route the last */
    int has_routing[2];
    int pe; /* the rank of this PE */
    int pes;
    int by_expert;
    int drops; /* the group has room for fewer rows than come at most */
    int rows_max;
    int pairs;
    int points;
    int was_late;
    int is_sure; /* nobody is masked */
    lateness late;
} drift;

/* ---- what is sent ---- */

static float value_of(uint64_t call, int rank, int token, int element)
{
    return (float)((((call % 64) * RANKS_MAX + (uint64_t)rank) * TOKENS + (uint64_t)token) * HIDDEN +
                   (uint64_t)element + 1);
}

static int goes_to(uint64_t to, int token, int rank)
{
    return (int)(to >> (token * RANKS_MAX + rank) & 1);
}

/* Where a rank tells what it sends in a call: the number of the call, and where the tokens go. */
static uint64_t *told(const drift *d, int rank, uint64_t call)
{
    return &d->run->board[256 + TOLD * (uint64_t)rank + call % TOLD];
}

/* Each token goes to some ranks, which have an expert each, also to none. */
static void draw_choices(const drift *d, shipment *s)
{
    s->tokens = (int)weft_sim_random(TOKENS + 1);
    s->to = 0;
    for (int i = 0; i < TOKENS * TOPK; i++) {
        const int token = i / TOPK;
        const int rank = (int)weft_sim_random((uint64_t)d->pes);
        const int is_new = token < s->tokens && !goes_to(s->to, token, rank) && weft_sim_random(5) != 0;
        s->ids[i] = is_new ? rank : -1;
        s->weights[i] = is_new ? (float)(1 << rank) : 0.5f;
        s->to |= is_new ? (uint64_t)1 << (token * RANKS_MAX + rank) : 0;
    }
}

static weft_ep_choices choices_of(const shipment *s)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = s->tokens;
    choices.ids = s->ids;
    choices.weights = s->weights;
    return choices;
}

static weft_ep_rows rows_at(float *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static weft_ep_received received_of(shipment *s)
{
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    to.rows = rows_at(s->rows);
    to.rows_capacity = ROWS;
    to.weights = s->received_weights;
    to.experts = s->experts;
    to.source_rank = s->source_rank;
    to.source_token = s->source_token;
    for (int i = 0; i < ROWS * TOPK; i++) {
        s->experts[i] = NOTHING;
        s->received_weights[i] = NOTHING;
    }
    return to;
}

/* The next call of the group is this dispatch. */
static void fill(const drift *d, shipment *s)
{
    uint64_t calls;
    MUST(weft_ep_calls(d->ep, &calls));
    s->call = calls + 1;
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        s->in[i] = value_of(s->call, d->pe, i / HIDDEN, i % HIDDEN);
    }
    *told(d, d->pe, s->call) = s->call << 32 | s->to;
}

/* ---- what has come ---- */

/* The token of a rank that is the index-th to come here; -1: there are fewer. */
static int token_at(const drift *d, uint64_t to, int index)
{
    for (int token = 0; token < TOKENS; token++) {
        if (goes_to(to, token, d->pe) && index-- == 0) {
            return token;
        }
    }
    return -1;
}

/* The choice of `token` that stands for this rank has its weight, every other has none. By expert there is one. */
static int has_choices(const drift *d, const shipment *s, int row)
{
    int count = 0;
    for (int k = 0; k < (d->by_expert ? 1 : TOPK); k++) {
        const int at = d->by_expert ? row : row * TOPK + k;
        const int is_here = s->experts[at] == 0 && s->received_weights[at] == (float)(1 << d->pe);
        count += is_here;
        if (!is_here && (s->experts[at] != -1 || s->received_weights[at] != 0)) {
            return 0;
        }
    }
    return count == 1;
}

/* What is told of the row of a rank that is masked is as it was, or that it has no choices. */
static int has_nothing(const drift *d, const shipment *s, int row)
{
    for (int k = 0; k < (d->by_expert ? 1 : TOPK); k++) {
        const int at = d->by_expert ? row : row * TOPK + k;
        if (s->experts[at] != NOTHING && (s->experts[at] != -1 || s->received_weights[at] != 0)) {
            return 0;
        }
    }
    return 1;
}

static void check_row(const drift *d, const shipment *s, int rank, int token, int row)
{
    for (int i = 0; i < HIDDEN; i++) {
        if (s->rows[row * HIDDEN + i] != value_of(s->call, rank, token, i)) {
            weft_sim_fail("call %d: element %d of token %d of rank %d came as %g, not %g", (int)s->call, i, token, rank,
                          (double)s->rows[row * HIDDEN + i], (double)value_of(s->call, rank, token, i));
        }
    }
    if (s->source_rank[row] != rank || s->source_token[row] != token || !has_choices(d, s, row)) {
        weft_sim_fail("call %d: of token %d of rank %d is told rank %d, token %d, expert %d, weight %g", (int)s->call,
                      token, rank, s->source_rank[row], s->source_token[row], s->experts[row],
                      (double)s->received_weights[row]);
    }
}

/* The rows of a rank from `row` on, of which there may be `left`: how many have come. */
static int check_source(const drift *d, const shipment *s, int rank, int row, int left, int count)
{
    const uint64_t word = *told(d, rank, s->call);
    const uint64_t masked = masked_ranks(d->ep, d->pes);
    const int is_known = word >> 32 == s->call;
    const int is_masked = (int)(masked >> rank & 1);
    int sent = 0;
    while (is_known && token_at(d, word, sent) >= 0) {
        sent++;
    }
    const int wanted = sent < left ? sent : left;
    if (!is_masked && (!is_known || count > wanted || (count != wanted && (masked == 0 || !d->drops)))) {
        weft_sim_fail("call %d: %d rows of rank %d, which sends %d, have come, and there is room for %d (known %d)",
                      (int)s->call, count, rank, sent, left, is_known);
    }
    for (int i = 0; i < count && is_known; i++) {
        const int token = token_at(d, word, i);
        if (is_masked && has_nothing(d, s, row + i)) {
            continue;
        }
        if (!is_masked) {
            check_row(d, s, rank, token, row + i);
        } else if (!has_choices(d, s, row + i)) {
            weft_sim_fail("call %d: of row %d of rank %d, which is masked, is told expert %d, weight %g", (int)s->call,
                          i, rank, s->experts[row + i], (double)s->received_weights[row + i]);
        }
    }
    return count;
}

static void check_received(const drift *d, int which)
{
    const shipment *s = &d->shipments[which];
    weft_ep_counts counts;
    int rows = 0;
    MUST(weft_ep_route_counts(d->routes[which], &counts));
    if (*counts.rows > d->rows_max || *counts.status != WEFT_OK) {
        weft_sim_fail("call %d: %d rows of at most %d, status %d", (int)s->call, (int)*counts.rows, d->rows_max,
                      (int)*counts.status);
    }
    for (int rank = 0; rank < d->pes; rank++) {
        rows += check_source(d, s, rank, rows, d->rows_max - rows, counts.rows_of_source[rank]);
    }
    if (rows != *counts.rows) {
        weft_sim_fail("call %d: %d rows have come, of all ranks %d", (int)s->call, (int)*counts.rows, rows);
    }
}

/* Each token comes back from the ranks that it went to, but for those that are masked. */
static void check_sums(const drift *d, int which)
{
    const shipment *s = &d->shipments[which];
    const uint64_t masked = masked_ranks(d->ep, d->pes);
    for (int token = 0; token < s->tokens; token++) {
        const float *in = &s->in[token * HIDDEN];
        const float *out = &s->out[token * HIDDEN];
        const uint64_t to = s->to >> (token * RANKS_MAX) & ((1 << RANKS_MAX) - 1);
        const uint64_t of = (uint64_t)(out[0] / in[0]);
        const uint64_t least = d->drops ? 0 : to & ~masked;
        for (int i = 0; i < HIDDEN; i++) {
            if (out[i] != (float)of * in[i] || (of & ~to) != 0 || (least & ~of) != 0) {
                weft_sim_fail("call %d: element %d of token %d, %g, came back as %g, from ranks 0x%llx of 0x%llx, when "
                              "0x%llx are masked",
                              (int)s->call, i, token, (double)in[i], (double)out[i], (unsigned long long)of,
                              (unsigned long long)to, (unsigned long long)masked);
            }
        }
    }
}

/* ---- calls ---- */

/* Before each call, and between its halves: `in_halves` of calls that nobody ends without what this rank does next, so
 * that it is seen to be inside. */
static void come_to_point(drift *d, int in_halves)
{
    const lateness *late = &d->late;
    const int is_now =
        late->in_halves ? in_halves && d->points >= late->point && !d->was_late : d->points == late->point;
    d->points++;
    d->was_late |= is_now;
    if (is_now && late->by_itself && d->pe == late->rank) {
        weft_sim_sleep_ns(late->for_ns);
    } else if (is_now && !late->by_itself && d->pe == (late->rank + 1) % d->pes) {
        if (late->dies) {
            weft_sim_kill(turned(d->run, late->rank));
        } else {
            weft_sim_stall(turned(d->run, late->rank), late->for_ns);
        }
    }
    dawdle(6, 5000);
}

/* Calls go well, but on a rank that is late: others may have gone on without it. Whether it went well. */
static int went_well(const drift *d, weft_status status, const char *what)
{
    if (status != WEFT_OK && (d->is_sure || d->pe != d->late.rank)) {
        must(status, what);
    }
    return status == WEFT_OK;
}

#define TRY_WELL(call)                                                                                                 \
    if (!went_well(d, (call), #call)) {                                                                                \
        return 0;                                                                                                      \
    }

typedef enum routing { BY_UPDATE, BY_DISPATCH, KEPT, ROUTINGS } routing;

static int route(drift *d, int which, routing how)
{
    shipment *s = &d->shipments[which];
    s->is_fresh = how == BY_DISPATCH;
    if (how == KEPT && d->has_routing[which]) {
        return 1;
    }
    draw_choices(d, s);
    const weft_ep_choices choices = choices_of(s);
    if (how == BY_DISPATCH) {
        MUST(weft_ep_route_choose(d->routes[which], &choices));
    } else {
        come_to_point(d, 0);
        TRY_WELL(weft_ep_route_update(d->routes[which], &choices, NULL));
    }
    d->has_routing[which] = 1;
    return 1;
}

static int send_rows(drift *d, int which, int is_whole)
{
    shipment *s = &d->shipments[which];
    const weft_ep_rows in = rows_at(s->in);
    const weft_ep_received to = received_of(s);
    come_to_point(d, 0);
    fill(d, s);
    TRY_WELL(is_whole ? weft_ep_dispatch(d->routes[which], &in, &to, NULL)
                      : weft_ep_dispatch_send(d->routes[which], &in, &to, NULL));
    return 1;
}

static int receive_rows(drift *d, int which, int is_whole)
{
    if (!is_whole) {
        come_to_point(d, d->shipments[which].is_fresh);
        TRY_WELL(weft_ep_dispatch_recv(d->routes[which], NULL));
    }
    check_received(d, which);
    return 1;
}

static int send_back(drift *d, int which, int is_whole)
{
    shipment *s = &d->shipments[which];
    const weft_ep_rows in = rows_at(s->rows);
    const weft_ep_rows out = rows_at(s->out);
    come_to_point(d, 0);
    TRY_WELL(is_whole ? weft_ep_combine(d->routes[which], &in, &out, WEFT_EP_WEIGHTED, NULL)
                      : weft_ep_combine_send(d->routes[which], &in, &out, WEFT_EP_WEIGHTED, NULL));
    return 1;
}

static int add_up(drift *d, int which, int is_whole)
{
    if (!is_whole) {
        come_to_point(d, 1);
        TRY_WELL(weft_ep_combine_recv(d->routes[which], NULL));
    }
    check_sums(d, which);
    return 1;
}

/* Both routes at once, by two pairs of halves, of which either ends first. */
static int step_twice(drift *d, uint64_t *common)
{
    const int first = common_below(common, 2);
    const int last = common_below(common, 2);
    return route(d, 0, (routing)common_below(common, ROUTINGS)) &&
           route(d, 1, (routing)common_below(common, ROUTINGS)) && send_rows(d, first, 0) && send_rows(d, !first, 0) &&
           receive_rows(d, last, 0) && receive_rows(d, !last, 0) && send_back(d, last, 0) && send_back(d, !last, 0) &&
           add_up(d, first, 0) && add_up(d, !first, 0);
}

static int step(drift *d, uint64_t *common)
{
    const int which = common_below(common, 2);
    const int is_whole = common_below(common, 2);
    const int adds_whole = common_below(common, 2);
    return route(d, which, (routing)common_below(common, ROUTINGS)) && send_rows(d, which, is_whole) &&
           receive_rows(d, which, is_whole) && send_back(d, which, adds_whole) && add_up(d, which, adds_whole);
}

/* ---- a rank that comes back ---- */

enum { BOARD_ENDED = 80, BOARD_CALLS = 100 };

/* Until all have come to this point, beside weft. */
static void meet(const drift *d, uint64_t number)
{
    d->run->board[BOARD_ENDED + d->pe] = number;
    for (int pe = 0; pe < d->pes; pe++) {
        while (d->run->board[BOARD_ENDED + pe] < number) {
            weft_sim_sleep_ns(100000);
        }
    }
}

/* When all have left their calls the late rank comes back, where no other was masked, and all have all rows again. */
static void be_back(drift *d)
{
    uint64_t common = d->run->seed + 1;
    uint64_t calls;
    meet(d, 1);
    MUST(weft_ep_calls(d->ep, &calls));
    d->run->board[64 + d->pe] |= masked_ranks(d->ep, d->pes);
    d->run->board[BOARD_CALLS] = d->pe == d->late.rank ? d->run->board[BOARD_CALLS] : calls;
    meet(d, 2);
    for (int pe = 0; pe < d->pes; pe++) {
        if (pe != d->late.rank && (d->run->board[64 + pe] & ~((uint64_t)1 << d->late.rank)) != 0) {
            return;
        }
    }
    if (d->pe == d->late.rank) {
        MUST(weft_ep_rejoin(d->ep, d->run->board[BOARD_CALLS]));
    } else {
        MUST(weft_ep_mask(d->ep, d->late.rank, 1));
    }
    meet(d, 3);
    d->run->board[64 + d->pe] = 0;
    d->is_sure = 1;
    d->late.point = -1; /* nobody is late any more */
    d->has_routing[0] = d->has_routing[1] = 0;
    meet(d, 4);
    for (int i = 0; i < 2; i++) {
        (void)(d->pairs == 2 ? step_twice(d, &common) : step(d, &common));
    }
}

/* ---- the case ---- */

/* A rank that is between two halves, or in a call, has four deadlines; one that is between two calls has one. */
static void draw_lateness(drift *d, uint64_t *common)
{
    static const unsigned percents[] = {60, 130, 180, 600};
    d->late.rank = common_below(common, 3) == 0 ? d->pes - 1 : common_below(common, d->pes);
    d->late.point = 4 + common_below(common, 16);
    d->late.dies = common_below(common, 2) == 0;
    d->late.by_itself = !d->late.dies && common_below(common, 2);
    d->late.in_halves = d->late.by_itself && common_below(common, 2);
    const unsigned percent =
        d->late.in_halves ? 130 + 50 * (unsigned)common_below(common, 5) : percents[common_below(common, 4)];
    d->late.for_ns = DEADLINE_NS / 100 * percent;
    d->is_sure = !d->late.dies && (percent < 100 || d->late.in_halves);
}

static void open_group(drift *d, uint64_t *common)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_world_config of_world = WEFT_WORLD_CONFIG_INIT;
    weft_sim_world_config(&of_world);
    of_world.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&of_world, &d->world));
    d->drops = common_below(common, 3) == 0;
    d->by_expert = common_below(common, 2);
    d->rows_max = d->drops ? 1 + common_below(common, d->pes) : ROWS;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    config.pairs_max = 1 + common_below(common, 2);
    config.experts = d->pes;
    config.tokens_max = TOKENS;
    config.topk_max = plan.topk = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = (size_t)d->rows_max;
    config.overflow = WEFT_EP_OVERFLOW_DROP;
    plan.layout = d->by_expert ? WEFT_EP_EXPERT_MAJOR : WEFT_EP_RANK_MAJOR;
    MUST(weft_ep_create(turned_team(d->run, d->world), &config, &d->ep));
    for (int i = 0; i < 2; i++) {
        MUST(weft_ep_route_create(d->ep, &plan, NULL, &d->routes[i]));
    }
    d->pairs = config.pairs_max;
}

void case_ep_drift(void *argument)
{
    drift d = {.run = argument};
    uint64_t common = d.run->seed;
    d.pe = turned(d.run, weft_sim_pe());
    d.pes = d.run->pes;
    draw_lateness(&d, &common);
    open_group(&d, &common);
    MUST(weft_barrier(d.world)); /* all have made the group */
    int goes_on = 1;
    for (int i = 0; i < STEPS && goes_on; i++) {
        goes_on = d.pairs == 2 && common_below(&common, 2) ? step_twice(&d, &common) : step(&d, &common);
    }
    if (!d.is_sure && !d.late.dies) {
        be_back(&d);
    }
    if (d.is_sure && masked_ranks(d.ep, d.pes) != 0) {
        weft_sim_fail("ranks 0x%llx are masked, and none was late for a deadline",
                      (unsigned long long)masked_ranks(d.ep, d.pes));
    }
    MUST(weft_world_destroy(d.world));
}
