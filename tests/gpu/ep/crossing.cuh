/* ep/crossing.cuh: two groups side by side. */
#ifndef EP_CROSSING_CUH
#define EP_CROSSING_CUH

#include "ep/job.cuh"

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

#endif
