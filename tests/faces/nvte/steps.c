/* Goal: a layer's step through TransformerEngine's calls, forward and backward, gives each token x * sum over its
 * choices of weight * (1 + expert); layers of several top_k and alignments, and of several groups, may be under way at
 * once, in memory that is copied elsewhere in between; as TransformerEngine's extension of PyTorch calls them, in
 * buffers of as many rows as come; shut down twice and made again at another size; wrong uses are statuses with a text
 * that change nothing.
 *
 * Method: PEs as threads, a device each, with the stand-in for NCCL and the fake driver, whose device memory is this
 * machine's. Small integers, so that sums are exact. Usage: steps RANKS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"
#include "weft.h"
#include <weft_nvte.h>

#define TOKENS 8 /* most */
#define HIDDEN 16
#define TOPK_MAX 3
#define LOCAL 3 /* experts */
#define RANKS_MAX 4
#define ROWS (RANKS_MAX * TOKENS * TOPK_MAX + LOCAL * 8)

static const NVTECommWindow none;

/* A tensor on the stack. */
static weft_nvte_tensor tensor(void *data, NVTEDType type, size_t rows, size_t columns)
{
    weft_nvte_tensor made = {.magic = WEFT_NVTE_TENSOR_MAGIC};
    made.data.data_ptr = data;
    made.data.dtype = type;
    made.data.shape.data[0] = rows;
    made.data.shape.data[1] = columns;
    made.data.shape.ndim = columns == 0 ? 1 : 2;
    return made;
}

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

static void expect(rig *r, int line, weft_status wanted, const char *word)
{
    weft_status got = weft_nvte_status();
    if (got != wanted || (word != NULL && strstr(weft_last_error(), word) == NULL)) {
        (void)fprintf(stderr, "rank %d, line %d: status %s, wanted %s with \"%s\"; text \"%s\"\n", r->rank, line,
                      weft_status_name(got), weft_status_name(wanted), word != NULL ? word : "", weft_last_error());
        r->failures++;
    }
}

/* Its status is that of weft_nvte_status, which is looked at. */
static void made(weft_status status)
{
    if (status != weft_nvte_status()) {
        abort();
    }
}

#define OK(call) ((call), expect(r, __LINE__, WEFT_OK, NULL))
#define EXPECT(call, wanted, word) ((call), expect(r, __LINE__, wanted, word))
#define CHECK(is) ((is) ? (void)0 : fail(r, __LINE__, #is))

static void fail(rig *r, int line, const char *what)
{
    (void)fprintf(stderr, "rank %d, line %d: not so: %s\n", r->rank, line, what);
    r->failures++;
}

/* ---- layers ---- */

static void describe(layer *l)
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

static NVTEEpLayerConfig config_of(const layer *l)
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

static void open_layer(rig *r, layer *l, int topk, size_t alignment)
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

static void close_layer(layer *l)
{
    free(l->memory);
    l->memory = NULL;
}

static void choose(const rig *r, layer *l, unsigned seed)
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

static void prepare(rig *r, layer *l)
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

static void dispatch(rig *r, layer *l)
{
    memset(l->rows, 0xff, sizeof l->rows);
    memset(l->row_weights, 0xff, sizeof l->row_weights);
    OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                        &l->received_weights, none, NULL));
    for (size_t row = (size_t)l->total; row < ROWS; row++) {
        CHECK(l->row_weights[row] == 0);
    }
}

/* prepare and dispatch in one call, which has no total. */
static void prepare_and_dispatch(rig *r, layer *l)
{
    NVTEEpLayerConfig config = config_of(l);
    memset(l->rows, 0xff, sizeof l->rows);
    memset(l->row_weights, 0xff, sizeof l->row_weights);
    OK(nvte_ep_prepare_and_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                                    &l->received_weights, none, &l->counts, &config, NULL));
    l->total = 0;
    for (int e = 0; e < LOCAL; e++) {
        l->total += l->experts[e];
    }
    for (size_t row = (size_t)l->total; row < ROWS; row++) {
        CHECK(l->row_weights[row] == 0);
    }
}

/* What the experts do, weights included; `first`: of the first local expert. */
static void work(const rig *r, layer *l)
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

static void combine(rig *r, layer *l)
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
static void backward(rig *r, layer *l)
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

static void step(rig *r, layer *l, unsigned seed)
{
    choose(r, l, seed);
    prepare(r, l);
    dispatch(r, l);
    work(r, l);
    combine(r, l);
}

static void step_in_one(rig *r, layer *l, unsigned seed)
{
    choose(r, l, seed);
    prepare_and_dispatch(r, l);
    work(r, l);
    combine(r, l);
}

