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
#include "support/ep_group.h"
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

static rig *open_rig_with(weft_world *world, const weft_ep_config *config)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    rig *r = aligned_alloc(16, (sizeof *r + 15) / 16 * 16);
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    plan.topk = PES;
    (void)ep_group_open(world, config, &plan, &r->ep, &r->route);
    return r;
}

static rig *open_rig(weft_world *world, size_t bytes_max)
{
    const weft_ep_config config = config_of(bytes_max);
    return open_rig_with(world, &config);
}

static void close_rig(rig *r)
{
    ep_group_close(r->ep, r->route);
    free(r);
}

static weft_ep_rows rows_of(float *data, int hidden)
{
    return ep_rows(data, WEFT_EP_F32, hidden);
}

/* Every token goes to both ranks. */
static weft_ep_choices choices_of(int tokens)
{
    static _Thread_local int32_t ids[TOKENS * PES];
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    ep_choose_all(ids, TOKENS, PES);
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
    ep_tokens_fill(r->in, r->rank, tokens, hidden);
    for (int i = 0; i < tokens * hidden; i++) {
        r->out[i] = -1;
    }
}

static void check_sums(const rig *r, int tokens, int hidden)
{
    ep_sums_check(r->out, r->in, PES, tokens, hidden);
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

/* What would grow on one rank only is two calls: rows of another width or type, more choices a token. */
static void disagree(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, (size_t)1 << 24);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *more = NULL;
    weft_ep_choices choices = choices_of(2);
    plan.topk = 2 * PES;
    CHECK_OK(weft_ep_route_create(r->ep, &plan, NULL, &more));
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    int hidden = r->rank == 0 ? HIDDEN : 4;
    weft_ep_rows in = rows_of(r->in, hidden);
    weft_ep_received received = received_of(r, hidden);
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_MISMATCH);
    in = rows_of(r->in, HIDDEN);
    received = received_of(r, HIDDEN);
    in.dtype = received.rows.dtype = r->rank == 0 ? WEFT_EP_F32 : WEFT_EP_BF16;
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_STATUS(weft_ep_dispatch(r->route, &in, &received, NULL), WEFT_ERR_MISMATCH);
    weft_ep_choices wider = choices_of(2); /* whose ids are as many as two tokens of more choices take */
    CHECK_STATUS(weft_ep_route_update(r->rank == 0 ? more : r->route, &wider, NULL), WEFT_ERR_MISMATCH);
    check_limits(r, 2, PES, 16);
    CHECK_OK(weft_ep_route_destroy(more));
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 2, HIDDEN);
    close_rig(r);
}

static void different_calls_do_not_grow(void **state)
{
    (void)state;
    pes_run(PES, disagree, NULL);
}

