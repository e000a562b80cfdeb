/* Goal: weftrun starts what it says, passes on input, output and signals, reports who failed and why, keeps its times,
 * and leaves no process behind whatever happens to it.
 * Method: runs it on small shell scripts and reads what comes out. This process adopts orphans, so a process that
 * outlives weftrun turns up as a child here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/load.h"

#define WEFTRUN WEFT_BUILD_DIR "/weftrun"
#define TEXT_MAX (64 << 20)

/* ---- running weftrun ---- */

typedef struct text {
    char *bytes; /* ends with a zero */
    size_t count;
    size_t capacity;
    int from; /* the reading end of a pipe; -1: at its end */
} text;

typedef struct run {
    pid_t pid;
    int input; /* the writing end of its standard input */
    text out;
    text err;
    int code; /* exit code; 1000 + signal if it was killed */
    uint64_t ns;
} run;

static void open_text(text *t, int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    t->capacity = 1 << 16;
    t->bytes = calloc(1, t->capacity);
    t->count = 0;
    t->from = ends[0];
}

static void read_text(text *t)
{
    char bytes[65536];
    ssize_t got = read(t->from, bytes, sizeof bytes);
    if (got <= 0) {
        (void)close(t->from);
        t->from = -1;
        return;
    }
    if (t->count + (size_t)got + 1 > t->capacity) {
        t->capacity = 2 * (t->count + (size_t)got + 1);
        t->bytes = realloc(t->bytes, t->capacity);
    }
    memcpy(t->bytes + t->count, bytes, (size_t)got);
    t->count += (size_t)got;
    t->bytes[t->count] = '\0';
    assert_true(t->count < TEXT_MAX);
}

