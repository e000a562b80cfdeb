/* Goal: without a group, on any machine, wrong uses of the NCCL EP face are result codes with a text, and where no
 * group can be made that is said.
 *
 * Method: call everything with NULLs, handles that are none and structs of other sizes; then make a group with the
 * stand-in for NCCL on a machine without the driver (LD_LIBRARY_PATH of the test has none). */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

static int failures;

#undef EXPECT
#define EXPECT(call, wanted, word) expect(&failures, 0, __LINE__, call, wanted, word)

static void tensors(void)
{
    size_t sizes[2] = {3, 4};
    ncclEpTensor_t *tensor = NULL;
    ncclEpTensor_t own = NCCL_EP_TENSOR_INIT;
    ncclEpTensorAllocConfig_t config = NCCL_EP_TENSOR_ALLOC_CONFIG_INIT;
    own.ndim = 2;
    own.sizes = sizes;
    EXPECT(ncclEpTensorAlloc(NULL, 2, ncclFloat32, sizes, NULL), ncclInvalidArgument, "'tensor' is NULL");
    EXPECT(ncclEpTensorAlloc(&tensor, 2, ncclFloat32, NULL, NULL), ncclInvalidArgument, "'sizes' is NULL");
    EXPECT(ncclEpTensorAlloc(&tensor, 0, ncclFloat32, sizes, NULL), ncclInvalidArgument, "ndim is 0");
    config.size = 4;
    EXPECT(ncclEpTensorAlloc(&tensor, 2, ncclFloat32, sizes, &config), ncclInvalidArgument, "4 bytes");
    config.magic = 1;
    EXPECT(ncclEpTensorAlloc(&tensor, 2, ncclFloat32, sizes, &config), ncclInvalidArgument, "magic number 0x1");
    EXPECT(ncclEpTensorDestroy(NULL), ncclSuccess, NULL);
    EXPECT(ncclEpTensorDestroy(&own), ncclInvalidArgument, "not one of ncclEpTensorAlloc");
    config = NCCL_EP_TENSOR_ALLOC_CONFIG_INIT;
    config.size = 64; /* of a newer header */
    EXPECT(ncclEpTensorAlloc(&tensor, 2, ncclFloat32, sizes, &config), ncclSuccess, NULL);
    sizes[0] = 0;
    if (tensor == NULL || tensor->sizes[0] != 3 || tensor->sizes[1] != 4 || tensor->ndim != 2) {
        (void)fprintf(stderr, "a tensor has not the sizes it was made with\n");
        failures++;
    }
    EXPECT(ncclEpTensorDestroy(tensor), ncclSuccess, NULL);
}

static void nulls(void)
{
    int version = 0;
    size_t bytes = 0;
    ncclEpHandle_t handle = NULL;
    ncclEpGroup_t none = (ncclEpGroup_t)&bytes;
    ncclEpHandle_t no_handle = (ncclEpHandle_t)&bytes;
    EXPECT(ncclEpGetVersion(NULL), ncclInvalidArgument, "'version' is NULL");
    EXPECT(ncclEpGetVersion(&version), ncclSuccess, NULL);
    if (version != NCCL_EP_VERSION_CODE) {
        (void)fprintf(stderr, "the version is %d\n", version);
        failures++;
    }
    EXPECT(ncclEpGroupDestroy(NULL), ncclSuccess, NULL);
    EXPECT(ncclEpGroupDestroy(none), ncclInvalidArgument, "none, or was destroyed");
    EXPECT(ncclEpHandleMemSize(none, NCCL_EP_LAYOUT_FLAT, NULL, &bytes, 1), ncclInvalidArgument, "the group is none");
    EXPECT(ncclEpInitHandle(&handle, NULL, NCCL_EP_LAYOUT_FLAT, NULL, 1, NULL), ncclInvalidArgument, "is NULL");
    EXPECT(ncclEpCreateHandle(&handle, none, NCCL_EP_LAYOUT_FLAT, NULL, NULL, NULL, NULL), ncclInvalidArgument, "none");
    EXPECT(ncclEpUpdateHandle(no_handle, NULL, NULL, NULL), ncclInvalidArgument, "the handle is none");
    EXPECT(ncclEpHandleDestroy(NULL), ncclSuccess, NULL);
    EXPECT(ncclEpDispatch(no_handle, NULL, NULL, NULL, NULL, NULL), ncclInvalidArgument, "the handle is none");
    EXPECT(ncclEpCombine(no_handle, NULL, NULL, NULL, NULL), ncclInvalidArgument, "the handle is none");
    EXPECT(ncclEpComplete(NULL, NULL, NULL), ncclInvalidArgument, "the handle is NULL");
    EXPECT(ncclEpMaskQuery(none, NULL, NULL), ncclInvalidArgument, "the group is none");
    EXPECT(ncclEpMaskUpdate(none, NULL, NULL), ncclInvalidArgument, "the group is none");
    EXPECT(ncclEpMaskClean(NULL, NULL), ncclInvalidArgument, "the group is NULL");
    EXPECT(ncclEpGetAsyncError(NULL, &version), ncclInvalidArgument, "the group is NULL");
    EXPECT(ncclEpErrorClear(none), ncclInvalidArgument, "the group is none");
}

static void no_group(void)
{
    ncclComm_t comm = NULL;
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    standin_comms(1, &comm);
    EXPECT(ncclEpCreateGroup(NULL, comm, &config), ncclInvalidArgument, "'ep_group' is NULL");
    EXPECT(ncclEpCreateGroup(&group, NULL, &config), ncclInvalidArgument, "'comm' is NULL");
    EXPECT(ncclEpCreateGroup(&group, comm, NULL), ncclInvalidArgument, "'config' is NULL");
    config.size = NCCL_EP_GROUP_CONFIG_V1_SIZE - 1;
    EXPECT(ncclEpCreateGroup(&group, comm, &config), ncclInvalidArgument, "95 bytes");
    config.size = sizeof config;
    ncclResult_t result = ncclEpCreateGroup(&group, comm, &config);
    if (result == ncclSystemError) {
        EXPECT(result, ncclSystemError, "libcuda.so.1");
    } else { /* there is a driver, and so the config is looked at */
        EXPECT(result, ncclInvalidArgument, "num_experts");
    }
}

int main(void)
{
    tensors();
    nulls();
    no_group();
    return failures != 0;
}
