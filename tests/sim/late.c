/* sim/late.c: PEs that are not dead but late: they come within microseconds of the deadline, or are stalled inside a
 * call. A call ends alike where it must, who was late is named and nobody else, and all go on afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "support/check.h"
#include "testing/sim/machine.h"

#define DEADLINE_NS UINT64_C(20000000)
#define EDGE_NS 20000 /* about the deadline */
#define ROUNDS 3
#define MESSAGE_WORDS 12 /* in slots, of which a team has few */

typedef enum late_call {
    LATE_SYNC,
    LATE_BARRIER,
    LATE_FREE,
    LATE_MALLOC,
    LATE_BROADCAST,
    LATE_REDUCE,
    LATE_CALLS
} late_call;

typedef struct late_run {
    case_run *run;
    weft_world *world;
    weft_team *team;
    uint64_t *words; /* one to meet by, two to send, and one that is put before a barrier */
    int late;
    int is_stalled; /* inside the call, and not before it */
    uint64_t for_ns;
    uint64_t begun_ns; /* when this PE began the round */
    int is_second; /* it is in the second of two calls, to which those that wait in the first have not come */
    int counted;
    int times; /* that all went on after a failure */
} late_run;

int meets_by_count(weft_team *team)
{
    char text[2048] = "";
    size_t length;
    MUST(weft_team_tuning(team, text, sizeof text, &length));
    const char *sync = strstr(text, "sync");
    const char *algorithm = sync == NULL ? NULL : strstr(sync, "count");
    return algorithm != NULL && algorithm < strchr(sync, '\n');
}

uint64_t named_pes(const char *text, const char **end)
{
    uint64_t named = 0;
    while (*text == ' ' || *text == ',' || *text == '-' || (*text >= '0' && *text <= '9')) {
        char *after;
        if (*text < '0' || *text > '9') {
            text++;
            continue;
        }
        long first = strtol(text, &after, 10);
        long last = *after == '-' ? strtol(after + 1, &after, 10) : first;
        for (long pe = first; pe <= last && pe < 64; pe++) {
            named |= UINT64_C(1) << pe;
        }
        text = after;
    }
    *end = text;
    return named;
}

/* ---- one call ---- */

static weft_status sync_twice(late_run *late)
{
    WEFT_TRY(weft_team_sync(late->team));
    late->is_second = 1;
    return weft_team_sync(late->team);
}

static weft_status call_it(late_run *late, late_call which)
{
    void *block;
    late->is_second = 0;
    switch (which) {
    case LATE_SYNC:
        return sync_twice(late); /* some may have gone on while others wait for the late one */
    case LATE_BARRIER:
        /* Where it is far, and stands still, the barrier cannot complete this. */
        (void)weft_uint64_put_nbi(late->world, &late->words[3], &late->words[1], 1, late->late);
        return weft_team_barrier(late->team);
    case LATE_FREE:
        return weft_team_free(late->team, NULL); /* an agreement, and nothing else */
    case LATE_MALLOC:
        return weft_team_malloc(late->team, 100, &block);
    case LATE_BROADCAST:
        return weft_uint64_broadcast(late->team, &late->words[2], &late->words[1], 1, late->run->pes - 1);
    default:
        return weft_uint64_sum_reduce(late->team, &late->words[2], &late->words[1], 1);
    }
}

/* A network that gives up on a PE names the one that stands still; that one itself may have been stopped before it
 * asked. */
static void check_unanswered(const char *error, int late)
{
    int named = -1;
    if (weft_sim_pe() != late && strstr(error, " over the network in time") != NULL &&
        (sscanf(error, "PE %d did not answer", &named) != 1 || named != late)) {
        weft_sim_fail("PE %d stands still, but the network's error names others: %s", late, error);
    }
}

/* Who gave up names the late PE alone while that has not come; later, only those that have given up themselves. Members
 * that meet by counting are awaited by all until they have done their part: none of them can have come too late to be
 * named. */
