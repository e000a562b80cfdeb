/* faces/nvshmem/setup.c: library setup, exit and query; and failures. */
#include "faces/nvshmem/setup.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faces/nvshmem/binding.h"

wefti_nv_face wefti_nvshmem = {.device = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_finalized; /* the last world was ended by the last finalize */

void wefti_nv_lock(void)
{
    (void)pthread_mutex_lock(&lock);
}

void wefti_nv_unlock(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* ---- failures ---- */

/* Exit if another PE has ended the program, with the code that it gave. */
static void follow(void)
{
    const uint64_t word = wefti_nvshmem.notice == NULL ? 0 : __atomic_load_n(wefti_nvshmem.notice, __ATOMIC_ACQUIRE);
    if (word != 0) {
        (void)fflush(NULL);
        _exit((int)(uint32_t)word);
    }
}

static int status_of(weft_status status)
{
    switch (status) {
    case WEFT_OK:
        return NVSHMEMX_SUCCESS;
    case WEFT_ERR_ARGUMENT:
    case WEFT_ERR_RANGE:
        return NVSHMEMX_ERROR_INVALID_VALUE;
    case WEFT_ERR_MEMORY:
        return NVSHMEMX_ERROR_OUT_OF_MEMORY;
    case WEFT_ERR_UNSUPPORTED:
        return NVSHMEMX_ERROR_NOT_SUPPORTED;
    case WEFT_ERR_MISMATCH:
        return NVSHMEMX_ERROR_SYMMETRY;
    default:
        return NVSHMEMX_ERROR_INTERNAL;
    }
}

int wefti_nv_refuse(const char *call, int status, const char *cause)
{
    char pe[24] = "";
    if (wefti_nvshmem.world != NULL) {
        (void)snprintf(pe, sizeof pe, "PE %d: ", weft_world_pe(wefti_nvshmem.world));
    }
    (void)fprintf(stderr, "%s%s: %s (%s)\n", pe, call, cause, nvshmemx_status_string(status));
    return status;
}

int wefti_nv_fail(const char *call, weft_status status)
{
    if (status == WEFT_ERR_ABORTED) {
        follow();
    }
    if (wefti_nvshmem.world == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INTERNAL, "called before nvshmem_init or after nvshmem_finalize");
    }
    char cause[1024];
    (void)snprintf(cause, sizeof cause, "%s (%s)", weft_last_error(), weft_status_name(status));
    return wefti_nv_refuse(call, status_of(status), cause);
}

/* Whether no failure is latched yet. Only the first is kept and reported: later ones may follow from it. */
static int latch_is_free(void)
{
    return __atomic_load_n(&wefti_nvshmem.latched, __ATOMIC_RELAXED) == 0;
}

void wefti_nv_latch_refusal(const char *call, int status, const char *cause)
{
    if (latch_is_free()) {
        __atomic_store_n(&wefti_nvshmem.latched, wefti_nv_refuse(call, status, cause), __ATOMIC_RELAXED);
    }
}

void wefti_nv_latch(const char *call, weft_status status)
{
    if (status == WEFT_ERR_ABORTED) {
        follow();
    }
    if (latch_is_free()) {
        __atomic_store_n(&wefti_nvshmem.latched, wefti_nv_fail(call, status), __ATOMIC_RELAXED);
    }
}

int wefti_nv_take_latched(void)
{
    return __atomic_exchange_n(&wefti_nvshmem.latched, 0, __ATOMIC_RELAXED);
}

/* ---- the world ---- */

static void close_world(void)
{
    weft_world *const world = wefti_nvshmem.world;
    wefti_nv_memory_close();
    wefti_nv_device_close();
    wefti_nv_teams_close();
    wefti_nv_team_ids_close();
    wefti_nv_regions_close();
    wefti_nvshmem.notice = NULL;
    wefti_nvshmem.place = WEFTI_NV_UNDECIDED;
    wefti_nvshmem.latched = 0;
    wefti_nvshmem.world = NULL;
    (void)weft_world_destroy(world);
}

/* Why there is no world: the caller's fault is an MPI that is not initialised, or no communicator of it. */
static int refusal_of(const wefti_nv_meeting *meeting, weft_status status)
{
    const int is_callers =
        meeting->bootstrap == WEFT_BOOTSTRAP_MPI && (status == WEFT_ERR_STATE || status == WEFT_ERR_ARGUMENT);
    return is_callers                       ? NVSHMEMX_ERROR_INVALID_VALUE
           : status == WEFT_ERR_UNSUPPORTED ? NVSHMEMX_ERROR_NOT_SUPPORTED
                                            : NVSHMEMX_ERROR_INTERNAL;
}

static int open_world(const char *call, const wefti_nv_meeting *meeting)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    void *notice;
    int result = wefti_nv_environment(call, &config);
    if (result != NVSHMEMX_SUCCESS) {
        return result;
    }
    config.name = "nvshmem";
    config.bootstrap = meeting->bootstrap;
    config.pe = meeting->pe;
    config.pes = meeting->pes;
    config.uid = &meeting->uid;
    config.mpi_comm = meeting->mpi_comm;
    weft_status status = weft_world_create(&config, &wefti_nvshmem.world);
    if (status != WEFT_OK) {
        char cause[1024];
        (void)snprintf(cause, sizeof cause, "no world: %s", weft_last_error());
        return wefti_nv_refuse(call, refusal_of(meeting, status), cause);
    }
    wefti_nvshmem.place = WEFTI_NV_UNDECIDED;
    wefti_nvshmem.latched = 0;
    wefti_nvshmem.device = meeting->device;
    wefti_nvshmem.heap_max_bytes = config.heap_max_bytes;
    status = weft_calloc(wefti_nvshmem.world, 1, sizeof *wefti_nvshmem.notice, &notice);
    status = status == WEFT_OK ? wefti_nv_team_ids_open() : status;
    if (status != WEFT_OK) {
        result = wefti_nv_fail(call, status);
        (void)weft_world_destroy(wefti_nvshmem.world);
        wefti_nvshmem.world = NULL;
        return result;
    }
    wefti_nvshmem.notice = notice;
    wefti_nv_teams_open();
    /* A GPU that has been chosen is taken now, so that kernels can begin; else the first allocation looks again. */
    char before[512];
    (void)snprintf(before, sizeof before, "%s", weft_last_error());
    status = wefti_nv_is_on("BOOTSTRAP_TWO_STAGE") ? WEFT_ERR_STATE : wefti_nv_place_decide();
    if (status != WEFT_OK && status != WEFT_ERR_STATE) {
        const int is_misnamed = status == WEFT_ERR_ARGUMENT;
        const int is_weft = is_misnamed || strncmp(before, weft_last_error(), sizeof before - 1) != 0; /* else CUDA */
        char cause[1024];
        (void)snprintf(cause, sizeof cause, "the GPU cannot be used: %s (%s)%s",
                       is_weft ? weft_last_error() : "its driver refuses memory or a stream", weft_status_name(status),
                       is_misnamed ? "" : "; is its memory full? NVSHMEM_HEAP_KIND=SYSMEM does without it");
        result = wefti_nv_refuse(call, is_misnamed ? NVSHMEMX_ERROR_INVALID_VALUE : NVSHMEMX_ERROR_INTERNAL, cause);
        close_world();
        return result;
    }
    wefti_nv_print();
    return NVSHMEMX_SUCCESS;
}

