/* weft-ep-bench/arrays.c: the arrays of a trial. */
#include "tools/weft-ep-bench/arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/pes.h"
#include "tools/weft-ep-bench/gate.h"
#include "tools/weft-ep-bench/rows.h"

static size_t scale_groups(int hidden)
{
    return ((size_t)hidden + 127) / 128;
}

static size_t data_bytes(const weft_ep_rows *rows)
{
    return (size_t)rows->hidden * bench_element_bytes(rows->dtype);
}

size_t bench_row_bytes(const weft_ep_rows *rows)
{
    return data_bytes(rows) + (rows->scale_type != WEFT_EP_SCALE_NONE ? 4 * scale_groups(rows->hidden) : 0);
}

/* On the host what all ranks have is symmetric, which costs nothing; a GPU's symmetric memory is kept for rows. */
static int is_others_symmetric(const bench_backend *backend)
{
    return !backend->on_device;
}

static int create_rows(weft_ep_rows *rows, bench_backend *backend, int is_symmetric, weft_ep_dtype dtype, int hidden,
                       size_t count)
{
    *rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    rows->dtype = dtype;
    rows->hidden = hidden;
    if (tool_failed(backend->ops->alloc(backend, count * data_bytes(rows), is_symmetric, &rows->data),
                    "memory for rows")) {
        return 1;
    }
    if (dtype != WEFT_EP_FP8_E4M3) {
        return 0;
    }
    rows->scale_type = WEFT_EP_SCALE_F32;
    return tool_failed(
        backend->ops->alloc(backend, 4 * count * scale_groups(hidden), is_others_symmetric(backend), &rows->scales),
        "memory for scales");
}

static int create_words(void *at, bench_backend *backend, size_t count)
{
    return tool_failed(backend->ops->alloc(backend, 4 * count, is_others_symmetric(backend), at),
                       "memory for what comes with the rows");
}

static int create_gradients(bench_arrays *a, bench_backend *backend, const bench_point *point)
{
    return create_words(&a->weight_gradients, backend, (size_t)point->tokens * (size_t)point->topk) ||
           create_rows(&a->gradients, backend, is_others_symmetric(backend), bench_combined_dtype(point->dtype),
                       point->hidden, a->rows);
}

static int create_all(bench_arrays *a, bench_backend *backend, const bench_point *point)
{
    size_t tokens = (size_t)point->tokens;
    size_t choices = tokens * (size_t)point->topk;
    size_t labels = a->rows * (size_t)a->width;
    weft_ep_received *received = &a->received;
    a->owns_results = bench_received_dtype(point->dtype) == WEFT_EP_FP8_E4M3;
    if (create_words(&a->ids, backend, choices) || create_words(&a->weights, backend, choices) ||
        create_rows(&a->in, backend, is_others_symmetric(backend), bench_sent_dtype(point->dtype), point->hidden,
                    tokens) ||
        create_rows(&received->rows, backend, a->receives_symmetric, bench_received_dtype(point->dtype), point->hidden,
                    a->rows) ||
        create_words(&received->weights, backend, labels) || create_words(&received->experts, backend, labels) ||
        create_words(&received->source_rank, backend, a->rows) ||
        create_words(&received->source_token, backend, a->rows) ||
        create_rows(&a->out, backend, is_others_symmetric(backend), bench_combined_dtype(point->dtype), point->hidden,
                    tokens)) {
        return 1;
    }
    received->rows_capacity = a->rows;
    a->results = received->rows;
    return a->owns_results && create_rows(&a->results, backend, is_others_symmetric(backend),
                                          bench_combined_dtype(point->dtype), point->hidden, a->rows);
}

