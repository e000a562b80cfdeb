/* weft/ctx.h: contexts, streams of one-sided accesses that are ordered apart from each other. (OpenSHMEM 1.5, 9.5.)
 *
 * A context belongs to a team and names PEs by their numbers in it. Its calls are those of the world with weft_ctx_
 * before the rest of the name and the context in the world's place: weft_ctx_putmem(ctx, dest, source, bytes, pe) as
 * weft_putmem, weft_ctx_long_p as weft_long_p, and so for every put, get, p, g, iput, iget, put_signal and atomic,
 * by type, by size (weft_ctx_put32) and by bytes. A PE
 * that is no member is WEFT_ERR_RANGE, a NULL context WEFT_ERR_ARGUMENT. */
#ifndef WEFT_CTX_H
#define WEFT_CTX_H

#include "weft/amo_nbi.h"
#include "weft/rma.h"
#include "weft/strided.h"
#include "weft/team.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_ctx weft_ctx;

/* What the caller promises of a context. Kept, and not needed where memory is loaded and stored. */
#define WEFT_CTX_SERIALIZED 1u /* one thread at a time uses it */
#define WEFT_CTX_PRIVATE 2u /* only the thread that makes it uses it */
#define WEFT_CTX_NOSTORE 4u /* its quiet and fence need not order stores to this PE's own heap */

/* Make a context on a team. Local; any number of them; any thread. `options`: WEFT_CTX_ flags, 0 for none. It stays
 * usable when the team is destroyed, and ends with the world if it is not destroyed before. WEFT_ERR_ARGUMENT,
 * WEFT_ERR_MEMORY. */
WEFT_API weft_status weft_ctx_create(weft_team *team, unsigned options, weft_ctx **ctx) WEFT_MUST_CHECK;

/* Complete the context's accesses and destroy it. Local. NULL is allowed. A destroyed context is refused by
 * WEFT_ERR_ARGUMENT until its world ends, or 64 other handles of the world have been destroyed since. */
WEFT_API weft_status weft_ctx_destroy(weft_ctx *ctx);

/* The team it was made on; NULL when that has been destroyed, and for a NULL context. Any thread. */
WEFT_API weft_team *weft_ctx_team(const weft_ctx *ctx);

/* weft_fence and weft_quiet for the accesses of this context (more may be ordered and completed too). */
WEFT_INLINE weft_status weft_ctx_fence(weft_ctx *ctx);
WEFT_INLINE weft_status weft_ctx_quiet(weft_ctx *ctx);

/* A session: from start to stop the context's accesses are what `options` says, and nothing needs to be delivered
 * before the stop, a fence or a quiet. A hint that changes no call's meaning; this version makes nothing of it before
 * the stop, at which what is held back to go together (docs/several-hosts.md) goes. `operations`: how many there will
 * be, about; 0 if it is not known. A start within a session replaces what was said. Any thread. WEFT_ERR_ARGUMENT.
 * (OpenSHMEM 1.6, 9.5.) */
#define WEFT_SESSION_BATCH 1u /* many accesses follow one another */
#define WEFT_SESSION_SAME_AMO 2u /* its atomics are all of one operation and type */
WEFT_API weft_status weft_ctx_session_start(weft_ctx *ctx, unsigned options, size_t operations);
WEFT_API weft_status weft_ctx_session_stop(weft_ctx *ctx);

/* ---- bytes ---- */

WEFT_INLINE weft_status weft_ctx_putmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_ctx_putmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_ctx_getmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_ctx_getmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_ctx_putmem_signal(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
WEFT_INLINE weft_status weft_ctx_putmem_signal_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                                   uint64_t *signal, uint64_t value, weft_signal_op op, int pe);

WEFT_API weft_status weft_ctx_iputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                      ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe);
WEFT_API weft_status weft_ctx_igetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                      ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe);
WEFT_API weft_status weft_ctx_ibputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                       ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes,
                                       int pe);
WEFT_API weft_status weft_ctx_ibgetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                       ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes,
                                       int pe);

/* ---- for each size in bits of WEFT_SIZES ---- */

