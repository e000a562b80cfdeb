/* faces/nccl_ep/wrong.h: what the parts of the test of wrong uses share: groups, handles with a routing, arrays, what
 * good calls are given, and tables of calls with one thing wrong. Each part is of some calls. */
#ifndef WEFT_TESTS_NCCL_EP_WRONG_H
#define WEFT_TESTS_NCCL_EP_WRONG_H

#include "faces/nccl_ep/check.h"
#include "weft.h"

#define TOKENS 4
#define TOPK 2
#define HIDDEN 16
#define EXPERTS 4
#define ROWS (TOKENS * TOPK + EXPERTS * 4)

extern ncclEpGroup_t ht;
extern ncclEpGroup_t ll;
extern ncclEpGroup_t unmasked; /* as ll, without enable_mask */
extern ncclEpHandle_t flat; /* of ht, with a routing */
extern ncclEpHandle_t slots; /* of ll, rank-major, likewise */
extern ncclEpHandle_t fresh; /* of ht, without one */
extern ncclEpGroup_t direct; /* as ht, with zero-copy ON */
extern ncclEpHandle_t windowed; /* of direct, with a routing */
extern ncclComm_t comm;
extern float x[TOKENS][HIDDEN];
extern float y[TOKENS][HIDDEN];
extern float received[ROWS][HIDDEN];
extern float row_weights[ROWS][TOPK];
extern float weights[TOKENS][TOPK];
extern int64_t ids[TOKENS][TOPK];
extern int32_t counts[EXPERTS];
extern char memory[64];

/* What a good call of either handle is given; a row changes one thing of it. */
typedef struct given {
    size_t token_sizes[2];
    size_t choice_sizes[2];
    size_t row_sizes[3];
    size_t place_sizes[3];
    size_t expert_sizes[1];
    size_t memory_sizes[2];
    ncclEpTensor_t in, out, rows, in_weights, out_weights, idx, experts, handle_mem;
    ncclEpDispatchInputs_t dispatch_in;
    ncclEpDispatchOutputs_t dispatch_out;
    ncclEpDispatchConfig_t dispatch;
    ncclEpCombineInputs_t combine_in;
    ncclEpCombineOutputs_t combine_out;
    ncclEpCombineConfig_t combine;
    ncclEpLayoutInfo_t info;
    ncclEpHandleConfig_t handle;
    ncclEpGroupConfig_t group;
    ncclEpCompleteConfig_t complete;
} given;

void fill(given *g, int is_ll);

/* A function that makes one thing wrong. */
#define WRONG(name, what)                                                                                              \
    static void name(given *g)                                                                                         \
    {                                                                                                                  \
        what;                                                                                                          \
    }

/* A call, what is wrong, the result, and a word of the text. */
typedef struct use {
    ncclResult_t (*call)(given *g);
    void (*spoil)(given *g);
    int is_ll;
    ncclResult_t wanted;
    const char *word;
} use;

/* Make all of them, of the table with that name. */
void wrong_rows(const char *table, const use *uses, size_t count);

/* A call has the result that is wanted, with the word in its text. */
void refuse(int line, ncclResult_t result, ncclResult_t wanted, const char *word);
#define REFUSED(call, wanted, word) refuse(__LINE__, call, wanted, word)

extern int failures;

#undef OK
#define OK(call) expect(&failures, 0, __LINE__, call, ncclSuccess, NULL)

/* The parts. */
void wrong_groups(void);
void wrong_left(void); /* behind all else, with all multiprocessors */
void wrong_handles(void);
void wrong_dispatch(void);
void wrong_combine(void);

#endif
