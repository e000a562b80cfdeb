/* Goal: ranks that disagree on a config, a plan or a call learn it on all ranks, by name, and go on.
 *
 * Method: three PEs as threads; rank 1 differs in one thing; then the same calls without the difference succeed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 3
#define ODD 1 /* the rank that differs */
#define TOKENS 3
#define HIDDEN 16

static weft_ep_config good_config(void)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 4;
    config.tokens_max = TOKENS;
    config.topk_max = 2;
    config.row_bytes_max = HIDDEN * 4;
    return config;
}

static int names(const char *word)
{
    return CHECK_SAY(strstr(weft_last_error(), word) != NULL, "\"%s\" does not name %s", weft_last_error(), word);
}

/* ---- creation ---- */

#define MISMATCH_CONFIG(field, wrong, status)                                                                          \
    do {                                                                                                               \
        weft_ep_config config = good_config();                                                                         \
        weft_ep *ep = NULL;                                                                                            \
        if (weft_world_pe(world) == ODD) {                                                                             \
            config.field = wrong;                                                                                      \
        }                                                                                                              \
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), status);                                    \
        CHECK(ep == NULL);                                                                                             \
        names((status) == WEFT_ERR_MISMATCH || weft_world_pe(world) == ODD ? #field : "rank 1");                       \
    } while (0)

