/* The device heap's calls: what they check, and what of them is the core's: records, teams' flags. */
#include "weft/device.h"

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "team/team.h"
#include "weft/stream.h"

#define BLOCK_ALIGNMENT 256

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
    weft_status status = wefti_team_device_area(team, call, &dev);
    if (status != WEFT_OK) {
        world->device->ops->detach(world->device);
        world->device = NULL;
    }
    world->view.device = world->device != NULL;
    /* Quiet waits for what its kernels have asked of far PEs. */
    world->view.remote |= world->device != NULL && world->device->far_count > 0;
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
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_device_query: info is NULL");
    }
    world->device->ops->query(world->device, info);
    return WEFT_OK;
}

/* ---- allocation ---- */

static weft_status grow_device(weft_team *team, const char *call, uint64_t offset, uint64_t end)
{
    wefti_device *device = team->world->device;
    (void)offset;
    WEFT_TRY(wefti_team_device_take(team, call));
    const weft_status status = device->ops->grow(device, team, call, end);
    wefti_team_device_give_back(team);
    return status;
}

static wefti_records device_records(const weft_team *team)
{
    wefti_device *device = team->world->device;
    return (wefti_records){
        .lock = device->lock,
        .blocks = &device->blocks,
        .base = device->heap,
        .max_bytes = device->heap_max_bytes,
        .reserved = device->ops->backed(device, team),
        .remedy = "heap_max_bytes of weft_device_config or WEFT_DEVICE_HEAP_MAX",
        .grow = grow_device,
    };
}

static weft_status allocate(weft_team *team, const char *call, size_t bytes, void **block)
{
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    if (block == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the place for the block is NULL", call);
    }
    if (bytes == 0) {
        *block = NULL;
        return WEFT_OK;
    }
    const wefti_records records = device_records(team);
    const wefti_block_wanted wanted = {.bytes = bytes, .alignment = BLOCK_ALIGNMENT, .owner = team->number};
    return wefti_records_alloc(team, &records, call, &wanted, block);
}

static weft_status deallocate(weft_team *team, const char *call, void *block)
{
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    if (block == NULL) {
        return WEFT_OK;
    }
    const wefti_records records = device_records(team);
    return wefti_records_dealloc(team, &records, call, team->number, block);
}

weft_status weft_device_malloc(weft_world *world, size_t bytes, void **block)
{
    return allocate(weft_team_world(world), "weft_device_malloc", bytes, block);
}

weft_status weft_device_team_malloc(weft_team *team, size_t bytes, void **block)
{
    return allocate(team, "weft_device_team_malloc", bytes, block);
}

weft_status weft_device_free(weft_world *world, void *block)
{
    return deallocate(weft_team_world(world), "weft_device_free", block);
}

weft_status weft_device_team_free(weft_team *team, void *block)
{
    return deallocate(team, "weft_device_team_free", block);
}

weft_status weft_device_register(weft_world *world, void *address, size_t bytes)
{
    static const char call[] = "weft_device_register";
    weft_team *team = weft_team_world(world);
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(world, call));
    WEFT_TRY(wefti_team_device_take(team, call));
    const weft_status status = world->device->ops->enrol(world->device, team, address, bytes);
    wefti_team_device_give_back(team);
    return status;
}

weft_status weft_device_unregister(weft_world *world, void *address)
{
    static const char call[] = "weft_device_unregister";
    weft_team *team = weft_team_world(world);
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(world, call));
    if (address == NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_team_device_take(team, call));
    const weft_status status = world->device->ops->expel(world->device, team, address);
    wefti_team_device_give_back(team);
    return status;
}

/* ---- what kernels are told ---- */

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
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_dev: dev is NULL");
    }
    world->device->ops->fill_dev(world->device, dev);
    return WEFT_OK;
}

/* A team's flags, followed by its list of members if it follows no rule. */
static size_t area_bytes(const weft_team *team)
{
    return sizeof(wefti_dev_team_area) + (team->list == NULL ? 0 : (size_t)team->pes * sizeof *team->list);
}

static weft_status fill_area(weft_team *team, void *area)
{
    wefti_device *device = team->world->device;
    WEFT_TRY(device->ops->clear(device, area, sizeof(wefti_dev_team_area)));
    if (team->list == NULL) {
        return WEFT_OK;
    }
    return device->ops->copy(device, (wefti_dev_team_area *)area + 1, team->list,
                             (size_t)team->pes * sizeof *team->list);
}

static weft_status make_area(weft_team *team, const char *call)
{
    void *area;
    const wefti_records records = device_records(team);
    const wefti_block_wanted wanted = {
        .bytes = area_bytes(team), .alignment = BLOCK_ALIGNMENT, .owner = WEFTI_OWNER_LIBRARY};
    WEFT_TRY(wefti_records_alloc(team, &records, call, &wanted, &area));
    wefti_vote vote = wefti_vote_init(team, call, 0, 0);
    vote.status = fill_area(team, area);
    weft_status status = wefti_team_agree(team, &vote, call);
    if (status != WEFT_OK) {
        if (team->dead == WEFT_OK) { /* else a member that came late may use it */
            wefti_records_forget(&records, area);
        }
        return status;
    }
    team->device_area = area;
    return WEFT_OK;
}

/* ---- channels: the scratch of collectives ---- */

/* Inside kernels: one channel, in whose slots a scope sends at most WEFTI_DEV_PACKED_BYTES (weft/device/coll.cuh). */
#define KERNEL_SLOT_UNITS 256u
/* On streams: a channel a block. */
#define CHANNELS_MAX 24u
#define STREAM_SLOT_UNITS 512u
#define STREAM_STEP_UNITS 1536u /* to all others: so that few members, too, pass on 512 KiB in one step */
#define CHANNELS_BYTES_MAX ((uint64_t)16 << 20) /* with smaller slots in a large team */

