/* weft-perf/pe.c: what one PE measures with. */
#include "tools/weft-perf/pe.h"

#include <stdlib.h>
#include <string.h>

#include "tools/lib/pes.h"
#include "weft/device.h"

#define ALIGNMENT 4096
#define SCRATCH_BYTES 256
#define RATE_CHUNK ((size_t)64 << 10)
#define DEVICE_HEAP_GRAIN ((size_t)2 << 20)

static int symmetric(perf_pe *pe, size_t bytes, void **at)
{
    weft_status status =
        pe->gpu != NULL ? weft_device_malloc(pe->world, bytes, at) : weft_align(pe->world, ALIGNMENT, bytes, at);
    return tool_failed(status, "symmetric memory");
}

static int open_gpu(perf_pe *pe)
{
    const char *local = getenv("WEFT_LOCAL_PE");
    int number = pe->options->threads > 0 || local == NULL ? pe->pe : atoi(local);
    weft_device_config config = WEFT_DEVICE_CONFIG_INIT;
    int gpus = tool_gpu_count();
    config.choice = WEFT_DEVICE_ORDINAL; /* so that the world keeps the context by itself */
    config.ordinal = gpus > 0 ? number % gpus : 0;
    if (tool_gpu_open(config.ordinal, &pe->gpu) != WEFT_OK) {
        return 1;
    }
    config.heap_bytes = (2 * pe->bytes + PERF_FLAG_BYTES) / DEVICE_HEAP_GRAIN * DEVICE_HEAP_GRAIN;
    return tool_failed(weft_device_attach(pe->world, &config), "weft_device_attach") ||
           tool_gpu_malloc(pe->gpu, SCRATCH_BYTES, (void **)&pe->scratch) != WEFT_OK ||
           tool_gpu_host_malloc(pe->gpu, (size_t)(pe->options->rounds + pe->options->warmup) * sizeof *pe->ns,
                                (void **)&pe->ns) != WEFT_OK;
}

int perf_pe_open(perf_pe *pe, weft_world *world, const perf_options *options, size_t bytes)
{
    *pe = (perf_pe){.world = world,
                    .options = options,
                    .pe = weft_world_pe(world),
                    .pes = weft_world_pes(world),
                    .bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT,
                    .filled = -1};
    size_t rounds = (size_t)(options->rounds + options->warmup);
    size_t times = (rounds + 1) * sizeof *pe->times;
    return (options->on_device && open_gpu(pe)) || symmetric(pe, pe->bytes, (void **)&pe->dest) ||
           symmetric(pe, pe->bytes, (void **)&pe->source) || symmetric(pe, PERF_FLAG_BYTES, (void **)&pe->flags) ||
           symmetric(pe, 3 * (size_t)pe->pes * sizeof *pe->table, (void **)&pe->table) ||
           tool_failed(weft_malloc(world, times, (void **)&pe->times), "memory for times");
}

void perf_pe_close(perf_pe *pe)
{
    if (pe->gpu != NULL) {
        if (pe->scratch != NULL) {
            (void)tool_gpu_free(pe->gpu, pe->scratch);
        }
        if (pe->ns != NULL) {
            (void)tool_gpu_host_free(pe->gpu, pe->ns);
        }
        tool_gpu_close(pe->gpu);
    }
}

int perf_pe_team(perf_pe *pe, int pes)
{
    if (pe->team_pes == pes) {
        return 0;
    }
    if (pe->team_pes != 0 && pe->team_pes != pe->pes && pe->team != NULL &&
        tool_failed(weft_team_destroy(pe->team), "weft_team_destroy")) {
        return 1;
    }
    pe->team_pes = pes;
    pe->team = weft_team_world(pe->world);
    return pes != pe->pes &&
           tool_failed(weft_team_split_strided(weft_team_world(pe->world), 0, 1, pes, &pe->team), "a team");
}

weft_status perf_pe_fill(perf_pe *pe, void *at, unsigned char value, size_t bytes)
{
    if (pe->gpu == NULL) {
        memset(at, value, bytes);
        return WEFT_OK;
    }
    weft_status status = tool_gpu_fill(pe->gpu, at, value, bytes);
    return status != WEFT_OK ? status : tool_gpu_synchronise(pe->gpu);
}

weft_status perf_pe_copy(perf_pe *pe, void *to, const void *from, size_t bytes)
{
    if (pe->gpu == NULL) {
        memcpy(to, from, bytes);
        return WEFT_OK;
    }
    return tool_gpu_copy(pe->gpu, to, from, bytes);
}

int perf_participates(const perf_pe *pe, const perf_case *c)
{
    switch (perf_kind_of(c->op)) {
    case PERF_WORD:
    case PERF_MOVE:
        return pe->pe == 0;
    case PERF_TRIPS:
        return pe->pe < 2;
    case PERF_RATE:
        return pe->pe == 0 || c->everyone;
    case PERF_ALLOC:
        return 1;
    default:
        return pe->pe < c->pes;
    }
}

/* The other one of the first two; alone, this PE itself. */
int perf_peer(const perf_pe *pe)
{
    return pe->pes == 1 ? 0 : 1 - pe->pe;
}

/* ---- chunks of a rate ---- */

size_t perf_chunk_bytes(const perf_case *c)
{
    size_t blocks = (size_t)c->blocks;
    size_t most = c->everyone ? (size_t)(blocks > 32 ? 256 : 1024) << 10 : c->bytes / blocks;
    size_t chunk = most < c->bytes ? most : c->bytes;
    return chunk >= RATE_CHUNK ? chunk / RATE_CHUNK * RATE_CHUNK : chunk / 16 * 16;
}

size_t perf_chunk_count(const perf_case *c)
{
    size_t chunk = perf_chunk_bytes(c);
    return chunk == 0 ? 0 : c->everyone ? c->bytes / chunk : (size_t)c->blocks;
}

int perf_chunk_pe(const perf_pe *pe, const perf_case *c, int from, size_t chunk)
{
    return c->everyone ? (from + 1 + (int)(chunk % (size_t)(pe->pes - 1))) % pe->pes : (from + 1) % pe->pes;
}

weft_status perf_run(perf_pe *pe, const perf_case *c, int calls, int rounds, double *us)
{
    int is_rate = perf_kind_of(c->op) == PERF_RATE;
    if ((pe->pes < 2 && (perf_kind_of(c->op) == PERF_TRIPS || is_rate)) || c->pes > pe->pes ||
        (c->everyone && c->pes != pe->pes) || (perf_has_bytes(c->op) && c->bytes == 0) ||
        (is_rate && perf_chunk_count(c) == 0) || (c->scope != PERF_HOST && pe->gpu == NULL)) {
        return WEFT_ERR_UNSUPPORTED;
    }
    return c->scope == PERF_HOST  ? perf_host_run(pe, c, calls, rounds, us)
           : perf_is_in_kernel(c) ? perf_kernel_run(pe, c, calls, rounds, us)
                                  : perf_stream_run(pe, c, calls, rounds, us);
}
