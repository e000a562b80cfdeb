/* support/ep_session.c: one PE's part in a sequence of expert-parallel calls. */
#include "support/ep_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_combining.h"
#include "support/ep_coverage.h"
#include "support/ep_step.h"

#define GROUPS_MAX 4
#define ROUTES_MAX 4

typedef struct session_route {
    weft_ep_route *route;
    weft_ep_plan plan;
    void *memory; /* the caller's, or NULL */
    size_t memory_bytes;
    ep_case one;
    ep_routing *routing; /* NULL before the first update */
    ep_told *told; /* or NULL */
} session_route;

typedef struct session_group {
    weft_ep *ep;
    ep_setup setup;
    int masked[EP_RANKS_MAX];
    int grows;
    weft_ep_config known; /* when it was made, if it grows */
    session_route routes[ROUTES_MAX];
    unsigned whole[2]; /* dispatches, and combines, that were made and had room for their rows */
} session_group;

/* A call that is made between the halves of another. */
typedef struct session_nest {
    struct ep_session *session;
    int group;
    int route;
    int is_on; /* not made yet */
} session_nest;

typedef struct ep_session {
    session_nest nest; /* of the current call, if on */
    const ep_session_plan *plan;
    weft_world *world;
    weft_team *team;
    int rank;
    int ranks;
    uint64_t common; /* random numbers that are the same on all ranks */
    uint64_t own;
    ep_place place;
    unsigned salt; /* of the current call */
    char what[200];
    uint64_t *calls_told; /* symmetric; NULL without masks */
    session_group groups[GROUPS_MAX];
} ep_session;

/* ---- the sequence ---- */

static const char *layout_name(weft_ep_layout layout)
{
    static const char *const names[] = {"rank-major", "expert-major", "slots by source", "slots by expert"};
    return names[layout];
}

static void describe(ep_session *session, const char *call, int group, int route, const ep_payload *payload)
{
    const session_group *of = &session->groups[group];
    const weft_ep_plan *plan = &of->routes[route].plan;
    int bytes = snprintf(session->what, sizeof session->what,
                         "call %u, %s, group %d (E %d, rows_max %zu), route %d "
                         "(%s, K %d, align %d)",
                         session->salt, call, group, of->setup.config.experts, of->setup.config.rows_max, route,
                         layout_name(plan->layout), plan->topk, plan->alignment);
    if (payload != NULL) {
        snprintf(session->what + bytes, sizeof session->what - (size_t)bytes, ", %s, H %d",
                 ep_dtype_name(payload->dtype), payload->hidden);
    }
}

static void call_between(void *context, ep_moment moment);

static ep_step step_of(ep_session *session, const session_group *group, const session_route *route)
{
    return (ep_step){.route = route->route,
                     .routing = route->routing,
                     .rank = session->rank,
                     .is_absent = group->masked[session->rank],
                     .arrays = {.memory = &session->place.memory, .random = &session->own, .what = session->what},
                     .stream = session->place.stream,
                     .told = route->told,
                     .is_late = session->place.on_device,
                     .halves = session->nest.is_on || random_below(&session->own, 2) == 0,
                     .meanwhile = session->nest.is_on ? call_between : NULL,
                     .context = &session->nest,
                     .slow_us = session->plan->slow_us};
}

static void draw_routing(ep_session *session, session_group *group, session_route *route)
{
    ep_routing_destroy(route->routing);
    ep_case_free(&route->one);
    route->one = ep_case_draw(random_next(&session->common), &group->setup, &route->plan);
    ep_case_mask(&route->one, group->masked);
    route->routing = ep_routing_create(&route->one, NULL);
}

/* What the receive buffer of each rank holds: enough, barely enough, or too little. */
static void draw_capacities(ep_session *session, session_route *route, int64_t *capacity)
{
    int is_tight = !ep_is_slots(route->plan.layout) && random_below(&session->common, 3) == 0;
    for (int rank = 0; rank < session->ranks; rank++) {
        int64_t rows = route->routing->side[rank].rows;
        int64_t spare = random_below(&session->common, 3);
        capacity[rank] = is_tight && random_below(&session->common, 4) == 0
                             ? (int64_t)random_below(&session->common, (unsigned)rows + 1)
                             : rows + spare;
    }
}

