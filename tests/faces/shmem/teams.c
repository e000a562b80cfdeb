/* Goal: teams, contexts and sessions (9.4, 9.5).
 * Method: every strided split and every split into rows and columns of the world, and splits of splits; members'
 * numbers, their translation, what a context of a team writes, and what is refused. */
#include "faces/shmem/check.h"

static int me;
static int pes;

/* What is true of every team: `first` + i * `stride` are its members. */
static void check_members(shmem_team_t team, int first, int stride, int size)
{
    CHECK(shmem_team_n_pes(team) == size);
    const int number = shmem_team_my_pe(team);
    CHECK(number >= 0 && number < size && first + number * stride == me);
    for (int i = 0; i < size; i++) {
        const int pe = first + i * stride;
        CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == pe);
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) == i);
    }
    CHECK(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(team, -1, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_sync(team) == 0);
}

static void check_ctx(shmem_team_t team)
{
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                                   SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        shmem_ctx_t ctx = SHMEM_CTX_INVALID;
        shmem_team_t of = SHMEM_TEAM_INVALID;
        CHECK(shmem_team_create_ctx(team, options[i], &ctx) == 0 && ctx != SHMEM_CTX_INVALID);
        CHECK(shmem_ctx_get_team(ctx, &of) == 0 && of == team);
        const shmem_ctx_session_config_t config = {.total_ops = 2};
        shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
        shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_SAME_AMO, NULL, 0);
        shmem_ctx_session_start(ctx, 0, NULL, 0);
        shmem_ctx_session_stop(ctx);
        shmem_ctx_destroy(ctx);
    }
}

/* A context names PEs by their numbers in its team. */
static void write_in_team(shmem_team_t team, int first, int stride, int size, long *word)
{
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    const int number = shmem_team_my_pe(team);
    CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
    const int to = (number + 1) % size;
    shmem_ctx_long_p(ctx, word, number + 1, to);
    shmem_ctx_quiet(ctx);
    shmem_team_sync(team);
    CHECK(*word == (number + size - 1) % size + 1);
    shmem_team_sync(team);
    CHECK(shmem_ctx_long_g(ctx, word, to) == number + 1);
    CHECK(shmem_ctx_long_atomic_fetch_inc(ctx, word, to) == number + 1);
    CHECK(shmem_team_ptr(team, word, to) == shmem_ptr(word, first + to * stride));
    CHECK(shmem_team_ptr(team, word, size) == NULL);
    shmem_team_sync(team);
    shmem_ctx_destroy(ctx);
}

static void check_strided(long *word)
{
    for (int start = 0; start < pes; start++) {
        for (int stride = 1; stride <= 3; stride++) {
            for (int size = 1; start + stride * (size - 1) < pes; size += 2) {
                shmem_team_t team = SHMEM_TEAM_WORLD;
                shmem_team_config_t config = {.num_contexts = 3};
                CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                               &team) == 0);
                const int distance = me - start;
                const int is_member = distance >= 0 && distance % stride == 0 && distance / stride < size;
                CHECK(is_member == (team != SHMEM_TEAM_INVALID));
                if (team == SHMEM_TEAM_INVALID) {
                    continue;
                }
                config.num_contexts = -1;
                CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 && config.num_contexts >= 0);
                CHECK(shmem_team_get_config(team, 0, NULL) == 0);
                check_members(team, start, stride, size);
                check_ctx(team);
                write_in_team(team, start, stride, size, word);
                shmem_team_destroy(team);
            }
        }
    }
}

/* One call makes several teams that share no member, though 1.6 asks for one triplet: programs of the field do so. */
static void check_several(void)
{
    shmem_team_t alone = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, me, 1, 1, NULL, 0, &alone) == 0);
    check_members(alone, me, 1, 1);
    shmem_team_destroy(alone);
    const int low = (pes + 1) / 2;
    const int first = me < low ? 0 : low;
    const int size = me < low ? low : pes - low;
    shmem_team_t half = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, first, 1, size, NULL, 0, &half) == 0);
    check_members(half, first, 1, size);
    shmem_team_destroy(half);
    /* Negative and zero strides, and what cannot be: -1 on all PEs, also where one alone asks for it. */
    shmem_team_t back = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &back) == 0);
    check_members(back, pes - 1, -1, pes);
    shmem_team_destroy(back);
    static const int wrong[][3] = {{0, 0, 2}, {-1, 1, 1}, {0, 1, 0}, {0, 1, 1 << 30}, {1 << 30, 1, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shmem_team_t none = SHMEM_TEAM_WORLD;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong[i][0], wrong[i][1], wrong[i][2], NULL, 0, &none) != 0);
        CHECK(none == SHMEM_TEAM_INVALID);
    }
    shmem_team_t none = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, me == 0 ? pes + 1 : pes, NULL, 0, &none) != 0);
    CHECK(none == SHMEM_TEAM_INVALID);
}

static void check_2d(void)
{
    for (int width = 1; width <= pes + 1; width++) {
        shmem_team_t x = SHMEM_TEAM_INVALID;
        shmem_team_t y = SHMEM_TEAM_INVALID;
        CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &x, NULL, 0, &y) == 0);
        const int row = width > pes ? pes : width;
        const int first = me / row * row;
        check_members(x, first, 1, pes - first < row ? pes - first : row);
        check_members(y, me % row, row, (pes - me % row - 1) / row + 1);
        shmem_team_t half = SHMEM_TEAM_INVALID; /* of a row */
        const int size = (shmem_team_n_pes(x) + 1) / 2;
        CHECK(shmem_team_split_strided(x, 0, 1, size, NULL, 0, &half) == 0);
        if (half != SHMEM_TEAM_INVALID) {
            check_members(half, first, 1, size);
        }
        shmem_team_destroy(half);
        shmem_team_destroy(x);
        shmem_team_destroy(y);
    }
}

static void check_refused(void)
{
    shmem_team_t team = SHMEM_TEAM_WORLD;
    shmem_team_t other = SHMEM_TEAM_WORLD;
    shmem_team_config_t config;
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &team, NULL, 0, &other) != 0);
    CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &config) != 0);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    CHECK(shmem_ctx_create(0, &ctx) == 0 && shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD);
    shmem_ctx_destroy(ctx);
}

/* Handles are constants: they can initialise what is static. */
static const shmem_team_t constants[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
static const shmem_ctx_t contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    long *word = ZEROED(long, 1);
    CHECK(constants[0] != constants[1] && constants[0] != constants[2] && contexts[0] != contexts[1]);
    check_members(SHMEM_TEAM_WORLD, 0, 1, pes);
    const int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED); /* those of a node are neighbours where these tests run */
    check_members(SHMEM_TEAM_SHARED, me - shmem_team_my_pe(SHMEM_TEAM_SHARED), 1, shared);
    CHECK(getenv("WEFT_NODE_ID") != NULL || shared == pes);
    check_refused();
    check_strided(word);
    check_several();
    check_2d();
    return check_end();
}
