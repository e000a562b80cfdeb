/* cuda/ep/device/reduce.cuh: the sum of a few rows by a warp: of one token's results on all ranks, or, by expert, on
 * this one. */
#ifndef WEFTI_CUDA_EP_DEVICE_REDUCE_CUH
#define WEFTI_CUDA_EP_DEVICE_REDUCE_CUH

#include "cuda/ep/device/arithmetic.cuh"
#include "cuda/ep/device/record.cuh"

#define EP_ROWS_AT_ONCE 4

/* How the vectors of rows are read and those of sums written, and how many of a row at once: here, as they lie in
 * memory. Where a form COMES, what is loaded may not have come yet. */
struct ep_in_vectors {
    enum { COMES = 0, AT_ONCE = 3 };
    __device__ __forceinline__ uint4 load(wefti_u64 row, int at) const
    {
        return ((const uint4 *)row)[at];
    }
    __device__ __forceinline__ void store(unsigned char *out, int at, const uint4 &vector) const
    {
        ((uint4 *)out)[at] = vector;
    }
    /* The same part of a row that lies as rows do. */
    __device__ __forceinline__ uint4 load_beside(wefti_u64 row, int at) const
    {
        return load(row, at);
    }
    /* A sum of rows of the one type, rounded to another. */
    template <int DTYPE, int OUT>
    __device__ __forceinline__ void store_as(unsigned char *out, int at, const float *sum) const
    {
        enum { FROM = ep_type<DTYPE>::ELEMENTS, TO = ep_type<OUT>::ELEMENTS };
        if constexpr (FROM < TO) { /* half a vector */
            const float result[TO] = {sum[0], sum[1], sum[2], sum[3]};
            const uint4 vector = ep_type<OUT>::round(result);
            ((uint2 *)out)[at] = make_uint2(vector.x, vector.y);
        } else {
#pragma unroll
            for (int i = 0; i < FROM / TO; i++) {
                ((uint4 *)out)[at * (FROM / TO) + i] = ep_type<OUT>::round(sum + i * TO);
            }
        }
    }
    __device__ __forceinline__ int rank_of(int lane) const
    {
        return lane;
    }
};

/* Whether what was loaded of the rows had come; if not, it waits for one that is late. What does not come at all is
 * taken as it is, and known to the form. A warp. */
template <class FORM>
EP_DEVICE bool ep_all_came(const FORM &form, const uint4 (*vector)[FORM::AT_ONCE], wefti_u32 rows, wefti_u64 row,
                           int at)
{
    if constexpr (FORM::COMES) {
        static_assert(FORM::AT_ONCE == 1, "late vectors are told by their rows");
        int late = -1; /* the first row that is */
#pragma unroll
        for (int i = EP_ROWS_AT_ONCE - 1; i >= 0; i--) {
            late = form.is_late(vector[i][0]) ? i : late;
        }
        if (!__any_sync(~0u, late >= 0)) {
            return true;
        }
        for (int i = 0; i < late && (rows & (rows - 1)) != 0; i++) {
            rows &= rows - 1;
        }
        const int lane = __ffs((int)rows) - 1;
        const int rank = form.rank_of(lane);
        const wefti_u64 from = __shfl_sync(~0u, row, lane);
        return !__all_sync(~0u, late < 0 || form.wait(from, at, rank));
    }
    return true;
}

/* The sums of the vectors `at`, at + 32 ... below `vectors`, with the rows, one a bit of `lanes`, whose addresses and
 * weights these lanes have. Scaled: round(weight * row); by expert always fused, with weights of 1 if need be. A warp.
 *
 * Loads have no condition: where there is no row or vector left they repeat one, which nobody adds or stores. What a
 * load might leave as it was would be copied behind each load, and the loads would come one after the other. */
template <int DTYPE, bool FUSED, class FORM>
EP_DEVICE void ep_include(const FORM &form, float (*sum)[ep_type<DTYPE>::ELEMENTS], wefti_u32 lanes, wefti_u64 row,
                          float weight, bool scaled, int at, int vectors)
{
    enum { AT_ONCE = FORM::AT_ONCE };
    for (wefti_u32 left = lanes; left != 0;) {
        uint4 vector[EP_ROWS_AT_ONCE][AT_ONCE];
        do {
            wefti_u32 batch = left;
#pragma unroll
            for (int i = 0; i < EP_ROWS_AT_ONCE; i++) {
                const wefti_u64 from = __shfl_sync(~0u, row, __ffs((int)(batch != 0 ? batch : left)) - 1);
#pragma unroll
                for (int v = 0; v < AT_ONCE; v++) {
                    vector[i][v] = form.load(from, at + 32 * v < vectors ? at + 32 * v : vectors - 1);
                }
                batch &= batch - 1;
            }
        } while (!ep_all_came(form, vector, left, row, at < vectors ? at : vectors - 1));
#pragma unroll
        for (int i = 0; i < EP_ROWS_AT_ONCE; i++) {
            if (left != 0) {
                float by = __shfl_sync(~0u, weight, __ffs((int)left) - 1);
#pragma unroll
                for (int v = 0; v < AT_ONCE; v++) {
                    if (FUSED) {
                        ep_fuse<DTYPE>(sum[v], vector[i][v], by);
                    } else if (scaled) {
                        ep_add_scaled<DTYPE>(sum[v], vector[i][v], by);
                    } else {
                        ep_add<DTYPE>(sum[v], vector[i][v]);
                    }
                }
            }
            left &= left - 1;
        }
    }
}

