/* Goal: the callback bootstrap conforms. Method: the suite of all bootstraps; the embedder's allgather is one over a
 * meeting point of threads, in which each PE has the rank of its place, whatever its config says. */
#include <stdlib.h>

#include "bootstrap/conformance.h"
#include "support/load.h"
#include "support/torture.h"
#include "weft/protocol/mem.h"

#define PLACES_MAX 64
/* What an injected fault costs; else nobody meets it. */
#define DEADLINE_NS                                                                                                    \
    (torture_is_failing() ? load_patience_ns(UINT64_C(300000000) * (WEFTI_TSAN ? 4 : 1)) : UINT64_C(60000000000))

/* What an embedder's communicator would be, for one rank; those of all ranks are an array. */
typedef struct embedder {
    weft_callback_ops ops;
    weft_world_config config;
    wefti_bootstrap bootstrap;
} embedder;

static int embedder_allgather(void *context, const void *mine, void *all, size_t bytes)
{
    embedder *own = context;
    if (own->bootstrap.ops == NULL && wefti_bootstrap_open(&own->config, &own->bootstrap) != WEFT_OK) {
        return 1;
    }
    return own->bootstrap.ops->allgather(&own->bootstrap, mine, all, bytes) == WEFT_OK ? 0 : 2;
}

static weft_status begin(int pes, weft_world_config *shared)
{
    weft_threads *threads;
    WEFT_TRY(weft_threads_create(pes, &threads));
    embedder *all = calloc(PLACES_MAX, sizeof *all);
    uint64_t deadline_ns = DEADLINE_NS;
    for (int rank = 0; rank < pes; rank++) {
        all[rank].ops = (weft_callback_ops){sizeof(weft_callback_ops), &all[rank], embedder_allgather};
        all[rank].config = (weft_world_config){sizeof(weft_world_config), .bootstrap = WEFT_BOOTSTRAP_THREADS};
        all[rank].config.threads = threads;
        all[rank].config.pe = rank;
        all[rank].config.deadline_ns = deadline_ns;
    }
    shared->bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    shared->callback = &all[0].ops;
    return WEFT_OK;
}

static void fit(int place, weft_world_config *config)
{
    const embedder *all = config->callback->context;
    config->callback = &all[place].ops;
}

static void end(weft_world_config *shared)
{
    embedder *all = shared->callback->context;
    for (int rank = 0; rank < PLACES_MAX; rank++) {
        wefti_bootstrap_close(&all[rank].bootstrap);
    }
    weft_threads_destroy(all[0].config.threads);
    free(all);
}

int main(void)
{
    static const bootstrap_subject subject = {
        .limits = BOOTSTRAP_NO_DEADLINES | BOOTSTRAP_SIZE_TRUSTED | BOOTSTRAP_MEETING_REUSED,
        .begin = begin,
        .fit = fit,
        .end = end,
    };
    return bootstrap_conformance_run(&subject);
}
