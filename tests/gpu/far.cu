/* Goal: many bytes to and from device memory beyond the link domain, which the proxies' copies move in chunks, come
 * whole and in order with what is asked before and after, whatever the size, the alignment, the memory at this end and
 * the way to ask: kernels, streams, the host; with chunks of several sizes and without any. A PE that leaves in the
 * middle is blamed at once; one that stops is not waited for longer than the deadline, and what its answer brings then
 * goes nowhere; a call whose own GPU has stopped says that its memory is still in use. Method: random rounds in which
 * each PE puts to its right and gets from there, against the pattern that was sent, with the bytes beside it. Run with
 * WEFT_CUDA_DOMAIN=1 or 2, or as nodes; compiled by g++ too (WEFT_DEVICE_ON_HOST). */
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/bench.h"
#include "support/memory.h"

#define LONG_ROOM ((size_t)1200 << 10)

typedef struct far_bench {
    bench all;
    unsigned char *target; /* symmetric device memory, LONG_ROOM bytes each */
    unsigned char *source;
    unsigned char *back;
    unsigned char *registered; /* symmetric, too */
    unsigned char *other; /* device memory that is not symmetric */
    unsigned char *data; /* host memory that is not */
    unsigned char *seen;
    uint64_t *signal;
    uint64_t signals;
} far_bench;

template <int KIND>
__global__ void put_signal_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest,
                                  const unsigned char *source, wefti_u64 bytes, uint64_t *signal, uint64_t value,
                                  int pe, int *status)
{
    *status = weft_dev_put_signal(scope_of<KIND>(), dev, dest, source, bytes, signal, value, WEFT_SIGNAL_SET, pe);
}

/* What has been put is got back, by the order of requests alone. */
template <int KIND>
__global__ void put_get_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                               unsigned char *back, wefti_u64 bytes, uint64_t *signal, uint64_t value, int pe,
                               int *status)
{
    const int put = weft_dev_put(scope_of<KIND>(), dev, dest, source, bytes, pe);
    const int get = weft_dev_get(scope_of<KIND>(), dev, back, dest, bytes, pe);
    const int told = weft_dev_put_signal(scope_of<KIND>(), dev, dest, source, 0, signal, value, WEFT_SIGNAL_SET, pe);
    *status = put != WEFT_OK ? put : get != WEFT_OK ? get : told;
}

static unsigned char pattern(size_t i, uint64_t salt)
{
    return (unsigned char)(i ^ i >> 8 ^ i >> 16 ^ salt);
}

static void check_pattern(test_pe *pe, const char *what, const unsigned char *seen, size_t offset, size_t bytes,
                          size_t from, uint64_t salt)
{
    size_t wrong = 0;
    while (wrong < LONG_ROOM &&
           seen[wrong] == (wrong - offset < bytes ? pattern(wrong - offset + from, salt) : (unsigned char)POISON)) {
        wrong++;
    }
    CHECK_SAY(pe, wrong == LONG_ROOM, "%s: %zu bytes at %zu: byte %zu", what, bytes, offset, wrong);
}

enum { FROM_HEAP, FROM_REGISTERED, FROM_OTHER, FROMS };
enum { BY_KERNEL, BY_KERNEL_BACK, BY_HOST, BY_HOST_OF_HOST, BY_STREAM, BY_WAYS };

