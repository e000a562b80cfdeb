/* ep/cases.cuh: random cases: each a group, a few routes, and a sequence of calls. */
#ifndef EP_CASES_CUH
#define EP_CASES_CUH

#include "ep/job.cuh"

#define ROUTES_OF_CASE 3
#define CALLS_OF_ROUTE 5

static ep_step step_of(job *of, weft_ep_route *route, const ep_routing *routing, ep_told *told)
{
    ep_step step = {};
    step.route = route;
    step.routing = routing;
    step.told = told;
    step.rank = of->pe->pe;
    step.arrays.what = of->what;
    step.arrays.memory = &of->memory;
    step.arrays.random = &of->own;
    step.is_late = 1;
    step.halves = of->salt % 2 == 0;
    step.stream = gpu_stream_of(of->pe);
    step.slow_us = of->salt % 7 == 0 ? 300 : 0;
    return step;
}

/* What the receive buffer of each rank holds: enough, or now and then too little. */
static void draw_capacities(uint64_t *common, const ep_routing *routing, const weft_ep_plan *plan, int ranks,
                            int64_t *capacity)
{
    int is_tight = !ep_is_slots(plan->layout) && random_below(common, 4) == 0;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t rows = routing->side[rank].rows;
        int64_t spare = random_below(common, 3);
        int is_short = is_tight && random_below(common, 4) == 0;
        capacity[rank] = is_short ? (int64_t)random_below(common, (unsigned)rows + 1) : rows + spare;
    }
}

static void run_backward(const ep_step *step, const ep_payload *payload, unsigned flags, uint64_t *common)
{
    int of_dispatch = random_below(common, 2) == 0;
    int with_weights = random_below(common, 2) == 0;
    ep_payload rows = *payload;
    rows.salt += 500;
    if (of_dispatch) {
        ep_step_dispatch_bwd(step, payload, with_weights);
    } else {
        ep_step_combine_bwd(step, payload, with_weights && flags != 0 ? &rows : NULL, flags);
    }
}

/* Cases of more choices a token than a warp has lanes: up to the 64 that are drawn at most. */
static const ep_size many_choices = {30, EP_TOPK_MAX, 40, 256, (size_t)4 << 20};
#define MANY_CHOICES 33

static weft_ep_plan draw_plan(uint64_t *common, const ep_setup *setup, const ep_size *size)
{
    weft_ep_plan plan = ep_plan_draw(random_next(common), setup);
    if (size == &many_choices) {
        plan.topk = MANY_CHOICES + (int)random_below(common, (unsigned)(setup->config.topk_max - MANY_CHOICES) + 1);
    }
    ep_plan_vary(common, setup, &plan);
    return plan;
}

static void run_route(job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size, bool grows, uint64_t *common)
{
    weft_ep_plan plan = draw_plan(common, setup, size);
    weft_ep_route *route = NULL;
    ep_routing *routing = NULL;
    ep_case one = {};
    plan.sms = random_below(common, 3) == 0 ? 1 + (int)random_below(common, 20) : 0;
    if (grows && ep_is_slots(plan.layout)) {
        plan.slot_tokens = ep_slot_tokens(setup, &plan); /* 0 would be what there is now */
    }
    size_t bytes = 0;
    CHECK_OK(weft_ep_route_bytes(ep, &plan, &bytes));
    /* which memory; or the library's own, which grows */
    int held = !grows && random_below(&of->own, 3) == 0 && bytes <= ROUTE_BYTES ? 0 : -1;
    void *memory = held == 0 ? route_memory(of->pe, held, bytes) : NULL;
    const double begun_s = now_s();
    if (!CHECK_OK(weft_ep_route_create(ep, &plan, memory, &route))) {
        return;
    }
    of->made_s += now_s() - begun_s;
    ep_told *told = random_below(&of->own, 2) == 0 ? ep_told_create(route, setup, of->pe->pe, &of->own) : NULL;
    for (int call = 0; call < CALLS_OF_ROUTE; call++) {
        if (held >= 0 && random_below(&of->own, 3) == 0) {
            held = 1 - held;
            CHECK_OK(weft_ep_route_move(route, route_memory(of->pe, held, bytes), bytes)); /* its stream has ended */
        }
        of->salt++;
        int updates = routing == NULL || random_below(common, 4) == 0;
        int fresh = updates && random_below(common, 2) == 0;
        int back = !updates && random_below(common, 2) == 0;
        int adds = back || (!updates && random_below(common, 2) == 0);
        unsigned flags = random_below(common, 2) == 0 ? WEFT_EP_WEIGHTED : 0;
        int64_t capacity[EP_RANKS_MAX];
        ep_payload received;
        ep_payload payload =
            ep_payload_draw(random_next(common), setup, size, &plan, adds || (updates && !fresh), of->salt, &received);
        if (updates) {
            ep_routing_destroy(routing);
            ep_case_free(&one);
            one = ep_case_draw(random_next(common), setup, &plan);
            routing = ep_routing_create(&one, NULL);
        }
        if (fresh) {
            draw_capacities(common, routing, &plan, of->pe->pes, capacity);
            ep_routing_destroy(routing);
            routing = ep_routing_create(&one, capacity);
        }
        snprintf(of->what, sizeof of->what, "%s %u (layout %d, T %d, E %d, K %d, H %d, type %d)",
                 fresh     ? "fresh dispatch"
                 : updates ? "update"
                 : back    ? "backward"
                 : adds    ? "combine"
                           : "dispatch",
                 of->salt, plan.layout, one.tokens[of->pe->pe], setup->config.experts, plan.topk, payload.hidden,
                 payload.dtype);
        ep_step step = step_of(of, route, routing, told);
        if (back) {
            run_backward(&step, &payload, flags, common);
        } else if (adds) {
            ep_combining_step(&step, &payload, flags, common);
        } else if (updates && !fresh) {
            ep_step_update(&step);
        } else {
            ep_step_dispatch(&step, &payload, &received, fresh ? capacity : NULL);
        }
    }
    ep_routing_destroy(routing);
    ep_case_free(&one);
    const double ended_s = now_s();
    CHECK_OK(weft_ep_route_destroy(route));
    of->made_s += now_s() - ended_s;
    ep_told_destroy(told);
}

