/* part/memory.h: what a process costs the machine. */
#ifndef PART_MEMORY_H
#define PART_MEMORY_H

/* The proportional set size of this process in MB (10^6 bytes): its own pages, and its share of those it shares.
 * Negative when the system does not tell. */
double bench_pss_mb(void);

#endif
