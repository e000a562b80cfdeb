/* Goal: remote memory access and put with signal (9.6, 9.8) of every type, by the default context and by others.
 * Method: each PE writes to its right neighbour and reads from it, by each routine; each element says who wrote it and
 * where, and what lies between elements that are apart must be as before. */
#include "faces/shmem/check.h"

#define COUNT 12
#define ROOM (4 * COUNT)

static int me;
static int left;
static int right;
static shmem_ctx_t ctx;
static uint64_t *sig;

#define TEST_TYPE(NAME, TYPE)                                                                                          \
    static void NAME##_expect(const TYPE *at, int from, ptrdiff_t to_stride, ptrdiff_t from_stride, const char *what)  \
    {                                                                                                                  \
        int wrong = 0;                                                                                                 \
        for (int i = 0; i < COUNT * to_stride; i++) {                                                                  \
            const int is_one = i % to_stride == 0;                                                                     \
            const TYPE wanted = is_one ? (TYPE)number_of(from, i / (int)to_stride * (int)from_stride) : (TYPE)101;     \
            wrong += at[i] != wanted;                                                                                  \
        }                                                                                                              \
        CHECK_SAY(wrong == 0, #NAME " %s: %d elements are wrong", what, wrong);                                        \
    }                                                                                                                  \
    static void NAME##_expect_blocks(const TYPE *at, int from, const char *what)                                       \
    {                                                                                                                  \
        int wrong = 0;                                                                                                 \
        for (int i = 0; i < 4 * 3; i++) {                                                                              \
            const int block = i / 4;                                                                                   \
            wrong += at[i] != (i % 4 < 2 ? (TYPE)number_of(from, block * 3 + i % 4) : (TYPE)101);                      \
        }                                                                                                              \
        CHECK_SAY(wrong == 0, #NAME " %s: %d elements are wrong", what, wrong);                                        \
    }                                                                                                                  \
    static void NAME##_fresh(TYPE *in, TYPE *local)                                                                    \
    {                                                                                                                  \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < ROOM; i++) {                                                                               \
            in[i] = (TYPE)101;                                                                                         \
            local[i] = (TYPE)101;                                                                                      \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }                                                                                                                  \
    static void NAME##_signal(uint64_t wanted, TYPE *in, const char *what)                                             \
    {                                                                                                                  \
        CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, wanted) == wanted);                                           \
        CHECK(shmem_signal_fetch(sig) == wanted);                                                                      \
        NAME##_expect(in, left, 1, 1, what);                                                                           \
        shmem_barrier_all();                                                                                           \
        *sig = 0;                                                                                                      \
    }                                                                                                                  \
    static void NAME##_test(void)                                                                                      \
    {                                                                                                                  \
        TYPE local[ROOM];                                                                                              \
        TYPE out[ROOM];                                                                                                \
        TYPE *in = ZEROED(TYPE, ROOM);                                                                                 \
        TYPE *shown = ZEROED(TYPE, ROOM);                                                                              \
        for (int i = 0; i < ROOM; i++) {                                                                               \
            out[i] = (TYPE)number_of(me, i);                                                                           \
            shown[i] = (TYPE)number_of(me, i);                                                                         \
        }                                                                                                              \
        PUTS(NAME, shmem_##NAME##_, )                                                                                  \
        PUTS(NAME, shmem_ctx_##NAME##_, ctx COMMA)                                                                     \
        PUTS(NAME, shmem_ctx_##NAME##_, SHMEM_CTX_DEFAULT COMMA)                                                       \
        shmem_barrier_all();                                                                                           \
        shmem_free(shown);                                                                                             \
        shmem_free(in);                                                                                                \
    }
#define COMMA ,
/* A barrier completes what went by the default context. */
#define DONE()                                                                                                         \
    shmem_ctx_quiet(ctx);                                                                                              \
    shmem_barrier_all()
#define PUTS(NAME, CALL, C)                                                                                            \
    NAME##_fresh(in, local);                                                                                           \
    CALL##put(C in, out, COUNT, right);                                                                                \
    DONE();                                                                                                            \
    NAME##_expect(in, left, 1, 1, #CALL "put");                                                                        \
    NAME##_fresh(in, local);                                                                                           \
    CALL##put_nbi(C in, out, COUNT, right);                                                                            \
    DONE();                                                                                                            \
    NAME##_expect(in, left, 1, 1, #CALL "put_nbi");                                                                    \
    NAME##_fresh(in, local);                                                                                           \
    for (int i = 0; i < COUNT; i++) {                                                                                  \
        CALL##p(C in + i, out[i], right);                                                                              \
    }                                                                                                                  \
    DONE();                                                                                                            \
    NAME##_expect(in, left, 1, 1, #CALL "p");                                                                          \
    NAME##_fresh(in, local);                                                                                           \
    CALL##iput(C in, out, 3, 2, COUNT, right);                                                                         \
    DONE();                                                                                                            \
    NAME##_expect(in, left, 3, 2, #CALL "iput");                                                                       \
    NAME##_fresh(in, local);                                                                                           \
    CALL##ibput(C in, out, 4, 3, 2, 3, right);                                                                         \
    DONE();                                                                                                            \
    NAME##_expect_blocks(in, left, #CALL "ibput");                                                                     \
    NAME##_fresh(in, local);                                                                                           \
    CALL##get(C local, shown, COUNT, right);                                                                           \
    NAME##_expect(local, right, 1, 1, #CALL "get");                                                                    \
    NAME##_fresh(in, local);                                                                                           \
    CALL##get_nbi(C local, shown, COUNT, right);                                                                       \
    shmem_quiet();                                                                                                     \
    shmem_ctx_quiet(ctx);                                                                                              \
    NAME##_expect(local, right, 1, 1, #CALL "get_nbi");                                                                \
    NAME##_fresh(in, local);                                                                                           \
    for (int i = 0; i < COUNT; i++) {                                                                                  \
        local[i] = CALL##g(C shown + i, right);                                                                        \
    }                                                                                                                  \
    NAME##_expect(local, right, 1, 1, #CALL "g");                                                                      \
    NAME##_fresh(in, local);                                                                                           \
    CALL##iget(C local, shown, 2, 4, COUNT, right);                                                                    \
    NAME##_expect(local, right, 2, 4, #CALL "iget");                                                                   \
    NAME##_fresh(in, local);                                                                                           \
    CALL##ibget(C local, shown, 4, 3, 2, 3, right);                                                                    \
    NAME##_expect_blocks(local, right, #CALL "ibget");                                                                 \
    NAME##_fresh(in, local);                                                                                           \
    CALL##put_signal(C in, out, COUNT, sig, 17, SHMEM_SIGNAL_SET, right);                                              \
    NAME##_signal(17, in, #CALL "put_signal, set");                                                                    \
    NAME##_fresh(in, local);                                                                                           \
    CALL##put_signal(C in, out, COUNT - 1, sig, 5, SHMEM_SIGNAL_ADD, right);                                           \
    CALL##put_signal(C in + COUNT - 1, out + COUNT - 1, 1, sig, 6, SHMEM_SIGNAL_ADD, right);                           \
    NAME##_signal(11, in, #CALL "put_signal, add");                                                                    \
    NAME##_fresh(in, local);                                                                                           \
    CALL##put_signal_nbi(C in, out, COUNT, sig, 3, SHMEM_SIGNAL_ADD, right);                                           \
    NAME##_signal(3, in, #CALL "put_signal_nbi");                                                                      \
    CALL##put(C NULL, NULL, 0, right); /* nothing to do */                                                             \
    CALL##get(C NULL, NULL, 0, right);

RMA_TYPES(TEST_TYPE)

int main(void)
{
    shmem_init();
    const int pes = shmem_n_pes();
    me = shmem_my_pe();
    left = (me + pes - 1) % pes;
    right = (me + 1) % pes;
    sig = ZEROED(uint64_t, 1);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, TYPE) NAME##_test();
    RMA_TYPES(RUN)
    shmem_ctx_destroy(ctx);
    return check_end();
}
