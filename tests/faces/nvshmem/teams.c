/* Goal: teams are split, asked and translated as NVSHMEM says, and ended.
 * Method: every number that a query gives is computed here, too; a team's members make a collective apart from the
 * others. */
#include "faces/nvshmem/check.h"

static int me;
static int pes;

static void check_predefined(void)
{
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == me && nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == pes);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_SHARED) == me && nvshmem_team_n_pes(NVSHMEM_TEAM_SHARED) == pes);
    CHECK(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == me && nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == pes);
    CHECK(nvshmem_team_my_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 0 &&
          nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 1);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1 && nvshmem_team_n_pes(NVSHMEM_TEAM_INVALID) == -1);
    CHECK(nvshmem_team_n_pes(6) == -1 && nvshmem_team_n_pes(1 << 20) == -1);
    CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, me, NVSHMEMX_TEAM_SAME_MYPE_NODE) == 0);
    CHECK(pes == 1 ||
          nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, (me + 1) % pes, NVSHMEMX_TEAM_SAME_MYPE_NODE) == -1);
    CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_INVALID, 0, NVSHMEM_TEAM_WORLD) == -1);
}

static void check_strided(void)
{
    const int evens = (pes + 1) / 2;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmem_team_config_t told;
    nvshmem_team_t team = 5;
    int *sum = ZEROED(int, 2);
    config.num_contexts = 4;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, evens, &config, NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS,
                                     &team) == 0);
    CHECK((team == NVSHMEM_TEAM_INVALID) == (me % 2 != 0));
    if (team != NVSHMEM_TEAM_INVALID) {
        CHECK(nvshmem_team_my_pe(team) == me / 2 && nvshmem_team_n_pes(team) == evens);
        CHECK(nvshmem_team_translate_pe(team, evens - 1, NVSHMEM_TEAM_WORLD) == 2 * (evens - 1));
        nvshmem_team_get_config(team, &told);
        CHECK(told.num_contexts == 4);
        sum[0] = me;
        CHECK(nvshmem_int_sum_reduce(team, &sum[1], &sum[0], 1) == 0 && sum[1] == evens * (evens - 1));
        CHECK(nvshmem_barrier(team) == 0);
    }
    nvshmem_team_destroy(team);
    CHECK(nvshmem_team_n_pes(team) == -1);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes + 1, NULL, 0, &team) != 0);
    CHECK(team == NVSHMEM_TEAM_INVALID);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    nvshmem_barrier_all();
    nvshmem_free(sum);
}

static void check_2d(void)
{
    nvshmem_team_t x;
    nvshmem_team_t y;
    CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y) == 0);
    CHECK(nvshmem_team_my_pe(x) == me % 2 && nvshmem_team_my_pe(y) == me / 2);
    CHECK(nvshmem_team_translate_pe(y, 0, NVSHMEM_TEAM_WORLD) == me % 2);
    CHECK(nvshmem_team_sync(x) == 0 && nvshmem_team_sync(y) == 0);
    nvshmem_team_destroy(y);
    nvshmem_team_destroy(x);
}

/* More teams than there are handles, if none came back. */
static void check_many(void)
{
    for (int i = 0; i < 1100; i++) {
        nvshmem_team_t team;
        CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team) == 0);
        CHECK(team == NVSHMEM_TEAMS_MIN);
        nvshmem_team_destroy(team);
    }
}

static void check_misuse(void)
{
    nvshmem_team_config_t told;
    nvshmem_team_destroy(NVSHMEM_TEAM_WORLD);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_team_get_config(NVSHMEM_TEAM_INVALID, &told);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_team_destroy(NVSHMEM_TEAM_INVALID); /* nothing */
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    check_predefined();
    check_strided();
    check_2d();
    check_many();
    check_misuse();
    return check_end();
}
