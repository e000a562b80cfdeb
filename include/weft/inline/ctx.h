/* inline/ctx.h: the bodies of weft/ctx.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_CTX_H
#define WEFTI_INLINE_CTX_H

#include "weft/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its first members, which inline code reads, neither move nor change. */
struct weft_ctx {
    weft_world *world;
    int pes;
    int start; /* member i is PE start + i * stride, or list[i] if there is a list */
    int stride;
    const int32_t *list;
    weft_team *team;
    unsigned options;
};

static inline weft_world *wefti_ctx_world(const weft_ctx *ctx)
{
    return WEFTI_LIKELY(ctx != NULL) ? ctx->world : NULL;
}

/* The number in the world of member `pe`; -1, which no world has, when it is none. */
static inline int wefti_ctx_pe(const weft_ctx *ctx, int pe)
{
    if (WEFTI_UNLIKELY(ctx == NULL || (unsigned)pe >= (unsigned)ctx->pes)) {
        return -1;
    }
    return WEFTI_LIKELY(ctx->list == NULL) ? ctx->start + pe * ctx->stride : ctx->list[pe];
}

WEFT_INLINE weft_status weft_ctx_fence(weft_ctx *ctx)
{
    return weft_fence(wefti_ctx_world(ctx));
}

WEFT_INLINE weft_status weft_ctx_quiet(weft_ctx *ctx)
{
    return weft_quiet(wefti_ctx_world(ctx));
}

