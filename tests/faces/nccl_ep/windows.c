/* Goal: rows move in place in NCCL's windows, without any registration with weft: what a dispatch receives there is
 * nowhere else in device memory, flat and by expert, whether a tensor names the window alone or its address as well.
 * Steps of all layouts whose tokens, received rows and results lie in windows come out as any, also where windows lie
 * elsewhere on each rank and where one rank has none. Windows are not used with NCCL_EP_ZERO_COPY_OFF, nor where NCCL
 * has no memory for the group's own one on a rank, which is no error; a window that NCCL does not map is staged.
 *
 * Method: PEs as threads on the fake driver, and this program's windows in place of NCCL's: as there all lie in one
 * range of addresses a rank, in which each rank has mapped the memory of all. Where rows have been is looked for as
 * traces.h says. Usage: windows RANKS. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/step.h"
#include "faces/nccl_ep/traces.h"
#include "weft.h"

#define EXPORT __attribute__((visibility("default")))
#define UNIT ((size_t)2 << 20) /* of memory that can be mapped */
#define RANGE ((size_t)256 << 20) /* of addresses a rank */
#define WINDOWS_MOST 64

/* ---- windows ---- */

/* CUDA's driver, whose header may be here or not. */
static struct {
    int (*reserve)(uint64_t *at, size_t bytes, size_t alignment, uint64_t hint, uint64_t flags);
    int (*create)(uint64_t *handle, size_t bytes, const void *properties, uint64_t flags);
    int (*map)(uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags);
    int (*unmap)(uint64_t at, size_t bytes);
    int (*unreserve)(uint64_t at, size_t bytes);
    int (*release)(uint64_t handle);
    int (*retain)(uint64_t *handle, void *at);
    int (*range_of)(uint64_t *base, size_t *bytes, uint64_t at);
    int (*current)(int *device);
} driver;

/* CUmemAllocationProp: pinned memory of a device, whose handles are descriptors. */
typedef struct properties {
    int type;
    int handle_types;
    int location_type;
    int device;
    void *metadata;
    uint64_t flags;
} properties;

struct ncclWindow_vidmem {
    int rank;
    char *user;
    size_t bytes;
    size_t offset; /* in the range; the same on all ranks */
};

static struct ncclWindow_vidmem *known[RANKS_MOST][WINDOWS_MOST]; /* that are registered */
static char *range[RANKS_MOST]; /* of each rank: as many as ranks, one behind the other */
static char *shared[RANKS_MOST]; /* while ranks register: their memory */
static size_t used; /* of each range */
static int fails_on = -1; /* the rank on which ncclMemAlloc fails */
static int made; /* windows that rank 0 has registered, ever */

#define SUCCEED(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != 0) {                                                                                             \
            (void)fprintf(stderr, "windows.c:%d: " #call " failed\n", __LINE__);                                       \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    SUCCEED(library == NULL);
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"cuMemAddressReserve", &driver.reserve},
        {"cuMemCreate", &driver.create},
        {"cuMemMap", &driver.map},
        {"cuMemUnmap", &driver.unmap},
        {"cuMemAddressFree", &driver.unreserve},
        {"cuMemRelease", &driver.release},
        {"cuMemRetainAllocationHandle", &driver.retain},
        {"cuMemGetAddressRange_v2", &driver.range_of},
        {"cuCtxGetDevice", &driver.current},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(library, functions[i].name);
        SUCCEED(symbol == NULL);
        memcpy(functions[i].function, &symbol, sizeof symbol);
    }
}

static int rank_of(ncclComm_t comm)
{
    int rank = -1;
    SUCCEED(ncclCommUserRank(comm, &rank));
    return rank;
}

static int ranks_of(ncclComm_t comm)
{
    int ranks = 0;
    SUCCEED(ncclCommCount(comm, &ranks));
    return ranks;
}

static _Thread_local int own_rank; /* ncclMemAlloc has no communicator */

