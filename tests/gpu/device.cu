/* Goal: every device call does what the same call does on the host backend, at every scope, for all types, odd sizes and
 * alignments; waits end at their deadline; what changes lies in memory, so that graphs can be replayed.
 * Method: each PE runs kernels that access every other PE; the reference is the host's own call on the host heap of the
 * same world, or arithmetic. Buffers are poisoned first, and bytes beside the target are checked. Compiled by g++ too
 * (WEFT_DEVICE_ON_HOST), where a kernel is one thread and device memory is a memory file. */
#include <dirent.h>

#include "part/launch.h"

#define POISON 0xa5
#define ROOM 70000

/* ---- kernels ---- */

template <int KIND> WEFTI_DEVICE weft_scope scope_of()
{
#if ON_GPU
    return KIND == WEFTI_SCOPE_BLOCK ? weft_block() : KIND == WEFTI_SCOPE_WARP ? weft_warp() : weft_thread();
#else
    return weft_thread();
#endif
}

template <int KIND>
__global__ void put_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                           wefti_u64 bytes, int pe, int *status)
{
    *status = weft_dev_put(scope_of<KIND>(), dev, dest, source, bytes, pe);
    (void)weft_dev_quiet(dev);
}

template <int KIND>
__global__ void get_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                           wefti_u64 bytes, int pe, int *status)
{
    *status = weft_dev_get(scope_of<KIND>(), dev, dest, source, bytes, pe);
}

template <int KIND>
__global__ void put_bulk_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                                wefti_u64 bytes, int pe, unsigned shared_bytes, int *status)
{
#if ON_GPU
    extern __shared__ __align__(128) unsigned char shared[];
#else
    unsigned char *shared = NULL;
#endif
    *status = weft_dev_put_bulk(scope_of<KIND>(), dev, dest, source, bytes, pe, shared, shared_bytes);
    (void)weft_dev_quiet(dev);
}

/* Put every second of `there`'s elements on `pe`, get them back apart. */
template <int KIND, class T>
__global__ void strided_kernel(const __grid_constant__ weft_dev dev, T *there, const T *out, T *in, int there_stride,
                               int here_stride, wefti_u64 count, int pe, int *status)
{
    int bad = weft_dev_iput(scope_of<KIND>(), dev, there, out, there_stride, here_stride, count, pe);
    (void)weft_dev_quiet(dev);
    wefti_scope_sync(scope_of<KIND>());
    bad = bad == WEFT_OK
              ? weft_dev_iget(scope_of<KIND>(), dev, in, (const T *)there, here_stride, there_stride, count, pe)
              : bad;
    *status = bad;
}

/* Put to the right with a signal, wait for the left's. */
template <int KIND>
__global__ void ring_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                            wefti_u64 bytes, uint64_t *signal, uint64_t value, int op, int *status)
{
    int right = (dev.pe + 1) % dev.pes;
    int left = (dev.pe + dev.pes - 1) % dev.pes;
    int put = weft_dev_put_signal(scope_of<KIND>(), dev, dest, source, bytes, signal,
                                  op == WEFT_SIGNAL_SET ? value : (wefti_u64)1, (weft_signal_op)op, right);
    int wait = weft_dev_signal_wait_until(scope_of<KIND>(), dev, signal, WEFT_CMP_GE, value, left);
    *status = put != WEFT_OK ? put : wait;
}

__global__ void put_signal_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest,
                                  const unsigned char *source, wefti_u64 bytes, uint64_t *signal, int pe, int *status)
{
    *status = weft_dev_put_signal(weft_thread(), dev, dest, source, bytes, signal, 1, WEFT_SIGNAL_SET, pe);
}

template <class T> __global__ void p_kernel(const __grid_constant__ weft_dev dev, T *dest, T value, int pe, int *status)
{
    *status = weft_dev_p(dev, dest, value, pe);
    (void)weft_dev_quiet(dev);
}

template <class T>
__global__ void g_kernel(const __grid_constant__ weft_dev dev, const T *source, int pe, T *to, int *status)
{
    *status = weft_dev_g(dev, source, pe, to);
}

/* old[i] is the value before operation i. */
template <class T>
__global__ void integer_amo_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)5, pe);
    bad |= weft_dev_atomic_fetch_add(dev, word, (T)7, pe, &old[0]);
    bad |= weft_dev_atomic_compare_swap(dev, word, (T)12, (T)100, pe, &old[1]);
    bad |= weft_dev_atomic_compare_swap(dev, word, (T)12, (T)101, pe, &old[2]);
    bad |= weft_dev_atomic_swap(dev, word, (T)40, pe, &old[3]);
    bad |= weft_dev_atomic_inc(dev, word, pe);
    bad |= weft_dev_atomic_fetch_inc(dev, word, pe, &old[4]);
    bad |= weft_dev_atomic_add(dev, word, (T)2, pe);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[5]);
    *status = bad;
}

