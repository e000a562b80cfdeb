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

/* The root of a team makes its id and tells the members; they call, nobody else does. */
static nvshmemx_team_uniqueid_t id_of(const int *members, int count, nvshmemx_team_uniqueid_t *shared)
{
    nvshmemx_team_uniqueid_t id = 0;
    if (me == members[0]) {
        CHECK(nvshmemx_team_get_uniqueid(&id) == 0);
        for (int i = 0; i < count; i++) {
            nvshmem_uint64_p(shared, id, members[i]);
        }
    }
    nvshmem_barrier_all();
    nvshmem_getmem(&id, shared, sizeof id, me);
    nvshmem_barrier_all();
    return id;
}

/* Teams in another order than the PEs', and with some of them left out. */
static void check_ids(void)
{
    nvshmemx_team_uniqueid_t *shared = ZEROED(nvshmemx_team_uniqueid_t, 1);
    int *sum = ZEROED(int, 2);
    for (int round = 0; round < 40; round++) {
        const int count = round % pes + 1;
        int members[16];
        int mine = -1;
        nvshmem_team_t team = 5;
        nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
        for (int i = 0; i < count; i++) {
            members[i] = (round + pes - i) % pes;
            mine = members[i] == me ? i : mine;
        }
        config.uniqueid = id_of(members, count, shared);
        if (mine < 0) {
            continue;
        }
        CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, count, mine) == 0);
        CHECK(nvshmem_team_my_pe(team) == mine && nvshmem_team_n_pes(team) == count);
        CHECK(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD) == members[0]);
        int wanted = 0;
        for (int i = 0; i < count; i++) {
            wanted += members[i];
        }
        int said[2] = {me, 0};
        nvshmem_putmem(sum, said, sizeof said, me);
        CHECK(nvshmem_int_sum_reduce(team, &sum[1], &sum[0], 1) == 0);
        nvshmem_getmem(said, sum, sizeof said, me);
        CHECK(said[1] == wanted);
        nvshmem_team_destroy(team);
    }
    nvshmem_barrier_all();
    nvshmem_free(sum);
    nvshmem_free(shared);
}

/* Members that do not fit together all hear of it, and the next team is as ever. */
static void check_ids_misuse(void)
{
    const int all[2] = {0, 1};
    nvshmem_team_t team = 5;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmemx_team_uniqueid_t ids[17];
    nvshmemx_team_uniqueid_t *shared = ZEROED(nvshmemx_team_uniqueid_t, 1);
    const long mask = NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID;
    CHECK(nvshmemx_team_init(&team, &config, mask, 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(team == NVSHMEM_TEAM_INVALID);
    CHECK(nvshmemx_team_init(&team, NULL, mask, 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_team_get_uniqueid(NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    for (int i = 0; i < 17; i++) {
        CHECK(nvshmemx_team_get_uniqueid(&ids[i]) == (i < 16 ? 0 : NVSHMEMX_ERROR_OUT_OF_MEMORY));
    }
    for (int i = 0; i < 16; i++) {
        config.uniqueid = ids[i];
        CHECK(nvshmemx_team_init(&team, &config, 0, 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE);
        CHECK(nvshmemx_team_init(&team, &config, mask, pes + 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE);
        CHECK(nvshmemx_team_init(&team, &config, mask, 1, 1) == NVSHMEMX_ERROR_INVALID_VALUE);
        CHECK(nvshmemx_team_init(&team, &config, mask, 1, 0) == 0 && nvshmem_team_n_pes(team) == 1);
        nvshmem_team_destroy(team);
        CHECK(nvshmemx_team_init(&team, &config, mask, 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE); /* it has served */
    }
    if (pes > 1) {
        config.uniqueid = id_of(all, 2, shared);
        if (me == 0 || me == 1) { /* one says 2 members, the other 1 + all */
            CHECK(nvshmemx_team_init(&team, &config, mask, me == 0 || pes == 2 ? 2 : 3, me) ==
                  (pes == 2 ? 0 : NVSHMEMX_ERROR_SYMMETRY));
            nvshmem_team_destroy(team);
        }
    }
    nvshmem_barrier_all();
    nvshmem_free(shared);
}

static void check_regions(void)
{
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_handle_t other = 0;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    int active = -1;
    CHECK(nvshmemx_region_stop(1) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_start(NULL, &attrs) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_is_active(2, &active) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, &active) == 0 && active == 0);
    attrs.hints = 2;
    CHECK(nvshmemx_region_start(&region, &attrs) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_start(&region, NULL) == 0);
    CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, &active) == 0 && active == 1);
    CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &active) == 0 && active == 0);
    CHECK(nvshmemx_region_start(&other, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_region_stop(region) == 0 && nvshmemx_region_stop(region) == NVSHMEMX_ERROR_INVALID_VALUE);
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    CHECK(nvshmemx_region_start(&region, &attrs) == 0);
    CHECK(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &active) == 0 && active == 1);
    CHECK(nvshmemx_region_stop(region) == 0);
}

/* More teams than a GPU has multiprocessors, all of which have collectives. */
static void check_many_collectives(void)
{
    nvshmem_team_t teams[40];
    int *const sum = ZEROED(int, 2);
    nvshmem_putmem(sum, &me, sizeof me, me);
    nvshmem_barrier_all();
    for (int i = 0; i < 40; i++) {
        int got = 0;
        CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
        CHECK(nvshmem_int_sum_reduce(teams[i], &sum[1], &sum[0], 1) == 0);
        nvshmem_getmem(&got, &sum[1], sizeof got, me);
        CHECK(got == pes * (pes - 1) / 2);
    }
    for (int i = 0; i < 40; i++) {
        CHECK(nvshmem_int_max_reduce(teams[i], &sum[1], &sum[0], 1) == 0);
        nvshmem_team_destroy(teams[i]);
    }
    nvshmem_free(sum);
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
    check_ids();
    check_ids_misuse();
    check_regions();
    check_many();
    check_many_collectives();
    check_misuse();
    return check_end();
}
