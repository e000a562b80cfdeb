/* Goal: collectives and reductions of all types, on the world's team and on others.
 * Method: every PE computes what it must get from what each gives, for an odd count, for those that go another way in
 * kernels, and one that takes several parts. A dest is used again when all are done with it: a PE may write into
 * another's that has not called yet. */
#include "faces/nvshmem/check.h"

static nvshmem_team_t team;
static int me;
static int pes;

#define CHECK_MOVES(NAME, TYPE)                                                                                        \
    static void check_##NAME##_moves(int count)                                                                        \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, (size_t)(count * pes));                                                              \
        TYPE *to = ZEROED(TYPE, (size_t)(count * pes));                                                                \
        const int root = pes - 1;                                                                                      \
        uint16_t bits;                                                                                                 \
        TYPE value = {0};                                                                                              \
        int wrong = 0;                                                                                                 \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            bits = (uint16_t)number_of(me, i);                                                                         \
            memcpy(&from[i], &bits, sizeof bits < sizeof *from ? sizeof bits : sizeof *from);                          \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_broadcast(team, to, from, (size_t)count, root) == 0);                                   \
        for (int i = 0; i < count; i++) {                                                                              \
            bits = (uint16_t)number_of(root, i);                                                                       \
            memcpy(&value, &bits, sizeof bits < sizeof value ? sizeof bits : sizeof value);                            \
            wrong += memcmp(&to[i], &value, sizeof value) != 0;                                                        \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_fcollect(team, to, from, (size_t)count) == 0);                                          \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            bits = (uint16_t)number_of(i / count, i % count);                                                          \
            memcpy(&value, &bits, sizeof bits < sizeof value ? sizeof bits : sizeof value);                            \
            wrong += memcmp(&to[i], &value, sizeof value) != 0;                                                        \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_alltoall(team, to, from, (size_t)count) == 0);                                          \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            bits = (uint16_t)number_of(i / count, me * count + i % count);                                             \
            memcpy(&value, &bits, sizeof bits < sizeof value ? sizeof bits : sizeof value);                            \
            wrong += memcmp(&to[i], &value, sizeof value) != 0;                                                        \
        }                                                                                                              \
        CHECK(wrong == 0);                                                                                             \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
RMA_TYPES(CHECK_MOVES)
SMALL_TYPES(CHECK_MOVES)

