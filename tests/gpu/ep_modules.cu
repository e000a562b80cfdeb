/* Goal: two libraries of one process hold worlds with device heaps, of different members and sizes, each with a group
 * of expert parallelism. They are made and ended in any order; both groups' calls run at the same time, and that of the
 * world that lives longer goes on alone. A group that is not destroyed ends with its world, and the other's does not.
 *
 * Method: module A has two worlds of half the PEs each, by turns the lower and the upper half, and the even and the odd
 * ones; module B has one of all, numbered in reverse. All four orders. A step is a fresh dispatch and a combine of
 * tokens whose rows say module, world, rank and step; the host compares what came, and what came back. While both live
 * each module has a thread and a stream of its own. Usage: as support/launch.h says; -c: how many times all orders. */
#include "support/memory.h"
#undef CHECK
#undef CHECK_SAY

extern "C" {
#include "support/check.h"
#include "support/ep_group.h"
}
#include "weft_ep.h"

#define TIMES 2
#define STEPS (ON_GPU ? 40 : 4)
#define TOKENS 24
#define TOPK 2
#define HIDDEN_MAX 192
#define PES_A_GPU 2 /* up to which kernels of both modules may run beside each other: see ep/crossing.cuh */
#define MEMORY_BYTES ((size_t)1 << 20)
#define DEADLINE_NS UINT64_C(20000000000)

typedef struct module {
    int is_a;
    int part; /* of A's worlds which */
    int rank;
    int ranks;
    int hidden;
    int step; /* so far */
    test_pe pe; /* with a stream of its own */
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    float *received; /* of the device heap */
    unsigned char *memory; /* choices, tokens, sums */
    unsigned char *pinned;
} module;

/* ---- where threads meet ---- */

static pthread_mutex_t meetings_lock = PTHREAD_MUTEX_INITIALIZER;
static weft_threads *meetings[2][3]; /* of the ways to divide PEs: A's two worlds, B's */
static pthread_barrier_t threads_here;

/* The PEs of this process: what ends a world may wait for all kernels on a GPU, and keep those from being launched that
 * these wait for. */
static void meet_threads(void)
{
    (void)pthread_barrier_wait(&threads_here);
}

static int count_threads(const test_pe *pe)
{
    const char *processes = getenv("WEFT_LOCAL_PES");
    return pe->meeting != NULL || processes == NULL ? pe->pes : pe->pes / atoi(processes);
}

static void open_meeting(const test_pe *pe)
{
    static bool is_open;
    pthread_mutex_lock(&meetings_lock);
    if (!is_open) {
        is_open = pthread_barrier_init(&threads_here, NULL, (unsigned)count_threads(pe)) == 0;
    }
    pthread_mutex_unlock(&meetings_lock);
}

static weft_threads *meeting_of(const module *m, int way)
{
    weft_threads **meeting = &meetings[way][m->is_a ? m->part : 2];
    pthread_mutex_lock(&meetings_lock);
    if (*meeting == NULL) {
        CHECK_OK(weft_threads_create(m->ranks, meeting));
    }
    pthread_mutex_unlock(&meetings_lock);
    return *meeting;
}

/* ---- a module ---- */

static void find_place(module *m, int way)
{
    const int pe = m->pe.pe;
    const int pes = m->pe.pes;
    const int half = pes / 2;
    if (!m->is_a || pes == 1) {
        m->part = 0;
        m->rank = m->is_a ? pe : pes - 1 - pe;
        m->ranks = pes;
    } else if (way == 0) {
        m->part = pe >= half;
        m->rank = pe - m->part * half;
        m->ranks = m->part ? pes - half : half;
    } else {
        m->part = pe % 2;
        m->rank = pe / 2;
        m->ranks = (pes + 1 - m->part) / 2;
    }
}

static weft_ep_layout layout_of(const module *m, int way)
{
    return (weft_ep_layout)((m->is_a + 2 * way) % 4);
}

static void open_world(module *m, int way)
{
    char name[32];
    weft_world_config config = test_config(&m->pe, name);
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    snprintf(name, sizeof name, m->is_a ? "module A, %d %d" : "module B", way, m->part);
    config.pe = m->rank;
    config.pes = m->ranks;
    config.threads = m->pe.meeting == NULL ? NULL : meeting_of(m, way);
    if (!ON_GPU) {
        device.choice = WEFT_DEVICE_ORDINAL;
        device.ordinal = m->pe.gpu;
    }
    device.heap_max_bytes = (size_t)(m->is_a ? 96 : 160) << 20;
    device.heap_bytes = m->is_a ? (size_t)16 << 20 : 0; /* B's grows as its group needs */
    if (!CHECK_OK(weft_world_create(&config, &m->world)) || !CHECK_OK(weft_device_attach(m->world, &device))) {
        exit(1);
    }
    CHECK_OK(weft_device_deadline(m->world, DEADLINE_NS));
}

