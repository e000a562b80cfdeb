/* sim/coll.c: collectives on teams of any shape over one or several link domains, by support/coll_session.h; and
 * locks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "support/coll_session.h"
#include "support/coll_ways.h"
#include "weft/protocol/coll_layout.h"

static int count_algorithms(wefti_collective collective)
{
    int places = 0;
    while (wefti_algorithm_of(collective, places) != WEFTI_ALGORITHMS) {
        places++;
    }
    return places;
}

/* For blocks as small as here the table chooses the same algorithm each time. So each run prefers one of each
 * collective, that is drawn, or none. */
void draw_algorithms(uint64_t seed, char *text)
{
    size_t length = 0;
    *text = '\0';
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        (void)coll_ways_add(text, &length, (wefti_collective)c,
                            common_below(&seed, count_algorithms((wefti_collective)c) + 1));
    }
}

/* All members have the same bits also where those show in which order vectors were combined, as of zeros of both
 * signs. */
static void combine_alike(case_run *run, weft_world *world)
{
    double *numbers;
    uint64_t *places = run->board;
    MUST(weft_calloc(world, 2, sizeof *numbers, (void **)&numbers));
    numbers[0] = common_below(&(uint64_t){run->seed + (uint64_t)weft_world_pe(world)}, 2) == 0 ? 0.0 : -0.0;
    MUST(weft_double_min_reduce(weft_team_world(world), &numbers[1], &numbers[0], 1));
    memcpy(&places[weft_world_pe(world)], &numbers[1], sizeof *places);
    MUST(weft_barrier(world));
    for (int pe = 0; pe < run->pes; pe++) {
        if (places[pe] != places[0]) {
            weft_sim_fail("the least number has other bits on PE %d than on PE 0", pe);
        }
    }
}

static weft_world *world_with_algorithms(const case_run *run, const char *name)
{
    char algorithms[COLL_WAYS_BYTES];
    draw_algorithms(run->seed, algorithms);
    (void)setenv("WEFT_COLL", algorithms, 1);
    weft_world *world = case_world(name);
    (void)unsetenv("WEFT_COLL"); /* all have read it */
    return world;
}

static void run_session(case_run *run, const coll_session_plan *plan)
{
    weft_world *world = world_with_algorithms(run, "coll");
    for (int i = 0; i < (run->seed % 16 == 1 ? 3 : 1); i++) {
        coll_session_plan copy = *plan;
        copy.first_step = (uint64_t)i * 1000;
        coll_session_run(world, run->seed, &copy);
    }
    combine_alike(run, world);
    MUST(weft_world_destroy(world));
}

/* ---- blocks that do not fit ---- */

#define END_HEAP_BYTES ((size_t)1 << 20)
#define END_WORDS 1000 /* of a block; more than a slot has */
#define END_CALLS 4

/* All that is free of the heap: up to its end, if nothing else is free. */
static uint64_t *take_the_rest(weft_world *world, size_t *words)
{
    void *block = NULL;
    size_t most = END_HEAP_BYTES / sizeof(uint64_t);
    size_t least = 0;
    while (most - least > 1) {
        const size_t middle = least + (most - least) / 2;
        const weft_status status = weft_malloc(world, middle * sizeof(uint64_t), &block);
        if (status != WEFT_OK && status != WEFT_ERR_MEMORY) {
            must(status, "to take what is free of the heap");
        }
        *(status == WEFT_OK ? &least : &most) = middle;
        MUST(status == WEFT_OK ? weft_free(world, block) : WEFT_OK);
    }
    MUST(weft_malloc(world, least * sizeof(uint64_t), &block));
    *words = least;
    return block;
}

/* A collect of uneven blocks, for which some members have too little room before the end of their heaps: those are
 * told, each by itself, and the others have all blocks and wait for nobody. */
