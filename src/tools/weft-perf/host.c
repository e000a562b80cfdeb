/* weft-perf/host.c: calls of the host, back to back, by the monotonic clock. */
#include "tools/lib/clock.h"
#include "tools/lib/pes.h"
#include "tools/weft-perf/pe.h"
#include "tools/weft-perf/words.h"
#include "weft/coll.h"
#include "weft/device.h"

/* One call after another; the compiler neither joins nor moves them. `i` counts from 1. */
#define LOOP(call)                                                                                                     \
    for (uint64_t i = 1; i <= (uint64_t)calls && status == WEFT_OK; i++) {                                             \
        status = (call);                                                                                               \
        __asm__ __volatile__("" ::: "memory");                                                                         \
    }

/* ---- one word ---- */

#define WORD(OP, call)                                                                                                 \
    case PERF_##OP:                                                                                                    \
        LOOP(call)                                                                                                     \
        break;
#define EXTENDED_WORDS(NAME)                                                                                           \
    WORD(P, weft_##NAME##_p(world, at, 1, pe))                                                                         \
    WORD(G, weft_##NAME##_g(world, at, pe, &value))                                                                    \
    WORD(FETCH, weft_##NAME##_atomic_fetch(world, at, pe, &value))                                                     \
    WORD(SET, weft_##NAME##_atomic_set(world, at, 1, pe))                                                              \
    WORD(SWAP, weft_##NAME##_atomic_swap(world, at, 1, pe, &value))
#define INTEGER_WORDS(NAME)                                                                                            \
    EXTENDED_WORDS(NAME)                                                                                               \
    WORD(COMPARE_SWAP, weft_##NAME##_atomic_compare_swap(world, at, value, value + 1, pe, &value))                     \
    WORD(ADD, weft_##NAME##_atomic_add(world, at, 1, pe))                                                              \
    WORD(FETCH_ADD, weft_##NAME##_atomic_fetch_add(world, at, 1, pe, &value))                                          \
    WORD(INC, weft_##NAME##_atomic_inc(world, at, pe))                                                                 \
    WORD(FETCH_INC, weft_##NAME##_atomic_fetch_inc(world, at, pe, &value))                                             \
    WORD(AND, weft_##NAME##_atomic_and(world, at, (__typeof__(value))-1, pe))                                          \
    WORD(FETCH_AND, weft_##NAME##_atomic_fetch_and(world, at, value | 1, pe, &value))                                  \
    WORD(OR, weft_##NAME##_atomic_or(world, at, 1, pe))                                                                \
    WORD(FETCH_OR, weft_##NAME##_atomic_fetch_or(world, at, value & 1, pe, &value))                                    \
    WORD(XOR, weft_##NAME##_atomic_xor(world, at, 1, pe))                                                              \
    WORD(FETCH_XOR, weft_##NAME##_atomic_fetch_xor(world, at, value & 1, pe, &value))
#define DEFINE_WORDS(NAME, TYPE, WORDS)                                                                                \
    static weft_status words_##NAME(perf_pe *p, const perf_case *c, int calls)                                         \
    {                                                                                                                  \
        weft_world *world = p->world;                                                                                  \
        TYPE *at = (TYPE *)(void *)p->dest;                                                                            \
        const int pe = perf_peer(p);                                                                                   \
        TYPE value = 0;                                                                                                \
        weft_status status = WEFT_OK;                                                                                  \
        switch (c->op) {                                                                                               \
            WORDS(NAME)                                                                                                \
        default:                                                                                                       \
            return WEFT_ERR_UNSUPPORTED;                                                                               \
        }                                                                                                              \
        return status;                                                                                                 \
    }
PERF_WORDS_OF_TYPES(DEFINE_WORDS, INTEGER_WORDS, EXTENDED_WORDS)

/* ---- reductions ---- */

typedef weft_status (*reduction)(weft_team *team, void *dest, const void *source, size_t count);

#define DEFINE_REDUCTION(NAME, TYPE, OP, WHAT)                                                                         \
    static weft_status NAME##_##OP##_##WHAT(weft_team *team, void *dest, const void *source, size_t count)             \
    {                                                                                                                  \
        return weft_##NAME##_##OP##_##WHAT(team, (TYPE *)dest, (const TYPE *)source, count);                           \
    }
#define DEFINE_REDUCTIONS(NAME, TYPE, OP)                                                                              \
    DEFINE_REDUCTION(NAME, TYPE, OP, reduce)                                                                           \
    DEFINE_REDUCTION(NAME, TYPE, OP, reduce_scatter)                                                                   \
    DEFINE_REDUCTION(NAME, TYPE, OP, inscan)                                                                           \
    DEFINE_REDUCTION(NAME, TYPE, OP, exscan)
#define DEFINE_REAL(NAME, TYPE)                                                                                        \
    DEFINE_REDUCTIONS(NAME, TYPE, min)                                                                                 \
    DEFINE_REDUCTIONS(NAME, TYPE, max)                                                                                 \
    DEFINE_REDUCTIONS(NAME, TYPE, sum)                                                                                 \
    DEFINE_REDUCTIONS(NAME, TYPE, prod)
#define DEFINE_INTEGER(NAME, TYPE)                                                                                     \
    DEFINE_REDUCTIONS(NAME, TYPE, and)                                                                                 \
    DEFINE_REDUCTIONS(NAME, TYPE, or)                                                                                  \
    DEFINE_REDUCTIONS(NAME, TYPE, xor)                                                                                 \
    DEFINE_REAL(NAME, TYPE)
DEFINE_INTEGER(int8, int8_t)
DEFINE_INTEGER(uint8, uint8_t)
DEFINE_INTEGER(int16, int16_t)
DEFINE_INTEGER(uint16, uint16_t)
DEFINE_INTEGER(int32, int32_t)
DEFINE_INTEGER(uint32, uint32_t)
DEFINE_INTEGER(int64, int64_t)
DEFINE_INTEGER(uint64, uint64_t)
DEFINE_REAL(float, float)
DEFINE_REAL(double, double)

enum { REDUCE, REDUCE_SCATTER, INSCAN, EXSCAN, REDUCTION_KINDS };
#define CELL(NAME, OP)                                                                                                 \
    {                                                                                                                  \
        NAME##_##OP##_reduce, NAME##_##OP##_reduce_scatter, NAME##_##OP##_inscan, NAME##_##OP##_exscan                 \
    }
#define REAL_CELLS(NAME)                                                                                               \
    [WEFT_OP_MIN] = CELL(NAME, min), [WEFT_OP_MAX] = CELL(NAME, max), [WEFT_OP_SUM] = CELL(NAME, sum),                 \
    [WEFT_OP_PROD] = CELL(NAME, prod)
#define INTEGER_CELLS(NAME)                                                                                            \
    [WEFT_OP_AND] = CELL(NAME, and), [WEFT_OP_OR] = CELL(NAME, or), [WEFT_OP_XOR] = CELL(NAME, xor), REAL_CELLS(NAME)
static const reduction reductions[PERF_DTYPE_COUNT][PERF_REDUCTIONS][REDUCTION_KINDS] = {
    [PERF_INT8_TYPE] = {INTEGER_CELLS(int8)},   [PERF_UINT8_TYPE] = {INTEGER_CELLS(uint8)},
    [PERF_INT16_TYPE] = {INTEGER_CELLS(int16)}, [PERF_UINT16_TYPE] = {INTEGER_CELLS(uint16)},
    [PERF_INT32_TYPE] = {INTEGER_CELLS(int32)}, [PERF_UINT32_TYPE] = {INTEGER_CELLS(uint32)},
    [PERF_INT64_TYPE] = {INTEGER_CELLS(int64)}, [PERF_UINT64_TYPE] = {INTEGER_CELLS(uint64)},
    [PERF_FLOAT_TYPE] = {REAL_CELLS(float)},    [PERF_DOUBLE_TYPE] = {REAL_CELLS(double)},
};

static weft_status reduce(perf_pe *p, const perf_case *c, int calls)
{
    const int kind = c->op == PERF_REDUCE           ? REDUCE
                     : c->op == PERF_REDUCE_SCATTER ? REDUCE_SCATTER
                     : c->op == PERF_INSCAN         ? INSCAN
                                                    : EXSCAN;
    const reduction call = reductions[c->dtype][c->reduction][kind];
    const size_t count = perf_block_bytes(c) / perf_dtype_bytes(c->dtype);
    weft_status status = WEFT_OK;
    if (call == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    LOOP(call(p->team, p->dest, p->source, count))
    return status;
}

/* ---- the rest ---- */

/* PE 0 sends, the other answers. */
static weft_status trips(perf_pe *p, const perf_case *c, int calls)
{
    weft_world *world = p->world;
    const int peer = perf_peer(p);
    weft_status status = WEFT_OK;
    for (uint64_t i = 1; i <= (uint64_t)calls && status == WEFT_OK; i++) {
        for (int side = 0; side < 2 && status == WEFT_OK; side++) {
            if (side != p->pe) {
                status = weft_signal_wait_until(world, p->flags, WEFT_CMP_GE, i, NULL);
            } else if (c->op == PERF_P_PINGPONG) {
                status = weft_uint64_p(world, p->flags, i, peer);
            } else {
                status = weft_putmem_signal(world, p->dest, p->source, c->op == PERF_SIGNAL ? 0 : c->bytes, p->flags, i,
                                            WEFT_SIGNAL_SET, peer);
            }
        }
    }
    return status;
}

/* Puts or gets in turn to or from the PEs that perf_chunk_pe names. */
static weft_status rate(perf_pe *p, const perf_case *c, int calls)
{
    const size_t bytes = perf_chunk_bytes(c);
    weft_status status = WEFT_OK;
    for (int i = 0; i < calls; i++) {
        for (size_t chunk = 0; chunk < perf_chunk_count(c) && status == WEFT_OK; chunk++) {
            void *dest = p->dest + chunk * bytes;
            const void *source = p->source + chunk * bytes;
            const int pe = perf_chunk_pe(p, c, p->pe, chunk);
            status = c->op == PERF_PUT_BW ? weft_putmem_nbi(p->world, dest, source, bytes, pe)
                                          : weft_getmem_nbi(p->world, dest, source, bytes, pe);
        }
    }
    return status != WEFT_OK ? status : weft_quiet(p->world);
}

static weft_status put_quiet(perf_pe *p, const perf_case *c)
{
    weft_status status = weft_putmem(p->world, p->dest, p->source, c->bytes, perf_peer(p));
    return status != WEFT_OK ? status : weft_quiet(p->world);
}

/* Allocations are timed, freeing them is not. */
static weft_status allocate(perf_pe *p, const perf_case *c, int calls, double *us)
{
    weft_status status = WEFT_OK;
    *us = 0;
    for (int i = 0; i < calls && status == WEFT_OK; i++) {
        void *block;
        double start = tool_now_us();
        status =
            p->gpu != NULL ? weft_device_malloc(p->world, c->bytes, &block) : weft_malloc(p->world, c->bytes, &block);
        *us += (tool_now_us() - start) / calls;
        if (status == WEFT_OK) {
            status = p->gpu != NULL ? weft_device_free(p->world, block) : weft_free(p->world, block);
        }
    }
    return status;
}

static weft_status collective(perf_pe *p, const perf_case *c, int calls)
{
    const size_t block = perf_block_bytes(c);
    weft_team *team = p->team;
    weft_status status = WEFT_OK;
    switch (c->op) {
    case PERF_BARRIER:
        LOOP(weft_team_barrier(team))
        break;
    case PERF_SYNC:
        LOOP(weft_team_sync(team))
        break;
    case PERF_BROADCAST:
        LOOP(weft_broadcastmem(team, p->dest, p->source, block, 0))
        break;
    case PERF_FCOLLECT:
        LOOP(weft_fcollectmem(team, p->dest, p->source, block))
        break;
    case PERF_COLLECT:
        LOOP(weft_collectmem(team, p->dest, p->source, block))
        break;
    case PERF_ALLTOALL:
        LOOP(weft_alltoallmem(team, p->dest, p->source, block))
        break;
    default:
        return WEFT_ERR_UNSUPPORTED;
    }
    return status;
}

/* `calls` calls of this PE. */
static weft_status run(perf_pe *p, const perf_case *c, int calls)
{
    weft_status status = WEFT_OK;
    switch (perf_kind_of(c->op)) {
    case PERF_WORD:
        return words(p, c, calls);
    case PERF_TRIPS:
        return trips(p, c, calls);
    case PERF_RATE:
        return rate(p, c, calls);
    case PERF_COMBINE:
        return reduce(p, c, calls);
    case PERF_MOVE:
        break;
    default:
        return collective(p, c, calls);
    }
    if (c->op == PERF_PUT) {
        LOOP(weft_putmem(p->world, p->dest, p->source, c->bytes, perf_peer(p)))
    } else if (c->op == PERF_PUT_QUIET) {
        LOOP(put_quiet(p, c))
    } else {
        LOOP(weft_getmem(p->world, p->dest, p->source, c->bytes, perf_peer(p)))
    }
    return status != WEFT_OK ? status : weft_quiet(p->world);
}

/* What the host has no call for, or not on data in device memory: known to all PEs alike. */
static int is_there(const perf_pe *p, const perf_case *c)
{
    perf_kind kind = perf_kind_of(c->op);
    int is_raw = c->op == PERF_RAW_PUT_SIGNAL || (kind == PERF_RATE && c->op != PERF_PUT_BW && c->op != PERF_GET_BW);
    perf_pe nobody = *p;
    nobody.team = NULL;
    return !is_raw && (kind != PERF_WORD || words(&nobody, c, 0) == WEFT_OK) &&
           (kind != PERF_COMBINE || (p->gpu == NULL && reduce(&nobody, c, 0) == WEFT_OK)) &&
           (kind != PERF_COLL || (p->gpu == NULL && collective(&nobody, c, 0) == WEFT_OK));
}

static weft_status time_round(perf_pe *p, const perf_case *c, int calls, double *us)
{
    if (perf_kind_of(c->op) == PERF_ALLOC) {
        return allocate(p, c, calls, us);
    }
    double start = tool_now_us();
    weft_status status = run(p, c, calls);
    *us = (tool_now_us() - start) / calls / (perf_kind_of(c->op) == PERF_TRIPS ? 2 : 1);
    return status;
}

weft_status perf_host_run(perf_pe *p, const perf_case *c, int calls, int rounds, double *us)
{
    if (!is_there(p, c)) {
        return WEFT_ERR_UNSUPPORTED;
    }
    for (int round = 0; round < rounds; round++) {
        weft_status status = perf_pe_fill(p, p->flags, 0, PERF_FLAG_BYTES);
        us[round] = 0;
        status = status != WEFT_OK ? status : weft_barrier(p->world);
        if (status == WEFT_OK && perf_participates(p, c)) {
            status = time_round(p, c, calls, &us[round]);
        }
        if (status == WEFT_OK) {
            status = weft_barrier(p->world); /* the flags may be cleared */
        }
        if (status != WEFT_OK) {
            return status;
        }
    }
    return WEFT_OK;
}
