/* Goal: every device call does what the same call does on the host backend, at every scope, for all types, odd sizes
 * and alignments; waits end at their deadline; what changes lies in memory, so that graphs can be replayed. Method:
 * each PE runs kernels that access every other PE; the reference is the host's own call on the host heap of the same
 * world, or arithmetic. Buffers are poisoned first, and bytes beside the target are checked. Compiled by g++ too
 * (WEFT_DEVICE_ON_HOST), where a kernel is one thread and device memory is a memory file. */
#include "device/atomics.cuh"
#include "device/barriers.cuh"
#include "device/copies.cuh"
#include "device/faults.cuh"
#include "device/growth.cuh"
#include "device/heap.cuh"
#include "device/launches.cuh"
#include "device/registration.cuh"
#include "device/requests.cuh"
#include "device/signals.cuh"
#include "device/strided.cuh"
#include "device/words.cuh"

/* The host's calls on device memory. */
static void test_from_host(test_pe *pe, bench *all)
{
    pe->stage = "from the host";
    uint64_t *words = all->words;
    uint32_t *half = (uint32_t *)(all->words + 64);
    double *real = (double *)(all->words + 128);
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    uint64_t old = 1;
    uint32_t old32 = 1;
    double seen = 0;
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_atomic_fetch_add(all->world, words, 5, right, &old));
    CHECK(pe, old == 0);
    OK(pe, weft_uint64_atomic_compare_swap(all->world, words, 5, 9, right, &old));
    CHECK(pe, old == 5);
    OK(pe, weft_uint64_atomic_compare_swap(all->world, words, 5, 11, right, &old));
    CHECK(pe, old == 9);
    OK(pe, weft_uint64_atomic_swap(all->world, words, 0xf0, right, &old));
    CHECK(pe, old == 9);
    OK(pe, weft_uint64_atomic_fetch_xor(all->world, words, 0xff, right, &old));
    CHECK(pe, old == 0xf0);
    OK(pe, weft_uint64_atomic_fetch_or(all->world, words, 0xf00, right, &old));
    CHECK(pe, old == 0x0f);
    OK(pe, weft_uint64_atomic_fetch_and(all->world, words, 0xf01, right, &old));
    CHECK(pe, old == 0xf0f);
    OK(pe, weft_uint64_atomic_fetch(all->world, words, right, &old));
    CHECK(pe, old == 0xf01);
    OK(pe, weft_uint32_atomic_set(all->world, half, 3, right));
    OK(pe, weft_uint32_atomic_fetch_inc(all->world, half, right, &old32));
    CHECK(pe, old32 == 3);
    OK(pe, weft_double_p(all->world, real, 1.25 + left, right));
    OK(pe, weft_double_g(all->world, real, right, &seen));
    CHECK(pe, seen == 1.25 + left);
    OK(pe, weft_barrier(all->world));
    /* Data, then the signal, both on the device; the other side waits with a kernel. */
    char text[100];
    snprintf(text, sizeof text, "from PE %d", pe->pe);
    OK(pe, weft_putmem_signal(all->world, all->target, text, sizeof text, words + 32, 1, WEFT_SIGNAL_ADD, right));
    LAUNCH(wait_kernel, 1, 1, 0, pe, all->dev, words + 32, left, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    char got[100];
    char expected[100];
    snprintf(expected, sizeof expected, "from PE %d", left);
    OK(pe, weft_getmem(all->world, got, all->target, sizeof got, pe->pe));
    CHECK(pe, strcmp(got, expected) == 0);
    test_host_waits(pe, all, right);
    test_strided_from_host(pe, all, right);
    test_mixed_signals(pe, all, right, left);
    CHECK(pe, weft_ptr(all->world, all->target, pe->pe) == all->target);
    CHECK(pe, (weft_ptr(all->world, all->target, right) == NULL) == is_far(all, right));
    CHECK(pe, weft_ptr(all->world, all->target, pe->pes) == NULL);
    CHECK(pe, weft_putmem(all->world, all->target, text, 1, pe->pes) == WEFT_ERR_RANGE);
    weft_device_info info;
    OK(pe, weft_device_query(all->world, &info));
    CHECK(pe, weft_putmem(all->world, (char *)info.heap + info.heap_bytes - 1, text, 2, right) == WEFT_ERR_RANGE);
    OK(pe, weft_barrier(all->world));
}

static void test_worlds(test_pe *pe)
{
    pe->stage = "two worlds at once";
    bench one;
    bench two;
    bench_open(pe, &one, test_world(pe, "one", (size_t)64 << 20, (size_t)4 << 20));
    bench_open(pe, &two, test_world(pe, "two", (size_t)32 << 20, 0));
    run_barriers(pe, &one, weft_team_world(one.world), 1, 0);
    run_barriers(pe, &two, weft_team_world(two.world), 1, 1);
    test_from_host(pe, &two);
    OK(pe, weft_world_destroy(one.world));
    test_ring(pe, &two);
    OK(pe, weft_world_destroy(two.world));
    for (int round = 0; round < 3; round++) {
        pe->stage = "re-creation";
        bench again;
        bench_open(pe, &again, test_world(pe, "again", (size_t)(16 + 16 * round) << 20, (size_t)(1 + 3 * round) << 20));
        run_barriers(pe, &again, weft_team_world(again.world), 1, 0);
        OK(pe, weft_world_destroy(again.world));
    }
}

static void test_body(test_pe *pe)
{
    bench all;
    pe->stage = "creation";
    bench_open(pe, &all, test_world(pe, "main", 0, 0));
    test_from_host(pe, &all);
    test_copies(pe, &all);
    test_nbi(pe, &all);
    test_words(pe, &all);
    test_atomics(pe, &all);
    test_concurrent_adds(pe, &all);
    test_mixed_atomics(pe, &all);
    test_completion(pe, &all);
    test_ring(pe, &all);
    test_barriers(pe, &all);
    test_strided(pe, &all);
    test_threads(pe, &all);
    test_requests(pe, &all);
    test_mixed_requests(pe, &all);
    test_host_heap(pe, &all);
    test_allocation(pe, &all);
    test_launches(pe, &all);
    test_registration(pe, &all);
    test_many_registrations(pe, &all);
    test_team_registration(pe, &all);
    test_mapped(pe, &all);
    test_graph(pe, &all);
    OK(pe, weft_world_destroy(all.world));
    test_team_growth(pe);
    test_worlds(pe);
    for (int way = 0; way < 7; way++) {
        test_deadline(pe, way);
    }
    test_gone(pe);
    if (pe->pe == 0 && pe->failures == 0) {
        printf("%d PEs as %s on %d GPUs: all passed\n", pe->pes, pe->threaded ? "threads" : "processes",
               pe->pes < pe->gpus ? pe->pes : pe->gpus);
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
