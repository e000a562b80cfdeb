/* Goal: each rule of expert parallelism, one test a rule, named after it; docs/expert-parallelism.md lists them.
 *
 * Method: steps of a few tokens written out by hand (support/ep_scene.h), and results written out by hand: no
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/ep_scene.h"
#include "support/pes.h"

#define QUANTISED 144 /* elements: a group of 128 and one of 16 */

/* Two ranks with two experts each; rank 0 has the tokens. */
static scene two_ranks(weft_ep_layout layout, int topk, int tokens)
{
    scene s = {.ranks = 2, .experts = 4, .topk = topk, .dtype = WEFT_EP_F32, .layout = layout};
    s.tokens[0] = tokens;
    return s;
}

static const weft_ep_layout both[] = {WEFT_EP_RANK_MAJOR, WEFT_EP_EXPERT_MAJOR};

static void set_ids(scene *s, int rank, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++) {
        s->ids[rank][i] = ids[i];
    }
}

/* ---- choices ---- */

static void minus_one_drops_a_choice(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = two_ranks(both[i], 2, 2);
        set_ids(&s, 0, (int32_t[]){-1, 0, 3, -1}, 4);
        scene_run(&s);
        CHECK(s.seen[0].status == WEFT_OK && s.seen[0].dropped == 0);
        CHECK(s.seen[0].rows == 1 && s.seen[0].received[0] == 1.0f && s.seen[0].source_token[0] == 0);
        CHECK(s.seen[1].rows == 1 && s.seen[1].received[0] == 2.0f && s.seen[1].source_token[0] == 1);
        CHECK(s.seen[0].out[0] == 1.0f && s.seen[0].out[1] == 2.0f);
    }
}

static void another_id_out_of_range_drops_the_choice_and_latches_a_status(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = two_ranks(both[i], 2, 3);
        set_ids(&s, 0, (int32_t[]){4, 0, 2, -2, INT32_MAX, INT32_MIN}, 6);
        scene_run(&s);
        CHECK_STATUS(s.seen[0].status, WEFT_ERR_RANGE);
        CHECK(s.seen[0].dropped == 4);
        CHECK(s.seen[1].status == WEFT_OK && s.seen[1].dropped == 0);
        CHECK(s.seen[0].rows == 1 && s.seen[0].received[0] == 1.0f);
        CHECK(s.seen[1].rows == 1 && s.seen[1].received[0] == 2.0f);
        CHECK(s.seen[0].dispatched == WEFT_OK && s.seen[0].combined == WEFT_OK);
        CHECK(s.seen[0].out[0] == 1.0f && s.seen[0].out[1] == 2.0f && s.seen[0].out[2] == 0.0f);
    }
}

static void a_token_without_a_choice_combines_to_zeros(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = two_ranks(both[i], 2, 2);
        set_ids(&s, 0, (int32_t[]){-1, -1, 1, 2}, 4);
        scene_run(&s);
        CHECK(s.seen[0].out[0] == 0.0f && !signbit(s.seen[0].out[0]));
        CHECK(s.seen[0].out[1] == 4.0f); /* its row from both ranks */
    }
}

static void a_duplicate_counts_twice(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int weighted = 0; weighted < 2; weighted++) {
            scene s = two_ranks(both[i], 2, 1);
            set_ids(&s, 0, (int32_t[]){3, 3}, 2);
            s.weights[0][0] = 0.25f;
            s.weights[0][1] = 0.5f;
            s.weighted = 1;
            s.flags = weighted ? WEFT_EP_WEIGHTED : 0;
            scene_run(&s);
            int by_expert = both[i] == WEFT_EP_EXPERT_MAJOR;
            CHECK(s.seen[1].rows == (by_expert ? 2 : 1));
            CHECK(s.seen[1].rows_of_expert[1] == 2);
            CHECK(s.seen[1].weights[0][0] == 0.25f);
            CHECK((by_expert ? s.seen[1].weights[1][0] : s.seen[1].weights[0][1]) == 0.5f);
            CHECK(s.seen[0].out[0] == (weighted ? 0.75f : by_expert ? 2.0f : 1.0f));
        }
    }
}

/* ---- order ---- */

