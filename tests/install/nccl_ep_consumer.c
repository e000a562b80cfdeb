/* A program that knows of NCCL EP only, in C and in C++: the version, a tensor, and a group that cannot be made. Exits
 * with 0 if all is as documented; prints why there is no group. */
#include <stdio.h>

#include <nccl_ep.h>
#include <weft/status.h>

int main(void)
{
    const size_t sizes[2] = {3, 4};
    int version = 0;
    ncclEpTensor_t *tensor = NULL;
    ncclEpGroup_t group = NULL;
    if (ncclEpGetVersion(&version) != ncclSuccess || version != NCCL_EP_VERSION_CODE) {
        return 1;
    }
    if (ncclEpTensorAlloc(&tensor, 2, ncclFloat32, sizes, NULL) != ncclSuccess || tensor->sizes[1] != 4 ||
        ncclEpTensorDestroy(tensor) != ncclSuccess) {
        return 2;
    }
    if (ncclEpCreateGroup(&group, NULL, NULL) != ncclInvalidArgument || group != NULL) {
        return 3;
    }
    printf("%s\n", weft_last_error());
    return 0;
}
