/* Goal: the structs and values of nccl_ep.h are those of NCCL EP's binary interface, version 3, and its older sizes.
 *
 * Method: static assertions; it has only to compile, with the face's own nccl.h and with NCCL's where that is
 * installed. Offsets are those of a 64-bit machine. */
#include <assert.h>
#include <nccl_ep.h>

#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
#define IS(name, value) static_assert((int)(name) == (int)(value), #name)

IS(NCCL_EP_VERSION_CODE, 200);
IS(NCCL_EP_API_VERSION, 3);
static_assert(NCCL_EP_MAGIC == 0xC00FFFEEu && NCCL_EP_TENSOR_MAGIC == 0xCAFECAFEu, "magic numbers");
IS(NCCL_EP_ALGO_LOW_LATENCY, 0);
IS(NCCL_EP_ALGO_HIGH_THROUGHPUT, 1);
IS(NCCL_EP_LAYOUT_UNSET, 0);
IS(NCCL_EP_LAYOUT_AUTO, 0);
IS(NCCL_EP_LAYOUT_EXPERT_MAJOR, 1);
IS(NCCL_EP_LAYOUT_RANK_MAJOR, 2);
IS(NCCL_EP_LAYOUT_FLAT, 3);
IS(NCCL_EP_OVERFLOW_TRAP, 1);
IS(NCCL_EP_OVERFLOW_DROP, 2);
IS(NCCL_EP_ZERO_COPY_OFF, 1);
IS(NCCL_EP_ZERO_COPY_ON, 2);
IS(NCCL_EP_EXPERT_ID_LOCAL, 1);
IS(NCCL_EP_EXPERT_ID_GLOBAL, 2);
IS(NCCL_EP_FWD_PASS, 0);
IS(NCCL_EP_BWD_PASS, 1);
IS(NCCL_EP_DISP_QUANT_FWD, 1);
IS(NCCL_EP_DISP_QUANT_DS_FP8E3M4, 2);
IS(NCCL_EP_COMB_QUANT_NVFP4, 1);
IS(NCCL_EP_COMB_QUANT_MXFP8, 2);
IS(NCCL_EP_DISPATCH_QUANT_NONE, 0);
IS(NCCL_EP_DISPATCH_QUANT_SCALES_FORWARD, 1);
IS(NCCL_EP_DISPATCH_QUANT_DS_FP8E3M4, 2);
IS(NCCL_EP_COMBINE_QUANT_NONE, 0);
IS(sizeof(ncclEpCombineQuantizationRecipe_t), sizeof(ncclEpCombQuant_t));

AT(ncclEpTensor_t, magic, 4);
AT(ncclEpTensor_t, ndim, 8);
AT(ncclEpTensor_t, datatype, 12);
AT(ncclEpTensor_t, data, 16);
AT(ncclEpTensor_t, win_hdl, 24);
AT(ncclEpTensor_t, win_offset, 32);
AT(ncclEpTensor_t, sizes, 40);
IS(sizeof(ncclEpTensor_t), 48);

AT(ncclEpGroupConfig_t, version, 8);
AT(ncclEpGroupConfig_t, algorithm, 12);
AT(ncclEpGroupConfig_t, num_experts, 16);
AT(ncclEpGroupConfig_t, max_dispatch_tokens_per_rank, 20);
AT(ncclEpGroupConfig_t, max_recv_tokens_per_rank, 24);
AT(ncclEpGroupConfig_t, max_token_bytes, 28);
AT(ncclEpGroupConfig_t, rdma_buffer_size, 32);
AT(ncclEpGroupConfig_t, num_qp_per_rank, 40);
AT(ncclEpGroupConfig_t, num_channels, 44);
AT(ncclEpGroupConfig_t, max_num_sms, 48);
AT(ncclEpGroupConfig_t, alloc, 56);
AT(ncclEpGroupConfig_t, enable_mask, 80);
AT(ncclEpGroupConfig_t, timeout_ns, 88);
AT(ncclEpGroupConfig_t, zero_copy, 96); /* where version 1 ends */
AT(ncclEpGroupConfig_t, overflow_policy, 100);
AT(ncclEpGroupConfig_t, num_topk, 104);
IS(NCCL_EP_GROUP_CONFIG_V1_SIZE, 96);
IS(NCCL_EP_GROUP_CONFIG_V2_SIZE, 112);
AT(ncclEpGroupConfig_t, dispatch_num_sms, 112);
AT(ncclEpGroupConfig_t, combine_num_sms, 116);
IS(sizeof(ncclEpGroupConfig_t), 120);

AT(ncclEpLayoutInfo_t, expert_counters, 8);
AT(ncclEpLayoutInfo_t, src_rank_counters, 16);
AT(ncclEpLayoutInfo_t, expert_offsets, 24);
AT(ncclEpLayoutInfo_t, recv_total_counter, 32);
AT(ncclEpLayoutInfo_t, recv_topk_idx_kind, 40);
IS(sizeof(ncclEpLayoutInfo_t), 48);

