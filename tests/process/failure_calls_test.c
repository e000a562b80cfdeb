/* Goal: whatever call PEs are in when one of them is killed or stopped, every other has a status within the deadline
 * and a second, which names the PE that was struck, wherever its call can know who it is; then it destroys its world,
 * and the survivors make a world of their own and use it. Method: PEs are processes that repeat one call until it
 * fails, and report through a pipe. The parent strikes one of them at a random moment. Waits and locks have no list of
 * those they wait for: there a PE that was killed is named because the system says that it is gone, and one that was
 * stopped need not be. Where there is no deadline, the same holds for a PE that was killed, and one that is stopped is
 * waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/ep_group.h"
#include "support/load.h"
#include "weft.h"
#include "weft_ep.h"

#define DEADLINE_NS (800 * WEFTI_MILLISECOND_NS) /* these two where nothing else runs */
#define LATE_NS (1500 * WEFTI_MILLISECOND_NS)
#define FOREVER_LATE_NS (20000 * WEFTI_MILLISECOND_NS) /* where nothing but the victim's end ends the waits */
#define PES 5
#define BLOCK ((size_t)16 << 10) /* of one PE */

/* What a PE works with, made before it reports that it is ready. */
typedef struct desk {
    uint64_t deadline_ns;
    weft_world *world;
    weft_team *team;
    unsigned char *in; /* [PES * BLOCK], symmetric */
    unsigned char *out;
    uint64_t *word;
    long *lock;
    uint64_t count; /* of calls */
    weft_ep *ep;
    weft_ep_route *route;
} desk;

typedef weft_status (*repeated)(desk *d);

/* Short ones and long ones by turns, since those go different ways. */
static size_t bytes_of(const desk *d)
{
    return d->count % 2 == 0 ? 64 : BLOCK;
}

/* ---- the calls ---- */

static weft_status call_sync(desk *d)
{
    return d->count % 2 == 0 ? weft_sync(d->world) : weft_barrier(d->world);
}

static weft_status call_broadcast(desk *d)
{
    return weft_broadcastmem(d->team, d->out, d->in, bytes_of(d), (int)(d->count % PES));
}

static weft_status call_fcollect(desk *d)
{
    return weft_fcollectmem(d->team, d->out, d->in, bytes_of(d));
}

static weft_status call_collect(desk *d)
{
    return weft_collectmem(d->team, d->out, d->in, bytes_of(d) - (size_t)weft_world_pe(d->world));
}

static weft_status call_alltoall(desk *d)
{
    return weft_alltoallmem(d->team, d->out, d->in, bytes_of(d));
}

static weft_status call_reduce(desk *d)
{
    return weft_double_sum_reduce(d->team, (double *)(void *)d->out, (const double *)(const void *)d->in,
                                  bytes_of(d) / 8);
}

static weft_status call_reduce_scatter(desk *d)
{
    return weft_int64_sum_reduce_scatter(d->team, (int64_t *)(void *)d->out, (const int64_t *)(const void *)d->in,
                                         bytes_of(d) / 8);
}

static weft_status call_scan(desk *d)
{
    return weft_int64_sum_inscan(d->team, (int64_t *)(void *)d->out, (const int64_t *)(const void *)d->in,
                                 bytes_of(d) / 8);
}

static weft_status call_malloc(desk *d)
{
    void *block;
    WEFT_TRY(weft_malloc(d->world, 1000 + d->count, &block));
    return weft_free(d->world, block);
}

static weft_status call_team(desk *d)
{
    weft_team *half;
    weft_team *all;
    WEFT_TRY(weft_team_split_strided(d->team, 0, 1, PES, &all));
    WEFT_TRY(weft_team_split_strided(all, PES - 1, -1, PES, &half));
    weft_status status = weft_team_sync(half);
    weft_status ended = weft_team_destroy(half);
    WEFT_TRY(status);
    WEFT_TRY(ended);
    return weft_team_destroy(all);
}

static weft_status call_wait(desk *d)
{
    int next = (weft_world_pe(d->world) + 1) % PES;
    WEFT_TRY(weft_putmem_signal(d->world, d->out, d->in, 64, d->word, d->count + 1, WEFT_SIGNAL_SET, next));
    return weft_signal_wait_until(d->world, d->word, WEFT_CMP_GE, d->count + 1, NULL);
}

static weft_status call_lock(desk *d)
{
    WEFT_TRY(weft_set_lock(d->world, d->lock));
    (void)wefti_os_now_ns();
    return weft_clear_lock(d->world, d->lock);
}

