/* weft/device/far.cuh: PEs that load and store do not reach, from inside kernels: requests in the ring that this PE's
 * proxy takes (dev.h). All of it is out of line: what follows an address that turned out to be nowhere.
 *
 * A request carries its data, so that the source can be reused once it is made, whatever memory it is in. A long one
 * says where the data is, if that is memory from which the proxy can copy, and is waited for until that has been read.
 * Requests to one PE take effect in order; who made one goes on, and weft_dev_quiet waits until all have taken effect.
 * Gets and atomics that fetch wait for the answer. A PE that does not answer is latched as the culprit at the
 * deadline. */
#ifndef WEFTI_DEVICE_FAR_CUH
#define WEFTI_DEVICE_FAR_CUH

#include "weft/device/copy.cuh"
#include "weft/device/wait.cuh"

#define WEFTI_NO_TICKET (~(wefti_u64)0)

WEFTI_DEVICE wefti_dev_ring *wefti_far_ring(const weft_dev *dev)
{
    return (wefti_dev_ring *)wefti_ld_relaxed(&dev->control->ring);
}

WEFTI_DEVICE wefti_dev_entry *wefti_far_entry(const weft_dev *dev, wefti_u64 ticket)
{
    return &wefti_far_ring(dev)->entries[ticket % WEFTI_DEV_RING_ENTRIES];
}

/* What every PE calls the `bytes` symmetric bytes at `address`, if load and store do not reach them on `pe`; else 0. */
WEFTI_DEVICE wefti_u64 wefti_far_place_here(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    wefti_u64 offset = address - dev->heap;
    if (!wefti_dev_is_beyond(*dev, address, pe)) {
        return 0;
    }
    if (offset < dev->heap_bytes) {
        return bytes <= dev->heap_bytes - offset ? WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_DEVICE, offset) : 0;
    }
    offset = address - dev->host_heap;
    if (offset < dev->host_bytes) {
        return bytes <= dev->host_bytes - offset ? WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_HOST, offset) : 0;
    }
    return wefti_dev_registered(dev, address, bytes, WEFTI_DEV_NAME);
}

WEFTI_DEVICE_SLOW wefti_u64 wefti_far_place(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    return wefti_far_place_here(dev, address, bytes, pe);
}

/* ---- requests, one thread each ---- */

/* The ticket of an entry to fill, once there is one; WEFTI_NO_TICKET when there will be none, which has been
 * latched. */
WEFTI_DEVICE wefti_u64 wefti_far_claim(const weft_dev *dev)
{
    wefti_dev_waiter waiter = {0, 0};
    int status = WEFT_OK;
    while (status == WEFT_OK) {
        wefti_u64 ticket = wefti_ld_relaxed(&dev->control->ring_tail);
        if (ticket < wefti_ld_acquire(&dev->control->ring_end)) {
            if (wefti_atomic_cas(&dev->control->ring_tail, ticket, ticket + 1) == ticket) {
                return ticket;
            }
            continue;
        }
        wefti_u64 end = wefti_ld_acquire(&wefti_far_ring(dev)->end);
        if (ticket < end) {
            wefti_st_release(&dev->control->ring_end, end);
        } else {
            status = wefti_dev_pause_flat(*dev, &waiter);
        }
    }
    if (status == WEFT_ERR_TIMEOUT) {
        (void)wefti_dev_latch_here(dev, status, (int)wefti_ld_relaxed(&wefti_far_ring(dev)->awaited) - 1);
    }
    return WEFTI_NO_TICKET;
}

/* Let the proxy have the entry, filled by this thread or, before a barrier, by others of its scope. */
WEFTI_DEVICE void wefti_far_post(wefti_dev_entry *entry, wefti_u64 ticket, int pe)
{
    entry->pe = pe;
    wefti_st_release(&entry->filled, ticket + 1);
}

