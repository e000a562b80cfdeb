/* Goal: expert parallelism on GPUs gives, to the bit, what the serial reference gives (and with it the host backend).
 *
 * Method: the random cases of tests/support, with all arrays in device memory: in the device heap, in registered
 * memory, and in memory that is neither. Each PE draws the same cases; each case is a group, a few routes, and a
 * sequence of calls. Usage: as support/launch.h says; -c: how many cases; WEFT_SEED. */
#include "support/arena.h"
#include "support/early_memory.h"

extern "C" {
#include "support/ep_combining.h"
#include "support/ep_coverage.h"
#include "support/ep_step.h"
}

#define CASES (ON_GPU ? 40 : 12)
#define FEW_PES 16 /* more have small cases without a GPU, whose threads are as many as it has */
#define DEADLINE_NS UINT64_C(4000000000)

/* ---- cases ---- */

typedef struct job {
    test_pe *pe;
    weft_world *world;
    ep_memory memory;
    uint64_t own;
    unsigned salt;
    int sms; /* that nobody had claimed at first */
    char what[160];
} job;

static ep_step step_of(job *of, weft_ep_route *route, const ep_routing *routing, ep_told *told)
{
    ep_step step = {};
    step.route = route;
    step.routing = routing;
    step.told = told;
    step.rank = of->pe->pe;
    step.arrays.what = of->what;
    step.arrays.memory = &of->memory;
    step.arrays.random = &of->own;
    step.is_late = 1;
    step.halves = of->salt % 2 == 0;
    step.stream = gpu_stream_of(of->pe);
    step.slow_us = of->salt % 7 == 0 ? 300 : 0;
    return step;
}

/* What the receive buffer of each rank holds: enough, or now and then too little. */
static void draw_capacities(uint64_t *common, const ep_routing *routing, const weft_ep_plan *plan, int ranks,
                            int64_t *capacity)
{
    int is_tight = !ep_is_slots(plan->layout) && random_below(common, 4) == 0;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t rows = routing->side[rank].rows;
        int64_t spare = random_below(common, 3);
        int is_short = is_tight && random_below(common, 4) == 0;
        capacity[rank] = is_short ? (int64_t)random_below(common, (unsigned)rows + 1) : rows + spare;
    }
}

static void run_backward(const ep_step *step, const ep_payload *payload, unsigned flags, uint64_t *common)
{
    int of_dispatch = random_below(common, 2) == 0;
    int with_weights = random_below(common, 2) == 0;
    ep_payload rows = *payload;
    rows.salt += 500;
    if (of_dispatch) {
        ep_step_dispatch_bwd(step, payload, with_weights);
    } else {
        ep_step_combine_bwd(step, payload, with_weights && flags != 0 ? &rows : NULL, flags);
    }
}

/* Cases of more choices a token than a warp has lanes: up to the 64 that are drawn at most. */
static const ep_size many_choices = {30, EP_TOPK_MAX, 40, 256, (size_t)4 << 20};
#define MANY_CHOICES 33

static weft_ep_plan draw_plan(uint64_t *common, const ep_setup *setup, const ep_size *size)
{
    weft_ep_plan plan = ep_plan_draw(random_next(common), setup);
    if (size == &many_choices) {
        plan.topk = MANY_CHOICES + (int)random_below(common, (unsigned)(setup->config.topk_max - MANY_CHOICES) + 1);
    }
    ep_plan_vary(common, setup, &plan);
    return plan;
}

