/* Goal: a group on GPUs whose ranks do not have all in common. Rows that are received in memory which the other ranks
 * have not mapped, or have mapped in part, come all the same. A rank that was masked and comes late does not write
 * where the others said before. With GPUs also: a call whose own blocks come a deadline late is right; and a fault that
 * another kernel latched ends it.
 *
 * Method: each case is a group of its own, with few tokens, all of which go to the next rank, and rows that say whose
 * they are. As processes only do PEs lack mappings. A kernel that only spins takes multiprocessors away. Usage: as
 * support/launch.h says. */
#include "support/memory.h"
#undef CHECK
#undef CHECK_SAY

extern "C" {
#include "support/check.h"
#include "support/ep_group.h"
}
#include "weft_ep.h"

#define TOKENS 64
#define HIDDEN 512
#define ROWS_MAX (2 * TOKENS) /* with room */
#define ROW_BYTES (HIDDEN * sizeof(float))
#define DEADLINE_NS UINT64_C(20000000000)

typedef struct scene {
    test_pe *pe;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    unsigned char *plain; /* device memory: choices, then rows of tokens, and what comes back */
    unsigned char *pinned;
    int32_t *ids;
    float *tokens;
    float *sums;
    int has_fault; /* what ends may say so */
} scene;

static void expect_end(const scene *of, weft_status status)
{
    check_that(status == WEFT_OK || of->has_fault, __FILE__, __LINE__, "%s", weft_last_error());
}

static weft_ep_rows rows_at(void *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_ep_received received_at(void *data)
{
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_at(data);
    received.rows_capacity = ROWS_MAX;
    return received;
}

static weft_ep_choices choices_of(const scene *of)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = of->ids;
    return choices;
}

static float value_of(int rank, int token, int salt)
{
    return (float)(100000 * salt + 1000 * rank + token);
}

/* All tokens go to the next rank. */
static void open_scene(scene *of, weft_team *team, weft_ep_layout layout)
{
    test_pe *pe = of->pe;
    const int ranks = weft_team_pes(team);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = ranks;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = ROW_BYTES;
    config.on_device = 1;
    plan.topk = 1;
    plan.layout = layout;
    CHECK_OK(weft_ep_create(team, &config, &of->ep));
    CHECK_OK(weft_ep_route_create(of->ep, &plan, NULL, &of->route));
    of->ids = (int32_t *)of->plain;
    of->tokens = (float *)(of->plain + 4096);
    of->sums = of->tokens + (size_t)TOKENS * HIDDEN;
    int32_t *ids = (int32_t *)of->pinned;
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (weft_team_pe(team) + 1) % ranks;
    }
    gpu_copy(pe, of->ids, ids, TOKENS * sizeof *ids);
}

static void close_scene(scene *of)
{
    CHECK_OK(weft_barrier(of->world));
    ep_group_close(of->ep, of->route);
    CHECK_OK(weft_barrier(of->world));
}

static void fill_tokens(scene *of, int salt)
{
    float *image = (float *)of->pinned;
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        image[i] = value_of(of->pe->pe, i / HIDDEN, salt);
    }
    gpu_copy(of->pe, of->tokens, image, (size_t)TOKENS * ROW_BYTES);
}

/* The rows at `there` are those of `rank`, in order. */
static void expect_rows(scene *of, const void *there, int rank, int salt)
{
    float *image = (float *)of->pinned;
    int wrong = 0;
    gpu_copy(of->pe, image, there, (size_t)TOKENS * ROW_BYTES);
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        wrong += image[i] != value_of(rank, i / HIDDEN, salt);
    }
    check_that(wrong == 0, __FILE__, __LINE__, "%d elements are not those of rank %d in step %d", wrong, rank, salt);
}

static weft_status status_of(scene *of)
{
    weft_ep_host_counts counts = {};
    CHECK_OK(weft_ep_route_query(of->route, gpu_stream_of(of->pe), &counts));
    return counts.status;
}

/* ---- rows in memory of part of the group ---- */

