/* faces/nccl_ep/moves.c: dispatch, combine, and their second halves. */
#include "faces/nccl_ep/face.h"

#define SCALE_GROUP 128

/* ---- rows ---- */

static ncclResult_t dtype_of(const char *call, const char *name, ncclDataType_t type, weft_ep_dtype *out)
{
    switch ((int)type) {
    case ncclFloat32:
        *out = WEFT_EP_F32;
        return ncclSuccess;
    case ncclBfloat16:
        *out = WEFT_EP_BF16;
        return ncclSuccess;
    case ncclFloat16:
        *out = WEFT_EP_F16;
        return ncclSuccess;
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: /* as bytes: such rows are moved, never computed with */
    case ncclFloat4x2: /* likewise, two in one */
    case ncclUint8:
        *out = WEFT_EP_FP8_E4M3;
        return ncclSuccess;
    default:
        return nep_fail(ncclInvalidArgument,
                        "%s: tensor '%s' has type %d; rows are ncclFloat32, 16, ncclBfloat16, "
                        "ncclFloat8e4m3, e5m2, ncclFloat4x2 or ncclUint8",
                        call, name, (int)type);
    }
}

/* Rows [..][H] of a tensor of at least two dimensions. */
static ncclResult_t rows_of(const char *call, const char *name, const struct ncclEpGroup *group,
                            const ncclEpTensor_t *theirs, weft_ep_rows *rows, size_t *count)
{
    ncclEpTensor_t tensor;
    NEP_TRY(nep_read_tensor(call, name, theirs, &tensor));
    if (tensor.magic == 0 || tensor.ndim < 2 || tensor.sizes[tensor.ndim - 1] > INT32_MAX) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' is %s", call, name,
                        tensor.magic == 0 ? "needed" : "not rows of a hidden dimension");
    }
    *rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    NEP_TRY(dtype_of(call, name, tensor.datatype, &rows->dtype));
    NEP_TRY(nep_data_of(call, name, group, &tensor, &rows->data));
    rows->hidden = (int)tensor.sizes[tensor.ndim - 1];
    *count = 1;
    for (unsigned i = 0; i + 1 < tensor.ndim; i++) {
        *count *= tensor.sizes[i];
    }
    return ncclSuccess;
}

/* Scales of fp8 rows: a float32 for SCALE_GROUP elements, of type `floats`, or a byte. */
static ncclResult_t add_scales(const char *call, const char *name, const struct ncclEpGroup *group,
                               const ncclEpTensor_t *theirs, size_t count, weft_ep_scale_type floats,
                               weft_ep_rows *rows)
{
    ncclEpTensor_t tensor;
    size_t groups = ((size_t)rows->hidden + SCALE_GROUP - 1) / SCALE_GROUP;
    NEP_TRY(nep_read_tensor(call, name, theirs, &tensor));
    if (tensor.magic != 0 && tensor.datatype == ncclUint8) { /* ue8m0, of which weft moves four at a time */
        if (groups % 4 != 0) {
            return nep_fail(ncclInvalidUsage,
                            "%s: tensor '%s' has %zu ncclUint8 scales a row; give a multiple of 4, or ncclFloat32",
                            call, name, groups);
        }
        NEP_TRY(nep_array_of(call, name, group, &tensor, ncclUint8, count * groups, &rows->scales));
        rows->scale_type = WEFT_EP_SCALE_UE8M0;
        return ncclSuccess;
    }
    NEP_TRY(nep_array_of(call, name, group, &tensor, ncclFloat32, count * groups, &rows->scales));
    rows->scale_type = floats;
    return ncclSuccess;
}

/* Rows that are moved as they are, whatever they hold: as words. */
static ncclResult_t as_words(const char *call, const char *name, size_t bytes, weft_ep_rows *rows)
{
    if (bytes == 0 || bytes % 16 != 0 || (uintptr_t)rows->data % 16 != 0) {
        return nep_fail(ncclInvalidArgument,
                        "%s: tensor '%s' is at %p and has rows of %zu bytes; give multiples of 16, and align it", call,
                        name, rows->data, bytes);
    }
    rows->dtype = WEFT_EP_F32;
    rows->hidden = (int)(bytes / sizeof(float));
    return ncclSuccess;
}

static size_t bytes_of(const weft_ep_rows *rows)
{
    size_t bytes = rows->dtype == WEFT_EP_F32 ? 4 : rows->dtype == WEFT_EP_FP8_E4M3 ? 1 : 2;
    return (size_t)rows->hidden * bytes;
}

/* Scales of any number and type, `*bytes` of them a row, a row a token. */
static ncclResult_t scales_of(const char *name, const struct ncclEpGroup *group, const ncclEpTensor_t *theirs,
                              size_t count, void **data, size_t *bytes)
{
    ncclEpTensor_t tensor;
    size_t all = 1;
    NEP_TRY(nep_read_tensor("ncclEpDispatch", name, theirs, &tensor));
    switch ((int)tensor.datatype) {
    case ncclFloat32:
        *bytes = 4;
        break;
    case ncclFloat16:
    case ncclBfloat16:
        *bytes = 2;
        break;
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
        *bytes = 1;
        break;
    default:
        return nep_fail(ncclInvalidArgument, "ncclEpDispatch: tensor '%s' has type %d; scales are floats or ncclUint8",
                        name, (int)tensor.datatype);
    }
    for (unsigned i = 0; i + 1 < tensor.ndim; i++) {
        all *= tensor.sizes[i];
    }
    if (tensor.ndim < 2 || all != count || tensor.sizes[tensor.ndim - 1] > INT32_MAX) {
        return nep_fail(ncclInvalidArgument, "ncclEpDispatch: tensor '%s' has %zu rows; give one a token, %zu", name,
                        all, count);
    }
    *bytes *= tensor.sizes[tensor.ndim - 1];
    return nep_data_of("ncclEpDispatch", name, group, &tensor, data);
}

