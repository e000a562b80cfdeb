/* sim/silent.c: over messages, the host of a node falls silent for a while: it is stopped, or its link is down. Who is
 * silent for too long is gone for all others, and nobody else is, also when that host is back and says whom it misses
 * itself; who is silent for less is missed by nobody. The end of one more PE is told to all that are left. */
#include <stdio.h>
#include <string.h>

#include "sim/cases.h"
#include "support/check.h"
#include "testing/sim/socket.h"

#define MS_NS UINT64_C(1000000)
#define SILENCE_NS (5000 * MS_NS) /* as WEFT_SILENCE is by default */
#define LATEST_NS (SILENCE_NS + 1000 * MS_NS) /* by then it has been noticed */
#define DEADLINE_NS (20 * MS_NS)
#define SOON_NS (100 * MS_NS)
#define TOLD_NS (1000 * MS_NS)

enum { BOARD_BEGUN = 100, BOARD_GONE, BOARD_THERE, BOARD_NEAR };

typedef struct silent_run {
    case_run *run;
    weft_world *world;
    uint64_t *word; /* the PE's number plus 1 */
    int pe;
    uint64_t silent; /* bits: PEs of the silent host */
    uint64_t for_ns;
    int are_stopped;
    uint64_t dead; /* bits: PEs that ended later */
} silent_run;

static int is_in(uint64_t pes, int pe)
{
    return (int)(pes >> pe & 1);
}

static void meet(const silent_run *s, uint64_t number)
{
    s->run->board[s->pe] = number;
    for (int there = 0; there < s->run->pes;) {
        weft_sim_sleep_ns(MS_NS);
        there = 0;
        for (int pe = 0; pe < s->run->pes; pe++) {
            there += is_in(s->dead, pe) || s->run->board[pe] >= number;
        }
    }
}

static uint64_t near_ones(const silent_run *s)
{
    uint64_t pes = 0;
    for (int pe = 0; pe < s->run->pes; pe++) {
        pes |= (uint64_t)(weft_ptr(s->world, s->word, pe) != NULL) << pe;
    }
    return pes;
}

/* Whether `pe` is gone for this one; else its word can be read. */
static int is_gone(const silent_run *s, int pe, const char *when)
{
    uint64_t word = 0;
    const weft_status status = weft_getmem(s->world, &word, s->word, sizeof word, pe);
    if (status == WEFT_ERR_PEER) {
        return 1;
    }
    if (status != WEFT_OK || word != (uint64_t)pe + 1) {
        weft_sim_fail("%s, a get from PE %d gave %s and %d: %s", when, pe, weft_status_name(status), (int)word,
                      status == WEFT_OK ? "" : weft_last_error());
    }
    return 0;
}

/* Nobody is missed but those that were silent, and these by all or by none. */
static void check_others(const silent_run *s, const char *when, int must_be_gone)
{
    for (int pe = 0; pe < s->run->pes; pe++) {
        const int gone = is_gone(s, pe, when);
        if (gone &&
            (!is_in(s->silent, pe) || strstr(weft_last_error(), "unreachable") == NULL || s->for_ns < SILENCE_NS)) {
            weft_sim_fail("%s of PEs %llx for %llu ms, PE %d is taken to be gone: %s", when,
                          (unsigned long long)s->silent, (unsigned long long)(s->for_ns / MS_NS), pe,
                          weft_last_error());
        }
        if (!gone && is_in(s->silent, pe) && must_be_gone) {
            weft_sim_fail("%s for %llu ms, nobody has told that PE %d is gone", when,
                          (unsigned long long)(s->for_ns / MS_NS), pe);
        }
        if (is_in(s->silent, pe)) {
            s->run->board[gone ? BOARD_GONE : BOARD_THERE] = 1;
        }
    }
    if (s->run->board[BOARD_GONE] && s->run->board[BOARD_THERE]) {
        weft_sim_fail("%s for %llu ms, PEs of a host are gone for some and not for others", when,
                      (unsigned long long)(s->for_ns / MS_NS));
    }
}

/* Who was silent has its own node, and, if that was short, all others; else it is told that these have given it up,
 * unless that was so long that it has tried to connect to all of them in vain. */
static void check_back(const silent_run *s)
{
    uint64_t word = 0;
    for (int pe = 0; pe < s->run->pes; pe++) {
        if (is_in(s->silent, pe) || s->for_ns < SILENCE_NS) {
            if (is_gone(s, pe, "after its own silence")) {
                weft_sim_fail("after a silence of %llu ms PE %d is gone for who was silent: %s",
                              (unsigned long long)(s->for_ns / MS_NS), pe, weft_last_error());
            }
        } else {
            const weft_status status = weft_getmem(s->world, &word, s->word, sizeof word, pe);
            const int is_lost = status == WEFT_ERR_PEER && strstr(weft_last_error(), "unreachable") != NULL;
            const int is_told = s->are_stopped ? status == WEFT_ERR_PEER : is_lost; /* of ends of connections alone */
            if (s->for_ns > LATEST_NS && s->for_ns < 2 * SILENCE_NS && !is_told) {
                weft_sim_fail(
                    "after a silence of %llu ms of its own host, PE %d has given this one up, and a get gave %s",
                    (unsigned long long)(s->for_ns / MS_NS), pe, weft_status_name(status));
            }
        }
    }
}

