/* weft/device/atomics.cuh: read-modify-writes of global memory in kernels that return the value before (those that
 * return nothing: ptx.cuh): at system scope, unless said, without an order of their own, on integers of 4 and 8 bytes
 * (add: float and double too). */
#ifndef WEFTI_DEVICE_ATOMICS_CUH
#define WEFTI_DEVICE_ATOMICS_CUH

#include "weft/device/ptx.cuh"

#if !defined(WEFT_DEVICE_ON_HOST)

/* Bits of T as the integer type of its size, and back. */
template <int BYTES> struct wefti_word;
template <> struct wefti_word<4> {
    typedef wefti_u32 type;
};
template <> struct wefti_word<8> {
    typedef wefti_u64 type;
};

template <class To, class From> WEFTI_DEVICE To wefti_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/* Spelled for global memory: without, each would also be ready for shared memory. */
#define WEFTI_DEFINE_RMW(name, operation, type, constraint)                                                            \
    WEFTI_DEVICE type wefti_rmw_##name(type *address, type value)                                                      \
    {                                                                                                                  \
        type old;                                                                                                      \
        asm volatile("atom.relaxed.sys.global." operation " %0, [%1], %2;"                                             \
                     : "=" constraint(old)                                                                             \
                     : "l"(wefti_global(address)), constraint(value)                                                   \
                     : "memory");                                                                                      \
        return old;                                                                                                    \
    }
#define WEFTI_DEFINE_RMWS(name, operation, width)                                                                      \
    WEFTI_DEFINE_RMW(name, operation "." width "32", wefti_u32, "r")                                                   \
    WEFTI_DEFINE_RMW(name, operation "." width "64", wefti_u64, "l")
WEFTI_DEFINE_RMWS(add, "add", "u")
WEFTI_DEFINE_RMWS(swap, "exch", "b")
WEFTI_DEFINE_RMWS(and, "and", "b")
WEFTI_DEFINE_RMWS(or, "or", "b")
WEFTI_DEFINE_RMWS(xor, "xor", "b")
WEFTI_DEFINE_RMW(add, "add.f32", float, "f")
WEFTI_DEFINE_RMW(add, "add.f64", double, "d")
#undef WEFTI_DEFINE_RMWS
#undef WEFTI_DEFINE_RMW

#define WEFTI_DEFINE_CAS(type, width, constraint)                                                                      \
    WEFTI_DEVICE type wefti_rmw_cas(type *address, type expected, type value)                                          \
    {                                                                                                                  \
        type old;                                                                                                      \
        asm volatile("atom.relaxed.sys.global.cas." width " %0, [%1], %2, %3;"                                         \
                     : "=" constraint(old)                                                                             \
                     : "l"(wefti_global(address)), constraint(expected), constraint(value)                             \
                     : "memory");                                                                                      \
        return old;                                                                                                    \
    }
WEFTI_DEFINE_CAS(wefti_u32, "b32", "r")
WEFTI_DEFINE_CAS(wefti_u64, "b64", "l")
#undef WEFTI_DEFINE_CAS

#define WEFTI_DEFINE_ATOMIC(name)                                                                                      \
    template <class T> WEFTI_DEVICE T wefti_atomic_##name(T *address, T value)                                         \
    {                                                                                                                  \
        typedef typename wefti_word<sizeof(T)>::type word;                                                             \
        return wefti_bits<T>(wefti_rmw_##name((word *)address, wefti_bits<word>(value)));                              \
    }
WEFTI_DEFINE_ATOMIC(add)
WEFTI_DEFINE_ATOMIC(swap)
WEFTI_DEFINE_ATOMIC(and)
WEFTI_DEFINE_ATOMIC(or)
WEFTI_DEFINE_ATOMIC(xor)
#undef WEFTI_DEFINE_ATOMIC

/* Add 1; what has reached `limit` becomes 0. Among the threads of this GPU. */
WEFTI_DEVICE wefti_u32 wefti_atomic_count(wefti_u32 *address, wefti_u32 limit)
{
    wefti_u32 old;
    asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(wefti_global(address)), "r"(limit)
                 : "memory");
    return old;
}

WEFTI_DEVICE float wefti_atomic_add(float *address, float value)
{
    return wefti_rmw_add(address, value);
}

WEFTI_DEVICE double wefti_atomic_add(double *address, double value)
{
    return wefti_rmw_add(address, value);
}

template <class T> WEFTI_DEVICE T wefti_atomic_cas(T *address, T expected, T value)
{
    typedef typename wefti_word<sizeof(T)>::type word;
    return wefti_bits<T>(wefti_rmw_cas((word *)address, wefti_bits<word>(expected), wefti_bits<word>(value)));
}

#endif

#endif
