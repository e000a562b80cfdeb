/* weft/device/rma.cuh: put, get, p, g, signals, atomics and order inside kernels. (OpenSHMEM 1.5, 9.6, 9.7, 9.8, 9.11.)
 *
 * Addresses are symmetric (device heap, host heap, registered memory) unless said; local buffers are anything the
 * calling threads can address. Every call returns a weft_status; WEFT_ERR_RANGE is latched too, and nothing is written
 * by a call that fails so, but by put_signal, as it says. PEs that load and store do not reach are reached through this
 * PE's proxy (far.cuh): the same calls, which then may also fail as waits do.
 *
 * Order: put, p, signals and atomics are delivered in no order, except that a signal of put_signal, and of
 * weft_dev_signal, is a release: who sees it by an acquire (wait_until, test, signal_fetch) sees what the scope did
 * before. */
#ifndef WEFTI_DEVICE_RMA_CUH
#define WEFTI_DEVICE_RMA_CUH

#include "weft/compare.h"
#include "weft/device/copy.cuh"
#include "weft/device/far.cuh"
#include "weft/device/wait.cuh"

/* ---- one element, one access; called by one thread ---- */

template <int BYTES> struct wefti_access;
#define WEFTI_DEFINE_ACCESS(bytes, word)                                                                               \
    template <> struct wefti_access<bytes> {                                                                           \
        typedef word type;                                                                                             \
    };
WEFTI_DEFINE_ACCESS(1, unsigned char)
WEFTI_DEFINE_ACCESS(2, unsigned short)
WEFTI_DEFINE_ACCESS(4, wefti_u32)
WEFTI_DEFINE_ACCESS(8, wefti_u64)
#undef WEFTI_DEFINE_ACCESS

/* To memory that is not in a plain heap. */
WEFTI_DEVICE_SLOW int wefti_dev_p_slow(const weft_dev *dev, wefti_u64 dest, wefti_u64 bits, wefti_u32 bytes, int pe)
{
    const wefti_u64 to = wefti_dev_peer_here(dev, dest, bytes, pe);
    if (to == 0) {
        return wefti_far_p_here(dev, dest, bits, bytes, pe);
    }
    if (bytes == 8) {
        wefti_st_relaxed((wefti_u64 *)to, bits);
    } else if (bytes == 4) {
        wefti_st_relaxed((wefti_u32 *)to, (wefti_u32)bits);
    } else if (bytes == 2) {
        wefti_st_relaxed((unsigned short *)to, (unsigned short)bits);
    } else {
        wefti_st_relaxed((unsigned char *)to, (unsigned char)bits);
    }
    return WEFT_OK;
}

/* Store one element of 1, 2, 4 or 8 bytes on `pe`. */
template <class T> WEFTI_DEVICE int weft_dev_p(const weft_dev &dev, T *dest, T value, int pe)
{
    typedef typename wefti_access<sizeof(T)>::type word;
    word bits;
    memcpy(&bits, &value, sizeof bits);
    if (__builtin_expect(wefti_dev_is_plain(dev, (wefti_u64)dest, sizeof(T), pe), 1)) {
        wefti_st_relaxed((word *)wefti_dev_plain(dev, (wefti_u64)dest, pe), bits);
        return WEFT_OK;
    }
    return wefti_dev_p_slow(&dev, (wefti_u64)dest, bits, sizeof bits, pe);
}

/* From memory that is not in a plain heap: the element's bits, in the low bytes of *bits. */
WEFTI_DEVICE_SLOW int wefti_dev_g_slow(const weft_dev *dev, wefti_u64 source, wefti_u64 *bits, wefti_u32 bytes, int pe)
{
    const wefti_u64 from = wefti_dev_peer_here(dev, source, bytes, pe);
    if (from == 0) {
        return wefti_far_g_here(dev, source, bits, bytes, pe);
    }
    if (bytes == 8) {
        *bits = wefti_ld_relaxed((const wefti_u64 *)from);
    } else if (bytes == 4) {
        *bits = wefti_ld_relaxed((const wefti_u32 *)from);
    } else if (bytes == 2) {
        *bits = wefti_ld_relaxed((const unsigned short *)from);
    } else {
        *bits = wefti_ld_relaxed((const unsigned char *)from);
    }
    return WEFT_OK;
}

/* Load one element from `pe` into *value. The other PE is asked each time: who calls it again and again sees the
 * element change. */
