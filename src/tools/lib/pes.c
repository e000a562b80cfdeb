/* lib/pes.c: the PEs of a measuring tool. */
#include "tools/lib/pes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int tool_failed(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s: %s\n", program_invocation_short_name, what, weft_status_name(status),
                weft_last_error());
    }
    return status != WEFT_OK;
}

static int run_in(const weft_world_config *config, int (*body)(weft_world *world, void *context), void *context)
{
    weft_world *world;
    if (tool_failed(weft_world_create(config, &world), "creating the world")) {
        return 1;
    }
    int failed = body(world, context);
    return tool_failed(weft_world_destroy(world), "destroying the world") || failed;
}

typedef struct one_pe {
    pthread_t thread;
    weft_world_config config;
    int (*body)(weft_world *world, void *context);
    void *context;
    int failed;
} one_pe;

static void *run_thread(void *argument)
{
    one_pe *pe = argument;
    pe->failed = run_in(&pe->config, pe->body, pe->context);
    return NULL;
}

static int run_threads(const weft_world_config *config, int threads, int (*body)(weft_world *world, void *context),
                       void *context)
{
    one_pe *pes = calloc((size_t)threads, sizeof *pes);
    weft_threads *meeting = NULL;
    int started = 0;
    int failed = pes == NULL || tool_failed(weft_threads_create(threads, &meeting), "meeting");
    for (; started < threads && !failed; started++) {
        one_pe *pe = &pes[started];
        pe->config = *config;
        pe->config.bootstrap = WEFT_BOOTSTRAP_THREADS;
        pe->config.threads = meeting;
        pe->config.pe = started;
        pe->config.pes = threads;
        pe->body = body;
        pe->context = context;
        if (pthread_create(&pe->thread, NULL, run_thread, pe) != 0) {
            fprintf(stderr, "%s: cannot start thread %d of %d\n", program_invocation_short_name, started, threads);
            exit(1); /* the others would wait for it */
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(pes[i].thread, NULL);
        failed |= pes[i].failed;
    }
    weft_threads_destroy(meeting);
    free(pes);
    return failed;
}

int tool_pes_run(const weft_world_config *config, int threads, int (*body)(weft_world *world, void *context),
                 void *context)
{
    return threads > 0 ? run_threads(config, threads, body, context) : run_in(config, body, context);
}
