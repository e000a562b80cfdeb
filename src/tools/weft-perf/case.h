/* weft-perf/case.h: what is measured: an operation, made by whom, on how many bytes of which type, by how many PEs. */
#ifndef WEFT_PERF_CASE_H
#define WEFT_PERF_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/reduce_op.h"

/* What kind of operation it is, which says who takes part and what counts. */
typedef enum perf_kind {
    PERF_WORD, /* PE 0 on one word of PE 1, back to back */
    PERF_MOVE, /* the same with bytes */
    PERF_TRIPS, /* PE 0 and PE 1 in turn; one way counts, half of a round trip */
    PERF_RATE, /* many bytes from or to PE 1, or from all to all others; GB/s count */
    PERF_MEET, /* all members, without data */
    PERF_COLL, /* all members, with bytes */
    PERF_COMBINE, /* all members, with elements and an operation */
    PERF_ALLOC, /* all PEs */
    PERF_LIFE /* worlds made and destroyed */
} perf_kind;

/* X(OP, name, kind, figure, impl). A raw_ one is what the hardware allows. */
#define PERF_OPS(X)                                                                                                    \
    X(PUT, "put", PERF_MOVE, "put", "weft")                                                                            \
    X(PUT_QUIET, "put_quiet", PERF_MOVE, "put_quiet", "weft")                                                          \
    X(GET, "get", PERF_MOVE, "get", "weft")                                                                            \
    X(PUT_SIGNAL, "put_signal", PERF_TRIPS, "put_signal", "weft")                                                      \
    X(SIGNAL, "signal", PERF_TRIPS, "signal", "weft")                                                                  \
    X(P_PINGPONG, "p_pingpong", PERF_TRIPS, "p_pingpong", "weft")                                                      \
    X(P, "p", PERF_WORD, "p", "weft")                                                                                  \
    X(G, "g", PERF_WORD, "g", "weft")                                                                                  \
    X(FETCH, "fetch", PERF_WORD, "fetch", "weft")                                                                      \
    X(SET, "set", PERF_WORD, "set", "weft")                                                                            \
    X(SWAP, "swap", PERF_WORD, "swap", "weft")                                                                         \
    X(COMPARE_SWAP, "compare_swap", PERF_WORD, "compare_swap", "weft")                                                 \
    X(ADD, "add", PERF_WORD, "add", "weft")                                                                            \
    X(FETCH_ADD, "fetch_add", PERF_WORD, "fetch_add", "weft")                                                          \
    X(INC, "inc", PERF_WORD, "inc", "weft")                                                                            \
    X(FETCH_INC, "fetch_inc", PERF_WORD, "fetch_inc", "weft")                                                          \
    X(AND, "and", PERF_WORD, "and", "weft")                                                                            \
    X(FETCH_AND, "fetch_and", PERF_WORD, "fetch_and", "weft")                                                          \
    X(OR, "or", PERF_WORD, "or", "weft")                                                                               \
    X(FETCH_OR, "fetch_or", PERF_WORD, "fetch_or", "weft")                                                             \
    X(XOR, "xor", PERF_WORD, "xor", "weft")                                                                            \
    X(FETCH_XOR, "fetch_xor", PERF_WORD, "fetch_xor", "weft")                                                          \
    X(PUT_BW, "put_bw", PERF_RATE, "put_bw", "weft")                                                                   \
    X(GET_BW, "get_bw", PERF_RATE, "get_bw", "weft")                                                                   \
    X(PUT_BULK_BW, "put_bulk_bw", PERF_RATE, "put_bulk_bw", "weft")                                                    \
    X(BARRIER, "barrier", PERF_MEET, "barrier", "weft")                                                                \
    X(SYNC, "sync", PERF_MEET, "sync", "weft")                                                                         \
    X(BROADCAST, "broadcast", PERF_COLL, "broadcast", "weft")                                                          \
    X(FCOLLECT, "fcollect", PERF_COLL, "fcollect", "weft")                                                             \
    X(COLLECT, "collect", PERF_COLL, "collect", "weft")                                                                \
    X(ALLTOALL, "alltoall", PERF_COLL, "alltoall", "weft")                                                             \
    X(ALLTOALLV, "alltoallv", PERF_COLL, "alltoallv", "weft")                                                          \
    X(REDUCE, "reduce", PERF_COMBINE, NULL, "weft")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter", PERF_COMBINE, "reduce_scatter", "weft")                                        \
    X(INSCAN, "inscan", PERF_COMBINE, "inscan", "weft")                                                                \
    X(EXSCAN, "exscan", PERF_COMBINE, "exscan", "weft")                                                                \
    X(MALLOC, "malloc", PERF_ALLOC, "malloc", "weft")                                                                  \
    X(WORLD, "world", PERF_LIFE, "world_create", "weft")                                                               \
    X(RAW_PUT_SIGNAL, "raw_put_signal", PERF_TRIPS, "put_signal", "hardware")                                          \
    X(RAW_PUT_BW, "raw_put_bw", PERF_RATE, "put_bw", "hardware")                                                       \
    X(RAW_GET_BW, "raw_get_bw", PERF_RATE, "get_bw", "hardware")                                                       \
    X(RAW_GET_BULK_BW, "raw_get_bulk_bw", PERF_RATE, "get_bw", "hardware")

