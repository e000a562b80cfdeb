/* suite/coll_weft.h: the face of weft for suite/coll.h. */
#ifndef SUITE_COLL_WEFT_H
#define SUITE_COLL_WEFT_H

#include "suite/face_weft.h"

static int face_coll_open(face *f)
{
    (void)f;
    return 0;
}

static inline int face_broadcast(const face *f, void *to, const void *from, size_t words, int round)
{
    (void)round;
    return weft_uint64_broadcast(weft_team_world(f->world), to, from, words, 0);
}

static inline int face_fcollect(const face *f, void *to, const void *from, size_t words, int round)
{
    (void)round;
    return weft_uint64_fcollect(weft_team_world(f->world), to, from, words);
}

static inline int face_alltoall(const face *f, void *to, const void *from, size_t words, int round)
{
    (void)round;
    return weft_uint64_alltoall(weft_team_world(f->world), to, from, words);
}

static inline int face_sum(const face *f, void *to, const void *from, size_t words, int round)
{
    (void)round;
    return weft_double_sum_reduce(weft_team_world(f->world), to, from, words);
}

static inline int face_lock(const face *f, long *lock)
{
    return weft_set_lock(f->world, lock);
}

static inline int face_unlock(const face *f, long *lock)
{
    return weft_clear_lock(f->world, lock);
}

#endif
