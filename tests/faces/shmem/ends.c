/* A program that ends as its first argument says; ends.py starts it. */
#include <signal.h>
#include <unistd.h>

#include "faces/shmem/check.h"

static void say(const char *what)
{
    printf("PE %d %s\n", shmem_my_pe(), what);
}

/* For ever, without a call of the library. */
static void compute(void)
{
    for (volatile long i = 0;; i++) {
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const int is = argc > 2 ? atoi(argv[2]) : 0;
    long local = 0;
    if (strcmp(how, "early") == 0) {
        shmem_long_p(&local, 1, 0);
    } else if (strcmp(how, "early malloc") == 0) {
        free(shmem_malloc(8));
    } else if (strcmp(how, "level") == 0) {
        (void)shmem_init_thread(7, NULL);
    }
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    long *word = ZEROED(long, 64);
    if (strcmp(how, "return") == 0) { /* without a finalize: what was put before is there for the others' exit */
        shmem_long_p(word, 1, (me + 1) % pes);
        say("returns");
        return 0;
    }
    if (strcmp(how, "late") == 0) { /* the others' exit must wait for this one */
        if (me == pes - 1) {
            usleep(200000);
            for (int pe = 0; pe < pes; pe++) {
                shmem_long_p(word, 1, pe);
            }
        }
        exit(0);
    }
    if (strcmp(how, "exit") == 0) {
        if (me == pes - 1) {
            exit(is);
        }
        shmem_barrier_all();
        shmem_barrier_all();
    } else if (strcmp(how, "global") == 0) {
        say("is here");
        shmem_barrier_all();
        if (me == pes - 1) {
            say("ends all");
            shmem_global_exit(is);
        }
        if (me % 2 == 0) {
            compute();
        }
        shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    } else if (strcmp(how, "range") == 0) {
        if (me == pes - 1) {
            shmem_int_put((int *)(void *)word, (int *)(void *)&local, 1, pes);
        }
        shmem_barrier_all();
    } else if (strcmp(how, "local") == 0) {
        if (me == pes - 1) {
            shmem_long_atomic_inc(&local, 0);
        }
        shmem_barrier_all();
    } else if (strcmp(how, "mismatch") == 0) {
        void *block = shmem_calloc(me == 0 ? 64 : 128, 1);
        (void)block;
    } else if (strcmp(how, "free") == 0) {
        shmem_free(word + 1);
    } else if (strcmp(how, "unlock") == 0) {
        shmem_clear_lock(word);
    } else if (strcmp(how, "lock") == 0) {
        shmem_set_lock(&local);
    } else if (strcmp(how, "again") == 0) {
        shmem_set_lock(word + me * 2);
        shmem_set_lock(word + me * 2);
    } else if (strcmp(how, "compare") == 0) {
        shmem_long_wait_until(word, 17, 1);
    } else if (strcmp(how, "signal") == 0) {
        shmem_putmem_signal(word, word, 8, (uint64_t *)(void *)word, 1, 17, me);
    } else if (strcmp(how, "option") == 0) {
        shmem_ctx_t ctx;
        (void)shmem_ctx_create(1L << 20, &ctx);
    } else if (strcmp(how, "context") == 0) {
        shmem_ctx_long_p(SHMEM_CTX_INVALID, word, 1, me);
    } else if (strcmp(how, "member") == 0) {
        shmem_ctx_t ctx;
        shmem_team_t alone;
        (void)shmem_team_split_strided(SHMEM_TEAM_WORLD, me, 1, 1, NULL, 0, &alone);
        (void)shmem_team_create_ctx(alone, 0, &ctx);
        shmem_ctx_long_p(ctx, word, 1, 1);
    } else if (strcmp(how, "sync") == 0) {
        long sync[SHMEM_SYNC_SIZE] = {SHMEM_SYNC_VALUE};
        if (me < 2) {
            shmem_barrier(0, 0, 2, sync);
        }
        shmem_barrier_all();
    } else if (strcmp(how, "waits") == 0) { /* nobody writes */
        shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    } else if (strcmp(how, "fork") == 0) {
        if (fork() == 0) {
            exit(0); /* finalizes nothing */
        }
        shmem_barrier_all();
    } else if (strcmp(how, "killed") == 0) {
        if (me == pes - 1) {
            kill(getpid(), SIGKILL);
        }
        shmem_barrier_all();
    } else if (strcmp(how, "heap") == 0) {
        void *block = shmem_malloc((size_t)is << 20);
        say(block != NULL ? "has it" : "has none");
    }
    shmem_finalize();
    if (strcmp(how, "after") == 0) {
        shmem_barrier_all();
    } else if (strcmp(how, "after malloc") == 0) {
        free(shmem_malloc(8));
    }
    return 0;
}
