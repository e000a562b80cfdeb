/* Goal: every argument that cannot be is refused by name, before anything is written.
 *
 * Method: a group and a route of one PE; each line of a table changes one thing of a good call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "ep/tuning.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "weft.h"
#include "weft_ep.h"

#define TOKENS 4
#define TOPK 2
#define HIDDEN 16
#define ROWS (TOKENS * TOPK)

static weft_world *world;
static weft_ep *ep;
static weft_ep_route *route; /* updated */
static weft_ep_route *unrouted;
static weft_stream *const some_stream = (weft_stream *)&world;

static const int32_t ids[TOKENS * TOPK] = {0, 1, 1, 2, 2, -1, 0, 3};
static _Alignas(64) unsigned char in_data[ROWS * HIDDEN * 4];
static _Alignas(64) unsigned char out_data[ROWS * HIDDEN * 4];

/* The call must give this status, name the culprit, and leave `bytes` bytes at `what` as they were. */
#define REFUSED(call, status, culprit)                                                                                 \
    do {                                                                                                               \
        CHECK_STATUS(call, status);                                                                                    \
        CHECK_SAY(strstr(weft_last_error(), culprit) != NULL, "\"%s\" does not name %s", weft_last_error(), culprit);  \
        CHECK(out_data[0] == 0xa5 && memcmp(out_data, out_data + 1, sizeof out_data - 1) == 0);                        \
    } while (0)

/* ---- good ones ---- */

static weft_ep_config good_config(void)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 4;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * 4;
    return config;
}

static weft_ep_plan good_plan(void)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = TOPK;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    return plan;
}

static weft_ep_choices good_choices(void)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = ids;
    return choices;
}

static weft_ep_rows good_rows(void *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_ep_received good_received(void)
{
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = good_rows(out_data);
    received.rows_capacity = ROWS;
    return received;
}

static int make(void **state)
{
    (void)state;
    weft_ep_config config = good_config();
    weft_ep_plan plan = good_plan();
    weft_ep_choices choices = good_choices();
    (void)setenv("WEFT_LOG", "none", 0);
    memset(out_data, 0xa5, sizeof out_data);
    return weft_world_create(NULL, &world) != WEFT_OK ||
           weft_ep_create(weft_team_world(world), &config, &ep) != WEFT_OK ||
           weft_ep_route_create(ep, &plan, NULL, &route) != WEFT_OK ||
           weft_ep_route_create(ep, &plan, NULL, &unrouted) != WEFT_OK ||
           weft_ep_route_update(route, &choices, NULL) != WEFT_OK;
}

static int unmake(void **state)
{
    (void)state;
    return weft_ep_destroy(ep) != WEFT_ERR_STATE || weft_ep_route_destroy(route) != WEFT_OK ||
           weft_ep_route_destroy(unrouted) != WEFT_OK || weft_ep_destroy(ep) != WEFT_OK ||
           weft_ep_route_destroy(NULL) != WEFT_OK || weft_ep_destroy(NULL) != WEFT_OK ||
           weft_world_destroy(world) != WEFT_OK;
}

/* ---- bad ones: FIELD of a good VALUE set to WRONG ---- */

#define REFUSED_CONFIG(field, wrong, culprit)                                                                          \
    do {                                                                                                               \
        weft_ep_config bad = good_config();                                                                            \
        weft_ep *no_group = NULL;                                                                                      \
        bad.field = wrong;                                                                                             \
        REFUSED(weft_ep_create(weft_team_world(world), &bad, &no_group), WEFT_ERR_ARGUMENT, culprit);                  \
        CHECK(no_group == NULL);                                                                                       \
    } while (0)

/* Variables of groups. */
static const wefti_env_id settings[] = {
#define ROW(field, id, ...) WEFTI_ENV_##id,
    WEFTI_EP_SETTINGS_TABLE(ROW) WEFTI_EP_OWN_SETTINGS_TABLE(ROW)
#undef ROW
};

static void environment(void **state)
{
    (void)state;
    (void)setenv("WEFT_EP_COUNTS", "both", 1);
    REFUSED_CONFIG(experts, 4, "WEFT_EP_COUNTS is \"both\"");
    (void)unsetenv("WEFT_EP_COUNTS");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *name = wefti_env_entry_of(settings[i])->name;
        (void)setenv(name, "-few", 1);
        REFUSED_CONFIG(experts, 4, name);
        (void)unsetenv(name);
    }
}

