/* Goal: what a combine may do beside does what weft_ep.h says: weights and choices of its own, biases, values, and the
 * order of addition.
 *
 * Method: two ranks of two experts each; rank 0 has one token, whose four choices are all experts. Rows hold one value;
 * the results are worked out by hand. The random cases of tests/property/ep.c have all of it in all combinations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { PES = 2, EXPERTS = 4, TOPK = 4, HIDDEN = 8, ROWS = 8 };

typedef struct rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_layout layout;
    _Alignas(16) float rows[ROWS][HIDDEN];
    _Alignas(16) float out[1][HIDDEN];
    _Alignas(16) float bias[2][HIDDEN];
} rig;

static weft_ep_rows rows_of(void *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static void fill(float *row, float value)
{
    for (int i = 0; i < HIDDEN; i++) {
        row[i] = value;
    }
}

/* Token 0 of rank 0 chooses all four experts, with weights 1, 2, 3, 4; rank 1 has no token. */
static int open_rig(weft_world *world, weft_ep_layout layout, weft_ep_order order, rig *r)
{
    static const int32_t ids[TOPK] = {3, 0, 1, 2};
    static const float weights[TOPK] = {1, 2, 3, 4};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    r->layout = layout;
    config.experts = EXPERTS;
    config.tokens_max = 1;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    plan.topk = TOPK;
    plan.layout = layout;
    plan.order = order;
    choices.tokens = r->rank == 0;
    choices.ids = ids;
    choices.weights = weights;
    return ep_group_open(world, &config, &plan, &r->ep, &r->route) &&
           CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
}

static void close_rig(rig *r)
{
    ep_group_close(r->ep, r->route);
}

/* By expert, expert e's row holds 10^e; by source rank r's row holds 10^r. Returns the token's sum. */
static float combine(rig *r, const weft_ep_combine_options *options)
{
    static const float powers[] = {1, 10, 100, 1000};
    weft_ep_rows in = rows_of(r->rows);
    weft_ep_rows out = rows_of(r->out);
    for (int i = 0; i < 2; i++) {
        fill(r->rows[i], powers[r->layout == WEFT_EP_RANK_MAJOR ? r->rank : 2 * r->rank + i]);
    }
    fill(r->out[0], -1.0f);
    CHECK_OK(weft_ep_combine_with(r->route, &in, &out, options, NULL));
    for (int i = 1; i < HIDDEN; i++) {
        CHECK(r->out[0][i] == r->out[0][0] || (isnan(r->out[0][i]) && isnan(r->out[0][0])));
    }
    return r->out[0][0];
}

#define EXPECT(r, value, options)                                                                                      \
    do {                                                                                                               \
        float got = combine(r, options);                                                                               \
        float wanted = (r)->rank == 0 ? (value) : -1.0f;                                                               \
        CHECK_SAY(got == wanted, "line %d: the sum is %g, not %g", __LINE__, (double)got, (double)wanted);             \
    } while (0)

static void by_expert(weft_world *world, void *context)
{
    static const float own[TOPK] = {5, 6, 7, 8};
    static const int32_t some[TOPK] = {3, -1, 1, -1};
    static const int64_t none[TOPK] = {-1, -1, -1, -1};
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    rig r;
    (void)context;
    if (!open_rig(world, WEFT_EP_EXPERT_MAJOR, WEFT_EP_ORDER_RANK, &r)) {
        return;
    }
    EXPECT(&r, 1111.0f, &options);
    options.flags = WEFT_EP_WEIGHTED;
    EXPECT(&r, 1432.0f, &options); /* the route's: 2 * 1 + 3 * 10 + 4 * 100 + 1 * 1000 */
    options.weights = own;
    EXPECT(&r, 5876.0f, &options);
    options.ids = some; /* experts 0 and 2 take no part */
    EXPECT(&r, 5070.0f, &options);
    options.ids = none;
    options.id_type = WEFT_EP_INT64;
    EXPECT(&r, 0.0f, &options);
    options = (weft_ep_combine_options)WEFT_EP_COMBINE_OPTIONS_INIT;
    options.ids = some;
    EXPECT(&r, 1010.0f, &options);
    options.ids = NULL;
    options.flags = WEFT_EP_WEIGHTED;
    EXPECT(&r, 1432.0f, &options); /* the route's are as they were */
    close_rig(&r);
}

