/* faces/nvshmem/device.c: the heap on GPUs: when there is one, and what kernels are told of it. */
#include "faces/nvshmem/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "faces/nvshmem/binding.h"
#include "faces/nvshmem/setup.h"

#define STREAM_NON_BLOCKING 1u

weft_nvshmem_state wefti_nv_state;

static struct {
    const wefti_nv_driver *driver;
    wefti_nv_context *context;
    int is_retained; /* the context is the primary one of wefti_nvshmem.device, which was chosen by its number */
    wefti_nv_address teams; /* WEFTI_NV_TEAMS entries of what kernels know of teams, in device memory */
    weft_status failed; /* what opening failed with when the heap was attached, which is not tried again */
} device;

/* ---- the driver ---- */

int wefti_nv_device_enter(void)
{
    return device.driver == NULL || device.driver->ctx_push(device.context) != 0;
}

void wefti_nv_device_leave(void)
{
    wefti_nv_context *context;
    (void)device.driver->ctx_pop(&context);
}

static weft_status status_of(int error)
{
    return error == 0 ? WEFT_OK : WEFT_ERR_SYSTEM;
}

static weft_status copy(wefti_nv_address to, wefti_nv_address from, size_t bytes)
{
    if (wefti_nv_device_enter() != 0) {
        return WEFT_ERR_STATE;
    }
    int error = device.driver->mem_copy(to, from, bytes, wefti_nvshmem.stream);
    error = error == 0 ? device.driver->stream_synchronize(wefti_nvshmem.stream) : error;
    wefti_nv_device_leave();
    return status_of(error);
}

weft_status wefti_nv_stream_wait(weft_stream *stream)
{
    if (wefti_nv_device_enter() != 0) {
        return WEFT_ERR_STATE;
    }
    int error = device.driver->stream_synchronize(stream);
    wefti_nv_device_leave();
    /* Faults that kernels met have been latched in the world. */
    return error != 0 ? WEFT_ERR_SYSTEM : weft_world_fault(WORLD, NULL);
}

weft_status wefti_nv_device_zero(void *block, size_t bytes)
{
    if (wefti_nv_device_enter() != 0) {
        return WEFT_ERR_STATE;
    }
    int error = device.driver->mem_set((wefti_nv_address)(uintptr_t)block, 0, bytes, wefti_nvshmem.stream);
    error = error == 0 ? device.driver->stream_synchronize(wefti_nvshmem.stream) : error;
    wefti_nv_device_leave();
    return status_of(error);
}

weft_status wefti_nv_device_read(void *to, const void *from, size_t bytes)
{
    return copy((wefti_nv_address)(uintptr_t)to, (wefti_nv_address)(uintptr_t)from, bytes);
}

weft_status wefti_nv_device_write(wefti_nv_address to, const void *from, size_t bytes)
{
    return copy(to, (wefti_nv_address)(uintptr_t)from, bytes);
}

/* ---- what kernels are told ---- */

weft_status wefti_nv_device_team(nvshmem_team_t handle)
{
    weft_dev_team told;
    memset(&told, 0, sizeof told);
    if (wefti_nvshmem.place != WEFTI_NV_DEVICE) {
        return WEFT_OK;
    }
    if (wefti_nvshmem.teams[handle].team != NULL) {
        WEFT_TRY(weft_team_dev(wefti_nvshmem.teams[handle].team, &told));
    }
    if (handle == NVSHMEM_TEAM_WORLD) {
        wefti_nv_state.world = told;
    }
    return copy(device.teams + (wefti_nv_address)handle * sizeof told, (wefti_nv_address)(uintptr_t)&told, sizeof told);
}

/* The team of those whose device memory this PE's kernels load and store. */
static weft_status open_shared_team(void)
{
    weft_team *team;
    weft_device_info info;
    const int pes = weft_world_pes(WORLD);
    int count = 0;
    int *const members = malloc((size_t)pes * sizeof *members);
    if (members == NULL) {
        return WEFT_ERR_MEMORY;
    }
    weft_status status = weft_device_query(WORLD, &info);
    for (int pe = 0; pe < pes && status == WEFT_OK; pe++) {
        if (pe == weft_world_pe(WORLD) || weft_ptr(WORLD, info.heap, pe) != NULL) {
            members[count++] = pe;
        }
    }
    status = status == WEFT_OK ? weft_team_create(weft_team_world(WORLD), members, count, &team) : status;
    free(members);
    WEFT_TRY(status);
    wefti_nvshmem.teams[NVSHMEM_TEAM_SHARED].team = team;
    return WEFT_OK;
}

/* ---- PEs that share a GPU, which are processes of their own ---- */

#define ATTRIBUTE_MPS_ENABLED 133

/* What a PE says of its GPU: which one, and how much of it this process may have by MPS, in percent; 0: no MPS. */
typedef struct share {
    unsigned char uuid[16];
    uint64_t percent;
} share;

