/* weft/device/copy.cuh: moving bytes between this PE's memory and another's with the loads and stores of a scope's
 * threads. 16 bytes a thread where the two addresses allow it, several of them in flight: one block then fills what one
 * multiprocessor can send (45 GB/s on an H200). */
#ifndef WEFTI_DEVICE_COPY_CUH
#define WEFTI_DEVICE_COPY_CUH

#include "weft/device/scope.cuh"

/* How a side of a copy is read and written. Local memory is anything the thread can address (shared memory, its stack);
 * remote memory is global, and is answered from a cache of this multiprocessor only where the name says so. */
struct wefti_to_remote {
    /* Loads in flight a thread: alone or in a warp, and in a block. */
    static const int unroll_few = 8;
    static const int unroll_block = 4;
    static WEFTI_DEVICE wefti_wide load(const wefti_wide *from)
    {
        return *from;
    }
    static WEFTI_DEVICE void store(wefti_wide *to, wefti_wide value)
    {
        wefti_st_remote(to, value);
    }
    template <class T> static WEFTI_DEVICE void move(T *to, const T *from)
    {
        wefti_st_relaxed(to, *from);
    }
};

struct wefti_from_remote {
    /* Over a link the more the better: 128 KiB a multiprocessor. */
    static const int unroll_few = 8;
    static const int unroll_block = 8;
    static WEFTI_DEVICE wefti_wide load(const wefti_wide *from)
    {
        return wefti_ld_remote(from);
    }
    static WEFTI_DEVICE void store(wefti_wide *to, wefti_wide value)
    {
        *to = value;
    }
    template <class T> static WEFTI_DEVICE void move(T *to, const T *from)
    {
        *to = wefti_ld_relaxed(from);
    }
};

/* By way of the multiprocessor's cache: accesses to what lies together take one way over the link, and to what has been
 * read since the last acquire none. */
struct wefti_from_remote_cached {
    static const int unroll_few = 8;
    static const int unroll_block = 8;
    static WEFTI_DEVICE wefti_wide load(const wefti_wide *from)
    {
        return wefti_ld_cached(from);
    }
    static WEFTI_DEVICE void store(wefti_wide *to, wefti_wide value)
    {
        *to = value;
    }
    template <class T> static WEFTI_DEVICE void move(T *to, const T *from)
    {
        *to = wefti_ld_cached(from);
    }
};

/* The next N units of a thread, from its i-th on: all loads before the first store. */
template <class Side, int N>
WEFTI_DEVICE void wefti_copy_units(wefti_wide *to, const wefti_wide *from, wefti_u32 i, wefti_u32 step)
{
    wefti_wide held[N];
    WEFTI_UNROLL(N)
    for (wefti_u32 j = 0; j < N; j++) {
        held[j] = Side::load(from + (i + j * step));
    }
    WEFTI_UNROLL(N)
    for (wefti_u32 j = 0; j < N; j++) {
        Side::store(to + (i + j * step), held[j]);
    }
}

/* UNROLL units a thread at a time, then what is left of them by halves: a round trip each. */
template <class Side, int UNROLL>
WEFTI_DEVICE void wefti_copy_unrolled(weft_scope scope, wefti_wide *to, const wefti_wide *from, wefti_u32 count)
{
    const wefti_u32 step = scope.size;
    wefti_u32 i = scope.rank;
    WEFTI_UNROLL(1)
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        wefti_copy_units<Side, UNROLL>(to, from, i, step);
    }
    if (UNROLL > 4 && i + 3 * step < count) {
        wefti_copy_units<Side, 4>(to, from, i, step);
        i += 4 * step;
    }
    if (i + step < count) {
        wefti_copy_units<Side, 2>(to, from, i, step);
        i += 2 * step;
    }
    if (i < count) {
        wefti_copy_units<Side, 1>(to, from, i, step);
    }
}

template <class Side>
WEFTI_DEVICE void wefti_copy_wide(weft_scope scope, wefti_wide *to, const wefti_wide *from, wefti_u32 count)
{
    if (scope.kind == WEFTI_SCOPE_BLOCK) {
        wefti_copy_unrolled<Side, Side::unroll_block>(scope, to, from, count);
    } else {
        wefti_copy_unrolled<Side, Side::unroll_few>(scope, to, from, count);
    }
}

/* Elements of the widest type that both addresses are a multiple of. */
template <class Side, class T>
WEFTI_DEVICE void wefti_copy_elements(weft_scope scope, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    WEFTI_UNROLL(1)
    for (wefti_u64 i = scope.rank; i < bytes / sizeof(T); i += scope.size) {
        Side::move((T *)to + i, (const T *)from + i);
    }
}