static void one_round(test_pe *pe, far_bench *far, uint64_t dice)
{
    weft_world *world = far->all.world;
    const int right = (pe->pe + 1) % pe->pes;
    const int left = (pe->pe + pe->pes - 1) % pe->pes;
    const int way = (int)(dice % BY_WAYS);
    const int kind = (int)(dice >> 8) % KINDS;
    const size_t to = dice >> 16 & 63;
    const size_t from = (dice >> 22 & 1) != 0 ? to : dice >> 24 & 63;
    const size_t bytes = 8000 + (size_t)(dice >> 32) % (dice & 1u << 30 ? LONG_ROOM - 9000 : 120000);
    unsigned char *sources[FROMS] = {far->source, far->registered, far->other};
    unsigned char *source = sources[(dice >> 12) % FROMS];
    unsigned char *target = (dice >> 14 & 3) == 0 ? far->registered + LONG_ROOM : far->target;
    weft_stream *stream = gpu_stream_of(pe);
    uint64_t salt = dice >> 40;
    uint64_t value = ++far->signals;
    for (size_t i = 0; i < LONG_ROOM; i++) {
        far->data[i] = pattern(i, salt + (uint64_t)pe->pe * 3);
    }
    gpu_copy(pe, source, far->data, LONG_ROOM);
    gpu_set(pe, target, POISON, LONG_ROOM);
    gpu_set(pe, far->back, POISON, LONG_ROOM);
    OK(pe, weft_barrier(world));
    if (way == BY_KERNEL) {
        LAUNCH_KIND(put_signal_kernel, kind, pe, 0, far->all.dev, target + to, source + from, (wefti_u64)bytes,
                    far->signal, value, right, far->all.status);
    } else if (way == BY_KERNEL_BACK) {
        LAUNCH_KIND(put_get_kernel, kind, pe, 0, far->all.dev, target + to, source + from, far->back + to,
                    (wefti_u64)bytes, far->signal, value, right, far->all.status);
    } else if (way == BY_STREAM) {
        OK(pe, weft_putmem_on_stream(world, target + to, source + from, bytes, right, stream));
        OK(pe, weft_getmem_on_stream(world, far->back + to, target + to, bytes, right, stream));
        OK(pe, weft_putmem_signal_on_stream(world, target + to, source + from, bytes, far->signal, value,
                                            WEFT_SIGNAL_SET, right, stream));
        gpu_wait(pe);
    } else {
        const unsigned char *given = way == BY_HOST ? source : far->data;
        OK(pe, weft_putmem(world, target + to, given + from, bytes, right));
        OK(pe, weft_getmem(world, far->back + to, target + to, bytes, right));
        OK(pe, weft_putmem_signal(world, target + to, given + from, bytes, far->signal, value, WEFT_SIGNAL_SET, right));
    }
    if (way == BY_KERNEL || way == BY_KERNEL_BACK) {
        CHECK(pe, read_status(pe, world, far->all.status) == WEFT_OK);
    }
    /* The source may be used again at once: the bytes have been read. */
    gpu_set(pe, source, 0, LONG_ROOM);
    OK(pe, weft_signal_wait_until(world, far->signal, WEFT_CMP_EQ, value, NULL));
    gpu_copy(pe, far->seen, target, LONG_ROOM);
    check_pattern(pe, "put", far->seen, to, bytes, from, salt + (uint64_t)left * 3);
    if (way != BY_KERNEL) {
        gpu_copy(pe, far->seen, far->back, LONG_ROOM);
        check_pattern(pe, "got back", far->seen, to, bytes, from, salt + (uint64_t)pe->pe * 3);
        memset(far->seen, POISON, LONG_ROOM);
        OK(pe, weft_getmem(world, far->seen + to, target + to, bytes, right)); /* to host memory */
        check_pattern(pe, "got", far->seen, to, bytes, from, salt + (uint64_t)pe->pe * 3);
    }
    OK(pe, weft_barrier(world));
}

/* `heap_max`: of the host heap, in which chunks lie. */
static weft_world *far_world(test_pe *pe, const char *name, size_t heap_max, uint64_t deadline_ns)
{
    weft_world *world = NULL;
    weft_world_config config = test_config(pe, name);
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    config.heap_max_bytes = heap_max;
    config.deadline_ns = deadline_ns;
    OK(pe, weft_world_create(&config, &world));
    if (!ON_GPU) {
        device.choice = WEFT_DEVICE_ORDINAL;
        device.ordinal = pe->gpu;
    }
    device.heap_max_bytes = (size_t)64 << 20;
    OK(pe, weft_device_attach(world, &device));
    return world;
}

