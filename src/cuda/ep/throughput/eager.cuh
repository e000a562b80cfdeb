/* cuda/ep/throughput/eager.cuh: the addresses of rows that leave with send and of what goes beside them; what lies
 * where is in cuda/ep/eager.h. Only kernels whose arguments are wefti_cuda_ep_eager_dispatch_args or .._combine_args
 * may call these functions: they get the call's arguments, with which those begin. In all of them `writer` is the rank
 * that stores and `reader` the one in whose area it does. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_EAGER_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_EAGER_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/eager.h"

/* The offsets of the call's kind of kernel. */
EP_DEVICE const wefti_cuda_ep_eager &ep_eager_of(const ep_dispatch &args)
{
    return ((const wefti_cuda_ep_eager_dispatch_args *)&args)->eager;
}

EP_DEVICE const wefti_cuda_ep_eager &ep_eager_of(const ep_combine &args)
{
    return ((const wefti_cuda_ep_eager_combine_args *)&args)->eager;
}

/* The first of the words that say which units have come. */
template <class ARGS> EP_DEVICE wefti_u64 *ep_eager_words(const ARGS &args, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(args.group.area[reader] + ep_eager_of(args).words[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.pushes;
}

/* The address of the first row. */
template <class ARGS> EP_DEVICE wefti_u64 ep_eager_rows(const ARGS &args, const ep_call *call, int reader, int writer)
{
    return args.group.area[reader] + ep_eager_of(args).rows[call->epoch & 1] +
           (wefti_u64)writer * args.group.at.tokens_max * args.row_bytes;
}

/* Of a dispatch: the first of the words that say of which units records and given scales have come. */
EP_DEVICE wefti_u64 *ep_eager_meta_words(const ep_dispatch &args, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(args.group.area[reader] + ep_eager_of(args).meta_words[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.units;
}

/* Of a dispatch: the first record; each has `words` words. */
EP_DEVICE wefti_u32 *ep_eager_records(const ep_dispatch &args, const ep_call *call, int reader, int writer, int words)
{
    return (wefti_u32 *)(args.group.area[reader] + ep_eager_of(args).records[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.tokens_max * (wefti_u64)words;
}

/* Of a dispatch: the scales of row `index`. */
EP_DEVICE wefti_u32 *ep_eager_scales(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                     wefti_u64 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.group.at.tokens_max + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_eager_of(args).scales[call->epoch & 1]) +
           row * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words);
}

/* Of a dispatch by expert: the packed word of this rank that says where the rows of local expert `local` that come from
 * `source` begin among this rank's rows. */
EP_DEVICE wefti_u64 *ep_eager_base(const ep_dispatch &args, int local, int source)
{
    return (wefti_u64 *)(args.group.area[args.group.rank] + ep_eager_of(args).bases) + local * args.group.ranks +
           source;
}

#endif
