/* sim/orders.c: what is promised of order, with everything that can be written, everything that completes or orders it,
 * and everything that reads it: two that write, complete and read each other's bytes do not both miss them (Dekker's
 * algorithm rests on that); who is told behind what is complete finds it, whoever has it; who is told behind a fence by
 * the same way finds what lies before that. */
#include <string.h>

#include "sim/cases.h"

#define ROUNDS 8
#define SLOT 192 /* bytes of a PE in a round */

/* What is written: by a context in `by_context`. */
typedef enum write_kind {
    WRITE_PUT,
    WRITE_PUT_NBI,
    WRITE_BYTES,
    WRITE_HALVES,
    WRITE_WORDS,
    WRITE_STRIDED,
    WRITE_BLOCKS,
    WRITE_SIGNAL,
    WRITE_SET,
    WRITE_ADD,
    WRITES
} write_kind;

typedef enum read_kind { READ_GET, READ_GET_NBI, READ_BYTES, READ_WORDS, READ_STRIDED, READ_ATOMIC, READS } read_kind;

/* How what is written becomes complete, at all PEs. The last ones are calls of a team. */
typedef enum complete_kind {
    COMPLETE_QUIET,
    COMPLETE_CONTEXT_QUIET,
    COMPLETE_CONTEXT_DESTROY,
    COMPLETE_LOCK,
    COMPLETE_FREE,
    COMPLETE_BARRIER,
    COMPLETES
} complete_kind;

/* A round, as it is drawn alike on all PEs. */
typedef struct round_plan {
    int number;
    write_kind write;
    complete_kind complete;
    int by_context;
    size_t first; /* byte of the slot */
    size_t bytes;
    int shift; /* PE p writes to PE p + shift, */
    int told; /* and tells PE p + told */
    int team; /* which barrier */
} round_plan;

typedef struct order_run {
    case_run *run;
    weft_world *world;
    weft_team *all; /* in an order of its own: what contexts number PEs by */
    weft_team *half; /* of every second PE, or of the others */
    weft_ctx *ctx;
    unsigned char *slots; /* [ROUNDS][PEs][SLOT] */
    uint64_t *flags; /* [ROUNDS][PEs] */
    long *locks; /* one a PE */
    int pe;
} order_run;

static unsigned char *slot_of(const order_run *o, const round_plan *plan, int pe)
{
    return o->slots + (size_t)(plan->number * o->run->pes + pe) * SLOT;
}

static void fill(unsigned char *bytes, int pe, const round_plan *plan)
{
    for (size_t i = 0; i < plan->bytes; i++) {
        bytes[i] = (unsigned char)(1 + ((size_t)(pe * 31 + plan->number * 7) + i) % 255);
    }
}

