/* lib/gpu.h: one PE's GPU, for a measuring tool: a stream, memory, events, graphs and the kernels of lib/kernels.h, by
 * the driver, loaded when it is first needed. A tool needs no CUDA to be built. A call that fails
 * prints why on standard error; WEFT_ERR_UNSUPPORTED, this driver cannot do it, is returned without a line. */
#ifndef TOOL_GPU_H
#define TOOL_GPU_H

#include <stddef.h>

#include "weft.h"
#include "weft/stream_type.h"

typedef struct tool_gpu tool_gpu;

/* The GPUs of this machine; 0 without a driver. Call it first, before there are threads. */
int tool_gpu_count(void);

/* GPU `number` of this process, its context current in this thread, and a stream of the greatest priority. */
weft_status tool_gpu_open(int number, tool_gpu **gpu);
void tool_gpu_close(tool_gpu *gpu); /* NULL is allowed */
weft_stream *tool_gpu_stream(const tool_gpu *gpu);
int tool_gpu_multiprocessors(const tool_gpu *gpu);
size_t tool_gpu_cache_bytes(const tool_gpu *gpu); /* of the L2 cache */

weft_status tool_gpu_malloc(tool_gpu *gpu, size_t bytes, void **at);
weft_status tool_gpu_free(tool_gpu *gpu, void *at);
/* Memory of the host that kernels write, too. */
weft_status tool_gpu_host_malloc(tool_gpu *gpu, size_t bytes, void **at);
weft_status tool_gpu_host_free(tool_gpu *gpu, void *at);
weft_status tool_gpu_free_bytes(tool_gpu *gpu, size_t *bytes);

/* Copy between any memories, complete on return; set bytes, and wait for the stream, in stream order. */
weft_status tool_gpu_copy(tool_gpu *gpu, void *to, const void *from, size_t bytes);
weft_status tool_gpu_fill(tool_gpu *gpu, void *at, unsigned char value, size_t bytes);
weft_status tool_gpu_synchronise(tool_gpu *gpu);

/* A second stream, whose calls come behind those that the first has had and run beside its next ones; then the first
 * goes on behind both. Also while the first is captured. UNSUPPORTED: the driver has no such events. */
weft_status tool_gpu_fork(tool_gpu *gpu, weft_stream **beside);
weft_status tool_gpu_join(tool_gpu *gpu);

/* Mark the stream where a time begins and where it ends, also while it is captured; then, after the stream has been
 * waited for, the time between. */
weft_status tool_gpu_begin(tool_gpu *gpu);
weft_status tool_gpu_end(tool_gpu *gpu);
weft_status tool_gpu_elapsed(tool_gpu *gpu, double *us);

/* What the stream is given between begin and end becomes a graph. End always ends the capture. */
weft_status tool_gpu_capture_begin(tool_gpu *gpu);
weft_status tool_gpu_capture_end(tool_gpu *gpu, void **graph);
weft_status tool_gpu_graph_launch(tool_gpu *gpu, void *graph);
void tool_gpu_graph_free(tool_gpu *gpu, void *graph); /* NULL is allowed */

/* Find a kernel, load it and allow it `shared_bytes` of shared memory; then launch it with one struct. find gives
 * WEFT_ERR_UNSUPPORTED when there is no such kernel. */
weft_status tool_gpu_kernel(tool_gpu *gpu, const char *name, unsigned shared_bytes, void **kernel);
weft_status tool_gpu_launch(tool_gpu *gpu, void *kernel, int blocks, int threads, unsigned shared_bytes,
                            const void *args);
/* One block on the second stream, between fork and join. */
weft_status tool_gpu_launch_beside(tool_gpu *gpu, void *kernel, int threads, const void *args);

#endif
