/* sim/ep_odd.c: one rank gives another config or plan than the others: all are told, of it, and go on. And limits that
 * grow, as far as the heap goes: where they cannot, all are told, and go on with those that there were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "weft_ep.h"

#define HIDDEN 8
#define TOKENS 3

static int has_word(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    while (at != NULL && at[strlen(word)] >= '0' && at[strlen(word)] <= '9') {
        at = strstr(at + 1, word);
    }
    return at != NULL;
}

/* `pe`: of the odd rank, where the others name that, too; -1: they do not. */
static void expect_mismatch(weft_status status, int odd, int pe, const char *what)
{
    char rank[16];
    char with_pe[32];
    (void)snprintf(rank, sizeof rank, "rank %d", odd);
    (void)snprintf(with_pe, sizeof with_pe, "rank %d (PE %d)", odd, pe);
    if (status != WEFT_ERR_MISMATCH || !has_word(weft_last_error(), rank) ||
        (pe >= 0 && pe != weft_sim_pe() && strstr(weft_last_error(), with_pe) == NULL)) {
        weft_sim_fail("rank %d (PE %d) gives another %s, and there was %s: %s", odd, pe, what, weft_status_name(status),
                      status == WEFT_OK ? "" : weft_last_error());
    }
}

/* The team of a group: all PEs in one order or the other, or those of even numbers beside those of odd ones, which then
 * draw for themselves. */
static weft_team *draw_team(const case_run *run, weft_world *world, uint64_t *common)
{
    weft_team *own = turned_team(run, world);
    if (run->pes < 4 || common_below(common, 2) == 0) {
        return own;
    }
    for (int first = 0; first < 2; first++) {
        weft_team *team;
        MUST(weft_team_split_strided(weft_team_world(world), first, 2, (run->pes + 1 - first) / 2, &team));
        own = team != NULL ? team : own;
    }
    *common += (uint64_t)(weft_world_pe(world) % 2);
    return own;
}

static weft_ep_config config_of(int ranks)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 2 * ranks;
    config.tokens_max = TOKENS + 2;
    config.topk_max = 2;
    config.slot_tokens_max = TOKENS;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = (size_t)(2 * (TOKENS + 2) * ranks);
    return config;
}

static void make_odd_group(weft_team *team, int odd, int which)
{
    static const char *const fields[] = {"experts",  "tokens_max", "topk_max", "slot_tokens_max", "row_bytes_max",
                                         "rows_max", "overflow",   "flags",    "pairs_max"};
    weft_ep_config config = config_of(weft_team_pes(team));
    weft_ep *ep;
    if (odd == weft_team_pe(team)) {
        config.experts += which == 0;
        config.tokens_max += which == 1;
        config.topk_max -= which == 2;
        config.slot_tokens_max -= which == 3;
        config.row_bytes_max += which == 4 ? 16 : 0;
        config.rows_max += which == 5;
        config.overflow = which == 6 ? WEFT_EP_OVERFLOW_DROP : WEFT_EP_OVERFLOW_ERROR;
        config.flags |= which == 7 ? WEFT_EP_STATISTICS : 0;
        config.pairs_max = which == 8 ? 2 : 0;
    }
    expect_mismatch(weft_ep_create(team, &config, &ep), odd, -1, fields[which]);
}

/* A route of a plan that is the odd one's in field `which`; -1: of all. */
static weft_ep_route *route_of(weft_ep *ep, weft_ep_layout layout, int which)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route;
    plan.topk = which == 0 ? 1 : 2;
    plan.layout = which == 1 ? (weft_ep_layout)((layout + 1) % 4) : layout;
    plan.alignment = plan.layout == WEFT_EP_EXPERT_MAJOR ? (which == 2 ? 4 : 2) : 0;
    plan.slot_tokens = plan.layout >= WEFT_EP_SLOTS_SOURCE ? TOKENS - (which == 2) : 0;
    plan.order = which == 3 ? WEFT_EP_ORDER_CHOICE : plan.order;
    MUST(weft_ep_route_create(ep, &plan, NULL, &route));
    return route;
}

