/* Device memory, in a world that has none: NULLs, and the status that says so. Worlds with a device: tests/gpu. */
#include <string.h>

#include "input/table.h"

#define UNTOUCHED ((void *)(uintptr_t)0x5a5a)

CASE(weft_device_attach)
{
    weft_device_config unsized = {.size = 3};
    CHECK_STATUS(weft_device_attach(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK(weft_device_attach(s->world, &unsized) == WEFT_ERR_ARGUMENT ||
          weft_device_attach(s->world, &unsized) == WEFT_ERR_UNSUPPORTED); /* a build without CUDA */
    weft_device_config unknown = WEFT_DEVICE_CONFIG_INIT;
    unknown.claims = (weft_device_claims)2;
    CHECK(weft_device_attach(s->world, &unknown) == WEFT_ERR_ARGUMENT ||
          weft_device_attach(s->world, &unknown) == WEFT_ERR_UNSUPPORTED);
}

CASE(weft_device_query)
{
    weft_device_info info;
    weft_device_info unread;
    memset(&info, POISON, sizeof info);
    memset(&unread, POISON, sizeof unread);
    CHECK_STATUS(weft_device_query(NULL, &info), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_query(s->world, &info), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_query(s->world, NULL), WEFT_ERR_STATE);
    CHECK(memcmp(&info, &unread, sizeof info) == 0);
}

COVERED(weft_device_team_malloc)
COVERED(weft_device_free)
COVERED(weft_device_team_free)
CASE(weft_device_malloc)
{
    void *block = UNTOUCHED;
    CHECK_STATUS(weft_device_malloc(NULL, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_malloc(s->world, 8, &block), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_malloc(s->world, 8, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_team_malloc(NULL, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_team_malloc(s->team, 8, &block), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_free(NULL, s->block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_free(s->world, s->block), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_team_free(NULL, s->block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_team_free(s->team, s->block), WEFT_ERR_STATE);
    CHECK(block == UNTOUCHED);
}

COVERED(weft_device_unregister)
COVERED(weft_device_team_register)
COVERED(weft_device_team_unregister)
COVERED(weft_device_register_mapped)
CASE(weft_device_register)
{
    void *peers[] = {s->in};
    CHECK_STATUS(weft_device_register_mapped(NULL, s->in, 8, peers), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_register_mapped(s->world, s->in, 8, peers), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_register(NULL, s->in, 8), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_register(s->world, s->in, 8), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_unregister(NULL, s->in), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_unregister(s->world, s->in), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_team_register(NULL, s->in, 8), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_team_register(s->team, s->in, 8), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_team_unregister(NULL, s->in), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_team_unregister(s->team, s->in), WEFT_ERR_STATE);
}

COVERED(weft_team_dev)
CASE(weft_world_dev)
{
    weft_dev dev;
    weft_dev_team team;
    memset(&dev, POISON, sizeof dev);
    memset(&team, POISON, sizeof team);
    CHECK_STATUS(weft_world_dev(NULL, &dev), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_dev(s->world, &dev), WEFT_ERR_STATE);
    CHECK_STATUS(weft_team_dev(NULL, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_dev(s->team, &team), WEFT_ERR_STATE);
    CHECK(*(unsigned char *)&dev == POISON && *(unsigned char *)&team == POISON);
}

COVERED(weft_device_sms_take)
COVERED(weft_device_sms_give)
CASE(weft_device_deadline)
{
    CHECK_STATUS(weft_device_deadline(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_deadline(s->world, 1), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_sms_take(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_sms_take(s->world, 1), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_sms_give(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_sms_give(s->world, 1), WEFT_ERR_STATE);
}

COVERED(weft_device_launch)
CASE(weft_device_launch_query)
{
    weft_launch launch = WEFT_LAUNCH_INIT;
    const weft_kernel *kernel = UNTOUCHED;
    int blocks = POISON;
    int sms = POISON;
    launch.threads = 32;
    CHECK_STATUS(weft_device_launch_query(NULL, kernel, &launch, &blocks, &sms), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_launch_query(s->world, kernel, &launch, &blocks, &sms), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_launch(NULL, kernel, &launch, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_device_launch(s->world, kernel, &launch, NULL, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_device_launch(s->world, NULL, NULL, NULL, NULL), WEFT_ERR_STATE);
    CHECK(blocks == POISON && sms == POISON);
}