typedef enum session_call {
    CALL_UPDATE,
    CALL_DISPATCH,
    CALL_FRESH_DISPATCH,
    CALL_COMBINE,
    CALL_DISPATCH_BWD,
    CALL_COMBINE_BWD
} session_call;

static const char *const call_names[] = {"update",  "dispatch",          "fresh dispatch",
                                         "combine", "dispatch backward", "combine backward"};

static session_call draw_call(ep_session *session, const session_route *route)
{
    static const session_call calls[] = {CALL_DISPATCH, CALL_COMBINE, CALL_DISPATCH_BWD, CALL_COMBINE_BWD};
    int routes = random_below(&session->common, 100) < session->plan->updates;
    int fresh = random_below(&session->common, 2) == 0;
    session_call call = calls[random_below(&session->common, 4)];
    if (route->routing == NULL || routes) {
        return fresh ? CALL_FRESH_DISPATCH : CALL_UPDATE;
    }
    return call;
}

static void fresh_dispatch(ep_session *session, session_group *group, session_route *route, const ep_payload *payload,
                           const ep_payload *received)
{
    int64_t capacity[EP_RANKS_MAX];
    draw_routing(session, group, route);
    draw_capacities(session, route, capacity);
    ep_routing_destroy(route->routing);
    route->routing = ep_routing_create(&route->one, capacity);
    ep_step step = step_of(session, group, route);
    ep_step_dispatch(&step, payload, received, capacity);
}

static void run_call(ep_session *session, session_group *group, session_route *route, session_call call,
                     const ep_payload *payload, const ep_payload *received)
{
    ep_step step = step_of(session, group, route);
    ep_payload rows = *payload;
    int with_weights = (int)random_below(&session->common, 2);
    unsigned flags = random_below(&session->common, 2) == 0 ? WEFT_EP_WEIGHTED : 0;
    rows.salt += 500;
    ep_step_vary_sms(&step, session->salt);
    switch (call) {
    case CALL_UPDATE:
        draw_routing(session, group, route);
        step = step_of(session, group, route);
        ep_step_update(&step);
        break;
    case CALL_FRESH_DISPATCH:
        fresh_dispatch(session, group, route, payload, received);
        break;
    case CALL_DISPATCH:
        step.weighs = session->salt % 3 == 0 && (!session->place.on_device || ep_domains(&group->setup) == 1);
        if (step.weighs) {
            ep_case_weigh(&route->one, session->salt, group->masked);
        }
        ep_step_dispatch(&step, payload, received, NULL);
        break;
    case CALL_COMBINE:
        ep_combining_step(&step, payload, flags, &session->common);
        break;
    case CALL_DISPATCH_BWD:
        ep_step_dispatch_bwd(&step, payload, with_weights);
        break;
    case CALL_COMBINE_BWD:
        ep_step_combine_bwd(&step, payload, with_weights && flags != 0 ? &rows : NULL, flags);
        break;
    }
}

/* Each rank that is not masked masks one rank; and that one masks all others, since it goes on alone. */
static void mask_one(ep_session *session, session_group *group)
{
    int lost = (int)random_below(&session->common, (unsigned)session->ranks);
    int left = 0;
    for (int rank = 0; rank < session->ranks; rank++) {
        left += !group->masked[rank];
    }
    if (left == 1 || group->masked[lost]) {
        return;
    }
    for (int rank = 0; rank < session->ranks && session->rank == lost; rank++) {
        if (rank != lost) {
            CHECK_OK(weft_ep_mask(group->ep, rank, 0));
        }
    }
    if (session->rank != lost && !group->masked[session->rank]) {
        CHECK_OK(weft_ep_mask(group->ep, lost, 0));
    }
    group->masked[lost] = 1;
    for (int r = 0; r < session->plan->routes; r++) {
        if (group->routes[r].routing != NULL) {
            group->routes[r].routing->masked[lost] = 1;
        }
    }
    ep_cover(EP_COVER_MASKED, session->rank == lost);
}

