/* support/each.c: threads for PEs. The simulator has its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/pes.h"

typedef struct one_thread {
    pthread_t thread;
    int pe;
    void (*body)(int pe, void *context);
    void *context;
} one_thread;

static void *run_one(void *argument)
{
    one_thread *one = argument;
    check_as_pe(one->pe);
    one->body(one->pe, one->context);
    return NULL;
}

void pes_each(int pes, void (*body)(int pe, void *context), void *context)
{
    one_thread threads[PES_MAX];
    int started = 0;
    for (; started < pes; started++) {
        one_thread *one = &threads[started];
        *one = (one_thread){.pe = started, .body = body, .context = context};
        if (pthread_create(&one->thread, NULL, run_one, one) != 0) {
            fprintf(stderr, "no thread for PE %d\n", started);
            abort(); /* the others would wait for it */
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i].thread, NULL);
    }
}
