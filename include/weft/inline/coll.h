/* inline/coll.h: the bodies of the typed calls of weft/coll.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_COLL_H
#define WEFTI_INLINE_COLL_H

#include "weft/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

WEFT_API weft_status wefti_reduce(weft_team *team, wefti_op op, wefti_type type, void *dest, const void *source,
                                  size_t count) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_reduce_scatter(weft_team *team, wefti_op op, wefti_type type, void *dest, const void *source,
                                          size_t count) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_scan(weft_team *team, wefti_op op, wefti_type type, int inclusive, void *dest,
                                const void *source, size_t count) WEFT_MUST_CHECK;

/* An element count whose bytes do not fit in size_t becomes the largest size, which no heap holds. */
static inline size_t wefti_coll_bytes(size_t count, size_t element)
{
    return count <= SIZE_MAX / element ? count * element : SIZE_MAX;
}

#define WEFTI_DEFINE_COLL(NAME, TYPE)                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_broadcast(weft_team *team, TYPE *dest, const TYPE *source, size_t count,     \
                                                    int root)                                                          \
    {                                                                                                                  \
        return weft_broadcastmem(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), root);                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_fcollect(weft_team *team, TYPE *dest, const TYPE *source, size_t count)      \
    {                                                                                                                  \
        return weft_fcollectmem(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)));                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_collect(weft_team *team, TYPE *dest, const TYPE *source, size_t count)       \
    {                                                                                                                  \
        return weft_collectmem(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)));                             \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_alltoall(weft_team *team, TYPE *dest, const TYPE *source, size_t count)      \
    {                                                                                                                  \
        return weft_alltoallmem(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)));                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_alltoalls(weft_team *team, TYPE *dest, const TYPE *source,                   \
                                                    ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count)      \
    {                                                                                                                  \
        return weft_alltoallsmem(team, dest, source, dest_stride, source_stride, count, sizeof(TYPE));                 \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_COLL)
#undef WEFTI_DEFINE_COLL

#define WEFTI_DEFINE_REDUCE(NAME, TYPE, OP, CODE, KIND)                                                                \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
    {                                                                                                                  \
        return wefti_reduce(team, CODE, KIND, dest, source, count);                                                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_scatter(weft_team *team, TYPE *dest, const TYPE *source,       \
                                                                size_t count)                                          \
    {                                                                                                                  \
        return wefti_reduce_scatter(team, CODE, KIND, dest, source, count);                                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_inscan(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
    {                                                                                                                  \
        return wefti_scan(team, CODE, KIND, 1, dest, source, count);                                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_exscan(weft_team *team, TYPE *dest, const TYPE *source, size_t count) \
    {                                                                                                                  \
        return wefti_scan(team, CODE, KIND, 0, dest, source, count);                                                   \
    }
#define WEFTI_DEFINE_INTEGER_REDUCE(NAME, TYPE)                                                                        \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, and, WEFTI_OP_AND, WEFTI_INTEGER_TYPE(TYPE))                                       \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, or, WEFTI_OP_OR, WEFTI_INTEGER_TYPE(TYPE))                                         \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, xor, WEFTI_OP_XOR, WEFTI_INTEGER_TYPE(TYPE))                                       \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, min, WEFTI_OP_MIN, WEFTI_INTEGER_TYPE(TYPE))                                       \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, max, WEFTI_OP_MAX, WEFTI_INTEGER_TYPE(TYPE))                                       \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, sum, WEFTI_OP_SUM, WEFTI_INTEGER_TYPE(TYPE))                                       \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, prod, WEFTI_OP_PROD, WEFTI_INTEGER_TYPE(TYPE))
#define WEFTI_DEFINE_REAL_REDUCE(NAME, TYPE)                                                                           \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, min, WEFTI_OP_MIN, WEFTI_TYPE_OF_##NAME)                                           \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, max, WEFTI_OP_MAX, WEFTI_TYPE_OF_##NAME)                                           \
    WEFTI_DEFINE_COMPLEX_REDUCE(NAME, TYPE)
#define WEFTI_DEFINE_COMPLEX_REDUCE(NAME, TYPE)                                                                        \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, sum, WEFTI_OP_SUM, WEFTI_TYPE_OF_##NAME)                                           \
    WEFTI_DEFINE_REDUCE(NAME, TYPE, prod, WEFTI_OP_PROD, WEFTI_TYPE_OF_##NAME)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DEFINE_INTEGER_REDUCE)
WEFT_REDUCE_REAL_TYPES(WEFTI_DEFINE_REAL_REDUCE)
WEFT_REDUCE_COMPLEX_TYPES(WEFTI_DEFINE_COMPLEX_REDUCE)
#undef WEFTI_DEFINE_INTEGER_REDUCE
#undef WEFTI_DEFINE_REAL_REDUCE
#undef WEFTI_DEFINE_COMPLEX_REDUCE
#undef WEFTI_DEFINE_REDUCE

#ifdef __cplusplus
}
#endif
#endif
