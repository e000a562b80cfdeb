/* faces/nvte/moves.c: prepare, dispatch, combine and their backwards.
 *
 * A plan's one route is attached to the memory that a call is given (weft_ep_route_attach), so that nothing is kept by
 * address. All that can be checked is checked before anything is enqueued. */
#include "faces/nvte/face.h"

/* What a call of a layer works with. */
typedef struct layer_call {
    const char *name;
    weft_nvte_group *group;
    nvte_plan *plan;
    void *memory;
    cudaStream_t stream;
} layer_call;

static weft_status finish(const layer_call *call, weft_status status)
{
    if (status == WEFT_ERR_TIMEOUT) {
        __atomic_store_n(&call->group->nccl->has_timed_out, 1, __ATOMIC_RELEASE);
    }
    nvte_leave(call->group);
    return status;
}

static weft_status enter(layer_call *call, const NVTETensor handle_mem)
{
    return nvte_enter(call->name, handle_mem, &call->group, &call->plan, &call->memory);
}

static int has_prepared(const nvte_plan *plan, size_t tokens)
{
    return (plan->prepared[tokens / 8] >> (tokens % 8) & 1) != 0;
}

/* Prepare a call that needs a routing, with rows of `tokens` tokens: attach its route to the memory that it was given.
 * How many tokens the routing there has is known to the device only, but a number that none has is wrong. */
static weft_status attach(const layer_call *call, const char *name, size_t tokens)
{
    if (!call->plan->is_prepared) {
        return nvte_fail(WEFT_ERR_STATE,
                         "%s: no layer of this group, top_k and alignment has a routing; call "
                         "nvte_ep_prepare first",
                         call->name);
    }
    if (tokens > call->group->nccl->config.max_dispatch_tokens_per_rank || !has_prepared(call->plan, tokens)) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: tensor '%s' has %zu rows, and no routing of this group, top_k and alignment has so many "
                         "tokens; give as many as the topk_idx of its nvte_ep_prepare",
                         call->name, name, tokens);
    }
    return weft_ep_route_attach(call->plan->route, call->memory, call->plan->bytes, WEFT_EP_CONTENTS_ROUTING,
                                call->stream);
}

/* ---- prepare ---- */

static weft_status read_choices(const layer_call *call, const NVTETensor topk_idx, int topk, weft_ep_choices *choices)
{
    nvte_tensor ids;
    size_t most = call->group->nccl->config.max_dispatch_tokens_per_rank;
    WEFT_TRY(nvte_read_tensor(call->name, "topk_idx", topk_idx, NULL, call->group, &ids));
    if ((ids.type != kNVTEInt32 && ids.type != kNVTEInt64) || ids.ndim < 2 || ids.sizes[ids.ndim - 1] != (size_t)topk) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: topk_idx has %zu dimensions, the last of %zu, and type %d; give kNVTEInt64 or kNVTEInt32 "
                         "and at least two, the last of top_k %d",
                         call->name, ids.ndim, ids.sizes[ids.ndim - 1], (int)ids.type, topk);
    }
    if (ids.elements / (size_t)topk > most) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: topk_idx has %zu tokens; the group's max_tokens_per_rank is %zu",
                         call->name, ids.elements / (size_t)topk, most);
    }
    *choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    choices->tokens = (int)(ids.elements / (size_t)topk);
    choices->id_type = ids.type == kNVTEInt64 ? WEFT_EP_INT64 : WEFT_EP_INT32;
    choices->ids = ids.data;
    return WEFT_OK;
}

