/* testing/sim/scheduler.c: who runs next, and when nobody can.
 *
 * A fiber that gives way chooses its successor on its own stack and switches to it directly. When no fiber is ready,
 * waiting stores commit; then all paused fibers look once more, since one of them may wait for several words; then the
 * clock jumps. If a round of looks has changed nothing and nobody sleeps, that is a deadlock. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/sim/machine.h"
#include "testing/sim/sim.h"

_Thread_local wefti_sim *wefti_sim_current;

#define EDGE_EVENTS 16 /* of a wait that has come to its deadline */
#define EVENT_NS 32 /* the clock advances by up to this at each event */
#define SETTLE_NS 10000 /* a jump of more lets all see what has committed */
#define FAIR_ONE_IN 8 /* one choice in so many is not of the latest that became ready, which may only poll */
#define SPURIOUS_ONE_IN 512 /* events wake a paused fiber */

/* ---- timers: a heap by (wake_ns, number) ---- */

static int earlier(const wefti_fiber *a, const wefti_fiber *b)
{
    return a->wake_ns != b->wake_ns ? a->wake_ns < b->wake_ns : a->number < b->number;
}

static void timer_put(wefti_sim *sim, size_t at, wefti_fiber *fiber)
{
    sim->timers[at] = fiber;
    fiber->timer_index = (uint32_t)at + 1;
}

static void timer_up(wefti_sim *sim, size_t at, wefti_fiber *fiber)
{
    while (at > 0 && earlier(fiber, sim->timers[(at - 1) / 2])) {
        timer_put(sim, at, sim->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    timer_put(sim, at, fiber);
}

static void timer_down(wefti_sim *sim, size_t at, wefti_fiber *fiber)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->timer_count) {
            break;
        }
        if (child + 1 < sim->timer_count && earlier(sim->timers[child + 1], sim->timers[child])) {
            child++;
        }
        if (!earlier(sim->timers[child], fiber)) {
            break;
        }
        timer_put(sim, at, sim->timers[child]);
        at = child;
    }
    timer_put(sim, at, fiber);
}

static void timer_add(wefti_sim *sim, wefti_fiber *fiber, uint64_t wake_ns)
{
    fiber->wake_ns = wake_ns;
    timer_up(sim, sim->timer_count++, fiber);
}

static void timer_remove(wefti_sim *sim, wefti_fiber *fiber)
{
    if (fiber->timer_index == 0) {
        return;
    }
    size_t at = fiber->timer_index - 1;
    fiber->timer_index = 0;
    wefti_fiber *last = sim->timers[--sim->timer_count];
    if (last != fiber) {
        timer_up(sim, at, last);
        timer_down(sim, last->timer_index - 1, last);
    }
}

/* ---- fibers ---- */

static void *grown(void *list, size_t capacity, size_t element)
{
    void *longer = realloc(list, capacity * element);
    if (longer == NULL) {
        abort(); /* the test program is out of memory */
    }
    return longer;
}

static void reserve_places(wefti_sim *sim)
{
    if (sim->fiber_count < sim->fiber_capacity) {
        return;
    }
    size_t before = sim->fiber_capacity;
    sim->fiber_capacity = before == 0 ? 64 : 2 * before;
    while (sim->fiber_capacity < (size_t)sim->pes) {
        sim->fiber_capacity *= 2;
    }
    sim->fibers = grown(sim->fibers, sim->fiber_capacity, sizeof *sim->fibers);
    sim->timers = grown(sim->timers, sim->fiber_capacity, sizeof *sim->timers);
    sim->pending = grown(sim->pending, 2 * sim->fiber_capacity, sizeof *sim->pending);
    wefti_fiber **ready = grown(NULL, sim->fiber_capacity, sizeof *ready);
    for (size_t i = 0; i < sim->ready_count; i++) {
        ready[i] = sim->ready[(sim->ready_first + i) & sim->ready_mask];
    }
    free(sim->ready);
    sim->ready = ready;
    sim->ready_first = 0;
    sim->ready_mask = sim->fiber_capacity - 1;
}

static void fiber_body(void *argument)
{
    wefti_fiber *fiber = argument;
    fiber->body(fiber->argument);
    wefti_sim_end_fiber(wefti_sim_current, WEFTI_FIBER_DONE);
}