/* A call of the world or, in its place, of the context. */
#define BY(o, plan, call, ...)                                                                                         \
    MUST((plan)->by_context ? weft_ctx_##call((o)->ctx, __VA_ARGS__, weft_team_translate(world_team(o), to, (o)->all)) \
                            : weft_##call((o)->world, __VA_ARGS__, to))

static weft_team *world_team(const order_run *o)
{
    return weft_team_world(o->world);
}

static void write_elements(const order_run *o, const round_plan *plan, unsigned char *at, const unsigned char *bytes,
                           int to)
{
    const size_t step = plan->write == WRITE_BYTES ? 1 : plan->write == WRITE_HALVES ? 4 : 8;
    for (size_t i = 0; i < plan->bytes; i += step) {
        uint64_t word = 0;
        uint32_t half = 0;
        memcpy(&word, bytes + i, step);
        memcpy(&half, bytes + i, step < 4 ? 1 : 4);
        uint64_t *there = (uint64_t *)(void *)(at + i);
        if (plan->write == WRITE_BYTES) {
            BY(o, plan, uint8_p, at + i, bytes[i]);
        } else if (plan->write == WRITE_HALVES) {
            BY(o, plan, uint32_p, (uint32_t *)(void *)there, half);
        } else if (plan->write == WRITE_WORDS) {
            BY(o, plan, uint64_p, there, word);
        } else if (plan->write == WRITE_SET) {
            BY(o, plan, uint64_atomic_set, there, word);
        } else {
            BY(o, plan, uint64_atomic_add, there, word);
        }
    }
}

/* Every second element, or pair of them, and then the others. */
static void write_apart(const order_run *o, const round_plan *plan, unsigned char *at, const unsigned char *bytes,
                        int to)
{
    const size_t block = plan->write == WRITE_BLOCKS ? 2 : 1;
    for (size_t begin = 0; begin < 2 * block && begin < plan->bytes; begin += block) {
        const size_t blocks = block == 2 ? plan->bytes / 4 : (plan->bytes - begin + 1) / 2;
        if (plan->write == WRITE_BLOCKS) {
            BY(o, plan, ibputmem, at + begin, bytes + begin, 2 * (ptrdiff_t)block, 2 * (ptrdiff_t)block, block, blocks,
               1);
        } else {
            BY(o, plan, uint8_iput, at + begin, bytes + begin, 2, 2, blocks);
        }
    }
}

static void write_all(const order_run *o, const round_plan *plan, int to)
{
    unsigned char bytes[SLOT];
    unsigned char *at = slot_of(o, plan, o->pe) + plan->first;
    uint64_t *beside = (uint64_t *)(void *)(slot_of(o, plan, o->pe) + SLOT - 8);
    fill(bytes, o->pe, plan);
    switch (plan->write) {
    case WRITE_PUT:
        BY(o, plan, putmem, at, bytes, plan->bytes);
        break;
    case WRITE_PUT_NBI:
        BY(o, plan, putmem_nbi, at, bytes, plan->bytes);
        break;
    case WRITE_SIGNAL:
        BY(o, plan, putmem_signal, at, bytes, plan->bytes, beside, 1, WEFT_SIGNAL_SET);
        break;
    case WRITE_STRIDED:
    case WRITE_BLOCKS:
        write_apart(o, plan, at, bytes, to);
        break;
    default:
        write_elements(o, plan, at, bytes, to);
    }
}

/* ---- to complete, to order, and to read ---- */

static weft_team *team_of(const order_run *o, const round_plan *plan)
{
    switch (plan->team) {
    case 0:
        return weft_team_node(o->world);
    case 1:
        return weft_team_link(o->world);
    case 2:
        return weft_team_same_slot(o->world);
    default:
        return o->half;
    }
}

static void complete(order_run *o, const round_plan *plan)
{
    switch (plan->complete) {
    case COMPLETE_QUIET:
        MUST(weft_quiet(o->world));
        break;
    case COMPLETE_CONTEXT_QUIET:
        MUST(weft_ctx_quiet(o->ctx));
        break;
    case COMPLETE_CONTEXT_DESTROY:
        MUST(weft_ctx_destroy(o->ctx));
        MUST(weft_ctx_create(o->all, plan->team == 0 ? WEFT_CTX_SERIALIZED : WEFT_CTX_PRIVATE, &o->ctx));
        break;
    case COMPLETE_LOCK:
        MUST(weft_clear_lock(o->world, &o->locks[o->pe]));
        MUST(weft_set_lock(o->world, &o->locks[o->pe]));
        break;
    case COMPLETE_FREE:
        MUST(weft_team_free(team_of(o, plan), NULL));
        break;
    default:
        MUST(weft_team_barrier(team_of(o, plan)));
    }
}

/* What is at PE `from` of what PE `of` has written there; *has_all: whether it is all of it. A word behind which others
 * may be is read first. */
static int reads_all(const order_run *o, const round_plan *plan, int of, int from)
{
    unsigned char wanted[SLOT];
    unsigned char seen[SLOT] = {0};
    const unsigned char *at = slot_of(o, plan, of) + plan->first;
    const int has_words = plan->first % 8 == 0 && plan->bytes % 8 == 0;
    read_kind kind = (read_kind)weft_sim_random(has_words ? READS : READ_WORDS);
    fill(wanted, of, plan);
    if (kind == READ_GET_NBI) {
        MUST(weft_getmem_nbi(o->world, seen, at, plan->bytes, from));
        MUST(weft_quiet(o->world));
    } else if (kind == READ_GET) {
        MUST(weft_getmem(o->world, seen, at, plan->bytes, from));
    } else if (kind == READ_STRIDED) {
        MUST(weft_uint64_iget(o->world, (uint64_t *)(void *)seen, (const uint64_t *)(const void *)at, 1, 1,
                              plan->bytes / 8, from));
    } else {
        for (size_t i = 0; i < plan->bytes; i += kind == READ_BYTES ? 1 : 8) {
            uint64_t word = 0;
            const uint64_t *there = (const uint64_t *)(const void *)(at + i);
            if (kind == READ_BYTES) {
                MUST(weft_uint8_g(o->world, at + i, from, &seen[i]));
                continue;
            }
            MUST(kind == READ_WORDS ? weft_uint64_g(o->world, there, from, &word)
                                    : weft_uint64_atomic_fetch(o->world, there, from, &word));
            memcpy(seen + i, &word, 8);
        }
    }
    return memcmp(seen, wanted, plan->bytes) == 0;
}

/* All begin a step at about the same time, as they are told beside weft. */
static void meet(const order_run *o, int time)
{
    const uint64_t *places = &o->run->board[64 * time];
    o->run->board[64 * time + o->pe] = 1;
    for (int pe = 0; pe < o->run->pes; pe++) {
        for (uint64_t ns = 50; places[pe] == 0; ns += ns / 2 < 500 ? ns / 2 : 0) {
            weft_sim_sleep_ns(ns);
        }
    }
}

/* ---- the three promises ---- */

static void draw_plan(round_plan *plan, int number, int pes, uint64_t *common)
{
    *plan = (round_plan){.number = number,
                         .write = (write_kind)common_below(common, WRITES),
                         .complete = (complete_kind)common_below(common, COMPLETES),
                         .shift = common_below(common, pes),
                         .told = common_below(common, pes),
                         .team = common_below(common, 4)};
    plan->by_context = plan->complete == COMPLETE_CONTEXT_QUIET || plan->complete == COMPLETE_CONTEXT_DESTROY;
    const int has_words = plan->write == WRITE_HALVES || plan->write == WRITE_WORDS || plan->write >= WRITE_SET;
    plan->first = has_words ? 8 * (size_t)common_below(common, 3) : (size_t)common_below(common, 16);
    plan->bytes = has_words                     ? 8 * (1 + (size_t)common_below(common, 3))
                  : plan->write == WRITE_BYTES  ? 1 + (size_t)common_below(common, 12)
                  : plan->write == WRITE_BLOCKS ? 4 * (1 + (size_t)common_below(common, 40))
                                                : 1 + (size_t)common_below(common, 160);
}

/* In pairs: each writes, completes, and reads what the other has written. */
static void cross(order_run *o, const round_plan *plan, uint64_t *common)
{
    enum { FOUND = 1, MISSED };
    const int pes = o->run->pes;
    const int turn = common_below(common, pes);
    const int place = (o->pe + turn) % pes;
    const int other = (place ^ 1) < pes ? ((place ^ 1) + pes - turn) % pes : o->pe;
    uint64_t *ends = &o->run->board[64 * plan->number];
    write_all(o, plan, (o->pe + plan->shift) % pes);
    complete(o, plan);
    const int has_all = reads_all(o, plan, other, (other + plan->shift) % pes);
    ends[o->pe] = has_all ? FOUND : MISSED;
    if (!has_all && (other == o->pe || ends[other] == MISSED)) {
        weft_sim_fail("round %d: PEs %d and %d have written %zu bytes in way %d, completed them in way %d, and both "
                      "miss what the other wrote",
                      plan->number, o->pe, other, plan->bytes, (int)plan->write, (int)plan->complete);
    }
}

static void tell(const order_run *o, const round_plan *plan, int to)
{
    uint64_t *flag = &o->flags[plan->number * o->run->pes + o->pe];
    switch (weft_sim_random(3)) {
    case 0:
        BY(o, plan, uint64_p, flag, 1);
        break;
    case 1:
        BY(o, plan, uint64_atomic_inc, flag);
        break;
    default:
        BY(o, plan, putmem_signal, NULL, NULL, 0, flag, 1, WEFT_SIGNAL_SET);
    }
}

/* Who is told finds at PE `home` what PE `from` has written. */
static void expect_told(const order_run *o, const round_plan *plan, int from, int home, const char *behind)
{
    MUST(weft_uint64_wait_until(o->world, &o->flags[plan->number * o->run->pes + from], WEFT_CMP_EQ, 1));
    if (!reads_all(o, plan, from, home)) {
        weft_sim_fail("round %d: PE %d has written %zu bytes to PE %d in way %d, and told PE %d behind %s %d, which "
                      "does not find them",
                      plan->number, from, plan->bytes, home, (int)plan->write, o->pe, behind, (int)plan->complete);
    }
}

static void tell_behind_completion(order_run *o, const round_plan *plan)
{
    const int pes = o->run->pes;
    const int from = (o->pe + pes - plan->told) % pes;
    write_all(o, plan, (o->pe + plan->shift) % pes);
    complete(o, plan);
    tell(o, plan, (o->pe + plan->told) % pes);
    expect_told(o, plan, from, (from + plan->shift) % pes, "completion");
}

static void tell_behind_fence(order_run *o, const round_plan *plan)
{
    const int pes = o->run->pes;
    const int from = (o->pe + pes - plan->shift) % pes;
    const int to = (o->pe + plan->shift) % pes;
    write_all(o, plan, to);
    MUST(plan->by_context ? weft_ctx_fence(o->ctx) : weft_fence(o->world));
    tell(o, plan, to);
    expect_told(o, plan, from, o->pe, "a fence");
}

static void make_halves(order_run *o)
{
    for (int first = 0; first < 2; first++) {
        weft_team *team;
        MUST(weft_team_split_strided(world_team(o), first, 2, (o->run->pes + 1 - first) / 2, &team));
        o->half = o->pe % 2 == first ? team : o->half;
    }
}

void case_orders(void *argument)
{
    order_run o = {.run = argument, .pe = weft_sim_pe()};
    uint64_t common = o.run->seed;
    const int pes = o.run->pes;
    o.world = case_world("orders");
    o.all = turned_team(o.run, o.world);
    make_halves(&o);
    MUST(weft_ctx_create(o.all, 0, &o.ctx));
    MUST(weft_calloc(o.world, ROUNDS * (size_t)pes, SLOT, (void **)&o.slots));
    MUST(weft_calloc(o.world, ROUNDS * (size_t)pes, sizeof *o.flags, (void **)&o.flags));
    MUST(weft_calloc(o.world, (size_t)pes, sizeof *o.locks, (void **)&o.locks));
    MUST(weft_set_lock(o.world, &o.locks[o.pe]));
    for (int number = 0; number < ROUNDS; number++) {
        round_plan plan;
        draw_plan(&plan, number, pes, &common);
        const int promise = common_below(&common, 4);
        meet(&o, ROUNDS + number);
        if (promise < 2) {
            cross(&o, &plan, &common);
        } else if (promise == 2) {
            tell_behind_completion(&o, &plan);
        } else {
            tell_behind_fence(&o, &plan);
        }
    }
    MUST(weft_ctx_quiet(o.ctx));
    MUST(weft_clear_lock(o.world, &o.locks[o.pe]));
    MUST(weft_ctx_destroy(o.ctx));
    MUST(weft_barrier(o.world));
    MUST(weft_world_destroy(o.world));
}
