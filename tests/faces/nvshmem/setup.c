/* Goal: setup, exit and query do what NVSHMEM says, without a GPU, and init works again after finalize.
 * Method: every query against what is known; init nested, where a finalize that is not the last is a barrier;
 * finalize and init again, at another size too: with a unique id that half of the PEs share; misuse must be told
 * by a status and not end anything. */
#include <unistd.h>

#include "faces/nvshmem/check.h"
#include "weft_nvshmem/state.h"

/* Units of kernels as a library that is loaded late has them: CUDA does not know them at first, or never. */
static int fills;
static int fills_never;

static int fill_late(const weft_nvshmem_state *state)
{
    return ++fills < 3 || state->abi != WEFT_NVSHMEM_ABI;
}

static int fill_never(const weft_nvshmem_state *state)
{
    (void)state;
    return ++fills_never; /* not 0 */
}

static void check_late_units(void)
{
    weft_nvshmem_unit late = {.abi = WEFT_NVSHMEM_ABI, .fill = fill_late};
    weft_nvshmem_unit never = {.abi = WEFT_NVSHMEM_ABI, .fill = fill_never};
    void *block = nvshmem_malloc(8);
    fills = fills_never = 0;
    weft_nvshmem_unit_add(&late);
    CHECK(fills == (check_on_gpu ? 1 : 0) && !late.is_filled);
    nvshmem_barrier_all();
    CHECK(fills == (check_on_gpu ? 2 : 0) && !late.is_filled);
    (void)nvshmem_my_pe();
    CHECK(fills == (check_on_gpu ? 3 : 0) && late.is_filled == check_on_gpu);
    nvshmem_barrier_all();
    CHECK(fills == (check_on_gpu ? 3 : 0));
    weft_nvshmem_unit_add(&never);
    for (int i = 0; i < 1000; i++) {
        (void)nvshmem_n_pes();
    }
    CHECK(check_on_gpu ? fills_never > 10 && fills_never < 100 : fills_never == 0);
    weft_nvshmem_unit_remove(&never);
    weft_nvshmem_unit_remove(&late);
    nvshmem_free(block);
}

/* On the fake driver's GPU, which all PEs share, by MPS where CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set. */
static int status_of(int pes)
{
    const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    return !check_on_gpu || pes == 1                       ? NVSHMEM_STATUS_IS_INITIALIZED
           : percent != NULL && pes * atoi(percent) <= 100 ? NVSHMEM_STATUS_FULL_MPG
                                                           : NVSHMEM_STATUS_LIMITED_MPG;
}

static void check_queries(void)
{
    int major = 0;
    int minor = 0;
    int patch = -1;
    int level = -1;
    char name[NVSHMEM_MAX_NAME_LEN];
    CHECK(nvshmem_my_pe() >= 0 && nvshmem_my_pe() < nvshmem_n_pes());
    nvshmem_info_get_version(&major, &minor);
    CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    CHECK(major == 3 && major * 10000 + minor * 100 + patch == NVSHMEM_VENDOR_VERSION);
    memset(name, 'x', sizeof name);
    nvshmem_info_get_name(name);
    CHECK(strncmp(name, "weft", 4) == 0 && strlen(name) < NVSHMEM_MAX_NAME_LEN);
    nvshmem_query_thread(&level);
    CHECK(level == NVSHMEM_THREAD_SERIALIZED);
    CHECK(nvshmemx_init_status() == status_of(nvshmem_n_pes()));
    CHECK(strcmp(nvshmemx_status_string(3), "NVSHMEMX_ERROR_NOT_SUPPORTED") == 0);
}

/* BOOTSTRAPPED after the first finalize: NVSHMEM keeps its bootstrap. */
static void check_before(nvshmemx_init_status_t status)
{
    CHECK((nvshmemx_init_status_t)nvshmemx_init_status() == status);
    CHECK(nvshmem_my_pe() == -1 && nvshmem_n_pes() == -1);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) != 0);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == -1);
}

static void check_nested(void)
{
    int provided = -1;
    long *late = ZEROED(long, 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == NVSHMEM_THREAD_SERIALIZED);
    if (nvshmem_my_pe() == 0) {
        usleep(50000);
        for (int pe = 0; pe < nvshmem_n_pes(); pe++) {
            nvshmem_long_p(late, 7, pe);
        }
    }
    nvshmem_finalize(); /* not the last: a barrier */
    CHECK(*late == 7);
    CHECK(nvshmemx_init_status() == status_of(nvshmem_n_pes()));
    nvshmem_free(late);
}

/* What is wrong is told by the call, or by the next one that has a status; and nothing ends. */
static void check_misuse(void)
{
    long local = 5;
    nvshmemx_init_attr_t empty = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &empty) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_SHMEM, &empty) == NVSHMEMX_ERROR_NOT_SUPPORTED);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmem_init_thread(17, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_get_uniqueid(NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_long_p(&local, 6, nvshmem_n_pes()); /* no such PE, no symmetric address */
    nvshmem_long_p(&local, 6, 0);
    CHECK(local == 5);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE); /* the latch, once */
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_SUCCESS);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_INVALID) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_cumodule_init(NULL) ==
          (check_on_gpu ? NVSHMEMX_ERROR_INVALID_VALUE : NVSHMEMX_ERROR_GPU_NOT_SELECTED));
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_SUCCESS);
}

