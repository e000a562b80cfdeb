/* ep/claims.cuh: multiprocessors that groups claim. */
#ifndef EP_CLAIMS_CUH
#define EP_CLAIMS_CUH

#include "ep/job.cuh"

static int free_sms(weft_world *world)
{
    int sms = 0;
    while (weft_device_sms_take(world, 1) == WEFT_OK) {
        sms++;
    }
    if (sms > 0) {
        CHECK_OK(weft_device_sms_give(world, sms));
    }
    return sms;
}

/* Two groups claim what their routes ask for, each once, and give it back; none is left: one that asks is told so, and
 * so is one that did not ask, which else has what is left. By PE 0, while the others wait. */
static void test_claims(job *of, arena *all)
{
    weft_ep *ep[2] = {};
    weft_ep_route *route[4] = {};
    const weft_ep_config config = small_config(of->pe->pes);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int before = free_sms(of->world);
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        choices.ids = all->base[PLAIN];
        plan.sms = 1;
        CHECK_OK(weft_ep_route_create(ep[0], &plan, NULL, &route[0]));
        CHECK_OK(weft_ep_route_create(ep[0], &plan, NULL, &route[1]));
        check_that(free_sms(of->world) == before - 1, __FILE__, __LINE__, "two routes of a group claim more than one");
        CHECK_OK(weft_device_sms_take(of->world, before - 1));
        CHECK_STATUS(weft_ep_route_create(ep[1], &plan, NULL, &route[2]), WEFT_ERR_STATE);
        plan.sms = 0;
        CHECK_OK(weft_ep_route_create(ep[1], &plan, NULL, &route[2]));
        CHECK_STATUS(weft_ep_route_update(route[2], &choices, gpu_stream_of(of->pe)), WEFT_ERR_STATE);
        CHECK_OK(weft_device_sms_give(of->world, before - 1));
        plan.sms = 1;
        CHECK_OK(weft_ep_route_create(ep[1], &plan, NULL, &route[3]));
        check_that(free_sms(of->world) == before - 2, __FILE__, __LINE__, "two groups do not claim two");
        for (int i = 0; i < 4; i++) {
            CHECK_OK(weft_ep_route_destroy(route[i]));
        }
    }
    CHECK_OK(weft_barrier(of->world));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_destroy(ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int left = free_sms(of->world);
        check_that(left == of->sms, __FILE__, __LINE__, "of %d multiprocessors %d are free at the end", of->sms, left);
    }
    CHECK_OK(weft_barrier(of->world));
}

/* Groups that share a claim have the most that a route of theirs asks for, until the last is gone; and a hint is what
 * can be claimed. By PE 0, while the others wait. */
static void test_shared_claim(job *of)
{
    weft_ep *ep[3] = {};
    weft_ep_route *route[3] = {};
    weft_ep_config config = small_config(of->pe->pes);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 2;
    for (int i = 0; i < 3; i++) {
        config.claim_with = i > 0 ? ep[i - 1] : NULL;
        CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int before = free_sms(of->world);
        int hint[2] = {-1, -1};
        CHECK_OK(weft_ep_sms_hint(ep[0], &plan, &hint[0]));
        plan.layout = WEFT_EP_SLOTS_EXPERT;
        CHECK_OK(weft_ep_sms_hint(ep[0], &plan, &hint[1]));
        check_that(hint[0] >= 1 && hint[0] <= before && hint[1] >= 1 && hint[1] <= before, __FILE__, __LINE__,
                   "hints of %d and %d of %d multiprocessors", hint[0], hint[1], before);
        plan.layout = WEFT_EP_RANK_MAJOR;
        for (int i = 0; i < 3; i++) {
            plan.sms = i == 1 ? hint[0] : 1;
            CHECK_OK(weft_ep_route_create(ep[i], &plan, NULL, &route[i]));
            const int left = before - (i > 0 ? hint[0] : 1);
            check_that(free_sms(of->world) == left, __FILE__, __LINE__, "%d groups leave %d multiprocessors, not %d",
                       i + 1, free_sms(of->world), left);
        }
        for (int i = 0; i < 3; i++) {
            CHECK_OK(weft_ep_route_destroy(route[i]));
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weft_barrier(of->world));
        const int left = of->pe->pe == 0 ? free_sms(of->world) : 0;
        check_that(of->pe->pe != 0 || left < of->sms, __FILE__, __LINE__, "%d groups, and no claim", 3 - i);
        CHECK_OK(weft_barrier(of->world));
        CHECK_OK(weft_ep_destroy(ep[i]));
    }
    CHECK_OK(weft_barrier(of->world));
    if (of->pe->pe == 0) {
        const int left = free_sms(of->world);
        check_that(left == of->sms, __FILE__, __LINE__, "of %d multiprocessors %d are free at the end", of->sms, left);
    }
    CHECK_OK(weft_barrier(of->world));
}

#endif
