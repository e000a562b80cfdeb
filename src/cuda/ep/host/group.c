/* cuda/ep/host/group.c: a group's device memory and kernels. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/kind.h"
#include "ep/agreement.h"
#include "weft.h"

#define CALL "weft_ep_create"
#define SM_MIN 90

/* ---- what is private ---- */

static weft_status check_limits(const weft_ep *ep)
{
    if (ep->ranks > WEFTI_CUDA_EP_MANY_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": the team has %d members; on GPUs a group has at most %d ranks. "
                                "Split the team (weft_team_split_strided), or route on the host (config.on_device 0)",
                           ep->ranks, WEFTI_CUDA_EP_MANY_MAX);
    }
    if ((uint64_t)ep->ranks * (uint64_t)ep->config.tokens_max > WEFTI_CUDA_EP_PLACES_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": %d ranks of %d tokens; on GPUs a rank receives at most %u. Lower tokens_max",
                           ep->ranks, ep->config.tokens_max, WEFTI_CUDA_EP_PLACES_MAX);
    }
    if (ep->config.experts > WEFTI_CUDA_EP_EXPERTS_MAX) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, CALL ": %d experts; on GPUs a group has at most %d",
                           ep->config.experts, WEFTI_CUDA_EP_EXPERTS_MAX);
    }
    return WEFT_OK;
}

static weft_status check_ranks(const weft_ep *ep)
{
    if (ep->world->device == NULL) {
        return wefti_error(WEFT_ERR_STATE,
                           CALL ": on_device is 1 and the world has no device; call weft_device_attach");
    }
    return check_limits(ep);
}

static weft_status check_device(const wefti_cuda *cuda)
{
    int major = 0;
    int minor = 0;
    WEFT_TRY(wefti_cuda_check(
        &cuda->driver,
        cuda->driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, cuda->ordinal),
        "cuDeviceGetAttribute"));
    WEFT_TRY(wefti_cuda_check(
        &cuda->driver,
        cuda->driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, cuda->ordinal),
        "cuDeviceGetAttribute"));
    if (major * 10 + minor < SM_MIN) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": the GPU has compute capability %d.%d; expert parallelism needs 9.0 or later", major,
                           minor);
    }
    return WEFT_OK;
}

/* Routes come and go while other PEs of this GPU are in their steps, so their memory is taken and given back in stream
 * order, from a pool that keeps what it has: cuMemFree would wait for those steps. */
static weft_status make_pool(wefti_cuda *cuda)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->ordinal}};
    cuuint64_t keep = UINT64_MAX;
    WEFT_TRY(wefti_cuda_check(driver, driver->cuMemPoolCreate(&cuda->ep_pool, &properties), "cuMemPoolCreate"));
    return wefti_cuda_check(driver,
                            driver->cuMemPoolSetAttribute(cuda->ep_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                            "cuMemPoolSetAttribute");
}

