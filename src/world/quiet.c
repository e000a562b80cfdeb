/* Fence and quiet where PEs are far, or kernels ask a proxy: what has been asked of transports and of a device. */
#include "weft/inline/rma.h"
#include "world/world.h"

static weft_status each_transport(weft_world *world, const char *call, int quiet)
{
    WEFT_TRY(wefti_world_expect(world, call));
    /* What goes to device memory that is mapped does not wait for what a transport carries to the same PE. */
    quiet = quiet || (world->device != NULL && world->device->abroad_count > 0);
    for (size_t i = 0; i < world->transport_count; i++) {
        wefti_transport *transport = &world->transports[i];
        WEFT_TRY(quiet ? transport->ops->quiet(transport) : transport->ops->fence(transport));
    }
    /* The end of a kernel completes its stores; what it has asked of a proxy goes on. A fence, too, waits: host calls
     * have a ring of their own. */
    wefti_device *device = world->device;
    if (device != NULL) { /* before a fence, too: what comes after it may be a store of the CPU */
        WEFT_TRY(device->ops->memory->settle(device));
    }
    return device != NULL && device->far_count > 0 ? device->ops->memory->quiet(device) : WEFT_OK;
}

weft_status wefti_fence_slow(weft_world *world)
{
    return each_transport(world, "weft_fence", 0);
}

weft_status wefti_quiet_slow(weft_world *world)
{
    return each_transport(world, "weft_quiet", 1);
}
