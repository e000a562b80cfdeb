/* weft-ep-bench/check.c: whether a dispatch and a combine did what they are to do. */
#include "tools/weft-ep-bench/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/pes.h"
#include "tools/weft-ep-bench/gate.h"
#include "tools/weft-ep-bench/rows.h"

/* What is looked at on one PE. */
typedef struct checker {
    const bench_arrays *arrays;
    bench_backend *backend;
    const bench_options *options;
    const bench_point *point;
    int rank;
    int ranks;
    int32_t *ids; /* of all ranks: [ranks][tokens][topk] */
    unsigned char *row;
    float *scales;
} checker;

static int said(const checker *c, const char *what, long at)
{
    fprintf(stderr, "weft-ep-bench: PE %d: %s, %s, topk %d: %s (%ld)\n", c->rank, bench_layout_names[c->point->layout],
            bench_dtype_names[c->point->dtype], c->point->topk, what, at);
    return 1;
}

static const int32_t *ids_of(const checker *c, int rank, int token)
{
    return &c->ids[((size_t)rank * (size_t)c->point->tokens + (size_t)token) * (size_t)c->point->topk];
}

/* The local number of the expert that a choice names, or -1 if the expert is not on this rank. */
static int local_expert(const checker *c, const int32_t *ids, int choice)
{
    int first = bench_gate_first_expert(c->point, c->ranks, c->rank);
    int end = bench_gate_first_expert(c->point, c->ranks, c->rank + 1);
    return ids[choice] >= first && ids[choice] < end ? ids[choice] - first : -1;
}

/* Check the data and scales of row `row`, which must be those of (source, token). */
static int check_data(const checker *c, size_t row, int source, int token)
{
    const weft_ep_rows *rows = &c->arrays->received.rows;
    size_t bytes = (size_t)rows->hidden * bench_element_bytes(rows->dtype);
    size_t groups = ((size_t)rows->hidden + 127) / 128;
    int quantised = c->point->dtype == BENCH_BF16_FP8;
    if (tool_failed(c->backend->ops->read(c->backend, c->row, (char *)rows->data + row * bytes, bytes), "reading")) {
        return 1;
    }
    if (rows->scales != NULL &&
        tool_failed(c->backend->ops->read(c->backend, c->scales, (float *)rows->scales + row * groups, 4 * groups),
                    "reading")) {
        return 1;
    }
    for (size_t group = 0; group < groups && rows->scales != NULL && !quantised; group++) {
        if (c->scales[group] != bench_row_scale(source, token, (int)group)) {
            return said(c, "a scale is wrong in row", (long)row);
        }
    }
    int column = bench_row_differs(rows->dtype, rows->hidden, source, token, 1, quantised ? c->scales : NULL,
                                   quantised ? 0x1p-4 : 0.0, c->row);
    return column >= 0 ? said(c, "an element is wrong in row", (long)row) : 0;
}

/* The labels of a row: [width] weights and experts. */
static int check_labels(const checker *c, size_t row, int source, int token, int expert)
{
    const weft_ep_received *received = &c->arrays->received;
    size_t width = (size_t)c->arrays->width;
    float weights[1024];
    int32_t experts[1024];
    int32_t from[2];
    if (tool_failed(c->backend->ops->read(c->backend, weights, received->weights + row * width, 4 * width),
                    "reading") ||
        tool_failed(c->backend->ops->read(c->backend, experts, received->experts + row * width, 4 * width),
                    "reading") ||
        tool_failed(c->backend->ops->read(c->backend, &from[0], received->source_rank + row, 4), "reading") ||
        tool_failed(c->backend->ops->read(c->backend, &from[1], received->source_token + row, 4), "reading")) {
        return 1;
    }
    if (from[0] != source || from[1] != token) {
        return said(c, "the source is wrong of row", (long)row);
    }
    for (size_t i = 0; i < width; i++) {
        int here = expert >= 0 ? expert : local_expert(c, ids_of(c, source, token), (int)i);
        if (experts[i] != here || weights[i] != (here >= 0 ? 1.0f : 0.0f)) {
            return said(c, "an expert or a weight is wrong of row", (long)row);
        }
    }
    return 0;
}

/* The rows of one expert, or with -1 of all, that (source, token) has here: 0 or 1, since choices are distinct. */
static int comes(const checker *c, int source, int token, int expert)
{
    for (int k = 0; k < c->point->topk; k++) {
        int local = local_expert(c, ids_of(c, source, token), k);
        if (local >= 0 && (expert < 0 || local == expert)) {
            return 1;
        }
    }
    return 0;
}

/* The rows of an expert (-1: all) from this source on `row`, in order. Returns the row behind them, or -1. */
static long check_source(const checker *c, int source, int expert, long row)
{
    for (int token = 0; token < c->point->tokens && row >= 0; token++) {
        if (comes(c, source, token, expert)) {
            int wrong =
                check_data(c, (size_t)row, source, token) || check_labels(c, (size_t)row, source, token, expert);
            row = wrong ? -1 : row + 1;
        }
    }
    return row;
}