static weft_status make_events(weft_ep *ep)
{
    const wefti_cuda_driver *driver = &ep->device->cuda->driver;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        WEFT_TRY(wefti_cuda_check(driver, driver->cuEventCreate(&ep->device->sent[bank], CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate"));
        WEFT_TRY(wefti_cuda_check(driver, driver->cuEventCreate(&ep->device->last[bank], CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate"));
    }
    return WEFT_OK;
}

static void destroy_event(const wefti_cuda *cuda, CUevent event)
{
    if (event != NULL && wefti_cuda_enter(cuda) == WEFT_OK) {
        (void)cuda->driver.cuEventDestroy(event);
        wefti_cuda_leave(cuda);
    }
}

static void destroy_events(const wefti_ep_device *device)
{
    for (int bank = 0; bank < WEFTI_EP_BANKS_MAX; bank++) {
        destroy_event(device->cuda, device->sent[bank]);
        destroy_event(device->cuda, device->last[bank]);
    }
}

/* Everything a call may launch, and the pool; and events. */
static weft_status load(weft_ep *ep)
{
    wefti_cuda *cuda = ep->device->cuda;
    WEFT_TRY(check_device(cuda));
    WEFT_TRY(cuda->ep_pool == NULL ? make_pool(cuda) : WEFT_OK);
    WEFT_TRY(make_events(ep));
    return wefti_cuda_ep_find_kernels(ep);
}

/* Tokens of a source whose rows may come before this rank is in the call: as many as have slots, if they take little
 * memory, and unless nobody wants that. */
static int low_latency_tokens(const weft_ep *ep, uint64_t slots)
{
    uint64_t bytes = ep->device->kind->low_latency_copies * slots * (uint64_t)ep->config.row_bytes_max;
    int is_wanted = (ep->config.flags & WEFT_EP_NO_LOW_LATENCY) == 0;
    return is_wanted && bytes <= WEFTI_CUDA_EP_LOW_LATENCY_BYTES_MAX ? ep->config.slot_tokens_max : 0;
}

/* Bytes of the area for rows that come, or results of this rank's. */
static uint64_t staged_bytes(const weft_ep *ep)
{
    uint64_t tokens = (uint64_t)ep->config.tokens_max;
    uint64_t ranks = (uint64_t)ep->ranks;
    uint64_t topk = (uint64_t)ep->config.topk_max;
    uint64_t staged = tokens * (topk < ranks ? topk : ranks); /* by source a rank's own results are not */
    uint64_t received = ep->device->received_max;
    return wefti_ep_stages(ep) ? (staged > received ? staged : received) * ep->config.row_bytes_max : 0;
}

/* Memory for rows of all layouts that leave with send, behind the rest of the area, if it is wanted. */
static wefti_cuda_ep_eager take_eager(const weft_ep *ep, wefti_cuda_ep_layout *at)
{
    const int is_wanted = (ep->config.flags & WEFT_EP_ROWS_WITH_SEND) != 0 && ep->device->kind->eager_families != 0;
    return is_wanted ? wefti_cuda_ep_eager_of(at, ep->ranks, ep->config.topk_max, ep->config.row_bytes_max,
                                              (int)wefti_ep_scale_words_max(ep))
                     : (wefti_cuda_ep_eager){.cleared_bytes = 0};
}

static void set_limits(weft_ep *ep)
{
    wefti_cuda_ep_group *group = &ep->device->group[0];
    uint64_t received = (uint64_t)ep->ranks * (uint64_t)ep->config.tokens_max;
    uint64_t slots = (uint64_t)ep->ranks * (uint64_t)ep->config.slot_tokens_max;
    ep->device->received_max = received < (uint64_t)ep->rows_limit ? received : (uint64_t)ep->rows_limit;
    ep->device->received_max = slots > ep->device->received_max ? slots : ep->device->received_max;
    group->rank = ep->rank;
    group->ranks = ep->ranks;
    group->rows_limit = (uint32_t)ep->rows_limit;
    group->drops = ep->config.overflow != WEFT_EP_OVERFLOW_ERROR;
    ep->device->kind->set_experts(group, ep->owners.first);
    group->at = ep->device->kind->layout(ep, staged_bytes(ep), low_latency_tokens(ep, slots));
    ep->device->eager = take_eager(ep, &group->at);
    ep->device->extent = (wefti_cuda_ep_extent){
        .tokens = (uint64_t)ep->config.tokens_max, .units = group->at.units, .received = ep->device->received_max};
    ep->device->group[1] = *group;
}

/* Kernels mask ranks in calls of which the memory for rows is the group's: a rank that is late spoils nothing. */
static weft_status check_passing(const weft_ep *ep)
{
    const int has_low_latency = wefti_cuda_ep_has_low_latency(ep);
    if (wefti_cuda_ep_passes_by(ep) && !has_low_latency) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": flags has WEFT_EP_MASK_ON_TIMEOUT, which on GPUs needs slots of few tokens "
                                "(slot_tokens_max, and memory for low latency); leave it out, and call weft_ep_mask "
                                "after a timeout");
    }
    return WEFT_OK;
}

/* Rows of groups of many ranks all go to their places at once. */
static weft_status check_eager(const weft_ep *ep)
{
    if ((ep->config.flags & WEFT_EP_ROWS_WITH_SEND) != 0 && !wefti_cuda_ep_has_eager(ep)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           CALL ": flags has WEFT_EP_ROWS_WITH_SEND, which on GPUs needs at most %d ranks; leave it "
                                "out, and rows move in recv",
                           WEFTI_CUDA_EP_RANKS_MAX);
    }
    return WEFT_OK;
}

/* The bytes of all areas of a rank, and of what lies behind them. */
static uint64_t block_bytes(const weft_ep *ep)
{
    return (uint64_t)wefti_ep_banks(ep) * ep->device->group[0].at.bytes +
           wefti_cuda_ep_stats_words(ep) * sizeof(uint64_t);
}

static weft_status group_bytes(weft_ep *ep, weft_ep_memory *memory)
{
    wefti_ep_device device;
    wefti_ep_device *before = ep->device;
    memset(&device, 0, sizeof device);
    WEFT_TRY(check_limits(ep));
    device.kind = wefti_cuda_ep_find_kind(ep);
    ep->device = &device;
    set_limits(ep);
    const uint64_t banks = (uint64_t)wefti_ep_banks(ep);
    memory->symmetric_bytes = block_bytes(ep);
    memory->staging_bytes = banks * staged_bytes(ep);
    memory->low_latency_bytes = banks * (device.group[0].at.bytes - device.kind->layout(ep, staged_bytes(ep), 0).bytes);
    memory->private_bytes = 0;
    weft_status status = check_passing(ep);
    status = status == WEFT_OK ? check_eager(ep) : status;
    ep->device = before;
    return status;
}

/* The claim of the group that the config names, or one of its own. */
static weft_status open_claim(weft_ep *ep)
{
    const weft_ep *with = ep->config.claim_with;
    ep->config.claim_with = NULL;
    if (with != NULL && (!wefti_ep_is_alive(with) || with->device == NULL || with->world != ep->world)) {
        return wefti_error(WEFT_ERR_ARGUMENT, CALL
                           ": claim_with is a group that was destroyed, of another world, or on the host; give one "
                           "of this world on GPUs, or NULL");
    }
    ep->device->claim = with != NULL ? with->device->claim : wefti_alloc_zeroed(1, sizeof *ep->device->claim);
    if (ep->device->claim == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the group");
    }
    ep->device->claim->groups++;
    return WEFT_OK;
}

static void close_claim(const wefti_ep_device *device)
{
    wefti_cuda_ep_claim *claim = device->claim;
    if (claim == NULL || --claim->groups > 0) {
        return;
    }
    if (claim->sms > 0) {
        wefti_cuda_budget_give(&device->cuda->budget, claim->sms);
    }
    if (claim->is_guest) {
        wefti_cuda_budget_remove_guest(&device->cuda->budget);
    }
    wefti_free(claim);
}

static weft_status group_init(weft_ep *ep)
{
    WEFT_TRY(check_ranks(ep));
    ep->device = wefti_alloc_zeroed(1, sizeof *ep->device);
    if (ep->device == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the group");
    }
    ep->device->cuda = wefti_cuda_of(ep->world->device);
    ep->device->sms = ep->device->cuda->sms;
    WEFT_TRY(open_claim(ep));
    ep->device->kind = wefti_cuda_ep_find_kind(ep);
    set_limits(ep);
    WEFT_TRY(check_passing(ep));
    WEFT_TRY(check_eager(ep));
    WEFT_TRY(wefti_cuda_enter(ep->device->cuda));
    weft_status status = load(ep);
    wefti_cuda_leave(ep->device->cuda);
    return status;
}

static void group_fini(weft_ep *ep)
{
    wefti_ep_device *device = ep->device;
    if (device != NULL) {
        destroy_events(device);
        close_claim(device);
        wefti_free(device->extents);
    }
    wefti_free(device);
}

/* ---- what is shared ---- */

/* How many PEs of the world use this PE's GPU. */
static int pes_of_gpu(const wefti_cuda *cuda)
{
    int count = 0;
    const CUuuid uuid = wefti_cuda_record_of(cuda, wefti_cuda_own_index(cuda))->uuid;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        count += cuda->group[i] >= 0 && memcmp(&wefti_cuda_record_of(cuda, i)->uuid, &uuid, sizeof uuid) == 0;
    }
    return count > 0 ? count : 1;
}

static weft_status find_areas(weft_ep *ep, wefti_cuda_ep_directory *directory)
{
    wefti_ep_device *device = ep->device;
    for (int rank = 0; rank < ep->ranks; rank++) {
        uint64_t left;
        int pe = weft_team_translate(ep->team, rank, weft_team_world(ep->world));
        const uint64_t area = wefti_cuda_locate(&device->cuda->base, device->area, pe, &left);
        device->pe_of[rank] = pe;
        for (int bank = 0; bank < WEFTI_EP_BANKS_MAX; bank++) {
            const uint64_t of_bank = area + (uint64_t)bank * device->group[0].at.bytes;
            device->kind->set_rank(&device->group[bank], &directory[bank], rank, pe, of_bank);
            device->own_area[bank] = rank == ep->rank ? of_bank : device->own_area[bank];
        }
        if (area == 0) {
            return wefti_error(WEFT_ERR_UNREACHABLE,
                               CALL
                               ": rank %d does not reach the device memory of rank %d. Split the team into GPUs that "
                               "reach each other, or route on the host (config.on_device 0)",
                               ep->rank, rank);
        }
    }
    return WEFT_OK;
}

static wefti_cuda_ep_control *control_of(const wefti_ep_device *device, int bank)
{
    return (void *)(uintptr_t)(device->own_area[bank] + device->group[bank].at.control);
}

/* Calls of both banks use the tables of one route, whose words say of which call they are by its tag alone, a number
 * of 31 bits: no two calls of the banks, which take turns, have the same one. */
static uint64_t first_call(int bank, uint64_t calls)
{
    return calls + ((uint64_t)bank << 30);
}

/* Words that go on where others left off, of a group that is new or, `before`, had other memory. */
static weft_status number_calls(const weft_ep *ep, int bank, const wefti_ep_device *before)
{
    wefti_device *base = &ep->device->cuda->base;
    uint64_t *words = wefti_cuda_ep_host_words(ep, bank);
    wefti_cuda_ep_control control = {.epoch = 0};
    if (before == NULL) {
        memset(words, 0, WEFTI_CUDA_EP_HOST_WORDS * sizeof *words);
        control.epoch = first_call(bank, ep->settings.first_call);
    } else {
        WEFT_TRY(wefti_cuda_copy(base, &control, control_of(before, bank), sizeof control));
    }
    return wefti_cuda_copy(base, control_of(ep->device, bank), &control, sizeof control);
}

/* As it was before, where it was. */
static weft_status keep_statistics(const weft_ep *ep, const wefti_ep_device *before)
{
    return wefti_cuda_copy(&ep->device->cuda->base, (void *)(uintptr_t)ep->device->stats,
                           (void *)(uintptr_t)before->stats, wefti_ep_stats_words(ep) * sizeof(uint64_t));
}

/* What is this rank's own work, once there is memory. */
static weft_status prepare_by(weft_ep *ep, wefti_cuda_ep_directory *directory, const wefti_ep_device *before)
{
    wefti_ep_device *device = ep->device;
    WEFT_TRY(find_areas(ep, directory));
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        wefti_cuda_ep_group *group = &device->group[bank];
        const uint64_t area = wefti_cuda_ep_own_area(ep, bank);
        WEFT_TRY(wefti_cuda_clear(&device->cuda->base, (void *)(uintptr_t)area, group->at.cleared_bytes));
        WEFT_TRY(wefti_cuda_ep_has_eager(ep)
                     ? wefti_cuda_clear(&device->cuda->base, (void *)(uintptr_t)(area + device->eager.words[0]),
                                        device->eager.cleared_bytes)
                     : WEFT_OK);
        WEFT_TRY(device->kind->write_directory(ep, bank, &directory[bank]));
        WEFT_TRY(number_calls(ep, bank, before));
        WEFT_TRY(weft_world_dev(ep->world, &group->dev));
        group->host_status =
            (wefti_u64 *)wefti_cuda_ep_host_words(ep, bank); /* kernels have the host heap at its address */
    }
    for (int bank = 0; bank < wefti_ep_banks(ep) && wefti_cuda_ep_passes_by(ep); bank++) {
        ep->mask_told[bank] = &wefti_cuda_ep_host_words(ep, bank)[WEFTI_CUDA_EP_HOST_STATUS_MASKED];
    }
    WEFT_TRY(ep->stats != NULL ? wefti_cuda_ep_stats_open(ep) : WEFT_OK);
    WEFT_TRY(ep->stats != NULL && before != NULL ? keep_statistics(ep, before) : WEFT_OK);
    device->sms = device->cuda->sms / pes_of_gpu(device->cuda);
    device->sms = device->sms > 0 ? device->sms : 1;
    return WEFT_OK;
}

