/* Bulk copies into and out of symmetric memory, for mem.h.
 *
 * A copy of our own, because glibc's memcpy takes `rep movsb` from 2 KiB on, which falls to a fifteenth of its rate
 * when dst lies up to 63 bytes above src modulo 4096. bench/copy.c compares the two. Up to 256 bytes: loads that may
 * overlap, then stores that may overlap, without a loop. Beyond: 32-byte vectors, the stores aligned. From 64 KiB on
 * `rep movsb` of Intel's and of AMD's from Zen 5 on, but for such places: it need not read what it replaces. That gains
 * 5 % at 1 MiB and 8 % at 32 (2-core-xeon, bench/copy.c), 30 % at 64 KiB and 20 % at 1 MiB (2-core-epyc, Zen 5).
 * Processors without AVX2 and builds with a sanitizer, which wants to see the access, take memcpy. */
#include "weft/protocol/mem.h"

#ifndef WEFT_SIM

#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>

#define ERMS (1u << 9) /* of leaf 7's EBX: enhanced rep movsb */
#define AMD_ZEN5 0x1a
#define AMD_CACHES 0x8000001du
#define CACHES_MAX 8

/* The processor's family. */
static unsigned find_family(void)
{
    unsigned a = 0, b, c, d;
    (void)__get_cpuid(1, &a, &b, &c, &d);
    const unsigned base = a >> 8 & 0xf;
    return base == 0xf ? base + (a >> 20 & 0xff) : base;
}

static int find_fast_strings(void)
{
    unsigned a, b = 0, c, d;
    const int has = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & ERMS) != 0;
    return has && (__builtin_cpu_is("intel") || (__builtin_cpu_is("amd") && find_family() >= AMD_ZEN5));
}

/* The last cache that this core uses, of an AMD processor; 0: it does not say. glibc's sysconf adds up all that a
 * package has: 384 MiB, where cores can fill 32. */
static size_t find_last_cache(void)
{
    size_t bytes = 0;
    unsigned a, b, c, d;
    for (unsigned i = 0; i < CACHES_MAX && __get_cpuid_count(AMD_CACHES, i, &a, &b, &c, &d) != 0; i++) {
        if ((a & 0x1f) == 0) { /* no more of them */
            break;
        }
        if ((a >> 5 & 7) == 3) { /* ways, partitions, bytes of a line, sets: each less one */
            bytes = (size_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((size_t)c + 1);
        }
    }
    return bytes;
}
#else
static size_t find_last_cache(void)
{
    return 0;
}

static int find_fast_strings(void)
{
    return 0;
}
#endif

/* WEFTI_STREAM_BYTES is three eighths of a last cache of 32 MiB. Twice that where an AMD processor's strings are fast:
 * they gain most of what streaming gains. Of 1 MiB with 8 PEs on two cores of such a one, fcollect takes 0.64 and
 * alltoall 0.77 of the time of copies through the caches; with 4 PEs, which move 16 MiB, strings are not slower. */
static size_t find_stream_bytes(void)
{
    const size_t last_cache = find_last_cache();
    if (last_cache > 0) {
        const size_t threshold = last_cache / 8 * (find_fast_strings() ? 6 : 3);
        return threshold > WEFTI_STREAM_BYTES ? threshold : WEFTI_STREAM_BYTES;
    }
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE); /* 0 or -1 where it is not known */
    const size_t share = cache > 0 ? (size_t)cache / 8 * 3 : 0;
    return share > WEFTI_STREAM_BYTES ? share : WEFTI_STREAM_BYTES;
}

