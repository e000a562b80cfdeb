/* Goal: of PEs of other nodes it is noticed soon that they have ended or that their host is silent, those and no others
 * are named, a PE that is stopped is waited for and called otherwise, and an end of the world waits for nobody who is
 * gone. Method: PEs are processes; WEFT_NODE_ID lets this host stand in for several, or they are in network namespaces
 * with a pair of virtual interfaces, one of which is switched off. The test kills or stops some while the others are in
 * a barrier, whose deadline is long, or in a step of expert parallelism, after which they mask who is gone and make
 * others. The first argument, if any, is the transport, else it is libfabric's; the second says which tests. Skips in
 * builds without that, the interfaces where they cannot be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/forked.h"
#include "support/load.h"
#include "weft.h"
#include "weft_ep.h"

#define PES_MAX FORKED_PES_MAX
#define SILENCE "2"
#define LONG "100" /* a deadline that no test of who is gone meets */
#define LATE_NS (WEFTI_SECOND_NS / 2) /* who comes so late finds that others have left */
#define SOON 3.0 /* alone it is some tenths of a second */

typedef struct report {
    weft_status status; /* of the barrier */
    uint64_t ns;
    uint64_t destroy_ns;
    int failures; /* of checks */
    char text[512];
} report;

/* Memory that all PEs of a scene have. */
typedef struct ground {
    _Atomic unsigned ready; /* PEs that are about to wait */
    _Atomic unsigned acted; /* the test has done what the scene is about */
    _Atomic unsigned done;
    report reports[PES_MAX];
    forked_exchange exchange;
    weft_uid uid; /* where PEs meet without the exchange */
} ground;

typedef struct scene scene;
struct scene {
    const char *nodes; /* the node of each PE, a letter */
    unsigned victims; /* a bit a PE */
    int signal; /* that they get */
    const char *deadline; /* in seconds */
    int leaves; /* the victims leave in order, and get no signal */
    void (*enter)(const struct scene *s, int pe); /* NULL, or into a place of its own */
    void (*act)(const pid_t *pids); /* NULL, or what happens in place of a signal */
    int locks; /* the first victim has a lock for which the others wait, not in a barrier */
    int routes; /* the others are in a step of expert parallelism; where something else happens, in many */
    int hastes; /* the others destroy their world as soon as they know, and half of them come late */
};

static ground *common;

/* ---- a PE ---- */

static weft_status create(const scene *s, forked_member *own, weft_world **world)
{
    const char node[] = {s->nodes[own->pe], '\0'};
    const weft_callback_ops ops = {.size = sizeof ops, .context = own, .allgather = forked_allgather};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    if (s->enter == NULL) {
        (void)setenv("WEFT_NODE_ID", node, 1);
    }
    (void)setenv("WEFT_DEADLINE", s->deadline, 1);
    (void)setenv("WEFT_SILENCE", SILENCE, 1);
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    config.pe = own->pe;
    config.pes = own->pes;
    config.heap_max_bytes = (size_t)4 << 20;
    return weft_world_create(&config, world);
}

static int is_victim(const scene *s, int pe)
{
    return (s->victims >> pe & 1) != 0;
}

/* The PEs of other hosts than this one's, as bits. */
static unsigned other_hosts(const scene *s, int pe)
{
    unsigned others = 0;
    for (int other = 0; s->nodes[other] != '\0'; other++) {
        others |= (s->nodes[other] != s->nodes[pe] ? 1u : 0u) << other;
    }
    return others;
}

/* What the others do afterwards: those that are there are reached, those that are gone are an error at once. */
static void go_on(const scene *s, weft_world *world, uint64_t *word)
{
    const int pes = weft_world_pes(world);
    for (int pe = 0; pe < pes; pe++) {
        uint64_t value = 0;
        const uint64_t start_ns = wefti_os_now_ns();
        if (!is_victim(s, pe)) {
            CHECK_OK(weft_uint64_atomic_fetch_inc(world, word, pe, &value));
        } else if (s->signal == SIGKILL && s->nodes[pe] != s->nodes[weft_world_pe(world)]) {
            CHECK_STATUS(weft_uint64_atomic_fetch_inc(world, word, pe, &value), WEFT_ERR_PEER);
            CHECK_NAMES(pe);
            CHECK(wefti_os_now_ns() - start_ns < load_patience_ns(WEFTI_SECOND_NS));
        }
    }
}

/* The lock whose queue begins at PE 0, who is no victim. */
static long *lock_of(const weft_world *world, uint64_t *words)
{
    const uintptr_t heap = ((const wefti_view *)(const void *)world)->heap;
    while (((uintptr_t)words - heap) / sizeof *words % (size_t)weft_world_pes(world) != 0) {
        words++;
    }
    return (long *)(void *)words;
}

/* ---- expert parallelism: an expert a PE, and each token has two ---- */

#define TOKENS 7
#define TOPK 2
#define HIDDEN 16