static void draw_speeds(wefti_sim *sim, wefti_fiber *fiber)
{
    static const uint32_t speeds[] = {256, 256, 256, 64, 8};
    fiber->speed = 256;
    if (!sim->config.same_speed) {
        fiber->speed = speeds[wefti_random_below(&sim->random, 5)];
        fiber->stores.speed = speeds[wefti_random_below(&sim->random, 5)];
        fiber->messages.speed = speeds[wefti_random_below(&sim->random, 5)];
    }
    fiber->skew_ns = wefti_random_next(&sim->random) >> 24;
}

wefti_fiber *wefti_fiber_create(wefti_sim *sim, int pe, unsigned char *stack, size_t stack_bytes)
{
    reserve_places(sim);
    wefti_fiber *fiber = grown(NULL, 1, sizeof *fiber);
    memset(fiber, 0, sizeof *fiber);
    fiber->number = (int)sim->fiber_count;
    fiber->pe = pe;
    fiber->what_at = WEFTI_NOWHERE;
    fiber->stream = 1;
    wefti_flow_init(&fiber->stores);
    wefti_flow_init(&fiber->messages);
    draw_speeds(sim, fiber);
    wefti_coroutine_init(&fiber->coroutine, stack, stack_bytes, fiber_body, fiber);
    sim->fibers[sim->fiber_count++] = fiber;
    sim->alive++;
    return fiber;
}

void wefti_fiber_ready(wefti_sim *sim, wefti_fiber *fiber)
{
    fiber->state = WEFTI_FIBER_READY;
    sim->ready[(sim->ready_first + sim->ready_count++) & sim->ready_mask] = fiber;
}

void wefti_scheduler_fini(wefti_sim *sim)
{
    for (size_t i = 0; i < sim->fiber_count; i++) {
        wefti_fiber *fiber = sim->fibers[i];
        if (fiber->state == WEFTI_FIBER_DONE) {
            wefti_stacks_fini(&fiber->own_stack);
        } else {
            wefti_stacks_abandon(&fiber->own_stack);
        }
        wefti_coroutine_fini(&fiber->coroutine);
        free(fiber);
    }
    free(sim->fibers);
    free(sim->ready);
    free(sim->timers);
    free(sim->pending);
}

/* ---- choosing ---- */

static wefti_fiber *take_ready(wefti_sim *sim, size_t place)
{
    size_t mask = sim->ready_mask;
    wefti_fiber **first = &sim->ready[sim->ready_first & mask];
    wefti_fiber **chosen = &sim->ready[(sim->ready_first + place) & mask];
    wefti_fiber *fiber = *chosen;
    *chosen = *first;
    sim->ready_first++;
    sim->ready_count--;
    return fiber;
}

static wefti_fiber *choose(wefti_sim *sim)
{
    if (sim->rates.order == WEFT_SIM_ORDER_FIFO) {
        return take_ready(sim, 0);
    }
    if (sim->rates.order == WEFT_SIM_ORDER_LIFO && wefti_random_below(&sim->random, FAIR_ONE_IN) != 0) {
        return sim->ready[(sim->ready_first + --sim->ready_count) & sim->ready_mask];
    }
    size_t place = 0;
    for (int tries = 0; tries < 4; tries++) {
        place = wefti_random_below(&sim->random, (uint32_t)sim->ready_count);
        const wefti_fiber *fiber = sim->ready[(sim->ready_first + place) & sim->ready_mask];
        if (fiber->speed == 256 || wefti_random_below(&sim->random, 256) < fiber->speed) {
            break;
        }
    }
    return take_ready(sim, place);
}

static void commit_drawn(wefti_sim *sim)
{
    uint32_t flow = 0;
    for (int tries = 0; tries < 4; tries++) {
        flow = sim->pending[wefti_random_below(&sim->random, (uint32_t)sim->pending_count)];
        const wefti_fiber *fiber = sim->fibers[flow / 2];
        uint32_t speed = (flow & 1) != 0 ? fiber->messages.speed : fiber->stores.speed;
        if (speed == 256 || wefti_random_below(&sim->random, 256) < speed) {
            break;
        }
    }
    wefti_memory_commit_one(sim, flow, 1);
}