/* The id goes through symmetric memory to those that shall have it. */
static void take_id(nvshmemx_uniqueid_t *shared, int maker)
{
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (nvshmem_my_pe() == maker) {
        CHECK(nvshmemx_get_uniqueid(&id) == 0);
        for (int pe = 0; pe < nvshmem_n_pes(); pe++) {
            nvshmem_putmem(shared, &id, sizeof id, pe);
        }
    }
    nvshmem_barrier_all();
}

/* All, in the opposite order, and then those with even numbers alone. */
static void check_again(void)
{
    const int me = nvshmem_my_pe();
    const int pes = nvshmem_n_pes();
    nvshmemx_uniqueid_t *ids = ZEROED(nvshmemx_uniqueid_t, 2);
    nvshmemx_uniqueid_t mine[2];
    take_id(&ids[0], pes - 1); /* rank 0 is who made it */
    take_id(&ids[1], 0);
    memcpy(mine, ids, sizeof mine);
    nvshmem_finalize();
    check_before(NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_set_attr_uniqueid_args(pes, pes, &mine[0], &attributes) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_set_attr_uniqueid_args(pes - 1 - me, pes, &mine[0], &attributes) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);
    CHECK(nvshmem_my_pe() == pes - 1 - me && nvshmem_n_pes() == pes);
    int *word = ZEROED(int, 1);
    nvshmem_int_p(word, 100 + me, (nvshmem_my_pe() + 1) % pes);
    nvshmem_barrier_all();
    CHECK(*word == 100 + (me + 1) % pes);
    /* An init that means other PEs is refused while these are there. */
    nvshmemx_init_attr_t other = attributes;
    CHECK(nvshmemx_set_attr_uniqueid_args(0, pes + 1, &mine[0], &other) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &other) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmemx_hostlib_finalize();
    check_before(NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    if (me % 2 == 0) {
        CHECK(nvshmemx_set_attr_uniqueid_args(me / 2, (pes + 1) / 2, &mine[1], &attributes) == 0);
        CHECK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);
        CHECK(nvshmem_n_pes() == (pes + 1) / 2 && nvshmem_my_pe() == me / 2);
        word = ZEROED(int, 1);
        nvshmem_int_atomic_add(word, me + 1, 0);
        nvshmem_barrier_all();
        const int half_of = (pes + 1) / 2;
        CHECK(nvshmem_int_g(word, 0) == half_of * half_of);
        nvshmemx_hostlib_finalize();
    }
    nvshmem_init(); /* the launcher's PEs again */
    CHECK(nvshmem_my_pe() == me && nvshmem_n_pes() == pes);
}

/* A GPU that is chosen after init is taken by the first call of all PEs, an allocation or not. */
static void check_late_choice(int way)
{
    int (*pop)(void **context);
    int (*push)(void *context);
    void *context;
    *(void **)&pop = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxPopCurrent_v2");
    *(void **)&push = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxPushCurrent_v2");
    nvshmem_finalize();
    CHECK(pop(&context) == 0);
    nvshmem_init();
    nvshmem_barrier_all();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    CHECK(push(context) == 0);
    if (way == 0) {
        nvshmem_barrier_all();
    } else if (way == 1) {
        nvshmem_sync_all();
    } else if (way == 2) {
        CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0);
    } else if (way == 3) {
        CHECK(nvshmem_barrier(NVSHMEM_TEAM_WORLD) == 0);
    } else if (way == 4) {
        nvshmemx_barrier_all_on_stream(NULL);
    } else if (way == 5) {
        nvshmemx_sync_all_on_stream(NULL);
    } else {
        const unsigned flat[3] = {1, 2, 1}; /* of which the fake driver launches none */
        CHECK(weft_nvshmem_launch(NULL, flat, flat, NULL, 0, NULL) == NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED);
    }
    CHECK(nvshmemx_init_status() == status_of(nvshmem_n_pes()));
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0);
}

/* In two stages a GPU that is current is not taken by init. */
static void check_two_stages(void)
{
    nvshmem_finalize();
    CHECK(setenv("NVSHMEM_BOOTSTRAP_TWO_STAGE", "1", 1) == 0);
    nvshmem_init();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    nvshmem_barrier_all();
    CHECK(nvshmemx_init_status() == status_of(nvshmem_n_pes()));
    CHECK(unsetenv("NVSHMEM_BOOTSTRAP_TWO_STAGE") == 0);
}

int main(void)
{
    check_before(NVSHMEM_STATUS_NOT_INITIALIZED);
    nvshmem_init();
    check_queries();
    check_nested();
    check_late_units();
    check_misuse();
    check_again();
    check_queries();
    for (int way = 0; check_on_gpu && way < 7; way++) {
        check_late_choice(way);
    }
    check_two_stages();
    return check_end();
}