/* The memory lies elsewhere from now on; what was there is overwritten. */
static void move_memory(layer *l)
{
    char *there = take_memory(l->bytes);
    memcpy(there, l->memory, l->bytes);
    memset(l->memory, 0xff, l->bytes);
    free(l->memory);
    l->memory = there;
    describe(l);
}

/* ---- groups ---- */

static NVTEEpGroupConfig group_config(const rig *r)
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

static void layers(rig *r)
{
    layer *a = &r->layers[0];
    layer *b = &r->layers[1];
    open_layer(r, a, 2, 4);
    open_layer(r, b, 3, 0);
    CHECK(a->bytes != b->bytes);
    step(r, a, 1);
    step(r, b, 2); /* another top_k and alignment, while a's backward is to come */
    backward(r, a);
    backward(r, b);
    layer *c = &r->layers[2];
    open_layer(r, c, 2, 4); /* as a, in memory of its own */
    CHECK(c->bytes == a->bytes);
    step(r, c, 5);
    move_memory(a);
    backward(r, a);
    move_memory(c);
    backward(r, c);
    step(r, a, 7); /* memory of an earlier routing */
    char *reused = a->memory; /* for a layer of the same size, with other routing */
    a->memory = c->memory;
    c->memory = reused;
    describe(a);
    describe(c);
    step(r, c, 9);
    step_in_one(r, a, 11);
    backward(r, c);
    backward(r, a);
    dispatch(r, a); /* on the routing that the one call has agreed on */
    work(r, a);
    combine(r, a);
    close_layer(a);
    close_layer(b);
    close_layer(c);
}

/* A step on a routing of the layer, forward and backward. */
static void both_ways(rig *r, layer *l)
{
    OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                        &l->received_weights, none, NULL));
    work(r, l);
    combine(r, l);
    backward(r, l);
}

/* Ranks that receive nothing have buffers of no rows at NULL, of rows and of weights. */
static void nothing_received(rig *r, layer *l)
{
    if (r->rank != 0) {
        l->received = tensor(NULL, kNVTEFloat32, 0, HIDDEN);
        l->received_weights = tensor(NULL, kNVTEFloat32, 0, 0);
    }
    both_ways(r, l);
    describe(l);
}

/* The last rank has no tokens, and NULL for all that is theirs. */
static void no_tokens(rig *r)
{
    layer *l = &r->layers[0];
    open_layer(r, l, 2, 4);
    if (r->rank == r->ranks - 1) {
        l->tokens = 0;
        describe(l);
        l->idx.data.data_ptr = l->topk_weights.data.data_ptr = l->weights_back.data.data_ptr = NULL;
        l->in.data.data_ptr = l->out.data.data_ptr = NULL;
    }
    choose(r, l, 5);
    prepare(r, l);
    both_ways(r, l);
    close_layer(l);
}

/* All tokens to the first and the last expert of rank 0: the others, and the rank's own in between, have no row. */
static void empty_experts(rig *r)
{
    layer *l = &r->layers[0];
    static const size_t alignments[] = {0, 2, 4, 8};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        open_layer(r, l, 2, alignments[i]);
        choose(r, l, (unsigned)i);
        for (size_t t = 0; t < l->tokens; t++) {
            l->ids[2 * t] = 0;
            l->ids[2 * t + 1] = LOCAL - 1;
        }
        prepare(r, l);
        CHECK(l->experts[1] == 0 && (r->rank == 0) == (l->total != 0));
        dispatch(r, l);
        work(r, l);
        combine(r, l);
        backward(r, l);
        nothing_received(r, l);
        prepare_and_dispatch(r, l);
        work(r, l);
        combine(r, l);
        close_layer(l);
    }
}

/* Rows of this rank's experts: those that lie in rows begin[e] on and below `most` of the first `most` tokens. */
static void count_rows(const rig *r, const layer *l, unsigned seed, const int64_t begin[LOCAL], int64_t most,
                       int64_t rows[LOCAL])
{
    unsigned experts = (unsigned)(r->ranks * LOCAL);
    int64_t next[LOCAL];
    int64_t tokens = 0;
    memcpy(next, begin, sizeof next);
    memset(rows, 0, LOCAL * sizeof *rows);
    for (unsigned source = 0; source < (unsigned)r->ranks; source++) {
        for (unsigned t = 0; t < TOKENS - source; t++) {
            int comes = 0;
            for (unsigned k = 0; k < (unsigned)l->topk; k++) {
                unsigned expert = (seed + 2 * t + k + source) % experts;
                if ((t + k) % 5 != 4 && expert / LOCAL == (unsigned)r->rank) {
                    comes = 1;
                    rows[expert % LOCAL] += tokens < most && next[expert % LOCAL]++ < most;
                }
            }
            tokens += comes;
        }
    }
}

