/* suite/options.h: what every benchmark takes on its command line. */
#ifndef SUITE_OPTIONS_H
#define SUITE_OPTIONS_H

#include <stdio.h>

#include "tools/lib/options.h"
#include "tools/lib/stats.h"

typedef struct bench_options {
    const char *json; /* --json FILE: append the figures there as JSON lines */
    int blocks; /* --blocks N: samples a figure */
} bench_options;

#define BENCH_OPTIONS_INIT                                                                                             \
    {                                                                                                                  \
        .blocks = 21                                                                                                   \
    }

#define BENCH_OWN_OPTIONS_MAX 8

/* A benchmark's own option with a number. */
#define BENCH_NUMBER(name, at)                                                                                         \
    {                                                                                                                  \
        name, '\0', TOOL_NUMBER, at, 0, 1 << 30, NULL, 0                                                               \
    }

/* Read the command line. `own` are `count` further options of this benchmark. Returns -1 after printing what is wrong,
 * or the options when --help asks for them. */
static inline int bench_options_read(bench_options *options, const tool_option *own, int count, int argc, char **argv)
{
    int wants_help = 0;
    tool_option rows[BENCH_OWN_OPTIONS_MAX + 4] = {
        {"help", 'h', TOOL_FLAG, &wants_help, 0, 0, NULL, 0},
        {"json", '\0', TOOL_TEXT, &options->json, 0, 0, NULL, 0},
        {"blocks", '\0', TOOL_NUMBER, &options->blocks, 1, TOOL_SAMPLES_MAX, NULL, 0},
    };
    for (int i = 0; i < count && i < BENCH_OWN_OPTIONS_MAX; i++) {
        rows[3 + i] = own[i];
    }
    if (tool_options_read(rows, argc, argv) != TOOL_GO_ON) {
        return -1;
    }
    for (const tool_option *row = &rows[1]; wants_help && row->name != NULL; row++) {
        printf("--%s %s\n", row->name, row->kind == TOOL_TEXT ? "FILE" : "N");
    }
    return wants_help ? -1 : 0;
}

#endif
