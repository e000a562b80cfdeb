/* faces/nccl_ep/structs.c: structs of callers with older or newer headers. */
#include <string.h>

#include "faces/nccl_ep/face.h"

#define ELEMENTS_MAX ((size_t)1 << 48) /* so that products with sizes of elements and choices are numbers */

typedef struct struct_start {
    unsigned int size;
    unsigned int magic;
} struct_start;

ncclResult_t nep_read(const char *call, const char *name, const void *theirs, size_t need, void *copy,
                      size_t copy_bytes)
{
    struct_start start;
    if (theirs == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument '%s' is NULL", call, name);
    }
    memcpy(&start, theirs, sizeof start);
    if (start.magic != NCCL_EP_MAGIC) {
        return nep_fail(ncclInvalidArgument, "%s: '%s' has the magic number %#x, not %#x; start from its _INIT", call,
                        name, start.magic, NCCL_EP_MAGIC);
    }
    if (start.size < need) {
        return nep_fail(ncclInvalidArgument, "%s: '%s' says that it has %u bytes; its first version has %zu", call,
                        name, start.size, need);
    }
    memset(copy, 0, copy_bytes);
    memcpy(copy, theirs, start.size < copy_bytes ? start.size : copy_bytes);
    return ncclSuccess;
}

ncclResult_t nep_read_tensor(const char *call, const char *name, const ncclEpTensor_t *theirs, ncclEpTensor_t *copy)
{
    memset(copy, 0, sizeof *copy);
    if (theirs == NULL) {
        return ncclSuccess;
    }
    if (theirs->magic != NCCL_EP_TENSOR_MAGIC) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' is not initialised; start from NCCL_EP_TENSOR_INIT", call,
                        name);
    }
    if (theirs->size < NCCL_EP_TENSOR_V1_SIZE) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' says that it has %u bytes; its first version has %u",
                        call, name, theirs->size, NCCL_EP_TENSOR_V1_SIZE);
    }
    if (theirs->ndim == 0 || theirs->sizes == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has no dimensions", call, name);
    }
    if (theirs->ndim > NEP_DIMS_MAX) {
        return nep_fail(ncclInvalidArgument, "%s: tensor '%s' has %u dimensions; give at most %d", call, name,
                        theirs->ndim, NEP_DIMS_MAX);
    }
    size_t elements = 1;
    for (unsigned i = 0; i < theirs->ndim; i++) {
        if (theirs->sizes[i] != 0 && elements > ELEMENTS_MAX / theirs->sizes[i]) {
            return nep_fail(ncclInvalidArgument, "%s: dimension %u of tensor '%s' is %zu, which no memory holds", call,
                            i, name, theirs->sizes[i]);
        }
        elements *= theirs->sizes[i] != 0 ? theirs->sizes[i] : 1;
    }
    *copy = *theirs;
    return ncclSuccess;
}
