/* cuda/ep/abi.h: the arguments of kernels: what the host's half fills in and device code reads, and kernels' names. */
#ifndef WEFTI_CUDA_EP_ABI_H
#define WEFTI_CUDA_EP_ABI_H

#include "cuda/ep/memory.h"
#include "cuda/ep/signal.h"

#define WEFTI_CUDA_EP_THREADS 512
#define WEFTI_CUDA_EP_STAGES 6
#define WEFTI_CUDA_EP_PIPE_HEAD 128 /* bytes of a pipe beside its stages */
#define WEFTI_CUDA_EP_META_STAGE_BYTES 2048 /* stage of a warp that sends scales */
#define WEFTI_CUDA_EP_SHARED_MAX (212 << 10) /* the most that a block asks for when it is launched */

/* A group as its kernels see it. */
typedef struct wefti_cuda_ep_group {
    weft_dev dev;
    wefti_i32 rank;
    wefti_i32 ranks;
    wefti_i32 pe_of[WEFTI_CUDA_EP_RANKS_MAX];
    wefti_i32 first_expert[WEFTI_CUDA_EP_RANKS_MAX + 1];
    wefti_u64 area[WEFTI_CUDA_EP_RANKS_MAX]; /* each rank's, as this one addresses it */
    wefti_cuda_ep_layout at;
    wefti_u32 rows_limit; /* how many rows may come; more overflow or are dropped */
    wefti_u32 drops; /* whether they are dropped */
    wefti_u64 *host_status; /* host memory: what the host is to know at its next call, see wefti_cuda_ep_host_status */
} wefti_cuda_ep_group;

/* The first words of the route tables. */
typedef struct wefti_cuda_ep_route_header {
    wefti_u32 tag; /* of the call that made this routing; 0: none */
    wefti_i32 tokens; /* T */
    wefti_i32 received; /* tokens received, or that would have been */
    wefti_i32 rows; /* N, as the caller sees it */
    wefti_i32 status; /* as the caller sees it: of the routing, or that the last dispatch on it did not fit */
    wefti_i32 dropped;
    wefti_i32 dropped_rows;
    wefti_i32 routed; /* status of the routing */
} wefti_cuda_ep_route_header;

/* The route tables: device addresses. */
typedef struct wefti_cuda_ep_tables {
    wefti_cuda_ep_route_header *route_header;
    wefti_i32 *rows_of_expert; /* [L] */
    wefti_i32 *rows_of_expert_source; /* [L][R] */
    wefti_i32 *offset_of_expert; /* [L + 1] */
    wefti_i32 *rows_of_source; /* [R] */
    wefti_i32 *offset_of_source; /* [R + 1] */
    wefti_i32 *tokens_of; /* [R] T of each rank */
    wefti_u32 *sent; /* [R] tokens of this rank that go to each rank */
    wefti_u32 *place; /* [R] the place there of the first of them */
    wefti_u64 *bits; /* [U][R] packed words: the tokens of each unit that go to each rank */
    wefti_u64 *goes; /* [U][R] the same of those that are accepted; where nothing is dropped, the same words */
    wefti_u32 *before; /* [U][R] how many went there before */
    /* [B] packed words: next-unit counter: of block b's units, the first that no warp has taken */
    wefti_u64 *next_unit;
    wefti_u64 *
        partials; /* [B][E + 1] packed words: the choices of each expert that block b counted, and those out of range */
    float *weights; /* by source: [T][R] the sum of a token's weights on each rank, in ascending choice */
    float *combine_weights; /* the same of the running combine's own weights */
    signed char *owner; /* [T][K] the rank of each choice, or -1 */
    /* Of the running combine, in which order a token's results are added: [T][R] ranks, and NOT_ADDED on those that
     * only have values; NO_RANK behind the last. */
    unsigned char *order;
    wefti_u64 *counted; /* routings told since weft_ep_route_counts_to */
    wefti_i32 *ids; /* of a route of destinations: [T][R] */
    wefti_i32 *no_rows; /* the same: [L][R], at least one more: zeroes, in place of rows of experts */
    wefti_u32 *records; /* [M] as the sources wrote them */
    /* By expert; `rows`, `target` and `unpadded` also by position: [T][R] which token has each number at each rank,
     * [T][R] the number of each token, and [1] of the latter whether the numbers given were none: */
    wefti_u64 *ahead; /* [B][E] packed words: this rank's rows of each expert that the blocks before b have */
    wefti_u64 *base; /* [E] packed words: the row at its owner of the first of this rank's rows of each expert */
    wefti_u64 *full; /* [R] packed words: all rows of each rank, padding included */
    wefti_u64 *cut; /* [R] packed words: how many tokens of this rank each rank accepts */
    wefti_u64 *unpadded; /* [2] packed words: this rank's rows without padding, in the first and second round */
    wefti_u64 *begin; /* [L + 1] packed words: the first row of each local expert */
    wefti_u64 *end; /* [L] packed words: the row behind its last */
    wefti_u32 *rows; /* [T][K] the row of each choice at its owner; NO_ROW: none, or that of an earlier choice */
    wefti_u32 *target; /* [T][R] the row of a token's first choice at each rank */
    /* Where rows are dropped by themselves, else NULL: [T][K] what is left of the choices, of which the routing is
     * made; [1] this rank's rows, without padding, if none were dropped. */
    wefti_i32 *kept;
    wefti_u64 *asked;
} wefti_cuda_ep_tables;

