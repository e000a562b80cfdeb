/* sim/unanswered.c: over messages, a PE stands still for about a deadline, dies or leaves while all put, get, add and
 * signal in any mixture. A call that succeeds has done its part, one that gives up names that PE, and writes nothing
 * later; when the PE runs again all is as if nothing had been, for as long as anybody likes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "support/check.h"

#define DEADLINE_NS UINT64_C(20000000) /* of a PE that stands still */
#define PATIENCE_NS UINT64_C(4000000000) /* of one that is gone, which is known long before */
#define EDGE_NS 20000
#define PES_MAX 6
#define WORDS 4200 /* more than two messages hold */
#define CALLS 30
#define TRIES 20
#define BOARD_STRUCK 100 /* when the late PE was struck */

/* What PE `from` has in the memory of each PE, one behind the other. */
typedef struct area {
    uint64_t words[WORDS];
    uint64_t letter[WORDS];
    uint64_t signal; /* the number of the letter */
    uint64_t taken; /* by this PE, of the letters that it gets from PE `from` */
    uint64_t count;
    uint64_t small[2];
} area;

/* What this PE knows of its area at another. */
typedef struct known {
    uint64_t words[WORDS];
    unsigned char is_open[WORDS]; /* a call that gave up may have written there */
    unsigned char is_fresh[WORDS]; /* put since the last fence: another put may come before that */
    int has_given_up; /* since the last quiet */
    uint64_t least; /* the count, */
    uint64_t most; /* and as many as calls that gave up may have added */
    uint64_t letters; /* sent to it */
    int is_sent; /* the last of them */
    uint64_t taken; /* from it */
    int is_told; /* that the last of those was taken */
    int has_put; /* a word while it stood still, since the last quiet, whatever that gave */
} known;

/* Where a get is to go, or was to when it gave up. */
typedef struct left {
    struct left *next;
    uint64_t words[];
} left;

/* A get that ends with the next quiet. */
typedef struct begun {
    struct begun *next;
    left *dest;
    int to;
    size_t first;
    size_t count;
    struct {
        uint64_t right;
        int is_open;
    } words[];
} begun;

typedef enum fate { STANDS_STILL, DIES, LEAVES } fate;

typedef struct late_run {
    case_run *run;
    weft_world *world;
    area *areas; /* [PEs] */
    known *of; /* [PEs] */
    int pe;
    int late;
    int second; /* that dies, after the first; -1: none */
    fate fate;
    uint64_t for_ns;
    uint64_t next; /* number to be written */
    int has_failed; /* a get that returns at once, since the last quiet, which may tell so once more of a part of it */
} late_run;

/* Of each PE; in one place, where what a dead PE has left is found by the next run. */
static known known_of[PES_MAX][PES_MAX];
static left *left_of[PES_MAX];
static begun *begun_of[PES_MAX];

static const uint64_t untouched = UINT64_C(0xabababababababab);

static int is_over(const late_run *l, int to)
{
    return to == l->second || (l->fate != STANDS_STILL && to == l->late);
}

/* Whom the thread's last error says did not answer, or keeps what there is room for; -1: nobody. */
static int read_blame(const char *text)
{
    static const char holds[] = ": PE ";
    const char *holder = strstr(text, "has no room left for a message to PE ");
    const char *named = holder != NULL ? strstr(holder, holds) : NULL;
    int pe = -1;
    if (named != NULL) {
        (void)sscanf(named + strlen(holds), "%d did not take", &pe);
    } else if (strstr(text, " did not answer PE ") != NULL) {
        (void)sscanf(text, "PE %d did not answer", &pe);
    }
    return pe;
}

