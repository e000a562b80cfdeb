/* Goal: what streams and kernels do together does what the host's own calls do: one-sided access, signals, waits,
 * atomics, barriers and every collective, for all types and operations, odd sizes and alignments, teams, every way that
 * data can take; graphs replay with new data; a member that does not come is named by the deadline. Method: each PE
 * fills its sources with bytes that say (PE, index, call), poisons what is to be written and more, runs the call, and
 * compares every byte with what arithmetic, or the host's call on the host heap, gives. Compiled by g++ too, where
 * kernels are functions of one thread and streams run at once. */
#include "support/launch.h"

#define POISON 0xa5
#define SOURCE_BYTES ((size_t)3 << 20)
#define DEST_BYTES ((size_t)3 << 20)
#define GUARD 64

#define KINDS (ON_GPU ? 3 : 1)

/* What all tests of one world share. */
typedef struct bench {
    weft_world *world;
    unsigned char *dest; /* symmetric device memory */
    unsigned char *source;
    uint64_t *words; /* 1024, zero between tests */
    int *status;
    unsigned char *seen; /* here: DEST_BYTES each */
    unsigned char *want;
    unsigned char *mine; /* SOURCE_BYTES */
    uint64_t dice;
} bench;

/* Byte `index` of member `member`'s source in call `salt`. */
static unsigned char byte_of(int member, size_t index, uint64_t salt)
{
    return (unsigned char)(index * 7 + (index >> 8) * 3 + (size_t)member * 53 + salt * 101);
}

static weft_stream *stream_of(const test_pe *pe)
{
#if ON_GPU
    return pe->stream;
#else
    (void)pe;
    return NULL;
#endif
}

static void write_device(test_pe *pe, bench *all, void *to, const void *from, size_t bytes)
{
    OK(pe, weft_putmem(all->world, to, from, bytes, pe->pe));
}

static void read_device(test_pe *pe, bench *all, void *to, const void *from, size_t bytes)
{
    finish(pe);
    OK(pe, weft_getmem(all->world, to, from, bytes, pe->pe));
}

/* This member's source of `source_bytes` bytes, a poisoned dest, here and on the device; then all have them. */
static void prepare(test_pe *pe, bench *all, int member, size_t source_bytes, size_t dest_bytes, uint64_t salt)
{
    for (size_t i = 0; i < source_bytes; i++) {
        all->mine[i] = byte_of(member, i, salt);
    }
    memset(all->want, POISON, dest_bytes + 2 * GUARD);
    write_device(pe, all, all->dest, all->want, dest_bytes + 2 * GUARD);
    if (source_bytes > 0) {
        write_device(pe, all, all->source, all->mine, source_bytes);
    }
}

/* all->want is what dest should be, from its beginning. */
static void compare(test_pe *pe, bench *all, size_t dest_bytes, const char *what, size_t bytes, int kind)
{
    size_t i = 0;
    read_device(pe, all, all->seen, all->dest, dest_bytes + 2 * GUARD);
    while (i < dest_bytes + 2 * GUARD && all->seen[i] == all->want[i]) {
        i++;
    }
    CHECK_SAY(pe, i == dest_bytes + 2 * GUARD, "%s, %zu bytes, scope %d: byte %zu of %zu is %d, not %d", what, bytes,
              kind, i, dest_bytes, i < DEST_BYTES ? all->seen[i] : 0, i < DEST_BYTES ? all->want[i] : 0);
}

static int status_of(test_pe *pe, bench *all)
{
    int value = 1;
    read_device(pe, all, &value, all->status, sizeof value);
    return value;
}

/* ---- collectives that move data ---- */

enum { BROADCAST, FCOLLECT, COLLECT, ALLTOALL, ALLTOALLV, MOVES };
static const char *const move_names[] = {"broadcast", "fcollect", "collect", "alltoall", "alltoallv"};

typedef struct move {
    int what;
    int pe; /* member */
    int pes;
    size_t bytes; /* of a block; of this member for collect */
    int root;
    size_t to; /* offset of dest */
    size_t from; /* offset of the source */
    uint64_t salt;
} move;

/* alltoallv: what goes from i to j. */
static size_t v_bytes(const move *m, int i, int j)
{
    return (size_t)((i * 5 + j * 3 + (int)m->salt) % 4) * m->bytes / 3 + (size_t)((i + j) % 3);
}

static size_t collect_bytes(const move *m, int member)
{
    return member % 3 == 2 ? 0 : m->bytes + (size_t)member;
}

static size_t sum_before(const move *m, int i, int (*unused)(void))
{
    size_t sum = 0;
    (void)unused;
    for (int k = 0; k < i; k++) {
        sum += m->what == COLLECT ? collect_bytes(m, k) : v_bytes(m, k, m->pe);
    }
    return sum;
}

static size_t v_send_offset(const move *m, int member, int j)
{
    size_t sum = 0;
    for (int k = 0; k < j; k++) {
        sum += v_bytes(m, member, k);
    }
    return sum;
}

static size_t source_bytes_of(const move *m)
{
    return m->what == ALLTOALL    ? m->bytes * (size_t)m->pes
           : m->what == ALLTOALLV ? v_send_offset(m, m->pe, m->pes)
           : m->what == COLLECT   ? collect_bytes(m, m->pe)
                                  : m->bytes;
}

