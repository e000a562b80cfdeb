/* faces/shmem/face.h: the one world of an OpenSHMEM program, and what the routines share. */
#ifndef WEFTI_SHMEM_FACE_H
#define WEFTI_SHMEM_FACE_H

#include <shmem.h>
#include <stdint.h>

#include "faces/shmem/static_data.h"
#include "weft/coll.h"
#include "weft/ctx.h"
#include "weft/heap.h"
#include "weft/lock.h"
#include "weft/wait.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HIDDEN __attribute__((visibility("hidden")))

/* Handles below this are the header's constants. */
#define WEFTI_SHMEM_TEAMS 4

/* A PE's symmetric record. Other PEs write to `exit` to end the program. */
typedef struct wefti_shmem_notice {
    uint64_t exit; /* 0, or WEFTI_SHMEM_EXIT | the code to exit with */
    uint64_t pid;
    uint64_t pid_namespace; /* that the number is of */
    uint64_t bytes; /* that this PE asks shmem_malloc for */
    uint64_t largest; /* that any asks for */
} wefti_shmem_notice;

#define WEFTI_SHMEM_EXIT ((uint64_t)1 << 32)

typedef struct wefti_shmem_face {
    weft_world *world; /* NULL before init and after the last finalize */
    weft_team *teams[WEFTI_SHMEM_TEAMS]; /* by handle; the first is NULL */
    wefti_shmem_notice *notice; /* symmetric */
    int thread_level;
    int init_count; /* finalizes that are due */
} wefti_shmem_face;

extern HIDDEN wefti_shmem_face wefti_shmem;

/* A routine cannot go on: say why, in one line, and end the program on all PEs. `call` is the name of the routine, with
 * or without the p of its profiling name. */
HIDDEN void wefti_shmem_fail(const char *call, weft_status status) __attribute__((noreturn, cold));
/* The same for what weft does not know of: `cause` says what is wrong, and the remedy. */
HIDDEN void wefti_shmem_refuse(const char *call, const char *cause) __attribute__((noreturn, cold));
/* An argument that must point somewhere does not. */
HIDDEN void wefti_shmem_refuse_null(const char *call, const char *argument) __attribute__((noreturn, cold));
/* The program ends on all PEs, with this code. */
HIDDEN void wefti_shmem_end(int code) __attribute__((noreturn));

/* The team of an active set that this PE is a member of: the world's, or one made when its members first call with it.
 * `sync` is the work array of that call. */
HIDDEN weft_team *wefti_shmem_active_set(const char *call, int start, int log_stride, int size, long *sync);
/* Forget them: their world ends. */
HIDDEN void wefti_shmem_active_sets_drop(void);

static inline weft_team *wefti_shmem_team(shmem_team_t team)
{
    uintptr_t number = (uintptr_t)team;
    return number < WEFTI_SHMEM_TEAMS ? wefti_shmem.teams[number] : (weft_team *)(void *)team;
}

#endif
