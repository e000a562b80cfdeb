/* faces/nccl_ep/registration.c: memory of the caller's in which rows move in place. */
#include <weft_nccl_ep.h>

#include "faces/nccl_ep/face.h"

/* NULL becomes the process's group, if it has one. */
static ncclResult_t find_group(const char *call, struct ncclEpGroup **group)
{
    if (*group == NULL) {
        *group = nep_only_group();
    }
    return *group != NULL
               ? nep_check_group(call, *group)
               : nep_fail(ncclInvalidArgument,
                          "%s: ep_group is NULL, which stands for the one group of the process; it has none, "
                          "or several",
                          call);
}

ncclResult_t weft_nccl_ep_register(ncclEpGroup_t ep_group, void *address, size_t bytes)
{
    static const char call[] = "weft_nccl_ep_register";
    NEP_TRY(find_group(call, &ep_group));
    if (address == NULL || bytes == 0) {
        return nep_fail(ncclInvalidArgument, "%s: %s", call,
                        address == NULL ? "argument 'address' is NULL" : "argument 'bytes' is 0");
    }
    return nep_result_of(weft_device_register(ep_group->world, address, bytes));
}

ncclResult_t weft_nccl_ep_unregister(ncclEpGroup_t ep_group, void *address)
{
    static const char call[] = "weft_nccl_ep_unregister";
    NEP_TRY(find_group(call, &ep_group));
    if (address == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'address' is NULL", call);
    }
    return nep_result_of(weft_device_unregister(ep_group->world, address));
}