static void open_module(module *m, int way)
{
    void *block = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    find_place(m, way);
    open_world(m, way);
    if (m->memory == NULL) { /* the world brought the driver */
        m->memory = gpu_alloc(MEMORY_BYTES);
        m->pinned = gpu_alloc_pinned((size_t)m->pe.pes * TOKENS * TOPK * HIDDEN_MAX * sizeof(float) + MEMORY_BYTES);
    }
    m->hidden = m->is_a ? HIDDEN_MAX : HIDDEN_MAX / 2;
    config.experts = 2 * m->ranks;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = (size_t)m->hidden * sizeof(float);
    config.on_device = 1;
    plan.topk = TOPK;
    plan.layout = layout_of(m, way);
    plan.sms = ON_GPU ? 24 / ((m->pe.pes + m->pe.gpus - 1) / m->pe.gpus) : 1;
    plan.sms += plan.sms == 0;
    CHECK_OK(weft_device_malloc(m->world, (size_t)m->ranks * TOKENS * TOPK * config.row_bytes_max, &block));
    if (block == NULL || !ep_group_open(m->world, &config, &plan, &m->ep, &m->route)) {
        exit(1);
    }
    m->received = (float *)block;
}

/* Its group too, if that is still there. */
static void close_module(module *m, bool is_orderly)
{
    CHECK_OK(weft_barrier(m->world)); /* nobody's kernels run */
    if (is_orderly) {
        ep_group_close(m->ep, m->route);
        CHECK_OK(weft_device_free(m->world, m->received));
    }
    CHECK_OK(weft_world_destroy(m->world));
}

/* ---- steps ---- */

static float value_of(const module *m, int rank, int token)
{
    return (float)(((m->step * 2 + m->is_a) * 2 + m->part) * 1024 + rank * 32 + token + 1);
}

static int32_t expert_of(const module *m, int rank, int token, int k)
{
    const int experts = 2 * m->ranks;
    const int first = (m->step * 7 + rank * 5 + token * 3) % experts;
    return (int32_t)(k == 0 ? first : (first + 1 + token % (experts - 1)) % experts);
}

/* How often a token goes to a rank: with one row a choice, or one a rank. */
static int copies_to(const module *m, int rank, int token, int to, bool by_expert)
{
    const int copies = (expert_of(m, rank, token, 0) / 2 == to) + (expert_of(m, rank, token, 1) / 2 == to);
    return by_expert || copies < 2 ? copies : 1;
}

static void check_received(module *m, bool by_expert, size_t capacity, bool has_gaps)
{
    const float *rows = (const float *)m->pinned;
    int wanted = 0;
    int found = 0;
    gpu_copy(&m->pe, m->pinned, m->received, capacity * (size_t)m->hidden * sizeof(float));
    double sum = 0;
    double wanted_sum = 0;
    for (int rank = 0; rank < m->ranks; rank++) {
        for (int token = 0; token < TOKENS; token++) {
            const int copies = copies_to(m, rank, token, m->rank, by_expert);
            wanted += copies;
            wanted_sum += (double)copies * value_of(m, rank, token);
        }
    }
    for (size_t row = 0; row < (has_gaps ? capacity : (size_t)wanted); row++) {
        const float value = rows[row * (size_t)m->hidden];
        bool is_whole = value >= 0; /* else none came */
        for (int i = 1; is_whole && i < m->hidden; i++) {
            is_whole = rows[row * (size_t)m->hidden + (size_t)i] == value;
        }
        found += is_whole;
        sum += is_whole ? value : 0;
    }
    check_that(found == wanted && sum == wanted_sum, __FILE__, __LINE__,
               "module %c, rank %d of %d, step %d: %d rows whose sum is %.0f, not %d and %.0f", m->is_a ? 'A' : 'B',
               m->rank, m->ranks, m->step, found, sum, wanted, wanted_sum);
}

static void check_sums(module *m, const float *sums, bool by_expert)
{
    const float *out = (const float *)m->pinned;
    int wrong = 0;
    gpu_copy(&m->pe, m->pinned, sums, (size_t)TOKENS * (size_t)m->hidden * sizeof *sums);
    for (int token = 0; token < TOKENS; token++) {
        int copies = 0;
        for (int to = 0; to < m->ranks; to++) {
            copies += copies_to(m, m->rank, token, to, by_expert);
        }
        for (int i = 0; i < m->hidden; i++) {
            wrong += out[token * m->hidden + i] != (float)copies * value_of(m, m->rank, token);
        }
    }
    check_that(wrong == 0, __FILE__, __LINE__, "module %c, rank %d of %d, step %d: %d elements came back wrong",
               m->is_a ? 'A' : 'B', m->rank, m->ranks, m->step, wrong);
}