/* With padding; begin[e]: the first row of expert e, [LOCAL] behind the last. */
static void lay_rows(const layer *l, const int64_t rows[LOCAL], int64_t begin[LOCAL + 1])
{
    int64_t to = l->alignment > 1 ? (int64_t)l->alignment : 1;
    begin[0] = 0;
    for (int e = 0; e < LOCAL; e++) {
        begin[e + 1] = begin[e] + (rows[e] + to - 1) / to * to;
    }
}

/* Counts of a rank to which more come than fit: the total is of what would come; those of experts are of what would lie
 * below `most` then, of the first `most` tokens. */
static void check_kept(rig *r, const layer *l, unsigned seed, int64_t most)
{
    static const int64_t first[LOCAL] = {0};
    int64_t rows[LOCAL];
    int64_t begin[LOCAL + 1];
    int64_t kept = 0;
    count_rows(r, l, seed, first, INT64_MAX, rows);
    lay_rows(l, rows, begin);
    CHECK(l->total == begin[LOCAL]);
    count_rows(r, l, seed, begin, most, rows);
    lay_rows(l, rows, begin);
    for (int e = 0; e < LOCAL; e++) {
        CHECK(l->experts[e] == begin[e + 1] - begin[e]);
        kept += l->experts[e];
    }
    for (int64_t row = 0; row < kept; row++) {
        CHECK(l->row_weights[row] == 0 ? l->alignment > 1 : l->rows[row][0] >= 1 && l->rows[row][0] <= 7);
    }
}

/* A group that drops. */
static void dropped(rig *r)
{
    layer *l = &r->layers[0];
    weft_nvte_group *group = NULL;
    NVTEEpGroupConfig config = group_config(r);
    config.max_recv_tokens_per_rank = TOKENS;
    config.drop_on_overflow = 1;
    OK(made(weft_nvte_group_create(r->comm, &config, &group)));
    OK((void)weft_nvte_group_select(group));
    for (unsigned seed = 0; seed < 4; seed++) {
        NVTEEpLayerConfig layer_config;
        open_layer(r, l, 3, seed % 2 == 0 ? 0 : 2);
        choose(r, l, seed);
        layer_config = config_of(l);
        OK(nvte_ep_prepare(&l->handle_mem, &l->idx, &l->counts, &l->sum, &layer_config, NULL));
        OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                            &l->received_weights, none, NULL));
        check_kept(r, l, seed, TOKENS);
        OK(nvte_ep_combine(&l->handle_mem, &l->received, none, &l->out, NULL));
        OK(nvte_ep_prepare_and_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received,
                                        none, &l->received_weights, none, &l->counts, &layer_config, NULL));
        check_kept(r, l, seed, TOKENS);
        close_layer(l);
    }
    OK((void)weft_nvte_group_destroy(group));
}

/* A layer of each of two groups: memory names the group, whichever is selected. */
static void two_groups(rig *r)
{
    layer *a = &r->layers[0];
    layer *b = &r->layers[1];
    layer *d = &r->layers[3];
    weft_nvte_group *other = NULL;
    NVTEEpGroupConfig config = group_config(r);
    config.num_topk = 1;
    open_layer(r, a, 1, 2);
    OK(made(weft_nvte_group_create(r->comm, &config, &other)));
    OK((void)weft_nvte_group_select(other));
    open_layer(r, b, 1, 2);
    NVTEEpLayerConfig wide = config_of(b);
    wide.top_k = 2;
    EXPECT(CHECK(nvte_ep_handle_mem_size(&wide) == 0), WEFT_ERR_ARGUMENT, "top_k is 2; give 1 .. 1");
    CHECK(a->bytes != b->bytes);
    step(r, a, 1);
    step(r, b, 3);
    OK((void)weft_nvte_group_select(NULL));
    backward(r, b);
    backward(r, a);
    OK((void)weft_nvte_group_select(other));
    OK((void)weft_nvte_group_destroy(other));
    EXPECT((void)weft_nvte_group_destroy(other), WEFT_ERR_ARGUMENT, "was destroyed");
    EXPECT((void)weft_nvte_group_select(other), WEFT_ERR_ARGUMENT, "was destroyed");
    EXPECT(nvte_ep_combine(&b->handle_mem, &b->received, none, &b->out, NULL), WEFT_ERR_STATE, "has ended");
    open_layer(r, d, 1, 2); /* of the default group again */
    CHECK(d->bytes == a->bytes);
    step(r, d, 2);
    close_layer(a);
    close_layer(b);
    close_layer(d);
}

