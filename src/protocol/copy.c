/* Bulk copies into and out of symmetric memory, for mem.h.
 *
 * A copy loop of our own, because glibc's memcpy takes `rep movsb` from 2 KiB on, which falls to a fifteenth of its
 * rate when dst lies up to 63 bytes above src modulo 4096. bench/copy.c compares the two. Up to 128 bytes: loads that
 * may overlap, then stores that may overlap, without a loop. Beyond: 32-byte vectors, the stores aligned, past the
 * caches from STREAM_BYTES on. Processors without AVX2 and builds with a sanitizer, which wants to see the access, take
 * memcpy. */
#include "weft/protocol/mem.h"

#ifndef WEFT_SIM

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !WEFTI_TSAN
#define OWN_COPY 1
#include <immintrin.h>
#else
#define OWN_COPY 0
#endif

#if OWN_COPY

/* Source and destination together exceed what the last cache of a few cores holds: measured with 32 MiB of it, stores
 * past the caches lose a fifth at 8 MiB, win a quarter at 16 MiB and half at 64 MiB. */
#define STREAM_BYTES ((size_t)12 << 20)
#define STREAM_AHEAD 512 /* prefetch so far ahead */
#define SHORT_BYTES 128
#define LINE 64

typedef unsigned char bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

static inline bytes16 load16(const unsigned char *from)
{
    return *(const bytes16 *)(const void *)from;
}

static inline void store16(unsigned char *to, bytes16 value)
{
    *(bytes16 *)(void *)to = value;
}

/* The first and the last word of a width, which meet or overlap: `bytes` is one to two words. */
#define DEFINE_COPY_ENDS(name, word)                                                                                   \
    static inline void name(unsigned char *dst, const unsigned char *src, size_t bytes)                                \
    {                                                                                                                  \
        word first, last;                                                                                              \
        memcpy(&first, src, sizeof first);                                                                             \
        memcpy(&last, src + bytes - sizeof last, sizeof last);                                                         \
        memcpy(dst, &first, sizeof first);                                                                             \
        memcpy(dst + bytes - sizeof last, &last, sizeof last);                                                         \
    }
DEFINE_COPY_ENDS(copy_2_to_4, uint16_t)
DEFINE_COPY_ENDS(copy_4_to_8, uint32_t)
DEFINE_COPY_ENDS(copy_8_to_16, uint64_t)
#undef DEFINE_COPY_ENDS

static inline void copy_16_to_32(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    bytes16 first = load16(src);
    bytes16 last = load16(src + bytes - 16);
    store16(dst, first);
    store16(dst + bytes - 16, last);
}

static inline void copy_32_to_64(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    bytes16 first0 = load16(src);
    bytes16 first1 = load16(src + 16);
    bytes16 last1 = load16(src + bytes - 32);
    bytes16 last0 = load16(src + bytes - 16);
    store16(dst, first0);
    store16(dst + 16, first1);
    store16(dst + bytes - 32, last1);
    store16(dst + bytes - 16, last0);
}

static inline void copy_64_to_128(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    bytes16 first0 = load16(src);
    bytes16 first1 = load16(src + 16);
    bytes16 first2 = load16(src + 32);
    bytes16 first3 = load16(src + 48);
    bytes16 last3 = load16(src + bytes - 64);
    bytes16 last2 = load16(src + bytes - 48);
    bytes16 last1 = load16(src + bytes - 32);
    bytes16 last0 = load16(src + bytes - 16);
    store16(dst, first0);
    store16(dst + 16, first1);
    store16(dst + 32, first2);
    store16(dst + 48, first3);
    store16(dst + bytes - 64, last3);
    store16(dst + bytes - 48, last2);
    store16(dst + bytes - 32, last1);
    store16(dst + bytes - 16, last0);
}

static inline void copy_short(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    if (bytes >= 16) {
        if (bytes > 64) {
            copy_64_to_128(dst, src, bytes);
        } else if (bytes > 32) {
            copy_32_to_64(dst, src, bytes);
        } else {
            copy_16_to_32(dst, src, bytes);
        }
    } else if (bytes >= 8) {
        copy_8_to_16(dst, src, bytes);
    } else if (bytes >= 4) {
        copy_4_to_8(dst, src, bytes);
    } else if (bytes >= 2) {
        copy_2_to_4(dst, src, bytes);
    } else if (bytes == 1) {
        *dst = *src;
    }
}

/* ---- more than SHORT_BYTES ---- */

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i load32(const unsigned char *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

AVX2 static inline void store32(unsigned char *to, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, value);
}

/* Four vectors; `to` is aligned to 32 bytes. */
AVX2 static inline void move_aligned(unsigned char *to, const unsigned char *from)
{
    __m256i a = load32(from);
    __m256i b = load32(from + 32);
    __m256i c = load32(from + 64);
    __m256i d = load32(from + 96);
    _mm256_store_si256((__m256i *)(void *)to, a);
    _mm256_store_si256((__m256i *)(void *)(to + 32), b);
    _mm256_store_si256((__m256i *)(void *)(to + 64), c);
    _mm256_store_si256((__m256i *)(void *)(to + 96), d);
}

/* The same past the caches. */
AVX2 static inline void stream_aligned(unsigned char *to, const unsigned char *from)
{
    _mm_prefetch((const char *)from + STREAM_AHEAD, _MM_HINT_NTA);
    _mm_prefetch((const char *)from + STREAM_AHEAD + LINE, _MM_HINT_NTA);
    __m256i a = load32(from);
    __m256i b = load32(from + 32);
    __m256i c = load32(from + 64);
    __m256i d = load32(from + 96);
    _mm256_stream_si256((__m256i *)(void *)to, a);
    _mm256_stream_si256((__m256i *)(void *)(to + 32), b);
    _mm256_stream_si256((__m256i *)(void *)(to + 64), c);
    _mm256_stream_si256((__m256i *)(void *)(to + 96), d);
}

/* The first line goes unaligned, then 128 bytes a turn from the line boundary inside it, then the last 128 unaligned.
 * All that the ends store is loaded first, so that dst == src is no special case. */
AVX2 static void copy_long(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    const unsigned char *src_last = src + bytes - 128;
    unsigned char *dst_last = dst + bytes - 128;
    __m256i first0 = load32(src);
    __m256i first1 = load32(src + 32);
    __m256i last0 = load32(src_last);
    __m256i last1 = load32(src_last + 32);
    __m256i last2 = load32(src_last + 64);
    __m256i last3 = load32(src_last + 96);
    size_t lead = LINE - ((uintptr_t)dst & (LINE - 1));
    unsigned char *to = dst + lead;
    src += lead;
    store32(dst, first0);
    store32(dst + 32, first1);
    if (bytes < STREAM_BYTES) {
        for (; to < dst_last; to += 128, src += 128) {
            move_aligned(to, src);
        }
    } else {
        for (; to < dst_last; to += 128, src += 128) {
            stream_aligned(to, src);
        }
        _mm_sfence(); /* streamed stores come before any flag, which is a plain store */
    }
    store32(dst_last, last0);
    store32(dst_last + 32, last1);
    store32(dst_last + 64, last2);
    store32(dst_last + 96, last3);
}

void wefti_copy_bulk(void *dst, const void *src, size_t bytes)
{
    if (bytes <= SHORT_BYTES) {
        copy_short(dst, src, bytes);
    } else if (WEFTI_LIKELY(__builtin_cpu_supports("avx2"))) {
        copy_long(dst, src, bytes);
    } else {
        memcpy(dst, src, bytes);
    }
}

#else

void wefti_copy_bulk(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#endif

#endif
