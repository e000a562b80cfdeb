/* cuda/attach.c: giving a world its device heap, and ending it. The steps, each ended by a verdict that all PEs share:
 *   find    the driver, this PE's device; what it is goes into this PE's record, in symmetric host memory
 *   domain  all PEs learn which GPUs each of them reaches: who is in one link domain
 *   place   address space for all slots
 *   share   the first piece of each slot is allocated, handed over and mapped everywhere
 *   write   each PE clears its slot's head and writes there what it told the others: the proof
 *   read    each PE reads the proofs of the others of its link domain in mapped memory
 *   far     a proxy for what is beyond it, if any PE is */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "cuda/device.h"
#include "cuda/driver/modules.h"
#include "cuda/driver/pci.h"
#include "cuda/proxy/far.h"

static const char call[] = "weft_device_attach";
static const wefti_device_ops cuda_ops;

/* ---- write and read ---- */

static wefti_dev_control *control_of(const wefti_cuda *cuda)
{
    return (wefti_dev_control *)(void *)cuda->slot;
}

/* Kernels need a table only where the slots do not follow one another. */
static int needs_table(const wefti_cuda *cuda)
{
    int has_gaps = 0;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        has_gaps |= cuda->group[i] < 0;
    }
    return cuda->sharing == WEFTI_CUDA_IPC || has_gaps;
}

static weft_status write_table(wefti_cuda *cuda, unsigned table, const int64_t *delta)
{
    return wefti_cuda_copy(&cuda->base, cuda->slot + wefti_cuda_table(cuda->world->view.pes, table), delta,
                           cuda->near_count * sizeof *delta);
}

static weft_status write_tables(wefti_cuda *cuda)
{
    WEFT_TRY(needs_table(cuda) ? write_table(cuda, WEFTI_CUDA_TABLE_HEAP, cuda->delta) : WEFT_OK);
    return cuda->host_delta != NULL ? write_table(cuda, WEFTI_CUDA_TABLE_HOST, cuda->host_delta) : WEFT_OK;
}

static weft_status write_head(wefti_cuda *cuda)
{
    wefti_dev_control control;
    memset(&control, 0, sizeof control);
    memcpy(control.proof, cuda->record->nonce, sizeof control.proof);
    control.deadline_ns = cuda->world->deadline_ns;
    WEFT_TRY(wefti_cuda_reach_host(cuda));
    control.abort = (uint64_t)(uintptr_t)&cuda->world->head->abort;
    control.host_fault = (uint64_t)(uintptr_t)&cuda->world->control->device_fault;
    WEFT_TRY(wefti_cuda_clear(&cuda->base, cuda->slot, wefti_cuda_head_bytes(cuda->world->view.pes)));
    WEFT_TRY(wefti_cuda_copy(&cuda->base, cuda->slot, &control, sizeof control));
    return write_tables(cuda);
}

static weft_status read_proofs(wefti_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] < 0) {
            continue;
        }
        uint64_t proof[2] = {0, 0};
        const wefti_cuda_record *record = wefti_cuda_record_of(cuda, i);
        WEFT_TRY(wefti_cuda_copy(&cuda->base, proof, cuda->slot + cuda->delta[i], sizeof proof));
        if (memcmp(proof, record->nonce, sizeof proof) != 0) {
            return wefti_error(WEFT_ERR_UNREACHABLE,
                               "%s: PE %u does not find PE %u in mapped device memory, though its handle was accepted",
                               call, cuda->world->view.pe, cuda->near_first + i);
        }
    }
    return WEFT_OK;
}

/* ---- the steps ---- */

/* What the host's copies and atomics need. Loaded to the last byte now: the driver would otherwise do so at the first
 * launch, and may wait for running kernels then. */
