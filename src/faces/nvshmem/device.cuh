/* weft_nvshmem/device.cuh: what the routines inside kernels are made of: weft's calls on the state that the
 * library fills in.
 *
 * A failure is latched in the world, as with weft's own calls: the host's next call with a status returns it. */
#ifndef WEFT_NVSHMEM_DEVICE_CUH
#define WEFT_NVSHMEM_DEVICE_CUH

#include "weft_device.cuh"
#include <weft_nvshmem/state.h>

/* ---- the state of this translation unit ---- */

#if defined(WEFT_DEVICE_ON_HOST)
static weft_nvshmem_state weft_nvshmem_state_d;
#elif defined(__CUDACC_RDC__) /* units that are linked together share one, by which a module's is found, too */
inline __constant__ __attribute__((visibility("hidden"))) weft_nvshmem_state weft_nvshmem_state_d;
#else
extern "C" {
__constant__ weft_nvshmem_state weft_nvshmem_state_d;
}
#endif

#if !defined(__CUDACC_RTC__)
namespace
{
/* Fill in the state of a module. Returns 0 when that is done. */
inline int wefti_nv_fill(const weft_nvshmem_state *state)
{
#if defined(WEFT_DEVICE_ON_HOST)
    weft_nvshmem_state_d = *state;
    return 0;
#else
    const int failed = cudaMemcpyToSymbol(weft_nvshmem_state_d, state, sizeof *state) != cudaSuccess;
    if (failed) {
        (void)cudaGetLastError();
    }
    return failed;
#endif
}

weft_nvshmem_unit wefti_nv_this_unit = {0, 0, WEFT_NVSHMEM_ABI, wefti_nv_fill};

struct wefti_nv_announcer {
    wefti_nv_announcer()
    {
        weft_nvshmem_unit_add(&wefti_nv_this_unit);
    }
    ~wefti_nv_announcer()
    {
        weft_nvshmem_unit_remove(&wefti_nv_this_unit);
    }
};
wefti_nv_announcer wefti_nv_announced;
} // namespace
#endif

WEFTI_DEVICE const weft_dev &wefti_nv_world()
{
    return weft_nvshmem_state_d.world.world;
}

WEFTI_DEVICE const weft_dev_team &wefti_nv_team(nvshmem_team_t team)
{
    return team == NVSHMEM_TEAM_WORLD ? weft_nvshmem_state_d.world : weft_nvshmem_state_d.teams[team];
}

WEFTI_DEVICE bool wefti_nv_is_team(nvshmem_team_t team)
{
    return (wefti_u32)team < (wefti_u32)weft_nvshmem_state_d.team_count && wefti_nv_team(team).pes > 0;
}

/* ---- who calls ---- */

#if defined(WEFT_DEVICE_ON_HOST) && !defined(WEFT_DEVICE_ON_HOST_THREADS)
WEFTI_DEVICE weft_scope wefti_nv_warp()
{
    return weft_thread();
}
WEFTI_DEVICE weft_scope wefti_nv_block()
{
    return weft_thread();
}
#else
WEFTI_DEVICE weft_scope wefti_nv_warp()
{
    return weft_warp();
}
WEFTI_DEVICE weft_scope wefti_nv_block()
{
    return weft_block();
}
#endif

/* ---- queries ---- */

WEFTI_DEVICE int wefti_nv_status(int status)
{
    return status == WEFT_OK                                         ? NVSHMEMX_SUCCESS
           : status == WEFT_ERR_RANGE || status == WEFT_ERR_ARGUMENT ? NVSHMEMX_ERROR_INVALID_VALUE
                                                                     : NVSHMEMX_ERROR_INTERNAL;
}

WEFTI_DEVICE void wefti_nv_version(int *major, int *minor)
{
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}

