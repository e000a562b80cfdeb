/* weft-ep-bench/options.h: the command line of weft-ep-bench. */
#ifndef WEFT_EP_BENCH_OPTIONS_H
#define WEFT_EP_BENCH_OPTIONS_H

#include <stdint.h>

#include "tools/lib/options.h"
#include "tools/weft-ep-bench/sweep_point.h"

typedef struct bench_options {
    tool_list tokens;
    tool_list hidden;
    tool_list topk;
    tool_list experts;
    tool_list dtypes;
    tool_list layouts;
    tool_list skews;
    tool_list routings;
    tool_list modes;
    tool_list buffers;
    tool_list sms;
    int on_device;
    int worst_case; /* limits and buffers for whatever may come, not for what does */
    int backward; /* time the backward calls as well */
    int alignment; /* of expert-major */
    int repeats;
    int warmup;
    int threads; /* 0: PEs are processes */
    int check;
    int beside_memcpy; /* time the same rows by memcpy, in turn */
    int counts; /* time when the host has the counts of new routings */
    int unweighted; /* combine adds rows as they are */
    uint64_t seed;
    const char *json; /* NULL: none */
    const char *machine;
} bench_options;

/* TOOL_GO_ON, or the program's exit status: help has been printed, or what is wrong. */
int bench_options_parse(bench_options *options, int argc, char **argv);

/* How many points the sweep has, and the i-th: every combination. */
long bench_options_points(const bench_options *options);
bench_point bench_options_point(const bench_options *options, long i);

#endif
