/* Goal: wrong uses of TransformerEngine's calls are statuses with a text, and change nothing: the steps of steps.c,
 * which come behind them, are right.
 *
 * Method: as steps.c. */
#include <stdlib.h>
#include <string.h>

#include "faces/nvte/layer.h"

void wrong_groups(rig *r)
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

void without_group(rig *r)
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
                                 &l->received_weights, none, counts, NULL, config, NULL)

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

void wrong_uses(rig *r)
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
