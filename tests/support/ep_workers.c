#include "support/ep_workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "support/check.h"

#define WORKERS_MAX 16
#define ELEMENTS_LEAST 32768 /* a thread's: a millisecond, against which its creation is nothing */

int ep_workers_wanted = 1;

typedef struct worker {
    void (*body)(void *context, int64_t first, int64_t end);
    void *context;
    int64_t first;
    int64_t end;
    int pe;
    pthread_t thread;
} worker;

static void *work(void *argument)
{
    const worker *of = argument;
    check_as_pe(of->pe);
    of->body(of->context, of->first, of->end);
    return NULL;
}

static int64_t count_workers(int64_t count, size_t each)
{
    const char *given = getenv("WEFT_TEST_WORKERS");
    const int64_t wanted = given != NULL ? atoi(given) : ep_workers_wanted;
    const int64_t useful = (int64_t)((size_t)count * each / ELEMENTS_LEAST);
    const int64_t most = wanted < WORKERS_MAX ? wanted : WORKERS_MAX;
    return useful < most ? useful : most;
}

void ep_workers_run(int64_t count, size_t each, void (*body)(void *context, int64_t first, int64_t end), void *context)
{
    worker all[WORKERS_MAX];
    const int64_t workers = count_workers(count, each);
    int64_t started = 1; /* the first is the caller */
    for (; started < workers; started++) {
        worker *of = &all[started];
        *of = (worker){body, context, count * started / workers, count * (started + 1) / workers, check_pe(), 0};
        if (pthread_create(&of->thread, NULL, work, of) != 0) {
            break;
        }
    }
    body(context, 0, started > 1 ? count / workers : count);
    if (started > 1 && started < workers) {
        body(context, count * started / workers, count);
    }
    for (int64_t i = 1; i < started; i++) {
        (void)pthread_join(all[i].thread, NULL);
    }
}