/* Rows of fp8 with scales of 32 elements: both say who sent them. Their group is wide enough for rows of 512. */
static void scaled(rig *r)
{
    enum { WIDE = 512, SCALES = WIDE / 32 };
    static _Alignas(16) unsigned char x[RANKS_MAX][TOKENS][WIDE];
    static _Alignas(16) unsigned char x_scales[RANKS_MAX][TOKENS][SCALES];
    static _Alignas(16) unsigned char there[RANKS_MAX][ROWS][WIDE];
    static _Alignas(16) unsigned char there_scales[RANKS_MAX][ROWS][SCALES];
    NVTEEpGroupConfig config = group_config(r);
    weft_nvte_group *wide = NULL;
    layer *l = &r->layers[0];
    config.hidden_dim = WIDE;
    config.max_token_dtype = kNVTEFloat8E4M3;
    OK(made(weft_nvte_group_create(r->comm, &config, &wide)));
    OK((void)weft_nvte_group_select(wide));
    open_layer(r, l, 2, 0);
    choose(r, l, 3);
    prepare(r, l);
    for (size_t t = 0; t < l->tokens; t++) {
        memset(x[r->rank][t], 1 + 16 * r->rank + (int)t, WIDE);
        memset(x_scales[r->rank][t], 101 + 16 * r->rank + (int)t, SCALES);
    }
    memset(there[r->rank], 0, sizeof there[0]);
    memset(there_scales[r->rank], 0, sizeof there_scales[0]);
    weft_nvte_tensor in = tensor(x[r->rank], kNVTEFloat8E4M3, l->tokens, WIDE);
    weft_nvte_tensor out = tensor(there[r->rank], kNVTEFloat8E4M3, ROWS, WIDE);
    in.scaling_mode = out.scaling_mode = NVTE_MXFP8_1D_SCALING;
    EXPECT(nvte_ep_dispatch(&l->handle_mem, &l->idx, &in, none, NULL, none, &out, none, NULL, none, NULL),
           WEFT_ERR_ARGUMENT, "neither data");
    in.scale_inv.data_ptr = x_scales[r->rank];
    out.scale_inv.data_ptr = there_scales[r->rank];
    OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &in, none, &l->topk_weights, none, &out, none, &l->received_weights,
                        none, NULL));
    for (size_t row = 0; row < ROWS; row++) {
        const unsigned char *at = there[r->rank][row];
        CHECK((at[0] != 0) == (row < (size_t)l->total));
        CHECK(at[WIDE - 1] == at[0]);
        CHECK(there_scales[r->rank][row][0] == (at[0] != 0 ? at[0] + 100 : 0));
        CHECK(there_scales[r->rank][row][SCALES - 1] == there_scales[r->rank][row][0]);
    }
    EXPECT(nvte_ep_combine(&l->handle_mem, &out, none, &in, NULL), WEFT_ERR_UNSUPPORTED, "has type 7");
    out.scaling_mode = NVTE_DELAYED_TENSOR_SCALING;
    EXPECT(nvte_ep_combine_bwd(&l->handle_mem, &in, none, &out, none, NULL), WEFT_ERR_UNSUPPORTED, "has type 7");
    out.scaling_mode = NVTE_MXFP8_1D_SCALING;
    in.data.shape.data[1] = out.data.shape.data[1] = WIDE / 8;
    EXPECT(nvte_ep_combine_bwd(&l->handle_mem, &in, none, &out, none, NULL), WEFT_ERR_UNSUPPORTED, "a multiple of 128");
    in.data.shape.data[1] = WIDE;
    out.data.shape.data[1] = WIDE / 4;
    EXPECT(nvte_ep_combine_bwd(&l->handle_mem, &in, none, &out, none, NULL), WEFT_ERR_ARGUMENT, "512 and 128 elements");
    OK((void)weft_nvte_group_destroy(wide));
    close_layer(l);
}

/* ---- wrong uses ---- */

