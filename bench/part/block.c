#include "part/block.h"

#include "part/clock.h"

uint64_t bench_block_count(bench_body body, void *context)
{
    for (uint64_t count = 1;; count *= 2) {
        uint64_t start = bench_now_ns();
        if (body(context, count) != 0) {
            return 0;
        }
        if (bench_now_ns() - start >= BENCH_BLOCK_NS) {
            return count;
        }
    }
}

double bench_block_ns(bench_body body, void *context, uint64_t count)
{
    uint64_t start = bench_now_ns();
    if (body(context, count) != 0) {
        return -1;
    }
    return (double)(bench_now_ns() - start) / (double)count;
}

static int add_block(bench_body body, void *context, uint64_t count, bench_samples *samples)
{
    double ns = bench_block_ns(body, context, count);
    bench_samples_add(samples, ns);
    return ns < 0 ? -1 : 0;
}

int bench_blocks(bench_body body, void *context, int blocks, bench_samples *samples)
{
    uint64_t count = bench_block_count(body, context);
    int failed = count == 0 ? -1 : 0;
    for (int i = 0; i < blocks && failed == 0; i++) {
        failed = add_block(body, context, count, samples);
    }
    return failed;
}

int bench_blocks_beside(bench_body one, bench_body other, void *context, int blocks, bench_samples *of_one,
                        bench_samples *of_other)
{
    uint64_t count_one = bench_block_count(one, context);
    uint64_t count_other = bench_block_count(other, context);
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
