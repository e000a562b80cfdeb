/* Goal: SHMEM_THREAD_MULTIPLE (9.2): threads of a PE put, get, add, signal, lock, wait and order at once, by the
 * default context, by shared ones and by private ones of their own.
 * Method: thread t of each PE talks to thread t of the next; beside that all threads of all PEs add to one word. Each
 * thread has a team of its own for collectives, and a lock that its fellows in other PEs take, too. */
#include <pthread.h>

#include "faces/shmem/check.h"

#define THREADS 4
#define ROUNDS 300

static int me;
static int pes;
static long *inbox; /* [2 * THREADS] */
static long *flags; /* [THREADS] */
static long *sums; /* [2 * THREADS] */
static uint64_t *total;
static uint64_t *signals; /* [THREADS] */
static long *locks; /* [2 * THREADS]: a lock, and what it guards on PE 0 */
static shmem_ctx_t shared;
static shmem_team_t teams[THREADS];

static void *run(void *argument)
{
    const int t = (int)(intptr_t)argument;
    const int right = (me + 1) % pes;
    const int left = (me + pes - 1) % pes;
    shmem_ctx_t own = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0);
    for (long round = 1; round <= ROUNDS; round++) {
        shmem_ctx_t ctx = round % 3 == 0 ? SHMEM_CTX_DEFAULT : round % 3 == 1 ? shared : own;
        const long value = round * 100 + me * 10 + t;
        shmem_ctx_long_put(ctx, inbox + t, &value, 1, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_p(ctx, flags + t, round, right);
        shmem_ctx_uint64_atomic_add(ctx, total, 1, (int)(round % pes));
        shmem_long_wait_until(flags + t, SHMEM_CMP_GE, round);
        CHECK(inbox[t] == round * 100 + left * 10 + t);
        shmem_ctx_putmem_signal_nbi(ctx, inbox + THREADS + t, &value, sizeof value, signals + t, 1, SHMEM_SIGNAL_ADD,
                                    right);
        shmem_signal_wait_until(signals + t, SHMEM_CMP_GE, (uint64_t)round);
        CHECK(inbox[THREADS + t] == round * 100 + left * 10 + t);
        shmem_ctx_quiet(ctx);
        if (round % 10 == 0) {
            shmem_set_lock(locks + 2 * t);
            shmem_ctx_long_p(own, locks + 2 * t + 1, shmem_ctx_long_g(own, locks + 2 * t + 1, 0) + 1, 0);
            shmem_ctx_quiet(own);
            shmem_clear_lock(locks + 2 * t);
        }
        sums[2 * t] = me + round;
        CHECK(shmem_long_sum_reduce(teams[t], sums + 2 * t + 1, sums + 2 * t, 1) ==
              0); /* nobody goes on before all have looked */
        CHECK(sums[2 * t + 1] == pes * round + pes * (pes - 1) / 2);
    }
    shmem_ctx_destroy(own);
    return NULL;
}

int main(void)
{
    int provided = -1;
    pthread_t threads[THREADS];
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE) {
        return 3;
    }
    shmem_query_thread(&provided);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    pes = shmem_n_pes();
    inbox = ZEROED(long, 2 * THREADS);
    signals = ZEROED(uint64_t, THREADS);
    locks = ZEROED(long, 2 * THREADS);
    flags = ZEROED(long, THREADS);
    sums = ZEROED(long, 2 * THREADS);
    total = ZEROED(uint64_t, 1);
    CHECK(shmem_ctx_create(0, &shared) == 0);
    for (int t = 0; t < THREADS; t++) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[t]) == 0);
    }
    shmem_barrier_all();
    for (intptr_t t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, run, (void *)t);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    shmem_ctx_quiet(shared);
    shmem_barrier_all();
    for (int t = 0; t < THREADS; t++) {
        CHECK(shmem_long_g(locks + 2 * t + 1, 0) == ROUNDS / 10 * pes);
    }
    uint64_t all = 0;
    for (int pe = 0; pe < pes; pe++) {
        all += shmem_uint64_g(total, pe);
    }
    CHECK(all == (uint64_t)ROUNDS * THREADS * (uint64_t)pes);
    shmem_barrier_all();
    return check_end();
}
