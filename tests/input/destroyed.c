/* Handles of what has been destroyed: a world keeps what was destroyed last; worlds themselves are kept by builds with
 * assertions. */
#include "input/table.h"
#include "support/pes.h"
#include "weft_ep.h"

#define UNTOUCHED ((void *)(uintptr_t)0x5a5a)

static void use_destroyed_team_and_context(scene *s)
{
    weft_team *team = NULL;
    weft_team *more = UNTOUCHED;
    weft_ctx *ctx = NULL;
    long *dest = (long *)(void *)s->dest;
    CHECK_OK(weft_team_split_strided(s->team, 0, 1, s->pes, &team));
    CHECK_OK(weft_ctx_create(team, 0, &ctx));
    CHECK_OK(weft_ctx_destroy(ctx));
    CHECK_OK(weft_team_destroy(team));
    CHECK_STATUS(weft_ctx_destroy(ctx), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_putmem(ctx, s->dest, s->in, 8, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_long_p(ctx, dest, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_quiet(ctx), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_destroy(team), WEFT_ERR_STATE);
    weft_team_config config = WEFT_TEAM_CONFIG_INIT;
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    size_t length = 11;
    CHECK(weft_team_pe(team) == -1 && weft_team_pes(team) == -1 && weft_team_owner(team) == NULL);
    CHECK(weft_team_translate(team, 0, s->team) == -1 && weft_team_translate(s->team, 0, team) == -1);
    CHECK_STATUS(weft_team_configure(team, &config), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_query(team, &config), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_tuning(team, NULL, 0, &length), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_create(team, &limits, (weft_ep **)&more), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_sync(team), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_barrier(team), WEFT_ERR_STATE);
    CHECK_STATUS(weft_long_sum_reduce(team, dest, dest, 1), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_split_strided(team, 0, 1, 1, &more), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_malloc(team, 8, (void **)&more), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_free(team, s->block), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ctx_create(team, 0, (weft_ctx **)&more), WEFT_ERR_STATE);
    CHECK(more == UNTOUCHED);
}

#ifdef NDEBUG

static void use_destroyed_world(scene *s)
{
    (void)s;
}

#else

static void use_destroyed_world(scene *s)
{
    weft_threads *threads = pes_meeting(1);
    const weft_world_config config = pes_config(threads, 0, 1);
    weft_world *world = NULL;
    void *block = NULL;
    void *more = UNTOUCHED;
    uint64_t number = 11;
    int result = 11;
    int culprit = 11;
    weft_counters counters = {.heap_allocs = 11};
    weft_world_phase phase = {.name = UNTOUCHED};
    CHECK_OK(weft_world_create(&config, &world));
    CHECK_OK(weft_malloc(world, 64, &block));
    weft_team *team = weft_team_world(world);
    long *word = block;
    CHECK_OK(weft_world_destroy(world));
    weft_threads_destroy(threads);
    CHECK_STATUS(weft_world_destroy(world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_abort(world, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_fault(world, &culprit), WEFT_ERR_ARGUMENT);
    CHECK(weft_world_pe(world) == -1 && weft_world_pes(world) == -1);
    CHECK(weft_world_phases(world, &phase, 1) == 0 && phase.name == UNTOUCHED);
    CHECK(weft_world_transport_map(world, NULL, 0) == 0);
    weft_sparse sparse;
    CHECK_STATUS(weft_world_sparse(world, &sparse), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_counters(world, &counters), WEFT_ERR_ARGUMENT);
    CHECK(weft_world_counter(world, 0, &number) == NULL);
    CHECK_STATUS(weft_malloc(world, 8, &more), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_free(world, block), WEFT_ERR_ARGUMENT);
    CHECK(weft_ptr(world, block, 0) == NULL);
    CHECK(weft_team_world(world) == NULL && weft_team_node(world) == NULL && weft_team_link(world) == NULL &&
          weft_team_same_slot(world) == NULL);
    CHECK_STATUS(weft_barrier(world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_barrier(team), WEFT_ERR_STATE);
    CHECK_STATUS(weft_long_sum_reduce(team, word, word, 1), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_malloc(team, 8, &more), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_split_strided(team, 0, 1, 1, (weft_team **)&more), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ctx_create(team, 0, (weft_ctx **)&more), WEFT_ERR_STATE);
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    CHECK_STATUS(weft_ep_create(team, &limits, (weft_ep **)&more), WEFT_ERR_STATE);
    CHECK(weft_team_pe(team) == -1 && weft_team_owner(team) == NULL);
    CHECK_STATUS(weft_register(world, s->in, 8, (weft_region **)&more), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_putmem(world, block, s->in, 8, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_getmem(world, s->out, block, 8, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_p(world, word, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_g(world, word, 0, (long *)(void *)s->out), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_atomic_add(world, word, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_iput(world, word, (long *)(void *)s->in, 1, 1, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_fence(world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_quiet(world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_wait_until(world, word, WEFT_CMP_EQ, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_test(world, word, WEFT_CMP_EQ, 0, &result), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_wait_until_all(world, word, 1, NULL, WEFT_CMP_EQ, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_test_all(world, word, 1, NULL, WEFT_CMP_EQ, 0, &result), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_set_lock(world, word), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_test_lock(world, word, &result), WEFT_ERR_ARGUMENT);
    CHECK(more == UNTOUCHED && result == 11 && culprit == 11 && number == 11 && counters.heap_allocs == 11);
}

#endif

static void use_ended_region(scene *s)
{
    weft_region *region = NULL;
    CHECK_OK(weft_register(s->world, s->in, 8, &region));
    CHECK_OK(weft_unregister(region));
    CHECK_STATUS(weft_unregister(region), WEFT_ERR_ARGUMENT);
    CHECK(weft_region_address(region) == NULL && weft_region_bytes(region) == 0);
}

static void use_destroyed_group(scene *s)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_route *more = UNTOUCHED;
    weft_ep_counts counts;
    weft_ep_host_counts host_counts;
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    void *window = NULL;
    const uint64_t *words = NULL;
    weft_ep_overflow_report overflow = WEFT_EP_OVERFLOW_REPORT_INIT;
    uint64_t calls;
    size_t bytes = 11;
    int sms = 0;
    config.experts = 4;
    config.tokens_max = 8;
    config.topk_max = 2;
    config.row_bytes_max = 64;
    plan.topk = 1;
    CHECK_OK(weft_ep_create(s->team, &config, &ep));
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route));
    CHECK_OK(weft_ep_route_destroy(route));
    CHECK_STATUS(weft_ep_route_destroy(route), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_update(route, &choices, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_choose(route, &choices), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_weigh(route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts(route, &counts), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_move(route, more, 64), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(route, more, 64, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_generation(route, &calls), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_expect(route, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_require(route, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_sms(route, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts_to(route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts_wait(route, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_query(route, NULL, &host_counts), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(route, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_send(route, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_recv(route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(route, NULL, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_with(route, NULL, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_send_with(route, NULL, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_send(route, NULL, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_recv(route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_destroy(ep));
    CHECK_STATUS(weft_ep_destroy(ep), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(ep, 0, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask_query(ep, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_domains(ep, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_limits(ep, &limits), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_window(ep, 0, &window), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask_words(ep, &words), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_overflow_query(ep, &overflow), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_calls(ep, &calls), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_rejoin(ep, 7), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_stats_query(ep, &stats), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_stats_clear(ep), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_bytes(ep, &plan, &bytes), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_sms_hint(ep, &plan, &sms), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_create(ep, &plan, NULL, &more), WEFT_ERR_ARGUMENT);
    CHECK(more == UNTOUCHED && bytes == 11);
}

/* Only the last are kept, however many there are. */
static void use_many_destroyed(scene *s)
{
    enum { MANY = 300, KEPT = 64 };
    weft_ctx *all[MANY];
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(weft_ctx_create(s->team, 0, &all[i]));
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(weft_ctx_destroy(all[i]));
    }
    for (int i = MANY - KEPT; i < MANY; i++) {
        CHECK_STATUS(weft_ctx_destroy(all[i]), WEFT_ERR_ARGUMENT);
        CHECK_STATUS(weft_ctx_putmem(all[i], s->dest, s->in, 8, 0), WEFT_ERR_ARGUMENT);
    }
}

void use_destroyed(scene *s)
{
    use_destroyed_team_and_context(s);
    use_destroyed_world(s);
    use_ended_region(s);
    use_destroyed_group(s);
    use_many_destroyed(s);
}
