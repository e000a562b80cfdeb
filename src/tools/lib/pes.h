/* lib/pes.h: the PEs of a measuring tool: processes that weftrun started, or threads. */
#ifndef TOOL_PES_H
#define TOOL_PES_H

#include "weft.h"

/* Print what failed on this PE; returns whether it did. */
int tool_failed(weft_status status, const char *what);

/* Run body(world, context) on every PE; `threads` of them in this process, or, if 0, this process alone is one.
 * `config` has what is not about who meets. Returns the exit status: 1 when a body did not return 0. */
int tool_pes_run(const weft_world_config *config, int threads, int (*body)(weft_world *world, void *context),
                 void *context);

#endif
