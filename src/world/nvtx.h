/* world/nvtx.h: ranges for NVIDIA's tools (Nsight Systems), with WEFT_NVTX=1: NVTX 3, which is a header. A build
 * without it has no ranges; without a tool that listens a range costs a test. The header keeps the connection to the
 * tool, one a process, in memory of its own. */
#ifndef WEFTI_WORLD_NVTX_H
#define WEFTI_WORLD_NVTX_H

#include <stdint.h>

#include "weft/world.h"

/* The domain "weft", whose ranges a world's calls become; NULL, with a line in the log, where there is none. */
void *wefti_nvtx_open(const weft_world *world);
void wefti_nvtx_close(void *domain); /* NULL is allowed */

/* Ranges of a process: they need not nest. Any thread. */
uint64_t wefti_nvtx_range_start(void *domain, const char *name);
void wefti_nvtx_range_end(void *domain, uint64_t range);

#endif