static void run_route(job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size, uint64_t *common)
{
    weft_ep_plan plan = draw_plan(common, setup, size);
    weft_ep_route *route = NULL;
    ep_routing *routing = NULL;
    ep_case one = {};
    plan.sms = random_below(common, 3) == 0 ? 1 + (int)random_below(common, 20) : 0;
    size_t bytes = 0;
    CHECK_OK(weft_ep_route_bytes(ep, &plan, &bytes));
    int held = random_below(&of->own, 3) == 0 && bytes <= ROUTE_BYTES ? 0 : -1; /* which memory; the library's own */
    void *memory = held == 0 ? route_memory(of->pe, held, bytes) : NULL;
    if (!CHECK_OK(weft_ep_route_create(ep, &plan, memory, &route))) {
        return;
    }
    ep_told *told = random_below(&of->own, 2) == 0 ? ep_told_create(route, setup, of->pe->pe, &of->own) : NULL;
    for (int call = 0; call < 5; call++) {
        if (held >= 0 && random_below(&of->own, 3) == 0) {
            held = 1 - held;
            CHECK_OK(weft_ep_route_move(route, route_memory(of->pe, held, bytes), bytes)); /* its stream has ended */
        }
        of->salt++;
        int updates = routing == NULL || random_below(common, 4) == 0;
        int fresh = updates && random_below(common, 2) == 0;
        int back = !updates && random_below(common, 2) == 0;
        int adds = back || (!updates && random_below(common, 2) == 0);
        unsigned flags = random_below(common, 2) == 0 ? WEFT_EP_WEIGHTED : 0;
        int64_t capacity[EP_RANKS_MAX];
        ep_payload received;
        ep_payload payload =
            ep_payload_draw(random_next(common), setup, size, &plan, adds || (updates && !fresh), of->salt, &received);
        if (updates) {
            ep_routing_destroy(routing);
            ep_case_free(&one);
            one = ep_case_draw(random_next(common), setup, &plan);
            routing = ep_routing_create(&one, NULL);
        }
        if (fresh) {
            draw_capacities(common, routing, &plan, of->pe->pes, capacity);
            ep_routing_destroy(routing);
            routing = ep_routing_create(&one, capacity);
        }
        snprintf(of->what, sizeof of->what, "%s %u (layout %d, T %d, E %d, K %d, H %d, type %d)",
                 fresh     ? "fresh dispatch"
                 : updates ? "update"
                 : back    ? "backward"
                 : adds    ? "combine"
                           : "dispatch",
                 of->salt, plan.layout, one.tokens[of->pe->pe], setup->config.experts, plan.topk, payload.hidden,
                 payload.dtype);
        ep_step step = step_of(of, route, routing, told);
        if (back) {
            run_backward(&step, &payload, flags, common);
        } else if (adds) {
            ep_combining_step(&step, &payload, flags, common);
        } else if (updates && !fresh) {
            ep_step_update(&step);
        } else {
            ep_step_dispatch(&step, &payload, &received, fresh ? capacity : NULL);
        }
    }
    ep_routing_destroy(routing);
    ep_case_free(&one);
    CHECK_OK(weft_ep_route_destroy(route));
    ep_told_destroy(told);
}

static ep_setup draw_setup(uint64_t *state, int pes, const ep_size *size)
{
    return ep_setup_draw(random_next(state), pes, size);
}

/* Some groups keep statistics, and some mask by themselves where they can, which changes no result. */
static unsigned draw_flags(uint64_t *common, int pes, const weft_ep_config *config)
{
    static const unsigned flags[4] = {WEFT_EP_STATISTICS, WEFT_EP_MASK_ON_TIMEOUT};
    weft_ep_config with = *config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    with.flags = flags[random_below(common, 4)];
    return weft_ep_bytes(&with, pes, &memory) == WEFT_OK ? with.flags : 0;
}

static void run_case(job *of, uint64_t seed, const ep_size *size)
{
    uint64_t common = seed;
    weft_ep *ep = NULL;
    ep_setup setup = draw_setup(&common, of->pe->pes, size);
    setup.config.on_device = 1;
    weft_ep_config config = setup.config;
    config.experts_of_rank = setup.uneven ? setup.table : NULL;
    config.flags = setup.config.flags = draw_flags(&common, of->pe->pes, &config);
    if (!CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep))) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        run_route(of, ep, &setup, size, &common);
    }
    CHECK_OK(weft_ep_destroy(ep));
}

#if ON_GPU

/* ---- a captured graph: a step of identity experts, replayed with new routing, T and data ---- */

#define GRAPH_TOKENS 200
#define GRAPH_HIDDEN 512
#define GRAPH_TOPK 4
#define GRAPH_EXPERTS 16
#define GRAPH_REPLAYS 1000
#define GRAPH_AHEAD 50 /* replays that are enqueued before they are waited for */

typedef struct graph_step {
    wefti_u32 *number; /* of the replay */
    wefti_u32 *wrong; /* elements so far */
    wefti_i32 *tokens; /* T */
    wefti_i32 *ids;
    unsigned short *in; /* bf16: small integers */
    unsigned short *out;
    int pe;
    int pes;
} graph_step;

