/* weft/device/slice.cuh: what a collective works on: the buffers, and which part of them is whose. */
#ifndef WEFTI_DEVICE_SLICE_CUH
#define WEFTI_DEVICE_SLICE_CUH

#include "weft/device/unit.cuh"

/* A call's part in the data: slice `index` of `count`, each taken through a channel of its own. is_alone: one scope of
 * a user's kernel has all; else blocks of whole warps share it. is_ready: every dest may be written before its member
 * has called. */
typedef struct wefti_slice {
    wefti_u32 index;
    wefti_u32 count;
    bool is_alone;
    bool is_ready;
} wefti_slice;

#define WEFTI_ALONE (wefti_slice{0, 1, true, false})
#define WEFTI_ALONE_READY (wefti_slice{0, 1, true, true})

/* Units or bytes first .. end - 1. */
typedef struct wefti_range {
    wefti_u64 first;
    wefti_u64 end;
} wefti_range;

/* Part `index` of `count` equal ones, multiples of `grain`, the last ones shorter. */
WEFTI_DEVICE wefti_range wefti_range_part(wefti_range all, wefti_u32 index, wefti_u32 count, wefti_u32 grain)
{
    wefti_u64 length = all.end - all.first;
    wefti_u64 part = ((length + count - 1) / count + grain - 1) / grain * grain;
    wefti_u64 first = index * part < length ? index * part : length;
    wefti_u64 end = first + part < length ? first + part : length;
    wefti_range range = {all.first + first, all.first + end};
    return range;
}

WEFTI_DEVICE wefti_range wefti_slice_units(wefti_slice slice, wefti_u64 bytes)
{
    wefti_range all = {0, (bytes + WEFTI_DEV_UNIT - 1) / WEFTI_DEV_UNIT};
    return wefti_range_part(all, slice.index, slice.count, 1);
}

WEFTI_DEVICE wefti_range wefti_slice_bytes(wefti_slice slice, wefti_u64 bytes)
{
    wefti_range all = {0, bytes};
    return wefti_range_part(all, slice.index, slice.count, 128);
}

/* See weft_dev_alltoallv. */
typedef struct wefti_v {
    const wefti_u64 *send_offsets;
    const wefti_u64 *send_bytes;
    const wefti_u64 *receive_offsets;
} wefti_v;

typedef struct wefti_vector {
    wefti_u64 dest;
    wefti_u64 source;
    wefti_u64 bytes; /* of dest */
    wefti_u64 part; /* reduce_scatter: bytes of a member's block in the source; else 0 */
} wefti_vector;

/* Unit `unit` of what member `number` is to combine, of this PE's source. */
template <bool FLAT = false>
WEFTI_DEVICE wefti_wide wefti_vector_load(const wefti_vector &vector, int number, wefti_u64 unit)
{
    return wefti_unit_load<WEFTI_HERE, FLAT>(vector.source + (wefti_u64)(wefti_u32)number * vector.part, unit,
                                             vector.bytes);
}

#endif