/* Wait for the answer; its status. For functions that are out of line, and for all others. */
WEFTI_DEVICE int wefti_far_answer_here(const weft_dev *dev, wefti_u64 ticket)
{
    int status =
        wefti_dev_wait_here(dev, (const wefti_u64 *)&wefti_far_entry(dev, ticket)->answered, WEFT_CMP_EQ, ticket + 1);
    return status == WEFT_OK ? wefti_far_entry(dev, ticket)->status : status;
}

WEFTI_DEVICE_SLOW int wefti_far_answer(const weft_dev *dev, wefti_u64 ticket)
{
    return wefti_far_answer_here(dev, ticket);
}

/* The same; a failure is latched. */
WEFTI_DEVICE int wefti_far_await(const weft_dev *dev, wefti_u64 ticket, int pe)
{
    const int status = wefti_far_answer(dev, ticket);
    return status == WEFT_OK ? WEFT_OK : wefti_dev_latch(dev, status, pe);
}

WEFTI_DEVICE void wefti_far_take(const weft_dev *dev, wefti_u64 ticket)
{
    wefti_st_release(&wefti_far_entry(dev, ticket)->taken, ticket + 1);
}

/* What is asked for of a word of 4 or 8 bytes. */
WEFTI_DEVICE wefti_u32 wefti_far_ask(int kind, int op, int bits, int is_fetched)
{
    return (wefti_u32)(kind | op << 8 | bits << 16 | is_fetched << 24);
}

/* Ask for it. The ticket, or WEFTI_NO_TICKET after a failure, which has been latched. */
WEFTI_DEVICE wefti_u64 wefti_far_word_here(const weft_dev *dev, wefti_u32 ask, wefti_u64 place, wefti_u64 value,
                                           wefti_u64 cond, int pe)
{
    const wefti_u64 ticket = wefti_far_claim(dev);
    if (ticket != WEFTI_NO_TICKET) {
        wefti_dev_entry *entry = wefti_far_entry(dev, ticket);
        entry->request.kind = (int)(ask & 255);
        entry->request.op = (int)(ask >> 8 & 255);
        entry->request.bits = (int)(ask >> 16 & 255);
        entry->request.answer = (int)(ask >> 24);
        entry->request.place = place;
        entry->request.bytes = 0;
        entry->request.value = value;
        entry->request.cond = cond;
        wefti_far_post(entry, ticket, pe);
    }
    return ticket;
}

WEFTI_DEVICE_SLOW wefti_u64 wefti_far_word(const weft_dev *dev, wefti_u32 ask, wefti_u64 place, wefti_u64 value,
                                           wefti_u64 cond, int pe)
{
    return wefti_far_word_here(dev, ask, place, value, cond, pe);
}

/* The value before; undefined after a failure, which has been latched. */
WEFTI_DEVICE wefti_u64 wefti_far_fetch(const weft_dev *dev, wefti_u64 ticket, int pe)
{
    wefti_u64 old = 0;
    if (ticket != WEFTI_NO_TICKET) {
        if (wefti_far_await(dev, ticket, pe) == WEFT_OK) {
            old = wefti_far_entry(dev, ticket)->old;
        }
        wefti_far_take(dev, ticket);
    }
    return old;
}

WEFTI_DEVICE int wefti_far_signal_here(const weft_dev *dev, wefti_u64 signal, wefti_u64 value, int op, int pe)
{
    const wefti_u64 place = wefti_far_place_here(dev, signal, sizeof(wefti_u64), pe);
    if (place == 0) {
        return wefti_dev_latch_here(dev, WEFT_ERR_RANGE, pe);
    }
    return wefti_far_word_here(dev, wefti_far_ask(WEFTI_DEV_REQUEST_SIGNAL, op, 64, 0), place, value, 0, pe) ==
                   WEFTI_NO_TICKET
               ? weft_dev_fault(*dev)
               : WEFT_OK;
}

WEFTI_DEVICE_SLOW int wefti_far_signal(const weft_dev *dev, wefti_u64 signal, wefti_u64 value, int op, int pe)
{
    return wefti_far_signal_here(dev, signal, value, op, pe);
}