/* A rank that is masked, and has missed calls since, is back in step: one of the others tells it how many they have
 * made. */
static void bring_back(ep_session *session, session_group *group)
{
    int back = (int)random_below(&session->common, (unsigned)session->ranks); /* or the next that is masked */
    int teller = 0;
    uint64_t calls;
    for (int looks = 0; !group->masked[back]; looks++) {
        if (looks == session->ranks) {
            return;
        }
        back = (back + 1) % session->ranks;
    }
    while (group->masked[teller]) {
        teller++;
    }
    if (session->rank == teller && CHECK_OK(weft_ep_calls(group->ep, &calls))) {
        const int pe = weft_team_translate(session->team, back, weft_team_world(session->world));
        CHECK_OK(weft_uint64_p(session->world, session->calls_told, calls, pe));
    }
    CHECK_OK(weft_barrier(session->world));
    if (session->rank == back) {
        CHECK_OK(weft_ep_rejoin(group->ep, *session->calls_told));
        for (int rank = 0; rank < session->ranks; rank++) {
            CHECK_OK(rank != back && group->masked[rank] ? weft_ep_mask(group->ep, rank, 0) : WEFT_OK);
        }
    } else if (!group->masked[session->rank]) {
        CHECK_OK(weft_ep_mask(group->ep, back, 1));
    }
    group->masked[back] = 0;
    for (int r = 0; r < session->plan->routes; r++) { /* which it has no routing for */
        session_route *route = &group->routes[r];
        ep_routing_destroy(route->routing);
        ep_case_free(&route->one);
        route->routing = NULL;
    }
    CHECK_OK(weft_barrier(session->world)); /* what was told is read before the next is */
    ep_cover(EP_COVER_REJOINED, session->rank == back);
}

static int adds_of(session_call call)
{
    return call != CALL_UPDATE && call != CALL_DISPATCH && call != CALL_FRESH_DISPATCH;
}

/* Let a route in memory of the caller's lie elsewhere. */
static void move_route(ep_session *session, const session_group *group, session_route *route)
{
    size_t bytes;
    if (route->memory == NULL || random_below(&session->own, 4) != 0 ||
        !CHECK_OK(weft_ep_route_bytes(group->ep, &route->plan, &bytes))) {
        return;
    }
    bytes = bytes > route->memory_bytes ? bytes : route->memory_bytes; /* where limits grow, room for more */
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    CHECK_OK(weft_ep_route_move(route->route, memory, bytes));
    memset(route->memory, EP_POISON, route->memory_bytes);
    free(route->memory);
    route->memory = memory;
    route->memory_bytes = bytes;
    ep_cover(EP_COVER_MOVED, 1);
}

static void make_call(ep_session *session, int g, int r, session_call call)
{
    session_group *group = &session->groups[g];
    session_route *route = &group->routes[r];
    move_route(session, group, route);
    ep_payload received;
    session->salt++;
    ep_payload payload = ep_payload_draw(random_next(&session->common), &group->setup, &session->plan->size,
                                         &route->plan, adds_of(call), session->salt, &received);
    describe(session, call_names[call], g, r, &payload);
    run_call(session, group, route, call, &payload, &received);
    if (call == CALL_DISPATCH || call == CALL_FRESH_DISPATCH || call == CALL_COMBINE) {
        group->whole[call == CALL_COMBINE] += !route->routing->overflow && !group->masked[session->rank];
    }
}

/* Two pairs are outstanding if this call is made by halves, too. */
static void call_between(void *context, ep_moment moment)
{
    session_nest *nest = context;
    ep_session *session = nest->session;
    if (moment != EP_BETWEEN_HALVES || !nest->is_on) {
        return;
    }
    char what[sizeof session->what];
    memcpy(what, session->what, sizeof what);
    nest->is_on = 0;
    session_route *route = &session->groups[nest->group].routes[nest->route];
    session_call call = draw_call(session, route);
    make_call(session, nest->group, nest->route, call);
    ep_cover(EP_COVER_TWO_PAIRS, session->rank == 0);
    memcpy(session->what, what, sizeof what);
}

