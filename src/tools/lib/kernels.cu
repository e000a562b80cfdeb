/* lib/kernels.cu: calls of the device API timed inside kernels, and the bare hardware beside them.
 *
 * tool_NAME_SCOPE <<<1, 1 | 32 | any>>>   `rounds` times `trips` calls by one scope of each PE that takes part, by the
 *     clock of the GPU. p_pingpong, signal, put_signal: PE 0 and PE `peer` in turn, each a send and an answer; the
 * others:     PE 0 alone to `peer`, or all members of the team.
 * tool_NAME_bw_SCOPE <<<any, 1 | 32 | any>>>   chunks from a counter, timed from outside.
 * tool_raw_...   the same in bare loads, stores, releases and polls. raw_put_signal waits without a deadline, so it
 * runs     after calls that showed that the others are there.
 *
 * On a GPU they are kernels; compiled for the CPU (WEFT_DEVICE_ON_HOST), functions that the fake driver calls block by
 * block, each of one thread. */
#include "tools/lib/kernels.h"

#include "weft_device.cuh"

typedef wefti_u64 u64;

#if defined(WEFT_DEVICE_ON_HOST)
#define KERNEL(NAME, threads, ...)                                                                                     \
    extern "C" __attribute__((visibility("default"))) void tool_##NAME(const void *, unsigned, unsigned);              \
    extern "C" void tool_##NAME(const void *arguments, unsigned, unsigned)                                             \
    {                                                                                                                  \
        const tool_kernel_args &args = *(const tool_kernel_args *)arguments;                                           \
        __VA_ARGS__;                                                                                                   \
    }
#define ON_GPU 0
static const wefti_u32 threadIdx_x = 0;
static const wefti_u32 blockDim_x = 1;
static unsigned char shared_memory[128];
template <int KIND> static inline weft_scope scope_of()
{
    return weft_thread();
}
static inline weft_scope scope_of_kind(int)
{
    return weft_thread();
}
#else
#define KERNEL(NAME, threads, ...)                                                                                     \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                                           \
        tool_##NAME(const __grid_constant__ tool_kernel_args args)                                                     \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }
#define ON_GPU 1
#define threadIdx_x threadIdx.x
#define blockDim_x blockDim.x
extern __shared__ __align__(128) unsigned char shared_memory[];
template <int KIND> static __device__ __forceinline__ weft_scope scope_of()
{
    return KIND == WEFTI_SCOPE_BLOCK ? weft_block() : KIND == WEFTI_SCOPE_WARP ? weft_warp() : weft_thread();
}
static __device__ __forceinline__ weft_scope scope_of_kind(int kind)
{
    return kind == WEFTI_SCOPE_BLOCK ? weft_block() : kind == WEFTI_SCOPE_WARP ? weft_warp() : weft_thread();
}
#endif