static size_t dest_bytes_of(const move *m)
{
    return m->what == BROADCAST                         ? m->bytes
           : m->what == COLLECT || m->what == ALLTOALLV ? sum_before(m, m->pes, NULL)
                                                        : m->bytes * (size_t)m->pes;
}

/* What the call should leave, into all->want. */
static void expect(bench *all, const move *m)
{
    unsigned char *want = all->want + m->to;
    for (int i = 0; i < (m->what == BROADCAST ? 1 : m->pes); i++) {
        int member = m->what == BROADCAST ? m->root : i;
        size_t bytes = m->what == COLLECT     ? collect_bytes(m, i)
                       : m->what == ALLTOALLV ? v_bytes(m, i, m->pe)
                                              : m->bytes;
        size_t at = m->what == COLLECT || m->what == ALLTOALLV ? sum_before(m, i, NULL) : (size_t)i * m->bytes;
        size_t skip = m->what == ALLTOALL    ? (size_t)m->pe * m->bytes
                      : m->what == ALLTOALLV ? v_send_offset(m, i, m->pe)
                                             : 0;
        for (size_t k = 0; k < bytes; k++) {
            want[at + k] = byte_of(member, m->from + skip + k, m->salt);
        }
    }
}

/* The three arrays of alltoallv, in device memory: words + 512. */
static uint64_t *write_v(test_pe *pe, bench *all, const move *m)
{
    uint64_t v[3 * 64] = {0};
    for (int j = 0; j < m->pes; j++) {
        v[j] = sum_before(m, j, NULL);
        v[64 + j] = v_send_offset(m, m->pe, j);
        v[128 + j] = v_bytes(m, m->pe, j);
    }
    write_device(pe, all, all->words + 512, v, sizeof v);
    return all->words + 512;
}

template <int KIND>
__global__ void move_kernel(const __grid_constant__ weft_dev_team team, int what, unsigned char *dest,
                            const unsigned char *source, wefti_u64 bytes, int root, const uint64_t *v, int *status)
{
    weft_scope scope = scope_of<KIND>();
    const wefti_u64 *arrays = (const wefti_u64 *)v;
    int result = what == BROADCAST  ? weft_dev_broadcast(scope, team, dest, source, bytes, root)
                 : what == FCOLLECT ? weft_dev_fcollect(scope, team, dest, source, bytes)
                 : what == COLLECT  ? weft_dev_collect(scope, team, dest, source, bytes)
                 : what == ALLTOALL ? weft_dev_alltoall(scope, team, dest, source, bytes)
                                    : weft_dev_alltoallv(scope, team, dest, arrays, source, arrays + 64, arrays + 128);
    *status = result;
}

static void move_on_stream(test_pe *pe, bench *all, weft_team *team, const move *m, const uint64_t *v)
{
    unsigned char *dest = all->dest + m->to;
    const unsigned char *source = all->source + m->from;
    weft_stream *stream = stream_of(pe);
    switch (m->what) {
    case BROADCAST:
        OK(pe, weft_broadcastmem_on_stream(team, dest, source, m->bytes, m->root, stream));
        break;
    case FCOLLECT:
        OK(pe, weft_fcollectmem_on_stream(team, dest, source, m->bytes, stream));
        break;
    case COLLECT:
        OK(pe, weft_collectmem_on_stream(team, dest, source, source_bytes_of(m), stream));
        break;
    case ALLTOALL:
        OK(pe, weft_uint8_alltoall_on_stream(team, dest, source, m->bytes, stream));
        break;
    default:
        OK(pe, weft_alltoallvmem_on_stream(team, dest, v, source, v + 64, v + 128, stream));
        break;
    }
}

/* kind -1: on the stream. */
static void try_move(test_pe *pe, bench *all, weft_team *team, int what, size_t bytes, int kind)
{
    uint64_t dice = next_random(&all->dice);
    move m = {what, weft_team_pe(team), weft_team_pes(team), bytes, 0, 0, 0, dice & 0xffff};
    weft_dev_team dev;
    m.root = (int)((dice >> 16) % (uint64_t)m.pes);
    if (dice & ((uint64_t)1 << 32)) { /* half of the time uneven */
        m.to = (size_t)((dice >> 33) & 31);
        m.from = (size_t)((dice >> 40) & 31);
    }
    size_t dest_bytes = m.to + dest_bytes_of(&m);
    if (m.from + source_bytes_of(&m) > SOURCE_BYTES || dest_bytes + 2 * GUARD > DEST_BYTES) {
        return; /* too many members for this size: the same on all */
    }
    const uint64_t *v = what == ALLTOALLV ? write_v(pe, all, &m) : NULL;
    prepare(pe, all, m.pe, m.from + source_bytes_of(&m), dest_bytes, m.salt);
    expect(all, &m);
    OK(pe, weft_team_dev(team, &dev));
    OK(pe, weft_team_barrier(team)); /* nobody is written to before its dest is poisoned */
    if (kind < 0) {
        move_on_stream(pe, all, team, &m, v);
    } else {
        LAUNCH_KIND(move_kernel, kind, pe, 0, dev, what, all->dest + m.to, all->source + m.from,
                    (wefti_u64)(what == COLLECT ? source_bytes_of(&m) : bytes), m.root, v, all->status);
        CHECK(pe, status_of(pe, all) == WEFT_OK);
    }
    compare(pe, all, dest_bytes, move_names[what], bytes, kind);
    OK(pe, weft_team_barrier(team));
}

