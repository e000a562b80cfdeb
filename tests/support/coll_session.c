/* support/coll_session.c: random sequences of collectives beside a serial reference.
 *
 * All members draw the calls from one sequence of random numbers and their delays from one of their own. Elements are
 * functions of (member, index, call), so that each member computes by itself what it must get; sums and products stay
 * exact in every type, so that the order of combination does not show. Bytes before and after the destination are
 * watched. */
#include "support/coll_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

#define SIZES_STEP (WEFTI_TSAN ? 2 : 1)
#define GUARD_BYTES 64
#define TEAMS 6
#define SHIFT_BYTES_MAX ((size_t)192)

/* ---- the calls, by type ---- */

typedef enum reduce_call { CALL_REDUCE, CALL_REDUCE_SCATTER, CALL_INSCAN, CALL_EXSCAN, REDUCE_CALLS } reduce_call;
static const char *const reduce_call_names[] = {"reduce", "reduce_scatter", "inscan", "exscan"};

typedef struct reduce_case {
    const char *name;
    size_t element;
    weft_status (*call)(weft_team *team, reduce_call which, void *dest, const void *source, size_t count);
    void (*fill)(void *element, uint64_t bits);
    void (*combine)(void *sum, const void *element);
} reduce_case;

typedef enum move_call {
    CALL_BROADCAST,
    CALL_FCOLLECT,
    CALL_COLLECT,
    CALL_ALLTOALL,
    CALL_ALLTOALL_READY,
    CALL_ALLTOALLS,
    MOVE_CALLS
} move_call;
static const char *const move_call_names[] = {"broadcast", "fcollect",       "collect",
                                              "alltoall",  "alltoall_ready", "alltoalls"};

typedef struct move_arguments {
    int root;
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    size_t count;
} move_arguments;

typedef struct move_case {
    const char *name;
    size_t element;
    weft_status (*call)(weft_team *team, move_call which, void *dest, const void *source, const move_arguments *a);
} move_case;

/* -2 .. 2: products of few stay exact in every type; wrap-around in the narrow ones is the same everywhere. */
#define SMALL(bits) ((int)((bits) >> 20 & 0xffff) % 5 - 2)

#define DEFINE_FILL(NAME, TYPE)                                                                                        \
    static void fill_##NAME(void *element, uint64_t bits)                                                              \
    {                                                                                                                  \
        TYPE value = (TYPE)SMALL(bits);                                                                                \
        memcpy(element, &value, sizeof value);                                                                         \
    }
WEFT_REDUCE_INTEGER_TYPES(DEFINE_FILL)
WEFT_REDUCE_REAL_TYPES(DEFINE_FILL)

#define DEFINE_COMPLEX_FILL(NAME, TYPE)                                                                                \
    static void fill_##NAME(void *element, uint64_t bits)                                                              \
    {                                                                                                                  \
        TYPE value = (TYPE)((int)(bits >> 20 & 0xffff) % 3 - 1) +                                                      \
                     (TYPE)((int)(bits >> 40 & 0xffff) % 3 - 1) * (TYPE) __extension__ 1.0iF;                          \
        memcpy(element, &value, sizeof value);                                                                         \
    }
WEFT_REDUCE_COMPLEX_TYPES(DEFINE_COMPLEX_FILL)

