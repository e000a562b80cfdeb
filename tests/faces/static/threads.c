/* Other threads write to their variables while shmem_init and shmem_finalize exchange the pages: no write is lost, and
 * a handler of signals that the program has is called as before. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "faces/static/check.h"

#define THREADS 3
#define ROUNDS 100 /* each waits for the other PE, beside threads that never rest */

static struct counter {
    volatile long count;
    char between[8192];
} counters[THREADS] = {{.count = 100}};
static volatile int stops;
static long counted[THREADS];
static sigjmp_buf back;
static volatile int faults;

static void *count(void *argument)
{
    struct counter *mine = argument;
    long own = 0;
    while (!stops) {
        mine->count = mine->count + 1;
        own++;
    }
    counted[mine - counters] = own;
    return NULL;
}

static void at_fault(int number)
{
    (void)number;
    faults++;
    siglongjmp(back, 1);
}

static void fault(void)
{
    static volatile int *nothing;
    if (sigsetjmp(back, 1) == 0) {
        *nothing = 1;
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_t threads[THREADS];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = at_fault;
    if (strcmp(argv[1], "handler") == 0) {
        sigaction(SIGSEGV, &action, NULL);
    }
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, count, &counters[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int provided;
        shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        shmem_finalize();
    }
    stops = 1;
    for (long i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        long wanted = counted[i] + (i == 0 ? 100 : 0);
        if (counters[i].count != wanted) {
            (void)fprintf(stderr, "thread %d: %ld writes were lost\n", i, wanted - counters[i].count);
            return 1;
        }
    }
    if (strcmp(argv[1], "handler") == 0) {
        fault();
        fault();
        return faults == 2 ? 0 : 1;
    }
    return 0;
}