static weft_status call_create(desk *d)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *another;
    config.name = "another";
    config.pe = weft_world_pe(d->world);
    config.pes = PES;
    config.heap_max_bytes = 1 << 20;
    config.deadline_ns = d->deadline_ns;
    WEFT_TRY(weft_world_create(&config, &another));
    weft_status status = weft_barrier(another);
    weft_status ended = weft_world_destroy(another);
    return status == WEFT_OK ? ended : status;
}

#define TOKENS 8
#define HIDDEN 64
#define EXPERTS 10

static weft_ep_rows rows_at(unsigned char *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_status call_ep(desk *d)
{
    int32_t ids[TOKENS];
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = rows_at(d->in);
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (int32_t)((d->count + (uint64_t)i * 3) % EXPERTS);
    }
    choices.tokens = TOKENS;
    choices.ids = ids;
    received.rows = rows_at(d->out);
    received.rows_capacity = (size_t)PES * TOKENS;
    WEFT_TRY(weft_ep_route_update(d->route, &choices, NULL));
    WEFT_TRY(weft_ep_dispatch(d->route, &in, &received, NULL));
    return weft_ep_combine(d->route, &received.rows, &in, 0, NULL);
}

typedef struct scene {
    const char *name;
    repeated call;
    int names_stopped; /* the call knows whom it waits for */
} scene;

static const scene scenes[] = {
    {"sync and barrier", call_sync, 1},
    {"broadcast", call_broadcast, 1},
    {"fcollect", call_fcollect, 1},
    {"collect", call_collect, 1},
    {"alltoall", call_alltoall, 1},
    {"reduce", call_reduce, 1},
    {"reduce_scatter", call_reduce_scatter, 1},
    {"scan", call_scan, 1},
    {"malloc and free", call_malloc, 1},
    {"teams", call_team, 1},
    {"put_signal and wait", call_wait, 0},
    {"lock", call_lock, 0},
    {"creation and destruction", call_create, 1},
    {"update, dispatch and combine", call_ep, 1},
};

/* ---- a PE ---- */

typedef struct plan {
    const scene *scene;
    int victim;
    uint64_t deadline_ns;
} plan;

static weft_status make_group(desk *d)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan steps = WEFT_EP_PLAN_INIT;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = sizeof(float) * HIDDEN;
    steps.topk = 1;
    WEFT_TRY(weft_ep_create(d->team, &config, &d->ep));
    return weft_ep_route_create(d->ep, &steps, NULL, &d->route);
}

static weft_status make_desk(desk *d, const plan *p)
{
    const scene *s = p->scene;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = p->deadline_ns;
    config.heap_max_bytes = (size_t)64 << 20;
    WEFT_TRY(weft_world_create(&config, &d->world));
    d->team = weft_team_world(d->world);
    WEFT_TRY(weft_calloc(d->world, PES, BLOCK, (void **)&d->in));
    WEFT_TRY(weft_calloc(d->world, PES, BLOCK, (void **)&d->out));
    WEFT_TRY(weft_calloc(d->world, 1, sizeof *d->word, (void **)&d->word));
    WEFT_TRY(weft_calloc(d->world, 1, sizeof *d->lock, (void **)&d->lock));
    return s->call == call_ep ? make_group(d) : WEFT_OK;
}

/* End what is left, and meet the other survivors in another world. */
static weft_status go_on(desk *d, int victim)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    int pe = weft_world_pe(d->world);
    WEFT_TRY(weft_ep_route_destroy(d->route));
    WEFT_TRY(weft_ep_destroy(d->ep));
    WEFT_TRY(weft_world_destroy(d->world));
    config.name = "survivors";
    config.pe = pe < victim ? pe : pe - 1;
    config.pes = PES - 1;
    config.heap_max_bytes = 1 << 20;
    WEFT_TRY(weft_world_create(&config, &world));
    weft_status status = weft_barrier(world);
    weft_status ended = weft_world_destroy(world);
    return status == WEFT_OK ? ended : status;
}

static void run_pe(const crew *c, int pe, void *context)
{
    const plan *p = context;
    desk d = {.deadline_ns = p->deadline_ns};
    uint64_t start = wefti_os_now_ns();
    weft_status status = make_desk(&d, p);
    crew_tell(c, pe, 0, status, start);
    while (status == WEFT_OK) {
        start = wefti_os_now_ns();
        status = p->scene->call(&d);
        d.count++;
    }
    crew_tell(c, pe, 0, status, start);
    start = wefti_os_now_ns();
    crew_tell(c, pe, 1, go_on(&d, p->victim), start);
}

/* ---- the parent ---- */

