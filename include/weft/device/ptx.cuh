/* weft/device/ptx.cuh: the one file that spells ordered accesses to global memory, fences, bulk copies and time in PTX.
 *
 *   wefti_ld_acquire, wefti_ld_relaxed    .sys scope, 32 and 64 bits (relaxed: 8 and 16 as well)
 *   wefti_st_release, wefti_st_relaxed
 *   wefti_ld_packed, wefti_st_packed      relaxed .sys, 16 bytes as one access
 *   wefti_fence_acq_rel                   what this thread wrote, or saw written, before is seen before what it writes
 *                                         after; also orders what it reads after behind what it read before
 *   wefti_fence_sc                        ... and before what it reads after
 *   wefti_fence_rel                       the first half of wefti_fence_acq_rel, for flags that are stored after it
 *   wefti_fence_acq                       the other half, for what is read after a flag has been
 *   wefti_ld_look, wefti_fence_looked     a wait: looks, and after the last one the fence; together an acquire
 *
 * Pairing: a flag is stored with release and loaded with acquire, both at system scope. A thread that flags several PEs
 * fences once and stores relaxed: one wait for its earlier writes instead of one a flag.
 *
 * Compiled for the CPU (WEFT_DEVICE_ON_HOST, g++), the same names are atomics of the compiler: the protocol runs there
 * under ThreadSanitizer. */
#ifndef WEFTI_DEVICE_PTX_CUH
#define WEFTI_DEVICE_PTX_CUH

#include "weft/device/dev.h"

#if !defined(WEFT_DEVICE_ON_HOST)

#define WEFTI_DEVICE __device__ __forceinline__
/* Out of line. Such a function calls no other that is (the inline NAME_here, or _flat, stands for it there): in
 * relocatable device code each call in a call takes registers of its own, and a kernel gets those of the deepest. It
 * takes no struct by value: Triton's LLVM (triton 3.6) does not survive one. */
#define WEFTI_DEVICE_SLOW static __device__ __noinline__
#define WEFTI_PRAGMA(text) _Pragma(#text)
#define WEFTI_UNROLL(times) WEFTI_PRAGMA(unroll times)

WEFTI_DEVICE wefti_u64 wefti_global(const void *address)
{
    return (wefti_u64)__cvta_generic_to_global(address);
}

#define WEFTI_DEFINE_LOAD(name, order, type, width, constraint, register_type)                                         \
    WEFTI_DEVICE type name(const type *address)                                                                        \
    {                                                                                                                  \
        register_type value;                                                                                           \
        asm volatile("ld." order ".sys.global." width " %0, [%1];"                                                     \
                     : "=" constraint(value)                                                                           \
                     : "l"(wefti_global(address))                                                                      \
                     : "memory");                                                                                      \
        return (type)value;                                                                                            \
    }
#define WEFTI_DEFINE_STORE(name, order, type, width, constraint, register_type)                                        \
    WEFTI_DEVICE void name(type *address, type value)                                                                  \
    {                                                                                                                  \
        asm volatile("st." order ".sys.global." width " [%0], %1;"                                                     \
                     :                                                                                                 \
                     : "l"(wefti_global(address)), constraint((register_type)value)                                    \
                     : "memory");                                                                                      \
    }
WEFTI_DEFINE_LOAD(wefti_ld_acquire, "acquire", wefti_u64, "b64", "l", wefti_u64)
WEFTI_DEFINE_LOAD(wefti_ld_acquire, "acquire", wefti_u32, "b32", "r", wefti_u32)
WEFTI_DEFINE_LOAD(wefti_ld_relaxed, "relaxed", wefti_u64, "b64", "l", wefti_u64)
WEFTI_DEFINE_LOAD(wefti_ld_relaxed, "relaxed", wefti_u32, "b32", "r", wefti_u32)
WEFTI_DEFINE_LOAD(wefti_ld_relaxed, "relaxed", unsigned short, "b16", "h", unsigned short)
WEFTI_DEFINE_LOAD(wefti_ld_relaxed, "relaxed", unsigned char, "b8", "r", wefti_u32)
WEFTI_DEFINE_STORE(wefti_st_release, "release", wefti_u64, "b64", "l", wefti_u64)
WEFTI_DEFINE_STORE(wefti_st_release, "release", wefti_u32, "b32", "r", wefti_u32)
WEFTI_DEFINE_STORE(wefti_st_relaxed, "relaxed", wefti_u64, "b64", "l", wefti_u64)
WEFTI_DEFINE_STORE(wefti_st_relaxed, "relaxed", wefti_u32, "b32", "r", wefti_u32)
WEFTI_DEFINE_STORE(wefti_st_relaxed, "relaxed", unsigned short, "b16", "h", unsigned short)
WEFTI_DEFINE_STORE(wefti_st_relaxed, "relaxed", unsigned char, "b8", "r", wefti_u32)
#undef WEFTI_DEFINE_LOAD
#undef WEFTI_DEFINE_STORE

