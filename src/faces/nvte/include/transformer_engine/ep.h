/* transformer_engine/ep.h: TransformerEngine's C interface of expert parallelism, on weft: its names, values and binary
 * layout, written for libweft_nvte_ep from its documentation. What a call does and what differs is in docs/nvte-ep.md;
 * several groups, and statuses: weft_nvte.h.
 *
 * The calls return nothing, and none exits or throws: one that fails changes nothing, and weft_nvte_status has its
 * status, weft_last_error (weft/status.h) the text, of the thread. R ranks, L experts a rank, T tokens, K choices a
 * token, H elements a row, N rows that a buffer of received rows holds.
 *
 * prepare, dispatch, combine and their backwards are collective over the group, on a stream, allocate nothing, and may
 * be captured into a graph. */
#ifndef TRANSFORMER_ENGINE_EP_H_
#define TRANSFORMER_ENGINE_EP_H_

#include <stddef.h>
#include <stdint.h>

#include "transformer_engine/comm_window.h"
#include "transformer_engine/transformer_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Structs begin with their size; 0 stands for their first version. Further fields of a newer header are not read. */
typedef struct {
    size_t struct_size;
    int ep_size; /* R, as the communicator's */
    int num_experts; /* a multiple of R */
    int max_tokens_per_rank; /* most T, at least 1, equal on all ranks */
    int max_recv_tokens_per_rank; /* most rows received, padding included; 0: the worst case */
    int hidden_dim; /* widest H */
    int num_comm_sms; /* most multiprocessors a call takes; 0: those that nothing claims */
    NVTEDType max_token_dtype; /* widest type of rows */
    int zero_copy; /* taken; rows move in place wherever they can */
    /* the first version ends here */
    int num_topk; /* most K of a layer; 0: 64 with max_recv_tokens_per_rank, else 16, and at most all experts */
    int drop_on_overflow; /* not 0: rows beyond max_recv_tokens_per_rank are dropped; 0: nothing moves */
} NVTEEpGroupConfig;

typedef struct {
    size_t struct_size;
    int top_k; /* K, 1 .. the group's most; layers may differ */
    size_t dispatch_output_per_expert_alignment; /* rows, a power of two up to 1024; 0 and 1: none */
} NVTEEpLayerConfig;

#ifdef __cplusplus
#define NVTE_EP_GROUP_CONFIG_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(NVTEEpGroupConfig), 0, 0, 0, 0, 0, 0, kNVTEByte, 0, 0, 0                                                \
    }
#define NVTE_EP_LAYER_CONFIG_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(NVTEEpLayerConfig), 0, 0                                                                                \
    }
#else
#define NVTE_EP_GROUP_CONFIG_INIT                                                                                      \
    {                                                                                                                  \
        .struct_size = sizeof(NVTEEpGroupConfig)                                                                       \
    }
#define NVTE_EP_LAYER_CONFIG_INIT                                                                                      \
    {                                                                                                                  \
        .struct_size = sizeof(NVTEEpLayerConfig)                                                                       \
    }
#endif

/* Make the default group of the device that is current. Collective over the communicator (an ncclComm_t), whose
 * allgather is used here only; it must live until nvte_ep_shutdown. Again only after a shutdown. */
void nvte_ep_initialize(void *ep_comm, const NVTEEpGroupConfig *group_config);
/* End the default group of the current device, if there is one. Collective. */
void nvte_ep_shutdown(void);

/* The bytes of the memory of a layer's routing, in the selected group (weft_nvte.h), which is the default one unless
 * the thread chose another; 0 after a failure. The number stands for group, top_k and alignment: give a handle_mem
 * tensor of exactly so many kNVTEByte, which names them in every call. Local. */
size_t nvte_ep_handle_mem_size(const NVTEEpLayerConfig *layer_cfg);

/* Agree on a routing. topk_idx [T][K] int32 or int64, -1 for none. recv_tokens_per_expert [L], padding included, and
 * total_recv_tokens_per_rank [1], both int32 or both int64, on the device or in pinned memory, may be NULL. With
 * drop_on_overflow the first count the rows that are kept, the second those that would have come. */
void nvte_ep_prepare(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor recv_tokens_per_expert,
                     NVTETensor total_recv_tokens_per_rank, const NVTEEpLayerConfig *layer_cfg, cudaStream_t stream);

/* Rows to the owners of their experts: recv_tokens [N][H], by expert. With topk_weights [T][K] float32 their weights
 * come along: recv_topk_weights [N], 0 behind and between the rows that came; topk_idx is that of prepare. With
 * topk_weights NULL rows only. Both may be fp8 with NVTE_MXFP8_1D_SCALING, whose scales [T][H / 32] and [N][H / 32]
 * move by a further call of weft's; H is a multiple of 512 then. */
void nvte_ep_dispatch(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor tokens, NVTECommWindow tokens_win,
                      NVTETensor topk_weights, NVTECommWindow topk_weights_win, NVTETensor recv_tokens,
                      NVTECommWindow recv_tokens_win, NVTETensor recv_topk_weights,
                      NVTECommWindow recv_topk_weights_win, cudaStream_t stream);

/* nvte_ep_prepare and nvte_ep_dispatch in one call, which agrees on the routing on its way. With topk_weights NULL rows
 * only. recv_tokens_per_expert and total_recv_tokens_per_rank are written by the call, as by nvte_ep_prepare. As of
 * TransformerEngine 2.20, the first release that has it. */
void nvte_ep_prepare_and_dispatch(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor tokens,
                                  NVTECommWindow tokens_win, NVTETensor topk_weights, NVTECommWindow topk_weights_win,
                                  NVTETensor recv_tokens, NVTECommWindow recv_tokens_win, NVTETensor recv_topk_weights,
                                  NVTECommWindow recv_topk_weights_win, NVTETensor recv_tokens_per_expert,
                                  NVTETensor total_recv_tokens_per_rank, const NVTEEpLayerConfig *layer_cfg,
                                  cudaStream_t stream);

/* result [T][H]: the sums, not weighted, of each token's rows. */
void nvte_ep_combine(NVTETensor handle_mem, NVTETensor expert_out, NVTECommWindow expert_out_win, NVTETensor result,
                     cudaStream_t stream);

/* Gradients of a dispatch: grad_tokens [T][H] of grad [N][H], grad_topk_weights [T][K] of g_recv_topk_weights [N]. */
void nvte_ep_dispatch_bwd(NVTETensor handle_mem, NVTETensor grad, NVTECommWindow grad_win,
                          NVTETensor g_recv_topk_weights, NVTECommWindow g_recv_topk_weights_win,
                          NVTETensor grad_tokens, NVTETensor grad_topk_weights, cudaStream_t stream);

/* Gradients of a combine: grad [T][H] to grad_expert_out [N][H], whose padding is zeroed. */
void nvte_ep_combine_bwd(NVTETensor handle_mem, NVTETensor grad, NVTECommWindow grad_win, NVTETensor grad_expert_out,
                         NVTECommWindow grad_expert_out_win, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