static void rows_come_by_source_then_token_in_rank_major(void **state)
{
    scene s = {.ranks = 3, .experts = 3, .topk = 2, .dtype = WEFT_EP_BF16, .tokens = {2, 0, 3}};
    static const float wanted[] = {1, 2, 21, 23};
    static const int sources[] = {0, 0, 2, 2};
    static const int tokens[] = {0, 1, 0, 2};
    (void)state;
    set_ids(&s, 0, (int32_t[]){1, 0, 1, 1}, 4);
    set_ids(&s, 2, (int32_t[]){1, 2, 0, 2, 2, 1}, 6);
    scene_run(&s);
    CHECK(s.seen[1].rows == 4);
    for (int row = 0; row < 4; row++) {
        CHECK(s.seen[1].received[row] == wanted[row]);
        CHECK(s.seen[1].source_rank[row] == sources[row] && s.seen[1].source_token[row] == tokens[row]);
    }
    CHECK(s.seen[1].experts[0][0] == 0 && s.seen[1].experts[0][1] == -1);
    CHECK(s.seen[1].experts[3][0] == -1 && s.seen[1].experts[3][1] == 0);
    CHECK(s.seen[1].received[4] == SCENE_UNTOUCHED);
}

static void rows_come_by_source_then_token_then_choice_in_each_expert(void **state)
{
    scene s = {.ranks = 2, .experts = 4, .topk = 3, .dtype = WEFT_EP_F16, .tokens = {2, 1}, .weighted = 1};
    static const float wanted[] = {1, 1, 11, 1, 2, 11}; /* expert 2: three rows; expert 3: three */
    static const float weights[] = {0.5f, 0.125f, 0.125f, 0.25f, 0.5f, 0.5f};
    (void)state;
    s.layout = WEFT_EP_EXPERT_MAJOR;
    set_ids(&s, 0, (int32_t[]){2, 3, 2, 3, 0, 1}, 6);
    set_ids(&s, 1, (int32_t[]){3, 0, 2}, 3);
    for (int i = 0; i < 6; i++) {
        s.weights[0][i] = s.weights[1][i] = 0.5f / (float)(1 << i % 3);
    }
    scene_run(&s);
    CHECK(s.seen[1].rows == 6);
    for (int row = 0; row < 6; row++) {
        CHECK_SAY(s.seen[1].received[row] == wanted[row], "row %d is %g", row, (double)s.seen[1].received[row]);
        CHECK(s.seen[1].weights[row][0] == weights[row]);
        CHECK(s.seen[1].experts[row][0] == (row < 3 ? 0 : 1));
    }
}

static void groups_begin_at_multiples_of_the_alignment(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 2, 3);
    s.alignment = 4;
    set_ids(&s, 0, (int32_t[]){2, 3, 2, -1, 3, 2}, 6);
    scene_run(&s);
    CHECK(s.seen[1].rows == 8 && s.seen[1].rows_of_expert[0] == 3 && s.seen[1].rows_of_expert[1] == 2);
    CHECK(s.seen[1].received[2] == 3.0f && s.seen[1].received[3] == SCENE_UNTOUCHED);
    CHECK(s.seen[1].received[4] == 1.0f && s.seen[1].received[5] == 3.0f);
    CHECK(s.seen[1].source_rank[3] == -1 && s.seen[1].source_token[3] == -1 && s.seen[1].experts[3][0] == -1);
}

/* ---- addition ---- */

static float by_expert_order(int rank, int row, const scene_seen *seen)
{
    static const float results[] = {0x1p24f, 1.0f, 1.0f};
    (void)rank;
    (void)seen;
    return results[row];
}

/* (2^24 + 1) + 1 is 2^24 in float32, and 2^24 + (1 + 1) is not. */
static void choices_are_added_in_ascending_order(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 3, 1);
    s.experts = 6;
    s.result = by_expert_order;
    set_ids(&s, 0, (int32_t[]){0, 1, 2}, 3);
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 0x1p24f);
    set_ids(&s, 0, (int32_t[]){2, 1, 0}, 3);
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 0x1p24f + 2.0f);
}

static float by_rank_order(int rank, int row, const scene_seen *seen)
{
    static const float results[] = {1.0f, 1.0f, 0x1p24f};
    (void)row;
    (void)seen;
    return results[rank];
}

static float by_falling_rank(int rank, int row, const scene_seen *seen)
{
    return by_rank_order(2 - rank, row, seen);
}

static void ranks_are_added_in_ascending_order(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = {.ranks = 3, .experts = 3, .topk = 3, .dtype = WEFT_EP_F32, .layout = both[i], .tokens = {0, 1, 0}};
        set_ids(&s, 1, (int32_t[]){2, 0, 1}, 3); /* the order of choices does not matter between ranks */
        s.result = by_rank_order;
        scene_run(&s);
        CHECK(s.seen[1].out[0] == 0x1p24f + 2.0f);
        s.result = by_falling_rank;
        scene_run(&s);
        CHECK(s.seen[1].out[0] == 0x1p24f);
    }
}

