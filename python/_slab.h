/* python/_slab.h: allocators of tensors that carve pieces from a slab, a block of symmetric memory that was allocated
 * ahead, since an allocator's callback cannot make a collective call. What the slab has no room for is ordinary memory.
 *
 * torch calls an allocator by two functions without a context, so each slab has a pair of its own, exported:
 * wefti_slab_alloc_N and wefti_slab_free_N. The records of pieces lie outside the slab, whose memory may be a GPU's.
 * Any thread may call. A slab that has ended gives ordinary memory, and its number goes to another once its pieces are
 * back. */
#ifndef WEFT_PYTHON_SLAB_H
#define WEFT_PYTHON_SLAB_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SLABS_MAX 16
#define SLAB_ALIGNMENT 512 /* as torch's allocator of a GPU gives blocks */

typedef struct slab_piece {
    struct slab_piece *next; /* by address */
    size_t at, bytes;
} slab_piece;

typedef struct slab {
    char *base;
    size_t bytes, used;
    slab_piece *first;
    int is_open;
    int (*alloc)(void **memory, size_t bytes); /* of ordinary memory: cudaMalloc and cudaFree, or the host's */
    int (*free)(void *memory);
} slab;

static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;
static slab slabs[SLABS_MAX];

static int slab_host_alloc(void **memory, size_t bytes)
{
    return posix_memalign(memory, 64, bytes > 0 ? bytes : 1);
}

static int slab_host_free(void *memory)
{
    free(memory);
    return 0;
}

/* Its number; -1: all are in use. */
static int slab_open(void *base, size_t bytes, void *alloc, void *free_function)
{
    int number = -1;
    (void)pthread_mutex_lock(&slab_lock);
    for (int i = 0; number < 0 && i < SLABS_MAX; i++) {
        if (!slabs[i].is_open && slabs[i].first == NULL) {
            const size_t shift = -(uintptr_t)base % SLAB_ALIGNMENT;
            number = i;
            slabs[i] = (slab){.base = (char *)base + shift, .bytes = bytes > shift ? bytes - shift : 0, .is_open = 1};
            slabs[i].alloc = alloc != NULL ? (int (*)(void **, size_t))(uintptr_t)alloc : slab_host_alloc;
            slabs[i].free = free_function != NULL ? (int (*)(void *))(uintptr_t)free_function : slab_host_free;
        }
    }
    (void)pthread_mutex_unlock(&slab_lock);
    return number;
}

/* The first gap that is wide enough; NULL: there is none. */
static void *slab_carve(slab *from, size_t bytes)
{
    slab_piece **link = &from->first;
    size_t at = 0;
    while (*link != NULL && (*link)->at - at < bytes) {
        at = (*link)->at + (*link)->bytes;
        link = &(*link)->next;
    }
    if (*link == NULL && from->bytes - at < bytes) {
        return NULL;
    }
    slab_piece *piece = malloc(sizeof *piece);
    if (piece == NULL) {
        return NULL;
    }
    *piece = (slab_piece){.next = *link, .at = at, .bytes = bytes};
    *link = piece;
    from->used += bytes;
    return from->base + at;
}

static void *slab_alloc(int number, size_t wanted)
{
    slab *from = &slabs[number];
    void *memory = NULL;
    const size_t bytes = (wanted + SLAB_ALIGNMENT - 1) / SLAB_ALIGNMENT * SLAB_ALIGNMENT;
    (void)pthread_mutex_lock(&slab_lock);
    if (from->is_open && wanted > 0 && bytes >= wanted) {
        memory = slab_carve(from, bytes);
    }
    (void)pthread_mutex_unlock(&slab_lock);
    if (memory == NULL && from->alloc(&memory, wanted) != 0) {
        return NULL;
    }
    return memory;
}

static void slab_free(int number, void *memory)
{
    slab *from = &slabs[number];
    slab_piece *found = NULL;
    (void)pthread_mutex_lock(&slab_lock);
    for (slab_piece **link = &from->first; found == NULL && *link != NULL;) {
        if (from->base + (*link)->at == (char *)memory) {
            found = *link;
            *link = found->next;
            from->used -= found->bytes;
        } else {
            link = &(*link)->next;
        }
    }
    (void)pthread_mutex_unlock(&slab_lock);
    if (found == NULL) {
        (void)from->free(memory);
    }
    free(found);
}

/* Bytes that are carved. */
static size_t slab_used(int number)
{
    (void)pthread_mutex_lock(&slab_lock);
    const size_t used = slabs[number].used;
    (void)pthread_mutex_unlock(&slab_lock);
    return used;
}

/* Nothing more is carved from it. */
static void slab_end(int number)
{
    (void)pthread_mutex_lock(&slab_lock);
    slabs[number].is_open = 0;
    (void)pthread_mutex_unlock(&slab_lock);
}

#define SLAB_PAIR(N)                                                                                                   \
    __attribute__((visibility("default"))) void *wefti_slab_alloc_##N(ptrdiff_t bytes, int device, void *stream)       \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        (void)stream;                                                                                                  \
        return bytes < 0 ? NULL : slab_alloc(N, (size_t)bytes);                                                        \
    }                                                                                                                  \
    __attribute__((visibility("default"))) void wefti_slab_free_##N(void *memory, ptrdiff_t bytes, int device,         \
                                                                    void *stream)                                      \
    {                                                                                                                  \
        (void)bytes;                                                                                                   \
        (void)device;                                                                                                  \
        (void)stream;                                                                                                  \
        slab_free(N, memory);                                                                                          \
    }
SLAB_PAIR(0)
SLAB_PAIR(1)
SLAB_PAIR(2)
SLAB_PAIR(3)
SLAB_PAIR(4)
SLAB_PAIR(5)
SLAB_PAIR(6)
SLAB_PAIR(7)
SLAB_PAIR(8)
SLAB_PAIR(9)
SLAB_PAIR(10)
SLAB_PAIR(11)
SLAB_PAIR(12)
SLAB_PAIR(13)
SLAB_PAIR(14)
SLAB_PAIR(15)

#endif
