/* testing/sim/run.c: a run from its config to its result. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/sized.h"
#include "testing/sim/sanitizer.h"
#include "testing/sim/sim.h"

#define STACK_BYTES ((size_t)(WEFTI_ASAN || WEFTI_TSAN ? 512 : 128) << 10)
#ifdef WEFT_SIM_ARENA_BITS /* an emulator may want less */
#define ARENA_BYTES ((uint64_t)1 << WEFT_SIM_ARENA_BITS)
#else
#define ARENA_BYTES ((uint64_t)1 << (WEFTI_ASAN || WEFTI_TSAN ? 37 : 42))
#endif
#define EVENTS_MAX ((uint64_t)1 << 36)
#define HEAP_MAX_BYTES ((size_t)4 << 20)
#define DEADLINE_NS ((uint64_t)10 * 1000000000)
#define STALL_GAP_MAX 8 /* accesses of who waits */
#define RESTS_MAX 16

/* ---- what the seed decides ---- */

static uint32_t drawn(wefti_random *random, const uint32_t *menu, uint32_t count)
{
    return menu[wefti_random_below(random, count)];
}

static uint32_t rate(wefti_random *random, uint32_t given, const uint32_t *menu, uint32_t count)
{
    uint32_t one_in = drawn(random, menu, count); /* always drawn, so that the rest does not depend on `given` */
    return given != 0 ? given : one_in;
}

static void draw_rates(wefti_sim *sim)
{
    static const uint32_t switches[] = {1, 4, 16, 64, 256, 4096};
    static const uint32_t delays[] = {WEFT_SIM_NEVER, 1, 2, 4, 16};
    static const uint32_t stales[] = {WEFT_SIM_NEVER, 2, 4, 16};
    static const uint32_t splits[] = {WEFT_SIM_NEVER, 2, 8};
    static const uint32_t commits[] = {1, 2, 8, 64};
    static const uint32_t entries[] = {1, 2, 8, 32, 64};
    static const uint32_t rests[] = {WEFT_SIM_NEVER, WEFT_SIM_NEVER, 2, 8, 64, 1024};
    const weft_sim_config *config = &sim->config;
    wefti_random *random = &sim->random;
    sim->rates.switch_one_in = rate(random, config->switch_one_in, switches, 6);
    sim->rates.delay = wefti_random_threshold(rate(random, config->delay_one_in, delays, 5));
    sim->rates.stale = wefti_random_threshold(rate(random, config->stale_one_in, stales, 4));
    sim->rates.split = wefti_random_threshold(rate(random, config->split_one_in, splits, 3));
    sim->rates.commit = wefti_random_threshold(rate(random, config->land_one_in, commits, 4));
    sim->rates.buffer_entries = rate(random, config->buffer_entries, entries, 5);
    sim->rates.rest = wefti_random_threshold(rate(random, config->rest_one_in, rests, 6));
    sim->rates.rests = (wefti_sim_rests)wefti_random_below(random, WEFTI_RESTS);
    sim->rests_left = RESTS_MAX;
    uint32_t order = wefti_random_below(random, 5);
    sim->rates.order = order == 3 ? WEFT_SIM_ORDER_FIFO : order == 4 ? WEFT_SIM_ORDER_LIFO : WEFT_SIM_ORDER_RANDOM;
    if (config->order != WEFT_SIM_ORDER_DRAWN) {
        sim->rates.order = config->order;
    }
}

static weft_status choose_seed(wefti_sim *sim)
{
    sim->seed = sim->config.seed;
    while (sim->seed == 0) {
        if (getrandom(&sim->seed, sizeof sim->seed, 0) != sizeof sim->seed) {
            return wefti_error(WEFT_ERR_SYSTEM, "weft_sim_run: no fresh seed to be had");
        }
        sim->seed >>= 16; /* short enough to type */
        if (sim->seed != 0 && !sim->config.silent) {
            fprintf(stderr, "weft_sim: seed %" PRIu64 "\n", sim->seed);
        }
    }
    sim->random.state = sim->seed;
    (void)wefti_random_next(&sim->random);
    return WEFT_OK;
}

/* ---- set up ---- */

static weft_status map_arena(wefti_sim *sim)
{
    const size_t room_bytes = ARENA_BYTES + WEFTI_OS_MEMORY_ALIGNMENT;
    unsigned char *room =
        mmap(NULL, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_sim_run: no address space for simulated memory; raise ulimit -v");
    }
    size_t before = -(size_t)(uintptr_t)room % WEFTI_OS_MEMORY_ALIGNMENT;
    unsigned char *arena = room + before;
    if (before > 0) {
        munmap(room, before);
    }
    munmap(arena + ARENA_BYTES, WEFTI_OS_MEMORY_ALIGNMENT - before);
    (void)madvise(arena, ARENA_BYTES, MADV_NOHUGEPAGE);
    (void)madvise(arena, ARENA_BYTES, MADV_DONTDUMP);
    sim->arena = arena;
    sim->arena_bytes = ARENA_BYTES;
    sim->reserved = mmap(NULL, ARENA_BYTES / WEFTI_SIM_PAGE_BYTES / 8, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sim->reserved == MAP_FAILED) {
        sim->reserved = NULL;
        return wefti_error(WEFT_ERR_MEMORY, "weft_sim_run: no address space for the marks of reserved memory");
    }
    return WEFT_OK;
}

