/* testing/sim/clock.c: virtual time for os/os.h, and waiting for a commit. */
#include "testing/sim/sim.h"

#define PAUSE_MAX_NS UINT64_C(1000000)
#define NS_AT_START UINT64_C(1000000000) /* no PE's clock begins at 0 */

static wefti_sim *running_sim(void)
{
    wefti_sim *sim = wefti_sim_current;
    return sim != NULL && sim->running != NULL ? sim : NULL;
}

uint64_t wefti_os_now_ns(void)
{
    wefti_sim *sim = running_sim();
    if (sim != NULL && sim->running->is_stalled_soon) {
        wefti_sim_step(sim); /* who looks at a word may be stopped before it looks at the clock */
    }
    return sim == NULL ? NS_AT_START : NS_AT_START + sim->now_ns++ + sim->running->skew_ns;
}

static uint64_t after(const wefti_sim *sim, uint64_t ns)
{
    return ns < UINT64_MAX - sim->now_ns ? sim->now_ns + ns : UINT64_MAX;
}

void wefti_os_sleep_ns(uint64_t ns)
{
    wefti_sim *sim = running_sim();
    if (sim != NULL) {
        wefti_sim_record(sim, sim->running, WEFTI_EVENT_SLEEP, 0, ns);
        wefti_reads_release(sim, sim->running); /* longer than any load takes */
        sim->running->what = "sleep";
        sim->running->what_at = WEFTI_NOWHERE;
        (void)wefti_sim_block(sim, WEFTI_FIBER_SLEEPING, after(sim, ns));
    }
}

void wefti_os_yield(void)
{
    wefti_sim *sim = running_sim();
    if (sim != NULL) {
        wefti_sim_event(sim); /* who only yields must not keep stores from commit */
    }
}

/* Few, since a waiter that spins uses up events and lets no other fiber run. */
uint32_t wefti_os_spins(unsigned pes_per_core, int has_far)
{
    (void)pes_per_core;
    (void)has_far;
    return 8;
}

/* Used by waits that a message may end (wefti_am_idle); the length of wefti_os_pause is the scheduler's choice. */
uint64_t wefti_os_pause_ns(uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core)
{
    (void)pes_per_core;
    const uint64_t pause_ns = waited_ns / 4 < PAUSE_MAX_NS ? waited_ns / 4 : PAUSE_MAX_NS;
    return pause_ns < left_ns ? pause_ns : left_ns;
}

/* The first pause of a wait only begins to watch the line and lets the caller look again, so that no commit is missed
 * between a look and the watch; the next one suspends the fiber. */
void wefti_os_pause(const void *address, const char *what, uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core)
{
    wefti_sim *sim = running_sim();
    (void)waited_ns;
    (void)pes_per_core;
    if (sim == NULL) {
        return;
    }
    wefti_fiber *fiber = sim->running;
    uint64_t offset = wefti_sim_offset(sim, address);
    if (offset == WEFTI_NOWHERE) {
        wefti_os_sleep_ns(100); /* several words are looked at: time must go on */
        return;
    }
    fiber->what = what;
    fiber->what_at = offset;
    if (fiber->watched != offset / WEFTI_LINE_BYTES + 1 || fiber->notified) {
        wefti_memory_watch(sim, fiber, offset);
        wefti_sim_yield(sim);
    } else {
        wefti_sim_record(sim, fiber, WEFTI_EVENT_PAUSE, offset, left_ns);
        (void)wefti_sim_block(sim, WEFTI_FIBER_PAUSED, after(sim, left_ns));
        wefti_memory_watch(sim, fiber, offset);
    }
}

/* ---- for pe_main ---- */

uint64_t weft_sim_now_ns(void)
{
    wefti_sim *sim = wefti_sim_current;
    return sim == NULL ? 0 : sim->now_ns;
}

void weft_sim_sleep_ns(uint64_t ns)
{
    wefti_os_sleep_ns(ns);
}
