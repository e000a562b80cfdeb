/* Goal: processes form worlds again and again, each time with other members, numbers, sizes and bootstraps, several
 * alive at once, and nothing of them stays. Method: one world of all processes stays, to carry ids and to keep step. In
 * each round the processes are dealt at random, the same everywhere, into worlds of any sizes and numberings, some into
 * none; these meet by weftrun's environment, by a unique id or by a callback on a team of the standing world. A world
 * ends before or after the next is made. Words name round, world, sender and receiver. Descriptors, maps, threads and
 * allocations are counted at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pe_main.h"

#define PES_MOST 16
#define WORDS 16

typedef struct deal {
    int round;
    int world; /* this process's in this round, or -1 */
    int number;
    int size;
    int members[PES_MOST]; /* of this process's world: processes by number */
} deal;

/* Deal the processes: what this one, `me` of `pes`, gets. All compute the same. */
static deal deal_round(uint64_t seed, int round, int me, int pes)
{
    uint64_t random = seed + (uint64_t)round * 1000003;
    int order[PES_MOST];
    deal mine = {.round = round, .world = -1};
    int world = 0;
    random_order(&random, order, pes);
    for (int first = 0; first < pes; world++) {
        int size = 1 + (int)random_below(&random, (unsigned)(pes - first));
        int participates = random_below(&random, 5) != 0;
        for (int i = first; i < first + size && participates; i++) {
            if (order[i] == me) {
                mine.world = world;
                mine.number = i - first;
                mine.size = size;
                memcpy(mine.members, order + first, (size_t)size * sizeof *order);
            }
        }
        first += size;
    }
    return mine;
}

/* ---- three ways to meet ---- */

/* Symmetric, in the standing world. */
typedef struct board {
    weft_uid uid; /* of the world that this process is to join */
    unsigned char parts[PES_MOST][4096]; /* of an allgather */
} board;

/* An allgather among the members of a team, by puts and barriers. */
typedef struct gather {
    weft_team *team;
    board *board;
} gather;

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    const gather *g = context;
    weft_world *world = weft_team_owner(g->team);
    int me = weft_team_pe(g->team);
    int pes = weft_team_pes(g->team);
    if (bytes > sizeof g->board->parts[0]) {
        return 1;
    }
    for (int i = 0; i < pes; i++) {
        int pe = weft_team_translate(g->team, i, weft_team_world(world));
        if (weft_putmem(world, g->board->parts[me], mine, bytes, pe) != WEFT_OK) {
            return 2;
        }
    }
    if (weft_team_barrier(g->team) != WEFT_OK) {
        return 3;
    }
    for (int i = 0; i < pes; i++) {
        memcpy((unsigned char *)all + (size_t)i * bytes, g->board->parts[i], bytes);
    }
    return weft_team_barrier(g->team) == WEFT_OK ? 0 : 4;
}

static weft_status create_by_launcher(const deal *d, weft_world_config *config, weft_world **world)
{
    char name[40];
    (void)snprintf(name, sizeof name, "round %d, world %d", d->round, d->world);
    config->name = name;
    return weft_world_create(config, world);
}

/* Collective over the standing world: everybody passes here in a round of this kind. */
static weft_status create_by_id(const deal *d, weft_world *standing, board *b, weft_world_config *config,
                                weft_world **world)
{
    weft_uid uid;
    if (d->world >= 0 && d->number == 0) {
        weft_status status = weft_uid_create("lo", &uid);
        if (status == WEFT_ERR_UNSUPPORTED) {
            memset(&uid, 0, sizeof uid); /* built without libsodium: all learn it from this */
        } else {
            CHECK_OK(status);
        }
        for (int i = 0; i < d->size; i++) {
            CHECK_OK(weft_putmem(standing, &b->uid, &uid, sizeof uid, d->members[i]));
        }
    }
    CHECK_OK(weft_barrier(standing));
    if (d->world < 0) {
        return WEFT_OK;
    }
    const weft_uid none = {{0}};
    if (memcmp(&b->uid, &none, sizeof none) == 0) {
        return create_by_launcher(d, config, world);
    }
    config->bootstrap = WEFT_BOOTSTRAP_UID;
    config->uid = &b->uid;
    return weft_world_create(config, world);
}

static weft_status create_by_callback(const deal *d, weft_world *standing, board *b, weft_world_config *config,
                                      weft_world **world)
{
    gather g = {.board = b};
    CHECK_OK(weft_team_create(weft_team_world(standing), d->members, d->world < 0 ? 0 : d->size, &g.team));
    if (d->world < 0) {
        return WEFT_OK;
    }
    const weft_callback_ops ops = {.size = sizeof ops, .context = &g, .allgather = allgather};
    config->bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config->callback = &ops;
    weft_status status = weft_world_create(config, world);
    CHECK_OK(weft_team_destroy(g.team));
    return status;
}

