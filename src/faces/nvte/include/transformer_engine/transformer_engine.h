/* transformer_engine/transformer_engine.h: of TransformerEngine's C interface what its calls of expert parallelism
 * take, for programs without TransformerEngine: names and values are its own, NVTETensor is a descriptor of
 * libweft_nvte_ep's, so that programs are source compatible only. Programs with TransformerEngine include its header,
 * which has the same guard, and give its tensors. */
#ifndef TRANSFORMER_ENGINE_TRANSFORMER_ENGINE_H_
#define TRANSFORMER_ENGINE_TRANSFORMER_ENGINE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_include
#define WEFT_NVTE_WITHOUT_CUDA
#elif !defined(WEFT_NVTE_WITHOUT_CUDA)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#define WEFT_NVTE_WITHOUT_CUDA
#endif
#endif
#ifdef WEFT_NVTE_WITHOUT_CUDA /* of CUDA's runtime only the type of a stream is needed */
typedef struct CUstream_st *cudaStream_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum NVTEDType {
    kNVTEByte = 0,
    kNVTEInt16 = 1,
    kNVTEInt32 = 2,
    kNVTEInt64 = 3,
    kNVTEFloat32 = 4,
    kNVTEFloat16 = 5,
    kNVTEBFloat16 = 6,
    kNVTEFloat8E4M3 = 7,
    kNVTEFloat8E5M2 = 8,
    kNVTEFloat8E8M0 = 9,
    kNVTEFloat4E2M1 = 10,
    kNVTENumTypes
} NVTEDType;

#define WEFT_NVTE_DIMENSIONS_MAX 15

typedef struct NVTEShape {
    size_t data[WEFT_NVTE_DIMENSIONS_MAX];
    size_t ndim;
} NVTEShape;

typedef struct NVTEBasicTensor {
    void *data_ptr;
    NVTEDType dtype;
    NVTEShape shape;
} NVTEBasicTensor;

typedef enum NVTETensorParam {
    kNVTERowwiseData = 0,
    kNVTEColumnwiseData = 1,
    kNVTEScale = 2,
    kNVTEAmax = 3,
    kNVTERowwiseScaleInv = 4,
    kNVTEColumnwiseScaleInv = 5
} NVTETensorParam;

typedef enum NVTEScalingMode {
    NVTE_DELAYED_TENSOR_SCALING = 0, /* none, too */
    NVTE_MXFP8_1D_SCALING = 1,
    NVTE_BLOCK_SCALING_1D = 2,
    NVTE_BLOCK_SCALING_2D = 3
} NVTEScalingMode;

typedef void *NVTETensor;

#define WEFT_NVTE_TENSOR_MAGIC UINT64_C(0x7765667454656e73)

/* What an NVTETensor of this header points to. A program may fill one in itself, where it must not allocate. */
typedef struct weft_nvte_tensor {
    uint64_t magic; /* WEFT_NVTE_TENSOR_MAGIC */
    NVTEScalingMode scaling_mode;
    NVTEBasicTensor data;
    NVTEBasicTensor scale_inv; /* with NVTE_MXFP8_1D_SCALING: a byte for 32 elements of a row */
} weft_nvte_tensor;

/* NULL: no memory. */
static inline NVTETensor nvte_create_tensor(NVTEScalingMode scaling_mode)
{
    weft_nvte_tensor *tensor = (weft_nvte_tensor *)calloc(1, sizeof *tensor);
    if (tensor != NULL) {
        tensor->magic = WEFT_NVTE_TENSOR_MAGIC;
        tensor->scaling_mode = scaling_mode;
    }
    return tensor;
}

static inline void nvte_destroy_tensor(NVTETensor tensor)
{
    free(tensor);
}

static inline NVTEShape nvte_make_shape(const size_t *data, size_t ndim)
{
    NVTEShape shape;
    memset(&shape, 0, sizeof shape);
    shape.ndim = ndim < WEFT_NVTE_DIMENSIONS_MAX ? ndim : WEFT_NVTE_DIMENSIONS_MAX;
    memcpy(shape.data, data, shape.ndim * sizeof *data);
    return shape;
}

/* kNVTERowwiseData and kNVTERowwiseScaleInv are kept. */
static inline void nvte_set_tensor_param(NVTETensor *tensor, NVTETensorParam param_name, const NVTEBasicTensor *param)
{
    if (param_name == kNVTERowwiseData) {
        ((weft_nvte_tensor *)*tensor)->data = *param;
    } else if (param_name == kNVTERowwiseScaleInv) {
        ((weft_nvte_tensor *)*tensor)->scale_inv = *param;
    }
}

static inline void *nvte_tensor_data(const NVTETensor tensor)
{
    return ((const weft_nvte_tensor *)tensor)->data.data_ptr;
}

static inline NVTEShape nvte_tensor_shape(const NVTETensor tensor)
{
    return ((const weft_nvte_tensor *)tensor)->data.shape;
}

static inline size_t nvte_tensor_ndims(const NVTETensor tensor)
{
    return ((const weft_nvte_tensor *)tensor)->data.shape.ndim;
}

static inline size_t nvte_tensor_size(const NVTETensor tensor, const size_t dim)
{
    return ((const weft_nvte_tensor *)tensor)->data.shape.data[dim];
}

static inline NVTEDType nvte_tensor_type(const NVTETensor tensor)
{
    return ((const weft_nvte_tensor *)tensor)->data.dtype;
}

#ifdef __cplusplus
}
#endif
#endif
