/* Goal: one group on GPUs makes calls without end, each of them right, also where epochs pass 2^31 and begin again
 * (WEFT_EP_FIRST_CALL), and ranks are far ahead of each other on the host.
 *
 * Method: steps of a fresh dispatch and a combine, in each layout by turns, on one stream that the host does not wait
 * for but now and then. Tokens hold small integers of the step, which float32 adds up exactly, and which a kernel
 * compares with what comes back, a token once for each rank (by expert: each choice) that had it; it counts what is
 * wrong. Usage: as support/launch.h says; -c: how many calls, 2 a step; WEFT_SEED. */
#include "support/memory.h"
#undef CHECK
#undef CHECK_SAY

extern "C" {
#include "support/check.h"
#include "support/ep_group.h"
}
#include "weft_ep.h"

#define CALLS (ON_GPU ? 4000 : 64)
#define SETS 8 /* of choices */
#define TOKENS 48
#define TOPK 4
#define HIDDEN 128
#define EXPERTS_A_RANK 2
#define ROW_BYTES (HIDDEN * sizeof(float))
#define IN_FLIGHT 256 /* steps between two looks */
#define DEADLINE_NS UINT64_C(20000000000)
#define LAYOUTS 4

typedef struct soak {
    test_pe *pe;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route[LAYOUTS];
    size_t capacity[LAYOUTS]; /* rows received */
    int32_t *ids; /* [SETS][TOKENS][TOPK]; these lie on the device */
    wefti_u32 *times; /* [2][SETS][TOKENS] how often a token comes back: by source, by expert */
    float *tokens;
    float *sums;
    wefti_u32 *wrong;
    void *received;
    unsigned char *memory;
    unsigned char *pinned;
} soak;

/* ---- kernels ---- */

#if ON_GPU
#define EACH(i, count)                                                                                                 \
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                                              \
    i < (count);                                                                                                       \
    i += (int)(gridDim.x * blockDim.x)
#define COUNT(at) atomicAdd(at, 1u)
#define RUN(kernel, pe, ...)                                                                                           \
    do {                                                                                                               \
        kernel<<<4, 256, 0, (pe)->stream>>>(__VA_ARGS__);                                                              \
        gpu_check(cudaGetLastError(), #kernel);                                                                        \
    } while (0)
#else
#define EACH(i, count)                                                                                                 \
    int i = 0;                                                                                                         \
    i < (count);                                                                                                       \
    i++
#define COUNT(at) (++*(at))
#define RUN(kernel, pe, ...) kernel(__VA_ARGS__)
#endif

WEFTI_DEVICE float soak_value(wefti_u32 step, int pe, int i)
{
    return (float)((step * 2654435761u + (wefti_u32)pe * 40503u + (wefti_u32)i * 97u) >> 16 & 0xfffu);
}

__global__ void fill_kernel(float *tokens, wefti_u32 step, int pe)
{
    for (EACH(i, TOKENS * HIDDEN)) {
        tokens[i] = soak_value(step, pe, i);
    }
}

__global__ void check_kernel(const float *sums, const wefti_u32 *times, wefti_u32 step, int pe, wefti_u32 *wrong)
{
    for (EACH(i, TOKENS * HIDDEN)) {
        if (sums[i] != (float)times[i / HIDDEN] * soak_value(step, pe, i)) {
            (void)COUNT(wrong);
        }
    }
}

/* ---- the group ---- */

static weft_ep_rows rows_at(void *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

/* Choices, some of them none, and how often each token comes back. */
static void draw_choices(soak *of)
{
    test_pe *pe = of->pe;
    uint64_t random = pe->seed * 1000 + (uint64_t)pe->pe;
    const unsigned experts = (unsigned)(EXPERTS_A_RANK * pe->pes);
    int32_t *ids = (int32_t *)of->pinned;
    wefti_u32 *times = (wefti_u32 *)(ids + SETS * TOKENS * TOPK);
    memset(times, 0, 2 * SETS * TOKENS * sizeof *times);
    for (int token = 0; token < SETS * TOKENS; token++) {
        uint64_t ranks = 0;
        for (int k = 0; k < TOPK; k++) {
            const int id = random_below(&random, 8) == 0 ? -1 : (int)random_below(&random, experts);
            ids[token * TOPK + k] = id;
            ranks |= id < 0 ? 0 : UINT64_C(1) << (id / EXPERTS_A_RANK);
            times[SETS * TOKENS + token] += id >= 0;
        }
        times[token] = (wefti_u32)__builtin_popcountll(ranks);
    }
    gpu_copy(pe, of->ids, ids, SETS * TOKENS * TOPK * sizeof *ids);
    gpu_copy(pe, of->times, times, 2 * SETS * TOKENS * sizeof *times);
}

static void *take(soak *of, size_t bytes)
{
    void *at = of->memory;
    of->memory += (bytes + 255) / 256 * 256;
    return at;
}

static void open_soak(soak *of)
{
    const int pes = of->pe->pes;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = EXPERTS_A_RANK * pes;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = ROW_BYTES;
    config.on_device = 1;
    CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &of->ep));
    for (int layout = 0; layout < LAYOUTS; layout++) {
        weft_ep_plan plan = WEFT_EP_PLAN_INIT;
        plan.topk = TOPK;
        plan.layout = (weft_ep_layout)layout;
        CHECK_OK(weft_ep_route_create(of->ep, &plan, NULL, &of->route[layout]));
        of->capacity[layout] = (size_t)pes * TOKENS *
                               (layout == WEFT_EP_EXPERT_MAJOR   ? TOPK
                                : layout == WEFT_EP_SLOTS_EXPERT ? EXPERTS_A_RANK
                                                                 : 1);
    }
    of->received = test_malloc(of->pe, of->world, (size_t)pes * TOKENS * TOPK * ROW_BYTES);
    of->ids = (int32_t *)take(of, SETS * TOKENS * TOPK * sizeof *of->ids);
    of->times = (wefti_u32 *)take(of, 2 * SETS * TOKENS * sizeof *of->times);
    of->tokens = (float *)take(of, TOKENS * ROW_BYTES);
    of->sums = (float *)take(of, TOKENS * ROW_BYTES);
    of->wrong = (wefti_u32 *)take(of, sizeof *of->wrong);
    gpu_set(of->pe, of->wrong, 0, sizeof *of->wrong);
    draw_choices(of);
    CHECK_OK(weft_barrier(of->world));
}

