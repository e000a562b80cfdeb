/* faces/nccl_ep/rank_threads.h: ranks that are threads of a test. */
#ifndef WEFT_TESTS_NCCL_EP_RANK_THREADS_H
#define WEFT_TESTS_NCCL_EP_RANK_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#define RANK_THREADS_MOST 8

typedef struct rank_thread {
    pthread_t thread;
    int (*body)(void *rig);
    void *rig;
    int failures;
} rank_thread;

static inline void *rank_thread_run(void *argument)
{
    rank_thread *one = argument;
    one->failures = one->body(one->rig);
    return NULL;
}

/* Run body on a thread for each of `ranks` rigs, which lie `rig_bytes` apart: the sum of the failures that they
 * return. */
static inline int run_rank_threads(int ranks, int (*body)(void *rig), void *rigs, size_t rig_bytes)
{
    rank_thread all[RANK_THREADS_MOST];
    int failures = 0;
    if (ranks > RANK_THREADS_MOST) {
        abort();
    }
    for (int i = 0; i < ranks; i++) {
        all[i] = (rank_thread){.body = body, .rig = (char *)rigs + (size_t)i * rig_bytes};
        if (pthread_create(&all[i].thread, NULL, rank_thread_run, &all[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < ranks; i++) {
        (void)pthread_join(all[i].thread, NULL);
        failures += all[i].failures;
    }
    return failures;
}

#endif
