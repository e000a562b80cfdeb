/* Goal: rows that a dispatch receives in memory which its ranks have registered go there and nowhere else, by address
 * and by a window that NCCL tells the address of, flat and by expert; memory that is not registered is staged. Steps
 * whose tokens, received rows and results are in windows that nobody has registered, at offsets and without an address,
 * come out as any, in groups that ask for windows. Wrong uses of weft_nccl_ep.h are result codes with a text.
 *
 * Method: PEs as threads on the fake driver, whose device memory is files in this process's memory. Rows are of one
 * number; after a dispatch all that the caller knows of is cleared, and device memory is looked through for it: what is
 * staged stays in the group's. Usage: registered RANKS. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft_nccl_ep.h>

#include "faces/nccl_ep/step.h"
#include "weft.h"

#define EXPORT __attribute__((visibility("default")))
#define PAGE 4096
#define PAGES_AT_ONCE 512
#define AT_ONCE 16 /* numbers of a row, without a stop */

static _Thread_local void *told; /* the address of the rank's window */

/* NCCL's: the program's own comes before the stand-in. */
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer);
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer)
{
    (void)comm, (void)window;
    *pointer = told;
    return ncclSuccess;
}

#define NUMBER 0x2d4b1e97u /* that rows are of; nobody writes it by chance */

static void *take_device_memory(size_t bytes)
{
    int (*alloc)(uint64_t * at, size_t size) = NULL;
    uint64_t at = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&alloc = library != NULL ? dlsym(library, "cuMemAlloc_v2") : NULL;
    if (alloc == NULL || alloc(&at, bytes) != 0) {
        (void)fprintf(stderr, "no memory of the fake driver\n");
        exit(1);
    }
    return (void *)(uintptr_t)at;
}

static int has_row(const uint32_t *words, size_t count)
{
    size_t run = 0;
    for (size_t i = 0; i < count; i++) {
        run = words[i] == NUMBER ? run + 1 : 0;
        if (run == AT_ONCE) {
            return 1;
        }
    }
    return 0;
}

/* Whether a mapping has a row, of the pages that are there. */
static int is_in_mapping(int pages, uintptr_t from, uintptr_t to)
{
    uint64_t entries[PAGES_AT_ONCE];
    for (uintptr_t base = from; base < to; base += PAGES_AT_ONCE * PAGE) {
        size_t count = (to - base) / PAGE < PAGES_AT_ONCE ? (to - base) / PAGE : PAGES_AT_ONCE;
        ssize_t got = pread(pages, entries, count * sizeof *entries, (off_t)(base / PAGE * sizeof *entries));
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *entries; i++) {
            const uint32_t *words = (const uint32_t *)(base + i * PAGE);
            if ((entries[i] >> 63) != 0 && has_row(words, PAGE / sizeof *words)) {
                return 1;
            }
        }
    }
    return 0;
}

/* In device memory. */
static int is_anywhere(void)
{
    char line[512];
    int found = 0;
    int mappings = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (maps == NULL || pages < 0) {
        abort();
    }
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        int is = strstr(line, "fake device memory") != NULL && sscanf(line, "%lx-%lx", &from, &to) == 2;
        mappings += is;
        found = is && is_in_mapping(pages, from, to);
    }
    (void)fclose(maps);
    (void)close(pages);
    if (mappings == 0) {
        abort(); /* the fake driver calls its memory otherwise now */
    }
    return found;
}

/* Rows of the number to everywhere, and whether one is left once the caller's memory is cleared: by one rank, while the
 * others wait. */
static int is_left(rig *r, step *s, ncclEpHandle_t handle, void *rows)
{
    int is = 0;
    for (size_t i = 0; i < MOST * (size_t)HIDDEN; i++) {
        memcpy(&r->x[i / HIDDEN][i % HIDDEN], &(uint32_t){NUMBER}, sizeof(uint32_t));
    }
    memset(rows, 0, sizeof r->received);
    dispatch(r, s, handle);
    r->failures += !has_row(rows, sizeof r->received / sizeof(uint32_t)); /* some row comes to each rank */
    (void)pthread_barrier_wait(&turns);
    memset(rows, 0, sizeof r->received);
    memset(r->x, 0, sizeof r->x);
    (void)pthread_barrier_wait(&turns);
    if (r->rank == 0) {
        is = is_anywhere();
    }
    (void)pthread_barrier_wait(&turns);
    return is;
}