static void wrong_groups(rig *r)
{
    const struct {
        size_t offset;
        int value;
        weft_status status;
        const char *word;
    } fields[] = {
        {offsetof(NVTEEpGroupConfig, ep_size), r->ranks + 1, WEFT_ERR_ARGUMENT, "and the communicator has"},
        {offsetof(NVTEEpGroupConfig, ep_size), 0, WEFT_ERR_ARGUMENT, "ep_size 0"},
        {offsetof(NVTEEpGroupConfig, num_experts), 0, WEFT_ERR_ARGUMENT, "num_experts 0"},
        {offsetof(NVTEEpGroupConfig, max_tokens_per_rank), -1, WEFT_ERR_ARGUMENT, "max_tokens_per_rank -1"},
        {offsetof(NVTEEpGroupConfig, max_recv_tokens_per_rank), 1, WEFT_ERR_ARGUMENT, "max_recv_tokens_per_rank is 1"},
        {offsetof(NVTEEpGroupConfig, max_recv_tokens_per_rank), -1, WEFT_ERR_ARGUMENT, "max_recv_tokens_per_rank -1"},
        {offsetof(NVTEEpGroupConfig, hidden_dim), 3, WEFT_ERR_ARGUMENT, "hidden_dim is 3"},
        {offsetof(NVTEEpGroupConfig, num_comm_sms), -1, WEFT_ERR_ARGUMENT, "num_comm_sms -1"},
        {offsetof(NVTEEpGroupConfig, max_token_dtype), kNVTEByte, WEFT_ERR_UNSUPPORTED, "max_token_dtype is 0"},
        {offsetof(NVTEEpGroupConfig, max_token_dtype), 77, WEFT_ERR_UNSUPPORTED, "max_token_dtype is 77"},
        {offsetof(NVTEEpGroupConfig, num_topk), 65, WEFT_ERR_ARGUMENT, "num_topk 65"},
    };
    NVTEEpGroupConfig config = group_config(r);
    weft_nvte_group *group = NULL;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        config = group_config(r);
        memcpy((char *)&config + fields[i].offset, &fields[i].value, sizeof(int));
        EXPECT(nvte_ep_initialize(r->comm, &config), fields[i].status, fields[i].word);
    }
    config = group_config(r);
    config.struct_size = 39;
    EXPECT(nvte_ep_initialize(r->comm, &config), WEFT_ERR_ARGUMENT, "its first version has 40 bytes");
    EXPECT(nvte_ep_initialize(r->comm, NULL), WEFT_ERR_ARGUMENT, "'group_config' is NULL");
    config = group_config(r);
    EXPECT(nvte_ep_initialize(NULL, &config), WEFT_ERR_ARGUMENT, "'ep_comm' is NULL");
    EXPECT(made(weft_nvte_group_create(r->comm, &config, NULL)), WEFT_ERR_ARGUMENT, "'group' is NULL");
    config.max_recv_tokens_per_rank = 0;
    config.drop_on_overflow = 1;
    EXPECT(made(weft_nvte_group_create(r->comm, &config, &group)), WEFT_ERR_UNSUPPORTED, "OVERFLOW_DROP");
    CHECK(group == NULL);
    OK((void)weft_nvte_group_destroy(NULL));
}

static void without_group(rig *r)
{
    layer *l = &r->layers[0];
    l->topk = 1;
    NVTEEpLayerConfig config = config_of(l);
    EXPECT(CHECK(nvte_ep_handle_mem_size(&config) == 0), WEFT_ERR_STATE, "nvte_ep_initialize first");
    OK(nvte_ep_shutdown());
}

/* A tensor of a good call that is another one instead, one at a time. */
static void wrong_tensors(rig *r, layer *l)
{
    NVTEEpLayerConfig config = config_of(l);
    weft_nvte_tensor bad = l->handle_mem;
    EXPECT(nvte_ep_prepare(NULL, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "'handle_mem' is NULL");
    bad.data.shape.data[0]--;
    EXPECT(nvte_ep_prepare(&bad, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "handle_mem");
    bad = l->handle_mem;
    bad.data.shape.data[0] = (size_t)1 << 20; /* rounded up */
    EXPECT(nvte_ep_prepare(&bad, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "which name the layer");
    bad = l->handle_mem;
    bad.data.data_ptr = l->memory + 8;
    EXPECT(nvte_ep_prepare(&bad, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "align it to 64");
    bad.data.data_ptr = NULL;
    EXPECT(nvte_ep_prepare(&bad, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "neither data");
    bad = l->handle_mem;
    bad.data.dtype = kNVTEInt32;
    EXPECT(nvte_ep_prepare(&bad, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "type 2");
    bad = l->idx;
    bad.data.dtype = kNVTEFloat32;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &bad, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "type 4");
    bad = l->idx;
    bad.data.shape.data[0] = TOKENS + 1;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &bad, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "has 9 tokens");
    bad = l->idx;
    bad.data.shape.data[1]++;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &bad, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "the last of top_k");
    bad = l->counts;
    bad.data.shape.data[0]++;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &l->idx, &bad, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "give 3 of");
    bad = l->sum;
    bad.data.dtype = kNVTEInt32;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &l->idx, &l->counts, &bad, &config, NULL), WEFT_ERR_UNSUPPORTED,
           "two types");
    bad.magic = 0;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &bad, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "is none of");
    EXPECT(nvte_ep_prepare(&l->handle_mem, (NVTETensor)(uintptr_t)7, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT,
           "is not loaded");
    EXPECT(nvte_ep_prepare(&l->handle_mem, &l->idx, NULL, NULL, NULL, NULL), WEFT_ERR_ARGUMENT, "'layer_cfg' is NULL");
    config.top_k = 1;
    EXPECT(nvte_ep_prepare(&l->handle_mem, &l->idx, NULL, NULL, &config, NULL), WEFT_ERR_ARGUMENT, "layer_cfg says 1");
    config.top_k = 65;
    EXPECT(CHECK(nvte_ep_handle_mem_size(&config) == 0), WEFT_ERR_ARGUMENT, "top_k is 65");
    config.top_k = 2;
    config.dispatch_output_per_expert_alignment = 3;
    EXPECT(CHECK(nvte_ep_handle_mem_size(&config) == 0), WEFT_ERR_ARGUMENT, "power of two");
    config.struct_size = 8;
    EXPECT(CHECK(nvte_ep_handle_mem_size(&config) == 0), WEFT_ERR_ARGUMENT, "first version has 24");
}

