/* ep/order.cuh: the order in which a domain of three ranks and more adds up. */
#ifndef EP_ORDER_CUH
#define EP_ORDER_CUH

#include "ep/job.cuh"
#include "support/ep_group.h"

#define ORDER_TOKENS 12
#define ORDER_TOPK 4
#define ORDER_HIDDEN 4
#define ORDER_RANKS 3 /* of a domain that a token goes to: the first of them */
#define ORDER_EXPERTS 2 /* of a rank */

/* The ranks of the domain that a token of a rank goes to, turned by token. Returns how many. */
static int order_ranks(const int *domain, int pes, int rank, int token, int *ranks)
{
    int found[ORDER_RANKS];
    int size = 0;
    for (int other = 0; other < pes && size < ORDER_RANKS; other++) {
        if (domain[other] == domain[(rank + token) % pes]) {
            found[size++] = other;
        }
    }
    const int step = token / 6 % 2 == 0 || size < ORDER_RANKS ? 1 : 2;
    for (int i = 0; i < size; i++) {
        ranks[i] = found[(token / 2 + i * step) % size];
    }
    return size;
}

/* What a rank gives back: two that cancel each other, and one that is lost beside either; of one that is `masked`
 * nothing comes. */
static float order_value(const int *domain, int rank, int masked)
{
    static const float values[ORDER_RANKS] = {0x1p27f, -0x1p27f, 1.0f};
    int place = 0;
    for (int other = 0; other < rank; other++) {
        place += domain[other] == domain[rank];
    }
    return place < ORDER_RANKS && rank != masked ? values[place] : 0.0f;
}

/* The choices of a token: each of the ranks, then another expert of the first, which `is_less` takes away again. */
static void order_choose(const int *ranks, int size, int is_less, int32_t *ids)
{
    for (int k = 0; k < ORDER_TOPK; k++) {
        ids[k] = k < size ? ORDER_EXPERTS * ranks[k] : -1;
    }
    ids[ORDER_TOPK - 1] = is_less ? -1 : ORDER_EXPERTS * ranks[0] + 1;
}

/* Ranks are added by the place of their last choice: the first rank's is behind the others' unless it is taken away. */
static float order_sum(const int *domain, const int *ranks, int size, int is_less, int masked)
{
    float sum = is_less ? order_value(domain, ranks[0], masked) : 0.0f;
    for (int i = 1; i < size; i++) {
        sum += order_value(domain, ranks[i], masked);
    }
    return is_less ? sum : sum + order_value(domain, ranks[0], masked);
}

static void order_check(job *of, arena *all, const int *domain, const void *out, int is_less, int masked)
{
    const int pes = of->pe->pes;
    const size_t bytes = ORDER_TOKENS * ORDER_HIDDEN * sizeof(float);
    gpu_copy(of->pe, all->pinned, out, bytes);
    const float *sums = (const float *)(const void *)all->pinned;
    for (int i = 0; i < ORDER_TOKENS * ORDER_HIDDEN; i++) {
        int ranks[ORDER_RANKS];
        const int size = order_ranks(domain, pes, of->pe->pe, i / ORDER_HIDDEN, ranks);
        const float sum = order_sum(domain, ranks, size, is_less, masked);
        check_that(sums[i] == sum, __FILE__, __LINE__, "token %d is %g, not %g%s", i / ORDER_HIDDEN, (double)sums[i],
                   (double)sum, is_less ? ", without its last choice" : "");
    }
}

/* A group goes on without the others, too. */
static void order_close(job *of, weft_ep *ep, weft_ep_route *route, int masked)
{
    CHECK_OK(weft_barrier(of->world)); /* who is masked makes no call beside others */
    for (int rank = 0; rank < of->pe->pes && masked == of->pe->pe; rank++) {
        CHECK_OK(rank != masked ? weft_ep_mask(ep, rank, 0) : WEFT_OK);
    }
    ep_group_close(ep, route);
}

/* By a dispatch's choices, then with the last of each token taken away in the combine. `masked`: a rank that is, or
 * -1. */
static void test_order(job *of, arena *all, weft_ep_layout layout, int masked)
{
    const int pes = of->pe->pes;
    weft_stream *stream = gpu_stream_of(of->pe);
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    weft_ep_host_counts counts;
    int domain[EP_RANKS_MAX];
    int domains = 0;
    const size_t ids_bytes = ORDER_TOKENS * ORDER_TOPK * sizeof(int32_t);
    const size_t rows = (size_t)ORDER_TOKENS * (size_t)pes;
    float *results = (float *)(void *)all->pinned;
    config.experts = ORDER_EXPERTS * pes;
    config.tokens_max = ORDER_TOKENS;
    config.topk_max = plan.topk = ORDER_TOPK;
    config.row_bytes_max = ORDER_HIDDEN * sizeof(float);
    config.on_device = 1;
    plan.layout = layout;
    plan.order = WEFT_EP_ORDER_CHOICE;
    (void)ep_group_open(of->world, &config, &plan, &ep, &route);
    CHECK_OK(weft_ep_domains(ep, domain, &domains));
    if (of->pe->pe == masked) {
        order_close(of, ep, route, masked);
        return;
    }
    CHECK_OK(masked >= 0 ? weft_ep_mask(ep, masked, 0) : WEFT_OK);
    for (int is_less = 0; is_less < 2; is_less++) {
        int32_t *ids = (int32_t *)(void *)all->pinned;
        for (int i = 0; i < ORDER_TOKENS; i++) {
            int ranks[ORDER_RANKS];
            const int size = order_ranks(domain, pes, of->pe->pe, i, ranks);
            order_choose(ranks, size, is_less, ids + i * ORDER_TOPK);
        }
        gpu_copy(of->pe, all->base[PLAIN] + (size_t)is_less * ids_bytes, ids, ids_bytes);
    }
    weft_ep_rows in = ep_rows(all->base[PLAIN] + (1 << 20), WEFT_EP_F32, ORDER_HIDDEN);
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    got.rows = ep_rows(all->base[HEAP], WEFT_EP_F32, ORDER_HIDDEN);
    got.rows_capacity = rows;
    choices.tokens = ORDER_TOKENS;
    choices.ids = all->base[PLAIN];
    CHECK_OK(weft_ep_route_choose(route, &choices));
    CHECK_OK(weft_ep_dispatch(route, &in, &got, stream));
    CHECK_OK(weft_ep_route_query(route, stream, &counts));
    for (size_t i = 0; i < rows * ORDER_HIDDEN; i++) {
        results[i] = order_value(domain, of->pe->pe, masked);
    }
    gpu_copy(of->pe, got.rows.data, results, rows * config.row_bytes_max);
    for (int is_less = 0; is_less < 2; is_less++) {
        options.ids = is_less ? all->base[PLAIN] + ids_bytes : NULL;
        CHECK_OK(weft_ep_combine_with(route, &got.rows, &in, &options, stream));
        CHECK_OK(weft_ep_route_query(route, stream, &counts));
        order_check(of, all, domain, in.data, is_less, masked);
    }
    order_close(of, ep, route, masked);
}

#endif