WEFT_INLINE weft_status weft_ctx_putmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return weft_putmem(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_putmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return weft_putmem_nbi(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_getmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return weft_getmem(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_getmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return weft_getmem_nbi(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_putmem_signal(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return weft_putmem_signal(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_putmem_signal_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                                   uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return weft_putmem_signal_nbi(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op, wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_iputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    return weft_iputmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count, element_bytes,
                        wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_igetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                         ptrdiff_t source_stride, size_t count, size_t element_bytes, int pe)
{
    return weft_igetmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count, element_bytes,
                        wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_ibputmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                          ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes,
                                          int pe)
{
    return weft_ibputmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, block, blocks, element_bytes,
                         wefti_ctx_pe(ctx, pe));
}

WEFT_INLINE weft_status weft_ctx_ibgetmem(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,
                                          ptrdiff_t source_stride, size_t block, size_t blocks, size_t element_bytes,
                                          int pe)
{
    return weft_ibgetmem(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, block, blocks, element_bytes,
                         wefti_ctx_pe(ctx, pe));
}

#define WEFTI_DEFINE_CTX_SIZED(BITS, BYTES)                                                                            \
    WEFT_INLINE weft_status weft_ctx_put##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_put##BITS(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                       \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe)                                                           \
    {                                                                                                                  \
        return weft_put##BITS##_nbi(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_get##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_get##BITS(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                       \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_get##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe)                                                           \
    {                                                                                                                  \
        return weft_get##BITS##_nbi(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal(weft_ctx *ctx, void *dest, const void *source, size_t count,   \
                                                        uint64_t *signal, uint64_t value, weft_signal_op op, int pe)   \
    {                                                                                                                  \
        return weft_put##BITS##_signal(wefti_ctx_world(ctx), dest, source, count, signal, value, op,                   \
                                       wefti_ctx_pe(ctx, pe));                                                         \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal_nbi(weft_ctx *ctx, void *dest, const void *source,             \
                                                            size_t count, uint64_t *signal, uint64_t value,            \
                                                            weft_signal_op op, int pe)                                 \
    {                                                                                                                  \
        return weft_put##BITS##_signal_nbi(wefti_ctx_world(ctx), dest, source, count, signal, value, op,               \
                                           wefti_ctx_pe(ctx, pe));                                                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_iput##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe)                         \
    {                                                                                                                  \
        return weft_iput##BITS(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count,                  \
                               wefti_ctx_pe(ctx, pe));                                                                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_iget##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe)                         \
    {                                                                                                                  \
        return weft_iget##BITS(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count,                  \
                               wefti_ctx_pe(ctx, pe));                                                                 \
    }
WEFT_SIZES(WEFTI_DEFINE_CTX_SIZED)
#undef WEFTI_DEFINE_CTX_SIZED

#define WEFTI_DEFINE_CTX_RMA(NAME, TYPE)                                                                               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_##NAME##_put(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe)                                                          \
    {                                                                                                                  \
        return weft_##NAME##_put_nbi(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_##NAME##_get(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe)                                                          \
    {                                                                                                                  \
        return weft_##NAME##_get_nbi(wefti_ctx_world(ctx), dest, source, count, wefti_ctx_pe(ctx, pe));                \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_p(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                         \
    {                                                                                                                  \
        return weft_##NAME##_p(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_g(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value)                \
    {                                                                                                                  \
        return weft_##NAME##_g(wefti_ctx_world(ctx), source, wefti_ctx_pe(ctx, pe), value);                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iput(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe)                                                             \
    {                                                                                                                  \
        return weft_##NAME##_iput(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count,               \
                                  wefti_ctx_pe(ctx, pe));                                                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iget(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe)                                                             \
    {                                                                                                                  \
        return weft_##NAME##_iget(wefti_ctx_world(ctx), dest, source, dest_stride, source_stride, count,               \
                                  wefti_ctx_pe(ctx, pe));                                                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,  \
                                                         uint64_t *signal, uint64_t value, weft_signal_op op, int pe)  \
    {                                                                                                                  \
        return weft_##NAME##_put_signal(wefti_ctx_world(ctx), dest, source, count, signal, value, op,                  \
                                        wefti_ctx_pe(ctx, pe));                                                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source,            \
                                                             size_t count, uint64_t *signal, uint64_t value,           \
                                                             weft_signal_op op, int pe)                                \
    {                                                                                                                  \
        return weft_##NAME##_put_signal_nbi(wefti_ctx_world(ctx), dest, source, count, signal, value, op,              \
                                            wefti_ctx_pe(ctx, pe));                                                    \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_CTX_RMA)
#undef WEFTI_DEFINE_CTX_RMA

#define WEFTI_DEFINE_CTX_EXTENDED_AMO(NAME, TYPE)                                                                      \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value)     \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch(wefti_ctx_world(ctx), source, wefti_ctx_pe(ctx, pe), value);                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_nbi(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value) \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_nbi(wefti_ctx_world(ctx), source, wefti_ctx_pe(ctx, pe), value);             \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_set(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return weft_##NAME##_atomic_set(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap(weft_ctx *ctx, TYPE *dest, TYPE value, int pe, TYPE *old)    \
    {                                                                                                                  \
        return weft_##NAME##_atomic_swap(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,           \
                                                              TYPE *old)                                               \
    {                                                                                                                  \
        return weft_##NAME##_atomic_swap_nbi(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);           \
    }
WEFT_EXTENDED_AMO_TYPES(WEFTI_DEFINE_CTX_EXTENDED_AMO)
#undef WEFTI_DEFINE_CTX_EXTENDED_AMO

#define WEFTI_DEFINE_CTX_INTEGER(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap(weft_ctx *ctx, TYPE *dest, TYPE cond, TYPE value,    \
                                                                  int pe, TYPE *old)                                   \
    {                                                                                                                  \
        return weft_##NAME##_atomic_compare_swap(wefti_ctx_world(ctx), dest, cond, value, wefti_ctx_pe(ctx, pe), old); \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE cond,            \
                                                                      TYPE value, int pe, TYPE *old)                   \
    {                                                                                                                  \
        return weft_##NAME##_atomic_compare_swap_nbi(wefti_ctx_world(ctx), dest, cond, value, wefti_ctx_pe(ctx, pe),   \
                                                     old);                                                             \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return weft_##NAME##_atomic_add(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old)                                              \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_add(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old)                                          \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_add_nbi(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_inc(weft_ctx *ctx, TYPE *dest, int pe)                            \
    {                                                                                                                  \
        return weft_##NAME##_atomic_inc(wefti_ctx_world(ctx), dest, wefti_ctx_pe(ctx, pe));                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old)           \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_inc(wefti_ctx_world(ctx), dest, wefti_ctx_pe(ctx, pe), old);                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc_nbi(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old)       \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_inc_nbi(wefti_ctx_world(ctx), dest, wefti_ctx_pe(ctx, pe), old);             \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_CTX_INTEGER)
#undef WEFTI_DEFINE_CTX_INTEGER

#define WEFTI_DEFINE_CTX_BITWISE(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_and(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return weft_##NAME##_atomic_and(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_and(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old)                                              \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_and(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_and_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old)                                          \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_and_nbi(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_or(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                 \
    {                                                                                                                  \
        return weft_##NAME##_atomic_or(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_or(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,           \
                                                              TYPE *old)                                               \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_or(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);           \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_or_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,       \
                                                                  TYPE *old)                                           \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_or_nbi(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);       \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_xor(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return weft_##NAME##_atomic_xor(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe));                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_xor(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old)                                              \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_xor(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_xor_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old)                                          \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_xor_nbi(wefti_ctx_world(ctx), dest, value, wefti_ctx_pe(ctx, pe), old);      \
    }
WEFT_BITWISE_TYPES(WEFTI_DEFINE_CTX_BITWISE)
#undef WEFTI_DEFINE_CTX_BITWISE

#ifdef __cplusplus
}
#endif
#endif