WEFTI_DEVICE void wefti_nv_vendor_version(int *major, int *minor, int *patch)
{
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

WEFTI_DEVICE void wefti_nv_name(char *name)
{
    const char text[] = NVSHMEM_VENDOR_STRING;
    for (wefti_u32 i = 0; i < sizeof text; i++) {
        name[i] = text[i];
    }
}

WEFTI_DEVICE void *wefti_nv_no_multicast(nvshmem_team_t team, const void *ptr)
{
    (void)team;
    (void)ptr;
    return 0;
}

WEFTI_DEVICE int wefti_nv_team_pe(nvshmem_team_t team)
{
    return wefti_nv_is_team(team) ? wefti_nv_team(team).pe : -1;
}

WEFTI_DEVICE int wefti_nv_team_pes(nvshmem_team_t team)
{
    return wefti_nv_is_team(team) ? wefti_nv_team(team).pes : -1;
}

WEFTI_DEVICE int wefti_nv_translate(nvshmem_team_t from, int pe, nvshmem_team_t to)
{
    if (!wefti_nv_is_team(from) || !wefti_nv_is_team(to) || pe < 0 || pe >= wefti_nv_team(from).pes) {
        return -1;
    }
    const int wanted = wefti_dev_member(wefti_nv_team(from), pe);
    for (int i = 0; i < wefti_nv_team(to).pes; i++) {
        if (wefti_dev_member(wefti_nv_team(to), i) == wanted) {
            return i;
        }
    }
    return -1;
}

/* ---- one-sided ---- */

/* An element that has so many bytes. */
template <int BYTES> struct wefti_nv_element {
    typename wefti_access<BYTES>::type word;
};
template <> struct wefti_nv_element<16> {
    wefti_u64 word[2];
};

/* The same value, but for the compiler, which keeps it in a register through a loop instead of computing it again. */
WEFTI_DEVICE wefti_u64 wefti_nv_kept(wefti_u64 value)
{
#if !defined(WEFT_DEVICE_ON_HOST)
    asm("mov.b64 %0, %0;" : "+l"(value));
#endif
    return value;
}

/* From memory that is not in a plain heap. What fails is latched, and gives 0. */
WEFTI_DEVICE_SLOW wefti_u64 wefti_nv_g_slow(wefti_u64 source, wefti_u32 bytes, int pe)
{
    wefti_u64 bits = 0;
    (void)wefti_dev_g_slow(&wefti_nv_world(), source, &bits, bytes, pe);
    return bits;
}

/* By way of the multiprocessor's cache, as gets are: in a loop its answer takes little longer than two additions, so
 * that what depends on the PE alone is computed once, and the address beside the check, not behind it. */
template <class T> WEFTI_DEVICE T wefti_nv_g(const T *source, int pe)
{
    typedef typename wefti_access<sizeof(T)>::type word;
    const weft_dev &dev = wefti_nv_world();
    const wefti_u64 apart = wefti_nv_kept(wefti_dev_plain(dev, 0, pe));
    const wefti_u64 plain_bytes = wefti_dev_is_plain(dev, dev.heap, 0, pe) ? dev.plain_bytes : 0;
    const wefti_u64 from = wefti_nv_kept((wefti_u64)source + apart);
    word bits;
    if (__builtin_expect((wefti_u64)source - dev.heap < plain_bytes, 1)) {
        wefti_get_side::move(&bits, (const word *)from);
    } else {
        bits = (word)wefti_nv_g_slow((wefti_u64)source, sizeof(T), pe);
    }
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

WEFTI_DEVICE weft_signal_op wefti_nv_signal_op(int op)
{
    return (weft_signal_op)(op - NVSHMEM_SIGNAL_SET);
}

/* A signal alone orders nothing: nvshmem_fence does. weft's own is a release, which waits for what this thread has
 * stored before. */
WEFTI_DEVICE void wefti_nv_signal(uint64_t *signal, uint64_t value, int op, int pe)
{
    const weft_signal_op wanted = wefti_nv_signal_op(op);
    const wefti_u64 at = wefti_dev_peer(wefti_nv_world(), signal, sizeof(uint64_t), pe);
    if (__builtin_expect(at == 0, 0)) {
        (void)wefti_far_signal(&wefti_nv_world(), (wefti_u64)signal, value, wanted, pe);
    } else if (wanted == WEFT_SIGNAL_SET) {
        wefti_st_relaxed((wefti_u64 *)at, (wefti_u64)value);
    } else {
        wefti_red_add_relaxed((wefti_u64 *)at, value);
    }
}

template <class T> WEFTI_DEVICE T wefti_nv_atomic_fetch(const T *source, int pe)
{
    T value = T();
    (void)weft_dev_atomic_fetch(wefti_nv_world(), source, pe, &value);
    return value;
}

template <class T> WEFTI_DEVICE T wefti_nv_atomic_compare_swap(T *dest, T cond, T value, int pe)
{
    T old = T();
    (void)weft_dev_atomic_compare_swap(wefti_nv_world(), dest, cond, value, pe, &old);
    return old;
}

#define WEFTI_NV_DEFINE_FETCH(NAME, CALL)                                                                              \
    template <class T> WEFTI_DEVICE T wefti_nv_atomic_##NAME(T *dest, T value, int pe)                                 \
    {                                                                                                                  \
        T old = T();                                                                                                   \
        (void)weft_dev_atomic_##CALL(wefti_nv_world(), dest, value, pe, &old);                                         \
        return old;                                                                                                    \
    }
WEFTI_NV_DEFINE_FETCH(swap, swap)
WEFTI_NV_DEFINE_FETCH(fetch_add, fetch_add)
WEFTI_NV_DEFINE_FETCH(fetch_and, fetch_and)
WEFTI_NV_DEFINE_FETCH(fetch_or, fetch_or)
WEFTI_NV_DEFINE_FETCH(fetch_xor, fetch_xor)
#undef WEFTI_NV_DEFINE_FETCH

/* By compare and swap of the 32 bits that it is in, so that the bits of its neighbour stay whatever they are, and far
 * PEs can be named. The sum is rounded to float and then to half, as if once: 24 bits are two more than twice 11. */
WEFTI_DEVICE half wefti_nv_half_fetch_add(half *dest, half value, int pe)
{
    wefti_u32 *const word = (wefti_u32 *)((wefti_u64)dest & ~(wefti_u64)3);
    const int shift = ((wefti_u64)dest & 2) != 0 ? 16 : 0;
    const float more = wefti_widen(wefti_dev_value<weft_fp16>(wefti_dev_bits(value)));
    wefti_u32 seen = 0;
    wefti_u32 found = 0;
    int status = weft_dev_atomic_fetch(wefti_nv_world(), word, pe, &found);
    do {
        weft_fp16 sum;
        seen = found;
        wefti_round(wefti_widen(wefti_dev_value<weft_fp16>(seen >> shift)) + more, &sum);
        const wefti_u32 wanted = (seen & ~(0xffffu << shift)) | (wefti_u32)sum.bits << shift;
        if (status == WEFT_OK) {
            status = weft_dev_atomic_compare_swap(wefti_nv_world(), word, seen, wanted, pe, &found);
        }
    } while (status == WEFT_OK && found != seen);
    return wefti_dev_value<half>(status == WEFT_OK ? seen >> shift : 0);
}

/* ---- order: of all threads that call ---- */

WEFTI_DEVICE void wefti_nv_quiet(weft_scope scope)
{
    (void)weft_dev_quiet(wefti_nv_world());
    wefti_scope_sync(scope);
}

/* There is one queue, whatever handles are named. */
WEFTI_DEVICE void wefti_nv_qp_quiet(weft_scope scope, int pe, nvshmemx_qp_handle_t *handles, int count)
{
    (void)pe;
    (void)handles;
    (void)count;
    wefti_nv_quiet(scope);
}

WEFTI_DEVICE void wefti_nv_qp_fence(weft_scope scope, int pe, nvshmemx_qp_handle_t *handles, int count)
{
    (void)pe;
    (void)handles;
    (void)count;
    weft_dev_fence();
    wefti_scope_sync(scope);
}

/* ---- a warpgroup: four warps of a block that follow each other, or what is left of the block ---- */

#define WEFTI_NV_WARPGROUP 128

#if defined(WEFT_DEVICE_ON_HOST) /* a block is one */
WEFTI_DEVICE int wefti_nv_barrier_warpgroup(nvshmem_team_t team)
{
    return weft_dev_barrier(wefti_nv_block(), wefti_nv_team(team));
}
#else
/* The warps meet at a named barrier of the group's own. The last ones are taken, 15 for the first group: 0 is the
 * block's, and programs count upwards. */
typedef struct wefti_nv_meeting {
    wefti_u32 barrier;
    wefti_u32 threads;
} wefti_nv_meeting;

WEFTI_DEVICE void wefti_nv_meet(wefti_nv_meeting meeting)
{
    asm volatile("bar.sync %0, %1;" ::"r"(meeting.barrier), "r"(meeting.threads) : "memory");
}

WEFTI_DEVICE int wefti_nv_any_of_meeting(wefti_nv_meeting meeting, int value)
{
    wefti_u32 any;
    asm volatile("{\n\t"
                 ".reg .pred mine, all;\n\t"
                 "setp.ne.s32 mine, %1, 0;\n\t"
                 "bar.red.or.pred all, %2, %3, mine;\n\t"
                 "selp.u32 %0, 1, 0, all;\n\t"
                 "}"
                 : "=r"(any)
                 : "r"(value), "r"(meeting.barrier), "r"(meeting.threads)
                 : "memory");
    return (int)any;
}

/* The first warp calls for all, whose stores its fence covers since they have met. */
WEFTI_DEVICE int wefti_nv_barrier_warpgroup(nvshmem_team_t team)
{
    const weft_scope block = weft_block();
    const wefti_u32 group = block.rank / WEFTI_NV_WARPGROUP;
    const wefti_u32 rest = (block.size + 31u) / 32u * 32u - group * WEFTI_NV_WARPGROUP;
    const wefti_nv_meeting meeting = {15u - group, rest < WEFTI_NV_WARPGROUP ? rest : WEFTI_NV_WARPGROUP};
    int status = WEFT_OK;
    wefti_nv_meet(meeting);
    if (block.rank % WEFTI_NV_WARPGROUP < 32u) {
        status = weft_dev_barrier(weft_warp(), wefti_nv_team(team));
    }
    return wefti_nv_any_of_meeting(meeting, status) != 0 ? weft_dev_fault(wefti_nv_world()) : WEFT_OK;
}
#endif

/* ---- waiting ---- */

WEFTI_DEVICE weft_cmp wefti_nv_cmp(int cmp)
{
    return cmp == NVSHMEM_CMP_LE ? WEFT_CMP_LE : cmp == NVSHMEM_CMP_GE ? WEFT_CMP_GE : (weft_cmp)cmp;
}

/* Also of 16 bits, which have no acquire of their own. */
template <class T> WEFTI_DEVICE T wefti_nv_acquire(const T *variable)
{
    if constexpr (sizeof(T) == 2) {
        const T value = (T)wefti_ld_relaxed((const unsigned short *)variable);
        wefti_fence_acq();
        return value;
    } else {
        return wefti_dev_acquire(variable);
    }
}

template <class T> WEFTI_DEVICE int wefti_nv_holds(const T *variable, int cmp, T value)
{
    return wefti_dev_holds(wefti_nv_acquire(variable), wefti_nv_cmp(cmp), value);
}

/* Until done() says so, the deadline, or a fault, which is latched. */
template <class Done> WEFTI_DEVICE void wefti_nv_wait(const Done &done)
{
    wefti_dev_waiter waiter = {0, 0};
    int status = WEFT_OK;
    while (status == WEFT_OK && !done()) {
        status = wefti_dev_pause(wefti_nv_world(), &waiter);
    }
    if (status == WEFT_ERR_TIMEOUT) {
        (void)wefti_dev_latch(&wefti_nv_world(), status, -1);
    }
}

template <class T> WEFTI_DEVICE void wefti_nv_wait_until(const T *variable, int cmp, T value)
{
    if constexpr (sizeof(T) == 2) {
        wefti_nv_wait([&] { return wefti_nv_holds(variable, cmp, value); });
    } else {
        (void)weft_dev_wait_until(weft_thread(), wefti_nv_world(), variable, wefti_nv_cmp(cmp), value);
    }
}

template <class Signal>
WEFTI_DEVICE wefti_u64 wefti_nv_signal_wait_until(const Signal *signal, int cmp, wefti_u64 value)
{
    const wefti_u64 *const word = (const wefti_u64 *)signal;
    wefti_u64 seen;
    if (!wefti_dev_wait_short(word, wefti_nv_cmp(cmp), value, &seen)) {
        (void)wefti_dev_wait_rest(wefti_nv_world(), word, wefti_nv_cmp(cmp), value, -1);
        seen = wefti_ld_acquire(word);
    }
    return seen;
}

/* What variables are compared with: one value, or one each. */
template <class T> struct wefti_nv_value {
    T value;
    WEFTI_DEVICE T at(size_t) const
    {
        return value;
    }
};
template <class T> struct wefti_nv_values {
    const T *values;
    WEFTI_DEVICE T at(size_t i) const
    {
        return values[i];
    }
};
template <class T> WEFTI_DEVICE wefti_nv_value<T> wefti_nv_one(T value)
{
    wefti_nv_value<T> one = {value};
    return one;
}
template <class T> WEFTI_DEVICE wefti_nv_values<T> wefti_nv_many(const T *values)
{
    wefti_nv_values<T> many = {values};
    return many;
}

WEFTI_DEVICE bool wefti_nv_counts(const int *status, size_t i)
{
    return status == 0 || status[i] == 0;
}

WEFTI_DEVICE bool wefti_nv_none_counts(size_t count, const int *status)
{
    for (size_t i = 0; i < count; i++) {
        if (wefti_nv_counts(status, i)) {
            return false;
        }
    }
    return true;
}

template <class T, class V>
WEFTI_DEVICE int wefti_nv_test_all(const T *variables, size_t count, const int *status, int cmp, V values)
{
    for (size_t i = 0; i < count; i++) {
        if (wefti_nv_counts(status, i) && !wefti_nv_holds(&variables[i], cmp, values.at(i))) {
            return 0;
        }
    }
    return 1;
}

template <class T, class V>
WEFTI_DEVICE size_t wefti_nv_test_any(const T *variables, size_t count, const int *status, int cmp, V values)
{
    for (size_t i = 0; i < count; i++) {
        if (wefti_nv_counts(status, i) && wefti_nv_holds(&variables[i], cmp, values.at(i))) {
            return i;
        }
    }
    return ~(size_t)0;
}

template <class T, class V>
WEFTI_DEVICE size_t wefti_nv_test_some(const T *variables, size_t count, size_t *indices, const int *status, int cmp,
                                       V values)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (wefti_nv_counts(status, i) && wefti_nv_holds(&variables[i], cmp, values.at(i))) {
            indices[found++] = i;
        }
    }
    return found;
}