/* A group of HT with zero-copy ON takes received rows in windows only, as there; what they say is the same then. */
static ncclResult_t check_window(const char *call, const char *name, const struct ncclEpGroup *group,
                                 const ncclEpTensor_t *theirs)
{
    ncclEpTensor_t tensor;
    NEP_TRY(nep_read_tensor(call, name, theirs, &tensor));
    if (!nep_is_ll(group) && group->config.zero_copy == NCCL_EP_ZERO_COPY_ON && tensor.win_hdl == NULL) {
        return nep_fail(ncclInvalidArgument,
                        "%s: tensor '%s' is in no window, which the group's zero_copy ON asks for; register it, or "
                        "make the group with NCCL_EP_ZERO_COPY_AUTO",
                        call, name);
    }
    return ncclSuccess;
}

/* ---- dispatch ---- */

/* Passes are of HT. */
static ncclResult_t check_direction(const char *call, const struct ncclEpGroup *group, ncclEpPassDir_t direction)
{
    if (nep_is_ll(group) && direction != NCCL_EP_FWD_PASS) {
        return nep_fail(ncclInvalidUsage, "%s: config.pass_direction is %d; in LL give NCCL_EP_FWD_PASS", call,
                        (int)direction);
    }
    if ((unsigned)direction > NCCL_EP_BWD_PASS) {
        return nep_fail(ncclInvalidArgument, "%s: config.pass_direction is %d; give NCCL_EP_FWD_PASS or _BWD_PASS",
                        call, (int)direction);
    }
    return ncclSuccess;
}

typedef struct dispatch_arguments {
    ncclEpDispatchInputs_t inputs;
    ncclEpDispatchOutputs_t outputs;
    ncclEpLayoutInfo_t info;
    ncclEpDispatchConfig_t config;
    weft_ep_rows in;
    weft_ep_received out;
    size_t rows_in;
    int has_scale_rows; /* that move by a call of their own */
    weft_ep_rows scales_in;
    weft_ep_received scales_out;
    float *weights; /* of the tokens */
    size_t id_bytes; /* of an element of out.experts */
    size_t weight_bytes; /* of an element of out.weights */
    int counts_routing; /* HT: the counters of layout_info are written by this call */
} dispatch_arguments;

#define DISPATCH "ncclEpDispatch"

static ncclResult_t read_dispatch(const ncclEpDispatchInputs_t *inputs, const ncclEpDispatchOutputs_t *outputs,
                                  const ncclEpLayoutInfo_t *info, const ncclEpDispatchConfig_t *config,
                                  dispatch_arguments *copy)
{
    NEP_TRY(nep_read(DISPATCH, "inputs", inputs, NCCL_EP_DISPATCH_INPUTS_V1_SIZE, &copy->inputs, sizeof copy->inputs));
    NEP_TRY(
        nep_read(DISPATCH, "outputs", outputs, NCCL_EP_DISPATCH_OUTPUTS_V1_SIZE, &copy->outputs, sizeof copy->outputs));
    if (info != NULL) {
        NEP_TRY(nep_read(DISPATCH, "layout_info", info, NCCL_EP_LAYOUT_INFO_V1_SIZE, &copy->info, sizeof copy->info));
    }
    if (config != NULL) {
        NEP_TRY(
            nep_read(DISPATCH, "config", config, NCCL_EP_DISPATCH_CONFIG_V1_SIZE, &copy->config, sizeof copy->config));
    }
    return ncclSuccess;
}

static ncclResult_t check_dispatch(const struct ncclEpHandle *handle, dispatch_arguments *a)
{
    NEP_TRY(check_direction(DISPATCH, handle->group, a->config.pass_direction));
    int is_backward = a->config.pass_direction == NCCL_EP_BWD_PASS;
    if (a->config.send_only && !nep_is_ll(handle->group)) {
        return nep_fail(ncclInvalidUsage, DISPATCH ": config.send_only is of LL");
    }
    if (is_backward && (a->inputs.topk_weights || a->outputs.topk_weights || a->outputs.topk_idx)) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": NCCL_EP_BWD_PASS takes neither topk_weights nor topk_idx");
    }
    if ((unsigned)a->info.recv_topk_idx_kind > NCCL_EP_EXPERT_ID_GLOBAL) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": layout_info.recv_topk_idx_kind is %d",
                        (int)a->info.recv_topk_idx_kind);
    }
    if ((unsigned)a->config.quant_recipe > NCCL_EP_DISP_QUANT_DS_FP8E3M4) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": config.quant_recipe is %d", (int)a->config.quant_recipe);
    }
    return ncclSuccess;
}

/* Whether weft moves these scales with their rows: of 128 elements of fp8 each, float32, or bytes, of which it moves
 * four at a time. */
static ncclResult_t are_scales_of_groups(const dispatch_arguments *a, int *are)
{
    ncclEpTensor_t in;
    ncclEpTensor_t tokens;
    NEP_TRY(nep_read_tensor(DISPATCH, "inputs.scales", a->inputs.scales, &in));
    NEP_TRY(nep_read_tensor(DISPATCH, "inputs.tokens", a->inputs.tokens, &tokens));
    size_t groups = ((size_t)a->in.hidden + SCALE_GROUP - 1) / SCALE_GROUP;
    int is_fp8 = tokens.datatype == ncclFloat8e4m3 || tokens.datatype == ncclFloat8e5m2;
    *are = is_fp8 && in.sizes[in.ndim - 1] == groups &&
           (in.datatype == ncclFloat32 || (in.datatype == ncclUint8 && groups % 4 == 0));
    return ncclSuccess;
}

