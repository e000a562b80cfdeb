/* ep/cases.cuh: random cases: each a group, a few routes, and a sequence of calls. */
#ifndef EP_CASES_CUH
#define EP_CASES_CUH

#include "ep/sequence.cuh"

#define ROUTES_OF_CASE 3

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

/* ---- a rank that is away for a while ---- */

/* The others go on without a rank, which makes no calls. Returns it. */
static int leave_out_one(job *of, weft_ep *ep, int *masked, uint64_t *common)
{
    const int away = (int)random_below(common, (unsigned)of->pe->pes);
    masked[away] = 1;
    finish(of->pe); /* all have ended the last call */
    CHECK_OK(weft_barrier(of->world));
    CHECK_OK(of->pe->pe != away ? weft_ep_mask(ep, away, 0) : WEFT_OK);
    ep_cover(EP_COVER_MASKED, of->pe->pe == 0);
    return away;
}

/* It is back in step: another tells it how many calls they have made. */
static void bring_back(job *of, weft_ep *ep, int *masked, int away)
{
    const int teller = away == 0 ? 1 : 0;
    void *told = NULL;
    uint64_t calls = 0;
    CHECK_OK(weft_calloc(of->world, 1, sizeof calls, &told));
    finish(of->pe);
    if (of->pe->pe == teller && CHECK_OK(weft_ep_calls(ep, &calls))) {
        CHECK_OK(weft_uint64_p(of->world, (uint64_t *)told, calls, away));
    }
    CHECK_OK(weft_barrier(of->world));
    CHECK_OK(of->pe->pe == away ? weft_ep_rejoin(ep, *(const uint64_t *)told) : weft_ep_mask(ep, away, 1));
    CHECK_OK(weft_free(of->world, told));
    masked[away] = 0;
    ep_cover(EP_COVER_REJOINED, of->pe->pe == 0);
}

/* ---- a case ---- */

/* `masked`: ranks that are away, or NULL. */
static void run_route(job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size, bool grows, const int *masked,
                      uint64_t *common)
{
    weft_ep_plan plan = draw_plan(common, setup, size);
    sequence s;
    drawn_call call;
    plan.sms = random_below(common, 3) == 0 ? 1 + (int)random_below(common, 20) : 0;
    if (grows && ep_is_slots(plan.layout)) {
        plan.slot_tokens = ep_slot_tokens(setup, &plan); /* 0 would be what there is now */
    }
    if (!sequence_open(&s, of, ep, setup, size, &plan, grows)) {
        return;
    }
    s.masked = masked;
    const bool is_away = masked != NULL && masked[of->pe->pe] != 0;
    for (int i = 0; i < CALLS_OF_ROUTE; i++) {
        if (!is_away && s.held >= 0 && random_below(&of->own, 3) == 0) { /* its stream has ended */
            sequence_move(&s);
        }
        sequence_draw(&s, true, common, &call);
        if (!is_away && s.held >= 0 && call.updates && random_below(&of->own, 3) == 0) {
            sequence_attach_anew(&s);
        }
        sequence_weigh(&s, &call);
        if (call.is_backward) {
            run_backward(&call.step, &call.payload, call.flags, common);
        } else if (call.adds) {
            ep_combining_step(&call.step, &call.payload, call.flags, common);
        } else {
            sequence_send(&call);
        }
    }
    sequence_close(&s);
}

static ep_setup draw_setup(uint64_t *state, int pes, const ep_size *size)
{
    return ep_setup_draw(random_next(state), pes, size);
}

/* Some groups keep statistics, some mask by themselves where they can, and of some the rows of halves leave with send,
 * which changes no result. */
