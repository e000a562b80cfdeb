/* Goal: a group that was made with few limits known has those that its calls need: what one rank needs grows on all, in
 * the call that needs it, up to the bytes that were allowed.
 *
 * Method: two ranks of one expert each. Rows hold one value, which the experts give back, so that a token's sum is its
 * value times its choices. The random cases of tests/property/ep.c have groups that grow in all kinds of calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/pes.h"
#include "weft.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 64, HIDDEN = 64, ROWS = PES * TOKENS };

typedef struct rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    _Alignas(16) float in[TOKENS * HIDDEN];
    _Alignas(16) float received[ROWS * HIDDEN];
    _Alignas(16) float out[TOKENS * HIDDEN];
} rig;

static weft_ep_config config_of(size_t bytes_max)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = PES;
    config.bytes_max = bytes_max;
    return config;
}

static rig *open_rig(weft_world *world, size_t bytes_max)
{
    weft_ep_config config = config_of(bytes_max);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    rig *r = aligned_alloc(16, (sizeof *r + 15) / 16 * 16);
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    plan.topk = PES;
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &r->ep));
    CHECK_OK(weft_ep_route_create(r->ep, &plan, NULL, &r->route));
    return r;
}

static void close_rig(rig *r)
{
    CHECK_OK(weft_ep_route_destroy(r->route));
    CHECK_OK(weft_ep_destroy(r->ep));
    free(r);
}

static weft_ep_rows rows_of(float *data, int hidden)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = hidden;
    return rows;
}

/* Every token goes to both ranks. */
static weft_ep_choices choices_of(int tokens)
{
    static _Thread_local int32_t ids[TOKENS * PES];
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    for (int i = 0; i < TOKENS * PES; i++) {
        ids[i] = i % PES;
    }
    choices.tokens = tokens;
    choices.ids = ids;
    return choices;
}

static weft_ep_received received_of(rig *r, int hidden)
{
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(r->received, hidden);
    out.rows_capacity = ROWS;
    return out;
}

/* The tokens of this rank, and the results, which are what was received. */
static void fill(rig *r, int tokens, int hidden)
{
    for (int i = 0; i < tokens * hidden; i++) {
        r->in[i] = (float)(100 * r->rank + i / hidden + 1);
        r->out[i] = -1;
    }
}

static void check_sums(const rig *r, int tokens, int hidden)
{
    for (int i = 0; i < tokens * hidden; i++) {
        if (!CHECK_SAY(r->out[i] == PES * r->in[i], "element %d is %g, not %g", i, (double)r->out[i],
                       PES * (double)r->in[i])) {
            return;
        }
    }
}

static void check_limits(const rig *r, int tokens, int topk, size_t row_bytes)
{
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    CHECK_OK(weft_ep_limits(r->ep, &limits));
    CHECK_SAY(limits.tokens_max == tokens && limits.topk_max == topk && limits.row_bytes_max == row_bytes,
              "limits are %d, %d, %zu", limits.tokens_max, limits.topk_max, limits.row_bytes_max);
}

/* A dispatch on the routing there is, and a combine. */
static void go_on(rig *r, int tokens, int hidden)
{
    weft_ep_rows in = rows_of(r->in, hidden);
    weft_ep_rows results = rows_of(r->received, hidden);
    weft_ep_rows out = rows_of(r->out, hidden);
    weft_ep_received received = received_of(r, hidden);
    fill(r, tokens, hidden);
    CHECK_OK(weft_ep_dispatch(r->route, &in, &received, NULL));
    CHECK_OK(weft_ep_combine(r->route, &results, &out, 0, NULL));
    check_sums(r, tokens, hidden);
}

static void grow(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, (size_t)1 << 24);
    check_limits(r, 0, 1, 16);
    int tokens = r->rank == 1 ? 5 : 2;
    weft_ep_choices choices = choices_of(tokens);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    check_limits(r, 5, PES, 16);
    go_on(r, tokens, 16); /* wider rows on a routing that is known */
    check_limits(r, 5, PES, 64);
    go_on(r, tokens, 8);
    check_limits(r, 5, PES, 64);

    /* a fresh dispatch by halves, which one rank's T and the width make grow, both at once */
    tokens = r->rank == 0 ? TOKENS : 1;
    choices = choices_of(tokens);
    weft_ep_rows in = rows_of(r->in, HIDDEN);
    weft_ep_received received = received_of(r, HIDDEN);
    fill(r, tokens, HIDDEN);
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_OK(weft_ep_dispatch_send(r->route, &in, &received, NULL));
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
    check_limits(r, TOKENS, PES, HIDDEN * 4);
    weft_ep_rows results = rows_of(r->received, HIDDEN);
    weft_ep_rows out = rows_of(r->out, HIDDEN);
    CHECK_OK(weft_ep_combine_send(r->route, &results, &out, 0, NULL));
    CHECK_OK(weft_ep_combine_recv(r->route, NULL));
    check_sums(r, tokens, HIDDEN);
    close_rig(r);
}

static void limits_grow_in_the_call_that_needs_more(void **state)
{
    (void)state;
    pes_run(PES, grow, NULL);
}