static void start(run *r, const char *const *arguments)
{
    const char *all[32] = {WEFTRUN};
    int input[2];
    int out[2];
    int err[2];
    for (int i = 0; arguments[i] != NULL; i++) {
        all[i + 1] = arguments[i];
    }
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    open_text(&r->out, out);
    open_text(&r->err, err);
    r->ns = wefti_os_now_ns();
    r->pid = fork();
    if (r->pid == 0) {
        (void)dup2(input[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(err[1], STDERR_FILENO);
        (void)execv(WEFTRUN, (char *const *)(uintptr_t)all);
        _exit(99);
    }
    (void)close(input[0]);
    (void)close(out[1]);
    (void)close(err[1]);
    r->input = input[1];
}

static void read_one(run *r)
{
    struct pollfd items[2] = {{.fd = r->out.from, .events = POLLIN}, {.fd = r->err.from, .events = POLLIN}};
    assert_true(poll(items, 2, 60000) > 0);
    if (items[0].revents != 0) {
        read_text(&r->out);
    }
    if (items[1].revents != 0) {
        read_text(&r->err);
    }
}

/* Read until standard output holds `wanted`. */
static void await(run *r, const char *wanted)
{
    while (strstr(r->out.bytes, wanted) == NULL) {
        assert_true(r->out.from >= 0);
        read_one(r);
    }
}

static void collect(run *r)
{
    int wait_status;
    assert_int_equal(waitpid(r->pid, &wait_status, 0), r->pid);
    r->ns = wefti_os_now_ns() - r->ns;
    r->code = WIFSIGNALED(wait_status) ? 1000 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Every process that weftrun started has ended. When weftrun was killed, they may take a moment. */
static void assert_nobody_left(void)
{
    for (int look = 0; look < 200; look++) {
        pid_t left = waitpid(-1, NULL, WNOHANG);
        if (left < 0) {
            assert_int_equal(errno, ECHILD);
            return;
        }
        wefti_os_sleep_ns(left > 0 ? 0 : WEFTI_SECOND_NS / 100);
    }
    fail_msg("a process outlived weftrun");
}

static void finish(run *r)
{
    (void)close(r->input);
    while (r->out.from >= 0 || r->err.from >= 0) {
        read_one(r);
    }
    collect(r);
    assert_nobody_left();
}

static void forget(run *r)
{
    free(r->out.bytes);
    free(r->err.bytes);
}

/* Run to the end: arguments up to NULL. */
#define RUN(r, ...)                                                                                                    \
    do {                                                                                                               \
        const char *const arguments[] = {__VA_ARGS__, NULL};                                                           \
        start(r, arguments);                                                                                           \
        finish(r);                                                                                                     \
    } while (0)

/* By hand: the sanitizers' strstr looks at the whole text each time. */
static int count_of(const char *whole, const char *part)
{
    int count = 0;
    for (const char *at = whole; *at != '\0'; at++) {
        size_t same = 0;
        while (part[same] != '\0' && at[same] == part[same]) {
            same++;
        }
        count += part[same] == '\0';
    }
    return count;
}

static void assert_has(const char *whole, const char *part)
{
    if (strstr(whole, part) == NULL) {
        fail_msg("\"%s\" is not in: %.2000s", part, whole);
    }
}

/* ---- output and input ---- */

static void prefixes_lines(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "sh", "-c", "echo one; echo two >&2; printf 'a\\n\\nb'; printf c >&2");
    assert_int_equal(r.code, 0);
    for (char pe = '0'; pe < '3'; pe++) {
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "[%c] one\n", pe);
        assert_has(r.out.bytes, wanted);
        (void)snprintf(wanted, sizeof wanted, "[%c] b\n", pe);
        assert_has(r.out.bytes, wanted);
        (void)snprintf(wanted, sizeof wanted, "[%c] two\n", pe);
        assert_has(r.err.bytes, wanted);
        (void)snprintf(wanted, sizeof wanted, "[%c] c\n", pe);
        assert_has(r.err.bytes, wanted);
    }
    assert_int_equal(count_of(r.out.bytes, "\n"), 12);
    assert_int_equal(count_of(r.err.bytes, "\n"), 6);
    forget(&r);
}

/* Lines of two PEs do not run into each other, and nothing is added to them. */
static void leaves_lines_as_they_are(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "--lines", "sh", "-c",
        "for i in 1 2 3 4 5 6 7 8 9; do printf left; sleep 0.01; echo right; echo wrong >&2; done; printf end");
    assert_int_equal(r.code, 0);
    assert_int_equal(count_of(r.out.bytes, "leftright\n"), 18);
    assert_int_equal(r.out.count, 18 * 10 + 2 * 3);
    assert_int_equal(count_of(r.err.bytes, "wrong\n"), 18);
    assert_int_equal(r.err.count, 18 * 6);
    forget(&r);
}

static void leaves_raw_output_alone(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "--raw", "sh", "-c", "printf x");
    assert_string_equal(r.out.bytes, "xx");
    forget(&r);
}

/* Far more than pipes hold, on both outputs of all PEs at once. */
static void does_not_choke_on_output(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "4", "sh", "-c", "seq 1 200000; seq 1 200000 >&2");
    assert_int_equal(r.code, 0);
    assert_int_equal(count_of(r.out.bytes, "\n"), 800000);
    assert_int_equal(count_of(r.err.bytes, "\n"), 800000);
    assert_int_equal(count_of(r.out.bytes, "] 200000\n"), 4);
    forget(&r);
}

/* weftrun is stopped while its PEs fill their pipes and end: what they left is more than a sink takes at once, and a
 * file takes all of that before weftrun looks again. */
static void reads_what_ended_processes_left(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "1", "--raw", "sh", "-c",
        "f=$(mktemp); " WEFTRUN " -n 8 sh -c 'sleep 1; seq 1 11000; printf end' > $f & p=$!; sleep 0.5; kill -STOP $p; "
        "sleep 1.5; kill -CONT $p; wait $p; wc -l < $f; grep -c '[]] end$' $f; rm $f");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out.bytes, "88008\n8\n");
    forget(&r);
}

static void breaks_no_long_line(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "sh", "-c", "head -c 500000 /dev/zero | tr '\\0' 'x'");
    assert_int_equal(r.out.count, 2 * (500000 + 5));
    assert_int_equal(count_of(r.out.bytes, "\n"), 2);
    forget(&r);
}