static void in_place(rig *r, ncclEpLayout_t layout, int by_window)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpHandle_t handle = NULL;
    void *rows = take_device_memory(sizeof r->received);
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    s.rows.data = by_window ? NULL : rows;
    s.rows.win_hdl = by_window ? (ncclWindow_t)rows : NULL;
    told = rows;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    OK(weft_nccl_ep_register(r->group, rows, sizeof r->received));
    if (is_left(r, &s, handle, rows)) {
        (void)fprintf(stderr, "layout %d: rows for registered memory were elsewhere, too\n", (int)layout);
        r->failures++;
    }
    OK(weft_nccl_ep_unregister(r->group, rows));
    if (r->ranks > 1 && !is_left(r, &s, handle, rows) && r->rank == 0) {
        (void)fprintf(stderr, "layout %d: rows for other memory were nowhere else: the test sees nothing\n",
                      (int)layout);
        r->failures++;
    }
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* The tensor is in the rank's window, in place of an address. */
static void put_in_window(ncclEpTensor_t *to, rig *r, size_t offset)
{
    to->data = NULL;
    to->win_hdl = (ncclWindow_t)(void *)r;
    to->win_offset = offset;
}

/* Steps through a window that is not registered, in a group that asks for windows. */
static void staged(rig *r, ncclEpLayout_t layout, int is_ll)
{
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t config = config_of(r, is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t of_handle = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    const int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR && !is_ll;
    step s = step_of(r, layout, is_ll);
    fill_tensors(r, &s);
    told = r;
    put_in_window(&s.x, r, offsetof(rig, x));
    put_in_window(&s.rows, r, offsetof(rig, received));
    put_in_window(&s.y, r, offsetof(rig, y));
    config.zero_copy = NCCL_EP_ZERO_COPY_ON;
    of_handle.dispatch_output_per_expert_alignment = by_expert ? 4 : 0;
    info.recv_total_counter = is_ll ? NULL : &total;
    info.expert_counters = by_expert ? &padded : NULL;
    info.expert_offsets = by_expert ? &offsets : NULL;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    for (unsigned seed = 0; seed < 3; seed++) {
        choose(r, seed);
        OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, is_ll ? NULL : &info, &of_handle, NULL));
        one_step(r, &s, handle, __LINE__);
        OK(ncclEpHandleDestroy(handle));
    }
    OK(ncclEpGroupDestroy(r->group));
}

static void wrong_uses(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    EXPECT(weft_nccl_ep_register(r->group, NULL, 64), ncclInvalidArgument, "'address' is NULL");
    EXPECT(weft_nccl_ep_register(r->group, r->x, 0), ncclInvalidArgument, "'bytes' is 0");
    if (r->ranks == 1) { /* NULL is the only group */
        void *memory = take_device_memory(PAGE);
        OK(weft_nccl_ep_register(NULL, memory, PAGE));
        EXPECT(weft_nccl_ep_register(NULL, memory, PAGE), ncclInvalidArgument, "weft_device_register");
        OK(weft_nccl_ep_unregister(NULL, memory));
    } else { /* those of other ranks are in this process, too */
        (void)pthread_barrier_wait(&turns);
        EXPECT(weft_nccl_ep_register(NULL, r->x, 64), ncclInvalidArgument, "none, or several");
        EXPECT(weft_nccl_ep_unregister(NULL, r->x), ncclInvalidArgument, "none, or several");
        (void)pthread_barrier_wait(&turns);
    }
    EXPECT(weft_nccl_ep_unregister(r->group, NULL), ncclInvalidArgument, "'address' is NULL");
    EXPECT(weft_nccl_ep_unregister(r->group, r->x), ncclInvalidArgument, "weft_device_unregister");
    OK(ncclEpGroupDestroy(r->group));
    EXPECT(weft_nccl_ep_register(r->group, r->x, 64), ncclInvalidArgument, "none, or was destroyed");
}

static void all(rig *r)
{
    in_place(r, NCCL_EP_LAYOUT_FLAT, 0);
    in_place(r, NCCL_EP_LAYOUT_FLAT, 1);
    in_place(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 1);
    staged(r, NCCL_EP_LAYOUT_FLAT, 0);
    staged(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 0);
    staged(r, NCCL_EP_LAYOUT_RANK_MAJOR, 1);
    staged(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, 1);
    wrong_uses(r);
}

int main(int argc, char **argv)
{
    return run_ranks(argc, argv, all);
}
