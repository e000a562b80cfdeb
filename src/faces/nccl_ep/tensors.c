/* faces/nccl_ep/tensors.c: tensors: their memory, shapes and addresses. */
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/face.h"

/* The tensors of ncclEpTensorAlloc carry the common magic number, and a mark before them. */
typedef struct allocated_tensor {
    ncclEpTensor_t tensor;
    const struct allocated_tensor *mark; /* itself */
    size_t sizes[];
} allocated_tensor;

ncclResult_t ncclEpTensorAlloc(ncclEpTensor_t **tensor, unsigned int ndim, ncclDataType_t datatype, const size_t *sizes,
                               const ncclEpTensorAllocConfig_t *config)
{
    static const char call[] = "ncclEpTensorAlloc";
    if (tensor == NULL || sizes == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument '%s' is NULL", call, tensor == NULL ? "tensor" : "sizes");
    }
    if (ndim == 0 || ndim > NEP_DIMS_MAX) {
        return nep_fail(ncclInvalidArgument, "%s: ndim is %u; give 1 .. %d", call, ndim, NEP_DIMS_MAX);
    }
    if (config != NULL) {
        ncclEpTensorAllocConfig_t copy;
        NEP_TRY(nep_read(call, "config", config, NCCL_EP_TENSOR_ALLOC_CONFIG_V1_SIZE, &copy, sizeof copy));
    }
    allocated_tensor *made = calloc(1, sizeof *made + ndim * sizeof *sizes);
    if (made == NULL) {
        return nep_fail(ncclSystemError, "%s: no memory for a tensor", call);
    }
    memcpy(made->sizes, sizes, ndim * sizeof *sizes);
    made->mark = made;
    made->tensor.size = NCCL_EP_TENSOR_SIZE;
    made->tensor.magic = NCCL_EP_TENSOR_MAGIC;
    made->tensor.ndim = ndim;
    made->tensor.datatype = datatype;
    made->tensor.sizes = made->sizes;
    *tensor = &made->tensor;
    return ncclSuccess;
}

ncclResult_t ncclEpTensorDestroy(ncclEpTensor_t *tensor)
{
    if (tensor == NULL) {
        return ncclSuccess;
    }
    allocated_tensor *made = (allocated_tensor *)tensor;
    /* A descriptor of the caller's has its sizes elsewhere. */
    if (tensor->magic != NCCL_EP_TENSOR_MAGIC || tensor->sizes != made->sizes || made->mark != made) {
        return nep_fail(ncclInvalidArgument, "ncclEpTensorDestroy: the tensor is not one of ncclEpTensorAlloc");
    }
    tensor->magic = 0;
    made->mark = NULL;
    free(made);
    return ncclSuccess;
}

/* Check that a tensor has these dimensions; ndim is at most 3. */
static ncclResult_t check_shape(const char *call, const char *name, const ncclEpTensor_t *tensor, unsigned ndim,
                                const size_t *sizes)
{
    if (tensor->magic == 0) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' is needed", call, name);
    }
    if (tensor->ndim != ndim) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has %u dimensions, not %u", call, name, tensor->ndim,
                        ndim);
    }
    for (unsigned i = 0; i < ndim; i++) {
        if (tensor->sizes[i] != sizes[i]) {
            return nep_fail(ncclInvalidArgument, "%s: dimension %u of tensor '%s' is %zu, not %zu", call, i, name,
                            tensor->sizes[i], sizes[i]);
        }
    }
    return ncclSuccess;
}

/* A tensor in a window lies where NCCL maps the window for its peers, if that is known, else where the caller has it;
 * with an address of its own only if that is the same place. */
static ncclResult_t find_in_window(const char *call, const char *name, const struct ncclEpGroup *group,
                                   const ncclEpTensor_t *tensor, void **data)
{
    const nep_nccl *nccl = nep_load_nccl(call);
    void *base = NULL;
    if (nccl == NULL) {
        return ncclSystemError;
    }
    if (nccl->window_pointer == NULL) {
        return *data != NULL ? ncclSuccess
                             : nep_fail(ncclInvalidUsage,
                                        "%s: tensor '%s' is in a window, which NCCL says the address of from 2.29.2 "
                                        "on; give data",
                                        call, name);
    }
    ncclResult_t result = nccl->window_pointer(group->comm, tensor->win_hdl, &base);
    if (result != ncclSuccess || base == NULL) {
        return *data != NULL ? ncclSuccess
                             : nep_fail(result != ncclSuccess ? result : ncclInvalidArgument,
                                        "%s: NCCL does not know the window of tensor '%s'", call, name);
    }
    void *place = nep_window_place(group, nccl, tensor);
    void *own = (char *)base + tensor->win_offset;
    if (*data == NULL || *data == own) {
        *data = place != NULL ? place : own;
    }
    return ncclSuccess;
}

ncclResult_t nep_data_of(const char *call, const char *name, const struct ncclEpGroup *group,
                         const ncclEpTensor_t *tensor, void **data)
{
    *data = tensor->data;
    if (tensor->win_hdl != NULL) {
        NEP_TRY(find_in_window(call, name, group, tensor, data));
    }
    size_t elements = 1;
    for (unsigned i = 0; i < tensor->ndim; i++) {
        elements *= tensor->sizes[i];
    }
    if (*data == NULL && elements != 0) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has neither data nor a window", call, name);
    }
    return ncclSuccess;
}

ncclResult_t nep_array_of(const char *call, const char *name, const struct ncclEpGroup *group,
                          const ncclEpTensor_t *tensor, ncclDataType_t type, size_t count, void **data)
{
    size_t elements = 1;
    if (tensor->magic == 0) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' is needed", call, name);
    }
    if (tensor->datatype != type) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has type %d; give type %d%s", call, name,
                        (int)tensor->datatype, (int)type, type == ncclFloat32 ? ", ncclFloat32" : "");
    }
    for (unsigned i = 0; i < tensor->ndim; i++) {
        elements *= tensor->sizes[i];
    }
    if (elements != count) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has %zu elements, not %zu", call, name, elements, count);
    }
    return nep_data_of(call, name, group, tensor, data);
}

ncclResult_t nep_floats_of(const char *call, const char *name, const struct ncclEpGroup *group,
                           const ncclEpTensor_t *tensor, size_t count, float **data)
{
    void *at = NULL;
    NEP_TRY(nep_array_of(call, name, group, tensor, ncclFloat32, count, &at));
    *data = at;
    return ncclSuccess;
}

ncclResult_t nep_check_counts(const char *call, const char *name, const ncclEpTensor_t *tensor, size_t count)
{
    if (tensor->magic == 0) {
        return ncclSuccess;
    }
    if (tensor->datatype != ncclInt32 && tensor->datatype != ncclInt64) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has type %d; give ncclInt32 or ncclInt64", call, name,
                        (int)tensor->datatype);
    }
    return check_shape(call, name, tensor, 1, &count);
}