static void collect_at_end(const case_run *run, weft_world *world, uint64_t *area, size_t words, uint64_t *common)
{
    const int pe = weft_world_pe(world);
    const int is_large = common_below(common, 2);
    uint64_t *source = area;
    uint64_t *dest = area + END_WORDS;
    size_t sizes[16];
    size_t sum = 0;
    int is_short = 0;
    for (int i = 0; i < run->pes; i++) {
        sizes[i] = (size_t)common_below(common, is_large ? END_WORDS : 40);
        sum += sizes[i];
    }
    for (int i = 0; i < run->pes; i++) {
        const size_t others = sum - sizes[i];
        const int lacks = common_below(common, 3) == 0 && others > 0;
        const size_t room = lacks ? sizes[i] + (size_t)common_below(common, (int)others) : sum;
        const int is_at_end = common_below(common, 2);
        if (i == pe && (lacks || is_at_end)) {
            is_short = lacks;
            dest = area + words - room;
        }
    }
    for (size_t k = 0; k < sizes[pe]; k++) {
        source[k] = case_value(pe, pe, sum + k);
    }
    dawdle(3, 20000);
    const weft_status status = weft_uint64_collect(weft_team_world(world), dest, source, sizes[pe]);
    if (status != (is_short ? WEFT_ERR_RANGE : WEFT_OK)) {
        weft_sim_fail("a collect of %zu words with room for %zu gave %s: %s", sum, (size_t)(area + words - dest),
                      weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
    for (int from = 0; from < run->pes && !is_short; dest += sizes[from++]) {
        for (size_t k = 0; k < sizes[from]; k++) {
            if (dest[k] != case_value(from, from, sum + k)) {
                weft_sim_fail("word %zu of PE %d is %llx", k, from, (unsigned long long)dest[k]);
            }
        }
    }
}

static void collect_at_ends(const case_run *run)
{
    uint64_t common = run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    size_t words;
    weft_sim_world_config(&config);
    config.heap_max_bytes = END_HEAP_BYTES;
    MUST(weft_world_create(&config, &world));
    MUST(weft_broadcastmem(weft_team_world(world), NULL, NULL, 0, 0)); /* the scratch first */
    uint64_t *area = take_the_rest(world, &words);
    for (int i = 0; i < END_CALLS; i++) {
        collect_at_end(run, world, area, words, &common);
        if (common_below(&common, 2) == 0) { /* where no collect of a later step sets anybody free */
            MUST(weft_sync(world));
        }
    }
    MUST(weft_sync(world)); /* who leaves before is missed */
    MUST(weft_world_destroy(world));
}

/* In some runs blocks of several slots, and of several pieces; in some, sessions of the same calls with other data,
 * whose teams have memory in which the flags of those before still lie; in some, collects at the end of the heap. */
void case_coll(void *argument)
{
    static const coll_session_plan plan = {.calls = 40, .bytes_max = 3000};
    static const coll_session_plan large = {.calls = 12, .bytes_max = 40000};
    case_run *run = argument;
    if (run->seed % 8 == 2) {
        collect_at_ends(run);
        return;
    }
    run_session(run, run->seed % 16 == 0 && run->pes <= 4 ? &large : &plan);
}

/* A counter that only mutual exclusion keeps right, and a lock on every PE in turn. */
void case_locks(void *argument)
{
    const case_run *run = argument;
    const int turns = 6;
    weft_world *world = case_world("locks");
    long *words; /* locks, each with another home, and their counters */
    MUST(weft_calloc(world, 8, sizeof *words, (void **)&words));
    for (int i = 0; i < turns; i++) {
        int which = i % 4;
        int taken = 0;
        long value;
        if (weft_sim_random(4) == 0) {
            MUST(weft_test_lock(world, &words[which], &taken));
        }
        if (!taken) {
            MUST(weft_set_lock(world, &words[which]));
        }
        MUST(weft_long_g(world, &words[4 + which], 0, &value));
        dawdle(3, 2000);
        MUST(weft_long_p(world, &words[4 + which], value + 1, 0));
        MUST(weft_clear_lock(world, &words[which]));
    }
    MUST(weft_barrier(world));
    if (weft_world_pe(world) == 0 && words[4] + words[5] + words[6] + words[7] != (long)turns * run->pes) {
        weft_sim_fail("locks let %ld of %d turns count", words[4] + words[5] + words[6] + words[7], turns * run->pes);
    }
    for (int i = 0; i < 4; i++) {
        long left; /* read by a call: the PE's own last store may not have committed, and only calls look for it */
        MUST(weft_long_g(world, &words[i], weft_world_pe(world), &left));
        if (left != 0) {
            weft_sim_fail("lock %d is %lx at the end", i, (unsigned long)left);
        }
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}

/* ---- members far ahead of others ---- */

#define AHEAD_WORDS 1200
#define AHEAD_SHIFT 40

typedef struct ahead_run {
    weft_world *world;
    weft_team *team; /* of all PEs, numbered as in the world */
    uint64_t *rooms[2]; /* [pes][AHEAD_WORDS] and AHEAD_SHIFT more */
    uint64_t *sent; /* in these, each call elsewhere */
    uint64_t *got;
    int root;
    size_t count; /* of words from each */
    uint64_t rounds;
    int mixes;
    int stalls;
} ahead_run;

static void expect(const ahead_run *ahead, const uint64_t *got, int from, int to, uint64_t round, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (got[k] != case_value(from, to, round + k)) {
            weft_sim_fail("PE %d, round %llu: word %zu of PE %d is %llx", weft_world_pe(ahead->world),
                          (unsigned long long)round, k, from, (unsigned long long)got[k]);
        }
    }
}

static void fill_words(uint64_t *words, int from, int to, uint64_t round, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        words[k] = case_value(from, to, round + k);
    }
}

/* The root waits for nobody. */
static void broadcast_ahead(const ahead_run *ahead, uint64_t round, size_t count)
{
    int pe = weft_world_pe(ahead->world);
    fill_words(ahead->sent, pe, ahead->root, round, count);
    if (pe != ahead->root) {
        dawdle(10, 20000);
    }
    MUST(weft_uint64_broadcast(ahead->team, ahead->got, ahead->sent, count, ahead->root));
    expect(ahead, ahead->got, ahead->root, ahead->root, round, count);
}

/* All hear from all, but a member may be in the next call while others read what it sent in this one. */
static void collect_all(const ahead_run *ahead, uint64_t round, size_t count)
{
    int pe = weft_world_pe(ahead->world);
    fill_words(ahead->sent, pe, pe, round, count);
    dawdle(10, 20000);
    MUST(weft_uint64_fcollect(ahead->team, ahead->got, ahead->sent, count));
    for (int from = 0; from < weft_world_pes(ahead->world); from++) {
        expect(ahead, ahead->got + (size_t)from * count, from, from, round, count);
    }
}

/* What a member gives to a collect: one of them all, the others less. */
static size_t uneven(const ahead_run *ahead, int member, uint64_t round, size_t count)
{
    const int is_one = member == (int)(round % (uint64_t)weft_world_pes(ahead->world));
    return is_one ? count : ((size_t)member + round) % (count + 1);
}

static void collect_uneven(const ahead_run *ahead, uint64_t round, size_t count)
{
    int pe = weft_world_pe(ahead->world);
    size_t at = 0;
    fill_words(ahead->sent, pe, pe, round, count);
    dawdle(10, 20000);
    MUST(weft_uint64_collect(ahead->team, ahead->got, ahead->sent, uneven(ahead, pe, round, count)));
    for (int from = 0; from < weft_world_pes(ahead->world); from++) {
        const size_t some = uneven(ahead, from, round, count);
        expect(ahead, ahead->got + at, from, from, round, some);
        at += some;
    }
}

static void fill_blocks(const ahead_run *ahead, uint64_t round, size_t count)
{
    for (int to = 0; to < weft_world_pes(ahead->world); to++) {
        fill_words(ahead->sent + (size_t)to * count, weft_world_pe(ahead->world), to, round, count);
    }
    dawdle(10, 20000);
}

static void expect_blocks(const ahead_run *ahead, uint64_t round, size_t count)
{
    for (int from = 0; from < weft_world_pes(ahead->world); from++) {
        expect(ahead, ahead->got + (size_t)from * count, from, weft_world_pe(ahead->world), round, count);
    }
}

static void exchange_all(const ahead_run *ahead, uint64_t round, size_t count)
{
    fill_blocks(ahead, round, count);
    MUST(weft_uint64_alltoall(ahead->team, ahead->got, ahead->sent, count));
    expect_blocks(ahead, round, count);
}

/* All are there with what they want to be written into. */
static void exchange_ready(const ahead_run *ahead, uint64_t round, size_t count)
{
    fill_blocks(ahead, round, count);
    MUST(weft_team_sync(ahead->team));
    MUST(weft_alltoallmem_ready(ahead->team, ahead->got, ahead->sent, count * sizeof *ahead->sent));
    expect_blocks(ahead, round, count);
}

static void exchange_strided(const ahead_run *ahead, uint64_t round, size_t count)
{
    int pe = weft_world_pe(ahead->world);
    ptrdiff_t stride = 2 * count <= AHEAD_WORDS ? 2 : 1;
    for (int to = 0; to < weft_world_pes(ahead->world); to++) {
        for (size_t k = 0; k < count; k++) {
            ahead->sent[((size_t)to * count + k) * (size_t)stride] = case_value(pe, to, round + k);
        }
    }
    dawdle(10, 20000);
    MUST(weft_uint64_alltoalls(ahead->team, ahead->got, ahead->sent, stride, stride, count));
    for (int from = 0; from < weft_world_pes(ahead->world); from++) {
        for (size_t k = 0; k < count; k++) {
            expect(ahead, &ahead->got[((size_t)from * count + k) * (size_t)stride], from, pe, round + k, 1);
        }
    }
}

/* What PEs up to `last` contribute to place `k`, added up. */
static uint64_t sum_to(int last, int to, uint64_t round, size_t k)
{
    uint64_t sum = 0;
    for (int from = 0; from <= last; from++) {
        sum += case_value(from, to, round + k);
    }
    return sum;
}

static void expect_sums(const ahead_run *ahead, int last, int to, uint64_t round, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (ahead->got[k] != sum_to(last, to, round, k)) {
            weft_sim_fail("PE %d, round %llu: sum %zu is %llx", weft_world_pe(ahead->world), (unsigned long long)round,
                          k, (unsigned long long)ahead->got[k]);
        }
    }
}

