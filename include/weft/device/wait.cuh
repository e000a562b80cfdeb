/* weft/device/wait.cuh: waiting inside a kernel. One thread of the scope polls and shares the status; now and then it
 * looks at the latched fault and the clock, and once it has waited long at the abort word, too; it gives up at this
 * PE's deadline. */
#ifndef WEFTI_DEVICE_WAIT_CUH
#define WEFTI_DEVICE_WAIT_CUH

#include "weft/compare.h"
#include "weft/device/address.cuh"

/* Looks between two looks at the latched fault and the clock. */
#define WEFTI_DEV_LOOKS 128u
#define WEFTI_DEV_REST_NS 200u
#define WEFTI_DEV_SPIN_NS 20000u
/* How long a waiter looks at device memory only. The abort word is in host memory, and reads from there hold up the
 * stores to other GPUs behind them: a few hundred waiters that look every 100 us take nine tenths of the rate. */
#define WEFTI_DEV_PATIENCE_NS 10000000u
#define WEFTI_DEV_LONG_REST_NS 20000u

/* Kept in registers: no function outside this header's inline ones gets its address, since a waiter in memory would be
 * fetched again after each acquire. */
typedef struct wefti_dev_waiter {
    wefti_u64 start_ns; /* 0: has not been slow yet */
    wefti_u32 looks;
} wefti_dev_waiter;

/* Whether to go on: WEFT_OK, the latched fault, WEFT_ERR_ABORTED (latched), or WEFT_ERR_TIMEOUT (not latched: the
 * caller knows who is missing). */
WEFTI_DEVICE int wefti_dev_pause_here(const weft_dev *dev, wefti_u64 start_ns)
{
    wefti_u64 waited = wefti_time_ns() - start_ns;
    if (dev->abi != WEFT_DEV_ABI) { /* the host's headers were others; up to `control` all are alike */
        return wefti_dev_latch_here(dev, WEFT_ERR_UNSUPPORTED, dev->pe);
    }
    wefti_u64 fault = wefti_ld_relaxed(&dev->control->fault);
    if (fault != 0) {
        return wefti_dev_fault_status(fault);
    }
    if (waited < WEFTI_DEV_PATIENCE_NS) {
        if (waited > WEFTI_DEV_SPIN_NS) {
            wefti_rest(WEFTI_DEV_REST_NS);
        }
    } else {
        wefti_u64 abort_word = wefti_ld_relaxed(&dev->control->abort);
        wefti_u64 aborted = abort_word == 0 ? 0 : wefti_ld_acquire((const wefti_u64 *)abort_word);
        if (aborted != 0) {
            return wefti_dev_latch_here(dev, WEFT_ERR_ABORTED, (int)(aborted >> 32 & 0x7fffffffu));
        }
        wefti_rest(WEFTI_DEV_LONG_REST_NS);
    }
    return waited >= wefti_ld_relaxed(&dev->control->deadline_ns) ? WEFT_ERR_TIMEOUT : WEFT_OK;
}

WEFTI_DEVICE_SLOW int wefti_dev_pause_slow(const weft_dev *dev, wefti_u64 start_ns)
{
    return wefti_dev_pause_here(dev, start_ns);
}

/* Whether it is time for such a look; from then on start_ns counts. */
WEFTI_DEVICE bool wefti_dev_is_look(wefti_dev_waiter *waiter)
{
    if (++waiter->looks % WEFTI_DEV_LOOKS != 0) {
        return false;
    }
    waiter->start_ns = waiter->start_ns == 0 ? wefti_time_ns() : waiter->start_ns;
    return true;
}

WEFTI_DEVICE int wefti_dev_pause(const weft_dev &dev, wefti_dev_waiter *waiter)
{
    return wefti_dev_is_look(waiter) ? wefti_dev_pause_slow(&dev, waiter->start_ns) : WEFT_OK;
}

/* The same for functions that are out of line themselves. */
WEFTI_DEVICE int wefti_dev_pause_flat(const weft_dev &dev, wefti_dev_waiter *waiter)
{
    return wefti_dev_is_look(waiter) ? wefti_dev_pause_here(&dev, waiter->start_ns) : WEFT_OK;
}

/* All threads of the scope get the status of its first one. */
WEFTI_DEVICE int wefti_dev_share(weft_scope scope, const weft_dev &dev, int status)
{
    if (scope.kind == WEFTI_SCOPE_WARP) {
        status = wefti_first_of_warp(status);
        wefti_sync_warp(); /* what the first thread has acquired */
        return status;
    }
    if (scope.kind == WEFTI_SCOPE_BLOCK && wefti_any_of_block(status) != 0) {
        return weft_dev_fault(dev); /* whatever failed has been latched */
    }
    return status;
}

/* All threads get a status when any of them has one, which has been latched. Also a barrier of the scope. */
WEFTI_DEVICE int wefti_dev_share_any(weft_scope scope, const weft_dev &dev, int status)
{
    int any = scope.kind == WEFTI_SCOPE_WARP    ? wefti_any_of_warp(status)
              : scope.kind == WEFTI_SCOPE_BLOCK ? wefti_any_of_block(status)
                                                : status;
    if (scope.kind == WEFTI_SCOPE_WARP) {
        wefti_sync_warp(); /* a vote orders no memory */
    }
    return __builtin_expect(any != 0, 0) ? weft_dev_fault(dev) : WEFT_OK;
}

