/* A mixture-of-experts layer in 50 lines: expert e of PE e adds e to what it gets. `weftrun -n 4 moe_least` */
#include <stdio.h>
#include <stdlib.h>
#include <weft_ep.h>

enum { TOKENS = 2, HIDDEN = 4, PES_MAX = 64 };

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        exit(fprintf(stderr, "%s\n", weft_last_error()) > 0);
    }
}

int main(void)
{
    static _Alignas(16) float x[TOKENS][HIDDEN], work[PES_MAX * TOKENS][HIDDEN];
    weft_world *world;
    weft_ep *group;
    weft_ep_route *route;
    weft_ep_counts counts;
    check(weft_world_create(NULL, &world));
    const int pe = weft_world_pe(world), pes = weft_world_pes(world);
    const int32_t ids[TOKENS] = {(pe + 1) % pes, pe}; /* the expert of each token */
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = pes, config.tokens_max = TOKENS, config.topk_max = 1, config.row_bytes_max = sizeof x[0];
    check(weft_ep_create(weft_team_world(world), &config, &group));
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 1;
    check(weft_ep_route_create(group, &plan, NULL, &route));
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS, choices.ids = ids;
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = x, rows.dtype = WEFT_EP_F32, rows.hidden = HIDDEN;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows, received.rows.data = work, received.rows_capacity = PES_MAX * TOKENS;
    check(weft_ep_route_choose(route, &choices));
    check(weft_ep_dispatch(route, &rows, &received, NULL)); /* each token to the PE of its expert */
    check(weft_ep_route_counts(route, &counts));
    for (int i = 0; i < counts.rows[0] * HIDDEN; i++) {
        work[i / HIDDEN][i % HIDDEN] += (float)pe; /* the expert */
    }
    check(weft_ep_combine(route, &received.rows, &rows, 0, NULL)); /* and back into x */
    int right = *counts.status == WEFT_OK && x[0][0] == (float)ids[0] && x[1][0] == (float)pe; /* no id was bad */
    printf("PE %d: %s\n", pe, right ? "right" : "wrong");
    check(weft_ep_route_destroy(route));
    check(weft_ep_destroy(group));
    check(weft_world_destroy(world));
    return !right;
}