/* A team of this PE alone. */
static weft_team *team_alone(scene *of)
{
    weft_team *alone = NULL;
    for (int pe = 0; pe < of->pe->pes; pe++) {
        weft_team *team = NULL;
        CHECK_OK(weft_team_split_strided(weft_team_world(of->world), pe, 1, 1, &team));
        alone = pe == of->pe->pe ? team : alone;
    }
    return alone;
}

#define PART_BYTES ((size_t)24 << 20) /* more than the heap of all has */

/* Memory of this PE alone: of its heap, or registered. */
static void *open_part(weft_team *alone, int is_registered)
{
    void *own = NULL;
    if (is_registered) {
        own = gpu_alloc(PART_BYTES);
        CHECK_OK(weft_device_team_register(alone, own, PART_BYTES));
    } else {
        CHECK_OK(weft_device_team_malloc(alone, PART_BYTES, &own));
    }
    return own;
}

static void close_part(weft_team *alone, int is_registered, void *own)
{
    if (is_registered) {
        CHECK_OK(weft_device_team_unregister(alone, own));
        gpu_free(own);
    } else {
        CHECK_OK(weft_device_team_free(alone, own));
    }
}

/* Memory that this PE alone has made symmetric, in which it receives rows, and their gradients: even ranks; the others
 * in memory of all. */
