/* Expert parallelism with two choices a token: route, dispatch, combine. Each PE owns one expert, which multiplies a
 * row by its number plus one. Run it as `weftrun -n 4 moe_minimal`. */
#include <stdio.h>
#include <stdlib.h>
#include <weft_ep.h>

enum { TOKENS = 3, TOPK = 2, HIDDEN = 4, PES_MAX = 64 };

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
        exit(1);
    }
}

static weft_ep_rows rows_at(void *data)
{
    return (weft_ep_rows){.size = sizeof(weft_ep_rows), .data = data, .dtype = WEFT_EP_F32, .hidden = HIDDEN};
}

int main(void)
{
    static _Alignas(16) float x[TOKENS][HIDDEN], y[TOKENS][HIDDEN], work[PES_MAX * TOKENS * TOPK][HIDDEN];
    static int32_t ids[TOKENS][TOPK];
    weft_world *world;
    weft_ep *group;
    weft_ep_route *route;
    weft_ep_counts counts;
    int wrong = 0;
    check(weft_world_create(NULL, &world));
    const int pe = weft_world_pe(world), pes = weft_world_pes(world);

    weft_ep_config config = WEFT_EP_CONFIG_INIT; /* of the group: what no call exceeds */
    config.experts = pes;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = sizeof x[0];
    check(weft_ep_create(weft_team_world(world), &config, &group));
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = TOPK;
    plan.layout = WEFT_EP_EXPERT_MAJOR; /* a row a choice */
    check(weft_ep_route_create(group, &plan, NULL, &route));

    for (int t = 0; t < TOKENS; t++) {
        ids[t][0] = (pe + t) % pes;
        ids[t][1] = pes > 1 ? (pe + t + 1) % pes : -1; /* -1: none */
        for (int h = 0; h < HIDDEN; h++) {
            x[t][h] = (float)(100 * pe + 10 * t + h);
        }
    }
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = &ids[0][0];
    weft_ep_rows in = rows_at(x), out = rows_at(y);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_at(work);
    received.rows_capacity = PES_MAX * TOKENS * TOPK;
    check(weft_ep_route_update(route, &choices, NULL));
    check(weft_ep_dispatch(route, &in, &received, NULL));
    check(weft_ep_route_counts(route, &counts));
    for (int row = 0; row < counts.rows[0]; row++) { /* the expert */
        for (int h = 0; h < HIDDEN; h++) {
            work[row][h] *= (float)(pe + 1);
        }
    }
    check(weft_ep_combine(route, &received.rows, &out, 0, NULL)); /* adds up each token's rows */

    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            wrong += y[t][h] != x[t][h] * (float)(ids[t][0] + 1 + ids[t][1] + 1);
        }
    }
    printf("PE %d: %s\n", pe, wrong == 0 ? "right" : "wrong");
    check(weft_ep_route_destroy(route));
    check(weft_ep_destroy(group));
    check(weft_world_destroy(world));
    return wrong != 0;
}
