/* faces/nvshmem/every/once.cuh: the routines that have no types, in one kernel that checks itself: results[0] is the
 * line of what is wrong. */
#ifndef FACES_NVSHMEM_EVERY_ONCE_CUH
#define FACES_NVSHMEM_EVERY_ONCE_CUH

#include "faces/nvshmem/every/kernels.cuh"

#define ONCE_BYTES 1116 /* 16 by a thread, 100 by a warp, 1000 by the block */

#define ONCE_CHECK(HOLDS)                                                                                              \
    if (!(HOLDS)) {                                                                                                    \
        a.results[0] = __LINE__;                                                                                       \
    }

/* What a PE sends. */
EVERY_DEVICE unsigned char once_byte(int pe, unsigned i)
{
    return (unsigned char)(i * 7u + (unsigned)pe * 31u + 1u);
}

EVERY_DEVICE void once_queries(const every_args &a)
{
    int major = 0;
    int minor = 0;
    int patch = -1;
    char name[NVSHMEM_MAX_NAME_LEN] = "";
    nvshmem_info_get_version(&major, &minor);
    ONCE_CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    ONCE_CHECK(major == NVSHMEM_VENDOR_MAJOR_VERSION && patch == NVSHMEM_VENDOR_PATCH_VERSION);
    nvshmem_info_get_name(name);
    ONCE_CHECK(name[0] == NVSHMEM_VENDOR_STRING[0]);
    ONCE_CHECK(nvshmem_my_pe() == a.pe && nvshmem_n_pes() == a.pes);
    ONCE_CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == a.pe && nvshmem_team_n_pes(a.team) == a.pes);
    ONCE_CHECK(nvshmem_team_translate_pe(a.team, nvshmem_team_my_pe(a.team), NVSHMEM_TEAM_WORLD) == a.pe);
    ONCE_CHECK(nvshmem_ptr(a.to, a.pe) == a.to && nvshmem_ptr(a.to, a.pes) == NULL);
    ONCE_CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, a.to) == NULL);
}

/* Bytes that are counted, which also say when they have come; then looked at by way of their address. */
EVERY_DEVICE void once_counted(const every_args &a)
{
    const int before = (a.pe + a.pes - 1) % a.pes;
    uint64_t *const signal = &a.signals[2];
    for (unsigned i = threadIdx.x; i < ONCE_BYTES; i += blockDim.x) {
        a.from[i] = once_byte(a.pe, i);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ONCE_CHECK(nvshmemx_putmem_signal_counted_nbi(a.to, a.from, 16, signal, a.next) == 0);
    }
    if (threadIdx.x / 32 == 2) {
        ONCE_CHECK(nvshmemx_putmem_signal_counted_nbi_warp(a.to + 16, a.from + 16, 100, signal, a.next) == 0);
    }
    ONCE_CHECK(nvshmemx_putmem_signal_counted_nbi_block(a.to + 116, a.from + 116, 1000, signal, a.next) == 0);
    if (threadIdx.x == 0) {
        nvshmemx_signal_counted_wait_until(signal, ONCE_BYTES);
        ONCE_CHECK(nvshmemx_signal_counted_load(signal) == ONCE_BYTES);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ONCE_BYTES; i += blockDim.x) {
        ONCE_CHECK(a.to[i] == once_byte(before, i));
    }
    nvshmemx_barrier_all_block();
    if (threadIdx.x == 0) {
        nvshmemx_signal_counted_reset(signal);
        ONCE_CHECK(nvshmemx_signal_counted_load(signal) == 0);
        const unsigned char *const there = (const unsigned char *)nvshmem_ptr(a.to, a.next);
        ONCE_CHECK(there != NULL && there[5] == once_byte(a.pe, 5));
    }
}

EVERY_DEVICE void once_signals(const every_args &a)
{
    if (threadIdx.x == 0) {
        nvshmemx_signal_op(&a.signals[0], 5, NVSHMEM_SIGNAL_SET, a.next);
        nvshmemx_signal_op(&a.signals[1], 3, NVSHMEM_SIGNAL_ADD, a.next);
        nvshmemx_qp_signal_op(&a.signals[1], 4, NVSHMEM_SIGNAL_ADD, a.next, NVSHMEMX_QP_DEFAULT);
        ONCE_CHECK(nvshmem_signal_wait_until(&a.signals[0], NVSHMEM_CMP_NE, 0) == 5);
        ONCE_CHECK(nvshmem_signal_wait_until(&a.signals[1], NVSHMEM_CMP_GT, 6) == 7);
        ONCE_CHECK(nvshmem_signal_fetch(&a.signals[0]) == 5 && nvshmem_signal_fetch(&a.signals[1]) == 7);
    }
}

/* Of a block: one at a time, which can be asked for. */
EVERY_DEVICE void once_regions(const every_args &a)
{
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    int active = -1;
    ONCE_CHECK(nvshmemx_region_start(&region, &attrs) == 0 && nvshmemx_region_stop(region) == 0);
    if (threadIdx.x < 32) {
        ONCE_CHECK(nvshmemx_region_start_warp(&region, NULL) == 0 && nvshmemx_region_stop_warp(region) == 0);
    }
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    ONCE_CHECK(nvshmemx_region_start_block(&region, &attrs) == 0);
    ONCE_CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &active) == 0 && active == 1);
    ONCE_CHECK(nvshmemx_region_stop_block(region) == 0);
    ONCE_CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, &active) == 0 && active == 0);
}

EVERY_KERNEL(once)
{
    once_queries(a);
    once_counted(a);
    once_signals(a);
    once_regions(a);
    ONCE_CHECK(nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD) == 0); /* the block is one */
    nvshmemx_barrier_all_block();
}
static const every_call once_calls[] = {{"once.cuh", EVERY_IS_OTHER}};
EVERY_SET(once, ONCE, 1, EVERY_BITS)

#endif