static void configs(void **state)
{
    (void)state;
    static const int short_table[] = {3};
    static const int negative_table[] = {-4};
    weft_ep_config config = good_config();
    weft_ep *none = NULL;
    REFUSED(weft_ep_create(NULL, &config, &none), WEFT_ERR_ARGUMENT, "'team'");
    REFUSED(weft_ep_create(weft_team_world(world), &config, NULL), WEFT_ERR_ARGUMENT, "'ep'");
    REFUSED(weft_ep_create(weft_team_world(world), NULL, &none), WEFT_ERR_ARGUMENT, "'config'");
    REFUSED_CONFIG(size, 0, "WEFT_EP_CONFIG_INIT");
    REFUSED_CONFIG(size, SIZE_MAX, "WEFT_EP_CONFIG_INIT");
    REFUSED_CONFIG(experts, 0, "experts");
    REFUSED_CONFIG(experts, -1, "experts");
    REFUSED_CONFIG(experts, INT32_MAX, "experts");
    REFUSED_CONFIG(tokens_max, -1, "tokens_max");
    REFUSED_CONFIG(tokens_max, INT32_MAX, "tokens_max");
    REFUSED_CONFIG(topk_max, 0, "topk_max");
    REFUSED_CONFIG(topk_max, 70000, "topk_max");
    REFUSED_CONFIG(row_bytes_max, 0, "row_bytes_max");
    REFUSED_CONFIG(row_bytes_max, 24, "row_bytes_max");
    REFUSED_CONFIG(row_bytes_max, (size_t)1 << 40, "row_bytes_max");
    REFUSED_CONFIG(rows_max, (size_t)INT32_MAX + 1, "rows_max");
    REFUSED_CONFIG(overflow, (weft_ep_overflow)9, "overflow");
    config.overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    config.pairs_max = 2;
    REFUSED(weft_ep_create(weft_team_world(world), &config, &none), WEFT_ERR_UNSUPPORTED, "pairs_max 2");
    config.pairs_max = 1;
    config.bytes_max = (size_t)1 << 30;
    REFUSED(weft_ep_create(weft_team_world(world), &config, &none), WEFT_ERR_UNSUPPORTED, "bytes_max");
    REFUSED_CONFIG(experts_of_rank, short_table, "experts_of_rank");
    REFUSED_CONFIG(experts_of_rank, negative_table, "experts_of_rank");
}

#define REFUSED_PLAN(field, wrong, culprit)                                                                            \
    do {                                                                                                               \
        weft_ep_plan bad = good_plan();                                                                                \
        weft_ep_route *no_route = NULL;                                                                                \
        size_t no_bytes = 77;                                                                                          \
        bad.field = wrong;                                                                                             \
        REFUSED(weft_ep_route_bytes(ep, &bad, &no_bytes), WEFT_ERR_ARGUMENT, culprit);                                 \
        REFUSED(weft_ep_route_create(ep, &bad, NULL, &no_route), WEFT_ERR_ARGUMENT, culprit);                          \
        CHECK(no_bytes == 77 && no_route == NULL);                                                                     \
    } while (0)

static void plans(void **state)
{
    (void)state;
    weft_ep_plan plan = good_plan();
    weft_ep_route *none = NULL;
    size_t bytes = 0;
    REFUSED(weft_ep_route_bytes(NULL, &plan, &bytes), WEFT_ERR_ARGUMENT, "'ep'");
    REFUSED(weft_ep_route_bytes(ep, NULL, &bytes), WEFT_ERR_ARGUMENT, "'plan'");
    REFUSED(weft_ep_route_bytes(ep, &plan, NULL), WEFT_ERR_ARGUMENT, "'bytes'");
    REFUSED(weft_ep_route_create(NULL, &plan, NULL, &none), WEFT_ERR_ARGUMENT, "'ep'");
    REFUSED(weft_ep_route_create(ep, &plan, NULL, NULL), WEFT_ERR_ARGUMENT, "'route'");
    REFUSED(weft_ep_route_create(ep, &plan, in_data + 16, &none), WEFT_ERR_ARGUMENT, "aligned");
    REFUSED_PLAN(size, 1, "WEFT_EP_PLAN_INIT");
    REFUSED_PLAN(topk, 0, "topk");
    REFUSED_PLAN(topk, TOPK + 1, "topk");
    REFUSED_PLAN(layout, (weft_ep_layout)7, "layout");
    REFUSED_PLAN(alignment, -1, "alignment");
}

