/* ep/graph.cuh: a captured graph: a step of identity experts, replayed with new routing, T and data. */
#ifndef EP_GRAPH_CUH
#define EP_GRAPH_CUH

#include "ep/job.cuh"

#if ON_GPU

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

enum { GRAPH_LEAVES = 2 }; /* in place of `halves`: those whose rows leave with send */
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
    config.flags = halves == GRAPH_LEAVES && !ep_is_many(pe->pes) ? WEFT_EP_ROWS_WITH_SEND : 0;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = GRAPH_TOPK;
    plan.sms = 12;
    plan.layout = layout;
    if (!ep_group_open(of->world, &config, &plan, &ep, &route)) {
        return;
    }
    ep_told *told = (ep_told *)ep_told_take(sizeof *told);
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    arrays.generation = told->generations;
    arrays.rows = ep_told_take(2 * sizeof(wefti_i32));
    CHECK_OK(weft_ep_route_counts_to(route, &arrays));
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
    CHECK_OK(weft_ep_route_counts_wait(route, GRAPH_REPLAYS)); /* each launch makes a routing */
    CHECK(((const wefti_i32 *)arrays.rows)[GRAPH_REPLAYS % 2] == (wefti_i32)counts.rows);
    CHECK_OK(weft_ep_route_counts_to(route, NULL));
    ep_told_give(arrays.rows);
    ep_told_give(told);
    wefti_u32 seen[128] = {};
    arena_fetch(all, seen, memory, sizeof seen);
    check_that(seen[0] == GRAPH_REPLAYS && seen[64] == 0, __FILE__, __LINE__, "%u replays, %u wrong elements", seen[0],
               seen[64]);
    check_gpu(cudaGraphExecDestroy(exec), "test_graph");
    check_gpu(cudaGraphDestroy(graph), "test_graph");
    ep_group_close(ep, route);
}

#endif

#endif