static weft_status prepare(weft_ep *ep, const wefti_ep_device *before)
{
    wefti_cuda_ep_directory *directory = wefti_alloc_zeroed(WEFTI_EP_BANKS_MAX, sizeof *directory);
    if (directory == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the group");
    }
    weft_status status = prepare_by(ep, directory, before);
    wefti_free(directory);
    return status;
}

/* Nobody writes to a rank before all are prepared. */
static weft_status open_area(weft_ep *ep, const wefti_ep_device *before, const char *call)
{
    WEFT_TRY(weft_device_team_malloc(ep->team, block_bytes(ep), &ep->device->area));
    weft_status status = wefti_ep_agree(ep->team, &ep->config, ep, prepare(ep, before), call);
    weft_status freed = wefti_ep_is_alike(status) ? weft_device_team_free(ep->team, ep->device->area) : WEFT_OK;
    return status != WEFT_OK ? status : freed;
}

static weft_status group_open(weft_ep *ep)
{
    void *host_status;
    const size_t words = (size_t)wefti_ep_banks(ep) * WEFTI_CUDA_EP_HOST_WORDS;
    WEFT_TRY(wefti_ep_grows(ep) ? wefti_cuda_ep_open_meeting(ep) : WEFT_OK);
    WEFT_TRY(weft_team_malloc(ep->team, words * sizeof *ep->device->host_status, &host_status));
    ep->device->host_status = host_status;
    weft_status status = open_area(ep, NULL, CALL);
    weft_status freed = wefti_ep_is_alike(status) ? weft_team_free(ep->team, host_status) : WEFT_OK;
    return status != WEFT_OK ? status : freed;
}