static float first_of_256(int rank, int row, const scene_seen *seen)
{
    (void)row;
    (void)seen;
    return rank == 0 ? 256.0f : 1.0f;
}

/* In bf16 256 + 1 is 256 and 256 + 1 + 1 + 1 is 260; 256 and 2 of two domains are 258. Labels are names. */
static void domains_are_added_after_their_ranks(void **state)
{
    (void)state;
    static const int maps[][4] = {{0, 0, 0, 0}, {0, 0, 2, 2}, {9, 3, 9, 3}, {5, 1, 1, 5}, {3, 2, 1, 0}};
    static const float sums[] = {260.0f, 258.0f, 258.0f, 258.0f, 260.0f};
    for (int i = 0; i < 10; i++) {
        scene s = {.ranks = 4, .experts = 4, .topk = 4, .dtype = WEFT_EP_BF16, .layout = both[i % 2], .tokens = {0, 1}};
        set_ids(&s, 1, (int32_t[]){3, 1, 0, 2}, 4);
        s.domain_of = maps[i / 2];
        s.result = first_of_256;
        scene_run(&s);
        CHECK_SAY(s.seen[1].out[0] == sums[i / 2], "map %d gives %g", i / 2, (double)s.seen[1].out[0]);
    }
}

static float by_place_in_line(int rank, int row, const scene_seen *seen)
{
    static const float values[] = {1.0f, 0x1p24f, -0x1p24f, 0.0f};
    (void)row;
    (void)seen;
    return values[rank];
}

/* In one domain 1 + 2^24 - 2^24 is 0, and so it is in three, of which the first has the highest label; two domains keep
 * the 1. */
static void domains_come_by_their_lowest_rank(void **state)
{
    (void)state;
    static const int maps[][4] = {{8, 4, 4, 8}, {0, 0, 0, 0}, {1, 0, 1, 0}, {7, 5, 3, 7}};
    static const float sums[] = {1.0f, 0.0f, 1.0f, 0.0f};
    for (int i = 0; i < 4; i++) {
        scene s = {.ranks = 4, .experts = 4, .topk = 4, .dtype = WEFT_EP_F32, .tokens = {1}};
        set_ids(&s, 0, (int32_t[]){0, 1, 2, 3}, 4);
        s.domain_of = maps[i];
        s.result = by_place_in_line;
        scene_run(&s);
        CHECK_SAY(s.seen[0].out[0] == sums[i], "map %d gives %g", i, (double)s.seen[0].out[0]);
    }
}

static float near_one(int rank, int row, const scene_seen *seen)
{
    (void)rank;
    (void)seen;
    return row == 0 ? 1.0f : 1.0f + 0x1p-12f;
}

/* -(1 + 2^-11) + (1 + 2^-12)^2 is 2^-24 when the product is not rounded, else 0. */
static void products_are_fused_with_the_sum(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 2, 1);
    set_ids(&s, 0, (int32_t[]){0, 1}, 2);
    s.weighted = 1;
    s.weights[0][0] = -(1.0f + 0x1p-11f);
    s.weights[0][1] = 1.0f + 0x1p-12f;
    s.flags = WEFT_EP_WEIGHTED;
    s.result = near_one;
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 0x1p-24f);
}

static float around_256(int rank, int row, const scene_seen *seen)
{
    (void)seen;
    return rank == 0 && row == 0 ? 256.0f : 1.0f;
}

/* 256 + 1 on rank 0 is 256 in bf16, and with the 1 of rank 1 again; unrounded it would be 258. */
static void partial_sums_are_rounded_to_the_type_of_the_rows(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 3, 1);
    s.dtype = WEFT_EP_BF16;
    s.result = around_256;
    set_ids(&s, 0, (int32_t[]){0, 1, 2}, 3);
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 256.0f);
}

static float two_small(int rank, int row, const scene_seen *seen)
{
    (void)row;
    (void)seen;
    return rank == 0 ? 256.0f : 0.75f;
}