/* ---- steps ---- */

static void run_step(soak *of, int step)
{
    test_pe *pe = of->pe;
    const int layout = step % LAYOUTS;
    const int set = (step / LAYOUTS) % SETS;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_rows out = rows_at(of->sums);
    choices.tokens = TOKENS;
    choices.ids = of->ids + (size_t)set * TOKENS * TOPK;
    received.rows = rows_at(of->received);
    received.rows_capacity = of->capacity[layout];
    RUN(fill_kernel, pe, of->tokens, (wefti_u32)step, pe->pe);
    CHECK_OK(weft_ep_route_choose(of->route[layout], &choices));
    CHECK_OK(weft_ep_dispatch(of->route[layout], &in, &received, gpu_stream_of(pe)));
    CHECK_OK(weft_ep_combine(of->route[layout], &received.rows, &out, 0, gpu_stream_of(pe)));
    const int which = layout == WEFT_EP_RANK_MAJOR || layout == WEFT_EP_SLOTS_SOURCE ? 0 : 1;
    RUN(check_kernel, pe, of->sums, of->times + (which * SETS + set) * TOKENS, (wefti_u32)step, pe->pe, of->wrong);
}

static wefti_u32 wrong_so_far(soak *of)
{
    wefti_u32 *wrong = (wefti_u32 *)of->pinned;
    gpu_copy(of->pe, wrong, of->wrong, sizeof *wrong);
    return *wrong;
}

static void test_body(test_pe *pe)
{
    soak of = {};
    const int calls = pe->cases > 0 ? pe->cases : CALLS;
    const size_t bytes = (size_t)2 << 20;
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "soak", (size_t)256 << 20, (size_t)16 << 20);
    unsigned char *memory = of.memory = gpu_alloc(bytes);
    of.pinned = gpu_alloc_pinned(bytes);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS));
    open_soak(&of);
    for (int step = 0; step < calls / 2 && check_failures() == 0; step++) {
        run_step(&of, step);
        if (step % IN_FLIGHT == IN_FLIGHT - 1 || step == calls / 2 - 1) {
            const wefti_u32 wrong = wrong_so_far(&of);
            check_that(wrong == 0, __FILE__, __LINE__, "%u elements are wrong after %d steps, seed %llu", wrong,
                       step + 1, (unsigned long long)pe->seed);
        }
    }
    CHECK_OK(weft_barrier(of.world));
    for (int layout = 0; layout < LAYOUTS; layout++) {
        CHECK_OK(weft_ep_route_destroy(of.route[layout]));
    }
    CHECK_OK(weft_ep_destroy(of.ep));
    CHECK_OK(weft_world_destroy(of.world));
    gpu_free_pinned(of.pinned);
    gpu_free(memory);
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("%d calls, seed %llu\n", calls / 2 * 2, (unsigned long long)pe->seed);
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