#define WEFTI_CUDA_EP_NO_ROW 0xffffffffu
#define WEFTI_CUDA_EP_NO_RANK 0xffu
#define WEFTI_CUDA_EP_NOT_ADDED 0x80u
#define WEFTI_CUDA_EP_LEFT_OUT 0xffffffffu /* in combine_choices; a weight of these bits, a NaN, goes as another */

/* The caller's choices. */
typedef struct wefti_cuda_ep_choices {
    const void *ids;
    const float *weights; /* or NULL */
    const wefti_i32 *tokens_at; /* or NULL */
    /* [T][R], from which the ids are made; of positions the address of wefti_i32; or NULL */
    const unsigned char *destinations;
    wefti_i32 tokens;
    wefti_i32 wide; /* ids are 64 bits */
    wefti_i32 all_weights; /* also to ranks without the choice */
} wefti_cuda_ep_choices;

/* The caller's arrays of what is received; each may be NULL. */
typedef struct wefti_cuda_ep_arrays {
    float *weights;
    wefti_i32 *experts; /* the address of wefti_i64 if they are wide */
    wefti_i32 *source_rank;
    wefti_i32 *source_token;
    wefti_i32 wide_experts; /* ids of 64 bits */
    wefti_i32 first_expert; /* the id of local expert 0 */
} wefti_cuda_ep_arrays;

/* Flags of wefti_cuda_ep_dispatch_args: of updates, dispatches, and backwards of combine, which move rows likewise.
 * Which of them a signature has: signal.h. */
enum {
    WEFTI_CUDA_EP_FRESH = 1, /* makes the route's routing from `choices` */
    WEFTI_CUDA_EP_MOVE = 2, /* rows move; not in an update */
    WEFTI_CUDA_EP_STAGE = 4, /* this rank's rows come to its area, and it copies them to `out`: of this rank alone */
    WEFTI_CUDA_EP_COUNTS = 32, /* of an update: too many rows are no overflow, but there is no routing then */
    WEFTI_CUDA_EP_NEW_WEIGHTS = 64 /* on the routing that the route has: `choices` has other weights for it */
};

/* Flags of wefti_cuda_ep_combine_args: of combines and backwards of dispatch. */
enum {
    WEFTI_CUDA_EP_COMBINE_WEIGHTS = 1, /* with weights of its own */
    WEFTI_CUDA_EP_COMBINE_IDS = 2, /* with choices of its own */
    WEFTI_CUDA_EP_ONCE = 4, /* a row that choices share is added once */
    WEFTI_CUDA_EP_BY_CHOICE = 32 /* WEFT_EP_ORDER_CHOICE */
};

/* Flags of both. */
enum {
    WEFTI_CUDA_EP_WEIGHTED = 8, /* WEFT_EP_WEIGHTED */
    WEFTI_CUDA_EP_VALUES = 16 /* of a combine: with values; of a backward: with gradients of weights */
};

/* Scales of fp8 rows: word w of row i is at words[i * row_stride + w * word_stride]. */
typedef struct wefti_cuda_ep_scales {
    wefti_u32 *words;
    wefti_u64 row_stride;
    wefti_u64 word_stride;
} wefti_cuda_ep_scales;

/* How rows lie by expert. */
typedef struct wefti_cuda_ep_experts {
    wefti_u32 slots; /* rows kept for each expert; 0: as many as come */
    wefti_u32 alignment; /* each expert's first row is a multiple of it */
    wefti_u32 starts_at; /* of [E] words in dynamic shared memory, behind the pipes */
    wefti_u32 zeroes; /* padding is zeroed */
} wefti_cuda_ep_experts;

