/* Goal: a group on GPUs with WEFT_EP_STATISTICS adds up what its dispatches received for each expert, and whom it
 * waited for; not what calls did that moved nothing, and no waits of other calls.
 *
 * Method: two PEs as threads on the fake driver, whose device memory is this machine's; rank 1 comes to each call late,
 * so that rank 0 has waited for it at least so long. By each family of kernels, and of two domains: of one rank each,
 * and of two, where rank 0 waits inside and rank 3 for what rank 1 has for its domain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { RANKS = 4, TOKENS = 3, HIDDEN = 4, STEPS = 3, ROWS = 2 * RANKS * TOKENS };
#define LATE_NS UINT64_C(50000000)
#define LATE_DOMAINS_NS (4 * LATE_NS) /* of several domains: a call there is a dozen kernels */

typedef struct stats_rig {
    weft_world *world;
    int rank;
    int pes;
    int domains;
    uint64_t late_ns;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_rows back;
    weft_ep_received out;
    uint64_t rows[2];
    uint64_t waits[2][RANKS]; /* of dispatches, of combines */
    weft_ep_stats stats;
} stats_rig;

static const int32_t ids[TOKENS] = {0, 1, 3}; /* of ranks 0, 0 and 1 */
static _Alignas(64) float tokens[RANKS][TOKENS][HIDDEN];
static _Alignas(64) float received[RANKS][ROWS][HIDDEN];
static _Alignas(64) float sums[RANKS][TOKENS][HIDDEN];

static weft_ep_rows rows_at(void *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static int open_rig(stats_rig *rig, weft_world *world, weft_ep_layout layout)
{
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    const weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    const weft_ep_stats stats = WEFT_EP_STATS_INIT;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_memory with = WEFT_EP_MEMORY_INIT;
    weft_ep_memory without = WEFT_EP_MEMORY_INIT;
    memset(rig, 0, sizeof *rig);
    rig->world = world;
    rig->rank = weft_world_pe(world);
    rig->pes = weft_world_pes(world);
    config.experts = 2 * rig->pes;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = sizeof tokens[0][0];
    config.on_device = 1;
    CHECK_OK(weft_ep_bytes(&config, rig->pes, &without));
    config.flags = WEFT_EP_STATISTICS;
    CHECK_OK(weft_ep_bytes(&config, rig->pes, &with));
    CHECK(with.symmetric_bytes > without.symmetric_bytes);
    plan.topk = 1;
    plan.layout = layout;
    rig->choices = choices;
    rig->choices.tokens = TOKENS;
    rig->choices.ids = ids;
    rig->in = rows_at(tokens[rig->rank]);
    rig->back = rows_at(sums[rig->rank]);
    rig->out = out;
    rig->out.rows = rows_at(received[rig->rank]);
    rig->out.rows_capacity = ROWS;
    rig->stats = stats;
    rig->stats.rows_of_expert = rig->rows;
    rig->stats.dispatch_wait_ns = rig->waits[0];
    rig->stats.combine_wait_ns = rig->waits[1];
    const int is_open = ep_group_open(world, &config, &plan, &rig->ep, &rig->route) &&
                        CHECK_OK(weft_ep_domains(rig->ep, NULL, &rig->domains));
    rig->late_ns = rig->domains == 1 ? LATE_NS : LATE_DOMAINS_NS;
    return is_open;
}

static void meet_late(const stats_rig *rig)
{
    CHECK_OK(weft_barrier(rig->world));
    if (rig->rank == 1) {
        wefti_os_sleep_ns(rig->late_ns);
    }
}

static void step(stats_rig *rig)
{
    meet_late(rig);
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->out, NULL));
    meet_late(rig);
    CHECK_OK(weft_ep_combine(rig->route, &rig->out.rows, &rig->back, 0, NULL));
}

static void step_by_halves(stats_rig *rig)
{
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch_send(rig->route, &rig->in, &rig->out, NULL));
    CHECK_OK(weft_ep_dispatch_recv(rig->route, NULL));
    CHECK_OK(weft_ep_combine_send(rig->route, &rig->out.rows, &rig->back, 0, NULL));
    CHECK_OK(weft_ep_combine_recv(rig->route, NULL));
}

