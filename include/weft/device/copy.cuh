/* weft/device/copy.cuh: moving bytes between this PE's memory and another's with the loads and stores of a scope's
 * threads. 16 bytes a thread where the two addresses allow it, several of them in flight: one block then fills what one
 * multiprocessor can send (45 GB/s on an H200). */
#ifndef WEFTI_DEVICE_COPY_CUH
#define WEFTI_DEVICE_COPY_CUH

#include "weft/device/scope.cuh"

#define WEFTI_PUT_UNROLL 4
#define WEFTI_GET_UNROLL 8

/* How a side of a copy is read and written. Local memory is anything the thread can address (shared memory, its stack);
 * remote memory is global, and is never answered from a cache of this multiprocessor. */
struct wefti_to_remote {
    static const int unroll = WEFTI_PUT_UNROLL;
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
    static const int unroll = WEFTI_GET_UNROLL;
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

template <class Side>
WEFTI_DEVICE void wefti_copy_wide(weft_scope scope, wefti_wide *to, const wefti_wide *from, wefti_u64 count)
{
    const wefti_u64 step = scope.size;
    wefti_u64 i = scope.rank;
    for (; i + (Side::unroll - 1) * step < count; i += Side::unroll * step) {
        wefti_wide held[Side::unroll];
#if !defined(WEFT_DEVICE_ON_HOST)
#pragma unroll
#endif
        for (int j = 0; j < Side::unroll; j++) {
            held[j] = Side::load(from + i + (wefti_u64)j * step);
        }
#if !defined(WEFT_DEVICE_ON_HOST)
#pragma unroll
#endif
        for (int j = 0; j < Side::unroll; j++) {
            Side::store(to + i + (wefti_u64)j * step, held[j]);
        }
    }
    for (; i < count; i += step) {
        Side::store(to + i, Side::load(from + i));
    }
}

/* Elements of the widest type that both addresses are a multiple of. */
template <class Side, class T>
WEFTI_DEVICE void wefti_copy_elements(weft_scope scope, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    for (wefti_u64 i = scope.rank; i < bytes / sizeof(T); i += scope.size) {
        Side::move((T *)to + i, (const T *)from + i);
    }
}

/* Fewer than 16 bytes from a multiple of 16 on: in the widest pieces that make them up. */
template <class Side> WEFTI_DEVICE void wefti_copy_tail(weft_scope scope, wefti_u64 to, wefti_u64 from, wefti_u64 bytes)
{
    if (bytes == 8) {
        wefti_copy_elements<Side, wefti_u64>(scope, to, from, bytes);
    } else if ((bytes & 3) == 0) {
        wefti_copy_elements<Side, wefti_u32>(scope, to, from, bytes);
    } else {
        wefti_copy_elements<Side, unsigned char>(scope, to, from, bytes);
    }
}

/* No scope barrier before or after. */
template <class Side>
WEFTI_DEVICE void wefti_copy_bytes(weft_scope scope, void *to_pointer, const void *from_pointer, wefti_u64 bytes)
{
    wefti_u64 to = (wefti_u64)to_pointer;
    wefti_u64 from = (wefti_u64)from_pointer;
    wefti_u64 apart = to ^ from;
    /* Addresses that are equal modulo 16: single bytes up to the next multiple, then 16 at once, then single bytes. */
    if ((apart & 15) == 0) {
        wefti_u64 head = -to & 15;
        head = head < bytes ? head : bytes;
        if (head != 0) {
            wefti_copy_elements<Side, unsigned char>(scope, to, from, head);
        }
        to += head;
        from += head;
        bytes -= head;
        wefti_copy_wide<Side>(scope, (wefti_wide *)to, (const wefti_wide *)from, bytes / 16);
        wefti_u64 wide = bytes & ~(wefti_u64)15;
        if (wide != bytes) {
            wefti_copy_tail<Side>(scope, to + wide, from + wide, bytes - wide);
        }
        return;
    }
    wefti_u64 width = (apart & 7) == 0 ? 8 : (apart & 3) == 0 ? 4 : (apart & 1) == 0 ? 2 : 1;
    wefti_u64 head = -to & (width - 1);
    head = head < bytes ? head : bytes;
    wefti_copy_elements<Side, unsigned char>(scope, to, from, head);
    to += head;
    from += head;
    bytes -= head;
    wefti_u64 body = bytes & ~(width - 1);
    if (width == 8) {
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

#endif
