/* support/ep_scene.c: a small step of expert parallelism written out by hand. */
#include "support/ep_scene.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/ep_number.h"
#include "support/pes.h"

static int hidden_of(const scene *s)
{
    return SCENE_ROW_BYTES / (int)ep_element_bytes(s->dtype);
}

static void set_row(const scene *s, void *rows, int row, float value)
{
    size_t bytes = ep_element_bytes(s->dtype);
    uint32_t bits = ep_value_bits(s->dtype, value);
    for (int column = 0; column < hidden_of(s); column++) {
        memcpy((char *)rows + (size_t)row * SCENE_ROW_BYTES + (size_t)column * bytes, &bits, bytes);
    }
}

static float get_row(const scene *s, const void *rows, int row)
{
    size_t bytes = ep_element_bytes(s->dtype);
    uint32_t first = 0;
    for (int column = 0; column < hidden_of(s); column++) {
        uint32_t bits = 0;
        memcpy(&bits, (const char *)rows + (size_t)row * SCENE_ROW_BYTES + (size_t)column * bytes, bytes);
        first = column == 0 ? bits : first;
        CHECK_SAY(bits == first, "row %d is not one value", row);
    }
    return (float)ep_bits_value(s->dtype, first);
}

static weft_ep_rows rows_at(const scene *s, void *data)
{
    return ep_rows(data, s->dtype, hidden_of(s));
}

static int is_by_expert(const scene *s)
{
    return s->layout == WEFT_EP_EXPERT_MAJOR || s->layout == WEFT_EP_SLOTS_EXPERT;
}

static void look_at_counts(scene *s, weft_ep_route *route, int rank)
{
    scene_seen *seen = &s->seen[rank];
    weft_ep_host_counts host;
    weft_ep_counts counts;
    if (!CHECK_OK(weft_ep_route_query(route, NULL, &host)) || !CHECK_OK(weft_ep_route_counts(route, &counts))) {
        return;
    }
    seen->status = host.status;
    seen->rows = host.rows;
    seen->dropped = host.dropped;
    seen->dropped_rows = host.dropped_rows;
    memcpy(seen->rows_of_source, counts.rows_of_source, (size_t)s->ranks * sizeof(int));
    memcpy(seen->rows_of_expert, counts.rows_of_expert, (size_t)host.local_experts * sizeof(int));
}

static void dispatch(scene *s, weft_ep_route *route, int rank, void *received)
{
    scene_seen *seen = &s->seen[rank];
    static const float untouched = SCENE_UNTOUCHED;
    unsigned char in[SCENE_TOKENS_MAX * SCENE_ROW_BYTES] __attribute__((aligned(16)));
    float weights[SCENE_ROWS_MAX * SCENE_TOPK_MAX];
    int32_t experts[SCENE_ROWS_MAX * SCENE_TOPK_MAX];
    int width = is_by_expert(s) ? 1 : s->topk;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows tokens = rows_at(s, in);
    for (int token = 0; token < s->tokens[rank]; token++) {
        set_row(s, in, token, (float)(10 * rank + token + 1));
    }
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        set_row(s, received, row, untouched);
    }
    out.rows = rows_at(s, received);
    out.rows_capacity = SCENE_ROWS_MAX;
    out.weights = weights;
    out.experts = experts;
    out.source_rank = seen->source_rank;
    out.source_token = seen->source_token;
    seen->dispatched = weft_ep_dispatch(route, &tokens, &out, NULL);
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        seen->received[row] = get_row(s, received, row);
        for (int i = 0; i < width && row < seen->rows && seen->dispatched == WEFT_OK; i++) {
            seen->experts[row][i] = experts[row * width + i];
            seen->weights[row][i] = weights[row * width + i];
        }
    }
}

