/* weft_nvshmem/state.h: what kernels are told, and the translation units that hold it.
 *
 * Each unit that nvcc compiles with nvshmem.h has a weft_nvshmem_state of its own, in constant memory, which a
 * constructor announces to libnvshmem_host and which is filled once the device heap is there; no relocatable
 * device code is needed. */
#ifndef WEFT_NVSHMEM_STATE_H
#define WEFT_NVSHMEM_STATE_H

#include "weft/device/dev.h"

/* Of a unit and of the library: when they differ, the unit stays empty and a line says so. */
#define WEFT_NVSHMEM_ABI (1u << 16 | WEFT_DEV_ABI)

typedef struct weft_nvshmem_state {
    wefti_u32 abi; /* WEFT_NVSHMEM_ABI; 0: not filled */
    wefti_i32 team_count; /* handles below this have an entry in `teams` */
    weft_dev_team world;
    const weft_dev_team *teams; /* by handle, in device memory; pes is 0 where there is none */
} weft_nvshmem_state;

#if !defined(__CUDACC_RTC__)

typedef struct weft_nvshmem_unit {
    struct weft_nvshmem_unit *next; /* the library's */
    int is_filled; /* the library's */
    unsigned abi; /* WEFT_NVSHMEM_ABI */
    /* Copy to the unit's state on the current device. 0: done. */
    int (*fill)(const weft_nvshmem_state *state);
} weft_nvshmem_unit;

#ifdef __cplusplus
extern "C" {
#endif

/* Called by each unit when it is loaded and unloaded. */
__attribute__((visibility("default"))) void weft_nvshmem_unit_add(weft_nvshmem_unit *unit);
__attribute__((visibility("default"))) void weft_nvshmem_unit_remove(weft_nvshmem_unit *unit);

#ifdef __cplusplus
}
#endif
#endif

#endif
