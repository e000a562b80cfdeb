/* cuda/kernels_far.cuh: what needs a proxy: accesses of streams to far PEs, and collectives of wide teams.
 *
 * far   <<<1, 256>>>      one access: its request, and the answer if it has one
 * wide  <<<blocks, 256>>> any collective, or sync by one block: block i takes slice i of the data through channel i, as
 * in kernels_coll.cuh */
#ifndef WEFTI_CUDA_KERNELS_FAR_CUH
#define WEFTI_CUDA_KERNELS_FAR_CUH

#include "cuda/kernel.cuh"
#include "cuda/reduce_any.cuh"

static WEFTI_DEVICE void far_amo(const wefti_cuda_far_args &args)
{
    const wefti_u64 place = wefti_far_place(&args.dev, args.address, (wefti_u64)args.bits / 8, args.pe);
    const wefti_u32 ask = wefti_far_ask(WEFTI_DEV_REQUEST_AMO, args.op, args.bits, args.old != 0);
    const wefti_u64 ticket =
        place == 0 ? WEFTI_NO_TICKET : wefti_far_word(&args.dev, ask, place, args.value, args.cond, args.pe);
    if (args.old == 0 || ticket == WEFTI_NO_TICKET) {
        return;
    }
    const wefti_u64 old = wefti_far_fetch(&args.dev, ticket, args.pe);
    if (args.bits == 64) {
        *(wefti_u64 *)args.old = old;
    } else {
        *(wefti_u32 *)args.old = (wefti_u32)old;
    }
}

DEFINE_KERNEL(far, 256)
{
    (void)slice;
    switch (args.what) {
    case WEFTI_CUDA_FAR_PUT:
        (void)wefti_far_put(scope, &args.dev, args.address, args.local, args.bytes, args.pe);
        break;
    case WEFTI_CUDA_FAR_GET:
        (void)wefti_far_get(scope, &args.dev, args.local, args.address, args.bytes, args.pe);
        break;
    case WEFTI_CUDA_FAR_STORE:
        if (scope.rank == 0) {
            (void)wefti_far_p(&args.dev, args.address, args.value, (wefti_u32)args.bits / 8, args.pe);
        }
        break;
    case WEFTI_CUDA_FAR_AMO:
        if (scope.rank == 0) {
            far_amo(args);
        }
        break;
    default:
        if (scope.rank == 0) {
            (void)weft_dev_quiet(args.dev);
        }
        break;
    }
}

DEFINE_KERNEL(wide, 256)
{
    if (args.way == WEFTI_CUDA_WIDE_SYNC) {
        (void)weft_dev_sync(scope, args.team);
        return;
    }
    if (args.way == WEFTI_CUDA_WIDE_REDUCE) {
        const wefti_vector vector = {args.dest, args.source, args.bytes, args.part};
        (void)wefti_wide_reduce(scope, &args.team, slice, any_reducer{args.dtype, args.op}, vector);
        return;
    }
    const wefti_v v = {args.send_offsets, args.send_bytes, args.receive_offsets};
    const wefti_wide_move move = {(wefti_wide_kind)args.way, args.root, args.dest, args.source, args.bytes, v};
    (void)wefti_wide_collective(scope, &args.team, slice, move);
}

#endif
