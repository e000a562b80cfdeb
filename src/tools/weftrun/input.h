/* tools/weftrun/input.h: standard input for PE 0.
 *
 * PE 0 inherits it, unless it is a terminal: PEs have process groups of their own, and only the terminal's foreground
 * group may read from it. Then weftrun reads, and passes it on through a pipe. */
#ifndef WEFTRUN_INPUT_H
#define WEFTRUN_INPUT_H

#include <poll.h>
#include <stddef.h>

typedef struct run_input {
    int to; /* the writing end of PE 0's pipe; -1: none, or at an end */
    char bytes[4096];
    size_t first;
    size_t end;
} run_input;

/* *pes_end becomes what PE 0 is to read, -1 if it inherits. Returns 0 and sets errno on failure. */
int run_input_init(run_input *input, int *pes_end);
/* PE 0 runs: its end is closed here. */
void run_input_started(run_input *input, int pes_end);
void run_input_fini(run_input *input);
/* Fill in what to wait for: something to read, and space to write it. */
void run_input_watch(const run_input *input, struct pollfd *readable, struct pollfd *writable);
void run_input_move(run_input *input, short readable, short writable);

#endif