/* A weight that is a NaN takes part, whatever its bits, with ids beside it too: the sum is a NaN. */
static void not_a_number(weft_world *world, void *context)
{
    static const int32_t all[TOPK] = {3, 0, 1, 2};
    float own[TOPK] = {5, 6, 7, 8};
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    rig r;
    (void)context;
    if (!open_rig(world, WEFT_EP_EXPERT_MAJOR, WEFT_EP_ORDER_RANK, &r)) {
        return;
    }
    options.flags = WEFT_EP_WEIGHTED;
    options.weights = own;
    memset(&own[1], 0xff, sizeof own[1]);
    for (int i = 0; i < 2; i++) {
        const float sum = combine(&r, &options);
        CHECK_SAY(r.rank == 1 || isnan(sum), "a weight is a NaN, and the sum is %g", (double)sum);
        options.ids = all;
    }
    close_rig(&r);
}

static void by_source(weft_world *world, void *context)
{
    static const float own[TOPK] = {5, 6, 7, 8};
    static const int32_t some[TOPK] = {3, -1, -1, 2};
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    rig r;
    (void)context;
    if (!open_rig(world, WEFT_EP_RANK_MAJOR, WEFT_EP_ORDER_RANK, &r)) {
        return;
    }
    EXPECT(&r, 11.0f, &options);
    options.flags = WEFT_EP_WEIGHTED;
    EXPECT(&r, 55.0f, &options);
    options.weights = own;
    EXPECT(&r, 143.0f, &options); /* (6 + 7) * 1 + (5 + 8) * 10 */
    options.ids = some;
    EXPECT(&r, 130.0f, &options);
    options.flags = 0;
    options.weights = NULL;
    EXPECT(&r, 10.0f, &options); /* rank 0 adds nothing */
    close_rig(&r);
}

/* In float32 2^24 + 1 is 2^24, so that the order shows: ((11 + 2^24) - 2^24) is 12 in either rounding, and
 * (11 + (2^24 - 2^24)) would be 11. */
static void biases(weft_world *world, void *context)
{
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    rig r;
    (void)context;
    if (!open_rig(world, WEFT_EP_RANK_MAJOR, WEFT_EP_ORDER_RANK, &r)) {
        return;
    }
    weft_ep_rows first = rows_of(r.bias[0]);
    weft_ep_rows second = rows_of(r.bias[1]);
    options.bias[0] = &first;
    fill(r.bias[0], 0.5f);
    EXPECT(&r, 11.5f, &options);
    options.bias[1] = &second;
    fill(r.bias[0], 0x1p24f);
    fill(r.bias[1], -0x1p24f);
    EXPECT(&r, 12.0f, &options);
    if (r.rank == 0) {
        options.bias[0] = options.bias[1] = NULL; /* ranks may differ */
    }
    EXPECT(&r, 11.0f, &options);
    close_rig(&r);
}

/* From 2^24 on float32 has even numbers only, and ties go to multiples of four. */
static void order(weft_world *world, void *context)
{
    static const int32_t without_last[TOPK] = {3, 0, 1, -1};
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    rig r;
    (void)context;
    if (!open_rig(world, WEFT_EP_RANK_MAJOR, WEFT_EP_ORDER_CHOICE, &r)) {
        return;
    }
    weft_ep_rows bias = rows_of(r.bias[0]);
    options.bias[0] = &bias;
    fill(r.bias[0], 0x1p24f);
    EXPECT(&r, 0x1p24f + 10.0f, &options); /* (2^24 + 1) + 10: the last choice is of rank 1 */
    options.ids = without_last;
    EXPECT(&r, 0x1p24f + 12.0f, &options); /* (2^24 + 10) + 1 */
    close_rig(&r);
}