/* Wait until all that this PE's kernels have asked for has taken effect. */
WEFTI_DEVICE_SLOW int wefti_far_quiet(const weft_dev *dev)
{
    int status = wefti_dev_wait_here(dev, (const wefti_u64 *)&wefti_far_ring(dev)->done, WEFT_CMP_GE,
                                     wefti_ld_relaxed(&dev->control->ring_tail));
    return status == WEFT_ERR_TIMEOUT
               ? wefti_dev_latch_here(dev, status, (int)wefti_ld_relaxed(&wefti_far_ring(dev)->awaited) - 1)
               : status;
}

/* ---- bytes; all threads of the scope ---- */

/* Thread 0's ticket as the number of an entry, for all threads. */
#define WEFTI_NO_ENTRY 0xffffffffu
WEFTI_DEVICE wefti_u32 wefti_far_share_entry(weft_scope scope, wefti_u64 ticket)
{
    return wefti_scope_first(scope,
                             ticket == WEFTI_NO_TICKET ? WEFTI_NO_ENTRY : (wefti_u32)(ticket % WEFTI_DEV_RING_ENTRIES));
}

WEFTI_DEVICE void wefti_far_fill(wefti_dev_entry *entry, int kind, wefti_u64 place, wefti_u64 bytes)
{
    entry->request.kind = kind;
    entry->request.answer = kind == WEFTI_DEV_REQUEST_GET ? WEFTI_DEV_ANSWER_DONE : WEFTI_DEV_ANSWER_NONE;
    entry->request.place = place;
    entry->request.bytes = bytes;
}

/* The data of one request. Few registers: 16, 4 or 1 byte at a time. */
template <class Side> WEFTI_DEVICE void wefti_far_copy(weft_scope scope, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    const wefti_u64 together = to | from | bytes;
    if ((together & 15) == 0) {
        WEFTI_UNROLL(1)
        for (wefti_u32 i = scope.rank * 16; i < bytes; i += scope.size * 16) {
            Side::store((wefti_wide *)(to + i), Side::load((const wefti_wide *)(from + i)));
        }
    } else if ((together & 3) == 0) {
        WEFTI_UNROLL(1)
        for (wefti_u32 i = scope.rank * 4; i < bytes; i += scope.size * 4) {
            Side::move((wefti_u32 *)(to + i), (const wefti_u32 *)(from + i));
        }
    } else {
        WEFTI_UNROLL(1)
        for (wefti_u32 i = scope.rank; i < bytes; i += scope.size) {
            Side::move((unsigned char *)(to + i), (const unsigned char *)(from + i));
        }
    }
}

/* Whether the host's copies reach local memory: symmetric memory; and, in the library's own kernels, whatever a call of
 * the host named. Shared and local memory of a kernel, say, they do not. */
WEFTI_DEVICE bool wefti_far_is_copied(const weft_dev *dev, wefti_u64 local, wefti_u64 bytes)
{
#if defined(WEFTI_FAR_LOCAL_IS_COPIED)
    (void)dev;
    (void)local;
    (void)bytes;
    return true;
#else
    const wefti_u64 offset = local - dev->heap;
    const wefti_u64 host_offset = local - dev->host_heap;
    return (offset < dev->heap_bytes && bytes <= dev->heap_bytes - offset) ||
           (host_offset < dev->host_bytes && bytes <= dev->host_bytes - host_offset) ||
           wefti_dev_registered(dev, local, bytes, WEFTI_DEV_NAME) != 0;
#endif
}

/* Whether many bytes at `local` can go to or come from `place` by copies of the host's. */
WEFTI_DEVICE_SLOW bool wefti_far_takes_long(const weft_dev *dev, wefti_u64 place, wefti_u64 local, wefti_u64 bytes)
{
    return WEFTI_DEV_PLACE_SPACE(place) != WEFTI_DEV_SPACE_HOST &&
           wefti_ld_relaxed(&wefti_far_ring(dev)->has_long) != 0 && wefti_far_is_copied(dev, local, bytes);
}

/* Ask for such a copy of the first WEFTI_DEV_LONG_MAX of `bytes`. The ticket, or WEFTI_NO_TICKET after a failure, which
 * has been latched. */