/* Where a count goes, if it is wanted; all of one type. */
static weft_status read_counts(const layer_call *call, const char *name, const NVTETensor tensor, size_t count,
                               weft_ep_count_arrays *arrays, void **array)
{
    nvte_tensor copy;
    if (tensor == NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(nvte_read_tensor(call->name, name, tensor, NULL, call->group, &copy));
    if ((copy.type != kNVTEInt32 && copy.type != kNVTEInt64) || copy.elements != count) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: %s has %zu elements of type %d; give %zu of kNVTEInt32 or kNVTEInt64",
                         call->name, name, copy.elements, (int)copy.type, count);
    }
    weft_ep_id_type type = copy.type == kNVTEInt64 ? WEFT_EP_INT64 : WEFT_EP_INT32;
    if (arrays->on_stream && arrays->type != type) {
        return nvte_fail(WEFT_ERR_UNSUPPORTED,
                         "%s: recv_tokens_per_expert and total_recv_tokens_per_rank have two types; give both "
                         "kNVTEInt32, or both kNVTEInt64",
                         call->name);
    }
    if ((uintptr_t)copy.data % (copy.type == kNVTEInt64 ? 8 : 4) != 0) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: %s is at %p; align it to its elements", call->name, name, copy.data);
    }
    arrays->on_stream = 1;
    arrays->type = type;
    *array = copy.data;
    return WEFT_OK;
}

/* A call that agrees on a routing has ended in this status. */
static weft_status note_prepared(const layer_call *call, int tokens, weft_status status)
{
    weft_status after = weft_ep_route_counts_to(call->plan->route, NULL); /* the arrays belong to this call only */
    if (status == WEFT_OK) {
        call->plan->is_prepared = 1;
        call->plan->prepared[tokens / 8] |= (unsigned char)(1u << (tokens % 8));
    }
    return status != WEFT_OK ? status : after;
}

static weft_status update(layer_call *call, const weft_ep_choices *choices, const weft_ep_count_arrays *counts)
{
    weft_ep_route *route = call->plan->route;
    WEFT_TRY(weft_ep_route_attach(route, call->memory, call->plan->bytes, WEFT_EP_CONTENTS_NONE, call->stream));
    WEFT_TRY(weft_ep_route_counts_to(route, counts->on_stream ? counts : NULL));
    return note_prepared(call, choices->tokens, weft_ep_route_update(route, choices, call->stream));
}

static weft_status check_layer(const layer_call *call, const NVTETensor handle_mem, const NVTEEpLayerConfig *layer_cfg)
{
    nvte_tensor memory;
    nvte_layer layer;
    WEFT_TRY(nvte_read_tensor(call->name, "handle_mem", handle_mem, NULL, NULL, &memory));
    (void)nvte_layer_of(memory.elements, &layer);
    size_t alignment = layer_cfg->dispatch_output_per_expert_alignment;
    if (layer.topk != layer_cfg->top_k || (size_t)1 << layer.alignment != (alignment > 1 ? alignment : 1)) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: handle_mem is of a layer with top_k %d and alignment %d, layer_cfg says %d and %zu; ask "
                         "nvte_ep_handle_mem_size with this layer_cfg",
                         call->name, layer.topk, 1 << layer.alignment, layer_cfg->top_k, alignment);
    }
    return WEFT_OK;
}

/* What a call that prepares is given: the choices, and where it counts. */
static weft_status read_routing(const layer_call *call, const NVTETensor handle_mem, const NVTETensor topk_idx,
                                const NVTETensor per_expert, const NVTETensor total, const NVTEEpLayerConfig *layer_cfg,
                                weft_ep_choices *choices, weft_ep_count_arrays *counts)
{
    counts->with_dropped = 1;
    WEFT_TRY(check_layer(call, handle_mem, layer_cfg));
    WEFT_TRY(read_choices(call, topk_idx, layer_cfg->top_k, choices));
    WEFT_TRY(read_counts(call, "recv_tokens_per_expert", per_expert, (size_t)call->group->nccl->local_experts, counts,
                         &counts->rows_of_expert_aligned));
    return read_counts(call, "total_recv_tokens_per_rank", total, 1, counts, &counts->rows);
}

static weft_status prepare(layer_call *call, const NVTETensor handle_mem, const NVTETensor topk_idx,
                           const NVTETensor per_expert, const NVTETensor total, const NVTEEpLayerConfig *layer_cfg)
{
    weft_ep_choices choices;
    weft_ep_count_arrays counts = WEFT_EP_COUNT_ARRAYS_INIT;
    WEFT_TRY(read_routing(call, handle_mem, topk_idx, per_expert, total, layer_cfg, &choices, &counts));
    return update(call, &choices, &counts);
}

