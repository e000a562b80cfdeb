/* testing/sim/thread.c: threads, monitors and what belongs to a thread, for os/os.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "testing/sim/sanitizer.h"
#include "testing/sim/sim.h"

#define STACK_BYTES ((size_t)(WEFTI_ASAN || WEFTI_TSAN ? 512 : 128) << 10)

static wefti_sim *running_sim(void)
{
    wefti_sim *sim = wefti_sim_current;
    return sim != NULL && sim->running != NULL ? sim : NULL;
}

/* ---- threads ---- */

struct wefti_os_thread {
    wefti_fiber *fiber;
};

weft_status wefti_os_thread_start(wefti_os_thread **thread, void (*body)(void *argument), void *argument)
{
    wefti_sim *sim = running_sim();
    wefti_os_thread *started = wefti_alloc_zeroed(1, sizeof *started);
    wefti_stacks stack = {0};
    if (sim == NULL || started == NULL || !wefti_stacks_init(&stack, 1, STACK_BYTES, 1)) {
        wefti_free(started);
        return wefti_error(WEFT_ERR_SYSTEM, "cannot start a simulated thread");
    }
    started->fiber = wefti_fiber_create(sim, sim->running->pe, wefti_stacks_at(&stack, 0), STACK_BYTES);
    started->fiber->skew_ns = sim->running->skew_ns; /* a process has one clock */
    started->fiber->own_stack = stack;
    started->fiber->body = body;
    started->fiber->argument = argument;
    started->fiber->horizon = sim->seq;
    started->fiber->owned_count = sim->running->owned_count;
    memcpy(started->fiber->owned, sim->running->owned, sizeof started->fiber->owned);
    wefti_memory_drain(sim, sim->running);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_START, (uint64_t)started->fiber->number, 0);
    wefti_fiber_ready(sim, started->fiber);
    *thread = started;
    wefti_sim_step(sim);
    return WEFT_OK;
}

void wefti_os_thread_join(wefti_os_thread *thread)
{
    wefti_sim *sim = running_sim();
    wefti_fiber *fiber = thread->fiber;
    while (fiber->state < WEFTI_FIBER_DONE) {
        fiber->joiner = sim->running;
        sim->running->what = "a thread to end";
        sim->running->what_at = WEFTI_NOWHERE;
        (void)wefti_sim_block(sim, WEFTI_FIBER_JOINING, UINT64_MAX);
    }
    fiber->joiner = NULL;
    wefti_memory_drain(sim, fiber);
    wefti_memory_acquire_all(sim, sim->running);
    wefti_free(thread);
}

/* ---- monitors ---- */

struct wefti_os_monitor {
    const wefti_fiber *owner;
    wefti_fiber *first; /* fibers that want to enter, or wait inside */
    wefti_fiber *last;
};

int wefti_sim_monitor_is_free(const wefti_os_monitor *monitor)
{
    return monitor->owner == NULL;
}

weft_status wefti_os_monitor_create(wefti_os_monitor **monitor)
{
    wefti_os_monitor *created = wefti_alloc_zeroed(1, sizeof *created);
    if (created == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a monitor");
    }
    *monitor = created;
    return WEFT_OK;
}

void wefti_os_monitor_destroy(wefti_os_monitor *monitor)
{
    wefti_free(monitor);
}

static void append(wefti_os_monitor *monitor, wefti_fiber *fiber)
{
    fiber->next_in_monitor = NULL;
    if (monitor->last != NULL) {
        monitor->last->next_in_monitor = fiber;
    } else {
        monitor->first = fiber;
    }
    monitor->last = fiber;
}

static void removed(wefti_os_monitor *monitor, wefti_fiber *fiber)
{
    wefti_fiber *before = NULL;
    wefti_fiber *at = monitor->first;
    while (at != NULL && at != fiber) {
        before = at;
        at = at->next_in_monitor;
    }
    if (at == NULL) {
        return;
    }
    if (before != NULL) {
        before->next_in_monitor = fiber->next_in_monitor;
    } else {
        monitor->first = fiber->next_in_monitor;
    }
    monitor->last = monitor->last == fiber ? before : monitor->last;
}

static void take(wefti_sim *sim, wefti_os_monitor *monitor)
{
    wefti_fiber *self = sim->running;
    while (monitor->owner != NULL) {
        append(monitor, self);
        self->what = "a lock";
        self->what_at = WEFTI_NOWHERE;
        (void)wefti_sim_block(sim, WEFTI_FIBER_ENTERING, UINT64_MAX);
    }
    monitor->owner = self;
    self->held++;
    wefti_memory_drain(sim, self);
    wefti_memory_acquire_all(sim, self);
}

void wefti_os_monitor_enter(wefti_os_monitor *monitor)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL) {
        return;
    }
    wefti_sim_step(sim);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_LOCK, 0, 1);
    take(sim, monitor);
}

/* One that wants to enter may, now that nobody is inside. */
static void give(wefti_sim *sim, wefti_os_monitor *monitor)
{
    wefti_fiber *self = sim->running;
    wefti_memory_drain(sim, self);
    sim->progress++;
    monitor->owner = NULL;
    self->held--;
    for (wefti_fiber *at = monitor->first; at != NULL; at = at->next_in_monitor) {
        if (at->state == WEFTI_FIBER_ENTERING) {
            removed(monitor, at);
            wefti_sim_wake(sim, at);
            return;
        }
    }
}

void wefti_os_monitor_leave(wefti_os_monitor *monitor)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL) {
        return;
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_LOCK, 0, 0);
    give(sim, monitor);
    if (sim->running->doomed && sim->running->held == 0) {
        wefti_sim_end_fiber(sim, WEFTI_FIBER_DEAD);
    }
    wefti_sim_step(sim);
}

int wefti_os_monitor_wait(wefti_os_monitor *monitor, uint64_t until_ns)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL) {
        return 0;
    }
    wefti_fiber *self = sim->running;
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t wake_ns = until_ns <= now_ns ? sim->now_ns : sim->now_ns + (until_ns - now_ns);
    give(sim, monitor);
    append(monitor, self);
    self->what = "a notification";
    self->what_at = WEFTI_NOWHERE;
    int timed_out = wefti_sim_block(sim, WEFTI_FIBER_WAITING, wake_ns);
    removed(monitor, self);
    if (timed_out) {
        wefti_sim_step(sim); /* others may be inside by the time that it is */
    }
    take(sim, monitor);
    return !timed_out;
}

void wefti_os_monitor_notify_all(wefti_os_monitor *monitor)
{
    wefti_sim *sim = running_sim();
    if (sim == NULL) {
        return;
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_NOTIFY, 0, 0);
    sim->progress++;
    wefti_fiber *next;
    for (wefti_fiber *at = monitor->first; at != NULL; at = next) {
        next = at->next_in_monitor;
        if (at->state == WEFTI_FIBER_WAITING) {
            removed(monitor, at);
            wefti_sim_wake(sim, at);
        }
    }
}

/* ---- what belongs to a thread ---- */

static _Thread_local wefti_thread_state outside;

wefti_thread_state *wefti_thread_state_own(void)
{
    wefti_sim *sim = running_sim();
    return sim == NULL ? &outside : &sim->running->thread_state;
}
