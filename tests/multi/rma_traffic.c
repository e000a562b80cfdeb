/* Goal: PEs that all talk to all at once, from several threads, over the world and over teams, lose and mix up nothing.
 * Method: random sizes from a common seed, so that a receiver knows what every sender sends it in every round; a token
 * that goes round the ring and counts its steps; barriers of world and teams beside counters that must match. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"
#include "support/pes.h"

#define SLOT_BYTES ((size_t)4096) /* from each PE */
#define ROUNDS 40

/* What `from` sends to `to` in a round: both compute it. */
typedef struct parcel {
    size_t at;
    size_t bytes;
} parcel;

static parcel parcel_of(uint64_t seed, int from, int to, int round)
{
    uint64_t random = seed ^ ((uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)round);
    parcel p = {.at = random_below(&random, 64)};
    p.bytes = random_below(&random, 3) == 0 ? random_below(&random, (unsigned)(SLOT_BYTES - p.at))
                                            : random_below(&random, 100);
    return p;
}

static void check_inbox(const unsigned char *inbox, uint64_t seed, int me, int pes, int round)
{
    for (int from = 0; from < pes; from++) {
        parcel p = parcel_of(seed, from, me, round);
        const unsigned char *slot = inbox + (size_t)from * SLOT_BYTES;
        poison_check(slot, p.at, "before a parcel");
        pattern_check(slot + p.at, p.bytes, from, (size_t)round + (size_t)me, "a parcel");
        poison_check(slot + p.at + p.bytes, SLOT_BYTES - p.at - p.bytes, "behind a parcel");
    }
}

static void all_to_all(weft_world *world, uint64_t seed)
{
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    uint64_t random = seed + (uint64_t)me;
    unsigned char *inbox = pe_poisoned(world, (size_t)pes * SLOT_BYTES);
    unsigned char *data = malloc(SLOT_BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        int order[64];
        random_order(&random, order, pes);
        for (int i = 0; i < pes; i++) {
            parcel p = parcel_of(seed, me, order[i], round);
            pattern_fill(data, p.bytes, me, (size_t)round + (size_t)order[i]);
            CHECK_OK(weft_putmem(world, inbox + (size_t)me * SLOT_BYTES + p.at, data, p.bytes, order[i]));
        }
        if (random_below(&random, 8) == 0) {
            wefti_os_sleep_ns(random_below(&random, 300000));
        }
        CHECK_OK(weft_barrier(world));
        check_inbox(inbox, seed, me, pes, round);
        memset(inbox, POISON, (size_t)pes * SLOT_BYTES);
        CHECK_OK(weft_barrier(world));
    }
    free(data);
    CHECK_OK(weft_free(world, inbox));
}

/* A token that every PE increases by its number plus one. */
static void ring(weft_world *world)
{
    const uint64_t laps = 100;
    uint64_t me = (uint64_t)weft_world_pe(world);
    uint64_t pes = (uint64_t)weft_world_pes(world);
    uint64_t *token = pe_zeroed(world, sizeof *token);
    int right = (int)((me + 1) % pes);
    uint64_t lap_sum = pes * (pes + 1) / 2;
    for (uint64_t lap = 0; lap < laps; lap++) {
        uint64_t wanted = lap * lap_sum + me * (me + 1) / 2; /* what has been added before this PE in this lap */
        if (me == 0) {
            wanted = lap * lap_sum;
        }
        if (lap > 0 || me > 0) {
            CHECK_OK(weft_uint64_wait_until(world, token, WEFT_CMP_EQ, wanted));
        }
        CHECK_OK(weft_uint64_p(world, token, wanted + me + 1, right));
    }
    if (me == 0) {
        CHECK_OK(weft_uint64_wait_until(world, token, WEFT_CMP_EQ, laps * lap_sum));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, token));
}