static struct {
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS * TOPK];
    _Alignas(64) float in[TOKENS * HIDDEN];
    _Alignas(64) float out[TOKENS * HIDDEN];
    _Alignas(64) float received[PES_MAX * TOKENS * HIDDEN];
} layer;

static int open_layer(weft_world *world)
{
    const int pes = weft_world_pes(world);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = pes;
    config.tokens_max = TOKENS;
    config.topk_max = plan.topk = TOPK;
    config.row_bytes_max = sizeof(float) * HIDDEN;
    for (int i = 0; i < TOKENS * TOPK; i++) {
        layer.ids[i] = (i / TOPK + i % TOPK) % pes;
    }
    ep_tokens_fill(layer.in, weft_world_pe(world), TOKENS, HIDDEN);
    return ep_group_open(world, &config, &plan, &layer.ep, &layer.route);
}

static weft_status step(const weft_world *world)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = ep_rows(layer.in, WEFT_EP_F32, HIDDEN);
    weft_ep_rows out = ep_rows(layer.out, WEFT_EP_F32, HIDDEN);
    choices.tokens = TOKENS;
    choices.ids = layer.ids;
    received.rows = ep_rows(layer.received, WEFT_EP_F32, HIDDEN);
    received.rows_capacity = (size_t)weft_world_pes(world) * TOKENS;
    WEFT_TRY(weft_ep_route_update(layer.route, &choices, NULL));
    WEFT_TRY(weft_ep_dispatch(layer.route, &in, &received, NULL));
    return weft_ep_combine(layer.route, &received.rows, &out, 0, NULL);
}

/* Each token's row as often as it has an expert that is there: `lost` has a bit for each that is not. */
static void check_sums(unsigned lost)
{
    for (int token = 0; token < TOKENS; token++) {
        int there = 0;
        for (int k = 0; k < TOPK; k++) {
            there += (lost >> layer.ids[token * TOPK + k] & 1) == 0;
        }
        for (int i = token * HIDDEN; i < (token + 1) * HIDDEN; i++) {
            CHECK_SAY(layer.out[i] == (float)there * layer.in[i], "token %d: %g, not %d times %g", token,
                      (double)layer.out[i], there, (double)layer.in[i]);
        }
    }
}

static void route_on(unsigned lost, const weft_world *world)
{
    for (int pe = 0; pe < weft_world_pes(world); pe++) {
        CHECK_OK((lost >> pe & 1) != 0 ? weft_ep_mask(layer.ep, pe, 0) : WEFT_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(step(world));
        check_sums(lost);
    }
    ep_group_close(layer.ep, layer.route);
}

/* ---- waiting ---- */

static weft_status wait_once(const scene *s, weft_world *world, uint64_t *word)
{
    if (s->locks) {
        return weft_set_lock(world, lock_of(world, word + 1));
    }
    if (s->routes) {
        weft_status status = step(world);
        while (s->act != NULL && status == WEFT_OK) {
            status = step(world);
        }
        return status;
    }
    return s->leaves ? weft_uint64_wait_until(world, word, WEFT_CMP_EQ, 1000) : weft_barrier(world);
}

static void wait_with_others(const scene *s, weft_world *world, uint64_t *word, report *mine)
{
    if (s->act != NULL ? !s->routes : s->locks || s->routes) {
        CHECK(forked_await(&common->acted, 1));
    }
    if (s->hastes && weft_world_pe(world) % 2 == 0) {
        wefti_os_sleep_ns(LATE_NS);
    }
    const uint64_t start_ns = wefti_os_now_ns();
    mine->status = wait_once(s, world, word);
    mine->ns = wefti_os_now_ns() - start_ns;
    (void)snprintf(mine->text, sizeof mine->text, "%s", mine->status == WEFT_OK ? "" : weft_last_error());
    if (s->act == NULL && !s->hastes) {
        go_on(s, world, word);
    }
    if (s->routes && !s->hastes) {
        route_on(s->act != NULL ? other_hosts(s, weft_world_pe(world)) : s->victims, world);
    }
}

static void be_pe(const scene *s, int pe, int pes)
{
    report *mine = &common->reports[pe];
    forked_member own = {.exchange = &common->exchange, .pe = pe, .pes = pes};
    weft_world *world = NULL;
    void *word = NULL;
    (void)check_begin(NULL);
    check_as_pe(pe);
    if (s->enter != NULL) {
        s->enter(s, pe);
    }
    if (!CHECK_OK(create(s, &own, &world))) {
        _exit(1);
    }
    CHECK_OK(weft_calloc(world, 1 + PES_MAX, sizeof(uint64_t), &word));
    CHECK_OK(weft_uint64_p(world, word, 0, (pe + 1) % pes)); /* all have met somebody of another node */
    CHECK_OK(weft_barrier(world));
    CHECK(!s->routes || (open_layer(world) && CHECK_OK(step(world))));
    if (s->locks && pe == __builtin_ctz(s->victims)) {
        CHECK_OK(weft_set_lock(world, lock_of(world, (uint64_t *)word + 1)));
    }
    atomic_fetch_add(&common->ready, 1);
    if (is_victim(s, pe) && s->leaves) {
        CHECK_OK(weft_world_destroy(world));
        _exit((int)check_failures());
    }
    if (is_victim(s, pe)) {
        for (;;) {
            (void)pause();
        }
    }
    wait_with_others(s, world, word, mine);
    atomic_fetch_add(&common->done, 1);
    CHECK(s->hastes ||
          forked_await(&common->done,
                       (unsigned)(pes - __builtin_popcount(s->victims)))); /* the first to end would be missed */
    const uint64_t start_ns = wefti_os_now_ns();
    CHECK_OK(weft_world_destroy(world));
    mine->destroy_ns = wefti_os_now_ns() - start_ns;
    mine->failures = (int)check_failures();
    _exit(0);
}

/* ---- the test ---- */

static void strike(const scene *s, const pid_t *pids, int pes)
{
    for (int pe = 0; pe < pes && !s->leaves; pe++) {
        if (is_victim(s, pe)) {
            assert_int_equal(kill(pids[pe], s->signal), 0);
        }
    }
}

static void play(const scene *s, report reports[PES_MAX])
{
    const int pes = (int)strlen(s->nodes);
    pid_t pids[PES_MAX];
    int how;
    memset(common, 0, sizeof *common);
    for (int pe = 0; pe < pes; pe++) {
        pids[pe] = fork();
        assert_true(pids[pe] >= 0);
        if (pids[pe] == 0) {
            be_pe(s, pe, pes);
        }
    }
    assert_true(forked_await(&common->ready, (unsigned)pes));
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 5); /* for the others to wait */
    strike(s, pids, pes);
    atomic_fetch_add(&common->acted, 1);
    for (int pe = 0; pe < pes; pe++) {
        if (!is_victim(s, pe)) {
            assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
            CHECK_SAY(WIFEXITED(how) && WEXITSTATUS(how) == 0, "PE %d ended with %d", pe, how);
        }
    }
    for (int pe = 0; pe < pes; pe++) {
        if (is_victim(s, pe)) {
            (void)kill(pids[pe], SIGKILL);
            assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
        }
    }
    memcpy(reports, common->reports, sizeof common->reports);
}