static void combine(scene *s, weft_ep_route *route, int rank, void *results)
{
    scene_seen *seen = &s->seen[rank];
    unsigned char out[SCENE_TOKENS_MAX * SCENE_ROW_BYTES] __attribute__((aligned(16)));
    weft_ep_rows in = rows_at(s, results);
    weft_ep_rows sums = rows_at(s, out);
    memset(out, 0xff, sizeof out); /* NaN */
    for (int row = 0; row < seen->rows && s->result != NULL; row++) {
        set_row(s, results, row, s->result(rank, row, seen));
    }
    seen->combined = weft_ep_combine(route, &in, &sums, s->flags, NULL);
    for (int token = 0; token < s->tokens[rank] && seen->combined == WEFT_OK; token++) {
        seen->out[token] = get_row(s, out, token);
    }
}

static void backward(scene *s, weft_ep_route *route, int rank, void *results)
{
    static _Thread_local unsigned char ones[SCENE_ROWS_MAX * SCENE_ROW_BYTES] __attribute__((aligned(16)));
    static _Thread_local unsigned char out[SCENE_ROWS_MAX * SCENE_ROW_BYTES] __attribute__((aligned(16)));
    scene_seen *seen = &s->seen[rank];
    float grad_weights[SCENE_ROWS_MAX * SCENE_TOPK_MAX];
    weft_ep_rows given = rows_at(s, ones);
    weft_ep_rows wanted = rows_at(s, out);
    weft_ep_rows rows = rows_at(s, results);
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        set_row(s, ones, row, 1.0f);
        for (int k = 0; k < SCENE_TOPK_MAX; k++) {
            grad_weights[row * SCENE_TOPK_MAX + k] = 1.0f;
        }
    }
    memset(out, 0xff, sizeof out); /* NaN */
    CHECK_OK(weft_ep_dispatch_bwd(route, &given, grad_weights, &wanted, seen->grad_weights, NULL));
    for (int token = 0; token < s->tokens[rank]; token++) {
        seen->grad_in[token] = get_row(s, out, token);
    }
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        set_row(s, out, row, SCENE_UNTOUCHED);
    }
    CHECK_OK(weft_ep_combine_bwd(route, &given, &rows, &wanted, seen->dots, WEFT_EP_WEIGHTED, NULL));
    for (int row = 0; row < SCENE_ROWS_MAX; row++) {
        seen->grad_rows[row] = get_row(s, out, row);
    }
}

static void run_step(scene *s, weft_ep_route *route, int rank)
{
    static _Thread_local unsigned char received[SCENE_ROWS_MAX * SCENE_ROW_BYTES] __attribute__((aligned(16)));
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = s->tokens[rank];
    choices.tokens_at = rank == 0 ? s->tokens_at : NULL;
    choices.ids = s->ids[rank];
    choices.weights = s->weighted ? s->weights[rank] : NULL;
    memset(&s->seen[rank], 0, sizeof s->seen[rank]);
    if (CHECK_OK(weft_ep_route_update(route, &choices, NULL))) {
        look_at_counts(s, route, rank);
        dispatch(s, route, rank, received);
        combine(s, route, rank, received);
        if (s->backward) {
            backward(s, route, rank, received);
        }
    }
}

static void run(weft_world *world, void *context)
{
    scene *s = context;
    int rank = weft_world_pe(world);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep *ep;
    weft_ep_route *route;
    config.experts = s->experts;
    config.tokens_max = SCENE_TOKENS_MAX;
    config.topk_max = s->topk;
    config.row_bytes_max = SCENE_ROW_BYTES;
    config.domain_of = s->domain_of;
    config.rows_max = s->rows_max;
    config.overflow = s->overflow;
    plan.topk = s->topk;
    plan.layout = s->layout;
    plan.alignment = s->alignment;
    plan.flags = s->plan_flags;
    plan.slot_tokens = s->slot_tokens;
    if (ep_group_open(world, &config, &plan, &ep, &route)) {
        run_step(s, route, rank);
        ep_group_close(ep, route);
    }
}

void scene_run(scene *s)
{
    pes_run(s->ranks, run, s);
}