static void create_with_differences(weft_world *world, void *context)
{
    static const int table[] = {1, 1, 2};
    static const int short_table[] = {1, 1, 1};
    (void)context;
    MISMATCH_CONFIG(experts, 5, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(tokens_max, 4, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(topk_max, 3, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(row_bytes_max, 16, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(rows_max, 9, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(overflow, WEFT_EP_OVERFLOW_DROP, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(slot_tokens_max, 1, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(pairs_max, 2, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(flags, WEFT_EP_STATISTICS, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(experts_of_rank, table, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(domain_of, table, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(domain_ranks, 1, WEFT_ERR_MISMATCH);
    MISMATCH_CONFIG(domain_ranks, 2, WEFT_ERR_ARGUMENT);
    MISMATCH_CONFIG(experts_of_rank, short_table, WEFT_ERR_ARGUMENT);
    MISMATCH_CONFIG(experts, 0, WEFT_ERR_ARGUMENT);
}

static void configs(void **state)
{
    (void)state;
    pes_run(PES, create_with_differences, NULL);
}

/* A table that says what the rule says is no difference. */
static void create_with_even_table(weft_world *world, void *context)
{
    static const int even[] = {2, 1, 1};
    weft_ep_config config = good_config();
    weft_ep *ep;
    (void)context;
    config.experts_of_rank = weft_world_pe(world) == ODD ? even : NULL;
    if (CHECK_OK(weft_ep_create(weft_team_world(world), &config, &ep))) {
        CHECK_OK(weft_ep_destroy(ep));
    }
}

static void even_table(void **state)
{
    (void)state;
    pes_run(PES, create_with_even_table, NULL);
}

/* ---- calls ---- */

typedef struct ep_rig {
    int odd; /* this rank is to differ */
    weft_ep *ep;
    weft_ep_route *plain; /* topk 2, rank-major */
    weft_ep_route *other; /* topk 1, expert-major */
    float *in;
    float *received;
} ep_rig;

static weft_ep_choices some_choices(void)
{
    static const int32_t ids[TOKENS * 2] = {0, 1, 2, 3, 3, 0};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = ids;
    return choices;
}

static weft_status route(weft_ep_route *which)
{
    weft_ep_choices choices = some_choices();
    return weft_ep_route_update(which, &choices, NULL);
}

static weft_ep_rows rows_of(float *data, weft_ep_dtype dtype, int hidden)
{
    return ep_rows(data, dtype, hidden);
}

static weft_status dispatch(ep_rig *rig, weft_ep_route *which, weft_ep_dtype dtype, int hidden)
{
    weft_ep_rows in = rows_of(rig->in, dtype, hidden);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(rig->received, dtype, hidden);
    out.rows_capacity = (size_t)PES * TOKENS * 2;
    return weft_ep_dispatch(which, &in, &out, NULL);
}

/* Rows that become fp8, with such scales: the text says which. */
static weft_status quantise(ep_rig *rig, weft_ep_scale_type type)
{
    float scales[PES * TOKENS * 2 * ((HIDDEN + 127) / 128)];
    weft_ep_rows in = rows_of(rig->in, WEFT_EP_F32, HIDDEN);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(rig->received, WEFT_EP_FP8_E4M3, HIDDEN);
    out.rows.scales = scales;
    out.rows.scale_type = type;
    out.rows_capacity = (size_t)PES * TOKENS * 2;
    weft_status status = weft_ep_dispatch(rig->plain, &in, &out, NULL);
    (void)names("float32 scales");
    (void)names("float32 (powers of two) scales");
    return status;
}

static weft_status combine(ep_rig *rig, unsigned flags)
{
    weft_ep_rows in = rows_of(rig->received, WEFT_EP_F32, HIDDEN);
    weft_ep_rows out = rows_of(rig->in, WEFT_EP_F32, HIDDEN);
    return weft_ep_combine(rig->plain, &in, &out, flags, NULL);
}

static weft_status combine_with(ep_rig *rig, const float *weights, const int32_t *ids)
{
    weft_ep_rows in = rows_of(rig->received, WEFT_EP_F32, HIDDEN);
    weft_ep_rows out = rows_of(rig->in, WEFT_EP_F32, HIDDEN);
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    options.flags = WEFT_EP_WEIGHTED;
    options.weights = weights;
    options.ids = ids;
    return weft_ep_combine_with(rig->other, &in, &out, &options, NULL);
}

#define NOTHING "; nothing was moved;"
#define MAYBE "; rows may have been moved;" /* of dispatches that do not route */

/* `moved`: what the text says of the rows of this rank's call. */
#define MISMATCH(call, moved)                                                                                          \
    do {                                                                                                               \
        CHECK_STATUS(call, WEFT_ERR_MISMATCH);                                                                         \
        names(rig->odd ? "rank 0" : "rank 1");                                                                         \
        names(moved);                                                                                                  \
        CHECK_OK(route(rig->plain));                                                                                   \
        CHECK_OK(route(rig->other));                                                                                   \
        CHECK_OK(dispatch(rig, rig->plain, WEFT_EP_F32, HIDDEN));                                                      \
        CHECK_OK(combine(rig, WEFT_EP_WEIGHTED));                                                                      \
    } while (0)

static void call_with_differences(ep_rig *rig)
{
    int odd = rig->odd;
    CHECK_OK(route(rig->plain));
    CHECK_OK(route(rig->other));
    MISMATCH(route(odd ? rig->other : rig->plain), NOTHING);
    MISMATCH(dispatch(rig, rig->plain, WEFT_EP_F32, odd ? HIDDEN / 2 : HIDDEN), MAYBE);
    MISMATCH(dispatch(rig, rig->plain, odd ? WEFT_EP_BF16 : WEFT_EP_F32, HIDDEN), MAYBE);
    MISMATCH(dispatch(rig, odd ? rig->other : rig->plain, WEFT_EP_F32, HIDDEN), MAYBE);
    MISMATCH(quantise(rig, odd ? WEFT_EP_SCALE_F32_POW2 : WEFT_EP_SCALE_F32), MAYBE);
    MISMATCH(combine(rig, odd ? 0 : WEFT_EP_WEIGHTED), NOTHING);
    static const float weights[TOKENS] = {1, 2, 3};
    static const int32_t ids[TOKENS] = {0};
    MISMATCH(combine_with(rig, odd ? weights : NULL, NULL), NOTHING);
    MISMATCH(combine_with(rig, weights, odd ? ids : NULL), NOTHING);
    MISMATCH(odd ? combine(rig, 0) : combine_with(rig, weights, NULL), NOTHING);
    MISMATCH(odd ? combine(rig, 0) : dispatch(rig, rig->plain, WEFT_EP_F32, HIDDEN), odd ? NOTHING : MAYBE);
    MISMATCH(odd ? route(rig->plain) : dispatch(rig, rig->plain, WEFT_EP_F32, HIDDEN), odd ? NOTHING : MAYBE);
    MISMATCH(odd ? combine(rig, 0) : route(rig->plain), NOTHING);
}

/* A call that routes and did not match leaves no routing and no choice; after another the routing stays. The number in
 * the text is that of weft_ep_calls. */
static void what_is_left(ep_rig *rig)
{
    const int hidden = rig->odd ? HIDDEN / 2 : HIDDEN;
    weft_ep_choices choices = some_choices();
    uint64_t calls;
    char number[64];
    CHECK_OK(route(rig->plain));
    CHECK_STATUS(dispatch(rig, rig->plain, WEFT_EP_F32, hidden), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_calls(rig->ep, &calls));
    (void)snprintf(number, sizeof number, "call %llu of the group", (unsigned long long)calls);
    names(number);
    CHECK_OK(dispatch(rig, rig->plain, WEFT_EP_F32, HIDDEN));
    CHECK_OK(weft_ep_route_choose(rig->plain, &choices));
    CHECK_STATUS(dispatch(rig, rig->plain, WEFT_EP_F32, hidden), WEFT_ERR_MISMATCH);
    names(NOTHING);
    CHECK_STATUS(dispatch(rig, rig->plain, WEFT_EP_F32, HIDDEN), WEFT_ERR_STATE);
    CHECK_OK(route(rig->other));
    CHECK_STATUS(route(rig->odd ? rig->other : rig->plain), WEFT_ERR_MISMATCH);
    CHECK_STATUS(dispatch(rig, rig->odd ? rig->other : rig->plain, WEFT_EP_F32, HIDDEN), WEFT_ERR_STATE);
}

static void with_group(weft_world *world, void (*body)(ep_rig *rig))
{
    static const size_t bytes = sizeof(float) * PES * TOKENS * 2 * HIDDEN;
    weft_ep_config config = good_config();
    weft_ep_plan plain = WEFT_EP_PLAN_INIT;
    weft_ep_plan other = WEFT_EP_PLAN_INIT;
    ep_rig rig = {.odd = weft_world_pe(world) == ODD};
    plain.topk = 2;
    other.topk = 1;
    other.layout = WEFT_EP_EXPERT_MAJOR;
    rig.in = aligned_alloc(64, bytes);
    rig.received = aligned_alloc(64, bytes);
    memset(rig.in, 0, bytes);
    memset(rig.received, 0, bytes);
    if (ep_group_open(world, &config, &plain, &rig.ep, &rig.plain) &&
        CHECK_OK(weft_ep_route_create(rig.ep, &other, NULL, &rig.other))) {
        body(&rig);
        CHECK_OK(weft_ep_route_destroy(rig.plain));
        ep_group_close(rig.ep, rig.other);
    }
    free(rig.in);
    free(rig.received);
}

static void run_body(weft_world *world, void *context)
{
    void (*const *body)(ep_rig * rig) = context;
    with_group(world, *body);
}

static void calls(void **state)
{
    (void)state;
    void (*body)(ep_rig * rig) = call_with_differences;
    pes_run(PES, run_body, &body);
}

static void leavings(void **state)
{
    (void)state;
    void (*body)(ep_rig * rig) = what_is_left;
    pes_run(PES, run_body, &body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(configs),
        CHECKED_TEST(even_table),
        CHECKED_TEST(calls),
        CHECKED_TEST(leavings),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* mismatches are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
