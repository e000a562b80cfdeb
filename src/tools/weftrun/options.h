/* tools/weftrun/options.h: the command line of weftrun. */
#ifndef WEFTRUN_OPTIONS_H
#define WEFTRUN_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef enum run_binding {
    RUN_BIND_SHARES = 0, /* pin if the PEs are a multiple of the cores, and each core gets more than one */
    RUN_BIND,
    RUN_FLOAT
} run_binding;

typedef struct run_options {
    int pes;
    uint64_t timeout_ns; /* 0: none */
    uint64_t kill_after_ns; /* between SIGTERM and SIGKILL */
    int keeps_going;
    run_binding binding;
    int is_plain; /* no prefixes: the PEs' lines as they are */
    int is_raw; /* no prefixes: the PEs write to weftrun's own output */
    char **assignments; /* NAME=VALUE; points into argv */
    size_t assignment_count;
    char **program; /* with its arguments and a NULL at the end; points into argv */
} run_options;

#define RUN_GO_ON (-1)

/* Returns RUN_GO_ON, or the code to exit with: 0 after --help, 2 after an error that it has explained. */
int run_options_parse(run_options *options, int argc, char **argv);
void run_options_fini(run_options *options);

#endif