static __device__ wefti_u32 mixed(wefti_u32 a, wefti_u32 b)
{
    wefti_u32 z = a * 0x9e3779b9u + b;
    z = (z ^ z >> 16) * 0x85ebca6bu;
    z = (z ^ z >> 13) * 0xc2b2ae35u;
    return z ^ z >> 16;
}

static __device__ wefti_u32 bf16_of(wefti_u32 integer)
{
    return __float_as_uint((float)integer) >> 16;
}

/* One block. */
static __global__ void make_step(graph_step step)
{
    wefti_u32 number = *step.number + 1;
    wefti_u32 salt = mixed(number, (wefti_u32)step.pe);
    wefti_i32 tokens = (wefti_i32)(salt % (GRAPH_TOKENS + 1));
    __syncthreads();
    if (threadIdx.x == 0) {
        *step.number = number;
        *step.tokens = tokens;
    }
    for (int i = (int)threadIdx.x; i < GRAPH_TOKENS * GRAPH_TOPK; i += (int)blockDim.x) {
        step.ids[i] = (wefti_i32)(mixed(salt, (wefti_u32)i) % (GRAPH_EXPERTS + 1)) - 1;
    }
    for (int i = (int)threadIdx.x; i < GRAPH_TOKENS * GRAPH_HIDDEN; i += (int)blockDim.x) {
        step.in[i] = (unsigned short)bf16_of(mixed(salt + 1, (wefti_u32)i) % 16);
        step.out[i] = 0x7fff;
    }
}

/* What the ranks of a token returned is its row once for each of them. One block. */
static __global__ void check_step(graph_step step)
{
    wefti_u32 wrong = 0;
    for (int i = (int)threadIdx.x; i < GRAPH_TOKENS * GRAPH_HIDDEN; i += (int)blockDim.x) {
        int token = i / GRAPH_HIDDEN;
        wefti_u32 ranks = 0;
        for (int k = 0; k < GRAPH_TOPK; k++) {
            int id = step.ids[token * GRAPH_TOPK + k];
            int first = 0;
            for (int rank = 0; id >= 0 && rank < step.pes; rank++) {
                int count = GRAPH_EXPERTS / step.pes + (rank < GRAPH_EXPERTS % step.pes);
                ranks |= id >= first && id < first + count ? 1u << rank : 0;
                first += count;
            }
        }
        wefti_u32 wanted =
            token < *step.tokens
                ? bf16_of((wefti_u32)__popc(ranks) * (wefti_u32)__uint_as_float((wefti_u32)step.in[i] << 16))
                : 0x7fff;
        wrong += step.out[i] != wanted;
    }
    atomicAdd(step.wrong, wrong);
}

static void capture_step(job *of, const graph_step *step, weft_ep_route *route, void *received, int fused, int halves)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = GRAPH_TOKENS;
    choices.tokens_at = step->tokens;
    choices.ids = step->ids;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = step->in;
    in.dtype = WEFT_EP_BF16;
    in.hidden = GRAPH_HIDDEN;
    weft_ep_rows out = in;
    out.data = step->out;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    got.rows = in;
    got.rows.data = received;
    got.rows_capacity = (size_t)of->pe->pes * GRAPH_TOKENS;
    weft_stream *stream = gpu_stream_of(of->pe);
    make_step<<<1, 512, 0, of->pe->stream>>>(*step);
    if (fused) {
        CHECK_OK(weft_ep_route_choose(route, &choices));
    } else {
        CHECK_OK(weft_ep_route_update(route, &choices, stream));
    }
    if (halves) {
        CHECK_OK(weft_ep_dispatch_send(route, &in, &got, stream));
        CHECK_OK(weft_ep_dispatch_recv(route, stream));
        CHECK_OK(weft_ep_combine_send(route, &got.rows, &out, 0, stream));
        CHECK_OK(weft_ep_combine_recv(route, stream));
    } else {
        CHECK_OK(weft_ep_dispatch(route, &in, &got, stream));
        CHECK_OK(weft_ep_combine(route, &got.rows, &out, 0, stream));
    }
    check_step<<<1, 512, 0, of->pe->stream>>>(*step);
}