template <class T, class V>
WEFTI_DEVICE void wefti_nv_wait_all(const T *variables, size_t count, const int *status, int cmp, V values)
{
    wefti_nv_wait([&] { return wefti_nv_test_all(variables, count, status, cmp, values) != 0; });
}

template <class T, class V>
WEFTI_DEVICE size_t wefti_nv_wait_any(const T *variables, size_t count, const int *status, int cmp, V values)
{
    size_t found = ~(size_t)0;
    if (!wefti_nv_none_counts(count, status)) {
        wefti_nv_wait([&] { return (found = wefti_nv_test_any(variables, count, status, cmp, values)) != ~(size_t)0; });
    }
    return found;
}

template <class T, class V>
WEFTI_DEVICE size_t wefti_nv_wait_some(const T *variables, size_t count, size_t *indices, const int *status, int cmp,
                                       V values)
{
    size_t found = 0;
    if (!wefti_nv_none_counts(count, status)) {
        wefti_nv_wait(
            [&] { return (found = wefti_nv_test_some(variables, count, indices, status, cmp, values)) != 0; });
    }
    return found;
}

/* ---- reductions: CUDA's small floats are weft's ---- */

template <class T> struct wefti_nv_number {
    typedef T type;
};
template <> struct wefti_nv_number<half> {
    typedef weft_fp16 type;
};
template <> struct wefti_nv_number<__nv_bfloat16> {
    typedef weft_bf16 type;
};