#define REFUSED_CHOICES(field, wrong, culprit)                                                                         \
    do {                                                                                                               \
        weft_ep_choices bad = good_choices();                                                                          \
        bad.field = wrong;                                                                                             \
        REFUSED(weft_ep_route_update(route, &bad, NULL), WEFT_ERR_ARGUMENT, culprit);                                  \
    } while (0)

static void updates(void **state)
{
    (void)state;
    weft_ep_choices choices = good_choices();
    weft_ep_counts counts;
    weft_ep_host_counts host;
    REFUSED(weft_ep_route_update(NULL, &choices, NULL), WEFT_ERR_ARGUMENT, "'route'");
    REFUSED(weft_ep_route_update(route, NULL, NULL), WEFT_ERR_ARGUMENT, "'choices'");
    REFUSED(weft_ep_route_update(route, &choices, some_stream), WEFT_ERR_UNSUPPORTED, "streams");
    REFUSED_CHOICES(size, 3, "WEFT_EP_CHOICES_INIT");
    REFUSED_CHOICES(tokens, -1, "tokens");
    REFUSED_CHOICES(tokens, TOKENS + 1, "tokens");
    REFUSED_CHOICES(id_type, (weft_ep_id_type)5, "id_type");
    REFUSED_CHOICES(ids, NULL, "ids");
    REFUSED(weft_ep_route_counts(unrouted, &counts), WEFT_ERR_STATE, "weft_ep_route_update");
    REFUSED(weft_ep_route_counts(NULL, &counts), WEFT_ERR_ARGUMENT, "'route'");
    REFUSED(weft_ep_route_counts(route, NULL), WEFT_ERR_ARGUMENT, "'counts'");
    REFUSED(weft_ep_route_query(unrouted, NULL, &host), WEFT_ERR_STATE, "weft_ep_route_update");
    REFUSED(weft_ep_route_query(route, NULL, NULL), WEFT_ERR_ARGUMENT, "'counts'");
    REFUSED(weft_ep_route_query(route, some_stream, &host), WEFT_ERR_UNSUPPORTED, "streams");
}

/* A wrong field of either of the rows of dispatch and combine. */
#define REFUSED_ROWS(field, wrong, culprit)                                                                            \
    do {                                                                                                               \
        weft_ep_rows in = good_rows(in_data);                                                                          \
        weft_ep_rows bad = good_rows(out_data);                                                                        \
        weft_ep_received out = good_received();                                                                        \
        bad.field = wrong;                                                                                             \
        REFUSED(weft_ep_dispatch(route, &bad, &out, NULL), WEFT_ERR_ARGUMENT, culprit);                                \
        out.rows.field = wrong;                                                                                        \
        REFUSED(weft_ep_dispatch(route, &in, &out, NULL), WEFT_ERR_ARGUMENT, culprit);                                 \
        REFUSED(weft_ep_combine(route, &bad, &in, 0, NULL), WEFT_ERR_ARGUMENT, culprit);                               \
        REFUSED(weft_ep_combine(route, &in, &bad, 0, NULL), WEFT_ERR_ARGUMENT, culprit);                               \
    } while (0)

static void rows(void **state)
{
    (void)state;
    REFUSED_ROWS(size, 2, "WEFT_EP_ROWS_INIT");
    REFUSED_ROWS(data, NULL, "data");
    REFUSED_ROWS(data, out_data + 8, "data");
    REFUSED_ROWS(dtype, (weft_ep_dtype)0, "dtype");
    REFUSED_ROWS(hidden, 0, "hidden");
    REFUSED_ROWS(hidden, -4, "hidden");
    REFUSED_ROWS(hidden, 6, "hidden");
    REFUSED_ROWS(hidden, 2 * HIDDEN, "hidden");
    REFUSED_ROWS(stride_bytes, HIDDEN * 4 - 16, "stride_bytes");
    REFUSED_ROWS(stride_bytes, HIDDEN * 4 + 8, "stride_bytes");
}

