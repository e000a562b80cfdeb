/* cuda/reduce_any.cuh: reducers whose type or operation are values: one copy of each loop instead of a kernel for each
 * pair. The common sums have kernels of their own. */
#ifndef WEFTI_CUDA_REDUCE_ANY_CUH
#define WEFTI_CUDA_REDUCE_ANY_CUH

#include "weft/device/reducer.cuh"
#include "weft/reduce_op.h"

template <class R> static WEFTI_DEVICE wefti_wide combine_by(const R &reducer, wefti_wide a, wefti_wide b)
{
    typename R::sum all = reducer.start(a);
    reducer.add(all, b);
    return reducer.finish(all);
}

#define KEY(dtype, op) ((dtype)*8 + (op))
#define COMBINE(NAME, TYPE, OP)                                                                                        \
    case KEY(WEFT_DTYPE_##NAME, WEFT_OP_##OP):                                                                         \
        return combine_by(wefti_reducer<TYPE, WEFT_OP_##OP>(), a, b);
#define COMBINE_COMPLEX(NAME, TYPE) COMBINE(NAME, TYPE, SUM) COMBINE(NAME, TYPE, PROD)
#define COMBINE_REAL(NAME, TYPE) COMBINE(NAME, TYPE, MIN) COMBINE(NAME, TYPE, MAX) COMBINE_COMPLEX(NAME, TYPE)
#define COMBINE_INTEGER(NAME, TYPE)                                                                                    \
    COMBINE(NAME, TYPE, AND) COMBINE(NAME, TYPE, OR) COMBINE(NAME, TYPE, XOR) COMBINE_REAL(NAME, TYPE)

/* Types that are combined as what they are. */
WEFTI_DEVICE_SLOW wefti_wide combine_any(int key, wefti_wide a, wefti_wide b)
{
    switch (key) {
        COMBINE_INTEGER(INT8, signed char)
        COMBINE_INTEGER(UINT8, unsigned char)
        COMBINE_INTEGER(INT16, short)
        COMBINE_INTEGER(UINT16, unsigned short)
        COMBINE_INTEGER(INT32, int)
        COMBINE_INTEGER(UINT32, unsigned)
        COMBINE_INTEGER(INT64, long long)
        COMBINE_INTEGER(UINT64, unsigned long long)
        COMBINE_REAL(FLOAT, float)
        COMBINE_REAL(DOUBLE, double)
        COMBINE_COMPLEX(COMPLEXF, weft_dev_complexf)
        COMBINE_COMPLEX(COMPLEXD, weft_dev_complexd)
    default:
        return a;
    }
}
#undef COMBINE_INTEGER
#undef COMBINE_REAL
#undef COMBINE_COMPLEX
#undef COMBINE

static WEFTI_DEVICE float combine_float(int op, float a, float b)
{
    return op == WEFT_OP_MIN   ? wefti_combine<WEFT_OP_MIN>(a, b)
           : op == WEFT_OP_MAX ? wefti_combine<WEFT_OP_MAX>(a, b)
           : op == WEFT_OP_SUM ? a + b
                               : a * b;
}

/* Any type that is combined as what it is. */
struct bits_reducer {
    int dtype;
    int op;
    typedef wefti_wide sum;
    static const int units = 2;
    static const int few = 2;
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        return unit;
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        all = combine_any(KEY(dtype, op), all, unit);
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        return all;
    }
};

/* A type of 16 bits that is combined in float. */
template <class T> struct op_reducer {
    int op;
    typedef typename wefti_float_reducer<T, WEFT_OP_SUM>::sum sum;
    static const int units = 2;
    static const int few = 2;
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        return wefti_float_reducer<T, WEFT_OP_SUM>().start(unit);
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        const sum more = start(unit);
        WEFTI_UNROLL(8)
        for (unsigned i = 0; i < WEFTI_DEV_UNIT / sizeof(T); i++) {
            all.lane[i] = combine_float(op, all.lane[i], more.lane[i]);
        }
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        return wefti_float_reducer<T, WEFT_OP_SUM>().finish(all);
    }
};

/* Types that are combined in float: at most 16 lanes. */
typedef struct any_lanes {
    float lane[WEFTI_DEV_UNIT];
} any_lanes;

template <class T> static WEFTI_DEVICE void widen_by(any_lanes *lanes, wefti_wide unit)
{
    const wefti_lanes<T> given = wefti_lanes_of<T>(unit);
    WEFTI_UNROLL(16)
    for (unsigned i = 0; i < WEFTI_DEV_UNIT / sizeof(T); i++) {
        lanes->lane[i] = wefti_widen(given.lane[i]);
    }
}

template <class T> static WEFTI_DEVICE wefti_wide round_by(const any_lanes *lanes)
{
    wefti_lanes<T> rounded;
    WEFTI_UNROLL(16)
    for (unsigned i = 0; i < WEFTI_DEV_UNIT / sizeof(T); i++) {
        wefti_round(lanes->lane[i], &rounded.lane[i]);
    }
    return wefti_unit_of(rounded);
}

WEFTI_DEVICE_SLOW void widen_any(int dtype, any_lanes *lanes, wefti_wide unit)
{
    switch (dtype) {
    case WEFT_DTYPE_FP16:
        widen_by<weft_fp16>(lanes, unit);
        break;
    case WEFT_DTYPE_BF16:
        widen_by<weft_bf16>(lanes, unit);
        break;
    case WEFT_DTYPE_E4M3:
        widen_by<weft_e4m3>(lanes, unit);
        break;
    default:
        widen_by<weft_e5m2>(lanes, unit);
        break;
    }
}

WEFTI_DEVICE_SLOW wefti_wide round_any(int dtype, const any_lanes *lanes)
{
    return dtype == WEFT_DTYPE_FP16   ? round_by<weft_fp16>(lanes)
           : dtype == WEFT_DTYPE_BF16 ? round_by<weft_bf16>(lanes)
           : dtype == WEFT_DTYPE_E4M3 ? round_by<weft_e4m3>(lanes)
                                      : round_by<weft_e5m2>(lanes);
}

struct any_reducer {
    int dtype;
    int op;
    static const int units = 1; /* its sums are on the stack */
    static const int few = 1;
    struct sum {
        wefti_wide bits;
        any_lanes lanes;
    };
    WEFTI_DEVICE bool is_small_float() const
    {
        return dtype >= WEFT_DTYPE_FP16;
    }
    WEFTI_DEVICE sum start(wefti_wide unit) const
    {
        sum all = {};
        all.bits = unit;
        if (is_small_float()) {
            widen_any(dtype, &all.lanes, unit);
        }
        return all;
    }
    WEFTI_DEVICE void add(sum &all, wefti_wide unit) const
    {
        if (!is_small_float()) {
            all.bits = combine_any(KEY(dtype, op), all.bits, unit);
            return;
        }
        any_lanes more = {};
        widen_any(dtype, &more, unit);
        WEFTI_UNROLL(16)
        for (unsigned i = 0; i < WEFTI_DEV_UNIT; i++) {
            all.lanes.lane[i] = combine_float(op, all.lanes.lane[i], more.lane[i]);
        }
    }
    WEFTI_DEVICE wefti_wide finish(const sum &all) const
    {
        return is_small_float() ? round_any(dtype, &all.lanes) : all.bits;
    }
};
#undef KEY

#endif