static void reduce_all(const ahead_run *ahead, uint64_t round, size_t count)
{
    fill_words(ahead->sent, weft_world_pe(ahead->world), 0, round, count);
    dawdle(10, 20000);
    MUST(weft_uint64_sum_reduce(ahead->team, ahead->got, ahead->sent, count));
    expect_sums(ahead, weft_world_pes(ahead->world) - 1, 0, round, count);
}

static void scatter_all(const ahead_run *ahead, uint64_t round, size_t count)
{
    int pe = weft_world_pe(ahead->world);
    for (int to = 0; to < weft_world_pes(ahead->world); to++) {
        fill_words(ahead->sent + (size_t)to * count, pe, to, round, count);
    }
    dawdle(10, 20000);
    MUST(weft_uint64_sum_reduce_scatter(ahead->team, ahead->got, ahead->sent, count));
    expect_sums(ahead, weft_world_pes(ahead->world) - 1, pe, round, count);
}

static void scan_all(const ahead_run *ahead, uint64_t round, size_t count)
{
    fill_words(ahead->sent, weft_world_pe(ahead->world), 0, round, count);
    dawdle(10, 20000);
    MUST(weft_uint64_sum_inscan(ahead->team, ahead->got, ahead->sent, count));
    expect_sums(ahead, weft_world_pe(ahead->world), 0, round, count);
}