/* The caller's streams have ended: nothing of this rank uses the memory, and nobody writes here outside a call. */
static weft_status group_close(weft_ep *ep)
{
    if (wefti_cuda_ep_failed_word(ep) != 0) {
        return WEFT_OK; /* the memory stays taken: a rank that is late may still write there */
    }
    WEFT_TRY(wefti_cuda_ep_close_meeting(ep));
    WEFT_TRY(weft_team_free(ep->team, ep->device->host_status));
    return weft_device_team_free(ep->team, ep->device->area);
}

/* ---- other limits ---- */

/* What calls have left of the group's part goes over to another. */
static void take_over(wefti_ep_device *to, wefti_ep_device *from)
{
    wefti_free(to->claim); /* one that nobody shares, and without a part of the GPU */
    to->claim = from->claim;
    from->claim = NULL;
    to->meeting = from->meeting;
    to->host_status = from->host_status;
    memcpy(to->masked, from->masked, sizeof to->masked);
    memcpy(to->failed_epoch, from->failed_epoch, sizeof to->failed_epoch);
    memcpy(to->failed_last, from->failed_last, sizeof to->failed_last);
    memcpy(to->mismatch_seen, from->mismatch_seen, sizeof to->mismatch_seen);
}

/* Which limits there have been, with those of `before`. */
static weft_status remember_extents(const weft_ep *ep, const wefti_ep_device *before)
{
    const size_t count = before->extents_count;
    wefti_cuda_ep_extent *extents = wefti_alloc((count + 1) * sizeof *extents);
    if (extents == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, CALL ": no memory for the group");
    }
    if (count > 0) {
        memcpy(extents, before->extents, count * sizeof *extents);
    }
    extents[count] = before->extent;
    ep->device->extents = extents;
    ep->device->extents_count = count + 1;
    return WEFT_OK;
}

