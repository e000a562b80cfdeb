/* inline/stream.h: the bodies of the typed calls of weft/stream.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_STREAM_H
#define WEFTI_INLINE_STREAM_H

#include <string.h>

#include "weft/inline/coll.h"
#include "weft/protocol/wait.h"
#include "weft/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `bits` is 8 to 64, for atomics 32 or 64. old: NULL for none. */
WEFT_API weft_status wefti_p_on_stream(weft_world *world, void *dest, uint64_t value, int bits, int pe,
                                       weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_amo_on_stream(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                         uint64_t cond, int pe, void *old, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_wait_on_stream(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                                          uint64_t value, weft_stream *stream) WEFT_MUST_CHECK;
/* A call that needs a place for a value and got NULL. */
WEFT_API weft_status wefti_no_place_on_stream(const char *call);

#define WEFTI_DEFINE_STREAM_RMA(NAME, TYPE)                                                                            \
    WEFT_INLINE weft_status weft_##NAME##_put_on_stream(weft_world *world, TYPE *dest, const TYPE *source,             \
                                                        size_t count, int pe, weft_stream *stream)                     \
    {                                                                                                                  \
        return weft_putmem_on_stream(world, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), pe, stream);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_get_on_stream(weft_world *world, TYPE *dest, const TYPE *source,             \
                                                        size_t count, int pe, weft_stream *stream)                     \
    {                                                                                                                  \
        return weft_getmem_on_stream(world, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), pe, stream);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_iput_on_stream(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, \
                                                         int pe, weft_stream *stream)                                  \
    {                                                                                                                  \
        return weft_iputmem_on_stream(world, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe,        \
                                      stream);                                                                         \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_iget_on_stream(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, \
                                                         int pe, weft_stream *stream)                                  \
    {                                                                                                                  \
        return weft_igetmem_on_stream(world, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe,        \
                                      stream);                                                                         \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_put_signal_on_stream(weft_world *world, TYPE *dest, const TYPE *source,      \
                                                               size_t count, uint64_t *signal, uint64_t value,         \
                                                               weft_signal_op op, int pe, weft_stream *stream)         \
    {                                                                                                                  \
        return weft_putmem_signal_on_stream(world, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), signal, value, \
                                            op, pe, stream);                                                           \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_STREAM_RMA)
#undef WEFTI_DEFINE_STREAM_RMA

#define WEFTI_DEFINE_STREAM_WORD(NAME, TYPE)                                                                           \
    WEFT_INLINE uint64_t wefti_##NAME##_stream_bits(TYPE value)                                                        \
    {                                                                                                                  \
        uint64_t bits = 0;                                                                                             \
        memcpy(&bits, &value, sizeof value);                                                                           \
        return bits;                                                                                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_p_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,               \
                                                      weft_stream *stream)                                             \
    {                                                                                                                  \
        return wefti_p_on_stream(world, dest, wefti_##NAME##_stream_bits(value), 8 * (int)sizeof(TYPE), pe, stream);   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_g_on_stream(weft_world *world, const TYPE *source, int pe, TYPE *value,      \
                                                      weft_stream *stream)                                             \
    {                                                                                                                  \
        return weft_getmem_on_stream(world, value, source, sizeof(TYPE), pe, stream);                                  \
    }
WEFT_WORD_TYPES(WEFTI_DEFINE_STREAM_WORD)
#undef WEFTI_DEFINE_STREAM_WORD

#define WEFTI_DEFINE_STREAM_WAIT(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_##NAME##_wait_until_on_stream(weft_world *world, const TYPE *variable, weft_cmp cmp,  \
                                                               TYPE value, weft_stream *stream)                        \
    {                                                                                                                  \
        return wefti_wait_on_stream(world, variable, WEFTI_WORD_KIND(TYPE), cmp, (uint64_t)value, stream);             \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_STREAM_WAIT)
#undef WEFTI_DEFINE_STREAM_WAIT

/* ---- atomics ---- */

#define WEFTI_STREAM_AMO(op, NAME, TYPE, value, cond, old)                                                             \
    wefti_amo_on_stream(world, op, 8 * (int)sizeof(TYPE), dest, wefti_##NAME##_stream_bits(value),                     \
                        wefti_##NAME##_stream_bits(cond), pe, old, stream)
#define WEFTI_STREAM_FETCHING_AMO(op, NAME, TYPE, value, cond, old)                                                    \
    (old) == NULL ? wefti_no_place_on_stream("atomic") : WEFTI_STREAM_AMO(op, NAME, TYPE, value, cond, old)

#define WEFTI_DEFINE_STREAM_EXTENDED_AMO(NAME, TYPE)                                                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_on_stream(weft_world *world, const TYPE *source, int pe,        \
                                                                 TYPE *value, weft_stream *stream)                     \
    {                                                                                                                  \
        TYPE *dest = (TYPE *)(uintptr_t)source;                                                                        \
        return WEFTI_STREAM_FETCHING_AMO(WEFTI_AMO_FETCH, NAME, TYPE, (TYPE)0, (TYPE)0, value);                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_set_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,      \
                                                               weft_stream *stream)                                    \
    {                                                                                                                  \
        return WEFTI_STREAM_AMO(WEFTI_AMO_SET, NAME, TYPE, value, (TYPE)0, NULL);                                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_swap_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,     \
                                                                TYPE *old, weft_stream *stream)                        \
    {                                                                                                                  \
        return WEFTI_STREAM_FETCHING_AMO(WEFTI_AMO_SWAP, NAME, TYPE, value, (TYPE)0, old);                             \
    }
WEFT_EXTENDED_AMO_TYPES(WEFTI_DEFINE_STREAM_EXTENDED_AMO)
#undef WEFTI_DEFINE_STREAM_EXTENDED_AMO

#define WEFTI_DEFINE_STREAM_STANDARD_AMO(NAME, TYPE)                                                                   \
    WEFT_INLINE weft_status weft_##NAME##_atomic_compare_swap_on_stream(                                               \
        weft_world *world, TYPE *dest, TYPE cond, TYPE value, int pe, TYPE *old, weft_stream *stream)                  \
    {                                                                                                                  \
        return WEFTI_STREAM_FETCHING_AMO(WEFTI_AMO_COMPARE_SWAP, NAME, TYPE, value, cond, old);                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_inc_on_stream(weft_world *world, TYPE *dest, int pe,                  \
                                                               weft_stream *stream)                                    \
    {                                                                                                                  \
        return WEFTI_STREAM_AMO(WEFTI_AMO_ADD, NAME, TYPE, (TYPE)1, (TYPE)0, NULL);                                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_inc_on_stream(weft_world *world, TYPE *dest, int pe, TYPE *old, \
                                                                     weft_stream *stream)                              \
    {                                                                                                                  \
        return WEFTI_STREAM_FETCHING_AMO(WEFTI_AMO_ADD, NAME, TYPE, (TYPE)1, (TYPE)0, old);                            \
    }                                                                                                                  \
    WEFTI_DEFINE_STREAM_AMO_OP(NAME, TYPE, add, WEFTI_AMO_ADD)
#define WEFTI_DEFINE_STREAM_AMO_OP(NAME, TYPE, OP, CODE)                                                               \
    WEFT_INLINE weft_status weft_##NAME##_atomic_##OP##_on_stream(weft_world *world, TYPE *dest, TYPE value, int pe,   \
                                                                  weft_stream *stream)                                 \
    {                                                                                                                  \
        return WEFTI_STREAM_AMO(CODE, NAME, TYPE, value, (TYPE)0, NULL);                                               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_##OP##_on_stream(weft_world *world, TYPE *dest, TYPE value,     \
                                                                        int pe, TYPE *old, weft_stream *stream)        \
    {                                                                                                                  \
        return WEFTI_STREAM_FETCHING_AMO(CODE, NAME, TYPE, value, (TYPE)0, old);                                       \
    }
#define WEFTI_DEFINE_STREAM_BITWISE_AMO(NAME, TYPE)                                                                    \
    WEFTI_DEFINE_STREAM_AMO_OP(NAME, TYPE, and, WEFTI_AMO_AND)                                                         \
    WEFTI_DEFINE_STREAM_AMO_OP(NAME, TYPE, or, WEFTI_AMO_OR)                                                           \
    WEFTI_DEFINE_STREAM_AMO_OP(NAME, TYPE, xor, WEFTI_AMO_XOR)
WEFT_INTEGER_TYPES(WEFTI_DEFINE_STREAM_STANDARD_AMO)
WEFT_BITWISE_TYPES(WEFTI_DEFINE_STREAM_BITWISE_AMO)
#undef WEFTI_DEFINE_STREAM_STANDARD_AMO
#undef WEFTI_DEFINE_STREAM_BITWISE_AMO
#undef WEFTI_DEFINE_STREAM_AMO_OP
#undef WEFTI_STREAM_FETCHING_AMO
#undef WEFTI_STREAM_AMO

/* ---- collectives ---- */

#define WEFTI_DEFINE_STREAM_COLL(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_##NAME##_broadcast_on_stream(weft_team *team, TYPE *dest, const TYPE *source,         \
                                                              size_t count, int root, weft_stream *stream)             \
    {                                                                                                                  \
        return weft_broadcastmem_on_stream(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), root, stream);   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_fcollect_on_stream(weft_team *team, TYPE *dest, const TYPE *source,          \
                                                             size_t count, weft_stream *stream)                        \
    {                                                                                                                  \
        return weft_fcollectmem_on_stream(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), stream);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_collect_on_stream(weft_team *team, TYPE *dest, const TYPE *source,           \
                                                            size_t count, weft_stream *stream)                         \
    {                                                                                                                  \
        return weft_collectmem_on_stream(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), stream);           \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_alltoall_on_stream(weft_team *team, TYPE *dest, const TYPE *source,          \
                                                             size_t count, weft_stream *stream)                        \
    {                                                                                                                  \
        return weft_alltoallmem_on_stream(team, dest, source, wefti_coll_bytes(count, sizeof(TYPE)), stream);          \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_STREAM_COLL)
#undef WEFTI_DEFINE_STREAM_COLL

#define WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, OP, CODE, KIND)                                                         \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_on_stream(weft_team *team, TYPE *dest, const TYPE *source,     \
                                                                  size_t count, weft_stream *stream)                   \
    {                                                                                                                  \
        return weft_reduce_on_stream(team, (weft_dtype)(KIND), CODE, dest, source, count, stream);                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_##OP##_reduce_scatter_on_stream(                                             \
        weft_team *team, TYPE *dest, const TYPE *source, size_t count, weft_stream *stream)                            \
    {                                                                                                                  \
        return weft_reduce_scatter_on_stream(team, (weft_dtype)(KIND), CODE, dest, source, count, stream);             \
    }
