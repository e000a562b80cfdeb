/* suite/face_weft.h: the face of weft. See suite/face.h. */
#ifndef SUITE_FACE_WEFT_H
#define SUITE_FACE_WEFT_H

#include <stdio.h>

#include "weft.h"

#define FACE_IMPL "weft"

typedef struct face {
    weft_world *world;
} face;

static int face_said(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
        return -1;
    }
    return 0;
}

static int face_open(face *f)
{
    return face_said(weft_world_create(NULL, &f->world));
}

static int face_close(face *f)
{
    return face_said(weft_world_destroy(f->world));
}

static inline int face_pe(const face *f)
{
    return weft_world_pe(f->world);
}

static inline int face_pes(const face *f)
{
    return weft_world_pes(f->world);
}

static void *face_alloc(face *f, size_t bytes)
{
    void *block = NULL;
    if (face_said(weft_align(f->world, 4096, bytes, &block)) != 0) {
        return NULL;
    }
    memset(block, 0, bytes);
    return face_said(weft_barrier(f->world)) == 0 ? block : NULL;
}

static inline int face_put(const face *f, void *to, const void *from, size_t bytes, int pe)
{
    return weft_putmem(f->world, to, from, bytes, pe);
}

static inline int face_get(const face *f, void *to, const void *from, size_t bytes, int pe)
{
    return weft_getmem(f->world, to, from, bytes, pe);
}

static inline int face_p(const face *f, long *to, long value, int pe)
{
    return weft_long_p(f->world, to, value, pe);
}

static inline int face_g(const face *f, const long *from, int pe, long *value)
{
    return weft_long_g(f->world, from, pe, value);
}

static inline int face_fetch_add(const face *f, long *to, long value, int pe, long *old)
{
    return weft_long_atomic_fetch_add(f->world, to, value, pe, old);
}

static inline int face_compare_swap(const face *f, long *to, long cond, long value, int pe, long *old)
{
    return weft_long_atomic_compare_swap(f->world, to, cond, value, pe, old);
}

static inline int face_fetch(const face *f, const long *from, int pe, long *value)
{
    return weft_long_atomic_fetch(f->world, from, pe, value);
}

static inline int face_quiet(const face *f)
{
    return weft_quiet(f->world);
}

static inline int face_barrier(const face *f)
{
    return weft_barrier(f->world);
}

static inline int face_sync(const face *f)
{
    return weft_sync(f->world);
}

static inline int face_wait(const face *f, const long *word, long value)
{
    return weft_long_wait_until(f->world, word, WEFT_CMP_EQ, value);
}

static inline void *face_ptr(const face *f, const void *address, int pe)
{
    return weft_ptr(f->world, address, pe);
}

#endif
