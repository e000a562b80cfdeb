/* Goal: between the halves of a call its group takes no other collective call, which changes nothing; other groups go
 * on; a half without the other is refused; a send that failed needs no recv.
 *
 * Method: three PEs as threads; each token goes to the next rank. Every call is tried between send and recv of dispatch
 * and of combine, on the same route and on another, and then the pair must give what it gives undisturbed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 3
#define HIDDEN 4
#define ROWS PES

/* One PE: two routes of a group, and one of another group; each token of the rank goes to the next rank. */
typedef struct halves_rig {
    int rank;
    int32_t id;
    weft_ep *ep;
    weft_ep *other;
    weft_ep_route *route;
    weft_ep_route *second;
    weft_ep_route *others;
    _Alignas(16) float in[HIDDEN];
    _Alignas(16) float received[ROWS * HIDDEN];
    _Alignas(16) float out[HIDDEN];
    weft_ep_choices choices;
} halves_rig;

static weft_ep_rows rows_at(float *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_ep_received received_at(float *data)
{
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_at(data);
    received.rows_capacity = ROWS;
    return received;
}

/* Every collective call of the group, on this route. */
static void refuse_all(halves_rig *rig, weft_ep_route *route)
{
    float untouched[ROWS * HIDDEN] __attribute__((aligned(16)));
    weft_ep_rows rows = rows_at(untouched);
    weft_ep_received received = received_at(untouched);
    memset(untouched, 0x33, sizeof untouched);
    CHECK_STATUS(weft_ep_route_update(route, &rig->choices, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch(route, &rows, &received, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_send(route, &rows, &received, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine(route, &rows, &rows, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_send(route, &rows, &rows, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_bwd(route, &rows, NULL, &rows, NULL, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_bwd(route, &rows, NULL, &rows, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_mask(rig->ep, (rig->rank + 1) % PES, 0), WEFT_ERR_STATE);
    for (size_t i = 0; i < sizeof untouched; i++) {
        if (!CHECK(((unsigned char *)untouched)[i] == 0x33)) {
            break;
        }
    }
}

static void check_row(const float *row, int rank)
{
    for (int i = 0; i < HIDDEN; i++) {
        CHECK_SAY(row[i] == (float)(100 * rank + i), "element %d is %g", i, (double)row[i]);
    }
}

/* A dispatch and a combine of the other group, whole. */
static void use_other_group(halves_rig *rig)
{
    float received[ROWS * HIDDEN] __attribute__((aligned(16)));
    float out[HIDDEN] __attribute__((aligned(16)));
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_received to = received_at(received);
    weft_ep_rows sums = rows_at(out);
    CHECK_OK(weft_ep_dispatch(rig->others, &in, &to, NULL));
    CHECK_OK(weft_ep_combine(rig->others, &to.rows, &sums, 0, NULL));
    check_row(out, rig->rank);
}

static void disturb_pairs(halves_rig *rig)
{
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_rows out = rows_at(rig->out);
    weft_ep_received received = received_at(rig->received);
    CHECK_OK(weft_ep_dispatch_send(rig->route, &in, &received, NULL));
    refuse_all(rig, rig->route);
    refuse_all(rig, rig->second);
    CHECK_STATUS(weft_ep_combine_recv(rig->route, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_recv(rig->second, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_choose(rig->route, &rig->choices), WEFT_ERR_STATE);
    use_other_group(rig);
    CHECK_OK(weft_ep_dispatch_recv(rig->route, NULL));
    check_row(rig->received, (rig->rank + PES - 1) % PES);
    CHECK_OK(weft_ep_combine_send(rig->route, &received.rows, &out, 0, NULL));
    refuse_all(rig, rig->route);
    refuse_all(rig, rig->second);
    CHECK_STATUS(weft_ep_dispatch_recv(rig->route, NULL), WEFT_ERR_STATE);
    use_other_group(rig);
    CHECK_OK(weft_ep_combine_recv(rig->route, NULL));
    check_row(rig->out, rig->rank);
}

static void refuse_single_halves(halves_rig *rig)
{
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_received received = received_at(rig->received);
    CHECK_STATUS(weft_ep_dispatch_recv(rig->route, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_recv(rig->route, NULL), WEFT_ERR_STATE);
    in.hidden = 3; /* no multiple of 16 bytes */
    CHECK_STATUS(weft_ep_dispatch_send(rig->route, &in, &received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_recv(rig->route, NULL), WEFT_ERR_STATE);
}

static int open_group(weft_world *world, int pairs, weft_ep **ep)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.pairs_max = pairs;
    config.experts = PES;
    config.tokens_max = 1;
    config.topk_max = 1;
    config.row_bytes_max = HIDDEN * sizeof(float);
    return CHECK_OK(weft_ep_create(weft_team_world(world), &config, ep));
}

static int open_route(halves_rig *rig, weft_ep *ep, weft_ep_route **route)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 1;
    return CHECK_OK(weft_ep_route_create(ep, &plan, NULL, route)) &&
           CHECK_OK(weft_ep_route_update(*route, &rig->choices, NULL));
}

static void run(weft_world *world, void *context)
{
    halves_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    (void)context;
    memset(rig, 0, sizeof *rig);
    rig->rank = weft_world_pe(world);
    rig->id = (rig->rank + 1) % PES;
    rig->choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    rig->choices.tokens = 1;
    rig->choices.ids = &rig->id;
    for (int i = 0; i < HIDDEN; i++) {
        rig->in[i] = (float)(100 * rig->rank + i);
    }
    if (open_group(world, 0, &rig->ep) && open_group(world, 1, &rig->other) && open_route(rig, rig->ep, &rig->route) &&
        open_route(rig, rig->ep, &rig->second) && open_route(rig, rig->other, &rig->others)) {
        refuse_single_halves(rig);
        disturb_pairs(rig);
        refuse_single_halves(rig);
        disturb_pairs(rig);
        CHECK_OK(weft_ep_route_destroy(rig->route));
        CHECK_OK(weft_ep_route_destroy(rig->second));
        ep_group_close(rig->ep, rig->others);
        CHECK_OK(weft_ep_destroy(rig->other));
    }
    free(rig);
}

/* ---- two pairs ---- */

typedef struct two_rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route[2];
    int32_t id[2];
    weft_ep_choices choices[2];
    _Alignas(16) float in[2][HIDDEN];
    _Alignas(16) float received[2][ROWS * HIDDEN];
    _Alignas(16) float out[2][HIDDEN];
} two_rig;

static weft_status send_one(two_rig *rig, int i)
{
    weft_ep_rows in = rows_at(rig->in[i]);
    weft_ep_received to = received_at(rig->received[i]);
    return weft_ep_dispatch_send(rig->route[i], &in, &to, NULL);
}

static weft_status combine_one(two_rig *rig, int i)
{
    weft_ep_rows in = rows_at(rig->received[i]);
    weft_ep_rows out = rows_at(rig->out[i]);
    return weft_ep_combine_send(rig->route[i], &in, &out, 0, NULL);
}

/* Route 0 goes to the next rank, route 1 to the one before; the rows of route 1 are those of rank + 10. */
static void check_received(const two_rig *rig, int i)
{
    check_row(rig->received[i], i == 0 ? (rig->rank + PES - 1) % PES : (rig->rank + 1) % PES + 10);
}

static void check_third(two_rig *rig, int i)
{
    CHECK_STATUS(weft_ep_route_update(rig->route[i], &rig->choices[i], NULL), WEFT_ERR_STATE);
    CHECK(strstr(weft_last_error(), "third") != NULL);
    CHECK_STATUS(send_one(rig, i), WEFT_ERR_STATE);
    CHECK_STATUS(combine_one(rig, i), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_choose(rig->route[i], &rig->choices[i]), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_destroy(rig->route[i]), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_mask(rig->ep, (rig->rank + 1) % PES, 0), WEFT_ERR_STATE);
}

/* Two micro-batches; `fresh`: agreed on in the way. */
static void overlap(two_rig *rig, int fresh)
{
    for (int i = 0; i < 2; i++) {
        memset(rig->received[i], 0x5a, sizeof rig->received[i]);
        CHECK_OK(fresh ? weft_ep_route_choose(rig->route[i], &rig->choices[i]) : WEFT_OK);
        CHECK_OK(send_one(rig, i)); /* send A, send B, */
    }
    check_third(rig, 0);
    check_third(rig, 1);
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL)); /* recv A, */
    check_received(rig, 0);
    CHECK_STATUS(weft_ep_combine_recv(rig->route[0], NULL), WEFT_ERR_STATE);
    CHECK_OK(combine_one(rig, 0)); /* a combine beside a dispatch, */
    CHECK_STATUS(combine_one(rig, 0), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_dispatch_recv(rig->route[1], NULL)); /* recv B */
    check_received(rig, 1);
    CHECK_OK(combine_one(rig, 1));
    CHECK_OK(weft_ep_combine_recv(rig->route[1], NULL)); /* B first, */
    CHECK_STATUS(send_one(rig, 1), WEFT_ERR_STATE); /* and a call that would take the place of A has to wait for it */
    CHECK_OK(weft_ep_combine_recv(rig->route[0], NULL));
    check_row(rig->out[0], rig->rank);
    check_row(rig->out[1], rig->rank + 10);
}

/* ---- two pairs of one route ---- */

/* Rows of in[i], and what came of them, by route 0. */
static weft_status send_by_first(two_rig *rig, int i)
{
    weft_ep_rows in = rows_at(rig->in[i]);
    weft_ep_received to = received_at(rig->received[i]);
    return weft_ep_dispatch_send(rig->route[0], &in, &to, NULL);
}

static weft_status combine_by_first(two_rig *rig, int i)
{
    weft_ep_rows in = rows_at(rig->received[i]);
    weft_ep_rows out = rows_at(rig->out[i]);
    return weft_ep_combine_send(rig->route[0], &in, &out, 0, NULL);
}

static void check_came(const two_rig *rig, int i)
{
    check_row(rig->received[i], (rig->rank + PES - 1) % PES + 10 * i);
}

/* What is outstanding makes the routing of the route, or brings it weights: no other call of it may be made. */
static void check_alone(two_rig *rig)
{
    weft_ep_rows in = rows_at(rig->in[1]);
    weft_ep_rows out = rows_at(rig->out[1]);
    CHECK_STATUS(send_by_first(rig, 1), WEFT_ERR_STATE);
    CHECK(strstr(weft_last_error(), "new routing or new weights") != NULL);
    CHECK_STATUS(combine_by_first(rig, 1), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_bwd(rig->route[0], &in, NULL, &out, NULL, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_weigh(rig->route[0], NULL), WEFT_ERR_STATE);
}

/* Send A, send B, recv A, recv B, of one kind; and one kind beside the other, whose recvs come in either order. */
static void overlap_one_route(two_rig *rig)
{
    memset(rig->received, 0x5a, sizeof rig->received);
    memset(rig->out, 0x5a, sizeof rig->out);
    CHECK_OK(weft_ep_route_choose(rig->route[0], &rig->choices[0]));
    CHECK_OK(send_by_first(rig, 0));
    check_alone(rig);
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL));
    check_came(rig, 0);
    memset(rig->received, 0x5a, sizeof rig->received);
    CHECK_OK(send_by_first(rig, 0));
    CHECK_OK(send_by_first(rig, 1));
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL));
    check_came(rig, 0);
    CHECK_OK(combine_by_first(rig, 0));
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL)); /* B, beside a combine */
    check_came(rig, 1);
    CHECK_OK(combine_by_first(rig, 1));
    CHECK_OK(weft_ep_combine_recv(rig->route[0], NULL));
    check_row(rig->out[0], rig->rank);
    CHECK_OK(weft_ep_combine_recv(rig->route[0], NULL));
    check_row(rig->out[1], rig->rank + 10);
}

/* New weights go with a dispatch that is alone on the route. */
static void weigh_one_route(two_rig *rig)
{
    const float weight = 2;
    CHECK_OK(weft_ep_route_weigh(rig->route[0], &weight));
    CHECK_OK(combine_by_first(rig, 0)); /* with the weights that the route has */
    CHECK_STATUS(send_by_first(rig, 1), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_combine_recv(rig->route[0], NULL));
    check_row(rig->out[0], rig->rank);
    CHECK_OK(send_by_first(rig, 1));
    check_alone(rig);
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL));
    check_came(rig, 1);
    CHECK_OK(send_by_first(rig, 0)); /* again any */
    CHECK_OK(weft_ep_dispatch_recv(rig->route[0], NULL));
}