/* Whether limits are those of the cases, or stay: none grow while another pair is outstanding. */
static int has_grown(const session_group *group)
{
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    const weft_ep_config *most = &group->setup.config;
    int slot_tokens_max = 0; /* what is not given follows from others: as routes have it */
    for (int r = 0; r < ROUTES_MAX; r++) {
        const int slot_tokens = group->routes[r].plan.slot_tokens;
        slot_tokens_max = slot_tokens > slot_tokens_max ? slot_tokens : slot_tokens_max;
    }
    CHECK_OK(weft_ep_limits(group->ep, &limits));
    return !group->grows || (limits.tokens_max >= most->tokens_max && limits.topk_max >= most->topk_max &&
                             limits.row_bytes_max >= most->row_bytes_max && limits.slot_tokens_max >= slot_tokens_max &&
                             limits.scale_bytes_max >= most->scale_bytes_max);
}

/* Draw whether a call on another route is made between the halves of this one, which all ranks then make by halves. */
static void draw_nest(ep_session *session, int g, int r, session_call call)
{
    int has_halves = call == CALL_DISPATCH || call == CALL_FRESH_DISPATCH || call == CALL_COMBINE;
    int other = (r + 1) % session->plan->routes;
    session->nest = (session_nest){.session = session, .group = g, .route = other};
    session->nest.is_on = has_halves && other != r && session->groups[g].setup.config.pairs_max == 2 &&
                          random_below(&session->common, 2) == 0 && has_grown(&session->groups[g]);
}

static void one_call(ep_session *session)
{
    int g = (int)random_below(&session->common, (unsigned)session->plan->groups);
    int r = (int)random_below(&session->common, (unsigned)session->plan->routes);
    session_group *group = &session->groups[g];
    session_route *route = &group->routes[r];
    if (random_below(&session->common, 100) < session->plan->masks) {
        if (random_below(&session->common, 2) == 0) {
            mask_one(session, group);
        } else {
            bring_back(session, group);
        }
    }
    session_call call = draw_call(session, route);
    draw_nest(session, g, r, call);
    make_call(session, g, r, call);
    session->nest.is_on = 0;
}

/* As much as a route of any case takes, for limits that are not known. */
#define ROOM_BYTES ((size_t)8 << 20)
static int give_room(session_route *route, size_t bytes)
{
    void *memory = aligned_alloc(64, ROOM_BYTES);
    int ok = bytes <= ROOM_BYTES && CHECK_OK(weft_ep_route_move(route->route, memory, ROOM_BYTES));
    memset(route->memory, EP_POISON, route->memory_bytes);
    free(route->memory);
    route->memory = memory;
    route->memory_bytes = ROOM_BYTES;
    return ok;
}

static int create_route(ep_session *session, const session_group *group, session_route *route)
{
    size_t bytes;
    route->plan = ep_plan_draw(random_next(&session->common), &group->setup);
    ep_plan_vary(&session->common, &group->setup, &route->plan);
    if (group->grows && ep_is_slots(route->plan.layout)) {
        route->plan.slot_tokens = ep_slot_tokens(&group->setup, &route->plan); /* 0 would be what there is now */
    }
    if (!CHECK_OK(weft_ep_route_bytes(group->ep, &route->plan, &bytes))) {
        return 0;
    }
    if (!session->place.on_device && random_below(&session->own, 2) == 0) {
        route->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
        route->memory_bytes = bytes;
        memset(route->memory, EP_POISON, bytes);
    }
    if (!CHECK_OK(weft_ep_route_create(group->ep, &route->plan, route->memory, &route->route))) {
        return 0;
    }
    return route->memory == NULL || !group->grows || CHECK(give_room(route, bytes));
}