template <class T> WEFTI_DEVICE int wefti_dev_holds(T seen, weft_cmp cmp, T value)
{
    switch (cmp) {
    case WEFT_CMP_EQ:
        return seen == value;
    case WEFT_CMP_NE:
        return seen != value;
    case WEFT_CMP_GT:
        return seen > value;
    case WEFT_CMP_GE:
        return seen >= value;
    case WEFT_CMP_LT:
        return seen < value;
    case WEFT_CMP_LE:
        return seen <= value;
    }
    return 0;
}

/* An integer of 4 or 8 bytes, as an acquire. */
template <class T> WEFTI_DEVICE T wefti_dev_acquire(const T *variable)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "wait on words of 4 or 8 bytes");
    return sizeof(T) == 8 ? (T)wefti_ld_acquire((const wefti_u64 *)variable)
                          : (T)wefti_ld_acquire((const wefti_u32 *)variable);
}

/* One look at it: wefti_fence_looked follows the last one, and makes it an acquire. */
template <class T> WEFTI_DEVICE T wefti_dev_look(const T *variable)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "wait on words of 4 or 8 bytes");
    return sizeof(T) == 8 ? (T)wefti_ld_look((const wefti_u64 *)variable)
                          : (T)wefti_ld_look((const wefti_u32 *)variable);
}

/* The rest of a wait that has not been short; for functions that are out of line, and for all others. */
template <class T> WEFTI_DEVICE int wefti_dev_wait_here(const weft_dev *dev, const T *variable, weft_cmp cmp, T value)
{
    int status = WEFT_OK;
    wefti_dev_waiter waiter = {0, 0};
    while (status == WEFT_OK && !wefti_dev_holds(wefti_dev_look(variable), cmp, value)) {
        status = wefti_dev_pause_flat(*dev, &waiter);
    }
    wefti_fence_looked();
    return status;
}

template <class T>
WEFTI_DEVICE_SLOW int wefti_dev_wait_long(const weft_dev *dev, const T *variable, weft_cmp cmp, T value)
{
    return wefti_dev_wait_here(dev, variable, cmp, value);
}

/* The first looks of a wait, a loop of nothing else: whether one was enough. *seen is what the last one saw. */
template <class T> WEFTI_DEVICE bool wefti_dev_wait_short(const T *variable, weft_cmp cmp, T value, T *seen)
{
    WEFTI_UNROLL(1)
    for (wefti_u32 looks = 0; looks < WEFTI_DEV_LOOKS; looks++) {
        *seen = wefti_dev_look(variable);
        if (wefti_dev_holds(*seen, cmp, value)) {
            wefti_fence_looked();
            return true;
        }
    }
    return false;
}

/* One thread waits. As wefti_dev_pause says: WEFT_ERR_TIMEOUT is not latched. */
template <class T> WEFTI_DEVICE int wefti_dev_wait_word(const weft_dev &dev, const T *variable, weft_cmp cmp, T value)
{
    T seen;
    return wefti_dev_wait_short(variable, cmp, value, &seen) ? WEFT_OK
                                                             : wefti_dev_wait_long(&dev, variable, cmp, value);
}

/* The rest of a wait that has not been short, with WEFT_ERR_TIMEOUT latched. */
template <class T>
WEFTI_DEVICE int wefti_dev_wait_rest(const weft_dev &dev, const T *variable, weft_cmp cmp, T value, int from)
{
    const int status = wefti_dev_wait_long(&dev, variable, cmp, value);
    return __builtin_expect(status == WEFT_ERR_TIMEOUT, 0) ? wefti_dev_latch(&dev, status, from) : status;
}

/* Block until the local variable compares so; what its writer ordered before is then visible to every thread of the
 * scope. `from`: the PE that is to write it, for the fault when it does not; -1 when it could be anyone.
 * WEFT_ERR_TIMEOUT at the deadline, WEFT_ERR_ABORTED, or an earlier fault; all are latched. (OpenSHMEM 1.5, 9.10.) */
template <class T>
WEFTI_DEVICE int weft_dev_wait_until(weft_scope scope, const weft_dev &dev, const T *variable, weft_cmp cmp, T value,
                                     int from = -1)
{
    int status = WEFT_OK;
    T seen;
    if (scope.rank == 0 && !wefti_dev_wait_short(variable, cmp, value, &seen)) {
        status = wefti_dev_wait_rest(dev, variable, cmp, value, from);
    }
    return wefti_dev_share(scope, dev, status);
}

/* Whether the local variable compares so now, as an acquire. One thread. */
template <class T> WEFTI_DEVICE int weft_dev_test(const T *variable, weft_cmp cmp, T value)
{
    return wefti_dev_holds(wefti_dev_acquire(variable), cmp, value);
}

/* The value of a local 64-bit signal word, as an acquire. One thread. */
template <class Signal> WEFTI_DEVICE wefti_u64 weft_dev_signal_fetch(const Signal *signal)
{
    static_assert(sizeof(Signal) == 8, "signals are 64-bit words");
    return wefti_ld_acquire((const wefti_u64 *)signal);
}

template <class Signal>
WEFTI_DEVICE int weft_dev_signal_wait_until(weft_scope scope, const weft_dev &dev, const Signal *signal, weft_cmp cmp,
                                            wefti_u64 value, int from = -1)
{
    static_assert(sizeof(Signal) == 8, "signals are 64-bit words");
    return weft_dev_wait_until(scope, dev, (const wefti_u64 *)signal, cmp, value, from);
}

#endif
