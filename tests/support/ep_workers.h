/* support/ep_workers.h: loops whose rounds do not depend on each other, divided among threads: what a reference works
 * out takes longer than a GPU's call. */
#ifndef SUPPORT_EP_WORKERS_H
#define SUPPORT_EP_WORKERS_H

#include <stddef.h>
#include <stdint.h>

/* How many threads a loop may have: WEFT_TEST_WORKERS, or as set; 1, the beginning: the caller alone. */
extern int ep_workers_wanted;

/* body(context, first, end) for ranges that make up 0 .. count - 1; `each`: how much a round works out, in elements. */
void ep_workers_run(int64_t count, size_t each, void (*body)(void *context, int64_t first, int64_t end), void *context);

#endif
