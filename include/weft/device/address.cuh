/* weft/device/address.cuh: where a symmetric byte lies on another PE, and the first fault. */
#ifndef WEFTI_DEVICE_ADDRESS_CUH
#define WEFTI_DEVICE_ADDRESS_CUH

#include "weft/device/atomics.cuh"
#include "weft/device/scope.cuh"
#include "weft/status.h"

/* ---- the first fault -----------------------------------------------------------------------------------------
 * A call that fails returns its status. The first of a PE is latched: waits that begin later return it at once, and the
 * host reports it from its own blocking calls and weft_world_fault. Nothing traps. */

WEFTI_DEVICE int wefti_dev_fault_status(wefti_u64 fault)
{
    return -(int)(wefti_u32)fault;
}

/* Latch {status, culprit}; culprit -1: not known. Returns the latched status, which may be an earlier one. For
 * functions that are out of line themselves (WEFTI_DEVICE_SLOW, ptx.cuh); the next is for all others. */
WEFTI_DEVICE int wefti_dev_latch_here(const weft_dev *dev, int status, int culprit_pe)
{
    wefti_u64 fault = WEFTI_DEV_FAULT_SET | (wefti_u64)(wefti_u32)(culprit_pe + 1) << 32 | (wefti_u32)-status;
    wefti_u64 before = wefti_atomic_cas(&dev->control->fault, (wefti_u64)0, fault);
    if (before != 0) {
        return wefti_dev_fault_status(before);
    }
    wefti_u64 copy = wefti_ld_relaxed(&dev->control->host_fault);
    if (copy != 0) {
        wefti_st_release((wefti_u64 *)copy, fault);
    }
    return status;
}

WEFTI_DEVICE_SLOW int wefti_dev_latch(const weft_dev *dev, int status, int culprit_pe)
{
    return wefti_dev_latch_here(dev, status, culprit_pe);
}

/* The latched status of this PE's kernels, WEFT_OK while there is none. Any thread. */
WEFTI_DEVICE int weft_dev_fault(const weft_dev &dev)
{
    wefti_u64 fault = wefti_ld_relaxed(&dev.control->fault);
    return fault == 0 ? WEFT_OK : wefti_dev_fault_status(fault);
}

/* A team is used by one kernel at a time: two, as on two streams, would take each other's words for their own. Builds
 * with WEFT_DEVICE_CHECKS (the library's own kernels: builds with assertions) latch WEFT_ERR_STATE when two meet; one
 * thread. */
WEFTI_DEVICE int wefti_dev_use_begin(const weft_dev &dev, wefti_u64 *in_use)
{
#if defined(WEFT_DEVICE_CHECKS)
    if (wefti_atomic_swap(in_use, (wefti_u64)1) != 0) {
        return wefti_dev_latch(&dev, WEFT_ERR_STATE, dev.pe);
    }
#else
    (void)dev;
    (void)in_use;
#endif
    return WEFT_OK;
}

WEFTI_DEVICE void wefti_dev_use_end(wefti_u64 *in_use)
{
#if defined(WEFT_DEVICE_CHECKS)
    wefti_st_release(in_use, (wefti_u64)0);
#else
    (void)in_use;
#endif
}

/* ---- addresses ----------------------------------------------------------------------------------------------- */

WEFTI_DEVICE wefti_u64 wefti_dev_shift(wefti_u64 address, const wefti_i64 *delta, wefti_u32 index)
{
    wefti_i64 by = delta[index];
    return by == WEFTI_DEV_FAR ? 0 : address + (wefti_u64)by;
}

/* Registered memory that has `bytes` bytes at `address`: where the near PE of this index has them, or, with
 * WEFTI_DEV_NAME, what every PE calls them. 0: there is none. A table that was replaced while this looked may have been
 * overwritten: look again. */
#define WEFTI_DEV_NAME 0xffffffffu
WEFTI_DEVICE wefti_u64 wefti_dev_registered(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, wefti_u32 index)
{
    wefti_u32 version = (wefti_u32)wefti_ld_acquire(&dev->control->region_version);
    while (version != 0) {
        const wefti_dev_regions *table =
            (const wefti_dev_regions *)wefti_ld_relaxed(&dev->control->region_tables[version & 1]);
        const wefti_dev_region *region = (const wefti_dev_region *)(table + 1); /* begins at or before the address */
        wefti_u64 found = 0;
        WEFTI_UNROLL(1)
        for (wefti_u32 after = (wefti_u32)wefti_ld_relaxed(&table->used); after > 0;) {
            wefti_u32 half = (after + 1) / 2;
            if (wefti_ld_relaxed(&region[half].base) <= address) {
                region += half;
                after -= half;
            } else {
                after = half - 1;
            }
        }
        wefti_u64 held = wefti_ld_relaxed(&region->bytes);
        wefti_u64 offset = address - wefti_ld_relaxed(&region->base);
        if (offset < held && bytes <= held - offset) {
            found = index == WEFTI_DEV_NAME
                        ? WEFTI_DEV_PLACE(WEFTI_DEV_SPACE_REGION + wefti_ld_relaxed(&region->number), offset)
                        : wefti_dev_shift(
                              address, (const wefti_i64 *)wefti_ld_relaxed((const wefti_u64 *)&region->delta), index);
        }
        wefti_fence_acq_rel();
        wefti_u32 now = (wefti_u32)wefti_ld_relaxed(&dev->control->region_version);
        if (now == version) {
            return found;
        }
        version = now;
    }
    return 0;
}

