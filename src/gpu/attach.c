/* Attaching a device to a world. */
#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "gpu/gpu.h"

static const char no_cuda[] =
    "this build of weft has no CUDA; build it where nvcc and cuda.h are found (cmake says so when they are not)";

/* ---- attaching ---- */

static weft_status complete(const weft_device_config *given, weft_device_config *config)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_device_config, ordinal, "WEFT_DEVICE_CONFIG_INIT");
    const weft_device_config standard = WEFT_DEVICE_CONFIG_INIT;
    uint64_t bytes;
    *config = standard;
    if (given != NULL) {
        WEFTI_SIZED_TRY(&form, "weft_device_attach", "config", given, config);
        *config = *given;
    }
    if (config->choice != WEFT_DEVICE_CURRENT && config->choice != WEFT_DEVICE_ORDINAL) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_device_attach: config.choice is %d, no weft_device_choice; start from "
                           "WEFT_DEVICE_CONFIG_INIT",
                           (int)config->choice);
    }
    if (config->claims != WEFT_DEVICE_CLAIMS_OWN && config->claims != WEFT_DEVICE_CLAIMS_SHARED) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_device_attach: config.claims is %d, no weft_device_claims; start from "
                           "WEFT_DEVICE_CONFIG_INIT",
                           (int)config->claims);
    }
    if (config->heap_max_bytes == 0) {
        WEFT_TRY(wefti_env_size(WEFTI_ENV_DEVICE_HEAP_MAX, &bytes));
        config->heap_max_bytes = bytes;
    }
    if (config->heap_bytes == 0) {
        WEFT_TRY(wefti_env_size(WEFTI_ENV_DEVICE_HEAP, &bytes));
        config->heap_bytes = bytes;
    }
    if (config->heap_max_bytes != 0 && config->heap_bytes > config->heap_max_bytes) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_device_attach: heap_bytes %zu exceeds heap_max_bytes %zu",
                           config->heap_bytes, config->heap_max_bytes);
    }
    return WEFT_OK;
}

weft_status weft_device_attach(weft_world *world, const weft_device_config *given)
{
    static const char call[] = "weft_device_attach";
    weft_team *team = weft_team_world(world);
    weft_device_config config;
    weft_dev_team dev;
    WEFT_TRY(wefti_team_check(team, call));
    if (wefti_device_backend == NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: %s", call, no_cuda);
    }
    /* A PE that cannot go on says so in the vote, so that all learn it. */
    weft_status mine = complete(given, &config);
    if (mine == WEFT_OK && world->device != NULL) {
        mine = wefti_error(WEFT_ERR_STATE, "%s: world \"%s\" has a device already", call, world->name);
    }
    wefti_vote vote = wefti_vote_init(team, call, 0, 0);
    vote.status = mine;
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    vote = wefti_vote_init(team, call, config.heap_max_bytes, config.heap_bytes);
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    WEFT_TRY(wefti_device_backend->attach(team, &config, &world->device));
    world->device->claims = config.claims;
    weft_status status = wefti_team_device_area(team, call, &dev);
    if (status != WEFT_OK) {
        world->device->ops->detach(world->device);
        world->device = NULL;
    }
    world->view.device = world->device != NULL;
    /* Quiet waits for what its kernels have asked of far PEs. */
    if (world->device != NULL) {
        world->view.remote |= WEFTI_REMOTE_COPIES | (world->device->far_count > 0 ? WEFTI_REMOTE_PES : 0);
    }
    return status;
}

weft_status wefti_world_need_device(const weft_world *world, const char *call)
{
    WEFT_TRY(wefti_world_expect(world, call));
    if (world->device == NULL) {
        return wefti_error(WEFT_ERR_STATE, "%s: %s", call,
                           wefti_device_backend == NULL ? no_cuda
                                                        : "the world has no device; call weft_device_attach first");
    }
    return WEFT_OK;
}

weft_status weft_device_query(const weft_world *world, weft_device_info *info)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_device_query"));
    if (info == NULL) {
        return wefti_error_null("weft_device_query", "info");
    }
    world->device->ops->query(world->device, info);
    return WEFT_OK;
}
