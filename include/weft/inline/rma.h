/* inline/rma.h: the bodies of weft/rma.h. Read that one for the contracts. */
#ifndef WEFTI_INLINE_RMA_H
#define WEFTI_INLINE_RMA_H

#include "weft/inline/view.h"
#include "weft/protocol/wait.h"
#include "weft/rma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Out of line: every access that the fast path's test refuses, and the errors. */
WEFT_API weft_status wefti_put_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_get_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_put_signal_slow(weft_world *world, void *dest, const void *source, size_t bytes,
                                           uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
/* The same for calls that need not be complete on return. They have functions of their own, so that a later library can
 * let them return earlier without programs being compiled anew. */
WEFT_API weft_status wefti_put_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_get_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes, int pe);
WEFT_API weft_status wefti_put_signal_nbi_slow(weft_world *world, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe);
/* `bits` is 32 or 64; `old` receives the value before, as 64 bits, unless NULL. */
WEFT_API weft_status wefti_amo_slow(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                    uint64_t cond, int pe, uint64_t *old);
/* A fetching one without an answer on return: `old` is the caller's, of `bits` bits, and is written at weft_quiet at
 * the latest. */
WEFT_API weft_status wefti_amo_nbi_slow(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                        uint64_t cond, int pe, void *old);
WEFT_API weft_status wefti_fence_slow(weft_world *world);
WEFT_API weft_status wefti_quiet_slow(weft_world *world);
WEFT_API weft_status wefti_wait_slow(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                                     uint64_t value, uint64_t *seen);
WEFT_API weft_status wefti_test_slow(weft_world *world, const void *variable, wefti_word_kind kind, weft_cmp cmp,
                                     uint64_t value, int *result);
WEFT_API weft_status wefti_fetch_slow(weft_world *world, const uint64_t *signal, uint64_t *value);

/* NULL worlds and buffers take the slow path too. */
#define WEFTI_FAST(world, address, bytes, pe)                                                                          \
    WEFTI_LIKELY((world) != NULL && wefti_is_near((world), (address), (bytes), (pe)))

/* ---- put and get --------------------------------------------------------------------------------------------- */

/* Does it if the PE is in the link domain and nothing is wrong, and returns whether it did. */
static inline int wefti_put_near(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    if (WEFTI_FAST(world, dest, bytes, pe) && WEFTI_LIKELY(source != NULL)) {
        wefti_copy(wefti_peer_address(world, dest, pe), source, bytes);
        return 1;
    }
    return 0;
}

static inline int wefti_get_near(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    if (WEFTI_FAST(world, source, bytes, pe) && WEFTI_LIKELY(dest != NULL)) {
        wefti_copy(dest, wefti_peer_address(world, source, pe), bytes);
        return 1;
    }
    return 0;
}