/* Each PE counts its barriers in its own heap; nobody may be more than one ahead when looked at behind a barrier. */
static void count_barriers(weft_world *world)
{
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    weft_team *teams[3] = {weft_team_world(world), NULL, NULL};
    uint64_t *counts = pe_zeroed(world, 3 * sizeof *counts);
    int reverse[64];
    for (int i = 0; i < pes; i++) {
        reverse[i] = pes - 1 - i;
    }
    CHECK_OK(weft_team_create(teams[0], reverse, pes, &teams[1]));
    CHECK_OK(weft_team_split_strided(teams[0], 0, 2, (pes + 1) / 2, &teams[2]));
    for (uint64_t round = 1; round <= 400; round++) {
        int which = (int)(round % 3);
        weft_team *team = teams[which];
        if (team == NULL) {
            continue;
        }
        CHECK_OK(weft_uint64_atomic_inc(world, &counts[which], me));
        CHECK_OK(round % 2 == 0 ? weft_team_sync(team) : weft_team_barrier(team));
        int other = weft_team_translate(team, (int)(round / 3 % (uint64_t)weft_team_pes(team)), teams[0]);
        uint64_t mine = 0;
        uint64_t theirs = 0;
        CHECK_OK(weft_uint64_atomic_fetch(world, &counts[which], me, &mine));
        CHECK_OK(weft_uint64_atomic_fetch(world, &counts[which], other, &theirs));
        CHECK_SAY(theirs == mine || theirs == mine + 1, "team %d, round %llu: PE %d counts %llu, this one %llu", which,
                  (unsigned long long)round, other, (unsigned long long)theirs, (unsigned long long)mine);
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_team_destroy(teams[2]));
    CHECK_OK(weft_team_destroy(teams[1]));
    CHECK_OK(weft_free(world, counts));
}

#define THREADS 3
#define THREAD_PUTS 200

typedef struct thread_work {
    weft_world *world;
    unsigned char *inbox; /* 64 bytes from each thread of each PE */
    uint64_t *sum;
} thread_work;

/* One of several threads of a PE: all use the world at once. */
static void work_in_thread(int thread, void *context)
{
    const thread_work *work = context;
    int me = weft_world_pe(work->world);
    int pes = weft_world_pes(work->world);
    unsigned char *mine = work->inbox + ((size_t)me * THREADS + (size_t)thread) * 64;
    check_as_pe(me);
    for (int i = 0; i < THREAD_PUTS; i++) {
        int to = (me + i) % pes;
        unsigned char data[64];
        unsigned char back[64];
        pattern_fill(data, sizeof data, me, (size_t)thread);
        CHECK_OK(weft_putmem(work->world, mine, data, sizeof data, to));
        CHECK_OK(weft_quiet(work->world));
        CHECK_OK(weft_getmem(work->world, back, mine, sizeof back, to));
        CHECK(memcmp(back, data, sizeof back) == 0);
        CHECK_OK(weft_uint64_atomic_add(work->world, work->sum, (uint64_t)thread + 1, to));
    }
}

static void use_threads(weft_world *world)
{
    int pes = weft_world_pes(world);
    thread_work work = {.world = world};
    work.inbox = pe_poisoned(world, (size_t)pes * THREADS * 64);
    work.sum = pe_zeroed(world, sizeof *work.sum);
    pes_each(THREADS, work_in_thread, &work);
    CHECK_OK(weft_barrier(world));
    uint64_t sum = 0;
    for (int from = 0; from < pes; from++) {
        for (int i = 0; i < THREAD_PUTS; i++) {
            sum += (from + i) % pes == weft_world_pe(world) ? THREADS * (THREADS + 1) / 2 : 0;
        }
        for (int thread = 0; thread < THREADS; thread++) {
            pattern_check(work.inbox + ((size_t)from * THREADS + (size_t)thread) * 64, 64, from, (size_t)thread,
                          "the put of a thread");
        }
    }
    CHECK_SAY(*work.sum == sum, "the sum is %llu, not %llu", (unsigned long long)*work.sum, (unsigned long long)sum);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, work.sum));
    CHECK_OK(weft_free(world, work.inbox));
}

static void body(weft_world *world)
{
    uint64_t seed = pe_common_seed(world);
    all_to_all(world, seed);
    ring(world);
    count_barriers(world);
    use_threads(world);
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
