/* nccl_ep.h: NCCL EP's interface, on weft: its names, values and binary layout, written for libweft_nccl_ep from its
 * documentation.
 *
 * What a call does is in docs/nccl-ep.md, with a table of what differs. Every function returns a result code; after one
 * other than ncclSuccess, weft_last_error (weft/status.h) says what was wrong. Nothing exits.
 *
 * Structs begin with their size and a magic number, which the _INIT macros set; a struct may be of an older header (as
 * long as its _V1_SIZE) or of a newer one, whose further fields are not read. Tensors are described, never owned: the
 * descriptor and its `sizes` must live during the call that takes them, the data until the call is complete on its
 * stream. */
#ifndef WEFT_NCCL_EP_H
#define WEFT_NCCL_EP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif
#include <nccl.h>

#include "nccl_ep/ep_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_EP_MAJOR 0
#define NCCL_EP_MINOR 2
#define NCCL_EP_PATCH 0
#define NCCL_EP_VERSION_CODE (NCCL_EP_MAJOR * 10000 + NCCL_EP_MINOR * 100 + NCCL_EP_PATCH)

#define NCCL_EP_API_VERSION 3
#define NCCL_EP_MAGIC 0xC00FFFEEu
#define NCCL_EP_TENSOR_MAGIC 0xCAFECAFE

/* Two 4-bit floats in a byte: a value that NCCL keeps for it. */
#ifndef ncclFloat4x2
#define ncclFloat4x2 ((ncclDataType_t)12)
#endif

#define NCCL_EP_STRUCT_INIT(type, cookie) ((type){.size = (unsigned int)sizeof(type), .magic = (cookie)})

/* Where a field ends, and whether the caller's struct has it. */
#define NCCL_EP_FIELD_END(type, field) ((unsigned int)(offsetof(type, field) + sizeof(((type *)0)->field)))
#define NCCL_EP_HAS_FIELD(ptr, type, field) ((ptr) != NULL && (ptr)->size >= NCCL_EP_FIELD_END(type, field))