/* Store sums, rounded to the type of the result. */
template <int DTYPE, class FORM>
EP_DEVICE void ep_store_sums(const FORM &form, unsigned char *out, float (*sum)[ep_type<DTYPE>::ELEMENTS], int at,
                             int vectors)
{
#pragma unroll
    for (int v = 0; v < FORM::AT_ONCE; v++) {
        if (at + 32 * v < vectors) {
            form.store(out, at + 32 * v, ep_type<DTYPE>::round(sum[v]));
        }
    }
}

/* What is added to a token's results: none, or up to two rows, before them or after; and the type that the sum is
 * rounded to, without biases that of the rows. */
struct ep_no_biases {
    enum { ANY = 0 };
};
struct ep_biases {
    enum { ANY = 1 };
    wefti_u64 row[2]; /* or 0 */
    bool first;
    int out_dtype; /* a weft_ep_dtype */
};

template <int DTYPE, int OUT, class FORM>
EP_DEVICE void ep_store_sums_of(const FORM &form, unsigned char *out, float (*sum)[ep_type<DTYPE>::ELEMENTS], int at,
                                int vectors)
{
#pragma unroll
    for (int v = 0; v < FORM::AT_ONCE; v++) {
        if (at + 32 * v < vectors) {
            form.template store_as<DTYPE, OUT>(out, at + 32 * v, sum[v]);
        }
    }
}

template <int DTYPE, class FORM>
EP_DEVICE void ep_store_sums_as(const FORM &form, int out_dtype, unsigned char *out,
                                float (*sum)[ep_type<DTYPE>::ELEMENTS], int at, int vectors)
{
    if (out_dtype == DTYPE) {
        ep_store_sums<DTYPE>(form, out, sum, at, vectors);
    } else if (out_dtype == WEFT_EP_BF16) {
        ep_store_sums_of<DTYPE, WEFT_EP_BF16>(form, out, sum, at, vectors);
    } else if (out_dtype == WEFT_EP_F16) {
        ep_store_sums_of<DTYPE, WEFT_EP_F16>(form, out, sum, at, vectors);
    } else {
        ep_store_sums_of<DTYPE, WEFT_EP_F32>(form, out, sum, at, vectors);
    }
}

template <int DTYPE, class FORM>
EP_DEVICE void ep_add_biases(const FORM &form, const ep_biases &biases, float (*sum)[ep_type<DTYPE>::ELEMENTS], int at,
                             int vectors)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int v = 0; v < FORM::AT_ONCE && biases.row[i] != 0; v++) {
            ep_add<DTYPE>(sum[v], form.load_beside(biases.row[i], at + 32 * v < vectors ? at + 32 * v : vectors - 1));
        }
    }
}

/* The sum of rows, one a bit of `lanes`, whose addresses and weights these lanes have: of their vectors
 * first .. end - 1. A warp. */
template <int DTYPE, class FORM, class BIASES>
EP_DEVICE void ep_sum(const FORM &form, bool scaled, wefti_u32 lanes, wefti_u64 row, float weight, unsigned char *out,
                      int first, int vectors, const BIASES &biases)
{
    for (int at = first + ep_lane(); at - ep_lane() < vectors; at += 32 * FORM::AT_ONCE) {
        float sum[FORM::AT_ONCE][ep_type<DTYPE>::ELEMENTS] = {};
        if constexpr (BIASES::ANY) {
            if (biases.first) {
                ep_add_biases<DTYPE>(form, biases, sum, at, vectors);
            }
        }
        ep_include<DTYPE, false>(form, sum, lanes, row, weight, scaled, at, vectors);
        if constexpr (BIASES::ANY) {
            if (!biases.first) {
                ep_add_biases<DTYPE>(form, biases, sum, at, vectors);
            }
            ep_store_sums_as<DTYPE>(form, biases.out_dtype, out, sum, at, vectors);
        } else {
            ep_store_sums<DTYPE>(form, out, sum, at, vectors);
        }
    }
}

