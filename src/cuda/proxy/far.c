/* cuda/proxy/far.c: making and ending a proxy. */
#include "cuda/proxy/far.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

static weft_status no_memory(const char *call)
{
    return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the proxy of a PE with far PEs", call);
}

static weft_status make_lanes(wefti_cuda_far *far, const char *call)
{
    wefti_cuda *cuda = far->cuda;
    const uint32_t pes = cuda->world->view.pes;
    far->lanes = wefti_alloc_zeroed(cuda->base.far_count, sizeof *far->lanes);
    far->lane_of = wefti_alloc_zeroed(pes, sizeof *far->lane_of);
    if (far->lanes == NULL || far->lane_of == NULL) {
        return no_memory(call);
    }
    for (uint32_t pe = 0; pe < pes; pe++) {
        const int is_near = wefti_cuda_is_near(cuda, (int)pe);
        if (is_near && !wefti_cuda_is_abroad(cuda, pe - cuda->near_first)) {
            continue;
        }
        wefti_transport *transport = wefti_world_transport(cuda->world, (int)pe);
        far->lane_of[pe] = far->lane_count;
        far->lanes[far->lane_count++] = (wefti_far_lane){.pe = (int)pe, .has_mail = !is_near, .transport = transport};
    }
    return WEFT_OK;
}

static weft_status make_rings(wefti_cuda_far *far)
{
    const wefti_cuda_driver *driver = &far->cuda->driver;
    for (size_t i = 0; i < WEFTI_FAR_RINGS; i++) {
        void *shared = NULL;
        WEFT_TRY(wefti_cuda_check(driver, driver->cuMemAllocHost(&shared, sizeof(wefti_dev_ring)), "cuMemAllocHost"));
        memset(shared, 0, sizeof(wefti_dev_ring));
        far->rings[i].shared = shared;
        far->rings[i].shared->end = WEFTI_DEV_RING_ENTRIES;
        far->rings[i].shared->has_long = far->chunk_bytes != 0;
    }
    return WEFT_OK;
}

/* What the kernels are told, and what the proxy needs on the device: a multiprocessor for the atomics of others. */
static weft_status make_device_part(wefti_cuda_far *far)
{
    wefti_cuda *cuda = far->cuda;
    const wefti_cuda_driver *driver = &cuda->driver;
    wefti_dev_control *control = (wefti_dev_control *)(void *)cuda->slot;
    const wefti_u64 told[] = {(uintptr_t)far->rings[WEFTI_FAR_RING_KERNELS].shared, 0, WEFTI_DEV_RING_ENTRIES};
    _Static_assert(offsetof(wefti_dev_control, ring_end) == offsetof(wefti_dev_control, ring) + 2 * sizeof *told,
                   "three words in a row");
    const size_t answers_bytes = WEFTI_FAR_SERVED * sizeof *far->answers;
    WEFT_TRY(wefti_far_stream_open(far, WEFTI_CUDA_STREAM_PROXY, &far->asked));
    WEFT_TRY(wefti_far_stream_open(far, WEFTI_CUDA_STREAM_ASKING, &far->asking));
    WEFT_TRY(
        wefti_cuda_check(driver, driver->cuMemAllocHost((void **)&far->answer, sizeof *far->answer), "cuMemAllocHost"));
    WEFT_TRY(wefti_cuda_check(driver, driver->cuMemAllocHost((void **)&far->answers, answers_bytes), "cuMemAllocHost"));
    memset(far->answer, 0, sizeof *far->answer);
    memset(far->answers, 0, answers_bytes);
    WEFT_TRY(wefti_cuda_budget_take(&cuda->budget, 1, "weft_device_attach"));
    far->has_sm = 1;
    WEFT_TRY(wefti_cuda_far_kernels_load(cuda));
    return wefti_cuda_copy(&cuda->base, &control->ring, told, sizeof told);
}

/* Rings and answers are pinned near the GPU, whose kernels look at them, wherever this thread runs. */
static weft_status make_near_gpu(wefti_cuda_far *far)
{
    const wefti_cuda *cuda = far->cuda;
    char pci[WEFTI_TOPO_PCI_BYTES];
    const int numa =
        !wefti_os_numa_is_one() && cuda->driver.cuDeviceGetPCIBusId(pci, sizeof pci, cuda->ordinal) == CUDA_SUCCESS
            ? wefti_os_numa_of_pci(pci)
            : -1;
    const int is_preferred = numa >= 0 && wefti_os_numa_prefer(numa);
    weft_status status = make_rings(far);
    if (status == WEFT_OK) {
        status = make_device_part(far);
    }
    if (is_preferred) {
        (void)wefti_os_numa_prefer(-1);
        wefti_log(WEFTI_LOG_INFO, "the rings of PE %u lie on NUMA node %d, as GPU %s", cuda->world->view.pe, numa, pci);
    }
    return status;
}

/* ---- staging memory ---- */

static size_t mail_bytes(const weft_world *world)
{
    return world->view.pes * sizeof(wefti_far_mail);
}

