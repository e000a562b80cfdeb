/* A bucket sort with the calls that ISx makes: receive buffer, work and sync arrays are global variables; a PE reserves
 * its place in each bucket by an atomic of the deprecated name and puts the keys there, from its own bucket on in a
 * circle; counts and sums by active-set collectives. Several rounds; every key arrives once, in its bucket. */
/* PES: 1 2 3 8 */
#include "faces/shmem/check.h"

#define KEYS 20000
#define ROUNDS 3
#define ROOM ((size_t)1 << 28) /* of which little is used: 1 GiB a PE of .bss */

static int bucket_keys[ROOM];
static long long received;
static long long sum_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long sum_sync[SHMEM_REDUCE_SYNC_SIZE];
static long collect_sync[SHMEM_COLLECT_SYNC_SIZE];
static long barrier_sync[SHMEM_BARRIER_SYNC_SIZE];
static int counts[64];
static int count;
static long long sums[2];
static long long totals[2];

static void init_sync(long *sync, int longs)
{
    for (int i = 0; i < longs; i++) {
        sync[i] = SHMEM_SYNC_VALUE;
    }
}

static unsigned next_key(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The keys by bucket; firsts[b] is where bucket b begins. */
static void make_keys(int *keys, int *firsts, int round, unsigned width)
{
    const int pes = shmem_n_pes();
    int drawn[KEYS];
    int at[65] = {0};
    unsigned state = (unsigned)(shmem_my_pe() * 977 + round * 13 + 1);
    for (int i = 0; i < KEYS; i++) {
        drawn[i] = (int)(next_key(&state) % (width * (unsigned)pes));
        at[drawn[i] / (int)width + 1]++;
    }
    for (int b = 0; b < pes; b++) {
        at[b + 1] += at[b];
    }
    memcpy(firsts, at, (size_t)(pes + 1) * sizeof *firsts);
    for (int i = 0; i < KEYS; i++) {
        keys[at[drawn[i] / (int)width]++] = drawn[i];
        sums[0] += drawn[i];
    }
}

static void exchange(const int *keys, const int *firsts)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    for (int i = 0; i < pes; i++) {
        const int to = (me + i) % pes;
        const int many = firsts[to + 1] - firsts[to];
        const long long place = shmem_longlong_fadd(&received, many, to);
        shmem_int_put(&bucket_keys[place], &keys[firsts[to]], (size_t)many, to);
    }
    shmem_barrier(0, 0, pes, barrier_sync);
}

static void sort_once(int round)
{
    const unsigned width = 1u << 20;
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    int keys[KEYS];
    int firsts[65];
    sums[0] = sums[1] = 0;
    make_keys(keys, firsts, round, width);
    exchange(keys, firsts);
    count = (int)received;
    for (int i = 0; i < count; i++) {
        CHECK(bucket_keys[i] / (int)width == me);
        sums[1] += bucket_keys[i];
    }
    shmem_longlong_sum_to_all(totals, sums, 2, 0, 0, pes, sum_work, sum_sync);
    CHECK(totals[0] == totals[1]);
    shmem_fcollect32(counts, &count, 1, 0, 0, pes, collect_sync);
    int all = 0;
    for (int pe = 0; pe < pes; pe++) {
        all += counts[pe];
    }
    CHECK(all == KEYS * pes);
    received = 0;
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    init_sync(sum_sync, SHMEM_REDUCE_SYNC_SIZE);
    init_sync(collect_sync, SHMEM_COLLECT_SYNC_SIZE);
    init_sync(barrier_sync, SHMEM_BARRIER_SYNC_SIZE);
    shmem_barrier_all();
    for (int round = 0; round < ROUNDS; round++) {
        sort_once(round);
    }
    return check_end();
}