/* Seconds that nothing takes where nothing else runs, and what may be taken for them here and now. */
static double allow(double seconds)
{
    return (double)load_patience_ns((uint64_t)(seconds * (double)WEFTI_SECOND_NS)) / (double)WEFTI_SECOND_NS;
}

/* All others have this status after `from` seconds or soon afterwards, with a text that says `word` of the victims and
 * names nobody else. */
static void check(const scene *s, weft_status status, double from, const char *word)
{
    report reports[PES_MAX];
    play(s, reports);
    const double to = from + allow(SOON);
    const double end_to = allow(1);
    for (int pe = 0; pe < (int)strlen(s->nodes); pe++) {
        const report *r = &reports[pe];
        const double seconds = (double)r->ns / (double)WEFTI_SECOND_NS;
        if (is_victim(s, pe)) {
            continue;
        }
        CHECK_SAY(r->status == status, "%s: PE %d: %s: %s", s->nodes, pe, weft_status_name(r->status), r->text);
        CHECK_SAY(seconds >= from && seconds < to, "%s: PE %d: after %.2f s: %s", s->nodes, pe, seconds, r->text);
        CHECK_SAY(strstr(r->text, word) != NULL, "%s: PE %d: no \"%s\" in: %s", s->nodes, pe, word, r->text);
        for (int other = 0; other < (int)strlen(s->nodes); other++) {
            CHECK_SAY(other == pe || text_names_pe(r->text, other) == is_victim(s, other), "%s: PE %d: %s", s->nodes,
                      pe, r->text);
        }
        const double end_s = (double)r->destroy_ns / (double)WEFTI_SECOND_NS;
        CHECK_SAY(s->signal == SIGSTOP || end_s < end_to, "%s: PE %d: destroy took %.2f s", s->nodes, pe, end_s);
        CHECK(r->failures == 0);
    }
}

static void test_a_killed_pe(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abcc", .victims = 1u << 1, .signal = SIGKILL, .deadline = LONG}, WEFT_ERR_PEER, 0,
          "ended");
}

/* Its neighbour on the node takes its place, and tells. */
static void test_a_killed_leader(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abbbc", .victims = 1u << 1 | 1u << 3, .signal = SIGKILL, .deadline = LONG}, WEFT_ERR_PEER,
          0, "ended");
    check(&(scene){.nodes = "aabc", .victims = 1u << 0, .signal = SIGKILL, .deadline = LONG}, WEFT_ERR_PEER, 0,
          "ended");
}