static void test_graph(job *of, arena *all, weft_ep_layout layout, int fused, int halves)
{
    test_pe *pe = of->pe;
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = GRAPH_EXPERTS;
    config.tokens_max = GRAPH_TOKENS;
    config.topk_max = GRAPH_TOPK;
    config.row_bytes_max = GRAPH_HIDDEN * 2;
    config.on_device = 1;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = GRAPH_TOPK;
    plan.sms = 12;
    plan.layout = layout;
    if (!CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep)) ||
        !CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route))) {
        return;
    }
    unsigned char *memory = all->base[PLAIN];
    graph_step step = {};
    step.number = (wefti_u32 *)memory;
    step.wrong = step.number + 64;
    step.tokens = (wefti_i32 *)step.wrong + 64;
    step.ids = step.tokens + 64;
    step.in = (unsigned short *)(memory + (1 << 20));
    step.out = (unsigned short *)(memory + (2 << 20));
    step.pe = pe->pe;
    step.pes = pe->pes;
    check_gpu(cudaMemsetAsync(memory, 0, 1 << 20, pe->stream), "test_graph");
    check_gpu(cudaStreamSynchronize(pe->stream), "test_graph");
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check_gpu(cudaStreamBeginCapture(pe->stream, cudaStreamCaptureModeThreadLocal), "capture");
    weft_ep_route *beside = NULL;
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &beside));
    capture_step(of, &step, route, all->base[HEAP], fused, halves);
    CHECK_OK(weft_ep_route_destroy(beside));
    check_gpu(cudaStreamEndCapture(pe->stream, &graph), "capture");
    check_gpu(cudaGraphInstantiate(&exec, graph, 0), "capture");
    /* A first launch would, and may wait for all kernels that run on the GPU. */
    check_gpu(cudaGraphUpload(exec, pe->stream), "capture");
    check_gpu(cudaStreamSynchronize(pe->stream), "capture");
    /* A queue of launches holds about 1000. Whose launch finds it full waits inside the driver, with what other threads
     * of the process need for theirs, so a thread that runs ahead of one that has not begun would wait for it in
     * vain. */
    CHECK_OK(weft_barrier(of->world));
    for (int i = 0; i < GRAPH_REPLAYS; i++) {
        check_gpu(cudaGraphLaunch(exec, pe->stream), "replay");
        if (i % GRAPH_AHEAD == GRAPH_AHEAD - 1) {
            check_gpu(cudaStreamSynchronize(pe->stream), "replay");
        }
    }
    weft_ep_host_counts counts;
    CHECK_OK(weft_ep_route_query(route, gpu_stream_of(pe), &counts));
    wefti_u32 seen[128] = {};
    arena_fetch(all, seen, memory, sizeof seen);
    check_that(seen[0] == GRAPH_REPLAYS && seen[64] == 0, __FILE__, __LINE__, "%u replays, %u wrong elements", seen[0],
               seen[64]);
    check_gpu(cudaGraphExecDestroy(exec), "test_graph");
    check_gpu(cudaGraphDestroy(graph), "test_graph");
    CHECK_OK(weft_ep_route_destroy(route));
    CHECK_OK(weft_ep_destroy(ep));
}

#endif

static weft_ep_config small_config(int experts)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = experts;
    config.tokens_max = 8;
    config.topk_max = 2;
    config.row_bytes_max = 64;
    config.on_device = 1;
    return config;
}

/* ---- a routing that several dispatches use ---- */

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
    CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep));
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &c.route));
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
        CHECK_OK(weft_ep_route_destroy(c.route));
        CHECK_OK(weft_ep_destroy(ep));
    }
    CHECK_OK(weft_barrier(of->world));
}

/* ---- a rank that does not come ---- */

