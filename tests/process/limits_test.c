/* Goal: a PE that runs out of descriptors, of address space or of the size that a file may have gets a status that says
 * so, the others are told of that PE in time, and nobody crashes, hangs or has a world that others have not. Method:
 * PEs are processes; one, each in turn, has room for n more descriptors, for n = 0, 1, ... until that is enough, or for
 * n more MiB of address space or of a file; or strangers hold the descriptors of PE 0. With the world that came of it
 * they allocate and synchronise. Signals that would end a process are left as they are. Then PEs that have no standard
 * input, output and error; one whose record locks are refused, which is late, and is not said to have ended; and heaps
 * of which the machine has memory for one, but not for all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "support/ledger.h"
#include "support/load.h"
#include "weft.h"

#define PES 3
#define DEADLINE_NS (1500 * WEFTI_MILLISECOND_NS) /* where nothing else runs */
#define MIB ((uint64_t)1 << 20)
#define DESCRIPTORS 128 /* of the poor PE, those in use among them */

static uint64_t deadline_ns; /* of the PEs that are started next */

typedef struct plan {
    int resource; /* RLIMIT_NOFILE, RLIMIT_AS or RLIMIT_FSIZE */
    uint64_t room;
    int poor; /* the PE that has no more */
} plan;

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    if (from != NULL) {
        (void)!fscanf(from, "%lu", &pages);
        (void)fclose(from);
    }
    return (uint64_t)pages * wefti_os_page_bytes();
}

static void limit_to(int resource, uint64_t most)
{
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    assert_int_equal(setrlimit(resource, &limit), 0);
}

/* So many numbers are free from now on, whichever others were inherited. */
static void leave_descriptors(int room)
{
    int last[DESCRIPTORS];
    int count = 0;
    limit_to(RLIMIT_NOFILE, DESCRIPTORS);
    while (count < DESCRIPTORS && (last[count] = dup(STDERR_FILENO)) >= 0) {
        count++;
    }
    assert_true(count > room);
    while (room-- > 0) {
        (void)close(last[--count]);
    }
}

static void become_poor(const plan *p)
{
    if (p->resource == RLIMIT_NOFILE) {
        leave_descriptors((int)p->room);
    } else {
        limit_to(p->resource, p->resource == RLIMIT_AS ? address_space() + p->room : p->room);
    }
}

static weft_status create_and_use(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    void *block;
    config.deadline_ns = deadline_ns;
    config.heap_max_bytes = 8 * MIB;
    WEFT_TRY(weft_world_create(&config, &world));
    weft_status status = weft_malloc(world, 1000, &block);
    status = status == WEFT_OK ? weft_barrier(world) : status;
    weft_status ended = weft_world_destroy(world);
    return status == WEFT_OK ? ended : status;
}

static void run_pe(const crew *c, int pe, void *context)
{
    const plan *p = context;
    if (pe == p->poor) {
        become_poor(p);
    }
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, create_and_use(), start);
}

static void check_report(const plan *p, const crew_report *r)
{
    int is_own = r->status == WEFT_ERR_SYSTEM || r->status == WEFT_ERR_MEMORY || r->status == WEFT_ERR_UNSUPPORTED;
    int is_told = is_own || r->status == WEFT_ERR_PEER || r->status == WEFT_ERR_TIMEOUT;
    CHECK_SAY(r->pe == p->poor ? is_own || r->status == WEFT_ERR_PEER : is_told,
              "room %llu for PE %d: PE %d got %s: %s", (unsigned long long)p->room, p->poor, r->pe,
              weft_status_name(r->status), r->text);
    CHECK_SAY(p->resource != RLIMIT_NOFILE || r->status != WEFT_ERR_TIMEOUT,
              "room %llu for PE %d: PE %d was not told, but met its deadline: %s", (unsigned long long)p->room, p->poor,
              r->pe, r->text);
    CHECK_SAY(r->pe == p->poor || text_names_pe(r->text, p->poor), "room %llu: PE %d is not named to PE %d: %s",
              (unsigned long long)p->room, p->poor, r->pe, r->text);
    CHECK_SAY(r->ns < 2 * deadline_ns + load_patience_ns(1500 * WEFTI_MILLISECOND_NS),
              "room %llu for PE %d: PE %d took %.1f s", (unsigned long long)p->room, p->poor, r->pe,
              (double)r->ns * 1e-9);
}

/* Returns whether all had a world. */
static int run(plan *p, uint64_t *random)
{
    crew c;
    crew_report reports[PES];
    int count = 0;
    int succeeded = 0;
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    deadline_ns = load_patience_ns(DEADLINE_NS);
    crew_start(&c, PES, random, run_pe, p);
    while (count < PES && crew_hear(&c, &reports[count], until_ns)) {
        succeeded += reports[count].status == WEFT_OK;
        count++;
    }
    crew_end(&c);
    CHECK_SAY(count == PES, "room %llu for PE %d: %d of %d came back", (unsigned long long)p->room, p->poor, count,
              PES);
    CHECK_SAY(succeeded == 0 || succeeded == PES, "room %llu for PE %d: %d of %d had a world",
              (unsigned long long)p->room, p->poor, succeeded, PES);
    for (int i = 0; i < count && succeeded == 0; i++) {
        check_report(p, &reports[i]);
    }
    return succeeded == PES;
}

