/* cuda/ep/domains/values.cuh: values of received rows on their way back, a float a choice: those that a combine sends
 * back, gradients of weights. They go as rows of K floats of their own, which are added up as a combine adds rows: in
 * ascending rank of a domain, then in ascending domain, in float32 with no rounding between.
 *
 * Grid, shared memory and flags: as of local.cuh.
 *
 *     combine_spreads   a warp a received token: its values to a row of `results`
 *     combine_dots      the same of a backward of a combine: the dot products of its gradient and its rows
 *     (the inner combine, combine_crosses and combine_totals, into `rows`)
 *     combine_gathers   a thread a choice: from there to the caller
 *
 * Bytes: 4 a (received token, choice) and (token, choice), each read and written; combine_dots reads a gradient a
 * received token and a row a choice here. Floor: these bytes over the rate of the GPU's memory. */
#ifndef WEFTI_CUDA_EP_DOMAINS_VALUES_CUH
#define WEFTI_CUDA_EP_DOMAINS_VALUES_CUH

#include "cuda/ep/device/dot.cuh"
#include "cuda/ep/domains/call.cuh"

/* The row of values of a received token. */
EP_DEVICE float *ep_domains_values(const ep_domains &args, int number)
{
    return (float *)(args.group.results + (wefti_u64)number * args.places * sizeof(float));
}

/* The caller's value of choice k of a received token. A lane. */
EP_DEVICE float ep_domains_value(const ep_domains &args, int number, int k)
{
    const wefti_u64 at = (wefti_u64)number * (wefti_u64)args.topk;
    if (args.by_expert != 0) {
        const wefti_i32 row = args.tables.row[at + (wefti_u64)k];
        return row >= 0 ? args.values_in[row] : 0.0f;
    }
    const bool takes = args.of_owners == 0 || args.tables.here[at + (wefti_u64)k] != 0;
    return takes ? args.values_in[(wefti_u64)args.tables.row[at] * (wefti_u64)args.topk + (wefti_u64)k] : 0.0f;
}

EP_DEVICE void ep_domains_spread(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int number = warps.number; number < *args.inner_rows; number += warps.count) {
        float *to = ep_domains_values(args, number);
        for (int k = ep_lane(); k < (int)args.places; k += 32) {
            to[k] = k < args.topk ? ep_domains_value(args, number, k) : 0.0f;
        }
    }
}

/* The dot products of a received token. A warp. */
template <int DTYPE> EP_DEVICE void ep_domains_dot(const ep_domains &args, int number)
{
    const wefti_u64 at = (wefti_u64)number * (wefti_u64)args.topk;
    const unsigned char *gradient = args.group.received + (wefti_u64)number * args.wide_bytes;
    const int vectors = (int)(args.row_bytes / 16);
    float *to = ep_domains_values(args, number);
    float dot = 0.0f;
    if (args.by_expert == 0) { /* one row for all */
        dot = ep_dot<DTYPE>(args.rows + (wefti_u64)args.tables.row[at] * args.rows_pitch, gradient, vectors);
    }
    for (int k = 0; k < (int)args.places; k++) {
        const bool is_here = k < args.topk && args.tables.here[at + (wefti_u64)k] != 0;
        if (is_here && args.by_expert != 0) {
            const wefti_i32 row = args.tables.row[at + (wefti_u64)k];
            dot = ep_dot<DTYPE>(args.rows + (wefti_u64)row * args.rows_pitch, gradient, vectors);
        }
        if (ep_lane() == 0) {
            to[k] = is_here ? dot : 0.0f;
        }
    }
}

EP_DEVICE void ep_domains_dots(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int number = warps.number; number < *args.inner_rows; number += warps.count) {
        if (args.dtype == WEFT_EP_BF16) {
            ep_domains_dot<WEFT_EP_BF16>(args, number);
        } else if (args.dtype == WEFT_EP_F16) {
            ep_domains_dot<WEFT_EP_F16>(args, number);
        } else {
            ep_domains_dot<WEFT_EP_F32>(args, number);
        }
    }
}

EP_DEVICE void ep_domains_gather(const ep_domains &args)
{
    const ep_warp_group threads = ep_domains_grid();
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int i = threads.number; i < args.tables.route_header->tokens * args.topk; i += threads.count) {
        const float *from = (const float *)(args.group.rows + (wefti_u64)(i / args.topk) * args.row_bytes);
        args.values_out[i] = from[i % args.topk];
    }
}

#endif
