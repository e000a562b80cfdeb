/* ep/cached.cuh: a routing that several dispatches use. */
#ifndef EP_CACHED_CUH
#define EP_CACHED_CUH

#include "ep/job.cuh"

#define CACHED_TOKENS 8
#define CACHED_TOPK 2
#define CACHED_ROWS 256 /* at least what a rank can receive */
#define CACHED_HIDDEN 32

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
    int by_halves;
    unsigned call; /* tells its rows from those of the calls before */
} cached;

static uint16_t cached_element(const cached *c, int rank, int token)
{
    return (uint16_t)(c->call * 1000 + (unsigned)(rank * CACHED_TOKENS + token) % 1000 + 1);
}

static void fill_cached(cached *c, unsigned char *there)
{
    uint16_t *rows = (uint16_t *)(void *)c->all->pinned;
    c->call++;
    for (int i = 0; i < CACHED_TOKENS * CACHED_HIDDEN; i++) {
        rows[i] = cached_element(c, c->of->pe->pe, i / CACHED_HIDDEN);
    }
    gpu_copy(c->of->pe, there, rows, CACHED_TOKENS * CACHED_HIDDEN * 2);
}

/* The rows of ranks before `ranks` are those of the last call, where the labels say. */
static void check_cached(const cached *c, const cached_labels *labels, int ranks)
{
    static thread_local uint16_t rows[CACHED_ROWS][CACHED_HIDDEN];
    int wrong = 0;
    arena_fetch(c->all, rows, c->all->base[HEAP], sizeof rows);
    for (int64_t row = 0; row < c->rows && row < CACHED_ROWS; row++) {
        for (int h = 0; h < CACHED_HIDDEN; h++) {
            wrong += labels->source_rank[row] >= 0 && labels->source_rank[row] < ranks &&
                     rows[row][h] != cached_element(c, labels->source_rank[row], labels->source_token[row]);
        }
    }
    check_that(wrong == 0, __FILE__, __LINE__, "%d elements of other rows in call %u", wrong, c->call);
}

/* A dispatch into a buffer of so many rows, its labels, and the route's status behind it. */
static weft_status dispatch_cached(cached *c, int is_fresh, size_t capacity, cached_labels *labels)
{
    cached_labels *there = (cached_labels *)(c->all->base[PLAIN] + (1 << 20));
    weft_stream *stream = gpu_stream_of(c->of->pe);
    weft_ep_host_counts counts = {};
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = c->all->base[PLAIN] + (2 << 20);
    in.dtype = WEFT_EP_BF16;
    in.hidden = CACHED_HIDDEN;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    got.rows = in;
    got.rows.data = c->all->base[HEAP];
    got.rows_capacity = capacity;
    got.source_rank = there->source_rank;
    got.source_token = there->source_token;
    got.experts = there->experts;
    got.weights = there->weights;
    fill_cached(c, (unsigned char *)in.data);
    gpu_set(c->of->pe, there, 0x5a, sizeof *there);
    if (is_fresh) {
        CHECK_OK(weft_ep_route_choose(c->route, &c->choices));
    }
    if (c->by_halves) {
        CHECK_OK(weft_ep_dispatch_send(c->route, &in, &got, stream));
        CHECK_OK(weft_ep_dispatch_recv(c->route, stream));
    } else {
        CHECK_OK(weft_ep_dispatch(c->route, &in, &got, stream));
    }
    CHECK_OK(weft_ep_route_query(c->route, stream, &counts));
    arena_fetch(c->all, labels, there, sizeof *labels);
    c->rows = counts.rows;
    return counts.status;
}

/* Rows that do not fit now may fit next time; and what a rank sent before it was masked keeps its labels. In whole
 * calls, and in halves, whose rows leave with send where they may. */
static void test_cached(job *of, arena *all, weft_ep_layout layout)
{
    test_pe *pe = of->pe;
    const int absent = pe->pes - 1;
    weft_ep_config config = small_config(2 * pe->pes);
    weft_ep *ep = NULL;
    cached c = {of, all, NULL, WEFT_EP_CHOICES_INIT, 0, 0, 0};
    size_t rows = 0;
    cached_labels fresh;
    cached_labels again;
    cached_labels untouched;
    int32_t ids[CACHED_TOKENS * CACHED_TOPK];
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = CACHED_TOPK;
    plan.layout = layout;
    config.flags = !ep_is_many(pe->pes) ? WEFT_EP_ROWS_WITH_SEND : 0;
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
    for (c.by_halves = 0; c.by_halves < 2; c.by_halves++) {
        CHECK_STATUS(dispatch_cached(&c, 1, CACHED_ROWS, &fresh), WEFT_OK);
        check_cached(&c, &fresh, pe->pes);
        rows = (size_t)c.rows;
        CHECK_STATUS(dispatch_cached(&c, 0, pe->pe == 0 ? rows - 1 : rows, &again), WEFT_ERR_OVERFLOW);
        check_that(memcmp(&again, &untouched, sizeof again) == 0, __FILE__, __LINE__, "labels where no rows moved");
        CHECK_STATUS(dispatch_cached(&c, 0, rows, &again), WEFT_OK);
        check_that(memcmp(&again, &fresh, sizeof again) == 0, __FILE__, __LINE__,
                   "other labels after rows did not fit");
        check_cached(&c, &again, pe->pes);
    }
    CHECK_OK(weft_barrier(of->world)); /* the absent rank has received, too, which the others have not waited for */
    if (pe->pes > 1 && pe->pe != absent) {
        CHECK_OK(weft_ep_mask(ep, absent, 0));
        for (c.by_halves = 0; c.by_halves < 2; c.by_halves++) {
            CHECK_STATUS(dispatch_cached(&c, 0, rows, &again), WEFT_OK);
            check_that(memcmp(&again, &fresh, sizeof again) == 0, __FILE__, __LINE__, "other labels after a mask");
            check_cached(&c, &again, absent);
        }
    }
    CHECK_OK(weft_barrier(of->world));
    if (pe->pes == 1 || pe->pe != absent) { /* the masked rank's group ends with its world */
        ep_group_close(ep, c.route);
    }
    CHECK_OK(weft_barrier(of->world));
}

#endif