/* Rows and scales move as words, which nobody computes with on the way. */
static ncclResult_t move_words(dispatch_arguments *a)
{
    if (a->in.dtype != a->out.rows.dtype || a->in.hidden != a->out.rows.hidden) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": the tokens received are of another type or width than those sent");
    }
    NEP_TRY(as_words(DISPATCH, "inputs.tokens", bytes_of(&a->in), &a->in));
    return as_words(DISPATCH, "outputs.tokens", bytes_of(&a->out.rows), &a->out.rows);
}

/* Rows and scales are received as they were sent, and in HT both in windows or neither. */
static ncclResult_t check_forward(const struct ncclEpGroup *group, const dispatch_arguments *a)
{
    ncclEpTensor_t in;
    ncclEpTensor_t out;
    ncclEpTensor_t scales;
    ncclEpTensor_t in_scales;
    NEP_TRY(nep_read_tensor(DISPATCH, "inputs.tokens", a->inputs.tokens, &in));
    NEP_TRY(nep_read_tensor(DISPATCH, "outputs.tokens", a->outputs.tokens, &out));
    NEP_TRY(nep_read_tensor(DISPATCH, "outputs.scales", a->outputs.scales, &scales));
    NEP_TRY(nep_read_tensor(DISPATCH, "inputs.scales", a->inputs.scales, &in_scales));
    if (in_scales.datatype != scales.datatype) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": the scales received are of another type (%d) than those sent (%d)",
                        (int)scales.datatype, (int)in_scales.datatype);
    }
    if (in.datatype != out.datatype) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": the tokens received are of another type (%d) than those sent (%d)",
                        (int)out.datatype, (int)in.datatype);
    }
    if (!nep_is_ll(group) && (out.win_hdl != NULL) != (scales.win_hdl != NULL)) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": of outputs.tokens and outputs.scales one is in a window; give both in windows, or "
                                 "neither");
    }
    return ncclSuccess;
}

/* Rows of which nobody reads the scales either: bytes. */
static void add_opaque_scales(weft_ep_rows *rows, void *scales, size_t scale_bytes)
{
    rows->hidden = (int)bytes_of(rows);
    rows->dtype = WEFT_EP_BYTES;
    rows->scales = scales;
    rows->scale_type = WEFT_EP_SCALE_BYTES;
    rows->scale_bytes = (int)scale_bytes;
}

/* Scales of any kind move with their rows, as NVFP4's do, unless they are more than the group has memory for: then by a
 * call of their own. */
static ncclResult_t move_scales(const struct ncclEpGroup *group, dispatch_arguments *a)
{
    void *in = NULL;
    void *out = NULL;
    size_t in_bytes = 0;
    size_t out_bytes = 0;
    NEP_TRY(move_words(a));
    NEP_TRY(scales_of("inputs.scales", group, a->inputs.scales, a->rows_in, &in, &in_bytes));
    NEP_TRY(scales_of("outputs.scales", group, a->outputs.scales, a->out.rows_capacity, &out, &out_bytes));
    if (in_bytes != out_bytes) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": the scales received are of another width than those sent");
    }
    if (in_bytes != 0 && in_bytes % 4 == 0 && in_bytes <= (size_t)group->scale_bytes_max) {
        add_opaque_scales(&a->in, in, in_bytes);
        add_opaque_scales(&a->out.rows, out, out_bytes);
        return ncclSuccess;
    }
    if (a->config.send_only) {
        return nep_fail(ncclInvalidUsage,
                        DISPATCH ": config.send_only with %zu bytes of scales a row; call it whole, or give a multiple "
                                 "of 4, at most %d, which a larger max_token_bytes raises",
                        in_bytes, group->scale_bytes_max);
    }
    a->scales_in = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    a->scales_out = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    a->scales_out.rows_capacity = a->out.rows_capacity;
    a->scales_in.data = in;
    a->scales_out.rows.data = out;
    NEP_TRY(as_words(DISPATCH, "inputs.scales", in_bytes, &a->scales_in));
    NEP_TRY(as_words(DISPATCH, "outputs.scales", out_bytes, &a->scales_out.rows));
    a->has_scale_rows = 1;
    return ncclSuccess;
}

static ncclResult_t apply_forward(const struct ncclEpGroup *group, dispatch_arguments *a)
{
    int are_groups = 0;
    NEP_TRY(check_forward(group, a));
    NEP_TRY(are_scales_of_groups(a, &are_groups));
    if (are_groups) {
        NEP_TRY(add_scales(DISPATCH, "inputs.scales", group, a->inputs.scales, a->rows_in, WEFT_EP_SCALE_F32, &a->in));
        return add_scales(DISPATCH, "outputs.scales", group, a->outputs.scales, a->out.rows_capacity, WEFT_EP_SCALE_F32,
                          &a->out.rows);
    }
    return move_scales(group, a);
}