WEFTI_DEVICE_SLOW wefti_u64 wefti_far_ask_long(const weft_dev *dev, int kind, wefti_u64 place, wefti_u64 local,
                                               wefti_u64 bytes, int pe)
{
    const wefti_u64 ticket = wefti_far_claim(dev);
    if (ticket != WEFTI_NO_TICKET) {
        wefti_dev_entry *entry = wefti_far_entry(dev, ticket);
        entry->request.kind = kind;
        entry->request.op = 0;
        entry->request.answer = kind == WEFTI_DEV_REQUEST_LONG_PUT ? WEFTI_DEV_ANSWER_READ : WEFTI_DEV_ANSWER_DONE;
        entry->request.place = place;
        entry->request.bytes = bytes < WEFTI_DEV_LONG_MAX ? bytes : WEFTI_DEV_LONG_MAX;
        entry->request.value = local;
        wefti_far_post(entry, ticket, pe);
    }
    return ticket;
}

/* Wait until it is done; 0 after a failure, which has been latched. */
WEFTI_DEVICE_SLOW bool wefti_far_await_long(const weft_dev *dev, wefti_u64 ticket, int pe)
{
    const int status = wefti_far_answer_here(dev, ticket);
    wefti_far_take(dev, ticket);
    if (status != WEFT_OK) {
        (void)wefti_dev_latch_here(dev, status, pe);
    }
    return status == WEFT_OK;
}

/* What has become of many bytes. */
enum { WEFTI_FAR_NOT_LONG, WEFTI_FAR_MOVED, WEFTI_FAR_FAILED };

/* One thread: ask the proxy to move them between `place` and `local`, and wait until `local` can be used again, or has
 * them. A failure has been latched. */
WEFTI_DEVICE wefti_u32 wefti_far_move_long(const weft_dev *dev, int kind, wefti_u64 place, wefti_u64 local,
                                           wefti_u64 bytes, int pe)
{
    WEFTI_UNROLL(1)
    for (wefti_u64 at = 0; at < bytes; at += WEFTI_DEV_LONG_MAX) {
        const wefti_u64 ticket = wefti_far_ask_long(dev, kind, place + at, local + at, bytes - at, pe);
        if (ticket == WEFTI_NO_TICKET || !wefti_far_await_long(dev, ticket, pe)) {
            return WEFTI_FAR_FAILED;
        }
    }
    return WEFTI_FAR_MOVED;
}

/* All threads of the scope: what they did before is there for the copies, and what has come is there for them.
 * WEFTI_FAR_NOT_LONG: they are few, or where no copy reaches them, and nothing has been done. */
WEFTI_DEVICE wefti_u32 wefti_far_try_long(weft_scope scope, const weft_dev *dev, int kind, wefti_u64 place,
                                          wefti_u64 local, wefti_u64 bytes, int pe)
{
    if (bytes < WEFTI_DEV_LONG_BYTES) {
        return WEFTI_FAR_NOT_LONG;
    }
    wefti_scope_sync(scope);
    wefti_u32 moved = WEFTI_FAR_NOT_LONG;
    if (scope.rank == 0 && wefti_far_takes_long(dev, place, local, bytes)) {
        moved = wefti_far_move_long(dev, kind, place, local, bytes, pe);
    }
    moved = wefti_scope_first(scope, moved);
    wefti_scope_sync(scope);
    return moved;
}

/* Put at most WEFTI_DEV_REQUEST_BYTES to `place`. WEFT_OK, or a failure, which has been latched. */
WEFTI_DEVICE_SLOW int wefti_far_put_one(wefti_u32 rank, wefti_u32 size, int kind, const weft_dev *dev, wefti_u64 place,
                                        wefti_u64 source, wefti_u32 bytes, int pe)
{
    const weft_scope scope = {rank, size, (wefti_scope_kind)kind};
    const wefti_u64 ticket = scope.rank == 0 ? wefti_far_claim(dev) : 0;
    const wefti_u32 number = wefti_far_share_entry(scope, ticket);
    if (number == WEFTI_NO_ENTRY) {
        return weft_dev_fault(*dev);
    }
    wefti_dev_entry *entry = &wefti_far_ring(dev)->entries[number];
    wefti_far_copy<wefti_to_remote>(scope, (wefti_u64)entry->request.data, source, bytes);
    wefti_scope_sync(scope);
    if (scope.rank == 0) {
        wefti_far_fill(entry, WEFTI_DEV_REQUEST_PUT, place, bytes);
        wefti_far_post(entry, ticket, pe);
    }
    return WEFT_OK;
}

