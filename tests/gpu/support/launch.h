/* support/launch.h: kernels that run on a GPU, or, compiled by g++ with WEFT_DEVICE_ON_HOST, as functions of one
 * thread. And the PEs: processes under weftrun, else threads of this process, each with its own stream. */
#ifndef GPU_SUPPORT_LAUNCH_H
#define GPU_SUPPORT_LAUNCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weft.h"
#include "weft_device.cuh"

#ifdef WEFT_DEVICE_ON_HOST
#define __global__ static
#define __grid_constant__
typedef int gpu_stream;
#define LAUNCH(kernel, blocks, threads, shared, pe, ...) kernel(__VA_ARGS__)
#define ON_GPU 0
#else
#include <cuda.h>
typedef cudaStream_t gpu_stream;
#define LAUNCH(kernel, blocks, threads, shared, pe, ...)                                                               \
    do {                                                                                                               \
        kernel<<<blocks, threads, shared, (pe)->stream>>>(__VA_ARGS__);                                                \
        GPU((pe), cudaGetLastError());                                                                                 \
    } while (0)
#define ON_GPU 1
#define GPU(pe, call)                                                                                                  \
    do {                                                                                                               \
        cudaError_t gpu_error = (call);                                                                                \
        CHECK_SAY(pe, gpu_error == cudaSuccess, "%s: %s", #call, cudaGetErrorString(gpu_error));                       \
    } while (0)
#endif

/* A kernel whose parameter is the scope of its calls, launched as one such scope. `shared`: bytes. */
template <int KIND> WEFTI_DEVICE weft_scope scope_of()
{
#if ON_GPU
    return KIND == WEFTI_SCOPE_BLOCK ? weft_block() : KIND == WEFTI_SCOPE_WARP ? weft_warp() : weft_thread();
#else
    return weft_thread();
#endif
}

#define LAUNCH_KIND(kernel, kind, pe, shared, ...)                                                                     \
    do {                                                                                                               \
        if ((kind) == WEFTI_SCOPE_BLOCK) {                                                                             \
            LAUNCH(kernel<WEFTI_SCOPE_BLOCK>, 1, 192, shared, pe, __VA_ARGS__);                                        \
        } else if ((kind) == WEFTI_SCOPE_WARP) {                                                                       \
            LAUNCH(kernel<WEFTI_SCOPE_WARP>, 1, 32, shared, pe, __VA_ARGS__);                                          \
        } else {                                                                                                       \
            LAUNCH(kernel<WEFTI_SCOPE_THREAD>, 1, 1, shared, pe, __VA_ARGS__);                                         \
        }                                                                                                              \
    } while (0)

typedef struct test_pe {
    int pe;
    int pes;
    int gpu;
    int gpus;
    int threaded; /* other PEs are threads of this process */
    weft_threads *meeting; /* NULL: of a job of weftrun */
    gpu_stream stream;
    int failures;
    const char *stage;
    uint64_t seed; /* equal on all PEs */
    int cases; /* random cases asked for; 0: the program's own number */
} test_pe;

#define CHECK_SAY(context, condition, ...)                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            if ((context)->failures++ < 5) {                                                                           \
                fprintf(stderr, "PE %d, %s, line %d: %s: ", (context)->pe, (context)->stage, __LINE__, #condition);    \
                fprintf(stderr, __VA_ARGS__);                                                                          \
                fprintf(stderr, "\n");                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#define CHECK(context, condition) CHECK_SAY(context, condition, "no")
#define OK(context, call)                                                                                              \
    do {                                                                                                               \
        weft_status ok_status = (call);                                                                                \
        CHECK_SAY(context, ok_status == WEFT_OK, "%s: %s: %s", #call, weft_status_name(ok_status), weft_last_error()); \
    } while (0)

static inline void finish(test_pe *pe)
{
#if ON_GPU
    GPU(pe, cudaStreamSynchronize(pe->stream));
#else
    (void)pe;
#endif
}

/* Whether the PEs are of several nodes: 1 or more than 1. */
static inline int nodes_of(weft_world *world)
{
    return weft_team_pes(weft_team_node(world)) < weft_world_pes(world) ? 2 : 1;
}

/* A number that differs from call to call, equal on all PEs that make the same calls. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A world of all PEs. */
static inline weft_world_config test_config(const test_pe *pe, const char *name)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.name = name;
    config.heap_max_bytes = (size_t)64 << 20;
    if (getenv("WEFT_DEADLINE") == NULL) {
        config.deadline_ns = (pe->pes < 32 ? UINT64_C(20) : UINT64_C(240)) * 1000000000u;
    }
    config.bootstrap = pe->meeting != NULL ? WEFT_BOOTSTRAP_THREADS : WEFT_BOOTSTRAP_LOCAL;
    config.threads = pe->meeting;
    config.pe = pe->pe;
    config.pes = pe->pes;
    return config;
}

static inline weft_world *test_world(test_pe *pe, const char *name, size_t heap_max, size_t heap)
{
    weft_world *world = NULL;
    weft_world_config config = test_config(pe, name);
    OK(pe, weft_world_create(&config, &world));
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    if (!ON_GPU) {
        device.choice = WEFT_DEVICE_ORDINAL;
        device.ordinal = pe->gpu;
    }
    device.heap_max_bytes = heap_max;
    device.heap_bytes = heap;
    OK(pe, weft_device_attach(world, &device));
    return world;
}

/* The value of weft_device_malloc; fatal if there is none. */
static inline void *test_malloc(test_pe *pe, weft_world *world, size_t bytes)
{
    void *block = NULL;
    OK(pe, weft_device_malloc(world, bytes, &block));
    if (block == NULL) {
        fprintf(stderr, "PE %d, %s: no block of %zu bytes after %d failed checks\n", pe->pe, pe->stage, bytes,
                pe->failures);
        exit(1);
    }
    return block;
}

static void test_body(test_pe *pe);

static void *test_thread(void *argument)
{
    test_pe *pe = (test_pe *)argument;
#if ON_GPU
    GPU(pe, cudaSetDevice(pe->gpu));
    GPU(pe, cudaFree(0));
    GPU(pe, cudaStreamCreateWithFlags(&pe->stream, cudaStreamNonBlocking));
#endif
    test_body(pe);
#if ON_GPU
    GPU(pe, cudaStreamDestroy(pe->stream));
    GPU(pe, cudaGetLastError());
#endif
    return NULL;
}

/* Usage: NAME [-t THREADS] [-g GPUS] [-c CASES], or by weftrun, which multiplies the threads. Exit 77: no GPU. */
static inline int test_main(int argc, char **argv)
{
    int threads = 1;
    int gpus = 2;
    int limit = 0;
    int cases = 0;
    int option;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch must not wait for running kernels */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); /* nor one PE's launch, in a hardware queue, for another's kernel */
    while ((option = getopt(argc, argv, "t:g:c:")) != -1) {
        if (option == 't') {
            threads = atoi(optarg);
        } else if (option == 'g') {
            limit = atoi(optarg);
        } else if (option == 'c') {
            cases = atoi(optarg);
        } else {
            return 2;
        }
    }
#if ON_GPU
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("no GPU here\n");
        return 77;
    }
#endif
    gpus = limit > 0 && limit < gpus ? limit : gpus;
    const char *job_pe = getenv("WEFT_LOCAL_PE");
    const char *job_pes = getenv("WEFT_LOCAL_PES");
    const char *seed_text = getenv("WEFT_SEED");
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 10) : 1;
    int failures = 0;
    const int is_job = job_pe != NULL && job_pes != NULL;
    test_pe *all = (test_pe *)calloc((size_t)threads, sizeof *all);
    pthread_t *handles = (pthread_t *)calloc((size_t)threads, sizeof *handles);
    weft_threads *meeting = NULL;
    if (!is_job && weft_threads_create(threads, &meeting) != WEFT_OK) {
        return 1;
    }
    for (int i = 0; i < threads; i++) {
        all[i].pe = (is_job ? atoi(job_pe) * threads : 0) + i;
        all[i].pes = (is_job ? atoi(job_pes) : 1) * threads;
        all[i].gpu = all[i].pe % gpus;
        all[i].gpus = gpus;
        all[i].threaded = threads > 1;
        all[i].meeting = meeting;
        all[i].seed = seed;
        all[i].cases = cases;
        if (i > 0) {
            pthread_create(&handles[i], NULL, test_thread, &all[i]);
        }
    }
    test_thread(&all[0]);
    for (int i = 0; i < threads; i++) {
        if (i > 0) {
            pthread_join(handles[i], NULL);
        }
        failures += all[i].failures;
    }
    weft_threads_destroy(meeting);
    free(handles);
    free(all);
    if (failures > 0) {
        printf("%d checks FAILED\n", failures);
    }
    return failures > 0;
}

#endif
