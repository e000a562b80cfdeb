#include "tools/lib/block.h"

#include "tools/lib/clock.h"

/* How many repetitions last TOOL_BLOCK_NS; also warms up. 0 when the operation failed. */
static uint64_t block_count(tool_body body, void *context)
{
    for (uint64_t count = 1;; count *= 2) {
        uint64_t start = tool_now_ns();
        if (body(context, count) != 0) {
            return 0;
        }
        if (tool_now_ns() - start >= TOOL_BLOCK_NS) {
            return count;
        }
    }
}

double tool_block_ns(tool_body body, void *context, uint64_t count)
{
    uint64_t start = tool_now_ns();
    if (body(context, count) != 0) {
        return -1;
    }
    return (double)(tool_now_ns() - start) / (double)count;
}

static int add_block(tool_body body, void *context, uint64_t count, tool_samples *samples)
{
    double ns = tool_block_ns(body, context, count);
    tool_samples_add(samples, ns);
    return ns < 0 ? -1 : 0;
}

int tool_blocks(tool_body body, void *context, int blocks, tool_samples *samples)
{
    uint64_t count = block_count(body, context);
    int failed = count == 0 ? -1 : 0;
    for (int i = 0; i < blocks && failed == 0; i++) {
        failed = add_block(body, context, count, samples);
    }
    return failed;
}

int tool_blocks_beside(tool_body one, tool_body other, void *context, int blocks, tool_samples *of_one,
                       tool_samples *of_other)
{
    uint64_t count_one = block_count(one, context);
    uint64_t count_other = block_count(other, context);
    int failed = count_one == 0 || count_other == 0 ? -1 : 0;
    for (int i = 0; i < blocks && failed == 0; i++) {
        if (i % 2 == 0) {
            failed = add_block(one, context, count_one, of_one) | add_block(other, context, count_other, of_other);
        } else {
            failed = add_block(other, context, count_other, of_other) | add_block(one, context, count_one, of_one);
        }
    }
    return failed;
}