static int check_rows(const checker *c)
{
    int by_expert = bench_is_by_expert(c->point->layout);
    int first = bench_gate_first_expert(c->point, c->ranks, c->rank);
    int experts = by_expert ? bench_gate_first_expert(c->point, c->ranks, c->rank + 1) - first : 1;
    int alignment = c->point->layout == BENCH_EXPERT_MAJOR ? c->options->alignment : 1;
    long row = 0;
    for (int expert = 0; expert < experts; expert++) {
        if (c->point->layout == BENCH_SLOTS_EXPERT) {
            row = (long)expert * c->ranks * c->point->tokens;
        }
        for (int source = 0; source < c->ranks && row >= 0; source++) {
            if (c->point->layout == BENCH_SLOTS_SOURCE) {
                row = (long)source * c->point->tokens;
            }
            row = check_source(c, source, by_expert ? expert : -1, row);
        }
        if (row < 0) {
            return 1;
        }
        row = (row + alignment - 1) / alignment * alignment;
    }
    return 0;
}

/* Where received rows cannot be added: the experts' results, row by row by what the labels say. */
static int write_results(const checker *c)
{
    const bench_arrays *a = c->arrays;
    size_t bytes = (size_t)a->results.hidden * bench_element_bytes(a->results.dtype);
    for (size_t row = 0; row < a->rows && a->owns_results; row++) {
        int32_t source;
        int32_t token;
        if (tool_failed(c->backend->ops->read(c->backend, &source, a->received.source_rank + row, 4), "reading") ||
            tool_failed(c->backend->ops->read(c->backend, &token, a->received.source_token + row, 4), "reading")) {
            return 1;
        }
        if (source >= 0) {
            bench_row_fill(a->results.dtype, a->results.hidden, source, token, 1, c->row);
            if (tool_failed(c->backend->ops->write(c->backend, (char *)a->results.data + row * bytes, c->row, bytes),
                            "writing")) {
                return 1;
            }
        }
    }
    return 0;
}

/* The rows that a token of this rank is sent as: one a choice, or one a rank. */
static int rows_of(const checker *c, int token)
{
    int rows = 0;
    for (int rank = 0; rank < c->ranks; rank++) {
        rows += bench_gate_goes(c->point, c->ranks, ids_of(c, c->rank, 0), token, rank);
    }
    return bench_is_by_expert(c->point->layout) ? c->point->topk : rows;
}

static int check_sums(const checker *c)
{
    const weft_ep_rows *out = &c->arrays->out;
    size_t bytes = (size_t)out->hidden * bench_element_bytes(out->dtype);
    for (int token = 0; token < c->point->tokens; token++) {
        /* Weights are 1, and a row stands for its choices: the token's row times its choices. Without weights it counts
         * once. */
        int rows = c->options->unweighted ? rows_of(c, token) : c->point->topk;
        if (tool_failed(c->backend->ops->read(c->backend, c->row, (char *)out->data + (size_t)token * bytes, bytes),
                        "reading")) {
            return 1;
        }
        if (bench_row_differs(out->dtype, out->hidden, c->rank, token, rows, NULL, 0x1p-7, c->row) >= 0) {
            return said(c, "a sum is wrong of token", token);
        }
    }
    return 0;
}

static int open_checker(checker *c, const bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                        const bench_point *point)
{
    *c = (checker){.arrays = arrays, .backend = backend, .options = options, .point = point};
    c->rank = weft_world_pe(backend->world);
    c->ranks = weft_world_pes(backend->world);
    size_t choices = (size_t)point->tokens * (size_t)point->topk;
    c->ids = malloc((choices * (size_t)c->ranks + 1) * sizeof *c->ids);
    c->row = malloc(4 * (size_t)point->hidden);
    c->scales = malloc(4 * (((size_t)point->hidden + 127) / 128));
    if (c->ids == NULL || c->row == NULL || c->scales == NULL) {
        return said(c, "no memory to check with", 0);
    }
    for (int rank = 0; rank < c->ranks; rank++) {
        bench_gate_choose(point, c->ranks, options->seed, rank, c->ids + (size_t)rank * choices);
    }
    return 0;
}

static void close_checker(checker *c)
{
    free(c->ids);
    free(c->row);
    free(c->scales);
}

int bench_check_received(const bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                         const bench_point *point)
{
    checker c;
    int failed = open_checker(&c, arrays, backend, options, point) || check_rows(&c) || write_results(&c);
    close_checker(&c);
    return failed;
}

int bench_check_combined(const bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                         const bench_point *point)
{
    checker c;
    int failed = open_checker(&c, arrays, backend, options, point) || check_sums(&c);
    close_checker(&c);
    return failed;
}
