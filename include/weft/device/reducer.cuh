/* weft/device/reducer.cuh: combining 16 bytes of elements at a time, member by member.
 *
 * A reducer has a type `sum` for what has been combined so far, and start(unit), add(sum, unit), finish(sum); `units`:
 * how many units of four members, or twice as many of two, a thread of the library's kernels has in flight; `few`: how
 * many of two members one of a user's kernel has, where the registers are to do for blocks of 640 threads also in
 * relocatable device code (nvshmem.registers). Integers wrap around. weft_bf16,
 * weft_fp16, weft_e4m3 and weft_e5m2 are combined in float and rounded once, at the end. min and max are b < a ? b : a
 * and b > a ? b : a, as on the host. */
#ifndef WEFTI_DEVICE_REDUCER_CUH
#define WEFTI_DEVICE_REDUCER_CUH

#include "weft/device/number.cuh"
#include "weft/reduce_op.h"

/* ---- one element ---- */

/* What is computed with: for integers the unsigned type of at least 32 bits, where order does not matter. */
template <class T> struct wefti_arithmetic {
    typedef T type;
};
#define WEFTI_DEFINE_WRAPPING(narrow, wide)                                                                            \
    template <> struct wefti_arithmetic<narrow> {                                                                      \
        typedef wide type;                                                                                             \
    };
WEFTI_DEFINE_WRAPPING(signed char, unsigned)
WEFTI_DEFINE_WRAPPING(unsigned char, unsigned)
WEFTI_DEFINE_WRAPPING(char, unsigned)
WEFTI_DEFINE_WRAPPING(short, unsigned)
WEFTI_DEFINE_WRAPPING(unsigned short, unsigned)
WEFTI_DEFINE_WRAPPING(int, unsigned)
WEFTI_DEFINE_WRAPPING(long, unsigned long)
WEFTI_DEFINE_WRAPPING(long long, unsigned long long)
#undef WEFTI_DEFINE_WRAPPING

template <int OP, bool BITWISE> struct wefti_operation;
template <int OP> struct wefti_operation<OP, true> { /* integers */
    template <class T> static WEFTI_DEVICE T of(T a, T b)
    {
        return OP == WEFT_OP_AND ? (T)(a & b) : OP == WEFT_OP_OR ? (T)(a | b) : (T)(a ^ b);
    }
};
template <int OP> struct wefti_operation<OP, false> {
    template <class T> static WEFTI_DEVICE T of(T a, T b)
    {
        typedef typename wefti_arithmetic<T>::type wide;
        return OP == WEFT_OP_MIN   ? (b < a ? b : a)
               : OP == WEFT_OP_MAX ? (b > a ? b : a)
               : OP == WEFT_OP_SUM ? (T)((wide)a + (wide)b)
                                   : (T)((wide)a * (wide)b);
    }
};

template <int OP, class T> WEFTI_DEVICE T wefti_combine(T a, T b)
{
    return wefti_operation<OP, (OP <= WEFT_OP_XOR)>::of(a, b);
}

/* Complex numbers: two parts. */
typedef struct weft_dev_complexf {
    float part[2];
} weft_dev_complexf;
typedef struct weft_dev_complexd {
    double part[2];
} weft_dev_complexd;

template <int OP, class C> WEFTI_DEVICE C wefti_combine_complex(C a, C b)
{
    C c;
    c.part[0] = OP == WEFT_OP_SUM ? a.part[0] + b.part[0] : a.part[0] * b.part[0] - a.part[1] * b.part[1];
    c.part[1] = OP == WEFT_OP_SUM ? a.part[1] + b.part[1] : a.part[0] * b.part[1] + a.part[1] * b.part[0];
    return c;
}

/* ---- 16 bytes ---- */

template <class T> struct wefti_lanes {
    T lane[WEFTI_DEV_UNIT / sizeof(T)];
};

template <class T> WEFTI_DEVICE wefti_lanes<T> wefti_lanes_of(wefti_wide unit)
{
    wefti_lanes<T> lanes;
    memcpy(&lanes, &unit, sizeof lanes);
    return lanes;
}

template <class T> WEFTI_DEVICE wefti_wide wefti_unit_of(const wefti_lanes<T> &lanes)
{
    wefti_wide unit;
    memcpy(&unit, &lanes, sizeof unit);
    return unit;
}

/* Types that are combined as what they are. */
template <class T, int OP> struct wefti_reducer {
    typedef wefti_lanes<T> sum;
    static const int units = 2;
    static const int few = sizeof(T) == 1 ? 2 : 4;
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        return wefti_lanes_of<T>(unit);
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        const wefti_lanes<T> more = wefti_lanes_of<T>(unit);
        WEFTI_UNROLL(16)
        for (unsigned i = 0; i < sizeof all.lane / sizeof *all.lane; i++) {
            all.lane[i] = wefti_combine<OP>(all.lane[i], more.lane[i]);
        }
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        return wefti_unit_of(all);
    }
};

/* Types that are combined in float. */
template <class T, int OP> struct wefti_float_reducer {
    static const unsigned count = WEFTI_DEV_UNIT / sizeof(T);
    static const int units = 2;
    static const int few = 2;
    struct sum {
        float lane[count];
    };
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        const wefti_lanes<T> given = wefti_lanes_of<T>(unit);
        sum all;
        WEFTI_UNROLL(16)
        for (unsigned i = 0; i < count; i++) {
            all.lane[i] = wefti_widen(given.lane[i]);
        }
        return all;
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        const wefti_lanes<T> more = wefti_lanes_of<T>(unit);
        WEFTI_UNROLL(16)
        for (unsigned i = 0; i < count; i++) {
            all.lane[i] = wefti_combine<OP>(all.lane[i], wefti_widen(more.lane[i]));
        }
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        wefti_lanes<T> rounded;
        WEFTI_UNROLL(16)
        for (unsigned i = 0; i < count; i++) {
            wefti_round(all.lane[i], &rounded.lane[i]);
        }
        return wefti_unit_of(rounded);
    }
};

template <class C, int OP> struct wefti_complex_reducer {
    typedef wefti_lanes<C> sum;
    static const int units = 2;
    static const int few = 4;
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        return wefti_lanes_of<C>(unit);
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        const wefti_lanes<C> more = wefti_lanes_of<C>(unit);
        WEFTI_UNROLL(2)
        for (unsigned i = 0; i < sizeof all.lane / sizeof *all.lane; i++) {
            all.lane[i] = wefti_combine_complex<OP>(all.lane[i], more.lane[i]);
        }
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        return wefti_unit_of(all);
    }
};

#define WEFTI_DEFINE_REDUCER(type, base)                                                                               \
    template <int OP> struct wefti_reducer<type, OP> : base<type, OP> {                                                \
    };
WEFTI_DEFINE_REDUCER(weft_bf16, wefti_float_reducer)
WEFTI_DEFINE_REDUCER(weft_fp16, wefti_float_reducer)
WEFTI_DEFINE_REDUCER(weft_e4m3, wefti_float_reducer)
WEFTI_DEFINE_REDUCER(weft_e5m2, wefti_float_reducer)
WEFTI_DEFINE_REDUCER(weft_dev_complexf, wefti_complex_reducer)
WEFTI_DEFINE_REDUCER(weft_dev_complexd, wefti_complex_reducer)
#undef WEFTI_DEFINE_REDUCER

#endif
