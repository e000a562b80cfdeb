/* gpu/launch.c: launches of users' kernels that wait for other PEs. */
#include "base/error.h"
#include "base/sized.h"
#include "gpu/gpu.h"

/* *given becomes what can be read: see base/sized.h. */
static weft_status check_launch(weft_world *world, const char *call, const weft_kernel *kernel,
                                const weft_launch **given, weft_launch *copy)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_launch, threads, "WEFT_LAUNCH_INIT");
    WEFT_TRY(wefti_world_need_device(world, call));
    if (kernel == NULL || *given == NULL) {
        return wefti_error_null(call, kernel == NULL ? "kernel" : "launch");
    }
    WEFTI_SIZED_TRY(&form, call, "launch", *given, copy);
    const weft_launch *launch = *given;
    if (launch->threads < 1 || launch->blocks < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %d blocks of %d threads; give 0 blocks or more, of 1 thread or more",
                           call, launch->blocks, launch->threads);
    }
    return WEFT_OK;
}

/* The blocks that run together on free multiprocessors, and on all. */
static weft_status count_blocks(weft_world *world, const weft_kernel *kernel, const weft_launch *launch, int *sms,
                                int *blocks, int *blocks_of_all)
{
    wefti_device *device = world->device;
    int each = 0;
    int all = 0;
    WEFT_TRY(device->ops->launch->occupancy(device, kernel, launch, &each, &all));
    *sms = each > 0 ? device->ops->budget->count_free(device) : 0;
    *blocks = each * *sms;
    *blocks_of_all = each * all;
    return WEFT_OK;
}

weft_status weft_device_launch_query(weft_world *world, const weft_kernel *kernel, const weft_launch *launch,
                                     int *blocks, int *sms)
{
    static const char call[] = "weft_device_launch_query";
    int free_sms;
    int free_blocks;
    int all;
    weft_launch copy;
    WEFT_TRY(check_launch(world, call, kernel, &launch, &copy));
    if (blocks == NULL || sms == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: there is no place for the %s", call,
                           blocks == NULL ? "blocks" : "multiprocessors");
    }
    WEFT_TRY(count_blocks(world, kernel, launch, &free_sms, &free_blocks, &all));
    *blocks = free_blocks;
    *sms = free_sms;
    return WEFT_OK;
}

weft_status weft_device_launch(weft_world *world, const weft_kernel *kernel, const weft_launch *launch,
                               void *const *arguments, weft_stream *stream)
{
    static const char call[] = "weft_device_launch";
    int sms;
    int blocks;
    int all;
    weft_launch copy;
    WEFT_TRY(check_launch(world, call, kernel, &launch, &copy));
    WEFT_TRY(count_blocks(world, kernel, launch, &sms, &blocks, &all));
    weft_launch whole = *launch;
    whole.blocks = launch->blocks > 0 ? launch->blocks : blocks;
    if (whole.blocks == 0 || whole.blocks > all) {
        return wefti_error(
            WEFT_ERR_RANGE,
            "%s: %d blocks of %d threads and %zu bytes of shared memory; %d run at the same time on this "
            "GPU, %d of them on multiprocessors that nothing claims",
            call, whole.blocks, launch->threads, launch->shared_bytes, all, blocks);
    }
    return world->device->ops->launch->launch(world->device, kernel, &whole, arguments, stream);
}
