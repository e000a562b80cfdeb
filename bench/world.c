/* World: how long it takes to create and to destroy one, and its first allocation and first barrier, from the last PE's
 * entry to the last PE's return; of destruction, which is local, also how long a PE's own call takes; and what a world
 * costs in memory. Run it as `weftrun -n N bench_world [--json FILE] [--blocks N]`. The first world of the process
 * stays and is what the PEs meet in to create the later ones. See bench/README.md. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "suite/options.h"
#include "tools/lib/clock.h"
#include "tools/lib/memory.h"
#include "tools/lib/record.h"
#include "tools/lib/span.h"
#include "weft.h"

#define PES_MAX TOOL_SAMPLES_MAX /* a sample a PE */

/* What a PE tells PE 0, in the first world's heap. */
typedef struct report {
    tool_span created;
    tool_span allocated;
    tool_span met;
    tool_span destroyed;
    double destroyed_cpu_ms;
    double pss_mb;
} report;

typedef struct bench {
    weft_world *world; /* the first */
    int pe;
    int pes;
    report mine;
    report *all; /* symmetric: [pes], filled on PE 0 */
    tool_record record;
} bench;

static int said(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
    }
    return status != WEFT_OK;
}

static int create(weft_world **world, const char *name, tool_span *span)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.name = name;
    span->entry_ns = tool_now_ns();
    weft_status status = weft_world_create(&config, world);
    span->return_ns = tool_now_ns();
    return said(status);
}

/* Of this thread. */
static double cpu_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec * 1e-6;
}

/* What a world does first. */
static int allocate_and_meet(weft_world *world, report *mine)
{
    void *block;
    mine->allocated.entry_ns = tool_now_ns();
    weft_status status = weft_malloc(world, 8, &block);
    mine->allocated.return_ns = tool_now_ns();
    if (said(status)) {
        return -1;
    }
    mine->met.entry_ns = tool_now_ns();
    status = weft_barrier(world);
    mine->met.return_ns = tool_now_ns();
    return said(status) ? -1 : 0;
}

/* Every PE's report to PE 0, which may read them until the next call. Collective. */
static int gather(bench *b)
{
    if (said(weft_barrier(b->world))) {
        return -1;
    }
    weft_status status = weft_putmem(b->world, &b->all[b->pe], &b->mine, sizeof b->mine, 0);
    return said(status) || said(weft_barrier(b->world)) ? -1 : 0;
}

/* The phases of the world's creation on this PE, for the reader. */
static void print_phases(const bench *b, weft_world *world)
{
    weft_world_phase phases[16];
    size_t count = weft_world_phases(world, phases, 16);
    printf("phases on PE %d, in us:", b->pe);
    for (size_t i = 0; i < count && i < 16; i++) {
        printf(" %s %.0f", phases[i].name, (double)phases[i].ns * 1e-3);
    }
    printf("\n");
}

static void write_one(bench *b, const char *name, const char *unit, const char *more, const tool_samples *samples)
{
    const tool_measurement figure = {.name = name, .unit = unit, .more = more};
    tool_record_write(&b->record, &figure, samples);
}

/* The time of one step over all PEs; `step` is its place in a report. PE 0. */
static double span_ms(const bench *b, size_t step)
{
    tool_span spans[PES_MAX];
    for (int i = 0; i < b->pes; i++) {
        memcpy(&spans[i], (const char *)&b->all[i] + step, sizeof spans[i]);
    }
    return tool_span_ms(spans, b->pes);
}

/* Of the PEs' own calls that destroyed a world, the median. PE 0. */
static double destroy_call_us(const bench *b)
{
    tool_samples calls = {0};
    for (int i = 0; i < b->pes; i++) {
        tool_samples_add(&calls, (double)(b->all[i].destroyed.return_ns - b->all[i].destroyed.entry_ns) * 1e-3);
    }
    tool_figure figure = {.bytes = 0};
    tool_samples_figure(&calls, &figure);
    return figure.median;
}

/* What all of these calls take of the processors together, whatever else runs there. PE 0. */
static double destroy_cpu_ms(const bench *b)
{
    double sum = 0;
    for (int i = 0; i < b->pes; i++) {
        sum += b->all[i].destroyed_cpu_ms;
    }
    return sum;
}

