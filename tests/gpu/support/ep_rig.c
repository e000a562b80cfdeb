#include "gpu/support/ep_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/ep_group.h"
#include "support/pes.h"

weft_ep_rows ep_rig_rows(ep_rig_row *data)
{
    return ep_rows(data, WEFT_EP_F32, EP_RIG_HIDDEN);
}

void ep_rig_choose(ep_rig *rig, int expert)
{
    for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_TOPK; i++) {
        rig->ids[i] = expert;
    }
}

weft_status ep_rig_status(const ep_rig *rig)
{
    weft_ep_host_counts counts = {.status = WEFT_OK};
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    return counts.status;
}

void ep_rig_expect_mismatch(const ep_rig *rig, const char *call0, const char *call1)
{
    weft_ep_host_counts counts;
    CHECK_STATUS(weft_ep_route_query(rig->route, NULL, &counts), WEFT_ERR_MISMATCH);
    const char *at0 = strstr(weft_last_error(), call0);
    const char *at1 = strstr(weft_last_error(), call1);
    CHECK(at0 != NULL && strncmp(at0 + strlen(call0), " on rank 0", 10) == 0);
    CHECK(at1 != NULL && strncmp(at1 + strlen(call1), " on rank 1", 10) == 0);
    if (at0 == NULL || at1 == NULL) {
        printf("rank %d was told: %s\n", rig->rank, weft_last_error());
    }
}

int ep_rig_rows_written(const ep_rig *rig)
{
    ep_rig_row marked;
    int written = 0;
    memset(marked, EP_RIG_MARK, sizeof marked);
    for (int i = 0; i < EP_RIG_ROWS; i++) {
        written += memcmp(rig->there[i], marked, sizeof marked) != 0;
    }
    return written;
}

void ep_rig_expect_step(ep_rig *rig)
{
    weft_ep_rows out = ep_rig_rows(rig->tokens);
    rig->received.rows_capacity = EP_RIG_ROWS;
    rig->in = ep_rig_rows(rig->tokens);
    rig->received.rows = ep_rig_rows(rig->there);
    ep_rig_choose(rig, 2 * (1 - rig->rank));
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_STATUS(ep_rig_status(rig), WEFT_OK);
    CHECK_OK(weft_ep_combine(rig->route, &rig->received.rows, &out, 0, NULL));
    CHECK_STATUS(ep_rig_status(rig), WEFT_OK);
}

wefti_cuda_ep_control *ep_rig_control(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    return (wefti_cuda_ep_control *)(uintptr_t)(wefti_cuda_ep_own_area(rig->ep, 0) + group->at.control);
}

int ep_rig_attach(weft_world *world)
{
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.ordinal = weft_world_pe(world);
    device.heap_max_bytes = (size_t)64 << 20;
    return CHECK_OK(weft_device_attach(world, &device));
}

weft_ep_config ep_rig_config(void)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = EP_RIG_LOCAL_EXPERTS * EP_RIG_PES;
    config.tokens_max = EP_RIG_TOKENS;
    config.topk_max = EP_RIG_TOPK;
    config.row_bytes_max = sizeof(ep_rig_row);
    config.on_device = 1;
    return config;
}

void ep_rig_open(ep_rig *rig, weft_world *world, weft_ep_layout layout, int slot_tokens)
{
    const weft_ep_config config = ep_rig_config();
    ep_rig_open_with(rig, world, layout, &config, slot_tokens);
}

void ep_rig_open_with(ep_rig *rig, weft_world *world, weft_ep_layout layout, const weft_ep_config *config,
                      int slot_tokens)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    const weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    void *heap = NULL;
    memset(rig, 0, sizeof *rig);
    rig->world = world;
    rig->rank = weft_world_pe(world);
    plan.topk = EP_RIG_TOPK;
    plan.layout = layout;
    plan.slot_tokens = slot_tokens;
    if (!CHECK_OK(weft_device_malloc(world, EP_RIG_ROWS * sizeof(ep_rig_row), &heap)) ||
        !ep_group_open(world, config, &plan, &rig->ep, &rig->route)) {
        abort();
    }
    rig->there = heap;
    memset(rig->there, EP_RIG_MARK, EP_RIG_ROWS * sizeof(ep_rig_row));
    rig->choices = choices;
    rig->choices.tokens = EP_RIG_TOKENS;
    rig->choices.ids = rig->ids;
    rig->in = ep_rig_rows(rig->tokens);
    rig->received = received;
    rig->received.rows = ep_rig_rows(rig->there);
    rig->received.rows_capacity = EP_RIG_ROWS;
    CHECK_OK(weft_barrier(world));
}

void ep_rig_close(ep_rig *rig)
{
    CHECK_OK(weft_barrier(rig->world));
    ep_group_close(rig->ep, rig->route);
    CHECK_OK(weft_barrier(rig->world));
}

void ep_rig_close_alone(ep_rig *rig)
{
    CHECK_OK(weft_barrier(rig->world));
    CHECK_OK(weft_ep_route_destroy(rig->route));
    if (rig->rank == 1) {
        CHECK_OK(weft_ep_mask(rig->ep, 0, 0)); /* so that its end is local, too */
    }
    CHECK_OK(weft_ep_destroy(rig->ep));
    CHECK_OK(weft_device_deadline(rig->world, UINT64_C(30000000000)));
    CHECK_OK(weft_barrier(rig->world));
}

static void run_all(weft_world *world, void *context)
{
    const ep_rig_cases *all = context;
    const size_t count = ep_rig_attach(world) ? all->count : 0;
    for (size_t i = 0; i < count; i++) {
        for (int which = 0; which < all->cases[i].whiches; which++) {
            all->cases[i].body(world, which);
        }
    }
}

void ep_rig_run(const ep_rig_cases *cases)
{
    pes_run(EP_RIG_PES, run_all, (void *)(uintptr_t)cases);
}