/* Kernels of one BODY for a thread, a warp and a block. */
#define KERNELS(NAME, BODY)                                                                                            \
    KERNEL(NAME##_thread, 1, BODY<WEFTI_SCOPE_THREAD>(args))                                                           \
    KERNEL(NAME##_warp, 32, BODY<WEFTI_SCOPE_WARP>(args))                                                              \
    KERNEL(NAME##_block, 1024, BODY<WEFTI_SCOPE_BLOCK>(args))

/* Call trip(i), i counting from args.first over all rounds; stop at one that fails. One loop, and few values that live
 * through a call: put_signal needs all 64 registers of a thread. */
template <class Trip>
static WEFTI_DEVICE void time_rounds(const tool_kernel_args &args, wefti_u32 rank, const Trip &trip)
{
    const int last = args.rounds * args.trips;
    u64 start = wefti_time_ns();
    WEFTI_UNROLL(1)
    for (int n = 1, left = args.trips; n <= last; n++) {
        if (trip(args.first + (u64)n - 1) != WEFT_OK) {
            return;
        }
        if (--left == 0) {
            u64 now = wefti_time_ns();
            if (rank == 0) {
                ((u64 *)args.ns)[n / args.trips - 1] = now - start;
            }
            start = now;
            left = args.trips;
        }
    }
}

/* ---- there and back: PE 0 sends, the peer answers ---- */

/* One value thread to thread: p and wait. */
static WEFTI_DEVICE void p_pingpong(const tool_kernel_args &args)
{
    const weft_dev &dev = args.team.world;
    u64 *flag = (u64 *)args.flag;
    time_rounds(args, 0, [&](u64 i) -> int {
        if (dev.pe == 0) {
            weft_dev_p(dev, flag, i, args.peer);
        }
        int status = weft_dev_wait_until(weft_thread(), dev, flag, WEFT_CMP_GE, i);
        if (dev.pe != 0) {
            weft_dev_p(dev, flag, i, args.peer);
        }
        return status;
    });
}
KERNEL(p_pingpong_thread, 1, p_pingpong(args))

static WEFTI_DEVICE void signal_trips(const tool_kernel_args &args)
{
    const weft_dev &dev = args.team.world;
    u64 *flag = (u64 *)args.flag;
    time_rounds(args, 0, [&](u64 i) -> int {
        if (dev.pe == 0) {
            weft_dev_signal(dev, flag, i, WEFT_SIGNAL_SET, args.peer);
        }
        int status = weft_dev_signal_wait_until(weft_thread(), dev, flag, WEFT_CMP_GE, i);
        if (dev.pe != 0) {
            weft_dev_signal(dev, flag, i, WEFT_SIGNAL_SET, args.peer);
        }
        return status;
    });
}
KERNEL(signal_thread, 1, signal_trips(args))

template <int KIND> static WEFTI_DEVICE void put_signal(const tool_kernel_args &args)
{
    const weft_dev &dev = args.team.world;
    u64 *flag = (u64 *)args.flag;
    time_rounds(args, scope_of<KIND>().rank, [&](u64 i) -> int {
        int status = WEFT_OK;
        WEFTI_UNROLL(1)
        for (int side = 0; side < 2; side++) {
            if (side == (dev.pe != 0)) {
                weft_dev_put_signal(scope_of<KIND>(), dev, (void *)args.dest, (const void *)args.source, args.bytes,
                                    flag, i, WEFT_SIGNAL_SET, args.peer);
            } else {
                status = weft_dev_signal_wait_until(scope_of<KIND>(), dev, flag, WEFT_CMP_GE, i);
            }
        }
        return status;
    });
}
KERNELS(put_signal, put_signal)

/* What the hardware allows: a load and a store of 8 bytes, or of 16 a thread; a flag with release; a poll with
 * acquire; the same barriers as a block's call needs. */
static WEFTI_DEVICE void raw_put_signal(const tool_kernel_args &args)
{
    const weft_dev &dev = args.team.world;
    u64 *flag = (u64 *)args.flag;
    u64 *there = (u64 *)wefti_dev_peer(dev, flag, 8, args.peer);
    wefti_wide *to = (wefti_wide *)wefti_dev_peer(dev, (void *)args.dest, 16, args.peer);
    const wefti_wide *source = (const wefti_wide *)args.source;
    const wefti_u32 vectors = args.bytes == 8 ? 0 : (wefti_u32)(args.bytes / 16);
    time_rounds(args, threadIdx_x, [&](u64 i) -> int {
        WEFTI_UNROLL(1)
        for (int side = 0; side < 2; side++) {
            if (side == (dev.pe != 0)) {
                if (vectors == 0 && threadIdx_x == 0) {
                    wefti_st_relaxed((u64 *)to, *(const u64 *)source);
                }
                for (wefti_u32 v = threadIdx_x; v < vectors; v += blockDim_x) {
                    wefti_st_remote(to + v, source[v]);
                }
                wefti_sync_block();
                if (threadIdx_x == 0) {
                    wefti_st_release(there, i);
                }
            } else {
                if (threadIdx_x == 0) {
                    while (wefti_ld_acquire(flag) < i) {
                    }
                }
                wefti_sync_block();
            }
        }
        return WEFT_OK;
    });
}
KERNEL(raw_put_signal_thread, 1, raw_put_signal(args))
KERNEL(raw_put_signal_block, 1024, raw_put_signal(args))

/* ---- PE 0 alone, back to back ---- */

template <int KIND> static WEFTI_DEVICE void put(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int {
        return weft_dev_put(scope_of<KIND>(), args.team.world, (void *)args.dest, (const void *)args.source, args.bytes,
                            args.peer);
    });
}
KERNELS(put, put)

/* Each completed before the next: every thread that stored waits. */
template <int KIND> static WEFTI_DEVICE void put_quiet(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int {
        int status = weft_dev_put(scope_of<KIND>(), args.team.world, (void *)args.dest, (const void *)args.source,
                                  args.bytes, args.peer);
        const int quiet = weft_dev_quiet(args.team.world);
        wefti_scope_sync(scope_of<KIND>());
        return status != WEFT_OK ? status : quiet;
    });
}
KERNELS(put_quiet, put_quiet)

template <int KIND> static WEFTI_DEVICE void get(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int {
        return weft_dev_get(scope_of<KIND>(), args.team.world, (void *)args.dest, (const void *)args.source, args.bytes,
                            args.peer);
    });
}
KERNELS(get, get)

