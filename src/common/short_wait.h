/* common/short_wait.h: waits for, and tests of, variables of 16 bits. Atomics do not have them, so that nobody tells
 * when one changes: a wait looks, gives way, and looks whether the world has failed. */
#ifndef WEFTI_COMMON_SHORT_WAIT_H
#define WEFTI_COMMON_SHORT_WAIT_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/compare.h"
#include "weft/world.h"

#define WEFTI_LOOKS_PER_YIELD 64
#define WEFTI_YIELDS_PER_CHECK 256

/* What is waited for: variables that compare with values, one for all (step 0) or one each (step 1). */
typedef struct wefti_short_wait {
    const weft_world *world;
    const char *call;
    int is_signed;
    const void *variables; /* [count] of 16 bits */
    size_t count;
    const int *status; /* [count], or NULL: all count; else those with 0 do */
    weft_cmp cmp;
    const void *values; /* of 16 bits */
    size_t step;
    uint16_t (*load)(const struct wefti_short_wait *wait, const uint16_t *variable);
} wefti_short_wait;

static inline int wefti_short_counts(const wefti_short_wait *wait, size_t i)
{
    return wait->status == NULL || wait->status[i] == 0;
}

/* Whether no variable counts, so that there is nothing to wait for. */
static inline int wefti_short_none_counts(const wefti_short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (wefti_short_counts(wait, i)) {
            return 0;
        }
    }
    return 1;
}

static inline int wefti_short_number(const wefti_short_wait *wait, uint16_t bits)
{
    return wait->is_signed ? (int16_t)bits : bits;
}

static inline int wefti_short_holds(const wefti_short_wait *wait, size_t i)
{
    const int seen = wefti_short_number(wait, wait->load(wait, (const uint16_t *)wait->variables + i));
    const int value = wefti_short_number(wait, ((const uint16_t *)wait->values)[i * wait->step]);
    switch (wait->cmp) {
    case WEFT_CMP_EQ:
        return seen == value;
    case WEFT_CMP_NE:
        return seen != value;
    case WEFT_CMP_GT:
        return seen > value;
    case WEFT_CMP_GE:
        return seen >= value;
    case WEFT_CMP_LT:
        return seen < value;
    default:
        return seen <= value;
    }
}

/* Whether the comparison holds for all that count; the first for which it does, or SIZE_MAX; for how many it does, and
 * their numbers in `indices`. */
static inline int wefti_short_test_all(const wefti_short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (wefti_short_counts(wait, i) && !wefti_short_holds(wait, i)) {
            return 0;
        }
    }
    return 1;
}

static inline size_t wefti_short_test_any(const wefti_short_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (wefti_short_counts(wait, i) && wefti_short_holds(wait, i)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static inline size_t wefti_short_test_some(const wefti_short_wait *wait, size_t *indices)
{
    size_t found = 0;
    for (size_t i = 0; i < wait->count; i++) {
        if (wefti_short_counts(wait, i) && wefti_short_holds(wait, i)) {
            indices[found++] = i;
        }
    }
    return found;
}

/* Give way after `look` looks. The world's fault, if it has one. */
static inline weft_status wefti_short_rest(const wefti_short_wait *wait, unsigned look)
{
    if (look % WEFTI_LOOKS_PER_YIELD == 0) {
        (void)sched_yield();
    }
    return look % (WEFTI_LOOKS_PER_YIELD * WEFTI_YIELDS_PER_CHECK) == 0 ? weft_world_fault(wait->world, NULL) : WEFT_OK;
}

/* Until a test is not 0 or, of `any`, not SIZE_MAX; at once where no variable counts. The world's fault ends them. */
static inline weft_status wefti_short_wait_all(const wefti_short_wait *wait)
{
    weft_status status = WEFT_OK;
    for (unsigned look = 1; status == WEFT_OK && !wefti_short_test_all(wait); look++) {
        status = wefti_short_rest(wait, look);
    }
    return status;
}

static inline weft_status wefti_short_wait_any(const wefti_short_wait *wait, size_t *found)
{
    weft_status status = WEFT_OK;
    *found = wefti_short_test_any(wait);
    for (unsigned look = 1; status == WEFT_OK && *found == SIZE_MAX && !wefti_short_none_counts(wait); look++) {
        status = wefti_short_rest(wait, look);
        *found = wefti_short_test_any(wait);
    }
    return status;
}

static inline weft_status wefti_short_wait_some(const wefti_short_wait *wait, size_t *indices, size_t *found)
{
    weft_status status = WEFT_OK;
    *found = wefti_short_test_some(wait, indices);
    for (unsigned look = 1; status == WEFT_OK && *found == 0 && !wefti_short_none_counts(wait); look++) {
        status = wefti_short_rest(wait, look);
        *found = wefti_short_test_some(wait, indices);
    }
    return status;
}

#endif