/* Where the region of this number begins here; any number that a PE has registered and not ended. */
WEFTI_DEVICE wefti_u64 wefti_dev_region_base(const weft_dev &dev, wefti_u64 number)
{
    wefti_u64 version = wefti_ld_acquire(&dev.control->region_version);
    const wefti_dev_regions *table =
        (const wefti_dev_regions *)wefti_ld_relaxed(&dev.control->region_tables[version & 1]);
    const wefti_dev_region *regions = (const wefti_dev_region *)(table + 1);
    return wefti_ld_relaxed((const wefti_u64 *)(regions + 1 + wefti_ld_relaxed(&table->used)) + number);
}

/* Everything but the inline case: heaps whose slots follow no rule, the host heap, registered memory, no place at
 * all. */
WEFTI_DEVICE wefti_u64 wefti_dev_peer_here(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    wefti_u32 index = (wefti_u32)pe - dev->near_first;
    wefti_u64 offset = address - dev->heap;
    if (index >= dev->near_count) {
        return 0;
    }
    if (offset < dev->heap_bytes) {
        return bytes > dev->heap_bytes - offset || dev->delta == 0 ? 0 : wefti_dev_shift(address, dev->delta, index);
    }
    offset = address - dev->host_heap;
    if (offset < dev->host_bytes && bytes <= dev->host_bytes - offset) {
        return dev->host_delta == 0 ? address + (wefti_u64)((wefti_i64)(pe - dev->pe) * dev->host_stride)
                                    : wefti_dev_shift(address, dev->host_delta, index);
    }
    return wefti_dev_registered(dev, address, bytes, index);
}

WEFTI_DEVICE_SLOW wefti_u64 wefti_dev_peer_slow(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    return wefti_dev_peer_here(dev, address, bytes, pe);
}

/* Whether `bytes` bytes at `address` lie in a heap whose slots follow one another, and `pe` is near. An aligned word of
 * at most 16 bytes lies in the heap with its first byte. */
WEFTI_DEVICE bool wefti_dev_is_plain(const weft_dev &dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    wefti_u64 offset = address - dev.heap;
    wefti_u32 index = (wefti_u32)pe - dev.near_first;
    return index < dev.near_count && offset < dev.plain_bytes && (bytes <= 16 || bytes <= dev.plain_bytes - offset);
}

WEFTI_DEVICE wefti_u64 wefti_dev_plain(const weft_dev &dev, wefti_u64 address, int pe)
{
    return address - dev.home + (wefti_u64)(wefti_u32)pe * (wefti_u64)dev.stride;
}

/* Where PE `pe` has the `bytes` symmetric bytes at `address`; 0 when there is no such place. */
WEFTI_DEVICE wefti_u64 wefti_dev_peer(const weft_dev &dev, const void *address, wefti_u64 bytes, int pe)
{
    wefti_u64 here = (wefti_u64)address;
    if (__builtin_expect(wefti_dev_is_plain(dev, here, bytes, pe), 1)) {
        return wefti_dev_plain(dev, here, pe);
    }
    return wefti_dev_peer_slow(&dev, here, bytes, pe);
}

/* The same for functions that are out of line themselves. */
WEFTI_DEVICE wefti_u64 wefti_dev_peer_flat(const weft_dev *dev, wefti_u64 address, wefti_u64 bytes, int pe)
{
    return wefti_dev_is_plain(*dev, address, bytes, pe) ? wefti_dev_plain(*dev, address, pe)
                                                        : wefti_dev_peer_here(dev, address, bytes, pe);
}

/* The address at which this kernel can load and store PE `pe`'s copy of the symmetric object at `address`: of the
 * device heap, the host heap or registered memory. NULL when there is none. Any thread. (OpenSHMEM 1.5, 9.1
 * shmem_ptr.) */
template <class T> WEFTI_DEVICE T *weft_dev_ptr(const weft_dev &dev, const T *address, int pe)
{
    return (T *)wefti_dev_peer(dev, address, 1, pe);
}

/* Whether `pe` is one that load and store do not reach. */
WEFTI_DEVICE bool wefti_dev_is_far(const weft_dev &dev, int pe)
{
    wefti_u32 index = (wefti_u32)pe - dev.near_first;
    return (wefti_u32)pe < (wefti_u32)dev.pes &&
           (index >= dev.near_count || (dev.delta != 0 && dev.delta[index] == WEFTI_DEV_FAR));
}

WEFTI_DEVICE bool wefti_dev_in_host_heap(const weft_dev &dev, wefti_u64 address)
{
    return address - dev.host_heap < dev.host_bytes;
}

/* Whether load and store do not reach the symmetric byte at `address` on `pe`: a far PE's, or one of the host heap of a
 * near PE of another host. */
WEFTI_DEVICE bool wefti_dev_is_beyond(const weft_dev &dev, wefti_u64 address, int pe)
{
    wefti_u32 index = (wefti_u32)pe - dev.near_first;
    return wefti_dev_is_far(dev, pe) ||
           (dev.abroad_count != 0 && index < dev.near_count && wefti_dev_in_host_heap(dev, address) &&
            dev.host_delta[index] == WEFTI_DEV_FAR);
}

/* Whether a collective of the team is made of puts and signals: of some member load and store do not reach the buffers
 * at these addresses; 0: a buffer that only its owner uses. The same on all members. */
WEFTI_DEVICE_SLOW int wefti_dev_is_wide(const weft_dev_team *team, wefti_u64 dest, wefti_u64 source)
{
    return team->far_count != 0 || (team->abroad_count != 0 && (wefti_dev_in_host_heap(team->world, dest) ||
                                                                wefti_dev_in_host_heap(team->world, source)));
}

/* There is no such place. */
WEFTI_DEVICE int wefti_dev_no_place(const weft_dev &dev, int pe)
{
    return wefti_dev_latch(&dev, WEFT_ERR_RANGE, pe);
}

#endif
