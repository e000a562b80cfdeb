/* cuda/ep/throughput/eager.cuh: where rows lie that leave with send (cuda/ep/eager.h), for the parts of dispatches and
 * combines that have kernels of their own for them. Those parts get the call's arguments, with which such a kernel's
 * begin. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_EAGER_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_EAGER_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/eager.h"

EP_DEVICE const wefti_cuda_ep_eager &ep_eager_of(const ep_dispatch &args)
{
    return ((const wefti_cuda_ep_eager_dispatch_args *)&args)->eager;
}

EP_DEVICE const wefti_cuda_ep_eager &ep_eager_of(const ep_combine &args)
{
    return ((const wefti_cuda_ep_eager_combine_args *)&args)->eager;
}

/* The words, and the rows, that `writer` writes at `reader` in this call. */
template <class ARGS> EP_DEVICE wefti_u64 *ep_eager_words(const ARGS &args, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(args.group.area[reader] + ep_eager_of(args).words[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.pushes;
}

template <class ARGS> EP_DEVICE wefti_u64 ep_eager_rows(const ARGS &args, const ep_call *call, int reader, int writer)
{
    return args.group.area[reader] + ep_eager_of(args).rows[call->epoch & 1] +
           (wefti_u64)writer * args.group.at.tokens_max * args.row_bytes;
}

/* Of a dispatch, what goes beside them. The words of its units; */
EP_DEVICE wefti_u64 *ep_eager_meta_words(const ep_dispatch &args, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(args.group.area[reader] + ep_eager_of(args).meta_words[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.units;
}

/* records, of `words` words each; */
EP_DEVICE wefti_u32 *ep_eager_records(const ep_dispatch &args, const ep_call *call, int reader, int writer, int words)
{
    return (wefti_u32 *)(args.group.area[reader] + ep_eager_of(args).records[call->epoch & 1]) +
           (wefti_u64)writer * args.group.at.tokens_max * (wefti_u64)words;
}

/* the scales of row `index`; */
EP_DEVICE wefti_u32 *ep_eager_scales(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                     wefti_u64 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.group.at.tokens_max + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_eager_of(args).scales[call->epoch & 1]) +
           row * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words);
}

/* and, by expert, the row here of the first of a source's rows of local expert `local`. */
EP_DEVICE wefti_u64 *ep_eager_base(const ep_dispatch &args, int local, int source)
{
    return (wefti_u64 *)(args.group.area[args.group.rank] + ep_eager_of(args).bases) + local * args.group.ranks +
           source;
}

#endif