static unsigned draw_flags(uint64_t *common, int pes, const weft_ep_config *config)
{
    static const unsigned flags[8] = {
        WEFT_EP_STATISTICS,
        WEFT_EP_MASK_ON_TIMEOUT,
        WEFT_EP_ROWS_WITH_SEND,
        WEFT_EP_ROWS_WITH_SEND,
        WEFT_EP_ROWS_WITH_SEND | WEFT_EP_STATISTICS | WEFT_EP_NO_LOW_LATENCY,
        WEFT_EP_ROWS_WITH_SEND | WEFT_EP_MASK_ON_TIMEOUT,
    };
    weft_ep_config with = *config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    with.flags = flags[random_below(common, 8)];
    return weft_ep_bytes(&with, pes, &memory) == WEFT_OK ? with.flags : 0;
}

/* A group that drops rows by themselves, with so few that some routings do. */
static void draw_drops(uint64_t *common, weft_ep_config *config)
{
    config->overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    config->rows_max = 1 + random_below(common, (unsigned)(config->tokens_max * config->topk_max) + 16);
}

static void run_case(job *of, uint64_t seed, const ep_size *size)
{
    uint64_t common = seed;
    weft_ep *ep = NULL;
    ep_setup setup = draw_setup(&common, of->pe->pes, size);
    setup.config.on_device = 1;
    const bool drops_rows = random_below(&common, 4) == 0;
    if (drops_rows) {
        draw_drops(&common, &setup.config);
    }
    weft_ep_config config = setup.config;
    config.experts_of_rank = setup.uneven ? setup.table : NULL;
    config.flags = setup.config.flags = draw_flags(&common, of->pe->pes, &config);
    const bool grows = !drops_rows && random_below(&common, 4) == 0 && (config.flags & WEFT_EP_MASK_ON_TIMEOUT) == 0;
    if (grows) {
        config.overflow = setup.config.overflow =
            setup.config.overflow == WEFT_EP_OVERFLOW_ERROR ? WEFT_EP_OVERFLOW_ERROR : WEFT_EP_OVERFLOW_DROP;
        ep_config_forget(&common, &config);
    }
    const double begun_s = now_s();
    if (!CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep))) {
        return;
    }
    of->made_s += now_s() - begun_s;
    int masked[EP_RANKS_MAX] = {};
    const bool masks = !grows && of->pe->pes > 1 && random_below(&common, 4) == 0; /* for the second route */
    for (int i = 0; i < ROUTES_OF_CASE; i++) {
        const int away = masks && i == 1 ? leave_out_one(of, ep, masked, &common) : -1;
        run_route(of, ep, &setup, size, grows, away >= 0 ? masked : NULL, &common);
        if (away >= 0) {
            bring_back(of, ep, masked, away);
        }
    }
    ep_cover(EP_COVER_STATISTICS, of->pe->pe == 0 && (config.flags & WEFT_EP_STATISTICS) != 0);
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
static const ep_size to_all_ranks = {12, EP_TOPK_MAX, 64, 64, (size_t)1 << 20}; /* where these are many, on CPUs */
static const ep_size *size_of_case(int number, int pes)
{
    static const ep_size wide = {12, 5, 12, 2048, (size_t)4 << 20};
    static const ep_size many_wide = {260, 3, 12, 4096, (size_t)12 << 20};
    int kind = number % 8;
    return pes > FEW_PES && !ON_GPU ? (number % 2 == 1 && pes <= EP_TOPK_MAX ? &to_all_ranks : &ep_size_small)
           : kind == 6              ? &many_tokens
           : kind == 5              ? &many_choices
           : kind == 0 || (ON_GPU && kind == 4) ? &ep_size_full
           : kind == 3                          ? &many_wide
           : kind % 3 == 1                      ? &wide
                                                : &ep_size_small;
}

/* Whether a group of that size has as many tokens or choices as it is for. */
static bool is_large_enough(const ep_size *size, int pes, const weft_ep_config *config)
{
    return (size != &to_all_ranks || (config->topk_max >= pes && config->tokens_max > 0)) &&
           (size != &many_tokens || config->tokens_max >= size->tokens_max * 3 / 4) &&
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
    } while (!is_large_enough(size, pes, &setup.config));
    return seed;
}

#endif