WEFTI_DEVICE void wefti_red_add_release(wefti_u64 *address, wefti_u64 value)
{
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" : : "l"(wefti_global(address)), "l"(value) : "memory");
}

WEFTI_DEVICE void wefti_red_add_relaxed(wefti_u64 *address, wefti_u64 value)
{
    asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" : : "l"(wefti_global(address)), "l"(value) : "memory");
}

WEFTI_DEVICE void wefti_fence_acq_rel()
{
    asm volatile("fence.acq_rel.sys;" : : : "memory");
}

WEFTI_DEVICE void wefti_fence_sc()
{
    asm volatile("fence.sc.sys;" : : : "memory");
}

/* Fences of one direction are there from sm_90 and CUDA 12.8 on. An acquire alone only empties this multiprocessor's
 * cache, and waits for nothing; a load that acquires does so each time, which a wait needs once. */
#if defined(__CUDA_ARCH__) && defined(__CUDACC_VER_MAJOR__)
#define WEFTI_HAS_HALF_FENCES (__CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208)
#else
#define WEFTI_HAS_HALF_FENCES 0
#endif

#if WEFTI_HAS_HALF_FENCES

WEFTI_DEVICE void wefti_fence_rel()
{
    asm volatile("fence.release.sys;" : : : "memory");
}

WEFTI_DEVICE void wefti_fence_acq()
{
    asm volatile("fence.acquire.sys;" : : : "memory");
}

template <class T> WEFTI_DEVICE T wefti_ld_look(const T *address)
{
    return wefti_ld_relaxed(address);
}

WEFTI_DEVICE void wefti_fence_looked()
{
    wefti_fence_acq();
}

#else

WEFTI_DEVICE void wefti_fence_rel()
{
    wefti_fence_acq_rel();
}

WEFTI_DEVICE void wefti_fence_acq()
{
    wefti_fence_acq_rel();
}

template <class T> WEFTI_DEVICE T wefti_ld_look(const T *address)
{
    return wefti_ld_acquire(address);
}

WEFTI_DEVICE void wefti_fence_looked()
{
}

#endif

