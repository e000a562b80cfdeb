/* tools/weftrun/job.c: the processes of a job, from their start to the end of the last.
 *
 * One loop waits for everything: signals (a signalfd), the ends of processes (a pidfd each), their output, time. */
#include "tools/weftrun/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pe_list.h"
#include "os/os.h"
#include "tools/weftrun/child.h"
#include "tools/weftrun/input.h"
#include "tools/weftrun/output.h"
#include "world/timeline.h"

#define EXIT_LOST 1
#define EXIT_TIMEOUT 124
#define EXIT_CANNOT_START 126
#define EXIT_NOT_FOUND 127

typedef struct run_job {
    const run_options *options;
    run_child_setting setting;
    run_child *children;
    run_source *sources; /* output and error of each child */
    struct pollfd *polls; /* signals, start errors, input (2), sinks (2), then three a child */
    int started;
    int running;
    int is_ending;
    int code; /* to exit with */
    uint64_t timeout_ns; /* when the job has lasted too long; 0: never */
    uint64_t kill_ns; /* when to send SIGKILL, once the job is ending; 0: it was sent */
    int signals;
    int trouble; /* the pipe's end to read */
    run_sink out;
    run_sink err;
    run_input input;
} run_job;

enum { ITEM_SIGNALS, ITEM_TROUBLE, ITEM_INPUT, ITEM_INPUT_SPACE, ITEM_OUT, ITEM_ERR, ITEM_CHILDREN };

/* ---- ending ---- */

static void signal_all(const run_job *job, int number, int whole_group)
{
    for (int pe = 0; pe < job->started; pe++) {
        if (job->children[pe].pidfd >= 0) {
            (void)kill(whole_group ? -job->children[pe].pid : job->children[pe].pid, number);
        }
    }
}

static void end_all(run_job *job)
{
    if (!job->is_ending) {
        job->is_ending = 1;
        job->kill_ns = wefti_os_now_ns() + job->options->kill_after_ns;
        signal_all(job, SIGTERM, 1);
        signal_all(job, SIGCONT, 1);
    }
}

static int code_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Say how a PE failed. What follows from an earlier failure is not worth a line. */
static void report(run_job *job, int pe)
{
    int wait_status = job->children[pe].wait_status;
    int others = job->running > 0;
    const char *then = !others ? "" : job->options->keeps_going ? "; the others go on" : "; ending the others";
    if (WIFSIGNALED(wait_status)) {
        int number = WTERMSIG(wait_status);
        (void)fprintf(stderr, "weftrun: PE %d was killed by signal %d (%s)%s\n", pe, number, strsignal(number), then);
    } else {
        (void)fprintf(stderr, "weftrun: PE %d exited with code %d%s\n", pe, WEXITSTATUS(wait_status), then);
    }
}

/* Read what a child wrote that could not start its program: its errno. */
static void read_start_error(run_job *job)
{
    int error;
    ssize_t got = read(job->trouble, &error, sizeof error);
    if (got == 0) {
        /* Every process runs its program now: a pipe without a writer would wake the loop for ever. */
        (void)close(job->trouble);
        job->trouble = -1;
    }
    if (got != sizeof error || job->is_ending) {
        return;
    }
    (void)fprintf(stderr, "weftrun: cannot start %s: %s\n", job->options->program[0], strerror(error));
    job->code = error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_START;
    end_all(job);
}

/* A process has ended: collect it, and what it left behind in its process group. */
static void collect(run_job *job, int pe)
{
    run_child *child = &job->children[pe];
    (void)kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &child->wait_status, 0) < 0 && errno == EINTR) {
    }
    (void)close(child->pidfd);
    child->pidfd = -1;
    job->running--;
    read_start_error(job); /* it comes before the end of the process, but may be seen after it */
    if (child->wait_status == 0 || job->is_ending) {
        return;
    }
    run_source_read(&job->sources[2 * pe + 1]); /* what it wrote last comes before our report */
    run_sink_flush(&job->err);
    report(job, pe);
    if (job->code == 0) {
        job->code = code_of(child->wait_status);
    }
    if (!job->options->keeps_going) {
        end_all(job);
    }
}

/* ---- signals and time ---- */

static void pass_signals(run_job *job)
{
    struct signalfd_siginfo got;
    while (read(job->signals, &got, sizeof got) == sizeof got) {
        int is_for_group = got.ssi_signo != SIGUSR1 && got.ssi_signo != SIGUSR2;
        signal_all(job, (int)got.ssi_signo, is_for_group);
        if (is_for_group) {
            signal_all(job, SIGCONT, 1); /* a stopped process acts on no other signal before this one */
        }
    }
}

