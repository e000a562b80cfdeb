/* weft-ep-bench/copies.h: the rows of a dispatch by memcpy: each from its token to where the dispatch receives it, this
 * PE's own included; and back, without adding them. For ranks of one host that receive in symmetric memory,
 * rank-major. */
#ifndef WEFT_EP_BENCH_COPIES_H
#define WEFT_EP_BENCH_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include "tools/weft-ep-bench/arrays.h"

typedef struct bench_copy {
    const unsigned char *token; /* this PE's row */
    unsigned char *received; /* its place in the receiver's memory */
} bench_copy;

typedef struct bench_copies {
    bench_copy *copies; /* by token, then by rank */
    size_t count;
    size_t row_bytes;
    unsigned char *returned; /* rows: where they are brought back to */
} bench_copies;

/* Returns 0, or 1 after saying what is missing. Destroy also after that. */
int bench_copies_create(bench_copies *copies, const bench_arrays *arrays, weft_world *world, const bench_point *point,
                        uint64_t seed);
void bench_copies_destroy(bench_copies *copies);

void bench_copies_send(const bench_copies *copies);
void bench_copies_return(const bench_copies *copies);

#endif
