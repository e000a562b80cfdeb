/* testing/fake_driver/libcuda.h: what the files of the fake CUDA driver share.
 *
 * It is a driver whose devices are this machine's memory: what src/cuda asks of libcuda.so.1, and no more. For tests
 * without a GPU: device memory is memory files, so that exporting, importing, mapping and copying are real; a launched
 * kernel is a function of one thread, or, of expert parallelism, a grid (grid.h). Two devices (WEFT_FAKE_GPUS) of 132
 * multiprocessors (WEFT_FAKE_SMS) and 1 GiB a process (WEFT_FAKE_GIB), one context each, of compute capability 9
 * (WEFT_FAKE_CAPABILITY). WEFT_FAKE_MPS: processes share the GPUs of that name by MPS. Fabric handles are those of
 * fabric.h. */
#ifndef WEFTI_FAKE_LIBCUDA_H
#define WEFTI_FAKE_LIBCUDA_H

#include <cuda.h>
#include <stddef.h>

#define FAKE __attribute__((visibility("default")))

/* devices.c: with WEFT_FAKE_CONTEXTS, whether the calling thread has a current context, without which drivers neither
 * copy, fill nor allocate; else 1, since tests do so anywhere. */
int fake_has_context(void);
/* Take so many bytes of a device's memory; 0: it has less left. Device -1: memory of another process, which counts
 * it. */
int fake_memory_take(CUdevice device, size_t bytes);
void fake_memory_give(CUdevice device, size_t bytes);
int fake_has_fabric_handles(void);
/* Count that the calling thread has waited for a stream, or allocated or freed memory. */
void fake_count_wait_or_take(void);

/* memory.c: whether memory lies in one registration or in none: the driver refuses to copy any other. */
int fake_is_one_registration(CUdeviceptr first, size_t bytes);

/* streams.c: wait for the time that WEFT_FAKE_DELAY_US gives. */
void fake_be_slow(void);
/* graphs.c: whether what the thread does is captured; have it done again at each launch of the graph, by run(args): so
 * many bytes, which the caller fills in. */
int fake_is_recorded(void);
void *fake_record(void (*run)(const void *args), size_t bytes);
/* Until no memory is being given back, as a driver may that has one lock for it and copies (WEFT_FAKE_FREE_WAITS). */
void fake_wait_for_freeing(void);

/* Do the copies of a stream that WEFT_FAKE_LATE has put off. */
void fake_catch_up(CUstream stream);

#endif