#define DEFINE_REDUCE(NAME, TYPE, OP, EXPRESSION)                                                                      \
    static weft_status call_##NAME##_##OP(weft_team *team, reduce_call which, void *dest, const void *source,          \
                                          size_t count)                                                                \
    {                                                                                                                  \
        switch (which) {                                                                                               \
        case CALL_REDUCE:                                                                                              \
            return weft_##NAME##_##OP##_reduce(team, dest, source, count);                                             \
        case CALL_REDUCE_SCATTER:                                                                                      \
            return weft_##NAME##_##OP##_reduce_scatter(team, dest, source, count);                                     \
        case CALL_INSCAN:                                                                                              \
            return weft_##NAME##_##OP##_inscan(team, dest, source, count);                                             \
        default:                                                                                                       \
            return weft_##NAME##_##OP##_exscan(team, dest, source, count);                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void combine_##NAME##_##OP(void *sum, const void *element)                                                  \
    {                                                                                                                  \
        TYPE a;                                                                                                        \
        TYPE b;                                                                                                        \
        memset(&a, 0, sizeof a);                                                                                       \
        memcpy(&a, sum, sizeof a);                                                                                     \
        memcpy(&b, element, sizeof b);                                                                                 \
        a = (TYPE)(EXPRESSION);                                                                                        \
        memcpy(sum, &a, sizeof a);                                                                                     \
    }
/* Unsigned arithmetic of integers, so that it may wrap around. */
#define DEFINE_INTEGER(NAME, TYPE)                                                                                     \
    DEFINE_REDUCE(NAME, TYPE, and, a &b)                                                                               \
    DEFINE_REDUCE(NAME, TYPE, or, a | b)                                                                               \
    DEFINE_REDUCE(NAME, TYPE, xor, a ^ b)                                                                              \
    DEFINE_REDUCE(NAME, TYPE, min, a < b ? a : b)                                                                      \
    DEFINE_REDUCE(NAME, TYPE, max, a > b ? a : b)                                                                      \
    DEFINE_REDUCE(NAME, TYPE, sum, (unsigned long long)a + (unsigned long long)b)                                      \
    DEFINE_REDUCE(NAME, TYPE, prod, (unsigned long long)a *(unsigned long long)b)
#define DEFINE_REAL(NAME, TYPE)                                                                                        \
    DEFINE_REDUCE(NAME, TYPE, min, a < b ? a : b)                                                                      \
    DEFINE_REDUCE(NAME, TYPE, max, a > b ? a : b)                                                                      \
    DEFINE_COMPLEX(NAME, TYPE)
#define DEFINE_COMPLEX(NAME, TYPE)                                                                                     \
    DEFINE_REDUCE(NAME, TYPE, sum, a + b)                                                                              \
    DEFINE_REDUCE(NAME, TYPE, prod, a *b)
WEFT_REDUCE_INTEGER_TYPES(DEFINE_INTEGER)
WEFT_REDUCE_REAL_TYPES(DEFINE_REAL)
WEFT_REDUCE_COMPLEX_TYPES(DEFINE_COMPLEX)

#define ROW(NAME, TYPE, OP) {#NAME " " #OP, sizeof(TYPE), call_##NAME##_##OP, fill_##NAME, combine_##NAME##_##OP},
#define INTEGER_ROWS(NAME, TYPE) ROW(NAME, TYPE, and) ROW(NAME, TYPE, or) ROW(NAME, TYPE, xor) REAL_ROWS(NAME, TYPE)
#define REAL_ROWS(NAME, TYPE) ROW(NAME, TYPE, min) ROW(NAME, TYPE, max) COMPLEX_ROWS(NAME, TYPE)
#define COMPLEX_ROWS(NAME, TYPE) ROW(NAME, TYPE, sum) ROW(NAME, TYPE, prod)
static const reduce_case reduce_cases[] = {WEFT_REDUCE_INTEGER_TYPES(INTEGER_ROWS) WEFT_REDUCE_REAL_TYPES(REAL_ROWS)
                                               WEFT_REDUCE_COMPLEX_TYPES(COMPLEX_ROWS)};
#define REDUCE_CASES ((unsigned)(sizeof reduce_cases / sizeof reduce_cases[0]))

/* All are there with what they want to be written into. */
static weft_status alltoall_ready(weft_team *team, void *dest, const void *source, size_t bytes)
{
    weft_status status = weft_team_sync(team);
    return status == WEFT_OK ? weft_alltoallmem_ready(team, dest, source, bytes) : status;
}

#define DEFINE_MOVE(NAME, TYPE)                                                                                        \
    static weft_status move_##NAME(weft_team *team, move_call which, void *dest, const void *source,                   \
                                   const move_arguments *a)                                                            \
    {                                                                                                                  \
        switch (which) {                                                                                               \
        case CALL_BROADCAST:                                                                                           \
            return weft_##NAME##_broadcast(team, dest, source, a->count, a->root);                                     \
        case CALL_FCOLLECT:                                                                                            \
            return weft_##NAME##_fcollect(team, dest, source, a->count);                                               \
        case CALL_COLLECT:                                                                                             \
            return weft_##NAME##_collect(team, dest, source, a->count);                                                \
        case CALL_ALLTOALL:                                                                                            \
            return weft_##NAME##_alltoall(team, dest, source, a->count);                                               \
        case CALL_ALLTOALL_READY:                                                                                      \
            return alltoall_ready(team, dest, source, a->count * sizeof(TYPE));                                        \
        default:                                                                                                       \
            return weft_##NAME##_alltoalls(team, dest, source, a->dest_stride, a->source_stride, a->count);            \
        }                                                                                                              \
    }
WEFT_RMA_TYPES(DEFINE_MOVE)
#define MOVE_ROW(NAME, TYPE) {#NAME, sizeof(TYPE), move_##NAME},
static const move_case move_cases[] = {WEFT_RMA_TYPES(MOVE_ROW)};
#define MOVE_CASES ((unsigned)(sizeof move_cases / sizeof move_cases[0]))

/* ---- a session ---- */

typedef struct session {
    weft_world *world;
    const coll_session_plan *plan;
    uint64_t common; /* random numbers, equal on all PEs */
    uint64_t own; /* this PE's */
    weft_team *teams[TEAMS]; /* NULL: this PE is no member */
    unsigned char *source; /* symmetric, bytes_max each and guards, and SHIFT_BYTES_MAX */
    unsigned char *dest;
    unsigned char *rooms[2]; /* in which these lie, each call elsewhere */
    unsigned char *expected; /* private */
    uint64_t step;
} session;

static uint64_t bits_of(const session *s, int member, size_t index)
{
    uint64_t state = s->step * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)member << 48 ^ index;
    return random_next(&state);
}