template <class T>
__global__ void bitwise_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)0xf0f0, pe);
    bad |= weft_dev_atomic_fetch_and(dev, word, (T)0xff00, pe, &old[0]);
    bad |= weft_dev_atomic_fetch_or(dev, word, (T)0x0011, pe, &old[1]);
    bad |= weft_dev_atomic_fetch_xor(dev, word, (T)0xffff, pe, &old[2]);
    bad |= weft_dev_atomic_and(dev, word, (T)0x0fff, pe);
    bad |= weft_dev_atomic_or(dev, word, (T)0x1000, pe);
    bad |= weft_dev_atomic_xor(dev, word, (T)1, pe);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[3]);
    *status = bad;
}

template <class T>
__global__ void float_kernel(const __grid_constant__ weft_dev dev, T *word, int pe, T *old, int *status)
{
    int bad = 0;
    bad |= weft_dev_atomic_set(dev, word, (T)1.5, pe);
    bad |= weft_dev_atomic_fetch_add(dev, word, (T)2.25, pe, &old[0]);
    bad |= weft_dev_atomic_add(dev, word, (T)0.25, pe);
    bad |= weft_dev_atomic_swap(dev, word, (T)-8, pe, &old[1]);
    bad |= weft_dev_atomic_fetch(dev, word, pe, &old[2]);
    *status = bad;
}

/* Every thread of every block adds to a word of every PE. */
__global__ void add_kernel(const __grid_constant__ weft_dev dev, uint64_t *sum, float *real, int times)
{
    for (int i = 0; i < times; i++) {
        for (int pe = 0; pe < dev.pes; pe++) {
            (void)weft_dev_atomic_add(dev, sum, (uint64_t)(dev.pe + 1), pe);
            (void)weft_dev_atomic_add(dev, real, 0.5f, pe);
        }
    }
}

/* steps barriers; before each, a word is put to every member, after each all words must be there. */
template <int KIND>
__global__ void barrier_kernel(const __grid_constant__ weft_dev_team team, uint64_t *words, uint64_t first, int steps,
                               int *status)
{
    weft_scope scope = scope_of<KIND>();
    int bad = WEFT_OK;
    for (int step = 0; step < steps && bad == WEFT_OK; step++) {
        if (scope.rank == 0) {
            for (int i = 0; i < team.pes; i++) {
                (void)weft_dev_p(team.world, words + team.pe, first + (uint64_t)step, wefti_dev_member(team, i));
            }
        }
        bad = weft_dev_barrier(scope, team);
        for (int i = (int)scope.rank; i < team.pes && bad == WEFT_OK; i += (int)scope.size) {
            if (wefti_ld_relaxed((const wefti_u64 *)words + i) != first + (uint64_t)step) {
                bad = -1000 - i;
            }
        }
        bad = bad == WEFT_OK ? weft_dev_sync(scope, team) : bad;
    }
    if (scope.rank == 0) {
        *status = bad;
    } else if (bad != WEFT_OK) {
        *status = bad;
    }
}

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

__global__ void wait_kernel(const __grid_constant__ weft_dev dev, const uint64_t *word, int from, int *status)
{
    *status = weft_dev_signal_wait_until(weft_thread(), dev, word, WEFT_CMP_EQ, 1, from);
}

template <int KIND> __global__ void sync_kernel(const __grid_constant__ weft_dev_team team, int *status)
{
    *status = weft_dev_sync(scope_of<KIND>(), team);
}

/* ---- helpers: device memory from the host, through the API under test ---- */

static void fill(test_pe *pe, weft_world *world, void *block, int value, size_t bytes)
{
    unsigned char *bytes_of = (unsigned char *)malloc(bytes);
    memset(bytes_of, value, bytes);
    OK(pe, weft_putmem(world, block, bytes_of, bytes, pe->pe));
    free(bytes_of);
}

