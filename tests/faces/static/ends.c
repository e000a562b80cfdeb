/* Ends in the way that its first argument says; the last PE does, where one does. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faces/static/check.h"

static long arrived;

static int is(const char *word, const char *way)
{
    return strcmp(word, way) == 0;
}

int main(int argc, char **argv)
{
    char line[64];
    const char *way = argc > 1 ? argv[1] : "";
    shmem_init();
    const int me = shmem_my_pe();
    const int is_last = me == shmem_n_pes() - 1;
    shmem_long_atomic_inc(&arrived, 0);
    shmem_barrier_all();
    CHECK(me != 0 || arrived == shmem_n_pes());
    if (is(way, "return")) {
        printf("PE %d returns\n", me);
        return 0;
    }
    if (is(way, "exit")) {
        exit(is_last ? 3 : 0);
    }
    if (is(way, "exit-others-wait") && is_last) {
        exit(3);
    }
    if (is(way, "abort") && is_last) {
        abort();
    }
    if (is(way, "kill") && is_last) {
        raise(SIGKILL);
    }
    if (is(way, "global-exit") && is_last) {
        shmem_global_exit(5);
    }
    if (is(way, "global-exit-0") && is_last) {
        shmem_global_exit(0);
    }
    if (is(way, "input")) {
        while (fgets(line, sizeof line, stdin) != NULL) {
            printf("PE %d reads %s", me, line);
        }
        shmem_finalize();
        return 0;
    }
    if (is(way, "variable")) {
        printf("PE %d has %s\n", me, getenv("COLOUR"));
        shmem_finalize();
        return 0;
    }
    shmem_long_wait_until(&arrived, SHMEM_CMP_EQ, -1); /* for ever */
    return 0;
}
