/* faces/nvshmem/waits.c: waits for, and tests of, variables of 16 bits. */
#include "common/short_wait.h"
#include "faces/nvshmem/binding.h"

/* Read a variable: in host memory directly, in the GPU's heap by a copy. */
static uint16_t load(const wefti_short_wait *wait, const uint16_t *variable)
{
    uint16_t bits = 0;
    if (wefti_nvshmem.place != WEFTI_NV_DEVICE) {
        return __atomic_load_n(variable, __ATOMIC_ACQUIRE);
    }
    weft_status status = weft_uint16_g(WORLD, variable, weft_world_pe(WORLD), &bits);
    if (status != WEFT_OK) {
        wefti_nv_latch(wait->call, status);
    }
    return bits;
}

static int is_possible(const wefti_short_wait *wait, int cmp)
{
    if (WORLD == NULL || cmp < NVSHMEM_CMP_EQ || cmp > NVSHMEM_CMP_GE) {
        wefti_nv_latch_refusal(
            wait->call, NVSHMEMX_ERROR_INVALID_VALUE,
            "give argument 'cmp' of NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE, and call it between init and finalize");
        return 0;
    }
    return 1;
}

/* ---- waiting ---- */

static void latch(const wefti_short_wait *wait, weft_status status)
{
    if (status != WEFT_OK) {
        wefti_nv_latch(wait->call, status);
    }
}

static void wait_all(const wefti_short_wait *wait, int cmp)
{
    if (is_possible(wait, cmp)) {
        latch(wait, wefti_short_wait_all(wait));
    }
}

static size_t wait_any(const wefti_short_wait *wait, int cmp)
{
    size_t found = SIZE_MAX;
    if (is_possible(wait, cmp)) {
        latch(wait, wefti_short_wait_any(wait, &found));
    }
    return found;
}

static size_t wait_some(const wefti_short_wait *wait, int cmp, size_t *indices)
{
    size_t found = 0;
    if (is_possible(wait, cmp)) {
        latch(wait, wefti_short_wait_some(wait, indices, &found));
    }
    return found;
}

/* ---- the routines ---- */

#define SHORT_WAIT(TYPE, VARIABLES, COUNT, STATUS, VALUES, STEP)                                                       \
    const wefti_short_wait wait = {                                                                                    \
        .world = WORLD,                                                                                                \
        .call = __func__,                                                                                              \
        .is_signed = (TYPE)-1 < (TYPE)0,                                                                               \
        .variables = (VARIABLES),                                                                                      \
        .count = (COUNT),                                                                                              \
        .status = (STATUS),                                                                                            \
        .cmp = CMP(cmp),                                                                                               \
        .values = (VALUES),                                                                                            \
        .step = (STEP),                                                                                                \
        .load = load,                                                                                                  \
    }
#define SHORT_ROUTINES_OF(NAME, TYPE, VECTOR, VALUE, VALUES, STEP)                                                     \
    void nvshmem_##NAME##_wait_until_all##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)        \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        wait_all(&wait, cmp);                                                                                          \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_wait_until_any##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)      \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return wait_any(&wait, cmp);                                                                                   \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_wait_until_some##VECTOR(TYPE *ivars, size_t nelems, size_t *indices, const int *status,    \
                                                    int cmp, VALUE)                                                    \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return wait_some(&wait, cmp, indices);                                                                         \
    }                                                                                                                  \
    int nvshmem_##NAME##_test_all##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)               \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait, cmp) && wefti_short_test_all(&wait);                                                 \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_test_any##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)            \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait, cmp) ? wefti_short_test_any(&wait) : SIZE_MAX;                                       \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_test_some##VECTOR(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                                              VALUE)                                                                   \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait, cmp) ? wefti_short_test_some(&wait, indices) : 0;                                    \
    }
#define SHORT_ROUTINES(NAME, TYPE)                                                                                     \
    SHORT_ROUTINES_OF(NAME, TYPE, , TYPE cmp_value, &cmp_value, 0)                                                     \
    SHORT_ROUTINES_OF(NAME, TYPE, _vector, TYPE *cmp_values, cmp_values, 1)                                            \
    void nvshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                                              \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivar, 1, NULL, &cmp_value, 0);                                                                \
        wait_all(&wait, cmp);                                                                                          \
    }                                                                                                                  \
    int nvshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                                     \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivar, 1, NULL, &cmp_value, 0);                                                                \
        return is_possible(&wait, cmp) && wefti_short_test_all(&wait);                                                 \
    }
WEFTI_NV_WAIT_SHORT_TYPES(SHORT_ROUTINES)
