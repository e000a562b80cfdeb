/* gpu/team.c: the structs that tell kernels, and collectives on streams, of a world and a team, and the device memory
 * that a team has for them. */
#include "base/error.h"
#include "gpu/gpu.h"

/* Kernels write what this library reads, so their headers must be of one version with it. */
static weft_status check_headers(const char *call, const wefti_headers *headers)
{
    return headers->dev_abi == WEFT_DEV_ABI
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNSUPPORTED,
                             "%s: this program's kernels were compiled with the device headers of weft %d.%d.%d (ABI "
                             "%u), the library is %s (ABI %d); compile them with the headers of the library in use",
                             call, headers->version >> 16, headers->version >> 8 & 0xff, headers->version & 0xff,
                             headers->dev_abi, weft_version_text(), WEFT_DEV_ABI);
}

weft_status wefti_world_dev(weft_world *world, weft_dev *dev, const wefti_headers *headers)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_world_dev"));
    WEFT_TRY(check_headers("weft_world_dev", headers));
    if (dev == NULL) {
        return wefti_error_null("weft_world_dev", "dev");
    }
    world->device->ops->fill_dev(world->device, dev);
    return WEFT_OK;
}

/* A block of device memory at one offset on all members: `zeros` bytes that are zero, behind them `tail_bytes` of
 * `tail`. */
typedef struct team_block {
    uint64_t zeros;
    const void *tail;
    uint64_t tail_bytes;
} team_block;

static weft_status fill_block(wefti_device *device, const team_block *block, unsigned char *at)
{
    WEFT_TRY(device->ops->memory->clear(device, at, block->zeros));
    return block->tail_bytes == 0
               ? WEFT_OK
               : device->ops->memory->copy(device, at + block->zeros, block->tail, block->tail_bytes);
}

/* Collective; on failure, the same on all members, *out stays as it is. */
static weft_status make_block(weft_team *team, const char *call, const team_block *block, unsigned char **out)
{
    void *at;
    const wefti_records records = wefti_team_device_records(team);
    const wefti_block_wanted wanted = {.bytes = block->zeros + block->tail_bytes,
                                       .alignment = WEFTI_DEVICE_BLOCK_ALIGNMENT,
                                       .owner = WEFTI_OWNER_LIBRARY};
    WEFT_TRY(wefti_records_alloc(team, &records, call, &wanted, &at));
    wefti_vote vote = wefti_vote_init(team, call, wanted.bytes, 0);
    vote.status = fill_block(team->world->device, block, at);
    weft_status status = wefti_team_agree(team, &vote, call);
    if (status != WEFT_OK) {
        if (team->dead == WEFT_OK) { /* else a member that came late may use it */
            wefti_records_forget(&records, at);
        }
        return status;
    }
    *out = at;
    return WEFT_OK;
}

static weft_status make_cleared(weft_team *team, const char *call, uint64_t bytes, unsigned char **out)
{
    const team_block block = {.zeros = bytes};
    return make_block(team, call, &block, out);
}

/* A team's flags, followed by its list of members if it follows no rule. */
static weft_status make_area(weft_team *team, const char *call)
{
    const team_block block = {
        .zeros = sizeof(wefti_dev_team_area),
        .tail = team->list,
        .tail_bytes = team->list == NULL ? 0 : (uint64_t)team->pes * sizeof *team->list,
    };
    unsigned char *area;
    WEFT_TRY(make_block(team, call, &block, &area));
    team->device_area = (wefti_dev_team_area *)(void *)area;
    return WEFT_OK;
}

/* ---- channels: the scratch of collectives ---- */

/* Inside kernels: one channel, in whose slots a scope sends packed. */
#define KERNEL_SLOT_UNITS ((uint32_t)(WEFTI_DEV_PACKED_BYTES / WEFTI_DEV_UNIT))
/* On streams: each block has a channel, so that there are up to WEFTI_DEVICE_BLOCKS_MAX. */
#define STREAM_SLOT_UNITS 512u
/* Of all slots of a member together: a small team's are larger, so that a reduction can be handed on. */
#define STREAM_STEP_UNITS 1536u
#define CHANNELS_BYTES_MAX ((uint64_t)16 << 20) /* with smaller slots in a large team */

_Static_assert((size_t)WEFTI_DEVICE_BLOCKS_MAX *STREAM_STEP_UNITS *WEFTI_DEV_UNIT >= WEFTI_DEVICE_FORWARD_BYTES,
               "a small team's slots hold a reduction that is handed on");

static uint32_t stream_slot_units(const weft_team *team)
{
    uint64_t units =
        CHANNELS_BYTES_MAX / ((uint64_t)WEFTI_DEVICE_BLOCKS_MAX * 2 * (uint64_t)team->pes * WEFTI_DEV_SLOT_BYTES(1));
    uint32_t most = team->pes > 1 ? STREAM_STEP_UNITS / ((uint32_t)team->pes - 1) : STREAM_STEP_UNITS;
    most = most > STREAM_SLOT_UNITS ? most : STREAM_SLOT_UNITS;
    return units < 8 ? 8 : units > most ? most : (uint32_t)units;
}

/* How many channels there is room for. */
static uint32_t propose_channels(const weft_team *team, uint64_t channel_bytes)
{
    wefti_device *device = team->world->device;
    uint32_t count = WEFTI_DEVICE_BLOCKS_MAX;
    wefti_os_monitor_enter(device->lock);
    while (count > 1 && wefti_blocks_fit(&device->blocks, count * channel_bytes, WEFTI_DEVICE_BLOCK_ALIGNMENT, 0) ==
                            WEFTI_BLOCK_NONE) {
        count /= 2;
    }
    wefti_os_monitor_leave(device->lock);
    return count;
}

