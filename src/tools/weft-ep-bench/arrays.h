/* weft-ep-bench/arrays.h: the arrays of a trial, in the backend's memory. */
#ifndef WEFT_EP_BENCH_ARRAYS_H
#define WEFT_EP_BENCH_ARRAYS_H

#include "tools/weft-ep-bench/backend.h"
#include "tools/weft-ep-bench/options.h"

typedef struct bench_arrays {
    size_t rows; /* that received rows have room for: the most of any rank */
    int width; /* weights and experts a row */
    int32_t *ids; /* [tokens][topk] */
    float *weights; /* [tokens][topk]: all 1 */
    weft_ep_rows in; /* [tokens] */
    weft_ep_received received; /* [rows], every array */
    weft_ep_rows results; /* [rows], what combine takes: the received rows where their type can be added */
    weft_ep_rows out; /* [tokens] */
    int owns_results;
    int receives_symmetric; /* the received rows lie in symmetric memory; all else of a GPU does not */
    weft_ep_rows gradients; /* [rows], and */
    float *weight_gradients; /* [tokens][topk]: what the backward calls write; NULL unless they are timed */
} bench_arrays;

/* Make and fill them. Collective. Returns 0, or 1 after saying what failed; then destroy still frees what is there. */
int bench_arrays_create(bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                        const bench_point *point, size_t rows);
void bench_arrays_destroy(bench_arrays *arrays, bench_backend *backend);

/* Bytes of a row with its scales. */
size_t bench_row_bytes(const weft_ep_rows *rows);

#endif