size_t wefti_stream_bytes(void)
{
    static size_t found;
    size_t bytes = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (WEFTI_UNLIKELY(bytes == 0)) {
        bytes = find_stream_bytes();
        __atomic_store_n(&found, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !WEFTI_TSAN
#define OWN_COPY 1
#include <immintrin.h>
#else
#define OWN_COPY 0
#endif

#if OWN_COPY

#define STRING_BYTES ((size_t)64 << 10)
#define STREAM_AHEAD 512 /* prefetch so far ahead */
#define SHORT_BYTES 64
#define FEW_BYTES 256
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

static inline void copy_short(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    if (bytes > 32) {
        copy_32_to_64(dst, src, bytes);
    } else if (bytes >= 16) {
        copy_16_to_32(dst, src, bytes);
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

/* ---- more than SHORT_BYTES, by AVX2 ---- */

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i load32(const unsigned char *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

AVX2 static inline void store32(unsigned char *to, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, value);
}

/* A piece of 128 bytes, loaded before it is stored. */
typedef struct piece {
    __m256i a, b, c, d;
} piece;

AVX2 static inline piece load_piece(const unsigned char *from)
{
    return (piece){load32(from), load32(from + 32), load32(from + 64), load32(from + 96)};
}

AVX2 static inline void store_piece(unsigned char *to, piece value)
{
    store32(to, value.a);
    store32(to + 32, value.b);
    store32(to + 64, value.c);
    store32(to + 96, value.d);
}

/* `to` is aligned to 32 bytes. */
AVX2 static inline void store_aligned(unsigned char *to, piece value)
{
    _mm256_store_si256((__m256i *)(void *)to, value.a);
    _mm256_store_si256((__m256i *)(void *)(to + 32), value.b);
    _mm256_store_si256((__m256i *)(void *)(to + 64), value.c);
    _mm256_store_si256((__m256i *)(void *)(to + 96), value.d);
}

/* The same past the caches. */
AVX2 static inline void stream_aligned(unsigned char *to, piece value)
{
    _mm256_stream_si256((__m256i *)(void *)to, value.a);
    _mm256_stream_si256((__m256i *)(void *)(to + 32), value.b);
    _mm256_stream_si256((__m256i *)(void *)(to + 64), value.c);
    _mm256_stream_si256((__m256i *)(void *)(to + 96), value.d);
}

/* 65 to 256 bytes: the first and the last of them, which meet or overlap. */
AVX2 static inline void copy_few(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    if (bytes > 128) {
        piece first = load_piece(src);
        piece last = load_piece(src + bytes - 128);
        store_piece(dst, first);
        store_piece(dst + bytes - 128, last);
    } else {
        const unsigned char *src_last = src + bytes - 64;
        unsigned char *dst_last = dst + bytes - 64;
        piece ends = {load32(src), load32(src + 32), load32(src_last), load32(src_last + 32)};
        store32(dst, ends.a);
        store32(dst + 32, ends.b);
        store32(dst_last, ends.c);
        store32(dst_last + 32, ends.d);
    }
}

/* What lies before the first line boundary in dst goes with the whole first line, unaligned; what is left after the
 * last turn of 128 bytes, with the last 128. Returns where the turns begin. */
AVX2 static inline size_t copy_lead(unsigned char *dst, const unsigned char *src)
{
    size_t lead = -(uintptr_t)dst & (LINE - 1);
    if (lead != 0) {
        __m256i a = load32(src);
        __m256i b = load32(src + 32);
        store32(dst, a);
        store32(dst + 32, b);
    }
    return lead;
}

AVX2 static inline void copy_rest(unsigned char *dst, const unsigned char *src, size_t bytes, size_t done)
{
    if (done < bytes) {
        store_piece(dst + bytes - 128, load_piece(src + bytes - 128));
    }
}

AVX2 static void copy_cached(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    size_t at = copy_lead(dst, src);
    for (; at + 128 <= bytes; at += 128) {
        store_aligned(dst + at, load_piece(src + at));
    }
    copy_rest(dst, src, bytes, at);
}

AVX2 static void copy_streaming(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    size_t at = copy_lead(dst, src);
    for (; at + 128 <= bytes; at += 128) {
        _mm_prefetch((const char *)src + at + STREAM_AHEAD, _MM_HINT_NTA);
        _mm_prefetch((const char *)src + at + STREAM_AHEAD + LINE, _MM_HINT_NTA);
        stream_aligned(dst + at, load_piece(src + at));
    }
    copy_rest(dst, src, bytes, at);
}

/* Whether this copy of at least STRING_BYTES is one for `rep movsb`. */
static inline int suits_strings(const unsigned char *dst, const unsigned char *src)
{
    static int found; /* 1: no, 2: yes */
    int known = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (WEFTI_UNLIKELY(known == 0)) {
        known = 1 + find_fast_strings();
        __atomic_store_n(&found, known, __ATOMIC_RELAXED);
    }
    return known == 2 && (((uintptr_t)dst - (uintptr_t)src) & 4095) - 1 >= LINE - 1;
}

static inline void copy_string(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
}

void wefti_copy_bulk(void *dst, const void *src, size_t bytes)
{
    if (bytes <= SHORT_BYTES) {
        copy_short(dst, src, bytes);
    } else if (WEFTI_UNLIKELY(!__builtin_cpu_supports("avx2"))) {
        memcpy(dst, src, bytes);
    } else if (bytes <= FEW_BYTES) {
        copy_few(dst, src, bytes);
    } else if (bytes < STRING_BYTES) {
        copy_cached(dst, src, bytes);
    } else if (bytes < WEFTI_STREAM_BYTES || bytes < wefti_stream_bytes()) {
        if (suits_strings(dst, src)) {
            copy_string(dst, src, bytes);
        } else {
            copy_cached(dst, src, bytes);
        }
    } else {
        copy_streaming(dst, src, bytes);
        _mm_sfence();
    }
}

void wefti_copy_bulk_stream(void *dst, const void *src, size_t bytes)
{
    if (bytes <= FEW_BYTES || !__builtin_cpu_supports("avx2")) {
        wefti_copy_bulk(dst, src, bytes);
    } else {
        copy_streaming(dst, src, bytes);
    }
}

void wefti_copy_bulk_end(void)
{
    _mm_sfence();
}

#else

void wefti_copy_bulk(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void wefti_copy_bulk_stream(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void wefti_copy_bulk_end(void)
{
}

#endif

#endif