/* From no room on, until there is enough. */
static void widen(int resource, uint64_t step, uint64_t most)
{
    uint64_t random = test_seed();
    for (int poor = 0; poor < PES; poor++) {
        plan p = {.resource = resource, .poor = poor};
        int failures = 0;
        while (p.room <= most && !run(&p, &random)) {
            p.room += step;
            failures++;
        }
        CHECK_SAY(failures > 0 && p.room <= most, "PE %d: %d failures until a room of %llu", poor, failures,
                  (unsigned long long)p.room);
    }
}

static void test_descriptors(void **state)
{
    (void)state;
    widen(RLIMIT_NOFILE, 1, 40);
}

/* Strangers at PE 0's port that say nothing have all of its descriptors, and come again when they are sent away. */

#define CROWD 40
#define BESET_ROOM 16

static void crowd(unsigned port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    struct pollfd strangers[CROWD];
    for (int i = 0; i < CROWD; i++) {
        strangers[i] = (struct pollfd){.fd = -1, .events = POLLRDHUP};
    }
    for (;;) {
        for (int i = 0; i < CROWD; i++) {
            if (strangers[i].fd < 0 || strangers[i].revents != 0) {
                (void)close(strangers[i].fd);
                strangers[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
                (void)connect(strangers[i].fd, (const struct sockaddr *)&at, sizeof at);
            }
        }
        (void)poll(strangers, CROWD, 1);
    }
}

static void run_beset_pe(const crew *c, int pe, void *context)
{
    char number[16];
    const unsigned *port = context;
    (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
    (void)setenv("WEFT_SECRET", c->job, 1);
    (void)snprintf(number, sizeof number, "%u", *port);
    (void)setenv("WEFT_PORT", number, 1);
    (void)snprintf(number, sizeof number, "%d", pe);
    (void)setenv("RANK", number, 1);
    (void)snprintf(number, sizeof number, "%d", PES);
    (void)setenv("WORLD_SIZE", number, 1);
    (void)unsetenv("WEFT_LOCAL_JOB");
    if (pe == 0) {
        leave_descriptors(BESET_ROOM);
    } else {
        wefti_os_sleep_ns(200 * WEFTI_MILLISECOND_NS); /* the strangers are there first */
    }
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, create_and_use(), start);
}

static void test_descriptors_of_strangers(void **state)
{
    (void)state;
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    unsigned port = crew_free_port();
    pid_t stranger = fork();
    if (stranger == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        crowd(port);
    }
    deadline_ns = load_patience_ns(8000 * WEFTI_MILLISECOND_NS);
    uint64_t until_ns = wefti_os_now_ns() + 3 * deadline_ns;
    crew_start(&c, PES, &random, run_beset_pe, &port);
    for (int i = 0; i < PES; i++) {
        CHECK(crew_hear(&c, &report, until_ns));
        CHECK_SAY(report.status == WEFT_OK, "PE %d got %s: %s", report.pe, weft_status_name(report.status),
                  report.text);
    }
    (void)kill(stranger, SIGKILL);
    (void)waitpid(stranger, NULL, 0);
    crew_end(&c);
}

static void test_address_space(void **state)
{
    (void)state;
    widen(RLIMIT_AS, 3 * MIB, 200 * MIB);
}

static void test_file_size(void **state)
{
    (void)state;
    widen(RLIMIT_FSIZE, 20 * MIB, 100 * MIB);
}

/* A log that nobody reads any more, or that has grown too large, ends nobody. */
static void log_to(int descriptor)
{
    struct rlimit none = {0};
    weft_world *world;
    (void)setrlimit(RLIMIT_FSIZE, &none);
    (void)setenv("WEFT_LOG", "error", 1);
    (void)setenv("WEFT_SPIN", "no number", 1);
    (void)dup2(descriptor, STDERR_FILENO);
    _exit(weft_world_create(NULL, &world) == WEFT_ERR_ARGUMENT ? 0 : 1);
}

static void test_log_without_reader(void **state)
{
    (void)state;
    int ends[2];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(pipe(ends), 0);
    (void)close(ends[0]);
    const int descriptors[] = {ends[1], fileno(file)};
    for (int i = 0; i < 2; i++) {
        int result = -1;
        pid_t pid = fork();
        if (pid == 0) {
            log_to(descriptors[i]);
        }
        assert_int_equal(waitpid(pid, &result, 0), pid);
        CHECK_SAY(result == 0, "log %d: the process ended with 0x%x", i, result);
    }
    (void)close(ends[1]);
    (void)fclose(file);
}

/* Log lines find nobody; they must not find the symmetric memory, which would have one of the numbers that are free. */
static weft_status use_without_standard(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    config.deadline_ns = deadline_ns;
    WEFT_TRY(weft_world_create(&config, &world));
    for (int i = 0; i < 100; i++) {
        (void)weft_quiet(NULL); /* logs */
    }
    weft_status status = weft_barrier(world);
    status = status == WEFT_OK ? weft_world_fault(world, NULL) : status;
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++) {
        status = fcntl(standard, F_GETFD) == -1 ? status : WEFT_ERR_STATE;
    }
    weft_status ended = weft_world_destroy(world);
    return status == WEFT_OK ? ended : status;
}

