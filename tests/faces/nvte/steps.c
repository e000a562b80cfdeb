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

#include "faces/nccl_ep/rank_threads.h"
#include "faces/nvte/layer.h"

/* ---- groups ---- */

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
                                        none, &l->received_weights, none, &l->counts, &l->sum, &layer_config, NULL));
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
