/* device/barriers.cuh: barrier and sync over teams, at mixed scopes, also in a captured graph. */
#ifndef DEVICE_BARRIERS_CUH
#define DEVICE_BARRIERS_CUH

#include "device/atomics.cuh"

/* steps barriers; before each, a word is put to every member, after each all words must be there. */
template <int KIND>
__global__ void barrier_kernel(const __grid_constant__ weft_dev_team team, uint64_t *words, uint64_t first, int steps,
                               int *status)
{
    weft_scope scope = scope_of<KIND>();
    int bad = WEFT_OK;
    int wrong = WEFT_OK;
    if (scope.rank == 0) {
        *status = WEFT_OK;
    }
    for (int step = 0; step < steps && bad == WEFT_OK; step++) {
        if (scope.rank == 0) {
            for (int i = 0; i < team.pes; i++) {
                (void)weft_dev_p(team.world, words + team.pe, first + (uint64_t)step, wefti_dev_member(team, i));
            }
        }
        bad = weft_dev_barrier(scope, team);
        for (int i = (int)scope.rank; i < team.pes && bad == WEFT_OK; i += (int)scope.size) {
            if (wefti_ld_relaxed((const wefti_u64 *)words + i) != first + (uint64_t)step) {
                wrong = -1000 - i; /* this thread's alone: it goes on with the others */
            }
        }
        bad = bad == WEFT_OK ? weft_dev_sync(scope, team) : bad;
    }
    if (bad != WEFT_OK || wrong != WEFT_OK) { /* behind a barrier, so that it comes after the first store */
        *status = bad != WEFT_OK ? bad : wrong;
    }
}

template <int KIND> __global__ void sync_kernel(const __grid_constant__ weft_dev_team team, int *status)
{
    *status = weft_dev_sync(scope_of<KIND>(), team);
}

static void run_barriers(test_pe *pe, bench *all, weft_team *team, uint64_t first, int mixed)
{
    weft_dev_team dev;
    OK(pe, weft_team_dev(team, &dev));
    for (int round = 0; round < KINDS; round++) {
        int kind = mixed ? (round + pe->pe) % KINDS : round;
        LAUNCH_KIND(barrier_kernel, kind, pe, 0, dev, all->words, first + (uint64_t)round * 1000, ON_GPU ? 100 : 20,
                    all->status);
        int status = read_status(pe, all->world, all->status);
        CHECK_SAY(pe, status == WEFT_OK, "scope %d: %d", kind, status);
    }
}

static void test_barriers(test_pe *pe, bench *all)
{
    pe->stage = "barrier of the world";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    run_barriers(pe, all, weft_team_world(all->world), 1, 0);
    pe->stage = "barrier, mixed scopes";
    run_barriers(pe, all, weft_team_world(all->world), 100001, 1);
    if (pe->pes < 3) {
        return;
    }
    pe->stage = "barrier of teams";
    weft_team *odd = NULL;
    weft_team *listed = NULL;
    OK(pe, weft_team_split_strided(weft_team_world(all->world), 1, 2, pe->pes / 2, &odd));
    int members[64];
    int count = 0;
    for (int i = 0; i < pe->pes; i++) {
        int member = (i * 2 + 1) % pe->pes; /* an order without a rule */
        members[count++] = pe->pes % 2 ? member : (i + pe->pes - 1) % pe->pes;
    }
    OK(pe, weft_team_create(weft_team_world(all->world), members, count, &listed));
    OK(pe, weft_barrier(all->world));
    if (odd != NULL) {
        run_barriers(pe, all, odd, 200001, 0);
    }
    OK(pe, weft_barrier(all->world));
    run_barriers(pe, all, listed, 300001, 1);
    OK(pe, weft_team_destroy(listed));
    if (odd != NULL) {
        OK(pe, weft_team_destroy(odd));
    }
    OK(pe, weft_barrier(all->world));
}

/* A captured graph is replayed: nothing that changes from step to step may be in its arguments. */
static void test_graph(test_pe *pe, bench *all)
{
#if ON_GPU
    pe->stage = "graph";
    weft_dev_team team;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(pe, weft_team_dev(weft_team_world(all->world), &team));
    GPU(pe, cudaStreamBeginCapture(pe->stream, cudaStreamCaptureModeThreadLocal));
    LAUNCH(sync_kernel<WEFTI_SCOPE_BLOCK>, 1, 64, 0, pe, team, all->status);
    LAUNCH(add_kernel, 1, 1, 0, pe, all->dev, all->words, (float *)(all->words + 8), 1);
    LAUNCH(sync_kernel<WEFTI_SCOPE_THREAD>, 1, 1, 0, pe, team, all->status + 1);
    GPU(pe, cudaStreamEndCapture(pe->stream, &graph));
    GPU(pe, cudaGraphInstantiate(&exec, graph, 0));
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    for (int i = 0; i < 1000; i++) {
        GPU(pe, cudaGraphLaunch(exec, pe->stream));
    }
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    CHECK(pe, read_status(pe, all->world, all->status + 1) == WEFT_OK);
    uint64_t sum = 0;
    OK(pe, weft_uint64_g(all->world, all->words, pe->pe, &sum)); /* the last sync has ended: all adds are there */
    CHECK_SAY(pe, sum == UINT64_C(1000) * (uint64_t)(pe->pes * (pe->pes + 1) / 2), "%llu", (unsigned long long)sum);
    GPU(pe, cudaGraphExecDestroy(exec));
    GPU(pe, cudaGraphDestroy(graph));
    OK(pe, weft_barrier(all->world));
#else
    (void)pe;
    (void)all;
#endif
}

#endif