static void check_blame(const late_run *late, late_call which, const char *error)
{
    static const char lead[] = "world \"late\": ";
    const char *at = strstr(error, lead);
    const char *what = at == NULL ? "" : at + strlen(lead);
    uint64_t named = 0;
    if (late->is_stalled && late->run->messages) { /* others may wait for its answer and not have come either */
        check_unanswered(error, late->late);
        return;
    }
    if (strncmp(what, "PE", 2) == 0) {
        named = named_pes(what + (what[2] == 's' ? 3 : 2), &what);
    }
    if (at == NULL) {
        weft_sim_fail("nobody is named: %s", error);
    }
    int is_late = weft_sim_pe() == late->late;
    if (late->is_second) {
        if (!is_late && late->for_ns > DEADLINE_NS + EDGE_NS && (named >> late->late & 1) == 0) {
            weft_sim_fail("PE %d is late, but in the next call the error names others: %s", late->late, error);
        }
        return;
    }
    /* Members of a collective come to it at once, but for the late one; who asks over a network may know only when that
     * has come, too. */
    const int may_have_come = late->run->messages && weft_sim_now_ns() - late->begun_ns > late->for_ns - EDGE_NS;
    if (which > LATE_MALLOC && !late->is_stalled && !is_late && late->for_ns > DEADLINE_NS + EDGE_NS &&
        !may_have_come && (strncmp(what, "did not arrive", 14) != 0 || named != UINT64_C(1) << late->late)) {
        weft_sim_fail("PE %d has not come, and the error is: %s", late->late, error);
    }
    if (strncmp(what, "did not arrive", 14) == 0 && (is_late || named != UINT64_C(1) << late->late)) {
        weft_sim_fail("PE %d was late, but the error names others: %s", late->late, error);
    }
    if (late->counted && which <= LATE_MALLOC && !is_late && late->for_ns > DEADLINE_NS + EDGE_NS &&
        named != UINT64_C(1) << late->late) {
        weft_sim_fail("all wait for PE %d alone, but: %s", late->late, error);
    }
    if (strncmp(what, "came but", 8) == 0 && !is_late && late->for_ns > DEADLINE_NS + EDGE_NS &&
        named != UINT64_C(1) << late->late) {
        weft_sim_fail("PE %d is stalled, but the error names others: %s", late->late, error);
    }
}

/* A team whose call failed fails the next one at once, with the same words. */
static void check_dead(const late_run *late, late_call which)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    const weft_status status = weft_team_sync(late->team);
    if (status != WEFT_ERR_TIMEOUT || strcmp(text, weft_last_error()) != 0) {
        weft_sim_fail("call %d failed (%s), and the next one gave %s: %s", (int)which, text, weft_status_name(status),
                      weft_last_error());
    }
}

/* How PEs learn, beside weft, that all have done something: each has a place of 64, which becomes `value`. */
static void meet(const case_run *run, uint64_t *places, uint64_t value)
{
    places[weft_sim_pe()] = value;
    for (int there = 0; there < run->pes;) {
        weft_sim_sleep_ns(100000);
        there = 0;
        for (int pe = 0; pe < run->pes; pe++) {
            there += places[pe] != 0;
        }
    }
}

/* All have left the call: the statuses are alike where they must be. 1: somebody failed. */
static int compare(late_run *late, int round, late_call which, weft_status status)
{
    case_run *run = late->run;
    uint64_t *ends = &run->board[128 * (ROUNDS * late->times + round)];
    int failed = 0;
    meet(run, ends, (uint64_t)(1 - (int)status));
    meet(run, ends + 64, 1); /* whoever was stalled runs again */
    for (int pe = 0; pe < run->pes; pe++) {
        failed += ends[pe] > 1;
    }
    if (late->counted && which <= LATE_MALLOC && failed > 0 && failed < run->pes) {
        weft_sim_fail("call %d of round %d failed on %d of %d PEs, which meet by counting", (int)which, round, failed,
                      run->pes);
    }
    if (failed > 0 && late->for_ns + EDGE_NS < DEADLINE_NS) {
        weft_sim_fail("call %d of round %d failed on %d PEs, though PE %d was late for %llu ns only", (int)which, round,
                      failed, late->late, (unsigned long long)late->for_ns);
    }
    return failed > 0;
}