template <class T> WEFTI_DEVICE int weft_dev_g(const weft_dev &dev, const T *source, int pe, T *value)
{
    typedef typename wefti_access<sizeof(T)>::type word;
    if (__builtin_expect(wefti_dev_is_plain(dev, (wefti_u64)source, sizeof(T), pe), 1)) {
        const word bits = wefti_ld_relaxed((const word *)wefti_dev_plain(dev, (wefti_u64)source, pe));
        memcpy(value, &bits, sizeof bits);
        return WEFT_OK;
    }
    wefti_u64 bits = 0;
    const int status = wefti_dev_g_slow(&dev, (wefti_u64)source, &bits, sizeof(T), pe);
    if (status == WEFT_OK) {
        const word own = (word)bits;
        memcpy(value, &own, sizeof own);
    }
    return status;
}

/* ---- bytes; called by all threads of the scope ---- */

/* Up to 1 MiB the first 512 threads of a block put and the others only wait: fewer are sooner done with knowing where.
 * Beyond, all do: many multiprocessors together are a little faster so. */
#define WEFTI_PUT_FEW_BYTES ((wefti_u64)1 << 20)
#define WEFTI_PUT_FEW_THREADS 512u

WEFTI_DEVICE weft_scope wefti_put_scope(weft_scope scope, wefti_u64 bytes)
{
    bool few = scope.kind == WEFTI_SCOPE_BLOCK && bytes <= WEFTI_PUT_FEW_BYTES && scope.size > WEFTI_PUT_FEW_THREADS;
    weft_scope some = {scope.rank, few ? WEFTI_PUT_FEW_THREADS : scope.size, scope.kind};
    return some;
}

/* Copy `bytes` bytes from `source`, local, which any thread of the scope may have written before, to `dest` on `pe`.
 * On return the source can be reused. */
WEFTI_DEVICE int weft_dev_put(weft_scope scope, const weft_dev &dev, void *dest, const void *source, wefti_u64 bytes,
                              int pe)
{
    const weft_scope some = wefti_put_scope(scope, bytes);
    const bool puts = some.rank < some.size;
    wefti_u64 to = puts ? wefti_dev_peer(dev, dest, bytes, pe) : 0; /* while others come */
    wefti_scope_sync(scope);
    if (!puts) {
        to = wefti_dev_peer(dev, dest, bytes, pe); /* while those put */
    } else if (to != 0) {
        wefti_copy_bytes<wefti_to_remote>(some, (void *)to, source, bytes);
    }
    wefti_scope_sync(scope); /* the source has been read */
    return __builtin_expect(to == 0, 0) && bytes != 0
               ? wefti_far_put(scope, &dev, (wefti_u64)dest, (wefti_u64)source, bytes, pe)
               : WEFT_OK;
}

/* Gets load by way of the multiprocessor's cache, so that bytes that lie together, and bytes that are got again, cross
 * the link once. That is right since a get need not see more than what its thread has synchronised with: whatever
 * synchronises (wait_until, test, signal_fetch, quiet, fence, a barrier, a sync, the kernel's beginning) is an acquire
 * of the system's scope, by the thread or by one that it then met, and an acquire empties the cache, so that a load
 * behind it is answered anew. Two gets with nothing of that between them may return the same bytes, whatever has been
 * put meanwhile: to poll, use weft_dev_g, weft_dev_atomic_fetch or a wait. With WEFT_DEVICE_GET_VOLATILE defined before
 * the first header of weft each get asks the other PE, as weft_dev_g does. */
#if defined(WEFT_DEVICE_GET_VOLATILE)
typedef wefti_from_remote wefti_get_side;
#else
typedef wefti_from_remote_cached wefti_get_side;
#endif

/* More than this a block gets past the cache, which would not keep it: its accesses fill the link as they are. */
#define WEFTI_GET_CACHED_BYTES ((wefti_u64)128 << 10)

/* From near memory. Where one access a thread does, it has the width that both addresses and the size allow. A warp's
 * few are not worth a call out of line, which takes as long as their way through the cache. */
