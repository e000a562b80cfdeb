/* support/pes.h: the PEs of a world as threads of this process. What goes wrong counts as a failed check. */
#ifndef SUPPORT_PES_H
#define SUPPORT_PES_H

#include "weft.h"

#define PES_MAX 80
#define PES_HEAP_MAX_BYTES ((size_t)16 << 20)

/* Run body(pe, context) in `pes` threads and join them. In each, check_as_pe(pe) has been called. */
void pes_each(int pes, void (*body)(int pe, void *context), void *context);

/* A config for PE `pe` of `pes` at this meeting point: heaps of at most PES_HEAP_MAX_BYTES, a deadline of 30 s. */
weft_world_config pes_config(weft_threads *threads, int pe, int pes);

weft_threads *pes_meeting(int pes);

/* From now on the waits of this PE have this deadline; returns the one before. A world is created with a long one,
 * in which slow PEs arrive; a short one is for calls to which a PE certainly does not come. */
uint64_t pes_set_deadline(weft_world *world, uint64_t deadline_ns);

/* Return when `wanted` threads, which share *arrived, have called: what they begin together then begins at once. */
void pes_gather(int *arrived, int wanted);

/* What became of one PE's creation. */
typedef struct pes_outcome {
    weft_world *world; /* NULL unless the status is WEFT_OK */
    weft_status status;
    char text[512]; /* the last error if it failed */
    uint64_t ns; /* how long the call took */
} pes_outcome;

/* Create `pes` PEs with these configs, each in a thread of its own. */
void pes_create(const weft_world_config *configs, int pes, pes_outcome *outcomes);

/* Create a world of `pes` PEs at a new meeting point; all must succeed. */
void pes_create_world(int pes, weft_world **worlds);
void pes_create_world_of(int pes, size_t heap_max_bytes, weft_world **worlds);
void pes_destroy_world(int pes, weft_world **worlds);

/* Run body(worlds[pe], context) in one thread a PE. */
void pes_run_in(int pes, weft_world **worlds, void (*body)(weft_world *world, void *context), void *context);

/* Create a world of `pes` PEs, run the body on each, destroy it. */
void pes_run(int pes, void (*body)(weft_world *world, void *context), void *context);

#endif
