/* weft-perf/options.h: the command line of weft-perf, and the cases of its sweep. */
#ifndef WEFT_PERF_OPTIONS_H
#define WEFT_PERF_OPTIONS_H

#include "tools/lib/options.h"
#include "tools/weft-perf/case.h"

typedef enum perf_memory { PERF_MEMORY_HOST, PERF_MEMORY_DEVICE, PERF_MEMORIES } perf_memory;

typedef struct perf_options {
    tool_list ops;
    tool_list scopes;
    tool_list bytes; /* empty: sizes that suit the operation */
    tool_list dtypes;
    tool_list reductions;
    tool_list pes; /* empty: all */
    tool_list patterns;
    tool_list blocks;
    tool_list block_threads; /* empty: as suits the operation */
    tool_list memories; /* one; empty: by the scopes */
    int on_device;
    int calls; /* 0: as suits the case */
    int rounds;
    int warmup;
    int threads; /* 0: PEs are processes */
    int no_check;
    const char *json; /* NULL: none */
    const char *machine;
} perf_options;

/* TOOL_GO_ON, or the program's exit status: help has been printed, or what is wrong. */
int perf_options_parse(perf_options *options, int argc, char **argv);

/* Go through the cases of a sweep with so many PEs: set *place to 0, then call next until it returns 0. A parameter
 * that an operation does not have does not multiply its cases. */
int perf_next_case(const perf_options *options, int pes, long *place, perf_case *c);

#endif