/* All PEs of two of four nodes: the ring closes over them. */
static void test_killed_nodes(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abbcd", .victims = 1u << 1 | 1u << 2 | 1u << 3, .signal = SIGKILL, .deadline = LONG},
          WEFT_ERR_PEER, 0, "ended");
}

/* They may go on any time; who is asked does not answer, all of them in one second. */
static void test_stopped_pes(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abcda", .victims = 1u << 1 | 1u << 2 | 1u << 3, .signal = SIGSTOP, .deadline = "4"},
          WEFT_ERR_TIMEOUT, 4, "did not arrive within");
}

/* Who waits for a lock asks all PEs where it is; the three that are stopped cost one wait, not three. */
static void test_a_lock_among_stopped_pes(void **state)
{
    (void)state;
    const scene s = {
        .nodes = "abcda", .victims = 1u << 1 | 1u << 2 | 1u << 3, .signal = SIGSTOP, .deadline = "4", .locks = 1};
    report reports[PES_MAX];
    play(&s, reports);
    const double to = 4 + allow(SOON);
    for (int pe = 0; pe < PES_MAX; pe += 4) {
        const double seconds = (double)reports[pe].ns / (double)WEFTI_SECOND_NS;
        CHECK_SAY(reports[pe].status == WEFT_ERR_TIMEOUT, "PE %d: %s", pe, reports[pe].text);
        CHECK_SAY(seconds >= 4 && seconds < to, "PE %d: after %.2f s: %s", pe, seconds, reports[pe].text);
        CHECK(reports[pe].failures == 0);
    }
}

/* Without a deadline nothing else ends the wait for a lock that a PE had which has ended, and whose place in the queue
 * cannot be read any more: that of the next one, and of those behind it. */
static void test_a_lock_of_a_killed_pe(void **state)
{
    (void)state;
    const scene s = {.nodes = "abbcd", .victims = 1u << 2, .signal = SIGKILL, .deadline = "inf", .locks = 1};
    report reports[PES_MAX];
    play(&s, reports);
    for (int pe = 0; pe < PES_MAX; pe++) {
        const double seconds = (double)reports[pe].ns / (double)WEFTI_SECOND_NS;
        if (is_victim(&s, pe)) {
            continue;
        }
        CHECK_SAY(reports[pe].status == WEFT_ERR_PEER && text_names_pe(reports[pe].text, 2), "PE %d: %s: %s", pe,
                  weft_status_name(reports[pe].status), reports[pe].text);
        CHECK_SAY(seconds < 2 * allow(SOON), "PE %d: after %.2f s: %s", pe, seconds, reports[pe].text);
        CHECK(reports[pe].failures == 0);
    }
}

/* ---- a lock that is set and cleared in a row, when somebody is killed ---- */

#define STRIKES 8
#define STRUCK_NS (2 * WEFTI_SECOND_NS) /* so long after the strike who still gets the lock goes on */

/* Set and clear a lock until that fails, or has gone well for so long that it will. */
static weft_status lock_in_a_row(weft_world *world, uint64_t *words, uint64_t *struck_ns)
{
    long *lock = lock_of(world, words + 1);
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && (*struck_ns == 0 || wefti_os_now_ns() - *struck_ns < STRUCK_NS)) {
        WEFT_TRY(weft_set_lock(world, lock));
        status = weft_uint64_p(world, words, 1, (weft_world_pe(world) + 1) % weft_world_pes(world));
        const weft_status cleared = weft_clear_lock(world, lock);
        status = status == WEFT_OK ? cleared : status;
        if (*struck_ns == 0 && atomic_load(&common->acted) != 0) {
            *struck_ns = wefti_os_now_ns();
        }
    }
    return status;
}

static void be_locking(const scene *s, int pe, int pes)
{
    report *mine = &common->reports[pe];
    forked_member own = {.exchange = &common->exchange, .pe = pe, .pes = pes};
    uint64_t struck_ns = 0;
    weft_world *world = NULL;
    void *words = NULL;
    (void)check_begin(NULL);
    check_as_pe(pe);
    if (!CHECK_OK(create(s, &own, &world))) {
        _exit(1);
    }
    CHECK_OK(weft_calloc(world, 1 + PES_MAX, sizeof(uint64_t), &words));
    CHECK_OK(weft_barrier(world));
    atomic_fetch_add(&common->ready, 1);
    mine->status = lock_in_a_row(world, words, &struck_ns);
    (void)snprintf(mine->text, sizeof mine->text, "%s", mine->status == WEFT_OK ? "" : weft_last_error());
    atomic_fetch_add(&common->done, 1);
    (void)forked_await(&common->done, (unsigned)pes - 1); /* who leaves hides where it stood */
    CHECK_OK(weft_world_destroy(world));
    _exit(check_failures() != 0);
}

