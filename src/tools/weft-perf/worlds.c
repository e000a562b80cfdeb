/* weft-perf/worlds.c: how long worlds take to be made and destroyed, and what an idle one takes of the GPU's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/clock.h"
#include "tools/lib/pes.h"
#include "tools/weft-perf/run.h"
#include "weft/coll.h"
#include "weft/device.h"

static double now_ms(void)
{
    return tool_now_us() * 1e-3;
}

static int time_one(tool_gpu *gpu, int i, perf_worlds *worlds)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    weft_device_info info;
    weft_world *world;
    size_t before = 0;
    size_t after = 0;
    config.device = gpu != NULL ? &device : NULL;
    worlds->has_memory = gpu != NULL && tool_gpu_free_bytes(gpu, &before) == WEFT_OK;
    double start = now_ms();
    if (tool_failed(weft_world_create(&config, &world), "creating a world")) {
        return 1;
    }
    worlds->create_ms[i] = now_ms() - start;
    if (worlds->has_memory && tool_gpu_free_bytes(gpu, &after) == WEFT_OK) {
        worlds->taken_mb[i] = ((double)before - (double)after) * 1e-6;
    }
    if (gpu != NULL) {
        if (tool_failed(weft_device_query(world, &info), "weft_device_query")) {
            return 1;
        }
        worlds->heap_mb = (double)info.heap_bytes * 1e-6;
    }
    if (tool_failed(weft_barrier(world), "barrier")) {
        return 1;
    }
    start = now_ms();
    int failed = tool_failed(weft_world_destroy(world), "destroying a world");
    worlds->destroy_ms[i] = now_ms() - start;
    return failed;
}

int perf_worlds_time(const perf_options *options, perf_worlds *worlds)
{
    const char *local = getenv("WEFT_LOCAL_PE");
    tool_gpu *gpu = NULL;
    int failed = 0;
    memset(worlds, 0, sizeof *worlds);
    if (options->on_device && tool_gpu_open(local != NULL ? atoi(local) % tool_gpu_count() : 0, &gpu) != WEFT_OK) {
        return 1;
    }
    for (int i = 0; i < PERF_WORLDS && !failed; i++) {
        failed = time_one(gpu, i, worlds);
    }
    tool_gpu_close(gpu);
    return failed;
}

static int tell(perf_pe *pe, const double *values, int count, const char *name, const char *unit, const char *more,
                perf_report *report)
{
    double samples[PERF_WORLDS];
    tool_figure figure = {.bytes = 0};
    for (int i = 0; i < count; i++) {
        pe->times[0] = values[i];
        if (tool_failed(weft_double_max_reduce(weft_team_world(pe->world), pe->times, pe->times, 1), "comparing") ||
            tool_failed(weft_barrier(pe->world), "barrier")) {
            return 1;
        }
        samples[i] = pe->times[0];
    }
    tool_figure_of(&figure, samples, count);
    perf_report_figure(report, name, &figure, unit, more);
    return 0;
}

int perf_worlds_tell(perf_pe *pe, const perf_worlds *worlds, perf_report *report)
{
    char heap[64];
    snprintf(heap, sizeof heap, ", \"heap_MB\": %.3g", worlds->heap_mb);
    return tell(pe, worlds->create_ms, 1, "world_create", "ms", ", \"world\": \"first\"", report) ||
           tell(pe, worlds->create_ms + 1, PERF_WORLDS - 1, "world_create", "ms", ", \"world\": \"later\"", report) ||
           tell(pe, worlds->destroy_ms, PERF_WORLDS, "world_destroy", "ms", "", report) ||
           (worlds->has_memory && tell(pe, worlds->taken_mb, PERF_WORLDS, "device_memory_idle", "MB", heap, report));
}