WEFT_INLINE weft_status weft_putmem(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_near(world, dest, source, bytes, pe) ? WEFT_OK : wefti_put_slow(world, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_putmem_nbi(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_put_near(world, dest, source, bytes, pe) ? WEFT_OK
                                                          : wefti_put_nbi_slow(world, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_getmem(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_near(world, dest, source, bytes, pe) ? WEFT_OK : wefti_get_slow(world, dest, source, bytes, pe);
}

WEFT_INLINE weft_status weft_getmem_nbi(weft_world *world, void *dest, const void *source, size_t bytes, int pe)
{
    return wefti_get_near(world, dest, source, bytes, pe) ? WEFT_OK
                                                          : wefti_get_nbi_slow(world, dest, source, bytes, pe);
}

/* An element count whose bytes do not fit in size_t becomes the largest size, which no heap holds. */
static inline size_t wefti_bytes_of(size_t count, size_t element)
{
    return WEFTI_LIKELY(count <= SIZE_MAX / element) ? count * element : SIZE_MAX;
}

#define WEFTI_DEFINE_RMA(NAME, TYPE)                                                                                   \
    WEFT_INLINE weft_status weft_##NAME##_put(weft_world *world, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_putmem(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_put_nbi(weft_world *world, TYPE *dest, const TYPE *source, size_t count,     \
                                                  int pe)                                                              \
    {                                                                                                                  \
        return weft_putmem_nbi(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_get(weft_world *world, TYPE *dest, const TYPE *source, size_t count, int pe) \
    {                                                                                                                  \
        return weft_getmem(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_get_nbi(weft_world *world, TYPE *dest, const TYPE *source, size_t count,     \
                                                  int pe)                                                              \
    {                                                                                                                  \
        return weft_getmem_nbi(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), pe);                          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_put_signal(weft_world *world, TYPE *dest, const TYPE *source, size_t count,  \
                                                     uint64_t *signal, uint64_t value, weft_signal_op op, int pe)      \
    {                                                                                                                  \
        return weft_putmem_signal(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), signal, value, op, pe);    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_put_signal_nbi(weft_world *world, TYPE *dest, const TYPE *source,            \
                                                         size_t count, uint64_t *signal, uint64_t value,               \
                                                         weft_signal_op op, int pe)                                    \
    {                                                                                                                  \
        return weft_putmem_signal_nbi(world, dest, source, wefti_bytes_of(count, sizeof(TYPE)), signal, value, op,     \
                                      pe);                                                                             \
    }
WEFT_RMA_TYPES(WEFTI_DEFINE_RMA)
#undef WEFTI_DEFINE_RMA

/* One access of an aligned word of 1, 2, 4 or 8 bytes, through its bits. */
static inline void wefti_store_word(void *to, const void *value, size_t bytes)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (bytes) {
    case 1:
        memcpy(&v8, value, 1);
        wefti_st8(to, v8, WEFTI_PUT_ORDER);
        break;
    case 2:
        memcpy(&v16, value, 2);
        wefti_st16(to, v16, WEFTI_PUT_ORDER);
        break;
    case 4:
        memcpy(&v32, value, 4);
        wefti_st32(to, v32, WEFTI_PUT_ORDER);
        break;
    default:
        memcpy(&v64, value, 8);
        wefti_st64(to, v64, WEFTI_PUT_ORDER);
        break;
    }
}

static inline void wefti_load_word(void *value, const void *from, size_t bytes)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (bytes) {
    case 1:
        v8 = wefti_ld8(from, WEFTI_GET_ORDER);
        memcpy(value, &v8, 1);
        break;
    case 2:
        v16 = wefti_ld16(from, WEFTI_GET_ORDER);
        memcpy(value, &v16, 2);
        break;
    case 4:
        v32 = wefti_ld32(from, WEFTI_GET_ORDER);
        memcpy(value, &v32, 4);
        break;
    default:
        v64 = wefti_ld64(from, WEFTI_GET_ORDER);
        memcpy(value, &v64, 8);
        break;
    }
}

#define WEFTI_DEFINE_WORD_RMA(NAME, TYPE)                                                                              \
    WEFT_INLINE weft_status weft_##NAME##_p(weft_world *world, TYPE *dest, TYPE value, int pe)                         \
    {                                                                                                                  \
        if (WEFTI_FAST(world, dest, sizeof(TYPE), pe)) {                                                               \
            wefti_store_word(wefti_peer_address(world, dest, pe), &value, sizeof(TYPE));                               \
            return WEFT_OK;                                                                                            \
        }                                                                                                              \
        return wefti_put_slow(world, dest, &value, sizeof(TYPE), pe);                                                  \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_g(weft_world *world, const TYPE *source, int pe, TYPE *value)                \
    {                                                                                                                  \
        if (WEFTI_FAST(world, source, sizeof(TYPE), pe) && WEFTI_LIKELY(value != NULL)) {                              \
            wefti_load_word(value, wefti_peer_address(world, source, pe), sizeof(TYPE));                               \
            return WEFT_OK;                                                                                            \
        }                                                                                                              \
        return wefti_get_slow(world, value, source, sizeof(TYPE), pe);                                                 \
    }
WEFT_WORD_TYPES(WEFTI_DEFINE_WORD_RMA)
#undef WEFTI_DEFINE_WORD_RMA

#define WEFTI_DEFINE_WIDE_RMA(NAME, TYPE)                                                                              \
    WEFT_INLINE weft_status weft_##NAME##_p(weft_world *world, TYPE *dest, TYPE value, int pe)                         \
    {                                                                                                                  \
        return weft_putmem(world, dest, &value, sizeof(TYPE), pe);                                                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_g(weft_world *world, const TYPE *source, int pe, TYPE *value)                \
    {                                                                                                                  \
        return weft_getmem(world, value, source, sizeof(TYPE), pe);                                                    \
    }
WEFT_WIDE_TYPES(WEFTI_DEFINE_WIDE_RMA)
#undef WEFTI_DEFINE_WIDE_RMA

/* ---- order --------------------------------------------------------------------------------------------------- */

WEFT_INLINE weft_status weft_fence(weft_world *world)
{
    if (WEFTI_UNLIKELY(world == NULL || ((const wefti_view *)(const void *)world)->remote != 0)) {
        return wefti_fence_slow(world);
    }
    wefti_fence_release();
    return WEFT_OK;
}

WEFT_INLINE weft_status weft_quiet(weft_world *world)
{
    if (WEFTI_UNLIKELY(world == NULL || ((const wefti_view *)(const void *)world)->remote != 0)) {
        return wefti_quiet_slow(world);
    }
    wefti_fence_full();
    return WEFT_OK;
}

/* ---- atomics ------------------------------------------------------------------------------------------------- */

/* The operation `op` at an address that can be loaded and stored; returns the value before. */
static inline uint64_t wefti_amo_at(wefti_amo_op op, int bits, void *at, uint64_t value, uint64_t cond)
{
    if (bits == 32) {
        uint32_t v = (uint32_t)value;
        switch (op) {
        case WEFTI_AMO_FETCH:
            return wefti_ld32(at, WEFTI_SEQ_CST);
        case WEFTI_AMO_SET:
        case WEFTI_AMO_SWAP:
            return wefti_xchg32(at, v);
        case WEFTI_AMO_COMPARE_SWAP:
            return wefti_cas32(at, (uint32_t)cond, v);
        case WEFTI_AMO_ADD:
            return wefti_add32(at, v);
        case WEFTI_AMO_AND:
            return wefti_and32(at, v);
        case WEFTI_AMO_OR:
            return wefti_or32(at, v);
        default:
            return wefti_xor32(at, v);
        }
    }
    switch (op) {
    case WEFTI_AMO_FETCH:
        return wefti_ld64(at, WEFTI_SEQ_CST);
    case WEFTI_AMO_SET:
    case WEFTI_AMO_SWAP:
        return wefti_xchg64(at, value);
    case WEFTI_AMO_COMPARE_SWAP:
        return wefti_cas64(at, cond, value);
    case WEFTI_AMO_ADD:
        return wefti_add64(at, value);
    case WEFTI_AMO_AND:
        return wefti_and64(at, value);
    case WEFTI_AMO_OR:
        return wefti_or64(at, value);
    default:
        return wefti_xor64(at, value);
    }
}

/* Does it if the PE is in the link domain and nothing is wrong, and returns whether it did. */
static inline int wefti_amo_near(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                 uint64_t cond, int pe, uint64_t *before)
{
    size_t bytes = (size_t)bits / 8;
    if (WEFTI_FAST(world, dest, bytes, pe) && WEFTI_LIKELY(((uintptr_t)dest & (bytes - 1)) == 0)) {
        *before = wefti_amo_at(op, bits, wefti_peer_address(world, dest, pe), value, cond);
        return 1;
    }
    return 0;
}

static inline weft_status wefti_amo(weft_world *world, wefti_amo_op op, int bits, void *dest, uint64_t value,
                                    uint64_t cond, int pe, uint64_t *old)
{
    uint64_t before;
    if (!wefti_amo_near(world, op, bits, dest, value, cond, pe, &before)) {
        return wefti_amo_slow(world, op, bits, dest, value, cond, pe, old);
    }
    if (old != NULL) {
        *old = before;
    }
    return WEFT_OK;
}

/* Bits of a value of `bytes` bytes, 0 for NULL; and back. */
static inline uint64_t wefti_to_bits(const void *value, size_t bytes)
{
    uint32_t b32;
    uint64_t b64;
    if (value == NULL) {
        return 0;
    }
    if (bytes == 4) {
        memcpy(&b32, value, 4);
        return b32;
    }
    memcpy(&b64, value, 8);
    return b64;
}

static inline void wefti_from_bits(void *value, uint64_t bits, size_t bytes)
{
    uint32_t b32 = (uint32_t)bits;
    if (bytes == 4) {
        memcpy(value, &b32, 4);
    } else {
        memcpy(value, &bits, 8);
    }
}

/* The body of every atomic: VALUE and COND are lvalues or NULL, OLD a pointer or NULL. */
static inline weft_status wefti_amo_typed(weft_world *world, wefti_amo_op op, size_t bytes, void *dest,
                                          const void *value, const void *cond, int pe, void *old)
{
    uint64_t before = 0;
    weft_status status = wefti_amo(world, op, (int)bytes * 8, dest, wefti_to_bits(value, bytes),
                                   wefti_to_bits(cond, bytes), pe, old != NULL ? &before : NULL);
    if (WEFTI_LIKELY(status == WEFT_OK) && old != NULL) {
        wefti_from_bits(old, before, bytes);
    }
    return status;
}

/* A fetching call without a place for the result is an error. */
static inline weft_status wefti_amo_fetching(weft_world *world, wefti_amo_op op, size_t bytes, void *dest,
                                             const void *value, const void *cond, int pe, void *old)
{
    if (WEFTI_UNLIKELY(old == NULL)) {
        return wefti_amo_slow(NULL, op, (int)bytes * 8, dest, 0, 0, pe, NULL);
    }
    return wefti_amo_typed(world, op, bytes, dest, value, cond, pe, old);
}

static inline weft_status wefti_amo_fetching_nbi(weft_world *world, wefti_amo_op op, size_t bytes, void *dest,
                                                 const void *value, const void *cond, int pe, void *old)
{
    const int bits = (int)bytes * 8;
    const uint64_t value_bits = wefti_to_bits(value, bytes);
    const uint64_t cond_bits = wefti_to_bits(cond, bytes);
    uint64_t before;
    if (WEFTI_UNLIKELY(old == NULL) || !wefti_amo_near(world, op, bits, dest, value_bits, cond_bits, pe, &before)) {
        return wefti_amo_nbi_slow(world, op, bits, dest, value_bits, cond_bits, pe, old);
    }
    wefti_from_bits(old, before, bytes);
    return WEFT_OK;
}

/* A fetch only reads, through what the other operations write. */
static inline void *wefti_writable(const void *address)
{
    return (void *)(uintptr_t)address;
}

#define WEFTI_DEFINE_EXTENDED_AMO(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch(weft_world *world, const TYPE *source, int pe, TYPE *value)     \
    {                                                                                                                  \
        return wefti_amo_fetching(world, WEFTI_AMO_FETCH, sizeof(TYPE), wefti_writable(source), NULL, NULL, pe,        \
                                  value);                                                                              \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_set(weft_world *world, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return wefti_amo_typed(world, WEFTI_AMO_SET, sizeof(TYPE), dest, &value, NULL, pe, NULL);                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_swap(weft_world *world, TYPE *dest, TYPE value, int pe, TYPE *old)    \
    {                                                                                                                  \
        return wefti_amo_fetching(world, WEFTI_AMO_SWAP, sizeof(TYPE), dest, &value, NULL, pe, old);                   \
    }
WEFT_EXTENDED_AMO_TYPES(WEFTI_DEFINE_EXTENDED_AMO)
#undef WEFTI_DEFINE_EXTENDED_AMO

#define WEFTI_DEFINE_STANDARD_AMO(NAME, TYPE)                                                                          \
    WEFT_INLINE weft_status weft_##NAME##_atomic_compare_swap(weft_world *world, TYPE *dest, TYPE cond, TYPE value,    \
                                                              int pe, TYPE *old)                                       \
    {                                                                                                                  \
        return wefti_amo_fetching(world, WEFTI_AMO_COMPARE_SWAP, sizeof(TYPE), dest, &value, &cond, pe, old);          \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_add(weft_world *world, TYPE *dest, TYPE value, int pe)                \
    {                                                                                                                  \
        return wefti_amo_typed(world, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, NULL);                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_add(weft_world *world, TYPE *dest, TYPE value, int pe,          \
                                                           TYPE *old)                                                  \
    {                                                                                                                  \
        return wefti_amo_fetching(world, WEFTI_AMO_ADD, sizeof(TYPE), dest, &value, NULL, pe, old);                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_inc(weft_world *world, TYPE *dest, int pe)                            \
    {                                                                                                                  \
        return weft_##NAME##_atomic_add(world, dest, (TYPE)1, pe);                                                     \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_inc(weft_world *world, TYPE *dest, int pe, TYPE *old)           \
    {                                                                                                                  \
        return weft_##NAME##_atomic_fetch_add(world, dest, (TYPE)1, pe, old);                                          \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_STANDARD_AMO)
#undef WEFTI_DEFINE_STANDARD_AMO

#define WEFTI_DEFINE_BITWISE_AMO_OP(NAME, TYPE, OP, CODE)                                                              \
    WEFT_INLINE weft_status weft_##NAME##_atomic_##OP(weft_world *world, TYPE *dest, TYPE value, int pe)               \
    {                                                                                                                  \
        return wefti_amo_typed(world, CODE, sizeof(TYPE), dest, &value, NULL, pe, NULL);                               \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_atomic_fetch_##OP(weft_world *world, TYPE *dest, TYPE value, int pe,         \
                                                            TYPE *old)                                                 \
    {                                                                                                                  \
        return wefti_amo_fetching(world, CODE, sizeof(TYPE), dest, &value, NULL, pe, old);                             \
    }
#define WEFTI_DEFINE_BITWISE_AMO(NAME, TYPE)                                                                           \
    WEFTI_DEFINE_BITWISE_AMO_OP(NAME, TYPE, and, WEFTI_AMO_AND)                                                        \
    WEFTI_DEFINE_BITWISE_AMO_OP(NAME, TYPE, or, WEFTI_AMO_OR)                                                          \
    WEFTI_DEFINE_BITWISE_AMO_OP(NAME, TYPE, xor, WEFTI_AMO_XOR)
WEFT_BITWISE_TYPES(WEFTI_DEFINE_BITWISE_AMO)
#undef WEFTI_DEFINE_BITWISE_AMO
#undef WEFTI_DEFINE_BITWISE_AMO_OP

/* ---- signals ------------------------------------------------------------------------------------------------- */

static inline int wefti_put_signal_near(weft_world *world, void *dest, const void *source, size_t bytes,
                                        uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    if (WEFTI_FAST(world, signal, sizeof(uint64_t), pe) && (bytes == 0 || wefti_is_near(world, dest, bytes, pe)) &&
        WEFTI_LIKELY((source != NULL || bytes == 0) && ((uintptr_t)signal & 7) == 0 && (unsigned)op <= 1)) {
        void *at = wefti_peer_address(world, signal, pe);
        if (bytes != 0) {
            wefti_copy(wefti_peer_address(world, dest, pe), source, bytes);
        }
        if (op == WEFT_SIGNAL_SET) {
            wefti_st64(at, value, WEFTI_RELEASE);
        } else {
            (void)wefti_add64(at, value);
        }
        return 1;
    }
    return 0;
}

WEFT_INLINE weft_status weft_putmem_signal(weft_world *world, void *dest, const void *source, size_t bytes,
                                           uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_near(world, dest, source, bytes, signal, value, op, pe)
               ? WEFT_OK
               : wefti_put_signal_slow(world, dest, source, bytes, signal, value, op, pe);
}

WEFT_INLINE weft_status weft_putmem_signal_nbi(weft_world *world, void *dest, const void *source, size_t bytes,
                                               uint64_t *signal, uint64_t value, weft_signal_op op, int pe)
{
    return wefti_put_signal_near(world, dest, source, bytes, signal, value, op, pe)
               ? WEFT_OK
               : wefti_put_signal_nbi_slow(world, dest, source, bytes, signal, value, op, pe);
}

WEFT_INLINE weft_status weft_signal_fetch(weft_world *world, const uint64_t *signal, uint64_t *value)
{
    if (WEFTI_UNLIKELY(world == NULL || signal == NULL || value == NULL || ((uintptr_t)signal & 7) != 0 ||
                       !wefti_is_loadable(world, signal))) {
        return wefti_fetch_slow(world, signal, value);
    }
    *value = wefti_ld64(signal, WEFTI_ACQUIRE);
    return WEFT_OK;
}

/* ---- point-to-point synchronisation --------------------------------------------------------------------------- */

#define WEFTI_DEFINE_WAIT(NAME, TYPE)                                                                                  \
    static inline TYPE wefti_##NAME##_acquire(const TYPE *variable)                                                    \
    {                                                                                                                  \
        return sizeof(TYPE) == 4 ? (TYPE)wefti_ld32(variable, WEFTI_ACQUIRE)                                           \
                                 : (TYPE)wefti_ld64(variable, WEFTI_ACQUIRE);                                          \
    }                                                                                                                  \
    static inline int wefti_##NAME##_compare(TYPE seen, weft_cmp cmp, TYPE value)                                      \
    {                                                                                                                  \
        switch (cmp) {                                                                                                 \
        case WEFT_CMP_EQ:                                                                                              \
            return seen == value;                                                                                      \
        case WEFT_CMP_NE:                                                                                              \
            return seen != value;                                                                                      \
        case WEFT_CMP_GT:                                                                                              \
            return seen > value;                                                                                       \
        case WEFT_CMP_GE:                                                                                              \
            return seen >= value;                                                                                      \
        case WEFT_CMP_LT:                                                                                              \
            return seen < value;                                                                                       \
        case WEFT_CMP_LE:                                                                                              \
            return seen <= value;                                                                                      \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_wait_until(weft_world *world, const TYPE *variable, weft_cmp cmp,            \
                                                     TYPE value)                                                       \
    {                                                                                                                  \
        if (WEFTI_LIKELY(world != NULL && variable != NULL && ((uintptr_t)variable & (sizeof(TYPE) - 1)) == 0 &&       \
                         wefti_is_loadable(world, variable))) {                                                        \
            for (unsigned spin = 0; spin < wefti_spins(world); spin++) {                                               \
                if (wefti_##NAME##_compare(wefti_##NAME##_acquire(variable), cmp, value)) {                            \
                    return WEFT_OK;                                                                                    \
                }                                                                                                      \
                wefti_cpu_relax();                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        return wefti_wait_slow(world, variable, WEFTI_WORD_KIND(TYPE), cmp, (uint64_t)value, NULL);                    \
    }                                                                                                                  \
    WEFT_INLINE weft_status weft_##NAME##_test(weft_world *world, const TYPE *variable, weft_cmp cmp, TYPE value,      \
                                               int *result)                                                            \
    {                                                                                                                  \
        if (WEFTI_UNLIKELY(world == NULL || variable == NULL || result == NULL || (unsigned)cmp > WEFT_CMP_LE ||       \
                           ((uintptr_t)variable & (sizeof(TYPE) - 1)) != 0 || !wefti_is_loadable(world, variable))) {  \
            return wefti_test_slow(world, variable, WEFTI_WORD_KIND(TYPE), cmp, (uint64_t)value, result);              \
        }                                                                                                              \
        *result = wefti_##NAME##_compare(wefti_##NAME##_acquire(variable), cmp, value);                                \
        return WEFT_OK;                                                                                                \
    }
WEFT_INTEGER_TYPES(WEFTI_DEFINE_WAIT)
#undef WEFTI_DEFINE_WAIT

WEFT_INLINE weft_status weft_signal_wait_until(weft_world *world, const uint64_t *signal, weft_cmp cmp, uint64_t value,
                                               uint64_t *seen)
{
    if (WEFTI_LIKELY(world != NULL && signal != NULL && ((uintptr_t)signal & 7) == 0 &&
                     wefti_is_loadable(world, signal))) {
        for (unsigned spin = 0; spin < wefti_spins(world); spin++) {
            uint64_t now = wefti_ld64(signal, WEFTI_ACQUIRE);
            if (wefti_uint64_compare(now, cmp, value)) {
                if (seen != NULL) {
                    *seen = now;
                }
                return WEFT_OK;
            }
            wefti_cpu_relax();
        }
    }
    return wefti_wait_slow(world, signal, WEFTI_WORD_UINT64, cmp, value, seen);
}

#ifdef __cplusplus
}
#endif
#endif