/* Round after round, until a call fails: 1. */
static int rounds(late_run *late, uint64_t *common)
{
    static const uint64_t shares[] = {DEADLINE_NS / 2, DEADLINE_NS - EDGE_NS / 2, DEADLINE_NS - EDGE_NS / 2,
                                      3 * DEADLINE_NS, 3 * DEADLINE_NS};
    for (int round = 0; round < ROUNDS; round++) {
        late_call which = (late_call)common_below(common, LATE_CALLS);
        int helper = (late->late + 1) % late->run->pes;
        late->is_stalled = common_below(common, 3) > 0;
        int by_itself = common_below(common, 2);
        int at_a_step = common_below(common, 4) > 0;
        late->for_ns = shares[common_below(common, 5)] + (uint64_t)common_below(common, EDGE_NS);
        late->begun_ns = weft_sim_now_ns();
        if (!late->is_stalled && weft_sim_pe() == late->late) {
            weft_sim_sleep_ns(late->for_ns);
        } else if (late->is_stalled && by_itself && at_a_step && weft_sim_pe() == late->late) {
            wefti_sim_rest_later(1 + (uint32_t)weft_sim_random(UINT64_C(2) << weft_sim_random(6)), late->for_ns);
        } else if (late->is_stalled && by_itself && weft_sim_pe() == late->late) {
            weft_sim_stall(late->late, late->for_ns); /* from where it next gives way, which is in the call */
        } else if (late->is_stalled && !by_itself && weft_sim_pe() == helper) {
            weft_sim_sleep_ns(weft_sim_random(3000));
            weft_sim_stall(late->late, late->for_ns);
        }
        weft_status status = call_it(late, which);
        wefti_sim_rest_later(0, 0);
        if (status != WEFT_OK && status != WEFT_ERR_TIMEOUT) {
            weft_sim_fail("call %d gave %s: %s", (int)which, weft_status_name(status), weft_last_error());
        }
        if (status == WEFT_ERR_TIMEOUT) {
            check_blame(late, which, weft_last_error());
            check_dead(late, which);
        }
        if (compare(late, round, which, status)) {
            return 1;
        }
    }
    return 0;
}

/* Of all PEs, in one order or the other. */
static weft_team *make_team(const late_run *late)
{
    weft_team *team;
    const int first = turned(late->run, 0);
    MUST(weft_team_split_strided(weft_team_world(late->world), first, first == 0 ? 1 : -1, late->run->pes, &team));
    return team;
}

/* As docs/failures.md says: destroy the team, meet by words, make it again. */
static void go_on(late_run *late)
{
    weft_status status = weft_team_destroy(late->team);
    /* whom a network kept from coming to the call does not know that the team is dead */
    const int is_apart = late->run->messages && late->is_stalled && status == WEFT_ERR_MISMATCH;
    if (status != WEFT_OK && status != WEFT_ERR_TIMEOUT && !is_apart) {
        weft_sim_fail("destroying a dead team gave %s: %s", weft_status_name(status), weft_last_error());
    }
    for (int to = 0; to < late->run->pes; to++) {
        MUST(weft_uint64_atomic_add(late->world, &late->words[0], 1, to));
    }
    late->times++;
    do {
        status =
            weft_uint64_wait_until(late->world, &late->words[0], WEFT_CMP_GE, (uint64_t)(late->times * late->run->pes));
    } while (status == WEFT_ERR_TIMEOUT);
    must(status, "to meet by a word");
    late->team = make_team(late);
    MUST(weft_team_barrier(late->team));
}

static weft_world *short_world(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.name = "late";
    config.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&config, &world));
    return world;
}

/* Each PE comes later than the one before, but none so late after it that a deadline is over: who waits for one after
 * the other has a deadline for each. */
