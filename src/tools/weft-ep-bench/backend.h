/* weft-ep-bench/backend.h: where the arrays of a trial lie, how a call is timed, and what its bytes cost at least. One
 * file a backend: host.c, device.c. */
#ifndef WEFT_EP_BENCH_BACKEND_H
#define WEFT_EP_BENCH_BACKEND_H

#include "tools/lib/gpu.h"
#include "weft.h"
#include "weft_ep.h"

typedef struct bench_backend bench_backend;

/* Collective where it says so. Statuses are WEFT_OK or what a call of the library gave. */
typedef struct bench_backend_ops {
    /* Memory: symmetric (collective), which ranks write in place, or plain. */
    weft_status (*alloc)(bench_backend *backend, size_t bytes, int is_symmetric, void **at);
    weft_status (*free)(bench_backend *backend, void *at, int is_symmetric);
    /* Copy from the host to the backend's memory, and back; set bytes there. Complete on return. */
    weft_status (*write)(bench_backend *backend, void *there, const void *here, size_t bytes);
    weft_status (*read)(bench_backend *backend, void *here, const void *there, size_t bytes);
    weft_status (*fill)(bench_backend *backend, void *at, unsigned char value, size_t bytes);
    /* Wait for what calls began; then a fault that they met. */
    weft_status (*finish)(bench_backend *backend);
    /* Run `call` `warmup` + `repeats` times, each beginning when all PEs are in step, and say how long this PE took
     * each time after the warm-up, in us. Collective. */
    weft_status (*time)(bench_backend *backend, weft_status (*call)(void *context), void *context, int warmup,
                        int repeats, double *us);
    /* How long `bytes` bytes take from each PE to the others, all at once, without any protocol; sms as in a plan.
     * us: `repeats` samples. Collective, with two PEs or more. */
    weft_status (*floor)(bench_backend *backend, size_t bytes, int sms, int repeats, double *us);
} bench_backend_ops;

struct bench_backend {
    const bench_backend_ops *ops;
    weft_world *world;
    int on_device; /* as in weft_ep_config */
    weft_stream *stream; /* what calls are made on */
    tool_gpu *gpu; /* from here on: device.c's */
    void *flush; /* written before each call, so that caches hold nothing of use */
    size_t flush_bytes;
    int rate_sms; /* the multiprocessors for which `rate` was measured; -1: none */
    double rate; /* bytes a us out of each GPU when all store to all others */
};

/* Collective. Returns 0, or 1 after saying what failed. Close also after that. */
int bench_host_open(bench_backend *backend, weft_world *world);
int bench_device_open(bench_backend *backend, weft_world *world, int is_threads);
void bench_backend_close(bench_backend *backend);

#endif
