/* peers/face_oshmem.h: the face of any OpenSHMEM 1.4 library. See suite/face.h. */
#ifndef PEERS_FACE_OSHMEM_H
#define PEERS_FACE_OSHMEM_H

#include <shmem.h>
#include <string.h>

#ifndef FACE_IMPL
#define FACE_IMPL "ompi"
#endif

typedef struct face {
    int pe;
    int pes;
} face;

static int face_open(face *f)
{
    shmem_init();
    f->pe = shmem_my_pe();
    f->pes = shmem_n_pes();
    return 0;
}

static int face_close(face *f)
{
    (void)f;
    shmem_finalize();
    return 0;
}

static inline int face_pe(const face *f)
{
    return f->pe;
}

static inline int face_pes(const face *f)
{
    return f->pes;
}

static void *face_alloc(face *f, size_t bytes)
{
    (void)f;
    void *block = shmem_align(4096, bytes);
    if (block != NULL) {
        memset(block, 0, bytes);
    }
    shmem_barrier_all();
    return block;
}

static inline int face_put(const face *f, void *to, const void *from, size_t bytes, int pe)
{
    (void)f;
    shmem_putmem(to, from, bytes, pe);
    return 0;
}

static inline int face_get(const face *f, void *to, const void *from, size_t bytes, int pe)
{
    (void)f;
    shmem_getmem(to, from, bytes, pe);
    return 0;
}

static inline int face_p(const face *f, long *to, long value, int pe)
{
    (void)f;
    shmem_long_p(to, value, pe);
    return 0;
}

static inline int face_g(const face *f, const long *from, int pe, long *value)
{
    (void)f;
    *value = shmem_long_g(from, pe);
    return 0;
}

static inline int face_fetch_add(const face *f, long *to, long value, int pe, long *old)
{
    (void)f;
    *old = shmem_long_atomic_fetch_add(to, value, pe);
    return 0;
}

static inline int face_compare_swap(const face *f, long *to, long cond, long value, int pe, long *old)
{
    (void)f;
    *old = shmem_long_atomic_compare_swap(to, cond, value, pe);
    return 0;
}

static inline int face_fetch(const face *f, const long *from, int pe, long *value)
{
    (void)f;
    *value = shmem_long_atomic_fetch(from, pe);
    return 0;
}

static inline int face_quiet(const face *f)
{
    (void)f;
    shmem_quiet();
    return 0;
}

static inline int face_barrier(const face *f)
{
    (void)f;
    shmem_barrier_all();
    return 0;
}

static inline int face_sync(const face *f)
{
    (void)f;
    shmem_sync_all();
    return 0;
}

static inline int face_wait(const face *f, const long *word, long value)
{
    (void)f;
    shmem_long_wait_until((long *)(void *)(unsigned long)word, SHMEM_CMP_EQ, value);
    return 0;
}

static inline void *face_ptr(const face *f, const void *address, int pe)
{
    (void)f;
    return shmem_ptr((void *)(unsigned long)address, pe);
}

#endif