void nvte_ep_prepare(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor recv_tokens_per_expert,
                     NVTETensor total_recv_tokens_per_rank, const NVTEEpLayerConfig *layer_cfg, cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_prepare", .stream = stream};
    NVTEEpLayerConfig copy;
    weft_status status = nvte_read_layer(call.name, layer_cfg, &copy);
    status = status != WEFT_OK ? status : enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status = finish(
            &call, prepare(&call, handle_mem, topk_idx, recv_tokens_per_expert, total_recv_tokens_per_rank, &copy));
    }
    (void)nvte_end(status);
}

/* ---- dispatch ---- */

typedef struct dispatch_arguments {
    weft_ep_rows in;
    size_t tokens;
    weft_ep_received out;
    weft_ep_choices choices; /* with weights, if they travel */
    int has_weights;
    const char *in_name;
} dispatch_arguments;

static weft_status read_moved(const layer_call *call, const char *in_name, const NVTETensor in,
                              const NVTECommWindow *in_window, const char *out_name, const NVTETensor out,
                              const NVTECommWindow *out_window, dispatch_arguments *a)
{
    size_t most = call->group->nccl->config.max_dispatch_tokens_per_rank;
    *a = (dispatch_arguments){.out = WEFT_EP_RECEIVED_INIT, .in_name = in_name};
    WEFT_TRY(nvte_read_rows(call->name, in_name, in, in_window, call->group, 1, &a->in, &a->tokens));
    WEFT_TRY(
        nvte_read_rows(call->name, out_name, out, out_window, call->group, 1, &a->out.rows, &a->out.rows_capacity));
    if (a->tokens > most) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' has %zu rows; the group's max_tokens_per_rank is %zu",
                         call->name, in_name, a->tokens, most);
    }
    if (a->in.dtype != a->out.rows.dtype || a->in.hidden != a->out.rows.hidden) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: tensors '%s' and '%s' have rows of %d and %d elements, of two types, scalings or widths; "
                         "give one",
                         call->name, in_name, out_name, a->in.hidden, a->out.rows.hidden);
    }
    return WEFT_OK;
}

static weft_status read_weights(const layer_call *call, const NVTETensor topk_idx, const NVTETensor weights,
                                const NVTECommWindow *weights_window, const NVTETensor received,
                                const NVTECommWindow *received_window, dispatch_arguments *a)
{
    nvte_layer layer = {0};
    float *given = NULL;
    if (weights == NULL) {
        return WEFT_OK;
    }
    (void)nvte_layer_of(call->plan->size, &layer);
    WEFT_TRY(read_choices(call, topk_idx, layer.topk, &a->choices));
    if ((size_t)a->choices.tokens != a->tokens) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: topk_idx has %d tokens and tensor 'tokens' %zu rows; give as many",
                         call->name, a->choices.tokens, a->tokens);
    }
    WEFT_TRY(nvte_read_floats(call->name, "topk_weights", weights, weights_window, call->group,
                              a->tokens * (size_t)layer.topk, &given));
    WEFT_TRY(nvte_read_floats(call->name, "recv_topk_weights", received, received_window, call->group,
                              a->out.rows_capacity, &a->out.weights));
    a->choices.weights = given;
    a->has_weights = 1;
    return WEFT_OK;
}

/* Set all weights to 0: the host does not know how many rows come, and those that do not keep 0. */
static weft_status clear_weights(const layer_call *call, const dispatch_arguments *a)
{
    size_t bytes = a->out.rows_capacity * sizeof(float);
    int error =
        bytes == 0 ? 0 : nep_load_cuda(call->name)->memset_async((uintptr_t)a->out.weights, 0, bytes, call->stream);
    return error == 0
               ? WEFT_OK
               : nvte_fail(WEFT_ERR_SYSTEM, "%s: recv_topk_weights cannot be written on the stream: CUDA error %d",
                           call->name, error);
}

static weft_status move(const layer_call *call, const dispatch_arguments *a)
{
    WEFT_TRY(attach(call, a->in_name, a->tokens));
    if (a->has_weights) {
        WEFT_TRY(weft_ep_route_weigh(call->plan->route, a->choices.weights));
        WEFT_TRY(clear_weights(call, a));
    }
    return weft_ep_dispatch(call->plan->route, &a->in, &a->out, call->stream);
}

