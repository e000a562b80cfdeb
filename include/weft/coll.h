/* weft/coll.h: collective operations. (OpenSHMEM 1.5, 9.9.)
 *
 * Called by every member of the team, one collective at a time a team, in the same order everywhere, with equal
 * arguments but for what is said below. The team of all PEs is weft_team_world(world).
 *
 * `dest` and `source` are symmetric; they do not overlap, unless a call says that they may be equal. A member's buffers
 * are touched only between its entry and its return: both may be used again at once, and the next collective may follow
 * without a barrier. A call returns when its own part is done, which does not say that others have come, unless their
 * data is part of what it gives.
 *
 * Errors: WEFT_ERR_ARGUMENT (NULL team, NULL buffer), WEFT_ERR_RANGE (a buffer outside the reserved heap, a root that
 * is no member): decided by each PE for itself, nothing was changed. WEFT_ERR_TIMEOUT names the members that did not
 * come within the deadline; from then on the team is dead and its calls return that status. WEFT_ERR_MISMATCH names a
 * member that made another call or gave another count, root, type or operation, and the team is dead: a message carries
 * 16 bits of those, so that who gets one from such a member knows at once, but for one case in 65536; who gets none
 * knows at the deadline, or, where nothing is awaited from it (a broadcast with two roots), in a later data collective
 * of the team. The first data collective of a team allocates its scratch in the symmetric heap: WEFT_ERR_MEMORY, the
 * same on all members. */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include "weft/reduce.h"
#include "weft/team.h"
#include "weft/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- waiting for all ----------------------------------------------------------------------------------------- */

/* Wait until every member has arrived. No promise about puts. (OpenSHMEM 1.5, 9.9.3 shmem_team_sync.)
 * WEFT_ERR_TIMEOUT names the members that have not arrived; from then on the team is dead and its calls return that
 * status. */
WEFT_API weft_status weft_team_sync(weft_team *team) WEFT_MUST_CHECK;
WEFT_API weft_status weft_sync(weft_world *world) WEFT_MUST_CHECK;

/* weft_quiet, then weft_sync: what every PE put before is visible to every PE after. (OpenSHMEM 1.5, 9.9.1.) */
WEFT_API weft_status weft_barrier(weft_world *world) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_barrier(weft_team *team) WEFT_MUST_CHECK;

/* ---- moving data --------------------------------------------------------------------------------------------- */

/* Copy `bytes` bytes from the root's source to every member's dest, the root's included. source is read on the root
 * only; dest may equal source. (OpenSHMEM 1.5, 9.9.5.) */
WEFT_API weft_status weft_broadcastmem(weft_team *team, void *dest, const void *source, size_t bytes,
                                       int root) WEFT_MUST_CHECK;

/* Concatenate the members' sources, `bytes` bytes each, in the order of the members, into every dest. source may be
 * this member's own place in dest. (OpenSHMEM 1.5, 9.9.6 shmem_fcollect.) */
WEFT_API weft_status weft_fcollectmem(weft_team *team, void *dest, const void *source, size_t bytes) WEFT_MUST_CHECK;

/* The same when each member gives as much as it likes: `bytes` may differ. dest holds the sum of all; its size is the
 * caller's to know. source may not lie in dest. (OpenSHMEM 1.5, 9.9.6 shmem_collect.) */
WEFT_API weft_status weft_collectmem(weft_team *team, void *dest, const void *source, size_t bytes) WEFT_MUST_CHECK;

/* Member i's block j of `bytes` bytes goes to block i of member j. (OpenSHMEM 1.5, 9.9.7.) */
WEFT_API weft_status weft_alltoallmem(weft_team *team, void *dest, const void *source, size_t bytes) WEFT_MUST_CHECK;

/* The same where every member's dest may be written from the moment on at which the first member calls, which is what
 * OpenSHMEM asks of its callers (1.6, 9.9.7: dest is ready on all PEs before any PE calls): the members meet once where
 * weft_alltoallmem has them meet twice. All members give the same place of their heaps as dest, and all make this call,
 * or all weft_alltoallmem. */
WEFT_API weft_status weft_alltoallmem_ready(weft_team *team, void *dest, const void *source,
                                            size_t bytes) WEFT_MUST_CHECK;

/* weft_alltoallmem with strides: element k of block j is element (j * count + k) * source_stride of source and goes to
 * element (i * count + k) * dest_stride of dest. Elements have element_bytes bytes; strides are at least 1.
 * (OpenSHMEM 1.5, 9.9.8.) */
WEFT_API weft_status weft_alltoallsmem(weft_team *team, void *dest, const void *source, ptrdiff_t dest_stride,
                                       ptrdiff_t source_stride, size_t count, size_t element_bytes) WEFT_MUST_CHECK;

