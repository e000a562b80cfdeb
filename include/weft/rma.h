/* weft/rma.h: one-sided access to the symmetric heaps of other PEs. (OpenSHMEM 1.5, 9.6, 9.7, 9.8, 9.10, 9.11.)
 *
 * Every call names a world, a symmetric address valid on the calling PE, and the PE (its number in the world) whose
 * copy is meant. Any thread, also several at once. Only calls marked so block.
 *
 * Inline: an access to a PE in the same link domain is one range test, an addition and the access itself. Everything
 * else goes out of line, where errors are decided: WEFT_ERR_ARGUMENT (NULL world or buffer), WEFT_ERR_RANGE (PE out of
 * range; bytes outside the reserved heap; the message says which). Nothing is written by a call that fails so.
 *
 * Order: puts are delivered in no order. weft_fence orders this thread's earlier puts, stores and atomics to each PE
 * before its later ones; weft_quiet completes them. A blocking put returns when its source can be reused, a blocking
 * get when the data is there; `_nbi` calls complete at weft_quiet. On a link domain both complete at once, copies of
 * device memory apart, but only weft_fence, weft_quiet and the calls with a signal order them. See
 * docs/memory-model.md.
 *
 * Another node: a get_nbi returns once it is on its way, or waits for earlier ones where many are; a put_nbi and an
 * atomic with a result return as those without _nbi. Once weft_quiet returns, whatever it returns, and whichever thread
 * calls it, nothing is written to the dest of earlier ones any more; unless it fails, the data is there. */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include "weft/compare.h"
#include "weft/types.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- put and get --------------------------------------------------------------------------------------------- */

/* Copy `bytes` bytes from `source`, any local memory, to `dest` on `pe`. */
WEFT_INLINE weft_status weft_putmem(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_putmem_nbi(weft_world *world, void *dest, const void *source, size_t bytes, int pe);

/* Copy `bytes` bytes from `source` on `pe` to `dest`, any local memory. That of a getmem_nbi is the library's until
 * weft_quiet returns, or the call fails. */
WEFT_INLINE weft_status weft_getmem(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_INLINE weft_status weft_getmem_nbi(weft_world *world, void *dest, const void *source, size_t bytes, int pe);

/* For each NAME, TYPE of WEFT_RMA_TYPES:
 *   weft_NAME_put, weft_NAME_get, and _nbi: as the above, `count` elements
 *   weft_NAME_p: store one element on `pe`; a single access for all but long double
 *   weft_NAME_g: load one element from `pe` into *value */
#define WEFTI_DECLARE_RMA(NAME, TYPE)                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_put(weft_world *world, TYPE *dest, const TYPE *source, size_t count,         \
                                              int pe);                                                                 \
    WEFT_INLINE weft_status weft_##NAME##_put_nbi(weft_world *world, TYPE *dest, const TYPE *source, size_t count,     \
                                                  int pe);                                                             \
    WEFT_INLINE weft_status weft_##NAME##_get(weft_world *world, TYPE *dest, const TYPE *source, size_t count,         \
                                              int pe);                                                                 \
    WEFT_INLINE weft_status weft_##NAME##_get_nbi(weft_world *world, TYPE *dest, const TYPE *source, size_t count,     \
                                                  int pe);                                                             \
    WEFT_INLINE weft_status weft_##NAME##_p(weft_world *world, TYPE *dest, TYPE value, int pe);                        \
    WEFT_INLINE weft_status weft_##NAME##_g(weft_world *world, const TYPE *source, int pe, TYPE *value);
WEFT_RMA_TYPES(WEFTI_DECLARE_RMA)
#undef WEFTI_DECLARE_RMA

/* ---- order --------------------------------------------------------------------------------------------------- */

/* Order this thread's earlier puts, atomics and stores to the heap before its later ones, PE by PE. */
WEFT_INLINE weft_status weft_fence(weft_world *world);

/* Complete this thread's earlier puts, gets and atomics, and its own stores to its heap: they are visible to every PE
 * when it returns; and what kernels of this PE that have ended asked of PEs that a proxy reaches. May block on
 * transports other than load and store, and on the proxy, at most the deadline. */
WEFT_INLINE weft_status weft_quiet(weft_world *world);

/* ---- atomics ------------------------------------------------------------------------------------------------- */

/* For each NAME, TYPE of WEFT_EXTENDED_AMO_TYPES: weft_NAME_atomic_
 *   fetch(world, source, pe, &value)          set(world, dest, value, pe)     swap(world, dest, value, pe, &old)
 * of WEFT_INTEGER_TYPES also
 *   compare_swap(world, dest, cond, value, pe, &old)
 *   add, fetch_add(world, dest, value, pe[, &old])     inc, fetch_inc(world, dest, pe[, &old])
 * of WEFT_BITWISE_TYPES also
 *   and, or, xor, fetch_and, fetch_or, fetch_xor(world, dest, value, pe[, &old])
 * Atomic with respect to each other on the same variable and type; sequentially consistent on a link domain. The
 * variable is aligned to its size. (OpenSHMEM 1.5, 9.7.) */
