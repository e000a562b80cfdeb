/* Goal: when a PE's process is killed or stopped in creation, a barrier, an allocation or the making of a team, every
 * other PE has a status that names it within the deadline and a second; nothing stays in /dev/shm and /tmp.
 * Method: PEs are processes with the environment that weftrun gives, which repeat a call until it fails and report that
 * through a pipe. The parent kills or stops one at a random moment: of its creation, or while all repeat the call. A PE
 * that is stopped looks alive to the system, so nothing but the deadline ends the others' waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/load.h"
#include "weft.h"

typedef weft_status (*repeated)(weft_world *world, uint64_t deadline_ns);

/* What the PEs of a crew do, and which of them strikes itself. */
typedef struct plan {
    repeated call;
    uint64_t deadline_ns;
    int marked; /* this PE strikes itself at a step of the creation; -1: none */
    int step;
    int step_signal;
} plan;

/* ---- a PE that strikes itself at a step of creation ---- */

typedef enum step { AT_PORT, AT_FILE, AT_MAP, AT_RESERVE, STEPS } step;

static const char *const step_names[STEPS] = {"opening or taking from the port", "making the file", "mapping",
                                              "reserving memory"};

static int marked_step = -1;
static int marked_signal;

static void strike_if(step now)
{
    if (marked_step == (int)now) {
        (void)raise(marked_signal);
    }
}

/* These take the places of the C library's. */

int socket(int domain, int type, int protocol)
{
    if ((type & 0xf) == SOCK_SEQPACKET) {
        strike_if(AT_PORT);
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}

int memfd_create(const char *name, unsigned flags)
{
    strike_if(AT_FILE);
    return (int)syscall(SYS_memfd_create, name, flags);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    if ((flags & MAP_SHARED) != 0) {
        strike_if(AT_MAP);
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset); /* NOLINT: an address */
}

int fallocate(int descriptor, int mode, off_t offset, off_t bytes)
{
    strike_if(AT_RESERVE);
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, bytes);
}

/* ---- what PEs repeat ---- */

static weft_status call_barrier(weft_world *world, uint64_t deadline_ns)
{
    (void)deadline_ns;
    return weft_barrier(world);
}

static weft_status call_malloc(weft_world *world, uint64_t deadline_ns)
{
    (void)deadline_ns;
    void *block;
    WEFT_TRY(weft_malloc(world, 1000, &block));
    return weft_free(world, block);
}

static weft_status call_team(weft_world *world, uint64_t deadline_ns)
{
    (void)deadline_ns;
    const int list[] = {2, 0, 1, 3, 4};
    weft_team *team;
    WEFT_TRY(weft_team_create(weft_team_world(world), list, weft_world_pe(world) < 5 ? 5 : 0, &team));
    return weft_team_destroy(team);
}

/* Also creation is repeated: another world each time. */
static weft_status call_create(weft_world *world, uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *another;
    config.name = "another";
    config.pe = weft_world_pe(world);
    config.pes = weft_world_pes(world);
    config.heap_max_bytes = 1 << 20;
    config.deadline_ns = deadline_ns;
    WEFT_TRY(weft_world_create(&config, &another));
    return weft_world_destroy(another);
}

/* ---- a PE ---- */

static void run_pe(const crew *c, int pe, void *context)
{
    const plan *p = context;
    weft_world *world;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = p->deadline_ns;
    if (pe == p->marked) {
        marked_step = p->step;
        marked_signal = p->step_signal;
    }
    uint64_t start = wefti_os_now_ns();
    weft_status status = weft_world_create(&config, &world);
    if (status == WEFT_OK) {
        crew_tell(c, pe, 0, status, start);
    }
    while (status == WEFT_OK) {
        start = wefti_os_now_ns();
        status = p->call(world, p->deadline_ns);
    }
    crew_tell(c, pe, 1, status, start);
}

/* ---- the parent ---- */