/* How the scales of rows that become fp8 are kept. */
typedef enum wefti_cuda_ep_made_scales {
    WEFTI_CUDA_EP_MADE_F32,
    WEFTI_CUDA_EP_MADE_F32_POW2,
    WEFTI_CUDA_EP_MADE_UE8M0
} wefti_cuda_ep_made_scales;

/* Rows that become fp8 on their way. */
typedef struct wefti_cuda_ep_wide {
    wefti_u32 row_bytes; /* before */
    wefti_u32 element_bytes;
    wefti_i32 dtype; /* a weft_ep_dtype */
    wefti_u32 scales; /* a wefti_cuda_ep_made_scales */
} wefti_cuda_ep_wide;

/* What only backward calls have. */
typedef struct wefti_cuda_ep_backward {
    const float *given; /* of dispatch, by expert: gradients of received weights */
    const unsigned char *rows; /* of combine: what it was given */
    wefti_u64 rows_pitch;
    float *grad_weights;
    wefti_i32 dtype; /* a weft_ep_dtype */
} wefti_cuda_ep_backward;

/* What a launch does of a call. */
typedef enum wefti_cuda_ep_phase {
    WEFTI_CUDA_EP_FUSED,
    WEFTI_CUDA_EP_SEND,
    WEFTI_CUDA_EP_RECV,
    WEFTI_CUDA_EP_ROWS, /* behind a send: rows that leave with it (eager.h) */
    WEFTI_CUDA_EP_PHASES
} wefti_cuda_ep_phase;

/* How a block is divided. */
typedef struct wefti_cuda_ep_blocks {
    wefti_i32 sender_warps; /* warps that send rows */
    wefti_i32 receiver_warps; /* warps that receive what has come, of the others */
    wefti_u32 rest_ns; /* between two looks at a word of theirs */
    wefti_u32 stage_bytes; /* of one of their WEFTI_CUDA_EP_STAGES stages in shared memory */
    wefti_i32 pushes_at_once; /* units of a combine whose words a warp posts at once */
    wefti_i32 phase; /* a wefti_cuda_ep_phase, which kernels that do only one do not read */
} wefti_cuda_ep_blocks;

/* Where a new routing's counts are told: weft_ep_count_arrays. */
typedef struct wefti_cuda_ep_told {
    wefti_u64 *generation; /* [2]; NULL: of one slot */
    wefti_u64 *counted; /* in device memory: routings so far */
    void *rows; /* these may be NULL */
    void *rows_of_expert;
    void *rows_of_expert_aligned;
    void *rows_of_source;
    void *offset_of_expert;
    wefti_i32 tells; /* 0: nothing of this is wanted */
    wefti_i32 wide; /* elements are 64 bits */
    wefti_i32 experts; /* how many this rank has */
    wefti_i32 has_no_experts; /* a route of destinations does not know them */
    wefti_i32 with_dropped; /* `rows` with those that are dropped here */
} wefti_cuda_ep_told;

typedef struct wefti_cuda_ep_dispatch_args {
    wefti_cuda_ep_group group;
    wefti_cuda_ep_tables tables;
    wefti_cuda_ep_choices choices; /* with FRESH; with NEW_WEIGHTS only weights */
    wefti_cuda_ep_told told; /* with FRESH only */
    wefti_cuda_ep_arrays arrays;
    wefti_cuda_ep_blocks blocks;
    wefti_u64 signature;
    wefti_i32 topk;
    wefti_u32 slots; /* of each source; 0: rows are packed */
    wefti_u32 low_latency_slots; /* of each source, of a low-latency call; else 0 */
    wefti_u32 flags;
    /* MOVE: */
    const unsigned char *in;
    wefti_u64 in_pitch;
    unsigned char *out;
    wefti_u64 out_pitch;
    wefti_u64 place; /* where the others write, and their pitch there: out, or with STAGE the area's rows */
    wefti_u64 pitch;
    wefti_u32 row_bytes;
    wefti_u32 capacity; /* rows of out */
    wefti_u32 scale_words; /* of a row; 0: rows have no scales */
    wefti_u32 given_words; /* of them, that are given with the rows: all or none */
    wefti_u32 meta_stages_at; /* stages of warps that send these, in dynamic shared memory */
    wefti_cuda_ep_scales in_scales;
    wefti_cuda_ep_scales out_scales;
    wefti_u64 scale_group_step; /* so many words more from the last row of an expert to the first of the next */
    /* By expert: */
    wefti_cuda_ep_experts experts;
    /* Quantising: */
    wefti_cuda_ep_wide wide;
    /* The backward of combine: */
    wefti_cuda_ep_backward backward;
} wefti_cuda_ep_dispatch_args;