static void far_open(test_pe *pe, far_bench *far, weft_world *world)
{
    bench_open(pe, &far->all, world);
    far->target = (unsigned char *)test_malloc(pe, world, LONG_ROOM);
    far->source = (unsigned char *)test_malloc(pe, world, LONG_ROOM);
    far->back = (unsigned char *)test_malloc(pe, world, LONG_ROOM);
    far->signal = (uint64_t *)test_malloc(pe, world, 64);
    far->registered = gpu_alloc(2 * LONG_ROOM);
    far->other = gpu_alloc(LONG_ROOM);
    far->data = (unsigned char *)malloc(LONG_ROOM);
    far->seen = (unsigned char *)malloc(LONG_ROOM);
    far->signals = 0;
    OK(pe, weft_device_register(world, far->registered, 2 * LONG_ROOM));
    fill(pe, world, far->signal, 0, 64);
    OK(pe, weft_world_dev(world, &far->all.dev));
    OK(pe, weft_barrier(world));
}

static void far_close(test_pe *pe, far_bench *far)
{
    OK(pe, weft_world_destroy(far->all.world));
    gpu_free(far->registered);
    gpu_free(far->other);
    free(far->data);
    free(far->seen);
}

static void test_rounds(test_pe *pe, size_t heap_max, int rounds)
{
    far_bench far;
    uint64_t state = pe->seed + heap_max;
    pe->stage = heap_max > (size_t)32 << 20 ? "long chunks" : heap_max > (size_t)8 << 20 ? "short chunks" : "no chunks";
    far_open(pe, &far, far_world(pe, "far", heap_max, UINT64_C(20000000000)));
    for (int i = 0; i < rounds; i++) {
        one_round(pe, &far, next_random(&state));
    }
    OK(pe, weft_barrier(far.all.world));
    far_close(pe, &far);
}

/* A place beyond a heap, and a source that no copy can read, are errors with their PE, and nothing else goes wrong. */
static void test_beyond(test_pe *pe)
{
    far_bench far;
    const int right = (pe->pe + 1) % pe->pes;
    weft_device_info info;
    int culprit = -2;
    pe->stage = "beyond the heap";
    far_open(pe, &far, far_world(pe, "beyond", (size_t)64 << 20, UINT64_C(20000000000)));
    OK(pe, weft_device_query(far.all.world, &info));
    unsigned char *end = (unsigned char *)info.heap + info.heap_max_bytes;
    if (is_far(&far.all, right) && info.heap_bytes < info.heap_max_bytes) {
        LAUNCH_KIND(put_signal_kernel, 0, pe, 0, far.all.dev, end - 600000, far.source, (wefti_u64)600000, far.signal,
                    (uint64_t)1, right, far.all.status);
        finish(pe);
        double start = now_s();
        while (weft_world_fault(far.all.world, &culprit) == WEFT_OK && now_s() - start < 10) {
            usleep(1000);
        }
        CHECK_SAY(pe, weft_world_fault(far.all.world, &culprit) == WEFT_ERR_RANGE && culprit == right, "%d by PE %d",
                  weft_world_fault(far.all.world, &culprit), culprit);
    }
    usleep(300000);
    far_close(pe, &far);
}

/* Tell the stand-in for the driver that a kernel begins, or has ended: those of this program are functions that it
 * calls itself. With WEFT_FAKE_FREE_WAITS the driver gives no memory back meanwhile, as that of GPUs does. */
static void count_kernel(int more)
{
#if ON_GPU
    (void)more;
#else
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*count)(int) = driver != NULL ? (void (*)(int))dlsym(driver, "fake_kernels_count") : NULL;
    if (count != NULL) {
        count(more);
        (void)dlclose(driver);
    }
#endif
}

/* One that leaves while others put to it. */
static void test_leaving(test_pe *pe)
{
    far_bench far;
    const int last = pe->pes - 1;
    int culprit = -2;
    int status = WEFT_OK;
    pe->stage = "a far PE that leaves in the middle";
    far_open(pe, &far, far_world(pe, "leaving", (size_t)64 << 20, UINT64_C(20000000000)));
    OK(pe, weft_barrier(far.all.world));
    if (pe->pe == last) {
        usleep(20000);
    } else if (is_far(&far.all, last)) {
        double start = now_s();
        uint64_t value = 0;
        while (status == WEFT_OK && now_s() - start < 15) {
            value++;
            if (pe->pe % 2 == 0) {
                count_kernel(1);
                LAUNCH_KIND(put_get_kernel, 0, pe, 0, far.all.dev, far.target, far.source, far.back,
                            (wefti_u64)LONG_ROOM, far.signal, value, last, far.all.status);
                count_kernel(-1);
                status = read_status(pe, far.all.world, far.all.status);
            } else {
                status = weft_putmem(far.all.world, far.target, far.data, LONG_ROOM, last);
            }
        }
        CHECK_SAY(pe, status == WEFT_ERR_PEER && now_s() - start < 10, "%d after %.1f s", status, now_s() - start);
        if (pe->pe % 2 == 0) {
            CHECK(pe, weft_world_fault(far.all.world, &culprit) == WEFT_ERR_PEER && culprit == last);
        }
    }
    far_close(pe, &far);
}

