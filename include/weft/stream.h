/* weft/stream.h: one-sided access, synchronisation and collectives on streams.
 *
 * A call enqueues its operation on `stream` (a cudaStream_t or CUstream of this PE's GPU; NULL: its default stream) and
 * returns; it runs after what is on the stream before it and before what comes after. None waits for the device, and
 * all can be captured in CUDA graphs and replayed: what changes from run to run lies in device memory. The world needs
 * a device (weft_device_attach).
 *
 * PEs whose device memory is not mapped here are reached through a thread of the library, the proxy, at the price of
 * its copies (docs/gpus.md); all calls work alike.
 *
 * Symmetric addresses are of the device heap, of registered memory, or of the host heap. Other buffers are any memory
 * that the GPU reaches, and must live until the operation has run.
 *
 * Errors: what can be decided at once is returned (WEFT_ERR_STATE: no device; WEFT_ERR_ARGUMENT, WEFT_ERR_RANGE,
 * WEFT_ERR_UNREACHABLE; WEFT_ERR_SYSTEM: CUDA refused), and nothing was enqueued. What shows when the operation runs (a
 * wait that meets the deadline, an abort) is latched with its culprit: the next blocking call of the world and
 * weft_world_fault report it. Later operations of the stream still run, without waiting.
 *
 * A team is used on one stream at a time; builds with assertions latch WEFT_ERR_STATE when it is on two at once.
 * Kernels that wait must be able to run together: a team claims multiprocessors when its first collective is enqueued
 * (at most 48; half of what is free, divided by this process's PEs on the GPU, at least 1; as many as the member that
 * has fewest) and keeps them until it is destroyed, also when it is dead by then; its operations on streams have run by
 * then. Calls that need a claim return WEFT_ERR_STATE when none are free, unless weft_device_config.claims says
 * otherwise: see weft_device_sms_take. */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "weft/compare.h"
#include "weft/reduce.h"
#include "weft/reduce_op.h"
#include "weft/status.h"
#include "weft/stream_type.h"
#include "weft/team.h"
#include "weft/types.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- put, get, signals, order: one PE calls ---------------------------------------------------------------------- */

/* Copy `bytes` bytes from `source` to `dest` on `pe`, or from `source` on `pe` to `dest`. (OpenSHMEM 1.5, 9.5.) */
WEFT_API weft_status weft_putmem_on_stream(weft_world *world, void *dest, const void *source, size_t bytes, int pe,
                                           weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_getmem_on_stream(weft_world *world, void *dest, const void *source, size_t bytes, int pe,
                                           weft_stream *stream) WEFT_MUST_CHECK;

/* The same of `count` elements of `element_bytes` bytes: element i of `source` is source[i * source_stride], and
 * likewise in `dest`; both strides, in elements, are at least 1. (OpenSHMEM 1.5, 9.5.) */
WEFT_API weft_status weft_iputmem_on_stream(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                            ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe,
                                            weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_igetmem_on_stream(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                            ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe,
                                            weft_stream *stream) WEFT_MUST_CHECK;

/* weft_putmem_on_stream, then update the 64-bit word `signal` on `pe`: who sees the update sees the data, and what the
 * stream did before. bytes may be 0. weft_signal_on_stream: the signal alone. (OpenSHMEM 1.5, 9.8.4.) */
WEFT_API weft_status weft_putmem_signal_on_stream(weft_world *world, void *dest, const void *source, size_t bytes,
                                                  uint64_t *signal, uint64_t value, weft_signal_op op, int pe,
                                                  weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_signal_on_stream(weft_world *world, uint64_t *signal, uint64_t value, weft_signal_op op,
                                           int pe, weft_stream *stream) WEFT_MUST_CHECK;

/* Hold the stream until the local word compares so; the data that came with it is then visible to what follows.
 * (OpenSHMEM 1.5, 9.10.) */
WEFT_API weft_status weft_signal_wait_until_on_stream(weft_world *world, const uint64_t *signal, weft_cmp cmp,
                                                      uint64_t value, weft_stream *stream) WEFT_MUST_CHECK;

/* Order, or complete, the stream's earlier puts and atomics, to every PE, before its later operations. Inside a link
 * domain the stream's own order does so already; beyond it quiet holds the stream until all that this PE's kernels have
 * made so far is done. (OpenSHMEM 1.5, 9.11.) */
WEFT_API weft_status weft_fence_on_stream(weft_world *world, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_quiet_on_stream(weft_world *world, weft_stream *stream) WEFT_MUST_CHECK;

/* For each NAME, TYPE of WEFT_RMA_TYPES, in elements: weft_NAME_put_on_stream, weft_NAME_get_on_stream,
 * weft_NAME_iput_on_stream, weft_NAME_iget_on_stream, weft_NAME_put_signal_on_stream. Of WEFT_WORD_TYPES:
 * weft_NAME_p_on_stream, whose value is fixed by the call, and weft_NAME_g_on_stream, whose `value` is memory that the
 * GPU reaches. */
#define WEFTI_DECLARE_STREAM_RMA(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_##NAME##_put_on_stream(weft_world *world, TYPE *dest, const TYPE *source,             \
                                                        size_t count, int pe, weft_stream *stream);                    \
    WEFT_INLINE weft_status weft_##NAME##_get_on_stream(weft_world *world, TYPE *dest, const TYPE *source,             \
                                                        size_t count, int pe, weft_stream *stream);                    \
    WEFT_INLINE weft_status weft_##NAME##_iput_on_stream(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, \
                                                         int pe, weft_stream *stream);                                 \
    WEFT_INLINE weft_status weft_##NAME##_iget_on_stream(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, \
                                                         int pe, weft_stream *stream);                                 \
    WEFT_INLINE weft_status weft_##NAME##_put_signal_on_stream(weft_world *world, TYPE *dest, const TYPE *source,      \
                                                               size_t count, uint64_t *signal, uint64_t value,         \
                                                               weft_signal_op op, int pe, weft_stream *stream);
