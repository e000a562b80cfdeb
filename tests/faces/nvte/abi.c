/* Goal: the structs and values of transformer_engine/ep.h are those of TransformerEngine's binary interface.
 *
 * Method: static assertions; it has only to compile, as C and as C++. Offsets are those of a 64-bit machine. */
#include <assert.h>
#include <weft_nvte.h>

#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
#define IS(name, value) static_assert((int)(name) == (int)(value), #name)

AT(NVTEEpGroupConfig, struct_size, 0);
AT(NVTEEpGroupConfig, ep_size, 8);
AT(NVTEEpGroupConfig, num_experts, 12);
AT(NVTEEpGroupConfig, max_tokens_per_rank, 16);
AT(NVTEEpGroupConfig, max_recv_tokens_per_rank, 20);
AT(NVTEEpGroupConfig, hidden_dim, 24);
AT(NVTEEpGroupConfig, num_comm_sms, 28);
AT(NVTEEpGroupConfig, max_token_dtype, 32);
AT(NVTEEpGroupConfig, zero_copy, 36);
AT(NVTEEpGroupConfig, num_topk, 40);
AT(NVTEEpGroupConfig, drop_on_overflow, 44);
IS(sizeof(NVTEEpGroupConfig), 48);
AT(NVTEEpLayerConfig, struct_size, 0);
AT(NVTEEpLayerConfig, top_k, 8);
AT(NVTEEpLayerConfig, dispatch_output_per_expert_alignment, 16);
IS(sizeof(NVTEEpLayerConfig), 24);
AT(NVTECommWindow, window, 0);
AT(NVTECommWindow, offset, 8);
AT(NVTECommWindow, scale_window, 16);
AT(NVTECommWindow, scale_offset, 24);
IS(sizeof(NVTECommWindow), 32);
AT(NVTEShape, ndim, 120);
IS(sizeof(NVTEShape), 128);
AT(NVTEBasicTensor, dtype, 8);
AT(NVTEBasicTensor, shape, 16);
IS(kNVTEByte, 0);
IS(kNVTEInt32, 2);
IS(kNVTEInt64, 3);
IS(kNVTEFloat32, 4);
IS(kNVTEFloat16, 5);
IS(kNVTEBFloat16, 6);
IS(kNVTEFloat8E4M3, 7);
IS(kNVTEFloat8E5M2, 8);
IS(kNVTEFloat4E2M1, 10);
IS(NVTE_MXFP8_1D_SCALING, 1);
IS(kNVTERowwiseData, 0);

/* The signatures. */
typedef void (*initialize_type)(void *, const NVTEEpGroupConfig *);
typedef void (*combine_type)(NVTETensor, NVTETensor, NVTECommWindow, NVTETensor, cudaStream_t);
typedef void (*dispatch_type)(NVTETensor, NVTETensor, NVTETensor, NVTECommWindow, NVTETensor, NVTECommWindow,
                              NVTETensor, NVTECommWindow, NVTETensor, NVTECommWindow, cudaStream_t);
typedef void (*prepare_type)(NVTETensor, NVTETensor, NVTETensor, NVTETensor, const NVTEEpLayerConfig *, cudaStream_t);
typedef void (*dispatch_bwd_type)(NVTETensor, NVTETensor, NVTECommWindow, NVTETensor, NVTECommWindow, NVTETensor,
                                  NVTETensor, cudaStream_t);
typedef void (*combine_bwd_type)(NVTETensor, NVTETensor, NVTECommWindow, NVTETensor, NVTECommWindow, cudaStream_t);
typedef size_t (*size_type)(const NVTEEpLayerConfig *);
extern const initialize_type signature_initialize;
const initialize_type signature_initialize = nvte_ep_initialize;
extern const prepare_type signature_prepare;
const prepare_type signature_prepare = nvte_ep_prepare;
extern const dispatch_type signature_dispatch;
const dispatch_type signature_dispatch = nvte_ep_dispatch;
extern const combine_type signature_combine;
const combine_type signature_combine = nvte_ep_combine;
extern const dispatch_bwd_type signature_dispatch_bwd;
const dispatch_bwd_type signature_dispatch_bwd = nvte_ep_dispatch_bwd;
extern const combine_bwd_type signature_combine_bwd;
const combine_bwd_type signature_combine_bwd = nvte_ep_combine_bwd;
typedef void (*prepare_and_dispatch_type)(NVTETensor, NVTETensor, NVTETensor, NVTECommWindow, NVTETensor,
                                          NVTECommWindow, NVTETensor, NVTECommWindow, NVTETensor, NVTECommWindow,
                                          NVTETensor, NVTETensor, const NVTEEpLayerConfig *, cudaStream_t);
extern const prepare_and_dispatch_type signature_prepare_and_dispatch;
const prepare_and_dispatch_type signature_prepare_and_dispatch = nvte_ep_prepare_and_dispatch;
extern const size_type signature_size;
const size_type signature_size = nvte_ep_handle_mem_size;
