/* weft/amo_nbi.h: atomics whose result may arrive later. (OpenSHMEM 1.5, 9.7.2.)
 *
 * As the calls of weft/rma.h without _nbi, but the place for the result is written at weft_quiet at the latest, and
 * stays the caller's to keep until then. By load and store it is written at once. */
#ifndef WEFT_AMO_NBI_H
#define WEFT_AMO_NBI_H

#include "weft/rma.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFTI_DEFINE_EXTENDED_AMO_NBI(NAME, TYPE)                                                                      \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_nbi(weft_world *world, const TYPE *source, int pe, TYPE *value) \
    {                                                                                                                  \
        return wefti_amo_fetching_nbi(world, WEFTI_AMO_FETCH, sizeof(TYPE), wefti_writable(source), NULL, NULL, pe,    \
                                      value);                                                                          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_swap_nbi(weft_world *world, TYPE *dest, TYPE value, int pe,           \
                                                          TYPE *old)                                                   \
    {                                                                                                                  \
        return wefti_amo_fetching_nbi(world, WEFTI_AMO_SWAP, sizeof(TYPE), dest, &value, NULL, pe, old);               \
    }
WEFT_EXTENDED_AMO_TYPES(WEFTI_DEFINE_EXTENDED_AMO_NBI)
#undef WEFTI_DEFINE_EXTENDED_AMO_NBI

#define WEFTI_DEFINE_STANDARD_AMO_NBI(NAME, TYPE)                                                                      \
    WEFT_INLINE weft_status weft_##NAME##_atomic_compare_swap_nbi(weft_world *world, TYPE *dest, TYPE cond,            \
                                                                  TYPE value, int pe, TYPE *old)                       \
    {                                                                                                                  \
        return wefti_amo_fetching_nbi(world, WEFTI_AMO_COMPARE_SWAP, sizeof(TYPE), dest, &value, &cond, pe, old);      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_add_nbi(weft_world *world, TYPE *dest, TYPE value, int pe,      \
                                                               TYPE *old)                                              \
    {                                                                                                                  \
        return wefti_amo_fetching_nbi(world, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, old);                \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_inc_nbi(weft_world *world, TYPE *dest, int pe, TYPE *old)       \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_add_nbi(world, dest, (TYPE)1, pe, old);                                      \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_STANDARD_AMO_NBI)
#undef WEFTI_DEFINE_STANDARD_AMO_NBI

#define WEFTI_DEFINE_BITWISE_AMO_NBI_OP(NAME, TYPE, OP, CODE)                                                          \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_##OP##_nbi(weft_world *world, TYPE *dest, TYPE value, int pe,   \
                                                                  TYPE *old)                                           \
    {                                                                                                                  \
        return wefti_amo_fetching_nbi(world, CODE, sizeof(TYPE), dest, &value, NULL, pe, old);                         \
    }
#define WEFTI_DEFINE_BITWISE_AMO_NBI(NAME, TYPE)                                                                       \
    WEFTI_DEFINE_BITWISE_AMO_NBI_OP(NAME, TYPE, and, WEFTI_AMO_AND)                                                    \
    WEFTI_DEFINE_BITWISE_AMO_NBI_OP(NAME, TYPE, or, WEFTI_AMO_OR)                                                      \
    WEFTI_DEFINE_BITWISE_AMO_NBI_OP(NAME, TYPE, xor, WEFTI_AMO_XOR)
WEFT_BITWISE_TYPES(WEFTI_DEFINE_BITWISE_AMO_NBI)
#undef WEFTI_DEFINE_BITWISE_AMO_NBI
#undef WEFTI_DEFINE_BITWISE_AMO_NBI_OP

#ifdef __cplusplus
}
#endif
#endif