WEFT_RMA_TYPES(WEFTI_DECLARE_STREAM_RMA)
#undef WEFTI_DECLARE_STREAM_RMA
#define WEFTI_DECLARE_STREAM_WORD(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_##NAME##_p_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,               \
                                                      weft_stream *stream);                                            \
    WEFT_INLINE weft_status weft_##NAME##_g_on_stream(weft_world *world, const TYPE *source, int pe, TYPE *value,      \
                                                      weft_stream *stream);
WEFT_WORD_TYPES(WEFTI_DECLARE_STREAM_WORD)
#undef WEFTI_DECLARE_STREAM_WORD

/* For each NAME, TYPE of WEFT_INTEGER_TYPES: hold the stream until the local variable compares so. */
#define WEFTI_DECLARE_STREAM_WAIT(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_on_stream(weft_world *world, const TYPE *variable, weft_cmp cmp,  \
                                                               TYPE value, weft_stream *stream);
WEFT_INTEGER_TYPES(WEFTI_DECLARE_STREAM_WAIT)
#undef WEFTI_DECLARE_STREAM_WAIT

/* ---- atomics --------------------------------------------------------------------------------------------------- */

/* As in weft/rma.h, with _on_stream and the stream at the end: weft_NAME_atomic_fetch, set, swap; of integers also
 * compare_swap, add, fetch_add, inc, fetch_inc; and, or, xor, fetch_and, fetch_or, fetch_xor. `value` and `old`, where
 * a value comes back, are memory that the GPU reaches. (OpenSHMEM 1.5, 9.8.) */
#define WEFTI_DECLARE_STREAM_EXTENDED_AMO(NAME, TYPE)                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_on_stream(weft_world *world, const TYPE *source, int pe,        \
                                                                 TYPE *value, weft_stream *stream);                    \
    WEFT_INLINE weft_status weft_##NAME##_atomic_set_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,      \
                                                               weft_stream *stream);                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_swap_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,     \
                                                                TYPE *old, weft_stream *stream);
