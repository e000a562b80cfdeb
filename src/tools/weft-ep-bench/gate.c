/* weft-ep-bench/gate.c: which experts tokens choose. */
#include "tools/weft-ep-bench/gate.h"

#include <stdlib.h>
#include <string.h>

#include "common/mix.h"

/* The expert e whose share 1 / (e + 1) of the whole a random number falls into. */
static int draw_zipf(uint64_t *state, int experts)
{
    double whole = 0.0;
    for (int e = 0; e < experts; e++) {
        whole += 1.0 / (e + 1);
    }
    double left = (double)(wefti_split_mix(state) >> 11) * 0x1p-53 * whole;
    int e = 0;
    while (e + 1 < experts && left >= 1.0 / (e + 1)) {
        left -= 1.0 / (e + 1);
        e++;
    }
    return e;
}

static int draw(const bench_point *point, int ranks, uint64_t *state)
{
    int of_first_rank = bench_gate_first_expert(point, ranks, 1);
    switch (point->skew) {
    case BENCH_ZIPF:
        return draw_zipf(state, point->experts);
    case BENCH_ONE_RANK:
        return (int)(wefti_split_mix(state) % (uint64_t)of_first_rank);
    default:
        return (int)(wefti_split_mix(state) % (uint64_t)point->experts);
    }
}

void bench_gate_choose(const bench_point *point, int ranks, uint64_t seed, int rank, int32_t *ids)
{
    uint64_t state = seed * 1000003u + (uint64_t)rank;
    for (int t = 0; t < point->tokens; t++) {
        int32_t *of_token = &ids[(size_t)t * (size_t)point->topk];
        for (int k = 0; k < point->topk; k++) {
            int32_t id = draw(point, ranks, &state);
            for (int j = 0; j < k; j++) { /* taken: the next that is free */
                if (of_token[j] == id) {
                    id = (id + 1) % point->experts;
                    j = -1;
                }
            }
            of_token[k] = id;
        }
    }
}

int bench_gate_first_expert(const bench_point *point, int ranks, int rank)
{
    int more = point->experts % ranks;
    return rank * (point->experts / ranks) + (rank < more ? rank : more);
}

/* The rank of an expert. */
static int owner_of(const bench_point *point, int ranks, int expert)
{
    int each = point->experts / ranks;
    int more = point->experts % ranks;
    int in_larger = more * (each + 1);
    return expert < in_larger ? expert / (each + 1) : more + (expert - in_larger) / (each > 0 ? each : 1);
}

int bench_gate_goes(const bench_point *point, int ranks, const int32_t *ids, int token, int rank)
{
    const int32_t *of_token = &ids[(size_t)token * (size_t)point->topk];
    int goes = 0;
    for (int k = 0; k < point->topk; k++) {
        goes |= owner_of(point, ranks, of_token[k]) == rank;
    }
    return goes;
}

/* Count the choices of each expert, and the tokens that go to each rank. */
static void count(const bench_point *point, int ranks, const int32_t *ids, int64_t *of_expert, int64_t *of_rank)
{
    for (int t = 0; t < point->tokens; t++) {
        const int32_t *of_token = &ids[(size_t)t * (size_t)point->topk];
        for (int k = 0; k < point->topk; k++) {
            int owner = owner_of(point, ranks, of_token[k]);
            int is_first = 1;
            for (int j = 0; j < k; j++) {
                is_first &= owner_of(point, ranks, of_token[j]) != owner;
            }
            of_expert[of_token[k]]++;
            of_rank[owner] += is_first;
        }
    }
}

static int64_t rows_of(const bench_point *point, int ranks, int alignment, int rank, const int64_t *of_expert,
                       int64_t of_rank)
{
    int first = bench_gate_first_expert(point, ranks, rank);
    int end = bench_gate_first_expert(point, ranks, rank + 1);
    int64_t slots = (int64_t)ranks * point->tokens;
    int64_t rows = 0;
    for (int e = first; e < end; e++) {
        rows += (of_expert[e] + alignment - 1) / alignment * alignment;
    }
    switch (point->layout) {
    case BENCH_EXPERT_MAJOR:
        return rows;
    case BENCH_SLOTS_SOURCE:
        return slots;
    case BENCH_SLOTS_EXPERT:
        return (end - first) * slots;
    default:
        return of_rank;
    }
}

int bench_gate_rows(const bench_point *point, int ranks, int alignment, uint64_t seed, int64_t *rows)
{
    int32_t *ids = malloc(((size_t)point->tokens * (size_t)point->topk + 1) * sizeof *ids);
    int64_t *of_expert = calloc((size_t)point->experts, sizeof *of_expert);
    int64_t *of_rank = calloc((size_t)ranks, sizeof *of_rank);
    int code = ids == NULL || of_expert == NULL || of_rank == NULL ? -1 : 0;
    for (int rank = 0; rank < ranks && code == 0; rank++) {
        bench_gate_choose(point, ranks, seed, rank, ids);
        count(point, ranks, ids, of_expert, of_rank);
    }
    for (int rank = 0; rank < ranks && code == 0; rank++) {
        rows[rank] = rows_of(point, ranks, alignment, rank, of_expert, of_rank[rank]);
    }
    free(ids);
    free(of_expert);
    free(of_rank);
    return code;
}

/* The rows that tokens of these choices are sent as, one to each rank but `except`. */
static int64_t count_sent(const bench_point *point, int ranks, const int32_t *ids, int except)
{
    int64_t sent = 0;
    for (int t = 0; t < point->tokens; t++) {
        const int32_t *of_token = &ids[(size_t)t * (size_t)point->topk];
        for (int k = 0; k < point->topk; k++) {
            int owner = owner_of(point, ranks, of_token[k]);
            int is_first = owner != except;
            for (int j = 0; j < k; j++) {
                is_first &= owner_of(point, ranks, of_token[j]) != owner;
            }
            sent += is_first;
        }
    }
    return sent;
}

int64_t bench_gate_sent(const bench_point *point, int ranks, uint64_t seed, int rank)
{
    int32_t *ids = malloc(((size_t)point->tokens * (size_t)point->topk + 1) * sizeof *ids);
    int64_t sent = ids == NULL ? -1 : 0;
    if (ids != NULL) {
        bench_gate_choose(point, ranks, seed, rank, ids);
        sent = count_sent(point, ranks, ids, -1);
    }
    free(ids);
    return sent;
}

int64_t bench_gate_most_sent(const bench_point *point, int ranks, uint64_t seed)
{
    int32_t *ids = malloc(((size_t)point->tokens * (size_t)point->topk + 1) * sizeof *ids);
    int64_t most = ids == NULL ? -1 : 0;
    for (int rank = 0; rank < ranks && most >= 0; rank++) {
        bench_gate_choose(point, ranks, seed, rank, ids);
        int64_t sent = count_sent(point, ranks, ids, rank);
        most = sent > most ? sent : most;
    }
    free(ids);
    return most;
}