/* A struct of its current version is as large as base##_Vn_SIZE says, and version n of it ends there. */
#if defined(__cplusplus)
#define NCCL_EP_STATIC_ASSERT(condition, text) static_assert(condition, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define NCCL_EP_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#else
#define NCCL_EP_STATIC_ASSERT(condition, text) struct nccl_ep_before_c11
#endif
#define NCCL_EP_STATIC_ASSERT_STRUCT_ABI(type, base) NCCL_EP_STATIC_ASSERT_SIZE_(type, base, base##_CURRENT_VERSION)
#define NCCL_EP_STATIC_ASSERT_SIZE_(type, base, version) NCCL_EP_STATIC_ASSERT_SIZE_OF_(type, base, version)
#define NCCL_EP_STATIC_ASSERT_SIZE_OF_(type, base, version)                                                            \
    NCCL_EP_STATIC_ASSERT(offsetof(type, size) == 0 && offsetof(type, magic) == sizeof(unsigned int) &&                \
                              sizeof(type) == base##_V##version##_SIZE && (version) <= NCCL_EP_API_VERSION,            \
                          #type " is not its version " #version)
#define NCCL_EP_STATIC_ASSERT_STRUCT_ABI_BOUNDARY(type, base, version)                                                 \
    NCCL_EP_STATIC_ASSERT(NCCL_EP_FIELD_END(type, base##_V##version##_LAST_FIELD) == base##_V##version##_SIZE &&       \
                              (version) <= base##_CURRENT_VERSION,                                                     \
                          #type " does not end its version " #version " there")

/* *version: NCCL_EP_VERSION_CODE of the interface that the library has. */
ncclResult_t ncclEpGetVersion(int *version);

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

typedef struct ncclEpTensor {
    unsigned int size;
    unsigned int magic; /* NCCL_EP_TENSOR_MAGIC, or what ncclEpTensorAlloc sets */
    unsigned int ndim;
    ncclDataType_t datatype;
    void *data; /* device memory, or NULL with a window */
    ncclWindow_t win_hdl; /* NULL: `data` */
    uint64_t win_offset; /* in the window, in bytes */
    size_t *sizes; /* [ndim] */
} ncclEpTensor_t;

#define NCCL_EP_TENSOR_INIT_INLINE .size = (unsigned int)sizeof(ncclEpTensor_t), .magic = NCCL_EP_TENSOR_MAGIC
#define NCCL_EP_TENSOR_INIT ((ncclEpTensor_t){NCCL_EP_TENSOR_INIT_INLINE})
#define NCCL_EP_TENSOR_SIZE ((unsigned int)sizeof(ncclEpTensor_t))
#define NCCL_EP_TENSOR_V1_SIZE 48u
#define NCCL_EP_TENSOR_V1_LAST_FIELD sizes
#define NCCL_EP_TENSOR_CURRENT_VERSION 1

typedef struct {
    unsigned int size;
    unsigned int magic;
} ncclEpTensorAllocConfig_t;

#define NCCL_EP_TENSOR_ALLOC_CONFIG_INIT NCCL_EP_STRUCT_INIT(ncclEpTensorAllocConfig_t, NCCL_EP_MAGIC)
#define NCCL_EP_TENSOR_ALLOC_CONFIG_SIZE ((unsigned int)sizeof(ncclEpTensorAllocConfig_t))
#define NCCL_EP_TENSOR_ALLOC_CONFIG_V1_SIZE 8u
#define NCCL_EP_TENSOR_ALLOC_CONFIG_V1_LAST_FIELD magic
#define NCCL_EP_TENSOR_ALLOC_CONFIG_CURRENT_VERSION 1

/* A descriptor in the library's memory with its own copy of `sizes`, without data. config may be NULL. */
ncclResult_t ncclEpTensorAlloc(ncclEpTensor_t **tensor, unsigned int ndim, ncclDataType_t datatype, const size_t *sizes,
                               const ncclEpTensorAllocConfig_t *config);
/* Free one; NULL is allowed. */
ncclResult_t ncclEpTensorDestroy(ncclEpTensor_t *tensor);

/* ---- groups ------------------------------------------------------------------------------------------------------ */

typedef cudaError_t (*ncclEpAllocFn_t)(void **ptr, size_t size, void *context);
typedef cudaError_t (*ncclEpFreeFn_t)(void *ptr, void *context);

typedef struct {
    ncclEpAllocFn_t alloc_fn; /* both or neither */
    ncclEpFreeFn_t free_fn;
    void *context;
} ncclEpAllocConfig_t;

typedef struct {
    unsigned int size;
    unsigned int magic;
    unsigned int version; /* NCCL_EP_API_VERSION; not looked at */
    ncclEpAlgorithm_t algorithm;
    unsigned int num_experts; /* a multiple of the ranks */
    unsigned int max_dispatch_tokens_per_rank; /* at least 1, equal on all ranks */
    unsigned int max_recv_tokens_per_rank; /* HT: rows, padding included; NCCL_EP_AUTO: the worst case */
    unsigned int max_token_bytes; /* widest row, a multiple of 16 */
    unsigned long int rdma_buffer_size; /* not used */
    unsigned int num_qp_per_rank; /* not used */
    unsigned int num_channels; /* not used */
    unsigned int max_num_sms; /* NCCL_EP_AUTO: those that nothing claims */
    ncclEpAllocConfig_t alloc; /* for the memory of handles */
    unsigned int enable_mask;
    uint64_t timeout_ns; /* 0: 100 s; the environment's NCCL_EP_TIMEOUT_MS comes before it */
    ncclEpZeroCopyMode_t zero_copy;
    ncclEpOverflowPolicy_t overflow_policy;
    unsigned int num_topk; /* most choices a token; 0: 64, or 16 with AUTO rows in HT, and at most all experts */
    unsigned char padding_v2[4];
    unsigned int dispatch_num_sms; /* those of a dispatch, and of a combine; NCCL_EP_AUTO: max_num_sms */
    unsigned int combine_num_sms;
} ncclEpGroupConfig_t;

#define NCCL_EP_GROUP_CONFIG_INIT                                                                                      \
    ((ncclEpGroupConfig_t){                                                                                            \
        .size = (unsigned int)sizeof(ncclEpGroupConfig_t), .magic = NCCL_EP_MAGIC, .version = NCCL_EP_API_VERSION})
#define NCCL_EP_GROUP_CONFIG_SIZE ((unsigned int)sizeof(ncclEpGroupConfig_t))
#define NCCL_EP_GROUP_CONFIG_V1_SIZE 96u
#define NCCL_EP_GROUP_CONFIG_V2_SIZE 112u
#define NCCL_EP_GROUP_CONFIG_V3_SIZE 120u
#define NCCL_EP_GROUP_CONFIG_V1_LAST_FIELD timeout_ns
#define NCCL_EP_GROUP_CONFIG_V2_LAST_FIELD padding_v2
#define NCCL_EP_GROUP_CONFIG_V3_LAST_FIELD combine_num_sms
#define NCCL_EP_GROUP_CONFIG_CURRENT_VERSION 3

typedef struct ncclEpGroup *ncclEpGroup_t;

/* Collective over the communicator, whose allgather is used here and nowhere else. The group is of the communicator's
 * GPU, which becomes current in the calling thread. */
ncclResult_t ncclEpCreateGroup(ncclEpGroup_t *ep_group, ncclComm_t comm, const ncclEpGroupConfig_t *config);
/* Collective; waits for the GPU. Its handles have still to be destroyed, and take nothing else. NULL is allowed. */
ncclResult_t ncclEpGroupDestroy(ncclEpGroup_t ep_group);

/* ---- what the moves take ----------------------------------------------------------------------------------------- */

typedef struct {
    unsigned int size;
    unsigned int magic;
    ncclEpTensor_t *expert_counters; /* [L] HT, with the handle; LL expert-major, with the dispatch */
    ncclEpTensor_t *src_rank_counters; /* [R] LL rank-major */
    ncclEpTensor_t *expert_offsets; /* [L] HT expert-major: first rows */
    ncclEpTensor_t *recv_total_counter; /* [1] HT: rows, padding included */
    ncclEpExpertIdKind_t recv_topk_idx_kind;
    unsigned char padding_v2[4];
} ncclEpLayoutInfo_t;

#define NCCL_EP_LAYOUT_INFO_INIT NCCL_EP_STRUCT_INIT(ncclEpLayoutInfo_t, NCCL_EP_MAGIC)
#define NCCL_EP_LAYOUT_INFO_SIZE ((unsigned int)sizeof(ncclEpLayoutInfo_t))
#define NCCL_EP_LAYOUT_INFO_V1_SIZE 40u
#define NCCL_EP_LAYOUT_INFO_V2_SIZE 48u
#define NCCL_EP_LAYOUT_INFO_V1_LAST_FIELD recv_total_counter
#define NCCL_EP_LAYOUT_INFO_V2_LAST_FIELD padding_v2
#define NCCL_EP_LAYOUT_INFO_CURRENT_VERSION 2

typedef struct {
    unsigned int size;
    unsigned int magic;
    ncclEpTensor_t *tokens; /* [T][H] */
    ncclEpTensor_t *topk_weights; /* [T][K] float32 */
    ncclEpTensor_t *scales; /* [T][..], of NCCL_EP_DISP_QUANT_FWD */
} ncclEpDispatchInputs_t;

#define NCCL_EP_DISPATCH_INPUTS_INIT NCCL_EP_STRUCT_INIT(ncclEpDispatchInputs_t, NCCL_EP_MAGIC)
#define NCCL_EP_DISPATCH_INPUTS_SIZE ((unsigned int)sizeof(ncclEpDispatchInputs_t))
#define NCCL_EP_DISPATCH_INPUTS_V1_SIZE 32u
#define NCCL_EP_DISPATCH_INPUTS_V1_LAST_FIELD scales
#define NCCL_EP_DISPATCH_INPUTS_CURRENT_VERSION 1

typedef struct {
    unsigned int size;
    unsigned int magic;
    ncclEpTensor_t *tokens;
    ncclEpTensor_t *topk_weights; /* float32; HT expert-major [N], else [..][K] */
    ncclEpTensor_t *scales;
    ncclEpTensor_t *topk_idx; /* int32 [..][K] */
} ncclEpDispatchOutputs_t;

#define NCCL_EP_DISPATCH_OUTPUTS_INIT NCCL_EP_STRUCT_INIT(ncclEpDispatchOutputs_t, NCCL_EP_MAGIC)
#define NCCL_EP_DISPATCH_OUTPUTS_SIZE ((unsigned int)sizeof(ncclEpDispatchOutputs_t))
#define NCCL_EP_DISPATCH_OUTPUTS_V1_SIZE 40u
#define NCCL_EP_DISPATCH_OUTPUTS_V1_LAST_FIELD topk_idx
#define NCCL_EP_DISPATCH_OUTPUTS_CURRENT_VERSION 1

typedef struct {
    unsigned int size;
    unsigned int magic;
    ncclEpTensor_t *tokens;
    ncclEpTensor_t *topk_weights; /* HT backward */
    ncclEpTensor_t *scales; /* [..][..][1] float32: of NCCL_EP_COMB_QUANT_NVFP4, where sums are sent as they are */
} ncclEpCombineInputs_t;

#define NCCL_EP_COMBINE_INPUTS_INIT NCCL_EP_STRUCT_INIT(ncclEpCombineInputs_t, NCCL_EP_MAGIC)
#define NCCL_EP_COMBINE_INPUTS_SIZE ((unsigned int)sizeof(ncclEpCombineInputs_t))
#define NCCL_EP_COMBINE_INPUTS_V1_SIZE 24u
#define NCCL_EP_COMBINE_INPUTS_V2_SIZE 32u
#define NCCL_EP_COMBINE_INPUTS_V1_LAST_FIELD topk_weights
#define NCCL_EP_COMBINE_INPUTS_V2_LAST_FIELD scales
#define NCCL_EP_COMBINE_INPUTS_CURRENT_VERSION 2

typedef struct {
    unsigned int size;
    unsigned int magic;
    ncclEpTensor_t *tokens; /* [T][H] */
    ncclEpTensor_t *topk_weights; /* [T][K]: LL expert-major: read, the weights; HT backward: written */
} ncclEpCombineOutputs_t;

#define NCCL_EP_COMBINE_OUTPUTS_INIT NCCL_EP_STRUCT_INIT(ncclEpCombineOutputs_t, NCCL_EP_MAGIC)
#define NCCL_EP_COMBINE_OUTPUTS_SIZE ((unsigned int)sizeof(ncclEpCombineOutputs_t))
#define NCCL_EP_COMBINE_OUTPUTS_V1_SIZE 24u
#define NCCL_EP_COMBINE_OUTPUTS_V1_LAST_FIELD topk_weights
#define NCCL_EP_COMBINE_OUTPUTS_CURRENT_VERSION 1

/* ---- handles ----------------------------------------------------------------------------------------------------- */

typedef struct ncclEpHandle *ncclEpHandle_t;

typedef struct {
    unsigned int size;
    unsigned int magic;
    size_t dispatch_output_per_expert_alignment; /* HT expert-major: in rows, a power of two; 0 and 1: packed */
} ncclEpHandleConfig_t;

#define NCCL_EP_HANDLE_CONFIG_INIT NCCL_EP_STRUCT_INIT(ncclEpHandleConfig_t, NCCL_EP_MAGIC)
#define NCCL_EP_HANDLE_CONFIG_SIZE ((unsigned int)sizeof(ncclEpHandleConfig_t))
#define NCCL_EP_HANDLE_CONFIG_V1_SIZE 16u
#define NCCL_EP_HANDLE_CONFIG_V1_LAST_FIELD dispatch_output_per_expert_alignment
#define NCCL_EP_HANDLE_CONFIG_CURRENT_VERSION 1

/* The bytes of a handle's memory. LL: num_topk at least 1; HT: 0 or less is the group's most. */
ncclResult_t ncclEpHandleMemSize(ncclEpGroup_t ep_group, ncclEpLayout_t layout, const ncclEpHandleConfig_t *config,
                                 size_t *size_out, int num_topk);
/* Make a handle, locally. handle_mem NULL: the library's memory; else a tensor [bytes] of ncclUint8 that outlives the
 * handle. */
ncclResult_t ncclEpInitHandle(ncclEpHandle_t *handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
                              const ncclEpHandleConfig_t *config, int num_topk, const ncclEpTensor_t *handle_mem);
/* A new routing: topk_idx [T][K], int32 or int64, -1 for none, is copied on the stream. Collective. */
ncclResult_t ncclEpUpdateHandle(ncclEpHandle_t handle, const ncclEpTensor_t *topk_idx,
                                const ncclEpLayoutInfo_t *layout_info, cudaStream_t stream);
/* ncclEpInitHandle and ncclEpUpdateHandle. */
ncclResult_t ncclEpCreateHandle(ncclEpHandle_t *handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
                                const ncclEpTensor_t *topk_idx, const ncclEpLayoutInfo_t *layout_info,
                                const ncclEpHandleConfig_t *config, cudaStream_t stream);
/* Its calls are complete. NULL is allowed. */
ncclResult_t ncclEpHandleDestroy(ncclEpHandle_t handle);

/* ---- moves ------------------------------------------------------------------------------------------------------- */

typedef enum {
    NCCL_EP_DISP_QUANT_NONE = 0,
    NCCL_EP_DISP_QUANT_FWD = 1, /* the caller's fp8 rows and scales */
    NCCL_EP_DISP_QUANT_DS_FP8E3M4 = 2 /* LL: bf16 rows, quantised on the way */
} ncclEpDispQuant_t;

/* The same before the release of 0.2.0. */
typedef ncclEpDispQuant_t ncclEpDispatchQuantizationRecipe_t;
#define NCCL_EP_DISPATCH_QUANT_NONE NCCL_EP_DISP_QUANT_NONE
#define NCCL_EP_DISPATCH_QUANT_SCALES_FORWARD NCCL_EP_DISP_QUANT_FWD
#define NCCL_EP_DISPATCH_QUANT_DS_FP8E3M4 NCCL_EP_DISP_QUANT_DS_FP8E3M4

typedef enum {
    NCCL_EP_COMB_QUANT_NONE = 0,
    NCCL_EP_COMB_QUANT_NVFP4 = 1, /* LL */
    NCCL_EP_COMB_QUANT_MXFP8 = 2 /* HT expert-major */
} ncclEpCombQuant_t;

typedef ncclEpCombQuant_t ncclEpCombineQuantizationRecipe_t; /* before the release of 0.2.0 */
#define NCCL_EP_COMBINE_QUANT_NONE NCCL_EP_COMB_QUANT_NONE

typedef struct {
    unsigned int size;
    unsigned int magic;
    unsigned int send_only; /* LL: the first half; ncclEpComplete is the second */
    unsigned int round_scales; /* of DS_FP8E3M4: scales are powers of two */
    ncclEpPassDir_t pass_direction; /* in LL NCCL_EP_FWD_PASS */
    union {
        ncclEpDispQuant_t quant_recipe;
        ncclEpDispatchQuantizationRecipe_t quantization_recipe;
    };
} ncclEpDispatchConfig_t;

#define NCCL_EP_DISPATCH_CONFIG_INIT NCCL_EP_STRUCT_INIT(ncclEpDispatchConfig_t, NCCL_EP_MAGIC)
#define NCCL_EP_DISPATCH_CONFIG_SIZE ((unsigned int)sizeof(ncclEpDispatchConfig_t))
#define NCCL_EP_DISPATCH_CONFIG_V1_SIZE 20u
#define NCCL_EP_DISPATCH_CONFIG_V2_SIZE 24u
#define NCCL_EP_DISPATCH_CONFIG_V1_LAST_FIELD pass_direction
#define NCCL_EP_DISPATCH_CONFIG_V2_LAST_FIELD quant_recipe
#define NCCL_EP_DISPATCH_CONFIG_CURRENT_VERSION 2

/* Collective. */
ncclResult_t ncclEpDispatch(ncclEpHandle_t handle, const ncclEpDispatchInputs_t *inputs,
                            const ncclEpDispatchOutputs_t *outputs, const ncclEpLayoutInfo_t *layout_info,
                            const ncclEpDispatchConfig_t *config, cudaStream_t stream);

typedef struct {
    unsigned int size;
    unsigned int magic;
    unsigned int send_only;
    ncclEpPassDir_t pass_direction; /* in LL NCCL_EP_FWD_PASS */
    union {
        ncclEpCombQuant_t quant_recipe;
        ncclEpCombineQuantizationRecipe_t quantization_recipe;
    };
} ncclEpCombineConfig_t;

#define NCCL_EP_COMBINE_CONFIG_INIT NCCL_EP_STRUCT_INIT(ncclEpCombineConfig_t, NCCL_EP_MAGIC)
#define NCCL_EP_COMBINE_CONFIG_SIZE ((unsigned int)sizeof(ncclEpCombineConfig_t))
#define NCCL_EP_COMBINE_CONFIG_V1_SIZE 16u
#define NCCL_EP_COMBINE_CONFIG_V2_SIZE 20u
#define NCCL_EP_COMBINE_CONFIG_V1_LAST_FIELD pass_direction
#define NCCL_EP_COMBINE_CONFIG_V2_LAST_FIELD quant_recipe
#define NCCL_EP_COMBINE_CONFIG_CURRENT_VERSION 2

/* Collective. */
ncclResult_t ncclEpCombine(ncclEpHandle_t handle, const ncclEpCombineInputs_t *inputs,
                           const ncclEpCombineOutputs_t *outputs, const ncclEpCombineConfig_t *config,
                           cudaStream_t stream);

typedef struct ncclEpCompleteConfig {
    unsigned int size;
    unsigned int magic;
} ncclEpCompleteConfig_t;

#define NCCL_EP_COMPLETE_CONFIG_INIT NCCL_EP_STRUCT_INIT(ncclEpCompleteConfig_t, NCCL_EP_MAGIC)
#define NCCL_EP_COMPLETE_CONFIG_SIZE ((unsigned int)sizeof(ncclEpCompleteConfig_t))
#define NCCL_EP_COMPLETE_CONFIG_V1_SIZE 8u
#define NCCL_EP_COMPLETE_CONFIG_V1_LAST_FIELD magic
#define NCCL_EP_COMPLETE_CONFIG_CURRENT_VERSION 1

/* The second half of the call that was sent, on the stream of the first or one that the caller has made follow it. */
ncclResult_t ncclEpComplete(ncclEpHandle_t handle, const ncclEpCompleteConfig_t *config, cudaStream_t stream);

/* ---- ranks that are gone; groups with enable_mask ---------------------------------------------------------------- */

/* mask_status: device memory, [R], 1 while the rank takes part. */
ncclResult_t ncclEpMaskQuery(ncclEpGroup_t ep_group, int *mask_status, cudaStream_t stream);
/* mask: host memory, [R]. Takes effect at once, between calls; the streams of earlier calls have ended. */
ncclResult_t ncclEpMaskUpdate(ncclEpGroup_t ep_group, const int *mask, cudaStream_t stream);
/* All ranks take part again. Made by those that are left; one that was late may make it with or after them, before
 * their next call, and one that is gone is masked again by that. Waits for the stream. */
ncclResult_t ncclEpMaskClean(ncclEpGroup_t ep_group, cudaStream_t stream);
/* *error_out: 1 when a call of the group has met its deadline, on whichever stream; else 2 when more rows were to come
 * to a rank than it has room for, of which weft_last_error then names the limit and the rank; else 0. Waits for
 * nothing; any thread. Groups of HT, and of LL with enable_mask. */
#define WEFT_NCCL_EP_OVERFLOWED 2 /* weft's own: there the process ends */
ncclResult_t ncclEpGetAsyncError(ncclEpGroup_t ep_group, int *error_out);
/* 0 again: of an overflow at once, of a timeout when masks have made the group work again; before that it is 1 again
 * at once. The same groups. */
ncclResult_t ncclEpErrorClear(ncclEpGroup_t ep_group);

#ifdef __cplusplus
}
#endif
#endif