/* Whether it was done. Who gives up names the PE that stands still, in time. */
static int done(const late_run *l, weft_status status, uint64_t begun_ns, const char *what)
{
    const char *text = status == WEFT_OK ? "" : weft_last_error();
    const int named = read_blame(text);
    const uint64_t took_ns = weft_sim_now_ns() - begun_ns;
    if (l->pe != l->late && took_ns > (l->fate == STANDS_STILL ? 2 * DEADLINE_NS : PATIENCE_NS / 4)) {
        weft_sim_fail("%s took %llu ms", what, (unsigned long long)(took_ns / 1000000));
    }
    if (status == WEFT_OK || l->pe == l->late) {
        return status == WEFT_OK;
    }
    if (l->fate != STANDS_STILL && status == WEFT_ERR_PEER && text_names_pe(text, l->late)) {
        return 0;
    }
    if (status != WEFT_ERR_TIMEOUT || named != l->late || l->fate != STANDS_STILL ||
        l->for_ns + EDGE_NS < DEADLINE_NS) {
        weft_sim_fail("PE %d, of fate %d, is late by %llu us, and %s gave %s: %s", l->late, (int)l->fate,
                      (unsigned long long)(l->for_ns / 1000), what, weft_status_name(status), text);
    }
    return 0;
}

/* ---- calls ---- */

static void fence(late_run *l)
{
    MUST(weft_fence(l->world));
    for (int to = 0; to < l->run->pes; to++) {
        memset(l->of[to].is_fresh, 0, sizeof l->of[to].is_fresh);
    }
}

/* Whether the PE, of another node, has stood still since before `since_ns`. */
static int stands_still(const late_run *l, int to, uint64_t since_ns)
{
    const uint64_t struck_ns = l->run->board[BOARD_STRUCK];
    return l->fate == STANDS_STILL && to == l->late && to != l->pe && struck_ns != 0 &&
           since_ns > struck_ns + DEADLINE_NS / 4 && weft_sim_now_ns() < struck_ns + l->for_ns &&
           weft_ptr(l->world, l->areas, to) == NULL;
}

static void put(late_run *l, int to, size_t first, size_t count)
{
    static uint64_t room[PES_MAX][WORDS]; /* of each PE: it may be in a call */
    uint64_t *from = room[l->pe];
    known *k = &l->of[to];
    uint64_t *at = &l->areas[l->pe].words[first];
    for (size_t i = 0; i < count; i++) {
        from[i] = ++l->next;
    }
    if (memchr(&k->is_fresh[first], 1, count) != NULL) {
        fence(l);
    }
    memset(&k->is_fresh[first], 1, count);
    const uint64_t begun_ns = weft_sim_now_ns();
    const int is_done =
        done(l, count == 1 ? weft_uint64_p(l->world, at, *from, to) : weft_uint64_put(l->world, at, from, count, to),
             begun_ns, "a put");
    k->has_given_up |= !is_done;
    k->has_put |= is_done && count == 1 && stands_still(l, to, begun_ns); /* many may go without it */
    for (size_t i = 0; i < count; i++) {
        k->words[first + i] = from[i];
        k->is_open[first + i] = (unsigned char)k->has_given_up;
    }
}

static void clear_left(left *dest)
{
    for (size_t i = 0; i < WORDS; i++) {
        dest->words[i] = untouched;
    }
}

static left *make_left(const late_run *l)
{
    left *dest = malloc(sizeof *dest + WORDS * sizeof *dest->words);
    if (dest == NULL) {
        abort(); /* a test program without memory */
    }
    clear_left(dest);
    dest->next = left_of[l->pe];
    left_of[l->pe] = dest;
    return dest;
}

/* It has its data, and is looked at no more. */
static void free_left(const late_run *l, left *dest)
{
    left **link = &left_of[l->pe];
    while (*link != dest) {
        link = &(*link)->next;
    }
    *link = dest->next;
    free(dest);
}

/* What has been given up is written no more: it is looked at in the end. */
static void get(late_run *l, int to, size_t first, size_t count)
{
    const known *k = &l->of[to];
    left *dest = make_left(l);
    const uint64_t begun_ns = weft_sim_now_ns();
    const weft_status status =
        weft_getmem(l->world, dest->words, &l->areas[l->pe].words[first], count * sizeof *dest->words, to);
    if (!done(l, status, begun_ns, "a get")) {
        clear_left(dest);
        return;
    }
    for (size_t i = 0; i < WORDS; i++) {
        const int is_known = i >= count || !k->is_open[first + i];
        const uint64_t right = i < count ? k->words[first + i] : untouched;
        if (is_known && dest->words[i] != right) {
            weft_sim_fail("word %zu of %zu from PE %d is %llx, not %llx", i, count, to,
                          (unsigned long long)dest->words[i], (unsigned long long)right);
        }
    }
    free_left(l, dest);
}

