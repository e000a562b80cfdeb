/* Goal: groups that cannot be made on these GPUs are refused with the reason, and keep no memory: of GPUs that do not
 * reach each other, and whose blocks have little shared memory. Method: two PEs as threads on the fake driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "support/pes.h"

/* ---- GPUs that do not reach each other ---- */

/* A group that is refused keeps no memory. */
static void create_far(weft_world *world, void *context)
{
    weft_ep_config config = ep_rig_config();
    weft_counters before;
    weft_counters after;
    weft_ep *ep = NULL;
    void *block = NULL;
    (void)context;
    if (!ep_rig_attach(world)) {
        return;
    }
    config.tokens_max = 1 << 16; /* some MiB of the heap's 64 */
    config.domain_ranks = EP_RIG_PES; /* as if they reached each other */
    for (int i = 0; i < 16; i++) {
        CHECK_OK(weft_world_counters(world, &before));
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNREACHABLE);
        CHECK_OK(weft_world_counters(world, &after));
        CHECK(after.heap_bytes_used == before.heap_bytes_used);
    }
    CHECK(strstr(weft_last_error(), "on_device 0") != NULL || weft_world_pe(world) != 0);
    CHECK_OK(weft_device_malloc(world, (size_t)48 << 20, &block));
}

/* What groups of several domains do not have. They work after that. */
static void refuse_domains(weft_world *world, void *context)
{
    static const struct {
        unsigned flag;
        const char *name;
    } refused[] = {{WEFT_EP_MASK_ON_TIMEOUT, "WEFT_EP_MASK_ON_TIMEOUT"},
                   {WEFT_EP_NO_STAGING, "WEFT_EP_NO_STAGING"},
                   {WEFT_EP_ROWS_WITH_SEND, "WEFT_EP_ROWS_WITH_SEND"}};
    weft_ep_config config = ep_rig_config();
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route = NULL;
    weft_ep *ep = NULL;
    (void)context;
    if (!ep_rig_attach(world)) {
        return;
    }
    weft_team *team = weft_team_world(world);
    config.rows_max = 8;
    CHECK_STATUS(weft_ep_create(team, &config, &ep), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "rows_max") != NULL || weft_world_pe(world) != 0);
    config.rows_max = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        config.flags = refused[i].flag;
        CHECK_STATUS(weft_ep_create(team, &config, &ep), WEFT_ERR_UNSUPPORTED);
        CHECK(strstr(weft_last_error(), refused[i].name) != NULL || weft_world_pe(world) != 0);
    }
    config.flags = 0;
    config.domain_ranks = 1;
    CHECK_OK(weft_ep_bytes(&config, EP_RIG_PES, &memory));
    CHECK(memory.symmetric_bytes > memory.staging_bytes && memory.low_latency_bytes > 0);
    config.domain_ranks = 0;
    if (!CHECK_OK(weft_ep_create(team, &config, &ep))) {
        return;
    }
    plan.topk = EP_RIG_TOPK;
    plan.order = WEFT_EP_ORDER_CHOICE;
    if (CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route))) {
        CHECK_OK(weft_ep_route_destroy(route));
    }
    CHECK_OK(weft_ep_mask(ep, weft_world_pe(world) == 0, 0)); /* a whole domain */
    CHECK_STATUS(weft_ep_mask(ep, weft_world_pe(world) == 0, 1), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "stays so") != NULL);
    CHECK_OK(weft_ep_destroy(ep));
}

static void far_gpus(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    pes_run(EP_RIG_PES, create_far, NULL);
    pes_run(EP_RIG_PES, refuse_domains, NULL);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

/* ---- GPUs whose blocks have little shared memory ---- */

static void create_narrow(weft_world *world, void *context)
{
    weft_ep_config config = ep_rig_config();
    weft_ep *ep = NULL;
    (void)context;
    if (ep_rig_attach(world)) {
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
        CHECK(strstr(weft_last_error(), "99 KiB of shared memory") != NULL || weft_world_pe(world) != 0);
    }
}

static void narrow_gpus(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_FAKE_SHARED", "101376", 1), 0);
    pes_run(EP_RIG_PES, create_narrow, NULL);
    assert_int_equal(unsetenv("WEFT_FAKE_SHARED"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(far_gpus), CHECKED_TEST(narrow_gpus)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