#define WEFTI_DECLARE_CTX_SIZED(BITS, BYTES)                                                                           \
    WEFT_INLINE weft_status weft_ctx_put##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe);   \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe);                                                          \
    WEFT_INLINE weft_status weft_ctx_get##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe);   \
    WEFT_INLINE weft_status weft_ctx_get##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe);                                                          \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal(weft_ctx *ctx, void *dest, const void *source, size_t count,   \
                                                        uint64_t *signal, uint64_t value, weft_signal_op op, int pe);  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal_nbi(weft_ctx *ctx, void *dest, const void *source,             \
                                                            size_t count, uint64_t *signal, uint64_t value,            \
                                                            weft_signal_op op, int pe);                                \
    WEFT_INLINE weft_status weft_ctx_iput##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe);                        \
    WEFT_INLINE weft_status weft_ctx_iget##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe);
WEFT_SIZES(WEFTI_DECLARE_CTX_SIZED)
#undef WEFTI_DECLARE_CTX_SIZED

/* ---- for each NAME, TYPE of WEFT_RMA_TYPES ---- */

#define WEFTI_DECLARE_CTX_RMA(NAME, TYPE)                                                                              \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,         \
                                                  int pe);                                                             \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe);                                                         \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,         \
                                                  int pe);                                                             \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe);                                                         \
    WEFT_INLINE weft_status weft_ctx_##NAME##_p(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);                        \
    WEFT_INLINE weft_status weft_ctx_##NAME##_g(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value);               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iput(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe);                                                            \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iget(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe);                                                            \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,  \
                                                         uint64_t *signal, uint64_t value, weft_signal_op op, int pe); \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source,            \
                                                             size_t count, uint64_t *signal, uint64_t value,           \
                                                             weft_signal_op op, int pe);
WEFT_RMA_TYPES(WEFTI_DECLARE_CTX_RMA)
#undef WEFTI_DECLARE_CTX_RMA

/* ---- for each NAME, TYPE of WEFT_EXTENDED_AMO_TYPES ---- */

#define WEFTI_DECLARE_CTX_EXTENDED_AMO(NAME, TYPE)                                                                     \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value);    \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_nbi(weft_ctx *ctx, const TYPE *source, int pe,              \
                                                               TYPE *value);                                           \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_set(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap(weft_ctx *ctx, TYPE *dest, TYPE value, int pe, TYPE *old);   \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe, TYPE *old);
WEFT_EXTENDED_AMO_TYPES(WEFTI_DECLARE_CTX_EXTENDED_AMO)
#undef WEFTI_DECLARE_CTX_EXTENDED_AMO

/* ---- for each NAME, TYPE of WEFT_INTEGER_TYPES ---- */

#define WEFTI_DECLARE_CTX_INTEGER(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap(weft_ctx *ctx, TYPE *dest, TYPE cond, TYPE value,    \
                                                                  int pe, TYPE *old);                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE cond,            \
                                                                      TYPE value, int pe, TYPE *old);                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old);                                             \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old);                                         \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_inc(weft_ctx *ctx, TYPE *dest, int pe);                           \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old);          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc_nbi(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old);
WEFT_INTEGER_TYPES(WEFTI_DECLARE_CTX_INTEGER)
#undef WEFTI_DECLARE_CTX_INTEGER

/* ---- for each NAME, TYPE of WEFT_BITWISE_TYPES ---- */

#define WEFTI_DECLARE_CTX_BITWISE(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_and(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_and(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old);                                             \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_and_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old);                                         \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_or(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);                \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_or(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,           \
                                                              TYPE *old);                                              \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_or_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,       \
                                                                  TYPE *old);                                          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_xor(weft_ctx *ctx, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_xor(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old);                                             \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_xor_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old);
WEFT_BITWISE_TYPES(WEFTI_DECLARE_CTX_BITWISE)
#undef WEFTI_DECLARE_CTX_BITWISE

#ifdef __cplusplus
}
#endif

#include "weft/inline/ctx.h"

#endif
