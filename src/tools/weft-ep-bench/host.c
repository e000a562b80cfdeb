/* weft-ep-bench/host.c: the host: memory of the symmetric heap, calls that run inline, the monotonic clock. */
#include <stdlib.h>
#include <string.h>

#include "tools/lib/clock.h"
#include "tools/lib/pes.h"
#include "tools/weft-ep-bench/backend.h"
#include "weft/coll.h"

#define PAGE 4096

static weft_status host_alloc(bench_backend *backend, size_t bytes, int is_symmetric, void **at)
{
    if (is_symmetric) {
        return weft_align(backend->world, PAGE, bytes > 0 ? bytes : 1, at);
    }
    *at = aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);
    return *at != NULL ? WEFT_OK : WEFT_ERR_MEMORY;
}

static weft_status host_free(bench_backend *backend, void *at, int is_symmetric)
{
    if (is_symmetric) {
        return weft_free(backend->world, at);
    }
    free(at);
    return WEFT_OK;
}

static weft_status host_copy(bench_backend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return WEFT_OK;
}

static weft_status host_fill(bench_backend *backend, void *at, unsigned char value, size_t bytes)
{
    (void)backend;
    memset(at, value, bytes);
    return WEFT_OK;
}

static weft_status host_finish(bench_backend *backend)
{
    (void)backend;
    return WEFT_OK;
}

static weft_status host_time(bench_backend *backend, weft_status (*call)(void *context), void *context, int warmup,
                             int repeats, double *us)
{
    for (int i = -warmup; i < repeats; i++) {
        weft_status status = weft_barrier(backend->world);
        if (status != WEFT_OK) {
            return status;
        }
        double start = tool_now_us();
        status = call(context);
        if (i >= 0) {
            us[i] = tool_now_us() - start;
        }
        if (status != WEFT_OK) {
            return status;
        }
    }
    return WEFT_OK;
}

/* The bytes in one piece to each other PE. */
typedef struct pieces {
    weft_world *world;
    unsigned char *block; /* symmetric: what is sent, then what each PE gives */
    size_t piece;
} pieces;

static weft_status put_pieces(void *context)
{
    const pieces *p = context;
    int me = weft_world_pe(p->world);
    int pes = weft_world_pes(p->world);
    weft_status status = WEFT_OK;
    for (int i = 1; i < pes && status == WEFT_OK; i++) {
        status = weft_putmem(p->world, p->block + (size_t)(1 + me) * p->piece, p->block, p->piece, (me + i) % pes);
    }
    return status;
}

static weft_status host_floor(bench_backend *backend, size_t bytes, int sms, int repeats, double *us)
{
    int pes = weft_world_pes(backend->world);
    pieces p = {.world = backend->world, .piece = bytes / (size_t)(pes - 1) + 1};
    void *block;
    (void)sms;
    weft_status status = weft_align(backend->world, PAGE, p.piece * (size_t)(pes + 1), &block);
    if (status != WEFT_OK) {
        return status;
    }
    p.block = block;
    memset(block, 1, p.piece);
    status = host_time(backend, put_pieces, &p, 1, repeats, us);
    weft_status freed = weft_free(backend->world, block);
    return status != WEFT_OK ? status : freed;
}

int bench_host_open(bench_backend *backend, weft_world *world)
{
    static const bench_backend_ops ops = {
        .alloc = host_alloc,
        .free = host_free,
        .write = host_copy,
        .read = host_copy,
        .fill = host_fill,
        .finish = host_finish,
        .time = host_time,
        .floor = host_floor,
    };
    *backend = (bench_backend){.ops = &ops, .world = world, .rate_sms = -1};
    return 0;
}
