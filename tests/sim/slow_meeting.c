/* sim/slow_meeting.c: PEs that have all come to creation take their time there before they say hello, until about the
 * deadline or long after it. An exchange has the deadline, and WEFTI_BOOTSTRAP_LAST_NS at least: PEs that are as close
 * to each other as that have a world, however late; else those that are behind are named, and nobody else. */
#include <stdio.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "sim/meeting.h"
#include "testing/sim/machine.h"

#define MS_NS UINT64_C(1000000)
#define CLOSE_NS 100000
#define EDGE_NS (25 * MS_NS) /* of what is not looked at: whether it was just in time */
#define LEVELS_NS (250 * MS_NS) /* by trees that is told in turn, level by level */

typedef struct slow_plan {
    uint64_t deadline_ns;
    uint64_t takes_ns[64]; /* by PE: from when all have come until it says hello */
    uint64_t first_ns;
    uint64_t last_ns;
    int is_close; /* the last comes at the deadline of the first, as nearly as may be */
} slow_plan;

static uint64_t limit_ns(const slow_plan *plan);

static uint64_t last_but(const slow_plan *plan, int pes, int but)
{
    uint64_t last_ns = 0;
    for (int pe = 0; pe < pes; pe++) {
        last_ns = pe != but && plan->takes_ns[pe] > last_ns ? plan->takes_ns[pe] : last_ns;
    }
    return last_ns;
}

/* All behind the deadline, or some before it; close to each other, or one or more too far behind. */
static void draw(slow_plan *plan, int pes, uint64_t *common)
{
    plan->deadline_ns = (200 + 200 * (uint64_t)common_below(common, 3)) * MS_NS;
    const uint64_t begin_ns = plan->deadline_ns * (uint64_t)common_below(common, 6) / 4;
    const uint64_t spread_ns = (1 + 60 * (uint64_t)common_below(common, 10)) * MS_NS;
    const int has_stragglers = common_below(common, 2); /* else they come evenly */
    plan->first_ns = UINT64_MAX;
    plan->last_ns = 0;
    for (int pe = 0; pe < pes; pe++) {
        const uint64_t part = (uint64_t)common_below(common, 101);
        const uint64_t share = has_stragglers ? (part > 75 ? 100 : part / 8) : part;
        plan->takes_ns[pe] = begin_ns + spread_ns * share / 100;
        plan->first_ns = plan->takes_ns[pe] < plan->first_ns ? plan->takes_ns[pe] : plan->first_ns;
        plan->last_ns = plan->takes_ns[pe] > plan->last_ns ? plan->takes_ns[pe] : plan->last_ns;
    }
    plan->is_close = common_below(common, 3) == 0;
    const int last = common_below(common, pes);
    if (plan->is_close && plan->takes_ns[last] > plan->first_ns && last_but(plan, pes, last) < limit_ns(plan)) {
        plan->takes_ns[last] = limit_ns(plan) - CLOSE_NS / 2 + (uint64_t)common_below(common, CLOSE_NS);
        plan->last_ns = plan->takes_ns[last];
    }
}

/* Until when the first waits for the others. */
static uint64_t limit_ns(const slow_plan *plan)
{
    const uint64_t least_ns = plan->first_ns + WEFTI_BOOTSTRAP_LAST_NS;
    return plan->deadline_ns > least_ns ? plan->deadline_ns : least_ns;
}

/* Who is named is behind; with threads, that meet in one place, all that are behind are named. */
static void check_named(const slow_plan *plan, int pes, int by_threads)
{
    const char *error = weft_last_error();
    const char *at = strstr(error, "PE");
    const char *end;
    const uint64_t named = at == NULL ? 0 : named_pes(at + (at[2] == 's' ? 3 : 2), &end);
    for (int pe = 0; pe < pes; pe++) {
        const uint64_t takes_ns = plan->takes_ns[pe];
        const int is_named = (int)(named >> pe & 1);
        if ((is_named && takes_ns + EDGE_NS < limit_ns(plan)) ||
            (by_threads && !is_named && takes_ns > limit_ns(plan) + EDGE_NS)) {
            weft_sim_fail("PE %d came after %llu ms, the others were waited for until %llu ms, and: %s", pe,
                          (unsigned long long)(takes_ns / MS_NS), (unsigned long long)(limit_ns(plan) / MS_NS), error);
        }
    }
}

/* Where threads meet in one place, all have a world or none. */
static void check_alike(case_run *run, weft_status status)
{
    run->board[weft_sim_pe()] = 1 + (uint64_t)(status == WEFT_OK);
    for (int pe = 0; pe < run->pes; pe++) {
        if (run->board[pe] != 0 && run->board[pe] != run->board[weft_sim_pe()]) {
            weft_sim_fail("PEs %d and %d have a world and none: %s here: %s", pe, weft_sim_pe(),
                          weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
        }
    }
}

/* Processes of a node hand over memory, for which they have a part of the deadline alone. */
static int has_time(const slow_plan *plan, int pes)
{
    int pe = 1;
    while (pe < pes && weft_sim_same_process(0, pe)) {
        pe++;
    }
    return pe == pes || plan->last_ns + EDGE_NS < plan->deadline_ns / 16 * 15;
}

void case_meet_slowly(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    slow_plan plan = {0};
    weft_uid uid;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    const int by_threads = common_below(&common, 2);
    draw(&plan, run->pes, &common);
    if (by_threads) {
        weft_sim_world_config(&config);
    } else {
        meeting_config(run, MEETING_LOCAL, MEETING_RIGHT, &uid, &config);
    }
    config.deadline_ns = plan.deadline_ns;
    wefti_sim_set_memory_ns(plan.takes_ns[weft_sim_pe()]);
    const weft_status status = meeting_create(&config, MEETING_RIGHT, &world);
    wefti_sim_set_memory_ns(0);
    if (plan.last_ns + EDGE_NS < limit_ns(&plan)) {
        must(status == WEFT_ERR_TIMEOUT && !has_time(&plan, run->pes) ? WEFT_OK : status, "weft_world_create");
    } else if (plan.last_ns > limit_ns(&plan) + EDGE_NS + (by_threads ? 0 : LEVELS_NS)) {
        if (status != WEFT_ERR_TIMEOUT) {
            weft_sim_fail("a PE came after %llu ms, and there was %s: %s", (unsigned long long)(plan.last_ns / MS_NS),
                          weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
        }
        check_named(&plan, run->pes, by_threads);
    } else if (status == WEFT_ERR_TIMEOUT && by_threads && strstr(weft_last_error(), "had not come") != NULL) {
        check_named(&plan, run->pes, 0);
    }
    if (by_threads) {
        check_alike(run, status);
    }
    if (status == WEFT_OK) {
        MUST(weft_world_destroy(world));
    }
}