static void sleep_until(uint64_t ns)
{
    const uint64_t now_ns = weft_sim_now_ns();
    if (now_ns < ns) {
        weft_sim_sleep_ns(ns - now_ns);
    }
}

static void fall_silent(const silent_run *s)
{
    wefti_sim_socket_silence(s->silent, s->for_ns, s->are_stopped);
    for (int pe = 0; pe < s->run->pes && s->are_stopped; pe++) {
        if (is_in(s->silent, pe)) {
            weft_sim_stall(pe, s->for_ns);
        }
    }
}

/* PE `first` ends, and at the same time perhaps the last of its node but the killer. */
static uint64_t draw_dead(const silent_run *s, int first, int killer, uint64_t *common)
{
    const uint64_t node = s->run->board[BOARD_NEAR + first] & ~((uint64_t)1 << killer);
    int last = s->run->pes - 1;
    while (!is_in(node, last)) {
        last--;
    }
    return (uint64_t)1 << first | (common_below(common, 2) == 0 ? (uint64_t)1 << last : 0);
}

/* Whoever is left hears of it, though leaders may have changed. */
static void lose_others(silent_run *s, uint64_t dead, int killer)
{
    uint64_t word;
    s->dead = dead;
    if (is_in(dead, s->pe)) {
        weft_sim_sleep_ns(UINT64_MAX / 4); /* it is dead by then */
    }
    for (int pe = 0; pe < s->run->pes && s->pe == killer; pe++) {
        if (is_in(dead, pe)) {
            weft_sim_kill(pe);
        }
    }
    weft_sim_sleep_ns(TOLD_NS);
    for (int pe = 0; pe < s->run->pes && !is_in(s->silent, s->pe); pe++) {
        if (is_in(dead, pe) && weft_ptr(s->world, s->word, pe) == NULL &&
            weft_getmem(s->world, &word, s->word, sizeof word, pe) != WEFT_ERR_PEER) {
            weft_sim_fail("PE %d of those that ended, %llx, after a silence of PEs %llx for %llu ms, is not missed", pe,
                          (unsigned long long)dead, (unsigned long long)s->silent,
                          (unsigned long long)(s->for_ns / MS_NS));
        }
    }
}

static uint64_t draw_duration(uint64_t *common, int are_stopped)
{
    const int kind = common_below(common, 3);
    const uint64_t some = (uint64_t)common_below(common, 10);
    if (kind == 0) {
        return (500 + 450 * some) * MS_NS;
    }
    if (kind == 1 && are_stopped) { /* some connections break, others do not */
        return SILENCE_NS + (50 + 100 * some) * MS_NS;
    }
    return LATEST_NS + (2000 + 400 * some) * MS_NS;
}

void case_silent(void *argument)
{
    silent_run s = {.run = argument, .pe = weft_sim_pe()};
    uint64_t *board = s.run->board;
    uint64_t common = s.run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    const int one = common_below(&common, s.run->pes);
    const int dead = (one + 1 + common_below(&common, s.run->pes - 1)) % s.run->pes;
    s.are_stopped = common_below(&common, 2);
    s.for_ns = draw_duration(&common, s.are_stopped);
    weft_sim_world_config(&config);
    config.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&config, &s.world));
    MUST(weft_malloc(s.world, sizeof *s.word, (void **)&s.word));
    MUST(weft_uint64_p(s.world, s.word, (uint64_t)s.pe + 1, s.pe));
    board[BOARD_NEAR + s.pe] = near_ones(&s);
    meet(&s, 1);
    s.silent = board[BOARD_NEAR + one];
    int striker = 0;
    while (is_in(s.silent, striker)) {
        striker++;
    }
    weft_sim_sleep_ns(TOLD_NS); /* until connections count */
    if (s.pe == striker) {
        board[BOARD_BEGUN] = weft_sim_now_ns();
        fall_silent(&s);
    }
    while (board[BOARD_BEGUN] == 0) {
        weft_sim_sleep_ns(MS_NS);
    }
    const int is_long = s.for_ns > LATEST_NS;
    if (!is_in(s.silent, s.pe) && is_long) {
        sleep_until(board[BOARD_BEGUN] + LATEST_NS + SOON_NS);
        check_others(&s, "during a silence", 1);
    }
    sleep_until(board[BOARD_BEGUN] + (is_long ? s.for_ns : LATEST_NS) + TOLD_NS);
    if (is_in(s.silent, s.pe)) {
        check_back(&s);
    } else {
        check_others(&s, "after a silence", is_long);
    }
    meet(&s, 2);
    if (!is_in(s.silent, dead)) {
        const int killer = striker == dead ? one : striker;
        lose_others(&s, draw_dead(&s, dead, killer, &common), killer);
        meet(&s, 3);
    }
    MUST(weft_world_destroy(s.world));
}