WEFT_EXTENDED_AMO_TYPES(WEFTI_DECLARE_STREAM_EXTENDED_AMO)
#undef WEFTI_DECLARE_STREAM_EXTENDED_AMO
#define WEFTI_DECLARE_STREAM_STANDARD_AMO(NAME, TYPE)                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_compare_swap_on_stream(                                               \
        weft_world *world, TYPE *dest, TYPE cond, TYPE value, int pe, TYPE *old, weft_stream *stream);                 \
    WEFT_INLINE weft_status weft_##NAME##_atomic_add_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,      \
                                                               weft_stream *stream);                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_add_on_stream(weft_world *world, TYPE *dest, TYPE value,        \
                                                                     int pe, TYPE *old, weft_stream *stream);          \
    WEFT_INLINE weft_status weft_##NAME##_atomic_inc_on_stream(weft_world *world, TYPE *dest, int pe,                  \
                                                               weft_stream *stream);                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_inc_on_stream(weft_world *world, TYPE *dest, int pe, TYPE *old, \
                                                                     weft_stream *stream);
WEFT_INTEGER_TYPES(WEFTI_DECLARE_STREAM_STANDARD_AMO)
#undef WEFTI_DECLARE_STREAM_STANDARD_AMO
#define WEFTI_DECLARE_STREAM_BITWISE_AMO_OP(NAME, TYPE, OP)                                                            \
    WEFT_INLINE weft_status weft_##NAME##_atomic_##OP##_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,   \
                                                                  weft_stream *stream);                                \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_##OP##_on_stream(weft_world *world, TYPE *dest, TYPE value,     \
                                                                        int pe, TYPE *old, weft_stream *stream);
#define WEFTI_DECLARE_STREAM_BITWISE_AMO(NAME, TYPE)                                                                   \
    WEFTI_DECLARE_STREAM_BITWISE_AMO_OP(NAME, TYPE, and)                                                               \
    WEFTI_DECLARE_STREAM_BITWISE_AMO_OP(NAME, TYPE, or)                                                                \
    WEFTI_DECLARE_STREAM_BITWISE_AMO_OP(NAME, TYPE, xor)
WEFT_BITWISE_TYPES(WEFTI_DECLARE_STREAM_BITWISE_AMO)
#undef WEFTI_DECLARE_STREAM_BITWISE_AMO
#undef WEFTI_DECLARE_STREAM_BITWISE_AMO_OP

/* ---- waiting for all ------------------------------------------------------------------------------------------- */

/* Called by every member, in the same order everywhere. Hold the stream until every member's has come so far; after a
 * barrier, and inside a link domain after a sync too, what each stream did before is visible to what follows on all.
 * The first call on a team may block, as weft_team_dev does, and may not be captured. (OpenSHMEM 1.5, 9.9.) */
