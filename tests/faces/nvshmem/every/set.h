/* faces/nvshmem/every/set.h: what the kernels and the model of them share: a set is a kernel, the calls that it makes,
 * and what it makes them with.
 *
 * Call k of a set has slot k of each array. Cases are the same on all PEs, but for what is awaited. */
#ifndef FACES_NVSHMEM_EVERY_SET_H
#define FACES_NVSHMEM_EVERY_SET_H

#include <nvshmem.h>
#include <nvshmemx.h>
#include <stddef.h>
#include <stdint.h>

#define EVERY_CALLS_MAX 40 /* of a kernel */
#define EVERY_NEVER 14 /* waits and tests that a type has (generate.py); the group of variables behind theirs */
#define EVERY_WORDS 5 /* variables of a wait */
#define EVERY_MASKED 2 /* the one that a status array leaves out */
#define EVERY_GROUP_BYTES 64 /* for the variables of a wait, or a word */
#define EVERY_RESULTS 8 /* numbers that a call gives back */
#define EVERY_LOOK 6 /* the one of a wait that has a bit for each of the words awaited that has come */
#define EVERY_LANES 32 /* that call together where sums are told from races */

enum every_what {
    EVERY_IS_PUT,
    EVERY_IS_GET,
    EVERY_IS_IPUT,
    EVERY_IS_IGET,
    EVERY_IS_P,
    EVERY_IS_G,
    EVERY_IS_PUT_SIGNAL,
    EVERY_IS_BROADCAST,
    EVERY_IS_FCOLLECT,
    EVERY_IS_ALLTOALL,
    EVERY_IS_AND_REDUCE, /* reductions: and, or, xor, max, min, sum, prod; each, then its scattered form */
    EVERY_IS_AND_REDUCE_SCATTER,
    EVERY_IS_OR_REDUCE,
    EVERY_IS_OR_REDUCE_SCATTER,
    EVERY_IS_XOR_REDUCE,
    EVERY_IS_XOR_REDUCE_SCATTER,
    EVERY_IS_MAX_REDUCE,
    EVERY_IS_MAX_REDUCE_SCATTER,
    EVERY_IS_MIN_REDUCE,
    EVERY_IS_MIN_REDUCE_SCATTER,
    EVERY_IS_SUM_REDUCE,
    EVERY_IS_SUM_REDUCE_SCATTER,
    EVERY_IS_PROD_REDUCE,
    EVERY_IS_PROD_REDUCE_SCATTER,
    EVERY_IS_ATOMIC_FETCH,
    EVERY_IS_ATOMIC_SET,
    EVERY_IS_ATOMIC_SWAP,
    EVERY_IS_ATOMIC_COMPARE_SWAP,
    EVERY_IS_ATOMIC_INC,
    EVERY_IS_ATOMIC_FETCH_INC,
    EVERY_IS_ATOMIC_ADD,
    EVERY_IS_ATOMIC_FETCH_ADD,
    EVERY_IS_ATOMIC_AND,
    EVERY_IS_ATOMIC_FETCH_AND,
    EVERY_IS_ATOMIC_OR,
    EVERY_IS_ATOMIC_FETCH_OR,
    EVERY_IS_ATOMIC_XOR,
    EVERY_IS_ATOMIC_FETCH_XOR,
    EVERY_IS_WAIT,
    EVERY_IS_WAIT_ALL,
    EVERY_IS_WAIT_ANY,
    EVERY_IS_WAIT_SOME,
    EVERY_IS_WAIT_ALL_VECTOR,
    EVERY_IS_WAIT_ANY_VECTOR,
    EVERY_IS_WAIT_SOME_VECTOR,
    EVERY_IS_TEST,
    EVERY_IS_TEST_ALL,
    EVERY_IS_TEST_ANY,
    EVERY_IS_TEST_SOME,
    EVERY_IS_TEST_ALL_VECTOR,
    EVERY_IS_TEST_ANY_VECTOR,
    EVERY_IS_TEST_SOME_VECTOR,
    EVERY_IS_OTHER /* checks itself: results[0] is the line of what is wrong, or 0 */
};

enum every_scope { EVERY_THREAD, EVERY_WARP, EVERY_BLOCK, EVERY_ATOMIC, EVERY_WAIT, EVERY_ONCE };

/* What an element is. */
enum every_number { EVERY_BITS, EVERY_SIGNED, EVERY_UNSIGNED, EVERY_FLOAT, EVERY_HALF, EVERY_BFLOAT16 };

typedef struct every_case {
    uint32_t dest; /* bytes from the start of a slot; a multiple of the element */
    uint32_t source;
    uint32_t count; /* elements */
    int root;
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    uint64_t signal;
    int op; /* of the signal */
    uint64_t awaited; /* what this PE's signal becomes */
    int apart; /* of a wait's variables: the one that is sent by itself */
    bool is_first; /* it is sent before the others, which follow when the wait has returned; else behind them */
} every_case;

typedef struct every_args {
    unsigned char *to; /* slots, symmetric; also variables and words */
    unsigned char *from; /* slots, symmetric; what is sent; also values and operands */
    unsigned char *got; /* slots; what has come back */
    unsigned char *seen; /* slots; what lay in `to` when a signal had come */
    uint64_t *signals; /* symmetric, one a call; of waits: how far the next PE is */
    uint64_t *results; /* EVERY_RESULTS a call */
    const every_case *cases;
    const int *status; /* of the variables of a wait; or NULL */
    size_t slot; /* bytes */
    int cmp; /* of waits */
    int pe;
    int pes;
    int next;
    nvshmem_team_t team;
} every_args;

typedef struct every_call {
    const char *name;
    enum every_what what;
} every_call;

typedef struct every_set {
    const char *name;
    enum every_scope scope;
    uint32_t element; /* bytes */
    enum every_number number;
    const every_call *calls;
    int count;
    int (*launch)(unsigned threads, every_args args); /* and wait; 0, or what has failed */
} every_set;

#endif
