/* Goal: when a PE's process is killed, or stopped, at any moment of a world's creation, every other PE that has not
 * finished yet fails in time with a text that names it.
 * Method: PEs are processes that open the bootstrap and exchange a few times; the parent kills or stops one of them
 * after a random time within that of a creation, so that all moments are met, and collects what the others got through
 * a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "os/os.h"
#include "support/check.h"
#include "support/load.h"
#include "weft/protocol/mem.h"

#define PES 9
#define DEADLINE_NS (1000 * WEFTI_MILLISECOND_NS) /* these two where nothing else runs */
#define LATE_NS ((WEFTI_TSAN ? 3000 : 1000) * WEFTI_MILLISECOND_NS)
#define KILLS 24
#define STOPS 8

typedef struct report {
    int pe;
    weft_status status;
    uint64_t ns; /* how long the last call took */
    char text[WEFTI_ERROR_BYTES];
} report;

typedef struct crew {
    weft_bootstrap_kind kind;
    uint64_t deadline_ns;
    int ids[2]; /* a pipe: PE 0 gives its unique id to the others */
    int reports[2]; /* a pipe */
    pid_t pids[PES];
} crew;

/* ---- a PE ---- */

/* PE 0 makes the id, as many copies as there are others. */
static int get_id(const crew *c, int pe, weft_uid *uid)
{
    if (c->kind != WEFT_BOOTSTRAP_UID) {
        return 1;
    }
    if (pe != 0) {
        ssize_t got = -1;
        for (int look = 0; look < 1000 && got < 0; look++) {
            got = read(c->ids[0], uid, sizeof *uid);
            wefti_os_sleep_ns(got < 0 ? WEFTI_MILLISECOND_NS : 0);
        }
        return got == sizeof *uid;
    }
    if (weft_uid_create("lo", uid) != WEFT_OK) {
        return 0;
    }
    for (int other = 1; other < PES; other++) {
        if (write(c->ids[1], uid, sizeof *uid) != sizeof *uid) {
            return 0;
        }
    }
    return 1;
}

static weft_status create(const weft_world_config *config, uint64_t *ns)
{
    wefti_bootstrap bootstrap;
    int all[PES];
    uint64_t start_ns = wefti_os_now_ns();
    weft_status status = wefti_bootstrap_open(config, &bootstrap);
    *ns = wefti_os_now_ns() - start_ns;
    for (int exchange = 0; exchange < 40 && status == WEFT_OK; exchange++) {
        start_ns = wefti_os_now_ns();
        status = bootstrap.ops->allgather(&bootstrap, &exchange, all, sizeof exchange);
        *ns = wefti_os_now_ns() - start_ns;
    }
    wefti_bootstrap_close(&bootstrap);
    return status;
}

static void be_pe(const crew *c, int pe)
{
    report r = {.pe = pe};
    weft_uid uid;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    (void)close(c->ids[pe == 0 ? 0 : 1]);
    if (!get_id(c, pe, &uid)) {
        _exit(1); /* PE 0 was struck before there was an id */
    }
    config.bootstrap = c->kind;
    config.pe = pe;
    config.pes = PES;
    config.uid = &uid;
    config.deadline_ns = c->deadline_ns;
    r.status = create(&config, &r.ns);
    (void)snprintf(r.text, sizeof r.text, "%s", weft_last_error());
    _exit(write(c->reports[1], &r, sizeof r) == sizeof r ? 0 : 1);
}

/* ---- the parent ---- */