template <weft_op OP, class T>
WEFTI_DEVICE int wefti_nv_reduce(weft_scope scope, nvshmem_team_t team, T *dest, const T *source, size_t count)
{
    typedef typename wefti_nv_number<T>::type number;
    return weft_dev_reduce<OP>(scope, wefti_nv_team(team), (number *)dest, (const number *)source, count);
}

template <weft_op OP, class T>
WEFTI_DEVICE int wefti_nv_reduce_scatter(weft_scope scope, nvshmem_team_t team, T *dest, const T *source, size_t count)
{
    typedef typename wefti_nv_number<T>::type number;
    return weft_dev_reduce_scatter<OP>(scope, wefti_nv_team(team), (number *)dest, (const number *)source, count);
}

/* ---- signals that count bytes ---- */

WEFTI_DEVICE int wefti_nv_put_counted(weft_scope scope, void *dest, const void *source, size_t bytes, uint64_t *signal,
                                      int pe)
{
    return wefti_nv_status(weft_dev_put_signal(scope, wefti_nv_world(), dest, source, bytes, (wefti_u64 *)signal,
                                               (wefti_u64)bytes, WEFT_SIGNAL_ADD, pe));
}

/* This PE's own, when nobody writes to it. */
WEFTI_DEVICE void wefti_nv_counted_reset(uint64_t *signal)
{
    wefti_st_release((wefti_u64 *)signal, (wefti_u64)0);
}

