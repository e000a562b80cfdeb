/* What a meeting of two threads on two GPUs costs, by how they are told of each other and by which fence orders their
 * stores; and what fences cost alone. bench/gpu/nvshmem.md says what is made of it. Needs two GPUs and nothing of weft:
 *     nvcc -arch=sm_90 -std=c++17 -O3 -I. bench/gpu/meetings.cu -o meetings && ./meetings
 *
 * One process, one thread a GPU. Each row is a way of meeting, or of waiting for order: ns, the median of ten
 * rounds. */
#include "bench/gpu/lib/figures.h"

#define TRIPS 500
#define ROUNDS 11
#define REST_NS 3000u

typedef unsigned long long u64;

static __device__ u64 time_ns()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

static __device__ u64 look(const u64 *word)
{
    u64 value;
    asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ u64 acquire(const u64 *word)
{
    u64 value;
    asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ void store(u64 *word, u64 value)
{
    asm volatile("st.relaxed.sys.global.b64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

static __device__ void add(u64 *word)
{
    asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" : : "l"(word) : "memory");
}

static __device__ u64 fetch_add(u64 *word)
{
    u64 value;
    asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], 1;" : "=l"(value) : "l"(word) : "memory");
    return value;
}

#define FENCE(order) asm volatile("fence." order ";" : : : "memory")

enum fence { NO_FENCE, ACQ_REL_GPU, ACQ_REL_SYS, RELEASE_SYS, SC_SYS };

template <int FENCE_OF> static __device__ void fence_of()
{
    if (FENCE_OF == ACQ_REL_GPU) {
        FENCE("acq_rel.gpu");
    } else if (FENCE_OF == ACQ_REL_SYS) {
        FENCE("acq_rel.sys");
    } else if (FENCE_OF == RELEASE_SYS) {
        FENCE("release.sys");
    } else if (FENCE_OF == SC_SYS) {
        FENCE("sc.sys");
    }
}

/* How the other thread is told: by an atomic or a store in its memory; by an atomic whose answer is awaited; or by a
 * store in one's own memory, at which the other one looks over the link, with one load under way or two. */
enum tell { BY_ADD, BY_STORE, BY_FETCH_ADD, BY_PULL, BY_TWO_PULLS };

/* How a wait looks: each look an acquire, or relaxed ones and a fence at the end. */
enum wait { ACQUIRES, LOOKS };

template <int WAIT_OF> static __device__ void wait_of(const u64 *word, u64 least)
{
    if (WAIT_OF == ACQUIRES) {
        while (acquire(word) < least) {
        }
    } else {
        while (look(word) < least) {
        }
        FENCE("acquire.sys");
    }
}

/* Words of a GPU, 128 bytes apart: 0 is written by the other one, 16 by itself; 32 and 48 are scratch. */
template <int TELL, int FENCE_OF, int WAIT_OF> __global__ void meet(u64 *mine, u64 *theirs, u64 *ns)
{
    u64 step = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const u64 start = time_ns();
#pragma unroll 1
        for (int i = 0; i < TRIPS; i++) {
            step++;
            fence_of<FENCE_OF>();
            if (TELL == BY_ADD) {
                add(theirs);
                wait_of<WAIT_OF>(mine, step);
            } else if (TELL == BY_STORE) {
                store(theirs, step);
                wait_of<WAIT_OF>(mine, step);
            } else if (TELL == BY_FETCH_ADD) {
                const u64 before = fetch_add(theirs);
                wait_of<WAIT_OF>(mine, step);
                if (before == ~(u64)0) { /* never: it has come back before the next fence */
                    store(mine + 32, before);
                }
            } else if (TELL == BY_PULL) {
                store(mine + 16, step);
                wait_of<WAIT_OF>(theirs + 16, step);
            } else {
                store(mine + 16, step);
                u64 first = look(theirs + 16);
                u64 second = look(theirs + 16);
                while (first < step) {
                    first = second;
                    second = look(theirs + 16);
                }
                FENCE("acquire.sys");
            }
        }
        ns[round] = (time_ns() - start) / TRIPS;
    }
}

/* What comes before a fence: nothing, a store here, a store there, or a store there and REST_NS. */
enum before { NOTHING, HERE, THERE, THERE_AND_REST };

template <int BEFORE, int FENCE_OF> __global__ void order(u64 *mine, u64 *theirs, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 sum = 0;
#pragma unroll 1
        for (int i = 0; i < TRIPS; i++) {
            if (BEFORE == HERE) {
                store(mine + 32, (u64)i);
            } else if (BEFORE != NOTHING) {
                store(theirs + 48, (u64)i);
            }
            u64 start = clock64();
            if (BEFORE == THERE_AND_REST) {
                const u64 until = time_ns() + REST_NS;
                while (time_ns() < until) {
                }
                start = clock64();
            }
            fence_of<FENCE_OF>();
            sum += clock64() - start;
        }
        ns[round] = sum / TRIPS;
    }
}

/* Round trips: a load over the link and one here, relaxed at system scope, and an acquire's. The words are 0. */
template <int IS_ACQUIRE> __global__ void load(const u64 *word, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        const u64 *at = word;
        const u64 start = time_ns();
#pragma unroll 1
        for (int i = 0; i < TRIPS; i++) {
            at = word + ((IS_ACQUIRE ? acquire(at) : look(at)) >> 60); /* each waits for the one before */
        }
        ns[round] = (at == word) * ((time_ns() - start) / TRIPS);
    }
}