static int open_route(ep_session *session, session_group *group, session_route *route)
{
    if (!create_route(session, group, route)) {
        return 0;
    }
    if (random_below(&session->own, 2) == 0) {
        route->told = ep_told_create(route->route, &group->setup, session->rank, &session->own);
    }
    return 1;
}

/* Learn the map of domains from a group that was given none; of a group that was given one, check that it has that. */
static int learn_domains(const ep_session *session, session_group *group)
{
    int domain[EP_RANKS_MAX];
    int count;
    int is_stated = group->setup.has_map || group->setup.config.domain_ranks != 0;
    if (!CHECK_OK(weft_ep_domains(group->ep, domain, &count))) {
        return 0;
    }
    for (int rank = 0; rank < session->ranks; rank++) {
        if (!is_stated) {
            group->setup.domain[rank] = domain[rank];
        }
        CHECK(group->setup.domain[rank] == domain[rank]);
    }
    ep_cover(EP_COVER_DOMAINS, session->rank == 0 && count > 1);
    return CHECK(count == ep_domains(&group->setup));
}

/* Limits are what calls needed: no more than those of the cases, and no less than what was known. */
static void check_limits(const session_group *group)
{
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    const weft_ep_config *most = &group->setup.config;
    const weft_ep_config *least = &group->known;
    CHECK_OK(weft_ep_limits(group->ep, &limits));
    CHECK_SAY(limits.tokens_max >= least->tokens_max && limits.tokens_max <= most->tokens_max &&
                  limits.topk_max >= least->topk_max && limits.topk_max <= most->topk_max &&
                  limits.row_bytes_max >= least->row_bytes_max && limits.row_bytes_max <= most->row_bytes_max &&
                  limits.experts == most->experts,
              "limits are T %d, K %d, %zu bytes; of cases %d, %d, %zu", limits.tokens_max, limits.topk_max,
              limits.row_bytes_max, most->tokens_max, most->topk_max, most->row_bytes_max);
    ep_cover(EP_COVER_GROWN, limits.tokens_max > least->tokens_max ||
                                 limits.topk_max > (least->topk_max > 1 ? least->topk_max : 1) ||
                                 limits.row_bytes_max > (least->row_bytes_max > 16 ? least->row_bytes_max : 16));
}

static int create_group(ep_session *session, session_group *group)
{
    group->setup = ep_setup_draw(random_next(&session->common), session->ranks, &session->plan->size);
    if (!session->place.on_device && session->plan->masks == 0 && random_below(&session->common, 3) == 0) {
        group->setup.config.pairs_max = 2;
    }
    if (!session->place.on_device) {
        ep_setup_divide(&session->common, &group->setup);
    }
    group->grows = session->plan->grows && !session->place.on_device;
    if (group->grows ||
        group->setup.config.pairs_max == 2) { /* which rows that are dropped by themselves are not for */
        group->setup.config.overflow =
            group->setup.config.overflow != WEFT_EP_OVERFLOW_ERROR ? WEFT_EP_OVERFLOW_DROP : WEFT_EP_OVERFLOW_ERROR;
    }
    weft_ep_config config = group->setup.config;
    config.domain_of = group->setup.has_map ? group->setup.labels : NULL;
    config.experts_of_rank = group->setup.uneven ? group->setup.table : NULL;
    config.on_device = session->place.on_device;
    config.flags = session->plan->flags;
    if (group->grows) {
        ep_config_forget(&session->common, &config);
        group->known = config;
    }
    if (!CHECK_OK(weft_ep_create(session->team, &config, &group->ep)) || !learn_domains(session, group)) {
        return 0;
    }
    if (session->plan->prepare != NULL) {
        session->plan->prepare(group->ep);
    }
    for (int r = 0; r < session->plan->routes; r++) {
        if (!open_route(session, group, &group->routes[r])) {
            return 0;
        }
    }
    return 1;
}

/* All calls that had room for their rows, and no more than were made. Their rows are compared in
 * tests/threads/ep_stats_test.c. */