static void begin_get(late_run *l, int to, size_t first, size_t count)
{
    const known *k = &l->of[to];
    left *dest = make_left(l);
    const uint64_t begun_ns = weft_sim_now_ns();
    const weft_status status =
        weft_getmem_nbi(l->world, dest->words, &l->areas[l->pe].words[first], count * sizeof *dest->words, to);
    if (!done(l, status, begun_ns, "a get that returns at once")) {
        l->has_failed = 1;
        clear_left(dest);
        return;
    }
    begun *one = malloc(sizeof *one + count * sizeof *one->words);
    if (one == NULL) {
        abort(); /* a test program without memory */
    }
    *one = (begun){.next = begun_of[l->pe], .dest = dest, .to = to, .first = first, .count = count};
    for (size_t i = 0; i < count; i++) {
        one->words[i].right = k->words[first + i];
        one->words[i].is_open = k->is_open[first + i];
    }
    begun_of[l->pe] = one;
}

/* Words that were put since may be the old or the new ones. */
static void check_begun(const late_run *l, const begun *one)
{
    const known *k = &l->of[one->to];
    for (size_t i = 0; i < WORDS; i++) {
        const int is_asked = i < one->count;
        const uint64_t right = is_asked ? one->words[i].right : untouched;
        const int is_known = !is_asked || (!one->words[i].is_open && k->words[one->first + i] == right);
        if (is_known && one->dest->words[i] != right) {
            weft_sim_fail("after a quiet word %zu of %zu from PE %d is %llx, not %llx", i, one->count, one->to,
                          (unsigned long long)one->dest->words[i], (unsigned long long)right);
        }
    }
}

/* Whether a get is open that who leaves will not answer, or of who leaves: then others may have gone before. Or one has
 * failed. */
static int has_begun(const late_run *l)
{
    int has = l->has_failed;
    for (const begun *one = begun_of[l->pe]; one != NULL; one = one->next) {
        has |= one->to == l->late || l->pe == l->late;
    }
    return has;
}

/* After a quiet: all have their data, or are written no more. */
static void end_begun(const late_run *l, int is_done)
{
    while (begun_of[l->pe] != NULL) {
        begun *one = begun_of[l->pe];
        begun_of[l->pe] = one->next;
        if (is_done) {
            check_begun(l, one);
            free_left(l, one->dest);
        } else {
            clear_left(one->dest);
        }
        free(one);
    }
}

static void add(late_run *l, int to)
{
    uint64_t *count = &l->areas[l->pe].count;
    known *k = &l->of[to];
    uint64_t before = 0;
    const uint64_t begun_ns = weft_sim_now_ns();
    if (weft_sim_random(2) == 0) {
        const int is_done = done(l, weft_uint64_atomic_inc(l->world, count, to), begun_ns, "an atomic");
        k->least += is_done != 0;
        k->has_given_up |= !is_done;
        k->most++;
        return;
    }
    if (!done(l, weft_uint64_atomic_fetch_add(l->world, count, 1, to, &before), begun_ns, "an atomic with an answer")) {
        k->has_given_up = 1;
        k->most++;
        return;
    }
    if (before < k->least || before > k->most) {
        weft_sim_fail("what was added at PE %d is %llu, not %llu to %llu", to, (unsigned long long)before,
                      (unsigned long long)k->least, (unsigned long long)k->most);
    }
    k->least = before + 1;
    k->most = k->has_given_up ? k->most + 1 : before + 1;
}

/* Who leaves needs no more of what was sent to it, but what was asked of it is missed. */
static void quiet(late_run *l)
{
    const uint64_t begun_ns = weft_sim_now_ns();
    const int is_done = done(l, weft_quiet(l->world), begun_ns, "a quiet");
    if (!is_done && l->fate == LEAVES && !has_begun(l)) {
        weft_sim_fail("PE %d has left, and a quiet gave: %s", l->late, weft_last_error());
    }
    if (is_done && l->late >= 0 && l->of[l->late].has_put && stands_still(l, l->late, begun_ns)) {
        weft_sim_fail("PE %d stands still, and puts to it are complete", l->late);
    }
    end_begun(l, is_done);
    l->has_failed = 0;
    for (int to = 0; to < l->run->pes; to++) {
        l->of[to].has_given_up = is_done ? is_over(l, to) : l->of[to].has_given_up;
        l->of[to].has_put = 0; /* one that fails may have had the answers of some */
    }
}