static weft_status read_share(share *mine)
{
    const char *said = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    const int percent = said == NULL ? 0 : atoi(said);
    int ordinal;
    int has_mps = 0;
    memset(mine, 0, sizeof *mine);
    if (wefti_nv_device_enter() != 0) {
        return WEFT_ERR_STATE;
    }
    int error = device.driver->ctx_device(&ordinal);
    error = error == 0 ? device.driver->device_uuid(mine->uuid, ordinal) : error;
    if (error == 0 && device.driver->device_attribute(&has_mps, ATTRIBUTE_MPS_ENABLED, ordinal) != 0) {
        has_mps = 0; /* an older driver does not say */
    }
    wefti_nv_device_leave();
    mine->percent = !has_mps ? 0 : percent > 0 && percent <= 100 ? (uint64_t)percent : 100;
    return status_of(error);
}

/* Full support, as NVSHMEM words it, needs MPS, and shares of a GPU that fit together. */
static int sharing_of(const share *all, int pes, int me)
{
    uint64_t sum = 0;
    int sharers = 0;
    int has_mps = 1;
    for (int pe = 0; pe < pes; pe++) {
        if (memcmp(all[pe].uuid, all[me].uuid, sizeof all[pe].uuid) == 0) {
            sum += all[pe].percent;
            has_mps = has_mps && all[pe].percent != 0;
            sharers++;
        }
    }
    return sharers < 2 ? 0 : has_mps && sum <= 100 ? NVSHMEM_STATUS_FULL_MPG : NVSHMEM_STATUS_LIMITED_MPG;
}

static weft_status find_sharers(void)
{
    const int pes = weft_world_pes(WORLD);
    void *block;
    WEFT_TRY(weft_calloc(WORLD, (size_t)pes + 1, sizeof(share), &block));
    share *const all = block;
    share *const mine = &all[pes];
    weft_status status = read_share(mine);
    WEFT_TRY(weft_fcollectmem(weft_team_world(WORLD), all, mine, sizeof *mine));
    wefti_nvshmem.sharing = sharing_of(all, pes, weft_world_pe(WORLD));
    if (wefti_nvshmem.sharing == NVSHMEM_STATUS_LIMITED_MPG && weft_world_pe(WORLD) == 0) {
        (void)fprintf(stderr,
                      "nvshmem: PE 0 shares its GPU with other processes, %s: kernels that wait for each other take "
                      "turns, and are slow\n",
                      mine->percent == 0 ? "without MPS"
                                         : "whose CUDA_MPS_ACTIVE_THREAD_PERCENTAGE add up to over 100");
    }
    WEFT_TRY(weft_free(WORLD, block));
    return status;
}

