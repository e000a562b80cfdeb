/* Goal: remote memory access by size and in bytes (9.6, 9.8), and signals alone.
 * Method: as rma.c; elements are bytes that say who wrote them. */
#include "faces/shmem/check.h"

#define COUNT 6
#define ROOM 512

static int me;
static int left;
static int right;
static shmem_ctx_t ctx;
static uint64_t *sig;
static unsigned char *in;
static unsigned char *shown;
static unsigned char out[ROOM];
static unsigned char local[ROOM];

static void fresh(void)
{
    shmem_barrier_all();
    memset(in, 200, ROOM);
    memset(local, 200, ROOM);
    *sig = 0;
    shmem_barrier_all();
}

/* `count` blocks of `block` bytes, so far apart in bytes. */
static void expect(const unsigned char *at, int from, size_t to, size_t of, size_t block, size_t count,
                   const char *what)
{
    int wrong = 0;
    for (size_t i = 0; i < ROOM; i++) {
        const size_t which = to == 0 ? 0 : i / to;
        const int is_one = which < count && i - which * to < block;
        wrong += at[i] != (is_one ? (unsigned char)number_of(from, (int)(which * of + i - which * to)) : 200);
    }
    CHECK_SAY(wrong == 0, "%s: %d bytes are wrong", what, wrong);
}

#define COMMA ,
/* A barrier completes what went by the default context. */
#define DONE()                                                                                                         \
    shmem_ctx_quiet(ctx);                                                                                              \
    shmem_barrier_all()
#define CONTIGUOUS(CALL, SUFFIX, C, BYTES)                                                                             \
    fresh();                                                                                                           \
    CALL##put##SUFFIX(C in, out, COUNT, right);                                                                        \
    DONE();                                                                                                            \
    expect(in, left, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "put" #SUFFIX);                                           \
    fresh();                                                                                                           \
    CALL##put##SUFFIX##_nbi(C in, out, COUNT, right);                                                                  \
    shmem_ctx_quiet(ctx);                                                                                              \
    DONE();                                                                                                            \
    expect(in, left, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "put" #SUFFIX "_nbi");                                    \
    fresh();                                                                                                           \
    CALL##get##SUFFIX(C local, shown, COUNT, right);                                                                   \
    expect(local, right, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "get" #SUFFIX);                                       \
    fresh();                                                                                                           \
    CALL##get##SUFFIX##_nbi(C local, shown, COUNT, right);                                                             \
    shmem_quiet();                                                                                                     \
    shmem_ctx_quiet(ctx);                                                                                              \
    expect(local, right, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "get" #SUFFIX "_nbi");                                \
    fresh();                                                                                                           \
    CALL##put##SUFFIX##_signal(C in, out, COUNT, sig, 9, SHMEM_SIGNAL_SET, right);                                     \
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_GE, 9) == 9);                                                         \
    expect(in, left, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "put" #SUFFIX "_signal");                                 \
    fresh();                                                                                                           \
    CALL##put##SUFFIX##_signal_nbi(C in, out, COUNT, sig, 4, SHMEM_SIGNAL_ADD, right);                                 \
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_NE, 0) == 4);                                                         \
    expect(in, left, COUNT *BYTES, 0, COUNT *BYTES, 1, #CALL "put" #SUFFIX "_signal_nbi");

#define STRIDED(CALL, BITS, C, BYTES)                                                                                  \
    fresh();                                                                                                           \
    CALL##iput##BITS(C in, out, 3, 2, COUNT, right);                                                                   \
    DONE();                                                                                                            \
    expect(in, left, 3 * BYTES, 2 * BYTES, BYTES, COUNT, #CALL "iput" #BITS);                                          \
    fresh();                                                                                                           \
    CALL##iget##BITS(C local, shown, 2, 3, COUNT, right);                                                              \
    expect(local, right, 2 * BYTES, 3 * BYTES, BYTES, COUNT, #CALL "iget" #BITS);                                      \
    fresh();                                                                                                           \
    CALL##ibput##BITS(C in, out, 4, 3, 2, 3, right);                                                                   \
    DONE();                                                                                                            \
    expect(in, left, 4 * BYTES, 3 * BYTES, 2 * BYTES, 3, #CALL "ibput" #BITS);                                         \
    fresh();                                                                                                           \
    CALL##ibget##BITS(C local, shown, 5, 2, 2, 3, right);                                                              \
    expect(local, right, 5 * BYTES, 2 * BYTES, 2 * BYTES, 3, #CALL "ibget" #BITS);

#define SIZE(BITS, BYTES)                                                                                              \
    CONTIGUOUS(shmem_, BITS, , BYTES)                                                                                  \
    CONTIGUOUS(shmem_ctx_, BITS, ctx COMMA, BYTES)                                                                     \
    STRIDED(shmem_, BITS, , BYTES)                                                                                     \
    STRIDED(shmem_ctx_, BITS, ctx COMMA, BYTES)

static void check_signals(void)
{
    fresh();
    (shmem_signal_set)(sig, 40, right);
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, 40) == 40);
    shmem_barrier_all();
    (shmem_signal_add)(sig, 2, right);
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_GT, 40) == 42);
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, sig, 7, right);
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_LT, 40) == 7);
    shmem_barrier_all();
    shmem_ctx_signal_add(ctx, sig, (uint64_t)-7, right);
    CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_LE, 0) == 0);
    CHECK(shmem_signal_fetch(sig) == 0);
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    const int pes = shmem_n_pes();
    me = shmem_my_pe();
    left = (me + pes - 1) % pes;
    right = (me + 1) % pes;
    sig = ZEROED(uint64_t, 1);
    in = ZEROED(unsigned char, ROOM);
    shown = ZEROED(unsigned char, ROOM);
    for (int i = 0; i < ROOM; i++) {
        out[i] = (unsigned char)number_of(me, i);
        shown[i] = (unsigned char)number_of(me, i);
    }
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) == 0);
    SIZE(8, 1)
    SIZE(16, 2)
    SIZE(32, 4)
    SIZE(64, 8)
    SIZE(128, 16)
    CONTIGUOUS(shmem_, mem, , 1)
    CONTIGUOUS(shmem_ctx_, mem, ctx COMMA, 1)
    check_signals();
    shmem_ctx_destroy(ctx);
    return check_end();
}
