/* faces/nvshmem/ordering.c: ordering, barriers and atomics that are written by hand. */
#include <stdlib.h>

#include "faces/nvshmem/binding.h"
#include "weft/protocol/f16.h"

void nvshmem_fence(void)
{
    CHECK(weft_fence(WORLD), 1);
}

void nvshmem_barrier_all(void)
{
    wefti_nv_settle(__func__);
    CHECK(weft_barrier(WORLD), 1);
}

void nvshmem_sync_all(void)
{
    wefti_nv_settle(__func__);
    CHECK(weft_sync(WORLD), 1);
}

void nvshmemx_barrier_all_on_stream(cudaStream_t cstrm)
{
    wefti_nv_settle(__func__);
    CHECK(weft_barrier_on_stream(WORLD, cstrm), 1);
}

void nvshmemx_sync_all_on_stream(cudaStream_t cstrm)
{
    wefti_nv_settle(__func__);
    CHECK(weft_sync_on_stream(WORLD, cstrm), 1);
}

/* The team of a handle. A call of all PEs may be the first after a GPU was chosen, and then places the heap. */
static weft_team *members_of(const char *call, nvshmem_team_t team)
{
    if (team == NVSHMEM_TEAM_WORLD) {
        wefti_nv_settle(call);
    } else {
        wefti_nv_units_check();
    }
    return wefti_nv_members(team);
}

int nvshmem_barrier(nvshmem_team_t team)
{
    return wefti_nv_result(__func__, weft_team_barrier(members_of(__func__, team)));
}

int nvshmem_team_sync(nvshmem_team_t team)
{
    return wefti_nv_result(__func__, weft_team_sync(members_of(__func__, team)));
}

int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t cstrm)
{
    return wefti_nv_result(__func__, weft_team_barrier_on_stream(members_of(__func__, team), cstrm));
}

int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t cstrm)
{
    return wefti_nv_result(__func__, weft_team_sync_on_stream(members_of(__func__, team), cstrm));
}

/* There is one queue, so that any number of handles says the same. The caller frees the array. */
int nvshmemx_qp_create(int num_qps, nvshmemx_qp_handle_t **out_qp_array)
{
    if (num_qps < 1 || out_qp_array == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               "give argument 'num_qps' of at least 1, and 'out_qp_array' that is not NULL");
    }
    nvshmemx_qp_handle_t *const handles = calloc((size_t)num_qps, sizeof *handles);
    if (handles == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_OUT_OF_MEMORY, "no memory for the handles");
    }
    for (int i = 0; i < num_qps; i++) {
        handles[i] = NVSHMEMX_QP_DEFAULT;
    }
    *out_qp_array = handles;
    return NVSHMEMX_SUCCESS;
}

/* Sums of floats: the bits are exchanged until nobody came between. */
#define FLOAT_ADD(NAME, TYPE, WORD, WORD_TYPE)                                                                         \
    static weft_status NAME##_add(TYPE *dest, TYPE value, int pe, TYPE *old)                                           \
    {                                                                                                                  \
        WORD_TYPE seen;                                                                                                \
        WORD_TYPE expected;                                                                                            \
        WEFT_TRY(weft_##WORD##_atomic_fetch(WORLD, (const WORD_TYPE *)(const void *)dest, pe, &seen));                 \
        do {                                                                                                           \
            TYPE sum;                                                                                                  \
            WORD_TYPE bits;                                                                                            \
            expected = seen;                                                                                           \
            memcpy(old, &seen, sizeof *old);                                                                           \
            sum = *old + value;                                                                                        \
            memcpy(&bits, &sum, sizeof bits);                                                                          \
            WEFT_TRY(weft_##WORD##_atomic_compare_swap(WORLD, (WORD_TYPE *)(void *)dest, expected, bits, pe, &seen));  \
        } while (seen != expected);                                                                                    \
        return WEFT_OK;                                                                                                \
    }                                                                                                                  \
    void nvshmemx_##NAME##_atomic_add(TYPE *dest, TYPE value, int pe)                                                  \
    {                                                                                                                  \
        TYPE old;                                                                                                      \
        CHECK(NAME##_add(dest, value, pe, &old), 1);                                                                   \
    }                                                                                                                  \
    TYPE nvshmemx_##NAME##_atomic_fetch_add(TYPE *dest, TYPE value, int pe)                                            \
    {                                                                                                                  \
        TYPE old = 0;                                                                                                  \
        CHECK(NAME##_add(dest, value, pe, &old), 1);                                                                   \
        return old;                                                                                                    \
    }
FLOAT_ADD(float, float, uint32, uint32_t)
FLOAT_ADD(double, double, uint64, uint64_t)

/* Halves: the same with the 32 bits that one is in, so that its neighbour's bits stay. The sum is rounded to float and
 * then to half, as if once: 24 bits are two more than twice the 11 of a half. */
static weft_status half_add(half *dest, half value, int pe, uint16_t *old)
{
    uint32_t *const word = (uint32_t *)((uintptr_t)dest & ~(uintptr_t)3);
    const unsigned shift = ((uintptr_t)dest & 2) != 0 ? 16 : 0;
    const float more = wefti_f16_widen(wefti_nv_bits(&value));
    uint32_t seen;
    uint32_t expected;
    WEFT_TRY(weft_uint32_atomic_fetch(WORLD, word, pe, &seen));
    do {
        expected = seen;
        *old = (uint16_t)(seen >> shift);
        const uint32_t sum = wefti_f16_round(wefti_f16_widen(*old) + more);
        const uint32_t wanted = (seen & ~(UINT32_C(0xffff) << shift)) | sum << shift;
        WEFT_TRY(weft_uint32_atomic_compare_swap(WORLD, word, expected, wanted, pe, &seen));
    } while (seen != expected);
    return WEFT_OK;
}

void nvshmemx_half_atomic_add(half *dest, half value, int pe)
{
    uint16_t old;
    CHECK(half_add(dest, value, pe, &old), 1);
}

half nvshmemx_half_atomic_fetch_add(half *dest, half value, int pe)
{
    uint16_t old = 0;
    half result;
    CHECK(half_add(dest, value, pe, &old), 1);
    memcpy(&result, &old, sizeof result);
    return result;
}
