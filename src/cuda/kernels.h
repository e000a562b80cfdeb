/* cuda/kernels.h: the library's own kernels, a fat binary inside it: what each is called with. See kernels.cu and
 * kernels_coll.cuh; compiled by gcc and nvcc. */
#ifndef WEFTI_CUDA_KERNELS_H
#define WEFTI_CUDA_KERNELS_H

#include "weft/device/dev.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char wefti_cuda_kernels[];

/* When a kernel is loaded: those with a stack, which the driver reserves for every thread, when they are needed. */
typedef enum wefti_cuda_when {
    WEFTI_CUDA_AT_ATTACH,
    WEFTI_CUDA_FOR_COLLECTIVES, /* with the first collective on a stream */
    WEFTI_CUDA_FOR_FAR /* where a PE is far */
} wefti_cuda_when;

/* X(NAME, threads a block, when): the kernel is wefti_cuda_NAME and takes a wefti_cuda_NAME_args. */
#define WEFTI_CUDA_KERNELS(X)                                                                                          \
    X(word, 1, WEFTI_CUDA_AT_ATTACH)                                                                                   \
    X(put_signal, 256, WEFTI_CUDA_AT_ATTACH)                                                                           \
    X(sync, 32, WEFTI_CUDA_AT_ATTACH)                                                                                  \
    X(exchange, 512, WEFTI_CUDA_AT_ATTACH)                                                                             \
    X(broadcast, 512, WEFTI_CUDA_AT_ATTACH)                                                                            \
    X(collect, 512, WEFTI_CUDA_AT_ATTACH)                                                                              \
    X(alltoallv, 512, WEFTI_CUDA_AT_ATTACH)                                                                            \
    X(reduce_any, 512, WEFTI_CUDA_FOR_COLLECTIVES)                                                                     \
    X(reduce_bits, 512, WEFTI_CUDA_AT_ATTACH)                                                                          \
    X(reduce_bf16, 512, WEFTI_CUDA_AT_ATTACH)                                                                          \
    X(reduce_fp16, 512, WEFTI_CUDA_AT_ATTACH)                                                                          \
    X(sum_float, 512, WEFTI_CUDA_AT_ATTACH)                                                                            \
    X(sum_bf16, 512, WEFTI_CUDA_AT_ATTACH)                                                                             \
    X(sum_fp16, 512, WEFTI_CUDA_AT_ATTACH)                                                                             \
    X(strided, 256, WEFTI_CUDA_AT_ATTACH)                                                                              \
    X(far, 256, WEFTI_CUDA_FOR_FAR)                                                                                    \
    X(wide, 256, WEFTI_CUDA_FOR_FAR)

typedef enum wefti_cuda_kernel {
#define WEFTI_CUDA_KERNEL(NAME, threads, when) WEFTI_CUDA_KERNEL_##NAME,
    WEFTI_CUDA_KERNELS(WEFTI_CUDA_KERNEL)
#undef WEFTI_CUDA_KERNEL
        WEFTI_CUDA_KERNEL_COUNT
} wefti_cuda_kernel;

/* One access to one word, by one thread. */
typedef enum wefti_cuda_what {
    WEFTI_CUDA_AMO, /* op: a wefti_amo_op; `bits` is 32 or 64; `old` gets the value before, unless 0 */
    WEFTI_CUDA_STORE, /* of `bits` bits, 8 to 64 */
    WEFTI_CUDA_SIGNAL, /* op: a weft_signal_op */
    WEFTI_CUDA_WAIT /* op: a weft_cmp; kind: a wefti_word_kind */
} wefti_cuda_what;

typedef struct wefti_cuda_word_args {
    weft_dev dev;
    wefti_i32 what;
    wefti_i32 op;
    wefti_i32 bits;
    wefti_i32 kind;
    wefti_u64 at; /* on whichever PE */
    wefti_u64 value;
    wefti_u64 cond;
    wefti_u64 old; /* address of the word that gets the value before */
} wefti_cuda_word_args;

typedef struct wefti_cuda_put_signal_args {
    weft_dev dev;
    wefti_u64 dest;
    wefti_u64 source;
    wefti_u64 bytes;
    wefti_u64 signal;
    wefti_u64 value;
    wefti_i32 op;
    wefti_i32 pe;
} wefti_cuda_put_signal_args;

/* Elements that lie apart, as words of `width` bytes. */
typedef struct wefti_cuda_strided_args {
    weft_dev dev;
    wefti_i32 is_get;
    wefti_i32 is_far;
    wefti_i32 pe;
    wefti_u32 width; /* 1, 2, 4 or 8 */
    wefti_u32 words; /* of an element */
    wefti_u64 to;
    wefti_u64 to_step;
    wefti_u64 from;
    wefti_u64 from_step;
    wefti_u64 count;
} wefti_cuda_strided_args;

/* An access to a far PE. */
typedef enum wefti_cuda_far_what {
    WEFTI_CUDA_FAR_PUT, /* `bytes` bytes from `local` to `address` */
    WEFTI_CUDA_FAR_GET,
    WEFTI_CUDA_FAR_STORE, /* the low `bits` bits of `value` */
    WEFTI_CUDA_FAR_AMO, /* op: a wefti_amo_op; `old`, unless 0, gets the value before */
    WEFTI_CUDA_FAR_QUIET
} wefti_cuda_far_what;

typedef struct wefti_cuda_far_args {
    weft_dev dev;
    wefti_i32 what;
    wefti_i32 op;
    wefti_i32 bits;
    wefti_i32 pe;
    wefti_u64 address;
    wefti_u64 local;
    wefti_u64 bytes;
    wefti_u64 value;
    wefti_u64 cond;
    wefti_u64 old;
} wefti_cuda_far_args;

typedef struct wefti_cuda_sync_args {
    weft_dev_team team;
} wefti_cuda_sync_args;

/* All collectives. What a kernel does not name it does not read. */
typedef struct wefti_cuda_coll_args {
    weft_dev_team team;
    wefti_u64 dest;
    wefti_u64 source;
    wefti_u64 bytes; /* of a block; of dest for reductions */
    wefti_u64 part; /* reduce_scatter: bytes of a block of the source; else 0 */
    wefti_i32 way; /* a wefti_way; wide: a wefti_wide_kind, or one of the two below */
    wefti_i32 is_alltoall; /* exchange: not fcollect */
    wefti_i32 root;
    wefti_i32 dtype; /* reductions */
    wefti_i32 op;
    const wefti_u64 *receive_offsets; /* alltoallv */
    const wefti_u64 *send_offsets;
    const wefti_u64 *send_bytes;
} wefti_cuda_coll_args;

#define WEFTI_CUDA_WIDE_REDUCE (-1)
#define WEFTI_CUDA_WIDE_SYNC (-2)

typedef wefti_cuda_coll_args wefti_cuda_wide_args, wefti_cuda_exchange_args, wefti_cuda_broadcast_args,
    wefti_cuda_collect_args, wefti_cuda_alltoallv_args, wefti_cuda_reduce_any_args, wefti_cuda_reduce_bits_args,
    wefti_cuda_reduce_bf16_args, wefti_cuda_reduce_fp16_args, wefti_cuda_sum_float_args, wefti_cuda_sum_bf16_args,
    wefti_cuda_sum_fp16_args;

#ifdef __cplusplus
}
#endif
#endif