static size_t letter_words(uint64_t number)
{
    static const size_t counts[] = {1, 20, 300, 1921, 3841, WORDS};
    return counts[number % (sizeof counts / sizeof *counts)];
}

/* The next letter, once the one before has been taken; one that was given up goes again. */
static void send_letter(late_run *l, int to)
{
    static uint64_t room[PES_MAX][WORDS];
    uint64_t *words = room[l->pe];
    known *k = &l->of[to];
    area *mine = &l->areas[l->pe];
    uint64_t taken = 0;
    MUST(weft_getmem(l->world, &taken, &l->areas[to].taken, sizeof taken, l->pe));
    if (k->is_sent && taken < k->letters) {
        return;
    }
    k->letters += k->is_sent || k->letters == 0;
    k->is_sent = 0;
    if (k->has_given_up) {
        return; /* parts of it may be on their way */
    }
    const size_t count = letter_words(k->letters);
    for (size_t i = 0; i < count; i++) {
        words[i] = case_value(l->pe, to, k->letters * WORDS + i);
    }
    const weft_status status =
        weft_uint64_put_signal(l->world, mine->letter, words, count, &mine->signal, k->letters, WEFT_SIGNAL_SET, to);
    k->is_sent = done(l, status, weft_sim_now_ns(), "a signal");
    k->has_given_up |= !k->is_sent;
}

/* What a signal announces is there; its sender is told when it was read. */
static void take_letter(late_run *l, int from)
{
    static uint64_t room[PES_MAX][WORDS];
    uint64_t *words = room[l->pe];
    known *k = &l->of[from];
    uint64_t signal = 0;
    MUST(weft_signal_fetch(l->world, &l->areas[from].signal, &signal));
    if (signal != k->taken) {
        const size_t count = letter_words(signal);
        MUST(weft_getmem(l->world, words, l->areas[from].letter, count * sizeof *words, l->pe));
        for (size_t i = 0; i < count; i++) {
            if (signal != k->taken + 1 || words[i] != case_value(from, l->pe, signal * WORDS + i)) {
                weft_sim_fail("word %zu of %zu of letter %llu behind %llu from PE %d is %llx", i, count,
                              (unsigned long long)signal, (unsigned long long)k->taken, from,
                              (unsigned long long)words[i]);
            }
        }
        k->taken = signal;
        k->is_told = 0;
    }
    if (!k->is_told && k->taken > 0) {
        k->is_told =
            done(l, weft_uint64_p(l->world, &l->areas[l->pe].taken, k->taken, from), weft_sim_now_ns(), "a put");
        k->has_given_up |= !k->is_told;
    }
}

/* A large put, and behind it more small ones than messages wait for it. */
static void put_many(late_run *l, int to)
{
    enum { LARGE = 1400, SMALL = 40, COUNT = 45 };
    put(l, to, 0, LARGE);
    for (size_t i = 0; i < COUNT; i++) {
        put(l, to, LARGE + i * SMALL, SMALL);
    }
}

/* More questions to a PE than can be open at once, and one to the late PE, to which old answers may still come. */
static void ask_many(late_run *l, int to)
{
    const int begins = weft_sim_random(2) == 0;
    for (int i = 0; i < 64 && to != l->late; i++) {
        if (begins) {
            begin_get(l, to, (size_t)weft_sim_random(100), 1 + (size_t)weft_sim_random(40));
        } else {
            add(l, to);
        }
    }
    if (l->pe != l->late && l->late >= 0) {
        get(l, l->late, (size_t)weft_sim_random(100), 20);
    }
}

