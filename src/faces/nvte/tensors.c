/* faces/nvte/tensors.c: what an NVTETensor says: by TransformerEngine's accessors, where they are loaded, else by the
 * descriptor of this face's transformer_engine.h. */
#include <dlfcn.h>
#include <string.h>

#include "faces/nvte/face.h"

/* TransformerEngine's tensors are small numbers, descriptors are addresses. */
#define NUMBERS_END ((uintptr_t)1 << 20)

typedef struct accessors {
    void *(*data)(NVTETensor tensor);
    NVTEDType (*type)(NVTETensor tensor);
    size_t (*ndims)(NVTETensor tensor);
    size_t (*size)(NVTETensor tensor, size_t dimension);
    NVTEScalingMode (*scaling_mode)(NVTETensor tensor);
    void *(*scale_inv)(NVTETensor tensor); /* NULL: there is none */
} accessors;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static accessors found;
static int are_found; /* set last, never reset */

static int find(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

void nvte_find_accessors(void)
{
    (void)pthread_mutex_lock(&lock);
    if (!are_found && find("nvte_tensor_data", (void *)&found.data) && find("nvte_tensor_type", (void *)&found.type) &&
        find("nvte_tensor_ndims", (void *)&found.ndims) && find("nvte_tensor_size", (void *)&found.size) &&
        find("nvte_tensor_scaling_mode", (void *)&found.scaling_mode)) {
        (void)find("nvte_tensor_scale_inv", (void *)&found.scale_inv);
        __atomic_store_n(&are_found, 1, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&lock);
}

static weft_status check_scaling(const char *call, const char *name, const nvte_tensor *copy)
{
    int is_fp8 = copy->type == kNVTEFloat8E4M3 || copy->type == kNVTEFloat8E5M2;
    if (copy->scaling_mode != NVTE_DELAYED_TENSOR_SCALING && !(copy->scaling_mode == NVTE_MXFP8_1D_SCALING && is_fp8)) {
        return nvte_fail(WEFT_ERR_UNSUPPORTED,
                         "%s: tensor '%s' has scaling mode %d and type %d; give none, or fp8 with "
                         "NVTE_MXFP8_1D_SCALING",
                         call, name, (int)copy->scaling_mode, (int)copy->type);
    }
    return WEFT_OK;
}

static weft_status read_by_accessors(const char *call, const char *name, NVTETensor tensor, nvte_tensor *copy)
{
    copy->data = found.data(tensor);
    copy->type = found.type(tensor);
    copy->ndim = found.ndims(tensor);
    for (size_t i = 0; i < copy->ndim && i < WEFT_NVTE_DIMENSIONS_MAX; i++) {
        copy->sizes[i] = found.size(tensor, i);
    }
    copy->scaling_mode = found.scaling_mode(tensor);
    if (copy->scaling_mode == NVTE_MXFP8_1D_SCALING && found.scale_inv != NULL) {
        copy->scales = found.scale_inv(tensor);
    }
    return check_scaling(call, name, copy);
}

static weft_status read_descriptor(const char *call, const char *name, const NVTETensor tensor, nvte_tensor *copy)
{
    const weft_nvte_tensor *theirs = tensor;
    if ((uintptr_t)tensor < NUMBERS_END || (uintptr_t)tensor % _Alignof(weft_nvte_tensor) != 0 ||
        theirs->magic != WEFT_NVTE_TENSOR_MAGIC) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: tensor '%s' is none of transformer_engine.h of libweft_nvte_ep, and TransformerEngine, "
                         "whose tensor it may be, is not loaded (its names must be global)",
                         call, name);
    }
    copy->data = theirs->data.data_ptr;
    copy->type = theirs->data.dtype;
    copy->ndim = theirs->data.shape.ndim;
    memcpy(copy->sizes, theirs->data.shape.data, sizeof copy->sizes);
    copy->scaling_mode = theirs->scaling_mode;
    copy->scales = theirs->scale_inv.data_ptr;
    return check_scaling(call, name, copy);
}

/* Find the memory of a tensor that lies in a window of NCCL's, as the NCCL EP face does. */
static weft_status find_data(const char *call, const char *name, struct ncclWindow_vidmem *window, uint64_t offset,
                             const weft_nvte_group *group, nvte_tensor *copy, void **data)
{
    ncclEpTensor_t tensor = {.ndim = (unsigned)copy->ndim, .data = *data, .sizes = copy->sizes};
    if (window != NULL) {
        tensor.data = NULL;
        tensor.win_hdl = window;
        tensor.win_offset = offset;
    }
    return nep_status_of(nep_data_of(call, name, group != NULL ? group->nccl : NULL, &tensor, data));
}

