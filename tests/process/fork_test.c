/* Goal: a handle belongs to the process that made it. A forked child may destroy its copies of all handles, close all
 * descriptors and live on: the parent's worlds work as before, are left by nobody, leave nothing behind, and the child
 * keeps no PE present that has ended. Every other call of the child is WEFT_ERR_STATE and moves nothing. A child makes
 * worlds of its own, also with its parent. A program that is started finds no descriptor of weft's.
 * Method: children of every sort are forked from PEs that are threads of this process and from PEs that are
 * processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/ledger.h"
#include "support/pes.h"
#include "weft.h"
#include "weft_ep.h"

extern char **environ;

/* ---- children ---- */

/* Run body(context) in a forked child; whether no check failed there. */
static int run_in_child(void (*body)(void *context), void *context)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        long before = check_failures();
        body(context);
        check_exit(check_failures() != before);
    }
    return CHECK(child > 0) && CHECK(waitpid(child, &status, 0) == child) &&
           CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x", status);
}

/* ---- handles of all kinds ---- */

typedef struct handles {
    weft_threads *threads;
    weft_world *worlds[2];
    weft_team *teams[2];
    weft_ctx *ctx;
    weft_region *region;
    weft_ep *eps[2];
    weft_ep_route *route;
    weft_slab *slab;
    void *piece;
    uint64_t *blocks[2]; /* symmetric, of each PE */
    _Alignas(64) unsigned char registered[256];
} handles;

/* PE `pe`'s part, in a thread of its own. */
static void make_handles(int pe, void *context)
{
    handles *h = context;
    weft_world_config config = pes_config(h->threads, pe, 2);
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    limits.experts = 4;
    limits.tokens_max = 8;
    limits.topk_max = 2;
    limits.row_bytes_max = 64;
    CHECK_OK(weft_world_create(&config, &h->worlds[pe]));
    CHECK_OK(weft_calloc(h->worlds[pe], 8, sizeof(uint64_t), (void **)&h->blocks[pe]));
    CHECK_OK(weft_team_split_strided(weft_team_world(h->worlds[pe]), 0, 1, 2, &h->teams[pe]));
    CHECK_OK(weft_ep_create(h->teams[pe], &limits, &h->eps[pe]));
}

static void make_all(handles *h)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 1;
    memset(h, 0, sizeof *h);
    h->threads = pes_meeting(2);
    pes_each(2, make_handles, h);
    CHECK_OK(weft_ctx_create(h->teams[0], 0, &h->ctx));
    CHECK_OK(weft_register(h->worlds[0], h->registered, sizeof h->registered, &h->region));
    CHECK_OK(weft_ep_route_create(h->eps[0], &plan, NULL, &h->route));
    CHECK_OK(weft_slab_create(h->registered, sizeof h->registered, &h->slab));
    CHECK_OK(weft_slab_alloc(h->slab, 64, 0, &h->piece));
}

/* In the order in which a garbage collector might. */
static void destroy_all_copies(void *context)
{
    handles *h = context;
    CHECK_OK(weft_world_destroy(h->worlds[0]));
    CHECK_OK(weft_ep_destroy(h->eps[0]));
    CHECK_OK(weft_ep_route_destroy(h->route));
    CHECK_OK(weft_unregister(h->region));
    CHECK_OK(weft_slab_destroy(h->slab));
    CHECK_OK(weft_ctx_destroy(h->ctx));
    CHECK_OK(weft_team_destroy(h->teams[0]));
    CHECK_OK(weft_team_destroy(h->teams[1]));
    CHECK_OK(weft_team_destroy(weft_team_world(h->worlds[0])));
    CHECK_OK(weft_world_destroy(h->worlds[1]));
    CHECK_OK(weft_world_destroy(h->worlds[0]));
    weft_threads_destroy(h->threads);
}