typedef struct side {
    u64 *words;
    u64 *ns; /* pinned */
    cudaStream_t stream;
} side;

static side sides[2];

static void clear()
{
    for (int gpu = 0; gpu < 2; gpu++) {
        GPU(cudaSetDevice(gpu));
        GPU(cudaMemset(sides[gpu].words, 0, 4096));
        GPU(cudaDeviceSynchronize());
    }
}

static double median_ns(const u64 *ns)
{
    std::vector<double> rounds;
    for (int i = 1; i < ROUNDS; i++) {
        rounds.push_back((double)ns[i]);
    }
    return median_of(rounds);
}

template <int TELL, int FENCE_OF, int WAIT_OF> static void meeting(const char *what)
{
    clear();
    for (int gpu = 0; gpu < 2; gpu++) {
        GPU(cudaSetDevice(gpu));
        meet<TELL, FENCE_OF, WAIT_OF>
            <<<1, 1, 0, sides[gpu].stream>>>(sides[gpu].words, sides[1 - gpu].words, sides[gpu].ns);
        GPU(cudaGetLastError());
    }
    for (int gpu = 0; gpu < 2; gpu++) {
        GPU(cudaSetDevice(gpu));
        GPU(cudaStreamSynchronize(sides[gpu].stream));
    }
    printf("%8.0f  meeting: %s\n", median_ns(sides[0].ns), what);
}

