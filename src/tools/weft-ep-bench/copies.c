/* weft-ep-bench/copies.c: the rows of a dispatch by memcpy. */
#include "tools/weft-ep-bench/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weft-ep-bench/gate.h"

/* The tokens of `source` that go to each rank are added to rows[rank]. */
static void count_rows(const bench_point *point, int ranks, uint64_t seed, int source, int32_t *ids, size_t *rows)
{
    bench_gate_choose(point, ranks, seed, source, ids);
    for (int token = 0; token < point->tokens; token++) {
        for (int rank = 0; rank < ranks; rank++) {
            rows[rank] += (size_t)bench_gate_goes(point, ranks, ids, token, rank);
        }
    }
}

/* Rows lie by source, then by token: those of the sources before this one come first. */
static int list_copies(bench_copies *c, const bench_arrays *arrays, weft_world *world, const bench_point *point,
                       uint64_t seed, int32_t *ids, size_t *rows)
{
    int me = weft_world_pe(world);
    int ranks = weft_world_pes(world);
    for (int source = 0; source < me; source++) {
        count_rows(point, ranks, seed, source, ids, rows);
    }
    bench_gate_choose(point, ranks, seed, me, ids);
    for (int token = 0; token < point->tokens; token++) {
        for (int rank = 0; rank < ranks; rank++) {
            unsigned char *there = weft_ptr(world, arrays->received.rows.data, rank);
            if (there == NULL) {
                fprintf(stderr, "weft-ep-bench: --memcpy: the memory of PE %d is not mapped: it is on another host\n",
                        rank);
                return 1;
            }
            if (bench_gate_goes(point, ranks, ids, token, rank)) {
                c->copies[c->count++] =
                    (bench_copy){.token = (const unsigned char *)arrays->in.data + (size_t)token * c->row_bytes,
                                 .received = there + rows[rank]++ * c->row_bytes};
            }
        }
    }
    return 0;
}

int bench_copies_create(bench_copies *copies, const bench_arrays *arrays, weft_world *world, const bench_point *point,
                        uint64_t seed)
{
    size_t tokens = (size_t)point->tokens;
    size_t ranks = (size_t)weft_world_pes(world);
    int32_t *ids = malloc((tokens * (size_t)point->topk + 1) * sizeof *ids);
    size_t *rows = calloc(ranks, sizeof *rows);
    *copies = (bench_copies){.row_bytes = bench_row_bytes(&arrays->in)};
    copies->copies = malloc((tokens * ranks + 1) * sizeof *copies->copies);
    copies->returned = calloc(tokens * ranks + 1, copies->row_bytes);
    int failed = ids == NULL || rows == NULL || copies->copies == NULL || copies->returned == NULL;
    if (failed) {
        fprintf(stderr, "weft-ep-bench: --memcpy: no memory\n");
    }
    failed = failed || list_copies(copies, arrays, world, point, seed, ids, rows);
    free(ids);
    free(rows);
    return failed;
}

void bench_copies_destroy(bench_copies *copies)
{
    free(copies->copies);
    free(copies->returned);
    *copies = (bench_copies){0};
}

void bench_copies_send(const bench_copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        memcpy(copies->copies[i].received, copies->copies[i].token, copies->row_bytes);
    }
}

void bench_copies_return(const bench_copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        memcpy(copies->returned + i * copies->row_bytes, copies->copies[i].received, copies->row_bytes);
    }
}