static void moves(void **state)
{
    (void)state;
    weft_ep_rows in = good_rows(in_data);
    weft_ep_rows out = good_rows(out_data);
    weft_ep_received received = good_received();
    REFUSED(weft_ep_dispatch(NULL, &in, &received, NULL), WEFT_ERR_ARGUMENT, "'route'");
    REFUSED(weft_ep_dispatch(unrouted, &in, &received, NULL), WEFT_ERR_STATE, "weft_ep_route_update");
    REFUSED(weft_ep_dispatch(route, NULL, &received, NULL), WEFT_ERR_ARGUMENT, "in");
    REFUSED(weft_ep_dispatch(route, &in, NULL, NULL), WEFT_ERR_ARGUMENT, "out");
    in.dtype = WEFT_EP_BF16; /* the other is not */
    REFUSED(weft_ep_dispatch(route, &in, &received, NULL), WEFT_ERR_ARGUMENT, "dtype");
    in.dtype = out.dtype;
    received.rows.dtype = WEFT_EP_BF16;
    REFUSED(weft_ep_dispatch(route, &in, &received, NULL), WEFT_ERR_ARGUMENT, "dtype");
    received.rows.dtype = out.dtype;
    received.scale_group_stride = 1;
    REFUSED(weft_ep_dispatch(route, &in, &received, NULL), WEFT_ERR_ARGUMENT, "scale_group_stride");
    received.scale_group_stride = 0;
    REFUSED(weft_ep_dispatch(route, &in, &received, some_stream), WEFT_ERR_UNSUPPORTED, "streams");
    received.rows_capacity = 6; /* of 7 */
    REFUSED(weft_ep_dispatch(route, &in, &received, NULL), WEFT_ERR_RANGE, "6 rows and 7 come");
    received.size = 8;
    REFUSED(weft_ep_dispatch(route, &in, &received, NULL), WEFT_ERR_ARGUMENT, "WEFT_EP_RECEIVED_INIT");
    REFUSED(weft_ep_combine(NULL, &in, &out, 0, NULL), WEFT_ERR_ARGUMENT, "'route'");
    REFUSED(weft_ep_combine(unrouted, &in, &out, 0, NULL), WEFT_ERR_STATE, "weft_ep_route_update");
    REFUSED(weft_ep_combine(route, NULL, &out, 0, NULL), WEFT_ERR_ARGUMENT, "in");
    REFUSED(weft_ep_combine(route, &in, NULL, 0, NULL), WEFT_ERR_ARGUMENT, "out");
    REFUSED(weft_ep_combine(route, &in, &out, 2, NULL), WEFT_ERR_ARGUMENT, "flags");
    REFUSED(weft_ep_combine(route, &in, &out, 0, some_stream), WEFT_ERR_UNSUPPORTED, "streams");
}

/* After all that was refused, the group works: rows of one PE to itself, and their sum back. */
static void still_good(void **state)
{
    (void)state;
    float *values = (float *)(void *)in_data;
    static _Alignas(64) float received_data[ROWS * HIDDEN];
    static _Alignas(64) float sums[TOKENS * HIDDEN];
    weft_ep_received out = good_received();
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        values[i] = (float)i;
    }
    weft_ep_rows in = good_rows(in_data);
    out.rows = good_rows(received_data);
    CHECK_OK(weft_ep_dispatch(route, &in, &out, NULL));
    /* Of newer headers, and of older ones, which have no fields beyond `scales` but something else there. */
    struct {
        weft_ep_rows rows;
        uint64_t more;
    } received = {.rows = good_rows(received_data)};
    weft_ep_rows sum = good_rows(sums);
    received.rows.size = sizeof received;
    sum.size = offsetof(weft_ep_rows, scales);
    sum.scales = sums;
    sum.scale_type = WEFT_EP_SCALE_UE8M0;
    CHECK_OK(weft_ep_combine(route, &received.rows, &sum, 0, NULL));
    received.more = 1;
    CHECK_STATUS(weft_ep_combine(route, &received.rows, &sum, 0, NULL), WEFT_ERR_ARGUMENT);
    sum.size = sizeof sum;
    CHECK_STATUS(weft_ep_combine(route, &received.rows, &sum, 0, NULL), WEFT_ERR_ARGUMENT);
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        float choices = i / HIDDEN == 2 ? 1.0f : 2.0f;
        CHECK_SAY(sums[i] == choices * values[i], "element %d is %g", i, (double)sums[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(configs), CHECKED_TEST(environment), CHECKED_TEST(plans),      CHECKED_TEST(updates),
        CHECKED_TEST(rows),    CHECKED_TEST(moves),       CHECKED_TEST(still_good),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
