/* lib/block.h: timing in blocks. A block is so many repetitions of an operation that it lasts at least a millisecond,
 * and gives one sample: its time over its repetitions. */
#ifndef TOOL_BLOCK_H
#define TOOL_BLOCK_H

#include <stdint.h>

#include "tools/lib/stats.h"

#define TOOL_BLOCK_NS 1000000u

/* Do the operation `count` times. Returns 0, or anything else when one failed. The loop is the callee's own, so that
 * the operation is inlined into it. */
typedef int (*tool_body)(void *context, uint64_t count);

/* One block: ns a repetition, or a negative value when the operation failed. */
double tool_block_ns(tool_body body, void *context, uint64_t count);

/* `blocks` blocks of `body`, ns a repetition. Returns 0, or -1 when the operation failed. */
int tool_blocks(tool_body body, void *context, int blocks, tool_samples *samples);

/* Blocks of two operations in turn, the first going first in every other turn, so that what disturbs the machine
 * disturbs both alike. */
int tool_blocks_beside(tool_body one, tool_body other, void *context, int blocks, tool_samples *of_one,
                       tool_samples *of_other);

#endif