static ep_setup draw_setup(uint64_t *state, int pes, const ep_size *size)
{
    return ep_setup_draw(random_next(state), pes, size);
}

/* Some groups keep statistics, and some mask by themselves where they can, which changes no result. */
static unsigned draw_flags(uint64_t *common, int pes, const weft_ep_config *config)
{
    static const unsigned flags[4] = {WEFT_EP_STATISTICS, WEFT_EP_MASK_ON_TIMEOUT};
    weft_ep_config with = *config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    with.flags = flags[random_below(common, 4)];
    return weft_ep_bytes(&with, pes, &memory) == WEFT_OK ? with.flags : 0;
}

static void run_case(job *of, uint64_t seed, const ep_size *size)
{
    uint64_t common = seed;
    weft_ep *ep = NULL;
    ep_setup setup = draw_setup(&common, of->pe->pes, size);
    setup.config.on_device = 1;
    weft_ep_config config = setup.config;
    config.experts_of_rank = setup.uneven ? setup.table : NULL;
    config.flags = setup.config.flags = draw_flags(&common, of->pe->pes, &config);
    const bool grows = random_below(&common, 4) == 0 && (config.flags & WEFT_EP_MASK_ON_TIMEOUT) == 0;
    if (grows) {
        ep_config_forget(&common, &config);
    }
    const double begun_s = now_s();
    if (!CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep))) {
        return;
    }
    of->made_s += now_s() - begun_s;
    for (int i = 0; i < ROUTES_OF_CASE; i++) {
        run_route(of, ep, &setup, size, grows, &common);
    }
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    CHECK_OK(weft_ep_limits(ep, &limits));
    ep_cover(EP_COVER_GROWN, grows && (limits.tokens_max > config.tokens_max || limits.topk_max > config.topk_max ||
                                       limits.row_bytes_max > config.row_bytes_max));
    const double ended_s = now_s();
    CHECK_OK(weft_ep_destroy(ep));
    of->made_s += now_s() - ended_s;
}

/* Of eight cases a large one, on GPUs two, two of few but wide rows, one of so many wide ones that slices of early
 * calls are long, one of so many tokens that units have several, and one of many choices. */
static const ep_size many_tokens = {2200, 4, 24, 512, (size_t)24 << 20};
static const ep_size *size_of_case(int number, int pes)
{
    static const ep_size wide = {12, 5, 12, 2048, (size_t)4 << 20};
    static const ep_size many_wide = {260, 3, 12, 4096, (size_t)12 << 20};
    int kind = number % 8;
    return pes > FEW_PES && !ON_GPU             ? &ep_size_small
           : kind == 6                          ? &many_tokens
           : kind == 5                          ? &many_choices
           : kind == 0 || (ON_GPU && kind == 4) ? &ep_size_full
           : kind == 3                          ? &many_wide
           : kind % 3 == 1                      ? &wide
                                                : &ep_size_small;
}

/* Whether a group of that size has as many tokens or choices as it is for. */
static bool is_large_enough(const ep_size *size, const weft_ep_config *config)
{
    return (size != &many_tokens || config->tokens_max >= size->tokens_max * 3 / 4) &&
           (size != &many_choices || (config->topk_max >= MANY_CHOICES && config->tokens_max > 0));
}

static uint64_t seed_of_case(uint64_t *common, int pes, const ep_size *size)
{
    uint64_t seed;
    ep_setup setup;
    do {
        seed = random_next(common);
        uint64_t state = seed;
        setup = draw_setup(&state, pes, size);
    } while (!is_large_enough(size, &setup.config));
    return seed;
}

#endif