static void test_moves(test_pe *pe, bench *all, weft_team *team)
{
    static const size_t sizes[] = {1, 3, 8, 16, 17, 100, 1024, 4099, 20000, 65536, 140001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int what = 0; what < MOVES; what++) {
            pe->stage = "moving data on a stream";
            try_move(pe, all, team, what, sizes[i], -1);
            pe->stage = "moving data in a kernel";
            try_move(pe, all, team, what, sizes[i], (int)(i + (size_t)what) % KINDS);
        }
    }
    pe->stage = "moving much data on a stream";
    try_move(pe, all, team, BROADCAST, 700000, -1);
    try_move(pe, all, team, BROADCAST, 2500003, -1);
    try_move(pe, all, team, BROADCAST, 16, -1);
    try_move(pe, all, team, FCOLLECT, 600000, -1);
    try_move(pe, all, team, ALLTOALL, 600000, -1);
}

/* ---- reductions ---- */

/* Small numbers, so that products stay exact in float. */
template <class T> static T element_of(int member, size_t index, int op)
{
    int number = (int)((index * 5 + (size_t)member * 3) % 7);
    return (T)(op == WEFT_OP_PROD ? 1 + number % 2 : number + 1);
}

template <int KIND, weft_op OP, class T>
__global__ void reduce_kernel(const __grid_constant__ weft_dev_team team, T *dest, const T *source, wefti_u64 count,
                              int is_scatter, int *status)
{
    weft_scope scope = scope_of<KIND>();
    *status = is_scatter ? weft_dev_reduce_scatter<OP>(scope, team, dest, source, count)
                         : weft_dev_reduce<OP>(scope, team, dest, source, count);
}

/* The host's call on the host heap is the reference. WAY: 0 on the stream, 1 in a kernel. */
template <class T, weft_op OP, int WAY, class OnStream, class OnHost>
static void try_reduce(test_pe *pe, bench *all, weft_team *team, size_t count, int is_scatter,
                       const OnStream &on_stream, const OnHost &on_host)
{
    int members = weft_team_pes(team);
    int member = weft_team_pe(team);
    size_t blocks = is_scatter ? (size_t)members : 1;
    size_t shift = (next_random(&all->dice) & 3) * sizeof(T);
    T *host_source = NULL;
    T *host_dest = NULL;
    weft_dev_team dev;
    OK(pe, weft_team_malloc(team, blocks * count * sizeof(T), (void **)&host_source));
    OK(pe, weft_team_malloc(team, count * sizeof(T), (void **)&host_dest));
    for (size_t i = 0; i < blocks * count; i++) {
        host_source[i] = element_of<T>(member, i, (int)OP);
    }
    prepare(pe, all, member, 0, shift + count * sizeof(T), 0);
    write_device(pe, all, all->source + shift, host_source, blocks * count * sizeof(T));
    OK(pe, weft_team_dev(team, &dev));
    OK(pe, on_host(host_dest, host_source)); /* also: all are ready */
    OK(pe, weft_team_barrier(team));
    memcpy(all->want + shift, host_dest, count * sizeof(T));
    T *dest = (T *)(all->dest + shift);
    const T *source = (const T *)(all->source + shift);
    if constexpr (WAY == 0) {
        OK(pe, on_stream(dest, source));
    } else {
        LAUNCH((reduce_kernel < ON_GPU ? WEFTI_SCOPE_BLOCK : WEFTI_SCOPE_THREAD, OP, T >), 1, ON_GPU ? 160 : 1, 0, pe,
               dev, dest, source, (wefti_u64)count, is_scatter, all->status);
        CHECK(pe, status_of(pe, all) == WEFT_OK);
    }
    compare(pe, all, shift + count * sizeof(T), is_scatter ? "reduce_scatter" : "reduce", count * sizeof(T), WAY);
    OK(pe, weft_team_barrier(team));
    OK(pe, weft_team_free(team, host_dest));
    OK(pe, weft_team_free(team, host_source));
}