/* One more user: of the world that is there, whose PEs must be those that the user means, or of a new one. */
static int begin(const char *call, unsigned flags, const nvshmemx_init_attr_t *attributes)
{
    wefti_nv_meeting meeting = {.device = -1};
    is_finalized = 0;
    int result = wefti_nv_meeting_read(call, flags, attributes, &meeting);
    if (result == NVSHMEMX_SUCCESS && wefti_nvshmem.world == NULL) {
        result = open_world(call, &meeting);
    } else if (result == NVSHMEMX_SUCCESS && meeting.pes != 0 &&
               (meeting.pes != weft_world_pes(wefti_nvshmem.world) ||
                meeting.pe != weft_world_pe(wefti_nvshmem.world))) {
        char cause[160];
        (void)snprintf(
            cause, sizeof cause,
            "asks for PE %d of %d, but this process is PE %d of %d since an earlier init; finalize that first",
            meeting.pe, meeting.pes, weft_world_pe(wefti_nvshmem.world), weft_world_pes(wefti_nvshmem.world));
        result = wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, cause);
    }
    wefti_nvshmem.init_count += result == NVSHMEMX_SUCCESS;
    return result;
}

static int begin_locked(const char *call, unsigned flags, const nvshmemx_init_attr_t *attributes)
{
    wefti_nv_lock();
    int result = begin(call, flags, attributes);
    wefti_nv_unlock();
    return result;
}