static weft_status load(wefti_cuda *cuda)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    WEFT_TRY(wefti_os_monitor_create(&cuda->stream_lock));
    WEFT_TRY(wefti_cuda_stream_join(cuda, WEFTI_CUDA_STREAM_HOST, &cuda->stream));
    WEFT_TRY(wefti_cuda_check(driver, driver->cuMemAllocHost((void **)&cuda->amo_old, sizeof *cuda->amo_old),
                              "cuMemAllocHost"));
    WEFT_TRY(wefti_cuda_module_load(cuda, wefti_cuda_kernels, &cuda->module));
    return wefti_cuda_kernels_load(cuda);
}

static weft_status find(wefti_cuda *cuda, const weft_device_config *config)
{
    WEFT_TRY(wefti_os_monitor_create(&cuda->base.lock));
    WEFT_TRY(wefti_cuda_find(cuda, config));
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = load(cuda);
    wefti_cuda_leave(cuda);
    return status;
}

/* The most that every device can have, in granules that every device takes. */
static weft_status agree_sizes(wefti_cuda *cuda, weft_team *team, const weft_device_config *config)
{
    const uint64_t ipc_heap_bytes = (uint64_t)64 << 20;
    wefti_vote vote = wefti_vote_init(team, call, 2, 1);
    vote.reserved_low = cuda->record->memory_bytes;
    vote.offset_high = cuda->granularity;
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    cuda->granularity = vote.offset_high;
    cuda->base.heap_max_bytes = config->heap_max_bytes != 0 ? config->heap_max_bytes : vote.reserved_low;
    if (cuda->sharing == WEFTI_CUDA_IPC) {
        cuda->base.heap_max_bytes = config->heap_bytes != 0 ? config->heap_bytes : ipc_heap_bytes;
    }
    return WEFT_OK;
}

static weft_status place(wefti_cuda *cuda)
{
    uint64_t head = wefti_cuda_head_bytes(cuda->world->view.pes);
    uint64_t stride =
        (head + cuda->base.heap_max_bytes + cuda->granularity - 1) / cuda->granularity * cuda->granularity;
    WEFT_TRY(wefti_cuda_study_peers(cuda));
    wefti_blocks_init(&cuda->base.blocks, cuda->base.heap_max_bytes);
    if (cuda->sharing == WEFTI_CUDA_IPC) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_window_reserve(cuda->window, cuda->slot_count, stride));
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        int64_t apart = (int64_t)wefti_cuda_slot_of(cuda, i) - (int64_t)wefti_cuda_own_slot(cuda);
        cuda->delta[i] = cuda->group[i] < 0 ? WEFTI_DEV_FAR : apart * (int64_t)stride;
    }
    cuda->slot = (unsigned char *)(uintptr_t)(cuda->window->base + wefti_cuda_own_slot(cuda) * stride);
    return WEFT_OK;
}

static weft_status share(wefti_cuda *cuda, weft_team *team, const weft_device_config *config)
{
    uint64_t head = wefti_cuda_head_bytes(cuda->world->view.pes);
    if (cuda->sharing == WEFTI_CUDA_IPC) {
        WEFT_TRY(wefti_cuda_share_by_ipc(cuda, team, call, head + cuda->base.heap_max_bytes));
        cuda->slot = (unsigned char *)(uintptr_t)cuda->ipc_own;
        wefti_cuda_place_heap(cuda);
        return WEFT_OK;
    }
    const uint64_t bytes = head + (config->heap_bytes > 0 ? config->heap_bytes : 1);
    return wefti_cuda_grow_slot(cuda, team, call, bytes, bytes);
}

static weft_status run_entered(wefti_cuda *cuda, weft_team *team, const weft_device_config *config, uint64_t domain)
{
    WEFT_TRY(wefti_cuda_find_domain(cuda, team, call, domain));
    wefti_world_phase(cuda->world, "device: domain");
    WEFT_TRY(agree_sizes(cuda, team, config));
    WEFT_TRY(wefti_cuda_fetch_records(cuda, team));
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, 2, place(cuda)));
    weft_status status = share(cuda, team, config);
    wefti_world_phase(cuda->world, "device: share");
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, 3, write_head(cuda));
    }
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, 4, read_proofs(cuda));
    }
    wefti_world_phase(cuda->world, "device: verify");
    if (status == WEFT_OK && cuda->base.far_count > 0) {
        status = wefti_far_open(cuda, team, call);
    }
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, 7, wefti_cuda_watch_open(cuda));
    }
    return status;
}