static void come_in_turn(const late_run *late)
{
    uint64_t *all;
    const int pes = late->run->pes;
    MUST(weft_malloc(late->world, (size_t)pes * sizeof *all, (void **)&all));
    MUST(weft_uint64_sum_reduce(late->team, &late->words[2], &late->words[1], 1)); /* a new team has its scratch, too */
    weft_sim_sleep_ns((uint64_t)weft_team_pe(late->team) * (DEADLINE_NS / 4 * 3));
    MUST(weft_uint64_fcollect(late->team, all, &late->words[1], 1));
    meet(late->run, &late->run->board[1088], 1);
}

/* The same with a call that has one deadline, however many its waits: who waits for one after the other gives up at
 * it, also if none of them is late by itself. */
static void meet_in_turn(late_run *late)
{
    const int pes = late->run->pes;
    const uint64_t apart_ns = DEADLINE_NS / 4 * 3;
    const int pe = weft_team_pe(late->team);
    const int place = late->run->seed % 2 == 0 ? pe : pes - 1 - pe; /* in turn, or the last first */
    weft_sim_sleep_ns((uint64_t)place * apart_ns);
    const uint64_t start_ns = weft_sim_now_ns();
    const weft_status status = weft_team_barrier(late->team);
    const uint64_t took_ns = weft_sim_now_ns() - start_ns;
    const uint64_t last_ns = (uint64_t)(pes - 1 - place) * apart_ns;
    if ((status != WEFT_OK && status != WEFT_ERR_TIMEOUT) || (last_ns > DEADLINE_NS + EDGE_NS && status == WEFT_OK)) {
        weft_sim_fail("the last comes %llu ms later, and a barrier gave %s", (unsigned long long)(last_ns / 1000000),
                      weft_status_name(status));
    }
    if (!late->run->messages && took_ns > DEADLINE_NS + DEADLINE_NS / 4) {
        weft_sim_fail("a barrier took %llu ms", (unsigned long long)(took_ns / 1000000));
    }
    meet(late->run, &late->run->board[1152], 1);
}

/* A new team of all PEs, whose scratch is made; `all`: room for a full message of each. */
static weft_team *team_with_scratch(late_run *late, uint64_t **all)
{
    weft_team *team = make_team(late);
    MUST(weft_calloc(late->world, (size_t)late->run->pes * MESSAGE_WORDS, sizeof **all, (void **)all));
    MUST(weft_uint64_fcollect(team, *all, &late->words[1], 1));
    return team;
}

/* PE `late` stands still while another sends it more than it may without an answer: that one names it. */
static void run_into(late_run *late)
{
    enum { CALLS = 24, BEFORE = 3 };
    uint64_t *all;
    const int root = (late->late + 1) % late->run->pes;
    weft_team *team = team_with_scratch(late, &all);
    weft_status status = WEFT_OK;
    meet(late->run, &late->run->board[1408], 1);
    for (int i = 0; i < CALLS && status == WEFT_OK; i++) {
        if (i == BEFORE && weft_sim_pe() == root) {
            weft_sim_sleep_ns(weft_sim_random(2000));
            weft_sim_stall(late->late, 3 * DEADLINE_NS);
        }
        status = weft_uint64_broadcast(team, all, all, MESSAGE_WORDS, turned(late->run, root));
    }
    if (weft_sim_pe() == root) {
        const char *what;
        const char *at = strstr(weft_last_error(), "\": PE");
        const uint64_t named = status == WEFT_OK || at == NULL ? 0 : named_pes(at + strlen("\": PE"), &what);
        if (status != WEFT_ERR_TIMEOUT || named != UINT64_C(1) << late->late) {
            weft_sim_fail("PE %d stands still, and who sends to it is told %s: %s", late->late,
                          weft_status_name(status), weft_last_error());
        }
    }
    meet(late->run, &late->run->board[1472], 1);
}