#define DISPATCH(in, weights, received, row_weights)                                                                   \
    nvte_ep_dispatch(&l->handle_mem, &l->idx, in, none, weights, none, received, none, row_weights, none, NULL)

/* Rows of a number of tokens that no routing has: fewer than were prepared, since kernels write as many as those. */
static void wrong_tokens(rig *r, layer *l)
{
    weft_nvte_tensor few = l->out;
    weft_nvte_tensor few_weights = l->weights_back;
    few.data.shape.data[0] -= TOKENS / 2;
    few_weights.data.shape.data[0] -= TOKENS / 2;
    EXPECT(DISPATCH(&few, NULL, &l->received, NULL), WEFT_ERR_ARGUMENT, "tensor 'tokens' has");
    EXPECT(nvte_ep_combine_bwd(&l->handle_mem, &few, none, &l->received, none, NULL), WEFT_ERR_ARGUMENT, "'grad' has");
    EXPECT(nvte_ep_combine(&l->handle_mem, &l->received, none, &few, NULL), WEFT_ERR_ARGUMENT, "'result' has");
    EXPECT(
        nvte_ep_dispatch_bwd(&l->handle_mem, &l->received, none, &l->received_weights, none, &few, &few_weights, NULL),
        WEFT_ERR_ARGUMENT, "'grad_tokens' has");
}

#define IN_ONE(idx, in, weights, counts, config)                                                                       \
    nvte_ep_prepare_and_dispatch(&l->handle_mem, idx, in, none, weights, none, &l->received, none,                     \
                                 &l->received_weights, none, counts, config, NULL)

static void wrong_in_one(rig *r, layer *l)
{
    NVTEEpLayerConfig config = config_of(l);
    weft_nvte_tensor bad = l->in;
    EXPECT(IN_ONE(&l->idx, &l->in, &l->topk_weights, &l->counts, NULL), WEFT_ERR_ARGUMENT, "'layer_cfg' is NULL");
    EXPECT(IN_ONE(NULL, &l->in, NULL, NULL, &config), WEFT_ERR_ARGUMENT, "'topk_idx' is NULL");
    EXPECT(IN_ONE(&l->idx, NULL, &l->topk_weights, &l->counts, &config), WEFT_ERR_ARGUMENT, "'tokens' is NULL");
    bad.data.shape.data[0]--;
    EXPECT(IN_ONE(&l->idx, &bad, NULL, NULL, &config), WEFT_ERR_ARGUMENT, "give as many");
    bad = l->counts;
    bad.data.dtype = kNVTEFloat32;
    EXPECT(IN_ONE(&l->idx, &l->in, &l->topk_weights, &bad, &config), WEFT_ERR_ARGUMENT, "recv_tokens_per_expert");
    bad = l->topk_weights;
    bad.data.dtype = kNVTEInt32;
    EXPECT(IN_ONE(&l->idx, &l->in, &bad, &l->counts, &config), WEFT_ERR_ARGUMENT, "of kNVTEFloat32");
    config.top_k = 1;
    EXPECT(IN_ONE(&l->idx, &l->in, &l->topk_weights, &l->counts, &config), WEFT_ERR_ARGUMENT, "layer_cfg says 1");
}

