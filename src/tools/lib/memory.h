/* lib/memory.h: what a process costs the machine. */
#ifndef TOOL_MEMORY_H
#define TOOL_MEMORY_H

/* The proportional set size of this process in MB (10^6 bytes): its own pages, and its share of those it shares.
 * Negative when the system does not tell. */
double tool_pss_mb(void);

#endif