static int fire_timers(wefti_sim *sim)
{
    int fired = 0;
    while (sim->timer_count > 0 && sim->timers[0]->wake_ns <= sim->now_ns) {
        wefti_fiber *fiber = sim->timers[0];
        fiber->timed_out |= !fiber->stalling;
        fiber->stalling = 0;
        sim->progress += fiber->state == WEFTI_FIBER_SLEEPING;
        wefti_sim_wake(sim, fiber);
        fired = 1;
    }
    return fired;
}

static int make_paused_look(wefti_sim *sim)
{
    int woken = 0;
    sim->looked = sim->progress;
    for (size_t i = 0; i < sim->fiber_count; i++) {
        if (sim->fibers[i]->state == WEFTI_FIBER_PAUSED) {
            sim->fibers[i]->horizon = sim->seq;
            wefti_sim_wake(sim, sim->fibers[i]);
            woken = 1;
        }
    }
    return woken;
}

static void find_deadlock(wefti_sim *sim)
{
    size_t waiting = 0;
    for (size_t i = 0; i < sim->fiber_count; i++) {
        waiting += sim->fibers[i]->state < WEFTI_FIBER_DONE;
    }
    sim->failed = WEFT_ERR_TIMEOUT;
    snprintf(sim->text, sizeof sim->text, "deadlock: %zu of %d PEs wait, and nothing can run, commit or arrive",
             waiting, sim->pes);
}

/* Advance the clock when no store is under way. After a long jump all see what had committed before it. */
static void jump(wefti_sim *sim, uint64_t to_ns)
{
    if (to_ns > sim->now_ns + SETTLE_NS) {
        sim->settled = sim->seq;
    }
    sim->now_ns = to_ns;
}

/* A stall strikes between two accesses, not only where a fiber waits. */
static void stall_soon(wefti_sim *sim, wefti_fiber *fiber)
{
    if (fiber->stall_gap > 0) {
        sim->gap = fiber->stall_gap;
        fiber->stall_gap = 0;
        fiber->is_stalled_soon = 1;
        fiber->stalled_until_ns = fiber->stall_until_ns;
    }
}

/* The next fiber, taken from the ready ones; NULL when the run is over. */
static wefti_fiber *next_fiber(wefti_sim *sim)
{
    while (sim->failed == WEFT_OK && sim->alive > 0) {
        (void)fire_timers(sim);
        if (sim->ready_count > 0) {
            wefti_fiber *fiber = choose(sim);
            if (fiber->stalled_until_ns <= sim->now_ns) {
                stall_soon(sim, fiber);
                return fiber;
            }
            fiber->state = WEFTI_FIBER_SLEEPING;
            fiber->stalling = 1;
            sim->sleepers++;
            timer_add(sim, fiber, fiber->stalled_until_ns);
        } else if (sim->pending_count > 0) {
            sim->now_ns += 1 + wefti_random_below(&sim->random, EVENT_NS);
            commit_drawn(sim);
        } else if (sim->progress != sim->looked && make_paused_look(sim)) {
            continue;
        } else if (sim->timer_count > 0 && (sim->sleepers > 0 || sim->config.deadlock == WEFT_SIM_DEADLOCK_ADVANCE)) {
            jump(sim, sim->timers[0]->wake_ns);
        } else {
            find_deadlock(sim);
        }
    }
    return NULL;
}

/* ---- switching ---- */

static void run_next(wefti_sim *sim)
{
    wefti_fiber *self = sim->running;
    self->is_stalled_soon = 0;
    wefti_fiber *next = next_fiber(sim);
    if (next == self) {
        return;
    }
    sim->running = next;
    sim->switches++;
    if (next != NULL) {
        wefti_sim_record(sim, next, WEFTI_EVENT_RUN, 0, 0);
    }
    wefti_coroutine_switch(&self->coroutine, next == NULL ? &sim->main : &next->coroutine);
}

static void check_budget(wefti_sim *sim)
{
    if (sim->events > sim->config.events_max) {
        snprintf(sim->text, sizeof sim->text, "still running after %" PRIu64 " events: a livelock, or raise events_max",
                 sim->events);
        wefti_sim_stop(sim, WEFT_ERR_TIMEOUT);
    }
}

void wefti_sim_yield(wefti_sim *sim)
{
    check_budget(sim);
    wefti_fiber_ready(sim, sim->running);
    run_next(sim);
}

