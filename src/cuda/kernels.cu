/* cuda/kernels.cu: what the host cannot do on device memory itself. Embedded in the library, loaded at attach.
 *
 * wefti_cuda_amo: one atomic by one thread, <<<1, 1>>>. The word may be any PE's; the value before goes to a word of the
 * host's memory, which the host reads after the stream has ended. Acquires and releases, so that host calls are ordered
 * as on the host backend. */
#include "weft_device.cuh"

typedef struct wefti_cuda_amo_args {
    int op; /* wefti_amo_op */
    int bits;
    wefti_u64 word;
    wefti_u64 value;
    wefti_u64 cond;
    wefti_u64 old;
} wefti_cuda_amo_args;

/* The values of wefti_amo_op. */
enum { OP_FETCH, OP_SET, OP_SWAP, OP_COMPARE_SWAP, OP_ADD, OP_AND, OP_OR, OP_XOR };

template <class T> static __device__ T apply(const wefti_cuda_amo_args &args)
{
    T *word = (T *)args.word;
    T value = (T)args.value;
    switch (args.op) {
    case OP_SET:
    case OP_SWAP:
        return wefti_atomic_swap(word, value);
    case OP_COMPARE_SWAP:
        return wefti_atomic_cas(word, (T)args.cond, value);
    case OP_ADD:
        return wefti_atomic_add(word, value);
    case OP_AND:
        return wefti_atomic_and(word, value);
    case OP_OR:
        return wefti_atomic_or(word, value);
    case OP_XOR:
        return wefti_atomic_xor(word, value);
    default:
        return wefti_ld_acquire(word);
    }
}

extern "C" __global__ void wefti_cuda_amo(wefti_cuda_amo_args args)
{
    wefti_fence_sc();
    wefti_u64 old = args.bits == 64 ? apply<wefti_u64>(args) : apply<wefti_u32>(args);
    wefti_fence_sc();
    *(wefti_u64 *)args.old = old;
}
