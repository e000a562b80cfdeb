/* tools/weft-ep-bench.c: how long expert-parallel dispatch and combine take here, over the points of a sweep. Its parts
 * are in tools/weft-ep-bench/. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/lib/gpu.h"
#include "tools/lib/pes.h"
#include "tools/weft-ep-bench/backend.h"
#include "tools/weft-ep-bench/options.h"
#include "tools/weft-ep-bench/report.h"
#include "tools/weft-ep-bench/trial.h"

#define NO_GPU 77

static int run_points(bench_backend *backend, const bench_options *options)
{
    bench_report report;
    int failed = bench_report_open(&report, options, weft_world_pe(backend->world), weft_world_pes(backend->world));
    for (long i = 0; i < bench_options_points(options) && !failed; i++) {
        bench_point point = bench_options_point(options, i);
        bench_figures figures;
        failed = bench_trial_run(backend, options, &point, &figures);
        if (!failed) {
            bench_report_add(&report, &point, &figures);
        }
    }
    return bench_report_close(&report, failed);
}

/* Run every point of the sweep on this PE. Collective. */
static int sweep(weft_world *world, void *context)
{
    const bench_options *options = context;
    bench_backend backend;
    int failed = options->on_device ? bench_device_open(&backend, world, options->threads > 0)
                                    : bench_host_open(&backend, world);
    failed = failed || run_points(&backend, options);
    bench_backend_close(&backend);
    return failed;
}

int main(int argc, char **argv)
{
    bench_options options;
    int code = bench_options_parse(&options, argc, argv);
    if (code != TOOL_GO_ON) {
        return code;
    }
    if (options.on_device && tool_gpu_count() == 0) {
        fprintf(stderr, "weft-ep-bench: --gpu: no GPU here, or no CUDA driver\n");
        return NO_GPU;
    }
    const weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    return tool_pes_run(&config, options.threads, sweep, &options);
}
