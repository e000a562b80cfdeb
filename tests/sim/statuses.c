/* sim/statuses.c: over messages, some PEs end for good, and others are only late, in calls that follow one another in
 * any order. Who waits for a PE that is gone is told WEFT_ERR_PEER; who waits for one that is there, or for a word that
 * anybody might have written, is told WEFT_ERR_TIMEOUT, also in the thread that has been told the other before. */
#include <stdio.h>
#include <string.h>

#include "sim/cases.h"
#include "support/check.h"
#include "world/world.h"

#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (150 * MS_NS) /* longer than until the next look at who is gone */
#define NEWS_NS (7000 * MS_NS) /* more than WEFT_SILENCE is by default */
#define SETTLED_NS (1000 * MS_NS) /* until connections count by which ends are told */
#define STEPS 5
#define SUMS 2

enum { STEP_LOST_CALL, STEP_LOST_MOVE, STEP_WORD, STEP_LOCK, STEP_LATE_CALL, STEP_KINDS };

typedef struct status_run {
    case_run *run;
    weft_world *world;
    weft_team *spare[STEPS]; /* of all or of this PE's node, each for one call that fails */
    weft_team *living; /* of those that stay, */
    weft_team *neighbours; /* and of those of them that are of this PE's node */
    uint64_t near; /* bits: PEs of its node */
    uint64_t *words; /* of all: what is put, got and summed; the last one is never written */
    long *locks; /* for each step one that begins at each PE */
    uint64_t lost; /* bits */
    int pe;
    int victim;
    int met;
} status_run;

static int is_in(uint64_t pes, int pe)
{
    return (int)(pes >> pe & 1);
}

/* Those that stay, beside weft. */
static void meet(status_run *s)
{
    uint64_t *places = s->run->board;
    places[s->pe] = (uint64_t)++s->met;
    for (int pe = 0; pe < s->run->pes; pe++) {
        while (!is_in(s->lost, pe) && places[pe] < (uint64_t)s->met) {
            weft_sim_sleep_ns(MS_NS / 10);
        }
    }
}

static void expect(const status_run *s, weft_status status, weft_status wanted, const char *what)
{
    if (status != wanted) {
        weft_sim_fail("PEs %llx are gone, and %s gave %s, not %s: %s", (unsigned long long)s->lost, what,
                      weft_status_name(status), weft_status_name(wanted), status == WEFT_OK ? "" : weft_last_error());
    }
    if (status == WEFT_ERR_TIMEOUT && strstr(weft_last_error(), "never will") != NULL) {
        weft_sim_fail("%s may yet come, but: %s", what, weft_last_error());
    }
}

/* What was asked of PEs that are gone is told by the next quiet, of each once, and by calls that contain one. */
static void settle(const status_run *s)
{
    int told = 0;
    weft_status status = weft_quiet(s->world);
    while (status == WEFT_ERR_PEER && told++ < s->run->pes) {
        status = weft_quiet(s->world);
    }
    expect(s, status, WEFT_OK, "a quiet after all that are gone were told of");
}

/* ---- who is gone ---- */

static weft_status call_team(const status_run *s, weft_team *team, int kind)
{
    void *block;
    switch (kind) {
    case 0:
        return weft_team_barrier(team);
    case 1:
        return weft_team_sync(team);
    case 2:
        return weft_team_malloc(team, 64, &block);
    default:
        return weft_uint64_sum_reduce(team, &s->words[1], &s->words[0], 1);
    }
}

static void call_lost(status_run *s, int step, int kind)
{
    uint64_t members = 0;
    for (int i = 0; i < weft_team_pes(s->spare[step]); i++) {
        members |= UINT64_C(1) << weft_team_translate(s->spare[step], i, weft_team_world(s->world));
    }
    const weft_status status = call_team(s, s->spare[step], kind);
    expect(s, status, (members & s->lost) != 0 ? WEFT_ERR_PEER : WEFT_OK, "a call of a team with or without them");
    meet(s);
}

static int is_far(const status_run *s, int pe)
{
    return weft_ptr(s->world, s->words, pe) == NULL;
}

/* What is asked of one that is gone by itself. In memory that is shared it is as before. */
static void move_lost(status_run *s, int kind)
{
    uint64_t seen = 0;
    const weft_status wanted = is_far(s, s->victim) ? WEFT_ERR_PEER : WEFT_OK;
    weft_status status;
    if (!wefti_world_is_lost(s->world, s->victim)) {
        meet(s);
        return;
    }
    switch (kind) {
    case 0:
        status = weft_uint64_g(s->world, &s->words[0], s->victim, &seen);
        break;
    case 1:
        status = weft_uint64_atomic_fetch_add(s->world, &s->words[0], 1, s->victim, &seen);
        break;
    default:
        status = weft_uint64_get_nbi(s->world, &seen, &s->words[0], 1, s->victim);
        if (status == WEFT_OK) {
            status = weft_quiet(s->world);
        }
    }
    expect(s, status, wanted, "what was asked of one of them");
    meet(s);
}

/* ---- who is late ---- */

