/* tools/weftrun/child.c: one PE's process. */
#include "tools/weftrun/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the child, between fork and exec ---- */

/* Pin to the PE's core, of those that weftrun itself may use. PEs that all get equal shares are pinned unasked: left
 * floating, they are for long times more on one core than on another, and those who wait for them wait that much
 * longer. */
static void bind_to_core(const run_options *options, int pe)
{
    cpu_set_t allowed;
    if (options->binding == RUN_FLOAT || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    int cores = CPU_COUNT(&allowed);
    if (options->binding == RUN_BIND_SHARES && (options->pes <= cores || options->pes % cores != 0)) {
        return;
    }
    int left = pe % cores;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && left-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

static int set_environment(const run_child_setting *setting, int pe)
{
    char number[16];
    char count[16];
    (void)snprintf(number, sizeof number, "%d", pe);
    (void)snprintf(count, sizeof count, "%d", setting->options->pes);
    int failed = setenv("WEFT_LOCAL_JOB", setting->job, 1) || setenv("WEFT_LOCAL_PE", number, 1) ||
                 setenv("WEFT_LOCAL_PES", count, 1);
    for (size_t i = 0; i < setting->options->assignment_count; i++) {
        failed = failed || putenv(setting->options->assignments[i]) != 0;
    }
    return !failed;
}

/* PE 0 gets standard input, the others an empty one. */
static int set_input(const run_child_setting *setting, int pe)
{
    if (pe == 0) {
        return setting->input < 0 || dup2(setting->input, STDIN_FILENO) >= 0;
    }
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0;
}

static int set_outputs(int output, int error)
{
    return output < 0 || (dup2(output, STDOUT_FILENO) >= 0 && dup2(error, STDERR_FILENO) >= 0);
}

static void restore_limits_and_signals(const run_child_setting *setting)
{
    struct rlimit files;
    sigset_t none;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = (rlim_t)setting->files_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become_program(const run_child_setting *setting, int pe, pid_t weftrun, int output, int error)
{
    int ready = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (getppid() != weftrun) {
        _exit(1); /* weftrun died before it could be noticed */
    }
    ready = ready && set_environment(setting, pe) && set_input(setting, pe) && set_outputs(output, error);
    if (ready) {
        restore_limits_and_signals(setting);
        bind_to_core(setting->options, pe);
        (void)execvp(setting->options->program[0], setting->options->program);
    }
    int code = errno;
    ssize_t wrote = write(setting->trouble, &code, sizeof code);
    _exit(wrote == sizeof code && code == ENOENT ? 127 : 126);
}

/* ---- in weftrun ---- */

/* A pipe whose reading end does not block. With --raw: none. */
static int make_pipe(const run_options *options, int ends[2])
{
    ends[0] = ends[1] = -1;
    if (options->is_raw) {
        return 1;
    }
    return pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static void close_end(int end)
{
    if (end >= 0) {
        (void)close(end);
    }
}

static int launch(run_child *child, const run_child_setting *setting, int pe, int output, int error)
{
    pid_t weftrun = getpid();
    child->pid = fork();
    if (child->pid < 0) {
        return 0;
    }
    if (child->pid == 0) {
        become_program(setting, pe, weftrun, output, error);
    }
    (void)setpgid(child->pid, child->pid); /* the child does so too: whoever comes first */
    child->pidfd = pidfd_open(child->pid, 0);
    if (child->pidfd < 0) {
        int failure = errno;
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
        errno = failure;
        return 0;
    }
    return 1;
}

int run_child_start(run_child *child, const run_child_setting *setting, int pe)
{
    int output[2] = {-1, -1};
    int error[2] = {-1, -1};
    child->pidfd = -1;
    int started = make_pipe(setting->options, output) && make_pipe(setting->options, error) &&
                  launch(child, setting, pe, output[1], error[1]);
    int failure = errno;
    close_end(output[1]);
    close_end(error[1]);
    if (!started) {
        close_end(output[0]);
        close_end(error[0]);
        errno = failure;
        return 0;
    }
    child->output = output[0];
    child->error = error[0];
    return 1;
}
