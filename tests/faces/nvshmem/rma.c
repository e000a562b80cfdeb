/* Goal: puts, gets, single elements and strides of all types and sizes land where they should and nowhere else.
 * Method: each PE writes numbers that name it and the place to the next PE's block, whose neighbours must stay as
 * they were, and reads the block of the one before. */
#include "faces/nvshmem/check.h"

#define COUNT 9
#define ALL (COUNT + 2)

static int me;
static int pes;
static int next;
static int before;

#define CHECK_TYPE(NAME, TYPE)                                                                                         \
    static void check_##NAME(void)                                                                                     \
    {                                                                                                                  \
        TYPE *block = ZEROED(TYPE, 4 * ALL);                                                                           \
        TYPE mine[COUNT];                                                                                              \
        TYPE got[2 * COUNT];                                                                                           \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            mine[i] = (TYPE)number_of(me, i);                                                                          \
        }                                                                                                              \
        nvshmem_##NAME##_put(block + 1, mine, COUNT, next);                                                            \
        nvshmem_##NAME##_put_nbi(block + ALL + 1, mine, COUNT, next);                                                  \
        nvshmem_##NAME##_iput(block + 2 * ALL + 1, mine, 2, 1, COUNT, next);                                           \
        nvshmem_quiet();                                                                                               \
        nvshmem_barrier_all();                                                                                         \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            const TYPE wanted = (TYPE)number_of(before, i);                                                            \
            CHECK(block[1 + i] == wanted && block[ALL + 1 + i] == wanted && block[2 * ALL + 1 + 2 * i] == wanted);     \
            CHECK(block[2 * ALL + 2 + 2 * i] == 0);                                                                    \
        }                                                                                                              \
        CHECK(block[0] == 0 && block[ALL - 1] == 0 && block[ALL] == 0 && block[2 * ALL] == 0);                         \
        memset(got, 0, sizeof got);                                                                                    \
        nvshmem_##NAME##_get(got, block + 1, COUNT, next);                                                             \
        nvshmem_##NAME##_get_nbi(got + COUNT, block + 1, COUNT, next);                                                 \
        nvshmem_quiet();                                                                                               \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK(got[i] == (TYPE)number_of(me, i) && got[COUNT + i] == got[i]);                                       \
        }                                                                                                              \
        memset(got, 0, sizeof got);                                                                                    \
        nvshmem_##NAME##_iget(got, block + 2 * ALL + 1, 1, 2, COUNT, next);                                            \
        CHECK(memcmp(got, mine, sizeof mine) == 0);                                                                    \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_##NAME##_p(block, (TYPE)number_of(me, 50), next);                                                      \
        nvshmem_barrier_all();                                                                                         \
        CHECK(block[0] == (TYPE)number_of(before, 50));                                                                \
        CHECK(nvshmem_##NAME##_g(block, next) == (TYPE)number_of(me, 50));                                             \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(block);                                                                                           \
    }
RMA_TYPES(CHECK_TYPE)

/* The bits of what C has no arithmetic for. */
#define CHECK_SMALL(NAME, TYPE)                                                                                        \
    static void check_##NAME(void)                                                                                     \
    {                                                                                                                  \
        TYPE *block = ZEROED(TYPE, 3 * ALL);                                                                           \
        uint16_t bits[COUNT];                                                                                          \
        TYPE mine[COUNT];                                                                                              \
        TYPE got[COUNT];                                                                                               \
        TYPE one;                                                                                                      \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            bits[i] = (uint16_t)(0x3c00 + number_of(me, i));                                                           \
        }                                                                                                              \
        memcpy(mine, bits, sizeof mine);                                                                               \
        nvshmem_##NAME##_put(block + 1, mine, COUNT, next);                                                            \
        nvshmem_##NAME##_iput(block + ALL + 1, mine, 2, 1, COUNT, next);                                               \
        nvshmem_##NAME##_p(block, mine[1], next);                                                                      \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_##NAME##_get(got, block + 1, COUNT, next);                                                             \
        CHECK(memcmp(got, mine, sizeof mine) == 0);                                                                    \
        nvshmem_##NAME##_iget(got, block + ALL + 1, 1, 2, COUNT, next);                                                \
        CHECK(memcmp(got, mine, sizeof mine) == 0);                                                                    \
        one = nvshmem_##NAME##_g(block, next);                                                                         \
        CHECK(memcmp(&one, &mine[1], sizeof one) == 0);                                                                \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(block);                                                                                           \
    }