/* What each recipe wants of the rows' types and scales. */
static ncclResult_t apply_recipe(const struct ncclEpHandle *handle, dispatch_arguments *a)
{
    const struct ncclEpGroup *group = handle->group;
    ncclEpDispQuant_t recipe = a->config.quant_recipe;
    if (a->config.size < NCCL_EP_DISPATCH_CONFIG_V2_SIZE && a->outputs.scales != NULL) { /* it has no recipe */
        recipe = a->inputs.scales != NULL ? NCCL_EP_DISP_QUANT_FWD : NCCL_EP_DISP_QUANT_DS_FP8E3M4;
    }
    if ((recipe == NCCL_EP_DISP_QUANT_FWD) != (a->inputs.scales != NULL) ||
        (recipe == NCCL_EP_DISP_QUANT_NONE) != (a->outputs.scales == NULL)) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": the scales given are not those of config.quant_recipe %d",
                        (int)recipe);
    }
    if (recipe == NCCL_EP_DISP_QUANT_FWD && a->config.round_scales) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": config.round_scales is given with scales that are forwarded; it "
                                 "is of NCCL_EP_DISP_QUANT_DS_FP8E3M4, which makes them");
    }
    if (recipe == NCCL_EP_DISP_QUANT_FWD) {
        return apply_forward(group, a);
    }
    if (recipe == NCCL_EP_DISP_QUANT_NONE) {
        if (a->in.dtype != a->out.rows.dtype) {
            return nep_fail(ncclInvalidArgument, DISPATCH ": the tokens received are of another type than those sent");
        }
        return a->in.dtype == WEFT_EP_FP8_E4M3 ? move_words(a) : ncclSuccess;
    }
    if (!nep_is_ll(group) || a->in.dtype != WEFT_EP_BF16 || a->out.rows.dtype != WEFT_EP_FP8_E4M3) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": NCCL_EP_DISP_QUANT_DS_FP8E3M4 is of LL, from ncclBfloat16 to "
                                                      "ncclFloat8e4m3");
    }
    return add_scales(DISPATCH, "outputs.scales", group, a->outputs.scales, a->out.rows_capacity,
                      a->config.round_scales ? WEFT_EP_SCALE_F32_POW2 : WEFT_EP_SCALE_F32, &a->out.rows);
}

/* In HT a group whose most rows are given wants them received in as many at least, whatever comes. */
static ncclResult_t check_room(const char *name, const struct ncclEpGroup *group, size_t rows)
{
    const size_t most = group->config.max_recv_tokens_per_rank;
    if (!nep_is_ll(group) && most != NCCL_EP_AUTO && rows < most) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": tensor '%s' has %zu rows; give at least the group's "
                                 "max_recv_tokens_per_rank, %zu",
                        name, rows, most);
    }
    return ncclSuccess;
}

/* How many rows' weights or ids, `per_row` of each, a tensor holds: of any shape, its elements count. Rows that there
 * are not have none, on all ranks alike: one that refuses leaves the others waiting. */
static ncclResult_t count_rows(const char *call, const char *name, const ncclEpTensor_t *tensor, size_t per_row,
                               size_t tokens, size_t *rows)
{
    size_t elements = 1;
    for (unsigned i = 0; i < tensor->ndim; i++) {
        elements *= tensor->sizes[i];
    }
    *rows = elements / per_row;
    if (elements % per_row != 0 || (*rows == 0) != (tokens == 0)) {
        return nep_fail(ncclInvalidArgument,
                        "%s: tensor '%s' has %zu elements beside %zu rows of tokens; give %zu for each row, and none "
                        "where there are no rows",
                        call, name, elements, tokens, per_row);
    }
    return ncclSuccess;
}

/* What comes with the rows: in LL there are as many as slots. In HT tensors may have room for more rows than others,
 * and as many come as all hold. */
static ncclResult_t array_of_rows(const char *name, const struct ncclEpHandle *handle, const ncclEpTensor_t *tensor,
                                  size_t per_row, size_t tokens, weft_ep_received *out, void **data)
{
    size_t rows = out->rows_capacity;
    if (!nep_is_ll(handle->group)) {
        NEP_TRY(count_rows(DISPATCH, name, tensor, per_row, tokens, &rows));
        NEP_TRY(check_room(name, handle->group, rows));
    }
    out->rows_capacity = rows < out->rows_capacity ? rows : out->rows_capacity;
    return nep_array_of(DISPATCH, name, handle->group, tensor, tensor->datatype, rows * per_row, data);
}

static ncclResult_t read_received_weights(const struct ncclEpHandle *handle, size_t per_row, size_t tokens,
                                          dispatch_arguments *a)
{
    ncclEpTensor_t tensor;
    void *weights = NULL;
    NEP_TRY(nep_read_tensor(DISPATCH, "outputs.topk_weights", a->outputs.topk_weights, &tensor));
    if (tensor.magic == 0 || handle->plan.layout == WEFT_EP_SLOTS_EXPERT) {
        return ncclSuccess;
    }
    if (tensor.datatype != ncclFloat32) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": tensor 'outputs.topk_weights' has type %d; give ncclFloat32",
                        (int)tensor.datatype);
    }
    NEP_TRY(array_of_rows("outputs.topk_weights", handle, &tensor, per_row, tokens, &a->out, &weights));
    a->out.weights = weights;
    return ncclSuccess;
}

static ncclResult_t read_received_ids(const struct ncclEpHandle *handle, size_t per_row, size_t tokens,
                                      dispatch_arguments *a)
{
    weft_ep_layout layout = handle->plan.layout;
    ncclEpTensor_t tensor;
    void *ids = NULL;
    NEP_TRY(nep_read_tensor(DISPATCH, "outputs.topk_idx", a->outputs.topk_idx, &tensor));
    if (tensor.magic == 0) {
        return ncclSuccess;
    }
    if (layout == WEFT_EP_EXPERT_MAJOR || layout == WEFT_EP_SLOTS_EXPERT) {
        return nep_fail(ncclInvalidArgument,
                        DISPATCH ": outputs.topk_idx is not of expert-major layouts; leave it NULL");
    }
    if (tensor.datatype != ncclInt32 && tensor.datatype != ncclInt64) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": outputs.topk_idx has type %d; give ncclInt64 or ncclInt32",
                        (int)tensor.datatype);
    }
    NEP_TRY(array_of_rows("outputs.topk_idx", handle, &tensor, per_row, tokens, &a->out, &ids));
    a->out.experts = ids;
    a->out.expert_type = tensor.datatype == ncclInt64 ? WEFT_EP_INT64 : WEFT_EP_INT32;
    a->out.experts_are_global = a->info.recv_topk_idx_kind == NCCL_EP_EXPERT_ID_GLOBAL;
    return ncclSuccess;
}

