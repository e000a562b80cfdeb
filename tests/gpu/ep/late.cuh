/* ep/late.cuh: a rank of the own domain that comes late to a call in which others have given it up. */
#ifndef EP_LATE_CUH
#define EP_LATE_CUH

#include <unistd.h>

#include "ep/job.cuh"
#include "support/ep_group.h"

#define LATE_TOKENS 8
#define LATE_HIDDEN 1024
#define LATE_DEADLINE_NS UINT64_C(500000000)

typedef struct late_call {
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_received got;
} late_call;

/* All tokens choose the expert of rank 1. */
static late_call late_open(job *of, arena *all)
{
    late_call call;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    const weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    int32_t *ids = (int32_t *)(void *)all->pinned;
    for (int i = 0; i < LATE_TOKENS; i++) {
        ids[i] = 1;
    }
    gpu_copy(of->pe, all->base[PLAIN], ids, LATE_TOKENS * sizeof *ids);
    call.choices = choices;
    call.choices.tokens = LATE_TOKENS;
    call.choices.ids = all->base[PLAIN];
    call.in = ep_rows(all->base[PLAIN] + (1 << 20), WEFT_EP_BF16, LATE_HIDDEN);
    call.got = got;
    call.got.rows = ep_rows(all->base[HEAP], WEFT_EP_BF16, LATE_HIDDEN);
    call.got.rows_capacity = (size_t)LATE_TOKENS * (size_t)of->pe->pes;
    return call;
}

/* Rows go to rank 1. */
static void late_send(job *of, weft_ep_route *route, const late_call *call, int value, weft_status wanted)
{
    weft_ep_host_counts counts;
    gpu_set(of->pe, call->in.data, value, (size_t)LATE_TOKENS * LATE_HIDDEN * 2);
    CHECK_OK(weft_ep_route_choose(route, &call->choices));
    CHECK_OK(weft_ep_dispatch(route, &call->in, &call->got, gpu_stream_of(of->pe)));
    CHECK_STATUS(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts), wanted);
}

/* Rows go there and come back. */
static void late_go(job *of, arena *all, weft_ep_route *route, const late_call *call, int value)
{
    const size_t bytes = (size_t)LATE_TOKENS * LATE_HIDDEN * 2;
    weft_ep_host_counts counts;
    size_t at = 0;
    late_send(of, route, call, value, WEFT_OK);
    CHECK_OK(weft_ep_combine(route, &call->got.rows, &call->in, 0, gpu_stream_of(of->pe)));
    CHECK_OK(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts));
    gpu_copy(of->pe, all->pinned, call->in.data, bytes);
    while (at < bytes && ((const unsigned char *)all->pinned)[at] == value) {
        at++;
    }
    check_that(at == bytes, __FILE__, __LINE__, "byte %zu of %zu is %d, not %d", at, bytes,
               at < bytes ? ((const unsigned char *)all->pinned)[at] : 0, value);
}

/* Rank 0 comes late to a call by forwarders, in which it sends rows to rank 1, of its domain. That one has given the
 * call up, has masked a rank and gone on, and receives in the same memory. If the last rank is the masked one it must
 * not have put rows there before rank 0 has left; if rank 0 is it must not get those rows, while it waits for other
 * domains. Of domains of two ranks and more. */
static void test_late(job *of, arena *all, bool is_masked)
{
    const int pe = of->pe->pe;
    const int last = of->pe->pes - 1;
    const int masked = is_masked ? 0 : last;
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    int domain[EP_RANKS_MAX];
    int domains = 0;
    void *block = NULL;
    CHECK_OK(weft_calloc(of->world, 1, sizeof(uint64_t), &block));
    uint64_t *gone = (uint64_t *)block; /* of PE 0: how many have given the call up */
    config.experts = of->pe->pes;
    config.tokens_max = LATE_TOKENS;
    config.topk_max = plan.topk = 1;
    config.row_bytes_max = LATE_HIDDEN * 2;
    config.on_device = 1;
    (void)ep_group_open(of->world, &config, &plan, &ep, &route);
    CHECK_OK(weft_ep_domains(ep, domain, &domains));
    const late_call call = late_open(of, all);
    late_go(of, all, route, &call, 0x3c);
    CHECK_OK(weft_barrier(of->world));
    if (domain[1] == domain[0] && domain[last] != domain[0]) {
        CHECK_OK(weft_device_deadline(of->world, LATE_DEADLINE_NS));
        if (pe == 0) {
            CHECK_OK(weft_signal_wait_until(of->world, gone, WEFT_CMP_GE, (uint64_t)last, NULL));
        }
        late_send(of, route, &call, 0x11, WEFT_ERR_TIMEOUT);
        CHECK_OK(weft_putmem_signal(of->world, gone, gone, 0, gone, 1, WEFT_SIGNAL_ADD, 0));
        CHECK_OK(weft_device_deadline(of->world, 10 * DEADLINE_NS));
        for (int rank = 0; rank < of->pe->pes; rank++) { /* who is masked goes on alone */
            CHECK_OK(rank != pe && (rank == masked || pe == masked) ? weft_ep_mask(ep, rank, 0) : WEFT_OK);
        }
        if (is_masked && domain[pe] != domain[0]) {
            usleep((useconds_t)(3 * LATE_DEADLINE_NS / 1000));
        }
        if (pe != masked) {
            late_go(of, all, route, &call, 0x22);
        }
    }
    CHECK_OK(weft_barrier(of->world));
    ep_group_close(ep, route);
    CHECK_OK(weft_free(of->world, block));
}

#endif