static void await_creation(const crew *c)
{
    crew_report r;
    for (int created = 0; created < c->pes; created++) {
        if (!CHECK_SAY(crew_hear(c, &r, wefti_os_now_ns() + load_patience_ns(30000 * WEFTI_MILLISECOND_NS)),
                       "no PE speaks") ||
            !CHECK_SAY(!r.is_end, "PE %d: %s", r.pe, r.text)) {
            return;
        }
    }
}

static void check_report(const plan *p, const crew_report *r, const char *what)
{
    CHECK_SAY(r->status == WEFT_ERR_TIMEOUT || r->status == WEFT_ERR_PEER, "%s: PE %d got %s: %s", what, r->pe,
              weft_status_name(r->status), r->text);
    CHECK_SAY(r->ns <= p->deadline_ns + crew_late_ns(), "%s: PE %d had its status after %.2f s (%s)", what, r->pe,
              (double)r->ns * 1e-9, r->text);
}

/* Each survivor names the victim, or a PE that does: a call may have ended for some when the victim went, and then
 * these wait in the next call for one that still waits for the victim in the last. */
static void check_culprit(const crew_report *reports, int pes, int victim, const char *what)
{
    for (int pe = 0; pe < pes; pe++) {
        int is_named = text_names_pe(reports[pe].text, victim);
        for (int other = 0; other < pes && !is_named; other++) {
            is_named = other != pe && other != victim && text_names_pe(reports[pe].text, other) &&
                       text_names_pe(reports[other].text, victim);
        }
        CHECK_SAY(is_named || pe == victim || !reports[pe].is_end, "%s: PE %d is not named to PE %d by \"%s\" (%s)",
                  what, victim, pe, reports[pe].text, weft_status_name(reports[pe].status));
    }
}

/* Everybody but the victim reports its end. */
static void hear_survivors(const crew *c, const plan *p, int victim, const char *what)
{
    uint64_t until_ns = wefti_os_now_ns() + 3 * (p->deadline_ns + crew_late_ns());
    static crew_report reports[CREW_PES_MAX];
    memset(reports, 0, sizeof reports);
    int ended = 0;
    crew_report r;
    while (ended < c->pes - 1 && crew_hear(c, &r, until_ns)) {
        if (r.is_end && r.pe != victim) {
            check_report(p, &r, what);
            reports[r.pe] = r;
            ended++;
        }
    }
    for (int pe = 0; pe < c->pes; pe++) {
        CHECK_SAY(reports[pe].is_end || pe == victim, "%s: PE %d never came back", what, pe);
    }
    check_culprit(reports, c->pes, victim, what);
}

/* ---- what stays in the file system ---- */

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += strstr(entry->d_name, "weft") != NULL;
    }
    closedir(folder);
    return count;
}

/* Nothing is left that was not there before. Another test may have a folder there for a moment, or have had one. */
static void check_entries(const char *path, int before)
{
    int now = count_entries(path);
    for (int look = 0; look < 30 && now > before; look++) {
        wefti_os_sleep_ns(100 * WEFTI_MILLISECOND_NS);
        now = count_entries(path);
    }
    CHECK_SAY(now <= before, "%d entries of weft in %s, and %d before", now, path, before);
}

/* ---- scenes ---- */

typedef struct scene {
    const char *name;
    repeated call;
    int pes;
    uint64_t deadline_ns;
} scene;

static const scene scenes[] = {
    {"barrier", call_barrier, 5, 2000 * WEFTI_MILLISECOND_NS},
    {"malloc", call_malloc, 9, 700 * WEFTI_MILLISECOND_NS},
    {"team", call_team, 5, 700 * WEFTI_MILLISECOND_NS},
    {"creation of another", call_create, 9, 2000 * WEFTI_MILLISECOND_NS},
};

/* All repeat a call when the victim gets the signal. */
static void strike_at_work(const scene *s, int signal_number, uint64_t *random)
{
    plan p = {.call = s->call, .deadline_ns = load_patience_ns(s->deadline_ns), .marked = -1};
    crew c;
    char what[100];
    int victim = (int)random_below(random, (unsigned)s->pes);
    crew_start(&c, s->pes, random, run_pe, &p);
    await_creation(&c);
    wefti_os_sleep_ns(random_below(random, 30) * WEFTI_MILLISECOND_NS + random_below(random, 1000000));
    (void)snprintf(what, sizeof what, "%s, %d PEs, signal %d", s->name, s->pes, signal_number);
    (void)kill(c.pids[victim], signal_number);
    hear_survivors(&c, &p, victim, what);
    crew_end(&c);
}

