/* faces/shmem/waits.c: waits of 16-bit variables, which are deprecated. (OpenSHMEM 1.6, 9.10.) */
#include <stdint.h>
#include <weft_shmem_weak.h>

#include "common/short_wait.h"
#include "faces/shmem/binding.h"

_Static_assert(SHMEM_CMP_EQ == WEFT_CMP_EQ && SHMEM_CMP_NE == WEFT_CMP_NE && SHMEM_CMP_GT == WEFT_CMP_GT &&
                   SHMEM_CMP_GE == WEFT_CMP_GE && SHMEM_CMP_LT == WEFT_CMP_LT && SHMEM_CMP_LE == WEFT_CMP_LE,
               "comparisons have the numbers of weft's");

static uint16_t load(const wefti_short_wait *wait, const uint16_t *variable)
{
    (void)wait;
    return __atomic_load_n(variable, __ATOMIC_ACQUIRE);
}

static void check(const wefti_short_wait *wait, int cmp)
{
    if (wait->count > 0 && wait->variables == NULL) {
        wefti_shmem_refuse_null(wait->call, "ivars");
    }
    if (wait->count > 0 && wait->values == NULL) {
        wefti_shmem_refuse_null(wait->call, "cmp_values");
    }
    if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {
        wefti_shmem_refuse(wait->call, "argument 'cmp' is no comparison; give one of SHMEM_CMP_EQ to SHMEM_CMP_LE");
    }
}

static void check_indices(const wefti_short_wait *wait, const size_t *indices)
{
    if (wait->count > 0 && indices == NULL) {
        wefti_shmem_refuse_null(wait->call, "indices");
    }
}

static void expect(const wefti_short_wait *wait, weft_status status)
{
    if (status != WEFT_OK) {
        wefti_shmem_fail(wait->call, status);
    }
}

static size_t wait_any(const wefti_short_wait *wait)
{
    size_t found;
    expect(wait, wefti_short_wait_any(wait, &found));
    return found;
}

static size_t wait_some(const wefti_short_wait *wait, size_t *indices)
{
    size_t found;
    check_indices(wait, indices);
    expect(wait, wefti_short_wait_some(wait, indices, &found));
    return found;
}

static size_t test_some(const wefti_short_wait *wait, size_t *indices)
{
    check_indices(wait, indices);
    return wefti_short_test_some(wait, indices);
}

/* Declare `wait`, for COUNT variables of TYPE. */
#define SHORT_WAIT(TYPE, VARIABLES, COUNT, STATUS, CMP, VALUES, STEP)                                                  \
    const wefti_short_wait wait = {                                                                                    \
        .world = wefti_shmem.world,                                                                                    \
        .call = __func__,                                                                                              \
        .is_signed = (TYPE)-1 < (TYPE)0,                                                                               \
        .variables = (VARIABLES),                                                                                      \
        .count = (COUNT),                                                                                              \
        .status = (STATUS),                                                                                            \
        .cmp = (weft_cmp)(CMP),                                                                                        \
        .values = (VALUES),                                                                                            \
        .step = (STEP),                                                                                                \
        .load = load,                                                                                                  \
    };                                                                                                                 \
    check(&wait, CMP)
#define SHORT_LISTS(NAME, TYPE, SUFFIX, NUMBER, VALUES, STEP)                                                          \
    void pshmem_##NAME##_wait_until_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)        \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        expect(&wait, wefti_short_wait_all(&wait));                                                                    \
    }                                                                                                                  \
    size_t pshmem_##NAME##_wait_until_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)      \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        return wait_any(&wait);                                                                                        \
    }                                                                                                                  \
    size_t pshmem_##NAME##_wait_until_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices, const int *status,     \
                                                   int cmp, NUMBER)                                                    \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        return wait_some(&wait, indices);                                                                              \
    }                                                                                                                  \
    int pshmem_##NAME##_test_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)               \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        return wefti_short_test_all(&wait);                                                                            \
    }                                                                                                                  \
    size_t pshmem_##NAME##_test_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)            \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        return wefti_short_test_any(&wait);                                                                            \
    }                                                                                                                  \
    size_t pshmem_##NAME##_test_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp,  \
                                             NUMBER)                                                                   \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, cmp, VALUES, STEP);                                                    \
        return test_some(&wait, indices);                                                                              \
    }

#define SHORT_WAITS(NAME, TYPE)                                                                                        \
    void pshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                                               \
    {                                                                                                                  \
        NEED(ivar);                                                                                                    \
        SHORT_WAIT(TYPE, ivar, 1, NULL, cmp, &cmp_value, 0);                                                           \
        expect(&wait, wefti_short_wait_all(&wait));                                                                    \
    }                                                                                                                  \
    int pshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                                      \
    {                                                                                                                  \
        NEED(ivar);                                                                                                    \
        SHORT_WAIT(TYPE, ivar, 1, NULL, cmp, &cmp_value, 0);                                                           \
        return wefti_short_test_all(&wait);                                                                            \
    }                                                                                                                  \
    SHORT_LISTS(NAME, TYPE, , TYPE cmp_value, &cmp_value, 0)                                                           \
    SHORT_LISTS(NAME, TYPE, _vector, const TYPE *cmp_values, cmp_values, 1)
SHORT_WAITS(short, short)
SHORT_WAITS(ushort, unsigned short)
#define WEAK_LISTS(NAME, SUFFIX)                                                                                       \
    WEAK_pshmem_##NAME##_wait_until_all##SUFFIX WEAK_pshmem_##NAME##_wait_until_any##SUFFIX                            \
        WEAK_pshmem_##NAME##_wait_until_some##SUFFIX WEAK_pshmem_##NAME##_test_all##SUFFIX                             \
            WEAK_pshmem_##NAME##_test_any##SUFFIX WEAK_pshmem_##NAME##_test_some##SUFFIX
WEAK_pshmem_short_wait_until WEAK_pshmem_ushort_wait_until WEAK_pshmem_short_test WEAK_pshmem_ushort_test
WEAK_LISTS(short, ) WEAK_LISTS(short, _vector) WEAK_LISTS(ushort, ) WEAK_LISTS(ushort, _vector)

    /* Wait until the variable differs from cmp_value. */
    void pshmem_short_wait(short *ivar, short cmp_value)
{
    NEED(ivar);
    SHORT_WAIT(short, ivar, 1, NULL, SHMEM_CMP_NE, &cmp_value, 0);
    expect(&wait, wefti_short_wait_all(&wait));
}
WEAK_pshmem_short_wait
