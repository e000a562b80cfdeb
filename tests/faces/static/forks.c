/* A child after fork has a copy of the variables as they were then: neither sees what the other, or another PE, writes
 * to its own afterwards, whatever handlers of forks the program has. Programs that are started (system, popen,
 * posix_spawn, vfork) work. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faces/static/check.h"

extern char **environ;
static int value = 5;
static int zero;
static int handled;
static int big[1 << 18];

static void handle_in_child(void)
{
    handled = 1;
}

/* Before anything of the library's own can be, at the earliest that a program can. */
__attribute__((constructor)) static void register_early(void)
{
    (void)pthread_atfork(NULL, NULL, handle_in_child);
}

static int wait_for(pid_t child)
{
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* The child waits until its parent, and the other PE, have written. */
static int look_in_child(int from)
{
    char byte;
    if (read(from, &byte, 1) != 1) {
        return 2;
    }
    if (value != 5 || zero != 0 || big[1 << 17] != 9) {
        return 3;
    }
    value = -1;
    zero = -1;
    memset(big, 0xff, sizeof big);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        int is_right = value == -1 && zero == -1 && big[0] == -1;
        value = -2;
        _exit(is_right ? 0 : 4);
    }
    int status = -1;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) {
        return 5;
    }
    return value == -1 ? 0 : 6;
}

static void fork_and_write(int me, int pes)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    value = 5;
    zero = 0;
    handled = 0;
    big[1 << 17] = 9;
    shmem_barrier_all();
    pid_t child = fork();
    if (child == 0) {
        _exit(look_in_child(ends[0]));
    }
    shmem_barrier_all();
    value = 6;
    shmem_int_p(&zero, 7, (me + 1) % pes);
    shmem_barrier_all();
    CHECK(zero == 7);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(wait_for(child) == 0);
    CHECK(value == 6 && zero == 7 && handled == 0 && big[0] == 0 && big[1 << 17] == 9);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void start_programs(void)
{
    char line[16] = "";
    char *words[] = {"true", NULL};
    pid_t child;
    CHECK(system("exit 3") == 3 << 8);
    FILE *from = popen("echo words", "r");
    CHECK(from != NULL && fgets(line, sizeof line, from) != NULL && strcmp(line, "words\n") == 0);
    CHECK(pclose(from) == 0);
    CHECK(posix_spawnp(&child, "true", NULL, NULL, words, environ) == 0 && wait_for(child) == 0);
    child = vfork();
    if (child == 0) {
        (void)execlp("true", "true", (char *)NULL);
        _exit(9);
    }
    CHECK(wait_for(child) == 0);
}

/* A child that ends by exit runs what the program and the library have for the end. */
static void end_by_exit(void)
{
    pid_t child = fork();
    if (child == 0) {
        value = -7;
        exit(12);
    }
    CHECK(wait_for(child) == 12 && value != -7);
}

static void *fork_in_thread(void *argument)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            zero = i;
            _exit(zero == i ? 0 : 1);
        }
        CHECK(wait_for(child) == 0);
    }
    return argument;
}

static void fork_in_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, fork_in_thread, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(zero == 7);
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    fork_and_write(me, pes);
    start_programs();
    end_by_exit();
    fork_in_threads();
    fork_and_write(me, pes);
    shmem_finalize();
    pid_t child = fork();
    if (child == 0) {
        value = -3;
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) == child && value == 6 ? 0 : 1;
}
