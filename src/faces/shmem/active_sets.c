/* faces/shmem/active_sets.c: the deprecated collectives of active sets. (OpenSHMEM 1.6, 9.9.)
 *
 * An active set is a team, made by its members alone when they first call with it, in their work array, and kept: the
 * set of all PEs is the world's team. Later calls do not touch the work arrays, which stay as the program initialised
 * them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

_Static_assert(SHMEM_SYNC_SIZE * sizeof(long) >= WEFT_TEAM_JOIN_BYTES, "a work array holds what a team is made in");

typedef struct active_set {
    struct active_set *next;
    int start;
    int stride;
    int size;
    weft_team *team;
} active_set;

static struct {
    pthread_mutex_t lock;
    active_set *first;
} sets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static weft_team *find(int start, int stride, int size)
{
    weft_team *team = NULL;
    (void)pthread_mutex_lock(&sets.lock);
    for (const active_set *set = sets.first; set != NULL && team == NULL; set = set->next) {
        if (set->start == start && set->stride == stride && set->size == size) {
            team = set->team;
        }
    }
    (void)pthread_mutex_unlock(&sets.lock);
    return team;
}

static void keep(const char *call, int start, int stride, int size, weft_team *team)
{
    active_set *set = malloc(sizeof *set);
    if (set == NULL) {
        wefti_shmem_refuse(call, "no memory for an active set");
    }
    *set = (active_set){.start = start, .stride = stride, .size = size, .team = team};
    (void)pthread_mutex_lock(&sets.lock);
    set->next = sets.first;
    sets.first = set;
    (void)pthread_mutex_unlock(&sets.lock);
}

/* Check that all members of the set are PEs of the world. */
static void check_range(const char *call, int start, int stride, int size)
{
    const int pes = weft_world_pes(wefti_shmem.world);
    if (start < 0 || size < 1 || start + (int64_t)(size - 1) * stride >= pes) {
        char cause[160];
        (void)snprintf(cause, sizeof cause,
                       "the %d PEs %d, %lld ... are not all among the %d; lower PE_start, logPE_stride or PE_size",
                       size, start, (long long)start + stride, pes);
        wefti_shmem_refuse(call, cause);
    }
}

weft_team *wefti_shmem_active_set(const char *call, int start, int log_stride, int size, long *sync)
{
    const int stride = size == 1 || log_stride < 0 || log_stride > 30 ? 1 : 1 << log_stride;
    if (log_stride < 0 || log_stride > 30) {
        wefti_shmem_refuse(call, "argument 'logPE_stride' is the logarithm to base 2 of a stride; give 0 to 30");
    }
    if (start == 0 && stride == 1 && size == weft_world_pes(wefti_shmem.world)) {
        return wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_WORLD];
    }
    weft_team *team = find(start, stride, size);
    if (team == NULL) {
        check_range(call, start, stride, size);
        if (!weft_addr_accessible(wefti_shmem.world, SYMMETRIC(sync), weft_world_pe(wefti_shmem.world))) {
            wefti_shmem_refuse(call, "pSync is not symmetric; make it a global or static array, or shmem_malloc it");
        }
        weft_status status = weft_team_join(wefti_shmem.world, start, stride, size, SYMMETRIC(sync), &team);
        if (status != WEFT_OK) {
            wefti_shmem_fail(call, status);
        }
        keep(call, start, stride, size, team);
    }
    return team;
}

void wefti_shmem_active_sets_drop(void)
{
    while (sets.first != NULL) {
        active_set *set = sets.first;
        sets.first = set->next;
        free(set); /* its team ends with the world */
    }
}

void pshmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    CHECK(weft_team_barrier(ACTIVE_SET(PE_start, logPE_stride, PE_size, pSync)), 1);
}
WEAK_pshmem_barrier

    /* The root's dest stays as it is, unlike that of a team's broadcast. So a PE alone has nothing to do, and PE_root
     * is not checked: old programs give the number in the world there, not the one in the set. */
    static void
    broadcast(const char *call, weft_team *team, void *dest, const void *source, size_t bytes, int root)
{
    if (weft_team_pes(team) == 1) {
        return;
    }
    void *to = weft_team_pe(team) == root ? BUFFER(source, bytes) : BUFFER(dest, bytes);
    weft_status status = weft_broadcastmem(team, to, BUFFER(source, bytes), bytes, root);
    if (status != WEFT_OK) {
        wefti_shmem_fail(call, status);
    }
}

void pshmem_broadcast32(void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride,
                        int PE_size, long *pSync)
{
    broadcast(__func__, ACTIVE_SET(PE_start, logPE_stride, PE_size, pSync), dest, source, wefti_bytes_of(nelems, 4),
              PE_root);
}
WEAK_pshmem_broadcast32

    void
    pshmem_broadcast64(void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride,
                       int PE_size, long *pSync)
{
    broadcast(__func__, ACTIVE_SET(PE_start, logPE_stride, PE_size, pSync), dest, source, wefti_bytes_of(nelems, 8),
              PE_root);
}
WEAK_pshmem_broadcast64
