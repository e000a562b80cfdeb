/* weft/device/unit.cuh: 16 bytes at a time of buffers of any alignment, here or on another PE. */
#ifndef WEFTI_DEVICE_UNIT_CUH
#define WEFTI_DEVICE_UNIT_CUH

#include "weft/device/copy.cuh"

WEFTI_DEVICE wefti_wide wefti_wide_of(wefti_u64 low, wefti_u64 high)
{
    wefti_wide unit;
    unit.x = (wefti_u32)low;
    unit.y = (wefti_u32)(low >> 32);
    unit.z = (wefti_u32)high;
    unit.w = (wefti_u32)(high >> 32);
    return unit;
}

WEFTI_DEVICE wefti_u64 wefti_wide_low(wefti_wide unit)
{
    return unit.x | (wefti_u64)unit.y << 32;
}

WEFTI_DEVICE wefti_u64 wefti_wide_high(wefti_wide unit)
{
    return unit.z | (wefti_u64)unit.w << 32;
}

/* Which side of a link a buffer is on. */
typedef enum wefti_side { WEFTI_HERE = 0, WEFTI_THERE = 1 } wefti_side;

/* FLAT: for functions that are out of line themselves. */
template <int SIDE> WEFTI_DEVICE wefti_wide wefti_unit_load_bytes(const unsigned char *from, wefti_u32 count)
{
    wefti_u64 part[2] = {0, 0};
    WEFTI_UNROLL(1)
    for (wefti_u32 i = 0; i < count; i++) {
        wefti_u64 byte = SIDE == WEFTI_THERE ? wefti_ld_relaxed(from + i) : from[i];
        part[0] |= i < 8 ? byte << (8 * i) : 0;
        part[1] |= i < 8 ? 0 : byte << (8 * (i - 8));
    }
    return wefti_wide_of(part[0], part[1]);
}

template <int SIDE> WEFTI_DEVICE_SLOW wefti_wide wefti_unit_load_uneven(const unsigned char *from, wefti_u32 count)
{
    return wefti_unit_load_bytes<SIDE>(from, count);
}

template <int SIDE>
WEFTI_DEVICE void wefti_unit_store_bytes(unsigned char *to, wefti_u32 count, wefti_u64 low, wefti_u64 high)
{
    WEFTI_UNROLL(1)
    for (wefti_u32 i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)((i < 8 ? low : high) >> (8 * (i & 7)));
        if (SIDE == WEFTI_THERE) {
            wefti_st_relaxed(to + i, byte);
        } else {
            to[i] = byte;
        }
    }
}

template <int SIDE>
WEFTI_DEVICE_SLOW void wefti_unit_store_uneven(unsigned char *to, wefti_u32 count, wefti_u64 low, wefti_u64 high)
{
    wefti_unit_store_bytes<SIDE>(to, count, low, high);
}

/* Bytes of unit number `unit` of a buffer. */
WEFTI_DEVICE wefti_u32 wefti_unit_count(wefti_u64 unit, wefti_u64 bytes)
{
    wefti_u64 left = bytes - unit * WEFTI_DEV_UNIT;
    return left < WEFTI_DEV_UNIT ? (wefti_u32)left : WEFTI_DEV_UNIT;
}

/* Unit number `unit` of the `bytes` bytes at `base`; what is beyond them reads as zeros and is not written. */
template <int SIDE, bool FLAT = false>
WEFTI_DEVICE wefti_wide wefti_unit_load(wefti_u64 base, wefti_u64 unit, wefti_u64 bytes)
{
    wefti_u64 at = base + unit * WEFTI_DEV_UNIT;
    wefti_u32 count = wefti_unit_count(unit, bytes);
    if (__builtin_expect((base & 15) == 0 && count == WEFTI_DEV_UNIT, 1)) {
        return SIDE == WEFTI_THERE ? wefti_ld_remote((const wefti_wide *)at) : wefti_ld_wide((const wefti_wide *)at);
    }
    return FLAT ? wefti_unit_load_bytes<SIDE>((const unsigned char *)at, count)
                : wefti_unit_load_uneven<SIDE>((const unsigned char *)at, count);
}

template <int SIDE, bool FLAT = false>
WEFTI_DEVICE void wefti_unit_store(wefti_u64 base, wefti_u64 unit, wefti_u64 bytes, wefti_wide value)
{
    wefti_u64 at = base + unit * WEFTI_DEV_UNIT;
    wefti_u32 count = wefti_unit_count(unit, bytes);
    if (__builtin_expect((base & 15) == 0 && count == WEFTI_DEV_UNIT, 1)) {
        if (SIDE == WEFTI_THERE) {
            wefti_st_remote((wefti_wide *)at, value);
        } else {
            *(wefti_wide *)at = value;
        }
        return;
    }
    if (FLAT) {
        wefti_unit_store_bytes<SIDE>((unsigned char *)at, count, wefti_wide_low(value), wefti_wide_high(value));
    } else {
        wefti_unit_store_uneven<SIDE>((unsigned char *)at, count, wefti_wide_low(value), wefti_wide_high(value));
    }
}

#endif