static int await_ready(const crew *c)
{
    crew_report r;
    for (int ready = 0; ready < c->pes; ready++) {
        if (!CHECK_SAY(crew_hear(c, &r, wefti_os_now_ns() + load_patience_ns(30000 * WEFTI_MILLISECOND_NS)),
                       "no PE speaks") ||
            !CHECK_SAY(r.status == WEFT_OK, "PE %d: %s", r.pe, r.text)) {
            return 0;
        }
    }
    return 1;
}

static void check_failure(const crew_report *r, const plan *p, int is_named, const char *what)
{
    const int is_forever = p->deadline_ns == WEFT_FOREVER;
    CHECK_SAY((r->status == WEFT_ERR_TIMEOUT && !is_forever) || r->status == WEFT_ERR_PEER, "%s: PE %d got %s: %s",
              what, r->pe, weft_status_name(r->status), r->text);
    CHECK_SAY(!is_named || text_names_pe(r->text, p->victim), "%s: PE %d is not named to PE %d by \"%s\"", what,
              p->victim, r->pe, r->text);
    CHECK_SAY(r->ns <= (is_forever ? 0 : p->deadline_ns) + load_patience_ns(is_forever ? FOREVER_LATE_NS : LATE_NS),
              "%s: PE %d had its status after %.2f s (%s)", what, r->pe, (double)r->ns * 1e-9, r->text);
}

static void hear_survivors(const crew *c, const plan *p, int is_named, const char *what)
{
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(FOREVER_LATE_NS);
    int ended = 0;
    crew_report r;
    while (ended < PES - 1 && crew_hear(c, &r, until_ns)) {
        if (r.pe == p->victim) {
            continue; /* struck behind a call */
        }
        if (r.is_end) {
            ended++;
            CHECK_SAY(r.status == WEFT_OK, "%s: PE %d could not go on: %s: %s", what, r.pe, weft_status_name(r.status),
                      r.text);
        } else {
            check_failure(&r, p, is_named, what);
        }
    }
    CHECK_SAY(ended == PES - 1, "%s: %d of %d survivors came back", what, ended, PES - 1);
}

static void strike(const scene *s, int signal_number, uint64_t deadline_ns, uint64_t *random)
{
    plan p = {.scene = s, .victim = (int)random_below(random, PES), .deadline_ns = deadline_ns};
    crew c;
    char what[100];
    (void)snprintf(what, sizeof what, "%s, signal %d%s", s->name, signal_number,
                   deadline_ns == WEFT_FOREVER ? ", no deadline" : "");
    crew_start(&c, PES, random, run_pe, &p);
    if (await_ready(&c)) {
        wefti_os_sleep_ns(random_below(random, 20) * WEFTI_MILLISECOND_NS + random_below(random, 1000000));
        (void)kill(c.pids[p.victim], signal_number);
        hear_survivors(&c, &p, signal_number == SIGKILL || s->names_stopped, what);
    }
    crew_end(&c);
}

static void strike_everywhere(int signal_number)
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        strike(&scenes[i], signal_number, load_patience_ns(DEADLINE_NS), &random);
    }
}

static void test_killed(void **state)
{
    (void)state;
    strike_everywhere(SIGKILL);
}

static void test_stopped(void **state)
{
    (void)state;
    strike_everywhere(SIGSTOP);
}

/* In creation a PE that never came is waited for. */
static void test_killed_without_deadline(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (scenes[i].call != call_create) {
            strike(&scenes[i], SIGKILL, WEFT_FOREVER, &random);
        }
    }
}

/* A PE that is only slow is waited for. */
static void be_slow(int is_forever)
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        uint64_t patience_ns = load_patience_ns(DEADLINE_NS);
        plan p = {.scene = &scenes[i],
                  .victim = (int)random_below(&random, PES),
                  .deadline_ns = is_forever ? WEFT_FOREVER : patience_ns};
        crew c;
        crew_report r;
        crew_start(&c, PES, &random, run_pe, &p);
        if (await_ready(&c)) {
            (void)kill(c.pids[p.victim], SIGSTOP);
            wefti_os_sleep_ns(patience_ns / 4);
            (void)kill(c.pids[p.victim], SIGCONT);
            /* What was said while it stood still is there by now, and thousands of calls follow. */
            int is_heard = crew_hear(&c, &r, wefti_os_now_ns() + patience_ns / 16);
            CHECK_SAY(!is_heard, "%s: PE %d: %s", scenes[i].name, r.pe, r.text);
        }
        crew_end(&c);
    }
}

static void test_slow(void **state)
{
    (void)state;
    be_slow(0);
    be_slow(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_killed),
        CHECKED_TEST(test_killed_without_deadline),
        CHECKED_TEST(test_stopped),
        CHECKED_TEST(test_slow),
    };
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