/* Two pairs: their memory grows before the first is sent, and stays while one is outstanding. */
static void grow_pairs(weft_world *world, void *context)
{
    (void)context;
    weft_ep_config config = config_of((size_t)1 << 24);
    config.pairs_max = 2;
    rig *r = open_rig_with(world, &config);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *other = NULL;
    plan.topk = PES;
    CHECK_OK(weft_ep_route_create(r->ep, &plan, NULL, &other));
    for (int calls = 0; calls < 3; calls++) { /* on either bank */
        int tokens = 2 + 3 * calls + r->rank;
        weft_ep_choices choices = choices_of(tokens);
        CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
        check_limits(r, 3 + 3 * calls, PES, calls == 0 ? 16 : 16 * (size_t)calls);
        go_on(r, tokens, 4 * (calls + 1));
    }

    /* one grows as it is sent, and another beside it */
    float(*received)[HIDDEN] = aligned_alloc(16, sizeof(float[ROWS][HIDDEN]));
    weft_ep_rows wide = rows_of(r->in, 16);
    weft_ep_received out_wide = received_of(r, 16);
    weft_ep_received out_beside = received_of(r, 16);
    out_beside.rows.data = received;
    fill(r, 8 + r->rank, 16);
    CHECK_OK(weft_ep_dispatch_send(r->route, &wide, &out_wide, NULL));
    CHECK_OK(weft_ep_dispatch_send(r->route, &wide, &out_beside, NULL));
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
    check_limits(r, 9, PES, 64);

    /* the one that needs more comes between the halves of another, and goes on as soon as that has ended */
    weft_ep_choices choices = choices_of(4);
    weft_ep_choices more = choices_of(TOKENS);
    weft_ep_rows in = rows_of(r->in, 12);
    weft_ep_received out = received_of(r, 12);
    weft_ep_received out_more = received_of(r, 12);
    out_more.rows.data = received;
    fill(r, TOKENS, 12);
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_OK(weft_ep_dispatch_send(r->route, &in, &out, NULL));
    CHECK_STATUS(weft_ep_route_update(other, &more, NULL), WEFT_ERR_RANGE); /* a whole call between them */
    CHECK_SAY(strstr(weft_last_error(), "another pair of halves is outstanding") != NULL, "\"%s\" does not say why",
              weft_last_error());
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_OK(weft_ep_route_choose(other, &more));
    CHECK_OK(weft_ep_dispatch_send(r->route, &in, &out, NULL));
    CHECK_OK(weft_ep_dispatch_send(other, &in, &out_more, NULL));
    CHECK_STATUS(weft_ep_dispatch_recv(other, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(strstr(weft_last_error(), "another pair of halves is outstanding") != NULL, "\"%s\" does not say why",
              weft_last_error());
    CHECK_OK(weft_ep_dispatch_recv(r->route, NULL));
    CHECK_OK(weft_ep_dispatch(other, &in, &out_more, NULL)); /* of the choice that it still has */
    check_limits(r, TOKENS, PES, 64);
    weft_ep_rows results = rows_of(&received[0][0], 12);
    weft_ep_rows sums = rows_of(r->out, 12);
    CHECK_OK(weft_ep_combine(other, &results, &sums, 0, NULL));
    check_sums(r, TOKENS, 12);
    fill(r, 4, 12);
    results = rows_of(r->received, 12);
    CHECK_OK(weft_ep_combine(r->route, &results, &sums, 0, NULL)); /* on a routing of before */
    check_sums(r, 4, 12);
    free(received);
    CHECK_OK(weft_ep_route_destroy(other));
    close_rig(r);
}

static void two_pairs_grow_between_each_other(void **state)
{
    (void)state;
    pes_run(PES, grow_pairs, NULL);
}

/* While a rank is masked limits stay; they grow before and after, in groups that mask by themselves too. */
static void grow_masked(weft_world *world, void *context)
{
    weft_ep_config config = config_of((size_t)1 << 24);
    config.flags = *(const unsigned *)context;
    rig *r = open_rig_with(world, &config);
    weft_ep_choices choices = choices_of(3);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 3, 16);
    check_limits(r, 3, PES, 64);
    CHECK_OK(weft_ep_mask(r->ep, 1 - r->rank, 0));
    choices = choices_of(5);
    CHECK_STATUS(weft_ep_route_update(r->route, &choices, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(strstr(weft_last_error(), "a rank is masked") != NULL, "\"%s\" does not say why", weft_last_error());
    choices = choices_of(2);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL)); /* within the limits, alone */
    CHECK_OK(weft_ep_mask(r->ep, 1 - r->rank, 1));
    CHECK_OK(weft_barrier(world));
    choices = choices_of(6);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 6, 16);
    check_limits(r, 6, PES, 64);
    close_rig(r);
}

static void masked_ranks_hold_the_limits(void **state)
{
    static unsigned flags[] = {0, WEFT_EP_MASK_ON_TIMEOUT};
    (void)state;
    pes_run(PES, grow_masked, &flags[0]);
    pes_run(PES, grow_masked, &flags[1]);
}

/* A rank that missed calls of the others comes back, and limits grow again; with one pair and with two. */
static void come_back(weft_world *world, void *context)
{
    static uint64_t calls; /* of rank 0 */
    weft_ep_config config = config_of((size_t)1 << 24);
    config.pairs_max = *(const int *)context;
    rig *r = open_rig_with(world, &config);
    for (int tokens = 2; tokens < 4; tokens++) { /* on either bank, each growing */
        const weft_ep_choices choices = choices_of(tokens);
        CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
        go_on(r, tokens, 4 * tokens);
    }
    CHECK_OK(weft_barrier(world));
    if (r->rank == 0) {
        const weft_ep_choices few = choices_of(2);
        CHECK_OK(weft_ep_mask(r->ep, 1, 0));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(weft_ep_route_update(r->route, &few, NULL));
        }
        CHECK_OK(weft_ep_calls(r->ep, &calls));
    }
    CHECK_OK(weft_barrier(world));
    if (r->rank == 1) {
        uint64_t own = 0;
        CHECK_OK(weft_ep_calls(r->ep, &own));
        CHECK_SAY(own + 3 == calls, "%d calls, and the other has made %d", (int)own, (int)calls);
        CHECK_STATUS(weft_ep_rejoin(r->ep, own - 1), WEFT_ERR_ARGUMENT);
        CHECK_OK(weft_ep_rejoin(r->ep, calls));
    } else {
        CHECK_OK(weft_ep_mask(r->ep, 1, 1));
    }
    CHECK_OK(weft_barrier(world));
    for (int tokens = 3; tokens < 7; tokens++) {
        const weft_ep_choices choices = choices_of(tokens);
        CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
        go_on(r, tokens, 4 * tokens);
        check_limits(r, tokens, PES, 16 * (size_t)tokens);
    }
    close_rig(r);
}