/* All others get the lock, or a status that names the victim. */
static void strike_locks(const scene *s, uint64_t after_ns)
{
    const int pes = (int)strlen(s->nodes);
    pid_t pids[PES_MAX];
    int how = 0;
    memset(common, 0, sizeof *common);
    for (int pe = 0; pe < pes; pe++) {
        pids[pe] = fork();
        assert_true(pids[pe] >= 0);
        if (pids[pe] == 0) {
            be_locking(s, pe, pes);
        }
    }
    assert_true(forked_await(&common->ready, (unsigned)pes));
    wefti_os_sleep_ns(after_ns);
    strike(s, pids, pes);
    atomic_fetch_add(&common->acted, 1);
    const uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(10 * WEFTI_SECOND_NS);
    while (atomic_load(&common->done) + 1 < (unsigned)pes && wefti_os_now_ns() < until_ns) {
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 100);
    }
    CHECK_SAY(atomic_load(&common->done) + 1 == (unsigned)pes, "%s, PE %d killed after %.3f ms: %u of %d came back",
              s->nodes, __builtin_ctz(s->victims), (double)after_ns * 1e-6, atomic_load(&common->done), pes - 1);
    const int have_ended = atomic_load(&common->done) + 1 == (unsigned)pes;
    for (int pe = 0; pe < pes; pe++) {
        const report *r = &common->reports[pe];
        if (!have_ended) {
            (void)kill(pids[pe], SIGKILL);
        }
        assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
        CHECK_SAY(!have_ended || is_victim(s, pe) || (WIFEXITED(how) && WEXITSTATUS(how) == 0), "PE %d ended with %d",
                  pe, how);
        CHECK_SAY(r->status == WEFT_OK || text_names_pe(r->text, __builtin_ctz(s->victims)), "PE %d: %s: %s", pe,
                  weft_status_name(r->status), r->text);
    }
}

static void test_a_lock_when_somebody_is_killed(void **state)
{
    uint64_t chance = 0x9e3779b97f4a7c15;
    (void)state;
    for (int i = 0; i < STRIKES; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        strike_locks(&(scene){.nodes = i % 2 == 0 ? "abbcd" : "aabbc",
                              .victims = 1u << (1 + chance % 4),
                              .signal = SIGKILL,
                              .deadline = i % 4 == 3 ? "4" : "inf"},
                     (chance >> 20) % (WEFTI_SECOND_NS / 20));
    }
}

/* ---- a host that is gone while the world is created ---- */

#define CREATION_S "3"

static void be_creating(const scene *s, int pe, int pes)
{
    report *mine = &common->reports[pe];
    const char node[] = {s->nodes[pe], '\0'};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world = NULL;
    (void)check_begin(NULL);
    check_as_pe(pe);
    (void)setenv("WEFT_NODE_ID", node, 1);
    (void)setenv("WEFT_DEADLINE", s->deadline, 1);
    (void)setenv("WEFT_SILENCE", SILENCE, 1);
    config.bootstrap = WEFT_BOOTSTRAP_UID;
    config.uid = &common->uid;
    config.pe = pe;
    config.pes = pes;
    config.heap_max_bytes = (size_t)4 << 20;
    CHECK(pe != 0 || CHECK_OK(weft_uid_create("lo", &common->uid)));
    atomic_fetch_add(&common->ready, 1);
    (void)forked_await(&common->ready, (unsigned)pes);
    const uint64_t start_ns = wefti_os_now_ns();
    mine->status = weft_world_create(&config, &world);
    mine->ns = wefti_os_now_ns() - start_ns;
    (void)snprintf(mine->text, sizeof mine->text, "%s", mine->status == WEFT_OK ? "" : weft_last_error());
    atomic_fetch_add(&common->done, 1);
    (void)forked_await(&common->done, (unsigned)(pes - __builtin_popcount(s->victims)));
    while (is_victim(s, pe)) {
        (void)pause();
    }
    CHECK(world == NULL || CHECK_OK(weft_world_destroy(world)));
    _exit(check_failures() != 0);
}

/* Who has no world by then names one of the victims, by the deadline. Returns how many have none. */
static int strike_creation(const scene *s, uint64_t after_ns)
{
    const int pes = (int)strlen(s->nodes);
    const uint64_t to_ns = strtoull(s->deadline, NULL, 10) * WEFTI_SECOND_NS + load_patience_ns(2 * WEFTI_SECOND_NS);
    pid_t pids[PES_MAX];
    int how = 0;
    int without = 0;
    memset(common, 0, sizeof *common);
    for (int pe = 0; pe < pes; pe++) {
        pids[pe] = fork();
        assert_true(pids[pe] >= 0);
        if (pids[pe] == 0) {
            be_creating(s, pe, pes);
        }
    }
    assert_true(forked_await(&common->ready, (unsigned)pes));
    wefti_os_sleep_ns(after_ns);
    strike(s, pids, pes);
    for (int pe = 0; pe < pes; pe++) {
        const report *r = &common->reports[pe];
        if (is_victim(s, pe)) {
            continue;
        }
        int names = r->status == WEFT_OK;
        assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
        CHECK_SAY(WIFEXITED(how) && WEXITSTATUS(how) == 0, "PE %d ended with %d", pe, how);
        for (int other = 0; other < pes; other++) {
            names |= is_victim(s, other) && text_names_pe(r->text, other);
        }
        without += r->status != WEFT_OK;
        CHECK_SAY(names && (r->status == WEFT_OK || r->ns < to_ns), "%s, after %.3f ms: PE %d: %s after %.2f s: %s",
                  s->nodes, (double)after_ns * 1e-6, pe, weft_status_name(r->status),
                  (double)r->ns / (double)WEFTI_SECOND_NS, r->text);
    }
    for (int pe = 0; pe < pes; pe++) {
        if (is_victim(s, pe)) {
            (void)kill(pids[pe], SIGKILL);
            assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
        }
    }
    return without;
}

