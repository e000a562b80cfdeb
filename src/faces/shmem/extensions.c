/* faces/shmem/extensions.c: what Sandia's OpenSHMEM has in shmemx.h, and no version of the specification. */
#include <shmemx.h>
#include <time.h>
#include <unistd.h>

#include "faces/shmem/binding.h"

double pshmemx_wtime(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
WEAK(shmemx_wtime, pshmemx_wtime)

char *pshmemx_nodename(void)
{
    static char name[256];
    (void)gethostname(name, sizeof name - 1); /* empty where that fails */
    return name;
}
WEAK(shmemx_nodename, pshmemx_nodename)

void pshmemx_register_gettid(uint64_t (*gettid)(void))
{
    (void)gettid;
}
WEAK(shmemx_register_gettid, pshmemx_register_gettid)

/* ---- counters ---- */

static weft_counters counters(const char *call)
{
    weft_counters now;
    weft_status status = weft_world_counters(wefti_shmem.world, &now);
    if (status != WEFT_OK) {
        wefti_shmem_fail(call, status);
    }
    return now;
}

static uint64_t writes(const char *call)
{
    const weft_counters now = counters(call);
    return now.remote_puts + now.remote_put_signals;
}

static uint64_t reads(const char *call)
{
    const weft_counters now = counters(call);
    return now.remote_gets + now.remote_atomics;
}

/* Counted before they are completed: no more than what the context had begun by then. */
static uint64_t completed(const char *call, uint64_t (*count)(const char *call), shmem_ctx_t ctx)
{
    const uint64_t begun = count(call);
    pshmem_ctx_quiet(ctx);
    return begun;
}

#define COUNTER(NAME, VALUE)                                                                                           \
    void pshmemx_pcntr_get_##NAME(shmem_ctx_t ctx, uint64_t *value)                                                    \
    {                                                                                                                  \
        (void)ctx;                                                                                                     \
        NEED(value);                                                                                                   \
        *value = VALUE;                                                                                                \
    }                                                                                                                  \
    WEAK(shmemx_pcntr_get_##NAME, pshmemx_pcntr_get_##NAME)

COUNTER(pending_put, writes(__func__))
COUNTER(pending_get, reads(__func__))
COUNTER(completed_put, completed(__func__, writes, ctx))
COUNTER(completed_get, completed(__func__, reads, ctx))
COUNTER(issued_write, writes(__func__))
COUNTER(issued_read, reads(__func__))
COUNTER(completed_write, completed(__func__, writes, ctx))
COUNTER(completed_read, completed(__func__, reads, ctx))

void pshmemx_pcntr_get_completed_target(uint64_t *value)
{
    NEED(value);
    *value = 0;
}
WEAK(shmemx_pcntr_get_completed_target, pshmemx_pcntr_get_completed_target)

void pshmemx_pcntr_get_all(shmem_ctx_t ctx, shmemx_pcntr_t *values)
{
    NEED(values);
    *values = (shmemx_pcntr_t){.pending_put = writes(__func__), .pending_get = reads(__func__)};
    pshmem_ctx_quiet(ctx);
    values->completed_put = values->pending_put;
    values->completed_get = values->pending_get;
}
WEAK(shmemx_pcntr_get_all, pshmemx_pcntr_get_all)
