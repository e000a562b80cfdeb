/* world/timeline.h: the file that WEFT_TRACE names: a timeline in the Chrome trace format, which Perfetto loads.
 *
 * One file holds all PEs of all worlds that name it: each PE keeps its events in memory and inserts them before the end
 * of the file, which is complete JSON at any time, when it has many, once a second, after a failure and when the world
 * ends. A killed PE loses what it has not written. A file that cannot be written is told in the log, once. Events
 * beyond WEFT_TRACE_EVENTS are dropped and their number is written. A world is a process of the timeline, a PE a thread
 * of it; a second thread of a PE has a line of its own. Times are those of the system's monotonic clock, which the PEs
 * of a machine share. */
#ifndef WEFTI_WORLD_TIMELINE_H
#define WEFTI_WORLD_TIMELINE_H

#include <stdint.h>

#include "common/timeline.h"

typedef struct wefti_timeline wefti_timeline;

/* Begin to trace a world that has just been created, if WEFT_TRACE is set, its phases first; and to tell NVIDIA's tools
 * of its calls, if WEFT_NVTX is. A timeline that cannot be had is a warning in the log, and the world is not traced. */
struct wefti_world_settings;
void wefti_timeline_open(weft_world *world, const struct wefti_world_settings *settings);
/* Write what is left. NULL is allowed. */
void wefti_timeline_close(weft_world *world);

/* Remove the timeline of an earlier run; a file that is none is left alone. */
void wefti_timeline_discard(const char *path);

#endif