#define TRY(NAME, TYPE, OP, CODE, count, way)                                                                          \
    do {                                                                                                               \
        pe->stage = #NAME " " #OP;                                                                                     \
        const size_t n = (count);                                                                                      \
        try_reduce<TYPE, CODE, way>(                                                                                   \
            pe, all, team, n, 0,                                                                                       \
            [=](TYPE *d, const TYPE *s) { return weft_##NAME##_##OP##_reduce_on_stream(team, d, s, n, stream); },      \
            [=](TYPE *d, const TYPE *s) { return weft_##NAME##_##OP##_reduce(team, d, s, n); });                       \
        try_reduce<TYPE, CODE, way>(                                                                                   \
            pe, all, team, n, 1,                                                                                       \
            [=](TYPE *d, const TYPE *s) {                                                                              \
                return weft_##NAME##_##OP##_reduce_scatter_on_stream(team, d, s, n, stream);                           \
            },                                                                                                         \
            [=](TYPE *d, const TYPE *s) { return weft_##NAME##_##OP##_reduce_scatter(team, d, s, n); });               \
    } while (0)

static void test_reduce_types(test_pe *pe, bench *all, weft_team *team)
{
    weft_stream *stream = stream_of(pe);
#define EACH(NAME, TYPE)                                                                                               \
    TRY(NAME, TYPE, and, WEFT_OP_AND, 37, 0);                                                                          \
    TRY(NAME, TYPE, or, WEFT_OP_OR, 5, 0);                                                                             \
    TRY(NAME, TYPE, xor, WEFT_OP_XOR, 64, 0);                                                                          \
    TRY(NAME, TYPE, min, WEFT_OP_MIN, 33, 0);                                                                          \
    TRY(NAME, TYPE, max, WEFT_OP_MAX, 1, 0);                                                                           \
    TRY(NAME, TYPE, sum, WEFT_OP_SUM, 100, 0);                                                                         \
    TRY(NAME, TYPE, prod, WEFT_OP_PROD, 31, 0);
    EACH(int, int)
    EACH(ulong, unsigned long)
    EACH(longlong, long long)
    EACH(short, short)
    EACH(schar, signed char)
    EACH(uint8, uint8_t)
    EACH(uint16, uint16_t)
    EACH(uint32, uint32_t)
#undef EACH
#define EACH(NAME, TYPE)                                                                                               \
    TRY(NAME, TYPE, min, WEFT_OP_MIN, 33, 0);                                                                          \
    TRY(NAME, TYPE, max, WEFT_OP_MAX, 1, 0);                                                                           \
    TRY(NAME, TYPE, sum, WEFT_OP_SUM, 1001, 0);                                                                        \
    TRY(NAME, TYPE, prod, WEFT_OP_PROD, 31, 0);
    EACH(float, float)
    EACH(double, double)
#undef EACH
    TRY(int, int, sum, WEFT_OP_SUM, 77, 1);
    TRY(int64, int64_t, max, WEFT_OP_MAX, 3000, 1);
    TRY(double, double, prod, WEFT_OP_PROD, 9, 1);
    TRY(uint8, uint8_t, xor, WEFT_OP_XOR, 9000, 1);
}

static void test_reduce_sizes(test_pe *pe, bench *all, weft_team *team)
{
    static const size_t counts[] = {1, 4, 255, 1024, 4097, 16385, 50000, 150001, 300000};
    weft_stream *stream = stream_of(pe);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i] * sizeof(float) * (size_t)weft_team_pes(team) + 64 < SOURCE_BYTES) {
            TRY(float, float, sum, WEFT_OP_SUM, counts[i], 0);
            TRY(int, int, max, WEFT_OP_MAX, counts[i], 0);
        }
        if (counts[i] < 5000) {
            TRY(float, float, sum, WEFT_OP_SUM, counts[i], 1);
        }
    }
}

/* ---- small floats: against arithmetic in double, rounded by the other formula ---- */

template <class T> static double value_of(T number)
{
    return (double)wefti_widen(number);
}

template <class T> static void try_small(test_pe *pe, bench *all, weft_team *team, weft_dtype dtype, weft_op op)
{
    const size_t count = 1000;
    int members = weft_team_pes(team);
    T *data = (T *)all->mine;
    double *exact = (double *)calloc(count, sizeof *exact);
    pe->stage = "sums of small floats";
    for (int member = 0; member < members; member++) {
        for (size_t i = 0; i < count; i++) {
            T number;
            wefti_round((float)((double)((int)(i * 13 + (size_t)member * 7) % 61 - 20) / 8.0), &number);
            double value = value_of(number);
            exact[i] = member == 0 ? value : op == WEFT_OP_SUM ? exact[i] + value : value > exact[i] ? value : exact[i];
            if (member == weft_team_pe(team)) {
                data[i] = number;
            }
        }
    }
    prepare(pe, all, 0, 0, count * sizeof(T), 0);
    write_device(pe, all, all->source, data, count * sizeof(T));
    OK(pe, weft_team_barrier(team));
    OK(pe, weft_reduce_on_stream(team, dtype, op, all->dest, all->source, count, stream_of(pe)));
    for (size_t i = 0; i < count; i++) { /* the exact sum is a float: rounded once, it must come out */
        T number;
        wefti_round((float)exact[i], &number);
        memcpy(all->want + i * sizeof(T), &number, sizeof number);
    }
    compare(pe, all, count * sizeof(T), "reduce of a small float", count * sizeof(T), (int)dtype);
    OK(pe, weft_team_barrier(team));
    free(exact);
}

static void test_small_floats(test_pe *pe, bench *all, weft_team *team)
{
    try_small<weft_bf16>(pe, all, team, WEFT_DTYPE_BF16, WEFT_OP_SUM);
    try_small<weft_fp16>(pe, all, team, WEFT_DTYPE_FP16, WEFT_OP_SUM);
    try_small<weft_e4m3>(pe, all, team, WEFT_DTYPE_E4M3, WEFT_OP_SUM);
    try_small<weft_e5m2>(pe, all, team, WEFT_DTYPE_E5M2, WEFT_OP_SUM);
    try_small<weft_bf16>(pe, all, team, WEFT_DTYPE_BF16, WEFT_OP_MAX);
    try_small<weft_e4m3>(pe, all, team, WEFT_DTYPE_E4M3, WEFT_OP_MAX);
}

/* ---- one-sided access on streams ---- */

static void test_stream_rma(test_pe *pe, bench *all)
{
    static const size_t sizes[] = {0, 1, 13, 4096, 40000, 200001};
    weft_world *world = all->world;
    weft_stream *stream = stream_of(pe);
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    pe->stage = "put, signal and wait on a stream";
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        prepare(pe, all, pe->pe, sizes[i], sizes[i], i);
        OK(pe, weft_barrier(world));
        OK(pe, weft_putmem_signal_on_stream(world, all->dest + 3, all->source, sizes[i], all->words, 1, WEFT_SIGNAL_ADD,
                                            right, stream));
        OK(pe, weft_signal_wait_until_on_stream(world, all->words, WEFT_CMP_EQ, i + 1, stream));
        for (size_t k = 0; k < sizes[i]; k++) {
            all->want[3 + k] = byte_of(left, k, i);
        }
        compare(pe, all, sizes[i], "put_signal", sizes[i], 0);
        OK(pe, weft_barrier(world));
        OK(pe, weft_getmem_on_stream(world, all->dest, all->source, sizes[i], right, stream));
        memset(all->want, POISON, sizes[i] + 2 * GUARD);
        for (size_t k = 0; k < sizes[i]; k++) {
            all->want[3 + k] = byte_of(left, k, i);
        }
        for (size_t k = 0; k < sizes[i]; k++) {
            all->want[k] = byte_of(right, k, i);
        }
        compare(pe, all, sizes[i], "get", sizes[i], 0);
        OK(pe, weft_barrier(world));
    }
}

/* Elements that lie apart, to the right and back. */
static void test_stream_strided(test_pe *pe, bench *all)
{
    const size_t count = 3000;
    weft_world *world = all->world;
    weft_stream *stream = stream_of(pe);
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    int32_t *to = (int32_t *)(void *)all->dest;
    int32_t *back = to + 3 * count;
    const int32_t *from = (const int32_t *)(const void *)all->source;
    int32_t *sent = (int32_t *)(void *)all->mine;
    int32_t *seen = (int32_t *)(void *)all->seen;
    pe->stage = "strided, on a stream";
    for (size_t i = 0; i < 2 * count; i++) {
        sent[i] = (int32_t)i * 10 + pe->pe;
    }
    memset(all->want, POISON, 7 * count * sizeof *to);
    write_device(pe, all, all->source, sent, 2 * count * sizeof *sent);
    write_device(pe, all, all->dest, all->want, 7 * count * sizeof *to);
    OK(pe, weft_barrier(world));
    OK(pe, weft_int32_iput_on_stream(world, to, from, 3, 2, count, right, stream));
    OK(pe, weft_barrier_on_stream(world, stream));
    OK(pe, weft_int32_iget_on_stream(world, back, to, 1, 3, count, right, stream));
    OK(pe,
       weft_uint8_iget_on_stream(world, (uint8_t *)(back + count) + 1, (const uint8_t *)to, 5, 12, 100, right, stream));
    finish(pe);
    read_device(pe, all, seen, all->dest, 7 * count * sizeof *to);
    size_t wrong = 0;
    for (size_t i = 0; i < 3 * count; i++) {
        wrong += seen[i] != (i % 3 == 0 ? (int32_t)(i / 3) * 20 + left : (int32_t)0xa5a5a5a5);
    }
    for (size_t i = 0; i < count; i++) {
        wrong += seen[3 * count + i] != (int32_t)i * 20 + pe->pe;
    }
    CHECK_SAY(pe, wrong == 0, "%zu elements", wrong);
    for (size_t i = 0; i < 500; i++) {
        const uint8_t byte = ((const uint8_t *)(seen + 4 * count) + 1)[i];
        wrong += byte != (i % 5 == 0 && i / 5 < 100 ? (uint8_t)((int32_t)(i / 5) * 20 + pe->pe) : POISON);
    }
    CHECK_SAY(pe, wrong == 0, "%zu bytes", wrong);
    CHECK(pe, weft_int32_iput_on_stream(world, to, from, 0, 1, 5, right, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_int32_iput_on_stream(world, to, from, (ptrdiff_t)1 << 40, 1, 5, right, stream) == WEFT_ERR_RANGE);
    CHECK(pe, weft_int32_iget_on_stream(world, NULL, from, 1, 1, 5, right, stream) == WEFT_ERR_ARGUMENT);
    OK(pe, weft_int32_iget_on_stream(world, back, from, 1, 1, 0, right, stream));
    OK(pe, weft_barrier(world));
}

static void test_stream_words(test_pe *pe, bench *all)
{
    weft_world *world = all->world;
    weft_stream *stream = stream_of(pe);
    uint64_t *word = all->words + 16;
    uint64_t *old = all->words + 32;
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    uint64_t seen[6];
    pe->stage = "words on a stream";
    OK(pe, weft_uint64_p_on_stream(world, word, 40u + (unsigned)pe->pe, right, stream));
    OK(pe, weft_barrier_on_stream(world, stream));
    OK(pe, weft_uint64_g_on_stream(world, word, right, old, stream));
    OK(pe, weft_uint64_atomic_fetch_add_on_stream(world, word, 5, right, old + 1, stream));
    OK(pe, weft_uint64_atomic_compare_swap_on_stream(world, word, 45u + (unsigned)pe->pe, 7, right, old + 2, stream));
    OK(pe, weft_uint64_atomic_swap_on_stream(world, word, 9, right, old + 3, stream));
    OK(pe, weft_uint64_atomic_inc_on_stream(world, word, right, stream));
    OK(pe, weft_uint64_atomic_or_on_stream(world, word, 0x100, right, stream));
    OK(pe, weft_uint64_atomic_fetch_on_stream(world, word, right, old + 4, stream));
    OK(pe, weft_quiet_on_stream(world, stream));
    OK(pe, weft_team_sync_on_stream(weft_team_world(world), stream));
    read_device(pe, all, seen, old, sizeof seen);
    uint64_t first = 40u + (unsigned)pe->pe;
    CHECK_SAY(pe, seen[0] == first && seen[1] == first && seen[2] == first + 5 && seen[3] == 7 && seen[4] == 0x10a,
              "%llu %llu %llu %llu %llx", (unsigned long long)seen[0], (unsigned long long)seen[1],
              (unsigned long long)seen[2], (unsigned long long)seen[3], (unsigned long long)seen[4]);
    int32_t *halves = (int32_t *)(all->words + 48);
    OK(pe, weft_int32_p_on_stream(world, halves + 1, -3 - pe->pe, right, stream));
    OK(pe, weft_int32_wait_until_on_stream(world, halves + 1, WEFT_CMP_LT, 0, stream));
    OK(pe, weft_int32_atomic_fetch_add_on_stream(world, halves + 1, 1, pe->pe, (int32_t *)(old + 5), stream));
    int32_t half[2];
    read_device(pe, all, half, old + 5, sizeof half);
    CHECK(pe, half[0] == -3 - left && half[1] == 0);
    short *shorts = (short *)(all->words + 64);
    OK(pe, weft_short_p_on_stream(world, shorts + 1, (short)(500 + pe->pe), right, stream));
    OK(pe, weft_barrier_on_stream(world, stream));
    short four[4];
    read_device(pe, all, four, shorts, sizeof four);
    CHECK(pe, four[0] == 0 && four[1] == 500 + left && four[2] == 0);
    OK(pe, weft_barrier(world));
}

/* What must be refused, with nothing enqueued. */
static void test_refusals(test_pe *pe, bench *all)
{
    weft_world *world = all->world;
    weft_team *team = weft_team_world(world);
    weft_stream *stream = stream_of(pe);
    unsigned char local[16];
    pe->stage = "refusals";
    CHECK(pe, weft_putmem_on_stream(world, all->dest, all->source, 8, pe->pes, stream) == WEFT_ERR_RANGE);
    CHECK(pe, weft_putmem_on_stream(world, local, all->source, 8, 0, stream) == WEFT_ERR_RANGE);
    CHECK(pe, weft_putmem_on_stream(world, all->dest, NULL, 8, 0, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_putmem_on_stream(NULL, all->dest, all->source, 8, 0, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_uint64_p_on_stream(world, (uint64_t *)(all->dest + 1), 1, 0, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_uint64_atomic_fetch_on_stream(world, all->words, 0, NULL, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_signal_wait_until_on_stream(world, all->words, (weft_cmp)7, 1, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_broadcastmem_on_stream(team, all->dest, all->source, 8, pe->pes, stream) == WEFT_ERR_RANGE);
    CHECK(pe, weft_fcollectmem_on_stream(team, local, all->source, 8, stream) == WEFT_ERR_RANGE);
    CHECK(pe, weft_alltoallmem_on_stream(team, all->dest, NULL, 8, stream) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_reduce_on_stream(team, WEFT_DTYPE_FLOAT, WEFT_OP_AND, all->dest, all->source, 8, stream) ==
                  WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_reduce_on_stream(team, (weft_dtype)10, WEFT_OP_SUM, all->dest, all->source, 8, stream) ==
                  WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_reduce_on_stream(team, WEFT_DTYPE_FLOAT, WEFT_OP_SUM, all->dest, all->source, SIZE_MAX, stream) ==
                  WEFT_ERR_RANGE);
    OK(pe, weft_barrier(world));
}

/* ---- graphs ---- */

/* Each PE's number grows in each run; so do the results. */
#if ON_GPU
__global__ void count_up(uint64_t *value, uint64_t by)
{
    *value += by;
}
#endif

static void test_graph(test_pe *pe, bench *all)
{
#if ON_GPU
    const int runs = 1000;
    weft_team *team = weft_team_world(all->world);
    uint64_t *value = all->words + 128;
    uint64_t *gathered = all->words + 192;
    uint64_t *sum = all->words + 160;
    int right = (pe->pe + 1) % pe->pes;
    uint64_t seen[64];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    pe->stage = "a graph replayed";
    OK(pe, weft_team_stream_ready(team));
    OK(pe, weft_barrier(all->world));
    GPU(pe, cudaStreamBeginCapture(pe->stream, cudaStreamCaptureModeThreadLocal));
    count_up<<<1, 1, 0, pe->stream>>>(value, (uint64_t)(pe->pe + 1));
    OK(pe, weft_uint64_fcollect_on_stream(team, gathered, value, 1, pe->stream));
    OK(pe, weft_uint64_sum_reduce_on_stream(team, sum, value, 1, pe->stream));
    OK(pe, weft_putmem_signal_on_stream(all->world, all->words + 256, value, 8, all->words + 272, 1, WEFT_SIGNAL_ADD,
                                        right, pe->stream));
    OK(pe, weft_barrier_on_stream(all->world, pe->stream));
    OK(pe, weft_uint64_broadcast_on_stream(team, all->words + 288, value, 1, pe->pes - 1, pe->stream));
    GPU(pe, cudaStreamEndCapture(pe->stream, &graph));
    GPU(pe, cudaGraphInstantiate(&exec, graph, 0));
    for (int run = 1; run <= runs; run++) {
        GPU(pe, cudaGraphLaunch(exec, pe->stream));
        if (run % 250 != 0 && run != 1) {
            continue;
        }
        read_device(pe, all, seen, gathered, sizeof(uint64_t) * (size_t)pe->pes);
        for (int i = 0; i < pe->pes; i++) {
            CHECK_SAY(pe, seen[i] == (uint64_t)(i + 1) * (uint64_t)run, "run %d, PE %d: %llu", run, i,
                      (unsigned long long)seen[i]);
        }
        read_device(pe, all, seen, sum, sizeof *seen);
        CHECK(pe, seen[0] == (uint64_t)run * (uint64_t)(pe->pes * (pe->pes + 1) / 2));
        read_device(pe, all, seen, all->words + 256, 33 * sizeof *seen);
        int left = (pe->pe + pe->pes - 1) % pe->pes;
        CHECK(pe, seen[0] == (uint64_t)(left + 1) * (uint64_t)run && seen[16] == (uint64_t)run);
        CHECK(pe, seen[32] == (uint64_t)pe->pes * (uint64_t)run);
        OK(pe, weft_barrier(all->world));
    }
    GPU(pe, cudaGraphExecDestroy(exec));
    GPU(pe, cudaGraphDestroy(graph));
#else
    (void)pe;
    (void)all;
#endif
}

/* A team whose scratch is not made cannot begin inside a capture. */
static void test_capture_too_early(test_pe *pe, bench *all, weft_team *team)
{
#if ON_GPU
    cudaGraph_t graph;
    pe->stage = "a capture before the scratch is made";
    GPU(pe, cudaStreamBeginCapture(pe->stream, cudaStreamCaptureModeThreadLocal));
    CHECK(pe, weft_fcollectmem_on_stream(team, all->dest, all->source, 8, pe->stream) == WEFT_ERR_STATE);
    GPU(pe, cudaStreamEndCapture(pe->stream, &graph));
    GPU(pe, cudaGraphDestroy(graph));
#else
    (void)pe;
    (void)all;
    (void)team;
#endif
}

/* ---- the program ---- */

static void bench_open(test_pe *pe, bench *all, const char *name)
{
    all->world = test_world(pe, name, 0, (size_t)24 << 20);
    all->dest = (unsigned char *)test_malloc(pe, all->world, DEST_BYTES);
    all->source = (unsigned char *)test_malloc(pe, all->world, SOURCE_BYTES);
    all->words = (uint64_t *)test_malloc(pe, all->world, 8192);
    all->status = (int *)test_malloc(pe, all->world, 256);
    all->seen = (unsigned char *)malloc(DEST_BYTES);
    all->want = (unsigned char *)malloc(DEST_BYTES);
    all->mine = (unsigned char *)calloc(1, SOURCE_BYTES);
    all->dice = pe->seed;
    memset(all->want, 0, 8192);
    write_device(pe, all, all->words, all->want, 8192);
    OK(pe, weft_barrier(all->world));
}

static void bench_close(test_pe *pe, bench *all)
{
    OK(pe, weft_world_destroy(all->world));
    free(all->mine);
    free(all->want);
    free(all->seen);
}

static void test_teams(test_pe *pe, bench *all)
{
    weft_team *odd = NULL;
    weft_team *turned = NULL;
    int members[64];
    if (pe->pes < 3) {
        return;
    }
    for (int i = 0; i < pe->pes; i++) {
        members[i] = pe->pes - 1 - (i + 1) % pe->pes; /* no rule in three and more */
    }
    OK(pe, weft_team_split_strided(weft_team_world(all->world), 1, 2, pe->pes / 2, &odd));
    OK(pe, weft_team_create(weft_team_world(all->world), members, pe->pes, &turned));
    OK(pe, weft_barrier(all->world));
    if (odd != NULL) {
        test_capture_too_early(pe, all, odd);
        test_moves(pe, all, odd);
        OK(pe, weft_team_destroy(odd));
    }
    OK(pe, weft_barrier(all->world));
    all->dice = pe->seed; /* again equal on all */
    test_moves(pe, all, turned);
    test_reduce_sizes(pe, all, turned);
    OK(pe, weft_team_destroy(turned));
}

#if defined(WEFT_DEVICE_CHECKS) && !ON_GPU
/* A broadcast whose root comes late, by a thread of its own: on the fake driver a stream is done by who enqueues. */
typedef struct late_broadcast {
    weft_team *team;
    bench *all;
} late_broadcast;

static void *run_late_broadcast(void *argument)
{
    late_broadcast *late = (late_broadcast *)argument;
    (void)!weft_broadcastmem_on_stream(late->team, late->all->dest, late->all->source, 64, 1, NULL);
    return NULL;
}

/* One team on two streams at once. */
static void test_two_streams(test_pe *pe)
{
    bench all;
    int culprit = -2;
    if (pe->pes != 2) {
        return;
    }
    bench_open(pe, &all, "two streams");
    late_broadcast late = {weft_team_world(all.world), &all};
    pe->stage = "a team on two streams at once";
    OK(pe, weft_team_stream_ready(late.team));
    OK(pe, weft_device_deadline(all.world, UINT64_C(500000000)));
    OK(pe, weft_barrier(all.world));
    if (pe->pe == 0) {
        pthread_t first;
        pthread_create(&first, NULL, run_late_broadcast, &late);
        usleep(100000);
        OK(pe, weft_fcollectmem_on_stream(late.team, all.dest + 4096, all.source, 64, NULL));
        pthread_join(first, NULL);
        CHECK(pe, weft_world_fault(all.world, &culprit) == WEFT_ERR_STATE && culprit == 0);
    }
    bench_close(pe, &all);
}
#else
static void test_two_streams(test_pe *pe)
{
    (void)pe; /* only builds with assertions look */
}
#endif

/* Multiprocessors that nobody has claimed. */
static int count_free_sms(weft_world *world)
{
    int sms = 0;
    while (weft_device_sms_take(world, 1) == WEFT_OK) {
        sms++;
    }
    (void)weft_device_sms_give(world, sms);
    return sms;
}

/* A team that has died gives back what it claimed, when it is destroyed. */
static void test_dead_team(test_pe *pe)
{
    weft_world *world = NULL;
    weft_team *team = NULL;
    weft_world_config config = test_config(pe, "dead team");
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    pe->stage = "a dead team";
    if (pe->pes != 2) {
        return;
    }
    config.deadline_ns = UINT64_C(2000000000);
    OK(pe, weft_world_create(&config, &world));
    device.choice = ON_GPU ? WEFT_DEVICE_CURRENT : WEFT_DEVICE_ORDINAL;
    device.ordinal = pe->gpu;
    device.heap_bytes = (size_t)8 << 20;
    OK(pe, weft_device_attach(world, &device));
    OK(pe, weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    const int before = pe->pe == 0 ? count_free_sms(world) : 0;
    OK(pe, weft_barrier(world));
    OK(pe, weft_team_stream_ready(team));
    OK(pe, weft_barrier(world));
    if (pe->pe == 0) {
        CHECK(pe, count_free_sms(world) < before);
        CHECK(pe, weft_team_sync(team) == WEFT_ERR_TIMEOUT);
        CHECK(pe, weft_reduce_on_stream(team, WEFT_DTYPE_FLOAT, WEFT_OP_SUM, NULL, NULL, 1, stream_of(pe)) ==
                      WEFT_ERR_TIMEOUT);
        OK(pe, weft_team_destroy(team));
        const int after = count_free_sms(world);
        /* PEs that share a GPU and a process share its multiprocessors. */
        CHECK_SAY(pe, after == before || (pe->threaded && pe->gpus == 1 && after > 0), "%d of %d", after, before);
    }
    OK(pe, weft_world_destroy(world));
}

/* The last PE does not come. */
static void test_deadline(test_pe *pe, int what)
{
    bench all;
    int culprit = -2;
    bench_open(pe, &all, "deadline");
    weft_team *team = weft_team_world(all.world);
    pe->stage = "a collective that one PE does not enter";
    OK(pe, weft_team_stream_ready(team));
    weft_dev dev;
    OK(pe, weft_world_dev(all.world, &dev));
    OK(pe, weft_device_deadline(all.world, dev.far_count > 0 ? UINT64_C(600000000) : UINT64_C(200000000)));
    OK(pe, weft_barrier(all.world));
    double start = now_s();
    int comes = pe->pe != pe->pes - 1;
    if (comes && what == 0) {
        OK(pe, weft_alltoallmem_on_stream(team, all.dest, all.source, 100, stream_of(pe)));
    } else if (comes && what == 1) {
        OK(pe, weft_float_sum_reduce_on_stream(team, (float *)all.dest, (float *)all.source, 500000, stream_of(pe)));
    } else if (comes && what == 2) {
        OK(pe, weft_broadcastmem_on_stream(team, all.dest, all.source, 200000, pe->pes - 1, stream_of(pe)));
    } else if (comes) {
        OK(pe, weft_barrier_on_stream(all.world, stream_of(pe)));
    }
    finish(pe);
    if (!comes) {
        usleep(dev.far_count > 0 ? 1500000 : 0); /* who leaves is missed sooner */
    }
    CHECK_SAY(pe, now_s() - start < 10, "%.1f s", now_s() - start);
    weft_status expected = comes && pe->pes > 1 ? WEFT_ERR_TIMEOUT : WEFT_OK;
    CHECK_SAY(pe, weft_world_fault(all.world, &culprit) == expected, "%d", (int)weft_world_fault(all.world, NULL));
    CHECK_SAY(pe, expected == WEFT_OK || culprit == pe->pes - 1 || what != 3, "culprit %d", culprit);
    if (expected != WEFT_OK) {
        CHECK(pe, weft_barrier_on_stream(all.world, stream_of(pe)) == expected);
    }
    bench_close(pe, &all);
}

static void test_body(test_pe *pe)
{
    bench all;
    pe->stage = "creation";
    bench_open(pe, &all, "main");
    weft_team *team = weft_team_world(all.world);
    test_stream_rma(pe, &all);
    test_stream_strided(pe, &all);
    test_stream_words(pe, &all);
    test_refusals(pe, &all);
    test_moves(pe, &all, team);
    test_reduce_types(pe, &all, team);
    test_reduce_sizes(pe, &all, team);
    test_small_floats(pe, &all, team);
    test_graph(pe, &all);
    test_teams(pe, &all);
    bench_close(pe, &all);
    for (int what = 0; what < 4; what++) {
        test_deadline(pe, what);
    }
    test_dead_team(pe);
    test_two_streams(pe);
    if (pe->pe == 0 && pe->failures == 0) {
        printf("%d PEs as %s on %d GPUs: all passed\n", pe->pes, pe->threaded ? "threads" : "processes",
               pe->pes < pe->gpus ? pe->pes : pe->gpus);
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