/* What the handles are for, and their end. */
static void use_and_destroy(int pe, void *context)
{
    handles *h = context;
    weft_world *world = h->worlds[pe];
    uint64_t seen = 0;
    void *more = NULL;
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_uint64_p(world, &h->blocks[pe][1], 100 + (uint64_t)pe, 1 - pe));
    CHECK_OK(weft_team_barrier(h->teams[pe]));
    CHECK_OK(weft_uint64_g(world, &h->blocks[pe][1], pe, &seen));
    CHECK(seen == 100 + (uint64_t)(1 - pe) && h->blocks[pe][0] == 0);
    CHECK_OK(weft_malloc(world, (size_t)1 << 20, &more));
    if (pe == 0) {
        CHECK_OK(weft_ctx_uint64_p(h->ctx, &h->blocks[0][2], 7, 1));
        CHECK_OK(weft_ctx_destroy(h->ctx));
        CHECK_OK(weft_unregister(h->region));
        CHECK_OK(weft_ep_route_destroy(h->route));
        CHECK_OK(weft_slab_free(h->slab, h->piece));
        CHECK_OK(weft_slab_destroy(h->slab));
    }
    CHECK_OK(weft_ep_destroy(h->eps[pe]));
    CHECK_OK(weft_team_destroy(h->teams[pe]));
    CHECK_OK(weft_barrier(world));
    CHECK(pe == 0 || h->blocks[pe][2] == 7);
    CHECK_OK(weft_world_destroy(world));
}

static void test_a_child_destroys_its_copies(void **state)
{
    (void)state;
    ledger before = ledger_read();
    handles h;
    make_all(&h);
    run_in_child(destroy_all_copies, &h);
    pes_each(2, use_and_destroy, &h);
    weft_threads_destroy(h.threads);
    ledger_assert_same(&before);
}

/* ---- other calls ---- */

static void check_forked(weft_status status, const char *call)
{
    CHECK_SAY(status == WEFT_ERR_STATE && strstr(weft_last_error(), "forked") != NULL, "%s: %s: %s", call,
              weft_status_name(status), weft_last_error());
}

#define FORKED(call) check_forked((call), #call)

static void call_for_a_world(handles *h)
{
    weft_world *world = h->worlds[0];
    void *none = NULL;
    int culprit = -7;
    weft_counters counters;
    FORKED(weft_world_fault(world, &culprit));
    FORKED(weft_world_abort(world, 3));
    FORKED(weft_world_counters(world, &counters));
    FORKED(weft_barrier(world));
    FORKED(weft_malloc(world, 8, &none));
    FORKED(weft_free(world, h->blocks[0]));
    FORKED(weft_register(world, h->registered, 8, &h->region));
    FORKED(weft_set_lock(world, (long *)(void *)&h->blocks[0][3]));
    FORKED(weft_device_attach(world, NULL));
    CHECK(weft_world_pe(world) == -1 && weft_world_pes(world) == -1 && weft_ptr(world, h->blocks[0], 1) == NULL);
    CHECK(none == NULL);
}

static void call_for_memory(handles *h)
{
    weft_world *world = h->worlds[0];
    uint64_t value = 9;
    uint64_t *word = h->blocks[0];
    FORKED(weft_putmem(world, word, &value, sizeof value, 1));
    FORKED(weft_getmem(world, &value, word, sizeof value, 1));
    FORKED(weft_uint64_p(world, word, 9, 0));
    FORKED(weft_uint64_g(world, word, 1, &value));
    FORKED(weft_uint64_atomic_add(world, word, 9, 1));
    FORKED(weft_uint64_iput(world, word, &value, 1, 1, 1, 1));
    FORKED(weft_putmem_signal(world, word, &value, sizeof value, &word[1], 9, WEFT_SIGNAL_SET, 1));
    FORKED(weft_uint64_wait_until(world, word, WEFT_CMP_EQ, 5));
    FORKED(weft_ctx_uint64_p(h->ctx, word, 9, 1));
    CHECK(value == 9);
}

static void call_for_teams(handles *h)
{
    weft_team *team = NULL;
    weft_ctx *ctx = NULL;
    weft_ep *ep = NULL;
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_team_config config = WEFT_TEAM_CONFIG_INIT;
    weft_team *const teams[] = {h->teams[0], weft_team_world(h->worlds[0]), weft_team_node(h->worlds[0])};
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        FORKED(weft_team_barrier(teams[i]));
        FORKED(weft_uint64_sum_reduce(teams[i], h->blocks[0], h->blocks[0], 1));
        FORKED(weft_broadcastmem(teams[i], h->blocks[0], h->blocks[0], 8, 0));
        FORKED(weft_team_split_strided(teams[i], 0, 1, 2, &team));
        FORKED(weft_ctx_create(teams[i], 0, &ctx));
        FORKED(weft_team_query(teams[i], &config));
        FORKED(weft_ep_create(teams[i], &limits, &ep));
        CHECK(weft_team_pe(teams[i]) == -1 && weft_team_owner(teams[i]) == NULL);
    }
    FORKED(weft_ep_route_update(h->route, &choices, NULL));
    FORKED(weft_ep_dispatch(h->route, NULL, NULL, NULL));
    FORKED(weft_ep_mask(h->eps[0], 1, 0));
    CHECK(team == NULL && ctx == NULL && ep == NULL);
}