static void pe_body(void *argument)
{
    wefti_sim *sim = argument;
    sim->pe_main(sim->arg);
}

static weft_status create_pes(wefti_sim *sim)
{
    size_t bytes = sim->config.stack_bytes == 0 ? STACK_BYTES : (sim->config.stack_bytes + 4095) / 4096 * 4096;
    if (!wefti_stacks_init(&sim->stacks, (size_t)sim->pes, bytes, 1)) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_sim_run: no memory for %d stacks of %zu bytes", sim->pes, bytes);
    }
    for (int pe = 0; pe < sim->pes; pe++) {
        wefti_fiber *fiber = wefti_fiber_create(sim, pe, wefti_stacks_at(&sim->stacks, (size_t)pe), bytes);
        fiber->body = pe_body;
        fiber->argument = sim;
        wefti_fiber_ready(sim, fiber);
    }
    return WEFT_OK;
}

static weft_status sim_init(wefti_sim *sim)
{
    WEFT_TRY(choose_seed(sim));
    draw_rates(sim);
    WEFT_TRY(map_arena(sim));
    if (!wefti_lines_init(&sim->lines, 64 * (size_t)sim->pes, sim->rates.stale != 0)) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_sim_run: no memory for the records of cache lines");
    }
    wefti_entry_pool_init(&sim->entries);
    if (sim->config.count_rounds) {
        sim->rounds = calloc((size_t)1 << WEFTI_ROUNDS_BITS, sizeof *sim->rounds);
    }
    WEFT_TRY(weft_threads_create(sim->pes, &sim->threads));
    return create_pes(sim);
}

static void sim_fini(wefti_sim *sim)
{
    weft_threads_destroy(sim->threads);
    size_t done = 0;
    for (size_t i = 0; i < sim->fiber_count; i++) {
        done += sim->fibers[i]->state == WEFTI_FIBER_DONE;
    }
    if (done == sim->fiber_count) {
        wefti_stacks_fini(&sim->stacks);
    } else if (sim->stacks.base != NULL) {
        wefti_stacks_abandon(&sim->stacks);
    }
    wefti_sim_sockets_fini(sim);
    wefti_sim_records_fini(sim);
    wefti_scheduler_fini(sim);
    wefti_lines_fini(&sim->lines);
    wefti_entry_pool_fini(&sim->entries);
    wefti_sim_regions_fini(sim);
    wefti_sim_wire_ends_fini(sim);
    free(sim->ports);
    free(sim->offers);
    free(sim->rounds);
    if (sim->reserved != NULL) {
        munmap(sim->reserved, ARENA_BYTES / WEFTI_SIM_PAGE_BYTES / 8);
    }
    if (sim->arena != NULL) {
        munmap(sim->arena, sim->arena_bytes);
    }
}

/* ---- the run ---- */

static void check_sockets(wefti_sim *sim)
{
    int pe = wefti_sim_sockets_left(sim);
    if (sim->failed == WEFT_OK && pe >= 0) {
        sim->failed = WEFT_ERR_STATE;
        sim->culprit = pe;
        (void)snprintf(sim->text, sizeof sim->text, "PE %d has ended and left a socket open", pe);
    }
}

static void write_result(const wefti_sim *sim, weft_sim_result *result)
{
    *result = (weft_sim_result){
        .seed = sim->seed,
        .trace_hash = sim->trace_hash,
        .events = sim->events,
        .switches = sim->switches,
        .landings = sim->commits,
        .messages = sim->message_count,
        .virtual_ns = sim->now_ns,
        .culprit_pe = sim->culprit,
    };
    memcpy(result->text, sim->text, sizeof result->text);
}

/* *config becomes what can be read: see base/sized.h. */
static weft_status check(const weft_sim_config **config, weft_sim_config *copy, int pes, void (*pe_main)(void *arg))
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_sim_config, seed, "WEFT_SIM_CONFIG_INIT");
    WEFTI_SIZED_TRY(&form, "weft_sim_run", "config", *config, copy);
    if (pes < 1 || pe_main == NULL || wefti_sim_current != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_sim_run: %s",
                           pes < 1           ? "fewer than one PE"
                           : pe_main == NULL ? "pe_main is NULL"
                                             : "this thread runs a simulation already");
    }
    return WEFT_OK;
}

