/* Goal: where ranks make different calls on GPUs, the texts of their calls differ: nothing is compared that no word
 * tells. Method: of every kind of call each signature with the flags, types and numbers that it may have, against the
 * same with one of them changed. */
#include "cuda/ep/host/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "weft_ep.h"

#define RANKS 2
#define ROUTE 24u
#define HIDDEN 4096u
#define TOPK 8u

enum { MOVE = WEFTI_CUDA_EP_MOVE, LAYOUTS = 3u << WEFTI_CUDA_EP_LAYOUT_SHIFT };

/* The flags that a kind of call may have beside its layout, and those that it always has. */
static const struct {
    wefti_cuda_ep_call call;
    unsigned may;
    unsigned has;
    unsigned may_dtype; /* beside bits of a type */
} kinds[] = {
    {WEFTI_CUDA_EP_DISPATCH,
     WEFTI_CUDA_EP_FRESH | WEFTI_CUDA_EP_WITH_NEW_WEIGHTS | WEFTI_CUDA_EP_SCALES_MASK << WEFTI_CUDA_EP_SCALES_SHIFT,
     MOVE, WEFTI_CUDA_EP_TO_FP8},
    {WEFTI_CUDA_EP_DISPATCH_HALVES,
     WEFTI_CUDA_EP_FRESH | WEFTI_CUDA_EP_WITH_NEW_WEIGHTS | WEFTI_CUDA_EP_SCALES_MASK << WEFTI_CUDA_EP_SCALES_SHIFT,
     MOVE, WEFTI_CUDA_EP_TO_FP8},
    {WEFTI_CUDA_EP_COMBINE,
     WEFTI_CUDA_EP_WEIGHTED | WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS | WEFTI_CUDA_EP_VALUES |
         WEFTI_CUDA_EP_BY_CHOICE,
     0, 0},
    {WEFTI_CUDA_EP_COMBINE_HALVES,
     WEFTI_CUDA_EP_WEIGHTED | WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS | WEFTI_CUDA_EP_VALUES |
         WEFTI_CUDA_EP_BY_CHOICE,
     0, 0},
    {WEFTI_CUDA_EP_DISPATCH_BWD, WEFTI_CUDA_EP_VALUES | WEFTI_CUDA_EP_BY_CHOICE, 0, 0},
    {WEFTI_CUDA_EP_COMBINE_BWD, WEFTI_CUDA_EP_VALUES | WEFTI_CUDA_EP_WEIGHTED, MOVE, 0},
};

typedef struct call {
    wefti_cuda_ep_call call;
    unsigned flags;
    unsigned dtype;
    unsigned hidden;
    unsigned topk;
    uint32_t route;
} call;

static uint64_t signature_of(call of)
{
    return wefti_cuda_ep_signature(of.call, of.flags, of.dtype, of.hidden, of.topk);
}

static void expect_other(call one, call other)
{
    char texts[2][WEFTI_CUDA_EP_CALL_BYTES];
    wefti_cuda_ep_describe(texts[0], signature_of(one), one.route, RANKS);
    wefti_cuda_ep_describe(texts[1], signature_of(other), other.route, RANKS);
    assert_true(strlen(texts[0]) < WEFTI_CUDA_EP_CALL_BYTES - 1); /* none is cut off */
    if (strcmp(texts[0], texts[1]) == 0) {
        fail_msg("signatures %llx and %llx are both \"%s\"", (unsigned long long)signature_of(one),
                 (unsigned long long)signature_of(other), texts[0]);
    }
}

