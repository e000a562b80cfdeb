/* team/device.c: free what a team has in device memory, at its end, and its blocks; src/gpu allocates them. */
#include "team/team.h"

static weft_status grow_device(weft_team *team, const char *call, uint64_t offset, uint64_t end)
{
    wefti_device *device = team->world->device;
    (void)offset;
    WEFT_TRY(wefti_team_device_take(team, call));
    const weft_status status = device->ops->memory->grow(device, team, call, end);
    wefti_team_device_give_back(team);
    return status;
}

wefti_records wefti_team_device_records(const weft_team *team)
{
    wefti_device *device = team->world->device;
    return (wefti_records){
        .lock = device->lock,
        .blocks = &device->blocks,
        .base = device->heap,
        .max_bytes = device->heap_max_bytes,
        .reserved = device->ops->memory->backed(device, team),
        .remedy = "heap_max_bytes of weft_device_config or WEFT_DEVICE_HEAP_MAX",
        .grow = grow_device,
    };
}

void wefti_team_device_give_sms(weft_team *team)
{
    if (team->stream_sms > 0) {
        team->world->device->ops->budget->give(team->world->device, team->stream_sms);
        team->stream_sms = 0;
    }
    team->stream_blocks = 0;
}

void wefti_team_device_forget(weft_team *team)
{
    if (team->device_area != NULL) {
        const wefti_records records = wefti_team_device_records(team);
        wefti_records_forget(&records, team->device_area);
        team->device_area = NULL;
        if (team->device_channel != NULL) {
            wefti_records_forget(&records, team->device_channel);
            team->device_channel = NULL;
        }
        if (team->stream_channels != NULL) {
            wefti_records_forget(&records, team->stream_channels);
            team->stream_channels = NULL;
        }
    }
}