/* PE `late` makes another call than all others, in which it says nothing to them: each is told so, near or far. */
static void call_another(late_run *late)
{
    uint64_t *all;
    weft_team *team = team_with_scratch(late, &all);
    const weft_status status =
        weft_sim_pe() == late->late
            ? weft_uint64_broadcast(team, all, &late->words[1], 1, turned(late->run, (late->late + 1) % late->run->pes))
            : weft_uint64_fcollect(team, all, &late->words[1], 1);
    const int is_of_team = strstr(weft_last_error(), " of the team made different calls") != NULL;
    const int named = is_of_team ? turned(late->run, late->late) : late->late;
    if (status != WEFT_ERR_MISMATCH || !text_names_pe(weft_last_error(), named)) {
        weft_sim_fail("PE %d makes another call, and there is %s: %s", late->late, weft_status_name(status),
                      weft_last_error());
    }
    meet(late->run, &late->run->board[1536], 1);
}

/* PE `late` is stopped past its deadline, and what it waits for comes meanwhile. `after`: how far behind it this PE is
 * in a circle; those that are further away than the second come with that one. */
static void stop_and_come(const late_run *late, int after)
{
    const uint64_t part_ns = DEADLINE_NS / 20;
    const int stop = after == 1 ? 6 : 30;
    const int come = after == 1 ? 18 : 37;
    weft_sim_sleep_ns((uint64_t)stop * part_ns);
    if (after <= 2) {
        weft_sim_stall(late->late, 16 * part_ns);
    }
    weft_sim_sleep_ns((uint64_t)(come - stop) * part_ns);
}

/* Who was stopped past its deadline looks once more for what has come meanwhile: in a wait for a word, and in each of
 * the waits of a collective. Nobody else waits for longer than a deadline. */
static void stop_while_waiting(late_run *late)
{
    const int pes = late->run->pes;
    uint64_t *all;
    weft_team *team = team_with_scratch(late, &all);
    const int after = (weft_team_pe(team) - turned(late->run, late->late) + pes) % pes;
    meet(late->run, &late->run->board[1216], 1);
    if (after > 0) {
        stop_and_come(late, after);
    }
    MUST(weft_uint64_fcollect(team, all, &late->words[1], 1));
    meet(late->run, &late->run->board[1280], 1);
    if (after == 1) {
        stop_and_come(late, after);
        MUST(weft_uint64_p(late->world, &all[pes], 1, late->late));
    } else if (after == 0) {
        MUST(weft_uint64_wait_until(late->world, &all[pes], WEFT_CMP_EQ, 1));
    }
    meet(late->run, &late->run->board[1344], 1);
}

void case_late(void *argument)
{
    late_run late = {.run = argument};
    uint64_t common = late.run->seed;
    late.world = short_world();
    late.late = common_below(&common, late.run->pes);
    MUST(weft_calloc(late.world, 4, sizeof *late.words, (void **)&late.words));
    late.team = make_team(&late);
    MUST(weft_uint64_sum_reduce(late.team, &late.words[2], &late.words[1], 1)); /* makes the scratch, all together */
    late.counted = meets_by_count(late.team);
    meet(late.run, &late.run->board[1024], 1);
    if (rounds(&late, &common)) {
        go_on(&late);
        late.late = common_below(&common, late.run->pes); /* perhaps another: of the first nothing is held against it */
        MUST(weft_uint64_sum_reduce(late.team, &late.words[2], &late.words[1], 1));
        meet(late.run, &late.run->board[1600], 1);
        if (rounds(&late, &common)) {
            go_on(&late);
        }
    }
    if (!late.run->messages) { /* who stands still sees to nothing that comes over a network */
        static void (*const more[])(late_run *) = {stop_while_waiting, stop_while_waiting, run_into, call_another};
        more[common_below(&common, 4)](&late);
    }
    come_in_turn(&late);
    meet_in_turn(&late);
    weft_status status = weft_team_destroy(late.team);
    if (status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER) { /* others may have left */
        must(status, "to destroy a team");
    }
    MUST(weft_world_destroy(late.world));
}

