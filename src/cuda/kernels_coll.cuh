/* cuda/kernels_coll.cuh: collectives on streams: <<<blocks, 512>>>, as many blocks on all members. Block i takes slice
 * i of the data through channel i of the team by the collectives of the device API; blocks never wait for blocks that
 * may not have started. */
#ifndef WEFTI_CUDA_KERNELS_COLL_CUH
#define WEFTI_CUDA_KERNELS_COLL_CUH

#include "cuda/kernel.cuh"
#include "cuda/reduce_any.cuh"

DEFINE_KERNEL(exchange, 512)
{
    if (args.is_alltoall) {
        (void)wefti_exchange<true>(scope, args.team, slice, (wefti_way)args.way, (void *)args.dest,
                                   (const void *)args.source, args.bytes);
    } else {
        (void)wefti_exchange<false>(scope, args.team, slice, (wefti_way)args.way, (void *)args.dest,
                                    (const void *)args.source, args.bytes);
    }
}

DEFINE_KERNEL(broadcast, 512)
{
    (void)wefti_broadcast(scope, args.team, slice, (wefti_way)args.way, (void *)args.dest, (const void *)args.source,
                          args.bytes, args.root);
}

DEFINE_KERNEL(collect, 512)
{
    (void)wefti_collect(scope, args.team, slice, (void *)args.dest, (const void *)args.source, args.bytes);
}

DEFINE_KERNEL(alltoallv, 512)
{
    const wefti_v v = {args.send_offsets, args.send_bytes, args.receive_offsets};
    (void)wefti_alltoallv(scope, args.team, slice, (void *)args.dest, (const void *)args.source, v);
}

template <class R>
static WEFTI_DEVICE void reduce(const wefti_cuda_coll_args &args, weft_scope scope, wefti_slice slice, const R &reducer)
{
    const wefti_vector vector = {args.dest, args.source, args.bytes, args.part};
    (void)wefti_reduce(scope, args.team, slice, (wefti_way)args.way, reducer, vector);
}

DEFINE_KERNEL(reduce_any, 512)
{
    reduce(args, scope, slice, any_reducer{args.dtype, args.op});
}

DEFINE_KERNEL(reduce_bits, 512)
{
    reduce(args, scope, slice, bits_reducer{args.dtype, args.op});
}

DEFINE_KERNEL(reduce_bf16, 512)
{
    reduce(args, scope, slice, op_reducer<weft_bf16>{args.op});
}

DEFINE_KERNEL(reduce_fp16, 512)
{
    reduce(args, scope, slice, op_reducer<weft_fp16>{args.op});
}

DEFINE_KERNEL(sum_float, 512)
{
    reduce(args, scope, slice, wefti_reducer<float, WEFT_OP_SUM>());
}

DEFINE_KERNEL(sum_bf16, 512)
{
    reduce(args, scope, slice, wefti_reducer<weft_bf16, WEFT_OP_SUM>());
}

DEFINE_KERNEL(sum_fp16, 512)
{
    reduce(args, scope, slice, wefti_reducer<weft_fp16, WEFT_OP_SUM>());
}

#endif