/* For each NAME, TYPE of WEFT_RMA_TYPES: the above in elements. */
#define WEFTI_DECLARE_COLL(NAME, TYPE)                                                                                 \
    WEFT_INLINE weft_status weft_##NAME##_broadcast(weft_team *team, TYPE *dest, const TYPE *source, size_t count,     \
                                                    int root) WEFT_MUST_CHECK;                                         \
    WEFT_INLINE weft_status weft_##NAME##_fcollect(weft_team *team, TYPE *dest, const TYPE *source, size_t count)      \
        WEFT_MUST_CHECK;                                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_collect(weft_team *team, TYPE *dest, const TYPE *source, size_t count)       \
        WEFT_MUST_CHECK;                                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_alltoall(weft_team *team, TYPE *dest, const TYPE *source, size_t count)      \
        WEFT_MUST_CHECK;                                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_alltoalls(weft_team *team, TYPE *dest, const TYPE *source,                   \
                                                    ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count)      \
        WEFT_MUST_CHECK;
WEFT_RMA_TYPES(WEFTI_DECLARE_COLL)
#undef WEFTI_DECLARE_COLL

/* ---- combining data ------------------------------------------------------------------------------------------ */

/* For each OP in and, or, xor (integers), min, max (also float, double, longdouble), sum, prod (also complexf,
 * complexd):
 *   weft_NAME_OP_reduce(team, dest, source, count)
 *       dest[k] = source[k] of all members combined, the same bits on all of them. dest may equal source.
 *   weft_NAME_OP_reduce_scatter(team, dest, source, count)
 *       source has count elements a member; member i's dest gets block i of the combination. dest may be this member's
 *       own block of source.
 *   weft_NAME_OP_inscan, weft_NAME_OP_exscan(team, dest, source, count)
 *       as reduce, over the members up to and including this one, or before it: member 0 then gets the operation's
 *       neutral element. dest may equal source.
 * Integer sums and products wrap around. Where one of the values is a NaN, min and max give a NaN or the extreme of
 * some of the other values, which depends on the members' order only. Members are combined in ascending order.
 * Short vectors of teams of more than 32 members, and those for which WEFT_COLL asks for reduce:doubling, are combined
 * in a tree instead, whose shape depends on the team's size only. Either way the same input gives the same bits in
 * every run. (OpenSHMEM 1.5, 9.9.9; 1.6, 9.9.10 for scans.) */
#define WEFTI_DECLARE_REDUCE(NAME, TYPE, OP)                                                                           \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
        WEFT_MUST_CHECK;                                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_scatter(weft_team *team, TYPE *dest, const TYPE *source,       \
                                                                size_t count) WEFT_MUST_CHECK;                         \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_inscan(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
        WEFT_MUST_CHECK;                                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_exscan(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
        WEFT_MUST_CHECK;
#define WEFTI_DECLARE_BITWISE_REDUCE(NAME, TYPE)                                                                       \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, and)                                                                              \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, or)                                                                               \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, xor)
#define WEFTI_DECLARE_ORDER_REDUCE(NAME, TYPE)                                                                         \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, min)                                                                              \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, max)
#define WEFTI_DECLARE_ARITHMETIC_REDUCE(NAME, TYPE)                                                                    \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, sum)                                                                              \
    WEFTI_DECLARE_REDUCE(NAME, TYPE, prod)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DECLARE_BITWISE_REDUCE)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DECLARE_ORDER_REDUCE)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DECLARE_ARITHMETIC_REDUCE)
WEFT_REDUCE_REAL_TYPES(WEFTI_DECLARE_ORDER_REDUCE)
WEFT_REDUCE_REAL_TYPES(WEFTI_DECLARE_ARITHMETIC_REDUCE)
WEFT_REDUCE_COMPLEX_TYPES(WEFTI_DECLARE_ARITHMETIC_REDUCE)
#undef WEFTI_DECLARE_BITWISE_REDUCE
#undef WEFTI_DECLARE_ORDER_REDUCE
#undef WEFTI_DECLARE_ARITHMETIC_REDUCE
#undef WEFTI_DECLARE_REDUCE

/* ---- how ----------------------------------------------------------------------------------------------------- */

/* Write as text which algorithm this team takes for which collective and how many bytes, one line each: at most `bytes`
 * bytes with the final zero; *length is that of the whole text. WEFT_COLL=collective:algorithm,..., read when the world
 * is created and equal on all PEs, puts an algorithm first, for as many bytes as it can carry; a team that cannot take
 * it (sync:count beyond a link domain, alltoall:pairs) does without. Any thread. WEFT_ERR_ARGUMENT: a NULL, but for a
 * text of 0 bytes. */
WEFT_API weft_status weft_team_tuning(const weft_team *team, char *text, size_t bytes, size_t *length) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#include "weft/inline/coll.h"

#endif