static void fill_bytes(const session *s, unsigned char *to, int member, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)((size_t)member * 37 + i * 7 + s->step + (i >> 8));
    }
}

/* The sizes at which something changes, and any. */
static size_t random_bytes(uint64_t *state, size_t most)
{
    static const size_t edges[] = {0,    1,    8,    24,   48,   49,   64,    1000,  1024,   2048,           2049,
                                   2096, 2097, 2112, 4096, 8192, 8193, 65536, 65544, 262144, (size_t)1 << 20};
    unsigned pick = random_below(state, sizeof edges / sizeof edges[0] + 4);
    size_t bytes = pick < sizeof edges / sizeof edges[0] ? edges[pick] : random_below(state, 3000);
    return bytes < most ? bytes : most;
}

static void guard(unsigned char *dest, size_t bytes)
{
    memset(dest - GUARD_BYTES, 0xa5, GUARD_BYTES);
    memset(dest + bytes, 0xa5, GUARD_BYTES);
}

static int guarded(const unsigned char *dest, size_t bytes)
{
    for (int i = 0; i < GUARD_BYTES; i++) {
        if (dest[-1 - i] != 0xa5 || dest[bytes + (size_t)i] != 0xa5) {
            return 0;
        }
    }
    return 1;
}

static void delay(session *s)
{
    if (s->plan->slow_us > 0 && random_below(&s->own, 8) == 0) {
        (void)usleep(random_below(&s->own, s->plan->slow_us));
    }
}