/* NULL when this process is in no world of this round. */
static weft_world *create(const deal *d, weft_world *standing, board *b)
{
    weft_world *world = NULL;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_status status = WEFT_OK;
    config.pe = d->number;
    config.pes = d->size;
    config.heap_max_bytes = (size_t)1 << (20 + d->round % 8);
    if (d->round % 3 == 1) {
        status = create_by_id(d, standing, b, &config, &world);
    } else if (d->round % 3 == 2) {
        status = create_by_callback(d, standing, b, &config, &world);
    } else if (d->world >= 0) {
        status = create_by_launcher(d, &config, &world);
    }
    if (!CHECK_SAY(status == WEFT_OK, "round %d, world %d, PE %d of %d: %s", d->round, d->world, d->number, d->size,
                   weft_last_error())) {
        exit(1); /* the others would wait */
    }
    return world;
}

/* ---- what a world is used for ---- */

static uint64_t word_of(const deal *d, int from, int to, int i)
{
    return (uint64_t)d->round << 40 | (uint64_t)d->world << 32 | (uint64_t)from << 16 | (uint64_t)to << 8 | (uint64_t)i;
}

static void use(weft_world *world, const deal *d)
{
    CHECK(weft_world_pe(world) == d->number && weft_world_pes(world) == d->size);
    uint64_t *inbox = pe_zeroed(world, (size_t)d->size * WORDS * sizeof *inbox);
    for (int to = 0; to < d->size; to++) {
        uint64_t out[WORDS];
        for (int i = 0; i < WORDS; i++) {
            out[i] = word_of(d, d->number, to, i);
        }
        CHECK_OK(weft_uint64_put(world, inbox + (size_t)d->number * WORDS, out, WORDS, to));
    }
    CHECK_OK(weft_barrier(world));
    for (int k = 0; k < d->size * WORDS; k++) {
        uint64_t wanted = word_of(d, k / WORDS, d->number, k % WORDS);
        CHECK_SAY(inbox[k] == wanted, "round %d: a word from PE %d is %#llx, not %#llx", d->round, k / WORDS,
                  (unsigned long long)inbox[k], (unsigned long long)wanted);
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, inbox));
}

static void run_rounds(weft_world *standing, board *b, uint64_t seed, int rounds)
{
    int me = weft_world_pe(standing);
    int pes = weft_world_pes(standing);
    uint64_t own = seed + (uint64_t)me;
    weft_world *before = NULL;
    deal dealt_before = {0};
    for (int round = 0; round < rounds && check_failures() == 0; round++) {
        deal d = deal_round(seed, round, me, pes);
        if (random_below(&own, 2) == 0) { /* local: each decides for itself */
            CHECK_OK(weft_world_destroy(before));
            before = NULL;
        }
        weft_world *world = create(&d, standing, b);
        if (world != NULL) {
            use(world, &d);
        }
        CHECK_OK(weft_barrier(standing));
        CHECK(before == NULL || weft_world_pe(before) == dealt_before.number);
        CHECK_OK(weft_world_destroy(before));
        before = world;
        dealt_before = d;
    }
    CHECK_OK(weft_world_destroy(before));
}

#define KEPT_MAX 64

static void check_nothing_stays(const ledger *before)
{
    ledger now = ledger_read();
    for (int look = 0; look < 100 && (now.descriptors != before->descriptors || now.threads != before->threads);
         look++) {
        wefti_os_sleep_ns(10000000);
        now = ledger_read();
    }
    CHECK_SAY(now.descriptors == before->descriptors, "%ld descriptors, %ld before", now.descriptors,
              before->descriptors);
    CHECK_SAY(now.threads == before->threads, "%ld threads, %ld before", now.threads, before->threads);
    CHECK_SAY(now.maps == before->maps, "%ld maps, %ld before", now.maps, before->maps);
    /* A world that stands keeps what is left of the teams that were destroyed last, to refuse calls on them. */
    CHECK_SAY(now.allocations <= before->allocations + KEPT_MAX, "%ld allocations, %ld before", now.allocations,
              before->allocations);
}

/* PEs of other nodes are connected when first used, and rounds meet some of them late. */
static void connect_all(weft_world *standing, board *b)
{
    const unsigned char byte = 0;
    for (int pe = 0; pe < weft_world_pes(standing); pe++) {
        CHECK_OK(weft_putmem(standing, b->parts[weft_world_pe(standing)], &byte, sizeof byte, pe));
    }
    CHECK_OK(weft_barrier(standing));
}

int main(void)
{
    weft_world *standing;
    (void)setenv("WEFT_LOG", "none", 0);
    ledger empty = ledger_read();
    if (!CHECK_OK(weft_world_create(NULL, &standing))) {
        return 1;
    }
    check_as_pe(weft_world_pe(standing));
    int pes = weft_world_pes(standing);
    if (!CHECK_SAY(pes <= PES_MOST, "at most %d processes", PES_MOST)) {
        return 1;
    }
    uint64_t seed = pe_common_seed(standing);
    board *b = pe_zeroed(standing, sizeof *b);
    connect_all(standing, b);
    run_rounds(standing, b, seed, 6); /* what is loaded on first use */
    ledger before = ledger_read();
    run_rounds(standing, b, seed + 1, pes <= 5 ? 200 : 60);
    check_nothing_stays(&before);
    CHECK_OK(weft_barrier(standing));
    CHECK_OK(weft_world_destroy(standing));
    ledger after = ledger_read();
    CHECK(after.maps == empty.maps && after.allocations == empty.allocations && after.threads == empty.threads);
    return check_failures() != 0;
}