static weft_status make_stream_channels(weft_team *team, const char *call)
{
    const uint64_t channel_bytes = WEFTI_DEV_CHANNEL_BYTES(team->pes, stream_slot_units(team));
    wefti_vote vote = wefti_vote_init(team, call, 1, 0);
    vote.reserved_low = propose_channels(team, channel_bytes);
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    WEFT_TRY(make_cleared(team, call, vote.reserved_low * channel_bytes, &team->stream_channels));
    team->stream_channel_count = (uint32_t)vote.reserved_low;
    return WEFT_OK;
}

static void count_far(const weft_team *team, weft_dev_team *dev)
{
    const wefti_device *device = team->world->device;
    for (int i = 0; i < team->pes; i++) {
        const int pe = team->list == NULL ? team->start + i * team->stride : team->list[i];
        const int is_far = device->ops->memory->is_far(device, pe);
        dev->far_count += is_far != 0;
        dev->abroad_count += !is_far && !wefti_pe_is_near(&team->world->view, pe);
    }
}

weft_status wefti_team_device_area(weft_team *team, const char *call, weft_dev_team *dev)
{
    if (team->device_area == NULL) {
        WEFT_TRY(make_area(team, call));
    }
    *dev = (weft_dev_team){
        .pe = team->pe,
        .pes = team->pes,
        .start = team->start,
        .stride = team->stride,
        .list = team->list == NULL ? NULL : (const wefti_i32 *)(team->device_area + 1),
        .area = team->device_area,
    };
    team->world->device->ops->fill_dev(team->world->device, &dev->world);
    if (dev->world.far_count != 0) {
        count_far(team, dev);
    }
    return WEFT_OK;
}

static void tell_channels(weft_dev_team *dev, unsigned char *channels, uint32_t count, uint32_t slot_units)
{
    dev->channels = (uintptr_t)channels;
    dev->channel_bytes = WEFTI_DEV_CHANNEL_BYTES(dev->pes, slot_units);
    dev->channel_count = count;
    dev->slot_units = slot_units;
}

weft_status wefti_team_dev(weft_team *team, weft_dev_team *dev, const wefti_headers *headers)
{
    static const char call[] = "weft_team_dev";
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    WEFT_TRY(check_headers(call, headers));
    if (dev == NULL) {
        return wefti_error_null(call, "dev");
    }
    weft_dev_team told;
    WEFT_TRY(wefti_team_device_area(team, call, &told));
    if (team->device_channel == NULL) {
        WEFT_TRY(
            make_cleared(team, call, WEFTI_DEV_CHANNEL_BYTES(team->pes, KERNEL_SLOT_UNITS), &team->device_channel));
    }
    tell_channels(&told, team->device_channel, 1, KERNEL_SLOT_UNITS);
    *dev = told;
    return WEFT_OK;
}

weft_status wefti_team_stream_dev(weft_team *team, const char *call, weft_dev_team *dev)
{
    WEFT_TRY(wefti_team_device_area(team, call, dev));
    tell_channels(dev, team->stream_channels, team->stream_channel_count, stream_slot_units(team));
    return WEFT_OK;
}

/* ---- multiprocessors of collectives on streams ---- */

#define STREAM_SMS_MAX (2 * WEFTI_DEVICE_BLOCKS_MAX) /* the next kernel is there while one runs */

/* This PE's part: *blocks that a collective may have, and the multiprocessors *taken for them. */
static weft_status take_part(wefti_device *device, int *blocks, int *taken)
{
    *taken = device->ops->budget->take_quota(device, STREAM_SMS_MAX);
    if (*taken <= 1 && device->claims == WEFT_DEVICE_CLAIMS_SHARED) {
        device->ops->budget->give(device, *taken);
        *taken = 0;
        *blocks = 1;
        return WEFT_OK;
    }
    if (*taken == 0) {
        WEFT_TRY(device->ops->budget->take(device, 1)); /* says what is missing */
        *taken = 1;
    }
    *blocks = *taken;
    return WEFT_OK;
}

/* The least of the members' parts. */
static weft_status claim_sms(weft_team *team, const char *call)
{
    wefti_device *device = team->world->device;
    wefti_vote vote = wefti_vote_init(team, call, 3, 0);
    int blocks = 0;
    int taken = 0;
    vote.status = device->ops->stream->ready(device);
    if (vote.status == WEFT_OK) {
        vote.status = take_part(device, &blocks, &taken);
        vote.reserved_low = (uint64_t)blocks;
    }
    weft_status status = wefti_team_agree(team, &vote, call);
    int agreed = status == WEFT_OK ? (int)vote.reserved_low : 0;
    if (taken > agreed) {
        device->ops->budget->give(device, taken - agreed);
        taken = agreed;
    }
    team->stream_blocks = agreed;
    team->stream_sms = taken;
    return status;
}

weft_status weft_team_stream_ready(weft_team *team)
{
    static const char call[] = "weft_team_stream_ready";
    weft_dev_team dev;
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    WEFT_TRY(wefti_team_device_area(team, call, &dev));
    if (team->stream_channels == NULL) {
        WEFT_TRY(make_stream_channels(team, call));
    }
    return team->stream_blocks > 0 ? WEFT_OK : claim_sms(team, call);
}