static ncclResult_t read_received(const struct ncclEpHandle *handle, dispatch_arguments *a)
{
    size_t per_row = handle->plan.layout == WEFT_EP_EXPERT_MAJOR ? 1 : (size_t)handle->plan.topk;
    size_t tokens = a->out.rows_capacity;
    NEP_TRY(read_received_weights(handle, per_row, tokens, a));
    NEP_TRY(read_received_ids(handle, per_row, tokens, a));
    a->scales_out.rows_capacity = a->out.rows_capacity;
    size_t count = a->out.rows_capacity * per_row;
    a->weight_bytes = a->out.weights != NULL ? count * sizeof(float) : 0;
    a->id_bytes = a->out.experts != NULL ? count * (a->out.expert_type == WEFT_EP_INT64 ? 8 : 4) : 0;
    return ncclSuccess;
}

/* Nobody knows beforehand how many rows come, so those that do not are marked as empty: id -1, or in HT weight 0 where
 * there are no ids. */
static ncclResult_t empty_received(const struct ncclEpHandle *handle, const dispatch_arguments *a, cudaStream_t stream)
{
    const nep_cuda *cuda = nep_load_cuda(DISPATCH);
    int error = 0;
    if (a->id_bytes != 0) {
        error = cuda->memset_async((uintptr_t)a->out.experts, 0xff, a->id_bytes, stream);
    } else if (a->weight_bytes != 0 && handle->plan.layout == WEFT_EP_EXPERT_MAJOR) {
        error = cuda->memset_async((uintptr_t)a->out.weights, 0, a->weight_bytes, stream);
    }
    if (error != 0) {
        return nep_fail(ncclUnhandledCudaError, DISPATCH ": outputs cannot be written on the stream: CUDA error %d",
                        error);
    }
    return ncclSuccess;
}

/* Slot layouts have one size. */
static ncclResult_t check_slots(const char *call, const char *name, const struct ncclEpHandle *handle, size_t rows)
{
    const struct ncclEpGroup *group = handle->group;
    size_t slots = (size_t)group->ranks * group->config.max_dispatch_tokens_per_rank;
    if (!nep_is_ll(group)) {
        return ncclSuccess;
    }
    if (handle->plan.layout == WEFT_EP_SLOTS_EXPERT) {
        slots *= (size_t)group->local_experts;
    }
    if (rows != slots) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has %zu rows, not %zu", call, name, rows, slots);
    }
    return ncclSuccess;
}

/* HT expert-major: a forward dispatch with counters agrees on its routing and counts that, as an update without
 * counters has left it to do. */
static ncclResult_t count_routing_to(struct ncclEpHandle *handle, dispatch_arguments *a, cudaStream_t stream)
{
    nep_counters to = {0};
    if (handle->plan.layout != WEFT_EP_EXPERT_MAJOR || a->config.pass_direction != NCCL_EP_FWD_PASS ||
        a->info.magic == 0) {
        return ncclSuccess;
    }
    NEP_TRY(nep_read_counters(DISPATCH, handle, &a->info, &to));
    a->counts_routing = nep_asks_counts(&to);
    if (!a->counts_routing) {
        return ncclSuccess;
    }
    handle->is_agreed = 0;
    return nep_count_routing_to(DISPATCH, handle, &to, stream);
}

/* Where the dispatch counts; in LL what comes. */
static ncclResult_t count_to(struct ncclEpHandle *handle, dispatch_arguments *a, cudaStream_t stream)
{
    int by_expert = handle->plan.layout == WEFT_EP_SLOTS_EXPERT;
    const ncclEpLayoutInfo_t *info = &a->info;
    nep_counters to = {0};
    if (!nep_is_ll(handle->group)) {
        return count_routing_to(handle, a, stream);
    }
    if (by_expert && info->expert_counters == NULL) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": layout_info.expert_counters is needed in LL expert-major");
    }
    const char *name = by_expert ? "expert_counters" : "src_rank_counters";
    size_t count = (size_t)(by_expert ? handle->group->local_experts : handle->group->ranks);
    ncclEpTensor_t *tensor = by_expert ? &to.experts : &to.sources;
    NEP_TRY(nep_read_tensor(DISPATCH, name, by_expert ? info->expert_counters : info->src_rank_counters, tensor));
    NEP_TRY(nep_check_counts(DISPATCH, name, tensor, count));
    return nep_count_to(DISPATCH, handle, &to);
}

static ncclResult_t read_weights(const struct ncclEpHandle *handle, dispatch_arguments *a)
{
    weft_ep_layout layout = handle->plan.layout;
    int is_forward = a->config.pass_direction == NCCL_EP_FWD_PASS;
    ncclEpTensor_t tensor;
    if (is_forward && layout != WEFT_EP_SLOTS_EXPERT && a->inputs.topk_weights == NULL) {
        return nep_fail(ncclInvalidArgument, DISPATCH ": inputs.topk_weights is needed in this layout");
    }
    if (a->inputs.topk_weights == NULL) {
        return ncclSuccess;
    }
    NEP_TRY(nep_read_tensor(DISPATCH, "inputs.topk_weights", a->inputs.topk_weights, &tensor));
    return nep_floats_of(DISPATCH, "inputs.topk_weights", handle->group, &tensor,
                         (size_t)handle->choices.tokens * (size_t)handle->plan.topk, &a->weights);
}

