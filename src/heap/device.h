/* heap/device.h: the seam to GPUs: a PE's second symmetric heap, in device memory, and what moves bytes of it from the
 * host. One backend, src/cuda; a build without it has none, and then nothing here is called.
 *
 * The core keeps the records of blocks and decides arguments; the backend owns memory, mappings, contexts and streams.
 * Addresses are this PE's unless a PE is named. Functions that return a status have decided the error. */
#ifndef WEFTI_HEAP_DEVICE_H
#define WEFTI_HEAP_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "heap/blocks.h"
#include "os/os.h"
#include "weft/device.h"
#include "weft/protocol/wait.h"
#include "weft/stream.h"

typedef struct wefti_device wefti_device;

/* A signal, after `bytes` bytes. */
typedef struct wefti_device_signal {
    void *dest; /* symmetric */
    const void *source;
    size_t bytes;
    uint64_t *signal; /* symmetric */
    uint64_t value;
    weft_signal_op op;
    int pe;
} wefti_device_signal;

typedef enum wefti_device_request_kind {
    WEFTI_DEVICE_PUT,
    WEFTI_DEVICE_GET,
    WEFTI_DEVICE_AMO,
    WEFTI_DEVICE_STORE, /* of `value`, `bits` bits: on streams only */
} wefti_device_request_kind;

/* An access to a far PE; what its kind does not need is zero. */
typedef struct wefti_device_request {
    wefti_device_request_kind kind;
    int pe;
    void *address; /* symmetric, checked: on `pe`, if it is there, too */
    const void *local; /* PUT: source; GET: dest */
    size_t bytes;
    wefti_amo_op op;
    int bits;
    uint64_t value;
    uint64_t cond;
    void *old; /* AMO: gets the value before, of 64 bits (on a stream: of `bits`); NULL: not wanted */
} wefti_device_request;

/* Elements that lie apart. What of dest and source is on `pe`: where `locate` gave it, or, when pe is far, symmetric. */
typedef struct wefti_device_strided {
    int is_get;
    int is_far;
    int pe;
    void *dest;
    const void *source;
    size_t dest_step; /* bytes from one element to the next */
    size_t source_step;
    size_t count;
    size_t element; /* bytes of one */
} wefti_device_strided;

typedef enum wefti_device_coll_kind {
    WEFTI_DEVICE_BROADCAST,
    WEFTI_DEVICE_FCOLLECT,
    WEFTI_DEVICE_COLLECT,
    WEFTI_DEVICE_ALLTOALL,
    WEFTI_DEVICE_ALLTOALLV,
    WEFTI_DEVICE_REDUCE,
    WEFTI_DEVICE_REDUCE_SCATTER
} wefti_device_coll_kind;

/* A collective; what its kind does not need is zero. */
typedef struct wefti_device_coll {
    wefti_device_coll_kind kind;
    const weft_team *team;
    void *dest;
    const void *source;
    size_t bytes; /* of a block; of dest for reductions */
    int root;
    weft_dtype dtype;
    weft_op op;
    const uint64_t *receive_offsets; /* alltoallv: read by the kernel */
    const uint64_t *send_offsets;
    const uint64_t *send_bytes;
    int blocks_max; /* multiprocessors that the team has claimed, equal on all members */
} wefti_device_coll;

