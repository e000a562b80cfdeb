/* The deadline of kernels, and claims of multiprocessors. */
#include "base/error.h"
#include "gpu/gpu.h"

weft_status weft_device_deadline(weft_world *world, uint64_t deadline_ns)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_device_deadline"));
    if (deadline_ns == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_device_deadline: a deadline of 0 ns; give at least 1");
    }
    return world->device->ops->set_deadline(world->device, deadline_ns);
}

weft_status weft_device_sms_take(weft_world *world, int sms)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_device_sms_take"));
    if (sms < 1) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_device_sms_take: %d multiprocessors; give at least 1", sms);
    }
    return world->device->ops->budget->take(world->device, sms);
}

weft_status weft_device_sms_give(weft_world *world, int sms)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_device_sms_give"));
    world->device->ops->budget->give(world->device, sms);
    return WEFT_OK;
}