static void run_daemon_pe(const crew *c, int pe, void *context)
{
    (void)context;
    (void)setenv("WEFT_LOG", "error", 1);
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++) {
        (void)close(standard);
    }
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, use_without_standard(), start);
}

static void test_no_standard_descriptors(void **state)
{
    (void)state;
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    for (int pes = 1; pes <= PES; pes++) {
        deadline_ns = load_patience_ns(DEADLINE_NS);
        crew_start(&c, pes, &random, run_daemon_pe, NULL);
        for (int i = 0; i < pes; i++) {
            CHECK(crew_hear(&c, &report, until_ns));
            CHECK_SAY(report.status == WEFT_OK, "PE %d of %d got %s: %s", report.pe, pes,
                      weft_status_name(report.status), report.text);
        }
        crew_end(&c);
    }
}

/* From now on this process gets no record locks. Returns 0 where that cannot be had. */
static int lose_locks(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    struct flock lock = {.l_type = F_RDLCK, .l_len = 1};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
           fcntl(STDIN_FILENO, F_SETLK, &lock) != 0 && errno == ENOLCK;
}

/* The last PE has no locks and is late, where nobody has a deadline. */
static void run_unseen_pe(const crew *c, int pe, void *context)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    (void)context;
    config.deadline_ns = WEFT_FOREVER;
    config.heap_max_bytes = 8 * MIB;
    uint64_t start = wefti_os_now_ns();
    weft_status status = pe < PES - 1 || lose_locks() ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
    if (status == WEFT_OK) {
        status = weft_world_create(&config, &world);
    }
    if (status == WEFT_OK) {
        if (pe == PES - 1) {
            wefti_os_sleep_ns(1000 * WEFTI_MILLISECOND_NS); /* the others look at it every 100 ms */
        }
        status = weft_barrier(world);
        weft_status ended = weft_world_destroy(world);
        status = status == WEFT_OK ? ended : status;
    }
    crew_tell(c, pe, 1, status, start);
}

static void test_locks_that_are_refused(void **state)
{
    (void)state;
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    int is_possible = 1;
    crew_start(&c, PES, &random, run_unseen_pe, NULL);
    for (int i = 0; i < PES && is_possible; i++) {
        CHECK(crew_hear(&c, &report, until_ns));
        is_possible = report.status != WEFT_ERR_UNSUPPORTED;
        CHECK_SAY(report.status == WEFT_OK || !is_possible, "PE %d got %s: %s", report.pe,
                  weft_status_name(report.status), report.text);
    }
    crew_end(&c);
    if (!is_possible) {
        print_message("no filter of system calls here\n");
        skip();
    }
}

static void run_rich_pe(const crew *c, int pe, void *context)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    config.deadline_ns = deadline_ns;
    config.heap_bytes = *(const uint64_t *)context;
    config.heap_max_bytes = config.heap_bytes;
    uint64_t start = wefti_os_now_ns();
    crew_tell(c, pe, 1, weft_world_create(&config, &world), start);
}

static void test_heaps_together(void **state)
{
    (void)state;
    crew c;
    crew_report report;
    uint64_t random = test_seed();
    uint64_t until_ns = wefti_os_now_ns() + load_patience_ns(20000 * WEFTI_MILLISECOND_NS);
    uint64_t heap_bytes = wefti_os_memory_available_bytes() / 5 * 2;
    deadline_ns = load_patience_ns(DEADLINE_NS);
    crew_start(&c, PES, &random, run_rich_pe, &heap_bytes);
    for (int i = 0; i < PES; i++) {
        CHECK(crew_hear(&c, &report, until_ns));
        CHECK_SAY(report.status == WEFT_ERR_MEMORY && strstr(report.text, "lower heap_bytes") != NULL,
                  "PE %d got %s: %s", report.pe, weft_status_name(report.status), report.text);
    }
    crew_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_descriptors),
                                       CHECKED_TEST(test_descriptors_of_strangers),
                                       CHECKED_TEST(test_address_space),
                                       CHECKED_TEST(test_file_size),
                                       CHECKED_TEST(test_log_without_reader),
                                       CHECKED_TEST(test_no_standard_descriptors),
                                       CHECKED_TEST(test_locks_that_are_refused),
                                       CHECKED_TEST(test_heaps_together)};
    setenv("WEFT_LOG", "none", 1);
    unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
