/* inline/strided.h: the bodies of weft/strided.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_STRIDED_H
#define WEFTI_INLINE_STRIDED_H

#include "weft/strided.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFTI_DEFINE_STRIDED(NAME, TYPE)                                                                               \
    WEFT_INLINE weft_status weft_##NAME##_iput(weft_world *world, TYPE *dest, const TYPE *source,                      \
                                               ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, int pe)   \
    {                                                                                                                  \
        return weft_iputmem(world, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe);                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_iget(weft_world *world, TYPE *dest, const TYPE *source,                      \
                                               ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, int pe)   \
    {                                                                                                                  \
        return weft_igetmem(world, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe);                 \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_STRIDED)
#undef WEFTI_DEFINE_STRIDED

#define WEFTI_DEFINE_SIZED(BITS, BYTES)                                                                                \
    WEFT_INLINE weft_status weft_put##BITS(weft_world *world, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_putmem(world, dest, source, wefti_bytes_of(count, BYTES), pe);                                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_put##BITS##_nbi(weft_world *world, void *dest, const void *source, size_t count,      \
                                                 int pe)                                                               \
    {                                                                                                                  \
        return weft_putmem_nbi(world, dest, source, wefti_bytes_of(count, BYTES), pe);                                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_get##BITS(weft_world *world, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_getmem(world, dest, source, wefti_bytes_of(count, BYTES), pe);                                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_get##BITS##_nbi(weft_world *world, void *dest, const void *source, size_t count,      \
                                                 int pe)                                                               \
    {                                                                                                                  \
        return weft_getmem_nbi(world, dest, source, wefti_bytes_of(count, BYTES), pe);                                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_put##BITS##_signal(weft_world *world, void *dest, const void *source, size_t count,   \
                                                    uint64_t *signal, uint64_t value, weft_signal_op op, int pe)       \
    {                                                                                                                  \
        return weft_putmem_signal(world, dest, source, wefti_bytes_of(count, BYTES), signal, value, op, pe);           \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_put##BITS##_signal_nbi(weft_world *world, void *dest, const void *source,             \
                                                        size_t count, uint64_t *signal, uint64_t value,                \
                                                        weft_signal_op op, int pe)                                     \
    {                                                                                                                  \
        return weft_putmem_signal_nbi(world, dest, source, wefti_bytes_of(count, BYTES), signal, value, op, pe);       \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_iput##BITS(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                            ptrdiff_t source_stride, size_t count, int pe)                             \
    {                                                                                                                  \
        return weft_iputmem(world, dest, source, dest_stride, source_stride, count, BYTES, pe);                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_iget##BITS(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                            ptrdiff_t source_stride, size_t count, int pe)                             \
    {                                                                                                                  \
        return weft_igetmem(world, dest, source, dest_stride, source_stride, count, BYTES, pe);                        \
    }
WEFT_SIZES(WEFTI_DEFINE_SIZED)
#undef WEFTI_DEFINE_SIZED

#ifdef __cplusplus
}
#endif
#endif