/* Calls that no table of tests/input has by its arguments (bad_input_test calls the others in a child). */
static void call_for_more_of_teams(handles *h)
{
    static const int members[] = {0, 1};
    weft_world *world = h->worlds[0];
    weft_team *team = NULL;
    weft_team *other = NULL;
    weft_team_config config = WEFT_TEAM_CONFIG_INIT;
    size_t length = 11;
    FORKED(weft_team_split_2d(h->teams[0], 1, &team, &other));
    FORKED(weft_team_create(h->teams[0], members, 2, &team));
    FORKED(weft_team_join(world, 0, 1, 2, h->blocks[0], &team));
    FORKED(weft_team_join_list(world, members, 2, h->blocks[0], &team));
    FORKED(weft_team_configure(h->teams[0], &config));
    FORKED(weft_team_tuning(h->teams[0], NULL, 0, &length));
    FORKED(weft_team_stream_ready(h->teams[0]));
    CHECK(team == NULL && other == NULL && length == 11);
    CHECK(weft_team_pes(h->teams[0]) == -1 && weft_team_translate(h->teams[0], 0, h->teams[0]) == -1);
    CHECK(weft_ctx_team(h->ctx) == NULL);
}

static void call_for_more_of_a_world(handles *h)
{
    weft_world *world = h->worlds[0];
    void *more = NULL;
    int taken = 11;
    uint64_t number = 11;
    weft_sparse sparse;
    char text[8] = "x";
    FORKED(weft_world_sparse(world, &sparse));
    FORKED(weft_calloc(world, 1, 8, &more));
    FORKED(weft_align(world, 64, 8, &more));
    FORKED(weft_realloc(world, h->blocks[0], 8, &more));
    FORKED(weft_team_malloc(h->teams[0], 8, &more));
    FORKED(weft_team_realloc(h->teams[0], h->blocks[0], 8, &more));
    FORKED(weft_team_free(h->teams[0], h->blocks[0]));
    FORKED(weft_test_lock(world, (long *)(void *)&h->blocks[0][3], &taken));
    FORKED(weft_clear_lock(world, (long *)(void *)&h->blocks[0][3]));
    CHECK(more == NULL && taken == 11);
    CHECK(weft_world_phases(world, NULL, 0) == 0 && weft_world_transport_map(world, text, sizeof text) == 0);
    CHECK(weft_world_counter(world, 0, &number) == NULL && number == 11 && text[0] == '\0');
    CHECK(weft_team_world(world) == NULL || weft_team_pes(weft_team_world(world)) == -1);
    CHECK(!weft_pe_accessible(world, 1) && !weft_addr_accessible(world, h->blocks[0], 1));
    CHECK(weft_region_address(h->region) == NULL && weft_region_bytes(h->region) == 0);
}

static void call_for_devices(handles *h)
{
    weft_world *world = h->worlds[0];
    weft_device_info info;
    weft_dev dev;
    weft_dev_team dev_team;
    weft_launch launch = WEFT_LAUNCH_INIT;
    void *more = NULL;
    int blocks = 11;
    FORKED(weft_device_query(world, &info));
    FORKED(weft_device_malloc(world, 8, &more));
    FORKED(weft_device_team_malloc(h->teams[0], 8, &more));
    FORKED(weft_device_free(world, h->blocks[0]));
    FORKED(weft_device_team_free(h->teams[0], h->blocks[0]));
    FORKED(weft_device_register(world, h->registered, 8));
    FORKED(weft_device_team_register(h->teams[0], h->registered, 8));
    FORKED(weft_device_unregister(world, h->registered));
    FORKED(weft_device_team_unregister(h->teams[0], h->registered));
    FORKED(weft_device_deadline(world, 1));
    FORKED(weft_device_sms_take(world, 1));
    FORKED(weft_device_sms_give(world, 1));
    FORKED(weft_device_launch_query(world, NULL, &launch, &blocks, &blocks));
    FORKED(weft_device_launch(world, NULL, &launch, NULL, NULL));
    FORKED(weft_world_dev(world, &dev));
    FORKED(weft_team_dev(h->teams[0], &dev_team));
    FORKED(weft_putmem_on_stream(world, h->blocks[0], h->blocks[0], 8, 1, NULL));
    FORKED(weft_quiet_on_stream(world, NULL));
    FORKED(weft_barrier_on_stream(world, NULL));
    FORKED(weft_fcollectmem_on_stream(h->teams[0], h->blocks[0], h->blocks[0], 8, NULL));
    CHECK(more == NULL && blocks == 11);
}

