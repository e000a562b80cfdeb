/* Goal: the routines on streams of all types do on a device heap what those of the host do; without a GPU they are
 * refused.
 * Method: a ring of puts, gets, signals and waits on the default stream; collectives and reductions against what
 * each PE computes. On the fake driver, whose streams are done when a call returns. */
#include "faces/nvshmem/check.h"

#define COUNT 6

static int me;
static int pes;
static int next;
static int before;

/* `count` elements of a type, each with the bits of a small number. */
static void fill(void *block, size_t element, int count, int pe, int first)
{
    for (int i = 0; i < count; i++) {
        const unsigned char value = (unsigned char)number_of(pe, first + i);
        memset((char *)block + (size_t)i * element, 0, element);
        memcpy((char *)block + (size_t)i * element, &value, 1);
    }
}

/* Whether they are what PE `pe` filled in. */
static int is_from(const void *block, size_t element, int count, int pe, int first)
{
    char wanted[16 * 64];
    fill(wanted, element, count, pe, first);
    return memcmp(block, wanted, (size_t)count * element) == 0;
}

#define CHECK_MOVES(NAME, TYPE)                                                                                        \
    static void check_##NAME(void)                                                                                     \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, 8 * COUNT);                                                                          \
        TYPE *to = ZEROED(TYPE, 8 * COUNT);                                                                            \
        uint64_t *signals = ZEROED(uint64_t, 2);                                                                       \
        TYPE got[2 * COUNT];                                                                                           \
        TYPE one;                                                                                                      \
        fill(from, sizeof *from, 8 * COUNT, me, 0);                                                                    \
        nvshmemx_barrier_all_on_stream(NULL);                                                                          \
        nvshmemx_##NAME##_put_on_stream(to, from, COUNT, next, NULL);                                                  \
        nvshmemx_##NAME##_put_nbi_on_stream(to + COUNT, from, COUNT, next, NULL);                                      \
        nvshmemx_##NAME##_iput_on_stream(to + 2 * COUNT, from, 2, 1, COUNT, next, NULL);                               \
        memcpy(&one, &from[1], sizeof one);                                                                            \
        nvshmemx_##NAME##_p_on_stream(to + 4 * COUNT, one, next, NULL);                                                \
        nvshmemx_##NAME##_put_signal_on_stream(to + 5 * COUNT, from, COUNT, &signals[0], 7, NVSHMEM_SIGNAL_SET, next,  \
                                               NULL);                                                                  \
        nvshmemx_##NAME##_put_signal_nbi_on_stream(to + 6 * COUNT, from, COUNT, &signals[1], 8, NVSHMEM_SIGNAL_ADD,    \
                                                   next, NULL);                                                        \
        nvshmemx_quiet_on_stream(NULL);                                                                                \
        nvshmemx_signal_wait_until_on_stream(&signals[0], NVSHMEM_CMP_EQ, 7, NULL);                                    \
        nvshmemx_signal_wait_until_on_stream(&signals[1], NVSHMEM_CMP_GE, 8, NULL);                                    \
        CHECK(is_from(to + 5 * COUNT, sizeof *to, COUNT, before, 0));                                                  \
        CHECK(is_from(to + 6 * COUNT, sizeof *to, COUNT, before, 0));                                                  \
        nvshmemx_barrier_all_on_stream(NULL);                                                                          \
        CHECK(is_from(to, sizeof *to, COUNT, before, 0) && is_from(to + COUNT, sizeof *to, COUNT, before, 0));         \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK(is_from(to + 2 * COUNT + 2 * i, sizeof *to, 1, before, i));                                          \
        }                                                                                                              \
        CHECK(is_from(to + 4 * COUNT, sizeof *to, 1, before, 1));                                                      \
        nvshmemx_##NAME##_get_on_stream(got, to, COUNT, next, NULL);                                                   \
        nvshmemx_##NAME##_get_nbi_on_stream(got + COUNT, to, COUNT, next, NULL);                                       \
        nvshmemx_flush_on_stream(NULL);                                                                                \
        CHECK(is_from(got, sizeof *got, COUNT, me, 0) && is_from(got + COUNT, sizeof *got, COUNT, me, 0));             \
        nvshmemx_##NAME##_iget_on_stream(got, to + 2 * COUNT, 1, 2, COUNT, next, NULL);                                \
        CHECK(is_from(got, sizeof *got, COUNT, me, 0));                                                                \
        one = nvshmemx_##NAME##_g_on_stream(to + 4 * COUNT, next, NULL);                                               \
        CHECK(memcmp(&one, &from[1], sizeof one) == 0);                                                                \
        nvshmemx_barrier_all_on_stream(NULL);                                                                          \
        CHECK(nvshmemx_##NAME##_broadcast_on_stream(NVSHMEM_TEAM_WORLD, to, from, COUNT, pes - 1, NULL) == 0);         \
        CHECK(is_from(to, sizeof *to, COUNT, pes - 1, 0));                                                             \
        CHECK(nvshmemx_##NAME##_fcollect_on_stream(NVSHMEM_TEAM_WORLD, to, from, COUNT, NULL) == 0);                   \
        for (int pe = 0; pe < pes; pe++) {                                                                             \
            CHECK(is_from(to + pe * COUNT, sizeof *to, COUNT, pe, 0));                                                 \
        }                                                                                                              \
        CHECK(nvshmemx_##NAME##_alltoall_on_stream(NVSHMEM_TEAM_WORLD, to, from, COUNT, NULL) == 0);                   \
        for (int pe = 0; pe < pes; pe++) {                                                                             \
            CHECK(is_from(to + pe * COUNT, sizeof *to, COUNT, pe, me * COUNT));                                        \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(signals);                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
RMA_TYPES(CHECK_MOVES)
SMALL_TYPES(CHECK_MOVES)

#define CHECK_SIZE(BITS, BYTES)                                                                                        \
    static void check_##BITS(void)                                                                                     \
    {                                                                                                                  \
        char *from = ZEROED(char, COUNT *(BYTES));                                                                     \
        char *to = ZEROED(char, 5 * COUNT * (BYTES));                                                                  \
        char got[COUNT * (BYTES)];                                                                                     \
        uint64_t *signal = ZEROED(uint64_t, 1);                                                                        \
        fill(from, BYTES, COUNT, me, 0);                                                                               \
        nvshmemx_put##BITS##_on_stream(to, from, COUNT, next, NULL);                                                   \
        nvshmemx_put##BITS##_nbi_on_stream(to + COUNT * (BYTES), from, COUNT, next, NULL);                             \
        nvshmemx_iput##BITS##_on_stream(to + 2 * COUNT * (BYTES), from, 2, 1, COUNT, next, NULL);                      \
        nvshmemx_put##BITS##_signal_on_stream(to + 4 * COUNT * (BYTES), from, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD,    \
                                              next, NULL);                                                             \
        nvshmemx_put##BITS##_signal_nbi_on_stream(to + 4 * COUNT * (BYTES), from, COUNT, signal, 1,                    \
                                                  NVSHMEM_SIGNAL_ADD, next, NULL);                                     \
        nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 2, NULL);                                         \
        CHECK(is_from(to + 4 * COUNT * (BYTES), BYTES, COUNT, before, 0));                                             \
        nvshmemx_barrier_all_on_stream(NULL);                                                                          \
        CHECK(is_from(to, BYTES, COUNT, before, 0) && is_from(to + COUNT * (BYTES), BYTES, COUNT, before, 0));         \
        nvshmemx_get##BITS##_on_stream(got, to, COUNT, next, NULL);                                                    \
        CHECK(is_from(got, BYTES, COUNT, me, 0));                                                                      \
        memset(got, 0, sizeof got);                                                                                    \
        nvshmemx_get##BITS##_nbi_on_stream(got, to, COUNT, next, NULL);                                                \
        CHECK(is_from(got, BYTES, COUNT, me, 0));                                                                      \
        memset(got, 0, sizeof got);                                                                                    \
        nvshmemx_iget##BITS##_on_stream(got, to + 2 * COUNT * (BYTES), 1, 2, COUNT, next, NULL);                       \
        CHECK(is_from(got, BYTES, COUNT, me, 0));                                                                      \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(signal);                                                                                          \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
SIZES(CHECK_SIZE)

#define CHECK_OP(NAME, TYPE, OP, START, OF)                                                                            \
    {                                                                                                                  \
        TYPE all[2 * COUNT * 4];                                                                                       \
        for (int i = 0; i < COUNT * pes; i++) {                                                                        \
            all[i] = (TYPE)(START);                                                                                    \
            for (int pe = 0; pe < pes; pe++) {                                                                         \
                const TYPE one = (TYPE)(number_of(pe, i) % 5 + 1);                                                     \
                all[i] = (TYPE)(OF);                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        CHECK(nvshmemx_##NAME##_##OP##_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, (size_t)(COUNT * pes), NULL) ==  \
              0);                                                                                                      \
        CHECK(memcmp(to, all, (size_t)(COUNT * pes) * sizeof *to) == 0);                                               \
        CHECK(nvshmemx_##NAME##_##OP##_reducescatter_on_stream(NVSHMEM_TEAM_WORLD, to, from, COUNT, NULL) == 0);       \
        CHECK(memcmp(to, all + me * COUNT, COUNT * sizeof *to) == 0);                                                  \
    }
#define CHECK_REDUCTIONS(NAME, TYPE, BODY)                                                                             \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, (size_t)(COUNT * pes));                                                              \
        TYPE *to = ZEROED(TYPE, (size_t)(COUNT * pes));                                                                \
        for (int i = 0; i < COUNT * pes; i++) {                                                                        \
            from[i] = (TYPE)(number_of(me, i) % 5 + 1);                                                                \
        }                                                                                                              \
        BODY nvshmem_barrier_all();                                                                                    \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
#define CHECK_BITS(NAME, TYPE)                                                                                         \
    static void check_##NAME##_bits(void)                                                                              \
        CHECK_REDUCTIONS(NAME, TYPE,                                                                                   \
                         CHECK_OP(NAME, TYPE, and, -1, all[i] & one) CHECK_OP(NAME, TYPE, or, 0, all[i] | one)         \
                             CHECK_OP(NAME, TYPE, xor, 0, all[i] ^ one))
BITS_TYPES(CHECK_BITS)
#define CHECK_ORDER(NAME, TYPE)                                                                                        \
    static void check_##NAME##_order(void) CHECK_REDUCTIONS(                                                           \
        NAME, TYPE,                                                                                                    \
        CHECK_OP(NAME, TYPE, min, 100, one < all[i] ? one : all[i])                                                    \
            CHECK_OP(NAME, TYPE, max, 0, one > all[i] ? one : all[i]) CHECK_OP(NAME, TYPE, sum, 0, all[i] + one)       \
                CHECK_OP(NAME, TYPE, prod, 1, all[i] * one))
ORDER_TYPES(CHECK_ORDER)

/* Sums of ones: PEs in number, of which bfloat16 has a float's upper bits. */
static void check_small(void)
{
    const float value = (float)pes;
    uint32_t wanted;
    memcpy(&wanted, &value, sizeof wanted);
    uint16_t *from = ZEROED(uint16_t, COUNT);
    uint16_t *to = ZEROED(uint16_t, COUNT);
    for (int i = 0; i < COUNT; i++) {
        from[i] = 0x3f80;
    }
    CHECK(nvshmemx_bfloat16_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (void *)to, (void *)from, COUNT, NULL) == 0);
    CHECK(to[0] == wanted >> 16 && to[COUNT - 1] == to[0]);
    for (int i = 0; i < COUNT; i++) {
        from[i] = 0x3c00;
    }
    CHECK(nvshmemx_half_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (void *)to, (void *)from, COUNT, NULL) == 0);
    CHECK(to[0] == (uint16_t)(((wanted >> 23) - 112) << 10 | (wanted >> 13 & 0x3ff)));
    CHECK(nvshmemx_half_prod_reduce_on_stream(NVSHMEM_TEAM_WORLD, (void *)to, (void *)from, COUNT, NULL) == 0);
    CHECK(to[0] == 0x3c00);
    nvshmem_barrier_all();
    nvshmem_free(to);
    nvshmem_free(from);
}

#define CHECK_WAIT(NAME, TYPE)                                                                                         \
    static void check_##NAME##_wait(void)                                                                              \
    {                                                                                                                  \
        TYPE *words = ZEROED(TYPE, 3);                                                                                 \
        TYPE values[3] = {9, 5, 6};                                                                                    \
        const int status[3] = {1, 0, 0};                                                                               \
        nvshmemx_##NAME##_p_on_stream(&words[1], 5, next, NULL);                                                       \
        nvshmemx_##NAME##_p_on_stream(&words[2], 6, next, NULL);                                                       \
        nvshmemx_##NAME##_wait_until_on_stream(&words[1], NVSHMEM_CMP_EQ, 5, NULL);                                    \
        nvshmemx_##NAME##_wait_until_all_on_stream(words, 3, status, NVSHMEM_CMP_GE, 5, NULL);                         \
        nvshmemx_##NAME##_wait_until_all_vector_on_stream(words, 3, status, NVSHMEM_CMP_LE, values, NULL);             \
        nvshmemx_##NAME##_wait_until_all_on_stream(words, 3, NULL, NVSHMEM_CMP_LT, 7, NULL);                           \
        CHECK(words[1] == 5 && words[2] == 6);                                                                         \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(words);                                                                                           \
    }
WAIT_TYPES(CHECK_WAIT)

/* Numbers of 16 bits below zero, and their neighbours in a word, which do not count. */
static void check_signs(void)
{
    short *words = ZEROED(short, 2);
    nvshmemx_short_p_on_stream(&words[0], -3, next, NULL);
    nvshmemx_short_wait_until_on_stream(&words[0], NVSHMEM_CMP_LT, 0, NULL);
    nvshmemx_short_wait_until_on_stream(&words[0], NVSHMEM_CMP_EQ, -3, NULL);
    nvshmemx_ushort_wait_until_on_stream((unsigned short *)&words[0], NVSHMEM_CMP_GT, 2, NULL);
    nvshmemx_short_wait_until_on_stream(&words[1], NVSHMEM_CMP_EQ, 0, NULL);
    CHECK(words[0] == -3 && words[1] == 0);
    nvshmem_barrier_all();
    nvshmem_free(words);
}

static void check_once(void)
{
    char *block = ZEROED(char, 64);
    uint64_t *signal = ZEROED(uint64_t, 1);
    nvshmemx_putmem_on_stream(block, "one", 4, next, NULL);
    nvshmemx_putmem_nbi_on_stream(block + 8, "two", 4, next, NULL);
    nvshmemx_putmem_signal_on_stream(block + 16, "three", 6, signal, 1, NVSHMEM_SIGNAL_ADD, next, NULL);
    nvshmemx_putmem_signal_nbi_on_stream(block + 24, "four", 5, signal, 1, NVSHMEM_SIGNAL_ADD, next, NULL);
    nvshmemx_signal_op_on_stream(signal, 1, NVSHMEM_SIGNAL_ADD, next, NULL);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 3, NULL);
    nvshmemx_sync_all_on_stream(NULL);
    CHECK(strcmp(block, "one") == 0 && strcmp(block + 8, "two") == 0 && strcmp(block + 24, "four") == 0);
    char got[4];
    nvshmemx_getmem_on_stream(got, block, 4, next, NULL);
    CHECK(strcmp(got, "one") == 0);
    nvshmemx_getmem_nbi_on_stream(got, block + 8, 4, next, NULL);
    CHECK(strcmp(got, "two") == 0);
    CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, NULL) == 0);
    CHECK(nvshmemx_team_sync_on_stream(NVSHMEM_TEAM_SHARED, NULL) == 0);
    CHECK(nvshmemx_broadcastmem_on_stream(NVSHMEM_TEAM_WORLD, block + 32, block + 16, 6, 0, NULL) == 0);
    CHECK(strcmp(block + 32, "three") == 0);
    CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_INVALID, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_barrier_all();
    nvshmem_free(signal);
    nvshmem_free(block);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    next = (me + 1) % pes;
    before = (me + pes - 1) % pes;
    if (!check_on_gpu) {
        nvshmemx_quiet_on_stream(NULL);
        CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) != 0);
        CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, NULL) != 0);
        return check_end();
    }
#define RUN(NAME, TYPE) check_##NAME();
#define RUN_BITS(NAME, TYPE) check_##NAME##_bits();
#define RUN_ORDER(NAME, TYPE) check_##NAME##_order();
#define RUN_WAIT(NAME, TYPE) check_##NAME##_wait();
    RMA_TYPES(RUN)
    SMALL_TYPES(RUN)
    SIZES(RUN)
    BITS_TYPES(RUN_BITS)
    ORDER_TYPES(RUN_ORDER)
    WAIT_TYPES(RUN_WAIT)
    check_signs();
    check_small();
    check_once();
    return check_end();
}