static void test_absence(job *of, arena *all)
{
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_host_counts counts;
    weft_ep_config config = small_config(8);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    config.flags = WEFT_EP_STATISTICS; /* which a mask leaves as they are */
    int absent = of->pe->pes - 1;
    CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep));
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route));
    CHECK_OK(weft_device_deadline(of->world, UINT64_C(300000000)));
    gpu_set(of->pe, all->base[PLAIN], 0, 1024);
    if (of->pe->pe != absent) {
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        choices.tokens = 8;
        choices.ids = all->base[PLAIN];
        CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
        CHECK_STATUS(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts), WEFT_ERR_TIMEOUT);
        char rank[16];
        snprintf(rank, sizeof rank, " %d", absent);
        check_that(strstr(weft_last_error(), rank) != NULL, __FILE__, __LINE__, "names no rank %d: %s", absent,
                   weft_last_error());
        CHECK_STATUS(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)), WEFT_ERR_TIMEOUT);
        /* The others go on: all their tokens go to expert 0, of rank 0. They come as far apart as they have waited. */
        CHECK_OK(weft_device_deadline(of->world, DEADLINE_NS * (ON_GPU ? 1 : 10)));
        CHECK_OK(weft_ep_mask(ep, absent, 0));
        CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
        CHECK_OK(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts));
        check_that(counts.status == WEFT_OK && counts.rows == (of->pe->pe == 0 ? 8 * absent : 0), __FILE__, __LINE__,
                   "%lld rows after a mask, status %d", (long long)counts.rows, counts.status);
        CHECK_OK(weft_ep_route_destroy(route));
        CHECK_OK(weft_ep_destroy(ep));
    }
    /* The absent rank's group ends with its world; but what ends one may wait for all kernels on the GPU, and keep
     * those of others from being launched. */
    CHECK_OK(weft_barrier(of->world));
}

/* ---- multiprocessors ---- */

static int free_sms(weft_world *world)
{
    int sms = 0;
    while (weft_device_sms_take(world, 1) == WEFT_OK) {
        sms++;
    }
    if (sms > 0) {
        CHECK_OK(weft_device_sms_give(world, sms));
    }
    return sms;
}

/* Two groups claim what their routes ask for, each once, and give it back; none is left: one that asks is told so, and
 * so is one that did not ask, which else has what is left. By PE 0, while the others wait. */
static void test_claims(job *of, arena *all)
{
    weft_ep *ep[2] = {};
    weft_ep_route *route[4] = {};
    const weft_ep_config config = small_config(of->pe->pes);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int before = free_sms(of->world);
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        choices.ids = all->base[PLAIN];
        plan.sms = 1;
        CHECK_OK(weft_ep_route_create(ep[0], &plan, NULL, &route[0]));
        CHECK_OK(weft_ep_route_create(ep[0], &plan, NULL, &route[1]));
        check_that(free_sms(of->world) == before - 1, __FILE__, __LINE__, "two routes of a group claim more than one");
        CHECK_OK(weft_device_sms_take(of->world, before - 1));
        CHECK_STATUS(weft_ep_route_create(ep[1], &plan, NULL, &route[2]), WEFT_ERR_STATE);
        plan.sms = 0;
        CHECK_OK(weft_ep_route_create(ep[1], &plan, NULL, &route[2]));
        CHECK_STATUS(weft_ep_route_update(route[2], &choices, gpu_stream_of(of->pe)), WEFT_ERR_STATE);
        CHECK_OK(weft_device_sms_give(of->world, before - 1));
        plan.sms = 1;
        CHECK_OK(weft_ep_route_create(ep[1], &plan, NULL, &route[3]));
        check_that(free_sms(of->world) == before - 2, __FILE__, __LINE__, "two groups do not claim two");
        for (int i = 0; i < 4; i++) {
            CHECK_OK(weft_ep_route_destroy(route[i]));
        }
    }
    CHECK_OK(weft_barrier(of->world));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_destroy(ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int left = free_sms(of->world);
        check_that(left == of->sms, __FILE__, __LINE__, "of %d multiprocessors %d are free at the end", of->sms, left);
    }
    CHECK_OK(weft_barrier(of->world));
}

/* Groups that share a claim have the most that a route of theirs asks for, until the last is gone; and a hint is what
 * can be claimed. By PE 0, while the others wait. */