/* 256 + 0.75 + 0.75 is 257.5, rounded once 258; rounded after each rank it would be 256. */
static void the_sum_over_ranks_is_rounded_once(void **state)
{
    (void)state;
    scene s = {.ranks = 3, .experts = 3, .topk = 3, .dtype = WEFT_EP_BF16, .tokens = {1}};
    set_ids(&s, 0, (int32_t[]){0, 1, 2}, 3);
    s.result = two_small;
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 258.0f);
}

/* In rank-major a row stands for all of its token's choices there: its weight is their sum. */
static void a_row_by_rank_has_the_sum_of_its_weights(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_RANK_MAJOR, 3, 1);
    set_ids(&s, 0, (int32_t[]){0, 2, 1}, 3);
    s.weighted = 1;
    s.weights[0][0] = 0.5f;
    s.weights[0][1] = 8.0f;
    s.weights[0][2] = 0.125f;
    s.flags = WEFT_EP_WEIGHTED;
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 8.625f);
}

/* ---- too many rows ---- */

static void overflow_as_an_error_sends_no_rows_and_is_seen_by_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = {.ranks = 3, .experts = 3, .topk = 1, .dtype = WEFT_EP_F32, .layout = both[i], .tokens = {2, 1, 1}};
        s.rows_max = 3;
        set_ids(&s, 0, (int32_t[]){2, 2}, 2);
        set_ids(&s, 1, (int32_t[]){2}, 1);
        set_ids(&s, 2, (int32_t[]){2}, 1);
        scene_run(&s);
        for (int rank = 0; rank < 3; rank++) {
            CHECK_STATUS(s.seen[rank].status, WEFT_ERR_OVERFLOW);
            CHECK_STATUS(s.seen[rank].dispatched, WEFT_ERR_OVERFLOW);
            CHECK_STATUS(s.seen[rank].combined, WEFT_ERR_OVERFLOW);
            CHECK(s.seen[rank].received[0] == SCENE_UNTOUCHED);
        }
        CHECK(s.seen[2].rows == 4); /* what would have come */
    }
}

/* Six tokens of one choice each come to rank 1, which has room for four: source 0's three and source 1's first. */
static void dropping_keeps_the_first_rows_by_source_and_token(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = {.ranks = 3, .experts = 3, .topk = 1, .dtype = WEFT_EP_F32, .layout = both[i], .tokens = {3, 2, 1}};
        s.rows_max = 4;
        s.overflow = WEFT_EP_OVERFLOW_DROP;
        for (int rank = 0; rank < 3; rank++) {
            set_ids(&s, rank, (int32_t[]){1, 1, 1}, s.tokens[rank]);
        }
        scene_run(&s);
        for (int rank = 0; rank < 3; rank++) {
            CHECK(s.seen[rank].status == WEFT_OK && s.seen[rank].dropped_rows == (rank == 1 ? 2 : 0));
        }
        CHECK(s.seen[1].rows == 4 && s.seen[1].rows_of_source[0] == 3 && s.seen[1].rows_of_source[1] == 1);
        CHECK(s.seen[1].rows_of_source[2] == 0 && s.seen[1].rows_of_expert[0] == 4);
        CHECK(s.seen[1].received[3] == 11.0f && s.seen[1].received[4] == SCENE_UNTOUCHED);
        CHECK(s.seen[0].out[2] == 3.0f && s.seen[1].out[0] == 11.0f); /* combine skips what was dropped */
        CHECK(s.seen[1].out[1] == 0.0f && s.seen[2].out[0] == 0.0f);
    }
}

/* With groups padded to 4, a token of both experts takes 8 rows, and one more of expert 2 none; then a fifth of it does
 * not fit into 8, nor does what comes after it, though expert 3 has room. */
static void dropping_counts_padding_and_drops_all_after_the_first_that_does_not_fit(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 2, 6);
    s.alignment = 4;
    s.rows_max = 8;
    s.overflow = WEFT_EP_OVERFLOW_DROP;
    set_ids(&s, 0, (int32_t[]){2, 3, 2, -1, 2, -1, 2, -1, 2, -1, 3, 0}, 12);
    scene_run(&s);
    CHECK(s.seen[1].status == WEFT_OK && s.seen[1].rows == 8 && s.seen[1].dropped_rows == 2);
    CHECK(s.seen[1].rows_of_expert[0] == 4 && s.seen[1].rows_of_expert[1] == 1);
    CHECK(s.seen[0].out[3] == 4.0f && s.seen[0].out[4] == 0.0f);
    CHECK(s.seen[0].out[5] == 6.0f); /* of rank 0, whose rows fit */
}