template <int BEFORE, int FENCE_OF> static void fence_alone(const char *what)
{
    int khz = 0;
    clear();
    GPU(cudaSetDevice(0));
    GPU(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    order<BEFORE, FENCE_OF><<<1, 1, 0, sides[0].stream>>>(sides[0].words, sides[1].words, sides[0].ns);
    GPU(cudaGetLastError());
    GPU(cudaStreamSynchronize(sides[0].stream));
    printf("%8.0f  fence: %s\n", median_ns(sides[0].ns) * 1e6 / khz, what);
}

template <int IS_ACQUIRE> static void round_trip(int of, const char *what)
{
    clear();
    GPU(cudaSetDevice(0));
    load<IS_ACQUIRE><<<1, 1, 0, sides[0].stream>>>(sides[of].words, sides[0].ns);
    GPU(cudaGetLastError());
    GPU(cudaStreamSynchronize(sides[0].stream));
    printf("%8.0f  load: %s\n", median_ns(sides[0].ns), what);
}

static void open_sides()
{
    for (int gpu = 0; gpu < 2; gpu++) {
        GPU(cudaSetDevice(gpu));
        GPU(cudaDeviceEnablePeerAccess(1 - gpu, 0));
        GPU(cudaMalloc((void **)&sides[gpu].words, 4096));
        GPU(cudaMallocHost((void **)&sides[gpu].ns, ROUNDS * sizeof *sides[gpu].ns));
        GPU(cudaStreamCreateWithFlags(&sides[gpu].stream, cudaStreamNonBlocking));
    }
}

static void meetings()
{
    meeting<BY_ADD, NO_FENCE, ACQUIRES>("an atomic there, no fence, looks that acquire");
    meeting<BY_ADD, NO_FENCE, LOOKS>("an atomic there, no fence, relaxed looks and fence.acquire");
    meeting<BY_STORE, NO_FENCE, LOOKS>("a store there, no fence, relaxed looks and fence.acquire");
    meeting<BY_ADD, ACQ_REL_GPU, LOOKS>("an atomic there, fence.acq_rel.gpu, relaxed looks and fence.acquire");
    meeting<BY_ADD, ACQ_REL_SYS, ACQUIRES>("an atomic there, fence.acq_rel.sys, looks that acquire");
    meeting<BY_ADD, ACQ_REL_SYS, LOOKS>("an atomic there, fence.acq_rel.sys, relaxed looks and fence.acquire");
    meeting<BY_ADD, RELEASE_SYS, LOOKS>("an atomic there, fence.release.sys, relaxed looks and fence.acquire");
    meeting<BY_STORE, RELEASE_SYS, LOOKS>("a store there, fence.release.sys, relaxed looks and fence.acquire");
    meeting<BY_FETCH_ADD, RELEASE_SYS, LOOKS>("an atomic there that answers, fence.release.sys, relaxed looks");
    meeting<BY_ADD, SC_SYS, LOOKS>("an atomic there, fence.sc.sys, relaxed looks and fence.acquire");
    meeting<BY_PULL, NO_FENCE, LOOKS>("a store here, no fence, relaxed looks over the link");
    meeting<BY_PULL, RELEASE_SYS, LOOKS>("a store here, fence.release.sys, relaxed looks over the link");
    meeting<BY_TWO_PULLS, RELEASE_SYS, LOOKS>("a store here, fence.release.sys, two looks at a time over the link");
}

static void fences()
{
    fence_alone<NOTHING, NO_FENCE>("none: what the clock costs");
    fence_alone<NOTHING, ACQ_REL_GPU>("acq_rel.gpu after nothing");
    fence_alone<HERE, ACQ_REL_GPU>("acq_rel.gpu after a store here");
    fence_alone<THERE, ACQ_REL_GPU>("acq_rel.gpu after a store there");
    fence_alone<NOTHING, RELEASE_SYS>("release.sys after nothing");
    fence_alone<HERE, RELEASE_SYS>("release.sys after a store here");
    fence_alone<THERE, RELEASE_SYS>("release.sys after a store there");
    fence_alone<THERE_AND_REST, RELEASE_SYS>("release.sys 3 us after a store there");
    fence_alone<THERE, ACQ_REL_SYS>("acq_rel.sys after a store there");
    fence_alone<THERE, SC_SYS>("sc.sys after a store there");
}

int main()
{
    int count = 0;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* no kernel is loaded while another one waits */
    GPU(cudaGetDeviceCount(&count));
    if (count < 2) {
        fprintf(stderr, "meetings: needs two GPUs, there are %d\n", count);
        return 77;
    }
    open_sides();
    round_trip<0>(1, "over the link, relaxed");
    round_trip<0>(0, "here, relaxed");
    round_trip<1>(0, "here, acquire");
    fences();
    meetings();
    return 0;
}