static void test_shared_claim(job *of)
{
    weft_ep *ep[3] = {};
    weft_ep_route *route[3] = {};
    weft_ep_config config = small_config(of->pe->pes);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    for (int i = 0; i < 3; i++) {
        config.claim_with = i > 0 ? ep[i - 1] : NULL;
        CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int before = free_sms(of->world);
        int hint[2] = {-1, -1};
        CHECK_OK(weft_ep_sms_hint(ep[0], &plan, &hint[0]));
        plan.layout = WEFT_EP_SLOTS_EXPERT;
        CHECK_OK(weft_ep_sms_hint(ep[0], &plan, &hint[1]));
        check_that(hint[0] >= 1 && hint[0] <= before && hint[1] >= 1 && hint[1] <= before, __FILE__, __LINE__,
                   "hints of %d and %d of %d multiprocessors", hint[0], hint[1], before);
        plan.layout = WEFT_EP_RANK_MAJOR;
        for (int i = 0; i < 3; i++) {
            plan.sms = i == 1 ? hint[0] : 1;
            CHECK_OK(weft_ep_route_create(ep[i], &plan, NULL, &route[i]));
            const int left = before - (i > 0 ? hint[0] : 1);
            check_that(free_sms(of->world) == left, __FILE__, __LINE__, "%d groups leave %d multiprocessors, not %d",
                       i + 1, free_sms(of->world), left);
        }
        for (int i = 0; i < 3; i++) {
            CHECK_OK(weft_ep_route_destroy(route[i]));
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weft_barrier(of->world));
        const int left = of->pe->pe == 0 ? free_sms(of->world) : 0;
        check_that(of->pe->pe != 0 || left < of->sms, __FILE__, __LINE__, "%d groups, and no claim", 3 - i);
        CHECK_OK(weft_barrier(of->world));
        CHECK_OK(weft_ep_destroy(ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int left = free_sms(of->world);
        check_that(left == of->sms, __FILE__, __LINE__, "of %d multiprocessors %d are free at the end", of->sms, left);
    }
    CHECK_OK(weft_barrier(of->world));
}

/* ---- two groups side by side ---- */

#define CROSS_ROUNDS (ON_GPU ? 100 : 5)
#define CROSS_TOKENS 8
#define CROSS_TOPK 2
#define CROSS_HIDDEN 32

/* One of two groups, with a stream of its own: memory of its calls, and what each round chose. */
typedef struct cross {
    job *of;
    arena *all;
    int number; /* 0 or 1 */
    weft_ep *ep;
    weft_ep_route *route;
    weft_stream *stream;
    unsigned char *received; /* symmetric */
    unsigned char *memory; /* choices, then rows in and out, of all rounds */
} cross;

static int32_t cross_id(const cross *c, int round, int rank, int i)
{
    uint64_t state = (uint64_t)(((c->number * 1000 + round) * 64 + rank) * 64 + i);
    return (int32_t)(next_random(&state) % (uint64_t)(2 * c->of->pe->pes + 1)) - 1;
}

static uint16_t cross_element(int integer)
{
    const float value = (float)integer;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int cross_in(const cross *c, int i)
{
    return (i + 5 * c->of->pe->pe + 3 * c->number) % 16;
}

static int32_t *cross_ids(const cross *c, int round)
{
    return (int32_t *)(void *)c->memory + round * CROSS_TOKENS * CROSS_TOPK;
}

static unsigned char *cross_rows(const cross *c, int round)
{
    return c->memory + (1 << 20) + (size_t)round * CROSS_TOKENS * CROSS_HIDDEN * 2;
}

static void cross_fill(cross *c)
{
    int32_t *ids = (int32_t *)(void *)c->all->pinned;
    uint16_t *rows = (uint16_t *)(void *)(c->all->pinned + (1 << 20));
    for (int round = 0; round < CROSS_ROUNDS; round++) {
        for (int i = 0; i < CROSS_TOKENS * CROSS_TOPK; i++) {
            *ids++ = cross_id(c, round, c->of->pe->pe, i);
        }
    }
    for (int i = 0; i < CROSS_TOKENS * CROSS_HIDDEN; i++) {
        rows[i] = cross_element(cross_in(c, i));
    }
    gpu_set(c->of->pe, c->memory, 0, 2 << 20);
    gpu_copy(c->of->pe, c->memory, c->all->pinned, (1 << 20) + CROSS_TOKENS * CROSS_HIDDEN * 2);
}

/* Choose, there and back. */
static void cross_step(cross *c, int round)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = CROSS_TOKENS;
    choices.ids = cross_ids(c, round);
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.data = cross_rows(c, 0);
    in.dtype = WEFT_EP_BF16;
    in.hidden = CROSS_HIDDEN;
    weft_ep_rows out = in;
    out.data = cross_rows(c, round + 1);
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    got.rows = in;
    got.rows.data = c->received;
    got.rows_capacity = (size_t)(CROSS_TOKENS * c->of->pe->pes);
    CHECK_OK(weft_ep_route_choose(c->route, &choices));
    CHECK_OK(weft_ep_dispatch(c->route, &in, &got, c->stream));
    CHECK_OK(weft_ep_combine(c->route, &got.rows, &out, 0, c->stream));
}

/* A row comes back once for each rank that it went to. */
static void cross_check(cross *c)
{
    const size_t bytes = CROSS_TOKENS * CROSS_HIDDEN * sizeof(uint16_t);
    weft_ep_host_counts counts;
    CHECK_OK(weft_ep_route_query(c->route, c->stream, &counts));
    arena_fetch(c->all, c->all->pinned, cross_rows(c, 1), CROSS_ROUNDS * bytes);
    const uint16_t *seen = (const uint16_t *)(const void *)c->all->pinned;
    int wrong = 0;
    for (int i = 0; i < CROSS_ROUNDS * CROSS_TOKENS * CROSS_HIDDEN; i++) {
        const int round = i / (CROSS_TOKENS * CROSS_HIDDEN);
        const int token = i / CROSS_HIDDEN % CROSS_TOKENS;
        const int32_t first = cross_id(c, round, c->of->pe->pe, token * CROSS_TOPK);
        const int32_t second = cross_id(c, round, c->of->pe->pe, token * CROSS_TOPK + 1);
        const int times = (first >= 0) + (second >= 0 && (first < 0 || second / 2 != first / 2));
        wrong += seen[i] != cross_element(times * cross_in(c, i % (CROSS_TOKENS * CROSS_HIDDEN)));
    }
    check_that(wrong == 0, __FILE__, __LINE__, "group %d: %d wrong elements", c->number, wrong);
}

#if !ON_GPU
/* The fake driver's launches return at their end, so each stream has a thread. */
static void *cross_run(void *argument)
{
    cross *c = (cross *)argument;
    check_as_pe(c->of->pe->pe);
    for (int round = 0; round < CROSS_ROUNDS; round++) {
        usleep((useconds_t)(cross_id(c, round, c->of->pe->pe, 99) + 1) * 500);
        cross_step(c, round);
    }
    return NULL;
}
#endif

#define CROSS_PES_A_GPU 2

/* Each round both groups, on streams of their own, and each PE begins with the one or the other: kernels of one wait on
 * some GPUs while those of the other do elsewhere. They go on because the claims of both fit. With more PEs of a
 * process on a GPU a kernel may stand behind another PE's in a hardware queue, in which streams are put by the driver:
 * three were seen to. */
static void test_crossing(job *of, arena *all)
{
    test_pe *pe = of->pe;
    if (ON_GPU && pe->pes > CROSS_PES_A_GPU * pe->gpus) {
        return;
    }
    cross groups[2] = {};
    const weft_ep_config config = small_config(2 * pe->pes);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = CROSS_TOPK;
    plan.sms = ON_GPU ? 24 / ((pe->pes + pe->gpus - 1) / pe->gpus) : 1;
    for (int i = 0; i < 2; i++) {
        groups[i] = {of, all, i};
        groups[i].received = all->base[HEAP] + ((size_t)i << 20);
        groups[i].memory = all->base[PLAIN] + ((size_t)i << 22);
        CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &groups[i].ep));
        CHECK_OK(weft_ep_route_create(groups[i].ep, &plan, NULL, &groups[i].route));
        cross_fill(&groups[i]);
    }
    CHECK_OK(weft_barrier(of->world));
#if ON_GPU
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) {
        check_gpu(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "test_crossing");
        groups[i].stream = (weft_stream *)streams[i];
    }
    for (int round = 0; round < CROSS_ROUNDS; round++) {
        const int first = cross_id(&groups[0], round, pe->pe, 99) % 2 != 0;
        cross_step(&groups[first], round);
        cross_step(&groups[1 - first], round);
    }
