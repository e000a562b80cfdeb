/* weft-ep-bench/arrays.c: the arrays of a trial. */
#include "tools/weft-ep-bench/arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/part/pes.h"
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

static int create_rows(weft_ep_rows *rows, weft_world *world, const bench_backend *backend, weft_ep_dtype dtype,
                       int hidden, size_t count)
{
    *rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    rows->dtype = dtype;
    rows->hidden = hidden;
    if (tool_failed(backend->alloc(world, count * data_bytes(rows), &rows->data), "memory for rows")) {
        return 1;
    }
    if (dtype != WEFT_EP_FP8_E4M3) {
        return 0;
    }
    rows->scale_type = WEFT_EP_SCALE_F32;
    return tool_failed(backend->alloc(world, 4 * count * scale_groups(hidden), &rows->scales), "memory for scales");
}

static int create_words(void *at, weft_world *world, const bench_backend *backend, size_t count)
{
    return tool_failed(backend->alloc(world, 4 * count, at), "memory for what comes with the rows");
}

static int create_gradients(bench_arrays *a, weft_world *world, const bench_backend *backend, const bench_shape *shape)
{
    return create_words(&a->weight_gradients, world, backend, (size_t)shape->tokens * (size_t)shape->topk) ||
           create_rows(&a->gradients, world, backend, bench_combined_dtype(shape->dtype), shape->hidden, a->rows);
}

static int create_all(bench_arrays *a, weft_world *world, const bench_backend *backend, const bench_shape *shape)
{
    size_t tokens = (size_t)shape->tokens;
    size_t choices = tokens * (size_t)shape->topk;
    size_t labels = a->rows * (size_t)a->width;
    weft_ep_received *received = &a->received;
    a->owns_results = bench_received_dtype(shape->dtype) == WEFT_EP_FP8_E4M3;
    if (create_words(&a->ids, world, backend, choices) || create_words(&a->weights, world, backend, choices) ||
        create_rows(&a->in, world, backend, bench_sent_dtype(shape->dtype), shape->hidden, tokens) ||
        create_rows(&received->rows, world, backend, bench_received_dtype(shape->dtype), shape->hidden, a->rows) ||
        create_words(&received->weights, world, backend, labels) ||
        create_words(&received->experts, world, backend, labels) ||
        create_words(&received->source_rank, world, backend, a->rows) ||
        create_words(&received->source_token, world, backend, a->rows) ||
        create_rows(&a->out, world, backend, bench_combined_dtype(shape->dtype), shape->hidden, tokens)) {
        return 1;
    }
    received->rows_capacity = a->rows;
    a->results = received->rows;
    return a->owns_results &&
           create_rows(&a->results, world, backend, bench_combined_dtype(shape->dtype), shape->hidden, a->rows);
}

/* Copy what `fill` writes for each of `count` items to the backend. */
static int write_rows(const bench_backend *backend, const weft_ep_rows *rows, int rank, int count)
{
    size_t bytes = data_bytes(rows);
    size_t groups = scale_groups(rows->hidden);
    unsigned char *row = malloc(bytes + 1);
    float *scales = malloc(groups * sizeof *scales);
    int failed = row == NULL || scales == NULL;
    for (int token = 0; token < count && !failed; token++) {
        bench_row_fill(rows->dtype, rows->hidden, rank, token, 1, row);
        failed = tool_failed(backend->write((char *)rows->data + (size_t)token * bytes, row, bytes), "writing rows");
        for (size_t group = 0; group < groups; group++) {
            scales[group] = bench_row_scale(rank, token, (int)group);
        }
        if (rows->scales != NULL && !failed) {
            failed = tool_failed(backend->write((float *)rows->scales + (size_t)token * groups, scales, 4 * groups),
                                 "writing scales");
        }
    }
    free(row);
    free(scales);
    return failed;
}

static int write_choices(const bench_arrays *a, weft_world *world, const bench_backend *backend,
                         const bench_options *options, const bench_shape *shape)
{
    size_t choices = (size_t)shape->tokens * (size_t)shape->topk;
    int32_t *ids = malloc((choices + 1) * sizeof *ids);
    float *weights = malloc((choices + 1) * sizeof *weights);
    int failed = ids == NULL || weights == NULL;
    if (!failed) {
        bench_gate_choose(shape, weft_world_pes(world), options->seed, weft_world_pe(world), ids);
        for (size_t i = 0; i < choices; i++) {
            weights[i] = 1.0f;
        }
        failed = tool_failed(backend->write(a->ids, ids, choices * sizeof *ids), "writing ids") ||
                 tool_failed(backend->write(a->weights, weights, choices * sizeof *weights), "writing weights");
    }
    free(ids);
    free(weights);
    return failed;
}

int bench_arrays_create(bench_arrays *arrays, weft_world *world, const bench_backend *backend,
                        const bench_options *options, const bench_shape *shape, size_t rows)
{
    memset(arrays, 0, sizeof *arrays);
    arrays->rows = rows;
    arrays->width = bench_is_by_expert(shape->layout) ? 1 : shape->topk;
    arrays->received = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    return create_all(arrays, world, backend, shape) ||
           (options->backward && create_gradients(arrays, world, backend, shape)) ||
           write_choices(arrays, world, backend, options, shape) ||
           write_rows(backend, &arrays->in, weft_world_pe(world), shape->tokens) ||
           bench_arrays_poison(arrays, backend, shape);
}

static void free_one(weft_world *world, const bench_backend *backend, void *at)
{
    if (at != NULL) {
        (void)tool_failed(backend->free(world, at), "freeing memory");
    }
}

void bench_arrays_destroy(bench_arrays *arrays, weft_world *world, const bench_backend *backend)
{
    void *const all[] = {arrays->ids,
                         arrays->weights,
                         arrays->in.data,
                         arrays->in.scales,
                         arrays->received.rows.data,
                         arrays->received.rows.scales,
                         arrays->received.weights,
                         arrays->received.experts,
                         arrays->received.source_rank,
                         arrays->received.source_token,
                         arrays->out.data,
                         arrays->owns_results ? arrays->results.data : NULL,
                         arrays->gradients.data,
                         arrays->weight_gradients};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free_one(world, backend, all[i]);
    }
}

static int poison(const bench_backend *backend, void *at, size_t bytes)
{
    unsigned char block[4096];
    memset(block, 0xff, sizeof block); /* NaN, and the number -1 */
    for (size_t done = 0; done < bytes; done += sizeof block) {
        size_t part = bytes - done < sizeof block ? bytes - done : sizeof block;
        if (tool_failed(backend->write((char *)at + done, block, part), "writing")) {
            return 1;
        }
    }
    return 0;
}

int bench_arrays_poison(bench_arrays *arrays, const bench_backend *backend, const bench_shape *shape)
{
    weft_ep_received *received = &arrays->received;
    return poison(backend, received->rows.data, arrays->rows * data_bytes(&received->rows)) ||
           poison(backend, received->source_rank, 4 * arrays->rows) ||
           poison(backend, received->source_token, 4 * arrays->rows) ||
           poison(backend, arrays->out.data, (size_t)shape->tokens * data_bytes(&arrays->out));
}