static void await_word(status_run *s, int kind)
{
    uint64_t *word = &s->words[SUMS];
    size_t which;
    weft_status status;
    switch (kind) {
    case 0:
        status = weft_uint64_wait_until(s->world, word, WEFT_CMP_NE, 0);
        break;
    case 1:
        status = weft_signal_wait_until(s->world, word, WEFT_CMP_GT, 0, NULL);
        break;
    case 2:
        status = weft_uint64_wait_until_any(s->world, word, 1, NULL, WEFT_CMP_NE, 0, &which);
        break;
    default:
        status = weft_uint64_wait_until_all(s->world, word, 1, NULL, WEFT_CMP_NE, 0);
    }
    expect(s, status, WEFT_ERR_TIMEOUT, "a wait for a word");
    meet(s);
}

/* A lock whose queue begins at `pe`. */
static long *lock_of(const status_run *s, int step, int pe)
{
    long *lock = &s->locks[step * s->run->pes];
    while ((int)(((uintptr_t)lock - s->world->view.heap) / sizeof *lock % (size_t)s->run->pes) != pe) {
        lock++;
    }
    return lock;
}

/* One keeps a lock for longer than the others wait. */
static void await_lock(status_run *s, int step, int keeper)
{
    long *lock = lock_of(s, step, keeper);
    if (s->pe == keeper) {
        MUST(weft_set_lock(s->world, lock));
    }
    meet(s);
    if (s->pe != keeper) {
        expect(s, weft_set_lock(s->world, lock), WEFT_ERR_TIMEOUT, "a lock that one keeps that is there");
    }
    meet(s);
    if (s->pe == keeper) {
        MUST(weft_clear_lock(s->world, lock));
    }
}

/* One comes too late to a call of a team in which all are there. */
static void call_late(status_run *s, int kind, int late, int is_near)
{
    weft_team *team;
    weft_team *of = is_near ? s->neighbours : s->living;
    const int is_missed = !is_near || is_in(s->near, late);
    MUST(weft_team_split_strided(of, 0, 1, weft_team_pes(of), &team));
    if (kind == 3) { /* the first makes memory, too */
        MUST(call_team(s, team, kind));
    }
    meet(s);
    if (s->pe == late) {
        weft_sim_sleep_ns(2 * DEADLINE_NS);
    }
    const weft_status status = call_team(s, team, kind);
    if (s->pe != late) {
        expect(s, status, is_missed ? WEFT_ERR_TIMEOUT : WEFT_OK, "a call to which one came late, or none");
        if (is_missed && !text_names_pe(weft_last_error(), late)) {
            weft_sim_fail("PE %d is late, but: %s", late, weft_last_error());
        }
    }
    meet(s);
    if (weft_team_destroy(team) == WEFT_ERR_PEER) {
        weft_sim_fail("all are there, but destroying their team gave: %s", weft_last_error());
    }
    meet(s); /* who has the result of the call waits for the others */
}

/* ---- the run ---- */

/* Those of `pes` that end as this PE does, or stay as it does. */
static weft_team *team_of_fate(const status_run *s, uint64_t pes)
{
    int list[64];
    int count = 0;
    weft_team *team;
    for (int pe = 0; pe < s->run->pes; pe++) {
        if (is_in(pes, pe) && is_in(s->lost, pe) == is_in(s->lost, s->pe)) {
            list[count++] = pe;
        }
    }
    MUST(weft_team_create(weft_team_world(s->world), list, count, &team));
    return team;
}

static void make_teams(status_run *s, uint64_t *common)
{
    for (int i = 0; i < STEPS; i++) {
        weft_team *of = common_below(common, 2) == 0 ? weft_team_node(s->world) : weft_team_world(s->world);
        MUST(weft_team_split_strided(of, 0, 1, weft_team_pes(of), &s->spare[i]));
        MUST(weft_uint64_sum_reduce(s->spare[i], &s->words[1], &s->words[0], 1));
    }
    s->living = team_of_fate(s, UINT64_MAX);
    s->neighbours = team_of_fate(s, s->near);
    MUST(weft_barrier(s->world));
}

/* Until this PE knows that some have ended: at once, or when their host has been silent for too long. Of others of a
 * node that has ended as a whole it may never know, since they may be hidden by a firewall. */
static void await_news(const status_run *s)
{
    const uint64_t begun_ns = weft_sim_now_ns();
    for (int known = 0; !known;) {
        for (int pe = 0; pe < s->run->pes; pe++) {
            known |= is_in(s->lost, pe) && wefti_world_is_lost(s->world, pe);
        }
        weft_sim_sleep_ns(MS_NS);
        if (!known && weft_sim_now_ns() - begun_ns > NEWS_NS) {
            weft_sim_fail("PEs %llx have ended, and PE %d does not know it", (unsigned long long)s->lost, s->pe);
        }
    }
}

/* Gets that have returned, one of the victim and then, when that is gone, others of any PEs: the next quiet brings all
 * data, or tells that one is gone. */
typedef struct open_gets {
    uint64_t of_victim;
    uint64_t others[3];
    int pes[3];
} open_gets;