static void start(crew *c)
{
    assert_int_equal(pipe(c->ids), 0);
    assert_int_equal(fcntl(c->ids[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pipe(c->reports), 0);
    for (int pe = 0; pe < PES; pe++) {
        c->pids[pe] = fork();
        assert_true(c->pids[pe] >= 0);
        if (c->pids[pe] == 0) {
            be_pe(c, pe);
        }
    }
    (void)close(c->ids[0]);
    (void)close(c->ids[1]);
    (void)close(c->reports[1]);
}

static void check_report(const crew *c, const report *r, int victim, const char *how)
{
    if (r->pe == victim || r->status == WEFT_OK) {
        return; /* OK: it was finished before */
    }
    CHECK_SAY(r->status == WEFT_ERR_PEER || r->status == WEFT_ERR_TIMEOUT, "PE %d got %s when PE %d was %s: %s", r->pe,
              weft_status_name(r->status), victim, how, r->text);
    CHECK_SAY(text_names_pe(r->text, victim), "PE %d was not told that PE %d was %s: %s", r->pe, victim, how, r->text);
    CHECK_SAY(r->ns < c->deadline_ns + load_patience_ns(LATE_NS), "PE %d needed %.3f s to learn that PE %d was %s: %s",
              r->pe, (double)r->ns * 1e-9, victim, how, r->text);
}

/* Returns how many PEs failed. Victim -1: none. */
static int collect(crew *c, int victim, const char *how)
{
    report r;
    int failed = 0;
    for (int pe = 0; pe < PES; pe++) {
        if (pe != victim) {
            assert_int_equal(waitpid(c->pids[pe], NULL, 0), c->pids[pe]);
        }
    }
    if (victim >= 0) {
        (void)kill(c->pids[victim], SIGKILL);
        assert_int_equal(waitpid(c->pids[victim], NULL, 0), c->pids[victim]);
    }
    while (read(c->reports[0], &r, sizeof r) == sizeof r) {
        check_report(c, &r, victim, how);
        failed += r.pe != victim && r.status != WEFT_OK;
    }
    (void)close(c->reports[0]);
    return failed;
}

static int is_built(weft_bootstrap_kind kind)
{
#ifdef WEFT_HAVE_SODIUM
    return kind != WEFT_BOOTSTRAP_AUTO;
#else
    return kind != WEFT_BOOTSTRAP_UID;
#endif
}

/* How long a creation takes here and now, when nobody is struck. */
static unsigned creation_ns(weft_bootstrap_kind kind)
{
    crew c = {.kind = kind, .deadline_ns = load_patience_ns(DEADLINE_NS)};
    uint64_t start_ns = wefti_os_now_ns();
    start(&c);
    CHECK(collect(&c, -1, "left alone") == 0);
    uint64_t ns = wefti_os_now_ns() - start_ns;
    return ns < DEADLINE_NS ? (unsigned)ns : (unsigned)DEADLINE_NS;
}

static void strike(weft_bootstrap_kind kind, int signal_number, const char *how, int rounds)
{
    if (!is_built(kind)) {
        skip();
    }
    static const int victims[] = {0, 1, 3, 4, 5, 8};
    uint64_t random = test_seed();
    int failed = 0;
    for (int round = 0; round < rounds; round++) {
        unsigned range_ns = creation_ns(kind);
        crew c = {.kind = kind, .deadline_ns = load_patience_ns(DEADLINE_NS)};
        int victim = victims[round % 6];
        start(&c);
        wefti_os_sleep_ns(random_below(&random, range_ns));
        (void)kill(c.pids[victim], signal_number);
        failed += collect(&c, victim, how);
    }
    print_message("%d PEs of %d were struck\n", failed, rounds * (PES - 1));
    CHECK(failed > 0);
}

static void names_the_killed_local(void **state)
{
    (void)state;
    strike(WEFT_BOOTSTRAP_LOCAL, SIGKILL, "killed", KILLS);
}

static void names_the_stopped_local(void **state)
{
    (void)state;
    strike(WEFT_BOOTSTRAP_LOCAL, SIGSTOP, "stopped", STOPS);
}

static void names_the_killed_uid(void **state)
{
    (void)state;
    strike(WEFT_BOOTSTRAP_UID, SIGKILL, "killed", KILLS);
}

static void names_the_stopped_uid(void **state)
{
    (void)state;
    strike(WEFT_BOOTSTRAP_UID, SIGSTOP, "stopped", STOPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(names_the_killed_local),
        CHECKED_TEST(names_the_stopped_local),
        CHECKED_TEST(names_the_killed_uid),
        CHECKED_TEST(names_the_stopped_uid),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    char job[128];
    (void)snprintf(job, sizeof job, "kill%d:%064d", (int)getpid(), (int)getpid());
    (void)setenv("WEFT_LOCAL_JOB", job, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
