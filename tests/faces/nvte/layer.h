/* faces/nvte/layer.h: a layer's step through TransformerEngine's calls, of ranks that are threads: x * sum over a
 * token's choices of weight * (1 + expert). Small integers, so that sums are exact. */
#ifndef WEFT_TESTS_NVTE_LAYER_H
#define WEFT_TESTS_NVTE_LAYER_H

#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <weft_nvte.h>

#define TOKENS 8 /* most */
#define HIDDEN 16
#define TOPK_MAX 3
#define LOCAL 3 /* experts */
#define RANKS_MAX 4
#define ROWS (RANKS_MAX * TOKENS * TOPK_MAX + LOCAL * 8)

extern const NVTECommWindow none;

/* One layer, its memory and a step's tensors. */
typedef struct layer {
    int topk;
    size_t alignment;
    size_t tokens;
    size_t bytes; /* of handle_mem */
    char *memory;
    int64_t ids[TOKENS * TOPK_MAX];
    float weights[TOKENS * TOPK_MAX];
    float grad_weights[TOKENS * TOPK_MAX];
    _Alignas(16) float x[TOKENS][HIDDEN];
    _Alignas(16) float y[TOKENS][HIDDEN];
    _Alignas(16) float rows[ROWS][HIDDEN];
    float row_weights[ROWS];
    int64_t experts[LOCAL];
    int64_t total;
    weft_nvte_tensor handle_mem, idx, in, out, received, received_weights, topk_weights, weights_back, counts, sum;
} layer;

typedef struct rig {
    int rank;
    int ranks;
    int failures;
    ncclComm_t comm;
    layer layers[4];
} rig;

/* A tensor on the stack. */
weft_nvte_tensor tensor(void *data, NVTEDType type, size_t rows, size_t columns);
void expect(rig *r, int line, weft_status wanted, const char *word);
/* Its status is that of weft_nvte_status, which is looked at. */
void made(weft_status status);
void fail(rig *r, int line, const char *what);
void describe(layer *l);
NVTEEpLayerConfig config_of(const layer *l);
void open_layer(rig *r, layer *l, int topk, size_t alignment);
void close_layer(layer *l);
void choose(const rig *r, layer *l, unsigned seed);
void prepare(rig *r, layer *l);
void dispatch(rig *r, layer *l);
/* prepare and dispatch in one call. */
void prepare_and_dispatch(rig *r, layer *l);
/* What the experts do, weights included; `first`: of the first local expert. */
void work(const rig *r, layer *l);
void combine(rig *r, layer *l);
/* Gradients x of the result: those of the expert outputs are x in each row, padding is 0; sent back, each choice that
 * was sent adds one x to its token, and the weights come back. */
void backward(rig *r, layer *l);
void step(rig *r, layer *l, unsigned seed);
void step_in_one(rig *r, layer *l, unsigned seed);
/* The memory lies elsewhere from now on; what was there is overwritten. */
void move_memory(layer *l);
NVTEEpGroupConfig group_config(const rig *r);

#define OK(call) ((call), expect(r, __LINE__, WEFT_OK, NULL))
#define EXPECT(call, wanted, word) ((call), expect(r, __LINE__, wanted, word))
#define CHECK(is) ((is) ? (void)0 : fail(r, __LINE__, #is))

/* The parts of the test beside steps.c. */
void without_group(rig *r);
void wrong_groups(rig *r);
void wrong_uses(rig *r);
void eager(rig *r);

#endif