/* Of rank 1's experts the second's rows begin behind five of the first, padded to 6: of its three the last would be row
 * 8, which is not below the limit of 9 rounded down; its token is received elsewhere. */
static void dropping_rows_keeps_what_lies_below_the_limit(void **state)
{
    (void)state;
    scene s = {.ranks = 3, .experts = 6, .topk = 2, .dtype = WEFT_EP_F32, .tokens = {4, 3, 1}};
    s.layout = WEFT_EP_EXPERT_MAJOR;
    s.alignment = 2;
    s.rows_max = 9;
    s.overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    set_ids(&s, 0, (int32_t[]){2, -1, 2, 3, 2, -1, 2, -1}, 8);
    set_ids(&s, 1, (int32_t[]){2, 3, 3, 0, 77, 4}, 6);
    set_ids(&s, 2, (int32_t[]){-1, -1}, 2);
    scene_run(&s);
    CHECK(s.seen[0].status == WEFT_OK && s.seen[0].dropped_rows == 0 && s.seen[0].rows == 2);
    CHECK_STATUS(s.seen[1].status, WEFT_ERR_RANGE); /* for the id 77 */
    CHECK(s.seen[1].rows == 8 && s.seen[1].dropped_rows == 1);
    CHECK(s.seen[1].rows_of_expert[0] == 5 && s.seen[1].rows_of_expert[1] == 2);
    CHECK(s.seen[1].rows_of_source[0] == 4 && s.seen[1].rows_of_source[1] == 1);
    CHECK(s.seen[1].received[4] == 11.0f && s.seen[1].received[6] == 2.0f && s.seen[1].received[7] == 11.0f);
    CHECK(s.seen[0].out[1] == 4.0f && s.seen[1].out[0] == 22.0f);
    CHECK(s.seen[1].out[1] == 12.0f && s.seen[1].out[2] == 13.0f); /* what other ranks have of them is added */
}

/* Rank 1 takes in two tokens; a third's row would be the first of its expert, and lie below the limit. */
static void dropping_rows_drops_tokens_that_have_no_place(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 2, 4);
    s.rows_max = 2;
    s.overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    set_ids(&s, 0, (int32_t[]){3, -1, 3, -1, 2, 1, 0, 0}, 8);
    scene_run(&s);
    CHECK(s.seen[1].status == WEFT_OK && s.seen[1].rows == 1 && s.seen[1].dropped_rows == 2);
    CHECK(s.seen[1].rows_of_expert[0] == 0 && s.seen[1].rows_of_expert[1] == 1);
    CHECK(s.seen[0].rows == 2 && s.seen[0].dropped_rows == 1);
    CHECK(s.seen[0].out[0] == 1.0f && s.seen[0].out[1] == 0.0f && s.seen[0].out[2] == 0.0f && s.seen[0].out[3] == 8.0f);
}

/* Rank 1 has room for two of three tokens, whose choices weigh 0.5. */
static void what_was_dropped_has_no_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene s = two_ranks(both[i], 2, 3);
        s.rows_max = 2;
        s.overflow = WEFT_EP_OVERFLOW_DROP;
        s.weighted = s.backward = 1;
        set_ids(&s, 0, (int32_t[]){2, -1, 2, -1, 2, -1}, 6);
        for (int k = 0; k < 6; k++) {
            s.weights[0][k] = 0.5f;
        }
        scene_run(&s);
        CHECK(s.seen[1].rows == 2 && s.seen[1].dropped_rows == 1);
        CHECK(s.seen[0].grad_in[0] == 1.0f && s.seen[0].grad_in[1] == 1.0f && s.seen[0].grad_in[2] == 0.0f);
        CHECK(s.seen[0].grad_weights[0] == 1.0f && s.seen[0].grad_weights[2] == 1.0f);
        CHECK(s.seen[0].grad_weights[1] == 0.0f && s.seen[0].grad_weights[4] == 0.0f);
        CHECK(s.seen[1].grad_rows[0] == 0.5f && s.seen[1].grad_rows[1] == 0.5f);
        CHECK(s.seen[1].grad_rows[2] == SCENE_UNTOUCHED);
        CHECK(s.seen[0].dots[0] == 8.0f && s.seen[0].dots[2] == 16.0f); /* eight elements of 1 and of 2, times 1 */
        CHECK(s.seen[0].dots[4] == 0.0f && s.seen[0].dots[5] == 0.0f);
    }
}

/* The choices of a token share its row on a rank in rank-major: each has the row's dot product as its gradient, and the
 * row has the sum of their weights. */