/* Another PE stands still for a while, wherever it is: those who do not need it go on meanwhile. */
static void stall_another(const case_run *run)
{
    int other = (int)weft_sim_random((uint64_t)run->pes);
    if (other != weft_sim_pe() && weft_sim_random(6) == 0) {
        weft_sim_stall(other, weft_sim_random(400000));
    }
}

/* Calls of one kind or mixed, until rings wrap. Between calls in which all hear from all some root runs ahead by as
 * many broadcasts as wrap its ring. `first`: the number of the first round, which decides the data, not the calls. */
static void call_ahead(const case_run *run, ahead_run *ahead, uint64_t common, uint64_t first)
{
    enum { CALLS = 8 };
    static void (*const calls[CALLS])(const ahead_run *, uint64_t, size_t) = {
        collect_all, collect_uneven, exchange_all, exchange_ready, exchange_strided, reduce_all, scatter_all, scan_all};
    int burst = 0;
    for (uint64_t round = first; round < first + ahead->rounds; round++) {
        ahead->sent = ahead->rooms[0] + common_below(&common, AHEAD_SHIFT);
        ahead->got = ahead->rooms[1] + common_below(&common, AHEAD_SHIFT);
        if (ahead->mixes && burst == 0) {
            calls[common_below(&common, CALLS)](ahead, round, ahead->count);
            burst = common_below(&common, 2) * common_below(&common, ahead->count > 12 ? 10 : 40);
            ahead->root = common_below(&common, run->pes);
        } else {
            broadcast_ahead(ahead, round, ahead->count);
            burst -= burst > 0;
        }
        if (ahead->stalls) {
            stall_another(run);
        }
    }
    MUST(weft_team_barrier(ahead->team));
}

