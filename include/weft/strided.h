/* weft/strided.h: put and get of elements that lie apart, and of elements named by their size. (OpenSHMEM 1.5, 9.6.)
 *
 * Errors and order are those of weft/rma.h. */
#ifndef WEFT_STRIDED_H
#define WEFT_STRIDED_H

#include "weft/rma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(bits, bytes of an element) */
#define WEFT_SIZES(X)                                                                                                  \
    X(8, 1)                                                                                                            \
    X(16, 2)                                                                                                           \
    X(32, 4)                                                                                                           \
    X(64, 8)                                                                                                           \
    X(128, 16)

/* Copy `count` elements of `element_bytes` bytes to `pe`, or from it: element i of `source` is source[i *
 * source_stride], and likewise in `dest`; both strides, in elements, are at least 1. (OpenSHMEM 1.5, 9.6 shmem_iput,
 * shmem_iget.) */
WEFT_API weft_status weft_iputmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                  ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe);
WEFT_API weft_status weft_igetmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                  ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe);

/* The same with blocks: `blocks` blocks of `block` elements each, of which block i begins at source[i * source_stride],
 * and likewise in `dest`; both strides, in elements, are at least `block`. (OpenSHMEM 1.6, 9.6 shmem_ibput,
 * shmem_ibget.) */
WEFT_API weft_status weft_ibputmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                   ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe);
WEFT_API weft_status weft_ibgetmem(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,
                                   ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes, int pe);

/* For each NAME, TYPE of WEFT_RMA_TYPES. */
#define WEFTI_DECLARE_STRIDED(NAME, TYPE)                                                                              \
    WEFT_INLINE weft_status weft_##NAME##_iput(weft_world *world, TYPE *dest, const TYPE *source,                      \
                                               ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, int pe);  \
    WEFT_INLINE weft_status weft_##NAME##_iget(weft_world *world, TYPE *dest, const TYPE *source,                      \
                                               ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count, int pe);
WEFT_RMA_TYPES(WEFTI_DECLARE_STRIDED)
#undef WEFTI_DECLARE_STRIDED

/* For each size in bits of WEFT_SIZES: weft_putSIZE and weft_getSIZE, _nbi, put_signal, iput and iget, `count`
 * elements. */
#define WEFTI_DECLARE_SIZED(BITS, BYTES)                                                                               \
    WEFT_INLINE weft_status weft_put##BITS(weft_world *world, void *dest, const void *source, size_t count, int pe);   \
    WEFT_INLINE weft_status weft_put##BITS##_nbi(weft_world *world, void *dest, const void *source, size_t count,      \
                                                 int pe);                                                              \
    WEFT_INLINE weft_status weft_get##BITS(weft_world *world, void *dest, const void *source, size_t count, int pe);   \
    WEFT_INLINE weft_status weft_get##BITS##_nbi(weft_world *world, void *dest, const void *source, size_t count,      \
                                                 int pe);                                                              \
    WEFT_INLINE weft_status weft_put##BITS##_signal(weft_world *world, void *dest, const void *source, size_t count,   \
                                                    uint64_t *signal, uint64_t value, weft_signal_op op, int pe);      \
    WEFT_INLINE weft_status weft_put##BITS##_signal_nbi(weft_world *world, void *dest, const void *source,             \
                                                        size_t count, uint64_t *signal, uint64_t value,                \
                                                        weft_signal_op op, int pe);                                    \
    WEFT_INLINE weft_status weft_iput##BITS(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                            ptrdiff_t source_stride, size_t count, int pe);                            \
    WEFT_INLINE weft_status weft_iget##BITS(weft_world *world, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                            ptrdiff_t source_stride, size_t count, int pe);
WEFT_SIZES(WEFTI_DECLARE_SIZED)
#undef WEFTI_DECLARE_SIZED

#ifdef __cplusplus
}
#endif

#include "weft/inline/strided.h"

#endif
