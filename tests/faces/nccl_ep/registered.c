/* Goal: rows that a dispatch receives in memory which its ranks have registered go there and nowhere else, by address
 * and by a window that NCCL tells the address of, flat and by expert; memory that is not registered is staged. Steps
 * whose tokens, received rows and results are in windows that nobody has registered, at offsets and without an address,
 * come out as any, in groups that ask for windows. Wrong uses of weft_nccl_ep.h are result codes with a text.
 *
 * Method: PEs as threads on the fake driver; where rows have been is looked for as traces.h says. Usage: registered
 * RANKS. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_nccl_ep.h>

#include "faces/nccl_ep/step.h"
#include "faces/nccl_ep/traces.h"
#include "weft.h"

#define EXPORT __attribute__((visibility("default")))
#define PAGE 4096

static _Thread_local void *told; /* the address of the rank's window */

/* NCCL's: the program's own comes before the stand-in. */
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer);
EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer)
{
    (void)comm, (void)window;
    *pointer = told;
    return ncclSuccess;
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
