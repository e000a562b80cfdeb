/* Goal: a PE may use several groups at the same time, each on a thread of its own, with top-ks of their own.
 *
 * Method: PEs are threads; each makes a few groups and starts a thread for each, which makes random steps
 * (support/ep_step.h) on it: a fresh dispatch, a combine and both backwards, compared with the serial reference, while
 * the others do theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_step.h"
#include "support/pes.h"

#define GROUPS 3
#define STEPS 30

static uint64_t seed;
static const ep_size size = {
    .tokens_max = 20, .topk_max = 8, .experts_max = 24, .hidden_max = 64, .bytes_max = 1 << 18};

/* Arrays lie where malloc puts them. */
static void *place(void *context, const void *image, size_t bytes, unsigned random)
{
    void *there = malloc(bytes);
    (void)context;
    (void)random;
    memcpy(there, image, bytes);
    return there;
}

static void fetch(void *context, void *image, const void *there, size_t bytes)
{
    (void)context;
    memcpy(image, there, bytes);
}

static void release(void *context, void *there, size_t bytes)
{
    (void)context;
    memset(there, 0x5a, bytes);
    free(there);
}

static const ep_memory memory = {.place = place, .fetch = fetch, .release = release};

/* A group of one PE, and the thread that uses it. */
typedef struct one_group {
    pthread_t thread;
    int rank;
    int number;
    uint64_t state; /* equal on all PEs */
    ep_setup setup;
    weft_ep_plan plan;
    weft_ep *ep;
    weft_ep_route *route;
} one_group;

static void make_step(one_group *group, int number)
{
    char what[80];
    int64_t capacity[EP_RANKS_MAX];
    uint64_t own = group->state + (uint64_t)group->rank;
    ep_payload received;
    ep_case one = ep_case_draw(random_next(&group->state), &group->setup, &group->plan);
    ep_routing *routing = ep_routing_create(&one, NULL);
    unsigned salt = (unsigned)(4 * number);
    snprintf(what, sizeof what, "group %d, K %d, step %d", group->number, group->plan.topk, number);
    ep_step step = {.route = group->route, .routing = routing, .rank = group->rank, .halves = number % 2};
    step.arrays = (ep_array_source){.memory = &memory, .random = &own, .what = what};
    for (int rank = 0; rank < group->setup.ranks; rank++) {
        capacity[rank] = routing->side[rank].rows;
    }
    ep_payload rows =
        ep_payload_draw(random_next(&group->state), &group->setup, &size, &group->plan, 0, salt, &received);
    ep_payload sums =
        ep_payload_draw(random_next(&group->state), &group->setup, &size, &group->plan, 1, salt + 1, &received);
    ep_step_dispatch(&step, &rows, &rows, capacity);
    ep_step_combine(&step, &sums, WEFT_EP_WEIGHTED, NULL);
    ep_step_combine_bwd(&step, &sums, NULL, WEFT_EP_WEIGHTED);
    ep_step_dispatch_bwd(&step, &sums, 1);
    ep_routing_destroy(routing);
    ep_case_free(&one);
}

static void *use_group(void *argument)
{
    one_group *group = argument;
    check_as_pe(group->rank);
    for (int i = 0; i < STEPS; i++) {
        make_step(group, i);
    }
    return NULL;
}

static int open_group(one_group *group, weft_world *world, int number)
{
    group->rank = weft_world_pe(world);
    group->number = number;
    group->state = seed + (uint64_t)number;
    group->setup = ep_setup_draw(random_next(&group->state), weft_world_pes(world), &size);
    group->setup.config.topk_max = 2 + 3 * number;
    group->plan = ep_plan_draw(random_next(&group->state), &group->setup);
    group->plan.topk = group->setup.config.topk_max;
    weft_ep_config config = group->setup.config;
    config.experts_of_rank = group->setup.uneven ? group->setup.table : NULL;
    return CHECK_OK(weft_ep_create(weft_team_world(world), &config, &group->ep)) &&
           CHECK_OK(weft_ep_route_create(group->ep, &group->plan, NULL, &group->route));
}

static void run(weft_world *world, void *context)
{
    one_group groups[GROUPS];
    (void)context;
    for (int i = 0; i < GROUPS; i++) {
        if (!open_group(&groups[i], world, i)) {
            return;
        }
    }
    for (int i = 0; i < GROUPS; i++) {
        if (pthread_create(&groups[i].thread, NULL, use_group, &groups[i]) != 0) {
            abort(); /* the others would wait for it */
        }
    }
    for (int i = 0; i < GROUPS; i++) {
        pthread_join(groups[i].thread, NULL);
    }
    for (int i = 0; i < GROUPS; i++) {
        CHECK_OK(weft_ep_route_destroy(groups[i].route));
        CHECK_OK(weft_ep_destroy(groups[i].ep));
    }
}

static void groups_on_threads_of_their_own(void **state)
{
    (void)state;
    pes_run(1, run, NULL);
    pes_run(3, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(groups_on_threads_of_their_own)};
    seed = test_seed();
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