/* 1 + 2^-9 is none of bf16, but a sum of two that are: in float32 it is kept, and rounded to bf16 it is 1. */
static void types(weft_world *world, void *context)
{
    rig r;
    uint16_t halves[2][HIDDEN] __attribute__((aligned(16)));
    (void)context;
    if (!open_rig(world, WEFT_EP_RANK_MAJOR, WEFT_EP_ORDER_RANK, &r)) {
        return;
    }
    weft_ep_rows in = rows_of(halves[0]);
    weft_ep_rows out = rows_of(r.out);
    in.dtype = WEFT_EP_BF16;
    for (int i = 0; i < HIDDEN; i++) {
        halves[0][i] = r.rank == 0 ? 0x3f80 : 0x3b00; /* 1, 2^-9 */
        halves[1][i] = 0;
    }
    CHECK_OK(weft_ep_combine(r.route, &in, &out, 0, NULL));
    CHECK(r.rank == 1 || r.out[0][HIDDEN - 1] == 1.0f + 0x1p-9f);
    out.data = halves[1];
    out.dtype = WEFT_EP_BF16;
    CHECK_OK(weft_ep_combine(r.route, &in, &out, 0, NULL));
    CHECK(r.rank == 1 || halves[1][HIDDEN - 1] == 0x3f80);
    out.dtype = WEFT_EP_FP8_E4M3;
    CHECK_STATUS(weft_ep_combine(r.route, &in, &out, 0, NULL), WEFT_ERR_ARGUMENT);
    out.dtype = WEFT_EP_F32;
    out.hidden = HIDDEN / 2;
    CHECK_STATUS(weft_ep_combine(r.route, &in, &out, 0, NULL), WEFT_ERR_ARGUMENT);
    close_rig(&r);
}

static void values(weft_world *world, void *context)
{
    static const float by_row[2] = {5, 7};
    static const float by_choice[TOPK] = {1, 2, 3, 4};
    static const float more[TOPK] = {10, 20, 30, 40};
    static const int32_t some[TOPK] = {3, -1, 1, -1};
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    float out[TOPK] = {-1, -1, -1, -1};
    rig r;
    options.values_out = out;
    options.ids = some;
    if (open_rig(world, *(const weft_ep_layout *)context, WEFT_EP_ORDER_CHOICE, &r)) {
        int by_expert = r.layout == WEFT_EP_EXPERT_MAJOR;
        const float sums[2][TOPK] = {{11, 22, 33, 44}, {107, 5, 7, 105}};
        const float second[2] = {105, 107}; /* of rank 1, experts 2 and 3 */
        options.values_in = by_expert ? (r.rank == 0 ? by_row : second) : (r.rank == 0 ? by_choice : more);
        EXPECT(&r, by_expert ? 1010.0f : 11.0f, &options); /* by source a choice is left on both ranks */
        for (int k = 0; k < TOPK; k++) {
            CHECK(out[k] == (r.rank == 0 ? sums[by_expert][k] : -1.0f));
        }
        close_rig(&r);
    }
}

static void run(void (*body)(weft_world *world, void *context))
{
    pes_run(PES, body, NULL);
}

static void a_combine_by_expert_takes_weights_and_choices_of_its_own(void **state)
{
    (void)state;
    run(by_expert);
}

static void a_combine_by_source_takes_weights_and_choices_of_its_own(void **state)
{
    (void)state;
    run(by_source);
}

static void a_weight_that_is_no_number_takes_part(void **state)
{
    (void)state;
    run(not_a_number);
}

static void biases_are_added_after_the_ranks_in_their_order(void **state)
{
    (void)state;
    run(biases);
}

static void ranks_are_added_by_their_last_choice_after_the_biases(void **state)
{
    (void)state;
    run(order);
}

static void sums_are_rounded_once_to_the_type_of_out(void **state)
{
    (void)state;
    run(types);
}

static void values_come_back_from_all_ranks_that_hold_the_token(void **state)
{
    (void)state;
    weft_ep_layout layouts[] = {WEFT_EP_RANK_MAJOR, WEFT_EP_EXPERT_MAJOR};
    pes_run(PES, values, &layouts[0]);
    pes_run(PES, values, &layouts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(a_combine_by_expert_takes_weights_and_choices_of_its_own),
        CHECKED_TEST(a_combine_by_source_takes_weights_and_choices_of_its_own),
        CHECKED_TEST(a_weight_that_is_no_number_takes_part),
        CHECKED_TEST(ranks_are_added_by_their_last_choice_after_the_biases),
        CHECKED_TEST(sums_are_rounded_once_to_the_type_of_out),
        CHECKED_TEST(values_come_back_from_all_ranks_that_hold_the_token),
        CHECKED_TEST(biases_are_added_after_the_ranks_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