static weft_status run_steps(wefti_cuda *cuda, weft_team *team, const weft_device_config *config, uint64_t domain)
{
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, 1, find(cuda, config)));
    wefti_world_phase(cuda->world, "device: find");
    WEFT_TRY(wefti_cuda_enter(cuda)); /* cannot fail now: the context has been entered before */
    const weft_status status = run_entered(cuda, team, config, domain);
    wefti_cuda_leave(cuda);
    return status;
}

/* ---- the end ---- */

static void close_peers(wefti_cuda *cuda)
{
    for (uint32_t i = 0; cuda->ipc_opened != NULL && i < cuda->near_count; i++) {
        if (cuda->ipc_opened[i] != 0) {
            (void)cuda->driver.cuIpcCloseMemHandle(cuda->ipc_opened[i]);
        }
    }
}

/* Safe on a half-made device. */
static void fini(wefti_cuda *cuda)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    wefti_cuda_watch_close(cuda);
    int entered = cuda->context != NULL && driver->cuCtxPushCurrent(cuda->context) == CUDA_SUCCESS;
    wefti_far_close(cuda->far);
    wefti_cuda_regions_fini(cuda);
    if (cuda->ep_pool != NULL) {
        (void)driver->cuMemPoolDestroy(cuda->ep_pool);
    }
    if (cuda->amo_old != NULL) {
        (void)driver->cuMemFreeHost(cuda->amo_old);
    }
    if (cuda->stream != NULL) {
        wefti_cuda_stream_leave(cuda, WEFTI_CUDA_STREAM_HOST, cuda->stream);
    }
    close_peers(cuda);
    if (cuda->window != NULL) {
        wefti_cuda_window_leave(cuda->window);
    }
    wefti_cuda_budget_leave(&cuda->budget);
    if (entered) {
        wefti_cuda_leave(cuda);
    }
    if (cuda->retained) {
        (void)driver->cuDevicePrimaryCtxRelease(cuda->ordinal);
    }
    if (cuda->stream_lock != NULL) {
        wefti_os_monitor_destroy(cuda->stream_lock);
    }
    if (cuda->base.lock != NULL) {
        wefti_os_monitor_destroy(cuda->base.lock);
    }
    wefti_blocks_fini(&cuda->base.blocks);
    wefti_cuda_driver_close(&cuda->driver);
    wefti_free(cuda->ipc_opened);
    wefti_cuda_domain_fini(cuda);
    wefti_free(cuda);
}

static void detach(wefti_device *device)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    /* Others learn that nobody answers for this PE any more before memory is given back, for which the driver waits for
     * all kernels of the process: those of another PE that wait for this one would hold it up until their deadline. */
    wefti_far_leave(cuda->world, cuda->far);
    fini(cuda);
}