/* Earlier and earlier, so that the first strikes find worlds that have just been made, and the last none. */
static void test_a_host_that_is_gone_in_creation(void **state)
{
    int without = 0;
    (void)state;
    for (int i = 0; i < 6; i++) {
        without += strike_creation(&(scene){.nodes = "abbcd",
                                            .victims = i % 4 == 3 ? 1u << 0 : 1u << 1 | 1u << 2,
                                            .signal = i == 1 ? SIGSTOP : SIGKILL,
                                            .deadline = CREATION_S},
                                   (uint64_t)(5 - i) * (WEFTI_SECOND_NS / 200));
    }
    CHECK_SAY(without > 0, "all worlds were made before the strikes");
}

static void test_expert_parallelism(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abbcd", .victims = 1u << 1 | 1u << 2, .signal = SIGKILL, .deadline = LONG, .routes = 1},
          WEFT_ERR_PEER, 0, "never will");
    check(&(scene){.nodes = "abccd", .victims = 1u << 3, .signal = SIGKILL, .deadline = LONG, .routes = 1},
          WEFT_ERR_PEER, 0, "never will");
    check(&(scene){.nodes = "abbcd", .victims = 1u << 1 | 1u << 2, .signal = SIGSTOP, .deadline = "4", .routes = 1},
          WEFT_ERR_TIMEOUT, 4, "did not make it");
}

/* Those that know first leave at once, and so are gone, too, for those that come late: the victims are named. */
static void test_who_leaves_at_once_is_not_named(void **state)
{
    static const struct {
        const char *nodes;
        unsigned victims;
    } scenes[] = {
        {"aabbc", 1u << 4}, {"aabbc", 1u << 0}, {"aabbc", 1u << 3}, {"abcde", 1u << 2}, {"abbbb", 1u << 1 | 1u << 2}};
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        for (int routes = 0; routes < 2; routes++) {
            check(&(scene){.nodes = scenes[i].nodes,
                           .victims = scenes[i].victims,
                           .signal = SIGKILL,
                           .deadline = LONG,
                           .routes = routes,
                           .hastes = 1},
                  WEFT_ERR_PEER, 0, routes ? "never will" : "ended");
        }
    }
}

/* Who leaves in order is not taken for one that has ended: a wait for a word, which may come from anybody, goes on. */
static void test_who_leaves(void **state)
{
    (void)state;
    check(&(scene){.nodes = "abbc", .victims = 1u << 1, .deadline = "2", .leaves = 1}, WEFT_ERR_TIMEOUT, 2,
          "left the world");
}

/* ---- a PE that is killed behind what it did not take ---- */

#define FLOOD_BYTES ((size_t)1 << 20)

/* Until nothing more goes: then a word waits behind all that. It is for the library to say that it was not taken. */
static void flood(weft_world *world, unsigned char *room)
{
    static unsigned char data[FLOOD_BYTES];
    weft_status status = WEFT_OK;
    for (int i = 0; i < 1000 && status == WEFT_OK; i++) {
        status = weft_putmem_nbi(world, room, data, sizeof data, 1);
    }
    CHECK_STATUS(status, WEFT_ERR_TIMEOUT);
    CHECK_OK(weft_uint64_p(world, (uint64_t *)(void *)room, 1, 1));
    CHECK_STATUS(weft_uint64_atomic_fetch_inc(world, (uint64_t *)(void *)room, 1, &(uint64_t){0}), WEFT_ERR_TIMEOUT);
}

static void be_flooding(const scene *s, int pe)
{
    forked_member own = {.exchange = &common->exchange, .pe = pe, .pes = 2};
    weft_world *world = NULL;
    void *room = NULL;
    (void)check_begin(NULL);
    check_as_pe(pe);
    if (!CHECK_OK(create(s, &own, &world))) {
        _exit(1);
    }
    CHECK_OK(weft_malloc(world, FLOOD_BYTES, &room));
    CHECK_OK(
        weft_putmem(world, room, common->exchange.places, sizeof common->exchange.places, !pe)); /* asks for the key */
    CHECK_OK(weft_barrier(world));
    atomic_fetch_add(&common->ready, 1);
    while (pe == 1) {
        (void)pause();
    }
    CHECK(forked_await(&common->acted, 1));
    flood(world, room);
    atomic_fetch_add(&common->done, 1);
    CHECK(forked_await(&common->acted, 2));
    CHECK_STATUS(weft_quiet(world), WEFT_ERR_PEER);
    CHECK_OK(weft_world_destroy(world));
    _exit(check_failures() != 0);
}