/* One word; where a value comes back the next call needs it. */
#define WORD(NAME, T, call)                                                                                            \
    static WEFTI_DEVICE void word_##NAME##_##T(const tool_kernel_args &args)                                           \
    {                                                                                                                  \
        const weft_dev &dev = args.team.world;                                                                         \
        T *at = (T *)args.dest;                                                                                        \
        T value = 0;                                                                                                   \
        time_rounds(args, 0, [&](u64) -> int { return call; });                                                        \
        ((u64 *)args.ns)[0] += (u64)value >> 63; /* so that it is used */                                              \
    }                                                                                                                  \
    KERNEL(NAME##_##T##_thread, 1, word_##NAME##_##T(args))
#define WORDS(T)                                                                                                       \
    WORD(p, T, weft_dev_p(dev, at, (T)1, args.peer))                                                                   \
    WORD(g, T, weft_dev_g(dev, at + (value & 1), args.peer, &value))                                                   \
    WORD(fetch, T, weft_dev_atomic_fetch(dev, at + (value & 1), args.peer, &value))                                    \
    WORD(set, T, weft_dev_atomic_set(dev, at, (T)1, args.peer))                                                        \
    WORD(swap, T, weft_dev_atomic_swap(dev, at, (T)(value | 1), args.peer, &value))                                    \
    WORD(compare_swap, T, weft_dev_atomic_compare_swap(dev, at, value, (T)(value + 1), args.peer, &value))             \
    WORD(add, T, weft_dev_atomic_add(dev, at, (T)1, args.peer))                                                        \
    WORD(fetch_add, T, weft_dev_atomic_fetch_add(dev, at, (T)(1 + (value >> (8 * sizeof(T) - 1))), args.peer, &value)) \
    WORD(inc, T, weft_dev_atomic_inc(dev, at, args.peer))                                                              \
    WORD(fetch_inc, T, weft_dev_atomic_fetch_inc(dev, at, args.peer, &value))                                          \
    WORD(and, T, weft_dev_atomic_and(dev, at, (T)-1, args.peer))                                                       \
    WORD(fetch_and, T, weft_dev_atomic_fetch_and(dev, at, (T)(value | 1), args.peer, &value))                          \
    WORD(or, T, weft_dev_atomic_or(dev, at, (T)1, args.peer))                                                          \
    WORD(fetch_or, T, weft_dev_atomic_fetch_or(dev, at, (T)(value & 1), args.peer, &value))                            \
    WORD(xor, T, weft_dev_atomic_xor(dev, at, (T)1, args.peer))                                                        \
    WORD(fetch_xor, T, weft_dev_atomic_fetch_xor(dev, at, (T)(value & 1), args.peer, &value))
typedef wefti_u32 uint32;
typedef wefti_u64 uint64;
WORDS(uint32)
WORDS(uint64)

/* ---- all members ---- */

template <int KIND> static WEFTI_DEVICE void barrier(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int { return weft_dev_barrier(scope_of<KIND>(), args.team); });
}
KERNELS(barrier, barrier)

template <int KIND> static WEFTI_DEVICE void sync_all(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int { return weft_dev_sync(scope_of<KIND>(), args.team); });
}
KERNELS(sync, sync_all)

