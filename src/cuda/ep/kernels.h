/* cuda/ep/kernels.h: the kernels of expert parallelism, a fat binary inside the library; see kernels.cu. */
#ifndef WEFTI_CUDA_EP_KERNELS_H
#define WEFTI_CUDA_EP_KERNELS_H

extern const unsigned char wefti_cuda_ep_kernels[];

#define WEFTI_CUDA_EP_THREADS 512
#define WEFTI_CUDA_EP_STAGES 6
#define WEFTI_CUDA_EP_PIPE_HEAD 128 /* bytes of a pipe beside its stages */
#define WEFTI_CUDA_EP_META_STAGE_BYTES 2048 /* stage of a warp that sends scales */
#define WEFTI_CUDA_EP_SHARED_MAX (212 << 10) /* the most that a block asks for when it is launched */

#endif