#define WEFTI_DEFINE_STREAM_COMPLEX_REDUCE(NAME, TYPE, KIND)                                                           \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, sum, WEFT_OP_SUM, KIND)                                                     \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, prod, WEFT_OP_PROD, KIND)
#define WEFTI_DEFINE_STREAM_REAL_REDUCE(NAME, TYPE, KIND)                                                              \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, min, WEFT_OP_MIN, KIND)                                                     \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, max, WEFT_OP_MAX, KIND)                                                     \
    WEFTI_DEFINE_STREAM_COMPLEX_REDUCE(NAME, TYPE, KIND)
#define WEFTI_DEFINE_STREAM_INTEGER_REDUCE(NAME, TYPE)                                                                 \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, and, WEFT_OP_AND, WEFTI_INTEGER_TYPE(TYPE))                                 \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, or, WEFT_OP_OR, WEFTI_INTEGER_TYPE(TYPE))                                   \
    WEFTI_DEFINE_STREAM_REDUCE(NAME, TYPE, xor, WEFT_OP_XOR, WEFTI_INTEGER_TYPE(TYPE))                                 \
    WEFTI_DEFINE_STREAM_REAL_REDUCE(NAME, TYPE, WEFTI_INTEGER_TYPE(TYPE))
#define WEFTI_DEFINE_STREAM_FLOAT_REDUCE(NAME, TYPE) WEFTI_DEFINE_STREAM_REAL_REDUCE(NAME, TYPE, WEFTI_TYPE_OF_##NAME)
#define WEFTI_DEFINE_STREAM_PAIR_REDUCE(NAME, TYPE) WEFTI_DEFINE_STREAM_COMPLEX_REDUCE(NAME, TYPE, WEFTI_TYPE_OF_##NAME)
WEFT_REDUCE_INTEGER_TYPES(WEFTI_DEFINE_STREAM_INTEGER_REDUCE)
WEFT_FLOAT_TYPES(WEFTI_DEFINE_STREAM_FLOAT_REDUCE)
WEFT_REDUCE_COMPLEX_TYPES(WEFTI_DEFINE_STREAM_PAIR_REDUCE)
#undef WEFTI_DEFINE_STREAM_PAIR_REDUCE
#undef WEFTI_DEFINE_STREAM_FLOAT_REDUCE
#undef WEFTI_DEFINE_STREAM_INTEGER_REDUCE
#undef WEFTI_DEFINE_STREAM_REAL_REDUCE
#undef WEFTI_DEFINE_STREAM_COMPLEX_REDUCE
#undef WEFTI_DEFINE_STREAM_REDUCE

#ifdef __cplusplus
}
#endif
#endif
