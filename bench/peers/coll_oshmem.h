/* peers/coll_oshmem.h: the face of any OpenSHMEM 1.4 library for suite/coll.h. */
#ifndef PEERS_COLL_OSHMEM_H
#define PEERS_COLL_OSHMEM_H

#include "peers/face_oshmem.h"

/* The work arrays of the collectives, each free again after the barrier that ends a round of them. */
#define FACE_ROUNDS 64
#define FACE_SUM_WORDS_MAX ((size_t)131072)
static long face_sync_arrays[FACE_ROUNDS][SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE +
                                          SHMEM_BCAST_SYNC_SIZE];
static double *face_work;

static int face_coll_open(face *f)
{
    size_t work = FACE_SUM_WORDS_MAX / 2 + 1;
    work = work > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? work : SHMEM_REDUCE_MIN_WRKDATA_SIZE;
    face_work = face_alloc(f, work * sizeof *face_work);
    for (size_t i = 0; i < sizeof face_sync_arrays / sizeof(long); i++) {
        ((long *)face_sync_arrays)[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    return face_work != NULL ? 0 : -1;
}

static inline int face_broadcast(const face *f, void *to, const void *from, size_t words, int round)
{
    shmem_broadcast64(to, from, words, 0, 0, 0, f->pes, face_sync_arrays[round]);
    return 0;
}

static inline int face_fcollect(const face *f, void *to, const void *from, size_t words, int round)
{
    shmem_fcollect64(to, from, words, 0, 0, f->pes, face_sync_arrays[round]);
    return 0;
}

static inline int face_alltoall(const face *f, void *to, const void *from, size_t words, int round)
{
    shmem_alltoall64(to, from, words, 0, 0, f->pes, face_sync_arrays[round]);
    return 0;
}

static inline int face_sum(const face *f, void *to, const void *from, size_t words, int round)
{
    shmem_double_sum_to_all(to, (double *)(void *)(unsigned long)from, (int)words, 0, 0, f->pes, face_work,
                            face_sync_arrays[round]);
    return 0;
}

static inline int face_lock(const face *f, long *lock)
{
    (void)f;
    shmem_set_lock(lock);
    return 0;
}

static inline int face_unlock(const face *f, long *lock)
{
    (void)f;
    shmem_clear_lock(lock);
    return 0;
}

#endif