EXPORT ncclResult_t ncclMemAlloc(void **pointer, size_t bytes);
EXPORT ncclResult_t ncclMemAlloc(void **pointer, size_t bytes)
{
    properties of = {.type = 1, .handle_types = 1, .location_type = 1};
    uint64_t handle = 0;
    uint64_t at = 0;
    const size_t whole = (bytes + UNIT - 1) / UNIT * UNIT;
    if (own_rank == fails_on) {
        return ncclUnhandledCudaError;
    }
    SUCCEED(driver.current(&of.device));
    SUCCEED(driver.create(&handle, whole, &of, 0));
    SUCCEED(driver.reserve(&at, whole, 0, 0, 0));
    SUCCEED(driver.map(at, whole, 0, handle, 0));
    SUCCEED(driver.release(handle));
    *pointer = (void *)(uintptr_t)at;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclMemFree(void *pointer);
EXPORT ncclResult_t ncclMemFree(void *pointer)
{
    uint64_t base = 0;
    size_t bytes = 0;
    SUCCEED(driver.range_of(&base, &bytes, (uintptr_t)pointer));
    SUCCEED(base != (uintptr_t)pointer);
    SUCCEED(driver.unmap(base, bytes));
    SUCCEED(driver.unreserve(base, bytes));
    return ncclSuccess;
}

static char *place_of(const struct ncclWindow_vidmem *window, int rank)
{
    return range[window->rank] + (size_t)rank * RANGE + window->offset;
}

/* Collective: each rank maps the memory of all. */
EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                           int flags);
EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags)
{
    const int rank = rank_of(comm);
    const size_t whole = (bytes + UNIT - 1) / UNIT * UNIT;
    struct ncclWindow_vidmem *one = malloc(sizeof *one);
    int slot = 0;
    (void)flags;
    SUCCEED(one == NULL);
    *one = (struct ncclWindow_vidmem){.rank = rank, .user = memory, .bytes = whole, .offset = used};
    shared[rank] = memory;
    (void)pthread_barrier_wait(&turns);
    for (int peer = 0; peer < ranks_of(comm); peer++) {
        uint64_t handle = 0;
        SUCCEED(driver.retain(&handle, shared[peer]));
        SUCCEED(driver.map((uintptr_t)place_of(one, peer), whole, 0, handle, 0));
        SUCCEED(driver.release(handle));
    }
    while (known[rank][slot] != NULL) {
        slot++;
    }
    SUCCEED(slot >= WINDOWS_MOST || used + whole > RANGE);
    known[rank][slot] = one;
    *window = one;
    (void)pthread_barrier_wait(&turns);
    used += rank == 0 ? whole : 0;
    made += rank == 0;
    (void)pthread_barrier_wait(&turns);
    return ncclSuccess;
}

/* The window's entry in known, or NULL. */
static struct ncclWindow_vidmem **find_known(int rank, ncclWindow_t window)
{
    for (int i = 0; i < WINDOWS_MOST; i++) {
        if (known[rank][i] == window) {
            return &known[rank][i];
        }
    }
    return NULL;
}

EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    struct ncclWindow_vidmem **entry = find_known(rank_of(comm), window);
    SUCCEED(entry == NULL);
    for (int peer = 0; peer < ranks_of(comm); peer++) {
        SUCCEED(driver.unmap((uintptr_t)place_of(window, peer), window->bytes));
    }
    *entry = NULL;
    free(window);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer);
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer)
{
    (void)comm;
    *pointer = window->user;
    return ncclSuccess;
}

static int is_mapped = 1; /* 0: windows are known, and not mapped by peers */

EXPORT ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsa_rank, void **pointer);
EXPORT ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsa_rank, void **pointer)
{
    SUCCEED(find_known(own_rank, window) == NULL);
    *pointer = is_mapped ? place_of(window, lsa_rank) + offset : NULL;
    return ncclSuccess;
}

/* ---- ranks in windows ---- */

/* Memory in a window, at an offset that differs by rank, and a rig there in which this rank goes on. */
typedef struct place {
    char *memory;
    ncclWindow_t window;
    size_t offset;
    rig *in;
} place;

static place open_place(const rig *r)
{
    place at = {.offset = (size_t)(r->rank + 1) * 64};
    SUCCEED(ncclMemAlloc((void **)&at.memory, at.offset + sizeof *r));
    SUCCEED(ncclCommWindowRegister(r->comm, at.memory, at.offset + sizeof *r, &at.window, 1));
    at.in = (rig *)(void *)(at.memory + at.offset);
    memcpy(at.in, r, sizeof *r);
    return at;
}

static void close_place(rig *r, const place *at)
{
    r->failures = at->in->failures;
    SUCCEED(ncclCommWindowDeregister(r->comm, at->window));
    SUCCEED(ncclMemFree(at->memory));
}

/* The tensor, whose address is in the rig, names the window: alone, or beside the address. */
static void name_window(ncclEpTensor_t *tensor, const place *at, int has_address)
{
    tensor->win_offset = (uint64_t)((char *)tensor->data - at->memory);
    tensor->win_hdl = at->window;
    tensor->data = has_address ? tensor->data : NULL;
}