static void call_for_groups(handles *h)
{
    weft_ep *ep = h->eps[0];
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    weft_ep_route *route = NULL;
    const uint64_t *words = NULL;
    void *window = NULL;
    uint64_t calls = 11;
    size_t bytes = 11;
    int count = 11;
    plan.topk = 1;
    FORKED(weft_ep_domains(ep, NULL, &count));
    FORKED(weft_ep_limits(ep, &limits));
    FORKED(weft_ep_window(ep, 0, &window));
    FORKED(weft_ep_mask_query(ep, NULL, &count));
    FORKED(weft_ep_failure(ep));
    FORKED(weft_ep_mask_words(ep, &words));
    FORKED(weft_ep_calls(ep, &calls));
    FORKED(weft_ep_rejoin(ep, 0));
    FORKED(weft_ep_stats_query(ep, &stats));
    FORKED(weft_ep_stats_clear(ep));
    FORKED(weft_ep_sms_hint(ep, &plan, &count));
    FORKED(weft_ep_route_bytes(ep, &plan, &bytes));
    FORKED(weft_ep_route_create(ep, &plan, NULL, &route));
    CHECK(words == NULL && window == NULL && route == NULL && calls == 11 && bytes == 11 && count == 11);
}

static void call_for_a_route(handles *h)
{
    weft_ep_route *route = h->route;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_counts counts = {0};
    weft_ep_host_counts host = {0};
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    uint64_t generation = 11;
    FORKED(weft_ep_route_move(route, h->registered, sizeof h->registered));
    FORKED(weft_ep_route_attach(route, h->registered, sizeof h->registered, WEFT_EP_CONTENTS_NONE, NULL));
    FORKED(weft_ep_route_generation(route, &generation));
    FORKED(weft_ep_route_expect(route, 0));
    FORKED(weft_ep_route_require(route, 0));
    FORKED(weft_ep_route_sms(route, 0));
    FORKED(weft_ep_route_choose(route, &choices));
    FORKED(weft_ep_route_weigh(route, NULL));
    FORKED(weft_ep_route_counts(route, &counts));
    FORKED(weft_ep_route_query(route, NULL, &host));
    FORKED(weft_ep_route_counts_to(route, &arrays));
    FORKED(weft_ep_route_counts_wait(route, 0));
    FORKED(weft_ep_dispatch_send(route, NULL, NULL, NULL));
    FORKED(weft_ep_dispatch_recv(route, NULL));
    FORKED(weft_ep_combine(route, NULL, NULL, 0, NULL));
    FORKED(weft_ep_combine_with(route, NULL, NULL, NULL, NULL));
    FORKED(weft_ep_combine_send(route, NULL, NULL, 0, NULL));
    FORKED(weft_ep_combine_send_with(route, NULL, NULL, NULL, NULL));
    FORKED(weft_ep_combine_recv(route, NULL));
    FORKED(weft_ep_dispatch_bwd(route, NULL, NULL, NULL, NULL, NULL));
    FORKED(weft_ep_combine_bwd(route, NULL, NULL, NULL, NULL, 0, NULL));
    CHECK(generation == 11);
}

static void call_for_a_slab(handles *h)
{
    weft_slab_use use = WEFT_SLAB_USE_INIT;
    void *piece = NULL;
    FORKED(weft_slab_alloc(h->slab, 64, 0, &piece));
    FORKED(weft_slab_free(h->slab, h->piece));
    FORKED(weft_slab_query(h->slab, &use));
    CHECK(piece == NULL && weft_slab_contains(h->slab, h->piece));
}

static void call_for_everything(void *context)
{
    handles *h = context;
    weft_world_config config = pes_config(h->threads, 0, 2);
    weft_world *another = NULL;
    call_for_a_world(h);
    call_for_memory(h);
    call_for_teams(h);
    call_for_more_of_teams(h);
    call_for_more_of_a_world(h);
    call_for_devices(h);
    call_for_groups(h);
    call_for_a_route(h);
    call_for_a_slab(h);
    FORKED(weft_world_create(&config, &another));
    h->blocks[0][7] = 1; /* memory is memory: who knows an address may use it as any that is shared */
}

