/* PES: 2 4 */
/* Goal: between nodes a row crosses once each way: what is handed to the transport in a dispatch and in a combine is
 * within 2 % of one row a (token, domain), headers, records, counts and flags included; and the domains are the nodes.
 * A dispatch that moves nothing sends two messages to each other domain, however many ranks that has.
 *
 * Method: 64 experts, 8 choices a token, rows of 8 KiB, a fresh dispatch and a combine; the world's counters before and
 * after, beside the rows that cross, counted from all ranks' choices, which follow from the rank. On one node nothing
 * crosses by a transport, and the same calls are made with domains of two and fewer tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pe_main.h"
#include "weft_ep.h"

#define EXPERTS 64
#define TOPK 8
#define HIDDEN 4096
#define ROW_BYTES ((size_t)2 * HIDDEN)
#define TOKENS 1024
#define TOKENS_HERE 24 /* on one node */
#define SIGNAL_BYTES 16 /* of a put with a signal: the word and its place */
#define ASK_BYTES 32 /* at most, a token: what a rank that hands no rows over asks its forwarder for */

typedef struct layer {
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    int rank;
    int ranks;
    int tokens;
    int domains;
    int domain_of[64];
    int slot[64];
    int32_t *ids; /* [tokens][TOPK] of this rank */
    uint16_t *in;
    uint16_t *received;
    uint16_t *out;
} layer;

/* The choices of a token: distinct. */
static void choose(int rank, int token, int32_t *ids)
{
    unsigned first = (unsigned)(rank * 7919 + token * 31) % EXPERTS;
    unsigned step = 1 + 2 * ((unsigned)(rank + token) % 16); /* odd, so that eight steps meet eight experts */
    for (unsigned k = 0; k < TOPK; k++) {
        ids[k] = (int32_t)((first + k * step) % EXPERTS);
    }
}

static int owner_of(const layer *of, int32_t expert)
{
    int first = 0;
    for (int rank = 0; rank < of->ranks; rank++) {
        first += EXPERTS / of->ranks + (rank < EXPERTS % of->ranks);
        if (expert < first) {
            return rank;
        }
    }
    return -1;
}

/* The tokens of a rank that have an expert in a domain. */
static uint64_t tokens_to(const layer *of, int source, int domain)
{
    uint64_t count = 0;
    for (int token = 0; token < of->tokens; token++) {
        int32_t ids[TOPK];
        int goes = 0;
        choose(source, token, ids);
        for (int k = 0; k < TOPK; k++) {
            goes |= of->domain_of[owner_of(of, ids[k])] == domain;
        }
        count += (uint64_t)goes;
    }
    return count;
}

/* Sources whose results cross to them from this rank: the forwarder is the one in their slot here, counted around. */
static int forwards_for(const layer *of, int source)
{
    int size = 0;
    for (int rank = 0; rank < of->ranks; rank++) {
        size += of->domain_of[rank] == of->domain_of[of->rank];
    }
    return of->domain_of[source] != of->domain_of[of->rank] && of->slot[source] % size == of->slot[of->rank];
}

static uint64_t handed_over(const layer *of)
{
    weft_counters counters;
    CHECK_OK(weft_world_counters(of->world, &counters));
    return counters.remote_put_bytes + counters.remote_get_bytes + SIGNAL_BYTES * counters.remote_put_signals;
}

static int make(layer *of)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_team *node = weft_team_node(of->world);
    int is_spread = weft_team_pes(node) < of->ranks;
    of->tokens = is_spread ? TOKENS : TOKENS_HERE;
    config.experts = EXPERTS;
    config.tokens_max = of->tokens;
    config.topk_max = plan.topk = TOPK;
    config.row_bytes_max = ROW_BYTES;
    config.domain_ranks = !is_spread && of->ranks % 2 == 0 ? 2 : 0;
    if (!ep_group_open(of->world, &config, &plan, &of->ep, &of->route) ||
        !CHECK_OK(weft_ep_domains(of->ep, of->domain_of, &of->domains))) {
        return 0;
    }
    for (int rank = 0; rank < of->ranks; rank++) {
        int lowest = rank;
        of->slot[rank] = 0;
        for (int other = 0; other < rank; other++) {
            of->slot[rank] += of->domain_of[other] == of->domain_of[rank];
        }
        for (int pe = 0; pe < weft_team_pes(node) && is_spread; pe++) {
            int other = weft_team_translate(node, pe, weft_team_world(of->world));
            lowest =
                weft_team_translate(weft_team_world(of->world), rank, node) >= 0 && other < lowest ? other : lowest;
        }
        CHECK(!is_spread || weft_team_translate(weft_team_world(of->world), rank, node) < 0 ||
              of->domain_of[rank] == lowest);
    }
    size_t rows = (size_t)of->ranks * (size_t)of->tokens;
    void *received;
    of->ids = malloc((size_t)of->tokens * TOPK * sizeof *of->ids);
    of->in = aligned_alloc(64, (size_t)of->tokens * ROW_BYTES);
    of->out = aligned_alloc(64, (size_t)of->tokens * ROW_BYTES);
    if (!CHECK_OK(weft_malloc(of->world, rows * ROW_BYTES, &received))) {
        return 0;
    }
    of->received = received;
    for (int token = 0; token < of->tokens; token++) {
        choose(of->rank, token, &of->ids[token * TOPK]);
        for (int i = 0; i < HIDDEN; i++) { /* small whole numbers, so that sums of them are exact */
            of->in[(size_t)token * HIDDEN + (size_t)i] = (token + i + of->rank) % 2 == 0 ? 0x3f80 : 0x4000;
        }
    }
    return 1;
}

