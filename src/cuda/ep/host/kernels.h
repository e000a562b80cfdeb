/* cuda/ep/host/kernels.h: the kernels of expert parallelism, a fat binary inside the library; see kernels.cu. */
#ifndef WEFTI_CUDA_EP_HOST_KERNELS_H
#define WEFTI_CUDA_EP_HOST_KERNELS_H

extern const unsigned char wefti_cuda_ep_kernels[];

/* A kernel's name, of its length and name, as C++ writes that of a class's constructor: profilers show variants of a
 * class, C1 to C5, as one kernel, weft::NAME::NAME(). Programs that time a call by the name of its kernel count both
 * halves that way, and a combine with or without options; they look for names that hold dispatch_kernel or
 * combine_kernel (NCCL EP's), or only dispatch or combine (DeepEP's). */
#define EP_KERNEL_NAME(NAME, VARIANT) _ZN4weft##NAME##VARIANT##Ev
/* The variants: a whole call, its send, its recv; whole and recv of a combine with options. */
enum {
    WEFTI_CUDA_EP_VARIANT_WHOLE = 1,
    WEFTI_CUDA_EP_VARIANT_SEND = 2,
    WEFTI_CUDA_EP_VARIANT_RECV = 3,
    WEFTI_CUDA_EP_VARIANT_WHOLE_WITH = 4,
    WEFTI_CUDA_EP_VARIANT_RECV_WITH = 5
};

#define WEFTI_CUDA_EP_THREADS 512
#define WEFTI_CUDA_EP_STAGES 6
#define WEFTI_CUDA_EP_PIPE_HEAD 128 /* bytes of a pipe beside its stages */
#define WEFTI_CUDA_EP_META_STAGE_BYTES 2048 /* stage of a warp that sends scales */
#define WEFTI_CUDA_EP_SHARED_MAX (212 << 10) /* the most that a block asks for when it is launched */

#endif
