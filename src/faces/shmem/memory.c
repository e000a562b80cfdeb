/* faces/shmem/memory.c: memory management. (OpenSHMEM 1.6, 9.3.) */
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

/* A lack of memory is a NULL; all else that fails is a mistake. */
static void check(const char *call, weft_status status)
{
    if (status != WEFT_OK && status != WEFT_ERR_MEMORY) {
        wefti_shmem_fail(call, status);
    }
}

/* Size 0 is no collective call, so there is no barrier. Version 1.2 forbids sizes that differ, but older programs have
 * them: the largest is allocated on all PEs, so that blocks stay at one offset. */
void *pshmem_malloc(size_t size)
{
    void *block = NULL;
    if (size > 0) {
        wefti_shmem_notice *notice = wefti_shmem.notice;
        if (notice == NULL) {
            wefti_shmem_fail(__func__, WEFT_ERR_STATE);
        }
        notice->bytes = size;
        check(__func__,
              weft_uint64_max_reduce(weft_team_world(wefti_shmem.world), &notice->largest, &notice->bytes, 1));
        check(__func__, weft_malloc(wefti_shmem.world, notice->largest, &block));
    }
    return block;
}
WEAK_pshmem_malloc

    void *
    pshmem_malloc_with_hints(size_t size, long hints)
{
    (void)hints; /* there is one kind of symmetric memory */
    return pshmem_malloc(size);
}
WEAK_pshmem_malloc_with_hints

    void *
    pshmem_calloc(size_t count, size_t size)
{
    void *block = NULL;
    size_t bytes;
    if (count > 0 && size > 0 && !__builtin_mul_overflow(count, size, &bytes)) {
        check(__func__, weft_calloc(wefti_shmem.world, count, size, &block));
    }
    return block;
}
WEAK_pshmem_calloc

    /* Rounded up to a power of two, as other libraries do for programs that give none. */
    void *
    pshmem_align(size_t alignment, size_t size)
{
    void *block = NULL;
    if (size > 0) {
        if (alignment < SIZE_MAX / 2 && (alignment & (alignment - 1)) != 0) {
            alignment = (size_t)1 << (64 - __builtin_clzll(alignment));
        }
        check(__func__, weft_align(wefti_shmem.world, alignment, size, &block));
    }
    return block;
}
WEAK_pshmem_align

    void
    pshmem_free(void *ptr)
{
    if (ptr != NULL) {
        CHECK(weft_free(wefti_shmem.world, ptr), 1);
    }
}
WEAK_pshmem_free

    void *
    pshmem_realloc(void *ptr, size_t size)
{
    void *block = NULL;
    if (ptr != NULL || size > 0) {
        check(__func__, weft_realloc(wefti_shmem.world, ptr, size, &block));
    }
    return block;
}
WEAK_pshmem_realloc

    /* ---- deprecated names ---- */

    void *
    pshmalloc(size_t size)
{
    return pshmem_malloc(size);
}
WEAK_pshmalloc

    void
    pshfree(void *ptr)
{
    pshmem_free(ptr);
}
WEAK_pshfree

    void *
    pshrealloc(void *ptr, size_t size)
{
    return pshmem_realloc(ptr, size);
}
WEAK_pshrealloc

    void *
    pshmemalign(size_t alignment, size_t size)
{
    return pshmem_align(alignment, size);
}
WEAK_pshmemalign