static void wrong_moves(rig *r, layer *l)
{
    weft_nvte_tensor bad = l->in;
    NVTECommWindow window = {.window = (struct ncclWindow_vidmem *)&bad};
    EXPECT(DISPATCH(NULL, &l->topk_weights, &l->received, &l->received_weights), WEFT_ERR_ARGUMENT, "'tokens' is NULL");
    bad.data.dtype = kNVTEFloat8E4M3;
    EXPECT(DISPATCH(&bad, NULL, &l->received, NULL), WEFT_ERR_UNSUPPORTED, "has type 7");
    bad = l->in;
    bad.scaling_mode = NVTE_MXFP8_1D_SCALING;
    EXPECT(DISPATCH(&bad, NULL, &l->received, NULL), WEFT_ERR_UNSUPPORTED, "scaling mode 1");
    bad = l->in;
    bad.data.shape.data[1] *= 2;
    EXPECT(DISPATCH(&bad, NULL, &l->received, NULL), WEFT_ERR_ARGUMENT, "the last of 32 elements");
    bad = l->in;
    bad.data.shape.data[0] = TOKENS + 1;
    EXPECT(DISPATCH(&bad, NULL, &l->received, NULL), WEFT_ERR_ARGUMENT, "has 9 rows");
    bad = l->in;
    bad.data.shape.data[0]--;
    EXPECT(DISPATCH(&bad, &l->topk_weights, &l->received, &l->received_weights), WEFT_ERR_ARGUMENT, "give as many");
    bad = l->in;
    bad.data.data_ptr = (char *)l->x + 4;
    EXPECT(DISPATCH(&bad, NULL, &l->received, NULL), WEFT_ERR_ARGUMENT, "align it to 16");
    bad = l->received;
    bad.data.shape.data[1] /= 2;
    EXPECT(DISPATCH(&l->in, NULL, &bad, NULL), WEFT_ERR_ARGUMENT, "widths; give one");
    bad = l->topk_weights;
    bad.data.dtype = kNVTEFloat16;
    EXPECT(DISPATCH(&l->in, &bad, &l->received, &l->received_weights), WEFT_ERR_ARGUMENT, "of kNVTEFloat32");
    bad = l->received_weights;
    bad.data.shape.data[0]--;
    EXPECT(DISPATCH(&l->in, &l->topk_weights, &l->received, &bad), WEFT_ERR_ARGUMENT, "recv_topk_weights");
    EXPECT(DISPATCH(&l->in, &l->topk_weights, &l->received, NULL), WEFT_ERR_ARGUMENT, "'recv_topk_weights' is NULL");
    EXPECT(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, window, NULL, none, &l->received, none, NULL, none, NULL),
           WEFT_ERR_UNSUPPORTED, "2.29.2"); /* the stand-in is an older NCCL */
    EXPECT(nvte_ep_combine(&l->handle_mem, NULL, none, &l->out, NULL), WEFT_ERR_ARGUMENT, "'expert_out' is NULL");
    bad = l->out;
    bad.data.dtype = kNVTEBFloat16;
    EXPECT(nvte_ep_combine(&l->handle_mem, &l->received, none, &bad, NULL), WEFT_ERR_ARGUMENT, "widths; give one");
    EXPECT(nvte_ep_combine_bwd(&l->handle_mem, &l->in, none, NULL, none, NULL), WEFT_ERR_ARGUMENT,
           "'grad_expert_out' is NULL");
    EXPECT(nvte_ep_dispatch_bwd(&l->handle_mem, &l->received, none, NULL, none, &l->out, &l->weights_back, NULL),
           WEFT_ERR_ARGUMENT, "'g_recv_topk_weights' is NULL");
    bad = l->weights_back;
    bad.data.shape.data[0]--;
    EXPECT(nvte_ep_dispatch_bwd(&l->handle_mem, &l->received, none, &l->received_weights, none, &l->out, &bad, NULL),
           WEFT_ERR_ARGUMENT, "grad_topk_weights");
    wrong_tokens(r, l);
}

static void wrong_uses(rig *r)
{
    layer *l = &r->layers[0];
    NVTEEpGroupConfig config = group_config(r);
    EXPECT(nvte_ep_initialize(r->comm, &config), WEFT_ERR_STATE, "nvte_ep_shutdown first");
    open_layer(r, l, 2, 8);
    choose(r, l, 3);
    EXPECT(nvte_ep_combine(&l->handle_mem, &l->received, none, &l->out, NULL), WEFT_ERR_STATE, "nvte_ep_prepare first");
    prepare(r, l);
    wrong_tensors(r, l);
    dispatch(r, l);
    work(r, l);
    wrong_moves(r, l);
    wrong_in_one(r, l);
    combine(r, l); /* none of them has changed anything */
    close_layer(l);
}

/* ---- as TransformerEngine's extension of PyTorch calls them ---- */

/* Buffers of as many rows as the counts say, at NULL where there are none. */
static void take_exact(layer *l)
{
    const size_t rows = (size_t)l->total;
    l->received = tensor(rows != 0 ? l->rows : NULL, kNVTEFloat32, rows, HIDDEN);
    l->received_weights = tensor(rows != 0 ? l->row_weights : NULL, kNVTEFloat32, rows, 0);
}

/* In a group without max_recv_tokens_per_rank: each layer prepares, waits for its counts, which come to memory of the
 * host, and dispatches into buffers of that many rows; the backwards of all layers in reverse, each layer's memory
 * being used again by the next step. Rows behind the buffers stay as they were. */