static void compare(const session *s, const char *what, const char *type, const unsigned char *dest,
                    const unsigned char *expected, size_t bytes)
{
    if (!CHECK_SAY(bytes == 0 || memcmp(dest, expected, bytes) == 0, "%s %s of %zu bytes in call %llu is wrong", what,
                   type, bytes, (unsigned long long)s->step)) {
        for (size_t i = 0; i < bytes; i++) {
            if (dest[i] != expected[i]) {
                fprintf(stderr, "  byte %zu is %02x, not %02x\n", i, dest[i], expected[i]);
                break;
            }
        }
    }
    CHECK_SAY(guarded(dest, bytes), "%s %s of %zu bytes in call %llu writes beside its destination", what, type, bytes,
              (unsigned long long)s->step);
}

/* ---- reductions ---- */

/* Members first .. last of source elements index .. index + count, combined, to `to`. */
static void reference(const session *s, const reduce_case *c, int last, size_t index, size_t count, unsigned char *to)
{
    unsigned char element[sizeof(long double)] = {0};
    for (size_t k = 0; k < count; k++) {
        c->fill(to + k * c->element, bits_of(s, 0, index + k));
        for (int m = 1; m <= last; m++) {
            c->fill(element, bits_of(s, m, index + k));
            c->combine(to + k * c->element, element);
        }
    }
}

/* -0 becomes 0: which of them a part of a complex product is depends on the order. */
#define DEFINE_UNSIGN(NAME, TYPE)                                                                                      \
    static void unsign_##NAME(unsigned char *parts, size_t count)                                                      \
    {                                                                                                                  \
        for (size_t k = 0; k < count; k++) {                                                                           \
            TYPE part;                                                                                                 \
            memcpy(&part, parts + k * sizeof part, sizeof part);                                                       \
            part += 0;                                                                                                 \
            memcpy(parts + k * sizeof part, &part, sizeof part);                                                       \
        }                                                                                                              \
    }
WEFT_FLOAT_TYPES(DEFINE_UNSIGN)

/* Bytes that do not count: those of long double beyond its value, signs of zero. */
static void clear_padding(const reduce_case *c, unsigned char *elements, size_t count)
{
    if (strncmp(c->name, "complexf", 8) == 0) {
        unsign_float(elements, 2 * count);
    } else if (strncmp(c->name, "complexd", 8) == 0) {
        unsign_double(elements, 2 * count);
    }
    for (size_t k = 0; k < count && strncmp(c->name, "longdouble", 10) == 0; k++) {
        memset(elements + k * c->element + 10, 0, c->element - 10);
    }
}

/* The neutral element changes nothing. */
static void check_neutral(const session *s, const reduce_case *c, const unsigned char *dest, size_t count)
{
    unsigned char element[sizeof(long double)];
    unsigned char sum[sizeof(long double)];
    for (size_t k = 0; k < count; k++) {
        memset(element, 0, sizeof element);
        memset(sum, 0, sizeof sum);
        c->fill(element, bits_of(s, 1, k));
        memcpy(sum, dest + k * c->element, c->element);
        c->combine(sum, element);
        clear_padding(c, sum, 1);
        clear_padding(c, element, 1);
        if (!CHECK_SAY(memcmp(sum, element, c->element) == 0, "exscan %s: element %zu of member 0 is not neutral",
                       c->name, k)) {
            return;
        }
    }
}