WEFTI_DEVICE void wefti_dev_get_near(weft_scope scope, void *dest, wefti_u64 from, wefti_u64 bytes)
{
    const wefti_u32 together = (wefti_u32)(wefti_u64)dest | (wefti_u32)from | (wefti_u32)bytes | 16;
    if (scope.kind == WEFTI_SCOPE_WARP && (together & 15) == 0 && bytes <= 2 * 16 * (wefti_u64)scope.size) {
        wefti_copy_two<wefti_get_side>(scope, (wefti_u64)dest, from, (wefti_u32)bytes);
        return;
    }
    const wefti_u32 width = together & -together; /* that one access may have */
    if (bytes <= (wefti_u64)width * scope.size) {
        wefti_copy_once<wefti_get_side>(scope.rank, width, (wefti_u64)dest, from, bytes);
    } else if (scope.kind == WEFTI_SCOPE_BLOCK && bytes > WEFTI_GET_CACHED_BYTES) {
        wefti_copy_bytes<wefti_from_remote>(scope, dest, (const void *)from, bytes);
    } else {
        wefti_copy_bytes<wefti_get_side>(scope, dest, (const void *)from, bytes);
    }
}

/* Copy `bytes` bytes from `source` on `pe` to `dest`, local. On return every thread of the scope sees them. They are as
 * new as what the scope's threads have synchronised with before, see above. */
WEFTI_DEVICE int weft_dev_get(weft_scope scope, const weft_dev &dev, void *dest, const void *source, wefti_u64 bytes,
                              int pe)
{
    wefti_u64 from = wefti_dev_peer(dev, source, bytes, pe);
    if (__builtin_expect(from == 0, 0)) {
        return bytes == 0 ? WEFT_OK : wefti_far_get(scope, &dev, (wefti_u64)dest, (wefti_u64)source, bytes, pe);
    }
    wefti_scope_sync(scope);
    wefti_dev_get_near(scope, dest, from, bytes);
    wefti_scope_sync(scope);
    return WEFT_OK;
}

/* ---- signals ---- */

WEFTI_DEVICE void wefti_dev_signal_at(wefti_u64 at, wefti_u64 value, weft_signal_op op)
{
    if (op == WEFT_SIGNAL_SET) {
        wefti_st_release((wefti_u64 *)at, value);
    } else {
        wefti_red_add_release((wefti_u64 *)at, value);
    }
}

/* Set, or add to, the 64-bit word `signal` on `pe`, after all that this thread did before. One thread. */
template <class Signal>
WEFTI_DEVICE int weft_dev_signal(const weft_dev &dev, Signal *signal, wefti_u64 value, weft_signal_op op, int pe)
{
    static_assert(sizeof(Signal) == 8, "signals are 64-bit words");
    wefti_u64 at = wefti_dev_peer(dev, signal, sizeof(Signal), pe);
    if (at == 0) {
        return wefti_far_signal(&dev, (wefti_u64)signal, value, op, pe);
    }
    wefti_dev_signal_at(at, value, op);
    return WEFT_OK;
}

/* Up to here one warp is as fast as a block: 16 bytes a thread, four times. */
#define WEFTI_SMALL_VECTORS 4
#define WEFTI_SMALL_BYTES (WEFTI_SMALL_VECTORS * 512)

/* Any addresses and sizes. */
WEFTI_DEVICE_SLOW wefti_u64 wefti_dev_put_small_any(wefti_u32 rank, wefti_u32 size, const weft_dev *dev,
                                                    const void *dest, const void *source, wefti_u32 bytes,
                                                    const void *signal, int pe)
{
    wefti_u64 to = wefti_dev_peer_flat(dev, (wefti_u64)dest, bytes, pe);
    wefti_u64 at = wefti_dev_peer_flat(dev, (wefti_u64)signal, sizeof(wefti_u64), pe);
    if (at == 0 || (to == 0 && bytes != 0)) {
        return 0;
    }
    wefti_copy_any<wefti_to_remote>(rank, size, to, (wefti_u64)source, bytes);
    return at;
}

/* The source into registers; then where it goes, while the loads are under way; then the stores. `warp` is the first
 * warp, of at least one thread. Returns where the signal is, or 0. */
