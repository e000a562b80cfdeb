/* weft/wait.h: waiting for several local variables, and looking at them. (OpenSHMEM 1.5, 9.10.)
 *
 * `variables` are `count` variables of this PE's heap (that of its device, too), aligned to their size; variable i
 * counts when status is NULL or status[i] is 0. The comparison is variable CMP value, in the _vector forms variable i
 * CMP values[i]. What the writer of a variable that satisfied it ordered before the write is then visible. Any thread.
 *
 * Waits block at most the deadline: WEFT_ERR_TIMEOUT, and the world stays usable. WEFT_ERR_ARGUMENT: a NULL where there
 * may be none, a comparison that is no weft_cmp, a variable that is not aligned. WEFT_ERR_RANGE: variables that do not
 * all lie there. */
#ifndef WEFT_WAIT_H
#define WEFT_WAIT_H

#include "weft/rma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For each NAME, TYPE of WEFT_INTEGER_TYPES:
 *   weft_NAME_wait_until_all   until all that count satisfy the comparison; at once when none counts
 *   weft_NAME_wait_until_any   until one does; *index is its number, SIZE_MAX when none counts
 *   weft_NAME_wait_until_some  until one does; indices[0 .. *found - 1] are all that do then; 0 when none counts
 *   weft_NAME_test_all         *result is 1 when all that count satisfy the comparison, or none counts; else 0
 *   weft_NAME_test_any         *index is the number of one that does, SIZE_MAX when there is none
 *   weft_NAME_test_some        indices[0 .. *found - 1] are those that do
 * and each with _vector. `indices` has room for `count` numbers. */
#define WEFTI_DECLARE_WAITS(NAME, TYPE, VECTOR, VALUE)                                                                 \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_all##VECTOR(                                                      \
        weft_world *world, const TYPE *variables, size_t count, const int *status, weft_cmp cmp, VALUE);               \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_any##VECTOR(weft_world *world, const TYPE *variables,             \
                                                                 size_t count, const int *status, weft_cmp cmp, VALUE, \
                                                                 size_t *index);                                       \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_some##VECTOR(weft_world *world, const TYPE *variables,            \
                                                                  size_t count, const int *status, weft_cmp cmp,       \
                                                                  VALUE, size_t *indices, size_t *found);              \
    WEFT_INLINE weft_status weft_##NAME##_test_all##VECTOR(weft_world *world, const TYPE *variables, size_t count,     \
                                                           const int *status, weft_cmp cmp, VALUE, int *result);       \
    WEFT_INLINE weft_status weft_##NAME##_test_any##VECTOR(weft_world *world, const TYPE *variables, size_t count,     \
                                                           const int *status, weft_cmp cmp, VALUE, size_t *index);     \
    WEFT_INLINE weft_status weft_##NAME##_test_some##VECTOR(weft_world *world, const TYPE *variables, size_t count,    \
                                                            const int *status, weft_cmp cmp, VALUE, size_t *indices,   \
                                                            size_t *found);
#define WEFTI_DECLARE_WAITS_OF(NAME, TYPE)                                                                             \
    WEFTI_DECLARE_WAITS(NAME, TYPE, , TYPE value)                                                                      \
    WEFTI_DECLARE_WAITS(NAME, TYPE, _vector, const TYPE *values)
WEFT_INTEGER_TYPES(WEFTI_DECLARE_WAITS_OF)
#undef WEFTI_DECLARE_WAITS_OF
#undef WEFTI_DECLARE_WAITS

#ifdef __cplusplus
}
#endif

#include "weft/inline/wait.h"

#endif