static void change_each(call one, unsigned may, unsigned may_dtype)
{
    for (unsigned bit = 1; bit <= 0xff; bit <<= 1) {
        call other = one;
        other.flags ^= bit;
        if (((may | LAYOUTS) & bit) != 0) {
            expect_other(one, other);
        }
        other = one;
        other.dtype ^= bit;
        if ((may_dtype & bit) != 0) {
            expect_other(one, other);
        }
    }
    call others[4] = {one, one, one, one};
    others[0].dtype = (one.dtype & ~7u) | WEFT_EP_F32;
    others[1].hidden = HIDDEN / 2;
    others[2].topk = TOPK - 1;
    others[3].route = 2 * ROUTE;
    const int is_planned = (one.flags & may & WEFTI_CUDA_EP_FRESH) != 0 && (one.flags & LAYOUTS) == 0 &&
                           (one.call == WEFTI_CUDA_EP_DISPATCH || one.call == WEFTI_CUDA_EP_DISPATCH_HALVES);
    for (int i = 0; i < (is_planned ? 3 : 4); i++) { /* rank-major has no number in its plan */
        expect_other(one, others[i]);
    }
}

static void test_each_difference_shows(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (unsigned flags = 0; flags <= 0xff; flags++) {
            for (unsigned dtype = WEFT_EP_BF16; dtype <= (WEFT_EP_BF16 | kinds[kind].may_dtype);
                 dtype += WEFTI_CUDA_EP_TO_FP8) {
                if ((flags & ~(kinds[kind].may | LAYOUTS)) == 0) {
                    change_each((call){kinds[kind].call, flags | kinds[kind].has, dtype, HIDDEN, TOPK, ROUTE},
                                kinds[kind].may, kinds[kind].may_dtype);
                }
            }
        }
    }
}

static void test_kinds_differ(void **state)
{
    (void)state;
    for (size_t one = 0; one < sizeof kinds / sizeof *kinds; one++) {
        for (size_t other = 0; other < one; other++) {
            call a = {kinds[one].call, kinds[one].has, WEFT_EP_BF16, HIDDEN, TOPK, ROUTE};
            call b = {kinds[other].call, kinds[other].has, WEFT_EP_BF16, HIDDEN, TOPK, ROUTE};
            expect_other(a, b);
        }
    }
}

static void test_update_and_destinations(void **state)
{
    (void)state;
    call update = {WEFTI_CUDA_EP_DISPATCH, WEFTI_CUDA_EP_FRESH, 0, 0, TOPK, ROUTE};
    call dispatch = {WEFTI_CUDA_EP_DISPATCH, WEFTI_CUDA_EP_FRESH | MOVE, WEFT_EP_BF16, HIDDEN, TOPK, ROUTE};
    call to_ranks = dispatch;
    to_ranks.hidden |= WEFTI_CUDA_EP_TO_RANKS;
    expect_other(update, dispatch);
    expect_other(dispatch, to_ranks);
    call by_position = to_ranks;
    by_position.hidden |= WEFTI_CUDA_EP_BY_POSITION;
    expect_other(to_ranks, by_position);
}

static void test_words(void **state)
{
    char text[WEFTI_CUDA_EP_CALL_BYTES];
    (void)state;
    call dispatch = {WEFTI_CUDA_EP_DISPATCH,
                     MOVE | WEFTI_CUDA_EP_FRESH | WEFT_EP_SCALE_UE8M0 << WEFTI_CUDA_EP_SCALES_SHIFT |
                         WEFT_EP_EXPERT_MAJOR << WEFTI_CUDA_EP_LAYOUT_SHIFT,
                     WEFT_EP_BF16 | WEFTI_CUDA_EP_TO_FP8,
                     HIDDEN,
                     TOPK,
                     16};
    wefti_cuda_ep_describe(text, signature_of(dispatch), dispatch.route, RANKS);
    assert_string_equal(text, "a dispatch of 4096 bf16 to fp8 e4m3, ue8m0 scales, topk 8, expert-major, alignment 16");
    dispatch.flags &= ~(WEFTI_CUDA_EP_SCALES_MASK << WEFTI_CUDA_EP_SCALES_SHIFT);
    wefti_cuda_ep_describe(text, signature_of(dispatch), dispatch.route, RANKS);
    assert_string_equal(text,
                        "a dispatch of 4096 bf16 to fp8 e4m3, float32 (powers of two) scales, topk 8, expert-major, "
                        "alignment 16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_difference_shows),
        cmocka_unit_test(test_kinds_differ),
        cmocka_unit_test(test_update_and_destinations),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
