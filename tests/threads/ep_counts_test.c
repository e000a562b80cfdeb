/* Goal: the host is told counts while the call that agrees on them still runs, and a wait for counts that do not come
 * ends at the deadline.
 *
 * Method: two ranks as threads. Rank 1 sends its half of a dispatch and keeps the rest until another thread of rank 0,
 * whose own thread is inside the whole call, has seen the counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 3, HIDDEN = 4, STEPS = 20 };

typedef struct rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_choices choices;
    weft_ep_received received;
    weft_ep_rows rows;
    _Alignas(16) float in[TOKENS][HIDDEN];
    _Alignas(16) float out[PES * TOKENS][HIDDEN];
    uint64_t generation[2];
    int64_t count[2];
    int64_t of_source[2][PES];
    uint64_t step;
    int inside; /* rank 0's dispatch has not returned */
} rig;

static int seen; /* the step whose counts rank 0 has seen */

static int open_rig(weft_world *world, rig *r)
{
    static const int32_t ids[TOKENS] = {0, 1, 0};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    const weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = HIDDEN * sizeof(float);
    plan.topk = 1;
    arrays.generation = r->generation;
    arrays.type = WEFT_EP_INT64;
    arrays.rows = r->count;
    arrays.rows_of_source = r->of_source;
    r->choices = choices;
    r->choices.ids = ids;
    r->rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    r->rows.dtype = WEFT_EP_F32;
    r->rows.hidden = HIDDEN;
    r->received = received;
    r->received.rows = r->rows;
    r->received.rows.data = r->out;
    r->received.rows_capacity = PES * TOKENS;
    r->rows.data = r->in;
    return ep_group_open(world, &config, &plan, &r->ep, &r->route) &&
           CHECK_OK(weft_ep_route_counts_to(r->route, &arrays));
}

/* Of the first `tokens` ids two of three go to rank 0. */
static int64_t rows_of(int rank, int tokens)
{
    const int to_0 = tokens - (tokens >= 2);
    return rank == 0 ? to_0 : tokens - to_0;
}

static void *watch(void *context)
{
    rig *r = context;
    size_t slot = r->step % 2;
    CHECK_OK(weft_ep_route_counts_wait(r->route, r->step));
    CHECK(__atomic_load_n(&r->inside, __ATOMIC_ACQUIRE) != 0);
    int64_t own = rows_of(0, (int)(r->step % (TOKENS + 1)));
    CHECK(r->of_source[slot][0] == own && r->count[slot] == own + r->of_source[slot][1]);
    CHECK(r->of_source[slot][1] == rows_of(0, TOKENS));
    __atomic_store_n(&seen, (int)r->step, __ATOMIC_RELEASE);
    return NULL;
}

static void step(rig *r)
{
    pthread_t watcher;
    r->choices.tokens = r->rank == 0 ? (int)(r->step % (TOKENS + 1)) : TOKENS;
    CHECK_OK(weft_ep_route_choose(r->route, &r->choices));
    if (r->rank == 0) {
        r->inside = 1;
        CHECK(pthread_create(&watcher, NULL, watch, r) == 0);
        CHECK_OK(weft_ep_dispatch(r->route, &r->rows, &r->received, NULL));
        CHECK(pthread_join(watcher, NULL) == 0);
        r->inside = 0;
        return;
    }
    CHECK_OK(weft_ep_dispatch_send(r->route, &r->rows, &r->received, NULL));
    while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != (int)r->step) {
        sched_yield();
    }
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
}

static void run(weft_world *world, void *context)
{
    rig r;
    (void)context;
    if (!open_rig(world, &r)) {
        return;
    }
    for (r.step = 1; r.step <= STEPS; r.step++) {
        step(&r);
    }
    CHECK_OK(weft_barrier(world));
    uint64_t long_ns = pes_set_deadline(world, 20000000);
    CHECK_STATUS(weft_ep_route_counts_wait(r.route, STEPS + 1), WEFT_ERR_TIMEOUT);
    (void)pes_set_deadline(world, long_ns);
    CHECK_OK(weft_ep_route_counts_wait(r.route, STEPS)); /* nothing is dead */
    CHECK_OK(weft_barrier(world));
    ep_group_close(r.ep, r.route);
}

static void counts_are_told_before_rows_move(void **state)
{
    (void)state;
    pes_run(PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(counts_are_told_before_rows_move)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
