/* sim/hurried.c: locks in a world whose deadline is as short as a few turns of a lock, while PEs stand still between
 * any two of their steps. Whoever asks gives up all the time, at any step of the others, and asks again. No lock is
 * held twice or lost, what a holder did is seen by the next one, and a lock that could not be passed on can be. */
#include <stdio.h>
#include <string.h>

#include "sim/cases.h"
#include "world/world.h"

#define LOCKS 2
#define TURNS 8
#define CALM_NS UINT64_C(50000000) /* a deadline that nobody meets who is not lost */
#define LONGEST_NS UINT64_C(1000000000)

enum { BOARD_HOLDERS = 0, BOARD_COUNTS = 8, BOARD_ENDED = 16, BOARD_SINCE = 32, BOARD_MEETINGS = 64 };

#define BUSY UINT64_MAX /* in place of when a PE last ended a call of a lock, or cleared it */

typedef struct hurried_run {
    case_run *run;
    weft_world *world;
    long *locks; /* and behind them what their holders count */
    uint64_t deadline_ns;
    int pe;
} hurried_run;

/* Until all are as far, beside weft. */
static void meet(const hurried_run *h, int time)
{
    uint64_t *places = &h->run->board[BOARD_MEETINGS * (1 + time)];
    places[h->pe] = 1;
    for (int pe = 0; pe < h->run->pes; pe++) {
        while (places[pe] == 0) {
            weft_sim_sleep_ns(h->deadline_ns);
        }
    }
}

static void sleep_some(const hurried_run *h, int one_in, uint64_t deadlines)
{
    dawdle(one_in, deadlines * h->deadline_ns);
}

/* The lock is this PE's: the number of all turns so far is known. */
static void hold(const hurried_run *h, int which)
{
    uint64_t *holder = &h->run->board[BOARD_HOLDERS + which];
    uint64_t *count = &h->run->board[BOARD_COUNTS + which];
    const uint64_t mine = ++*count << 16 | (uint64_t)(h->pe + 1);
    long *counter = &h->locks[LOCKS + which];
    long value;
    *holder = mine;
    MUST(weft_long_g(h->world, counter, 0, &value));
    if (value != (long)*count - 1) {
        weft_sim_fail("PE %d has lock %d after %ld turns, and sees %ld", h->pe, which, (long)*count - 1, value);
    }
    sleep_some(h, 3, 2);
    MUST(weft_long_p(h->world, counter, value + 1, 0));
    if (*holder != mine) {
        weft_sim_fail("lock %d is PE %d's and PE %d's", which, h->pe, (int)(*holder & 0xffff) - 1);
    }
    *holder = 0;
}

/* Who has not given a lock away has it, whatever else it asks for; and can give it away, as soon as others go on. */
static void give_away(const hurried_run *h, int which)
{
    const uint64_t until_ns = weft_sim_now_ns() + LONGEST_NS;
    weft_status status = weft_clear_lock(h->world, &h->locks[which]);
    while (status == WEFT_ERR_TIMEOUT && weft_sim_now_ns() < until_ns) {
        sleep_some(h, 2, 2);
        if (weft_sim_random(4) == 0 && weft_set_lock(h->world, &h->locks[which]) != WEFT_ERR_STATE) {
            weft_sim_fail("PE %d still has lock %d to give away, and could set it", h->pe, which);
        }
        status = weft_clear_lock(h->world, &h->locks[which]);
    }
    must(status, "weft_clear_lock");
}

static uint64_t *idle_since(const hurried_run *h, int pe, int which)
{
    return &h->run->board[BOARD_SINCE + pe * LOCKS + which];
}

/* Who has had nothing to do with a lock since before a call began did not hold it then. */
static void check_named(const hurried_run *h, int which, uint64_t begun_ns)
{
    int named = -1;
    const char *at = strstr(weft_last_error(), "is still held by PE ");
    if (at != NULL && sscanf(at, "is still held by PE %d", &named) == 1 && *idle_since(h, named, which) < begun_ns) {
        weft_sim_fail("PE %d has had nothing to do with lock %d for %llu ns, but: %s", named, which,
                      (unsigned long long)(weft_sim_now_ns() - *idle_since(h, named, which)), weft_last_error());
    }
}

