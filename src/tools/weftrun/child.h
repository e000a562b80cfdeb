/* tools/weftrun/child.h: one PE's process. */
#ifndef WEFTRUN_CHILD_H
#define WEFTRUN_CHILD_H

#include <sys/types.h>

#include "tools/weftrun/options.h"

/* What all children have in common. */
typedef struct run_child_setting {
    const run_options *options;
    char job[160]; /* WEFT_LOCAL_JOB */
    int trouble; /* a pipe: an errno is written to it when the program cannot be started */
    int input; /* PE 0's standard input; -1: weftrun's */
    long files_max; /* the limit on open files as weftrun found it */
} run_child_setting;

typedef struct run_child {
    pid_t pid;
    int pidfd; /* -1: it has ended */
    int output; /* reading ends of pipes, which do not block; -1 with --raw */
    int error;
    int wait_status; /* once it has ended */
} run_child;

/* Start PE `pe`: in a process group of its own, and killed if weftrun dies. Returns 0 and sets errno on failure. */
int run_child_start(run_child *child, const run_child_setting *setting, int pe);

#endif
