/* weft-perf/stream.c: calls on a stream, back to back, between two events; or captured, and launched as one graph. */
#include "weft/stream.h"

#include "tools/weft-perf/pe.h"
#include "tools/weft-perf/words.h"
#include "weft/device.h"

#define LOOP(call)                                                                                                     \
    for (uint64_t i = 1; i <= (uint64_t)calls && status == WEFT_OK; i++) {                                             \
        status = (call);                                                                                               \
    }

/* ---- one word ---- */

#define WORD(OP, call)                                                                                                 \
    case PERF_##OP:                                                                                                    \
        LOOP(call)                                                                                                     \
        break;
#define EXTENDED_WORDS(NAME)                                                                                           \
    WORD(P, weft_##NAME##_p_on_stream(world, at, 1, pe, stream))                                                       \
    WORD(G, weft_##NAME##_g_on_stream(world, at, pe, old, stream))                                                     \
    WORD(FETCH, weft_##NAME##_atomic_fetch_on_stream(world, at, pe, old, stream))                                      \
    WORD(SET, weft_##NAME##_atomic_set_on_stream(world, at, 1, pe, stream))                                            \
    WORD(SWAP, weft_##NAME##_atomic_swap_on_stream(world, at, 1, pe, old, stream))
#define INTEGER_WORDS(NAME)                                                                                            \
    EXTENDED_WORDS(NAME)                                                                                               \
    WORD(COMPARE_SWAP, weft_##NAME##_atomic_compare_swap_on_stream(world, at, 0, 1, pe, old, stream))                  \
    WORD(ADD, weft_##NAME##_atomic_add_on_stream(world, at, 1, pe, stream))                                            \
    WORD(FETCH_ADD, weft_##NAME##_atomic_fetch_add_on_stream(world, at, 1, pe, old, stream))                           \
    WORD(INC, weft_##NAME##_atomic_inc_on_stream(world, at, pe, stream))                                               \
    WORD(FETCH_INC, weft_##NAME##_atomic_fetch_inc_on_stream(world, at, pe, old, stream))                              \
    WORD(AND, weft_##NAME##_atomic_and_on_stream(world, at, (__typeof__(*at))-1, pe, stream))                          \
    WORD(FETCH_AND, weft_##NAME##_atomic_fetch_and_on_stream(world, at, 1, pe, old, stream))                           \
    WORD(OR, weft_##NAME##_atomic_or_on_stream(world, at, 1, pe, stream))                                              \
    WORD(FETCH_OR, weft_##NAME##_atomic_fetch_or_on_stream(world, at, 0, pe, old, stream))                             \
    WORD(XOR, weft_##NAME##_atomic_xor_on_stream(world, at, 1, pe, stream))                                            \
    WORD(FETCH_XOR, weft_##NAME##_atomic_fetch_xor_on_stream(world, at, 0, pe, old, stream))
#define DEFINE_WORDS(NAME, TYPE, WORDS)                                                                                \
    static weft_status words_##NAME(perf_pe *p, const perf_case *c, int calls)                                         \
    {                                                                                                                  \
        weft_world *world = p->world;                                                                                  \
        weft_stream *stream = tool_gpu_stream(p->gpu);                                                                 \
        TYPE *at = (TYPE *)(void *)p->dest;                                                                            \
        TYPE *old = (TYPE *)(void *)(p->scratch + 64);                                                                 \
        const int pe = perf_peer(p);                                                                                   \
        weft_status status = WEFT_OK;                                                                                  \
        switch (c->op) {                                                                                               \
            WORDS(NAME)                                                                                                \
        default:                                                                                                       \
            return WEFT_ERR_UNSUPPORTED;                                                                               \
        }                                                                                                              \
        return status;                                                                                                 \
    }
PERF_WORDS_OF_TYPES(DEFINE_WORDS, INTEGER_WORDS, EXTENDED_WORDS)

/* ---- the rest ---- */

/* PE 0 sends, the other answers. */
static weft_status trips(perf_pe *p, const perf_case *c, int calls)
{
    weft_world *world = p->world;
    weft_stream *stream = tool_gpu_stream(p->gpu);
    const int peer = perf_peer(p);
    weft_status status = WEFT_OK;
    for (uint64_t i = 1; i <= (uint64_t)calls && status == WEFT_OK; i++) {
        for (int side = 0; side < 2 && status == WEFT_OK; side++) {
            if (side != p->pe) {
                status = weft_signal_wait_until_on_stream(world, p->flags, WEFT_CMP_GE, i, stream);
            } else if (c->op == PERF_P_PINGPONG) {
                status = weft_uint64_p_on_stream(world, p->flags, i, peer, stream);
            } else if (c->op == PERF_SIGNAL) {
                status = weft_signal_on_stream(world, p->flags, i, WEFT_SIGNAL_SET, peer, stream);
            } else {
                status = weft_putmem_signal_on_stream(world, p->dest, p->source, c->bytes, p->flags, i, WEFT_SIGNAL_SET,
                                                      peer, stream);
            }
        }
    }
    return status;
}

static weft_status rate(perf_pe *p, const perf_case *c, int calls)
{
    const size_t bytes = perf_chunk_bytes(c);
    weft_stream *stream = tool_gpu_stream(p->gpu);
    weft_status status = WEFT_OK;
    for (int i = 0; i < calls; i++) {
        for (size_t chunk = 0; chunk < perf_chunk_count(c) && status == WEFT_OK; chunk++) {
            void *dest = p->dest + chunk * bytes;
            const void *source = p->source + chunk * bytes;
            const int pe = perf_chunk_pe(p, c, p->pe, chunk);
            status = c->op == PERF_PUT_BW ? weft_putmem_on_stream(p->world, dest, source, bytes, pe, stream)
                                          : weft_getmem_on_stream(p->world, dest, source, bytes, pe, stream);
        }
    }
    return status;
}

static weft_status move(perf_pe *p, const perf_case *c, int calls)
{
    weft_stream *stream = tool_gpu_stream(p->gpu);
    weft_status status = WEFT_OK;
    if (c->op == PERF_GET) {
        LOOP(weft_getmem_on_stream(p->world, p->dest, p->source, c->bytes, perf_peer(p), stream))
        return status;
    }
    for (int i = 0; i < calls && status == WEFT_OK; i++) {
        status = weft_putmem_on_stream(p->world, p->dest, p->source, c->bytes, perf_peer(p), stream);
        if (status == WEFT_OK && c->op == PERF_PUT_QUIET) {
            status = weft_quiet_on_stream(p->world, stream);
        }
    }
    return status;
}

static weft_status collective(perf_pe *p, const perf_case *c, int calls)
{
    const size_t block = perf_block_bytes(c);
    const weft_dtype dtype = perf_weft_dtype(c->dtype);
    const size_t count = block / perf_dtype_bytes(c->dtype);
    weft_team *team = p->team;
    weft_stream *stream = tool_gpu_stream(p->gpu);
    weft_status status = WEFT_OK;
    switch (c->op) {
    case PERF_BARRIER:
        LOOP(weft_team_barrier_on_stream(team, stream))
        break;
    case PERF_SYNC:
        LOOP(weft_team_sync_on_stream(team, stream))
        break;
    case PERF_BROADCAST:
        LOOP(weft_broadcastmem_on_stream(team, p->dest, p->source, block, 0, stream))
        break;
    case PERF_FCOLLECT:
        LOOP(weft_fcollectmem_on_stream(team, p->dest, p->source, block, stream))
        break;
    case PERF_COLLECT:
        LOOP(weft_collectmem_on_stream(team, p->dest, p->source, block, stream))
        break;
    case PERF_ALLTOALL:
        LOOP(weft_alltoallmem_on_stream(team, p->dest, p->source, block, stream))
        break;
    case PERF_ALLTOALLV:
        LOOP(weft_alltoallvmem_on_stream(team, p->dest, p->table, p->source, p->table + c->pes, p->table + 2 * c->pes,
                                         stream))
        break;
    case PERF_REDUCE:
        LOOP(weft_reduce_on_stream(team, dtype, c->reduction, p->dest, p->source, count, stream))
        break;
    case PERF_REDUCE_SCATTER:
        LOOP(weft_reduce_scatter_on_stream(team, dtype, c->reduction, p->dest, p->source, count, stream))
        break;
    default:
        return WEFT_ERR_UNSUPPORTED;
    }
    return status;
}

static weft_status enqueue(perf_pe *p, const perf_case *c, int calls)
{
    switch (perf_kind_of(c->op)) {
    case PERF_WORD:
        return words(p, c, calls);
    case PERF_TRIPS:
        return trips(p, c, calls);
    case PERF_RATE:
        return rate(p, c, calls);
    case PERF_MOVE:
        return move(p, c, calls);
    default:
        return collective(p, c, calls);
    }
}

static int is_there(const perf_pe *p, const perf_case *c)
{
    perf_pe nobody = *p;
    perf_kind kind = perf_kind_of(c->op);
    int is_bitwise = c->reduction <= WEFT_OP_XOR;
    int is_raw = c->op == PERF_RAW_PUT_SIGNAL || (kind == PERF_RATE && c->op != PERF_PUT_BW && c->op != PERF_GET_BW);
    return !is_raw && kind != PERF_ALLOC && !(kind == PERF_COMBINE && is_bitwise && perf_tolerance(c->dtype) > 0) &&
           (kind == PERF_MOVE || kind == PERF_TRIPS || kind == PERF_RATE || enqueue(&nobody, c, 0) == WEFT_OK);
}

/* What the first call on a team would do before a capture. */
static weft_status get_ready(const perf_pe *p, const perf_case *c)
{
    weft_dev_team dev;
    if (p->team == NULL || perf_kind_of(c->op) < PERF_MEET) {
        return WEFT_OK;
    }
    weft_status status = weft_team_dev(p->team, &dev);
    return status != WEFT_OK || perf_kind_of(c->op) == PERF_MEET ? status : weft_team_stream_ready(p->team);
}

static weft_status capture(perf_pe *p, const perf_case *c, int calls, void **graph)
{
    weft_status status = tool_gpu_capture_begin(p->gpu);
    if (status != WEFT_OK) {
        return status;
    }
    status = enqueue(p, c, calls);
    weft_status ended = tool_gpu_capture_end(p->gpu, graph);
    return status != WEFT_OK ? status : ended;
}

/* Between two marks, after all PEs' streams have met. */
static weft_status time_round(perf_pe *p, const perf_case *c, int calls, void *graph, double *us)
{
    weft_stream *stream = tool_gpu_stream(p->gpu);
    weft_status status = weft_barrier_on_stream(p->world, stream);
    if (status == WEFT_OK && perf_participates(p, c)) {
        status = tool_gpu_begin(p->gpu);
        status = status != WEFT_OK ? status
                 : graph != NULL   ? tool_gpu_graph_launch(p->gpu, graph)
                                   : enqueue(p, c, calls);
        status = status != WEFT_OK ? status : tool_gpu_end(p->gpu);
    }
    status = status != WEFT_OK ? status : tool_gpu_synchronise(p->gpu);
    status = status != WEFT_OK ? status : weft_world_fault(p->world, NULL);
    if (status == WEFT_OK && perf_participates(p, c)) {
        status = tool_gpu_elapsed(p->gpu, us);
        *us /= (double)calls * (perf_kind_of(c->op) == PERF_TRIPS ? 2 : 1);
    }
    return status;
}

weft_status perf_stream_run(perf_pe *p, const perf_case *c, int calls, int rounds, double *us)
{
    void *graph = NULL;
    if (!is_there(p, c)) {
        return WEFT_ERR_UNSUPPORTED;
    }
    weft_status status = get_ready(p, c);
    if (status == WEFT_OK && c->scope == PERF_GRAPH) {
        status = perf_participates(p, c) ? capture(p, c, calls, &graph) : capture(p, c, 0, &graph);
    }
    for (int round = 0; round < rounds && status == WEFT_OK; round++) {
        us[round] = 0;
        status = perf_pe_fill(p, p->flags, 0, PERF_FLAG_BYTES);
        status = status != WEFT_OK ? status : weft_barrier(p->world);
        status = status != WEFT_OK ? status : time_round(p, c, calls, graph, &us[round]);
        status = status != WEFT_OK ? status : weft_barrier(p->world); /* the flags may be cleared */
    }
    tool_gpu_graph_free(p->gpu, graph);
    return status;
}