static void call_some(late_run *l)
{
    static const size_t counts[] = {1, 1, 1, 2, 30, 30, 300, 1920, 1921, 4000};
    const int to = (l->pe + 1 + (int)weft_sim_random((uint64_t)l->run->pes - 1)) % l->run->pes;
    const size_t count = counts[weft_sim_random(sizeof counts / sizeof *counts)];
    const size_t first = (size_t)weft_sim_random(WORDS - count + 1);
    if (weft_sim_random(12) == 0) {
        (weft_sim_random(2) == 0 ? put_many : ask_many)(l, to);
        return;
    }
    switch (weft_sim_random(10)) {
    case 8:
    case 9:
        begin_get(l, to, first, count);
        return;
    case 0:
    case 1:
    case 2:
        put(l, to, first, count);
        return;
    case 3:
        get(l, to, first, count);
        return;
    case 4:
        add(l, to);
        return;
    case 5:
        quiet(l);
        return;
    case 6:
        fence(l);
        return;
    default:
        send_letter(l, to);
    }
}

/* ---- the run ---- */

/* All that live come to point `number` of the run, and see to what others ask meanwhile. */
static void meet(late_run *l, uint64_t number)
{
    uint64_t *places = l->run->board;
    places[l->pe] = number;
    for (int there = 0; there < l->run->pes - (l->fate != STANDS_STILL) - (l->second >= 0);) {
        weft_sim_sleep_ns(100000);
        there = 0;
        for (int pe = 0; pe < l->run->pes; pe++) {
            there += !is_over(l, pe) && places[pe] >= number;
        }
    }
}

static void strike(const late_run *l)
{
    if (l->fate == DIES) {
        weft_sim_kill(l->late);
    } else {
        l->run->board[BOARD_STRUCK] = weft_sim_now_ns();
        weft_sim_stall(l->late, l->for_ns);
    }
}

/* One more PE dies: those of other nodes hear of it, also where the first was the one by which they would have. */
static void lose_another(late_run *l, uint64_t *common)
{
    const int second = (l->late + 1 + common_below(common, l->run->pes - 1)) % l->run->pes;
    const int beside = (second + 1) % l->run->pes;
    const int killer = beside == l->late ? (beside + 1) % l->run->pes : beside;
    uint64_t word;
    l->second = second;
    if (l->pe == second) {
        weft_sim_sleep_ns(PATIENCE_NS);
        return; /* it is dead by then */
    }
    weft_sim_sleep_ns(DEADLINE_NS);
    if (l->pe == killer) {
        weft_sim_kill(second);
    }
    const uint64_t begun_ns = weft_sim_now_ns();
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && weft_ptr(l->world, l->areas, second) == NULL) {
        status = weft_getmem(l->world, &word, l->areas, sizeof word, second);
        if ((status != WEFT_OK && (status != WEFT_ERR_PEER || !text_names_pe(weft_last_error(), second))) ||
            weft_sim_now_ns() - begun_ns > PATIENCE_NS / 4) {
            weft_sim_fail("PE %d has died after PE %d, and a get gave %s after %llu ms: %s", second, l->late,
                          weft_status_name(status), (unsigned long long)((weft_sim_now_ns() - begun_ns) / 1000000),
                          status == WEFT_OK ? "" : weft_last_error());
        }
        weft_sim_sleep_ns(DEADLINE_NS / 4);
    }
    meet(l, 5);
}

/* Small puts arrive though their PE makes no call. */
static void put_and_rest(late_run *l)
{
    const int next = (l->pe + 1) % l->run->pes;
    const int before = (l->pe + l->run->pes - 1) % l->run->pes;
    uint64_t seen[2] = {0};
    for (int i = 0; i < 2; i++) {
        MUST(weft_uint64_p(l->world, &l->areas[l->pe].small[i], 7, next));
    }
    weft_sim_sleep_ns(DEADLINE_NS);
    meet(l, 5);
    for (int i = 0; i < 2; i++) {
        MUST(weft_signal_fetch(l->world, &l->areas[before].small[i], &seen[i]));
    }
    if (seen[0] != 7 || seen[1] != 7) {
        weft_sim_fail("small puts of PE %d have not come: %d and %d", before, (int)seen[0], (int)seen[1]);
    }
}