/* Whether rows that are received in a window have been elsewhere. */
static void look(rig *outer, ncclEpLayout_t layout, ncclEpZeroCopyMode_t mode, int has_address, int is_in_place)
{
    place at = open_place(outer);
    rig *r = at.in;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    name_window(&s.rows, &at, has_address);
    config.zero_copy = mode;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    const int left = is_left(r, &s, handle, r->received);
    if (r->rank == 0 && r->ranks > 1 && left == is_in_place) {
        (void)fprintf(stderr, "layout %d, zero_copy %d: rows for a window were %s\n", (int)layout, (int)mode,
                      left ? "elsewhere, too" : "nowhere else");
        r->failures++;
    }
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
    close_place(outer, &at);
}

/* Steps in which the rank's tokens, received rows and results are in a window, or, on rank 0, perhaps in none. */
static void steps(rig *outer, ncclEpLayout_t layout, int is_ll, int rank0_has_none)
{
    place at = open_place(outer);
    rig *r = at.in;
    ncclEpGroupConfig_t config = config_of(r, is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT);
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t of_handle = NCCL_EP_HANDLE_CONFIG_INIT;
    const int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR && !is_ll;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, is_ll);
    fill_tensors(r, &s);
    of_handle.dispatch_output_per_expert_alignment = by_expert ? 4 : 0;
    info.recv_total_counter = is_ll ? NULL : &total;
    info.expert_counters = by_expert ? &padded : NULL;
    info.expert_offsets = by_expert ? &offsets : NULL;
    if (!rank0_has_none || r->rank != 0) {
        name_window(&s.x, &at, 0);
        name_window(&s.rows, &at, 0);
        name_window(&s.y, &at, 1);
    }
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    for (unsigned seed = 0; seed < 3; seed++) {
        choose(r, seed);
        OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, is_ll ? NULL : &info, &of_handle, NULL));
        one_step(r, &s, handle, __LINE__);
        OK(ncclEpHandleDestroy(handle));
    }
    OK(ncclEpGroupDestroy(r->group));
    close_place(outer, &at);
}

static void set_on_all(const rig *r, int *what, int value)
{
    (void)pthread_barrier_wait(&turns);
    if (r->rank == 0) {
        *what = value;
    }
    (void)pthread_barrier_wait(&turns);
}

/* A group without memory for its window on the last rank, or whose NCCL maps none, is one that stages. */
static void without(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    set_on_all(r, &fails_on, r->ranks - 1);
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    OK(ncclEpGroupDestroy(r->group));
    set_on_all(r, &fails_on, -1);
    set_on_all(r, &is_mapped, 0);
    look(r, NCCL_EP_LAYOUT_FLAT, NCCL_EP_ZERO_COPY_ON, 0, 0);
    set_on_all(r, &is_mapped, 1);
}

static void open_ranges(const rig *r)
{
    uint64_t at = 0;
    own_rank = r->rank;
    if (r->rank == 0) {
        load_driver();
    }
    (void)pthread_barrier_wait(&turns);
    SUCCEED(driver.reserve(&at, (size_t)r->ranks * RANGE, 0, 0, 0));
    range[r->rank] = (char *)(uintptr_t)at;
    (void)pthread_barrier_wait(&turns);
}

static void all(rig *r)
{
    open_ranges(r);
    look(r, NCCL_EP_LAYOUT_FLAT, NCCL_EP_ZERO_COPY_AUTO, 0, 1);
    look(r, NCCL_EP_LAYOUT_FLAT, NCCL_EP_ZERO_COPY_ON, 1, 1);
    look(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, NCCL_EP_ZERO_COPY_ON, 0, 1);
    look(r, NCCL_EP_LAYOUT_FLAT, NCCL_EP_ZERO_COPY_OFF, 0, 0);
    for (int rank0_has_none = 0; rank0_has_none < 2; rank0_has_none++) {
        steps(r, NCCL_EP_LAYOUT_FLAT, 0, rank0_has_none);
        steps(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 0, rank0_has_none);
        steps(r, NCCL_EP_LAYOUT_RANK_MAJOR, 1, rank0_has_none);
        steps(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 1, rank0_has_none);
    }
    without(r);
    if (r->rank == 0 && made < 20) {
        (void)fprintf(stderr, "groups have registered no windows of their own\n");
        r->failures++;
    }
}

int main(int argc, char **argv)
{
    return run_ranks(argc, argv, all);
}
