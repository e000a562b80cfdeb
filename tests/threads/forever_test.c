/* Goal: a wait without a deadline ends when a PE that it needs has left the world, with WEFT_ERR_PEER and that PE's
 * name, and nobody else's; until then it goes on, and the log says once whom it waits for. Method: PEs are threads; one
 * destroys its world while all others wait in a call of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft.h"
#include "weft_ep.h"

#define PES 4
#define LEAVER 2
#define WARN_NS (20 * WEFTI_MILLISECOND_NS)
#define LEAVE_NS (100 * WEFTI_MILLISECOND_NS) /* after all have come to their calls, nearly */

typedef struct desk {
    weft_world *world;
    long *lock; /* the one that leaves holds it */
    weft_ep *ep;
    weft_ep_route *route;
} desk;

typedef weft_status (*waiting_call)(desk *d);

static weft_status wait_for_lock(desk *d)
{
    return weft_set_lock(d->world, d->lock);
}

static weft_status wait_in_sync(desk *d)
{
    return weft_sync(d->world);
}

static weft_status wait_in_allocation(desk *d)
{
    void *block;
    return weft_malloc(d->world, 64, &block);
}

static weft_status wait_in_update(desk *d)
{
    static const int32_t ids[] = {0};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = 1;
    choices.ids = ids;
    return weft_ep_route_update(d->route, &choices, NULL);
}

typedef struct scene {
    waiting_call call;
    int gathered;
    int answered;
} scene;

static void prepare(desk *d, weft_world *world)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = PES;
    config.tokens_max = 1;
    config.topk_max = 1;
    config.row_bytes_max = 64;
    plan.topk = 1;
    d->world = world;
    CHECK_OK(weft_calloc(world, 1, sizeof *d->lock, (void **)&d->lock));
    (void)ep_group_open(world, &config, &plan, &d->ep, &d->route);
    if (weft_world_pe(world) == LEAVER) {
        CHECK_OK(weft_set_lock(world, d->lock));
    }
}

static void check_blame(const desk *d)
{
    int me = weft_world_pe(d->world);
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(pe == me || text_names_pe(weft_last_error(), pe) == (pe == LEAVER), "PE %d in \"%s\"", pe,
                  weft_last_error());
    }
}

static void wait_or_leave(weft_world *world, void *context)
{
    scene *s = context;
    desk d = {0};
    prepare(&d, world);
    CHECK_OK(weft_barrier(world));
    pes_gather(&s->gathered, PES);
    if (weft_world_pe(world) == LEAVER) {
        wefti_os_sleep_ns(LEAVE_NS);
    } else {
        CHECK_STATUS(s->call(&d), WEFT_ERR_PEER);
        check_blame(&d);
        pes_gather(&s->answered, PES - 1); /* none is to leave while another waits */
    }
    CHECK_OK(weft_world_destroy(world));
}

static void run(waiting_call call)
{
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    weft_world *worlds[PES];
    scene s = {.call = call};
    weft_threads *threads = pes_meeting(PES);
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(threads, pe, PES);
        configs[pe].deadline_ns = WEFT_FOREVER;
        configs[pe].warn_ns = WARN_NS;
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    pes_run_in(PES, worlds, wait_or_leave, &s);
    weft_threads_destroy(threads);
}

#define FOREVER_TEST(name, call)                                                                                       \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        run(call);                                                                                                     \
    }

FOREVER_TEST(a_lock, wait_for_lock)
FOREVER_TEST(a_sync, wait_in_sync)
FOREVER_TEST(an_allocation, wait_in_allocation)
FOREVER_TEST(expert_parallelism, wait_in_update)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(a_lock),
        CHECKED_TEST(a_sync),
        CHECKED_TEST(an_allocation),
        CHECKED_TEST(expert_parallelism),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* warnings and errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