AT(ncclEpDispatchInputs_t, tokens, 8);
AT(ncclEpDispatchInputs_t, topk_weights, 16);
AT(ncclEpDispatchInputs_t, scales, 24);
IS(sizeof(ncclEpDispatchInputs_t), 32);
AT(ncclEpDispatchOutputs_t, tokens, 8);
AT(ncclEpDispatchOutputs_t, topk_weights, 16);
AT(ncclEpDispatchOutputs_t, scales, 24);
AT(ncclEpDispatchOutputs_t, topk_idx, 32);
IS(sizeof(ncclEpDispatchOutputs_t), 40);
AT(ncclEpDispatchConfig_t, send_only, 8);
AT(ncclEpDispatchConfig_t, round_scales, 12);
AT(ncclEpDispatchConfig_t, pass_direction, 16);
AT(ncclEpDispatchConfig_t, quant_recipe, 20);
AT(ncclEpDispatchConfig_t, quantization_recipe, 20); /* its name before the release of 0.2.0 */
IS(sizeof(ncclEpDispatchConfig_t), 24);

AT(ncclEpCombineInputs_t, tokens, 8);
AT(ncclEpCombineInputs_t, topk_weights, 16);
AT(ncclEpCombineInputs_t, scales, 24);
IS(sizeof(ncclEpCombineInputs_t), 32);
AT(ncclEpCombineOutputs_t, tokens, 8);
AT(ncclEpCombineOutputs_t, topk_weights, 16);
IS(sizeof(ncclEpCombineOutputs_t), 24);
AT(ncclEpCombineConfig_t, send_only, 8);
AT(ncclEpCombineConfig_t, pass_direction, 12);
AT(ncclEpCombineConfig_t, quant_recipe, 16);
AT(ncclEpCombineConfig_t, quantization_recipe, 16);
IS(sizeof(ncclEpCombineConfig_t), 20);

AT(ncclEpHandleConfig_t, dispatch_output_per_expert_alignment, 8);
IS(sizeof(ncclEpHandleConfig_t), 16);
IS(sizeof(ncclEpTensorAllocConfig_t), 8);
IS(sizeof(ncclEpCompleteConfig_t), 8);

/* The first versions end where their macros say. */
#define ENDS(type, base, version)                                                                                      \
    IS(NCCL_EP_FIELD_END(type, NCCL_EP_##base##_V##version##_LAST_FIELD), NCCL_EP_##base##_V##version##_SIZE);         \
    static_assert(NCCL_EP_##base##_CURRENT_VERSION >= (version), #type)
ENDS(ncclEpTensor_t, TENSOR, 1);
ENDS(ncclEpTensorAllocConfig_t, TENSOR_ALLOC_CONFIG, 1);
ENDS(ncclEpGroupConfig_t, GROUP_CONFIG, 1);
ENDS(ncclEpGroupConfig_t, GROUP_CONFIG, 2);
ENDS(ncclEpLayoutInfo_t, LAYOUT_INFO, 1);
ENDS(ncclEpLayoutInfo_t, LAYOUT_INFO, 2);
ENDS(ncclEpDispatchInputs_t, DISPATCH_INPUTS, 1);
ENDS(ncclEpDispatchOutputs_t, DISPATCH_OUTPUTS, 1);
ENDS(ncclEpDispatchConfig_t, DISPATCH_CONFIG, 1);
ENDS(ncclEpDispatchConfig_t, DISPATCH_CONFIG, 2);
ENDS(ncclEpCombineInputs_t, COMBINE_INPUTS, 1);
ENDS(ncclEpCombineInputs_t, COMBINE_INPUTS, 2);
ENDS(ncclEpCombineOutputs_t, COMBINE_OUTPUTS, 1);
ENDS(ncclEpCombineConfig_t, COMBINE_CONFIG, 1);
ENDS(ncclEpCombineConfig_t, COMBINE_CONFIG, 2);
ENDS(ncclEpHandleConfig_t, HANDLE_CONFIG, 1);
ENDS(ncclEpCompleteConfig_t, COMPLETE_CONFIG, 1);

/* Programs assert the layout of a struct, and where its versions end, by macros of the header. */
NCCL_EP_STATIC_ASSERT(NCCL_EP_API_VERSION > 0, "a version");
NCCL_EP_STATIC_ASSERT_STRUCT_ABI(ncclEpGroupConfig_t, NCCL_EP_GROUP_CONFIG);
NCCL_EP_STATIC_ASSERT_STRUCT_ABI(ncclEpTensor_t, NCCL_EP_TENSOR);
NCCL_EP_STATIC_ASSERT_STRUCT_ABI_BOUNDARY(ncclEpGroupConfig_t, NCCL_EP_GROUP_CONFIG, 1);
NCCL_EP_STATIC_ASSERT_STRUCT_ABI_BOUNDARY(ncclEpGroupConfig_t, NCCL_EP_GROUP_CONFIG, 2);
