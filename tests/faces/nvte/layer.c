#include "faces/nvte/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const NVTECommWindow none;

/* A tensor on the stack. */
weft_nvte_tensor tensor(void *data, NVTEDType type, size_t rows, size_t columns)
{
    weft_nvte_tensor made = {.magic = WEFT_NVTE_TENSOR_MAGIC};
    made.data.data_ptr = data;
    made.data.dtype = type;
    made.data.shape.data[0] = rows;
    made.data.shape.data[1] = columns;
    made.data.shape.ndim = columns == 0 ? 1 : 2;
    return made;
}

void expect(rig *r, int line, weft_status wanted, const char *word)
{
    weft_status got = weft_nvte_status();
    if (got != wanted || (word != NULL && strstr(weft_last_error(), word) == NULL)) {
        (void)fprintf(stderr, "rank %d, line %d: status %s, wanted %s with \"%s\"; text \"%s\"\n", r->rank, line,
                      weft_status_name(got), weft_status_name(wanted), word != NULL ? word : "", weft_last_error());
        r->failures++;
    }
}

/* Its status is that of weft_nvte_status, which is looked at. */
void made(weft_status status)
{
    if (status != weft_nvte_status()) {
        abort();
    }
}

void fail(rig *r, int line, const char *what)
{
    (void)fprintf(stderr, "rank %d, line %d: not so: %s\n", r->rank, line, what);
    r->failures++;
}

void describe(layer *l)
{
    size_t topk = (size_t)l->topk;
    l->handle_mem = tensor(l->memory, kNVTEByte, l->bytes, 0);
    l->idx = tensor(l->ids, kNVTEInt64, l->tokens, topk);
    l->in = tensor(l->x, kNVTEFloat32, l->tokens, HIDDEN);
    l->out = tensor(l->y, kNVTEFloat32, l->tokens, HIDDEN);
    l->received = tensor(l->rows, kNVTEFloat32, ROWS, HIDDEN);
    l->received_weights = tensor(l->row_weights, kNVTEFloat32, ROWS, 0);
    l->topk_weights = tensor(l->weights, kNVTEFloat32, l->tokens, topk);
    l->weights_back = tensor(l->grad_weights, kNVTEFloat32, l->tokens, topk);
    l->counts = tensor(l->experts, kNVTEInt64, LOCAL, 0);
    l->sum = tensor(&l->total, kNVTEInt64, 1, 0);
}

NVTEEpLayerConfig config_of(const layer *l)
{
    NVTEEpLayerConfig config = NVTE_EP_LAYER_CONFIG_INIT;
    config.top_k = l->topk;
    config.dispatch_output_per_expert_alignment = l->alignment;
    return config;
}

/* Memory that holds anything. */
static char *take_memory(size_t bytes)
{
    char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        abort();
    }
    memset(memory, 0xff, bytes);
    return memory;
}

void open_layer(rig *r, layer *l, int topk, size_t alignment)
{
    l->topk = topk;
    l->alignment = alignment;
    l->tokens = (size_t)(TOKENS - r->rank); /* unequal */
    NVTEEpLayerConfig config = config_of(l);
    OK(l->bytes = nvte_ep_handle_mem_size(&config));
    CHECK(l->bytes != 0 && nvte_ep_handle_mem_size(&config) == l->bytes);
    l->memory = take_memory(l->bytes);
    describe(l);
}

void close_layer(layer *l)
{
    free(l->memory);
    l->memory = NULL;
}

void choose(const rig *r, layer *l, unsigned seed)
{
    unsigned experts = (unsigned)(r->ranks * LOCAL);
    unsigned topk = (unsigned)l->topk;
    for (unsigned t = 0; t < l->tokens; t++) {
        for (unsigned k = 0; k < topk; k++) {
            l->ids[t * topk + k] = (t + k) % 5 == 4 ? -1 : (int64_t)((seed + 2 * t + k + (unsigned)r->rank) % experts);
            l->weights[t * topk + k] = 0.25f * (float)(1 + (t + k) % 3);
        }
        for (unsigned h = 0; h < HIDDEN; h++) {
            l->x[t][h] = (float)(1 + (t + h + seed) % 7);
        }
    }
}

void prepare(rig *r, layer *l)
{
    NVTEEpLayerConfig config = config_of(l);
    OK(nvte_ep_prepare(&l->handle_mem, &l->idx, &l->counts, &l->sum, &config, NULL));
    int64_t rows = 0;
    for (int e = 0; e < LOCAL; e++) {
        rows += l->experts[e];
        CHECK(l->alignment < 2 || l->experts[e] % (int64_t)l->alignment == 0);
    }
    CHECK(rows == l->total);
}

