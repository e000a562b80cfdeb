/* support/crew.h: PEs as processes of a cmocka test, with the environment that weftrun gives, which report through a
 * pipe. */
#ifndef SUPPORT_CREW_H
#define SUPPORT_CREW_H

#include <stdint.h>
#include <sys/types.h>

#include "weft/status.h"

#define CREW_PES_MAX 128

/* What a PE says. */
typedef struct crew_report {
    int pe;
    int is_end; /* else: it is on its way */
    weft_status status;
    uint64_t ns; /* how long the call took */
    char text[512]; /* the last error */
} crew_report;

typedef struct crew {
    int pes;
    int pipe[2];
    char job[128];
    pid_t pids[CREW_PES_MAX];
} crew;

/* Start `pes` processes, each of which runs body(crew, pe, context) and ends. */
void crew_start(crew *c, int pes, uint64_t *random, void (*body)(const crew *c, int pe, void *context), void *context);

/* A PE's report of a call that began at start_ns. */
void crew_tell(const crew *c, int pe, int is_end, weft_status status, uint64_t start_ns);

/* Read the next report; 0 when none comes until the monotonic time until_ns. */
int crew_hear(const crew *c, crew_report *report, uint64_t until_ns);

/* How long after its deadline a PE may return: a second, more on a loaded machine. */
uint64_t crew_late_ns(void);

/* A port of this host that nobody has, for PE 0 to listen at. */
unsigned crew_free_port(void);

/* Kill and collect all of them. */
void crew_end(crew *c);

#endif