static void end(const char *call)
{
    wefti_nv_lock();
    if (wefti_nvshmem.world == NULL) {
        wefti_nv_latch(call, WEFT_ERR_STATE);
        wefti_nv_unlock();
        return;
    }
    CHECK(weft_barrier(wefti_nvshmem.world), 1);
    if (--wefti_nvshmem.init_count == 0) {
        close_world();
        is_finalized = 1;
    }
    wefti_nv_unlock();
}

int nvshmem_init_thread(int requested, int *provided)
{
    if (requested < NVSHMEM_THREAD_SINGLE || requested > NVSHMEM_THREAD_MULTIPLE) {
        return wefti_nv_refuse(
            __func__, NVSHMEMX_ERROR_INVALID_VALUE,
            "argument 'requested' is no thread level; give one of NVSHMEM_THREAD_SINGLE to NVSHMEM_THREAD_MULTIPLE");
    }
    int result = begin_locked(__func__, 0, NULL);
    if (result == NVSHMEMX_SUCCESS) {
        wefti_nvshmem.thread_level = wefti_nvshmem.init_count > 1 ? wefti_nvshmem.thread_level : requested;
        if (provided != NULL) {
            *provided = wefti_nvshmem.thread_level;
        }
    }
    return result;
}

void nvshmem_init(void)
{
    (void)nvshmem_init_thread(NVSHMEM_THREAD_SERIALIZED, NULL);
}

int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes)
{
    int result = begin_locked(__func__, flags, attributes);
    if (result == NVSHMEMX_SUCCESS && wefti_nvshmem.init_count == 1) {
        wefti_nvshmem.thread_level = NVSHMEM_THREAD_SERIALIZED;
    }
    return result;
}

int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes)
{
    return nvshmemx_init_attr(flags, attributes);
}

void nvshmem_finalize(void)
{
    end(__func__);
}

void nvshmemx_hostlib_finalize(void)
{
    end(__func__);
}

/* End the program on all PEs: those inside a call of the library end there, others in their next call. */
void nvshmem_global_exit(int status)
{
    weft_world *const world = wefti_nvshmem.world;
    (void)fflush(NULL); /* before others learn of it, since the first exit with an error ends a job */
    for (int pe = 0; world != NULL && pe < weft_world_pes(world); pe++) {
        (void)weft_uint64_atomic_set(world, wefti_nvshmem.notice, WEFTI_NV_EXIT | (uint32_t)status, pe);
    }
    if (world != NULL) {
        (void)weft_quiet(world);
        (void)weft_world_abort(world, status);
    }
    _exit(status);
}

/* ---- queries ---- */

void nvshmem_query_thread(int *provided)
{
    *provided = wefti_nvshmem.thread_level;
}

int nvshmemx_init_status(void)
{
    return wefti_nvshmem.world == NULL                 ? is_finalized /* NVSHMEM keeps its bootstrap, and says so */
                                                             ? NVSHMEM_STATUS_IS_BOOTSTRAPPED
                                                             : NVSHMEM_STATUS_NOT_INITIALIZED
           : wefti_nvshmem.place == WEFTI_NV_UNDECIDED ? NVSHMEM_STATUS_IS_BOOTSTRAPPED
           : wefti_nvshmem.sharing != 0                ? wefti_nvshmem.sharing
                                                       : NVSHMEM_STATUS_IS_INITIALIZED;
}

int nvshmem_my_pe(void)
{
    wefti_nv_units_check();
    return weft_world_pe(wefti_nvshmem.world);
}

int nvshmem_n_pes(void)
{
    wefti_nv_units_check();
    return weft_world_pes(wefti_nvshmem.world);
}

void nvshmem_info_get_version(int *major, int *minor)
{
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}

void nvshmem_info_get_name(char *name)
{
    memcpy(name, NVSHMEM_VENDOR_STRING, sizeof NVSHMEM_VENDOR_STRING);
}

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
