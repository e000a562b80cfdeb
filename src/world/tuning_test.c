/* Goal: every algorithm that the tuning table names for a collective is chosen for some team and size, every algorithm
 * is named, and a team has an algorithm for every size.
 *
 * Method: the choices of teams of all sizes up to more than the rules name, whose members are near, share processors,
 * or neither. A rule that an earlier one always hides is chosen by none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weft/protocol/coll_layout.h"
#include "world/tuning.h"
#include "world/world.h"

#define PES_MAX 100

typedef struct team_kind {
    int near;
    int oversubscribed;
} team_kind;

static const team_kind kinds[] = {{0, 0}, {1, 0}, {1, 1}};

static const struct {
    wefti_collective collective;
    wefti_algorithm algorithm;
} rules[] = {
#define ROW(collective, algorithm, members, bytes, teams) {WEFTI_COLL_##collective, WEFTI_ALGORITHM_##algorithm},
    WEFTI_RULE_TABLE(ROW)
#undef ROW
};
#define RULES (sizeof rules / sizeof *rules)

/* By collective and algorithm: whether any team chooses it; and by algorithm alone. */
static int is_chosen[WEFTI_COLLECTIVES][WEFTI_ALGORITHMS];
static int has_choice[WEFTI_ALGORITHMS];

static void check_choices(const wefti_choice *choices, int collective)
{
    size_t before = 0;
    for (int i = 0; i < WEFTI_CHOICES_MAX; i++) {
        assert_in_range(choices[i].algorithm, 0, WEFTI_ALGORITHMS - 1);
        assert_true(i == 0 || choices[i].bytes_max > before);
        before = choices[i].bytes_max;
        is_chosen[collective][choices[i].algorithm] = 1;
        has_choice[choices[i].algorithm] = 1;
        if (before == SIZE_MAX) {
            return;
        }
    }
    fail_msg("the choices of collective %d end at %zu bytes", collective, before);
}

static void check_team(weft_world *world, int pes, const team_kind *kind)
{
    weft_team *team = calloc(1, sizeof *team);
    wefti_tuning tuning;
    memset(&tuning, 0, sizeof tuning);
    assert_non_null(team);
    team->world = world;
    team->pes = pes;
    team->near = kind->near;
    team->oversubscribed = kind->oversubscribed;
    wefti_tuning_init(&tuning, team);
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        check_choices(tuning.choices[c], c);
    }
    free(team);
}

static void all_are_chosen(void **state)
{
    (void)state;
    weft_world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    memset(world->preferences.algorithms, WEFTI_ALGORITHMS, sizeof world->preferences.algorithms);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (int pes = 1; pes <= PES_MAX; pes++) {
            check_team(world, pes, &kinds[kind]);
        }
    }
    free(world);
    for (size_t i = 0; i < RULES; i++) {
        if (!is_chosen[rules[i].collective][rules[i].algorithm]) {
            fail_msg("no team chooses \"%s\" by rule %zu: rules before it hold for all that it names",
                     wefti_algorithm_name(rules[i].algorithm), i);
        }
    }
    for (int a = 0; a < WEFTI_ALGORITHMS; a++) {
        if (!has_choice[a]) {
            fail_msg("algorithm \"%s\" has no rule", wefti_algorithm_name((wefti_algorithm)a));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
