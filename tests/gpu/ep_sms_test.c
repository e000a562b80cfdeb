/* Goal: calls take the multiprocessors that weft_ep_route_sms says, at most those that the group has claimed, or its
 * share; a recv as many as its send; ranks with other numbers have the same results. A group of several domains that
 * ends on one rank alone gives its claim back. Method: gpu/support/ep_rig.h; the fake driver tells the blocks of a
 * thread's last launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"

#define ALL 16 /* of a GPU; fewer than calls have work for */

static unsigned (*blocks_of_last)(void);

/* A step, whole or in halves, of which the dispatch and the combine have so many blocks. */
static void expect_blocks(ep_rig *rig, int halves, unsigned blocks)
{
    ep_rig_row sums[EP_RIG_TOKENS] = {{0}};
    weft_ep_rows out = ep_rig_rows(sums);
    const int by_expert =
        rig->route->plan.layout == WEFT_EP_EXPERT_MAJOR || rig->route->plan.layout == WEFT_EP_SLOTS_EXPERT;
    const float times = by_expert ? EP_RIG_TOPK : 1; /* both choices are of one expert */
    ep_rig_choose(rig, 2 * (1 - rig->rank));
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        rig->tokens[i][0] = (float)(100 * rig->rank + i);
    }
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(halves ? weft_ep_dispatch_send(rig->route, &rig->in, &rig->received, NULL)
                    : weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_SAY(blocks_of_last() == blocks, "a dispatch of %u blocks, not %u", blocks_of_last(), blocks);
    CHECK_OK(halves ? weft_ep_dispatch_recv(rig->route, NULL) : WEFT_OK);
    CHECK_STATUS(ep_rig_status(rig), WEFT_OK);
    CHECK_OK(halves ? weft_ep_combine_send(rig->route, &rig->received.rows, &out, 0, NULL)
                    : weft_ep_combine(rig->route, &rig->received.rows, &out, 0, NULL));
    CHECK_SAY(blocks_of_last() == blocks, "a combine of %u blocks, not %u", blocks_of_last(), blocks);
    CHECK_OK(halves ? weft_ep_combine_recv(rig->route, NULL) : WEFT_OK);
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        CHECK(sums[i][0] == times * rig->tokens[i][0]);
    }
}

/* A route in place of the rig's, whose plan asks for so many. */
static weft_ep_route *route_of(const ep_rig *rig, weft_ep_layout layout, int sms)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route = NULL;
    plan.topk = EP_RIG_TOPK;
    plan.layout = layout;
    plan.sms = sms;
    CHECK_OK(weft_ep_route_create(rig->ep, &plan, NULL, &route));
    return route;
}

/* By layout, whole and in halves. */
static void of_a_claim(weft_world *world, int which)
{
    ep_rig rig;
    const weft_ep_layout layout = (weft_ep_layout)(which / 2);
    const int halves = which % 2;
    ep_rig_open(&rig, world, layout, 0);
    weft_ep_route *first = rig.route;
    weft_ep_route *small = rig.route = route_of(&rig, layout, 5);
    expect_blocks(&rig, halves, 5);
    const int other = 2 + rig.rank; /* on each rank another */
    CHECK_OK(weft_ep_route_sms(small, other));
    expect_blocks(&rig, halves, (unsigned)other);
    CHECK_OK(weft_ep_route_sms(small, 9)); /* more than is claimed */
    expect_blocks(&rig, halves, 5);
    weft_ep_route *large = route_of(&rig, layout, 7);
    expect_blocks(&rig, halves, 7);
    CHECK_OK(weft_ep_route_sms(large, 1));
    expect_blocks(&rig, halves, 7); /* of the other route */
    rig.route = large;
    expect_blocks(&rig, halves, 1);
    CHECK_OK(weft_ep_route_sms(large, 0));
    expect_blocks(&rig, halves, 7);
    CHECK_OK(weft_ep_route_destroy(large));
    CHECK_OK(weft_ep_route_destroy(small));
    rig.route = first;
    ep_rig_close(&rig);
}

/* Without a claim: at most the share. */
static void of_a_share(weft_world *world, int which)
{
    ep_rig rig;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK_OK(weft_ep_route_sms(rig.route, 3));
    expect_blocks(&rig, which, 3);
    CHECK_OK(weft_ep_route_sms(rig.route, ALL));
    expect_blocks(&rig, which, ALL - ALL / 4);
    ep_rig_close(&rig);
}

