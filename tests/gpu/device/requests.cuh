/* device/requests.cuh: PEs that load and store do not reach: what a proxy carries, and its end. */
#ifndef DEVICE_REQUESTS_CUH
#define DEVICE_REQUESTS_CUH

#include <dirent.h>

#include "device/signals.cuh"
#include "device/words.cuh"

/* Many words, then a signal: all of one thread, so that who sees the signal sees them. */
__global__ void stream_of_words_kernel(const __grid_constant__ weft_dev dev, uint64_t *words, int count, uint64_t first,
                                       uint64_t *signal, int pe, int *status)
{
    int bad = WEFT_OK;
    for (int i = 0; i < count; i++) {
        bad |= weft_dev_p(dev, words + i, first + (uint64_t)i, pe);
    }
    bad |= weft_dev_signal(dev, signal, 1, WEFT_SIGNAL_ADD, pe);
    *status = bad;
}

/* More that is fetched at once than a ring of requests holds, where threads are many. */
__global__ void fetch_kernel(const __grid_constant__ weft_dev dev, uint64_t *sum, uint64_t *seen, int times, int pe,
                             int *status)
{
    uint64_t greatest = 0;
    for (int i = 0; i < times; i++) {
        uint64_t old = 0;
        if (weft_dev_atomic_fetch_add(dev, sum, (uint64_t)1, pe, &old) != WEFT_OK) {
            *status = WEFT_ERR_SYSTEM;
        }
        greatest = old > greatest ? old : greatest;
    }
    (void)weft_dev_atomic_add(dev, seen, greatest, dev.pe);
}

/* What a proxy carries to PEs that are far, and stores to those that are not: in order, and more than there is room
 * for. */
static void test_requests(test_pe *pe, bench *all)
{
    const int count = 500;
    const int blocks = ON_GPU ? 4 : 1;
    const int threads = ON_GPU ? 96 : 1;
    const int times = ON_GPU ? 3 : 400;
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    uint64_t *words = (uint64_t *)all->target;
    uint64_t *seen = (uint64_t *)malloc((size_t)count * sizeof *seen);
    pe->stage = "requests in order";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    for (uint64_t round = 1; round <= 3; round++) {
        LAUNCH(stream_of_words_kernel, 1, 1, 0, pe, all->dev, words, count, round * 1000 + (uint64_t)pe->pe, all->words,
               right, all->status);
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        OK(pe, weft_signal_wait_until(all->world, all->words, WEFT_CMP_EQ, round, NULL));
        OK(pe, weft_getmem(all->world, seen, words, (size_t)count * sizeof *seen, pe->pe));
        int wrong = 0;
        while (wrong < count && seen[wrong] == round * 1000 + (uint64_t)left + (uint64_t)wrong) {
            wrong++;
        }
        CHECK_SAY(pe, wrong == count, "word %d of round %d", wrong, (int)round);
        OK(pe, weft_barrier(all->world));
    }
    pe->stage = "requests that are answered";
    fill(pe, all->world, all->status, 0, 4096);
    LAUNCH(fetch_kernel, blocks, threads, 0, pe, all->dev, all->words + 16, all->words + 32, times, right, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_barrier(all->world));
    uint64_t sum = 0;
    OK(pe, weft_uint64_g(all->world, all->words + 16, pe->pe, &sum));
    CHECK_SAY(pe, sum == (uint64_t)(blocks * threads * times), "%llu", (unsigned long long)sum);
    OK(pe, weft_barrier(all->world));
    free(seen);
}

/* Data in one kind of memory and its signal in the other, from kernels. */
static void test_mixed_requests(test_pe *pe, bench *all)
{
    const size_t bytes = 20000;
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    uint64_t *signal = NULL;
    unsigned char *seen = (unsigned char *)malloc(bytes);
    pe->stage = "host memory signalled in device memory, and the other way round";
    OK(pe, weft_calloc(all->world, 1, 64, (void **)&signal));
    fill(pe, all->world, all->words, 0, 8192);
    fill(pe, all->world, all->target, 0, bytes);
    fill(pe, all->world, all->source, pe->pe + 1, bytes);
    memset(all->host_target, 0, bytes);
    OK(pe, weft_barrier(all->world));
    LAUNCH((put_signal_kernel), 1, 1, 0, pe, all->dev, all->host_target, all->source, (wefti_u64)bytes, all->words,
           right, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_signal_wait_until(all->world, all->words, WEFT_CMP_EQ, 1, NULL));
    CHECK(pe, all->host_target[0] == left + 1 && all->host_target[bytes - 1] == left + 1);
    LAUNCH((put_signal_kernel), 1, 1, 0, pe, all->dev, all->target, all->source, (wefti_u64)bytes, signal, right,
           all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_signal_wait_until(all->world, signal, WEFT_CMP_EQ, 1, NULL));
    OK(pe, weft_getmem(all->world, seen, all->target, bytes, pe->pe));
    CHECK(pe, seen[0] == left + 1 && seen[bytes - 1] == left + 1);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_free(all->world, signal));
    free(seen);
}

/* A far PE that has left the world answers nothing: it is told at once, not at the deadline. */
static void test_gone(test_pe *pe)
{
    bench all;
    int culprit = -2;
    pe->stage = "a far PE that has left";
    bench_open(pe, &all, test_world(pe, "gone", 0, 0));
    OK(pe, weft_barrier(all.world));
    if (pe->pe != pe->pes - 1 && is_far(&all, pe->pes - 1)) {
        usleep(300000);
        LAUNCH((g_kernel<uint64_t>), 1, 1, 0, pe, all.dev, all.words, pe->pes - 1, all.words + 1, all.status);
        int status = read_status(pe, all.world, all.status);
        CHECK_SAY(pe, status == WEFT_ERR_PEER, "%d", status);
        CHECK(pe, weft_world_fault(all.world, &culprit) == WEFT_ERR_PEER && culprit == pe->pes - 1);
        CHECK(pe, weft_barrier(all.world) == WEFT_ERR_PEER);
    }
    OK(pe, weft_world_destroy(all.world));
}

/* A PE has a thread more only when another is far. */
static void test_threads(test_pe *pe, const bench *all)
{
    int count = 0;
    pe->stage = "threads of the library";
    if (pe->threaded || ON_GPU ||
        nodes_of(all->world) > 1) { /* other PEs, CUDA and networks have threads of their own */
        return;
    }
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    CHECK_SAY(pe, count == (all->dev.far_count > 0 ? 2 : 1), "%d, and %u PEs are far", count, all->dev.far_count);
}

#endif