typedef struct wefti_device_ops {
    const char *name;
    /* Make the device heap of this world. Collective over `team`, the world's, in the calling thread; blocks at most the
     * deadline. `config` is complete (no zero sizes that the environment fills). On failure, which is the same on all
     * PEs, nothing is left behind on any. On success *device belongs to the world until detach. */
    weft_status (*attach)(weft_team *team, const weft_device_config *config, wefti_device **device);
    /* Once; local, never waits for peers. Everything of this PE goes; memory that PEs of this process still map stays
     * until the last of them leaves. */
    void (*detach)(wefti_device *device);
    /* The host window of a process ends: free what hangs on its `device`. */
    void (*window_free)(void *shared);
    /* Bytes of the heap that have memory on this PE and, of the near members of `team`, are mapped here. Any thread. */
    uint64_t (*backed)(const wefti_device *device, const weft_team *team);
    /* Back the heap up to `end` <= max_bytes on all members and map it where one reaches another; advances
     * device->heap_bytes. Collective over `team`, which has the devices of its members (wefti_team_device_take).
     * WEFT_ERR_MEMORY and others on all members alike; then nothing has changed, unless the team is dead. */
    weft_status (*grow)(wefti_device *device, weft_team *team, const char *call, uint64_t end);
    /* Make user memory symmetric, and end that. Collective over the world's team, which has the devices. */
    weft_status (*enrol)(wefti_device *device, weft_team *team, void *address, size_t bytes);
    weft_status (*expel)(wefti_device *device, weft_team *team, void *address);
    /* New host memory has been reserved by this PE and perhaps others: let kernels reach it. Local. */
    weft_status (*host_grown)(wefti_device *device);

    /* Where PE `pe`, in range, has the byte at `address`, of the heap or enrolled; 0 when address is neither or pe is not
     * reached. *left gets the bytes from there to the end of its object. Any thread; does not block. */
    uintptr_t (*locate)(const wefti_device *device, const void *address, int pe, uint64_t *left);
    /* Copy between device addresses that `locate` gave and any memory of this process, host or device. Complete, and
     * visible to all, on return. Any thread, several at once. Must not be called while the thread captures a stream. */
    weft_status (*copy)(wefti_device *device, void *to, const void *from, size_t bytes);
    /* Atomic on a word that `locate` gave, against kernels and other calls of this; release and acquire. *old gets the
     * value before. Otherwise as copy. */
    weft_status (*amo)(wefti_device *device, wefti_amo_op op, int bits, void *word, uint64_t value, uint64_t cond,
                       uint64_t *old);
    /* Clear `bytes` bytes of this PE's own device memory. As copy. */
    weft_status (*clear)(wefti_device *device, void *address, size_t bytes);

    /* Whether `pe`, in range, is far: its memory, also that of the host heap, is reached by a proxy and not by `locate`. */
    int (*is_far)(const wefti_device *device, int pe);
    /* Access a far PE; complete on return. Any thread; as copy, and blocks at most the deadline. */
    weft_status (*far)(wefti_device *device, const wefti_device_request *request);
    /* Wait until what kernels that have ended, of this PE, asked of far PEs has taken effect. Any thread; blocks at most the
     * deadline. Only where far_count is not 0. */
    weft_status (*quiet)(wefti_device *device);

    void (*query)(const wefti_device *device, weft_device_info *info);
    void (*fill_dev)(const wefti_device *device, weft_dev *dev);
    weft_status (*set_deadline)(wefti_device *device, uint64_t deadline_ns);
    weft_status (*sms_take)(wefti_device *device, int sms);
    /* Claim this PE's part of what is free, at most `most`; returns how many, 0 when none is free. */
    int (*sms_take_part)(wefti_device *device, int most);
    void (*sms_give)(wefti_device *device, int sms);
    int (*sms_free)(const wefti_device *device);
    /* Blocks of a user's kernel that one multiprocessor runs at the same time, and the multiprocessors of the GPU. Any
     * thread. */
    weft_status (*occupancy)(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                             int *blocks_per_sm, int *sms);
    /* A cooperative launch of launch->blocks blocks. Any thread. */
    weft_status (*launch)(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                          void *const *arguments, weft_stream *stream);

    /* On a stream: enqueued, in its order, never waiting for the device; captured when the stream is. `at` and `signal`
     * are addresses that `locate` gave, or of the host window; `dest` and `source` of collectives are symmetric. Any
     * thread. `old`: memory that the device reaches, or NULL. */
    /* Before the first collective on a stream: load what only those need. May be repeated; never in a capture. */
    weft_status (*stream_ready)(wefti_device *device);
    weft_status (*stream_is_capturing)(wefti_device *device, weft_stream *stream, int *is_capturing);
    weft_status (*stream_copy)(wefti_device *device, void *to, const void *from, size_t bytes, weft_stream *stream);
    weft_status (*stream_store)(wefti_device *device, void *at, uint64_t value, int bits, weft_stream *stream);
    weft_status (*stream_amo)(wefti_device *device, wefti_amo_op op, int bits, void *at, uint64_t value, uint64_t cond,
                              void *old, weft_stream *stream);
    /* dest_at: where `pe` has signal->dest. */
    weft_status (*stream_signal)(wefti_device *device, const wefti_device_signal *signal, void *dest_at,
                                 weft_stream *stream);
    weft_status (*stream_wait)(wefti_device *device, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                               uint64_t value, weft_stream *stream);
    weft_status (*stream_strided)(wefti_device *device, const wefti_device_strided *strided, weft_stream *stream);
    weft_status (*stream_far)(wefti_device *device, const wefti_device_request *request, weft_stream *stream);
    /* Hold the stream until what kernels have asked of far PEs has taken effect. */
    weft_status (*stream_quiet)(wefti_device *device, weft_stream *stream);
    weft_status (*stream_sync)(wefti_device *device, const weft_dev_team *team, weft_stream *stream);
    weft_status (*stream_coll)(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll,
                               weft_stream *stream);
} wefti_device_ops;

/* What every backend's device begins with. */
struct wefti_device {
    const wefti_device_ops *ops;
    unsigned char *heap; /* this PE's, as kernels and peers of this process address it */
    uint64_t heap_bytes; /* backed by memory */
    uint64_t heap_max_bytes;
    uint32_t far_count; /* PEs of the world whose memory a proxy reaches */
    wefti_os_monitor *lock; /* of what follows */
    wefti_blocks blocks;
    int is_taken; /* by a call of a team that this PE is in: see team/turn.c */
};

/* The backend of this build, or NULL. */
extern const wefti_device_ops *const wefti_device_backend;

#endif