/* Also past the largest number. */
WEFTI_DEVICE void wefti_nv_counted_wait(const uint64_t *signal, uint64_t expected)
{
    wefti_nv_wait([&] { return (wefti_i64)(wefti_nv_acquire(signal) - expected) >= 0; });
}

/* ---- regions: a block's is taken note of, so that it can be asked for; those of a thread and a warp are not ---- */

struct wefti_nv_region {
    wefti_u64 mark; /* WEFTI_NV_REGION_MARK: not what an earlier kernel left in shared memory */
    wefti_u64 launch; /* with `block`: whose it is */
    wefti_u64 block;
    wefti_u64 handle; /* of the last one; they are counted from 1 */
    wefti_u32 hints;
    wefti_u32 is_open;
};

#define WEFTI_NV_REGION_MARK 0x776566745f726567ull

#if defined(WEFT_DEVICE_ON_HOST)
WEFTI_DEVICE wefti_nv_region &wefti_nv_region_of_block()
{
    static wefti_nv_region region;
    return region;
}

WEFTI_DEVICE wefti_u64 wefti_nv_launch()
{
    return 1;
}

WEFTI_DEVICE wefti_u64 wefti_nv_block_number()
{
    return 0;
}

#else
WEFTI_DEVICE wefti_nv_region &wefti_nv_region_of_block()
{
    __shared__ wefti_nv_region region;
    return region;
}