static weft_status update(weft_ep_route *route, const int32_t *ids)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = 1;
    choices.ids = ids;
    return weft_ep_route_update(route, &choices, NULL);
}

#define ROWS_MAX (2 * (TOKENS + 2) * 12) /* of 12 ranks */

/* One rank brings weights for a dispatch, and the others none. Between domains headers go other ways with weights than
 * without. */
static void weigh_oddly(weft_ep_route *route, int is_odd, int odd, int odd_pe)
{
    _Alignas(16) static const float sent[HIDDEN];
    _Alignas(16) float received[ROWS_MAX * HIDDEN];
    static const float weights[2] = {0.5f, 2};
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    in.data = (void *)(uintptr_t)sent;
    in.dtype = WEFT_EP_F32;
    in.hidden = HIDDEN;
    to.rows = in;
    to.rows.data = received;
    to.rows_capacity = ROWS_MAX;
    if (is_odd) {
        MUST(weft_ep_route_weigh(route, weights));
    }
    expect_mismatch(weft_ep_dispatch(route, &in, &to, NULL), odd, odd_pe, "set of weights");
}

static void update_oddly(weft_team *team, uint64_t *common)
{
    static const char *const fields[] = {"topk", "layout", "alignment or slot_tokens", "order"};
    const int ranks = weft_team_pes(team);
    const int32_t ids[2] = {0, ranks};
    const weft_ep_config config = config_of(ranks);
    weft_ep *ep;
    int domains;
    MUST(weft_ep_create(team, &config, &ep));
    MUST(weft_ep_domains(ep, NULL, &domains));
    for (int round = 0; round < 4; round++) {
        const int odd = common_below(common, ranks);
        const int odd_pe = weft_team_translate(team, odd, weft_team_world(weft_team_owner(team)));
        const weft_ep_layout layout = (weft_ep_layout)common_below(common, 4);
        const int is_packed = layout == WEFT_EP_RANK_MAJOR; /* which has neither alignment nor slots */
        const int which = is_packed ? (int[]){0, 1, 3}[common_below(common, 3)] : common_below(common, 4);
        weft_ep_route *route = route_of(ep, layout, -1);
        weft_ep_route *other = route_of(ep, layout, which);
        dawdle(3, 3000);
        expect_mismatch(update(odd == weft_team_pe(team) ? other : route, ids), odd, odd_pe, fields[which]);
        MUST(update(route, ids));
        if (common_below(common, 2) == 0) {
            weigh_oddly(route, odd == weft_team_pe(team), odd, odd_pe);
        }
        MUST(weft_ep_route_destroy(other));
        MUST(weft_ep_route_destroy(route));
    }
    MUST(weft_ep_destroy(ep));
}

/* ---- limits that grow ---- */

#define GROWN_TOKENS 48
#define GROWN_HIDDEN 64
#define GROWN_ROUNDS 6

/* A group whose limits grow, and what each rank sends to all. */
typedef struct growing {
    case_run *run;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t *ids; /* [GROWN_TOKENS][ranks] */
    float *in;
    float *received;
    float *out;
} growing;

static weft_ep_config limits_of(const growing *g)
{
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    MUST(weft_ep_limits(g->ep, &limits));
    return limits;
}

/* All ranks have the same status: WEFT_OK, or WEFT_ERR_RANGE, and then the limits that they had. */
static int has_grown(const growing *g, int number, weft_status status, const weft_ep_config *before)
{
    uint64_t *places = &g->run->board[number * 32];
    const weft_ep_config after = limits_of(g);
    if (status != WEFT_ERR_RANGE) {
        must(status, "a call of a group whose limits grow");
    } else if (after.tokens_max != before->tokens_max || after.row_bytes_max != before->row_bytes_max) {
        weft_sim_fail("a group that cannot grow has limits of %d tokens and %zu bytes, and had %d and %zu",
                      after.tokens_max, after.row_bytes_max, before->tokens_max, before->row_bytes_max);
    }
    places[weft_sim_pe()] = (uint64_t)(1 - (int)status);
    for (int pe = 0; pe < g->run->pes; pe++) {
        if (places[pe] != 0 && places[pe] != places[weft_sim_pe()]) {
            weft_sim_fail("call %d: rank %d is told %s, and rank %d another status", number, weft_sim_pe(),
                          weft_status_name(status), pe);
        }
    }
    return status == WEFT_OK;
}