/* What is under way to it fails, and its sender goes on. Elsewhere all goes by message, and so does not queue up. */
static void test_a_killed_pe_that_took_nothing(void **state)
{
    const char *transport = getenv("WEFT_TRANSPORT");
    const scene s = {.nodes = "ab", .deadline = "1"};
    pid_t pids[2];
    int how = 0;
    (void)state;
    if (transport != NULL && strcmp(transport, "ofi") != 0) {
        skip();
    }
    memset(common, 0, sizeof *common);
    for (int pe = 0; pe < 2; pe++) {
        pids[pe] = fork();
        assert_true(pids[pe] >= 0);
        if (pids[pe] == 0) {
            be_flooding(&s, pe);
        }
    }
    assert_true(forked_await(&common->ready, 2));
    assert_int_equal(kill(pids[1], SIGSTOP), 0);
    atomic_fetch_add(&common->acted, 1);
    CHECK(forked_await(&common->done, 1));
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    assert_int_equal(waitpid(pids[1], &how, 0), pids[1]);
    atomic_fetch_add(&common->acted, 1);
    assert_int_equal(waitpid(pids[0], &how, 0), pids[0]);
    CHECK_SAY(WIFEXITED(how) && WEXITSTATUS(how) == 0, "PE 0 ended with %d", how);
}

/* ---- a link that goes down ---- */

/* Two hosts, of which the first PE of each makes the namespaces that the others enter. */
static struct {
    _Atomic unsigned steps;
    _Atomic int first[2]; /* processes */
} * wired;

static int run_ip(const char *command)
{
    return system(command) == 0; /* NOLINT: fixed commands */
}

/* The system says so some time after both ends are up, and what is not up the library leaves out. */
static void await_link(int host)
{
    char path[64];
    char state[8] = "";
    (void)snprintf(path, sizeof path, "/sys/class/net/weft%d/operstate", host);
    for (int look = 0; look < 1000 && strncmp(state, "up", 2) != 0; look++) {
        FILE *file = fopen(path, "re");
        if (file == NULL || fgets(state, sizeof state, file) == NULL) {
            state[0] = '\0';
        }
        if (file != NULL) {
            (void)fclose(file);
        }
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 100);
    }
}

/* As in a container: UCX finds interfaces in /sys. */
static int make_host(int host)
{
    static const char *const commands[2][3] = {
        {"ip link set lo up", "ip addr add 10.213.98.1/24 dev weft0", "ip link set weft0 up"},
        {"ip link set lo up", "ip addr add 10.213.98.2/24 dev weft1", "ip link set weft1 up"},
    };
    int could = unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                mount("sysfs", "/sys", "sysfs", 0, NULL) == 0;
    atomic_store(&wired->first[host], (int)getpid());
    atomic_fetch_add(&wired->steps, 1);
    could = could && forked_await(&wired->steps, 3);
    for (int i = 0; i < 3 && could; i++) {
        could = run_ip(commands[host][i]);
    }
    return could;
}

static int join_host(int host)
{
    static const char *const kinds[] = {"net", "mnt"};
    int could = 1;
    for (int i = 0; i < 2 && could; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", atomic_load(&wired->first[host]), kinds[i]);
        const int place = open(path, O_RDONLY | O_CLOEXEC);
        could = place >= 0 && setns(place, 0) == 0;
        (void)close(place);
    }
    return could;
}

static void enter_wired(const scene *s, int pe)
{
    const int host = s->nodes[pe] - 'a';
    const int is_first = pe == 0 || s->nodes[pe - 1] != s->nodes[pe];
    int could = is_first ? make_host(host) : 1;
    if (is_first && could) {
        atomic_fetch_add(&wired->steps, 1);
    }
    could = could && forked_await(&wired->steps, 5) && (is_first || join_host(host));
    if (!could) {
        _exit(77);
    }
    await_link(host);
}

/* Makes the pair of interfaces from a namespace of its own. */
static void be_wire(void)
{
    char command[64];
    int could = unshare(CLONE_NEWNET) == 0 && forked_await(&wired->steps, 2) &&
                run_ip("ip link add weft0 type veth peer name weft1");
    for (int host = 0; host < 2 && could; host++) {
        (void)snprintf(command, sizeof command, "ip link set weft%d netns %d", host, atomic_load(&wired->first[host]));
        could = run_ip(command);
    }
    atomic_fetch_add(&wired->steps, 1);
    _exit(could ? 0 : 77);
}