WEFTI_DEVICE wefti_u32 wefti_far_part(wefti_u64 bytes)
{
    return bytes < WEFTI_DEV_REQUEST_BYTES ? (wefti_u32)bytes : (wefti_u32)WEFTI_DEV_REQUEST_BYTES;
}

WEFTI_DEVICE int wefti_far_put_at(weft_scope scope, const weft_dev *dev, wefti_u64 place, wefti_u64 source,
                                  wefti_u64 bytes, int pe)
{
    const wefti_u32 moved = wefti_far_try_long(scope, dev, WEFTI_DEV_REQUEST_LONG_PUT, place, source, bytes, pe);
    int status = moved == WEFTI_FAR_FAILED ? weft_dev_fault(*dev) : WEFT_OK;
    WEFTI_UNROLL(1)
    for (wefti_u64 at = moved == WEFTI_FAR_NOT_LONG ? 0 : bytes; at < bytes && status == WEFT_OK;
         at += WEFTI_DEV_REQUEST_BYTES) {
        status = wefti_far_put_one(scope.rank, scope.size, scope.kind, dev, place + at, source + at,
                                   wefti_far_part(bytes - at), pe);
    }
    return status;
}

WEFTI_DEVICE int wefti_far_put(weft_scope scope, const weft_dev *dev, wefti_u64 dest, wefti_u64 source, wefti_u64 bytes,
                               int pe)
{
    const wefti_u64 place = wefti_far_place(dev, dest, bytes, pe);
    return place == 0 ? wefti_dev_no_place(*dev, pe) : wefti_far_put_at(scope, dev, place, source, bytes, pe);
}

/* One thread asks for at most WEFTI_DEV_REQUEST_BYTES from `place`, and waits. The ticket, whose entry is to be given
 * back by wefti_far_take; WEFTI_NO_TICKET after a failure, which has been latched. */
WEFTI_DEVICE_SLOW wefti_u64 wefti_far_ask_bytes(const weft_dev *dev, wefti_u64 place, wefti_u32 bytes, int pe)
{
    const wefti_u64 ticket = wefti_far_claim(dev);
    if (ticket == WEFTI_NO_TICKET) {
        return ticket;
    }
    wefti_dev_entry *entry = wefti_far_entry(dev, ticket);
    wefti_far_fill(entry, WEFTI_DEV_REQUEST_GET, place, bytes);
    wefti_far_post(entry, ticket, pe);
    const int status = wefti_far_answer_here(dev, ticket);
    if (status != WEFT_OK) {
        (void)wefti_dev_latch_here(dev, status, pe);
        wefti_far_take(dev, ticket);
        return WEFTI_NO_TICKET;
    }
    return ticket;
}

/* What has come to `dest`; the entry is given back. WEFT_OK, or the fault. */
WEFTI_DEVICE_SLOW int wefti_far_get_one(wefti_u32 rank, wefti_u32 size, int kind, const weft_dev *dev, wefti_u64 dest,
                                        wefti_u32 bytes, wefti_u64 ticket)
{
    const weft_scope scope = {rank, size, (wefti_scope_kind)kind};
    const wefti_u32 number = wefti_far_share_entry(scope, ticket);
    if (number == WEFTI_NO_ENTRY) {
        return weft_dev_fault(*dev);
    }
    wefti_far_copy<wefti_from_remote>(scope, dest, (wefti_u64)wefti_far_ring(dev)->entries[number].request.data, bytes);
    wefti_scope_sync(scope);
    if (scope.rank == 0) {
        wefti_far_take(dev, ticket);
    }
    return WEFT_OK;
}