static void a_rank_comes_back_and_limits_grow(void **state)
{
    static int pairs[] = {0, 2};
    (void)state;
    pes_run(PES, come_back, &pairs[0]);
    pes_run(PES, come_back, &pairs[1]);
}

/* A route in the caller's memory, of one rank: the limits grow, and then all learn that it is too small. */
static void grow_memory(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, (size_t)1 << 24);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    size_t bytes = 0;
    unsigned char *memory = NULL;
    plan.topk = PES;
    weft_ep_choices choices = choices_of(3);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    CHECK_OK(weft_ep_route_destroy(r->route));
    CHECK_OK(weft_ep_route_bytes(r->ep, &plan, &bytes));
    if (r->rank == 0) {
        memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    CHECK_OK(weft_ep_route_create(r->ep, &plan, memory, &r->route));
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, 3, 4);

    choices = choices_of(r->rank == 1 ? TOKENS : 4);
    CHECK_STATUS(weft_ep_route_update(r->route, &choices, NULL), WEFT_ERR_RANGE);
    CHECK_SAY(strstr(weft_last_error(), r->rank == 0 ? "weft_ep_route_move" : "rank 0 failed with WEFT_ERR_RANGE") !=
                  NULL,
              "\"%s\" does not say why", weft_last_error());
    check_limits(r, TOKENS, PES, 16);
    if (r->rank == 0) {
        CHECK_STATUS(weft_ep_route_move(r->route, memory, bytes), WEFT_ERR_ARGUMENT);
        CHECK_OK(weft_ep_route_bytes(r->ep, &plan, &bytes));
        unsigned char *larger = aligned_alloc(64, (bytes + 63) / 64 * 64);
        memset(larger, 0x5a, bytes);
        CHECK_OK(weft_ep_route_move(r->route, larger, bytes));
        free(memory);
        memory = larger;
    }
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    go_on(r, choices.tokens, 4);
    CHECK_OK(weft_ep_route_destroy(r->route));
    free(memory);
    CHECK_OK(weft_ep_destroy(r->ep));
    free(r);
}

static void the_callers_memory_holds_a_route(void **state)
{
    (void)state;
    pes_run(PES, grow_memory, NULL);
}

/* What a route in the caller's memory has been told moves with it to other limits. */
static void move_grown(weft_world *world, void *context)
{
    (void)context;
    rig *r = open_rig(world, (size_t)1 << 24);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *held = NULL;
    size_t bytes = 0;
    plan.topk = PES;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    weft_ep_choices choices = choices_of(5);
    CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
    CHECK_OK(weft_ep_route_bytes(r->ep, &plan, &bytes));
    unsigned char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    CHECK_OK(weft_ep_route_create(r->ep, &plan, memory, &held));
    choices = choices_of(4 + r->rank);
    CHECK_OK(weft_ep_route_update(held, &choices, NULL));
    weft_ep_choices more = choices_of(TOKENS);
    CHECK_OK(weft_ep_route_update(r->route, &more, NULL));
    size_t more_bytes = 0;
    CHECK_OK(weft_ep_route_bytes(r->ep, &plan, &more_bytes));
    CHECK(more_bytes > bytes);
    unsigned char *larger = aligned_alloc(64, (more_bytes + 63) / 64 * 64);
    memset(larger, 0x5a, more_bytes);
    CHECK_OK(weft_ep_route_move(held, larger, more_bytes));
    memset(memory, 0x5a, bytes);
    free(memory);
    weft_ep_route *own = r->route;
    r->route = held;
    go_on(r, 4 + r->rank, 8);
    r->route = own;
    CHECK_OK(weft_ep_route_destroy(held));
    free(larger);
    close_rig(r);
}

static void a_routing_moves_to_other_limits(void **state)
{
    (void)state;
    pes_run(PES, move_grown, NULL);
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
    config.tokens_max = 1 << 20;
    REFUSED(WEFT_ERR_ARGUMENT, "bytes_max is 1048576");
    config.bytes_max = 0;
    REFUSED(WEFT_ERR_ARGUMENT, "topk_max is 0");
    rig *r = open_rig(world, (size_t)1 << 24);
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
        CHECKED_TEST(limits_grow_in_the_call_that_needs_more), CHECKED_TEST(bytes_bound_the_growth),
        CHECKED_TEST(a_heap_without_room_leaves_the_group),    CHECKED_TEST(different_calls_do_not_grow),
        CHECKED_TEST(two_pairs_grow_between_each_other),       CHECKED_TEST(masked_ranks_hold_the_limits),
        CHECKED_TEST(a_rank_comes_back_and_limits_grow),       CHECKED_TEST(the_callers_memory_holds_a_route),
        CHECKED_TEST(a_routing_moves_to_other_limits),         CHECKED_TEST(what_cannot_grow_is_refused),
    };
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
