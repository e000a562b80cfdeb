/* sim/halves.c: two teams, of all PEs cut in two in any way, make collectives at the same time, with scratch at the
 * same places of their members' memory; or one of them does, and the others keep data in theirs. Each member has what
 * the members of its own team gave, and who is no member keeps its memory as it was. */
#include <stdlib.h>
#include <string.h>

#include "sim/cases.h"
#include "support/coll_ways.h"

#define CALLS 10
#define PES_MAX 12
#define WORDS_MAX 700 /* of a block */
#define KEPT 3000 /* words */

typedef struct half {
    weft_world *world;
    weft_team *team;
    uint64_t *source; /* [PES_MAX * WORDS_MAX] */
    uint64_t *dest;
    int list[64]; /* of its members, PEs of the world */
    int pes;
    int pe; /* in the team */
} half;

static void draw_halves(half *h, int pes, uint64_t *common)
{
    int order[64];
    const int way = common_below(common, 4);
    const int cut = way == 0 ? (pes + 1) / 2 : common_below(common, pes + 1);
    const int me = weft_world_pe(h->world);
    for (int i = 0; i < pes; i++) {
        order[i] = way == 0 ? (2 * i < pes ? 2 * i : 2 * (i - (pes + 1) / 2) + 1) : way == 1 ? pes - 1 - i : i;
    }
    for (int i = 0; way == 3 && i < pes; i++) {
        const int other = common_below(common, i + 1);
        const int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < pes; i++) {
        if (order[i] == me) {
            const int is_first = i < cut;
            h->pes = is_first ? cut : pes - cut;
            h->pe = is_first ? i : i - cut;
            memcpy(h->list, is_first ? order : order + cut, (size_t)h->pes * sizeof *order);
        }
    }
    MUST(weft_team_create(weft_team_world(h->world), h->list, h->pes, &h->team));
}

/* ---- calls ---- */

/* What member `from` gives for member `to`. */
static uint64_t value_of(const half *h, int from, int to, uint64_t call, size_t i)
{
    return case_value(h->list[from], h->list[to], call * 1024 + i);
}

static void expect(const half *h, uint64_t seen, uint64_t wanted, const char *what, int from, size_t i)
{
    if (seen != wanted) {
        weft_sim_fail("%s of %d: member %d, PE %d, has word %zu of member %d as %llx, not %llx", what, h->pes, h->pe,
                      h->list[h->pe], i, from, (unsigned long long)seen, (unsigned long long)wanted);
    }
}

static void exchange(const half *h, uint64_t call, size_t words)
{
    for (int to = 0; to < h->pes; to++) {
        for (size_t i = 0; i < words; i++) {
            h->source[(size_t)to * words + i] = value_of(h, h->pe, to, call, i);
        }
    }
    MUST(weft_uint64_alltoall(h->team, h->dest, h->source, words));
    for (int from = 0; from < h->pes; from++) {
        for (size_t i = 0; i < words; i++) {
            expect(h, h->dest[(size_t)from * words + i], value_of(h, from, h->pe, call, i), "an alltoall", from, i);
        }
    }
}

static void collect(const half *h, uint64_t call, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        h->source[i] = value_of(h, h->pe, 0, call, i);
    }
    MUST(weft_uint64_fcollect(h->team, h->dest, h->source, words));
    for (int from = 0; from < h->pes; from++) {
        for (size_t i = 0; i < words; i++) {
            expect(h, h->dest[(size_t)from * words + i], value_of(h, from, 0, call, i), "a collect", from, i);
        }
    }
}

static void send_out(const half *h, uint64_t call, size_t words)
{
    const int root = (int)(call % (uint64_t)h->pes);
    for (size_t i = 0; i < words; i++) {
        h->source[i] = value_of(h, h->pe, 0, call, i);
    }
    MUST(weft_uint64_broadcast(h->team, h->dest, h->source, words, root));
    for (size_t i = 0; i < words; i++) {
        expect(h, h->dest[i], value_of(h, root, 0, call, i), "a broadcast", root, i);
    }
}

static void reduce(const half *h, uint64_t call, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        h->source[i] = value_of(h, h->pe, 0, call, i);
    }
    MUST(weft_uint64_sum_reduce(h->team, h->dest, h->source, words));
    for (size_t i = 0; i < words; i++) {
        uint64_t sum = 0;
        for (int from = 0; from < h->pes; from++) {
            sum += value_of(h, from, 0, call, i);
        }
        expect(h, h->dest[i], sum, "a sum", 0, i);
    }
}

static void allocate(const half *h, uint64_t call, size_t words)
{
    uint64_t *block;
    MUST(weft_team_malloc(h->team, words * sizeof *block, (void **)&block));
    MUST(weft_uint64_p(h->world, block, value_of(h, h->pe, 0, call, 0), h->list[(h->pe + 1) % h->pes]));
    MUST(weft_team_barrier(h->team));
    expect(h, *block, value_of(h, (h->pe + h->pes - 1) % h->pes, 0, call, 0), "a block", 0, 0);
    MUST(weft_team_free(h->team, block));
}

static void call_all(const half *h, uint64_t common)
{
    static void (*const calls[])(const half *, uint64_t, size_t) = {exchange, exchange, collect,
                                                                    send_out, reduce,   allocate};
    static const size_t words[] = {1, 5, 40, 300, WORDS_MAX};
    for (uint64_t call = 1; call <= CALLS; call++) {
        const int which = common_below(&common, (int)(sizeof calls / sizeof *calls));
        calls[which](h, call, words[common_below(&common, (int)(sizeof words / sizeof *words))]);
        dawdle(6, 3000);
    }
}

/* Who is no member has its own block meanwhile, perhaps where the others have their scratch. */
static void keep_all(const half *h)
{
    uint64_t *kept;
    MUST(weft_team_malloc(h->team, KEPT * sizeof *kept, (void **)&kept));
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = case_value(h->list[h->pe], 0, i);
    }
    for (int turn = 0; turn < CALLS; turn++) {
        dawdle(2, 20000);
        MUST(weft_team_sync(h->team));
    }
    MUST(weft_barrier(h->world));
    for (size_t i = 0; i < KEPT; i++) {
        expect(h, kept[i], case_value(h->list[h->pe], 0, i), "a block beside calls of others", h->pe, i);
    }
    MUST(weft_team_free(h->team, kept));
}

void case_halves(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    const size_t room = (size_t)PES_MAX * WORDS_MAX;
    char algorithms[COLL_WAYS_BYTES];
    half h = {0};
    draw_algorithms(run->seed, algorithms);
    (void)setenv("WEFT_COLL", algorithms, 1);
    h.world = case_world("halves");
    (void)unsetenv("WEFT_COLL"); /* all have read it */
    MUST(weft_malloc(h.world, room * sizeof *h.source, (void **)&h.source));
    MUST(weft_malloc(h.world, room * sizeof *h.dest, (void **)&h.dest));
    draw_halves(&h, run->pes, &common);
    const int who = common_below(&common, 4); /* the half of PE 0, the other one, or both */
    int is_of_first = 0;
    for (int i = 0; i < h.pes; i++) {
        is_of_first |= h.list[i] == 0;
    }
    if (who > 1 || who == is_of_first) {
        call_all(&h, common);
        MUST(weft_barrier(h.world));
    } else {
        keep_all(&h);
    }
    MUST(weft_team_destroy(h.team));
    MUST(weft_world_destroy(h.world));
}
