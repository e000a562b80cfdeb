/* Fence and quiet where PEs are far, or kernels ask a proxy: what has been asked of transports and of a device. */
#include "weft/inline/rma.h"
#include "world/world.h"

/* Also after a failure, so that nothing is written any more to what has been got without waiting. */
static weft_status end_gets(weft_world *world, weft_status status)
{
    for (size_t i = 0; i < world->transport_count; i++) {
        wefti_transport *transport = &world->transports[i];
        if (transport->ops->end_gets != NULL) {
            status = transport->ops->end_gets(transport, status);
        }
    }
    return status;
}

static weft_status each_transport(weft_world *world, int quiet)
{
    /* A fence becomes a quiet where device memory of another host is mapped: stores there would overtake what a
     * transport carries to the same PE. */
    quiet = quiet || (world->device != NULL && world->device->abroad_count > 0);
    for (size_t i = 0; i < world->transport_count; i++) {
        wefti_transport *transport = &world->transports[i];
        WEFT_TRY(quiet ? transport->ops->quiet(transport) : transport->ops->fence(transport));
    }
    /* What kernels have asked of a proxy goes on after they end. A fence, too, waits for it: host calls have another
     * ring to the proxy, which is not ordered with the kernels'. */
    wefti_device *device = world->device;
    if (device != NULL) { /* before a fence, too: what comes after it may be a store of the CPU */
        WEFT_TRY(device->ops->memory->settle(device));
    }
    return device != NULL && device->far_count > 0 ? device->ops->memory->quiet(device) : WEFT_OK;
}

weft_status wefti_fence_slow(weft_world *world)
{
    WEFT_TRY(wefti_world_expect(world, "weft_fence"));
    return each_transport(world, 0);
}

weft_status wefti_quiet_slow(weft_world *world)
{
    WEFT_TRY(wefti_world_expect(world, "weft_quiet"));
    const weft_status status = end_gets(world, each_transport(world, 1));
    wefti_fence_full(); /* last: loads behind a quiet must not return values from before what it waited for */
    return status;
}
