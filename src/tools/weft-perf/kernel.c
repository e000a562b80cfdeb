/* weft-perf/kernel.c: calls inside kernels: the kernels of lib/kernels.h. */
#include <stdio.h>
#include <string.h>

#include "tools/lib/kernels.h"
#include "tools/weft-perf/pe.h"
#include "weft/device.h"
#include "weft/stream.h"

#define BULK_SHARED_BYTES (65536 + 128)

static unsigned shared_bytes(const perf_case *c)
{
    return c->op == PERF_PUT_BULK_BW || c->op == PERF_RAW_GET_BULK_BW ? BULK_SHARED_BYTES : 0;
}

/* The kernel of this very scope, or the one of all. */
static weft_status find(perf_pe *p, const perf_case *c, void **kernel)
{
    char name[96];
    char which[64] = "";
    if (perf_kind_of(c->op) == PERF_WORD) {
        snprintf(which, sizeof which, "_%s", perf_dtype_names[c->dtype]);
    } else if (perf_kind_of(c->op) == PERF_COMBINE) {
        snprintf(which, sizeof which, "_%s_%s", perf_reduction_names[c->reduction], perf_dtype_names[c->dtype]);
    }
    snprintf(name, sizeof name, "tool_%s%s_%s", perf_op_names[c->op], which, perf_scope_names[c->scope]);
    weft_status status = tool_gpu_kernel(p->gpu, name, shared_bytes(c), kernel);
    if (status == WEFT_ERR_UNSUPPORTED) {
        snprintf(name, sizeof name, "tool_%s%s_any", perf_op_names[c->op], which);
        status = tool_gpu_kernel(p->gpu, name, shared_bytes(c), kernel);
    }
    return status;
}

static weft_status fill_args(const perf_pe *p, const perf_case *c, int calls, int rounds, tool_kernel_args *args)
{
    const int is_rate = perf_kind_of(c->op) == PERF_RATE;
    *args = (tool_kernel_args){
        .dest = (uintptr_t)p->dest,
        .source = (uintptr_t)p->source,
        .bytes = perf_block_bytes(c),
        .flag = (uintptr_t)p->flags,
        .first = 1,
        .ns = (uintptr_t)p->ns,
        .taken = (uintptr_t)p->scratch,
        .chunk_bytes = is_rate ? perf_chunk_bytes(c) : 0,
        .table = (uintptr_t)p->table,
        .chunks = is_rate ? (unsigned)perf_chunk_count(c) : 0,
        .shared_bytes = shared_bytes(c),
        .rounds = rounds,
        .trips = calls,
        .spread = c->everyone ? p->pes - 1 : 1,
        .peer = perf_peer(p),
        .scope = (int)c->scope - PERF_THREAD,
    };
    return p->team != NULL ? weft_team_dev(p->team, &args->team) : weft_world_dev(p->world, &args->team.world);
}

/* All rounds are in one launch, by the GPU's clock. */
static weft_status run_trips(perf_pe *p, const perf_case *c, void *kernel, const tool_kernel_args *args, double *us)
{
    weft_status status = perf_pe_fill(p, p->flags, 0, PERF_FLAG_BYTES);
    status = status != WEFT_OK ? status : weft_barrier(p->world);
    memset(p->ns, 0, (size_t)args->rounds * sizeof *p->ns);
    if (status == WEFT_OK && perf_participates(p, c)) {
        weft_launch launch = WEFT_LAUNCH_INIT;
        void *arguments[] = {(void *)(uintptr_t)args};
        launch.blocks = 1;
        launch.threads = c->threads;
        status = weft_device_launch(p->world, kernel, &launch, arguments, tool_gpu_stream(p->gpu));
    }
    status = status != WEFT_OK ? status : tool_gpu_synchronise(p->gpu);
    status = status != WEFT_OK ? status : weft_world_fault(p->world, NULL);
    const double calls = (double)args->trips * (perf_kind_of(c->op) == PERF_TRIPS ? 2 : 1);
    for (int round = 0; round < args->rounds; round++) {
        us[round] = (double)p->ns[round] * 1e-3 / calls;
    }
    return status != WEFT_OK ? status : weft_barrier(p->world);
}

/* A launch a round, between two marks, after all PEs' streams have met. */
static weft_status run_rate(perf_pe *p, const perf_case *c, void *kernel, const tool_kernel_args *args, double *us)
{
    weft_status status = weft_barrier(p->world);
    status = status != WEFT_OK ? status : tool_gpu_fill(p->gpu, p->scratch, 0, sizeof(unsigned));
    status = status != WEFT_OK ? status : weft_sync_on_stream(p->world, tool_gpu_stream(p->gpu));
    *us = 0;
    if (status == WEFT_OK && perf_participates(p, c)) {
        status = tool_gpu_begin(p->gpu);
        status = status != WEFT_OK ? status
                                   : tool_gpu_launch(p->gpu, kernel, c->blocks, c->threads, args->shared_bytes, args);
        status = status != WEFT_OK ? status : tool_gpu_end(p->gpu);
    }
    status = status != WEFT_OK ? status : tool_gpu_synchronise(p->gpu);
    status = status != WEFT_OK ? status : weft_world_fault(p->world, NULL);
    if (status == WEFT_OK && perf_participates(p, c)) {
        status = tool_gpu_elapsed(p->gpu, us);
    }
    return status != WEFT_OK ? status : weft_barrier(p->world);
}

weft_status perf_kernel_run(perf_pe *p, const perf_case *c, int calls, int rounds, double *us)
{
    const int is_data = perf_kind_of(c->op) == PERF_COLL || perf_kind_of(c->op) == PERF_COMBINE;
    tool_kernel_args args;
    void *kernel;
    if (is_data && c->threads > TOOL_COLLECTIVE_THREADS) {
        return WEFT_ERR_UNSUPPORTED;
    }
    weft_status status = find(p, c, &kernel);
    status = status != WEFT_OK ? status : fill_args(p, c, calls, rounds, &args);
    if (status != WEFT_OK) {
        return status;
    }
    if (perf_kind_of(c->op) != PERF_RATE) {
        return run_trips(p, c, kernel, &args, us);
    }
    for (int round = 0; round < rounds && status == WEFT_OK; round++) {
        status = run_rate(p, c, kernel, &args, &us[round]);
    }
    return status;
}
