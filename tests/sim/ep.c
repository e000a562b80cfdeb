/* sim/ep.c: sequences of expert-parallel calls on fresh and cached routes, by part/ep_session.h. */
#include <stdlib.h>

#include "part/ep_session.h"
#include "sim/cases.h"

/* Counts through the owners in one run, directly in the next. */
static void run_session(const case_run *run, const ep_session_plan *plan)
{
    (void)setenv("WEFT_EP_COUNTS", run->seed % 2 == 0 ? "owners" : "direct", 1);
    weft_world *world = case_world("ep");
    ep_session_run(world, run->seed, plan);
    MUST(weft_world_destroy(world));
}

void case_ep(void *argument)
{
    const ep_session_plan plan = {
        .size = {.tokens_max = 12, .topk_max = 4, .experts_max = 24, .hidden_max = 48, .bytes_max = (size_t)256 << 10},
        .groups = 1,
        .routes = 2,
        .calls = 8,
        .slow_us = 3,
        .updates = 25};
    run_session(argument, &plan);
}

void case_ep_wide(void *argument)
{
    const ep_session_plan plan = {
        .size = {.tokens_max = 4, .topk_max = 4, .experts_max = 80, .hidden_max = 24, .bytes_max = (size_t)256 << 10},
        .groups = 1,
        .routes = 1,
        .calls = 4,
        .slow_us = 3,
        .updates = 20};
    run_session(argument, &plan);
}