static int names_bytes(void)
{
    return strstr(weft_last_error(), "tokens_max would grow from 4 to 64") != NULL &&
           strstr(weft_last_error(), "bytes_max is ") != NULL;
}

/* Room for 4 tokens of 64 bytes, and hardly more. */
static void refuse(weft_world *world, void *context)
{
    (void)context;
    weft_ep_config few = config_of(0);
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    few.tokens_max = 4;
    few.topk_max = PES;
    few.row_bytes_max = 64;
    CHECK_OK(weft_ep_bytes(&few, PES, &memory));
    rig *r = open_rig(world, memory.symmetric_bytes);
    weft_ep_choices choices = choices_of(4);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 4, 16);

    /* T of one rank; the choice is still there */
    choices = choices_of(r->rank == 0 ? TOKENS : 3);
    weft_ep_rows in = rows_of(r->in, 16);
    weft_ep_received received = received_of(r, 16);
    CHECK_STATUS(weft_ep_route_update(r->route, &choices, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(names_bytes(), "\"%s\" names no limit", weft_last_error());
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ep_dispatch_send(r->route, &in, &received, NULL), WEFT_OK);
    CHECK_STATUS(weft_ep_dispatch_recv(r->route, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(names_bytes(), "\"%s\" names no limit", weft_last_error());
    check_limits(r, 4, PES, 64);

    /* the group goes on */
    choices = choices_of(4);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    weft_ep_rows wide = rows_of(r->in, HIDDEN);
    weft_ep_received wide_received = received_of(r, HIDDEN);
    CHECK_STATUS(weft_ep_dispatch(r->route, &wide, &wide_received, NULL), WEFT_ERR_RANGE);
    CHECK(strstr(weft_last_error(), "row_bytes_max from 64 to 256") != NULL);
    go_on(r, 4, 16);
    close_rig(r);
}

static void bytes_bound_the_growth(void **state)
{
    (void)state;
    pes_run(PES, refuse, NULL);
}

/* A heap that has no room is an error like the other. */
static void lack_heap(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, SIZE_MAX);
    weft_ep_choices choices = choices_of(1);
    choices.tokens = 1 << 22;
    CHECK_STATUS(weft_ep_route_update(r->route, &choices, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(strstr(weft_last_error(), "tokens_max would grow from 0 to 4194304") != NULL, "\"%s\" names no limit",
              weft_last_error());
    choices = choices_of(2);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 2, 16);
    close_rig(r);
}

static void a_heap_without_room_leaves_the_group(void **state)
{
    (void)state;
    (void)setenv("WEFT_HEAP_MAX", "64M", 1);
    pes_run(PES, lack_heap, NULL);
    (void)unsetenv("WEFT_HEAP_MAX");
}

/* What would grow on one rank only is two calls. */
static void disagree(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, (size_t)1 << 24);
    weft_ep_choices choices = choices_of(2);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    int hidden = r->rank == 0 ? HIDDEN : 4;
    weft_ep_rows in = rows_of(r->in, hidden);
    weft_ep_received received = received_of(r, hidden);
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 2, HIDDEN);
    close_rig(r);
}

static void different_calls_do_not_grow(void **state)
{
    (void)state;
    pes_run(PES, disagree, NULL);
}

#define REFUSED(status, culprit)                                                                                       \
    do {                                                                                                               \
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &none), status);                                  \
        CHECK_SAY(strstr(weft_last_error(), culprit) != NULL, "\"%s\" does not name %s", weft_last_error(), culprit);  \
    } while (0)

static void cannot(weft_world *world, void *context)
{
    weft_ep *none = NULL;
    (void)context;
    weft_ep_config config = config_of((size_t)1 << 20);
    config.pairs_max = 2;
    REFUSED(WEFT_ERR_UNSUPPORTED, "pairs_max 2");
    config.pairs_max = 0;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    REFUSED(WEFT_ERR_UNSUPPORTED, "WEFT_EP_MASK_ON_TIMEOUT");
    config.flags = 0;
    config.tokens_max = 1 << 20;
    REFUSED(WEFT_ERR_ARGUMENT, "bytes_max is 1048576");
    config.bytes_max = 0;
    REFUSED(WEFT_ERR_ARGUMENT, "topk_max is 0");
    rig *r = open_rig(world, (size_t)1 << 24);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *no_route = NULL;
    plan.topk = 1;
    static _Alignas(64) unsigned char memory[1 << 16];
    CHECK_STATUS(weft_ep_route_create(r->ep, &plan, memory, &no_route), WEFT_ERR_UNSUPPORTED);
    CHECK_STATUS(weft_ep_limits(NULL, &config), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_limits(r->ep, NULL), WEFT_ERR_ARGUMENT);
    config.size = 8;
    CHECK_STATUS(weft_ep_limits(r->ep, &config), WEFT_ERR_ARGUMENT);
    close_rig(r);
}

static void what_cannot_grow_is_refused(void **state)
{
    (void)state;
    pes_run(1, cannot, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(limits_grow_in_the_call_that_needs_more),
        CHECKED_TEST(bytes_bound_the_growth),
        CHECKED_TEST(a_heap_without_room_leaves_the_group),
        CHECKED_TEST(different_calls_do_not_grow),
        CHECKED_TEST(what_cannot_grow_is_refused),
    };
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
