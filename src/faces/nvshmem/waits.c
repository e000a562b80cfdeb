/* faces/nvshmem/waits.c: waits for, and tests of, variables of 16 bits, which atomics do not have: they look, give
 * way, and look whether the world has failed. */
#include <sched.h>

#include "faces/nvshmem/binding.h"

#define LOOKS_PER_YIELD 64
#define YIELDS_PER_CHECK 256

/* What is waited for: variables that compare with values, one for all (step 0) or one each (step 1). */
typedef struct short_wait {
    const char *call;
    int is_signed;
    const void *variables;
    size_t count;
    const int *status; /* NULL: all count */
    int cmp;
    const void *values;
    size_t step;
} short_wait;

/* ---- looking ---- */

/* Read a variable: in host memory directly, in the GPU's heap by a copy. */
static uint16_t load(const short_wait *wait, const uint16_t *variable)
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

static int number(const short_wait *wait, uint16_t bits)
{
    return wait->is_signed ? (int16_t)bits : bits;
}

static int holds(const short_wait *wait, size_t i)
{
    const int seen = number(wait, load(wait, (const uint16_t *)wait->variables + i));
    const int value = number(wait, ((const uint16_t *)wait->values)[i * wait->step]);
    switch (wait->cmp) {
    case NVSHMEM_CMP_EQ:
        return seen == value;
    case NVSHMEM_CMP_NE:
        return seen != value;
    case NVSHMEM_CMP_GT:
        return seen > value;
    case NVSHMEM_CMP_GE:
        return seen >= value;
    case NVSHMEM_CMP_LT:
        return seen < value;
    default:
        return seen <= value;
    }
}

static int counts(const short_wait *wait, size_t i)
{
    return wait->status == NULL || wait->status[i] == 0;
}

static int none_counts(const short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (counts(wait, i)) {
            return 0;
        }
    }
    return 1;
}

static int test_all(const short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (counts(wait, i) && !holds(wait, i)) {
            return 0;
        }
    }
    return 1;
}

static size_t test_any(const short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (counts(wait, i) && holds(wait, i)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t test_some(const short_wait *wait, size_t *indices)
{
    size_t found = 0;
    for (size_t i = 0; i < wait->count; i++) {
        if (counts(wait, i) && holds(wait, i)) {
            indices[found++] = i;
        }
    }
    return found;
}

/* ---- waiting ---- */

/* Whether to go on after `look` looks. */
static int rest(const short_wait *wait, unsigned look)
{
    if (look % LOOKS_PER_YIELD == 0) {
        (void)sched_yield();
    }
    if (look % (LOOKS_PER_YIELD * YIELDS_PER_CHECK) == 0) {
        weft_status status = weft_world_fault(WORLD, NULL);
        if (status != WEFT_OK) {
            wefti_nv_latch(wait->call, status);
            return 0;
        }
    }
    return 1;
}

static int is_possible(const short_wait *wait)
{
    if (WORLD == NULL || wait->cmp < NVSHMEM_CMP_EQ || wait->cmp > NVSHMEM_CMP_GE) {
        wefti_nv_latch_refusal(
            wait->call, NVSHMEMX_ERROR_INVALID_VALUE,
            "give argument 'cmp' of NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE, and call it between init and finalize");
        return 0;
    }
    return 1;
}

static void wait_all(const short_wait *wait)
{
    if (is_possible(wait)) {
        for (unsigned look = 1; !test_all(wait) && rest(wait, look); look++) {
        }
    }
}

static size_t wait_any(const short_wait *wait)
{
    size_t found = SIZE_MAX;
    if (is_possible(wait) && !none_counts(wait)) {
        found = test_any(wait);
        for (unsigned look = 1; found == SIZE_MAX && rest(wait, look); look++) {
            found = test_any(wait);
        }
    }
    return found;
}

static size_t wait_some(const short_wait *wait, size_t *indices)
{
    size_t found = 0;
    if (is_possible(wait) && !none_counts(wait)) {
        found = test_some(wait, indices);
        for (unsigned look = 1; found == 0 && rest(wait, look); look++) {
            found = test_some(wait, indices);
        }
    }
    return found;
}

/* ---- the routines ---- */

#define SHORT_WAIT(TYPE, VARIABLES, COUNT, STATUS, VALUES, STEP)                                                       \
    const short_wait wait = {                                                                                          \
        .call = __func__,                                                                                              \
        .is_signed = (TYPE)-1 < (TYPE)0,                                                                               \
        .variables = (VARIABLES),                                                                                      \
        .count = (COUNT),                                                                                              \
        .status = (STATUS),                                                                                            \
        .cmp = cmp,                                                                                                    \
        .values = (VALUES),                                                                                            \
        .step = (STEP),                                                                                                \
    }
#define SHORT_ROUTINES_OF(NAME, TYPE, VECTOR, VALUE, VALUES, STEP)                                                     \
    void nvshmem_##NAME##_wait_until_all##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)        \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        wait_all(&wait);                                                                                               \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_wait_until_any##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)      \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return wait_any(&wait);                                                                                        \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_wait_until_some##VECTOR(TYPE *ivars, size_t nelems, size_t *indices, const int *status,    \
                                                    int cmp, VALUE)                                                    \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return wait_some(&wait, indices);                                                                              \
    }                                                                                                                  \
    int nvshmem_##NAME##_test_all##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)               \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait) && test_all(&wait);                                                                  \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_test_any##VECTOR(TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE)            \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait) ? test_any(&wait) : SIZE_MAX;                                                        \
    }                                                                                                                  \
    size_t nvshmem_##NAME##_test_some##VECTOR(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                                              VALUE)                                                                   \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivars, nelems, status, VALUES, STEP);                                                         \
        return is_possible(&wait) ? test_some(&wait, indices) : 0;                                                     \
    }
#define SHORT_ROUTINES(NAME, TYPE)                                                                                     \
    SHORT_ROUTINES_OF(NAME, TYPE, , TYPE cmp_value, &cmp_value, 0)                                                     \
    SHORT_ROUTINES_OF(NAME, TYPE, _vector, TYPE *cmp_values, cmp_values, 1)                                            \
    void nvshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                                              \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivar, 1, NULL, &cmp_value, 0);                                                                \
        wait_all(&wait);                                                                                               \
    }                                                                                                                  \
    int nvshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                                     \
    {                                                                                                                  \
        SHORT_WAIT(TYPE, ivar, 1, NULL, &cmp_value, 0);                                                                \
        return is_possible(&wait) && test_all(&wait);                                                                  \
    }
WEFTI_NV_WAIT_SHORT_TYPES(SHORT_ROUTINES)