/* `of` combines what there is and one more. */
#define CHECK_OP(NAME, TYPE, OP, START, OF)                                                                            \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, (size_t)(count * pes));                                                              \
        TYPE *to = ZEROED(TYPE, (size_t)(count * pes));                                                                \
        int wrong = 0;                                                                                                 \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            from[i] = (TYPE)(number_of(me, i) % 5 + 1);                                                                \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_##OP##_reduce(team, to, from, (size_t)(count * pes)) == 0);                             \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            TYPE all = (TYPE)(START);                                                                                  \
            for (int pe = 0; pe < pes; pe++) {                                                                         \
                const TYPE one = (TYPE)(number_of(pe, i) % 5 + 1);                                                     \
                all = (TYPE)(OF);                                                                                      \
            }                                                                                                          \
            wrong += to[i] != all;                                                                                     \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_##OP##_reducescatter(team, to, from, (size_t)count) == 0);                              \
        for (int i = 0; i < count; i++) {                                                                              \
            TYPE all = (TYPE)(START);                                                                                  \
            for (int pe = 0; pe < pes; pe++) {                                                                         \
                const TYPE one = (TYPE)(number_of(pe, me * count + i) % 5 + 1);                                        \
                all = (TYPE)(OF);                                                                                      \
            }                                                                                                          \
            wrong += to[i] != all;                                                                                     \
        }                                                                                                              \
        CHECK_SAY(wrong == 0, "%s %s: %d wrong", #NAME, #OP, wrong);                                                   \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
#define CHECK_BITS(NAME, TYPE)                                                                                         \
    static void check_##NAME##_bits(int count)                                                                         \
        CHECK_OP(NAME, TYPE, and, -1, all &one) static void check_##NAME##_or(int count)                               \
            CHECK_OP(NAME, TYPE, or, 0, all | one) static void check_##NAME##_xor(int count)                           \
                CHECK_OP(NAME, TYPE, xor, 0, all ^ one)
BITS_TYPES(CHECK_BITS)
#define CHECK_ORDER(NAME, TYPE)                                                                                        \
    static void check_##NAME##_min(int count)                                                                          \
        CHECK_OP(NAME, TYPE, min, 100, one < all ? one : all) static void check_##NAME##_max(int count)                \
            CHECK_OP(NAME, TYPE, max, 0, one > all ? one : all) static void check_##NAME##_sum(int count)              \
                CHECK_OP(NAME, TYPE, sum, 0, all + one) static void check_##NAME##_prod(int count)                     \
                    CHECK_OP(NAME, TYPE, prod, 1, all *one)
ORDER_TYPES(CHECK_ORDER)

/* Small whole numbers, which both small types hold: by their bits, of which bfloat16 has those of a float. */
static uint16_t bits_of(int is_half, int number)
{
    const float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!is_half || number == 0) {
        return (uint16_t)(bits >> 16);
    }
    return (uint16_t)(((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff)); /* exact for these */
}

#define CHECK_SMALL_OP(NAME, TYPE, OP, START, OF)                                                                      \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, (size_t)(count * pes));                                                              \
        TYPE *to = ZEROED(TYPE, (size_t)(count * pes));                                                                \
        const int is_half = #NAME[0] == 'h';                                                                           \
        int wrong = 0;                                                                                                 \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            const uint16_t bits = bits_of(is_half, number_of(me, i) % 3 + 1);                                          \
            memcpy(&from[i], &bits, sizeof bits);                                                                      \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_##OP##_reduce(team, to, from, (size_t)(count * pes)) == 0);                             \
        for (int i = 0; i < count * pes; i++) {                                                                        \
            int all = START;                                                                                           \
            for (int pe = 0; pe < pes; pe++) {                                                                         \
                const int one = number_of(pe, i) % 3 + 1;                                                              \
                all = OF;                                                                                              \
            }                                                                                                          \
            const uint16_t bits = bits_of(is_half, all);                                                               \
            wrong += memcmp(&to[i], &bits, sizeof bits) != 0;                                                          \
        }                                                                                                              \
        CHECK(nvshmem_##NAME##_##OP##_reducescatter(team, to, from, (size_t)count) == 0);                              \
        for (int i = 0; i < count; i++) {                                                                              \
            int all = START;                                                                                           \
            for (int pe = 0; pe < pes; pe++) {                                                                         \
                const int one = number_of(pe, me * count + i) % 3 + 1;                                                 \
                all = OF;                                                                                              \
            }                                                                                                          \
            const uint16_t bits = bits_of(is_half, all);                                                               \
            wrong += memcmp(&to[i], &bits, sizeof bits) != 0;                                                          \
        }                                                                                                              \
        CHECK_SAY(wrong == 0, "%s %s: %d wrong", #NAME, #OP, wrong);                                                   \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
#define CHECK_SMALL_ORDER(NAME, TYPE)                                                                                  \
    static void check_##NAME##_min(int count)                                                                          \
        CHECK_SMALL_OP(NAME, TYPE, min, 100, one < all ? one : all) static void check_##NAME##_max(int count)          \
            CHECK_SMALL_OP(NAME, TYPE, max, 0, one > all ? one : all) static void check_##NAME##_sum(int count)        \
                CHECK_SMALL_OP(NAME, TYPE, sum, 0, all + one) static void check_##NAME##_prod(int count)               \
                    CHECK_SMALL_OP(NAME, TYPE, prod, 1, all *one)
SMALL_TYPES(CHECK_SMALL_ORDER)

static void check_bytes(void)
{
    char *from = ZEROED(char, (size_t)(3 * pes));
    char *to = ZEROED(char, (size_t)(3 * pes));
    memset(from, 'a' + me, (size_t)(3 * pes));
    nvshmem_barrier_all();
    CHECK(nvshmem_fcollectmem(team, to, from, 3) == 0 && to[3 * pes - 1] == 'a' + pes - 1 && to[0] == 'a');
    CHECK(nvshmem_alltoallmem(team, to, from, 3) == 0 && to[3 * pes - 1] == 'a' + pes - 1);
    CHECK(nvshmem_broadcastmem(team, to, from, 3, 0) == 0 && to[2] == 'a');
    CHECK(nvshmem_barrier(team) == 0 && nvshmem_team_sync(team) == 0 && nvshmem_sync(team) == 0);
    nvshmem_sync_all();
    nvshmem_barrier_all();
    nvshmem_free(to);
    nvshmem_free(from);
}

static void check_team(int count)
{
    me = nvshmem_team_my_pe(team);
    pes = nvshmem_team_n_pes(team);
#define RUN_MOVES(NAME, TYPE) check_##NAME##_moves(count);
    RMA_TYPES(RUN_MOVES)
    SMALL_TYPES(RUN_MOVES)
#define RUN_BITS(NAME, TYPE)                                                                                           \
    check_##NAME##_bits(count);                                                                                        \
    check_##NAME##_or(count);                                                                                          \
    check_##NAME##_xor(count);
    BITS_TYPES(RUN_BITS)
#define RUN_ORDER(NAME, TYPE)                                                                                          \
    check_##NAME##_min(count);                                                                                         \
    check_##NAME##_max(count);                                                                                         \
    check_##NAME##_sum(count);                                                                                         \
    check_##NAME##_prod(count);
    ORDER_TYPES(RUN_ORDER)
    SMALL_TYPES(RUN_ORDER)
    check_bytes();
}

int main(void)
{
    nvshmem_init();
    team = NVSHMEM_TEAM_WORLD;
    check_team(3);
    check_team(41); /* in kernels: of some types 128 bytes, and more */
    check_int64_moves(700); /* more than 4096 bytes */
    check_uint8_moves(5001);
    /* The other way round: members in the opposite order. */
    nvshmem_team_t backward;
    const int all = nvshmem_n_pes();
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, all - 1, -1, all, NULL, 0, &backward) == 0);
    team = backward;
    check_team(2);
    me = nvshmem_team_my_pe(team);
    check_half_sum(20000); /* more than one part */
    check_bfloat16_max(20000);
    nvshmem_team_destroy(team);
    return check_end();
}
