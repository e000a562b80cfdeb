/* part/block.h: timing in blocks. A block is so many repetitions of an operation that it lasts at least a millisecond,
 * and gives one sample: its time over its repetitions. */
#ifndef PART_BLOCK_H
#define PART_BLOCK_H

#include <stdint.h>

#include "part/stats.h"

#define BENCH_BLOCK_NS 1000000u

/* Do the operation `count` times. Returns 0, or anything else when one failed. The loop is the callee's own, so that
 * the operation is inlined into it. */
typedef int (*bench_body)(void *context, uint64_t count);

/* How many repetitions last BENCH_BLOCK_NS; also warms up. 0 when the operation failed. */
uint64_t bench_block_count(bench_body body, void *context);

/* One block: ns a repetition, or a negative value when the operation failed. */
double bench_block_ns(bench_body body, void *context, uint64_t count);

/* `blocks` blocks of `body`, ns a repetition. Returns 0, or -1 when the operation failed. */
int bench_blocks(bench_body body, void *context, int blocks, bench_samples *samples);

/* Blocks of two operations in turn, the first going first in every other turn, so that what disturbs the machine
 * disturbs both alike. */
int bench_blocks_beside(bench_body one, bench_body other, void *context, int blocks, bench_samples *of_one,
                        bench_samples *of_other);

#endif