/* Of each chunk; 0: the PEs are too many for the memory, or the heap is too small. */
static uint64_t choose_chunk(const weft_world *world)
{
    const uint64_t chunks = (uint64_t)world->view.pes * WEFTI_FAR_CHUNK_KINDS * WEFTI_FAR_LETTERS;
    const uint64_t part = world->heap_max_bytes / 8;
    const uint64_t bytes = (part < WEFTI_FAR_STAGING_MAX ? part : WEFTI_FAR_STAGING_MAX) / chunks / 4096 * 4096;
    return bytes < WEFTI_FAR_CHUNK_MIN ? 0 : bytes < WEFTI_FAR_CHUNK_MAX ? bytes : WEFTI_FAR_CHUNK_MAX;
}

static uint64_t staging_bytes(const weft_world *world)
{
    return choose_chunk(world) * world->view.pes * WEFTI_FAR_CHUNK_KINDS * WEFTI_FAR_LETTERS;
}

/* Copies of this GPU reach this PE's mail and staging memory, and that of each far PE of this node. */
static weft_status map_staging(wefti_cuda_far *far)
{
    wefti_cuda *cuda = far->cuda;
    weft_world *world = cuda->world;
    const size_t page = wefti_os_page_bytes();
    const uint64_t begin = (uint64_t)((uintptr_t)far->mail - (uintptr_t)world->control);
    const uint64_t end = (begin + mail_bytes(world) + staging_bytes(world) + page - 1) / page * page;
    far->chunk_bytes = choose_chunk(world);
    far->staging = (unsigned char *)far->mail + mail_bytes(world);
    WEFT_TRY(wefti_cuda_reach_host_of(cuda, (int)world->view.pe));
    for (uint32_t i = 0; i < far->lane_count && far->chunk_bytes != 0; i++) {
        wefti_far_lane *lane = &far->lanes[i];
        if (lane->has_mail && wefti_pe_is_near(&world->view, lane->pe)) {
            WEFT_TRY(wefti_cuda_window_register(cuda->window, world->window, (size_t)world->team_node.pes,
                                                wefti_world_slot(world, lane->pe), end));
            lane->is_mapped = 1;
        }
    }
    return WEFT_OK;
}

static weft_status make(wefti_cuda_far *far, const char *call)
{
    WEFT_TRY(make_lanes(far, call));
    WEFT_TRY(far->mail != NULL ? map_staging(far) : WEFT_OK);
    WEFT_TRY(wefti_os_monitor_create(&far->host_lock));
    WEFT_TRY(make_near_gpu(far));
    if (far->mail != NULL) {
        wefti_zero(far->mail, mail_bytes(far->cuda->world));
    }
    return WEFT_OK;
}

weft_status wefti_far_open(wefti_cuda *cuda, weft_team *team, const char *call)
{
    void *mail = NULL;
    if (cuda->has_strangers) {
        WEFT_TRY(wefti_team_alloc(team, call, mail_bytes(cuda->world) + staging_bytes(cuda->world), WEFTI_CACHE_LINE,
                                  &mail));
    }
    wefti_cuda_far *far = wefti_alloc_zeroed(1, sizeof *far);
    weft_status status;
    if (far == NULL) {
        status = no_memory(call);
    } else {
        far->cuda = cuda;
        far->mail = mail;
        cuda->far = far;
        status = make(far, call);
    }
    status = wefti_cuda_verdict(cuda, team, call, 5, status); /* from here on others may write to the mail */
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, 6, wefti_os_thread_start(&far->thread, wefti_far_run, far));
    }
    return status;
}

/* End the thread, once what has been asked for is done or cannot be. */
static void stop(wefti_cuda_far *far)
{
    if (far != NULL && far->thread != NULL) {
        __atomic_store_n(&far->is_ending, 1, __ATOMIC_RELEASE);
        wefti_os_thread_join(far->thread);
        far->thread = NULL;
    }
}

void wefti_far_leave(weft_world *world, wefti_cuda_far *far)
{
    stop(far);
    wefti_world_leave(world);
    const uint64_t start = wefti_os_now_ns();
    for (uint32_t i = 0; far != NULL && i < far->lane_count; i++) {
        const int pe = far->lanes[i].pe;
        while (far->lanes[i].has_mail && wefti_world_shares_process(world, pe) && !wefti_world_has_left(world, pe) &&
               wefti_os_now_ns() - start < 2 * WEFTI_FAR_LOOK_NS) {
            wefti_os_sleep_ns(1000000);
        }
    }
}

void wefti_far_close(wefti_cuda_far *far)
{
    if (far == NULL) {
        return;
    }
    const wefti_cuda_driver *driver = &far->cuda->driver;
    stop(far);
    if (far->has_sm) {
        wefti_cuda_budget_give(&far->cuda->budget, 1);
    }
    wefti_far_stream_close(far, WEFTI_CUDA_STREAM_ASKING, &far->asking);
    wefti_far_stream_close(far, WEFTI_CUDA_STREAM_PROXY, &far->asked);
    void *const pinned[] = {far->rings[0].shared, far->rings[1].shared, far->answer, far->answers};
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        if (pinned[i] != NULL) {
            (void)driver->cuMemFreeHost(pinned[i]);
        }
    }
    if (far->host_lock != NULL) {
        wefti_os_monitor_destroy(far->host_lock);
    }
    wefti_free(far->lane_of);
    wefti_free(far->lanes);
    wefti_free(far);
}
