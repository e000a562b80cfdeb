/* weft/device/bulk.cuh: put by the copy engine of a multiprocessor (cp.async.bulk), through shared memory.
 *
 * One thread drives it: a single warp then moves as much as a whole block does with its own loads and stores (45 GB/s
 * per multiprocessor on an H200), and its other threads are free. Below sm_90, and for addresses that are not equal
 * modulo 16, the scope's threads copy instead. */
#ifndef WEFTI_DEVICE_BULK_CUH
#define WEFTI_DEVICE_BULK_CUH

#include "weft/device/rma.cuh"

#define WEFTI_BULK_STAGES 4
#define WEFTI_BULK_HEAD 128

#if WEFTI_HAS_BULK

/* Whole multiples of 16 bytes, both addresses multiples of 16. One thread. Three loads run ahead of the stores. */
WEFTI_DEVICE void wefti_bulk_run(wefti_u64 to, wefti_u64 from, wefti_u64 bytes, unsigned char *shared,
                                 wefti_u32 shared_bytes)
{
    wefti_u64 *barriers = (wefti_u64 *)shared;
    unsigned char *stages = shared + WEFTI_BULK_HEAD;
    const wefti_u32 stage_bytes = (shared_bytes - WEFTI_BULK_HEAD) / WEFTI_BULK_STAGES & ~15u;
    const wefti_u64 chunks = (bytes + stage_bytes - 1) / stage_bytes;
    for (int i = 0; i < WEFTI_BULK_STAGES; i++) {
        wefti_load_barrier_init(&barriers[i]);
    }
    wefti_load_barrier_publish();
    wefti_fence_before_bulk();
    wefti_u64 loaded = 0;
    for (wefti_u64 stored = 0; stored < chunks; stored++) {
        /* The stage of load i was stored from by store i - 4, which has been read when at most 1 store is pending. */
        for (; loaded < chunks && loaded < stored + WEFTI_BULK_STAGES - 1; loaded++) {
            if (loaded >= WEFTI_BULK_STAGES) {
                wefti_bulk_stores_read<1>();
            }
            wefti_u64 at = loaded * stage_bytes;
            wefti_u32 part = (wefti_u32)(bytes - at < stage_bytes ? bytes - at : stage_bytes);
            wefti_u32 stage = (wefti_u32)(loaded % WEFTI_BULK_STAGES);
            wefti_bulk_load(stages + stage * stage_bytes, (const void *)(from + at), part, &barriers[stage]);
        }
        wefti_u32 stage = (wefti_u32)(stored % WEFTI_BULK_STAGES);
        while (!wefti_load_barrier_passed(&barriers[stage], (unsigned)(stored / WEFTI_BULK_STAGES & 1))) {
        }
        wefti_u64 at = stored * stage_bytes;
        wefti_u32 part = (wefti_u32)(bytes - at < stage_bytes ? bytes - at : stage_bytes);
        wefti_bulk_store((void *)(to + at), stages + stage * stage_bytes, part);
    }
    wefti_bulk_stores_complete();
    for (int i = 0; i < WEFTI_BULK_STAGES; i++) {
        wefti_load_barrier_fini(&barriers[i]);
    }
}

#endif

/* As weft_dev_put, from global memory, through `shared`: shared_bytes >= 4224 bytes of shared memory, aligned to 128,
 * that nothing else uses meanwhile. On return the bytes are written, not only read from the source: a later release
 * (signal) by any thread of the scope orders them. Best at warp scope with 16 KiB or more. */
WEFTI_DEVICE int weft_dev_put_bulk(weft_scope scope, const weft_dev &dev, void *dest, const void *source,
                                   wefti_u64 bytes, int pe, void *shared, wefti_u32 shared_bytes)
{
    wefti_u64 to = wefti_dev_peer(dev, dest, bytes, pe);
    if (to == 0) {
        wefti_scope_sync(scope);
        return bytes == 0 ? WEFT_OK : wefti_far_put(scope, &dev, (wefti_u64)dest, (wefti_u64)source, bytes, pe);
    }
    wefti_scope_sync(scope);
#if WEFTI_HAS_BULK
    wefti_u64 from = (wefti_u64)source;
    if (((to ^ from) & 15) == 0 && bytes >= 512) {
        wefti_u64 head = -to & 15;
        wefti_u64 body = (bytes - head) & ~(wefti_u64)15;
        if (scope.rank == 0) {
            wefti_bulk_run(to + head, from + head, body, (unsigned char *)shared, shared_bytes);
        }
        wefti_copy_bytes<wefti_to_remote>(scope, (void *)to, source, head);
        wefti_copy_bytes<wefti_to_remote>(scope, (void *)(to + head + body), (const void *)(from + head + body),
                                          bytes - head - body);
        wefti_scope_sync(scope);
        return WEFT_OK;
    }
#else
    (void)shared;
    (void)shared_bytes;
#endif
    wefti_copy_bytes<wefti_to_remote>(scope, (void *)to, source, bytes);
    wefti_scope_sync(scope);
    return WEFT_OK;
}

#endif