static weft_status open_context(void)
{
    device.driver = wefti_nv_driver_open();
    if (device.driver == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    device.is_retained = wefti_nvshmem.device >= 0;
    if (device.is_retained) { /* the GPU that init names is the calling thread's from here on */
        const int error = device.driver->primary_retain(&device.context, wefti_nvshmem.device);
        return status_of(error == 0 ? device.driver->ctx_set(device.context) : error);
    }
    return status_of(device.driver->ctx_current(&device.context));
}

static weft_status open_memory(void)
{
    const size_t bytes = WEFTI_NV_TEAMS * sizeof(weft_dev_team);
    if (wefti_nv_device_enter() != 0) {
        return WEFT_ERR_STATE;
    }
    int error = device.driver->stream_create(&wefti_nvshmem.stream, STREAM_NON_BLOCKING, 0);
    error = error == 0 ? device.driver->mem_alloc(&device.teams, bytes) : error;
    error = error == 0 ? device.driver->mem_set(device.teams, 0, bytes, wefti_nvshmem.stream) : error;
    error = error == 0 ? device.driver->stream_synchronize(wefti_nvshmem.stream) : error;
    wefti_nv_device_leave();
    return status_of(error);
}

/* Those that are there already. Each is a collective call, so the program's come in the order in which it made them,
 * which is the same on all members; handles are not. */
static weft_status tell_teams(void)
{
    for (nvshmem_team_t handle = 0; handle < NVSHMEM_TEAMS_MIN; handle++) {
        if (wefti_nvshmem.teams[handle].team != NULL) {
            WEFT_TRY(wefti_nv_device_team(handle));
        }
    }
    nvshmem_team_t handle = wefti_nv_team_after(0);
    while (handle != NVSHMEM_TEAM_INVALID) {
        WEFT_TRY(wefti_nv_device_team(handle));
        handle = wefti_nv_team_after(wefti_nvshmem.teams[handle].number);
    }
    return WEFT_OK;
}

static weft_status open_device(void)
{
    WEFT_TRY(open_context());
    WEFT_TRY(open_memory());
    wefti_nvshmem.place = WEFTI_NV_DEVICE;
    WEFT_TRY(open_shared_team());
    WEFT_TRY(find_sharers());
    WEFT_TRY(tell_teams());
    wefti_nv_state.abi = WEFT_NVSHMEM_ABI;
    wefti_nv_state.team_count = WEFTI_NV_TEAMS;
    wefti_nv_state.teams = (const weft_dev_team *)(uintptr_t)device.teams;
    wefti_nv_units_fill();
    return WEFT_OK;
}

static int wants_host(void)
{
    const char *said = wefti_nv_variable("HEAP_KIND");
    return said != NULL && (strcasecmp(said, "SYSMEM") == 0 || strcasecmp(said, "HOST") == 0);
}

weft_status wefti_nv_place_decide(void)
{
    weft_device_config config = WEFT_DEVICE_CONFIG_INIT;
    if (wefti_nvshmem.place != WEFTI_NV_UNDECIDED || WORLD == NULL) {
        return WORLD == NULL ? WEFT_ERR_ARGUMENT : device.failed;
    }
    if (wants_host()) {
        wefti_nvshmem.place = WEFTI_NV_HOST;
        return WEFT_OK;
    }
    config.heap_max_bytes = wefti_nvshmem.heap_max_bytes;
    config.claims = WEFT_DEVICE_CLAIMS_SHARED; /* NVSHMEM's teams all have collectives */
    if (wefti_nvshmem.device >= 0) {
        config.choice = WEFT_DEVICE_ORDINAL;
        config.ordinal = wefti_nvshmem.device;
    }
    weft_status status = weft_device_attach(WORLD, &config);
    if (status == WEFT_ERR_UNSUPPORTED) { /* the same on all PEs: one of them has no GPU that can do it */
        wefti_nvshmem.place = WEFTI_NV_HOST;
        return WEFT_OK;
    }
    if (status == WEFT_OK) {
        status = open_device();
        /* WEFT_ERR_STATE would mean that a GPU may still be chosen, so it is not kept. */
        device.failed = status == WEFT_ERR_STATE ? WEFT_ERR_SYSTEM : status;
        wefti_nvshmem.place = WEFTI_NV_DEVICE;
        status = device.failed;
    }
    return status;
}

void wefti_nv_place_try(const char *call)
{
    const weft_status status = WORLD == NULL ? WEFT_OK : wefti_nv_place_decide();
    if (status != WEFT_OK && status != WEFT_ERR_STATE) {
        wefti_nv_latch(call, status);
    }
}

void wefti_nv_device_close(void)
{
    if (wefti_nvshmem.place == WEFTI_NV_DEVICE) {
        memset(&wefti_nv_state, 0, sizeof wefti_nv_state);
        wefti_nv_units_empty();
    }
    if (device.driver != NULL && wefti_nv_device_enter() == 0) {
        if (device.teams != 0) {
            (void)device.driver->mem_free(device.teams);
        }
        if (wefti_nvshmem.stream != NULL) {
            (void)device.driver->stream_destroy(wefti_nvshmem.stream);
        }
        wefti_nv_device_leave();
        if (device.is_retained) {
            (void)device.driver->primary_release(wefti_nvshmem.device);
        }
    }
    memset(&device, 0, sizeof device);
    wefti_nvshmem.sharing = 0;
    wefti_nvshmem.stream = NULL;
}

/* ---- launches ---- */

int weft_nvshmem_launch_query(void *function, const unsigned block[3], size_t shared_bytes, int *gridsize)
{
    weft_launch launch = WEFT_LAUNCH_INIT;
    int sms;
    wefti_nv_units_check();
    launch.threads = (int)(block[0] * block[1] * block[2]);
    launch.shared_bytes = shared_bytes;
    weft_status status = wefti_nv_place_decide();
    status = status == WEFT_OK ? weft_device_launch_query(WORLD, function, &launch, gridsize, &sms) : status;
    return wefti_nv_result("nvshmemx_collective_launch_query_gridsize", status);
}

int weft_nvshmem_launch(void *function, const unsigned grid[3], const unsigned block[3], void **args,
                        size_t shared_bytes, cudaStream_t stream)
{
    static const char call[] = "nvshmemx_collective_launch";
    unsigned blocks[3] = {grid[0], grid[1], grid[2]};
    if (blocks[0] == 0 || blocks[1] == 0 || blocks[2] == 0) {
        int most;
        int result = weft_nvshmem_launch_query(function, block, shared_bytes, &most);
        if (result != NVSHMEMX_SUCCESS) {
            return result;
        }
        blocks[0] = (unsigned)most;
        blocks[1] = blocks[2] = 1;
    }
    wefti_nv_settle(call);
    if (wefti_nv_device_enter() != 0) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_GPU_NOT_SELECTED,
                               "no GPU is chosen yet; call cudaSetDevice before");
    }
    int error = device.driver->launch_cooperative(function, blocks[0], blocks[1], blocks[2], block[0], block[1],
                                                  block[2], (unsigned)shared_bytes, stream, args);
    wefti_nv_device_leave();
    if (error != 0) {
        char cause[128];
        (void)snprintf(cause, sizeof cause,
                       "CUDA refused the launch with error %d; do all blocks run at the same time?", error);
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED, cause);
    }
    return wefti_nv_result(call, WEFT_OK);
}
