/* sim/meeting.h: what the cases share in which PEs meet over sockets. */
#ifndef SIM_MEETING_H
#define SIM_MEETING_H

#include "os/os.h"
#include "sim/cases.h"

/* Of the job. */
#define MEETING_SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* What the PEs of a run know of each other beside weft: on the board. */
typedef struct meeting {
    weft_uid uid;
    int has_uid;
    int is_over; /* strangers may go */
    int left; /* PEs that have nothing to do any more */
    unsigned char has_failed[64]; /* by PE: it has no world, and says why */
    uint64_t lost_ns; /* when the culprit was lost; 0: not yet */
} meeting;

_Static_assert(sizeof(meeting) <= sizeof((case_run){0}.board), "the board has room");

typedef enum meeting_way { MEETING_LOCAL, MEETING_UID } meeting_way;

/* Which secret a PE has. */
typedef enum meeting_secret { MEETING_RIGHT, MEETING_WRONG } meeting_secret;

meeting *meeting_of(case_run *run);
/* Make or await what a way needs before PEs can meet; on all PEs. Returns the way that is left. */
meeting_way meeting_prepare(case_run *run, meeting_way way);
/* A config for this PE; its uid is written to *uid. */
void meeting_config(case_run *run, meeting_way way, meeting_secret secret, weft_uid *uid, weft_world_config *config);
/* weft_world_create, with the job that belongs to the secret. */
weft_status meeting_create(const weft_world_config *config, meeting_secret secret, weft_world **world);

/* Connections of somebody who does not belong to the world, one after the other, until the meeting is over: silent
 * ones, garbage, halves of a greeting, a wrong one, what came sent back. */
wefti_os_thread *strangers_start(case_run *run);
void strangers_end(wefti_os_thread *thread); /* NULL is allowed */

#endif