static void report_timeout(const run_job *job)
{
    char list[WEFTI_PE_LIST_BYTES];
    unsigned char *marks = calloc((size_t)job->options->pes, 1);
    if (marks == NULL) {
        return;
    }
    for (int pe = 0; pe < job->started; pe++) {
        marks[pe] = job->children[pe].pidfd >= 0;
    }
    int count = wefti_pe_list_text(marks, job->options->pes, 1, list);
    (void)fprintf(stderr, "weftrun: the time limit of %g s has passed; ending %s, still running\n",
                  (double)job->options->timeout_ns * 1e-9, count == 0 ? "what is left" : list);
    free(marks);
}

static void check_time(run_job *job)
{
    uint64_t now_ns = wefti_os_now_ns();
    if (!job->is_ending && job->timeout_ns != 0 && now_ns >= job->timeout_ns) {
        report_timeout(job);
        job->code = EXIT_TIMEOUT;
        end_all(job);
    }
    if (job->is_ending && job->kill_ns != 0 && now_ns >= job->kill_ns) {
        job->kill_ns = 0;
        signal_all(job, SIGKILL, 1);
    }
}

/* ---- the loop ---- */

static struct timespec time_left(const run_job *job)
{
    uint64_t until_ns = job->is_ending ? job->kill_ns : job->timeout_ns;
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t left_ns = until_ns == 0 ? UINT64_C(3600000000000) : until_ns > now_ns ? until_ns - now_ns : 0;
    return (struct timespec){.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)};
}

static struct pollfd watch_source(const run_source *source)
{
    return (struct pollfd){.fd = run_sink_is_full(source->sink) ? -1 : source->descriptor, .events = POLLIN};
}

static void wait_for_any(run_job *job)
{
    struct timespec left = time_left(job);
    nfds_t count = ITEM_CHILDREN + 3 * (nfds_t)job->started;
    job->polls[ITEM_SIGNALS] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    job->polls[ITEM_TROUBLE] = (struct pollfd){.fd = job->trouble, .events = POLLIN};
    run_input_watch(&job->input, &job->polls[ITEM_INPUT], &job->polls[ITEM_INPUT_SPACE]);
    job->polls[ITEM_OUT] =
        (struct pollfd){.fd = run_sink_is_empty(&job->out) ? -1 : job->out.descriptor, .events = POLLOUT};
    job->polls[ITEM_ERR] =
        (struct pollfd){.fd = run_sink_is_empty(&job->err) ? -1 : job->err.descriptor, .events = POLLOUT};
    for (int pe = 0; pe < job->started; pe++) {
        struct pollfd *mine = &job->polls[ITEM_CHILDREN + 3 * pe];
        mine[0] = (struct pollfd){.fd = job->children[pe].pidfd, .events = POLLIN};
        mine[1] = watch_source(&job->sources[2 * pe]);
        mine[2] = watch_source(&job->sources[2 * pe + 1]);
    }
    if (ppoll(job->polls, count, &left, NULL) < 0) {
        for (nfds_t i = 0; i < count; i++) {
            job->polls[i].revents = 0;
        }
    }
}

static void serve(run_job *job)
{
    if (job->polls[ITEM_SIGNALS].revents != 0) {
        pass_signals(job);
    }
    if (job->polls[ITEM_TROUBLE].revents != 0) {
        read_start_error(job);
    }
    run_input_move(&job->input, job->polls[ITEM_INPUT].revents, job->polls[ITEM_INPUT_SPACE].revents);
    for (int pe = 0; pe < job->started; pe++) {
        const struct pollfd *mine = &job->polls[ITEM_CHILDREN + 3 * pe];
        if (mine[1].revents != 0) {
            run_source_read(&job->sources[2 * pe]);
        }
        if (mine[2].revents != 0) {
            run_source_read(&job->sources[2 * pe + 1]);
        }
        if (mine[0].revents != 0) {
            collect(job, pe);
        }
    }
    run_sink_flush(&job->out);
    run_sink_flush(&job->err);
    check_time(job);
}

/* A job whose output is lost, for example on a full disk, has failed. */
static void report_lost_output(run_job *job)
{
    int error = job->out.error != 0 ? job->out.error : job->err.error;
    if (error != 0) {
        (void)fprintf(stderr, "weftrun: cannot write what the PEs wrote: %s; look at where its own output goes\n",
                      strerror(error));
        job->code = job->code == 0 ? EXIT_LOST : job->code;
    }
}

