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

/* Out of line, as wefti_put_slow and the others of inline/rma.h, with the context and the PE's number in its team: so a
 * later library can complete and order a context's accesses apart without programs being compiled anew. */
WEFT_API weft_status wefti_ctx_put_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_ctx_put_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_ctx_get_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_ctx_get_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_ctx_put_signal_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
WEFT_API weft_status wefti_ctx_put_signal_nbi_slow(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                                   uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
WEFT_API weft_status wefti_ctx_amo_slow(weft_ctx *ctx, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                        uint64_t cond, int pe, uint64_t *old);
WEFT_API weft_status wefti_ctx_amo_nbi_slow(weft_ctx *ctx, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                            uint64_t cond, int pe, void *old);
WEFT_API weft_status wefti_ctx_fence_slow(weft_ctx *ctx);
WEFT_API weft_status wefti_ctx_quiet_slow(weft_ctx *ctx);

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
    weft_world *world = wefti_ctx_world(ctx);
    if (WEFTI_UNLIKELY(world == NULL || ((const wefti_view *)(const void *)world)->remote != 0)) {
        return wefti_ctx_fence_slow(ctx);
    }
    wefti_fence_release();
    return WEFT_OK;
}

WEFT_INLINE weft_status weft_ctx_quiet(weft_ctx *ctx)
{
    weft_world *world = wefti_ctx_world(ctx);
    if (WEFTI_UNLIKELY(world == NULL || ((const wefti_view *)(const void *)world)->remote != 0)) {
        return wefti_ctx_quiet_slow(ctx);
    }
    wefti_fence_full();
    return WEFT_OK;
}