/* ns since some moment; ticks coarsely. */
WEFTI_DEVICE wefti_u64 wefti_time_ns()
{
    wefti_u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

WEFTI_DEVICE void wefti_rest(unsigned ns)
{
    __nanosleep(ns);
}

/* ---- 16 bytes at once ---- */

typedef uint4 wefti_wide;

/* From this PE's memory, any space; issued where it stands. */
WEFTI_DEVICE wefti_wide wefti_ld_wide(const wefti_wide *address)
{
    wefti_wide value;
    asm volatile("ld.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
    return value;
}

WEFTI_DEVICE wefti_u64 wefti_ld_word(const wefti_u64 *address)
{
    wefti_u64 value;
    asm volatile("ld.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

/* From another PE's memory: relaxed at system scope, so that no cache of this multiprocessor answers. */
WEFTI_DEVICE wefti_wide wefti_ld_remote(const wefti_wide *address)
{
    wefti_wide value;
    asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(wefti_global(address))
                 : "memory");
    return value;
}

/* The same by way of this multiprocessor's cache (weak loads): as new as this thread's last acquire, and what lies
 * beside it comes along. */
WEFTI_DEVICE wefti_wide wefti_ld_cached(const wefti_wide *address)
{
    wefti_wide value;
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(wefti_global(address))
                 : "memory");
    return value;
}

#define WEFTI_DEFINE_LOAD_CACHED(type, width, constraint, register_type)                                               \
    WEFTI_DEVICE type wefti_ld_cached(const type *address)                                                             \
    {                                                                                                                  \
        register_type value;                                                                                           \
        asm volatile("ld.global." width " %0, [%1];" : "=" constraint(value) : "l"(wefti_global(address)) : "memory"); \
        return (type)value;                                                                                            \
    }
WEFTI_DEFINE_LOAD_CACHED(wefti_u64, "b64", "l", wefti_u64)
WEFTI_DEFINE_LOAD_CACHED(wefti_u32, "b32", "r", wefti_u32)
WEFTI_DEFINE_LOAD_CACHED(unsigned short, "b16", "h", unsigned short)
WEFTI_DEFINE_LOAD_CACHED(unsigned char, "b8", "r", wefti_u32)
#undef WEFTI_DEFINE_LOAD_CACHED

WEFTI_DEVICE void wefti_st_remote(wefti_wide *address, wefti_wide value)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(wefti_global(address)), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

/* A packed word is one access: its two halves are never of different stores. */
WEFTI_DEVICE wefti_dev_packed wefti_ld_packed(const wefti_dev_packed *address)
{
    wefti_dev_packed word;
    asm volatile("{\n\t"
                 ".reg .b128 both;\n\t"
                 "ld.relaxed.sys.global.b128 both, [%2];\n\t"
                 "mov.b128 {%0, %1}, both;\n\t"
                 "}"
                 : "=l"(word.value), "=l"(word.epoch)
                 : "l"(wefti_global(address))
                 : "memory");
    return word;
}

WEFTI_DEVICE void wefti_st_packed(wefti_dev_packed *address, wefti_u64 value, wefti_u64 epoch)
{
    asm volatile("{\n\t"
                 ".reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], both;\n\t"
                 "}"
                 :
                 : "l"(wefti_global(address)), "l"(value), "l"(epoch)
                 : "memory");
}

/* ---- 16-bit floats, to nearest even ---- */

WEFTI_DEVICE float wefti_fp16_widen(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

WEFTI_DEVICE unsigned short wefti_fp16_round(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

WEFTI_DEVICE unsigned short wefti_bf16_round(float value)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

/* ---- bulk copies between global and shared memory (sm_90 and later) ---- */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 /* the host pass parses them */
#define WEFTI_HAS_BULK 1
#else
#define WEFTI_HAS_BULK 0
#endif

#if WEFTI_HAS_BULK

WEFTI_DEVICE unsigned wefti_shared(const void *address)
{
    return (unsigned)__cvta_generic_to_shared(address);
}

/* A barrier in shared memory on which bulk loads complete: one arrival, then the bytes announced with it. */
WEFTI_DEVICE void wefti_load_barrier_init(wefti_u64 *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(wefti_shared(barrier)) : "memory");
}

WEFTI_DEVICE void wefti_load_barrier_fini(wefti_u64 *barrier)
{
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" : : "r"(wefti_shared(barrier)) : "memory");
}

/* The initialised barriers are seen by the copy engine. */
WEFTI_DEVICE void wefti_load_barrier_publish()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

WEFTI_DEVICE void wefti_bulk_load(void *shared, const void *global, unsigned bytes, wefti_u64 *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(wefti_shared(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(wefti_shared(shared)), "l"(wefti_global(global)), "r"(bytes), "r"(wefti_shared(barrier))
                 : "memory");
}

WEFTI_DEVICE int wefti_load_barrier_passed(wefti_u64 *barrier, unsigned parity)
{
    unsigned passed;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(passed)
                 : "r"(wefti_shared(barrier)), "r"(parity)
                 : "memory");
    return (int)passed;
}

/* Into the group of stores that this thread's next commit ends. */
WEFTI_DEVICE void wefti_bulk_store_add(void *global, const void *shared, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :
                 : "l"(wefti_global(global)), "r"(wefti_shared(shared)), "r"(bytes)
                 : "memory");
}

/* End a group, which may be empty. */
WEFTI_DEVICE void wefti_bulk_stores_commit()
{
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

WEFTI_DEVICE void wefti_bulk_store(void *global, const void *shared, unsigned bytes)
{
    wefti_bulk_store_add(global, shared, bytes);
    wefti_bulk_stores_commit();
}

/* All but the last LEFT groups of bulk stores of this thread have read their shared memory. */
template <int LEFT> WEFTI_DEVICE void wefti_bulk_stores_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(LEFT) : "memory");
}

/* All bulk stores of this thread are written (not only read), and ordered before what it releases from now on. */
WEFTI_DEVICE void wefti_bulk_stores_complete()
{
    asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
    asm volatile("fence.proxy.async;" : : : "memory");
}

/* What this thread wrote or acquired before by ordinary accesses is seen by its bulk copies from now on. */
WEFTI_DEVICE void wefti_fence_before_bulk()
{
    asm volatile("fence.proxy.async;" : : : "memory");
}

/* What is at `address` will be read soon. */
WEFTI_DEVICE void wefti_prefetch(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(wefti_global(address)));
}

#endif

#else
#include "weft/device/on_host.cuh"
#endif

#endif
