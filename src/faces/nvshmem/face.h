/* faces/nvshmem/face.h: the one world of an NVSHMEM program, and what the routines share. */
#ifndef WEFTI_NVSHMEM_FACE_H
#define WEFTI_NVSHMEM_FACE_H

#include <nvshmem.h>
#include <stdint.h>

#include "weft/coll.h"
#include "weft/device.h"
#include "weft/heap.h"
#include "weft/region.h"
#include "weft/stream.h"
#include "weft/wait.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HIDDEN __attribute__((visibility("hidden")))

/* Handles of teams are numbers below this; those from NVSHMEM_TEAMS_MIN on are the program's. */
#define WEFTI_NV_TEAMS 1024

/* Where the symmetric heap is. It is decided once a GPU is there for all PEs, or none can be. */
typedef enum wefti_nv_place {
    WEFTI_NV_UNDECIDED = 0,
    WEFTI_NV_HOST, /* in the host's memory: no GPUs, or the program wants it so */
    WEFTI_NV_DEVICE
} wefti_nv_place;

typedef struct wefti_nv_team {
    weft_team *team; /* NULL: no such handle */
    int contexts; /* that the program said */
    uint64_t number; /* of those that the program made on this PE, from 1 on; the predefined ones have 0 */
    float *scratch; /* symmetric, for reductions of half and bfloat16 on the host; NULL: none yet */
} wefti_nv_team;

typedef struct wefti_nv_face {
    weft_world *world; /* NULL before init and after the last finalize */
    wefti_nv_place place;
    wefti_nv_team teams[WEFTI_NV_TEAMS];
    uint64_t teams_made; /* by the program, on this PE */
    weft_stream *stream; /* for what the host does on the device heap; NULL without one */
    uint64_t *notice; /* symmetric: 0, or WEFTI_NV_EXIT | the code that another PE ends the program with */
    size_t heap_max_bytes; /* 0: weft's */
    int device; /* the number of the GPU; -1: the current one */
    int thread_level;
    int init_count; /* finalizes that are due */
    int sharing; /* what nvshmemx_init_status says of PEs that share a GPU; 0: none do */
    int latched; /* the first failure that no call has returned yet; atomic */
} wefti_nv_face;

#define WEFTI_NV_EXIT ((uint64_t)1 << 32)

extern HIDDEN wefti_nv_face wefti_nvshmem;

/* ---- failures: calls without a status log one line, and the next call that has a status returns it ---- */

/* A call has failed: what NVSHMEM calls the status. */
HIDDEN int wefti_nv_fail(const char *call, weft_status status) __attribute__((cold));
/* The same for what weft does not know of: `cause` says what is wrong, and the remedy. */
HIDDEN int wefti_nv_refuse(const char *call, int status, const char *cause) __attribute__((cold));
/* Report as the above does, and latch the failure. */
HIDDEN void wefti_nv_latch(const char *call, weft_status status) __attribute__((cold));
HIDDEN void wefti_nv_latch_refusal(const char *call, int status, const char *cause) __attribute__((cold));
/* What was latched, which is forgotten: 0 for nothing. */
HIDDEN int wefti_nv_take_latched(void);

/* The result of a call that has a status. */
static inline int wefti_nv_result(const char *call, weft_status status)
{
    if (LIKELY(status == WEFT_OK && __atomic_load_n(&wefti_nvshmem.latched, __ATOMIC_RELAXED) == 0)) {
        return NVSHMEMX_SUCCESS;
    }
    return status != WEFT_OK ? wefti_nv_fail(call, status) : wefti_nv_take_latched();
}

/* ---- setup.c ---- */

/* The lock of init, finalize, teams, registrations and modules. */
HIDDEN void wefti_nv_lock(void);
HIDDEN void wefti_nv_unlock(void);

/* ---- teams.c ---- */

static inline weft_team *wefti_nv_members(nvshmem_team_t team)
{
    return (uint32_t)team < WEFTI_NV_TEAMS ? wefti_nvshmem.teams[team].team : NULL;
}

/* The predefined teams of a new world; and forget all. */
HIDDEN void wefti_nv_teams_open(void);
HIDDEN void wefti_nv_teams_close(void);
/* The handle of the team that the program made first behind number `number` of its teams; INVALID: there is none. */
HIDDEN nvshmem_team_t wefti_nv_team_after(uint64_t number);
/* A handle of a new team, which kernels know, too. Collective over the team; NULL: this PE is no member. A status of
 * NVSHMEM. */
HIDDEN int wefti_nv_team_open(const char *call, weft_team *team, const nvshmem_team_config_t *config, long mask,
                              nvshmem_team_t *handle);

/* ---- team_ids.c ---- */

/* Where PEs of a new world meet that have an id of a team. Collective. */
HIDDEN weft_status wefti_nv_team_ids_open(void);
HIDDEN void wefti_nv_team_ids_close(void);

/* ---- regions.c ---- */

HIDDEN void wefti_nv_regions_close(void);

/* ---- device.c ---- */

/* Decide whether the heap is on GPUs, unless that has been done. Collective. WEFT_ERR_STATE: no GPU is chosen yet. */
HIDDEN weft_status wefti_nv_place_decide(void);
/* The same in a call of all PEs that can go on without: a GPU that cannot be used is latched. */
HIDDEN void wefti_nv_place_try(const char *call);
/* What kernels are told of a team whose handle is new or gone (team NULL). Collective over the team. */
HIDDEN weft_status wefti_nv_device_team(nvshmem_team_t handle);
/* Wait for a stream. */
HIDDEN weft_status wefti_nv_stream_wait(weft_stream *stream);
/* Zero memory of the device heap; and copy from memory that the driver or the host knows to the host's. */
HIDDEN weft_status wefti_nv_device_zero(void *block, size_t bytes);
HIDDEN weft_status wefti_nv_device_read(void *to, const void *from, size_t bytes);
/* Free what the face has on the device, before its world ends. */
HIDDEN void wefti_nv_device_close(void);

/* ---- modules.c ---- */

/* A unit that was loaded after the device heap was there could not be filled yet: its constructor ran before CUDA knew
 * its kernels. Calls of the host that programs make before kernels try again. */
extern HIDDEN int wefti_nv_units_late;
HIDDEN void wefti_nv_units_retry(void);

static inline void wefti_nv_units_check(void)
{
    if (!LIKELY(__atomic_load_n(&wefti_nv_units_late, __ATOMIC_RELAXED) == 0)) {
        wefti_nv_units_retry();
    }
}

/* For calls that all PEs make: if a GPU has been chosen since the last one, put the heap there, so that kernels can run
 * after the call. */
static inline void wefti_nv_settle(const char *call)
{
    wefti_nv_units_check();
    if (!LIKELY(wefti_nvshmem.place != WEFTI_NV_UNDECIDED)) {
        wefti_nv_place_try(call);
    }
}

/* ---- memory.c ---- */

HIDDEN void wefti_nv_memory_close(void);

/* ---- small.c: what the host has no arithmetic for ---- */

HIDDEN weft_status wefti_nv_small_reduce(weft_team *team, weft_dtype dtype, weft_op op, void *dest, const void *source,
                                         size_t count);
HIDDEN weft_status wefti_nv_small_reduce_scatter(weft_team *team, weft_dtype dtype, weft_op op, void *dest,
                                                 const void *source, size_t count);

#endif