WEFT_INLINE weft_status weft_ctx_putmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_near(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_put_slow(ctx, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_ctx_putmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_near(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_put_nbi_slow(ctx, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_ctx_getmem(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_near(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_get_slow(ctx, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_ctx_getmem_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_near(wefti_ctx_world(ctx), dest, source, bytes, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_get_nbi_slow(ctx, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_ctx_putmem_signal(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_near(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_put_signal_slow(ctx, dest, source, bytes, signal, value, op, pe);
}

WEFT_INLINE weft_status weft_ctx_putmem_signal_nbi(weft_ctx *ctx, void *dest, const void *source, size_t bytes,
                                                   uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_near(wefti_ctx_world(ctx), dest, source, bytes, signal, value, op, wefti_ctx_pe(ctx, pe))
               ? WEFT_OK
               : wefti_ctx_put_signal_nbi_slow(ctx, dest, source, bytes, signal, value, op, pe);
}

#define WEFTI_DEFINE_CTX_SIZED(BITS, BYTES)                                                                            \
    WEFT_INLINE weft_status weft_ctx_put##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_ctx_putmem(ctx, dest, source, wefti_bytes_of(count, BYTES), pe);                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe)                                                           \
    {                                                                                                                  \
        return weft_ctx_putmem_nbi(ctx, dest, source, wefti_bytes_of(count, BYTES), pe);                               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_get##BITS(weft_ctx *ctx, void *dest, const void *source, size_t count, int pe)    \
    {                                                                                                                  \
        return weft_ctx_getmem(ctx, dest, source, wefti_bytes_of(count, BYTES), pe);                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_get##BITS##_nbi(weft_ctx *ctx, void *dest, const void *source, size_t count,      \
                                                     int pe)                                                           \
    {                                                                                                                  \
        return weft_ctx_getmem_nbi(ctx, dest, source, wefti_bytes_of(count, BYTES), pe);                               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal(weft_ctx *ctx, void *dest, const void *source, size_t count,   \
                                                        uint64_t *signal, uint64_t value, weft_signal_op op, int pe)   \
    {                                                                                                                  \
        return weft_ctx_putmem_signal(ctx, dest, source, wefti_bytes_of(count, BYTES), signal, value, op, pe);         \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_put##BITS##_signal_nbi(weft_ctx *ctx, void *dest, const void *source,             \
                                                            size_t count, uint64_t *signal, uint64_t value,            \
                                                            weft_signal_op op, int pe)                                 \
    {                                                                                                                  \
        return weft_ctx_putmem_signal_nbi(ctx, dest, source, wefti_bytes_of(count, BYTES), signal, value, op, pe);     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_iput##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe)                         \
    {                                                                                                                  \
        return weft_ctx_iputmem(ctx, dest, source, dest_stride, source_stride, count, BYTES, pe);                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_iget##BITS(weft_ctx *ctx, void *dest, const void *source, ptrdiff_t dest_stride,  \
                                                ptrdiff_t source_stride, size_t count, int pe)                         \
    {                                                                                                                  \
        return weft_ctx_igetmem(ctx, dest, source, dest_stride, source_stride, count, BYTES, pe);                      \
    }
WEFT_SIZES(WEFTI_DEFINE_CTX_SIZED)
#undef WEFTI_DEFINE_CTX_SIZED

#define WEFTI_DEFINE_CTX_RMA(NAME, TYPE)                                                                               \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_ctx_putmem(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe)                                                          \
    {                                                                                                                  \
        return weft_ctx_putmem_nbi(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_ctx_getmem(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                            \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_get_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,     \
                                                      int pe)                                                          \
    {                                                                                                                  \
        return weft_ctx_getmem_nbi(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal(weft_ctx *ctx, TYPE *dest, const TYPE *source, size_t count,  \
                                                         uint64_t *signal, uint64_t value, weft_signal_op op, int pe)  \
    {                                                                                                                  \
        return weft_ctx_putmem_signal(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), signal, value, op, pe);  \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_put_signal_nbi(weft_ctx *ctx, TYPE *dest, const TYPE *source,            \
                                                             size_t count, uint64_t *signal, uint64_t value,           \
                                                             weft_signal_op op, int pe)                                \
    {                                                                                                                  \
        return weft_ctx_putmem_signal_nbi(ctx, dest, source, wefti_bytes_of(count, sizeof(TYPE)), signal, value, op,   \
                                          pe);                                                                         \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iput(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe)                                                             \
    {                                                                                                                  \
        return weft_ctx_iputmem(ctx, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe);               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_iget(weft_ctx *ctx, TYPE *dest, const TYPE *source,                      \
                                                   ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t count,       \
                                                   int pe)                                                             \
    {                                                                                                                  \
        return weft_ctx_igetmem(ctx, dest, source, dest_stride, source_stride, count, sizeof(TYPE), pe);               \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_CTX_RMA)
#undef WEFTI_DEFINE_CTX_RMA

#define WEFTI_DEFINE_CTX_WORD_RMA(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_p(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                         \
    {                                                                                                                  \
        weft_world *world = wefti_ctx_world(ctx);                                                                      \
        const int to = wefti_ctx_pe(ctx, pe);                                                                          \
        if (WEFTI_FAST(world, dest, sizeof(TYPE), to)) {                                                               \
            wefti_store_word(wefti_peer_address(world, dest, to), &value, sizeof(TYPE));                               \
            return WEFT_OK;                                                                                            \
        }                                                                                                              \
        return wefti_ctx_put_slow(ctx, dest, &value, sizeof(TYPE), pe);                                                \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_g(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value)                \
    {                                                                                                                  \
        weft_world *world = wefti_ctx_world(ctx);                                                                      \
        const int from = wefti_ctx_pe(ctx, pe);                                                                        \
        if (WEFTI_FAST(world, source, sizeof(TYPE), from) && WEFTI_LIKELY(value != NULL)) {                            \
            wefti_load_word(value, wefti_peer_address(world, source, from), sizeof(TYPE));                             \
            return WEFT_OK;                                                                                            \
        }                                                                                                              \
        return wefti_ctx_get_slow(ctx, value, source, sizeof(TYPE), pe);                                               \
    }
WEFT_WORD_TYPES(WEFTI_DEFINE_CTX_WORD_RMA)
#undef WEFTI_DEFINE_CTX_WORD_RMA

#define WEFTI_DEFINE_CTX_WIDE_RMA(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_ctx_##NAME##_p(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                         \
    {                                                                                                                  \
        return weft_ctx_putmem(ctx, dest, &value, sizeof(TYPE), pe);                                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_g(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value)                \
    {                                                                                                                  \
        return weft_ctx_getmem(ctx, value, source, sizeof(TYPE), pe);                                                  \
    }
WEFT_WIDE_TYPES(WEFTI_DEFINE_CTX_WIDE_RMA)
#undef WEFTI_DEFINE_CTX_WIDE_RMA

/* As wefti_amo_typed, wefti_amo_fetching and wefti_amo_fetching_nbi. */
static inline weft_status wefti_ctx_amo_typed(weft_ctx *ctx, wefti_amo_op op, size_t bytes, void *dest,
                                              const void *value, const void *cond, int pe, void *old)
{
    const int bits = (int)bytes * 8;
    const uint64_t value_bits = wefti_to_bits(value, bytes);
    const uint64_t cond_bits = wefti_to_bits(cond, bytes);
    uint64_t before = 0;
    weft_status status = WEFT_OK;
    if (!wefti_amo_near(wefti_ctx_world(ctx), op, bits, dest, value_bits, cond_bits, wefti_ctx_pe(ctx, pe), &before)) {
        status = wefti_ctx_amo_slow(ctx, op, bits, dest, value_bits, cond_bits, pe, old != NULL ? &before : NULL);
    }
    if (WEFTI_LIKELY(status == WEFT_OK) && old != NULL) {
        wefti_from_bits(old, before, bytes);
    }
    return status;
}

static inline weft_status wefti_ctx_amo_fetching(weft_ctx *ctx, wefti_amo_op op, size_t bytes, void *dest,
                                                 const void *value, const void *cond, int pe, void *old)
{
    if (WEFTI_UNLIKELY(old == NULL)) {
        return wefti_ctx_amo_slow(NULL, op, (int)bytes * 8, dest, 0, 0, pe, NULL);
    }
    return wefti_ctx_amo_typed(ctx, op, bytes, dest, value, cond, pe, old);
}

static inline weft_status wefti_ctx_amo_fetching_nbi(weft_ctx *ctx, wefti_amo_op op, size_t bytes, void *dest,
                                                     const void *value, const void *cond, int pe, void *old)
{
    const int bits = (int)bytes * 8;
    const uint64_t value_bits = wefti_to_bits(value, bytes);
    const uint64_t cond_bits = wefti_to_bits(cond, bytes);
    uint64_t before;
    if (WEFTI_UNLIKELY(old == NULL) ||
        !wefti_amo_near(wefti_ctx_world(ctx), op, bits, dest, value_bits, cond_bits, wefti_ctx_pe(ctx, pe), &before)) {
        return wefti_ctx_amo_nbi_slow(ctx, op, bits, dest, value_bits, cond_bits, pe, old);
    }
    wefti_from_bits(old, before, bytes);
    return WEFT_OK;
}

#define WEFTI_DEFINE_CTX_EXTENDED_AMO(NAME, TYPE)                                                                      \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value)     \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching(ctx, WEFTI_AMO_FETCH, sizeof(TYPE), wefti_writable(source), NULL, NULL, pe,      \
                                      value);                                                                          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_nbi(weft_ctx *ctx, const TYPE *source, int pe, TYPE *value) \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching_nbi(ctx, WEFTI_AMO_FETCH, sizeof(TYPE), wefti_writable(source), NULL, NULL, pe,  \
                                          value);                                                                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_set(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return wefti_ctx_amo_typed(ctx, WEFTI_AMO_SET, sizeof(TYPE), dest, &value, NULL, pe, NULL);                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap(weft_ctx *ctx, TYPE *dest, TYPE value, int pe, TYPE *old)    \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching(ctx, WEFTI_AMO_SWAP, sizeof(TYPE), dest, &value, NULL, pe, old);                 \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,           \
                                                              TYPE *old)                                               \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching_nbi(ctx, WEFTI_AMO_SWAP, sizeof(TYPE), dest, &value, NULL, pe, old);             \
    }
WEFT_EXTENDED_AMO_TYPES(WEFTI_DEFINE_CTX_EXTENDED_AMO)
#undef WEFTI_DEFINE_CTX_EXTENDED_AMO

#define WEFTI_DEFINE_CTX_INTEGER(NAME, TYPE)                                                                           \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap(weft_ctx *ctx, TYPE *dest, TYPE cond, TYPE value,    \
                                                                  int pe, TYPE *old)                                   \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching(ctx, WEFTI_AMO_COMPARE_SWAP, sizeof(TYPE), dest, &value, &cond, pe, old);        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_compare_swap_nbi(weft_ctx *ctx, TYPE *dest, TYPE cond,            \
                                                                      TYPE value, int pe, TYPE *old)                   \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching_nbi(ctx, WEFTI_AMO_COMPARE_SWAP, sizeof(TYPE), dest, &value, &cond, pe, old);    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return wefti_ctx_amo_typed(ctx, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, NULL);                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,          \
                                                               TYPE *old)                                              \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching(ctx, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, old);                  \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_add_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,      \
                                                                   TYPE *old)                                          \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching_nbi(ctx, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, old);              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_inc(weft_ctx *ctx, TYPE *dest, int pe)                            \
    {                                                                                                                  \
        return weft_ctx_##NAME##_atomic_add(ctx, dest, (TYPE)1, pe);                                                   \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old)           \
    {                                                                                                                  \
        return weft_ctx_##NAME##_atomic_fetch_add(ctx, dest, (TYPE)1, pe, old);                                        \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_inc_nbi(weft_ctx *ctx, TYPE *dest, int pe, TYPE *old)       \
    {                                                                                                                  \
        return weft_ctx_##NAME##_atomic_fetch_add_nbi(ctx, dest, (TYPE)1, pe, old);                                    \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_CTX_INTEGER)
#undef WEFTI_DEFINE_CTX_INTEGER

#define WEFTI_DEFINE_CTX_BITWISE_OP(NAME, TYPE, OP, CODE)                                                              \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_##OP(weft_ctx *ctx, TYPE *dest, TYPE value, int pe)               \
    {                                                                                                                  \
        return wefti_ctx_amo_typed(ctx, CODE, sizeof(TYPE), dest, &value, NULL, pe, NULL);                             \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_##OP(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,         \
                                                                TYPE *old)                                             \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching(ctx, CODE, sizeof(TYPE), dest, &value, NULL, pe, old);                           \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_ctx_##NAME##_atomic_fetch_##OP##_nbi(weft_ctx *ctx, TYPE *dest, TYPE value, int pe,   \
                                                                      TYPE *old)                                       \
    {                                                                                                                  \
        return wefti_ctx_amo_fetching_nbi(ctx, CODE, sizeof(TYPE), dest, &value, NULL, pe, old);                       \
    }
#define WEFTI_DEFINE_CTX_BITWISE(NAME, TYPE)                                                                           \
    WEFTI_DEFINE_CTX_BITWISE_OP(NAME, TYPE, and, WEFTI_AMO_AND)                                                        \
    WEFTI_DEFINE_CTX_BITWISE_OP(NAME, TYPE, or, WEFTI_AMO_OR)                                                          \
    WEFTI_DEFINE_CTX_BITWISE_OP(NAME, TYPE, xor, WEFTI_AMO_XOR)
WEFT_BITWISE_TYPES(WEFTI_DEFINE_CTX_BITWISE)
#undef WEFTI_DEFINE_CTX_BITWISE
#undef WEFTI_DEFINE_CTX_BITWISE_OP

#ifdef __cplusplus
}
#endif
#endif