static void choices_on_one_rank_share_the_row_backward_too(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_RANK_MAJOR, 2, 1);
    s.weighted = s.backward = 1;
    s.weights[0][0] = 0.5f;
    s.weights[0][1] = 2.0f;
    set_ids(&s, 0, (int32_t[]){2, 3}, 2);
    scene_run(&s);
    CHECK(s.seen[0].grad_in[0] == 1.0f); /* one row */
    CHECK(s.seen[0].grad_weights[0] == 1.0f && s.seen[0].grad_weights[1] == 1.0f);
    CHECK(s.seen[1].grad_rows[0] == 2.5f);
    CHECK(s.seen[0].dots[0] == 8.0f && s.seen[0].dots[1] == 8.0f);
}

/* ---- padding and slots ---- */

static void padding_is_zeroed_on_request(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_EXPERT_MAJOR, 1, 1);
    s.alignment = 3;
    s.plan_flags = WEFT_EP_ZERO_PADDING;
    set_ids(&s, 0, (int32_t[]){3}, 1);
    scene_run(&s);
    CHECK(s.seen[1].rows == 3 && s.seen[1].received[0] == 1.0f);
    CHECK(s.seen[1].received[1] == 0.0f && s.seen[1].received[2] == 0.0f);
    CHECK(s.seen[1].received[3] == SCENE_UNTOUCHED);
}

static void slots_by_source_hold_each_source_apart(void **state)
{
    scene s = {.ranks = 3, .experts = 3, .topk = 2, .dtype = WEFT_EP_BF16, .tokens = {2, 0, 3}, .slot_tokens = 4};
    (void)state;
    s.layout = WEFT_EP_SLOTS_SOURCE;
    set_ids(&s, 0, (int32_t[]){0, 0, 1, 1}, 4);
    set_ids(&s, 2, (int32_t[]){1, 2, 0, 2, 2, 1}, 6);
    scene_run(&s);
    CHECK(s.seen[1].rows == 12);
    CHECK(s.seen[1].rows_of_source[0] == 1 && s.seen[1].rows_of_source[1] == 0 && s.seen[1].rows_of_source[2] == 2);
    CHECK(s.seen[1].received[0] == 2.0f && s.seen[1].received[8] == 21.0f && s.seen[1].received[9] == 23.0f);
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        int is_filled = row == 0 || row == 8 || row == 9;
        CHECK(is_filled || s.seen[1].received[row] == SCENE_UNTOUCHED);
    }
    CHECK(s.seen[2].out[0] == 42.0f); /* its row from ranks 1 and 2 */
}

static void slots_by_expert_hold_each_expert_apart(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_SLOTS_EXPERT, 2, 3);
    s.slot_tokens = 3;
    set_ids(&s, 0, (int32_t[]){3, 2, 0, 3, 3, 1}, 6);
    scene_run(&s);
    CHECK(s.seen[1].rows == 12); /* two experts, two sources, three tokens */
    CHECK(s.seen[1].rows_of_expert[0] == 1 && s.seen[1].rows_of_expert[1] == 3);
    CHECK(s.seen[1].received[0] == 1.0f && s.seen[1].received[1] == SCENE_UNTOUCHED);
    CHECK(s.seen[1].received[6] == 1.0f && s.seen[1].received[7] == 2.0f && s.seen[1].received[8] == 3.0f);
}

static void duplicates_share_a_slot_by_expert_and_count_twice(void **state)
{
    (void)state;
    scene s = two_ranks(WEFT_EP_SLOTS_EXPERT, 2, 1);
    set_ids(&s, 0, (int32_t[]){3, 3}, 2);
    s.weighted = 1;
    s.weights[0][0] = 0.25f;
    s.weights[0][1] = 0.5f;
    scene_run(&s);
    int row = 2 * SCENE_TOKENS_MAX; /* the first of the second expert */
    CHECK(s.seen[1].rows_of_expert[1] == 1 && s.seen[1].weights[row][0] == 0.75f);
    CHECK(s.seen[0].out[0] == 2.0f);
    s.flags = WEFT_EP_WEIGHTED;
    scene_run(&s);
    CHECK(s.seen[0].out[0] == 0.75f);
}

/* ---- fp8 ---- */

/* A row of one token, sent by a rank to itself and quantised on the way. */
typedef struct quantised {
    weft_ep_scale_type scale_type;
    float in[QUANTISED] __attribute__((aligned(16)));
    unsigned char q[QUANTISED] __attribute__((aligned(16)));
    uint32_t words[2]; /* of scales */
} quantised;