static weft_ep_rows rows_of(uint16_t *data)
{
    return ep_rows(data, WEFT_EP_BF16, HIDDEN);
}

static float value_of(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Each rank that has a token gives its row back: the row times their number. */
static void check_sums(const layer *of)
{
    for (int token = 0; token < of->tokens; token++) {
        uint64_t ranks = 0;
        for (int k = 0; k < TOPK; k++) {
            ranks |= UINT64_C(1) << owner_of(of, of->ids[token * TOPK + k]);
        }
        for (int i = 0; i < HIDDEN; i += 509) {
            size_t at = (size_t)token * HIDDEN + (size_t)i;
            float wanted = (float)__builtin_popcountll(ranks) * value_of(of->in[at]);
            CHECK_SAY(value_of(of->out[at]) == wanted, "token %d element %d is %g, not %g", token, i,
                      (double)value_of(of->out[at]), (double)wanted);
        }
    }
}

/* What was handed over is at least the rows that cross and at most 2 % more. */
static void check_bytes(const layer *of, const char *call, uint64_t bytes, uint64_t rows)
{
    uint64_t least = rows * ROW_BYTES;
    if (of->tokens == TOKENS && rows == 0) { /* unequal nodes: it forwards for nobody */
        CHECK_SAY(bytes <= (uint64_t)of->tokens * ASK_BYTES, "a %s of no rows hands over %llu bytes", call,
                  (unsigned long long)bytes);
    } else if (of->tokens == TOKENS) {
        printf("PE %d: a %s hands over %.4f times the bytes of the %llu rows that cross\n", of->rank, call,
               (double)bytes / (double)least, (unsigned long long)rows);
        CHECK_SAY(bytes >= least && bytes <= least + least / 50, "a %s hands over %llu bytes for %llu rows, %.4f a row",
                  call, (unsigned long long)bytes, (unsigned long long)rows, (double)bytes / (double)least);
    }
}

static void step(const layer *of)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = rows_of(of->in);
    weft_ep_rows out = rows_of(of->out);
    uint64_t outward = 0;
    uint64_t back = 0;
    choices.tokens = of->tokens;
    choices.ids = of->ids;
    to.rows = rows_of(of->received);
    to.rows_capacity = (size_t)of->ranks * (size_t)of->tokens;
    for (int rank = 0; rank < of->ranks; rank++) {
        int is_first = of->domain_of[rank] == rank; /* of another domain */
        outward += is_first && rank != of->domain_of[of->rank] ? tokens_to(of, of->rank, rank) : 0;
        back += forwards_for(of, rank) ? tokens_to(of, rank, of->domain_of[of->rank]) : 0;
    }
    uint64_t before = handed_over(of);
    CHECK_OK(weft_ep_route_choose(of->route, &choices));
    CHECK_OK(weft_ep_dispatch(of->route, &in, &to, NULL));
    check_bytes(of, "dispatch", handed_over(of) - before, outward);
    before = handed_over(of);
    CHECK_OK(weft_ep_combine(of->route, &to.rows, &out, 0, NULL));
    check_bytes(of, "combine", handed_over(of) - before, back);
    check_sums(of);
}

/* To each other domain the notice of the call, and a chunk that is the last one. */
static void check_messages(const layer *of)
{
    weft_ep_choices none = WEFT_EP_CHOICES_INIT;
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = rows_of(of->in);
    weft_counters before;
    weft_counters after;
    to.rows = rows_of(of->received);
    to.rows_capacity = (size_t)of->ranks * (size_t)of->tokens;
    none.ids = of->ids;
    CHECK_OK(weft_ep_route_update(of->route, &none, NULL));
    CHECK_OK(weft_world_counters(of->world, &before));
    CHECK_OK(weft_ep_dispatch(of->route, &in, &to, NULL));
    CHECK_OK(weft_world_counters(of->world, &after));
    uint64_t sent = after.remote_put_signals - before.remote_put_signals;
    uint64_t wanted = of->tokens == TOKENS ? 2 * (uint64_t)(of->domains - 1) : 0;
    CHECK_SAY(sent == wanted, "a dispatch of nothing sends %llu messages, not %llu", (unsigned long long)sent,
              (unsigned long long)wanted);
}

static void body(weft_world *world)
{
    layer of = {.world = world, .rank = weft_world_pe(world), .ranks = weft_world_pes(world)};
    if (!make(&of)) {
        return;
    }
    for (int i = 0; i < 2; i++) { /* also after a failure, for the others */
        step(&of);
    }
    check_messages(&of);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, of.received));
    ep_group_close(of.ep, of.route);
    free(of.ids);
    free(of.in);
    free(of.out);
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