/* One that stops: a call of the host returns at the deadline, and what comes later does not reach its memory. */
static void test_stopped(test_pe *pe)
{
    far_bench far;
    const int last = pe->pes - 1;
    if (pe->threaded || ON_GPU) {
        return;
    }
    pe->stage = "a far PE that stops";
    far_open(pe, &far, far_world(pe, "stopped", (size_t)64 << 20, UINT64_C(1000000000)));
    fill(pe, far.all.world, far.target, 1, LONG_ROOM);
    OK(pe, weft_barrier(far.all.world));
    if (pe->pe == last) {
        const pid_t me = getpid();
        const pid_t child = fork();
        if (child == 0) {
            usleep(100000);
            kill(me, SIGSTOP);
            usleep(3000000);
            kill(me, SIGCONT);
            _exit(0);
        }
        usleep(500000);
        waitpid(child, NULL, 0);
    } else if (is_far(&far.all, last)) {
        usleep(500000);
        memset(far.seen, POISON, LONG_ROOM);
        double start = now_s();
        const weft_status status = weft_getmem(far.all.world, far.seen, far.target, LONG_ROOM, last);
        CHECK_SAY(pe, status == WEFT_ERR_TIMEOUT && now_s() - start < 2.5, "%d after %.1f s", status, now_s() - start);
        memset(far.seen, POISON, LONG_ROOM);
        usleep(3500000);
        check_pattern(pe, "after the deadline", far.seen, 0, 0, 0, 0);
    } else {
        usleep(4500000);
    }
    far_close(pe, &far);
}

/* The caller's own GPU stops copying: a call of the host cannot take its memory back. It says so, some time after its
 * deadline. */
static void test_stuck(test_pe *pe)
{
    far_bench far;
    pe->stage = "a GPU that does not copy any more";
    far_open(pe, &far, far_world(pe, "stuck", (size_t)64 << 20, UINT64_C(1000000000)));
    if (pe->pe == 0) {
        const double start = now_s();
        (void)setenv("WEFT_FAKE_STUCK", "1", 1);
        const weft_status status = weft_putmem(far.all.world, far.target, far.source, LONG_ROOM, 1);
        const double took = now_s() - start;
        CHECK_SAY(pe, status == WEFT_ERR_TIMEOUT && took > 11, "%d after %.1f s", status, took);
        CHECK_SAY(pe, strstr(weft_last_error(), "PE 1 does not answer") != NULL, "%s", weft_last_error());
        CHECK_SAY(pe, strstr(weft_last_error(), "leave that as it is until the world ends") != NULL, "%s",
                  weft_last_error());
        (void)unsetenv("WEFT_FAKE_STUCK");
    } else {
        usleep(12000000);
    }
    far_close(pe, &far);
}

static void test_body(test_pe *pe)
{
    if (getenv("TEST_FAR_STUCK") != NULL) {
        test_stuck(pe);
        return;
    }
    const int rounds = pe->cases != 0 ? pe->cases : 24;
    test_rounds(pe, (size_t)64 << 20, rounds);
    test_rounds(pe, (size_t)16 << 20, rounds);
    test_rounds(pe, (size_t)3 << 20, rounds / 4);
    test_beyond(pe);
    test_leaving(pe);
    test_stopped(pe);
    if (pe->pe == 0 && pe->failures == 0) {
        printf("%d PEs as %s: all passed\n", pe->pes, pe->threaded ? "threads" : "processes");
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