#define WEFTI_DECLARE_EXTENDED_AMO(NAME, TYPE)                                                                         \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch(weft_world *world, const TYPE *source, int pe, TYPE *value);    \
    WEFT_INLINE weft_status weft_##NAME##_atomic_set(weft_world *world, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_##NAME##_atomic_swap(weft_world *world, TYPE *dest, TYPE value, int pe, TYPE *old);
WEFT_EXTENDED_AMO_TYPES(WEFTI_DECLARE_EXTENDED_AMO)
#undef WEFTI_DECLARE_EXTENDED_AMO

#define WEFTI_DECLARE_STANDARD_AMO(NAME, TYPE)                                                                         \
    WEFT_INLINE weft_status weft_##NAME##_atomic_compare_swap(weft_world *world, TYPE *dest, TYPE cond, TYPE value,    \
                                                              int pe, TYPE *old);                                      \
    WEFT_INLINE weft_status weft_##NAME##_atomic_add(weft_world *world, TYPE *dest, TYPE value, int pe);               \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_add(weft_world *world, TYPE *dest, TYPE value, int pe,          \
                                                           TYPE *old);                                                 \
    WEFT_INLINE weft_status weft_##NAME##_atomic_inc(weft_world *world, TYPE *dest, int pe);                           \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_inc(weft_world *world, TYPE *dest, int pe, TYPE *old);
WEFT_INTEGER_TYPES(WEFTI_DECLARE_STANDARD_AMO)
#undef WEFTI_DECLARE_STANDARD_AMO

#define WEFTI_DECLARE_BITWISE_AMO_OP(NAME, TYPE, OP)                                                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_##OP(weft_world *world, TYPE *dest, TYPE value, int pe);              \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_##OP(weft_world *world, TYPE *dest, TYPE value, int pe,         \
                                                            TYPE *old);
#define WEFTI_DECLARE_BITWISE_AMO(NAME, TYPE)                                                                          \
    WEFTI_DECLARE_BITWISE_AMO_OP(NAME, TYPE, and)                                                                      \
    WEFTI_DECLARE_BITWISE_AMO_OP(NAME, TYPE, or)                                                                       \
    WEFTI_DECLARE_BITWISE_AMO_OP(NAME, TYPE, xor)
WEFT_BITWISE_TYPES(WEFTI_DECLARE_BITWISE_AMO)
#undef WEFTI_DECLARE_BITWISE_AMO
#undef WEFTI_DECLARE_BITWISE_AMO_OP

/* ---- signals ------------------------------------------------------------------------------------------------- */

/* As weft_putmem, then update the 64-bit word `signal` on `pe` by `value`: who sees the update (weft_signal_wait_until)
 * sees the data. bytes may be 0. (OpenSHMEM 1.5, 9.8.) */
WEFT_INLINE weft_status weft_putmem_signal(weft_world *world, void *dest, const void *source, size_t bytes,
                                           uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
WEFT_INLINE weft_status weft_putmem_signal_nbi(weft_world *world, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe);

/* For each NAME, TYPE of WEFT_RMA_TYPES: weft_NAME_put_signal and _nbi, `count` elements. */
#define WEFTI_DECLARE_PUT_SIGNAL(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_##NAME##_put_signal(weft_world *world, TYPE *dest, const TYPE *source, size_t count,  \
                                                     uint64_t *signal, uint64_t value, weft_signal_op op, int pe);     \
    WEFT_INLINE weft_status weft_##NAME##_put_signal_nbi(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         size_t count, uint64_t *signal, uint64_t value,               \
                                                         weft_signal_op op, int pe);
WEFT_RMA_TYPES(WEFTI_DECLARE_PUT_SIGNAL)
#undef WEFTI_DECLARE_PUT_SIGNAL

/* The value of a local signal word, as an acquire. (OpenSHMEM 1.5, 9.8.) */
WEFT_INLINE weft_status weft_signal_fetch(weft_world *world, const uint64_t *signal, uint64_t *value);

/* ---- point-to-point synchronisation --------------------------------------------------------------------------- */

/* Block until the local variable *variable compares so with `value`; what its writer ordered before the write is then
 * visible. Waits at most the deadline: WEFT_ERR_TIMEOUT (the world stays usable: anyone might have been meant to
 * write). weft_signal_wait_until also gives the value seen (seen may be NULL). For each NAME, TYPE of
 * WEFT_INTEGER_TYPES: weft_NAME_wait_until(world, variable, cmp, value), and weft_NAME_test, which does not block and
 * sets *result to 1 when the comparison holds, else to 0. (OpenSHMEM 1.5, 9.10.) */
WEFT_INLINE weft_status weft_signal_wait_until(weft_world *world, const uint64_t *signal, weft_cmp cmp, uint64_t value,
                                               uint64_t *seen);
#define WEFTI_DECLARE_WAIT(NAME, TYPE)                                                                                 \
    WEFT_INLINE weft_status weft_##NAME##_wait_until(weft_world *world, const TYPE *variable, weft_cmp cmp,            \
                                                     TYPE value);                                                      \
    WEFT_INLINE weft_status weft_##NAME##_test(weft_world *world, const TYPE *variable, weft_cmp cmp, TYPE value,      \
                                               int *result);
WEFT_INTEGER_TYPES(WEFTI_DECLARE_WAIT)
#undef WEFTI_DECLARE_WAIT

#ifdef __cplusplus
}
#endif

#include "weft/inline/rma.h"

#endif
