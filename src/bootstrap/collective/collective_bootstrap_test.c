/* Goal: bootstraps that get PE 0's unique id by an allgather of somebody else's (mpi, shmem, plugin) conform.
 * Method: the suite of all bootstraps; the allgather is one over a meeting point of threads, in which each PE has the
 * rank of its place, whatever its config says. */
#include <stdlib.h>

#include "bootstrap/collective/collective.h"
#include "bootstrap/conformance.h"
#include "support/load.h"
#include "support/torture.h"

/* What an injected fault costs; else nobody meets it. */
#define DEADLINE_NS                                                                                                    \
    (torture_is_failing() ? load_patience_ns(UINT64_C(300000000) * (WEFTI_TSAN ? 4 : 1)) : UINT64_C(60000000000))

typedef struct meeting {
    weft_threads *threads;
    int pes;
} meeting;

static weft_status begin(int pes, weft_world_config *shared)
{
    meeting *m = malloc(sizeof *m);
    m->pes = pes;
    weft_status status = weft_threads_create(pes, &m->threads);
    if (status != WEFT_OK) {
        free(m);
        return status;
    }
    shared->bootstrap = WEFT_BOOTSTRAP_MPI;
    shared->bootstrap_argument = m; /* carried to open_in_place */
    return WEFT_OK;
}

static void end(weft_world_config *shared)
{
    meeting *m = (meeting *)(uintptr_t)shared->bootstrap_argument;
    weft_threads_destroy(m->threads);
    free(m);
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    wefti_bootstrap *threads = context;
    return threads->ops->allgather(threads, mine, all, bytes) == WEFT_OK ? 0 : 1;
}

static weft_status open_in_place(int place, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    wefti_bootstrap threads;
    const meeting *m = config->bootstrap_argument;
    weft_world_config own = {sizeof own, .bootstrap = WEFT_BOOTSTRAP_THREADS, .threads = m->threads};
    own.deadline_ns = DEADLINE_NS;
    own.pe = place;
    own.pes = m->pes;
    WEFT_TRY(wefti_bootstrap_open(&own, &threads));
    const wefti_collective collective = {
        .name = "the test", .pe = place, .pes = own.pes, .context = &threads, .allgather = allgather};
    weft_status status = wefti_collective_open(&collective, config, bootstrap);
    wefti_bootstrap_close(&threads);
    return status;
}

int main(void)
{
    static const bootstrap_subject subject = {
        .limits = BOOTSTRAP_NO_DEADLINES | BOOTSTRAP_MEETING_REUSED,
        .begin = begin,
        .end = end,
        .open = open_in_place,
    };
    return bootstrap_conformance_run(&subject);
}
