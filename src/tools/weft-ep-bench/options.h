/* weft-ep-bench/options.h: the command line of weft-ep-bench. */
#ifndef WEFT_EP_BENCH_OPTIONS_H
#define WEFT_EP_BENCH_OPTIONS_H

#include <stdint.h>

#include "tools/weft-ep-bench/shape.h"

#define BENCH_GO_ON (-1)
#define BENCH_LIST_MAX 32

/* The values of one parameter that a sweep goes through. */
typedef struct bench_list {
    int count;
    int values[BENCH_LIST_MAX];
} bench_list;

typedef struct bench_options {
    bench_list tokens;
    bench_list hidden;
    bench_list topk;
    bench_list experts;
    bench_list dtypes;
    bench_list layouts;
    bench_list skews;
    bench_list routings;
    bench_list modes;
    int backward; /* time the backward calls as well */
    int alignment; /* of expert-major */
    int repeats;
    int warmup;
    int threads; /* 0: PEs are processes */
    int check;
    uint64_t seed;
    const char *json; /* NULL: none */
    const char *plot;
    const char *machine;
} bench_options;

/* BENCH_GO_ON, or the program's exit status: help has been printed, or what is wrong. */
int bench_options_parse(bench_options *options, int argc, char **argv);

/* How many shapes the sweep has, and the i-th: every combination. */
int bench_options_shapes(const bench_options *options);
bench_shape bench_options_shape(const bench_options *options, int i);

#endif