static void gives_input_to_the_first(void **state)
{
    (void)state;
    const char *const arguments[] = {"-n", "3", "sh", "-c", "cat; echo end", NULL};
    run r;
    start(&r, arguments);
    assert_int_equal(write(r.input, "hello\n", 6), 6);
    await(&r, "hello");
    finish(&r);
    assert_has(r.out.bytes, "[0] hello\n");
    assert_int_equal(count_of(r.out.bytes, "hello"), 1);
    assert_int_equal(count_of(r.out.bytes, "] end\n"), 3);
    forget(&r);
}

static void stops_when_nobody_reads(void **state)
{
    (void)state;
    const char *const arguments[] = {"-n", "2", "yes", NULL};
    run r;
    start(&r, arguments);
    await(&r, "[0] y\n");
    (void)close(r.out.from);
    r.out.from = -1;
    finish(&r);
    assert_int_equal(r.code, 128 + SIGPIPE);
    forget(&r);
}

static void says_that_output_is_lost(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "sh", "-c", "exec " WEFTRUN " -n 2 echo x > /dev/full");
    assert_int_equal(r.code, 1);
    assert_has(r.err.bytes, "weftrun: cannot write what the PEs wrote: No space left on device");
    forget(&r);
}

/* As daemons start it: with all but one of its standard descriptors, or with none. */
static void runs_without_outputs(void **state)
{
    (void)state;
    for (int closed = -1; closed <= STDERR_FILENO; closed++) {
        char script[256];
        const char *which = closed < 0 ? "<&- >&- 2>&-" : (const char *[]){"<&-", ">&-", "2>&-"}[closed];
        (void)snprintf(script, sizeof script, "exec timeout -s KILL 20 %s -n 2 sh -c 'echo one; echo two >&2' %s",
                       WEFTRUN, which);
        pid_t pid = fork();
        if (pid == 0) {
            (void)execl("/bin/sh", "sh", "-c", script, NULL);
            _exit(99);
        }
        int result = -1;
        assert_int_equal(waitpid(pid, &result, 0), pid);
        assert_int_equal(result, 0);
        assert_nobody_left();
    }
}

/* ---- what the processes are given ---- */

static void tells_the_job(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "-x", "COLOUR=dark blue", "sh", "-c",
        "echo $WEFT_LOCAL_PE of $WEFT_LOCAL_PES, $COLOUR, ${#WEFT_LOCAL_JOB}");
    assert_has(r.out.bytes, "[0] 0 of 2, dark blue, 81\n");
    assert_has(r.out.bytes, "[1] 1 of 2, dark blue, 81\n");
    forget(&r);
}

static void pins_to_cores(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "--bind", "sh", "-c", "grep Cpus_allowed_list /proc/self/status");
    assert_int_equal(count_of(r.out.bytes, "Cpus_allowed_list:"), 3);
    assert_int_equal(count_of(r.out.bytes, ","), 0);
    assert_int_equal(count_of(r.out.bytes, "-"), 0);
    forget(&r);
}

#define INFO WEFT_BUILD_DIR "/weft-info transports"

/* A program that one of the processes starts, as system() does, has inherited that one's place, in which nobody meets
 * it. It is told so at its deadline; not so a process of weftrun itself that nobody meets. */
static void tells_who_has_inherited_a_place(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "-x", "WEFT_DEADLINE=1", "sh", "-c", "[ $WEFT_LOCAL_PE = 1 ] || " INFO "; true");
    assert_has(r.err.bytes, "has inherited WEFT_LOCAL_JOB");
    forget(&r);
    RUN(&r, "-n", "2", "-x", "WEFT_DEADLINE=1", "sh", "-c", "[ $WEFT_LOCAL_PE = 1 ] || exec " INFO "; sleep 2");
    assert_has(r.err.bytes, "had not come");
    assert_int_equal(count_of(r.err.bytes, "inherited"), 0);
    forget(&r);
}