/* So many steps. */
static void expect(stats_rig *rig, int steps)
{
    const uint64_t all = (uint64_t)steps;
    CHECK_OK(weft_barrier(rig->world));
    CHECK_OK(weft_ep_stats_query(rig->ep, &rig->stats));
    CHECK(rig->stats.dispatches == all && rig->stats.combines == all);
    CHECK(rig->rows[0] == (rig->rank == 0 ? (uint64_t)rig->pes * all : 0));
    CHECK(rig->rows[1] == (rig->rank < 2 ? (uint64_t)rig->pes * all : 0));
    CHECK(rig->waits[0][rig->rank] == 0 && rig->waits[1][rig->rank] == 0);
}

/* Ranks that make different calls: nothing moves. */
static void step_apart(stats_rig *rig)
{
    weft_ep_host_counts counts;
    weft_ep_rows in = rig->in;
    weft_ep_received out = rig->out;
    in.hidden = out.rows.hidden = HIDDEN;
    in.dtype = out.rows.dtype = rig->rank == 0 ? WEFT_EP_F32 : WEFT_EP_BF16;
    in.hidden = out.rows.hidden = rig->rank == 0 ? HIDDEN : 2 * HIDDEN;
    CHECK_OK(weft_ep_dispatch(rig->route, &in, &out, NULL));
    CHECK_STATUS(weft_ep_route_query(rig->route, NULL, &counts), WEFT_ERR_MISMATCH);
}

static void run_layout(weft_world *world, weft_ep_layout layout)
{
    stats_rig rig;
    if (!open_rig(&rig, world, layout)) {
        return;
    }
    meet_late(&rig);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL)); /* whose waits are not told */
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.out, NULL));
    CHECK_OK(weft_ep_combine(rig.route, &rig.out.rows, &rig.back, 0, NULL));
    expect(&rig, 1);
    CHECK_OK(weft_ep_stats_clear(rig.ep));
    expect(&rig, 0);
    for (int i = 0; i < STEPS; i++) {
        step(&rig);
    }
    expect(&rig, STEPS);
    const int waits_for_late = rig.rank == 0 || rig.rank == 3;
    /* Inside one of several domains kernels may look too seldom to note all of it. */
    const uint64_t least_ns = rig.domains > 1 && rig.pes > 2 && rig.rank == 0 ? 1 : STEPS * rig.late_ns / 2;
    CHECK(!waits_for_late || (rig.waits[0][1] >= least_ns && rig.waits[1][1] >= least_ns));
    CHECK(!waits_for_late || rig.waits[0][1] < UINT64_C(30000000000));
    if (rig.domains == 1) { /* else the group ends with it */
        step_apart(&rig);
    }
    expect(&rig, STEPS);
    step_by_halves(&rig);
    expect(&rig, STEPS + 1);
    ep_group_close(rig.ep, rig.route);
    CHECK_OK(weft_barrier(world));
}

static void run_domains(weft_world *world, void *context)
{
    (void)context;
    if (ep_rig_attach(world)) {
        run_layout(world, WEFT_EP_SLOTS_EXPERT);
    }
}

static void run(weft_world *world, void *context)
{
    (void)context;
    if (ep_rig_attach(world)) {
        run_layout(world, WEFT_EP_RANK_MAJOR);
        run_layout(world, WEFT_EP_EXPERT_MAJOR);
        run_layout(world, WEFT_EP_SLOTS_EXPERT);
    }
}

static void of_few_ranks(void **state)
{
    (void)state;
    pes_run(2, run, NULL);
}

static void of_many_ranks(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    pes_run(2, run, NULL);
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

static void of_two_domains(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    pes_run(2, run_domains, NULL);
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "2", 1), 0);
    pes_run(4, run_domains, NULL);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(of_few_ranks), CHECKED_TEST(of_many_ranks),
                                       CHECKED_TEST(of_two_domains)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    (void)setenv("WEFT_FAKE_GPUS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