WEFTI_DEVICE wefti_u64 wefti_dev_put_small(weft_scope warp, const weft_dev &dev, void *dest, const void *source,
                                           wefti_u32 bytes, const void *signal, int pe)
{
    const wefti_wide *from = (const wefti_wide *)source + warp.rank;
    wefti_wide held[WEFTI_SMALL_VECTORS];
    wefti_u64 word = 0;
    wefti_u64 together = (wefti_u64)dest | (wefti_u64)source | bytes;
    bool is_even = (together & 15) == 0 && bytes <= warp.size * 16 * WEFTI_SMALL_VECTORS;
    bool is_word = bytes == 8 && (together & 7) == 0;
    wefti_u32 count = is_even ? bytes / 16 : 0;
    WEFTI_UNROLL(WEFTI_SMALL_VECTORS)
    for (wefti_u32 j = 0; j < WEFTI_SMALL_VECTORS; j++) {
        if (warp.rank + j * warp.size < count) {
            held[j] = wefti_ld_wide(from + j * warp.size);
        }
    }
    if (is_word) {
        word = wefti_ld_word((const wefti_u64 *)source);
    }
    bool is_plain = wefti_dev_is_plain(dev, (wefti_u64)dest, bytes, pe) &&
                    wefti_dev_is_plain(dev, (wefti_u64)signal, sizeof(wefti_u64), pe);
    if (__builtin_expect(!is_plain || !(is_even || is_word), 0)) {
        return wefti_dev_put_small_any(warp.rank, warp.size, &dev, dest, source, bytes, signal, pe);
    }
    wefti_wide *to = (wefti_wide *)wefti_dev_plain(dev, (wefti_u64)dest, pe) + warp.rank;
    WEFTI_UNROLL(WEFTI_SMALL_VECTORS)
    for (wefti_u32 j = 0; j < WEFTI_SMALL_VECTORS; j++) {
        if (warp.rank + j * warp.size < count) {
            wefti_st_remote(to + j * warp.size, held[j]);
        }
    }
    if (is_word && warp.rank == 0) {
        wefti_st_relaxed((wefti_u64 *)to, word);
    }
    return wefti_dev_plain(dev, (wefti_u64)signal, pe);
}

/* By the first warp alone: the others need not even know the addresses, and the signal need not wait for them. Returns
 * 0, on all threads, where load and store do not reach the bytes or the signal; nothing is done then. */
WEFTI_DEVICE bool wefti_dev_put_signal_small(weft_scope scope, const weft_dev &dev, void *dest, const void *source,
                                             wefti_u32 bytes, const void *signal, wefti_u64 value, weft_signal_op op,
                                             int pe)
{
    int is_nowhere = 0;
    wefti_scope_sync(scope);
    if (scope.rank < 32) {
        weft_scope warp = wefti_first_warp(scope);
        wefti_u64 at = wefti_dev_put_small(warp, dev, dest, source, bytes, signal, pe);
        wefti_scope_sync(warp);
        if (at == 0) {
            is_nowhere = 1;
        } else if (warp.rank == 0) {
            wefti_dev_signal_at(at, value, op);
        }
    }
    return !wefti_scope_first_says(scope, is_nowhere); /* also: the source has been read */
}

/* The signal of bytes that have been put, where it is not in a plain heap, or the proxy may carry the bytes and the
 * signal be stored. */
template <class Signal>
WEFTI_DEVICE int wefti_dev_signal_after(const weft_dev &dev, Signal *signal, wefti_u64 value, weft_signal_op op, int pe)
{
    if (dev.abroad_count != 0 && !wefti_dev_is_far(dev, pe)) {
        const int status = wefti_far_quiet(&dev);
        if (status != WEFT_OK) {
            return status;
        }
    }
    return weft_dev_signal(dev, signal, value, op, pe);
}

/* weft_dev_put, then the signal: who sees the signal sees the bytes, and all that the scope's threads did before.
 * bytes may be 0. On failure the signal is not given; the bytes may have been. (OpenSHMEM 1.5, 9.8.) */
template <class Signal>
WEFTI_DEVICE int weft_dev_put_signal(weft_scope scope, const weft_dev &dev, void *dest, const void *source,
                                     wefti_u64 bytes, Signal *signal, wefti_u64 value, weft_signal_op op, int pe)
{
    static_assert(sizeof(Signal) == 8, "signals are 64-bit words");
    if (scope.kind == WEFTI_SCOPE_BLOCK && bytes <= WEFTI_SMALL_BYTES &&
        wefti_dev_put_signal_small(scope, dev, dest, source, (wefti_u32)bytes, signal, value, op, pe)) {
        return WEFT_OK;
    }
    int status = weft_dev_put(scope, dev, dest, source, bytes, pe);
    if (scope.rank == 0 && status == WEFT_OK) {
        if (__builtin_expect(dev.abroad_count == 0 && wefti_dev_is_plain(dev, (wefti_u64)signal, 8, pe), 1)) {
            wefti_dev_signal_at(wefti_dev_plain(dev, (wefti_u64)signal, pe), value, op);
        } else {
            status = wefti_dev_signal_after(dev, signal, value, op, pe);
        }
    }
    return status == WEFT_OK ? WEFT_OK : weft_dev_fault(dev);
}