static void quantise_on(weft_world *world, void *context)
{
    quantised *row = context;
    const int32_t id = 0;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_ep *ep;
    weft_ep_route *route;
    config.experts = config.tokens_max = config.topk_max = plan.topk = choices.tokens = 1;
    config.row_bytes_max = sizeof row->in;
    choices.ids = &id;
    in.data = row->in;
    in.dtype = WEFT_EP_F32;
    in.hidden = out.rows.hidden = QUANTISED;
    out.rows.data = row->q;
    out.rows.dtype = WEFT_EP_FP8_E4M3;
    out.rows.scales = row->words;
    out.rows.scale_type = row->scale_type;
    out.rows_capacity = 1;
    if (ep_group_open(world, &config, &plan, &ep, &route)) {
        CHECK_OK(weft_ep_route_update(route, &choices, NULL));
        CHECK_OK(weft_ep_dispatch(route, &in, &out, NULL));
        ep_group_close(ep, route);
    }
}

static void quantise(quantised *row)
{
    memset(row->q, 0xee, sizeof row->q);
    memset(row->words, 0xee, sizeof row->words);
    pes_run(1, quantise_on, row);
}

static float scale_at(const quantised *row, int group)
{
    float scale;
    memcpy(&scale, &row->words[group], sizeof scale);
    return scale;
}

/* With a largest magnitude of 448 the scale is 1. 16 is 0x58, then steps of 2; 2^-9 is 0x01. */
static void quantisation_rounds_to_nearest_even(void **state)
{
    static const float in[] = {448.0f, 17.0f, 19.0f, 21.0f, -23.0f, 0x1p-10f, 0x1.8p-9f, -0x1p-12f, 0.0f, -0.0f};
    static const unsigned char wanted[] = {0x7e, 0x58, 0x5a, 0x5a, 0xdc, 0x00, 0x02, 0x80, 0x00, 0x80};
    quantised row = {.scale_type = WEFT_EP_SCALE_F32};
    (void)state;
    memcpy(row.in, in, sizeof in);
    quantise(&row);
    CHECK(scale_at(&row, 0) == 1.0f);
    for (size_t i = 0; i < sizeof wanted; i++) {
        CHECK_SAY(row.q[i] == wanted[i], "%g became 0x%02x", (double)in[i], row.q[i]);
    }
}

static void a_partial_last_group_has_its_own_scale(void **state)
{
    quantised row = {.scale_type = WEFT_EP_SCALE_F32};
    (void)state;
    for (int i = 0; i < QUANTISED; i++) {
        row.in[i] = i < 128 ? 448.0f : 4.0f;
    }
    row.in[QUANTISED - 1] = -8.0f;
    quantise(&row);
    CHECK(scale_at(&row, 0) == 1.0f && scale_at(&row, 1) == 8.0f / 448.0f);
    CHECK(row.q[127] == 0x7e && row.q[128] == 0x76 && row.q[QUANTISED - 1] == 0xfe); /* 448, 224, -448 */
}

static void small_groups_have_the_scale_of_one_ten_thousandth(void **state)
{
    quantised row = {.scale_type = WEFT_EP_SCALE_F32};
    (void)state;
    row.in[128] = 5e-5f;
    quantise(&row);
    CHECK(scale_at(&row, 0) == 1e-4f / 448.0f && scale_at(&row, 1) == 1e-4f / 448.0f);
    CHECK(row.q[0] == 0x00 && row.q[128] == 0x76); /* 224 */
}

static void quantisation_saturates_and_keeps_nan(void **state)
{
    quantised row = {.scale_type = WEFT_EP_SCALE_F32};
    (void)state;
    row.in[0] = INFINITY;
    row.in[1] = -INFINITY;
    row.in[2] = NAN;
    row.in[3] = 1.0f;
    row.in[129] = -NAN;
    row.in[130] = 448.0f;
    quantise(&row);
    CHECK(scale_at(&row, 0) == FLT_MAX / 448.0f && scale_at(&row, 1) == 1.0f);
    CHECK(row.q[0] == 0x7e && row.q[1] == 0xfe && row.q[2] == 0x7f && row.q[3] == 0x00);
    CHECK(row.q[129] == 0x7f && row.q[130] == 0x7e);
}

