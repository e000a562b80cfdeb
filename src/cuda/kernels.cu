/* cuda/kernels.cu: the library's own kernels, embedded in it and loaded at attach: words, signals, sync. Collectives:
 * below, by include, so that one binary has all.
 *
 * word        <<<1, 1>>>    one access to a word of any PE. Atomics acquire and release, so that host calls are ordered
 * as on
 *                           the host backend; a signal releases what the stream did before; a wait acquires
 * put_signal  <<<1, 256>>>  few bytes, then the signal with release
 * sync        <<<1, 32>>>   weft_dev_sync of a team without far members: every member adds to every other's count, and
 * waits for its own strided     <<<blocks, 256>>> elements that lie apart, shared out among all threads far
 * <<<1, 256>>>  what goes through the proxy: see kernels_far.cuh, which also has collectives of wide teams */
#define WEFTI_FAR_LOCAL_IS_COPIED /* see weft/device/far.cuh: local memory is what a call of the host has named */
#include "cuda/kernel.cuh"

template <class T> struct float_of;
template <> struct float_of<wefti_u32> {
    typedef float type;
};
template <> struct float_of<wefti_u64> {
    typedef double type;
};

template <class T> static WEFTI_DEVICE T apply(const wefti_cuda_word_args &args)
{
    typedef typename float_of<T>::type real;
    T *word = (T *)args.at;
    T value = (T)args.value;
    switch (args.op) {
    case WEFTI_DEV_AMO_SET:
    case WEFTI_DEV_AMO_SWAP:
        return wefti_atomic_swap(word, value);
    case WEFTI_DEV_AMO_COMPARE_SWAP:
        return wefti_atomic_cas(word, (T)args.cond, value);
    case WEFTI_DEV_AMO_ADD:
        return wefti_atomic_add(word, value);
    case WEFTI_DEV_AMO_AND:
        return wefti_atomic_and(word, value);
    case WEFTI_DEV_AMO_OR:
        return wefti_atomic_or(word, value);
    case WEFTI_DEV_AMO_XOR:
        return wefti_atomic_xor(word, value);
    case WEFTI_DEV_AMO_ADD_FLOAT:
        return (T)wefti_dev_bits(wefti_atomic_add((real *)word, wefti_dev_value<real>(value)));
    default:
        return wefti_ld_acquire(word);
    }
}

/* The value before goes to memory of the width of the variable. */
template <class T> static WEFTI_DEVICE void amo(const wefti_cuda_word_args &args)
{
    wefti_fence_sc();
    T old = apply<T>(args);
    wefti_fence_sc();
    if (args.old != 0) {
        *(T *)args.old = old;
    }
}

static WEFTI_DEVICE void store(const wefti_cuda_word_args &args)
{
    switch (args.bits) {
    case 8:
        wefti_st_relaxed((unsigned char *)args.at, (unsigned char)args.value);
        break;
    case 16:
        wefti_st_relaxed((unsigned short *)args.at, (unsigned short)args.value);
        break;
    case 32:
        wefti_st_relaxed((wefti_u32 *)args.at, (wefti_u32)args.value);
        break;
    default:
        wefti_st_relaxed((wefti_u64 *)args.at, args.value);
        break;
    }
}

template <class T> static WEFTI_DEVICE void wait(const wefti_cuda_word_args &args)
{
    (void)weft_dev_wait_until(weft_thread(), args.dev, (const T *)args.at, (weft_cmp)args.op, (T)args.value);
}

/* Of 16 bits, which have no acquire of their own. */
template <class T> static WEFTI_DEVICE void wait_narrow(const wefti_cuda_word_args &args)
{
    wefti_dev_waiter waiter = {0, 0};
    int status = WEFT_OK;
    while (status == WEFT_OK &&
           !wefti_dev_holds((T)wefti_ld_relaxed((const unsigned short *)args.at), (weft_cmp)args.op, (T)args.value)) {
        status = wefti_dev_pause_flat(args.dev, &waiter);
    }
    wefti_fence_acq_rel();
    if (status == WEFT_ERR_TIMEOUT) {
        (void)wefti_dev_latch(&args.dev, status, -1);
    }
}

static WEFTI_DEVICE void wait_kind(const wefti_cuda_word_args &args)
{
    switch (args.kind) {
    case 0:
        wait<wefti_i32>(args);
        break;
    case 1:
        wait<wefti_u32>(args);
        break;
    case 2:
        wait<wefti_i64>(args);
        break;
    case 4:
        wait_narrow<short>(args);
        break;
    case 5:
        wait_narrow<unsigned short>(args);
        break;
    default:
        wait<wefti_u64>(args);
        break;
    }
}

DEFINE_KERNEL(word, 1)
{
    (void)scope;
    (void)slice;
    switch (args.what) {
    case WEFTI_CUDA_AMO:
        if (args.bits == 64) {
            amo<wefti_u64>(args);
        } else {
            amo<wefti_u32>(args);
        }
        break;
    case WEFTI_CUDA_STORE:
        store(args);
        break;
    case WEFTI_CUDA_SIGNAL:
        wefti_dev_signal_at(args.at, args.value, (weft_signal_op)args.op);
        break;
    default:
        wait_kind(args);
        break;
    }
}

DEFINE_KERNEL(put_signal, 256)
{
    (void)slice;
    (void)weft_dev_put_signal(scope, args.dev, (void *)args.dest, (const void *)args.source, args.bytes,
                              (wefti_u64 *)args.signal, args.value, (weft_signal_op)args.op, args.pe);
}

DEFINE_KERNEL(sync, 32)
{
    (void)slice;
    const weft_scope warp = wefti_first_warp(scope);
    (void)wefti_dev_sync_of<false>(warp, args.team);
}

template <class W> static WEFTI_DEVICE void strided(const wefti_cuda_strided_args &args, weft_scope grid)
{
    const wefti_strided all = {args.to, args.to_step, args.from, args.from_step, args.count, args.words};
    if (args.is_far) {
        (void)(args.is_get ? wefti_far_iget<W>(grid, &args.dev, all, args.pe)
                           : wefti_far_iput<W>(grid, &args.dev, all, args.pe));
    } else if (args.is_get) {
        wefti_strided_copy<wefti_strided_get, W>(grid, all);
    } else {
        wefti_strided_copy<wefti_strided_put, W>(grid, all);
    }
}

DEFINE_KERNEL(strided, 256)
{
    const weft_scope grid = {slice.index * scope.size + scope.rank, slice.count * scope.size, WEFTI_SCOPE_THREAD};
    switch (args.width) {
    case 8:
        strided<wefti_u64>(args, grid);
        break;
    case 4:
        strided<wefti_u32>(args, grid);
        break;
    case 2:
        strided<unsigned short>(args, grid);
        break;
    default:
        strided<unsigned char>(args, grid);
        break;
    }
}

#include "cuda/kernels_coll.cuh"
#include "cuda/kernels_far.cuh"