/* ---- order ---- */

/* Order this thread's earlier puts, stores and atomics, to every PE, before its later ones; but what went to the host
 * heap of a PE of another host, by the proxy, before what goes to that PE's device memory, by load and store, only
 * weft_dev_quiet. */
WEFTI_DEVICE void weft_dev_fence()
{
    wefti_fence_acq_rel();
}

/* Complete them: they are visible to every PE when it returns, and this thread's later loads come after. Where a proxy
 * carries some, this waits for all that this PE's kernels have made so far, and may fail as waits do; else WEFT_OK. */
WEFTI_DEVICE int weft_dev_quiet(const weft_dev &dev)
{
    wefti_fence_sc();
    return __builtin_expect(dev.far_count != 0, 0) ? wefti_far_quiet(&dev) : WEFT_OK;
}

/* ---- atomics; called by one thread -----------------------------------------------------------------------------
 * Atomic with respect to each other on the same variable, from kernels of any PE and from the host's calls on device
 * memory. Without an order of their own: weft_dev_fence gives it. On the host heap they need a link with native
 * atomics: elsewhere they return WEFT_ERR_UNSUPPORTED, latched, unless a proxy does them. The variable is aligned to
 * its size; integers of 4 and 8 bytes, float and double for fetch, set, swap, add and fetch_add. (OpenSHMEM 1.5,
 * 9.7.) */

/* A variable that is not in a plain heap: where it is, or 0: on a far PE; or 0 and the latched status. */
WEFTI_DEVICE_SLOW wefti_u64 wefti_dev_atomic_slow(const weft_dev *dev, const void *dest, int pe)
{
    wefti_u64 here = (wefti_u64)dest;
    if (wefti_dev_is_beyond(*dev, here, pe)) {
        return 0;
    }
    if (dev->host_atomics == 0 && here - dev->host_heap < dev->host_bytes) {
        (void)wefti_dev_latch_here(dev, WEFT_ERR_UNSUPPORTED, dev->pe);
        return 0;
    }
    wefti_u64 at = wefti_dev_peer_here(dev, here, 8, pe);
    if (at == 0) {
        (void)wefti_dev_latch_here(dev, WEFT_ERR_RANGE, pe);
    }
    return at;
}