static void begin_gets(const status_run *s, open_gets *gets)
{
    MUST(weft_uint64_get_nbi(s->world, &gets->of_victim, &s->words[0], 1, s->victim));
}

static void end_gets(const status_run *s, open_gets *gets)
{
    const int count = (int)weft_sim_random(4);
    for (int i = 0; i < count; i++) {
        gets->pes[i] = (int)weft_sim_random((uint64_t)s->run->pes);
        gets->pes[i] = is_in(s->lost, gets->pes[i]) ? s->pe : gets->pes[i];
        MUST(weft_uint64_get_nbi(s->world, &gets->others[i], &s->words[0], 1, gets->pes[i]));
    }
    const int is_known = wefti_world_is_lost(s->world, s->victim);
    const weft_status status = weft_quiet(s->world);
    const int has_data = gets->of_victim == (uint64_t)s->victim + 1;
    if (status != (is_known ? WEFT_ERR_PEER : WEFT_ERR_TIMEOUT) && status != WEFT_ERR_PEER &&
        (status != WEFT_OK || !has_data)) {
        weft_sim_fail("a get of PE %d, which is gone, gave %llx, and a quiet behind it and %d others %s: %s", s->victim,
                      (unsigned long long)gets->of_victim, count, weft_status_name(status),
                      status == WEFT_OK ? "" : weft_last_error());
    }
    for (int i = 0; i < count; i++) {
        if (status == WEFT_OK && gets->others[i] != (uint64_t)gets->pes[i] + 1) {
            weft_sim_fail("a get of PE %d gave %llx", gets->pes[i], (unsigned long long)gets->others[i]);
        }
    }
}

static void lose(status_run *s, int killer)
{
    open_gets gets = {0};
    if (is_in(s->lost, s->pe)) {
        weft_sim_sleep_ns(UINT64_MAX / 4); /* it is dead by then */
    }
    weft_sim_sleep_ns(SETTLED_NS);
    meet(s);
    if (s->pe == killer) {
        weft_sim_stall(s->victim, DEADLINE_NS / 2);
    }
    meet(s);
    begin_gets(s, &gets);
    meet(s);
    for (int pe = 0; pe < s->run->pes && s->pe == killer; pe++) {
        if (is_in(s->lost, pe)) {
            weft_sim_kill(pe);
        }
    }
    await_news(s);
    end_gets(s, &gets);
    meet(s);
}

/* The process of the victim ends, or its whole node. */
static void draw_lost(status_run *s, uint64_t *common)
{
    uint64_t *node = &s->run->board[64];
    const int is_whole = common_below(common, 2);
    node[s->pe] = (uint64_t)weft_team_translate(weft_team_node(s->world), 0, weft_team_world(s->world));
    MUST(weft_barrier(s->world));
    for (int pe = 0; pe < s->run->pes; pe++) {
        s->near |= (uint64_t)(node[pe] == node[s->pe]) << pe;
        s->lost |= (uint64_t)(weft_sim_same_process(pe, s->victim) || (is_whole && node[pe] == node[s->victim])) << pe;
    }
}

static int draw_living(const status_run *s, uint64_t *common)
{
    int pe = common_below(common, s->run->pes);
    while (is_in(s->lost, pe)) {
        pe = (pe + 1) % s->run->pes;
    }
    return pe;
}

static void take_steps(status_run *s, uint64_t *common)
{
    for (int step = 0; step < STEPS; step++) {
        const int drawn = common_below(common, 2 * STEP_KINDS);
        const int what = drawn < STEP_KINDS ? drawn : step == 0 ? STEP_LOST_CALL : STEP_LATE_CALL;
        const int kind = common_below(common, 4);
        const int other = draw_living(s, common);
        settle(s);
        switch (what) {
        case STEP_LOST_CALL:
            call_lost(s, step, kind);
            break;
        case STEP_LOST_MOVE:
            move_lost(s, kind);
            break;
        case STEP_WORD:
            await_word(s, kind);
            break;
        case STEP_LOCK:
            await_lock(s, step, other);
            break;
        default:
            call_late(s, kind, other, common_below(common, 2));
        }
    }
}

void case_statuses(void *argument)
{
    status_run s = {.run = argument, .pe = weft_sim_pe()};
    uint64_t common = s.run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    s.victim = common_below(&common, s.run->pes);
    weft_sim_world_config(&config);
    config.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&config, &s.world));
    MUST(weft_calloc(s.world, SUMS + 1, sizeof *s.words, (void **)&s.words));
    s.words[0] = (uint64_t)s.pe + 1;
    MUST(weft_calloc(s.world, STEPS * (size_t)s.run->pes, sizeof *s.locks, (void **)&s.locks));
    draw_lost(&s, &common);
    if (s.lost != (UINT64_C(1) << s.run->pes) - 1) { /* else all are of one process */
        make_teams(&s, &common);
        lose(&s, draw_living(&s, &common));
        take_steps(&s, &common);
        meet(&s);
    }
    MUST(weft_world_destroy(s.world));
}