typedef enum perf_op {
#define PERF_ENUMERATE(OP, ...) PERF_##OP,
    PERF_OPS(PERF_ENUMERATE)
#undef PERF_ENUMERATE
        PERF_OP_COUNT
} perf_op;

/* By whom a call is made. */
typedef enum perf_scope {
    PERF_HOST,
    PERF_STREAM, /* enqueued one behind the other */
    PERF_GRAPH, /* the same, captured and launched as one */
    PERF_THREAD, /* inside a kernel */
    PERF_WARP,
    PERF_BLOCK,
    PERF_SCOPES
} perf_scope;

/* X(NAME of weft_dtype, name, bytes, bits of the mantissa, bias of the exponent). Integers have no bias. */
#define PERF_DTYPES(X)                                                                                                 \
    X(INT8, "int8", 1, 0, 0)                                                                                           \
    X(UINT8, "uint8", 1, 0, 0)                                                                                         \
    X(INT16, "int16", 2, 0, 0)                                                                                         \
    X(UINT16, "uint16", 2, 0, 0)                                                                                       \
    X(INT32, "int32", 4, 0, 0)                                                                                         \
    X(UINT32, "uint32", 4, 0, 0)                                                                                       \
    X(INT64, "int64", 8, 0, 0)                                                                                         \
    X(UINT64, "uint64", 8, 0, 0)                                                                                       \
    X(FLOAT, "float", 4, 23, 127)                                                                                      \
    X(DOUBLE, "double", 8, 52, 1023)                                                                                   \
    X(FP16, "fp16", 2, 10, 15)                                                                                         \
    X(BF16, "bf16", 2, 7, 127)                                                                                         \
    X(E4M3, "e4m3", 1, 3, 7)                                                                                           \
    X(E5M2, "e5m2", 1, 2, 15)

typedef enum perf_dtype {
#define PERF_ENUMERATE(NAME, ...) PERF_##NAME##_TYPE,
    PERF_DTYPES(PERF_ENUMERATE)
#undef PERF_ENUMERATE
        PERF_DTYPE_COUNT
} perf_dtype;

#define PERF_REDUCTIONS 7 /* the values of weft_op */

typedef struct perf_case {
    perf_op op;
    perf_scope scope;
    perf_dtype dtype;
    weft_op reduction;
    size_t bytes; /* a PE's total: of all blocks where each member gets one */
    int pes; /* that take part */
    int everyone; /* rates: all to all others at once, not PE 0 to PE 1 */
    int blocks; /* rates inside kernels */
    int threads; /* of a block */
} perf_case;

extern const char *const perf_op_names[PERF_OP_COUNT];
extern const char *const perf_scope_names[PERF_SCOPES];
extern const char *const perf_dtype_names[PERF_DTYPE_COUNT];
extern const char *const perf_reduction_names[PERF_REDUCTIONS];
extern const char *const perf_pattern_names[2];

perf_kind perf_kind_of(perf_op op);
int perf_is_in_kernel(const perf_case *c);
int perf_has_bytes(perf_op op); /* whose size can be chosen */
int perf_is_typed(perf_op op);

/* The name of the figure, and whose it is. */
void perf_case_name(const perf_case *c, int on_device, char *name, size_t bytes);
const char *perf_case_impl(const perf_case *c);

weft_dtype perf_weft_dtype(perf_dtype dtype);
size_t perf_dtype_bytes(perf_dtype dtype);

/* Bytes of the block that goes to or comes from each member; all of them where members get the same. */
size_t perf_block_bytes(const perf_case *c);
/* The bytes that the case really has: whole elements in equal blocks. 0: it cannot be done with so few. */
size_t perf_rounded_bytes(const perf_case *c);
/* Bytes on the busiest link for a byte of the case, as nccl-tests count: what makes bus bandwidth of bandwidth. */
double perf_bus_factor(const perf_case *c);
/* Calls to time together. */
int perf_default_calls(const perf_case *c);

/* A number as an element; an element that is no integer as a number. */
uint64_t perf_encode(perf_dtype dtype, double value);
double perf_decode(perf_dtype dtype, uint64_t bits);
/* What an element may be off by, as a part of its value. */
double perf_tolerance(perf_dtype dtype);

#endif