static void eager(rig *r)
{
    static const struct {
        int topk;
        size_t alignment;
    } kinds[] = {{2, 4}, {3, 0}, {2, 4}};
    const int count = sizeof kinds / sizeof *kinds;
    for (int i = 0; i < count; i++) {
        open_layer(r, &r->layers[i], kinds[i].topk, kinds[i].alignment);
    }
    for (unsigned seed = 0; seed < 3; seed++) {
        for (int i = 0; i < count; i++) {
            layer *l = &r->layers[i];
            choose(r, l, seed + (unsigned)i);
            for (size_t at = 0; at < l->tokens * (size_t)l->topk && seed == 1; at++) {
                l->ids[at] = at % 2 == 0 ? 0 : -1; /* to one expert, so that other ranks receive nothing */
            }
            prepare(r, l);
            CHECK(seed != 1 || (l->total == 0) == (r->rank != 0));
            take_exact(l);
            memset(l->rows, 0xff, sizeof l->rows);
            OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                                &l->received_weights, none, NULL));
            uint32_t behind = 0;
            memcpy(&behind, l->rows[l->total], sizeof behind);
            CHECK(behind == UINT32_MAX);
            work(r, l);
            combine(r, l);
        }
        for (int i = count - 1; i >= 0; i--) {
            backward(r, &r->layers[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        close_layer(&r->layers[i]);
    }
}

/* ---- threads ---- */

/* On a thread without a device: that of the groups is taken, where all are of one. */
static int elsewhere(void *argument)
{
    rig *r = argument;
    step(r, &r->layers[0], 6);
    backward(r, &r->layers[0]);
    return 0;
}

static void all(rig *r)
{
    NVTEEpGroupConfig config = group_config(r);
    layer *l = &r->layers[0];
    without_group(r);
    wrong_groups(r);
    OK(nvte_ep_initialize(r->comm, &config));
    if (weft_nvte_status() != WEFT_OK) {
        return;
    }
    int gathers = standin_gathers(r->comm);
    wrong_uses(r);
    layers(r);
    CHECK(standin_gathers(r->comm) == gathers);
    empty_experts(r);
    no_tokens(r);
    dropped(r);
    two_groups(r);
    scaled(r);
    open_layer(r, l, 1, 0);
    step(r, l, 4);
    OK(nvte_ep_shutdown());
    OK(nvte_ep_shutdown());
    EXPECT(nvte_ep_combine(&l->handle_mem, &l->received, none, &l->out, NULL), WEFT_ERR_STATE, "has ended");
    close_layer(l);
    config.struct_size = 0; /* an older caller's: no num_topk */
    config.num_topk = config.drop_on_overflow = -1;
    config.max_tokens_per_rank = 2 * TOKENS;
    config.max_recv_tokens_per_rank = 0;
    config.hidden_dim = 2 * HIDDEN;
    OK(nvte_ep_initialize(r->comm, &config));
    open_layer(r, l, 3, 4);
    EXPECT(nvte_ep_prepare(NULL, &l->idx, NULL, NULL, NULL, NULL), WEFT_ERR_ARGUMENT, "NULL");
    step(r, l, 6);
    backward(r, l);
    if (r->ranks == 1) {
        (void)run_rank_threads(1, elsewhere, r, sizeof *r);
    }
    close_layer(l);
    eager(r);
    OK(nvte_ep_shutdown());
}

static int run(void *argument)
{
    rig *r = argument;
    NVTEEpGroupConfig config = group_config(r);
    EXPECT(nvte_ep_initialize(r->comm, &config), WEFT_ERR_STATE, "no device is current");
    standin_tell_gpu(r->comm, r->rank);
    OK(nvte_ep_initialize(r->comm, &config)); /* its GPU becomes current */
    if (standin_current_gpu() != r->rank) {
        fail(r, __LINE__, "the communicator's GPU is current");
        return r->failures;
    }
    OK(nvte_ep_shutdown());
    all(r);
    return r->failures;
}

int main(int argc, char **argv)
{
    static rig rigs[RANKS_MAX];
    ncclComm_t comms[RANKS_MAX];
    int ranks = argc == 2 ? atoi(argv[1]) : 0;
    if (ranks < 1 || ranks > RANKS_MAX) {
        (void)fprintf(stderr, "usage: steps RANKS (1 .. %d)\n", RANKS_MAX);
        return 2;
    }
    standin_comms(ranks, comms);
    for (int i = 0; i < ranks; i++) {
        rigs[i].rank = i;
        rigs[i].ranks = ranks;
        rigs[i].comm = comms[i];
    }
    return run_rank_threads(ranks, run, rigs, sizeof rigs[0]) != 0;
}
