/* Goal: memory ordering and locks (9.11, 9.12).
 * Method: data, a fence or quiet, then a flag: who sees the flag must see the data; all PEs change one PE's variable
 * under a lock, without atomics, and none of the changes may be lost; a lock that is taken cannot be taken by
 * test_lock. */
#include "faces/shmem/check.h"

#define WORDS 64
#define ROUNDS 200

static int me;
static int pes;

static void check_order(shmem_ctx_t ctx)
{
    const int right = (me + 1) % pes;
    long *data = ZEROED(long, WORDS);
    long *flag = ZEROED(long, 1);
    const int targets[2] = {right, me};
    for (long round = 1; round <= ROUNDS; round++) {
        long out[WORDS];
        for (int i = 0; i < WORDS; i++) {
            out[i] = round * 1000 + i;
        }
        shmem_ctx_long_put_nbi(ctx, data, out, WORDS, right);
        switch (round % 4) {
        case 0:
            shmem_ctx_fence(ctx);
            break;
        case 1:
            shmem_ctx_quiet(ctx);
            break;
        case 2:
            shmem_ctx_pe_quiet(ctx, targets, 2);
            break;
        default:
            if (ctx == SHMEM_CTX_DEFAULT) {
                shmem_fence();
                shmem_pe_quiet(targets, 1);
                shmem_quiet();
            } else {
                shmem_ctx_fence(ctx);
            }
            break;
        }
        shmem_ctx_long_p(ctx, flag, round, right);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, round);
        long wrong = 0;
        for (int i = 0; i < WORDS; i++) {
            wrong += data[i] != round * 1000 + i;
        }
        CHECK_SAY(wrong == 0, "round %ld: the flag came before %ld words", round, wrong);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
    }
    shmem_free(flag);
    shmem_free(data);
}

/* Read, wait a little, write: two at once would lose one. */
static void add_slowly(long *count)
{
    long seen = shmem_long_g(count, 0);
    for (volatile int i = 0; i < 50; i++) {
    }
    shmem_long_p(count, seen + 1, 0);
}

static void check_locks(void)
{
    long *lock = ZEROED(long, 2);
    long *count = ZEROED(long, 1);
    for (int i = 0; i < ROUNDS; i++) {
        shmem_set_lock(lock);
        add_slowly(count);
        shmem_clear_lock(lock);
    }
    int taken = 0;
    while (taken < ROUNDS / 4) {
        if (shmem_test_lock(lock) == 0) {
            add_slowly(count);
            taken++;
            shmem_clear_lock(lock);
        }
    }
    shmem_barrier_all();
    CHECK_SAY(shmem_long_g(count, 0) == (long)pes * (ROUNDS + ROUNDS / 4), "%ld of %ld", shmem_long_g(count, 0),
              (long)pes * (ROUNDS + ROUNDS / 4));
    shmem_barrier_all();
    if (me == 0) {
        shmem_set_lock(lock + 1);
        CHECK(shmem_test_lock(lock + 1) == 1); /* also by who holds it */
    }
    shmem_barrier_all();
    if (me != 0) {
        CHECK(shmem_test_lock(lock + 1) == 1);
    }
    shmem_barrier_all();
    if (me == 0) {
        shmem_clear_lock(lock + 1);
    }
    shmem_barrier_all();
    if (me == pes - 1) {
        CHECK(shmem_test_lock(lock + 1) == 0);
        shmem_clear_lock(lock + 1);
    }
    shmem_barrier_all();
    shmem_free(count);
    shmem_free(lock);
}

/* What earlier holders put is there for the next. */
static void check_lock_order(void)
{
    long *lock = ZEROED(long, 1);
    long *table = ZEROED(long, WORDS);
    for (int round = 0; round < 20; round++) {
        shmem_set_lock(lock);
        long seen[WORDS];
        shmem_long_get(seen, table, WORDS, pes - 1);
        long wrong = 0;
        for (int i = 0; i < WORDS; i++) {
            wrong += seen[i] != seen[0];
        }
        for (int i = 0; i < WORDS; i++) {
            seen[i]++;
        }
        CHECK_SAY(wrong == 0, "%ld words are of another holder", wrong);
        shmem_long_put_nbi(table, seen, WORDS, pes - 1);
        shmem_quiet(); /* seen ends here */
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(table + WORDS - 1, pes - 1) == 20L * pes);
    shmem_barrier_all();
    shmem_free(table);
    shmem_free(lock);
}

int main(void)
{
    shmem_ctx_t ctx;
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    check_order(SHMEM_CTX_DEFAULT);
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
    check_order(ctx);
    shmem_ctx_destroy(ctx);
    shmem_ctx_quiet(SHMEM_CTX_INVALID); /* nothing */
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_pe_quiet(NULL, 0);
    check_locks();
    check_lock_order();
    long word = 0; /* deprecated, and without effect */
    shmem_set_cache_inv();
    shmem_clear_cache_inv();
    shmem_set_cache_line_inv(&word);
    shmem_clear_cache_line_inv(&word);
    shmem_udcflush();
    shmem_udcflush_line(&word);
    return check_end();
}
