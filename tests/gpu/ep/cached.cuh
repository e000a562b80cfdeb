/* ep/cached.cuh: a routing that several dispatches use. */
#ifndef EP_CACHED_CUH
#define EP_CACHED_CUH

#include "ep/job.cuh"

#define CACHED_TOKENS 8
#define CACHED_TOPK 2
#define CACHED_ROWS 256 /* at least what a rank can receive */

/* What a dispatch labels, in one piece of device memory. */
typedef struct cached_labels {
    int32_t source_rank[CACHED_ROWS];
    int32_t source_token[CACHED_ROWS];
    int32_t experts[CACHED_ROWS * CACHED_TOPK];
    float weights[CACHED_ROWS * CACHED_TOPK];
} cached_labels;

typedef struct cached {
    job *of;
    arena *all;
    weft_ep_route *route;
    weft_ep_choices choices;
    int64_t rows; /* that this rank receives */
} cached;

/* A dispatch into a buffer of so many rows, its labels, and the route's status behind it. */
static weft_status dispatch_cached(cached *c, int is_fresh, size_t capacity, cached_labels *labels)
{
    cached_labels *there = (cached_labels *)(c->all->base[PLAIN] + (1 << 20));
    weft_stream *stream = gpu_stream_of(c->of->pe);
    weft_ep_host_counts counts = {};
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = c->all->base[PLAIN] + (2 << 20);
    in.dtype = WEFT_EP_BF16;
    in.hidden = 32;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    got.rows = in;
    got.rows.data = c->all->base[HEAP];
    got.rows_capacity = capacity;
    got.source_rank = there->source_rank;
    got.source_token = there->source_token;
    got.experts = there->experts;
    got.weights = there->weights;
    gpu_set(c->of->pe, there, 0x5a, sizeof *there);
    if (is_fresh) {
        CHECK_OK(weft_ep_route_choose(c->route, &c->choices));
    }
    CHECK_OK(weft_ep_dispatch(c->route, &in, &got, stream));
    CHECK_OK(weft_ep_route_query(c->route, stream, &counts));
    arena_fetch(c->all, labels, there, sizeof *labels);
    c->rows = counts.rows;
    return counts.status;
}

/* Rows that do not fit now may fit next time; and what a rank sent before it was masked keeps its labels. */
static void test_cached(job *of, arena *all, weft_ep_layout layout)
{
    test_pe *pe = of->pe;
    const int absent = pe->pes - 1;
    const weft_ep_config config = small_config(2 * pe->pes);
    weft_ep *ep = NULL;
    cached c = {of, all, NULL, WEFT_EP_CHOICES_INIT, 0};
    cached_labels fresh;
    cached_labels again;
    cached_labels untouched;
    int32_t ids[CACHED_TOKENS * CACHED_TOPK];
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = CACHED_TOPK;
    plan.layout = layout;
    memset(&untouched, 0x5a, sizeof untouched);
    for (int i = 0; i < CACHED_TOKENS * CACHED_TOPK; i++) {
        ids[i] = (i + pe->pe) % (2 * pe->pes);
    }
    gpu_set(pe, all->base[PLAIN], 0, 4 << 20);
    memcpy(all->pinned, ids, sizeof ids);
    gpu_copy(pe, all->base[PLAIN], all->pinned, sizeof ids);
    c.choices.tokens = CACHED_TOKENS;
    c.choices.ids = all->base[PLAIN];
    (void)ep_group_open(of->world, &config, &plan, &ep, &c.route);
    CHECK_STATUS(dispatch_cached(&c, 1, CACHED_ROWS, &fresh), WEFT_OK);
    const size_t rows = (size_t)c.rows;
    CHECK_STATUS(dispatch_cached(&c, 0, pe->pe == 0 ? rows - 1 : rows, &again), WEFT_ERR_OVERFLOW);
    check_that(memcmp(&again, &untouched, sizeof again) == 0, __FILE__, __LINE__, "labels where no rows moved");
    CHECK_STATUS(dispatch_cached(&c, 0, rows, &again), WEFT_OK);
    check_that(memcmp(&again, &fresh, sizeof again) == 0, __FILE__, __LINE__, "other labels after rows did not fit");
    if (pe->pes > 1 && pe->pe != absent) {
        CHECK_OK(weft_ep_mask(ep, absent, 0));
        CHECK_STATUS(dispatch_cached(&c, 0, rows, &again), WEFT_OK);
        check_that(memcmp(&again, &fresh, sizeof again) == 0, __FILE__, __LINE__, "other labels after a mask");
    }
    CHECK_OK(weft_barrier(of->world));
    if (pe->pes == 1 || pe->pe != absent) { /* the masked rank's group ends with its world */
        ep_group_close(ep, c.route);
    }
    CHECK_OK(weft_barrier(of->world));
}

#endif
