/* faces/shmem/ordering.c: barriers of all, memory ordering, locks, caches. (OpenSHMEM 1.6, 9.9, 9.11, 9.12.) */
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

void pshmem_barrier_all(void)
{
    CHECK(weft_barrier(wefti_shmem.world), 1);
}
WEAK_pshmem_barrier_all

    void
    pshmem_sync_all(void)
{
    CHECK(weft_sync(wefti_shmem.world), 1);
}
WEAK_pshmem_sync_all

    void
    pshmem_fence(void)
{
    CHECK(weft_fence(wefti_shmem.world), 1);
}
WEAK_pshmem_fence

    void
    pshmem_quiet(void)
{
    CHECK(weft_quiet(wefti_shmem.world), 1);
}
WEAK_pshmem_quiet

    /* An invalid context has nothing to order. */
    void
    pshmem_ctx_fence(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_DEFAULT) {
        pshmem_fence();
    } else if (ctx != SHMEM_CTX_INVALID) {
        CHECK(weft_ctx_fence(CTX(ctx)), 1);
    }
}
WEAK_pshmem_ctx_fence

    void
    pshmem_ctx_quiet(shmem_ctx_t ctx)
{
    if (ctx == SHMEM_CTX_DEFAULT) {
        pshmem_quiet();
    } else if (ctx != SHMEM_CTX_INVALID) {
        CHECK(weft_ctx_quiet(CTX(ctx)), 1);
    }
}
WEAK_pshmem_ctx_quiet

    /* What is complete for all PEs is complete for these. */
    void
    pshmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes)
{
    if (npes > 0) {
        NEED(target_pes);
        pshmem_ctx_quiet(ctx);
    }
}
WEAK_pshmem_ctx_pe_quiet

    void
    pshmem_pe_quiet(const int *target_pes, size_t npes)
{
    if (npes > 0) {
        NEED(target_pes);
        pshmem_quiet();
    }
}
WEAK_pshmem_pe_quiet

    /* ---- locks ---- */

    void
    pshmem_set_lock(long *lock)
{
    CHECK(weft_set_lock(wefti_shmem.world, SYMMETRIC(lock)), 1);
}
WEAK_pshmem_set_lock

    void
    pshmem_clear_lock(long *lock)
{
    CHECK(weft_clear_lock(wefti_shmem.world, SYMMETRIC(lock)), 1);
}
WEAK_pshmem_clear_lock

    /* 0 when it has been taken. One that this PE holds already is held. */
    int
    pshmem_test_lock(long *lock)
{
    int taken = 0;
    weft_status status = weft_test_lock(wefti_shmem.world, SYMMETRIC(lock), &taken);
    if (status != WEFT_OK && (status != WEFT_ERR_STATE || wefti_shmem.world == NULL)) {
        wefti_shmem_fail(__func__, status);
    }
    return status == WEFT_OK && taken ? 0 : 1;
}
WEAK_pshmem_test_lock

    /* ---- caches, which processors keep coherent ---- */

    void
    pshmem_set_cache_inv(void)
{
}
WEAK_pshmem_set_cache_inv

    void
    pshmem_clear_cache_inv(void)
{
}
WEAK_pshmem_clear_cache_inv

    void
    pshmem_set_cache_line_inv(void *dest)
{
    (void)dest;
}
WEAK_pshmem_set_cache_line_inv

    void
    pshmem_clear_cache_line_inv(void *dest)
{
    (void)dest;
}
WEAK_pshmem_clear_cache_line_inv

    void
    pshmem_udcflush(void)
{
}
WEAK_pshmem_udcflush

    void
    pshmem_udcflush_line(void *dest)
{
    (void)dest;
}
WEAK_pshmem_udcflush_line