/* ---- locks ---- */

#define LOCKS 2
#define TURNS 4
#define TRIES 100

/* Who holds a lock, as its holder says, and which turn that is; 0: nobody says so. */
static uint64_t holder_word(int turn)
{
    return (uint64_t)(turn + 1) << 16 | (uint64_t)(weft_sim_pe() + 1);
}

void check_lock_holder(uint64_t before, uint64_t after)
{
    const char *at = strstr(weft_last_error(), "is still held by PE ");
    const char *end;
    int holder = (int)(before & 0xffff) - 1;
    if (before == 0 || before != after) {
        return;
    }
    if (at == NULL || named_pes(at + strlen("is still held by PE"), &end) != UINT64_C(1) << holder) {
        weft_sim_fail("PE %d held the lock all the time, but: %s", holder, weft_last_error());
    }
}

static void set_lock(weft_world *world, case_run *run, long *lock, uint64_t *holder)
{
    weft_status status;
    int tries = 0;
    do {
        uint64_t before = *holder;
        status = weft_set_lock(world, lock);
        if (status == WEFT_ERR_TIMEOUT) {
            check_lock_holder(before, *holder);
        }
        int taken = 0;
        if (status == WEFT_ERR_TIMEOUT && weft_sim_random(3) == 0) { /* its place may still be in the queue */
            MUST(weft_test_lock(world, lock, &taken));
            status = taken ? WEFT_OK : status;
        }
        tries += *holder == 0; /* nobody had it at that moment */
        if (tries == TRIES * run->pes) {
            weft_sim_fail("the lock is lost: %s", weft_last_error());
        }
    } while (status == WEFT_ERR_TIMEOUT);
    must(status, "weft_set_lock");
}

static void clear_lock(weft_world *world, long *lock)
{
    weft_status status = weft_clear_lock(world, lock);
    for (int tries = 0; status == WEFT_ERR_TIMEOUT && tries < TRIES; tries++) {
        status = weft_clear_lock(world, lock);
    }
    must(status, "weft_clear_lock");
}

void case_late_locks(void *argument)
{
    case_run *run = argument;
    weft_world *world = short_world();
    long *words;
    uint64_t *holders = run->board;
    MUST(weft_calloc(world, (size_t)2 * LOCKS, sizeof *words, (void **)&words));
    meet(run, &run->board[192], 1);
    for (int turn = 0; turn < TURNS; turn++) {
        int which = (int)weft_sim_random(LOCKS);
        long value;
        if (weft_sim_random(3) == 0) {
            weft_sim_sleep_ns(weft_sim_random(2 * DEADLINE_NS));
        }
        if (weft_sim_random(4) == 0) {
            weft_sim_stall((int)weft_sim_random((uint64_t)run->pes), DEADLINE_NS / 2 + weft_sim_random(DEADLINE_NS));
        }
        set_lock(world, run, &words[which], &holders[which]);
        holders[which] = holder_word(turn);
        MUST(weft_long_g(world, &words[LOCKS + which], 0, &value));
        if (weft_sim_random(3) == 0) {
            weft_sim_sleep_ns(DEADLINE_NS - EDGE_NS / 2 + weft_sim_random(EDGE_NS));
        }
        MUST(weft_long_p(world, &words[LOCKS + which], value + 1, 0));
        if (holders[which] != holder_word(turn)) {
            weft_sim_fail("lock %d has two holders", which);
        }
        holders[which] = 0;
        clear_lock(world, &words[which]);
    }
    MUST(weft_quiet(world));
    meet(run, &run->board[64], 1);
    if (weft_world_pe(world) == 0 && words[LOCKS] + words[LOCKS + 1] != (long)TURNS * run->pes) {
        weft_sim_fail("locks let %ld of %d turns count", words[LOCKS] + words[LOCKS + 1], TURNS * run->pes);
    }
    meet(run, &run->board[128], 1);
    MUST(weft_world_destroy(world));
}