/* Of a combine: weft_ep_combine_options, each NULL if it is not given; and the type of `out`. */
typedef struct wefti_cuda_ep_options {
    const float *weights;
    const void *ids;
    const unsigned char *bias[2];
    wefti_u64 bias_pitch[2];
    const float *values_in;
    float *values_out;
    wefti_i32 wide; /* ids are 64 bits */
    wefti_i32 out_dtype; /* a weft_ep_dtype */
    wefti_i32 of_owners; /* the value of a choice is that of its owner: the backward of a dispatch */
    wefti_i32 by_rank; /* a backward of dispatch in ascending rank: no kernel `order` came before */
} wefti_cuda_ep_options;

/* After an update with WEFTI_CUDA_EP_COUNTS: what is left of its choices. */
typedef struct wefti_cuda_ep_drop_args {
    wefti_cuda_ep_tables tables;
    wefti_cuda_ep_choices choices;
    wefti_cuda_ep_told told; /* of the routing to come: only `rows` is written, with those that are dropped */
    wefti_i32 ranks;
    wefti_i32 experts; /* of all ranks */
    wefti_i32 topk;
    wefti_i32 wide_owners; /* `owner` is 16 bits */
    wefti_u32 tokens_limit; /* how many tokens a rank takes in */
    wefti_u32 rows_limit; /* rows that lie from there on are dropped */
} wefti_cuda_ep_drop_args;

typedef struct wefti_cuda_ep_combine_args {
    wefti_cuda_ep_group group;
    wefti_cuda_ep_tables tables;
    wefti_cuda_ep_blocks blocks;
    wefti_u64 signature;
    const unsigned char *in;
    wefti_u64 in_pitch;
    unsigned char *out;
    wefti_u64 out_pitch;
    wefti_u64 place; /* of the area's rows */
    wefti_u32 row_bytes;
    wefti_u32 low_latency_slots; /* as in a dispatch, of each owner */
    wefti_i32 dtype; /* a weft_ep_dtype */
    wefti_u32 flags;
    wefti_i32 topk; /* by expert, or with values */
    wefti_cuda_ep_backward backward; /* of dispatch, by expert, with VALUES */
    wefti_cuda_ep_options options; /* device/combine_options.cuh */
} wefti_cuda_ep_combine_args;

/* What WEFT_EP_STATISTICS keeps, after a call on its stream. */
typedef enum wefti_cuda_ep_counted {
    WEFTI_CUDA_EP_COUNTED_NOT, /* what the call waited is forgotten */
    WEFTI_CUDA_EP_COUNTED_DISPATCH,
    WEFTI_CUDA_EP_COUNTED_COMBINE
} wefti_cuda_ep_counted;

typedef struct wefti_cuda_ep_stats_args {
    const wefti_cuda_ep_control *control;
    const wefti_u64 *mismatch; /* of the host's words */
    const wefti_cuda_ep_route_header *route_header;
    const wefti_i32 *rows_of_expert; /* or NULL */
    wefti_u64 *rows; /* [L] */
    wefti_u64 *dispatch_waits; /* [R] */
    wefti_u64 *combine_waits; /* [R] */
    wefti_u64 *calls; /* dispatches, combines */
    wefti_i32 experts; /* L */
    wefti_i32 ranks;
    wefti_cuda_ep_counted counted;
} wefti_cuda_ep_stats_args;

/* A kernel's name, of its length and name, as C++ writes that of a class's constructor: profilers show variants of a
 * class, C1 to C5, as one kernel, weft::NAME::NAME(). Programs that time a call by the name of its kernel count both
 * halves that way, and a combine with or without options; they look for names that hold ht_dispatch_kernel or
 * ht_combine_kernel (NCCL EP's, of HT; older ones without ht_), or only dispatch or combine (DeepEP's, and NCCL EP's of
 * LL). The backward of a dispatch is to NCCL EP a combine, and is named so where it has a kernel of its own. */
#define EP_KERNEL_NAME(NAME, VARIANT) _ZN4weft##NAME##VARIANT##Ev
/* The variants: a whole call, its send, its recv; whole and recv of a combine with options. Where one kernel is several
 * of these (host/find.c) it is the first of them; where ranks are many the first is all. */
enum {
    WEFTI_CUDA_EP_VARIANT_FUSED = 1,
    WEFTI_CUDA_EP_VARIANT_SEND = 2,
    WEFTI_CUDA_EP_VARIANT_RECV = 3,
    WEFTI_CUDA_EP_VARIANT_FUSED_WITH = 4,
    WEFTI_CUDA_EP_VARIANT_RECV_WITH = 5
};

#endif