static void run_step(module *m, weft_ep_layout layout)
{
    test_pe *pe = &m->pe;
    const bool by_expert = layout == WEFT_EP_EXPERT_MAJOR || layout == WEFT_EP_SLOTS_EXPERT;
    const bool has_gaps = layout == WEFT_EP_SLOTS_SOURCE || layout == WEFT_EP_SLOTS_EXPERT;
    const size_t capacity = (size_t)m->ranks * TOKENS * (by_expert ? TOPK : 1);
    int32_t *ids = (int32_t *)m->memory;
    float *tokens = (float *)(m->memory + 4096);
    float *sums = tokens + TOKENS * HIDDEN_MAX;
    int32_t *image = (int32_t *)m->pinned;
    float *rows = (float *)(m->pinned + 4096);
    for (int i = 0; i < TOKENS * TOPK; i++) {
        image[i] = expert_of(m, m->rank, i / TOPK, i % TOPK);
    }
    for (int i = 0; i < TOKENS * m->hidden; i++) {
        rows[i] = value_of(m, m->rank, i / m->hidden);
    }
    gpu_copy(pe, ids, image, TOKENS * TOPK * sizeof *ids);
    gpu_copy(pe, tokens, rows, (size_t)TOKENS * (size_t)m->hidden * sizeof *rows);
    gpu_set(pe, m->received, 0xff, capacity * (size_t)m->hidden * sizeof(float)); /* no number */
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    const weft_ep_rows in = ep_rows(tokens, WEFT_EP_F32, m->hidden);
    const weft_ep_rows out = ep_rows(sums, WEFT_EP_F32, m->hidden);
    choices.tokens = TOKENS;
    choices.ids = ids;
    received.rows = ep_rows(m->received, WEFT_EP_F32, m->hidden);
    received.rows_capacity = capacity;
    CHECK_OK(weft_ep_route_choose(m->route, &choices));
    CHECK_OK(weft_ep_dispatch(m->route, &in, &received, gpu_stream_of(pe)));
    check_received(m, by_expert, capacity, has_gaps);
    CHECK_OK(weft_ep_combine(m->route, &received.rows, &out, 0, gpu_stream_of(pe)));
    check_sums(m, sums, by_expert);
    m->step++;
}

typedef struct work {
    module *of;
    int way;
} work;

static void *run_steps(void *argument)
{
    const work *all = (const work *)argument;
    module *m = all->of;
    check_as_pe(m->pe.pe);
#if ON_GPU
    gpu_check(cudaSetDevice(m->pe.gpu), "cudaSetDevice");
#endif
    for (int i = 0; i < STEPS && check_failures() == 0; i++) {
        run_step(m, layout_of(m, all->way));
    }
    return NULL;
}

/* ---- all orders ---- */

static void run_both(module modules[2], int way, bool are_beside)
{
    work all[2] = {{&modules[0], way}, {&modules[1], way}};
    if (!are_beside) {
        for (int i = 0; i < STEPS && check_failures() == 0; i++) {
            run_step(&modules[0], layout_of(&modules[0], way));
            run_step(&modules[1], layout_of(&modules[1], way));
        }
        return;
    }
    pthread_t handles[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&handles[i], NULL, run_steps, &all[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(handles[i], NULL);
    }
}

static void run_order(test_pe *pe, module modules[2], int way, int order, bool is_orderly)
{
    const int first = order & 1; /* to be made */
    const int last = order >> 1 & 1; /* to end */
    for (int i = 0; i < 2; i++) {
        modules[i].is_a = i == 0;
        modules[i].step = 0;
    }
    open_module(&modules[first], way);
    open_module(&modules[1 - first], way);
    meet_threads();
    run_both(modules, way, !ON_GPU || pe->pes <= PES_A_GPU * pe->gpus);
    meet_threads();
    close_module(&modules[1 - last], is_orderly);
    meet_threads();
    work alone = {&modules[last], way};
    (void)run_steps(&alone);
    meet_threads();
    close_module(&modules[last], is_orderly);
    meet_threads();
}

static void test_body(test_pe *pe)
{
    module modules[2] = {};
    const int times = pe->cases > 0 ? pe->cases : TIMES;
    check_as_pe(pe->pe);
    open_meeting(pe);
    for (int i = 0; i < 2; i++) {
        modules[i].pe = *pe;
#if ON_GPU
        gpu_check(cudaStreamCreateWithFlags(&modules[i].pe.stream, cudaStreamNonBlocking), "cudaStreamCreate");
#endif
    }
    for (int i = 0; i < 4 * times; i++) {
        run_order(pe, modules, i / 4 % 2, i % 4, i % 3 != 2);
    }
    for (int i = 0; i < 2; i++) {
#if ON_GPU
        gpu_check(cudaStreamDestroy(modules[i].pe.stream), "cudaStreamDestroy");
#endif
        gpu_free(modules[i].memory);
        gpu_free_pinned(modules[i].pinned);
    }
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("two modules, %d PEs: %d orders, %d steps each while both lived and as many alone\n", pe->pes, 4 * times,
               STEPS);
    }
}

int main(int argc, char **argv)
{
    const int result = test_main(argc, argv);
    for (int i = 0; i < 6; i++) {
        weft_threads_destroy(meetings[i / 3][i % 3]);
    }
    return result;
}