#else
    pthread_t handles[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&handles[i], NULL, cross_run, &groups[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(handles[i], NULL);
    }
#endif
    for (int i = 0; i < 2; i++) {
        cross_check(&groups[i]);
        CHECK_OK(weft_ep_route_destroy(groups[i].route));
        CHECK_OK(weft_ep_destroy(groups[i].ep));
    }
#if ON_GPU
    for (int i = 0; i < 2; i++) {
        check_gpu(cudaStreamDestroy(streams[i]), "test_crossing");
    }
#endif
    CHECK_OK(weft_barrier(of->world));
}

/* ---- cases ---- */

/* Of eight cases a large one, on GPUs two, two of few but wide rows, one of so many wide ones that slices of early
 * calls are long, one of so many tokens that units have several, and one of many choices. */
static const ep_size many_tokens = {2200, 4, 24, 512, (size_t)24 << 20};
static const ep_size *size_of_case(int number, int pes)
{
    static const ep_size wide = {12, 5, 12, 2048, (size_t)4 << 20};
    static const ep_size many_wide = {260, 3, 12, 4096, (size_t)12 << 20};
    int kind = number % 8;
    return pes > FEW_PES && !ON_GPU             ? &ep_size_small
           : kind == 6                          ? &many_tokens
           : kind == 5                          ? &many_choices
           : kind == 0 || (ON_GPU && kind == 4) ? &ep_size_full
           : kind == 3                          ? &many_wide
           : kind % 3 == 1                      ? &wide
                                                : &ep_size_small;
}

