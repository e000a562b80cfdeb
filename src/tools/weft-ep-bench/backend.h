/* weft-ep-bench/backend.h: where the arrays of a trial lie and how a call is timed. One file a backend; host.c has the one
 * for calls that run inline. Another for GPUs would allocate from the device heap, enqueue on its stream, and time a graph
 * between two events. */
#ifndef WEFT_EP_BENCH_BACKEND_H
#define WEFT_EP_BENCH_BACKEND_H

#include "weft.h"
#include "weft_ep.h"

typedef struct bench_backend {
    int on_device; /* as in weft_ep_config */
    weft_stream *stream; /* what calls are made on */
    /* Symmetric memory at the same offset on all PEs; collective. */
    weft_status (*alloc)(weft_world *world, size_t bytes, void **at);
    weft_status (*free)(weft_world *world, void *at);
    /* Copy from the host to the backend's memory, and back. */
    weft_status (*write)(void *there, const void *here, size_t bytes);
    weft_status (*read)(void *here, const void *there, size_t bytes);
    /* Run `call` once, beginning when all PEs are in step, and say how long this PE took, in us. Collective. */
    weft_status (*time)(weft_world *world, weft_status (*call)(void *context), void *context, double *us);
} bench_backend;

extern const bench_backend bench_host;

#endif