static ncclResult_t check_ready(const char *call, const struct ncclEpHandle *handle)
{
    NEP_TRY(nep_check_handle(call, handle));
    if (!handle->is_routed && handle->routed == NULL) {
        return nep_fail(ncclInvalidUsage, "%s: the handle has no routing; call ncclEpUpdateHandle first", call);
    }
    if (handle->has_sent) {
        return nep_fail(ncclInvalidUsage, "%s: ncclEpComplete of the handle is still to come", call);
    }
    return ncclSuccess;
}

static ncclResult_t check_tokens(const char *call, const char *name, const struct ncclEpHandle *handle, size_t rows)
{
    if (rows != (size_t)handle->choices.tokens) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has %zu rows; the routing has %d tokens", call, name,
                        rows, handle->choices.tokens);
    }
    return ncclSuccess;
}

static ncclResult_t prepare_dispatch(struct ncclEpHandle *handle, dispatch_arguments *a, cudaStream_t stream)
{
    const struct ncclEpGroup *group = handle->group;
    NEP_TRY(check_dispatch(handle, a));
    NEP_TRY(rows_of(DISPATCH, "inputs.tokens", group, a->inputs.tokens, &a->in, &a->rows_in));
    NEP_TRY(nep_have_routing(DISPATCH, handle, a->rows_in));
    NEP_TRY(check_tokens(DISPATCH, "inputs.tokens", handle, a->rows_in));
    a->out = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    NEP_TRY(rows_of(DISPATCH, "outputs.tokens", group, a->outputs.tokens, &a->out.rows, &a->out.rows_capacity));
    NEP_TRY(check_slots(DISPATCH, "outputs.tokens", handle, a->out.rows_capacity));
    NEP_TRY(check_room("outputs.tokens", group, a->out.rows_capacity));
    NEP_TRY(check_window(DISPATCH, "outputs.tokens", group, a->outputs.tokens));
    NEP_TRY(apply_recipe(handle, a));
    NEP_TRY(read_weights(handle, a));
    NEP_TRY(read_received(handle, a));
    return count_to(handle, a, stream);
}

/* Whether the ranks have agreed on the routing, so that weights need no agreement. Equal on all ranks, which have made
 * the same calls. */
static int is_agreed(const struct ncclEpHandle *handle)
{
    const struct ncclEpGroup *group = handle->group;
    return handle->is_agreed && handle->agreed_at == __atomic_load_n(&group->mask_changes, __ATOMIC_RELAXED);
}

/* The weights of a forward dispatch go with its rows, else with the routing. */
static ncclResult_t bring_weights(struct ncclEpHandle *handle, const float *weights)
{
    struct ncclEpGroup *group = handle->group;
    weft_ep_choices choices = handle->choices;
    choices.weights = weights;
    if (is_agreed(handle)) {
        return nep_group_result(group, weft_ep_route_weigh(handle->route, weights));
    }
    handle->is_agreed = 0;
    return nep_group_result(group, weft_ep_route_choose(handle->route, &choices));
}

/* A dispatch has agreed on its routing: for further ones, too, where its buffer holds as many rows as the group allows,
 * whose limit has decided. */
static void note_agreed(struct ncclEpHandle *handle)
{
    if (!nep_is_ll(handle->group) && !handle->is_agreed &&
        handle->group->config.max_recv_tokens_per_rank != NCCL_EP_AUTO) {
        nep_agreed(handle);
    }
}

/* The multiprocessors of the next call, where a group's dispatches and combines have different ones. */
static ncclResult_t take_sms(const struct ncclEpHandle *handle, unsigned sms)
{
    const struct ncclEpGroup *group = handle->group;
    return nep_sms_of_dispatch(group) == nep_sms_of_combine(group)
               ? ncclSuccess
               : nep_result_of(weft_ep_route_sms(handle->route, (int)sms));
}

/* A whole dispatch; counters are this call's. */
static ncclResult_t dispatch(struct ncclEpHandle *handle, const dispatch_arguments *a, cudaStream_t stream)
{
    const nep_counters nowhere = {0};
    ncclResult_t result = nep_group_result(handle->group, weft_ep_dispatch(handle->route, &a->in, &a->out, stream));
    if (a->counts_routing) {
        NEP_TRY(nep_count_to(DISPATCH, handle, &nowhere));
    }
    return result;
}

ncclResult_t ncclEpDispatch(ncclEpHandle_t handle, const ncclEpDispatchInputs_t *inputs,
                            const ncclEpDispatchOutputs_t *outputs, const ncclEpLayoutInfo_t *layout_info,
                            const ncclEpDispatchConfig_t *config, cudaStream_t stream)
{
    dispatch_arguments a = {0};
    NEP_TRY(check_ready(DISPATCH, handle));
    NEP_TRY(read_dispatch(inputs, outputs, layout_info, config, &a));
    NEP_TRY(prepare_dispatch(handle, &a, stream));
    struct ncclEpGroup *group = handle->group;
    if (a.config.pass_direction == NCCL_EP_FWD_PASS) {
        NEP_TRY(bring_weights(handle, a.weights));
    }
    NEP_TRY(empty_received(handle, &a, stream));
    NEP_TRY(take_sms(handle, nep_sms_of_dispatch(group)));
    if (a.config.send_only) {
        NEP_TRY(nep_group_result(group, weft_ep_dispatch_send(handle->route, &a.in, &a.out, stream)));
        handle->has_sent = 1;
        return ncclSuccess;
    }
    NEP_TRY(dispatch(handle, &a, stream));
    note_agreed(handle);
    if (a.has_scale_rows) { /* on the routing that is agreed on now */
        NEP_TRY(nep_group_result(group, weft_ep_dispatch(handle->route, &a.scales_in, &a.scales_out, stream)));
    }
    return ncclSuccess;
}

/* ---- combine ---- */

#define COMBINE "ncclEpCombine"