/* Copy what `fill` writes for each of `count` items to the backend. */
static int write_rows(bench_backend *backend, const weft_ep_rows *rows, int rank, int count)
{
    size_t bytes = data_bytes(rows);
    size_t groups = scale_groups(rows->hidden);
    unsigned char *row = malloc(bytes + 1);
    float *scales = malloc(groups * sizeof *scales);
    int failed = row == NULL || scales == NULL;
    for (int token = 0; token < count && !failed; token++) {
        bench_row_fill(rows->dtype, rows->hidden, rank, token, 1, row);
        failed = tool_failed(backend->ops->write(backend, (char *)rows->data + (size_t)token * bytes, row, bytes),
                             "writing rows");
        for (size_t group = 0; group < groups; group++) {
            scales[group] = bench_row_scale(rank, token, (int)group);
        }
        if (rows->scales != NULL && !failed) {
            failed = tool_failed(
                backend->ops->write(backend, (float *)rows->scales + (size_t)token * groups, scales, 4 * groups),
                "writing scales");
        }
    }
    free(row);
    free(scales);
    return failed;
}

static int write_choices(const bench_arrays *a, bench_backend *backend, const bench_options *options,
                         const bench_point *point)
{
    size_t choices = (size_t)point->tokens * (size_t)point->topk;
    int32_t *ids = malloc((choices + 1) * sizeof *ids);
    float *weights = malloc((choices + 1) * sizeof *weights);
    int failed = ids == NULL || weights == NULL;
    if (!failed) {
        bench_gate_choose(point, weft_world_pes(backend->world), options->seed, weft_world_pe(backend->world), ids);
        for (size_t i = 0; i < choices; i++) {
            weights[i] = 1.0f;
        }
        failed = tool_failed(backend->ops->write(backend, a->ids, ids, choices * sizeof *ids), "writing ids") ||
                 tool_failed(backend->ops->write(backend, a->weights, weights, choices * sizeof *weights),
                             "writing weights");
    }
    free(ids);
    free(weights);
    return failed;
}

/* Poison what a dispatch and a combine write. */
static int poison(bench_arrays *arrays, bench_backend *backend, const bench_point *point)
{
    const weft_ep_received *received = &arrays->received;
    const struct {
        void *at;
        size_t bytes;
    } all[] = {{received->rows.data, arrays->rows * data_bytes(&received->rows)},
               {received->source_rank, 4 * arrays->rows},
               {received->source_token, 4 * arrays->rows},
               {arrays->out.data, (size_t)point->tokens * data_bytes(&arrays->out)}};
    int failed = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && !failed; i++) { /* NaN, and the number -1 */
        failed = all[i].bytes > 0 &&
                 tool_failed(backend->ops->fill(backend, all[i].at, 0xff, all[i].bytes), "filling memory");
    }
    return failed;
}

int bench_arrays_create(bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                        const bench_point *point, size_t rows)
{
    memset(arrays, 0, sizeof *arrays);
    arrays->rows = rows;
    arrays->receives_symmetric = point->buffers == BENCH_SYMMETRIC;
    arrays->width = bench_is_by_expert(point->layout) ? 1 : point->topk;
    arrays->received = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    return create_all(arrays, backend, point) || (options->backward && create_gradients(arrays, backend, point)) ||
           write_choices(arrays, backend, options, point) ||
           write_rows(backend, &arrays->in, weft_world_pe(backend->world), point->tokens) ||
           poison(arrays, backend, point);
}

static void free_one(bench_backend *backend, void *at, int is_symmetric)
{
    if (at != NULL) {
        (void)tool_failed(backend->ops->free(backend, at, is_symmetric), "freeing memory");
    }
}

void bench_arrays_destroy(bench_arrays *arrays, bench_backend *backend)
{
    void *const others[] = {arrays->ids,
                            arrays->weights,
                            arrays->in.data,
                            arrays->in.scales,
                            arrays->received.rows.scales,
                            arrays->received.weights,
                            arrays->received.experts,
                            arrays->received.source_rank,
                            arrays->received.source_token,
                            arrays->out.data,
                            arrays->owns_results ? arrays->results.data : NULL,
                            arrays->gradients.data,
                            arrays->weight_gradients};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        free_one(backend, others[i], is_others_symmetric(backend));
    }
    free_one(backend, arrays->received.rows.data, arrays->receives_symmetric);
}