/* The bits of an integer or a float of 4 or 8 bytes, and back. */
template <class T> WEFTI_DEVICE wefti_u64 wefti_dev_bits(T value)
{
    typename wefti_access<sizeof(T)>::type bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class T> WEFTI_DEVICE T wefti_dev_value(wefti_u64 all)
{
    typename wefti_access<sizeof(T)>::type bits = (typename wefti_access<sizeof(T)>::type)all;
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

WEFTI_DEVICE int wefti_dev_add_of(float)
{
    return WEFTI_DEV_AMO_ADD_FLOAT;
}

WEFTI_DEVICE int wefti_dev_add_of(double)
{
    return WEFTI_DEV_AMO_ADD_FLOAT;
}

template <class T> WEFTI_DEVICE int wefti_dev_add_of(T)
{
    return WEFTI_DEV_AMO_ADD;
}

/* What wefti_dev_atomic_slow has not found. *old gets the value before, unless it is NULL. */
template <class T>
WEFTI_DEVICE int wefti_dev_atomic_far(const weft_dev &dev, int op, const T *dest, T value, T cond, int pe, T *old)
{
    if (wefti_dev_is_beyond(dev, (wefti_u64)dest, pe)) {
        const wefti_u64 place = wefti_far_place(&dev, (wefti_u64)dest, sizeof(T), pe);
        if (place == 0) {
            return wefti_dev_no_place(dev, pe);
        }
        const wefti_u64 ticket =
            wefti_far_word(&dev, wefti_far_ask(WEFTI_DEV_REQUEST_AMO, op, 8 * (int)sizeof(T), old != 0), place,
                           wefti_dev_bits(value), wefti_dev_bits(cond), pe);
        if (old != 0) {
            *old = wefti_dev_value<T>(wefti_far_fetch(&dev, ticket, pe));
        }
        return ticket == WEFTI_NO_TICKET || old != 0 ? weft_dev_fault(dev) : WEFT_OK;
    }
    return weft_dev_fault(dev);
}

/* The statement is there twice, so that the inline case is the test, the address and the atomic. `old` is NULL when
 * nothing comes back. */
#define WEFTI_ATOMICALLY(dev, dest, pe, T, statement, op, value, cond, old)                                            \
    if (__builtin_expect(wefti_dev_is_plain(dev, (wefti_u64)(dest), 8, pe), 1)) {                                      \
        T *at = (T *)wefti_dev_plain(dev, (wefti_u64)(dest), pe);                                                      \
        statement;                                                                                                     \
        return WEFT_OK;                                                                                                \
    }                                                                                                                  \
    T *at = (T *)wefti_dev_atomic_slow(&(dev), dest, pe);                                                              \
    if (at == 0) {                                                                                                     \
        return wefti_dev_atomic_far<T>(dev, op, dest, value, cond, pe, old);                                           \
    }                                                                                                                  \
    statement;                                                                                                         \
    return WEFT_OK;

template <class T> WEFTI_DEVICE int weft_dev_atomic_fetch(const weft_dev &dev, const T *source, int pe, T *value)
{
    typedef typename wefti_access<sizeof(T)>::type word;
    wefti_u64 from = wefti_dev_peer(dev, source, sizeof(T), pe);
    if (from == 0) {
        return wefti_dev_is_beyond(dev, (wefti_u64)source, pe)
                   ? wefti_dev_atomic_far<T>(dev, WEFTI_DEV_AMO_FETCH, source, T(), T(), pe, value)
                   : wefti_dev_no_place(dev, pe);
    }
    *value = wefti_dev_value<T>(wefti_ld_relaxed((const word *)from));
    return WEFT_OK;
}

template <class T> WEFTI_DEVICE int weft_dev_atomic_set(const weft_dev &dev, T *dest, T value, int pe)
{
    WEFTI_ATOMICALLY(dev, dest, pe, T, (void)wefti_atomic_swap(at, value), WEFTI_DEV_AMO_SET, value, T(), (T *)0)
}

template <class T>
WEFTI_DEVICE int weft_dev_atomic_compare_swap(const weft_dev &dev, T *dest, T cond, T value, int pe, T *old){
    WEFTI_ATOMICALLY(dev, dest, pe, T, *old = wefti_atomic_cas(at, cond, value), WEFTI_DEV_AMO_COMPARE_SWAP, value,
                     cond, old)}

/* NAME and fetch_NAME; the latter's *old gets the value before. */
#define WEFTI_DEFINE_ATOMIC(name, op)                                                                                  \
    template <class T> WEFTI_DEVICE int weft_dev_atomic_##name(const weft_dev &dev, T *dest, T value, int pe)          \
    {                                                                                                                  \
        WEFTI_ATOMICALLY(dev, dest, pe, T, (void)wefti_atomic_##name(at, value), op, value, T(), (T *)0)               \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    WEFTI_DEVICE int weft_dev_atomic_fetch_##name(const weft_dev &dev, T *dest, T value, int pe, T *old)               \
    {                                                                                                                  \
        WEFTI_ATOMICALLY(dev, dest, pe, T, *old = wefti_atomic_##name(at, value), op, value, T(), old)                 \
    }
WEFTI_DEFINE_ATOMIC(add, wefti_dev_add_of(value)) WEFTI_DEFINE_ATOMIC(and, WEFTI_DEV_AMO_AND)
    WEFTI_DEFINE_ATOMIC(or, WEFTI_DEV_AMO_OR) WEFTI_DEFINE_ATOMIC(xor, WEFTI_DEV_AMO_XOR)
#undef WEFTI_DEFINE_ATOMIC

        template <class T>
        WEFTI_DEVICE int weft_dev_atomic_swap(const weft_dev &dev, T *dest, T value, int pe, T *old)
{
    WEFTI_ATOMICALLY(dev, dest, pe, T, *old = wefti_atomic_swap(at, value), WEFTI_DEV_AMO_SWAP, value, T(), old)
}
#undef WEFTI_ATOMICALLY

template <class T> WEFTI_DEVICE int weft_dev_atomic_inc(const weft_dev &dev, T *dest, int pe)
{
    return weft_dev_atomic_add(dev, dest, (T)1, pe);
}

template <class T> WEFTI_DEVICE int weft_dev_atomic_fetch_inc(const weft_dev &dev, T *dest, int pe, T *old)
{
    return weft_dev_atomic_fetch_add(dev, dest, (T)1, pe, old);
}

#endif