/* How many of the PEs have one core to themselves or to share, when as many as `pes` are started with `option`. */
static int pinned(int pes, const char *option)
{
    char count[16];
    run r;
    (void)snprintf(count, sizeof count, "%d", pes);
    RUN(&r, "-n", count, option, "sh", "-c", "grep -E 'Cpus_allowed_list:[^-,]*$' /proc/self/status || true");
    int found = count_of(r.out.bytes, "Cpus_allowed_list:");
    forget(&r);
    return found;
}

static void pins_equal_shares_unasked(void **state)
{
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int cores = CPU_COUNT(&allowed);
    if (cores < 2 || cores > 64) {
        skip(); /* one core is one core; too many processes */
    }
    assert_int_equal(pinned(2 * cores, "--raw"), 2 * cores);
    assert_int_equal(pinned(2 * cores, "--no-bind"), 0);
    assert_int_equal(pinned(cores, "--raw"), 0);
    assert_int_equal(pinned(2 * cores + 1, "--raw"), 0);
    assert_int_equal(pinned(2 * cores + 1, "--bind"), 2 * cores + 1);
}

/* ---- failure ---- */

static void ends_all_when_one_fails(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "4", "sh", "-c", "[ $WEFT_LOCAL_PE = 2 ] && exit 7; sleep 50");
    assert_int_equal(r.code, 7);
    assert_true(r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    assert_string_equal(r.err.bytes, "weftrun: PE 2 exited with code 7; ending the others\n");
    forget(&r);
}

static void names_the_signal(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "sh", "-c", "[ $WEFT_LOCAL_PE = 1 ] && kill -SEGV $$; sleep 50");
    assert_int_equal(r.code, 128 + SIGSEGV);
    assert_string_equal(r.err.bytes, "weftrun: PE 1 was killed by signal 11 (Segmentation fault); ending the others\n");
    forget(&r);
}

static void kills_who_does_not_end(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "--kill-after", "0.5", "sh", "-c",
        "[ $WEFT_LOCAL_PE = 0 ] && { sleep 0.3; exit 1; }; trap '' TERM; while :; do sleep 1; done");
    assert_int_equal(r.code, 1);
    assert_true(r.ns > WEFTI_SECOND_NS / 2 && r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    forget(&r);
}

static void lets_others_go_on(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "--keep-going", "sh", "-c", "[ $WEFT_LOCAL_PE = 0 ] && exit 3; sleep 0.3; echo done");
    assert_int_equal(r.code, 3);
    assert_int_equal(count_of(r.out.bytes, "done"), 2);
    assert_has(r.err.bytes, "weftrun: PE 0 exited with code 3; the others go on\n");
    forget(&r);
}

static void keeps_its_time(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "-t", "0.5", "sh", "-c", "[ $WEFT_LOCAL_PE = 1 ] || sleep 50");
    assert_int_equal(r.code, 124);
    assert_true(r.ns > WEFTI_SECOND_NS / 2 && r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    assert_string_equal(r.err.bytes, "weftrun: the time limit of 0.5 s has passed; ending PEs 0, 2, still running\n");
    forget(&r);
}

static void says_what_cannot_start(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "3", "./no-such-program");
    assert_int_equal(r.code, 127);
    assert_string_equal(r.err.bytes, "weftrun: cannot start ./no-such-program: No such file or directory\n");
    forget(&r);
    RUN(&r, "-n", "3", "/etc/passwd");
    assert_int_equal(r.code, 126);
    assert_string_equal(r.err.bytes, "weftrun: cannot start /etc/passwd: Permission denied\n");
    forget(&r);
}