/* A number of this launch of a kernel. */
WEFTI_DEVICE wefti_u64 wefti_nv_launch()
{
    wefti_u64 launch;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(launch));
    return launch;
}

WEFTI_DEVICE wefti_u64 wefti_nv_block_number()
{
    return blockIdx.x + (wefti_u64)gridDim.x * (blockIdx.y + (wefti_u64)gridDim.y * blockIdx.z);
}
#endif

/* On the CPU a thread that is alone is one, too. */
WEFTI_DEVICE bool wefti_nv_is_block(weft_scope scope)
{
    return scope.kind == wefti_nv_block().kind;
}

WEFTI_DEVICE bool wefti_nv_region_is_known(const wefti_nv_region &region)
{
    return region.mark == WEFTI_NV_REGION_MARK && region.launch == wefti_nv_launch() &&
           region.block == wefti_nv_block_number();
}

WEFTI_DEVICE int wefti_nv_region_start(weft_scope scope, nvshmemx_region_handle_t *handle,
                                       const nvshmemx_region_attrs_t *attrs)
{
    const wefti_u32 hints = attrs == 0 ? (wefti_u32)NVSHMEMX_REGION_HINT_NONE : attrs->hints;
    if (handle == 0 || hints > NVSHMEMX_REGION_HINT_BATCH_RMA) {
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    if (!wefti_nv_is_block(scope)) {
        *handle = 1;
        return NVSHMEMX_SUCCESS;
    }
    wefti_nv_region &region = wefti_nv_region_of_block();
    wefti_sync_block(); /* who asked before has its answer */
    const bool is_known = wefti_nv_region_is_known(region);
    const bool is_open = is_known && region.is_open;
    const wefti_u64 next = is_known ? region.handle + 1 : 1;
    wefti_sync_block();
    if (is_open) {
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    if (scope.rank == 0) {
        region.mark = WEFTI_NV_REGION_MARK;
        region.launch = wefti_nv_launch();
        region.block = wefti_nv_block_number();
        region.handle = next;
        region.hints = hints;
        region.is_open = 1;
    }
    wefti_sync_block();
    *handle = next;
    return NVSHMEMX_SUCCESS;
}

WEFTI_DEVICE int wefti_nv_region_stop(weft_scope scope, nvshmemx_region_handle_t handle)
{
    if (!wefti_nv_is_block(scope)) {
        return handle == 1 ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INVALID_VALUE;
    }
    wefti_nv_region &region = wefti_nv_region_of_block();
    wefti_sync_block();
    const bool is_its = wefti_nv_region_is_known(region) && region.is_open && region.handle == handle;
    wefti_sync_block();
    if (is_its && scope.rank == 0) {
        region.is_open = 0;
    }
    wefti_sync_block();
    return is_its ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INVALID_VALUE;
}

/* Whether the calling thread's block has a region open that has these hints. */
WEFTI_DEVICE int wefti_nv_region_is_active(uint32_t hint, int *active)
{
    if (active == 0 || hint > NVSHMEMX_REGION_HINT_BATCH_RMA) {
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    const wefti_nv_region &region = wefti_nv_region_of_block();
    *active = wefti_nv_region_is_known(region) && region.is_open && (region.hints & hint) == hint;
    return NVSHMEMX_SUCCESS;
}

/* ---- the end ---- */

/* A kernel ends the program: its own PE hears of a latched fault and of a kernel that trapped; a launcher does the
 * rest. */
WEFTI_DEVICE void wefti_nv_global_exit(int status)
{
#if defined(WEFT_DEVICE_ON_HOST)
    wefti_nv_host::nvshmem_global_exit(status);
#else
    (void)status;
    (void)wefti_dev_latch(&wefti_nv_world(), WEFT_ERR_ABORTED, wefti_nv_world().pe);
    wefti_fence_sc();
    asm volatile("trap;");
#endif
}

/* ---- shared memory that is lent: nothing here takes any ---- */

WEFTI_DEVICE void nvshmemx_give_smem(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

WEFTI_DEVICE void nvshmemx_release_smem()
{
}

/* What NVSHMEM's own programs ask: whether a put may still read what was lent when it returns. */
WEFTI_DEVICE bool nvshmemi_tma_smem_registered()
{
    return false;
}

#if !defined(WEFT_DEVICE_ON_HOST)
/* The largest x of all PEs with its y; of PEs that have the same x, the largest y. dest is not source. A block. */
WEFTI_DEVICE int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2 *dest, const double2 *source,
                                                      size_t nreduce)
{
    const weft_scope block = wefti_nv_block();
    const double least = -__longlong_as_double(0x7ff0000000000000LL);
    int status = wefti_nv_reduce<WEFT_OP_MAX>(block, team, (double *)dest, (const double *)source, 2 * nreduce);
    __syncthreads();
    for (size_t i = block.rank; i < nreduce; i += block.size) {
        dest[i].y = source[i].x == dest[i].x ? source[i].y : least;
    }
    __syncthreads();
    const int second = wefti_nv_reduce<WEFT_OP_MAX>(block, team, (double *)dest, (const double *)dest, 2 * nreduce);
    return wefti_nv_status(status != 0 ? status : second);
}
#endif

#endif
