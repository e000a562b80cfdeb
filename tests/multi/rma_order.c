/* Goal: what a PE orders is seen in that order: put, fence, p; put_nbi, quiet, then told by somebody else; put with
 * signal; stores to the own heap, fence, p; and what a PE saw before it told a third is seen by the third.
 * Method: in a ring, each PE produces for its right neighbour and consumes from its left one, many rounds without a
 * barrier: data of changing size whose bytes name round and sender, behind a flag that is written in each way in turn;
 * the consumer overwrites what it has checked with poison and acknowledges. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define ROUNDS 3000
#define DATA_BYTES ((size_t)3000)

/* Symmetric; each word has one writer. */
typedef struct line {
    uint64_t word;
    uint64_t unused[7];
} line;

typedef struct channel {
    weft_world *world;
    int me;
    int left;
    int right;
    unsigned char *inbox; /* written by left */
    line *news; /* written by left */
    line *thanks; /* written by right */
} channel;

typedef enum way {
    FENCE_P,
    FENCE_SMALL_P,
    FENCE_SET,
    QUIET_P,
    SIGNAL_SET,
    SIGNAL_ADD,
    FENCE_SIGNAL,
    P_DATA_FENCE_P,
    WAYS
} way;

static const char *const way_names[WAYS] = {
    "put, fence, p",  "put, fence, p of 32 bits", "put, fence, atomic set",       "put_nbi, quiet, p",
    "put_signal set", "put_signal add",           "put, fence, empty put_signal", "p of each byte, fence, p"};

/* Byte by byte large ones are rare: over a network each may take a message there and back. */
static size_t bytes_of_round(way w, uint64_t round)
{
    return round % (w == P_DATA_FENCE_P ? 50 : 5) == 0 ? DATA_BYTES - round % 64 : 1 + round * 13 % 200;
}

static void produce(const channel *c, way w, uint64_t round, const unsigned char *data)
{
    weft_world *world = c->world;
    size_t bytes = bytes_of_round(w, round);
    uint64_t *news = &c->news->word;
    if (w == SIGNAL_SET || w == SIGNAL_ADD) {
        CHECK_OK(weft_putmem_signal(world, c->inbox, data, bytes, news, w == SIGNAL_SET ? round : 1,
                                    w == SIGNAL_SET ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD, c->right));
        return;
    }
    if (w == QUIET_P) {
        CHECK_OK(weft_putmem_nbi(world, c->inbox, data, bytes / 2, c->right));
        CHECK_OK(weft_putmem_nbi(world, c->inbox + bytes / 2, data + bytes / 2, bytes - bytes / 2, c->right));
        CHECK_OK(weft_quiet(world));
    } else if (w == P_DATA_FENCE_P) {
        for (size_t i = 0; i < bytes; i++) {
            CHECK_OK(weft_uchar_p(world, c->inbox + i, data[i], c->right));
        }
        CHECK_OK(weft_fence(world));
    } else {
        CHECK_OK(weft_putmem(world, c->inbox, data, bytes, c->right));
        CHECK_OK(weft_fence(world));
    }
    if (w == FENCE_SET) {
        CHECK_OK(weft_uint64_atomic_set(world, news, round, c->right));
    } else if (w == FENCE_SMALL_P) {
        CHECK_OK(weft_uint32_p(world, (uint32_t *)(void *)news, (uint32_t)round, c->right));
    } else if (w == FENCE_SIGNAL) {
        CHECK_OK(weft_putmem_signal(world, NULL, NULL, 0, news, round, WEFT_SIGNAL_SET, c->right));
    } else {
        CHECK_OK(weft_uint64_p(world, news, round, c->right));
    }
}

static int consume(const channel *c, way w, uint64_t round)
{
    size_t bytes = bytes_of_round(w, round);
    int ok = w == FENCE_SMALL_P ? CHECK_OK(weft_uint32_wait_until(c->world, (uint32_t *)(void *)&c->news->word,
                                                                  WEFT_CMP_EQ, (uint32_t)round))
                                : CHECK_OK(weft_uint64_wait_until(c->world, &c->news->word, WEFT_CMP_GE, round));
    ok = ok && pattern_check(c->inbox, bytes, c->left, round, way_names[w]);
    memset(c->inbox, POISON, bytes);
    CHECK_OK(weft_fence(c->world)); /* this PE's own stores, before the left one's next put */
    CHECK_OK(weft_uint64_p(c->world, &c->thanks->word, round, c->left));
    return ok;
}