static void check_statistics(const ep_session *session, const session_group *group)
{
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    CHECK_OK(weft_ep_stats_query(group->ep, &stats));
    const uint64_t counted = stats.dispatches + stats.combines;
    CHECK_SAY(stats.dispatches >= group->whole[0] && stats.combines >= group->whole[1] && counted <= session->salt,
              "%d dispatches and %d combines, where %u and %u were made whole, and %u calls in all",
              (int)stats.dispatches, (int)stats.combines, group->whole[0], group->whole[1], session->salt);
    ep_cover(EP_COVER_STATISTICS, session->rank == 0 && counted > 0);
}

static void destroy_group(const ep_session *session, session_group *group)
{
    if ((session->plan->flags & WEFT_EP_STATISTICS) != 0) {
        check_statistics(session, group);
    }
    if (group->grows) {
        check_limits(group);
    }
    for (int r = 0; r < session->plan->routes; r++) {
        session_route *route = &group->routes[r];
        CHECK_OK(weft_ep_route_destroy(route->route));
        free(route->memory);
        ep_told_destroy(route->told);
        ep_routing_destroy(route->routing);
        ep_case_free(&route->one);
    }
    CHECK_OK(weft_ep_destroy(group->ep));
}

/* Those of an order that are in this PE's part of it, which is cut in two; what is drawn from here on is the part's. */
static int choose_part(ep_session *session, const int *order)
{
    const int cut = 1 + (int)random_below(&session->common, (unsigned)session->ranks - 1);
    int place = 0;
    while (order[place] != weft_world_pe(session->world)) {
        place++;
    }
    const int first = place < cut ? 0 : cut;
    session->ranks = place < cut ? cut : session->ranks - cut;
    session->common += (uint64_t)first;
    return first;
}

/* The world's own team, or one of all its PEs in another order, so that ranks are not PEs; or of some of them. */
static int choose_team(ep_session *session)
{
    session->team = weft_team_world(session->world);
    int order[EP_RANKS_MAX];
    int shuffled = random_below(&session->common, 2) == 0;
    int first = 0;
    random_order(&session->common, order, session->ranks);
    if (session->plan->splits && session->ranks > 1 && random_below(&session->common, 2) == 0) {
        first = choose_part(session, order);
        shuffled = 1;
    }
    if (shuffled && !CHECK_OK(weft_team_create(session->team, order + first, session->ranks, &session->team))) {
        return 0;
    }
    session->rank = weft_team_pe(session->team);
    session->own = session->common ^ ((uint64_t)(unsigned)session->rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return 1;
}

static void run(ep_session *session)
{
    ep_place_open open = session->plan->open != NULL ? session->plan->open : ep_host_open;
    ep_place_close close = session->plan->close != NULL ? session->plan->close : ep_host_close;
    if (!choose_team(session) || !open(&session->place, session->world, session->plan->size.bytes_max / 4)) {
        return;
    }
    if (session->plan->masks > 0) {
        void *memory = NULL;
        if (!CHECK_OK(weft_calloc(session->world, 1, sizeof *session->calls_told, &memory))) {
            return;
        }
        session->calls_told = memory;
    }
    for (int g = 0; g < session->plan->groups; g++) {
        if (!create_group(session, &session->groups[g])) {
            return;
        }
    }
    for (int i = 0; i < session->plan->calls; i++) {
        one_call(session);
    }
    for (int g = 0; g < session->plan->groups; g++) {
        destroy_group(session, &session->groups[g]);
    }
    CHECK_OK(weft_free(session->world, session->calls_told));
    close(&session->place, session->world);
    if (session->team != weft_team_world(session->world)) {
        CHECK_OK(weft_team_destroy(session->team));
    }
}

void ep_session_run(weft_world *world, uint64_t seed, const ep_session_plan *plan)
{
    ep_session *session = calloc(1, sizeof *session);
    session->plan = plan;
    session->world = world;
    session->ranks = weft_world_pes(world);
    session->common = seed;
    run(session);
    free(session);
}