static void run_reduce(session *s, weft_team *team, const reduce_case *c, reduce_call which, size_t bytes, int in_place)
{
    int pes = weft_team_pes(team);
    int me = weft_team_pe(team);
    size_t blocks = which == CALL_REDUCE_SCATTER ? (size_t)pes : 1;
    size_t count = bytes / c->element / blocks;
    unsigned char *dest = s->dest + GUARD_BYTES;
    unsigned char *source = in_place ? dest : s->source;
    if (which == CALL_REDUCE_SCATTER) {
        source = s->source;
        dest = in_place ? s->source + (size_t)me * count * c->element : dest;
    }
    for (size_t k = 0; k < count * blocks; k++) {
        c->fill(source + k * c->element, bits_of(s, me, k));
    }
    if (!(in_place && which == CALL_REDUCE_SCATTER)) {
        guard(dest, count * c->element);
    }
    delay(s);
    if (!CHECK_OK(c->call(team, which, dest, source, count))) {
        return;
    }
    if (which == CALL_EXSCAN && me == 0) {
        check_neutral(s, c, dest, count);
        return;
    }
    int last = which == CALL_INSCAN ? me : which == CALL_EXSCAN ? me - 1 : pes - 1;
    reference(s, c, last, which == CALL_REDUCE_SCATTER ? (size_t)me * count : 0, count, s->expected);
    clear_padding(c, s->expected, count);
    clear_padding(c, dest, count);
    if (in_place && which == CALL_REDUCE_SCATTER) {
        CHECK_SAY(count == 0 || memcmp(dest, s->expected, count * c->element) == 0,
                  "%s %s of %zu elements in place in call %llu is wrong", reduce_call_names[which], c->name, count,
                  (unsigned long long)s->step);
        return;
    }
    compare(s, reduce_call_names[which], c->name, dest, s->expected, count * c->element);
}

/* ---- moving data ---- */

static void expect_strided(const session *s, const move_case *c, const move_arguments *a, int pes, int me)
{
    size_t e = c->element;
    unsigned char *theirs = malloc(s->plan->bytes_max + 1);
    for (int from = 0; from < pes; from++) {
        fill_bytes(s, theirs, from, s->plan->bytes_max);
        for (size_t k = 0; k < a->count; k++) {
            memcpy(s->expected + ((size_t)from * a->count + k) * (size_t)a->dest_stride * e,
                   theirs + ((size_t)me * a->count + k) * (size_t)a->source_stride * e, e);
        }
    }
    free(theirs);
}

static void expect_alltoall(const session *s, size_t bytes, int pes, int me)
{
    unsigned char *theirs = malloc(bytes * (size_t)pes + 1);
    for (int from = 0; from < pes; from++) {
        fill_bytes(s, theirs, from, bytes * (size_t)pes);
        memcpy(s->expected + (size_t)from * bytes, theirs + (size_t)me * bytes, bytes);
    }
    free(theirs);
}

/* Member m of a collect of at most `total` elements gives so many: any number of them; or one gives what a slot of few
 * members holds, or what it likes, which leaves less to the others. */
static size_t uneven(const session *s, size_t total, size_t element, int pes, int member)
{
    const uint64_t bits = bits_of(s, member, 99);
    const uint64_t of_all = bits_of(s, pes, 98);
    const size_t slot = of_all >> 61 & 1 ? 2096 / element : (size_t)(of_all >> 20) % (total + 1);
    if (of_all >> 62 != 0 || slot > total) {
        return (size_t)(bits % (total / (size_t)pes + 1));
    }
    return member == (int)(of_all % (uint64_t)pes) ? slot : (size_t)(bits % ((total - slot) / (size_t)pes + 1));
}

/* What member `of` got, read by the library, which the simulator gives old values where they may be. */
static void compare_read(session *s, weft_team *team, move_call which, const char *type, const unsigned char *dest,
                         size_t bytes, int of)
{
    unsigned char *got = malloc(bytes + 2 * GUARD_BYTES);
    guard(got + GUARD_BYTES, bytes);
    if (CHECK_OK(weft_getmem(s->world, got + GUARD_BYTES, dest, bytes,
                             weft_team_translate(team, of, weft_team_world(s->world))))) {
        compare(s, move_call_names[which], type, got + GUARD_BYTES, s->expected, bytes);
    }
    free(got);
}

/* The same of this member and, once all have returned, of the next. */
static void compare_reads(session *s, weft_team *team, move_call which, const move_case *c, const move_arguments *a,
                          size_t bytes)
{
    int pes = weft_team_pes(team);
    int next = (weft_team_pe(team) + 1) % pes;
    compare_read(s, team, which, c->name, s->dest + GUARD_BYTES, bytes, weft_team_pe(team));
    CHECK_OK(weft_team_sync(team));
    if (which == CALL_ALLTOALL || which == CALL_ALLTOALL_READY) {
        expect_alltoall(s, a->count * c->element, pes, next);
    }
    compare_read(s, team, which, c->name, s->dest + GUARD_BYTES, bytes, next);
    CHECK_OK(weft_team_sync(team));
}