void nvte_ep_dispatch(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor tokens, NVTECommWindow tokens_win,
                      NVTETensor topk_weights, NVTECommWindow topk_weights_win, NVTETensor recv_tokens,
                      NVTECommWindow recv_tokens_win, NVTETensor recv_topk_weights,
                      NVTECommWindow recv_topk_weights_win, cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_dispatch", .stream = stream};
    dispatch_arguments a;
    weft_status status = enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status = read_moved(&call, "tokens", tokens, &tokens_win, "recv_tokens", recv_tokens, &recv_tokens_win, &a);
        status = status != WEFT_OK ? status
                                   : read_weights(&call, topk_idx, topk_weights, &topk_weights_win, recv_topk_weights,
                                                  &recv_topk_weights_win, &a);
        status = finish(&call, status != WEFT_OK ? status : move(&call, &a));
    }
    (void)nvte_end(status);
}

/* The routing of a dispatch that prepares, which is of its tokens. */
static weft_status read_prepared(const layer_call *call, const NVTETensor handle_mem, const NVTETensor topk_idx,
                                 const NVTETensor per_expert, const NVTETensor total,
                                 const NVTEEpLayerConfig *layer_cfg, dispatch_arguments *a,
                                 weft_ep_count_arrays *counts)
{
    WEFT_TRY(read_routing(call, handle_mem, topk_idx, per_expert, total, layer_cfg, &a->choices, counts));
    if ((size_t)a->choices.tokens != a->tokens) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: topk_idx has %d tokens and tensor 'tokens' %zu rows; give as many",
                         call->name, a->choices.tokens, a->tokens);
    }
    return WEFT_OK;
}

/* The ranks agree on the routing on the way, in one call. */
static weft_status choose_and_move(const layer_call *call, const dispatch_arguments *a,
                                   const weft_ep_count_arrays *counts)
{
    weft_ep_route *route = call->plan->route;
    WEFT_TRY(weft_ep_route_attach(route, call->memory, call->plan->bytes, WEFT_EP_CONTENTS_NONE, call->stream));
    WEFT_TRY(weft_ep_route_counts_to(route, counts->on_stream ? counts : NULL));
    weft_status status = weft_ep_route_choose(route, &a->choices);
    status = status == WEFT_OK && a->has_weights ? clear_weights(call, a) : status;
    status = status != WEFT_OK ? status : weft_ep_dispatch(route, &a->in, &a->out, call->stream);
    return note_prepared(call, a->choices.tokens, status);
}

void nvte_ep_prepare_and_dispatch(NVTETensor handle_mem, NVTETensor topk_idx, NVTETensor tokens,
                                  NVTECommWindow tokens_win, NVTETensor topk_weights, NVTECommWindow topk_weights_win,
                                  NVTETensor recv_tokens, NVTECommWindow recv_tokens_win, NVTETensor recv_topk_weights,
                                  NVTECommWindow recv_topk_weights_win, NVTETensor recv_tokens_per_expert,
                                  NVTETensor total_recv_tokens_per_rank, const NVTEEpLayerConfig *layer_cfg,
                                  cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_prepare_and_dispatch", .stream = stream};
    NVTEEpLayerConfig copy;
    dispatch_arguments a;
    weft_ep_count_arrays counts = WEFT_EP_COUNT_ARRAYS_INIT;
    weft_status status = nvte_read_layer(call.name, layer_cfg, &copy);
    status = status != WEFT_OK ? status : enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status = read_moved(&call, "tokens", tokens, &tokens_win, "recv_tokens", recv_tokens, &recv_tokens_win, &a);
        status = status != WEFT_OK ? status
                                   : read_prepared(&call, handle_mem, topk_idx, recv_tokens_per_expert,
                                                   total_recv_tokens_per_rank, &copy, &a, &counts);
        status = status != WEFT_OK ? status
                                   : read_weights(&call, topk_idx, topk_weights, &topk_weights_win, recv_topk_weights,
                                                  &recv_topk_weights_win, &a);
        status = finish(&call, status != WEFT_OK ? status : choose_and_move(&call, &a, &counts));
    }
    (void)nvte_end(status);
}