static void run_two(weft_world *world, void *context)
{
    two_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    (void)context;
    memset(rig, 0, sizeof *rig);
    plan.topk = 1;
    rig->rank = weft_world_pe(world);
    rig->id[0] = (rig->rank + 1) % PES;
    rig->id[1] = (rig->rank + PES - 1) % PES;
    if (open_group(world, 2, &rig->ep) && CHECK_OK(weft_ep_route_create(rig->ep, &plan, NULL, &rig->route[0])) &&
        CHECK_OK(weft_ep_route_create(rig->ep, &plan, NULL, &rig->route[1]))) {
        for (int i = 0; i < 2; i++) {
            rig->choices[i] = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
            rig->choices[i].tokens = 1;
            rig->choices[i].ids = &rig->id[i];
            for (int h = 0; h < HIDDEN; h++) {
                rig->in[i][h] = (float)(100 * (rig->rank + 10 * i) + h);
            }
        }
        for (int step = 0; step < 20; step++) {
            overlap(rig, step % 3 != 1);
            overlap_one_route(rig);
            weigh_one_route(rig);
        }
        CHECK_OK(weft_ep_route_destroy(rig->route[0]));
        CHECK_OK(weft_ep_route_destroy(rig->route[1]));
        CHECK_OK(weft_ep_destroy(rig->ep));
    }
    free(rig);
}

static void two_pairs_a_group(void **state)
{
    (void)state;
    pes_run(PES, run_two, NULL);
}

static void one_pair_a_group(void **state)
{
    (void)state;
    pes_run(PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(one_pair_a_group), CHECKED_TEST(two_pairs_a_group)};
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