/* 450 / 448 is a little over 1: the next power of two is 2, the byte 128. 448 / 448 is one, the byte 127. */
static void ue8m0_scales_round_up_and_lie_four_to_a_word(void **state)
{
    quantised row = {.scale_type = WEFT_EP_SCALE_UE8M0};
    (void)state;
    row.in[0] = 450.0f;
    row.in[128] = -448.0f;
    quantise(&row);
    CHECK(row.words[0] == (127u << 8 | 128u) && row.words[1] == 0xeeeeeeeeu);
    CHECK(row.q[0] == 0x76 && row.q[128] == 0xfe); /* 225 becomes 224; -448 */
}

/* As ue8m0_scales_.., but each in its own word. */
static void float32_scales_may_be_powers_of_two(void **state)
{
    quantised row = {.scale_type = WEFT_EP_SCALE_F32_POW2};
    (void)state;
    row.in[0] = 450.0f;
    row.in[128] = -448.0f;
    quantise(&row);
    CHECK(scale_at(&row, 0) == 2.0f && scale_at(&row, 1) == 1.0f);
    CHECK(row.q[0] == 0x76 && row.q[128] == 0xfe); /* 225 becomes 224; -448 */
}

/* ---- T in memory ---- */

static void the_number_of_tokens_may_lie_in_memory(void **state)
{
    const int32_t told[] = {1, -1, 3};
    const int taken[] = {1, 0, 2};
    (void)state;
    for (int i = 0; i < 3; i++) {
        scene s = two_ranks(WEFT_EP_RANK_MAJOR, 1, 2);
        set_ids(&s, 0, (int32_t[]){3, 3}, 2);
        s.tokens_at = &told[i];
        scene_run(&s);
        CHECK_STATUS(s.seen[0].status, i == 0 ? WEFT_OK : WEFT_ERR_RANGE); /* it is clamped */
        CHECK(s.seen[1].rows == taken[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(minus_one_drops_a_choice),
        CHECKED_TEST(another_id_out_of_range_drops_the_choice_and_latches_a_status),
        CHECKED_TEST(a_token_without_a_choice_combines_to_zeros),
        CHECKED_TEST(a_duplicate_counts_twice),
        CHECKED_TEST(rows_come_by_source_then_token_in_rank_major),
        CHECKED_TEST(rows_come_by_source_then_token_then_choice_in_each_expert),
        CHECKED_TEST(groups_begin_at_multiples_of_the_alignment),
        CHECKED_TEST(choices_are_added_in_ascending_order),
        CHECKED_TEST(ranks_are_added_in_ascending_order),
        CHECKED_TEST(domains_are_added_after_their_ranks),
        CHECKED_TEST(domains_come_by_their_lowest_rank),
        CHECKED_TEST(products_are_fused_with_the_sum),
        CHECKED_TEST(partial_sums_are_rounded_to_the_type_of_the_rows),
        CHECKED_TEST(the_sum_over_ranks_is_rounded_once),
        CHECKED_TEST(a_row_by_rank_has_the_sum_of_its_weights),
        CHECKED_TEST(overflow_as_an_error_sends_no_rows_and_is_seen_by_all),
        CHECKED_TEST(dropping_keeps_the_first_rows_by_source_and_token),
        CHECKED_TEST(dropping_counts_padding_and_drops_all_after_the_first_that_does_not_fit),
        CHECKED_TEST(dropping_rows_keeps_what_lies_below_the_limit),
        CHECKED_TEST(dropping_rows_drops_tokens_that_have_no_place),
        CHECKED_TEST(what_was_dropped_has_no_gradient),
        CHECKED_TEST(choices_on_one_rank_share_the_row_backward_too),
        CHECKED_TEST(padding_is_zeroed_on_request),
        CHECKED_TEST(slots_by_source_hold_each_source_apart),
        CHECKED_TEST(slots_by_expert_hold_each_expert_apart),
        CHECKED_TEST(duplicates_share_a_slot_by_expert_and_count_twice),
        CHECKED_TEST(quantisation_rounds_to_nearest_even),
        CHECKED_TEST(a_partial_last_group_has_its_own_scale),
        CHECKED_TEST(small_groups_have_the_scale_of_one_ten_thousandth),
        CHECKED_TEST(quantisation_saturates_and_keeps_nan),
        CHECKED_TEST(ue8m0_scales_round_up_and_lie_four_to_a_word),
        CHECKED_TEST(float32_scales_may_be_powers_of_two),
        CHECKED_TEST(the_number_of_tokens_may_lie_in_memory),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