typedef struct combine_arguments {
    ncclEpCombineInputs_t inputs;
    ncclEpCombineOutputs_t outputs;
    ncclEpCombineConfig_t config;
    weft_ep_rows in;
    weft_ep_rows out;
    size_t rows_in;
    float *weights_in; /* HT backward */
    float *weights; /* HT backward: written; LL expert-major: read */
} combine_arguments;

/* Of LL expert-major and of backwards; elsewhere outputs.topk_weights may be given and is not touched. */
static int uses_weights(const struct ncclEpHandle *handle, const combine_arguments *a)
{
    return a->config.pass_direction == NCCL_EP_BWD_PASS || handle->plan.layout == WEFT_EP_SLOTS_EXPERT;
}

/* Scales [..][..][1] of rows [..][..][H], whose sizes they share. */
static ncclResult_t check_global_scales(const ncclEpTensor_t *scales, const ncclEpTensor_t *rows)
{
    int is = scales->magic != 0 && scales->datatype == ncclFloat32 && scales->ndim == 3 && scales->sizes[2] == 1;
    for (unsigned i = 0; is && i < 2; i++) {
        is = rows->ndim == 3 && scales->sizes[i] == rows->sizes[i];
    }
    if (!is) {
        return nep_fail(ncclInvalidArgument,
                        COMBINE ": NCCL_EP_COMB_QUANT_NVFP4 needs inputs.scales, ncclFloat32 of three dimensions, the "
                                "first two as of inputs.tokens, the last 1");
    }
    return ncclSuccess;
}

/* MXFP8 is a way to send sums, too; here they are sent as they are. */
static ncclResult_t check_mxfp8(const struct ncclEpHandle *handle, const combine_arguments *a)
{
    ncclEpTensor_t in;
    ncclEpTensor_t out;
    NEP_TRY(nep_read_tensor(COMBINE, "inputs.tokens", a->inputs.tokens, &in));
    NEP_TRY(nep_read_tensor(COMBINE, "outputs.tokens", a->outputs.tokens, &out));
    if (handle->plan.layout != WEFT_EP_EXPERT_MAJOR || in.magic == 0 || in.datatype != ncclBfloat16 ||
        out.datatype != ncclBfloat16 || in.sizes[in.ndim - 1] % 512 != 0) {
        return nep_fail(ncclInvalidArgument, COMBINE
                        ": NCCL_EP_COMB_QUANT_MXFP8 is of HT expert-major, and of rows and sums of ncclBfloat16 whose "
                        "hidden dimension is a multiple of 512");
    }
    return ncclSuccess;
}

/* NVFP4 is a way to send sums, on GPUs that have such numbers. Here they are sent as they are, so that the scales, by
 * which the sender would make them small, are checked and not read. */
static ncclResult_t check_combine_recipe(const struct ncclEpHandle *handle, const combine_arguments *a)
{
    const struct ncclEpGroup *group = handle->group;
    ncclEpTensor_t scales;
    ncclEpTensor_t in;
    ncclEpTensor_t out;
    if (a->config.quant_recipe == NCCL_EP_COMB_QUANT_NONE && a->inputs.scales == NULL) {
        return ncclSuccess;
    }
    if (a->config.quant_recipe != NCCL_EP_COMB_QUANT_NVFP4 && a->inputs.scales != NULL) {
        return nep_fail(ncclInvalidArgument, COMBINE ": inputs.scales is given; it is of NCCL_EP_COMB_QUANT_NVFP4");
    }
    if (a->config.quant_recipe == NCCL_EP_COMB_QUANT_MXFP8) {
        return check_mxfp8(handle, a);
    }
    if (group->capability_major < 10) {
        return nep_fail(ncclInvalidUsage,
                        COMBINE
                        ": NCCL_EP_COMB_QUANT_NVFP4 needs a GPU of compute capability 10.0 or later, and this is "
                        "one of %d; give NCCL_EP_COMB_QUANT_NONE",
                        group->capability_major);
    }
    NEP_TRY(nep_read_tensor(COMBINE, "inputs.scales", a->inputs.scales, &scales));
    NEP_TRY(nep_read_tensor(COMBINE, "inputs.tokens", a->inputs.tokens, &in));
    NEP_TRY(nep_read_tensor(COMBINE, "outputs.tokens", a->outputs.tokens, &out));
    if (!nep_is_ll(group) || in.magic == 0 || in.datatype != ncclBfloat16 || out.datatype != ncclBfloat16 ||
        in.sizes[in.ndim - 1] % 512 != 0) {
        return nep_fail(ncclInvalidArgument, COMBINE
                        ": NCCL_EP_COMB_QUANT_NVFP4 is of LL, and of rows and sums of ncclBfloat16 whose hidden "
                        "dimension is a multiple of 512");
    }
    return check_global_scales(&scales, &in);
}

static ncclResult_t check_combine(const struct ncclEpHandle *handle, combine_arguments *a)
{
    NEP_TRY(check_direction(COMBINE, handle->group, a->config.pass_direction));
    int is_backward = a->config.pass_direction == NCCL_EP_BWD_PASS;
    if ((unsigned)a->config.quant_recipe > NCCL_EP_COMB_QUANT_MXFP8) {
        return nep_fail(ncclInvalidArgument, COMBINE ": config.quant_recipe is %d", (int)a->config.quant_recipe);
    }
    if (a->config.send_only && !nep_is_ll(handle->group)) {
        return nep_fail(ncclInvalidUsage, COMBINE ": config.send_only is of LL");
    }
    NEP_TRY(check_combine_recipe(handle, a));
    if (is_backward != (a->inputs.topk_weights != NULL)) {
        return nep_fail(ncclInvalidArgument, COMBINE ": inputs.topk_weights is %s",
                        is_backward ? "needed with NCCL_EP_BWD_PASS" : "of NCCL_EP_BWD_PASS");
    }
    if (uses_weights(handle, a) && a->outputs.topk_weights == NULL) {
        return nep_fail(ncclInvalidArgument, COMBINE ": outputs.topk_weights is needed");
    }
    return ncclSuccess;
}