SMALL_TYPES(CHECK_SMALL)

#define CHECK_SIZE(BITS, BYTES)                                                                                        \
    static void check_##BITS(void)                                                                                     \
    {                                                                                                                  \
        unsigned char *block = ZEROED(unsigned char, (size_t)(4 * ALL * (BYTES)));                                     \
        unsigned char mine[COUNT * (BYTES)];                                                                           \
        unsigned char got[COUNT * (BYTES)];                                                                            \
        for (int i = 0; i < COUNT * (BYTES); i++) {                                                                    \
            mine[i] = (unsigned char)number_of(me, i);                                                                 \
        }                                                                                                              \
        nvshmem_put##BITS(block + (BYTES), mine, COUNT, next);                                                         \
        nvshmem_put##BITS##_nbi(block + (ALL + 1) * (BYTES), mine, COUNT, next);                                       \
        nvshmem_iput##BITS(block + 2 * ALL * (BYTES), mine, 2, 1, COUNT, next);                                        \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_get##BITS(got, block + (BYTES), COUNT, next);                                                          \
        CHECK(memcmp(got, mine, sizeof mine) == 0);                                                                    \
        nvshmem_get##BITS##_nbi(got, block + (ALL + 1) * (BYTES), COUNT, next);                                        \
        nvshmem_quiet();                                                                                               \
        CHECK(memcmp(got, mine, sizeof mine) == 0);                                                                    \
        nvshmem_iget##BITS(got, block + 2 * ALL * (BYTES), 1, 2, COUNT, next);                                         \
        CHECK(memcmp(got, mine, sizeof mine) == 0 && block[0] == 0 && block[(ALL - 1) * (BYTES)] == 0);                \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(block);                                                                                           \
    }
SIZES(CHECK_SIZE)

static void check_bytes(void)
{
    enum { BYTES = 100001 };
    unsigned char *block = ZEROED(unsigned char, 2 * BYTES);
    unsigned char *mine = (unsigned char *)malloc(BYTES);
    for (int i = 0; mine != NULL && i < BYTES; i++) {
        mine[i] = (unsigned char)number_of(me, i);
    }
    nvshmem_putmem(block, mine, BYTES, next);
    nvshmem_putmem_nbi(block + BYTES, mine, BYTES, next);
    nvshmem_putmem(NULL, NULL, 0, next); /* nothing is no mistake */
    nvshmemx_flush();
    nvshmem_barrier_all();
    for (int i = 0; i < BYTES; i += 997) {
        CHECK(block[i] == (unsigned char)number_of(before, i) && block[BYTES + i] == block[i]);
    }
    memset(mine, 0, BYTES);
    nvshmem_getmem(mine, block, BYTES, next);
    CHECK(mine[BYTES - 1] == (unsigned char)number_of(me, BYTES - 1));
    nvshmem_getmem_nbi(mine, block, BYTES, me);
    nvshmem_fence();
    nvshmem_quiet();
    CHECK(memcmp(mine, block, BYTES) == 0);
    nvshmem_barrier_all();
    free(mine);
    nvshmem_free(block);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    next = (me + 1) % pes;
    before = (me + pes - 1) % pes;
#define RUN(NAME, TYPE) check_##NAME();
    RMA_TYPES(RUN)
    SMALL_TYPES(RUN)
    SIZES(RUN)
    check_bytes();
    return check_end();
}