static void cut_link(const pid_t *pids)
{
    char command[80];
    (void)pids;
    (void)snprintf(command, sizeof command, "nsenter -t %d -n ip link set weft1 down", atomic_load(&wired->first[1]));
    assert_true(run_ip(command));
}

static void check_cut(const scene *s, int pe)
{
    const report *r = &common->reports[pe];
    const uint64_t soon_ns = (uint64_t)(allow(SOON) * (double)WEFTI_SECOND_NS);
    CHECK_SAY(r->status == WEFT_ERR_PEER && r->ns >= WEFTI_SECOND_NS && r->ns < 2 * WEFTI_SECOND_NS + soon_ns,
              "%s: PE %d: %s after %.2f s: %s", s->nodes, pe, weft_status_name(r->status),
              (double)r->ns / (double)WEFTI_SECOND_NS, r->text);
    CHECK_SAY(s->routes || strstr(r->text, "unreachable") != NULL, "%s: PE %d: %s", s->nodes, pe, r->text);
    for (int other = 0; s->nodes[other] != '\0'; other++) {
        CHECK_SAY(other == pe || text_names_pe(r->text, other) == (s->nodes[other] != s->nodes[pe]), "%s: PE %d: %s",
                  s->nodes, pe, r->text);
    }
    CHECK_SAY(r->destroy_ns < load_patience_ns(WEFTI_SECOND_NS), "PE %d: destroy took %.2f s", pe,
              (double)r->destroy_ns / (double)WEFTI_SECOND_NS);
    CHECK(r->failures == 0);
}

/* Returns 0 where there are no such interfaces. */
static int play_wired(const scene *s)
{
    const int pes = (int)strlen(s->nodes);
    pid_t pids[PES_MAX + 1];
    int how = 0;
    memset(common, 0, sizeof *common);
    memset(wired, 0, sizeof *wired);
    for (int i = 0; i <= pes; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0 && i == pes) {
            be_wire();
        } else if (pids[i] == 0) {
            be_pe(s, i, pes);
        }
    }
    assert_int_equal(waitpid(pids[pes], &how, 0), pids[pes]);
    const int can_play = WIFEXITED(how) && WEXITSTATUS(how) == 0;
    if (can_play) {
        assert_true(forked_await(&common->ready, (unsigned)pes));
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 5);
        s->act(pids);
        atomic_store(&common->acted, 1);
    }
    for (int pe = 0; pe < pes; pe++) {
        if (!can_play) {
            (void)kill(pids[pe], SIGKILL);
        }
        assert_int_equal(waitpid(pids[pe], &how, 0), pids[pe]);
        CHECK_SAY(!can_play || (WIFEXITED(how) && WEXITSTATUS(how) == 0), "PE %d ended with %d", pe, how);
    }
    for (int pe = 0; pe < pes && can_play; pe++) {
        check_cut(s, pe);
    }
    return can_play;
}

static void test_a_link_that_goes_down(void **state)
{
    (void)state;
    if (geteuid() != 0 || !run_ip("ip -V >/dev/null 2>&1") || !run_ip("unshare -n true 2>/dev/null")) {
        print_message("a link that goes down needs root, network namespaces and iproute2\n");
        skip();
    }
    const int can_play =
        play_wired(&(scene){.nodes = "ab", .deadline = LONG, .enter = enter_wired, .act = cut_link}) &&
        play_wired(&(scene){.nodes = "aabb", .deadline = LONG, .enter = enter_wired, .act = cut_link, .routes = 1});
    if (!can_play) {
        print_message("no virtual interfaces here\n");
        skip();
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_a_killed_pe),
        CHECKED_TEST(test_a_killed_leader),
        CHECKED_TEST(test_killed_nodes),
        CHECKED_TEST(test_stopped_pes),
        CHECKED_TEST(test_expert_parallelism),
        CHECKED_TEST(test_a_lock_of_a_killed_pe),
        CHECKED_TEST(test_a_lock_when_somebody_is_killed),
        CHECKED_TEST(test_a_host_that_is_gone_in_creation),
        CHECKED_TEST(test_who_leaves),
        CHECKED_TEST(test_who_leaves_at_once_is_not_named),
        CHECKED_TEST(test_a_killed_pe_that_took_nothing),
        CHECKED_TEST(test_a_link_that_goes_down),
        CHECKED_TEST(test_a_lock_among_stopped_pes),
    };
#ifndef WEFT_HAVE_OFI
    if (count < 2) {
        return 77;
    }
#endif
    setenv("WEFT_LOG", "none", 0);
    unsetenv("WEFT_BOOTSTRAP");
    unsetenv("WEFT_LOCAL_JOB");
    unsetenv("WEFT_TRANSPORT");
    if (count > 1) {
        setenv("WEFT_TRANSPORT", arguments[1], 1);
    }
    if (count > 2) {
        cmocka_set_test_filter(arguments[2]);
    }
    common = forked_share(sizeof *common);
    wired = forked_share(sizeof *wired);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
