/* nccl_ep/ep_enums.h: the enumerations of NCCL EP's interface, with its names and values, for libweft_nccl_ep. */
#ifndef WEFT_NCCL_EP_ENUMS_H
#define WEFT_NCCL_EP_ENUMS_H

/* "Choose for me", in every field that says so. */
#define NCCL_EP_AUTO 0

typedef enum {
    NCCL_EP_ALGO_LOW_LATENCY = 0, /* LL: padded receive buffers, decoding */
    NCCL_EP_ALGO_HIGH_THROUGHPUT = 1 /* HT: packed receive buffers, training and prefilling */
} ncclEpAlgorithm_t;

/* HT: more rows come than max_recv_tokens_per_rank. Nothing traps here: TRAP (and AUTO) moves no rows, on any rank, and
 * ncclEpGetAsyncError and recv_total_counter tell; DROP keeps the rows that fit: flat the first tokens, by expert those
 * that would lie below the limit if all came. */
typedef enum {
    NCCL_EP_OVERFLOW_AUTO = NCCL_EP_AUTO,
    NCCL_EP_OVERFLOW_TRAP = 1,
    NCCL_EP_OVERFLOW_DROP = 2
} ncclEpOverflowPolicy_t;

/* R ranks, L local experts, B most tokens a rank, H hidden, K choices, N received rows. */
typedef enum {
    NCCL_EP_LAYOUT_UNSET = NCCL_EP_AUTO, /* not a layout */
    NCCL_EP_LAYOUT_AUTO = NCCL_EP_AUTO, /* as it was called before */
    NCCL_EP_LAYOUT_EXPERT_MAJOR = 1, /* LL [L][R * B][H]; HT [N][H], grouped by expert, groups padded */
    NCCL_EP_LAYOUT_RANK_MAJOR = 2, /* LL [R][B][H] */
    NCCL_EP_LAYOUT_FLAT = 3 /* HT [N][H] */
} ncclEpLayout_t;

typedef enum { NCCL_EP_FWD_PASS = 0, NCCL_EP_BWD_PASS = 1 } ncclEpPassDir_t;

/* OFF: rows in windows of NCCL's are staged, unless weft_nccl_ep_register has had their memory. ON: received rows of HT
 * have to be in windows. Else whether rows are staged depends on where they lie alone. */
typedef enum {
    NCCL_EP_ZERO_COPY_AUTO = NCCL_EP_AUTO,
    NCCL_EP_ZERO_COPY_OFF = 1,
    NCCL_EP_ZERO_COPY_ON = 2
} ncclEpZeroCopyMode_t;

/* The numbers in received topk_idx: AUTO is LOCAL. */
typedef enum {
    NCCL_EP_EXPERT_ID_AUTO = NCCL_EP_AUTO,
    NCCL_EP_EXPERT_ID_LOCAL = 1,
    NCCL_EP_EXPERT_ID_GLOBAL = 2
} ncclEpExpertIdKind_t;

#endif