int wefti_sim_block(wefti_sim *sim, wefti_fiber_state state, uint64_t wake_ns)
{
    wefti_fiber *self = sim->running;
    check_budget(sim);
    self->state = state;
    self->timed_out = 0;
    sim->sleepers += state == WEFTI_FIBER_SLEEPING;
    if (wake_ns != UINT64_MAX) {
        timer_add(sim, self, wake_ns);
    }
    run_next(sim);
    if (self->timed_out && (state == WEFTI_FIBER_PAUSED || state == WEFTI_FIBER_WAITING)) {
        self->edge = EDGE_EVENTS;
        sim->gap = 1;
    }
    return self->timed_out;
}

void wefti_sim_wake(wefti_sim *sim, wefti_fiber *fiber)
{
    sim->sleepers -= fiber->state == WEFTI_FIBER_SLEEPING;
    timer_remove(sim, fiber);
    wefti_fiber_ready(sim, fiber);
}

static void wake_spuriously(wefti_sim *sim)
{
    wefti_fiber *fiber = sim->fibers[wefti_random_below(&sim->random, (uint32_t)sim->fiber_count)];
    if (fiber->state == WEFTI_FIBER_PAUSED) {
        wefti_sim_wake(sim, fiber);
    }
}

/* A pause of any length between two steps of a protocol shows what may happen between them, however short they are. */
static void rest(wefti_sim *sim)
{
    wefti_fiber *fiber = sim->running;
    const uint32_t scale = 1u << wefti_random_below(&sim->random, 10);
    const uint64_t until_ns = sim->now_ns + UINT64_C(600) * wefti_random_below(&sim->random, scale);
    fiber->stalled_until_ns = until_ns > fiber->stalled_until_ns ? until_ns : fiber->stalled_until_ns;
}

/* Whose wait has just come to its deadline rests often: what it does then seldom happens, and what it gives up may come
 * at each of its steps. */
static int rests_at_edge(wefti_sim *sim)
{
    wefti_fiber *fiber = sim->running;
    if (fiber->edge == 0 || sim->may_not_rest) {
        return 0;
    }
    fiber->edge--;
    return wefti_random_below(&sim->random, 4) == 0;
}

void wefti_sim_rest_later(uint32_t steps, uint64_t ns)
{
    wefti_fiber *fiber = wefti_sim_current->running;
    fiber->rest_steps = steps;
    fiber->rest_ns = ns;
    wefti_sim_current->gap = 1;
}

/* The step at which a test wants the running fiber to stand still. */
static void rest_as_asked(wefti_sim *sim)
{
    wefti_fiber *fiber = sim->running;
    if (fiber->rest_steps > 0 && !sim->may_not_rest && --fiber->rest_steps == 0) {
        fiber->stalled_until_ns = sim->now_ns + fiber->rest_ns;
    }
}

static int may_rest(wefti_sim *sim, wefti_sim_rests where)
{
    if (rests_at_edge(sim)) {
        return 1;
    }
    if (where == sim->rates.rests && sim->rests_left > 0 && !sim->may_not_rest &&
        wefti_random_hit(&sim->random, sim->rates.rest)) {
        sim->rests_left--;
        return 1;
    }
    return 0;
}

void wefti_sim_before_atomic(wefti_sim *sim)
{
    if (may_rest(sim, WEFTI_RESTS_BEFORE_ATOMICS)) {
        rest(sim);
        wefti_sim_event(sim);
    } else {
        wefti_sim_step(sim);
    }
}

void wefti_sim_after_release(wefti_sim *sim)
{
    if (may_rest(sim, WEFTI_RESTS_AFTER_RELEASES)) {
        rest(sim);
        wefti_sim_event(sim);
    } else if (sim->running->rest_steps > 0) {
        wefti_sim_event(sim);
    }
}

void wefti_sim_event(wefti_sim *sim)
{
    uint32_t one_in = sim->rates.switch_one_in;
    sim->gap = one_in >= UINT32_MAX / 2 ? UINT32_MAX
               : sim->running->edge > 0 || sim->running->rest_steps > 0
                   ? 1
                   : 1 + wefti_random_below(&sim->random, 2 * one_in - 1);
    sim->now_ns += 1 + wefti_random_below(&sim->random, EVENT_NS);
    if (sim->pending_count > 0 && wefti_random_hit(&sim->random, sim->rates.commit)) {
        commit_drawn(sim);
    }
    if (wefti_random_below(&sim->random, SPURIOUS_ONE_IN) == 0) {
        wake_spuriously(sim);
    }
    if (may_rest(sim, WEFTI_RESTS_ANYWHERE)) {
        rest(sim);
    }
    rest_as_asked(sim);
    wefti_sim_yield(sim);
}