static weft_ep_rows rows_of(float *data, int hidden)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = hidden;
    return rows;
}

/* Each token goes to all ranks, and comes back from all. */
static void grow_once(const growing *g, int round, int tokens, int hidden)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    const weft_ep_rows in = rows_of(g->in, hidden);
    const weft_ep_rows out = rows_of(g->out, hidden);
    weft_ep_config before = limits_of(g);
    received.rows = rows_of(g->received, hidden);
    received.rows_capacity = g->run->pes * GROWN_TOKENS;
    choices.tokens = tokens;
    choices.ids = g->ids;
    if (!has_grown(g, 2 * round, weft_ep_route_update(g->route, &choices, NULL), &before)) {
        return;
    }
    before = limits_of(g);
    for (int i = 0; i < tokens * hidden; i++) {
        g->in[i] = (float)(i + round + 1);
    }
    if (!has_grown(g, 2 * round + 1, weft_ep_dispatch(g->route, &in, &received, NULL), &before)) {
        return;
    }
    MUST(weft_ep_combine(g->route, &received.rows, &out, 0, NULL));
    for (int i = 0; i < tokens * hidden; i++) {
        if (g->out[i] != g->in[i] * (float)g->run->pes) {
            weft_sim_fail("round %d: element %d, %g, came back as %g", round, i, (double)g->in[i], (double)g->out[i]);
        }
    }
}

static void *room(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        weft_sim_fail("no memory for a case");
    }
    return memory;
}

/* Mostly one rank has more tokens than the others. */
static void grow_some(case_run *run, uint64_t *common)
{
    static const int widths[] = {4, 16, GROWN_HIDDEN};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    growing g = {.run = run};
    weft_world *world;
    const size_t row_bytes = GROWN_HIDDEN * sizeof(float);
    weft_sim_world_config(&config);
    config.heap_max_bytes = ((size_t)96 << 10) + (size_t)run->pes * (size_t)(8 + 16 * common_below(common, 3)) * 1024;
    MUST(weft_world_create(&config, &world));
    limits.experts = plan.topk = run->pes;
    limits.bytes_max = (size_t)1 << 26;
    MUST(weft_ep_create(weft_team_world(world), &limits, &g.ep));
    MUST(weft_ep_route_create(g.ep, &plan, NULL, &g.route));
    g.ids = room(GROWN_TOKENS * (size_t)run->pes * sizeof *g.ids);
    g.in = room(GROWN_TOKENS * row_bytes);
    g.out = room(GROWN_TOKENS * row_bytes);
    g.received = room((size_t)run->pes * GROWN_TOKENS * row_bytes);
    for (int i = 0; i < GROWN_TOKENS * run->pes; i++) {
        g.ids[i] = i % run->pes;
    }
    for (int round = 0; round < GROWN_ROUNDS; round++) {
        const int most = 1 + common_below(common, GROWN_TOKENS);
        const int who = common_below(common, run->pes);
        const int few = common_below(common, most);
        dawdle(3, 3000);
        grow_once(&g, round, weft_sim_pe() == who ? most : few, widths[common_below(common, 3)]);
    }
    MUST(weft_ep_route_destroy(g.route));
    MUST(weft_ep_destroy(g.ep));
    free(g.ids);
    free(g.in);
    free(g.out);
    free(g.received);
    MUST(weft_world_destroy(world));
}

void case_ep_mismatch(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    if (common_below(&common, 2) == 0) {
        grow_some(run, &common);
        return;
    }
    weft_world *world = case_world("odd");
    weft_team *team = draw_team(run, world, &common);
    for (int i = 0; i < 2; i++) {
        const int odd = common_below(&common, weft_team_pes(team));
        make_odd_group(team, odd, common_below(&common, 9));
    }
    update_oddly(team, &common);
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}