static void strike_everywhere(int signal_number)
{
    uint64_t random = test_seed();
    int in_shm = count_entries("/dev/shm");
    int in_tmp = count_entries("/tmp");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        strike_at_work(&scenes[i], signal_number, &random);
    }
    check_entries("/dev/shm", in_shm);
    check_entries("/tmp", in_tmp);
}

static void test_killed_at_work(void **state)
{
    (void)state;
    strike_everywhere(SIGKILL);
}

static void test_stopped_at_work(void **state)
{
    (void)state;
    strike_everywhere(SIGSTOP);
}

/* The first creation, from the processes' start on; with a short deadline, so that there can be many moments. */
static void strike_at_creation(int rounds, int signal_number, uint64_t deadline_ns)
{
    uint64_t random = test_seed();
    for (int round = 0; round < rounds; round++) {
        plan p = {.call = call_barrier, .deadline_ns = load_patience_ns(deadline_ns), .marked = -1};
        crew c;
        char what[100];
        int victim = (int)random_below(&random, 5);
        crew_start(&c, 5, &random, run_pe, &p);
        uint64_t delay_ns = random_below(&random, 5000000);
        wefti_os_sleep_ns(delay_ns);
        (void)snprintf(what, sizeof what, "creation, signal %d after %.2f ms", signal_number, (double)delay_ns * 1e-6);
        (void)kill(c.pids[victim], signal_number);
        hear_survivors(&c, &p, victim, what);
        crew_end(&c);
    }
}

static void test_killed_in_creation(void **state)
{
    (void)state;
    strike_at_creation(12, SIGKILL, 500 * WEFTI_MILLISECOND_NS);
}

static void test_stopped_in_creation(void **state)
{
    (void)state;
    strike_at_creation(6, SIGSTOP, 500 * WEFTI_MILLISECOND_NS);
}

static void strike_at_step(plan *p, uint64_t *random)
{
    crew c;
    char what[100];
    crew_start(&c, 4, random, run_pe, p);
    (void)snprintf(what, sizeof what, "PE %d, %s, signal %d", p->marked, step_names[p->step], p->step_signal);
    hear_survivors(&c, p, p->marked, what);
    crew_end(&c);
}

/* PE 0 makes the memory and hands it out; the others take it. */
static void test_struck_at_each_step(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    const int signals[] = {SIGKILL, SIGSTOP};
    for (int i = 0; i < 2 * STEPS * 2; i++) {
        plan p = {.call = call_barrier,
                  .deadline_ns = load_patience_ns(400 * WEFTI_MILLISECOND_NS),
                  .marked = i % 2 == 0 ? 0 : 2};
        p.step = i / 4;
        p.step_signal = signals[i / 2 % 2];
        if (p.step != AT_FILE || p.marked == 0) { /* the others make none */
            strike_at_step(&p, &random);
        }
    }
}

/* A step and the verdict on it end with the same deadline: one that is longer than a report may be late. */
static void test_one_deadline_for_all_steps(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    const int marked[] = {0, 2, 2};
    const int steps[] = {AT_RESERVE, AT_PORT, AT_MAP};
    for (int i = 0; i < 3; i++) {
        plan p = {
            .call = call_barrier, .deadline_ns = load_patience_ns(1500 * WEFTI_MILLISECOND_NS), .step_signal = SIGSTOP};
        p.marked = marked[i];
        p.step = steps[i];
        strike_at_step(&p, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_killed_at_work),      CHECKED_TEST(test_stopped_at_work),
        CHECKED_TEST(test_killed_in_creation),  CHECKED_TEST(test_stopped_in_creation),
        CHECKED_TEST(test_struck_at_each_step), CHECKED_TEST(test_one_deadline_for_all_steps),
    };
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
