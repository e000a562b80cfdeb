/* device/device.h: the seam to GPUs: a PE's second symmetric heap, in device memory, and what moves bytes of it from
 * the host. One backend, src/cuda; a build without it has none, and then nothing here is called.
 *
 * The core keeps the records of blocks and decides arguments; the backend owns memory, mappings, contexts and streams.
 * Addresses are this PE's unless a PE is named. Functions that return a status have decided the error. */
#ifndef WEFTI_DEVICE_DEVICE_H
#define WEFTI_DEVICE_DEVICE_H

#include "device/budget.h"
#include "device/launch.h"
#include "device/memory.h"
#include "device/stream.h"
#include "heap/blocks.h"
#include "os/os.h"

typedef struct wefti_device_ops {
    const char *name;
    const wefti_device_memory_ops *memory;
    const wefti_device_stream_ops *stream;
    const wefti_device_launch_ops *launch;
    const wefti_device_budget_ops *budget;
    /* Make the device heap of this world. Collective over `team`, the world's, in the calling thread; blocks at most
     * the deadline. `config` is complete (no zero sizes that the environment fills). On failure, which is the same on
     * all PEs, nothing is left behind on any. On success *device belongs to the world until detach. */
    weft_status (*attach)(weft_team *team, const weft_device_config *config, wefti_device **device);
    /* Once; local, never waits for peers. Everything of this PE goes; memory that PEs of this process still map stays
     * until the last of them leaves. */
    void (*detach)(wefti_device *device);
    void (*query)(const wefti_device *device, weft_device_info *info);
    void (*fill_dev)(const wefti_device *device, weft_dev *dev);
    weft_status (*set_deadline)(wefti_device *device, uint64_t deadline_ns);
    /* The PCI address of the GPU that attach with this config would take: domain:bus:device.function; 0: not known.
     * `config` NULL, a PE that will perhaps attach one: the GPU of the calling thread, where the process uses GPUs
     * already. Local; before there is a world. */
    int (*find_pci)(const weft_device_config *config, char *text, int bytes);
} wefti_device_ops;

/* What every backend's device begins with. */
struct wefti_device {
    const wefti_device_ops *ops;
    unsigned char *heap; /* this PE's, as kernels and peers of this process address it */
    uint64_t heap_bytes; /* backed by memory */
    uint64_t heap_max_bytes;
    uint32_t far_count; /* PEs of the world of whose memory a proxy reaches some, or all */
    weft_device_claims claims; /* as the config says */
    uint32_t abroad_count; /* of these the PEs whose device memory is mapped, and whose host heap is not */
    wefti_os_monitor *lock; /* of what follows */
    wefti_blocks blocks;
    int is_taken; /* by a call of a team that this PE is in: see team/retry.c */
};

/* The backend of this build, or NULL. */
extern const wefti_device_ops *const wefti_device_backend;

#endif