static void ask(const hurried_run *h, int which)
{
    const uint64_t begun_ns = weft_sim_now_ns();
    *idle_since(h, h->pe, which) = BUSY;
    int taken = 0;
    if (weft_sim_random(4) == 0) {
        MUST(weft_test_lock(h->world, &h->locks[which], &taken));
    } else {
        const uint64_t before = h->run->board[BOARD_HOLDERS + which];
        const weft_status status = weft_set_lock(h->world, &h->locks[which]);
        taken = status == WEFT_OK;
        if (status == WEFT_ERR_TIMEOUT) {
            check_lock_holder(before, h->run->board[BOARD_HOLDERS + which]);
            check_named(h, which, begun_ns);
        } else {
            must(status, "weft_set_lock");
        }
    }
    if (taken) {
        hold(h, which);
        give_away(h, which);
    }
    *idle_since(h, h->pe, which) = weft_sim_now_ns();
}

/* The last PE asks for nothing: it stops the others, wherever they are, until they are done. */
static void disturb(const hurried_run *h)
{
    const int others = h->run->pes - 1;
    while (h->run->board[BOARD_ENDED] < (uint64_t)others) {
        weft_sim_sleep_ns(1 + weft_sim_random(2 * h->deadline_ns));
        weft_sim_stall((int)weft_sim_random((uint64_t)others), weft_sim_random(4 * h->deadline_ns));
    }
}

/* Nobody hurries any more: each lock is had by all in turn; then it is free, and nobody stands in its queue. */
static void take_in_peace(const hurried_run *h)
{
    h->world->deadline_ns = CALM_NS;
    meet(h, 1);
    for (int which = 0; which < LOCKS; which++) {
        const weft_status status = weft_set_lock(h->world, &h->locks[which]);
        if (status != WEFT_OK) {
            weft_sim_fail("lock %d is lost: %s: %s", which, weft_status_name(status), weft_last_error());
        }
        hold(h, which);
        MUST(weft_clear_lock(h->world, &h->locks[which]));
    }
    MUST(weft_barrier(h->world));
    for (int which = 0; which < LOCKS; which++) {
        long left;
        MUST(weft_long_g(h->world, &h->locks[which], h->pe, &left));
        if (left != 0) {
            weft_sim_fail("lock %d is %lx at PE %d at the end", which, (unsigned long)left, h->pe);
        }
    }
    MUST(weft_barrier(h->world));
    int taken;
    MUST(weft_test_lock(h->world, &h->locks[0], &taken));
    if (taken) {
        h->run->board[BOARD_ENDED + 1]++;
    }
    meet(h, 2);
    if (h->run->board[BOARD_ENDED + 1] != 1) {
        weft_sim_fail("a lock that is free was tested by all, and %d have it", (int)h->run->board[BOARD_ENDED + 1]);
    }
    MUST(taken ? weft_clear_lock(h->world, &h->locks[0]) : WEFT_OK);
    meet(h, 3);
}

void case_hurried_locks(void *argument)
{
    static const uint64_t deadlines_ns[] = {3000, 10000, 40000, 200000};
    hurried_run h = {.run = argument, .pe = weft_sim_pe()};
    uint64_t common = h.run->seed;
    h.world = case_world("hurried_locks");
    h.deadline_ns = deadlines_ns[common_below(&common, 4)];
    MUST(weft_calloc(h.world, (size_t)2 * LOCKS, sizeof *h.locks, (void **)&h.locks));
    meet(&h, 0);
    h.world->deadline_ns = h.deadline_ns;
    if (h.pe == h.run->pes - 1) {
        disturb(&h);
    } else {
        for (int turn = 0; turn < TURNS; turn++) {
            ask(&h, common_below(&common, 4) > 0 ? 0 : (int)weft_sim_random(LOCKS));
            sleep_some(&h, 4, 2);
        }
        h.run->board[BOARD_ENDED]++;
    }
    take_in_peace(&h);
    MUST(weft_world_destroy(h.world));
}
