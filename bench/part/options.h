/* part/options.h: what every benchmark takes on its command line. */
#ifndef PART_OPTIONS_H
#define PART_OPTIONS_H

typedef struct bench_options {
    const char *json; /* --json FILE: append the figures there as JSON lines */
    int blocks; /* --blocks N: samples a figure */
} bench_options;

#define BENCH_OPTIONS_INIT                                                                                             \
    {                                                                                                                  \
        .blocks = 21                                                                                                   \
    }

/* A benchmark's own option with a number; the value already there is the default. */
typedef struct bench_number {
    const char *name; /* "--tokens" */
    int *value;
} bench_number;

/* Read the command line. `numbers` ends with a NULL name; NULL: none. Prints what is wrong and returns -1. */
int bench_options_read(bench_options *options, const bench_number *numbers, int argc, char **argv);

#endif