static weft_status init_again(weft_ep *ep, const wefti_ep_device *before, const char *call)
{
    weft_status status = wefti_cuda_ep_settle(ep, call);
    ep->device = NULL;
    status = status == WEFT_OK ? group_init(ep) : status;
    status = status == WEFT_OK ? remember_extents(ep, before) : status;
    if (ep->device != NULL) {
        ep->device->host_status = before->host_status;
    }
    return status;
}

/* What kernels find out of calls that were launched is told as before; their memory is the group's until all have
 * ended on all ranks. */
static weft_status grow(weft_ep *ep, const char *call)
{
    wefti_ep_device *before = ep->device;
    weft_status status = wefti_ep_agree(ep->team, &ep->config, ep, init_again(ep, before, call), call);
    if (status == WEFT_OK) {
        status = open_area(ep, before, call);
    }
    if (status != WEFT_OK) {
        group_fini(ep);
        ep->device = before;
        return status;
    }
    void *area = before->area;
    take_over(ep->device, before);
    destroy_events(before);
    wefti_free(before->extents);
    wefti_free(before);
    return weft_device_team_free(ep->team, area);
}

/* ---- all ---- */

static weft_status failure(const weft_ep *ep)
{
    return (weft_status) - (int)(uint32_t)wefti_cuda_ep_failed_word(ep);
}