static void run_move(session *s, weft_team *team, const move_case *c, move_call which, size_t bytes, int in_place)
{
    int pes = weft_team_pes(team);
    int me = weft_team_pe(team);
    size_t e = c->element;
    move_arguments a = {.root = (int)random_below(&s->common, (unsigned)pes),
                        .dest_stride = 1 + (ptrdiff_t)random_below(&s->common, 3),
                        .source_stride = 1 + (ptrdiff_t)random_below(&s->common, 3)};
    unsigned char *dest = s->dest + GUARD_BYTES;
    unsigned char *source = s->source;
    size_t dest_bytes = 0;
    size_t source_bytes = 0;
    switch (which) {
    case CALL_BROADCAST:
        a.count = bytes / e;
        dest_bytes = source_bytes = a.count * e;
        source = in_place ? dest : source;
        fill_bytes(s, s->expected, a.root, dest_bytes);
        break;
    case CALL_FCOLLECT:
        a.count = bytes / e / (size_t)pes;
        source_bytes = a.count * e;
        dest_bytes = source_bytes * (size_t)pes;
        source = in_place ? dest + (size_t)me * source_bytes : source;
        for (int m = 0; m < pes; m++) {
            fill_bytes(s, s->expected + (size_t)m * source_bytes, m, source_bytes);
        }
        break;
    case CALL_COLLECT:
        for (int m = 0; m < pes; m++) {
            size_t count = uneven(s, bytes / e, e, pes, m);
            fill_bytes(s, s->expected + dest_bytes, m, count * e);
            dest_bytes += count * e;
            a.count = m == me ? count : a.count;
        }
        source_bytes = a.count * e;
        break;
    case CALL_ALLTOALL:
    case CALL_ALLTOALL_READY:
        a.count = bytes / e / (size_t)pes;
        dest_bytes = source_bytes = a.count * e * (size_t)pes;
        expect_alltoall(s, a.count * e, pes, me);
        break;
    default:
        a.count = bytes / e / (size_t)pes / 3;
        dest_bytes = source_bytes = a.count * 3 * e * (size_t)pes;
        memset(s->expected, 0xee, dest_bytes);
        expect_strided(s, c, &a, pes, me);
        break;
    }
    guard(dest, dest_bytes);
    if (which == CALL_ALLTOALLS) {
        memset(dest, 0xee, dest_bytes);
        source_bytes = s->plan->bytes_max;
    }
    if (which != CALL_BROADCAST || me == a.root) {
        fill_bytes(s, source, me, source_bytes);
    } else if (!in_place) {
        memset(source, 0x11, source_bytes);
    }
    delay(s);
    if (CHECK_OK(c->call(team, which, dest, source, &a))) {
        compare(s, move_call_names[which], c->name, dest, s->expected, dest_bytes);
        if (!in_place && me != a.root && which == CALL_BROADCAST) {
            CHECK(source_bytes == 0 || source[source_bytes - 1] == 0x11);
        }
        if ((which == CALL_FCOLLECT || which == CALL_ALLTOALL || which == CALL_ALLTOALL_READY) &&
            bits_of(s, 0, 98) % 4 == 0) {
            compare_reads(s, team, which, c, &a, dest_bytes);
        }
    }
    memset(source, 0x77, source_bytes < 64 ? source_bytes : 64); /* free to be used at once */
}

/* ---- teams ---- */