static void test_a_child_is_refused(void **state)
{
    (void)state;
    handles h;
    make_all(&h);
    run_in_child(call_for_everything, &h);
    CHECK(h.blocks[0][0] == 0 && h.blocks[1][0] == 0 && h.blocks[0][7] == 1);
    pes_each(2, use_and_destroy, &h);
    weft_threads_destroy(h.threads);
}

/* ---- worlds of a child's own ---- */

static void greet(weft_world *world, void *context)
{
    (void)context;
    CHECK_OK(weft_barrier(world));
}

static void make_worlds(void *context)
{
    (void)context;
    weft_world *alone = NULL;
    pes_run(3, greet, NULL);
    CHECK_OK(weft_world_create(NULL, &alone));
    CHECK_OK(weft_barrier(alone));
    CHECK_OK(weft_world_destroy(alone));
}

static void test_a_child_makes_worlds(void **state)
{
    (void)state;
    handles h;
    make_all(&h);
    run_in_child(make_worlds, NULL);
    pes_each(2, use_and_destroy, &h);
    weft_threads_destroy(h.threads);
}

/* One of a world of parent and child, which were one process when the handles were made. */
static void be_pe_of_two(void *context)
{
    int pe = *(int *)context;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world = NULL;
    uint64_t *word = NULL;
    config.bootstrap = WEFT_BOOTSTRAP_LOCAL;
    config.pe = pe;
    config.pes = 2;
    config.heap_max_bytes = 1 << 20;
    if (!CHECK_OK(weft_world_create(&config, &world))) {
        return;
    }
    CHECK_OK(weft_calloc(world, 1, sizeof *word, (void **)&word));
    CHECK_OK(weft_uint64_p(world, word, 40 + (uint64_t)pe, 1 - pe));
    CHECK_OK(weft_barrier(world));
    CHECK(*word == 40 + (uint64_t)(1 - pe));
    CHECK_OK(weft_world_destroy(world));
}

static void test_parent_and_child_are_pes(void **state)
{
    (void)state;
    char job[128];
    handles h;
    int pes[2] = {0, 1};
    make_all(&h);
    (void)snprintf(job, sizeof job, "fork%d:%064d", (int)getpid(), (int)getpid());
    (void)setenv("WEFT_LOCAL_JOB", job, 1);
    pid_t child = fork();
    if (child == 0) {
        be_pe_of_two(&pes[1]);
        destroy_all_copies(&h);
        check_exit(check_failures() != 0);
    }
    int status = -1;
    be_pe_of_two(&pes[0]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    (void)unsetenv("WEFT_LOCAL_JOB");
    pes_each(2, use_and_destroy, &h);
    weft_threads_destroy(h.threads);
}

/* ---- presence: PEs that are processes ---- */

static weft_status create_short(weft_world **world, uint64_t **word)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.heap_max_bytes = 1 << 20;
    WEFT_TRY(weft_world_create(&config, world));
    return weft_calloc(*world, 4, sizeof **word, (void **)word);
}

static void destroy_and_close(void *context)
{
    CHECK_OK(weft_world_destroy(context));
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        (void)close(descriptor);
    }
}

/* PE 0 says by word 1 that it may be looked at, and waits for word 2; PE 1 waits in vain for word 0 and looks whether
 * PE 0 is said to have ended or left. */
static void keep_presence(const crew *c, int pe, void *context)
{
    (void)context;
    weft_world *world = NULL;
    uint64_t *word = NULL;
    uint64_t start = wefti_os_now_ns();
    weft_status status = create_short(&world, &word);
    if (status == WEFT_OK && pe == 0) {
        run_in_child(destroy_and_close, world);
        pid_t child = child_start();
        status = weft_uint64_p(world, &word[1], 1, 1);
        for (int again = 0; status == WEFT_OK && *(volatile uint64_t *)&word[2] == 0 && again < 20; again++) {
            (void)weft_uint64_wait_until(world, &word[2], WEFT_CMP_EQ, 1); /* as long as PE 1 needs */
        }
        child_end(child);
    } else if (status == WEFT_OK) {
        CHECK_OK(weft_uint64_wait_until(world, &word[1], WEFT_CMP_EQ, 1));
        CHECK_STATUS(weft_uint64_wait_until(world, &word[0], WEFT_CMP_EQ, 1), WEFT_ERR_TIMEOUT);
        CHECK_SAY(strstr(weft_last_error(), "ended") == NULL && strstr(weft_last_error(), "left") == NULL, "%s",
                  weft_last_error());
        status = weft_uint64_p(world, &word[2], 1, 0);
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_world_destroy(world));
    crew_tell(c, pe, 1, check_failures() == 0 ? status : WEFT_ERR_STATE, start);
}