weft_status nvte_read_tensor(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                             const weft_nvte_group *group, nvte_tensor *copy)
{
    memset(copy, 0, sizeof *copy);
    if (tensor == NULL) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' is NULL", call, name);
    }
    if (!__atomic_load_n(&are_found, __ATOMIC_ACQUIRE) && (uintptr_t)tensor < NUMBERS_END) {
        nvte_find_accessors(); /* loaded since */
    }
    WEFT_TRY(__atomic_load_n(&are_found, __ATOMIC_ACQUIRE) ? read_by_accessors(call, name, tensor, copy)
                                                           : read_descriptor(call, name, tensor, copy));
    if (copy->ndim == 0 || copy->ndim > WEFT_NVTE_DIMENSIONS_MAX) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' has %zu dimensions; give 1 .. %d", call, name, copy->ndim,
                         WEFT_NVTE_DIMENSIONS_MAX);
    }
    copy->elements = 1;
    for (size_t i = 0; i < copy->ndim; i++) {
        if (__builtin_mul_overflow(copy->elements, copy->sizes[i], &copy->elements)) {
            return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' has more elements than there are addresses", call,
                             name);
        }
    }
    static const NVTECommWindow none;
    window = window != NULL ? window : &none;
    WEFT_TRY(find_data(call, name, window->window, window->offset, group, copy, &copy->data));
    if (copy->scaling_mode == NVTE_DELAYED_TENSOR_SCALING) {
        return WEFT_OK;
    }
    return find_data(call, name, window->scale_window, window->scale_offset, group, copy, &copy->scales);
}

size_t nvte_element_bytes(NVTEDType type)
{
    switch (type) {
    case kNVTEFloat32:
        return 4;
    case kNVTEFloat16:
    case kNVTEBFloat16:
        return 2;
    default:
        return 0;
    }
}

static weft_ep_dtype dtype_of(NVTEDType type)
{
    return type == kNVTEFloat32 ? WEFT_EP_F32 : type == kNVTEFloat16 ? WEFT_EP_F16 : WEFT_EP_BF16;
}

#define SCALED 32 /* elements that have a scale, of a byte */

/* fp8 with scales, both as bytes: nobody computes with them on the way. */
static weft_status take_scaled(const char *call, const char *name, const nvte_tensor *copy, weft_ep_rows *rows)
{
    size_t hidden = copy->sizes[copy->ndim - 1];
    if (hidden % (4 * SCALED) != 0 || (uintptr_t)copy->scales % 4 != 0) {
        return nvte_fail(
            WEFT_ERR_UNSUPPORTED,
            "%s: tensor '%s' has %zu elements a row and scales at %p; give a multiple of %d elements, whose "
            "scales take 4 bytes, and align those to 4",
            call, name, hidden, copy->scales, 4 * SCALED);
    }
    rows->dtype = WEFT_EP_BYTES;
    rows->hidden = (int)hidden;
    rows->scales = copy->scales;
    rows->scale_type = WEFT_EP_SCALE_BYTES;
    rows->scale_bytes = (int)(hidden / SCALED);
    return WEFT_OK;
}

weft_status nvte_read_rows(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                           const weft_nvte_group *group, int moves, weft_ep_rows *rows, size_t *count)
{
    nvte_tensor copy;
    WEFT_TRY(nvte_read_tensor(call, name, tensor, window, group, &copy));
    int is_scaled = moves && copy.scaling_mode == NVTE_MXFP8_1D_SCALING;
    size_t bytes = is_scaled ? 1 : nvte_element_bytes(copy.type);
    size_t hidden = copy.sizes[copy.ndim - 1];
    size_t most = group->nccl->config.max_token_bytes;
    if (bytes == 0) {
        return nvte_fail(
            WEFT_ERR_UNSUPPORTED,
            "%s: tensor '%s' has type %d; rows are kNVTEBFloat16, kNVTEFloat16 or kNVTEFloat32, and, where "
            "they are only moved, fp8 with NVTE_MXFP8_1D_SCALING",
            call, name, (int)copy.type);
    }
    if (copy.ndim < 2 || hidden == 0 || hidden > most / bytes || hidden * bytes % 16 != 0) {
        return nvte_fail(WEFT_ERR_ARGUMENT,
                         "%s: tensor '%s' has %zu dimensions, the last of %zu elements of %zu bytes; give rows of a "
                         "multiple of 16 bytes, up to %zu, the group's hidden_dim of its max_token_dtype",
                         call, name, copy.ndim, hidden, bytes, most);
    }
    if ((uintptr_t)copy.data % 16 != 0) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' is at %p; align it to 16 bytes", call, name, copy.data);
    }
    *rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    rows->data = copy.data;
    *count = copy.elements / hidden;
    if (is_scaled) {
        return take_scaled(call, name, &copy, rows);
    }
    rows->dtype = dtype_of(copy.type);
    rows->hidden = (int)hidden;
    return WEFT_OK;
}

weft_status nvte_read_floats(const char *call, const char *name, const NVTETensor tensor, const NVTECommWindow *window,
                             const weft_nvte_group *group, size_t count, float **data)
{
    nvte_tensor copy;
    WEFT_TRY(nvte_read_tensor(call, name, tensor, window, group, &copy));
    if (copy.type != kNVTEFloat32 || copy.elements != count) {
        return nvte_fail(WEFT_ERR_ARGUMENT, "%s: tensor '%s' has %zu elements of type %d; give %zu of kNVTEFloat32",
                         call, name, copy.elements, (int)copy.type, count);
    }
    *data = copy.data;
    return WEFT_OK;
}
