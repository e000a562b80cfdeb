/* Goal: what follows from the counts of an owner is right for every layout: rows, the cut where they are too many,
 * answers.
 *
 * Method: random columns, against the rows listed one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ep/host/column.h"
#include "support/check.h"

#define RANKS_MAX 9
#define EXPERTS_MAX 7
#define PITCH (1 + EXPERTS_MAX)

typedef struct column_case {
    wefti_ep_column column;
    uint32_t messages[RANKS_MAX * PITCH];
    uint32_t given[RANKS_MAX * PITCH]; /* as drawn */
    int64_t of_expert[EXPERTS_MAX];
} column_case;

static void draw(column_case *one, uint64_t *state)
{
    wefti_ep_column *column = &one->column;
    memset(one, 0, sizeof *one);
    column->messages = one->messages;
    column->pitch = PITCH;
    column->of_expert = one->of_expert;
    column->ranks = 1 + (int)random_below(state, RANKS_MAX);
    column->experts = (int)random_below(state, EXPERTS_MAX + 1);
    column->plan.layout = (weft_ep_layout)random_below(state, 4);
    column->plan.alignment = column->plan.layout == WEFT_EP_EXPERT_MAJOR ? 1 + (int)random_below(state, 5) : 1;
    column->plan.slot_tokens = 10;
    for (int source = 0; source < column->ranks; source++) {
        uint32_t *message = &one->messages[source * PITCH];
        message[0] = (uint32_t)random_below(state, 11);
        for (int expert = 0; expert < column->experts; expert++) {
            message[1 + expert] = (uint32_t)random_below(state, message[0] + 1);
        }
    }
    memcpy(one->given, one->messages, sizeof one->given);
}

/* Of the first `sources` sources. */
static int64_t rows_of(const column_case *one, int sources)
{
    const wefti_ep_column *column = &one->column;
    int64_t tokens = 0;
    int64_t rows = 0;
    for (int source = 0; source < sources; source++) {
        tokens += one->given[source * PITCH];
    }
    for (int expert = 0; expert < column->experts; expert++) {
        int64_t count = 0;
        for (int source = 0; source < sources; source++) {
            count += one->given[source * PITCH + 1 + expert];
        }
        while (column->plan.layout == WEFT_EP_EXPERT_MAJOR && count % column->plan.alignment != 0) {
            count++;
        }
        rows += column->plan.layout == WEFT_EP_SLOTS_EXPERT ? column->ranks * 10 : count;
    }
    return column->plan.layout == WEFT_EP_RANK_MAJOR     ? tokens
           : column->plan.layout == WEFT_EP_SLOTS_SOURCE ? column->ranks * 10
                                                         : rows;
}

static void sums(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (int i = 0; i < 5000; i++) {
        column_case one;
        draw(&one, &random);
        wefti_ep_column_sum sum = wefti_ep_column_add_up(&one.column);
        assert_int_equal(sum.rows, rows_of(&one, one.column.ranks));
        assert_memory_equal(one.messages, one.given, sizeof one.given);
    }
}

static void cuts(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (int i = 0; i < 5000; i++) {
        column_case one;
        draw(&one, &random);
        int64_t limit = (int64_t)random_below(&random, 200);
        int wanted = 0;
        while (wanted < one.column.ranks && rows_of(&one, wanted + 1) <= limit) {
            wanted++;
        }
        wanted = wefti_ep_plan_is_slots(&one.column.plan) || wanted == one.column.ranks ? -1 : wanted;
        assert_int_equal(wefti_ep_column_cut(&one.column, limit), wanted);
        for (int source = 0; source < one.column.ranks; source++) {
            for (int word = 0; word <= one.column.experts; word++) {
                uint32_t left = source > wanted && wanted >= 0 ? 0 : one.given[source * PITCH + word];
                if (source == wanted) { /* what comes before */
                    left = 0;
                    for (int before = 0; before < wanted; before++) {
                        left += one.given[before * PITCH + word];
                    }
                }
                assert_int_equal(one.messages[source * PITCH + word], left);
            }
        }
    }
}

static void answers(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (int i = 0; i < 5000; i++) {
        column_case one;
        draw(&one, &random);
        wefti_ep_column_answer(&one.column);
        int64_t first = 0;
        for (int word = 0; word <= one.column.experts; word++) {
            uint32_t next = word == 0 ? 0 : (uint32_t)first;
            for (int source = 0; source < one.column.ranks; source++) {
                assert_int_equal(one.messages[source * PITCH + word], next);
                next += one.given[source * PITCH + word];
            }
            if (word > 0) {
                first = wefti_ep_expert_end(&one.column.plan, one.column.ranks, first, (int64_t)next - first);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(cuts), cmocka_unit_test(answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