static void hear_all(crew *c, int wanted)
{
    crew_report r;
    for (int heard = 0; heard < wanted; heard++) {
        if (!CHECK_SAY(crew_hear(c, &r, wefti_os_now_ns() + 60000 * WEFTI_MILLISECOND_NS), "%d of %d PEs spoke", heard,
                       wanted)) {
            break;
        }
        CHECK_SAY(r.status == WEFT_OK, "PE %d: %s", r.pe, r.text);
    }
    crew_end(c);
}

static void test_a_parent_stays_present(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    crew c;
    (void)setenv("WEFT_DEADLINE", "3", 1);
    crew_start(&c, 2, &random, keep_presence, NULL);
    (void)unsetenv("WEFT_DEADLINE");
    hear_all(&c, 2);
}

/* PE 0 ends without a word, and leaves a child that lives on. */
static void leave_a_child(const crew *c, int pe, void *context)
{
    const int *ends = context;
    weft_world *world = NULL;
    uint64_t *word = NULL;
    uint64_t start = wefti_os_now_ns();
    weft_status status = create_short(&world, &word);
    if (pe == 0) {
        pid_t child = child_start();
        (void)!write(ends[1], &child, sizeof child);
        _exit(0);
    }
    if (status == WEFT_OK) {
        CHECK_STATUS(weft_uint64_wait_until(world, &word[0], WEFT_CMP_EQ, 1), WEFT_ERR_TIMEOUT);
        CHECK_SAY(strstr(weft_last_error(), "PE 0 has ended") != NULL, "%s", weft_last_error());
        CHECK_OK(weft_world_destroy(world));
    }
    crew_tell(c, pe, 1, check_failures() == 0 ? status : WEFT_ERR_STATE, start);
}

static void test_a_child_keeps_nobody_present(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    crew c;
    int ends[2];
    pid_t child = -1;
    assert_int_equal(pipe(ends), 0);
    (void)setenv("WEFT_DEADLINE", "3", 1);
    crew_start(&c, 2, &random, leave_a_child, ends);
    (void)unsetenv("WEFT_DEADLINE");
    CHECK(read(ends[0], &child, sizeof child) == sizeof child);
    hear_all(&c, 1);
    if (child > 0) {
        (void)kill(child, SIGKILL);
    }
    close(ends[0]);
    close(ends[1]);
}

/* ---- programs that are started ---- */

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

#define COUNT_DESCRIPTORS "--count-descriptors"

/* How many descriptors a program has that this one starts, in one of three ways. */
typedef enum start_way { BY_FORK, BY_VFORK, BY_SPAWN, START_WAYS } start_way;

static int descriptors_of_started(start_way way)
{
    static char program[] = "/proc/self/exe";
    static char count[] = COUNT_DESCRIPTORS;
    char *arguments[] = {program, count, NULL};
    pid_t child = -1;
    int status = -1;
    if (way == BY_SPAWN) {
        CHECK(posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ) == 0);
    } else {
        child = way == BY_FORK ? fork() : vfork(); /* NOLINT: this is what is tested */
        if (child == 0) {
            (void)execv(arguments[0], arguments);
            _exit(255);
        }
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_programs_get_no_descriptor(void **state)
{
    (void)state;
    const int before = descriptors_of_started(BY_FORK);
    handles h;
    make_all(&h);
    for (int way = 0; way < START_WAYS; way++) {
        CHECK(descriptors_of_started((start_way)way) == before);
    }
    pes_each(2, use_and_destroy, &h);
    weft_threads_destroy(h.threads);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_a_child_destroys_its_copies), CHECKED_TEST(test_a_child_is_refused),
        CHECKED_TEST(test_a_child_makes_worlds),        CHECKED_TEST(test_parent_and_child_are_pes),
        CHECKED_TEST(test_a_parent_stays_present),      CHECKED_TEST(test_a_child_keeps_nobody_present),
        CHECKED_TEST(test_programs_get_no_descriptor),
    };
    if (argc == 2 && strcmp(argv[1], COUNT_DESCRIPTORS) == 0) {
        return count_descriptors();
    }
    (void)setenv("WEFT_LOG", "none", 0);
    (void)unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