/* Weights of no row or token may be NULL; to weft that would mean that no rank gives weights. */
static float *or_any(float *weights, const struct ncclEpHandle *handle)
{
    return weights != NULL ? weights : handle->memory;
}

static ncclResult_t read_combine(struct ncclEpHandle *handle, combine_arguments *a)
{
    const struct ncclEpGroup *group = handle->group;
    size_t rows_out = 0;
    size_t rows = 0;
    size_t per_row = handle->plan.layout == WEFT_EP_EXPERT_MAJOR ? 1 : (size_t)handle->plan.topk;
    ncclEpTensor_t tensor;
    NEP_TRY(check_combine(handle, a));
    NEP_TRY(rows_of(COMBINE, "inputs.tokens", group, a->inputs.tokens, &a->in, &a->rows_in));
    NEP_TRY(rows_of(COMBINE, "outputs.tokens", group, a->outputs.tokens, &a->out, &rows_out));
    NEP_TRY(nep_have_routing(COMBINE, handle, rows_out));
    NEP_TRY(check_tokens(COMBINE, "outputs.tokens", handle, rows_out));
    NEP_TRY(check_slots(COMBINE, "inputs.tokens", handle, a->rows_in));
    NEP_TRY(check_window(COMBINE, "inputs.tokens", group, a->inputs.tokens));
    if (a->inputs.topk_weights != NULL) {
        NEP_TRY(nep_read_tensor(COMBINE, "inputs.topk_weights", a->inputs.topk_weights, &tensor));
        NEP_TRY(count_rows(COMBINE, "inputs.topk_weights", &tensor, per_row, a->rows_in, &rows));
        rows = rows > a->rows_in ? rows : a->rows_in; /* those behind the rows of tokens are not read */
        NEP_TRY(nep_floats_of(COMBINE, "inputs.topk_weights", group, &tensor, rows * per_row, &a->weights_in));
        a->weights_in = or_any(a->weights_in, handle);
    }
    if (uses_weights(handle, a)) {
        NEP_TRY(nep_read_tensor(COMBINE, "outputs.topk_weights", a->outputs.topk_weights, &tensor));
        NEP_TRY(nep_floats_of(COMBINE, "outputs.topk_weights", group, &tensor,
                              (size_t)handle->choices.tokens * (size_t)handle->plan.topk, &a->weights));
        a->weights = or_any(a->weights, handle);
    }
    return ncclSuccess;
}

static ncclResult_t combine(struct ncclEpHandle *handle, const combine_arguments *a, cudaStream_t stream)
{
    struct ncclEpGroup *group = handle->group;
    weft_ep_route *route = handle->route;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    if (a->config.pass_direction == NCCL_EP_BWD_PASS) {
        return nep_group_result(group, weft_ep_dispatch_bwd(route, &a->in, a->weights_in, &a->out, a->weights, stream));
    }
    if (handle->plan.layout == WEFT_EP_SLOTS_EXPERT) {
        options.flags = WEFT_EP_WEIGHTED;
        options.weights = a->weights;
    }
    if (a->config.send_only) {
        NEP_TRY(nep_group_result(group, weft_ep_combine_send_with(route, &a->in, &a->out, &options, stream)));
        handle->has_sent = 2;
        return ncclSuccess;
    }
    return nep_group_result(group, weft_ep_combine_with(route, &a->in, &a->out, &options, stream));
}

ncclResult_t ncclEpCombine(ncclEpHandle_t handle, const ncclEpCombineInputs_t *inputs,
                           const ncclEpCombineOutputs_t *outputs, const ncclEpCombineConfig_t *config,
                           cudaStream_t stream)
{
    combine_arguments a = {0};
    NEP_TRY(check_ready(COMBINE, handle));
    NEP_TRY(nep_read(COMBINE, "inputs", inputs, NCCL_EP_COMBINE_INPUTS_V1_SIZE, &a.inputs, sizeof a.inputs));
    NEP_TRY(nep_read(COMBINE, "outputs", outputs, NCCL_EP_COMBINE_OUTPUTS_V1_SIZE, &a.outputs, sizeof a.outputs));
    if (config != NULL) {
        NEP_TRY(nep_read(COMBINE, "config", config, NCCL_EP_COMBINE_CONFIG_V1_SIZE, &a.config, sizeof a.config));
    }
    NEP_TRY(read_combine(handle, &a));
    NEP_TRY(take_sms(handle, nep_sms_of_combine(handle->group)));
    return combine(handle, &a, stream);
}

ncclResult_t ncclEpComplete(ncclEpHandle_t handle, const ncclEpCompleteConfig_t *config, cudaStream_t stream)
{
    static const char call[] = "ncclEpComplete";
    ncclEpCompleteConfig_t copy;
    NEP_TRY(nep_check_handle(call, handle));
    if (config != NULL) {
        NEP_TRY(nep_read(call, "config", config, NCCL_EP_COMPLETE_CONFIG_V1_SIZE, &copy, sizeof copy));
    }
    if (!handle->has_sent) {
        return ncclSuccess; /* the call was whole */
    }
    int is_dispatch = handle->has_sent == 1;
    weft_status status =
        is_dispatch ? weft_ep_dispatch_recv(handle->route, stream) : weft_ep_combine_recv(handle->route, stream);
    if (status != WEFT_ERR_UNSUPPORTED && status != WEFT_ERR_STATE) { /* else it is still to come */
        handle->has_sent = 0;
    }
    return nep_group_result(handle->group, status);
}