static void test_part(scene *of, weft_ep_layout layout, int is_registered, void *common, weft_team *alone)
{
    test_pe *pe = of->pe;
    open_scene(of, weft_team_world(of->world), layout);
    void *own = pe->pe % 2 == 0 ? open_part(alone, is_registered) : NULL;
    void *there = own != NULL ? (unsigned char *)own + PART_BYTES - ROWS_MAX * ROW_BYTES : common;
    const weft_ep_received received = received_at(there);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_rows out = rows_at(of->sums);
    const weft_ep_choices choices = choices_of(of);
    for (int salt = 1; salt < 4; salt++) {
        fill_tokens(of, salt);
        CHECK_OK(weft_ep_route_choose(of->route, &choices));
        CHECK_OK(weft_ep_dispatch(of->route, &in, &received, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, there, (pe->pe + pe->pes - 1) % pe->pes, salt);
        CHECK_OK(weft_ep_combine(of->route, &received.rows, &out, 0, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, of->sums, pe->pe, salt);
        gpu_set(pe, there, 0x5a, (size_t)TOKENS * ROW_BYTES);
        CHECK_OK(weft_ep_combine_bwd(of->route, &in, NULL, &received.rows, NULL, 0, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, there, (pe->pe + pe->pes - 1) % pe->pes, salt);
    }
    if (own != NULL) {
        close_part(alone, is_registered, own);
    }
    close_scene(of);
}

#define MAPPED_BYTES ((uintptr_t)2 << 20) /* heaps are mapped in multiples of it */
#define ROWS_BEFORE 3

/* Gradients whose first rows lie in what all ranks have mapped and whose last do not, wherever the border is in memory
 * of this PE alone. How many rows there will be the host does not know: they all come. */
static void test_border(scene *of, void *common, weft_team *alone)
{
    test_pe *pe = of->pe;
    open_scene(of, weft_team_world(of->world), WEFT_EP_RANK_MAJOR);
    unsigned char *own = pe->pe % 2 == 0 ? (unsigned char *)open_part(alone, 0) : NULL;
    const weft_ep_received received = received_at(common);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_choices choices = choices_of(of);
    fill_tokens(of, 1);
    CHECK_OK(weft_ep_route_choose(of->route, &choices));
    CHECK_OK(weft_ep_dispatch(of->route, &in, &received, gpu_stream_of(pe)));
    CHECK_STATUS(status_of(of), WEFT_OK);
    for (size_t i = 0; i + 1 < PART_BYTES / MAPPED_BYTES; i++) {
        unsigned char *border = (unsigned char *)(((uintptr_t)own / MAPPED_BYTES + 1 + i) * MAPPED_BYTES);
        unsigned char *there = border - ROWS_BEFORE * ROW_BYTES;
        void *to = own == NULL || there < own ? common : there;
        const weft_ep_rows grads = rows_at(to);
        gpu_set(pe, to, 0x5a, (size_t)TOKENS * ROW_BYTES);
        CHECK_OK(weft_ep_combine_bwd(of->route, &in, NULL, &grads, NULL, 0, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, to, (pe->pe + pe->pes - 1) % pe->pes, 1);
    }
    if (own != NULL) {
        close_part(alone, 0, own);
    }
    close_scene(of);
}

/* ---- a rank that is masked and comes late ---- */

#define LATE_DEADLINE_NS UINT64_C(400000000)

static void dispatch(const scene *of, const weft_ep_rows *in, const weft_ep_received *received, int is_halves)
{
    weft_stream *stream = gpu_stream_of(of->pe);
    if (is_halves) {
        CHECK_OK(weft_ep_dispatch_send(of->route, in, received, stream));
        CHECK_OK(weft_ep_dispatch_recv(of->route, stream));
    } else {
        CHECK_OK(weft_ep_dispatch(of->route, in, received, stream));
    }
}

/* The last rank comes to a dispatch that the others have given up, in halves, or on the routing of one before, and its
 * rows would go to the first, in place or through the group's memory. */
static void test_late(scene *of, weft_ep_layout layout, int is_halves, int is_cached, void *there)
{
    test_pe *pe = of->pe;
    const int late = pe->pes - 1;
    const size_t bytes = ROWS_MAX * ROW_BYTES;
    weft_stream *stream = gpu_stream_of(pe);
    weft_ep_host_counts counts = {};
    open_scene(of, weft_team_world(of->world), layout);
    const weft_ep_received received = received_at(there);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_choices choices = choices_of(of);
    fill_tokens(of, 1);
    CHECK_OK(weft_ep_route_choose(of->route, &choices));
    if (is_cached) {
        dispatch(of, &in, &received, is_halves);
        CHECK_STATUS(status_of(of), WEFT_OK);
    }
    gpu_set(pe, there, 0x5a, bytes);
    CHECK_OK(weft_device_deadline(of->world, LATE_DEADLINE_NS));
    CHECK_OK(weft_barrier(of->world));
    for (int round = 0; round < 2; round++) {
        if ((pe->pe == late) == (round == 1)) {
            dispatch(of, &in, &received, is_halves);
            CHECK_STATUS(weft_ep_route_query(of->route, stream, &counts), WEFT_ERR_TIMEOUT);
            CHECK_OK(weft_ep_mask(of->ep, pe->pe == late ? 0 : late, 0));
        }
        CHECK_OK(weft_barrier(of->world));
    }
    int wrong = 0;
    gpu_copy(pe, of->pinned, there, bytes);
    for (size_t i = 0; i < bytes; i++) {
        wrong += of->pinned[i] != 0x5a;
    }
    check_that(wrong == 0, __FILE__, __LINE__,
               "%d bytes were written by a masked rank, layout %d, halves %d, cached %d", wrong, (int)layout, is_halves,
               is_cached);
    CHECK_OK(weft_device_deadline(of->world, DEADLINE_NS));
    close_scene(of);
}

#if ON_GPU
/* ---- what other kernels of this GPU do to a call ---- */

#define SPIN_SHARED (200 << 10)

__global__ void spin_kernel(unsigned long long ns)
{
    const unsigned long long start = wefti_time_ns();
    while (wefti_time_ns() - start < ns) {
        wefti_rest(1000);
    }
}

__global__ void fault_kernel(weft_dev dev)
{
    (void)weft_dev_put(weft_thread(), dev, (void *)(dev.heap + dev.heap_bytes), (const void *)dev.heap, 16, dev.pe);
}

/* A spinning kernel has all multiprocessors but one for one and a half deadlines: the blocks that have begun wait for
 * the others, which are of the same rank. */
static void test_own_blocks(scene *of, weft_team *alone, void *there)
{
    test_pe *pe = of->pe;
    cudaStream_t other;
    cudaDeviceProp device;
    gpu_check(cudaGetDeviceProperties(&device, pe->gpu), "cudaGetDeviceProperties");
    gpu_check(cudaFuncSetAttribute(spin_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SPIN_SHARED), "attribute");
    gpu_check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
    open_scene(of, alone, WEFT_EP_RANK_MAJOR);
    const weft_ep_received received = received_at(there);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_choices choices = choices_of(of);
    fill_tokens(of, 1);
    CHECK_OK(weft_device_deadline(of->world, LATE_DEADLINE_NS));
    CHECK_OK(weft_ep_route_choose(of->route, &choices));
    const double start = now_s();
    spin_kernel<<<device.multiProcessorCount - 1, 1024, SPIN_SHARED, other>>>(LATE_DEADLINE_NS / 2 * 3);
    gpu_check(cudaGetLastError(), "spin_kernel");
    usleep(20000);
    CHECK_OK(weft_ep_dispatch(of->route, &in, &received, gpu_stream_of(pe)));
    CHECK_STATUS(status_of(of), WEFT_OK);
    CHECK_SAY(now_s() - start > 1e-9 * (double)LATE_DEADLINE_NS, "the call's blocks were not late");
    expect_rows(of, there, pe->pe, 1);
    gpu_check(cudaStreamDestroy(other), "cudaStreamDestroy");
    CHECK_OK(weft_device_deadline(of->world, DEADLINE_NS));
    close_scene(of);
}

/* Behind a kernel that latches a fault, a call that has nobody to wait for. The world's last case. */
static void test_fault(scene *of, weft_team *alone, void *there)
{
    test_pe *pe = of->pe;
    weft_dev dev;
    open_scene(of, alone, WEFT_EP_RANK_MAJOR);
    const weft_ep_received received = received_at(there);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_choices choices = choices_of(of);
    CHECK_OK(weft_world_dev(of->world, &dev));
    CHECK_OK(weft_ep_route_choose(of->route, &choices));
    spin_kernel<<<1, 1, 0, pe->stream>>>(50000000);
    fault_kernel<<<1, 1, 0, pe->stream>>>(dev);
    CHECK_OK(weft_ep_dispatch(of->route, &in, &received, gpu_stream_of(pe)));
    gpu_check(cudaStreamSynchronize(pe->stream), "the call behind the fault");
    CHECK_STATUS(weft_ep_failure(of->ep), WEFT_ERR_RANGE);
    of->has_fault = 1;
    expect_end(of, weft_ep_route_destroy(of->route));
    expect_end(of, weft_ep_destroy(of->ep));
}
#endif

/* ---- all ---- */

static void test_body(test_pe *pe)
{
    scene of = {};
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "apart", (size_t)256 << 20, (size_t)16 << 20);
    of.plain = gpu_alloc((size_t)2 << 20);
    of.pinned = gpu_alloc_pinned((size_t)2 << 20);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS));
    void *common = test_malloc(pe, of.world, ROWS_MAX * ROW_BYTES);
    weft_team *alone = team_alone(&of);
    for (int way = 0; way < 4; way++) {
        test_part(&of, way % 2 == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_EXPERT_MAJOR, way / 2, common, alone);
    }
    test_border(&of, common, alone);
    for (int way = 0; way < 8 && pe->pes > 1; way++) {
        test_late(&of, way % 2 == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_EXPERT_MAJOR, way / 2 % 2, way / 4, common);
    }
#if ON_GPU
    if (pe->pes <= pe->gpus) { /* a GPU a PE */
        test_own_blocks(&of, alone, common);
        CHECK_OK(weft_barrier(of.world));
        test_fault(&of, alone, common);
    }
#endif
    expect_end(&of, weft_team_destroy(alone));
    expect_end(&of, weft_world_destroy(of.world));
    gpu_free_pinned(of.pinned);
    gpu_free(of.plain);
    pe->failures += pe->pe == 0 && check_failures() != 0;
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