static void explains_usage(void **state)
{
    (void)state;
    run r;
    RUN(&r, "--help");
    assert_int_equal(r.code, 0);
    assert_has(r.out.bytes, "usage: weftrun -n N");
    forget(&r);
    static const char *const wrong[][4] = {
        {"true", NULL}, {"-n", "0", "true", NULL}, {"-n", "2", NULL},         {"-n", "x", "true", NULL},
        {"-n", NULL},   {"--nonsense", NULL},      {"-t", "soon", "x", NULL}, {"-x", "NAME", "true", NULL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        start(&r, wrong[i]);
        finish(&r);
        assert_int_equal(r.code, 2);
        assert_has(r.err.bytes, "see weftrun --help");
        forget(&r);
    }
}

/* ---- signals, and what is left ---- */

static void passes_signals_on(void **state)
{
    (void)state;
    const char *const arguments[] = {
        "-n",
        "2",
        "sh",
        "-c",
        "trap 'echo usr1' USR1; trap 'echo int; exit 0' INT; echo ready; while :; do sleep 0.05; done",
        NULL};
    run r;
    start(&r, arguments);
    await(&r, "[0] ready");
    await(&r, "[1] ready");
    (void)kill(r.pid, SIGUSR1);
    await(&r, "[0] usr1");
    await(&r, "[1] usr1");
    (void)kill(r.pid, SIGINT);
    finish(&r);
    assert_int_equal(r.code, 0);
    assert_int_equal(count_of(r.out.bytes, "] int\n"), 2);
    forget(&r);
}

/* PEs that run a shell's script, which says "ready" first. */
static void tell_to_end(const char *script)
{
    const char *const arguments[] = {"-n", "3", "sh", "-c", script, NULL};
    run r;
    start(&r, arguments);
    await(&r, "[0] ready");
    await(&r, "[1] ready");
    await(&r, "[2] ready");
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 10); /* for them to stop, if they do */
    (void)kill(r.pid, SIGTERM);
    finish(&r);
    assert_int_equal(r.code, 128 + SIGTERM);
    assert_true(r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    forget(&r);
}

static void ends_when_told_to(void **state)
{
    (void)state;
    tell_to_end("echo ready; sleep 50");
    tell_to_end("echo ready; kill -STOP $$; sleep 50");
}

/* A PE that ends leaves a process of its own behind. */
static void ends_what_pes_left(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "2", "sh", "-c", "sleep 50 & echo left");
    assert_int_equal(r.code, 0);
    assert_true(r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    assert_int_equal(count_of(r.out.bytes, "left"), 2);
    forget(&r);
}

static void is_not_outlived(void **state)
{
    (void)state;
    const char *const arguments[] = {"-n", "3", "sleep", "50", NULL};
    run r;
    start(&r, arguments);
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 3);
    (void)kill(r.pid, SIGKILL);
    finish(&r);
    assert_int_equal(r.code, 1000 + SIGKILL);
    assert_true(r.ns < load_patience_ns(10 * WEFTI_SECOND_NS));
    forget(&r);
}

static void starts_many(void **state)
{
    (void)state;
    run r;
    RUN(&r, "-n", "150", "sh", "-c", "echo $WEFT_LOCAL_PE");
    assert_int_equal(r.code, 0);
    assert_int_equal(count_of(r.out.bytes, "\n"), 150);
    assert_has(r.out.bytes, "[149] 149\n");
    forget(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_lines),
        cmocka_unit_test(leaves_lines_as_they_are),
        cmocka_unit_test(leaves_raw_output_alone),
        cmocka_unit_test(does_not_choke_on_output),
        cmocka_unit_test(breaks_no_long_line),
        cmocka_unit_test(gives_input_to_the_first),
        cmocka_unit_test(reads_what_ended_processes_left),
        cmocka_unit_test(stops_when_nobody_reads),
        cmocka_unit_test(says_that_output_is_lost),
        cmocka_unit_test(runs_without_outputs),
        cmocka_unit_test(tells_the_job),
        cmocka_unit_test(tells_who_has_inherited_a_place),
        cmocka_unit_test(pins_to_cores),
        cmocka_unit_test(pins_equal_shares_unasked),
        cmocka_unit_test(ends_all_when_one_fails),
        cmocka_unit_test(names_the_signal),
        cmocka_unit_test(kills_who_does_not_end),
        cmocka_unit_test(lets_others_go_on),
        cmocka_unit_test(keeps_its_time),
        cmocka_unit_test(says_what_cannot_start),
        cmocka_unit_test(explains_usage),
        cmocka_unit_test(passes_signals_on),
        cmocka_unit_test(ends_when_told_to),
        cmocka_unit_test(ends_what_pes_left),
        cmocka_unit_test(is_not_outlived),
        cmocka_unit_test(starts_many),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