static void run_to_end(run_job *job)
{
    while (job->running > 0) {
        wait_for_any(job);
        serve(job);
    }
    for (int i = 0; i < 2 * job->started; i++) {
        run_source_drain(&job->sources[i]);
    }
    while (!run_sink_is_empty(&job->out) || !run_sink_is_empty(&job->err)) {
        wait_for_any(job);
        serve(job);
    }
}

/* ---- the start ---- */

static int make_job_name(run_job *job)
{
    unsigned char random[8 + 32];
    size_t used = 0;
    if (wefti_os_random(random, sizeof random) != WEFT_OK) {
        return 0;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        used += (size_t)snprintf(job->setting.job + used, sizeof job->setting.job - used, i == 8 ? ":%02x" : "%02x",
                                 random[i]);
    }
    return 1;
}

/* Three descriptors a PE: take what the system allows. */
static void allow_files(run_job *job)
{
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    job->setting.files_max = (long)files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static int block_signals(run_job *job)
{
    sigset_t set;
    (void)sigemptyset(&set);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)sigaddset(&set, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    job->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return job->signals >= 0;
}

static int init(run_job *job, const run_options *options)
{
    size_t pes = (size_t)options->pes;
    int trouble[2] = {-1, -1};
    memset(job, 0, sizeof *job);
    job->options = options;
    job->setting.options = options;
    job->timeout_ns = options->timeout_ns == 0 ? 0 : wefti_os_now_ns() + options->timeout_ns;
    run_sink_init(&job->out, STDOUT_FILENO);
    run_sink_init(&job->err, STDERR_FILENO);
    allow_files(job);
    int ready = block_signals(job) && pipe2(trouble, O_CLOEXEC | O_NONBLOCK) == 0 && make_job_name(job) &&
                run_input_init(&job->input, &job->setting.input);
    job->trouble = trouble[0];
    job->setting.trouble = trouble[1];
    job->children = calloc(pes, sizeof *job->children);
    job->sources = calloc(2 * pes, sizeof *job->sources);
    job->polls = calloc(ITEM_CHILDREN + 3 * pes, sizeof *job->polls);
    return ready && job->children != NULL && job->sources != NULL && job->polls != NULL;
}

static void fini(run_job *job)
{
    for (int i = 0; job->sources != NULL && i < 2 * job->started; i++) {
        run_source_fini(&job->sources[i]);
    }
    run_input_fini(&job->input);
    run_sink_fini(&job->out);
    run_sink_fini(&job->err);
    free(job->children);
    free(job->sources);
    free(job->polls);
}

static void start_all(run_job *job)
{
    while (job->started < job->options->pes) {
        int pe = job->started;
        if (!run_child_start(&job->children[pe], &job->setting, pe)) {
            (void)fprintf(stderr, "weftrun: cannot start PE %d of %d: %s; look at ulimit -u and -n\n", pe,
                          job->options->pes, strerror(errno));
            job->code = EXIT_CANNOT_START;
            end_all(job);
            break;
        }
        const int prefix = job->options->is_plain ? -1 : pe;
        run_source_init(&job->sources[2 * pe], job->children[pe].output, &job->out, prefix);
        run_source_init(&job->sources[2 * pe + 1], job->children[pe].error, &job->err, prefix);
        job->started++;
        job->running++;
    }
    (void)close(job->setting.trouble);
    run_input_started(&job->input, job->setting.input);
}

/* PEs add to the timeline that WEFT_TRACE names; that of an earlier job makes place for this one's. */
static void discard_timeline(const run_options *options)
{
    static const char name[] = "WEFT_TRACE=";
    const char *path = getenv("WEFT_TRACE");
    for (size_t i = 0; i < options->assignment_count; i++) {
        if (strncmp(options->assignments[i], name, strlen(name)) == 0) {
            path = options->assignments[i] + strlen(name);
        }
    }
    if (path != NULL && path[0] != '\0') {
        wefti_timeline_discard(path);
    }
}

int run_job_run(const run_options *options)
{
    run_job job;
    if (!init(&job, options)) {
        (void)fprintf(stderr, "weftrun: cannot begin: %s; look at ulimit -n\n", strerror(errno));
        job.code = EXIT_CANNOT_START;
    } else {
        discard_timeline(options);
        start_all(&job);
        run_to_end(&job);
        report_lost_output(&job);
    }
    fini(&job);
    return job.code;
}