/* ---- ends ---- */

static void leave_for_good(wefti_sim *sim)
{
    wefti_fiber *self = sim->running;
    wefti_fiber *next = next_fiber(sim);
    sim->running = next;
    if (next != NULL) {
        wefti_sim_record(sim, next, WEFTI_EVENT_RUN, 0, 0);
    }
    wefti_coroutine_switch_last(&self->coroutine, next == NULL ? &sim->main : &next->coroutine);
}

/* A thread that holds a lock outlives its PE until it releases that lock. */
static int has_threads(const wefti_sim *sim, int pe)
{
    for (size_t i = 0; i < sim->fiber_count; i++) {
        if (sim->fibers[i]->pe == pe && sim->fibers[i]->state < WEFTI_FIBER_DONE) {
            return 1;
        }
    }
    return 0;
}

static void retire(wefti_sim *sim, wefti_fiber *fiber, wefti_fiber_state state)
{
    wefti_memory_unwatch(sim, fiber);
    wefti_memory_end_streams(sim, fiber);
    wefti_reads_release(sim, fiber);
    fiber->state = state;
    if (state == WEFTI_FIBER_DEAD && !has_threads(sim, fiber->pe)) {
        wefti_sim_sockets_orphan(sim, fiber->pe);
    }
    sim->alive--;
    sim->progress++;
    if (fiber->joiner != NULL) {
        wefti_sim_wake(sim, fiber->joiner);
    }
}

void wefti_sim_end_fiber(wefti_sim *sim, wefti_fiber_state state)
{
    wefti_sim_record(sim, sim->running, state == WEFTI_FIBER_DONE ? WEFTI_EVENT_END : WEFTI_EVENT_KILL, 0, 0);
    retire(sim, sim->running, state);
    leave_for_good(sim);
    __builtin_unreachable();
}

void wefti_sim_stop(wefti_sim *sim, weft_status status)
{
    sim->failed = status;
    leave_for_good(sim);
    __builtin_unreachable();
}

void wefti_sim_refuse(wefti_sim *sim, int pe, const char *format, ...)
{
    va_list arguments;
    if (sim->failed != WEFT_OK) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(sim->text, sizeof sim->text, format, arguments);
    va_end(arguments);
    sim->culprit = pe;
    sim->failed = WEFT_ERR_STATE;
    sim->gap = 1;
}

static void take_from_ready(wefti_sim *sim, const wefti_fiber *fiber)
{
    for (size_t i = 0; i < sim->ready_count; i++) {
        if (sim->ready[(sim->ready_first + i) & sim->ready_mask] == fiber) {
            (void)take_ready(sim, i);
            return;
        }
    }
}

void wefti_sim_kill_fiber(wefti_sim *sim, wefti_fiber *fiber)
{
    if (fiber->state >= WEFTI_FIBER_DONE) {
        return;
    }
    if (fiber->held > 0 || fiber->state == WEFTI_FIBER_ENTERING || fiber->state == WEFTI_FIBER_WAITING) {
        fiber->doomed = 1; /* it runs on until it holds no lock */
        return;
    }
    if (fiber == sim->running) {
        wefti_sim_end_fiber(sim, WEFTI_FIBER_DEAD);
    }
    sim->sleepers -= fiber->state == WEFTI_FIBER_SLEEPING;
    timer_remove(sim, fiber);
    if (fiber->state == WEFTI_FIBER_READY) {
        take_from_ready(sim, fiber);
    }
    wefti_sim_record(sim, fiber, WEFTI_EVENT_KILL, 0, 0);
    retire(sim, fiber, WEFTI_FIBER_DEAD);
}

void wefti_scheduler_run(wefti_sim *sim)
{
    wefti_coroutine_init_thread(&sim->main);
    sim->gap = 1;
    sim->running = next_fiber(sim);
    if (sim->running != NULL) {
        wefti_coroutine_switch(&sim->main, &sim->running->coroutine);
    }
    sim->running = NULL;
}