/* Each choice has a row of its own, so that it is a dispatch without weights. */
void nvte_ep_combine_bwd(NVTETensor handle_mem, NVTETensor grad, NVTECommWindow grad_win, NVTETensor grad_expert_out,
                         NVTECommWindow grad_expert_out_win, cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_combine_bwd", .stream = stream};
    dispatch_arguments a;
    weft_status status = enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status =
            read_moved(&call, "grad", grad, &grad_win, "grad_expert_out", grad_expert_out, &grad_expert_out_win, &a);
        status = finish(&call, status != WEFT_OK ? status : move(&call, &a));
    }
    (void)nvte_end(status);
}

/* ---- combine ---- */

static const NVTECommWindow no_window;

typedef struct combine_arguments {
    weft_ep_rows in;
    size_t rows;
    weft_ep_rows out;
    size_t tokens;
    const char *out_name;
} combine_arguments;

static weft_status read_added(const layer_call *call, const char *in_name, const NVTETensor in,
                              const NVTECommWindow *in_window, const char *out_name, const NVTETensor out,
                              combine_arguments *a)
{
    a->out_name = out_name;
    WEFT_TRY(nvte_read_rows(call->name, in_name, in, in_window, call->group, 0, &a->in, &a->rows));
    WEFT_TRY(nvte_read_rows(call->name, out_name, out, &no_window, call->group, 0, &a->out, &a->tokens));
    if (a->in.dtype != a->out.dtype || a->in.hidden != a->out.hidden) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: tensors '%s' and '%s' have rows of %d and %d elements, of two types or widths; give one",
                         call->name, in_name, out_name, a->in.hidden, a->out.hidden);
    }
    return WEFT_OK;
}

static weft_status add_up(const layer_call *call, const combine_arguments *a)
{
    WEFT_TRY(attach(call, a->out_name, a->tokens));
    return weft_ep_combine(call->plan->route, &a->in, &a->out, 0, call->stream);
}

void nvte_ep_combine(NVTETensor handle_mem, NVTETensor expert_out, NVTECommWindow expert_out_win, NVTETensor result,
                     cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_combine", .stream = stream};
    combine_arguments a;
    weft_status status = enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status = read_added(&call, "expert_out", expert_out, &expert_out_win, "result", result, &a);
        status = finish(&call, status != WEFT_OK ? status : add_up(&call, &a));
    }
    (void)nvte_end(status);
}

static weft_status dispatch_bwd(const layer_call *call, const combine_arguments *a, const NVTETensor weights_in,
                                const NVTECommWindow *weights_window, const NVTETensor weights_out)
{
    nvte_layer layer = {0};
    float *in = NULL;
    float *out = NULL;
    (void)nvte_layer_of(call->plan->size, &layer);
    WEFT_TRY(
        nvte_read_floats(call->name, "g_recv_topk_weights", weights_in, weights_window, call->group, a->rows, &in));
    WEFT_TRY(nvte_read_floats(call->name, "grad_topk_weights", weights_out, NULL, call->group,
                              a->tokens * (size_t)layer.topk, &out));
    WEFT_TRY(attach(call, a->out_name, a->tokens));
    /* Of no row, of no token; NULL would say that there are none on other ranks either. */
    in = in != NULL ? in : call->memory;
    out = out != NULL ? out : call->memory;
    return weft_ep_dispatch_bwd(call->plan->route, &a->in, in, &a->out, out, call->stream);
}

void nvte_ep_dispatch_bwd(NVTETensor handle_mem, NVTETensor grad, NVTECommWindow grad_win,
                          NVTETensor g_recv_topk_weights, NVTECommWindow g_recv_topk_weights_win,
                          NVTETensor grad_tokens, NVTETensor grad_topk_weights, cudaStream_t stream)
{
    layer_call call = {.name = "nvte_ep_dispatch_bwd", .stream = stream};
    combine_arguments a;
    weft_status status = enter(&call, handle_mem);
    if (status == WEFT_OK) {
        status = read_added(&call, "grad", grad, &grad_win, "grad_tokens", grad_tokens, &a);
        status = finish(&call, status != WEFT_OK ? status
                                                 : dispatch_bwd(&call, &a, g_recv_topk_weights,
                                                                &g_recv_topk_weights_win, grad_topk_weights));
    }
    (void)nvte_end(status);
}