/* The same calls with other data on two teams, of which the second has the memory of the first: that wraps no ring
 * twice, so that each flag which it leaves in a ring's first turn is the one that the second waits for there. */
static void call_again(const case_run *run, ahead_run *ahead, uint64_t common)
{
    ahead->rounds = WEFTI_COLL_LINES + (uint64_t)common_below(&common, (int)WEFTI_COLL_LINES);
    for (uint64_t pass = 0; pass < 2; pass++) {
        MUST(weft_team_split_strided(weft_team_world(ahead->world), 0, 1, run->pes, &ahead->team));
        call_ahead(run, ahead, common, 1 + 1000 * pass);
        MUST(weft_team_destroy(ahead->team));
    }
}

static void make_rooms(ahead_run *ahead, int pes)
{
    const size_t words = (size_t)pes * AHEAD_WORDS + AHEAD_SHIFT;
    for (int i = 0; i < 2; i++) {
        MUST(weft_malloc(ahead->world, words * sizeof *ahead->sent, (void **)&ahead->rooms[i]));
    }
}

/* Words, lines, and slots, small and as full as they can be. */
void case_run_ahead(void *argument)
{
    static const size_t counts[] = {1, 3, 12, 0}; /* in words, in lines, in slots, in full slots */
    const case_run *run = argument;
    uint64_t common = run->seed;
    ahead_run ahead = {.world = world_with_algorithms(run, "ahead"), .root = common_below(&common, run->pes)};
    ahead.count = counts[common_below(&common, 4)];
    ahead.mixes = common_below(&common, 3) > 0;
    ahead.stalls = common_below(&common, 2);
    ahead.rounds = ahead.count == 0 ? 16 : ahead.count == 12 ? 40 : ahead.mixes ? 80 : 200;
    if (ahead.count == 0) {
        ahead.count = (wefti_coll_slot_bytes((unsigned)run->pes) - sizeof(wefti_coll_slot)) / sizeof *ahead.sent;
        ahead.count += (size_t)common_below(&common, 3); /* or just too many for one */
        ahead.count = ahead.count < AHEAD_WORDS ? ahead.count : AHEAD_WORDS;
    }
    ahead.team = weft_team_world(ahead.world);
    soil_heap(ahead.world, &common);
    if (common_below(&common, 2) == 0) { /* the scratch where others have written, or the buffers */
        MUST(weft_broadcastmem(ahead.team, NULL, NULL, 0, 0));
    }
    make_rooms(&ahead, run->pes);
    if (ahead.count <= 3 && common_below(&common, 4) == 0) {
        call_again(run, &ahead, common);
    } else {
        call_ahead(run, &ahead, common, 1);
    }
    MUST(weft_world_destroy(ahead.world));
}

/* Down a tree, whose inner members send on what they have in a slot that the root wants again. */
static void run_ahead_wide(const case_run *run)
{
    uint64_t common = run->seed;
    ahead_run ahead = {.world = world_with_algorithms(run, "wide"), .count = 12, .rounds = 24};
    ahead.root = common_below(&common, run->pes);
    ahead.stalls = 1;
    ahead.team = weft_team_world(ahead.world);
    make_rooms(&ahead, run->pes);
    call_ahead(run, &ahead, common, 1);
    MUST(weft_world_destroy(ahead.world));
}

void case_coll_wide(void *argument)
{
    static const coll_session_plan plan = {.calls = 8, .bytes_max = 600};
    static const coll_session_plan large = {.calls = 6, .bytes_max = 2600}; /* more than a slot of so many holds */
    const case_run *run = argument;
    if (run->seed % 4 == 1) {
        run_ahead_wide(run);
    } else {
        run_session(argument, run->seed % 4 == 2 ? &large : &plan);
    }
}