void dispatch(rig *r, layer *l)
{
    memset(l->rows, 0xff, sizeof l->rows);
    memset(l->row_weights, 0xff, sizeof l->row_weights);
    OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                        &l->received_weights, none, NULL));
    for (size_t row = (size_t)l->total; row < ROWS; row++) {
        CHECK(l->row_weights[row] == 0);
    }
}

/* prepare and dispatch in one call. */
void prepare_and_dispatch(rig *r, layer *l)
{
    NVTEEpLayerConfig config = config_of(l);
    memset(l->rows, 0xff, sizeof l->rows);
    memset(l->row_weights, 0xff, sizeof l->row_weights);
    l->total = -1;
    OK(nvte_ep_prepare_and_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                                    &l->received_weights, none, &l->counts, &l->sum, &config, NULL));
    int64_t total = 0;
    for (int e = 0; e < LOCAL; e++) {
        total += l->experts[e];
    }
    CHECK(l->total == total);
    for (size_t row = (size_t)l->total; row < ROWS; row++) {
        CHECK(l->row_weights[row] == 0);
    }
}

/* What the experts do, weights included; `first`: of the first local expert. */
void work(const rig *r, layer *l)
{
    size_t row = 0;
    for (int e = 0; e < LOCAL; e++) {
        float factor = (float)(1 + r->rank * LOCAL + e);
        for (int64_t i = 0; i < l->experts[e]; i++, row++) {
            for (int h = 0; h < HIDDEN; h++) {
                l->rows[row][h] *= factor * l->row_weights[row];
            }
        }
    }
}

void combine(rig *r, layer *l)
{
    memset(l->y, 0xff, sizeof l->y);
    OK(nvte_ep_combine(&l->handle_mem, &l->received, none, &l->out, NULL));
    for (size_t t = 0; t < l->tokens; t++) {
        float factor = 0;
        for (int k = 0; k < l->topk; k++) {
            int64_t id = l->ids[t * (size_t)l->topk + (size_t)k];
            factor += id < 0 ? 0 : l->weights[t * (size_t)l->topk + (size_t)k] * (float)(1 + id);
        }
        for (int h = 0; h < HIDDEN; h++) {
            CHECK(l->y[t][h] == l->x[t][h] * factor);
        }
    }
}

/* Gradients x of the result: those of the expert outputs are x in each row, padding is 0; sent back, each choice that
 * was sent adds one x to its token, and the weights come back. */
void backward(rig *r, layer *l)
{
    memset(l->rows, 0xff, sizeof l->rows);
    OK(nvte_ep_combine_bwd(&l->handle_mem, &l->in, none, &l->received, none, NULL));
    for (size_t row = 0; row < (size_t)l->total; row++) {
        CHECK((l->row_weights[row] == 0) == (l->rows[row][0] == 0));
    }
    OK(nvte_ep_dispatch_bwd(&l->handle_mem, &l->received, none, &l->received_weights, none, &l->out, &l->weights_back,
                            NULL));
    for (size_t t = 0; t < l->tokens; t++) {
        float sent = 0;
        for (size_t k = 0; k < (size_t)l->topk; k++) {
            size_t at = t * (size_t)l->topk + k;
            CHECK(l->grad_weights[at] == (l->ids[at] < 0 ? 0 : l->weights[at]));
            sent += l->ids[at] >= 0;
        }
        CHECK(l->y[t][0] == sent * l->x[t][0]);
    }
}

void step(rig *r, layer *l, unsigned seed)
{
    choose(r, l, seed);
    prepare(r, l);
    dispatch(r, l);
    work(r, l);
    combine(r, l);
}

void step_in_one(rig *r, layer *l, unsigned seed)
{
    choose(r, l, seed);
    prepare_and_dispatch(r, l);
    work(r, l);
    combine(r, l);
}

/* The memory lies elsewhere from now on; what was there is overwritten. */
void move_memory(layer *l)
{
    char *there = take_memory(l->bytes);
    memcpy(there, l->memory, l->bytes);
    memset(l->memory, 0xff, l->bytes);
    free(l->memory);
    l->memory = there;
    describe(l);
}

NVTEEpGroupConfig group_config(const rig *r)
{
    NVTEEpGroupConfig config = NVTE_EP_GROUP_CONFIG_INIT;
    config.ep_size = r->ranks;
    config.num_experts = r->ranks * LOCAL;
    config.max_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = ROWS;
    config.hidden_dim = HIDDEN;
    config.max_token_dtype = kNVTEFloat32;
    config.num_topk = TOPK_MAX;
    return config;
}
