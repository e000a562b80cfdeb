/* Goal: the forms for a warp and a block, and those with a queue pair, do what those for a thread do.
 * Method: as rma.c, wait.c and coll.c, in short, for all types; on the CPU, where a warp and a block are one thread. */
#include "faces/nvshmem/check.h"

#define COUNT 6

static int me;
static int pes;
static int next;
static int before;

template <class T> static void fill(T *block, int count, int pe, int first)
{
    memset((void *)block, 0, (size_t)count * sizeof(T));
    for (int i = 0; i < count; i++) {
        const unsigned char value = (unsigned char)number_of(pe, first + i);
        memcpy((void *)(block + i), &value, 1);
    }
}

template <class T> static bool is_from(const T *block, int count, int pe, int first)
{
    T wanted[COUNT];
    fill(wanted, count, pe, first);
    return memcmp((const void *)block, (const void *)wanted, (size_t)count * sizeof(T)) == 0;
}

#define CHECK_SCOPE(NAME, TYPE, SCOPE)                                                                                 \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, 4 * COUNT);                                                                          \
        TYPE *to = ZEROED(TYPE, 8 * COUNT);                                                                            \
        uint64_t *signals = ZEROED(uint64_t, 2);                                                                       \
        TYPE got[COUNT];                                                                                               \
        fill(from, 4 * COUNT, me, 0);                                                                                  \
        nvshmemx_barrier_all_##SCOPE();                                                                                \
        nvshmemx_##NAME##_put_##SCOPE(to, from, COUNT, next);                                                          \
        nvshmemx_##NAME##_put_nbi_##SCOPE(to + COUNT, from, COUNT, next);                                              \
        nvshmemx_##NAME##_iput_##SCOPE(to + 2 * COUNT, from, 2, 1, COUNT, next);                                       \
        nvshmemx_##NAME##_put_signal_##SCOPE(to + 4 * COUNT, from, COUNT, &signals[0], 7, NVSHMEM_SIGNAL_SET, next);   \
        nvshmemx_##NAME##_put_signal_nbi_##SCOPE(to + 5 * COUNT, from, COUNT, &signals[1], 8, NVSHMEM_SIGNAL_ADD,      \
                                                 next);                                                                \
        (void)nvshmem_signal_wait_until(&signals[0], NVSHMEM_CMP_EQ, 7);                                               \
        (void)nvshmem_signal_wait_until(&signals[1], NVSHMEM_CMP_EQ, 8);                                               \
        CHECK(is_from(to + 4 * COUNT, COUNT, before, 0) && is_from(to + 5 * COUNT, COUNT, before, 0));                 \
        nvshmemx_qp_##NAME##_put_##SCOPE(to + 6 * COUNT, from, COUNT, next, NVSHMEMX_QP_DEFAULT);                      \
        nvshmemx_qp_##NAME##_put_nbi_##SCOPE(to + 7 * COUNT, from, COUNT, next, NVSHMEMX_QP_ANY);                      \
        nvshmemx_flush_##SCOPE();                                                                                      \
        nvshmemx_qp_quiet_##SCOPE(next, NULL, 0);                                                                      \
        nvshmemx_qp_fence_##SCOPE(next, NULL, 0);                                                                      \
        nvshmemx_barrier_all_##SCOPE();                                                                                \
        for (int i = 0; i < 8; i++) {                                                                                  \
            CHECK(i == 2 || i == 3 || is_from(to + i * COUNT, COUNT, before, 0));                                      \
        }                                                                                                              \
        CHECK(is_from(to + 2 * COUNT + 2 * (COUNT - 1), 1, before, COUNT - 1));                                        \
        nvshmemx_##NAME##_get_##SCOPE(got, to, COUNT, next);                                                           \
        CHECK(is_from(got, COUNT, me, 0));                                                                             \
        nvshmemx_##NAME##_get_nbi_##SCOPE(got, to, COUNT, me);                                                         \
        CHECK(is_from(got, COUNT, before, 0));                                                                         \
        nvshmemx_##NAME##_iget_##SCOPE(got, to + 2 * COUNT, 1, 2, COUNT, next);                                        \
        CHECK(is_from(got, COUNT, me, 0));                                                                             \
        nvshmemx_qp_##NAME##_get_##SCOPE(got, to, COUNT, me, NVSHMEMX_QP_DEFAULT);                                     \
        CHECK(is_from(got, COUNT, before, 0));                                                                         \
        nvshmemx_sync_all_##SCOPE();                                                                                   \
        CHECK(nvshmemx_##NAME##_broadcast_##SCOPE(NVSHMEM_TEAM_WORLD, to, from, COUNT, pes - 1) == 0);                 \
        CHECK(is_from(to, COUNT, pes - 1, 0));                                                                         \
        CHECK(nvshmemx_##NAME##_fcollect_##SCOPE(NVSHMEM_TEAM_WORLD, to, from, COUNT) == 0);                           \
        for (int pe = 0; pe < pes; pe++) {                                                                             \
            CHECK(is_from(to + pe * COUNT, COUNT, pe, 0));                                                             \
        }                                                                                                              \
        CHECK(nvshmemx_##NAME##_alltoall_##SCOPE(NVSHMEM_TEAM_WORLD, to, from, COUNT) == 0);                           \
        for (int pe = 0; pe < pes; pe++) {                                                                             \
            CHECK(is_from(to + pe * COUNT, COUNT, pe, me * COUNT));                                                    \
        }                                                                                                              \
        CHECK(nvshmemx_barrier_##SCOPE(NVSHMEM_TEAM_WORLD) == 0 &&                                                     \
              nvshmemx_team_sync_##SCOPE(NVSHMEM_TEAM_WORLD) == 0);                                                    \
        nvshmem_free(signals);                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
#define CHECK_TYPE(NAME, TYPE)                                                                                         \
    static void check_##NAME()                                                                                         \
    {                                                                                                                  \
        CHECK_SCOPE(NAME, TYPE, warp)                                                                                  \
        CHECK_SCOPE(NAME, TYPE, block)                                                                                 \
    }
RMA_TYPES(CHECK_TYPE)
SMALL_TYPES(CHECK_TYPE)

#define CHECK_SUM(NAME, TYPE)                                                                                          \
    static void check_##NAME##_sum()                                                                                   \
    {                                                                                                                  \
        TYPE *from = ZEROED(TYPE, (size_t)(COUNT * pes));                                                              \
        TYPE *to = ZEROED(TYPE, (size_t)(COUNT * pes));                                                                \
        for (int i = 0; i < COUNT * pes; i++) {                                                                        \
            from[i] = (TYPE)(me + i % 3);                                                                              \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmemx_##NAME##_sum_reduce_warp(NVSHMEM_TEAM_WORLD, to, from, (size_t)(COUNT * pes)) == 0);            \
        CHECK(to[1] == (TYPE)(pes * (pes - 1) / 2 + pes) && to[COUNT - 1] == (TYPE)(pes * (pes - 1) / 2 + 2 * pes));   \
        CHECK(nvshmemx_##NAME##_max_reduce_block(NVSHMEM_TEAM_WORLD, to, from, (size_t)(COUNT * pes)) == 0);           \
        CHECK(to[0] == (TYPE)(pes - 1));                                                                               \
        CHECK(nvshmemx_##NAME##_min_reducescatter_block(NVSHMEM_TEAM_WORLD, to, from, COUNT) == 0);                    \
        CHECK(to[0] == 0 && to[1] == 1 && to[2] == 2);                                                                 \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(to);                                                                                              \
        nvshmem_free(from);                                                                                            \
    }
ORDER_TYPES(CHECK_SUM)

/* What kernels are told of teams that the host makes and ends. */
static void check_teams()
{
    nvshmem_team_t team;
    int major = 0;
    int minor = 0;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &team) == 0);
    CHECK(nvshmem_team_my_pe(team) == pes - 1 - me && nvshmem_team_n_pes(team) == pes);
    CHECK(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD) == pes - 1);
    CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pes, team) == -1);
    CHECK(nvshmemx_team_sync_block(team) == 0 && nvshmemx_barrier_warpgroup(team) == 0);
    nvshmem_team_destroy(team);
    CHECK(nvshmem_team_my_pe(team) == -1 && nvshmem_team_n_pes(NVSHMEM_TEAM_INVALID) == -1);
    CHECK(nvshmem_team_n_pes(NVSHMEM_TEAM_SHARED) == pes);
    nvshmem_info_get_version(&major, &minor);
    CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
    int *word = ZEROED(int, 1);
    *word = me;
    CHECK(nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD) == 0);
    CHECK(*(int *)nvshmem_ptr(word, next) == next && nvshmem_ptr(word, pes) == NULL);
    nvshmem_barrier_all();
    nvshmem_free(word);
}

static bool is_active(uint32_t hint)
{
    int active = -1;
    CHECK(nvshmemx_region_is_active(hint, &active) == 0);
    return active == 1;
}

/* A block has one region at a time, and knows of it; handles of others are refused. */
static void check_regions()
{
    const uint32_t none = NVSHMEMX_REGION_HINT_NONE;
    const uint32_t batch = NVSHMEMX_REGION_HINT_BATCH_RMA;
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_handle_t other = 0;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    int active = 0;
    attrs.hints = 1u << 31;
    CHECK(!is_active(none));
    CHECK(nvshmemx_region_start_block(&region, &attrs) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_start_block(NULL, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_is_active(1u << 31, &active) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_is_active(none, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_stop_block(1) == NVSHMEMX_ERROR_INVALID_VALUE);
    attrs.hints = batch;
    CHECK(nvshmemx_region_start_block(&region, &attrs) == 0 && is_active(none) && is_active(batch));
    CHECK(nvshmemx_region_start_block(&other, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_stop_block(region + 1) == NVSHMEMX_ERROR_INVALID_VALUE && is_active(none));
    CHECK(nvshmemx_region_stop_block(region) == 0 && !is_active(none));
    CHECK(nvshmemx_region_stop_block(region) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_start_block(&other, NULL) == 0 && other != region);
    CHECK(is_active(none) && !is_active(batch));
    CHECK(nvshmemx_region_stop_block(other) == 0 && !is_active(none));
}

/* Signals that count bytes, also past the largest number, within a region. */
static void check_counted()
{
    uint64_t *counter = ZEROED(uint64_t, 1);
    char *to = ZEROED(char, 64);
    char *from = ZEROED(char, 64);
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    fill(from, 64, me, 0);
    *counter = ~(uint64_t)0 - 15;
    nvshmem_barrier_all();
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    CHECK(nvshmemx_region_start_block(&region, &attrs) == 0);
    CHECK(nvshmemx_putmem_signal_counted_nbi_block(to, from, 0, counter, next) == 0);
    CHECK(nvshmemx_putmem_signal_counted_nbi_block(to, from, 32, counter, next) == 0);
    CHECK(nvshmemx_putmem_signal_counted_nbi_block(to + 32, from + 32, 32, counter, next) == 0);
    nvshmemx_signal_counted_wait_until(counter, 48);
    CHECK(nvshmemx_signal_counted_load(counter) == 48);
    CHECK(is_from(to, COUNT, before, 0) && is_from(to + 58, COUNT, before, 58));
    CHECK(nvshmemx_region_stop_block(region) == 0 && nvshmemx_region_stop_warp(0) != 0);
    CHECK(nvshmemx_region_start_warp(NULL, &attrs) != 0);
    nvshmemx_signal_counted_reset(counter);
    CHECK(*counter == 0);
    nvshmem_barrier_all();
    nvshmem_free(from);
    nvshmem_free(to);
    nvshmem_free(counter);
}

int main()
{
    CHECK(nvshmem_n_pes() == 0); /* this unit's state is empty */
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    next = (me + 1) % pes;
    before = (me + pes - 1) % pes;
#define RUN(NAME, TYPE) check_##NAME();
#define RUN_SUM(NAME, TYPE) check_##NAME##_sum();
    RMA_TYPES(RUN)
    SMALL_TYPES(RUN)
    ORDER_TYPES(RUN_SUM)
    check_teams();
    check_counted();
    check_regions();
    nvshmem_finalize();
    CHECK(nvshmem_n_pes() == 0); /* and is again */
    nvshmem_init();
    CHECK(nvshmem_n_pes() == pes && nvshmem_my_pe() == me);
    return check_end();
}
