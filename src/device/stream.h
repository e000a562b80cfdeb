/* device/stream.h: the seam to GPUs: work on a stream: enqueued, in its order, never waiting for the device; captured
 * when the stream is. Addresses on PEs are those that `locate` gave (device/memory.h), or of the host window; `dest`
 * and `source` of collectives are symmetric. Any thread. */
#ifndef WEFTI_DEVICE_STREAM_H
#define WEFTI_DEVICE_STREAM_H

#include "device/access.h"
#include "weft/device/dev.h"
#include "weft/stream.h"

/* A put of `bytes` bytes, then a signal. */
typedef struct wefti_device_signal {
    void *dest; /* symmetric */
    const void *source;
    size_t bytes;
    uint64_t *signal; /* symmetric */
    uint64_t value;
    weft_signal_op op;
    int pe;
} wefti_device_signal;

/* Elements that lie apart. The one of dest and source that is on `pe` is the address that `locate`
 * gave or, when pe is far, the symmetric address. */
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

/* Blocks that share a collective on a stream, at most: a team has a channel for each. */
#define WEFTI_DEVICE_BLOCKS_MAX 24
/* The most bytes of a reduction's dest that members hand on (WEFTI_WAY_FORWARD): its parts each need a slot, and what a
 * team of few members has for slots is enough for so many. A broadcast takes several steps instead. */
#define WEFTI_DEVICE_FORWARD_BYTES ((size_t)512 << 10)

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

typedef struct wefti_device_stream_ops {
    /* Before the first collective on a stream: load what only those need. May be repeated; never in a capture. */
    weft_status (*ready)(wefti_device *device);
    weft_status (*is_capturing)(wefti_device *device, weft_stream *stream, int *is_capturing);
    weft_status (*copy)(wefti_device *device, void *to, const void *from, size_t bytes, weft_stream *stream);
    weft_status (*store)(wefti_device *device, void *at, uint64_t value, int bits, weft_stream *stream);
    /* `old`: memory that the device reaches, or NULL. */
    weft_status (*amo)(wefti_device *device, wefti_amo_op op, int bits, void *at, uint64_t value, uint64_t cond,
                       void *old, weft_stream *stream);
    /* dest_at: where `pe` has signal->dest. */
    weft_status (*signal)(wefti_device *device, const wefti_device_signal *signal, void *dest_at, weft_stream *stream);
    weft_status (*wait)(wefti_device *device, const void *variable, wefti_word_kind kind, weft_cmp cmp, uint64_t value,
                        weft_stream *stream);
    weft_status (*strided)(wefti_device *device, const wefti_device_strided *strided, weft_stream *stream);
    weft_status (*far)(wefti_device *device, const wefti_device_request *request, weft_stream *stream);
    /* Hold the stream until what kernels have asked of far PEs has taken effect. */
    weft_status (*quiet)(wefti_device *device, weft_stream *stream);
    weft_status (*sync)(wefti_device *device, const weft_dev_team *team, weft_stream *stream);
    weft_status (*coll)(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll,
                        weft_stream *stream);
} wefti_device_stream_ops;

#endif