weft_status weft_sim_run(const weft_sim_config *config, int pes, void (*pe_main)(void *arg), void *arg)
{
    const weft_sim_config standard = WEFT_SIM_CONFIG_INIT;
    config = config == NULL ? &standard : config;
    weft_sim_config copy;
    WEFT_TRY(check(&config, &copy, pes, pe_main));
    wefti_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_sim_run: no memory for a simulation");
    }
    sim->config = *config;
    sim->config.events_max = config->events_max == 0 ? EVENTS_MAX : config->events_max;
    sim->pes = pes;
    sim->pe_main = pe_main;
    sim->arg = arg;
    sim->culprit = -1;
    sim->looked = UINT64_MAX;
    weft_status status = sim_init(sim);
    if (status == WEFT_OK) {
        wefti_sim_current = sim;
        wefti_scheduler_run(sim);
        wefti_memory_drain_all(sim);
        wefti_sim_current = NULL;
        check_sockets(sim);
        status = sim->failed;
        if (status != WEFT_OK && !config->silent) {
            wefti_sim_report(sim);
        }
    }
    if (config->result != NULL) {
        write_result(sim, config->result);
    }
    sim_fini(sim);
    free(sim);
    return status;
}

/* ---- inside ---- */

static wefti_fiber *running_fiber(void)
{
    return wefti_sim_current == NULL ? NULL : wefti_sim_current->running;
}

int weft_sim_pe(void)
{
    const wefti_fiber *fiber = running_fiber();
    return fiber == NULL ? -1 : fiber->pe;
}

int weft_sim_pes(void)
{
    return wefti_sim_current == NULL ? -1 : wefti_sim_current->pes;
}

void weft_sim_world_config(weft_world_config *config)
{
    if (config == NULL || running_fiber() == NULL) {
        return;
    }
    config->bootstrap = WEFT_BOOTSTRAP_THREADS;
    config->threads = wefti_sim_current->threads;
    config->pe = weft_sim_pe();
    config->pes = weft_sim_pes();
    config->heap_max_bytes = HEAP_MAX_BYTES;
    config->deadline_ns = DEADLINE_NS;
    config->warn_ns = DEADLINE_NS; /* nothing is logged on the way to a deadlock */
}

void weft_sim_counts_query(weft_sim_counts *out)
{
    const wefti_fiber *fiber = running_fiber();
    if (out != NULL) {
        *out = fiber == NULL ? (weft_sim_counts){0} : fiber->counts;
    }
}

uint64_t weft_sim_random(uint64_t bound)
{
    return bound == 0 || running_fiber() == NULL ? 0 : wefti_random_next(&wefti_sim_current->random) % bound;
}

void weft_sim_fail(const char *format, ...)
{
    wefti_sim *sim = wefti_sim_current;
    va_list arguments;
    va_start(arguments, format);
    if (running_fiber() == NULL) {
        (void)vfprintf(stderr, format, arguments);
        abort(); /* a test's own failure, where no run can take it */
    }
    (void)vsnprintf(sim->text, sizeof sim->text, format, arguments);
    va_end(arguments);
    sim->culprit = sim->running->pe;
    wefti_sim_stop(sim, WEFT_ERR_STATE);
}

/* ---- faults ---- */

/* Whether a simulation runs that has this PE. */
static int has_pe(int pe)
{
    return running_fiber() != NULL && pe >= 0 && pe < wefti_sim_current->pes;
}

void weft_sim_kill(int pe)
{
    wefti_sim *sim = wefti_sim_current;
    if (!has_pe(pe)) {
        return;
    }
    wefti_fiber *self = sim->running;
    for (size_t i = 0; i < sim->fiber_count; i++) {
        if (sim->fibers[i]->pe == pe && sim->fibers[i] != self) {
            wefti_sim_kill_fiber(sim, sim->fibers[i]);
        }
    }
    if (self->pe == pe) {
        wefti_sim_kill_fiber(sim, self);
    }
}

int weft_sim_is_dead(int pe)
{
    const wefti_sim *sim = wefti_sim_current;
    if (!has_pe(pe)) {
        return 0;
    }
    return sim->fibers[pe]->state == WEFTI_FIBER_DEAD || sim->fibers[pe]->doomed;
}

void weft_sim_stall(int pe, uint64_t ns)
{
    wefti_sim *sim = wefti_sim_current;
    if (!has_pe(pe)) {
        return;
    }
    for (size_t i = 0; i < sim->fiber_count; i++) {
        wefti_fiber *fiber = sim->fibers[i];
        if (fiber->pe == pe && fiber->state == WEFTI_FIBER_PAUSED && wefti_random_below(&sim->random, 2) == 0) {
            fiber->stall_gap = 1 + wefti_random_below(&sim->random, STALL_GAP_MAX);
            fiber->stall_until_ns = sim->now_ns + ns;
            wefti_sim_wake(sim, fiber);
        } else if (fiber->pe == pe) {
            fiber->stalled_until_ns = sim->now_ns + ns;
        }
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_STALL, (uint64_t)pe, ns);
    wefti_sim_step(sim);
}
