/* testing/sim/trace.c: recording events, and the report of a run that failed. No addresses and no real time, so that
 * equal seeds give equal text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "testing/sim/sim.h"

#define LINE_BYTES 160
#define PES_REPORTED 64
#define EVENTS_REPORTED 8

static const struct {
    const char *word;
    char at;
} kinds[] = {
#define KIND_ROW(name, word, at) {word, at},
    WEFTI_EVENT_TABLE(KIND_ROW)
#undef KIND_ROW
};

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9fb21c651e98df25);
    return hash ^ hash >> 32;
}

static void write_event(const wefti_fiber *fiber, const wefti_event *event, char *line)
{
    int used = snprintf(line, LINE_BYTES, "%" PRIu64 " PE %d", event->ns, fiber->pe);
    if (fiber->number != fiber->pe) {
        used += snprintf(line + used, LINE_BYTES - (size_t)used, ".%d", fiber->number);
    }
    used += snprintf(line + used, LINE_BYTES - (size_t)used, " %s", kinds[event->kind].word);
    if (event->kind == WEFTI_EVENT_NOTE) {
        used += snprintf(line + used, LINE_BYTES - (size_t)used, " %s", event->text);
    } else if (kinds[event->kind].at == 'm') {
        used += snprintf(line + used, LINE_BYTES - (size_t)used, " +%" PRIx64, event->at);
    } else if (kinds[event->kind].at == 'n') {
        used += snprintf(line + used, LINE_BYTES - (size_t)used, " %" PRIu64, event->at);
    }
    (void)snprintf(line + used, LINE_BYTES - (size_t)used, " %" PRIu64, event->value);
}

static void record(wefti_sim *sim, wefti_fiber *fiber, const wefti_event *event)
{
    fiber->events.last[fiber->events.count++ % WEFTI_EVENTS_KEPT] = *event;
    sim->events++;
    uint64_t who = (uint64_t)fiber->number << 8 | (uint64_t)event->kind;
    sim->trace_hash = mixed(mixed(sim->trace_hash, who ^ event->ns << 24), event->at ^ event->value << 20);
    if (sim->config.trace != NULL) {
        char line[LINE_BYTES];
        write_event(fiber, event, line);
        sim->config.trace(sim->config.trace_context, line);
    }
}

void wefti_sim_record(wefti_sim *sim, wefti_fiber *fiber, wefti_event_kind kind, uint64_t at, uint64_t value)
{
    const wefti_event event = {.ns = sim->now_ns, .at = at, .value = value, .kind = kind};
    record(sim, fiber, &event);
}

void weft_sim_note(const char *text, uint64_t value)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim != NULL && sim->running != NULL) {
        const wefti_event event = {.ns = sim->now_ns, .value = value, .text = text, .kind = WEFTI_EVENT_NOTE};
        record(sim, sim->running, &event);
    }
}

/* ---- the report ---- */

static const char *const states[] = {
    [WEFTI_FIBER_READY] = "runs",           [WEFTI_FIBER_SLEEPING] = "sleeps",   [WEFTI_FIBER_PAUSED] = "waits for",
    [WEFTI_FIBER_ENTERING] = "waits for",   [WEFTI_FIBER_WAITING] = "waits for", [WEFTI_FIBER_JOINING] = "waits for",
    [WEFTI_FIBER_DELIVERING] = "waits for", [WEFTI_FIBER_DONE] = "is done",      [WEFTI_FIBER_DEAD] = "is dead",
};

static void report_state(const wefti_sim *sim, const wefti_fiber *fiber)
{
    fprintf(stderr, "PE %d%s %s", fiber->pe, fiber->number != fiber->pe ? "'s thread" : "", states[fiber->state]);
    if (fiber->state >= WEFTI_FIBER_PAUSED && fiber->state <= WEFTI_FIBER_DELIVERING) {
        fprintf(stderr, " %s", fiber->what);
    }
    if (fiber->state == WEFTI_FIBER_PAUSED) {
        uint64_t value = 0;
        if (fiber->what_at % 8 == 0) {
            wefti_memory_peek(sim, fiber->what_at, &value, sizeof value);
        }
        fprintf(stderr, " at +%" PRIx64 ", which is %" PRIu64, fiber->what_at, value);
    }
    if (fiber->stores.count + fiber->messages.count > 0) {
        fprintf(stderr, "; %u stores and %u messages on their way", fiber->stores.count, fiber->messages.count);
    }
    fprintf(stderr, "\n");
}

static void report_events(const wefti_fiber *fiber)
{
    uint64_t count = fiber->events.count;
    uint64_t first = count > EVENTS_REPORTED ? count - EVENTS_REPORTED : 0;
    for (uint64_t i = first; i < count; i++) {
        char line[LINE_BYTES];
        write_event(fiber, &fiber->events.last[i % WEFTI_EVENTS_KEPT], line);
        fprintf(stderr, "    %s\n", line);
    }
}

void wefti_sim_report(const wefti_sim *sim)
{
    fprintf(stderr, "weft_sim: seed %" PRIu64 ", %d PEs, after %" PRIu64 " events: ", sim->seed, sim->pes, sim->events);
    if (sim->culprit >= 0) {
        fprintf(stderr, "PE %d: ", sim->culprit);
    }
    fprintf(stderr, "%s\n", sim->text);
    for (size_t i = 0; i < sim->fiber_count && i < PES_REPORTED; i++) {
        report_state(sim, sim->fibers[i]);
        report_events(sim->fibers[i]);
    }
    fprintf(stderr, "weft_sim: run with seed %" PRIu64 " to see this again\n", sim->seed);
}
