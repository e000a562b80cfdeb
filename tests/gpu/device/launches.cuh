/* device/launches.cuh: users' kernels that wait, and the multiprocessors they claim. */
#ifndef DEVICE_LAUNCHES_CUH
#define DEVICE_LAUNCHES_CUH

#include "support/bench.h"

#if ON_GPU
/* Every block waits for all others, 2 s at most. */
static __global__ void meet_kernel(unsigned *come, unsigned *met)
{
    if (threadIdx.x == 0) {
        unsigned long long start = wefti_time_ns();
        atomicAdd(come, 1);
        while (wefti_ld_acquire(come) < gridDim.x && wefti_time_ns() - start < 2000000000u) {
        }
        if (wefti_ld_acquire(come) == gridDim.x) {
            atomicAdd(met, 1);
        }
    }
}

/* As many blocks as the query says do run together. */
static void check_launch(test_pe *pe, bench *all, const weft_kernel *kernel, weft_launch launch, int blocks)
{
    unsigned *words = NULL;
    unsigned seen[2] = {0, 0};
    unsigned *met = NULL;
    void *arguments[] = {&words, &met};
    GPU(pe, cudaMalloc((void **)&words, sizeof seen));
    GPU(pe, cudaMemset(words, 0, sizeof seen));
    met = words + 1;
    OK(pe, weft_device_launch(all->world, kernel, &launch, arguments, (weft_stream *)pe->stream));
    finish(pe);
    GPU(pe, cudaMemcpy(seen, words, sizeof seen, cudaMemcpyDeviceToHost));
    CHECK_SAY(pe, (int)seen[0] == blocks && (int)seen[1] == blocks, "%u came, %u met, of %d", seen[0], seen[1], blocks);
    GPU(pe, cudaFree(words));
}
#endif

static void test_launches(test_pe *pe, bench *all)
{
    weft_launch launch = WEFT_LAUNCH_INIT;
    int blocks = -1;
    int fewer = -1;
    int sms = 0;
    pe->stage = "launches";
#if ON_GPU
    cudaFunction_t function = NULL;
    GPU(pe, cudaGetFuncBySymbol(&function, (const void *)meet_kernel));
    const weft_kernel *kernel = (const weft_kernel *)function;
#else
    const weft_kernel *kernel = (const weft_kernel *)all; /* the fake driver looks at the shape only */
#endif
    CHECK(pe,
          weft_device_launch_query(all->world, kernel, &launch, &blocks, &sms) == WEFT_ERR_ARGUMENT); /* no thread */
    launch.threads = 256;
    CHECK(pe, weft_device_launch_query(all->world, NULL, &launch, &blocks, &sms) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_device_launch_query(all->world, kernel, &launch, NULL, &sms) == WEFT_ERR_ARGUMENT);
    launch.size = 3;
    CHECK(pe, weft_device_launch(all->world, kernel, &launch, NULL, NULL) == WEFT_ERR_ARGUMENT);
    launch.size = sizeof launch;
    CHECK(pe, blocks == -1 && sms == 0);
    OK(pe, weft_barrier(all->world));
    if (pe->pe == 0) { /* what others on its GPU claim counts for it */
        OK(pe, weft_device_launch_query(all->world, kernel, &launch, &blocks, &sms));
        CHECK_SAY(pe, blocks >= 1 && sms >= 1 && blocks % sms == 0, "%d blocks on %d", blocks, sms);
        OK(pe, weft_device_sms_take(all->world, 1));
        OK(pe, weft_device_launch_query(all->world, kernel, &launch, &fewer, &sms));
        CHECK(pe, fewer == blocks - blocks / (sms + 1));
        OK(pe, weft_device_sms_give(all->world, 1));
        launch.blocks = 1 << 20;
        CHECK(pe, weft_device_launch(all->world, kernel, &launch, NULL, NULL) == WEFT_ERR_RANGE);
        launch.blocks = 0;
#if ON_GPU
        check_launch(pe, all, kernel, launch, blocks);
#endif
    }
    OK(pe, weft_barrier(all->world));
}

#endif