static int read_status(test_pe *pe, weft_world *world, const int *status)
{
    int value = 1;
    finish(pe);
    OK(pe, weft_getmem(world, &value, status, sizeof value, pe->pe));
    return value;
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
#define KINDS (ON_GPU ? 3 : 1)

/* ---- tests ---- */

/* What all tests of one world share. */
typedef struct bench {
    weft_world *world;
    weft_dev dev;
    unsigned char *target; /* symmetric device memory, ROOM bytes a PE */
    unsigned char *source; /* symmetric device memory, used locally */
    unsigned char *host_target; /* the same on the host heap */
    int *status;
    uint64_t *words;
} bench;

/* WEFT_CUDA_DOMAIN makes PEs far that load and store would reach. */
static int is_far(const bench *all, int pe)
{
    return (unsigned)pe - all->dev.near_first >= all->dev.near_count;
}

static void bench_open(test_pe *pe, bench *all, weft_world *world)
{
    all->world = world;
    all->target = (unsigned char *)test_malloc(pe, world, (size_t)ROOM * (size_t)pe->pes);
    all->source = (unsigned char *)test_malloc(pe, world, (size_t)ROOM * 2);
    all->status = (int *)test_malloc(pe, world, 4096);
    all->words = (uint64_t *)test_malloc(pe, world, 8192);
    OK(pe, weft_malloc(world, (size_t)ROOM * (size_t)pe->pes, (void **)&all->host_target));
    OK(pe, weft_world_dev(world, &all->dev));
    fill(pe, world, all->words, 0, 8192);
    OK(pe, weft_barrier(world));
}

/* put, bulk put and get of odd sizes and alignments against the host's put on the host heap. */
static void test_copies(test_pe *pe, bench *all)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 100, 127, 513, 1000, 4096, 4099, 20000, 65536};
    size_t part = ROOM;
    unsigned char *expected = (unsigned char *)malloc(part * (size_t)pe->pes);
    unsigned char *seen = (unsigned char *)malloc(part * (size_t)pe->pes);
    unsigned char *data = (unsigned char *)malloc(ROOM * 2);
    uint64_t state = pe->seed;
    pe->part = "copies";
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        for (int kind = 0; kind < KINDS; kind++) {
            uint64_t dice = next_random(&state);
            int bytes = sizes[which];
            int to_offset = (int)(dice & 63);
            int from_offset = dice & 64 ? to_offset : (int)(dice >> 8 & 63); /* often equal modulo 16 */
            int way = (int)((dice >> 16) % 3); /* put, bulk put, get */
            int to = (pe->pe + 1 + (int)((dice >> 24) % (uint64_t)pe->pes)) % pe->pes;
            for (int i = 0; i < ROOM * 2; i++) {
                data[i] = (unsigned char)(i * 7 + pe->pe * 31 + (int)(dice >> 32));
            }
            memset(all->host_target, POISON, part * (size_t)pe->pes);
            fill(pe, all->world, all->target, POISON, part * (size_t)pe->pes);
            OK(pe, weft_putmem(all->world, all->source, data, ROOM * 2, pe->pe));
            OK(pe, weft_barrier(all->world));
            /* Each PE writes its own part of the target; a get reads what a put would have brought. */
            size_t place = (size_t)pe->pe * part + (size_t)to_offset;
            OK(pe, weft_putmem(all->world, all->host_target + place, data + from_offset, (size_t)bytes, to));
            unsigned char *dest = all->target + place;
            const unsigned char *source = all->source + from_offset;
            if (way == 0) {
                LAUNCH_KIND(put_kernel, kind, pe, 0, all->dev, dest, source, (wefti_u64)bytes, to, all->status);
            } else if (way == 1) {
                LAUNCH_KIND(put_bulk_kernel, kind, pe, 16384, all->dev, dest, source, (wefti_u64)bytes, to, 16384u,
                            all->status);
            } else {
                /* From PE `to`'s source into this PE's own target; the host likewise. */
                memset(all->host_target + (size_t)pe->pe * part, POISON, part);
                LAUNCH_KIND(get_kernel, kind, pe, 0, all->dev, dest, source, (wefti_u64)bytes, to, all->status);
            }
            CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
            OK(pe, weft_barrier(all->world));
            OK(pe, weft_getmem(all->world, seen, all->target, part * (size_t)pe->pes, pe->pe));
            if (way == 2) {
                unsigned char *want = expected;
                memset(want, POISON, part * (size_t)pe->pes);
                for (int i = 0; i < bytes; i++) {
                    want[place + (size_t)i] = (unsigned char)((i + from_offset) * 7 + to * 31 + (int)(dice >> 32));
                }
                CHECK_SAY(pe, memcmp(seen, want, part * (size_t)pe->pes) == 0,
                          "get of %d bytes, scope %d, offsets %d %d", bytes, kind, to_offset, from_offset);
            } else {
                size_t wrong = 0;
                while (wrong < part * (size_t)pe->pes && seen[wrong] == all->host_target[wrong]) {
                    wrong++;
                }
                CHECK_SAY(pe, wrong == part * (size_t)pe->pes,
                          "%s of %d bytes, scope %d, offsets %d %d: byte %zu of the part of PE %zu is %d, not %d",
                          way == 0 ? "put" : "bulk put", bytes, kind, to_offset, from_offset, wrong % part,
                          wrong / part, seen[wrong], all->host_target[wrong]);
            }
            OK(pe, weft_barrier(all->world));
        }
    }
    free(data);
    free(seen);
    free(expected);
}

/* One element of each type. */
template <class T> static void test_word(test_pe *pe, bench *all, const char *name, T value)
{
    T *words = (T *)all->target;
    T *here = (T *)all->source;
    int right = (pe->pe + 1) % pe->pes;
    T seen;
    pe->part = name;
    fill(pe, all->world, all->target, POISON, 256);
    OK(pe, weft_barrier(all->world));
    LAUNCH((p_kernel<T>), 1, 1, 0, pe, all->dev, words + 1, value, right, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_barrier(all->world));
    LAUNCH((g_kernel<T>), 1, 1, 0, pe, all->dev, words + 1, right, here, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, &seen, here, sizeof seen, pe->pe));
    CHECK(pe, memcmp(&seen, &value, sizeof seen) == 0);
    unsigned char around[3 * sizeof(T)];
    OK(pe, weft_getmem(all->world, around, words, sizeof around, pe->pe));
    for (size_t i = 0; i < sizeof(T); i++) {
        CHECK(pe, around[i] == POISON && around[2 * sizeof(T) + i] == POISON);
    }
    OK(pe, weft_barrier(all->world));
}

