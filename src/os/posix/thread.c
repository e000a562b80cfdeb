/* os/posix/thread.c: threads, monitors and what belongs to a thread. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/durations.h"
#include "base/thread_state.h"
#include "os/os.h"

struct wefti_os_thread {
    pthread_t handle;
    void (*body)(void *argument);
    void *argument;
    int log_level; /* of the thread that starts it */
};

static void *run_body(void *thread)
{
    wefti_os_thread *self = thread;
    *wefti_thread_log_level() = self->log_level;
    self->body(self->argument);
    return NULL;
}

/* Signals meant for the program are not to land on the library's threads; those that a thread causes itself are. */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&blocked, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

weft_status wefti_os_thread_start(wefti_os_thread **thread, void (*body)(void *argument), void *argument)
{
    wefti_os_thread *started = wefti_alloc_zeroed(1, sizeof *started);
    if (started == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a thread's record");
    }
    started->body = body;
    started->argument = argument;
    started->log_level = *wefti_thread_log_level();

    sigset_t before;
    block_signals(&before);
    int error =
        wefti_fault("pthread_create", EAGAIN) ? EAGAIN : pthread_create(&started->handle, NULL, run_body, started);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        wefti_free(started);
        return wefti_error(WEFT_ERR_SYSTEM, "cannot start a thread: %s; look at the limits on processes (ulimit -u)",
                           strerror(error));
    }
    *thread = started;
    return WEFT_OK;
}

void wefti_os_thread_join(wefti_os_thread *thread)
{
    pthread_join(thread->handle, NULL);
    wefti_free(thread);
}

struct wefti_os_monitor {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

/* The condition's deadlines are on the monotonic clock. Returns 0 or an error number. */
static int condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) {
        error = wefti_fault("pthread_cond_init", ENOMEM) ? ENOMEM : pthread_cond_init(condition, &attributes);
    }
    pthread_condattr_destroy(&attributes);
    return error;
}

weft_status wefti_os_monitor_create(wefti_os_monitor **monitor)
{
    wefti_os_monitor *created = wefti_alloc_zeroed(1, sizeof *created);
    if (created == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a monitor");
    }
    int error = wefti_fault("pthread_mutex_init", ENOMEM) ? ENOMEM : pthread_mutex_init(&created->mutex, NULL);
    if (error != 0) {
        goto free_record;
    }
    error = condition_init(&created->condition);
    if (error != 0) {
        goto destroy_mutex;
    }
    *monitor = created;
    return WEFT_OK;

destroy_mutex:
    pthread_mutex_destroy(&created->mutex);
free_record:
    wefti_free(created);
    return wefti_error(WEFT_ERR_SYSTEM, "cannot make a mutex and a condition: %s; the system lacks memory",
                       strerror(error));
}

void wefti_os_monitor_destroy(wefti_os_monitor *monitor)
{
    if (monitor == NULL) {
        return;
    }
    pthread_cond_destroy(&monitor->condition);
    pthread_mutex_destroy(&monitor->mutex);
    wefti_free(monitor);
}

void wefti_os_monitor_enter(wefti_os_monitor *monitor)
{
    pthread_mutex_lock(&monitor->mutex);
}

void wefti_os_monitor_leave(wefti_os_monitor *monitor)
{
    pthread_mutex_unlock(&monitor->mutex);
}

int wefti_os_monitor_wait(wefti_os_monitor *monitor, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / WEFTI_SECOND_NS),
                             .tv_nsec = (long)(until_ns % WEFTI_SECOND_NS)};
    return pthread_cond_timedwait(&monitor->condition, &monitor->mutex, &until) != ETIMEDOUT;
}

void wefti_os_monitor_notify_all(wefti_os_monitor *monitor)
{
    pthread_cond_broadcast(&monitor->condition);
}