static void run_ring(const channel *c, way w)
{
    unsigned char *data = malloc(DATA_BYTES);
    for (uint64_t round = 1; round <= ROUNDS / WAYS; round++) {
        CHECK_OK(weft_uint64_wait_until(c->world, &c->thanks->word, WEFT_CMP_EQ, round - 1));
        pattern_fill(data, bytes_of_round(w, round), c->me, round);
        produce(c, w, round, data);
        memset(data, POISON, DATA_BYTES); /* the source is the caller's again */
        if (!consume(c, w, round)) {
            break;
        }
    }
    free(data);
    CHECK_OK(weft_barrier(c->world));
    c->news->word = 0;
    c->thanks->word = 0;
    memset(c->inbox, POISON, DATA_BYTES);
    CHECK_OK(weft_barrier(c->world));
}

/* PE 0 writes to all, then tells PE 1, which tells PE 2, and so on: each sees what PE 0 wrote to it before. */
static void pass_on(const channel *c)
{
    int pes = weft_world_pes(c->world);
    uint64_t *baton = &c->news->word;
    for (uint64_t round = 1; round <= 200; round++) {
        if (c->me == 0) {
            unsigned char data[64];
            pattern_fill(data, sizeof data, 0, round);
            for (int pe = 0; pe < pes; pe++) {
                CHECK_OK(weft_putmem(c->world, c->inbox, data, sizeof data, pe));
            }
        } else {
            CHECK_OK(weft_uint64_wait_until(c->world, baton, WEFT_CMP_EQ, round));
            pattern_check(c->inbox, 64, 0, round, "what PE 0 wrote before the baton");
        }
        CHECK_OK(weft_quiet(c->world));
        CHECK_OK(weft_uint64_p(c->world, baton, round, c->right));
        if (c->me == 0) {
            CHECK_OK(weft_uint64_wait_until(c->world, baton, WEFT_CMP_EQ, round)); /* it has come round */
        }
    }
    CHECK_OK(weft_barrier(c->world));
}

/* What was put before a barrier is there behind it, of every PE, without fence or quiet. */
static void meet_at_barriers(const channel *c)
{
    int pes = weft_world_pes(c->world);
    uint64_t *words = pe_zeroed(c->world, (size_t)pes * 2 * sizeof *words);
    for (uint64_t round = 1; round <= 300; round++) {
        uint64_t *half = words + (round % 2) * (size_t)pes; /* who is ahead writes to the other half */
        for (int pe = 0; pe < pes; pe++) {
            CHECK_OK(weft_uint64_p(c->world, &half[c->me], round << 8 | (uint64_t)c->me, pe));
        }
        const int is_one_node = weft_team_pes(weft_team_node(c->world)) == pes;
        CHECK_OK(round % 3 == 0 && is_one_node ? weft_team_barrier(weft_team_node(c->world)) : weft_barrier(c->world));
        for (int pe = 0; pe < pes; pe++) {
            CHECK_SAY(half[pe] == (round << 8 | (uint64_t)pe), "round %llu: the word of PE %d is %#llx",
                      (unsigned long long)round, pe, (unsigned long long)half[pe]);
        }
    }
    CHECK_OK(weft_barrier(c->world));
    CHECK_OK(weft_free(c->world, words));
}

static void body(weft_world *world)
{
    int pes = weft_world_pes(world);
    channel c = {.world = world, .me = weft_world_pe(world)};
    c.left = (c.me + pes - 1) % pes;
    c.right = (c.me + 1) % pes;
    c.inbox = pe_poisoned(world, DATA_BYTES);
    c.news = pe_zeroed(world, sizeof *c.news);
    c.thanks = pe_zeroed(world, sizeof *c.thanks);
    for (int w = 0; w < WAYS; w++) {
        run_ring(&c, (way)w);
    }
    pass_on(&c);
    meet_at_barriers(&c);
    CHECK_OK(weft_free(world, c.thanks));
    CHECK_OK(weft_free(world, c.news));
    CHECK_OK(weft_free(world, c.inbox));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
