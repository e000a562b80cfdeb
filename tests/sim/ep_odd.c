/* sim/ep_odd.c: one rank gives another config or plan than the others: all are told, of it, and go on. */
#include "sim/cases.h"
#include "support/check.h"
#include "weft_ep.h"

#define HIDDEN 8
#define TOKENS 3

static void expect_mismatch(weft_status status, int odd, const char *what)
{
    if (status != WEFT_ERR_MISMATCH || !text_names_pe(weft_last_error(), odd)) {
        weft_sim_fail("rank %d gives another %s, and there was %s: %s", odd, what, weft_status_name(status),
                      status == WEFT_OK ? "" : weft_last_error());
    }
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

static void make_odd_group(weft_world *world, int odd, int which)
{
    static const char *const fields[] = {"experts",  "tokens_max", "topk_max", "slot_tokens_max", "row_bytes_max",
                                         "rows_max", "overflow",   "flags",    "pairs_max"};
    weft_ep_config config = config_of(weft_world_pes(world));
    weft_ep *ep;
    if (odd == weft_world_pe(world)) {
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
    expect_mismatch(weft_ep_create(weft_team_world(world), &config, &ep), odd, fields[which]);
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

static void update_oddly(const case_run *run, weft_world *world, uint64_t *common)
{
    static const char *const fields[] = {"topk", "layout", "alignment or slot_tokens", "order"};
    const int32_t ids[2] = {0, run->pes};
    const weft_ep_config config = config_of(run->pes);
    weft_ep *ep;
    MUST(weft_ep_create(weft_team_world(world), &config, &ep));
    for (int round = 0; round < 4; round++) {
        const int odd = common_below(common, run->pes);
        const weft_ep_layout layout = (weft_ep_layout)common_below(common, 4);
        const int is_packed = layout == WEFT_EP_RANK_MAJOR; /* which has neither alignment nor slots */
        const int which = is_packed ? (int[]){0, 1, 3}[common_below(common, 3)] : common_below(common, 4);
        weft_ep_route *route = route_of(ep, layout, -1);
        weft_ep_route *other = route_of(ep, layout, which);
        dawdle(3, 3000);
        expect_mismatch(update(odd == weft_world_pe(world) ? other : route, ids), odd, fields[which]);
        MUST(update(route, ids));
        MUST(weft_ep_route_destroy(other));
        MUST(weft_ep_route_destroy(route));
    }
    MUST(weft_ep_destroy(ep));
}

void case_ep_mismatch(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("odd");
    for (int i = 0; i < 2; i++) {
        const int odd = common_below(&common, run->pes);
        make_odd_group(world, odd, common_below(&common, 9));
    }
    update_oddly(run, world, &common);
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}