/* Any addresses and sizes. For functions that are out of line themselves. */
template <class Side>
WEFTI_DEVICE void wefti_copy_any(wefti_u32 rank, wefti_u32 size, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    const weft_scope scope = {rank, size, WEFTI_SCOPE_THREAD}; /* no barrier is needed here */
    wefti_u64 apart = to ^ from;
    wefti_u64 width = (apart & 15) == 0 ? 16 : (apart & 7) == 0 ? 8 : (apart & 3) == 0 ? 4 : (apart & 1) == 0 ? 2 : 1;
    wefti_u64 head = -to & (width - 1);
    head = head < bytes ? head : bytes;
    wefti_copy_elements<Side, unsigned char>(scope, to, from, head);
    to += head;
    from += head;
    bytes -= head;
    wefti_u64 body = bytes & ~(width - 1);
    if (width == 16) {
        WEFTI_UNROLL(1)
        for (wefti_u64 i = rank; i < body / 16; i += size) {
            Side::store((wefti_wide *)to + i, Side::load((const wefti_wide *)from + i));
        }
    } else if (width == 8) {
        wefti_copy_elements<Side, wefti_u64>(scope, to, from, body);
    } else if (width == 4) {
        wefti_copy_elements<Side, wefti_u32>(scope, to, from, body);
    } else if (width == 2) {
        wefti_copy_elements<Side, unsigned short>(scope, to, from, body);
    } else {
        wefti_copy_elements<Side, unsigned char>(scope, to, from, body);
    }
    wefti_copy_elements<Side, unsigned char>(scope, to + body, from + body, bytes - body);
}

/* The same out of line, like the next: few registers, and the even case stays small. */
template <class Side>
WEFTI_DEVICE_SLOW void wefti_copy_uneven(wefti_u32 rank, wefti_u32 size, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    wefti_copy_any<Side>(rank, size, to, from, bytes);
}

/* Fewer than 16 bytes, from multiples of 16 on. */
template <class Side>
WEFTI_DEVICE_SLOW void wefti_copy_tail(wefti_u32 rank, wefti_u32 size, wefti_u64 to, wefti_u64 from, wefti_u32 bytes)
{
    const weft_scope scope = {rank, size, WEFTI_SCOPE_THREAD};
    if (bytes == 8) {
        wefti_copy_elements<Side, wefti_u64>(scope, to, from, bytes);
    } else if ((bytes & 3) == 0) {
        wefti_copy_elements<Side, wefti_u32>(scope, to, from, bytes);
    } else {
        wefti_copy_elements<Side, unsigned char>(scope, to, from, bytes);
    }
}

/* At most one access a thread, of `width` bytes, of which both addresses and `bytes` are multiples. */
template <class Side>
WEFTI_DEVICE_SLOW void wefti_copy_once(wefti_u32 rank, wefti_u32 width, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    const wefti_u64 at = (wefti_u64)rank * width;
    if (at >= bytes) {
        return;
    }
    if (width == 16) {
        Side::store((wefti_wide *)(to + at), Side::load((const wefti_wide *)(from + at)));
    } else if (width == 8) {
        Side::move((wefti_u64 *)(to + at), (const wefti_u64 *)(from + at));
    } else if (width == 4) {
        Side::move((wefti_u32 *)(to + at), (const wefti_u32 *)(from + at));
    } else if (width == 2) {
        Side::move((unsigned short *)(to + at), (const unsigned short *)(from + at));
    } else {
        Side::move((unsigned char *)(to + at), (const unsigned char *)(from + at));
    }
}

/* At most two accesses a thread, of 16 bytes, of which both addresses and `bytes` are multiples: both loads are under
 * way before the first store. */
template <class Side> WEFTI_DEVICE void wefti_copy_two(weft_scope scope, wefti_u64 to, wefti_u64 from, wefti_u32 bytes)
{
    const wefti_u32 at = scope.rank * 16;
    const wefti_u32 next = at + scope.size * 16;
    wefti_wide first;
    wefti_wide second;
    if (at < bytes) {
        first = Side::load((const wefti_wide *)(from + at));
    }
    if (next < bytes) {
        second = Side::load((const wefti_wide *)(from + next));
    }
    if (at < bytes) {
        Side::store((wefti_wide *)(to + at), first);
    }
    if (next < bytes) {
        Side::store((wefti_wide *)(to + next), second);
    }
}

#define WEFTI_WIDE_MAX ((wefti_u64)1 << 34) /* bytes whose 16s 32 bits count */

/* No scope barrier before or after. The even case is short: every warp of the scope runs through it. */
template <class Side> WEFTI_DEVICE void wefti_copy_bytes(weft_scope scope, void *to, const void *from, wefti_u64 bytes)
{
    if (__builtin_expect((((wefti_u64)to | (wefti_u64)from) & 15) != 0 || bytes > WEFTI_WIDE_MAX, 0)) {
        wefti_copy_uneven<Side>(scope.rank, scope.size, (wefti_u64)to, (wefti_u64)from, bytes);
        return;
    }
    wefti_copy_wide<Side>(scope, (wefti_wide *)to, (const wefti_wide *)from, (wefti_u32)(bytes / 16));
    wefti_u32 tail = (wefti_u32)bytes & 15;
    if (__builtin_expect(tail != 0, 0)) {
        wefti_copy_tail<Side>(scope.rank, scope.size, (wefti_u64)to + (bytes - tail), (wefti_u64)from + (bytes - tail),
                              tail);
    }
}

#endif