WEFT_API weft_status weft_sync_on_stream(weft_world *world, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_barrier_on_stream(weft_world *world, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_sync_on_stream(weft_team *team, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_barrier_on_stream(weft_team *team, weft_stream *stream) WEFT_MUST_CHECK;

/* ---- collectives ----------------------------------------------------------------------------------------------- */

/* As in weft/coll.h, in stream order. The first call on a team may block, as weft_team_dev does, and claims
 * multiprocessors; it may not be captured: call weft_team_dev and one collective before a capture, or
 * weft_team_stream_ready. dest may equal source where weft/coll.h says so. */
WEFT_API weft_status weft_broadcastmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                                 int root, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_fcollectmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                                weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_collectmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                               weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_alltoallmem_on_stream(weft_team *team, void *dest, const void *source, size_t bytes,
                                                weft_stream *stream) WEFT_MUST_CHECK;

/* To member j go the send_bytes[j] bytes at source + send_offsets[j]; those of member i come to dest +
 * receive_offsets[i]. The arrays, an entry a member each, are read when the operation runs, from memory that the GPU
 * reaches; they may differ between members and from run to run, and nobody needs to know how much the others send. */
WEFT_API weft_status weft_alltoallvmem_on_stream(weft_team *team, void *dest, const uint64_t *receive_offsets,
                                                 const void *source, const uint64_t *send_offsets,
                                                 const uint64_t *send_bytes, weft_stream *stream) WEFT_MUST_CHECK;

/* dest[k] = source[k] of all members combined in ascending order, the same bits on all and in every run; dest may equal
 * source. weft_reduce_scatter_on_stream: source has count elements a member, dest gets this member's, combined; it may
 * be this member's own block of source. FP16, BF16, E4M3 and E5M2 are combined in float and rounded once. */
WEFT_API weft_status weft_reduce_on_stream(weft_team *team, weft_dtype dtype, weft_op op, void *dest,
                                           const void *source, size_t count, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_reduce_scatter_on_stream(weft_team *team, weft_dtype dtype, weft_op op, void *dest,
                                                   const void *source, size_t count,
                                                   weft_stream *stream) WEFT_MUST_CHECK;

/* Make what collectives of this team on streams need: its words and scratch in device memory, its claim of
 * multiprocessors. Collective over the team; the first collective does it otherwise. Local once done. Never while a
 * stream is being captured. Errors as weft_team_dev's; WEFT_ERR_STATE when no multiprocessor is free. */
WEFT_API weft_status weft_team_stream_ready(weft_team *team) WEFT_MUST_CHECK;

/* For each NAME, TYPE of WEFT_RMA_TYPES, in elements: weft_NAME_broadcast_on_stream, fcollect, collect, alltoall. */
#define WEFTI_DECLARE_STREAM_COLL(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_##NAME##_broadcast_on_stream(weft_team *team, TYPE *dest, const TYPE *source,         \
                                                              size_t count, int root, weft_stream *stream);            \
    WEFT_INLINE weft_status weft_##NAME##_fcollect_on_stream(weft_team *team, TYPE *dest, const TYPE *source,          \
                                                             size_t count, weft_stream *stream);                       \
    WEFT_INLINE weft_status weft_##NAME##_collect_on_stream(weft_team *team, TYPE *dest, const TYPE *source,           \
                                                            size_t count, weft_stream *stream);                        \
    WEFT_INLINE weft_status weft_##NAME##_alltoall_on_stream(weft_team *team, TYPE *dest, const TYPE *source,          \
                                                             size_t count, weft_stream *stream);
WEFT_RMA_TYPES(WEFTI_DECLARE_STREAM_COLL)
#undef WEFTI_DECLARE_STREAM_COLL

/* For each NAME, OP as in weft/coll.h, but long double: weft_NAME_OP_reduce_on_stream, weft_NAME_OP_reduce_scatter_on_
 * stream. */
#define WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, OP)                                                                    \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_on_stream(weft_team *team, TYPE *dest, const TYPE *source,     \
                                                                  size_t count, weft_stream *stream);                  \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_scatter_on_stream(                                             \
        weft_team *team, TYPE *dest, const TYPE *source, size_t count, weft_stream *stream);
#define WEFTI_DECLARE_STREAM_COMPLEX_REDUCE(NAME, TYPE)                                                                \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, sum)                                                                       \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, prod)
#define WEFTI_DECLARE_STREAM_REAL_REDUCE(NAME, TYPE)                                                                   \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, min)                                                                       \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, max)                                                                       \
    WEFTI_DECLARE_STREAM_COMPLEX_REDUCE(NAME, TYPE)
#define WEFTI_DECLARE_STREAM_INTEGER_REDUCE(NAME, TYPE)                                                                \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, and)                                                                       \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, or)                                                                        \
    WEFTI_DECLARE_STREAM_REDUCE(NAME, TYPE, xor)                                                                       \
    WEFTI_DECLARE_STREAM_REAL_REDUCE(NAME, TYPE)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DECLARE_STREAM_INTEGER_REDUCE)
WEFT_FLOAT_TYPES(WEFTI_DECLARE_STREAM_REAL_REDUCE)
WEFT_REDUCE_COMPLEX_TYPES(WEFTI_DECLARE_STREAM_COMPLEX_REDUCE)
#undef WEFTI_DECLARE_STREAM_INTEGER_REDUCE
#undef WEFTI_DECLARE_STREAM_REAL_REDUCE
#undef WEFTI_DECLARE_STREAM_COMPLEX_REDUCE
#undef WEFTI_DECLARE_STREAM_REDUCE

#ifdef __cplusplus
}
#endif

#include "weft/inline/stream.h"

#endif