static weft_status attach(weft_team *team, const weft_device_config *config, wefti_device **device)
{
    void *record;
    uint64_t domain = 0;
    uint64_t copy_bytes = 0;
    wefti_cuda *cuda = wefti_alloc_zeroed(1, sizeof *cuda);
    weft_status mine = cuda == NULL ? wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a device", call)
                                    : wefti_env_count(WEFTI_ENV_CUDA_DOMAIN, &domain);
    mine = mine == WEFT_OK ? wefti_env_size(WEFTI_ENV_CUDA_COPY, &copy_bytes) : mine;
    wefti_vote vote = wefti_vote_init(team, call, domain, copy_bytes);
    vote.status = mine;
    weft_status status = wefti_team_agree(team, &vote, call);
    if (status == WEFT_OK) {
        status = wefti_team_alloc(team, call, sizeof(wefti_cuda_record), WEFTI_CACHE_LINE, &record);
    }
    if (status != WEFT_OK) {
        wefti_free(cuda);
        return status;
    }
    wefti_zero(record, sizeof(wefti_cuda_record));

    cuda->base.ops = &cuda_ops;
    cuda->world = team->world;
    cuda->record = record;
    cuda->copy_bytes = copy_bytes;
    status = run_steps(cuda, team, config, domain);
    if (status == WEFT_OK) {
        *device = &cuda->base;
        return WEFT_OK;
    }
    char text[WEFTI_ERROR_BYTES];
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    wefti_cuda_record *told = cuda->records_shared;
    fini(cuda);
    if (team->dead == WEFT_OK && told != NULL) {
        (void)wefti_team_dealloc(team, call, told);
    }
    if (team->dead == WEFT_OK) {
        (void)wefti_team_dealloc(team, call, record); /* also waits until all have left the window */
    }
    return wefti_error_relay(status, text);
}

static void query(const wefti_device *device, weft_device_info *info)
{
    static const char *const names[] = {
        [WEFTI_CUDA_POSIX] = "vmm", [WEFTI_CUDA_FABRIC] = "vmm-fabric", [WEFTI_CUDA_IPC] = "ipc"};
    const wefti_cuda *cuda = wefti_cuda_of(device);
    *info = (weft_device_info){
        .ordinal = cuda->ordinal,
        .heap = device->heap,
        .heap_bytes = __atomic_load_n(&device->heap_bytes, __ATOMIC_ACQUIRE),
        .heap_max_bytes = device->heap_max_bytes,
        .memory = names[cuda->sharing],
        .host_heap = 1,
    };
}

static void fill_dev(const wefti_device *device, weft_dev *dev)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    const weft_world *world = cuda->world;
    const wefti_view *view = &world->view;
    *dev = (weft_dev){
        .abi = WEFT_DEV_ABI,
        .pe = (int)view->pe,
        .pes = (int)view->pes,
        .near_first = cuda->near_first,
        .near_count = cuda->near_count,
        .host_atomics = (wefti_u32)cuda->host_atomics,
        .heap = (uintptr_t)device->heap,
        .heap_bytes = device->heap_max_bytes,
        .plain_bytes = needs_table(cuda) ? 0 : device->heap_max_bytes,
        .stride = cuda->sharing == WEFTI_CUDA_IPC ? 0 : (wefti_i64)cuda->window->stride,
        .home = cuda->sharing == WEFTI_CUDA_IPC ? 0 : view->pe * cuda->window->stride,
        .host_heap = view->heap,
        .host_bytes = world->heap_max_bytes,
        .host_stride = view->stride,
        .control = control_of(cuda),
        .far_count = cuda->base.far_count,
        .abroad_count = cuda->base.abroad_count,
    };
    if (needs_table(cuda)) {
        dev->delta = (const wefti_i64 *)(const void *)(cuda->slot + wefti_cuda_table(view->pes, WEFTI_CUDA_TABLE_HEAP));
    }
    if (cuda->host_delta != NULL) {
        dev->host_delta =
            (const wefti_i64 *)(const void *)(cuda->slot + wefti_cuda_table(view->pes, WEFTI_CUDA_TABLE_HOST));
    }
}

static weft_status set_deadline(wefti_device *device, uint64_t deadline_ns)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    return wefti_cuda_copy(device, &control_of(cuda)->deadline_ns, &deadline_ns, sizeof deadline_ns);
}

static const wefti_device_ops cuda_ops = {
    .name = "cuda",
    .memory = &wefti_cuda_memory,
    .stream = &wefti_cuda_stream,
    .launch = &wefti_cuda_launches,
    .budget = &wefti_cuda_budget_table,
    .attach = attach,
    .detach = detach,
    .query = query,
    .fill_dev = fill_dev,
    .set_deadline = set_deadline,
    .find_pci = wefti_cuda_find_pci,
};

const wefti_device_ops *const wefti_device_backend = &cuda_ops;