/* What is set between the halves of a call is for the next one. */
static void between_halves(weft_world *world, int which)
{
    ep_rig rig;
    ep_rig_open(&rig, world, (weft_ep_layout)which, 0);
    weft_ep_rows out = ep_rig_rows(rig.tokens);
    ep_rig_choose(&rig, 2 * (1 - rig.rank));
    CHECK_OK(weft_ep_route_sms(rig.route, 4));
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_ep_route_sms(rig.route, 6));
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    CHECK_SAY(blocks_of_last() == 4, "a recv of %u blocks, its send had 4", blocks_of_last());
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &out, 0, NULL));
    CHECK(blocks_of_last() == 6);
    CHECK_OK(weft_ep_route_sms(rig.route, 2));
    CHECK_OK(weft_ep_combine_recv(rig.route, NULL));
    CHECK(blocks_of_last() == 6);
    CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
    ep_rig_close(&rig);
}

/* Two pairs: each has half of the claim at most. */
static void of_two_pairs(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_config config = ep_rig_config();
    config.pairs_max = 2;
    ep_rig_open_with(&rig, world, WEFT_EP_RANK_MAJOR, &config, 0);
    weft_ep_route *first = rig.route;
    rig.route = route_of(&rig, WEFT_EP_RANK_MAJOR, 3);
    weft_ep_route *large = route_of(&rig, WEFT_EP_RANK_MAJOR, 5); /* ten are claimed */
    CHECK(rig.ep->device->claim->sms == 10);
    CHECK_OK(weft_ep_route_sms(rig.route, ALL));
    expect_blocks(&rig, which, 5);
    CHECK_OK(weft_ep_route_destroy(large));
    CHECK_OK(weft_ep_route_destroy(rig.route));
    rig.route = first;
    ep_rig_close(&rig);
}

/* ---- several domains ---- */

/* The most that can be taken of this PE's GPU. */
static int free_of(weft_world *world)
{
    int taken = 0;
    while (weft_device_sms_take(world, 1) == WEFT_OK) {
        taken++;
    }
    CHECK_OK(weft_device_sms_give(world, taken));
    return taken;
}

/* Each rank is a domain. The last kernel of a dispatch has all blocks. */
static void of_domains(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    weft_ep_route *first = rig.route;
    rig.route = route_of(&rig, WEFT_EP_RANK_MAJOR, 5);
    const int numbers[] = {0, 2 + rig.rank, 1, ALL};
    const unsigned blocks[] = {5, (unsigned)(2 + rig.rank), 1, 5};
    CHECK(rig.ep->between != NULL);
    ep_rig_choose(&rig, 2 * (1 - rig.rank));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK_OK(weft_ep_route_sms(rig.route, numbers[i]));
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_SAY(blocks_of_last() == blocks[i], "a dispatch of %u blocks, not %u", blocks_of_last(), blocks[i]);
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    CHECK_OK(weft_ep_route_destroy(rig.route));
    rig.route = first;
    ep_rig_close(&rig);
}

/* With memory of all (which 0), or, since the other rank is masked, without. */
static void claim_of_domains(weft_world *world, int which)
{
    ep_rig rig;
    const int before = free_of(world);
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK_OK(weft_ep_route_destroy(route_of(&rig, WEFT_EP_RANK_MAJOR, 5)));
    CHECK(free_of(world) == before - 5);
    CHECK_OK(which == 0 ? WEFT_OK : weft_ep_mask(rig.ep, 1 - rig.rank, 0));
    ep_rig_close(&rig);
    CHECK_SAY(free_of(world) == before, "%d of %d multiprocessors are free", free_of(world), before);
}

static void numbers(void **state)
{
    static const ep_rig_case cases[] = {{of_a_claim, 8}, {of_a_share, 2}, {between_halves, 4}, {of_two_pairs, 2}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

/* The same where kernels are those for many ranks. */
static void numbers_of_many(void **state)
{
    static const ep_rig_case cases[] = {{of_a_claim, 8}, {between_halves, 4}};
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

static void numbers_of_domains(void **state)
{
    static const ep_rig_case cases[] = {{of_domains, 1}, {claim_of_domains, 2}};
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(numbers), CHECKED_TEST(numbers_of_many),
                                       CHECKED_TEST(numbers_of_domains)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW); /* the fake one, for as long as the program runs */
    *(void **)&blocks_of_last = library != NULL ? dlsym(library, "fakeBlocks") : NULL;
    (void)setenv("WEFT_FAKE_SMS", "16", 0);
    return blocks_of_last == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
