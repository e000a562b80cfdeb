/* faces/shmem/waits.c: waits of 16-bit variables, which are deprecated. (OpenSHMEM 1.6, 9.10.) */
#include <sched.h>
#include <stdint.h>
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

#define LOOKS_PER_YIELD 64
#define YIELDS_PER_CHECK 256

static int compare(const char *call, int seen, int cmp, int value)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return seen == value;
    case SHMEM_CMP_NE:
        return seen != value;
    case SHMEM_CMP_GT:
        return seen > value;
    case SHMEM_CMP_GE:
        return seen >= value;
    case SHMEM_CMP_LT:
        return seen < value;
    case SHMEM_CMP_LE:
        return seen <= value;
    default:
        wefti_shmem_refuse(call, "argument 'cmp' is no comparison; give one of SHMEM_CMP_EQ to SHMEM_CMP_LE");
    }
}

/* Atomics have no words of 16 bits, so weft does not wait for one: look, give way, and look whether the world has
 * failed. */
static void pause_short(const char *call, unsigned look)
{
    if (look % LOOKS_PER_YIELD == 0) {
        (void)sched_yield();
    }
    if (look % (LOOKS_PER_YIELD * YIELDS_PER_CHECK) == 0) {
        weft_status status = weft_world_fault(wefti_shmem.world, NULL);
        if (status != WEFT_OK) {
            wefti_shmem_fail(call, status);
        }
    }
}

/* Looks at some variables, each beside a number of its own or all beside one; status[i] other than 0 leaves i out. */
typedef struct looking {
    const char *call;
    size_t count;
    const int *status;
    int cmp;
    const void *there;
    const void *values;
    int (*look)(const struct looking *at, size_t i);
    int is_vector;
} looking;

static int is_left_out(const looking *at, size_t i)
{
    return at->status != NULL && at->status[i] != 0;
}

static void check_lists(const looking *at)
{
    if (at->count > 0 && at->there == NULL) {
        wefti_shmem_refuse_null(at->call, "ivars");
    }
    if (at->count > 0 && at->values == NULL) {
        wefti_shmem_refuse_null(at->call, "cmp_values");
    }
}

static int are_all(const looking *at)
{
    for (size_t i = 0; i < at->count; i++) {
        if (!is_left_out(at, i) && !at->look(at, i)) {
            return 0;
        }
    }
    return 1;
}

/* The first variable whose comparison holds, or SIZE_MAX; *left: whether any is not left out by its status. */
static size_t find_any(const looking *at, int *left)
{
    *left = 0;
    for (size_t i = 0; i < at->count; i++) {
        if (!is_left_out(at, i)) {
            *left = 1;
            if (at->look(at, i)) {
                return i;
            }
        }
    }
    return SIZE_MAX;
}

static size_t find_some(const looking *at, size_t *indices, int *left)
{
    size_t found = 0;
    *left = 0;
    if (at->count > 0 && indices == NULL) {
        wefti_shmem_refuse_null(at->call, "indices");
    }
    for (size_t i = 0; i < at->count; i++) {
        if (!is_left_out(at, i)) {
            *left = 1;
            if (at->look(at, i)) {
                indices[found++] = i;
            }
        }
    }
    return found;
}

static void wait_all(const looking *at)
{
    for (unsigned look = 1; !are_all(at); look++) {
        pause_short(at->call, look);
    }
}

static size_t wait_any(const looking *at)
{
    int left;
    size_t found = find_any(at, &left);
    for (unsigned look = 1; left && found == SIZE_MAX; look++) {
        pause_short(at->call, look);
        found = find_any(at, &left);
    }
    return found;
}

static size_t wait_some(const looking *at, size_t *indices)
{
    int left;
    size_t found = find_some(at, indices, &left);
    for (unsigned look = 1; left && found == 0; look++) {
        pause_short(at->call, look);
        found = find_some(at, indices, &left);
    }
    return found;
}

/* Declare `at` and `left` for a wait or test of the type NAME on several variables, which compare with VALUES. */
#define LOOKING(NAME, VALUES, IS_VECTOR)                                                                               \
    const looking at = {__func__, nelems, status, cmp, ivars, VALUES, look_##NAME, IS_VECTOR};                         \
    check_lists(&at);                                                                                                  \
    int left;                                                                                                          \
    (void)left
#define SHORT_LISTS(NAME, TYPE, SUFFIX, NUMBER, VALUES, IS_VECTOR)                                                     \
    void pshmem_##NAME##_wait_until_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)        \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        wait_all(&at);                                                                                                 \
    }                                                                                                                  \
    size_t pshmem_##NAME##_wait_until_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)      \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        return wait_any(&at);                                                                                          \
    }                                                                                                                  \
    size_t pshmem_##NAME##_wait_until_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices, const int *status,     \
                                                   int cmp, NUMBER)                                                    \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        return wait_some(&at, indices);                                                                                \
    }                                                                                                                  \
    int pshmem_##NAME##_test_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)               \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        return are_all(&at);                                                                                           \
    }                                                                                                                  \
    size_t pshmem_##NAME##_test_any##SUFFIX(TYPE *ivars, size_t nelems, const int *status, int cmp, NUMBER)            \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        return find_any(&at, &left);                                                                                   \
    }                                                                                                                  \
    size_t pshmem_##NAME##_test_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp,  \
                                             NUMBER)                                                                   \
    {                                                                                                                  \
        LOOKING(NAME, VALUES, IS_VECTOR);                                                                              \
        return find_some(&at, indices, &left);                                                                         \
    }

#define SHORT_WAITS(NAME, TYPE)                                                                                        \
    static void wait_##NAME(const char *call, const TYPE *ivar, int cmp, TYPE cmp_value)                               \
    {                                                                                                                  \
        for (unsigned look = 1; !compare(call, __atomic_load_n(ivar, __ATOMIC_ACQUIRE), cmp, cmp_value); look++) {     \
            pause_short(call, look);                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    void pshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                                               \
    {                                                                                                                  \
        NEED(ivar);                                                                                                    \
        wait_##NAME(__func__, ivar, cmp, cmp_value);                                                                   \
    }                                                                                                                  \
    int pshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                                      \
    {                                                                                                                  \
        NEED(ivar);                                                                                                    \
        return compare(__func__, __atomic_load_n(ivar, __ATOMIC_ACQUIRE), cmp, cmp_value);                             \
    }                                                                                                                  \
    static int look_##NAME(const looking *at, size_t i)                                                                \
    {                                                                                                                  \
        const TYPE *there = at->there;                                                                                 \
        const TYPE *values = at->values;                                                                               \
        return compare(at->call, __atomic_load_n(&there[i], __ATOMIC_ACQUIRE), at->cmp,                                \
                       values[at->is_vector ? i : 0]);                                                                 \
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
    wait_short(__func__, ivar, SHMEM_CMP_NE, cmp_value);
}
WEAK_pshmem_short_wait