/* Everything is answered again: nothing is open any more, and each word is what was last put there. */
static void settle(late_run *l)
{
    for (int to = 0; to < l->run->pes; to++) {
        if (to == l->pe || is_over(l, to)) {
            continue;
        }
        known *k = &l->of[to];
        uint64_t before = 0;
        MUST(weft_uint64_atomic_fetch(l->world, &l->areas[l->pe].count, to, &before));
        if (before < k->least || before > k->most) {
            weft_sim_fail("what was added at PE %d is %llu, not %llu to %llu", to, (unsigned long long)before,
                          (unsigned long long)k->least, (unsigned long long)k->most);
        }
        get(l, to, 0, WORDS); /* what was said to be done is there */
        /* Whatever was given up is written over, by more puts than there are credits or by few. */
        const size_t some = weft_sim_random(2) == 0 ? 40 : 1400;
        for (size_t first = 0; first < WORDS; first += some) {
            put(l, to, first, some);
        }
        get(l, to, 0, WORDS);
    }
}

static void check_left(const late_run *l)
{
    while (left_of[l->pe] != NULL) {
        left *first = left_of[l->pe];
        for (size_t i = 0; i < WORDS; i++) {
            if (first->words[i] != untouched) {
                weft_sim_fail("a get that had given up has written %llx", (unsigned long long)first->words[i]);
            }
        }
        left_of[l->pe] = first->next;
        free(first);
    }
}

static void open_world(late_run *l)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    if (l->run->pes > PES_MAX) {
        weft_sim_fail("the case has at most %d PEs", PES_MAX);
    }
    weft_sim_world_config(&config);
    config.deadline_ns = l->fate == STANDS_STILL ? DEADLINE_NS : PATIENCE_NS;
    MUST(weft_world_create(&config, &l->world));
    if (l->fate != STANDS_STILL) {
        l->for_ns = 0;
    }
    MUST(weft_calloc(l->world, (size_t)l->run->pes, sizeof *l->areas, (void **)&l->areas));
    l->of = known_of[l->pe];
    memset(l->of, 0, sizeof known_of[l->pe]);
    while (left_of[l->pe] != NULL) {
        left *first = left_of[l->pe];
        left_of[l->pe] = first->next;
        free(first);
    }
    while (begun_of[l->pe] != NULL) {
        begun *first = begun_of[l->pe];
        begun_of[l->pe] = first->next;
        free(first);
    }
}

/* Calls of any kind, in which the late PE is struck, or leaves: then 0. */
static int call_all(late_run *l, uint64_t *common)
{
    const int when = common_below(common, CALLS - 10);
    const int by_itself = common_below(common, 2) || l->fate == LEAVES;
    const int by = by_itself && l->fate != DIES ? l->late : (l->late + 1) % l->run->pes;
    for (int i = 0; i < CALLS; i++) {
        if (i == when && l->pe == by && l->fate == LEAVES) {
            return 0;
        }
        if (i == when && l->pe == by) {
            strike(l);
        }
        call_some(l);
        for (int from = 0; from < l->run->pes; from++) {
            if (from != l->pe) {
                take_letter(l, from);
            }
        }
        dawdle(4, 100000);
    }
    return 1;
}

void case_unanswered(void *argument)
{
    static const uint64_t shares[] = {DEADLINE_NS / 2, DEADLINE_NS - EDGE_NS / 2, 3 * DEADLINE_NS, 3 * DEADLINE_NS};
    static const fate fates[] = {STANDS_STILL, STANDS_STILL, STANDS_STILL, DIES, LEAVES};
    late_run l = {.run = argument, .pe = weft_sim_pe(), .second = -1};
    uint64_t common = l.run->seed;
    l.late = common_below(&common, l.run->pes);
    l.fate = fates[common_below(&common, 5)];
    l.for_ns = shares[common_below(&common, 4)] + (uint64_t)common_below(&common, EDGE_NS);
    open_world(&l);
    meet(&l, 1);
    if (call_all(&l, &common)) {
        meet(&l, 2);
        meet(&l, 3); /* whoever was stalled runs again */
        if (l.fate == STANDS_STILL) {
            l.for_ns = 0; /* nobody is late any more */
            l.late = -1;
        }
        quiet(&l);
        settle(&l);
        meet(&l, 4);
        check_left(&l);
        if (l.fate == STANDS_STILL) {
            put_and_rest(&l);
            MUST(weft_barrier(l.world));
        } else if (l.fate == DIES && l.run->pes > 2) {
            lose_another(&l, &common);
        }
    }
    MUST(weft_world_destroy(l.world));
}