static uint32_t stream_slot_units(const weft_team *team)
{
    uint64_t units = CHANNELS_BYTES_MAX / ((uint64_t)CHANNELS_MAX * 2 * (uint64_t)team->pes * WEFTI_DEV_SLOT_BYTES(1));
    uint32_t most = team->pes > 1 ? STREAM_STEP_UNITS / ((uint32_t)team->pes - 1) : STREAM_STEP_UNITS;
    most = most > STREAM_SLOT_UNITS ? most : STREAM_SLOT_UNITS;
    return units < 8 ? 8 : units > most ? most : (uint32_t)units;
}

/* Cleared device memory at one offset on all members. */
static weft_status make_cleared(weft_team *team, const char *call, uint64_t bytes, unsigned char **out)
{
    void *block;
    wefti_device *device = team->world->device;
    const wefti_records records = device_records(team);
    const wefti_block_wanted wanted = {.bytes = bytes, .alignment = BLOCK_ALIGNMENT, .owner = WEFTI_OWNER_LIBRARY};
    WEFT_TRY(wefti_records_alloc(team, &records, call, &wanted, &block));
    wefti_vote vote = wefti_vote_init(team, call, bytes, 0);
    vote.status = device->ops->clear(device, block, bytes);
    weft_status status = wefti_team_agree(team, &vote, call);
    if (status != WEFT_OK) {
        if (team->dead == WEFT_OK) { /* else a member that came late may use it */
            wefti_records_forget(&records, block);
        }
        return status;
    }
    *out = block;
    return WEFT_OK;
}

/* How many channels there is room for. */
static uint32_t propose_channels(const weft_team *team, uint64_t channel_bytes)
{
    wefti_device *device = team->world->device;
    uint32_t count = CHANNELS_MAX;
    wefti_os_monitor_enter(device->lock);
    while (count > 1 &&
           wefti_blocks_fit(&device->blocks, count * channel_bytes, BLOCK_ALIGNMENT, 0) == WEFTI_BLOCK_NONE) {
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

static uint32_t count_far(const weft_team *team)
{
    const wefti_device *device = team->world->device;
    uint32_t count = 0;
    for (int i = 0; i < team->pes; i++) {
        const int pe = team->list == NULL ? team->start + i * team->stride : team->list[i];
        count += device->ops->is_far(device, pe) != 0;
    }
    return count;
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
    WEFT_TRY(weft_world_dev(team->world, &dev->world));
    dev->far_count = dev->world.far_count == 0 ? 0 : count_far(team);
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
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: dev is NULL", call);
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

void wefti_team_device_give(weft_team *team)
{
    if (team->stream_sms > 0) {
        team->world->device->ops->sms_give(team->world->device, team->stream_sms);
        team->stream_sms = 0;
    }
}

void wefti_team_device_forget(weft_team *team)
{
    if (team->device_area != NULL) {
        const wefti_records records = device_records(team);
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

/* ---- multiprocessors of collectives on streams ---- */

#define STREAM_SMS_MAX (2 * (int)CHANNELS_MAX) /* the next kernel is there while one runs */

/* The least of the members' parts. */
static weft_status claim_sms(weft_team *team, const char *call)
{
    wefti_device *device = team->world->device;
    wefti_vote vote = wefti_vote_init(team, call, 3, 0);
    int taken = 0;
    vote.status = device->ops->stream_ready(device);
    if (vote.status == WEFT_OK) {
        taken = device->ops->sms_take_part(device, STREAM_SMS_MAX);
        if (taken == 0) {
            vote.status = device->ops->sms_take(device, 1); /* says what is missing */
            taken = vote.status == WEFT_OK;
        }
        vote.reserved_low = (uint64_t)taken;
    }
    weft_status status = wefti_team_agree(team, &vote, call);
    int agreed = status == WEFT_OK ? (int)vote.reserved_low : 0;
    if (taken > agreed) {
        device->ops->sms_give(device, taken - agreed);
    }
    team->stream_sms = agreed;
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
    return team->stream_sms > 0 ? WEFT_OK : claim_sms(team, call);
}

/* ---- deadlines and multiprocessors ---- */

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
    return world->device->ops->sms_take(world->device, sms);
}

weft_status weft_device_sms_give(weft_world *world, int sms)
{
    WEFT_TRY(wefti_world_need_device(world, "weft_device_sms_give"));
    world->device->ops->sms_give(world->device, sms);
    return WEFT_OK;
}

/* ---- users' kernels that wait ---- */

/* *given becomes what can be read: see base/sized.h. */
static weft_status check_launch(weft_world *world, const char *call, const weft_kernel *kernel,
                                const weft_launch **given, weft_launch *own)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_launch, threads, "WEFT_LAUNCH_INIT");
    WEFT_TRY(wefti_world_need_device(world, call));
    if (kernel == NULL || *given == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the %s is NULL", call, kernel == NULL ? "kernel" : "launch");
    }
    WEFTI_SIZED_TRY(&form, call, "launch", *given, own);
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
    WEFT_TRY(device->ops->occupancy(device, kernel, launch, &each, &all));
    *sms = each > 0 ? device->ops->sms_free(device) : 0;
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
    weft_launch own;
    WEFT_TRY(check_launch(world, call, kernel, &launch, &own));
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
    weft_launch own;
    WEFT_TRY(check_launch(world, call, kernel, &launch, &own));
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
    return world->device->ops->launch(world->device, kernel, &whole, arguments, stream);
}