WEFTI_DEVICE int wefti_far_get(weft_scope scope, const weft_dev *dev, wefti_u64 dest, wefti_u64 source, wefti_u64 bytes,
                               int pe)
{
    const wefti_u64 place = wefti_far_place(dev, source, bytes, pe);
    int status = place == 0 ? wefti_dev_no_place(*dev, pe) : WEFT_OK;
    const wefti_u32 moved = place == 0
                                ? (wefti_u32)WEFTI_FAR_NOT_LONG
                                : wefti_far_try_long(scope, dev, WEFTI_DEV_REQUEST_LONG_GET, place, dest, bytes, pe);
    status = moved == WEFTI_FAR_FAILED ? weft_dev_fault(*dev) : status;
    WEFTI_UNROLL(1)
    for (wefti_u64 at = moved == WEFTI_FAR_NOT_LONG ? 0 : bytes; at < bytes && status == WEFT_OK;
         at += WEFTI_DEV_REQUEST_BYTES) {
        const wefti_u32 part = wefti_far_part(bytes - at);
        const wefti_u64 ticket = scope.rank == 0 ? wefti_far_ask_bytes(dev, place + at, part, pe) : WEFTI_NO_TICKET;
        status = wefti_far_get_one(scope.rank, scope.size, scope.kind, dev, dest + at, part, ticket);
    }
    return status;
}

/* One element of at most 8 bytes; one thread. */
WEFTI_DEVICE int wefti_far_p_at(const weft_dev *dev, wefti_u64 place, wefti_u64 bits, wefti_u32 bytes, int pe)
{
    const wefti_u64 ticket = wefti_far_claim(dev);
    if (ticket == WEFTI_NO_TICKET) {
        return weft_dev_fault(*dev);
    }
    wefti_dev_entry *entry = wefti_far_entry(dev, ticket);
    *(wefti_u64 *)entry->request.data = bits; /* the low bytes come first */
    wefti_far_fill(entry, WEFTI_DEV_REQUEST_PUT, place, bytes);
    wefti_far_post(entry, ticket, pe);
    return WEFT_OK;
}

WEFTI_DEVICE int wefti_far_p_here(const weft_dev *dev, wefti_u64 dest, wefti_u64 bits, wefti_u32 bytes, int pe)
{
    const wefti_u64 place = wefti_far_place_here(dev, dest, bytes, pe);
    return place == 0 ? wefti_dev_latch_here(dev, WEFT_ERR_RANGE, pe) : wefti_far_p_at(dev, place, bits, bytes, pe);
}

WEFTI_DEVICE_SLOW int wefti_far_p(const weft_dev *dev, wefti_u64 dest, wefti_u64 bits, wefti_u32 bytes, int pe)
{
    return wefti_far_p_here(dev, dest, bits, bytes, pe);
}

WEFTI_DEVICE int wefti_far_g_here(const weft_dev *dev, wefti_u64 source, wefti_u64 *bits, wefti_u32 bytes, int pe)
{
    const wefti_u64 place = wefti_far_place_here(dev, source, bytes, pe);
    const wefti_u64 ticket = place == 0 ? WEFTI_NO_TICKET : wefti_far_claim(dev);
    if (ticket == WEFTI_NO_TICKET) {
        return place == 0 ? wefti_dev_latch_here(dev, WEFT_ERR_RANGE, pe) : weft_dev_fault(*dev);
    }
    wefti_dev_entry *entry = wefti_far_entry(dev, ticket);
    wefti_far_fill(entry, WEFTI_DEV_REQUEST_GET, place, bytes);
    wefti_far_post(entry, ticket, pe);
    int status = wefti_far_answer_here(dev, ticket);
    if (status == WEFT_OK) {
        *bits = wefti_ld_relaxed((const wefti_u64 *)entry->request.data); /* the low bytes come first */
    } else {
        status = wefti_dev_latch_here(dev, status, pe);
    }
    wefti_far_take(dev, ticket);
    return status;
}

#endif