/* The same of rows of type `dtype`, a weft_ep_dtype. */
template <class FORM, class BIASES>
EP_DEVICE void ep_sum_as(const FORM &form, int dtype, bool scaled, wefti_u32 lanes, wefti_u64 row, float weight,
                         unsigned char *out, int first, int vectors, const BIASES &biases)
{
    if (dtype == WEFT_EP_BF16) {
        ep_sum<WEFT_EP_BF16>(form, scaled, lanes, row, weight, out, first, vectors, biases);
    } else if (dtype == WEFT_EP_F16) {
        ep_sum<WEFT_EP_F16>(form, scaled, lanes, row, weight, out, first, vectors, biases);
    } else {
        ep_sum<WEFT_EP_F32>(form, scaled, lanes, row, weight, out, first, vectors, biases);
    }
}

/* Lane i's row of a received token, that of choice base + i. */
typedef struct ep_addend {
    wefti_u32 lanes; /* those that have one */
    wefti_u64 row;
    float weight;
} ep_addend;

/* `call_words`: with OWN the call's own words of the token's choices, which are in place of the record's weights. */
template <bool CALL_WORDS>
EP_DEVICE ep_addend ep_addend_of(const ep_combine &args, const wefti_u32 *record, const wefti_u32 *call_words, int base)
{
    const bool once = (args.flags & WEFTI_CUDA_EP_ONCE) != 0;
    const int k = base + ep_lane();
    ep_addend addend = {0, 0, 1.0f};
    wefti_u32 row;
    bool participates = true;
    if (CALL_WORDS) {
        const wefti_u32 word = k < args.topk ? call_words[k] : WEFTI_CUDA_EP_LEFT_OUT;
        participates = word != WEFTI_CUDA_EP_LEFT_OUT;
        addend.weight = __uint_as_float(word);
    } else if ((args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0 && k < args.topk) {
        addend.weight = ep_record_weight(record, args.topk, k);
    }
    const bool has_row = ep_has_row(record, args.topk, once, base, &row);
    addend.lanes = __ballot_sync(~0u, has_row && participates);
    addend.row = (wefti_u64)args.in + (wefti_u64)row * args.in_pitch;
    return addend;
}

/* By expert: the sum of a received token's rows, in ascending choice: vectors first .. end - 1. A warp. */
template <int DTYPE, bool CALL_WORDS, class FORM>
EP_DEVICE void ep_fold(const FORM &form, const ep_combine &args, const wefti_u32 *record, const wefti_u32 *call_words,
                       unsigned char *out, int first, int end)
{
    ep_addend addend = ep_addend_of<CALL_WORDS>(args, record, call_words, 0);
    for (int at = first + ep_lane(); at - ep_lane() < end; at += 32 * FORM::AT_ONCE) {
        float sum[FORM::AT_ONCE][ep_type<DTYPE>::ELEMENTS] = {};
        for (int base = 0; base < args.topk; base += 32) {
            if (args.topk > 32) {
                addend = ep_addend_of<CALL_WORDS>(args, record, call_words, base);
            }
            ep_include<DTYPE, true>(form, sum, addend.lanes, addend.row, addend.weight, true, at, end);
        }
        ep_store_sums<DTYPE>(form, out, sum, at, end);
    }
}

/* The same of rows of the call's type. */
template <bool CALL_WORDS, class FORM>
EP_DEVICE void ep_fold_as(const FORM &form, const ep_combine &args, const wefti_u32 *record,
                          const wefti_u32 *call_words, unsigned char *out, int first, int end)
{
    if (args.dtype == WEFT_EP_BF16) {
        ep_fold<WEFT_EP_BF16, CALL_WORDS>(form, args, record, call_words, out, first, end);
    } else if (args.dtype == WEFT_EP_F16) {
        ep_fold<WEFT_EP_F16, CALL_WORDS>(form, args, record, call_words, out, first, end);
    } else {
        ep_fold<WEFT_EP_F32, CALL_WORDS>(form, args, record, call_words, out, first, end);
    }
}

/* Into how many parts a row is cut, so that all warps have work, each at least one look at all its lanes' vectors. */
template <class FORM> EP_DEVICE int ep_parts(int tokens, int warps, int vectors)
{
    int most = (vectors + 32 * FORM::AT_ONCE - 1) / (32 * FORM::AT_ONCE);
    int parts = tokens > 0 ? (warps + tokens - 1) / tokens : 1;
    return parts < most ? parts : most;
}

#endif