static void write_uses(bench *b, const char *mode, const tool_samples *allocated, const tool_samples *met)
{
    write_one(b, "malloc", "ms", mode, allocated);
    write_one(b, "barrier", "ms", mode, met);
}

static void write_first(bench *b)
{
    tool_samples created = {0};
    tool_samples allocated = {0};
    tool_samples met = {0};
    tool_samples pss = {0};
    if (b->pe != 0) {
        return;
    }
    double sum = 0;
    for (int i = 0; i < b->pes; i++) {
        sum += b->all[i].pss_mb;
    }
    tool_samples_add(&created, span_ms(b, offsetof(report, created)));
    tool_samples_add(&pss, sum / b->pes);
    tool_samples_add(&allocated, span_ms(b, offsetof(report, allocated)));
    tool_samples_add(&met, span_ms(b, offsetof(report, met)));
    write_one(b, "world_create", "ms", "\"mode\": \"first\"", &created);
    write_uses(b, "\"mode\": \"first\"", &allocated, &met);
    write_one(b, "pss_per_pe", "MB", NULL, &pss);
}

static int open_first(bench *b)
{
    void *block;
    if (create(&b->world, "first", &b->mine.created) != 0 || said(weft_barrier(b->world))) {
        return -1;
    }
    b->mine.pss_mb = tool_pss_mb();
    if (allocate_and_meet(b->world, &b->mine) != 0) {
        return -1;
    }
    b->pe = weft_world_pe(b->world);
    b->pes = weft_world_pes(b->world);
    if (b->pes > PES_MAX || said(weft_calloc(b->world, (size_t)b->pes, sizeof *b->all, &block))) {
        return -1;
    }
    b->all = block;
    return gather(b);
}

/* One world more, and its end; what they took goes to PE 0. */
static int create_and_destroy(bench *b, int show_phases)
{
    weft_world *world;
    if (said(weft_barrier(b->world)) || create(&world, "later", &b->mine.created) != 0 ||
        allocate_and_meet(world, &b->mine) != 0) {
        return -1;
    }
    if (show_phases) {
        print_phases(b, world);
    }
    if (said(weft_barrier(b->world))) {
        return -1;
    }
    const double before_ms = cpu_ms();
    b->mine.destroyed.entry_ns = tool_now_ns();
    weft_status status = weft_world_destroy(world);
    b->mine.destroyed.return_ns = tool_now_ns();
    b->mine.destroyed_cpu_ms = cpu_ms() - before_ms;
    return said(status) ? -1 : gather(b);
}

static int run_later(bench *b, int blocks)
{
    tool_samples created = {0};
    tool_samples allocated = {0};
    tool_samples met = {0};
    tool_samples destroyed = {0};
    tool_samples calls = {0};
    tool_samples cpu = {0};
    for (int i = 0; i < blocks; i++) {
        if (create_and_destroy(b, i == 0 && b->pe == 0) != 0) {
            return -1;
        }
        if (b->pe == 0) {
            tool_samples_add(&created, span_ms(b, offsetof(report, created)));
            tool_samples_add(&allocated, span_ms(b, offsetof(report, allocated)));
            tool_samples_add(&met, span_ms(b, offsetof(report, met)));
            tool_samples_add(&destroyed, span_ms(b, offsetof(report, destroyed)));
            tool_samples_add(&calls, destroy_call_us(b));
            tool_samples_add(&cpu, destroy_cpu_ms(b));
        }
    }
    write_one(b, "world_create", "ms", "\"mode\": \"later\"", &created);
    write_uses(b, "\"mode\": \"later\"", &allocated, &met);
    write_one(b, "world_destroy", "ms", NULL, &destroyed);
    write_one(b, "world_destroy_call", "us", NULL, &calls);
    write_one(b, "world_destroy_cpu", "ms", NULL, &cpu);
    return 0;
}

int main(int argc, char **argv)
{
    bench b;
    memset(&b, 0, sizeof b);
    bench_options options = BENCH_OPTIONS_INIT;
    if (bench_options_read(&options, NULL, 0, argc, argv) != 0 || open_first(&b) != 0 ||
        tool_record_open(&b.record, options.json, "weft", b.pe, b.pes) != 0) {
        return 1;
    }
    write_first(&b);
    if (b.pe == 0) {
        print_phases(&b, b.world);
    }
    int failed = run_later(&b, options.blocks);
    tool_record_close(&b.record);
    return failed != 0 || said(weft_world_destroy(b.world));
}