template <class T> static void test_integer_amo(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe; /* one word a PE, on the right neighbour */
    T *old = (T *)all->source;
    const T expected[] = {5, 12, 100, 100, 41, 44};
    T seen[6];
    T host_seen = 0;
    int right = (pe->pe + 1) % pe->pes;
    pe->part = name;
    LAUNCH((integer_amo_kernel<T>), 1, 1, 0, pe, all->dev, word, right, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK_SAY(pe, memcmp(seen, expected, sizeof seen) == 0, "%lld %lld %lld %lld %lld %lld", (long long)seen[0],
              (long long)seen[1], (long long)seen[2], (long long)seen[3], (long long)seen[4], (long long)seen[5]);
    OK(pe, weft_getmem(all->world, &host_seen, word, sizeof host_seen, right));
    CHECK(pe, host_seen == 44);
}

template <class T> static void test_bitwise(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe;
    T *old = (T *)all->source;
    const T expected[] = {(T)0xf0f0, (T)0xf000, (T)0xf011, (T)((0x0fee & 0x0fff) | 0x1000) ^ 1};
    T seen[4];
    pe->part = name;
    LAUNCH((bitwise_kernel<T>), 1, 1, 0, pe, all->dev, word, (pe->pe + 1) % pe->pes, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK_SAY(pe, memcmp(seen, expected, sizeof seen) == 0, "%llx %llx %llx %llx", (unsigned long long)seen[0],
              (unsigned long long)seen[1], (unsigned long long)seen[2], (unsigned long long)seen[3]);
}

template <class T> static void test_float(test_pe *pe, bench *all, const char *name)
{
    T *word = (T *)all->target + pe->pe;
    T *old = (T *)all->source;
    T seen[3];
    pe->part = name;
    LAUNCH((float_kernel<T>), 1, 1, 0, pe, all->dev, word, (pe->pe + 1) % pe->pes, old, all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_getmem(all->world, seen, old, sizeof seen, pe->pe));
    CHECK(pe, seen[0] == (T)1.5 && seen[1] == (T)4 && seen[2] == (T)-8);
}

static void test_types(test_pe *pe, bench *all)
{
#define WORD(NAME, TYPE) test_word<TYPE>(pe, all, "p and g, " #NAME, (TYPE)(77 + pe->pe));
    WEFT_WORD_TYPES(WORD)
#undef WORD
#define INTEGER(NAME, TYPE) test_integer_amo<TYPE>(pe, all, "atomics, " #NAME);
    WEFT_INTEGER_TYPES(INTEGER)
#undef INTEGER
#define BITS(NAME, TYPE) test_bitwise<TYPE>(pe, all, "bitwise, " #NAME);
    WEFT_BITWISE_TYPES(BITS)
#undef BITS
    test_float<float>(pe, all, "float atomics");
    test_float<double>(pe, all, "double atomics");
}

static void test_concurrent_adds(test_pe *pe, bench *all)
{
    const int blocks = ON_GPU ? 8 : 1;
    const int threads = ON_GPU ? 64 : 1;
    const int times = 5;
    uint64_t sum = 0;
    float real = 0;
    pe->part = "concurrent adds";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    LAUNCH(add_kernel, blocks, threads, 0, pe, all->dev, all->words, (float *)(all->words + 8), times);
    finish(pe);
    /* The host adds too, against the kernels. */
    for (int i = 0; i < 10; i++) {
        uint64_t old;
        OK(pe, weft_uint64_atomic_fetch_add(all->world, all->words, 1, (pe->pe + 1) % pe->pes, &old));
    }
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_g(all->world, all->words, pe->pe, &sum));
    OK(pe, weft_float_g(all->world, (float *)(all->words + 8), pe->pe, &real));
    uint64_t each = (uint64_t)(blocks * threads * times);
    CHECK_SAY(pe, sum == each * (uint64_t)(pe->pes * (pe->pes + 1) / 2) + 10, "%llu", (unsigned long long)sum);
    CHECK_SAY(pe, real == 0.5f * (float)(each * (uint64_t)pe->pes), "%f", (double)real);
    OK(pe, weft_barrier(all->world));
}

static void test_ring(test_pe *pe, bench *all)
{
    static const int sizes[] = {0, 8, 1024, 5000, 65536};
    uint64_t value = 0;
    unsigned char *seen = (unsigned char *)malloc(ROOM);
    unsigned char *data = (unsigned char *)malloc(ROOM);
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    pe->part = "put_signal ring";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
            for (int op = 0; op < 2; op++) {
                value++;
                for (int i = 0; i < ROOM; i++) {
                    data[i] = (unsigned char)(i * 3 + pe->pe * 17 + (int)value);
                }
                OK(pe, weft_putmem(all->world, all->source, data, ROOM, pe->pe));
                LAUNCH_KIND(ring_kernel, kind, pe, 0, all->dev, all->target, all->source, (wefti_u64)sizes[which],
                            all->words, value, op, all->status);
                CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
                OK(pe, weft_getmem(all->world, seen, all->target, ROOM, pe->pe));
                int wrong = 0;
                while (wrong < sizes[which] && seen[wrong] == (unsigned char)(wrong * 3 + left * 17 + (int)value)) {
                    wrong++;
                }
                CHECK_SAY(pe, wrong == sizes[which], "%d bytes, scope %d: byte %d", sizes[which], kind, wrong);
                OK(pe, weft_barrier(all->world)); /* the left may overwrite the target now */
            }
        }
    }
    free(data);
    free(seen);
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
    pe->part = "barrier of the world";
    fill(pe, all->world, all->words, 0, 8192);
    OK(pe, weft_barrier(all->world));
    run_barriers(pe, all, weft_team_world(all->world), 1, 0);
    pe->part = "barrier, mixed scopes";
    run_barriers(pe, all, weft_team_world(all->world), 100001, 1);
    if (pe->pes < 3) {
        return;
    }
    pe->part = "barrier of teams";
    weft_team *odd = NULL;
    weft_team *listed = NULL;
    OK(pe, weft_team_split_strided(weft_team_world(all->world), 1, 2, pe->pes / 2, &odd));
    int members[64];
    int count = 0;
    for (int i = 0; i < pe->pes; i++) {
        int member = (i * 2 + 1) % pe->pes; /* an order without a rule */
        members[count++] = pe->pes % 2 ? member : (i == 0 ? pe->pes - 1 : i - 1 == pe->pes - 1 ? 0 : i - 1);
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

typedef struct pair16 {
    uint64_t part[2];
} pair16;
typedef struct triple { /* 12 bytes that are aligned to 4 */
    uint32_t part[3];
} triple;

template <class T> static void test_strided_of(test_pe *pe, bench *all, const char *name)
{
    static const int counts[] = {0, 1, 7, 200, 1001};
    const size_t room = 4096 * sizeof(T);
    const int right = (pe->pe + 1) % pe->pes;
    const int left = (pe->pe + pe->pes - 1) % pe->pes;
    T *there = (T *)all->target;
    T *out = (T *)all->source;
    T *in = (T *)(all->target + room);
    unsigned char *data = (unsigned char *)malloc(room);
    unsigned char *seen = (unsigned char *)malloc(room);
    pe->part = name;
    for (size_t i = 0; i < room; i++) {
        data[i] = (unsigned char)(i * 11 + (size_t)pe->pe * 37);
    }
    for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
        const int count = counts[which];
        const int kind = (int)(which % (size_t)KINDS);
        const int there_stride = 1 + (int)which % 3;
        const int here_stride = 3 - (int)which % 3;
        OK(pe, weft_putmem(all->world, out, data, room, pe->pe));
        fill(pe, all->world, there, POISON, room);
        fill(pe, all->world, in, POISON, room);
        OK(pe, weft_barrier(all->world));
        if (kind == WEFTI_SCOPE_BLOCK) {
            LAUNCH((strided_kernel<WEFTI_SCOPE_BLOCK, T>), 1, 192, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        } else if (kind == WEFTI_SCOPE_WARP) {
            LAUNCH((strided_kernel<WEFTI_SCOPE_WARP, T>), 1, 32, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        } else {
            LAUNCH((strided_kernel<WEFTI_SCOPE_THREAD, T>), 1, 1, 0, pe, all->dev, there, out, in, there_stride,
                   here_stride, (wefti_u64)count, right, all->status);
        }
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        OK(pe, weft_barrier(all->world));
        OK(pe, weft_getmem(all->world, seen, there, room, pe->pe));
        size_t wrong = 0;
        for (size_t i = 0; i < room; i++) {
            const size_t element = i / sizeof(T);
            const size_t number = element / (size_t)there_stride;
            const int is_put = element % (size_t)there_stride == 0 && number < (size_t)count;
            const size_t from = number * (size_t)here_stride * sizeof(T) + i % sizeof(T);
            wrong += seen[i] != (is_put ? (unsigned char)(from * 11 + (size_t)left * 37) : POISON);
        }
        CHECK_SAY(pe, wrong == 0, "iput of %d elements, scope %d: %zu bytes", count, kind, wrong);
        OK(pe, weft_getmem(all->world, seen, in, room, pe->pe));
        for (size_t i = 0; i < room; i++) {
            const size_t element = i / sizeof(T);
            const int is_got = element % (size_t)here_stride == 0 && element / (size_t)here_stride < (size_t)count;
            wrong += seen[i] != (is_got ? data[i] : POISON);
        }
        CHECK_SAY(pe, wrong == 0, "iget of %d elements, scope %d: %zu bytes", count, kind, wrong);
        OK(pe, weft_barrier(all->world));
    }
    free(seen);
    free(data);
}

static void test_strided(test_pe *pe, bench *all)
{
    test_strided_of<signed char>(pe, all, "strided, 1 byte");
    test_strided_of<short>(pe, all, "strided, 2 bytes");
    test_strided_of<float>(pe, all, "strided, 4 bytes");
    test_strided_of<double>(pe, all, "strided, 8 bytes");
    if (pe->pes > 1) { /* target has room for that */
        test_strided_of<pair16>(pe, all, "strided, 16 bytes");
        test_strided_of<triple>(pe, all, "strided, 12 bytes");
    }
}

/* What a proxy carries to PEs that are far, and stores to those that are not: in order, and more than there is room for. */
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
    pe->part = "requests in order";
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
    pe->part = "requests that are answered";
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
    pe->part = "host memory signalled in device memory, and the other way round";
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
    pe->part = "a far PE that has left";
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
    pe->part = "threads of the library";
    if (pe->threaded || ON_GPU) { /* other PEs and CUDA have threads of their own */
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

/* The host heap from kernels, also what was added to it after attaching. */
static void test_host_heap(test_pe *pe, bench *all)
{
    unsigned char *host = NULL;
    size_t bytes = (size_t)5 << 20;
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    pe->part = "host heap";
    OK(pe, weft_malloc(all->world, bytes, (void **)&host));
    memset(host, POISON, bytes);
    unsigned char *data = (unsigned char *)malloc(60000);
    for (int i = 0; i < 60000; i++) {
        data[i] = (unsigned char)(i + pe->pe * 91);
    }
    OK(pe, weft_putmem(all->world, all->source, data, 60000, pe->pe));
    OK(pe, weft_barrier(all->world));
    LAUNCH_KIND(put_kernel, KINDS - 1, pe, 0, all->dev, host + bytes - 60001, all->source, (wefti_u64)60000, right,
                all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_barrier(all->world));
    int wrong = 0;
    while (wrong < 60000 && host[bytes - 60001 + (size_t)wrong] == (unsigned char)(wrong + left * 91)) {
        wrong++;
    }
    CHECK_SAY(pe, wrong == 60000 && host[bytes - 1] == POISON && host[bytes - 60002] == POISON, "byte %d", wrong);
    LAUNCH_KIND(get_kernel, KINDS - 1, pe, 0, all->dev, all->target, host + bytes - 60001, (wefti_u64)60000, right,
                all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    unsigned char *seen = (unsigned char *)malloc(60000);
    OK(pe, weft_getmem(all->world, seen, all->target, 60000, pe->pe));
    CHECK(pe, memcmp(seen, data, 60000) == 0);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_free(all->world, host));
    free(seen);
    free(data);
}

/* The host waits for, and tests, words in device memory that another PE's host writes. */
static void test_host_waits(test_pe *pe, bench *all, int right)
{
    uint64_t *words = all->words + 192;
    int32_t *halves = (int32_t *)(all->words + 200);
    uint64_t seen = 0;
    size_t index = 0;
    int result = -1;
    OK(pe, weft_uint64_test(all->world, words, WEFT_CMP_EQ, 1000, &result));
    CHECK(pe, result == 0);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_uint64_p(all->world, words, 77, right));
    OK(pe, weft_int32_p(all->world, halves + 1, -5, right));
    OK(pe, weft_uint64_wait_until(all->world, words, WEFT_CMP_GE, 77));
    OK(pe, weft_signal_wait_until(all->world, words, WEFT_CMP_NE, 0, &seen));
    CHECK(pe, seen == 77);
    OK(pe, weft_int32_wait_until_any(all->world, halves, 3, NULL, WEFT_CMP_LT, 0, &index));
    CHECK(pe, index == 1);
    OK(pe, weft_int32_wait_until(all->world, halves + 1, WEFT_CMP_EQ, -5));
    OK(pe, weft_int32_test(all->world, halves, WEFT_CMP_EQ, 0, &result));
    CHECK(pe, result == 1);
    OK(pe, weft_signal_fetch(all->world, words, &seen));
    CHECK(pe, seen == 77);
    CHECK(pe, weft_uint64_test(all->world, words, (weft_cmp)9, 1, &result) == WEFT_ERR_ARGUMENT);
    OK(pe, weft_barrier(all->world));
}

/* The host's calls on device memory. */
/* Elements that lie apart in device memory, and ones that would leave it. */
static void test_strided_from_host(test_pe *pe, bench *all, int right)
{
    uint64_t out[12];
    uint64_t in[12] = {0};
    uint64_t *at = all->words + 256;
    for (int i = 0; i < 12; i++) {
        out[i] = (uint64_t)pe->pe * 100 + (uint64_t)i;
    }
    OK(pe, weft_uint64_iput(all->world, at, out, 3, 2, 6, right));
    OK(pe, weft_uint64_iget(all->world, in, at, 2, 3, 6, right));
    for (int i = 0; i < 12; i++) {
        CHECK(pe, in[i] == (i % 2 == 0 ? out[i] : 0));
    }
    CHECK(pe, weft_uint64_iput(all->world, at, out, (ptrdiff_t)1 << 50, 1, 2, right) == WEFT_ERR_RANGE);
    CHECK(pe, weft_uint64_iget(all->world, in, at, 1, 1, 2, pe->pes) == WEFT_ERR_RANGE);
}

/* Data in host memory and its signal in device memory, and the other way round: who sees the signal sees the data. */
static void test_mixed_signals(test_pe *pe, bench *all, int right, int left)
{
    void *block = NULL;
    uint64_t seen = 0;
    OK(pe, weft_calloc(all->world, 3, 64, &block));
    uint64_t *host = (uint64_t *)block;
    uint64_t value = 1000 + (uint64_t)pe->pe;
    OK(pe, weft_uint64_put_signal(all->world, host, &value, 1, all->words + 33, 1, WEFT_SIGNAL_ADD, right));
    OK(pe, weft_uint64_wait_until(all->world, all->words + 33, WEFT_CMP_EQ, 1));
    CHECK(pe, host[0] == 1000 + (uint64_t)left);
    OK(pe, weft_uint64_put_signal(all->world, all->words + 34, &value, 1, host + 8, 1, WEFT_SIGNAL_SET, right));
    OK(pe, weft_uint64_wait_until(all->world, host + 8, WEFT_CMP_EQ, 1));
    OK(pe, weft_uint64_g(all->world, all->words + 34, pe->pe, &seen));
    CHECK(pe, seen == 1000 + (uint64_t)left);
    OK(pe, weft_free(all->world, block));
}

static void test_from_host(test_pe *pe, bench *all)
{
    pe->part = "from the host";
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

/* Allocation: growth, reuse, disagreement. */
static void test_allocation(test_pe *pe, bench *all)
{
    weft_device_info before;
    weft_device_info after;
    void *big = NULL;
    void *again = NULL;
    void *wrong = NULL;
    unsigned char mark = (unsigned char)(pe->pe + 1);
    unsigned char seen = 0;
    pe->part = "allocation";
    OK(pe, weft_device_query(all->world, &before));
    int grows = strcmp(before.memory, "ipc") != 0; /* by cudaIpc the heap is what it is */
    size_t bytes = grows ? before.heap_bytes + ((size_t)3 << 20) : (size_t)3 << 20;
    big = test_malloc(pe, all->world, bytes);
    OK(pe, weft_device_query(all->world, &after));
    CHECK(pe, after.heap_bytes > bytes && (after.heap_bytes > before.heap_bytes) == grows);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_putmem(all->world, (unsigned char *)big + bytes - 1, &mark, 1, (pe->pe + 1) % pe->pes));
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_getmem(all->world, &seen, (unsigned char *)big + bytes - 1, 1, pe->pe));
    CHECK(pe, seen == (unsigned char)((pe->pe + pe->pes - 1) % pe->pes + 1));
    OK(pe, weft_device_free(all->world, big));
    OK(pe, weft_device_malloc(all->world, bytes, &again));
    CHECK(pe, again == big);
    OK(pe, weft_device_free(all->world, again));
    CHECK(pe, weft_device_free(all->world, again) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_device_malloc(all->world, (size_t)1 << 50, &wrong) == WEFT_ERR_MEMORY && wrong == NULL);
    if (pe->pes > 1) {
        CHECK(pe, weft_device_malloc(all->world, pe->pe == 0 ? 100 : 200, &wrong) == WEFT_ERR_MISMATCH);
    }
    CHECK(pe, weft_device_attach(all->world, NULL) == WEFT_ERR_STATE);
    /* The sum of what waiting kernels may use is kept. */
    int sms = 0;
    OK(pe, weft_barrier(all->world));
    if (pe->pe == 0) {
        while (weft_device_sms_take(all->world, 1) == WEFT_OK && sms < 100000) {
            sms++;
        }
        CHECK_SAY(pe, sms > 1 && sms < 1000, "%d", sms);
        OK(pe, weft_device_sms_give(all->world, sms));
        OK(pe, weft_device_sms_take(all->world, sms));
        OK(pe, weft_device_sms_give(all->world, sms));
    }
    OK(pe, weft_barrier(all->world));
}

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
    pe->part = "launches";
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

#if ON_GPU
/* User memory from cudaMalloc, and from VMM, made symmetric. */
static void *vmm_alloc(test_pe *pe, size_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = pe->gpu;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    void *driver = NULL;
    cudaDriverEntryPointQueryResult found;
#define DRIVER(name)                                                                                                   \
    (cudaGetDriverEntryPointByVersion(#name, &driver, 12000, cudaEnableDefault, &found), (decltype(&name))driver)
    CHECK(pe, DRIVER(cuMemCreate)(&handle, bytes, &prop, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemAddressReserve)(&at, bytes, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemMap)(at, bytes, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemSetAccess)(at, bytes, &access, 1) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemRelease)(handle) == CUDA_SUCCESS);
#undef DRIVER
    return (void *)at;
}
#endif

static void test_registration(test_pe *pe, bench *all)
{
#if ON_GPU
    for (int way = 0; way < 2; way++) {
        size_t bytes = (size_t)2 << 20;
        unsigned char *mine = NULL;
        pe->part = way == 0 ? "registration of cudaMalloc memory" : "registration of VMM memory";
        if (way == 0) {
            GPU(pe, cudaMalloc((void **)&mine, bytes));
        } else {
            mine = (unsigned char *)vmm_alloc(pe, bytes);
        }
        OK(pe, weft_device_register(all->world, mine + 4096, 100000));
        unsigned char data[5000];
        unsigned char seen[5000];
        int right = (pe->pe + 1) % pe->pes;
        int left = (pe->pe + pe->pes - 1) % pe->pes;
        memset(data, pe->pe + 1, sizeof data);
        OK(pe, weft_putmem(all->world, all->source, data, sizeof data, pe->pe));
        OK(pe, weft_barrier(all->world));
        LAUNCH_KIND(put_kernel, 2, pe, 0, all->dev, mine + 4096 + 17, all->source, (wefti_u64)sizeof data, right,
                    all->status);
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        OK(pe, weft_barrier(all->world));
        OK(pe, weft_getmem(all->world, seen, mine + 4096 + 17, sizeof seen, pe->pe));
        memset(data, left + 1, sizeof data);
        CHECK(pe, memcmp(data, seen, sizeof data) == 0);
        OK(pe, weft_getmem(all->world, seen, mine + 4096 + 17, sizeof seen, right));
        memset(data, pe->pe + 1, sizeof data);
        CHECK(pe, memcmp(data, seen, sizeof data) == 0);
        OK(pe, weft_device_unregister(all->world, mine + 4096));
        CHECK(pe, weft_ptr(all->world, mine + 4096, right) == NULL);
        if (way == 0) {
            GPU(pe, cudaFree(mine));
        } /* the VMM buffer goes with the process */
    }
#else
    (void)all;
#endif
    pe->part = "registration";
    char here[100];
    CHECK(pe, weft_device_register(all->world, here, sizeof here) == WEFT_ERR_ARGUMENT);
}

/* A captured graph is replayed: nothing that changes from step to step may be in its arguments. */
static void test_graph(test_pe *pe, bench *all)
{
#if ON_GPU
    pe->part = "graph";
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

/* Waits that cannot succeed: each in a world of its own, since the fault stays. */
static void test_deadline(test_pe *pe, int way)
{
    static const char *const parts[] = {
        "a sync that one PE does not enter", "a signal that never comes", "an abort",
        "a PE that does not exist",          "elements beyond the heap",  "a stride of 0"};
    bench all;
    weft_dev_team team;
    int culprit = -2;
    pe->part = parts[way];
    bench_open(pe, &all, test_world(pe, "deadline", 0, 0));
    OK(pe, weft_device_deadline(all.world, way == 2                ? UINT64_C(15000000000)
                                           : all.dev.far_count > 0 ? UINT64_C(600000000)
                                                                   : UINT64_C(200000000)));
    OK(pe, weft_team_dev(weft_team_world(all.world), &team));
    OK(pe, weft_barrier(all.world));
    double start = now_s();
    weft_status expected = WEFT_ERR_TIMEOUT;
    int expected_culprit = pe->pes - 1;
    int status = WEFT_OK;
    if (way == 0) {
        if (pe->pe != pe->pes - 1 && pe->pes > 1) {
            LAUNCH_KIND(sync_kernel, pe->pe % KINDS, pe, 0, team, all.status);
            status = read_status(pe, all.world, all.status);
        } else {
            expected = WEFT_OK;
            usleep(all.dev.far_count > 0 ? 1500000 : 0); /* who leaves is missed sooner */
        }
    } else if (way == 1) {
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, pe->pes - 1, all.status);
        status = read_status(pe, all.world, all.status);
    } else if (way == 2) {
        expected = WEFT_ERR_ABORTED;
        expected_culprit = 0;
#if ON_GPU
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, -1, all.status);
#endif
        if (pe->pe == 0) {
            usleep(100000);
            OK(pe, weft_world_abort(all.world, 7));
        }
#if !ON_GPU
        LAUNCH(wait_kernel, 1, 1, 0, pe, all.dev, all.words, -1, all.status);
#endif
        status = read_status(pe, all.world, all.status);
    } else if (way >= 4) {
        const int is_range = way == 4;
        expected = is_range ? WEFT_ERR_RANGE : WEFT_ERR_ARGUMENT;
        expected_culprit = is_range ? (pe->pe + 1) % pe->pes : pe->pe;
        LAUNCH((strided_kernel<WEFTI_SCOPE_THREAD, uint64_t>), 1, 1, 0, pe, all.dev, all.words, all.words, all.words,
               is_range ? 1 << 30 : 0, 1, (wefti_u64)1 << 60, (pe->pe + 1) % pe->pes, all.status);
        status = read_status(pe, all.world, all.status);
    } else {
        expected = WEFT_ERR_RANGE;
        expected_culprit = pe->pes;
        LAUNCH(p_kernel<uint64_t>, 1, 1, 0, pe, all.dev, all.words, (uint64_t)1, pe->pes, all.status);
        status = read_status(pe, all.world, all.status);
    }
    CHECK_SAY(pe, status == expected, "%s", weft_status_name((weft_status)status));
    CHECK_SAY(pe, now_s() - start < 10, "%.1f s", now_s() - start);
    CHECK_SAY(pe,
              weft_world_fault(all.world, &culprit) == expected && (expected == WEFT_OK || culprit == expected_culprit),
              "culprit %d", culprit);
    if (expected != WEFT_OK) {
        CHECK(pe, weft_barrier(all.world) == expected);
    }
    OK(pe, weft_world_destroy(all.world));
}

static void test_worlds(test_pe *pe)
{
    pe->part = "two worlds at once";
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
        pe->part = "re-creation";
        bench again;
        bench_open(pe, &again, test_world(pe, "again", (size_t)(16 + 16 * round) << 20, (size_t)(1 + 3 * round) << 20));
        run_barriers(pe, &again, weft_team_world(again.world), 1, 0);
        OK(pe, weft_world_destroy(again.world));
    }
}

static void test_body(test_pe *pe)
{
    bench all;
    pe->part = "creation";
    bench_open(pe, &all, test_world(pe, "main", 0, 0));
    test_from_host(pe, &all);
    test_copies(pe, &all);
    test_types(pe, &all);
    test_concurrent_adds(pe, &all);
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
    test_graph(pe, &all);
    OK(pe, weft_world_destroy(all.world));
    test_worlds(pe);
    for (int way = 0; way < 6; way++) {
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