/* A collective's code is long: one for all scopes, with registers for blocks as large as the library's own. */
#define COLLECTIVE(NAME, call)                                                                                         \
    static WEFTI_DEVICE void NAME(const tool_kernel_args &args)                                                        \
    {                                                                                                                  \
        const weft_scope scope = scope_of_kind(args.scope);                                                            \
        void *dest = (void *)args.dest;                                                                                \
        const void *source = (const void *)args.source;                                                                \
        time_rounds(args, scope.rank, [&](u64) -> int { return call; });                                               \
    }                                                                                                                  \
    KERNEL(NAME##_any, TOOL_COLLECTIVE_THREADS, NAME(args))
COLLECTIVE(broadcast, weft_dev_broadcast(scope, args.team, dest, source, args.bytes, args.root))
COLLECTIVE(fcollect, weft_dev_fcollect(scope, args.team, dest, source, args.bytes))
COLLECTIVE(collect, weft_dev_collect(scope, args.team, dest, source, args.bytes))
COLLECTIVE(alltoall, weft_dev_alltoall(scope, args.team, dest, source, args.bytes))
COLLECTIVE(alltoallv,
           weft_dev_alltoallv(scope, args.team, dest, (const u64 *)args.table, source,
                              (const u64 *)args.table + args.team.pes, (const u64 *)args.table + 2 * args.team.pes))
#define REDUCTION(NAME, T, OP)                                                                                         \
    COLLECTIVE(NAME, weft_dev_reduce<OP>(scope, args.team, (T *)dest, (const T *)source, args.bytes / sizeof(T)))
REDUCTION(reduce_sum_double, double, WEFT_OP_SUM)
REDUCTION(reduce_sum_bf16, weft_bf16, WEFT_OP_SUM)
REDUCTION(reduce_sum_fp16, weft_fp16, WEFT_OP_SUM)
REDUCTION(reduce_sum_int32, int, WEFT_OP_SUM)
REDUCTION(reduce_sum_int64, long long, WEFT_OP_SUM)
REDUCTION(reduce_max_float, float, WEFT_OP_MAX)
REDUCTION(reduce_xor_uint64, unsigned long long, WEFT_OP_XOR)
COLLECTIVE(reduce_scatter_sum_float,
           weft_dev_reduce_scatter<WEFT_OP_SUM>(scope, args.team, (float *)dest, (const float *)source,
                                                args.bytes / sizeof(float)))

/* The most used one by itself in each scope. */
template <int KIND> static WEFTI_DEVICE void reduce_sum_float(const tool_kernel_args &args)
{
    time_rounds(args, scope_of<KIND>().rank, [&](u64) -> int {
        return weft_dev_reduce<WEFT_OP_SUM>(scope_of<KIND>(), args.team, (float *)args.dest, (const float *)args.source,
                                            args.bytes / sizeof(float));
    });
}
KERNEL(reduce_sum_float_thread, 1, reduce_sum_float<WEFTI_SCOPE_THREAD>(args))
KERNEL(reduce_sum_float_warp, 32, reduce_sum_float<WEFTI_SCOPE_WARP>(args))
KERNEL(reduce_sum_float_block, TOOL_COLLECTIVE_THREADS, reduce_sum_float<WEFTI_SCOPE_BLOCK>(args))

/* ---- rates: blocks take chunks until none is left ---- */

/* The next chunk for this block, or one past the last. */
static WEFTI_DEVICE wefti_u32 next_chunk(const tool_kernel_args &args)
{
    wefti_sync_block();
    wefti_u32 mine = threadIdx_x == 0 ? wefti_atomic_count((wefti_u32 *)args.taken, 0xfffffffeu) : 0;
    return wefti_first_of_block(threadIdx_x, mine);
}

/* Call move(place of the chunk in dest, in source, PE) for each chunk that this block gets. */
template <class Move> static WEFTI_DEVICE void for_chunks(const tool_kernel_args &args, const Move &move)
{
    const weft_dev &dev = args.team.world;
    for (wefti_u32 c; (c = next_chunk(args)) < args.chunks;) {
        move(args.dest + c * args.chunk_bytes, args.source + c * args.chunk_bytes,
             (int)((wefti_u32)dev.pe + 1 + c % (wefti_u32)args.spread) % dev.pes);
    }
}

template <int KIND> static WEFTI_DEVICE void put_bw(const tool_kernel_args &args)
{
    for_chunks(args, [&](u64 dest, u64 source, int pe) {
        weft_dev_put(scope_of<KIND>(), args.team.world, (void *)dest, (const void *)source, args.chunk_bytes, pe);
    });
    (void)weft_dev_quiet(args.team.world);
}
KERNELS(put_bw, put_bw)

template <int KIND> static WEFTI_DEVICE void get_bw(const tool_kernel_args &args)
{
    for_chunks(args, [&](u64 dest, u64 source, int pe) {
        weft_dev_get(scope_of<KIND>(), args.team.world, (void *)dest, (const void *)source, args.chunk_bytes, pe);
    });
}
KERNELS(get_bw, get_bw)

static WEFTI_DEVICE void put_bulk_bw(const tool_kernel_args &args)
{
    for_chunks(args, [&](u64 dest, u64 source, int pe) {
        weft_dev_put_bulk(scope_of<WEFTI_SCOPE_WARP>(), args.team.world, (void *)dest, (const void *)source,
                          args.chunk_bytes, pe, shared_memory, args.shared_bytes);
    });
}
KERNEL(put_bulk_bw_warp, 32, put_bulk_bw(args))

static WEFTI_DEVICE wefti_wide wide_of(wefti_u32 x, wefti_u32 y, wefti_u32 z, wefti_u32 w)
{
    wefti_wide made = {x, y, z, w};
    return made;
}

static WEFTI_DEVICE void raw_put_bw(const tool_kernel_args &args)
{
    const wefti_wide value = wide_of(threadIdx_x, 2, 3, 4);
    for_chunks(args, [&](u64 dest, u64, int pe) {
        wefti_wide *to = (wefti_wide *)wefti_dev_peer(args.team.world, (void *)dest, args.chunk_bytes, pe);
        WEFTI_UNROLL(8)
        for (u64 i = threadIdx_x; i < args.chunk_bytes / 16; i += blockDim_x) {
            wefti_st_remote(to + i, value);
        }
    });
    (void)weft_dev_quiet(args.team.world);
}
KERNEL(raw_put_bw_block, 1024, raw_put_bw(args))

static WEFTI_DEVICE void raw_get_bw(const tool_kernel_args &args)
{
    wefti_u32 sum = 0;
    for_chunks(args, [&](u64, u64 source, int pe) {
        const wefti_wide *from =
            (const wefti_wide *)wefti_dev_peer(args.team.world, (void *)source, args.chunk_bytes, pe);
        for (u64 i = threadIdx_x; i + 3 * blockDim_x < args.chunk_bytes / 16; i += 4 * blockDim_x) {
            wefti_wide held[4];
            WEFTI_UNROLL(4)
            for (int j = 0; j < 4; j++) {
                held[j] = wefti_ld_remote(from + i + j * blockDim_x);
            }
            WEFTI_UNROLL(4)
            for (int j = 0; j < 4; j++) {
                sum ^= held[j].x ^ held[j].y ^ held[j].z ^ held[j].w;
            }
        }
    });
    if (sum == 0x12345678) {
        *(wefti_u32 *)args.taken = sum; /* so that the loads are needed */
    }
}
KERNEL(raw_get_bw_block, 1024, raw_get_bw(args))

/* Bulk loads into shared memory and nothing else: one thread, eight stages. */
static WEFTI_DEVICE void raw_get_bulk_bw(const tool_kernel_args &args)
{
#if WEFTI_HAS_BULK
    const u64 stages = 8;
    const u64 stage_bytes = (args.shared_bytes - 128) / stages;
    u64 *barriers = (u64 *)shared_memory;
    u64 issued = 0; /* over all chunks */
    u64 awaited = 0;
    if (threadIdx_x == 0) {
        for (u64 i = 0; i < stages; i++) {
            wefti_load_barrier_init(&barriers[i]);
        }
        wefti_load_barrier_publish();
    }
    for_chunks(args, [&](u64, u64 source, int pe) {
        u64 from = wefti_dev_peer(args.team.world, (void *)source, args.chunk_bytes, pe);
        for (u64 at = 0; threadIdx_x == 0 && at < args.chunk_bytes; at += stage_bytes) {
            if (issued >= stages) {
                while (!wefti_load_barrier_passed(&barriers[awaited % stages], (unsigned)(awaited / stages & 1))) {
                }
                awaited++;
            }
            wefti_bulk_load(shared_memory + 128 + issued % stages * stage_bytes, (const void *)(from + at),
                            (unsigned)stage_bytes, &barriers[issued % stages]);
            issued++;
        }
    });
    for (; threadIdx_x == 0 && awaited < issued; awaited++) {
        while (!wefti_load_barrier_passed(&barriers[awaited % stages], (unsigned)(awaited / stages & 1))) {
        }
    }
#else
    (void)args;
#endif
}
KERNEL(raw_get_bulk_bw_warp, 32, raw_get_bulk_bw(args))

/* ---- when counts are there: beside the kernel that finds them, which the fake driver cannot do ---- */

#if ON_GPU
#define COUNTS_LIMIT_NS 1000000000ull /* for one that does not come */

/* When all of the `bytes` counts at `source`, and the one at `dest`, are no longer -1, tell the host by `first` at
 * `flag`. One block. */
static WEFTI_DEVICE void counts_there(const tool_kernel_args &args)
{
    const u64 start = wefti_time_ns();
    const wefti_u32 none = ~(wefti_u32)0;
    for (u64 i = threadIdx_x; i <= args.bytes; i += blockDim_x) {
        const wefti_u32 *count = i < args.bytes ? (const wefti_u32 *)args.source + i : (const wefti_u32 *)args.dest;
        while (*(const volatile wefti_u32 *)count == none && wefti_time_ns() - start < COUNTS_LIMIT_NS) {
        }
    }
    wefti_sync_block();
    if (threadIdx_x == 0) {
        wefti_st_release((u64 *)args.flag, args.first);
    }
}
KERNEL(counts_there_block, TOOL_WATCHING_THREADS, counts_there(args))
#endif
