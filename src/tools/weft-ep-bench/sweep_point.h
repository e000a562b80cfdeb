/* weft-ep-bench/sweep_point.h: one point of a sweep. */
#ifndef WEFT_EP_BENCH_SWEEP_POINT_H
#define WEFT_EP_BENCH_SWEEP_POINT_H

#include <stddef.h>

#include "weft_ep.h"

/* X(value, name, type of the rows sent, of those received) */
#define BENCH_DTYPE_TABLE(X)                                                                                           \
    X(BENCH_BF16, "bf16", WEFT_EP_BF16, WEFT_EP_BF16)                                                                  \
    X(BENCH_F16, "f16", WEFT_EP_F16, WEFT_EP_F16)                                                                      \
    X(BENCH_F32, "f32", WEFT_EP_F32, WEFT_EP_F32)                                                                      \
    X(BENCH_FP8, "fp8", WEFT_EP_FP8_E4M3, WEFT_EP_FP8_E4M3)                                                            \
    X(BENCH_BF16_FP8, "bf16-fp8", WEFT_EP_BF16, WEFT_EP_FP8_E4M3)

/* X(value, name, layout) */
#define BENCH_LAYOUT_TABLE(X)                                                                                          \
    X(BENCH_RANK_MAJOR, "rank-major", WEFT_EP_RANK_MAJOR)                                                              \
    X(BENCH_EXPERT_MAJOR, "expert-major", WEFT_EP_EXPERT_MAJOR)                                                        \
    X(BENCH_SLOTS_SOURCE, "slots-source", WEFT_EP_SLOTS_SOURCE)                                                        \
    X(BENCH_SLOTS_EXPERT, "slots-expert", WEFT_EP_SLOTS_EXPERT)

#define BENCH_ENUMERATE(value, ...) value,
typedef enum bench_dtype { BENCH_DTYPE_TABLE(BENCH_ENUMERATE) BENCH_DTYPES } bench_dtype;
typedef enum bench_layout { BENCH_LAYOUT_TABLE(BENCH_ENUMERATE) BENCH_LAYOUTS } bench_layout;
#undef BENCH_ENUMERATE

/* Which experts tokens choose, always distinct ones. */
typedef enum bench_skew {
    BENCH_UNIFORM, /* each as likely */
    BENCH_ZIPF, /* expert e with a share of 1 / (e + 1) */
    BENCH_ONE_RANK, /* all those of rank 0, before any other */
    BENCH_SKEWS
} bench_skew;

typedef enum bench_routing {
    BENCH_FRESH, /* dispatch agrees on a new routing on its way */
    BENCH_CACHED, /* all steps have one routing, agreed on before */
    BENCH_ROUTINGS
} bench_routing;

typedef enum bench_mode {
    BENCH_HT, /* whole calls */
    BENCH_LL, /* the halves, one behind the other: send, recv */
    BENCH_EAGER, /* the same in a group with WEFT_EP_ROWS_WITH_SEND */
    BENCH_TWO, /* two pairs of halves of each: both sends, then both recvs */
    BENCH_STREAMS, /* the same, each pair on a stream of its own */
    BENCH_MODES
} bench_mode;

typedef enum bench_buffers {
    BENCH_SYMMETRIC, /* rows are received in symmetric memory, where senders write them */
    BENCH_PLAIN, /* in any other, to which the library copies them */
    BENCH_BUFFERS
} bench_buffers;

typedef struct bench_point {
    int tokens; /* a rank */
    int hidden;
    int topk;
    int experts;
    bench_dtype dtype;
    bench_layout layout;
    bench_skew skew;
    bench_routing routing;
    bench_mode mode;
    bench_buffers buffers;
    int sms; /* on GPUs; 0: the library's choice */
} bench_point;

extern const char *const bench_dtype_names[BENCH_DTYPES];
extern const char *const bench_layout_names[BENCH_LAYOUTS];
extern const char *const bench_skew_names[BENCH_SKEWS];
extern const char *const bench_routing_names[BENCH_ROUTINGS];
extern const char *const bench_mode_names[BENCH_MODES];
extern const char *const bench_buffers_names[BENCH_BUFFERS];

weft_ep_dtype bench_sent_dtype(bench_dtype dtype);
weft_ep_dtype bench_received_dtype(bench_dtype dtype);
/* What combine takes and gives: bf16 where rows are received in fp8. */
weft_ep_dtype bench_combined_dtype(bench_dtype dtype);
int bench_pairs(bench_mode mode); /* of halves outstanding at once */
weft_ep_layout bench_weft_layout(bench_layout layout);
int bench_is_by_expert(bench_layout layout);

/* What tells the figures of points apart, as members of their JSON object. */
void bench_point_describe(const bench_point *point, char *text, size_t bytes);

#endif
