/* tools/weft-perf.c: how long calls take here: one-sided access, signals, atomics, collectives; by the host, on
 * streams, in graphs and inside kernels. Its parts are in tools/weft-perf/. */
#include <stdio.h>

#include "tools/lib/pes.h"
#include "tools/weft-perf/run.h"

#define DEADLINE_NS UINT64_C(60000000000) /* others wait while PE 0 is at work, and while data are compared */
#define NO_GPU 77

typedef struct program {
    perf_options options;
    perf_worlds worlds;
} program;

static size_t most_bytes(const perf_options *options, int pes)
{
    perf_case c;
    size_t most = 64;
    for (long place = 0; perf_next_case(options, pes, &place, &c);) {
        most = c.bytes > most ? c.bytes : most;
    }
    return most;
}

static int run_cases(perf_pe *pe, const program *all, perf_report *report)
{
    perf_case c;
    long wrong = 0;
    int failed = 0;
    for (long place = 0; !failed && perf_next_case(&all->options, pe->pes, &place, &c);) {
        failed = perf_kind_of(c.op) == PERF_LIFE ? perf_worlds_tell(pe, &all->worlds, report)
                                                 : perf_run_case(pe, &c, report, &wrong);
    }
    if (wrong > 0 && pe->pe == 0) {
        fprintf(stderr, "weft-perf: %ld elements were not what they must be\n", wrong);
    }
    return failed || wrong > 0;
}

/* Run every case of the sweep on this PE. Collective. */
static int sweep(weft_world *world, void *context)
{
    const program *all = context;
    perf_pe pe;
    perf_report report;
    int failed = perf_pe_open(&pe, world, &all->options, most_bytes(&all->options, weft_world_pes(world)));
    if (!failed && !(failed = perf_report_open(&report, &all->options, pe.pe, pe.pes))) {
        failed = perf_report_close(&report, run_cases(&pe, all, &report));
    }
    perf_pe_close(&pe);
    return failed;
}

static int asks_for_worlds(const perf_options *options)
{
    int asks = 0;
    for (int i = 0; i < options->ops.count; i++) {
        asks |= options->ops.values[i] == PERF_WORLD;
    }
    return asks;
}

int main(int argc, char **argv)
{
    program all;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    int code = perf_options_parse(&all.options, argc, argv);
    if (code != TOOL_GO_ON) {
        return code;
    }
    if (all.options.on_device && tool_gpu_count() == 0) {
        fprintf(stderr, "weft-perf: no GPU here, or no CUDA driver\n");
        return NO_GPU;
    }
    if (asks_for_worlds(&all.options)) {
        if (all.options.threads > 0) {
            fprintf(stderr, "weft-perf: --op world: measured with processes; leave --threads out\n");
            return TOOL_USAGE;
        }
        if (perf_worlds_time(&all.options, &all.worlds)) {
            return 1;
        }
    }
    config.deadline_ns = DEADLINE_NS;
    return tool_pes_run(&config, all.options.threads, sweep, &all);
}