/* Whether a group of that size has as many tokens or choices as it is for. */
static bool is_large_enough(const ep_size *size, const weft_ep_config *config)
{
    return (size != &many_tokens || config->tokens_max >= size->tokens_max * 3 / 4) &&
           (size != &many_choices || (config->topk_max >= MANY_CHOICES && config->tokens_max > 0));
}

static uint64_t seed_of_case(uint64_t *common, int pes, const ep_size *size)
{
    uint64_t seed;
    ep_setup setup;
    do {
        seed = random_next(common);
        uint64_t state = seed;
        setup = draw_setup(&state, pes, size);
    } while (!is_large_enough(size, &setup.config));
    return seed;
}

static void test_body(test_pe *pe)
{
    ep_told_take = take_pinned;
    ep_told_give = give_pinned;
    arena all = {};
    job of = {};
    int cases = pe->cases > 0 ? pe->cases : CASES;
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "ep", (size_t)4 << 30, ON_GPU ? (size_t)512 << 20 : (size_t)128 << 20);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS * (ON_GPU ? 1 : 10)));
    arena_open(&all, pe, of.world, &of.memory);
    take_memory();
    CHECK_OK(weft_barrier(of.world));
    of.sms = pe->pe == 0 ? free_sms(of.world) : 0;
    CHECK_OK(weft_barrier(of.world));
    uint64_t common = pe->seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < cases && check_failures() == 0; i++) {
        of.own = common ^ (uint64_t)(pe->pe + 1) * UINT64_C(0xbf58476d1ce4e5b9);
        const ep_size *size = size_of_case(i, pe->pes);
        uint64_t seed = seed_of_case(&common, pe->pes, size);
        run_case(&of, seed, size);
        if (check_failures() != 0) {
            fprintf(stderr, "PE %d: case %d, seed %llu\n", pe->pe, i, (unsigned long long)seed);
        }
    }
#if ON_GPU
    if (check_failures() == 0) {
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 0, 0);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 1, 0);
        test_graph(&of, &all, WEFT_EP_SLOTS_SOURCE, 1, 0);
        test_graph(&of, &all, WEFT_EP_SLOTS_SOURCE, 1, 1);
        test_graph(&of, &all, WEFT_EP_RANK_MAJOR, 0, 1);
    }
#endif
    const bool is_few = ON_GPU || pe->pes <= FEW_PES;
    if (is_few && check_failures() == 0) {
        test_claims(&of, &all);
    }
    if (is_few && check_failures() == 0) {
        test_shared_claim(&of);
    }
    if (is_few && check_failures() == 0) {
        test_crossing(&of, &all);
    }
    for (int layout = 0; layout < 4 && is_few && check_failures() == 0; layout++) {
        if (!ep_is_slots((weft_ep_layout)layout)) {
            test_cached(&of, &all, (weft_ep_layout)layout);
        }
    }
    CHECK_OK(weft_barrier(of.world));
    arena_deregister(&all, of.world);
    if (pe->pes > 1 && check_failures() == 0) {
        test_absence(&of, &all);
    }
    CHECK_OK(weft_world_destroy(of.world));
    give_memory();
    arena_close(&all);
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("%d cases, %u calls:\n", cases, of.salt);
        ep_coverage_print();
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