static const wefti_ep_backend device_backend = {
    .name = "device",
    .has_streams = 1,
    .group_bytes = group_bytes,
    .group_init = group_init,
    .group_open = group_open,
    .group_close = group_close,
    .group_fini = group_fini,
    .grow = grow,
    .is_captured = wefti_cuda_ep_is_captured,
    .mask = wefti_cuda_ep_mask,
    .failure = failure,
    .overflow = wefti_cuda_ep_overflow_query,
    .calls = wefti_cuda_ep_calls,
    .rejoin = wefti_cuda_ep_rejoin,
    .stats_fetch = wefti_cuda_ep_stats_fetch,
    .stats_clear = wefti_cuda_ep_stats_clear,
    .sms_hint = wefti_cuda_ep_sms_hint,
    .route_bytes = wefti_cuda_ep_route_bytes,
    .route_open = wefti_cuda_ep_route_open,
    .route_close = wefti_cuda_ep_route_close,
    .route_fit = wefti_cuda_ep_route_fit,
    .route_move = wefti_cuda_ep_route_move,
    .route_attach = wefti_cuda_ep_route_attach,
    .drop_rows = wefti_cuda_ep_drop_rows,
    .update = wefti_cuda_ep_update,
    .counts = wefti_cuda_ep_counts,
    .counts_told = wefti_cuda_ep_counts_told,
    .query = wefti_cuda_ep_query,
    .dispatch = wefti_cuda_ep_dispatch,
    .combine = wefti_cuda_ep_combine,
    .dispatch_send = wefti_cuda_ep_dispatch_send,
    .dispatch_recv = wefti_cuda_ep_dispatch_recv,
    .combine_send = wefti_cuda_ep_combine_send,
    .combine_recv = wefti_cuda_ep_combine_recv,
    .dispatch_bwd = wefti_cuda_ep_dispatch_bwd,
    .combine_bwd = wefti_cuda_ep_combine_bwd,
    .pad = wefti_cuda_ep_pad,
};

const wefti_ep_backend *const wefti_ep_device_backend = &device_backend;