static void make_teams(session *s)
{
    weft_team *all = weft_team_world(s->world);
    int pes = weft_team_pes(all);
    int me = weft_team_pe(all);
    int order[64];
    s->teams[0] = all;
    s->teams[1] = weft_team_node(s->world);
    CHECK_OK(weft_team_split_strided(all, 0, 2, (pes + 1) / 2, &s->teams[2]));
    CHECK_OK(weft_team_split_strided(all, pes - 1, -1, pes, &s->teams[3]));
    random_order(&s->common, order, pes);
    CHECK_OK(weft_team_create(all, order, pes, &s->teams[4]));
    CHECK_OK(weft_team_create(all, &me, 1, &s->teams[5]));
}

static void end_teams(session *s)
{
    for (int i = 2; i < TEAMS; i++) {
        CHECK_OK(weft_team_destroy(s->teams[i]));
    }
}

static void open_session(session *s, weft_world *world, uint64_t seed, const coll_session_plan *plan)
{
    void *block;
    memset(s, 0, sizeof *s);
    s->world = world;
    s->plan = plan;
    s->common = seed;
    s->step = plan->first_step;
    s->own = seed ^ (uint64_t)(weft_world_pe(world) + 1) << 32;
    size_t room = (plan->bytes_max + 63) / 64 * 64 + 2 * GUARD_BYTES + SHIFT_BYTES_MAX;
    if (!CHECK_OK(weft_malloc(world, 2 * room, &block))) {
        abort(); /* nothing can go on */
    }
    s->rooms[0] = block;
    s->rooms[1] = s->rooms[0] + room;
    s->source = s->rooms[0];
    s->dest = s->rooms[1];
    s->expected = calloc(1, plan->bytes_max + 64);
    make_teams(s);
}

static void close_session(session *s)
{
    end_teams(s);
    CHECK_OK(weft_free(s->world, s->rooms[0]));
    free(s->expected);
}

void coll_session_run(weft_world *world, uint64_t seed, const coll_session_plan *plan)
{
    session s;
    open_session(&s, world, seed, plan);
    for (int i = 0; i < plan->calls && check_failures() == 0; i++) {
        s.step++;
        weft_team *team = s.teams[random_below(&s.common, TEAMS)];
        size_t bytes = random_bytes(&s.common, plan->bytes_max);
        int in_place = random_below(&s.common, 2) == 0;
        uint64_t choice = random_next(&s.common);
        s.source = s.rooms[0] + 64 * random_below(&s.common, SHIFT_BYTES_MAX / 64 + 1);
        s.dest = s.rooms[1] + 64 * random_below(&s.common, SHIFT_BYTES_MAX / 64 + 1);
        uint64_t common = s.common;
        if (team != NULL && choice % 2 == 0) {
            run_reduce(&s, team, &reduce_cases[choice / 16 % REDUCE_CASES], (reduce_call)(choice / 2 % REDUCE_CALLS),
                       bytes, in_place);
        } else if (team != NULL) {
            run_move(&s, team, &move_cases[choice / 16 % MOVE_CASES], (move_call)(choice / 2 % 8 % MOVE_CALLS), bytes,
                     in_place);
        }
        s.common = common; /* also on those that are no members */
    }
    close_session(&s);
}

void coll_session_all_types(weft_world *world, uint64_t seed)
{
    static const size_t sizes[] = {16, 560, 20000};
    static const coll_session_plan plan = {.bytes_max = 65536};
    session s;
    open_session(&s, world, seed, &plan);
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size += SIZES_STEP) {
        for (int in_place = 0; in_place < 2; in_place++) {
            for (unsigned c = 0; c < REDUCE_CASES * REDUCE_CALLS; c++) {
                s.step++;
                run_reduce(&s, s.teams[0], &reduce_cases[c / REDUCE_CALLS], (reduce_call)(c % REDUCE_CALLS),
                           sizes[size], in_place);
            }
            for (unsigned c = 0; c < MOVE_CASES * MOVE_CALLS; c++) {
                s.step++;
                run_move(&s, s.teams[0], &move_cases[c / MOVE_CALLS], (move_call)(c % MOVE_CALLS), sizes[size],
                         in_place);
            }
        }
    }
    close_session(&s);
}
