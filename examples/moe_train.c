/* A mixture-of-experts layer as training calls it. Run: weftrun -n 4 moe_train
 *
 * Forward and backward of y = sum over k of w[k] * scale[expert k] * x, with two micro-batches in flight: each has a
 * group and a route of its own, so that one's rows may move while the other's experts work. All gradients, those of x,
 * of the gate's weights and of the experts' scales, are compared with the same sums done locally. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>
#include <weft_ep.h>

enum { EXPERTS = 16, TOPK = 4, HIDDEN = 64, TOKENS = 96, BATCHES = 2, STEPS = 3 };

static void check(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, weft_status_name(status), weft_last_error());
        exit(1);
    }
}

/* Uniform in [-1, 1), a pure function of its arguments (splitmix64). */
static float noise(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0x632be59bd9b4e019u + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((int64_t)(z ^ z >> 31) >> 40) * (1.0f / 8388608.0f);
}

/* One micro-batch of this PE. Rows of tokens are [TOKENS][HIDDEN]; received rows [rows_max][HIDDEN], symmetric. */
typedef struct batch {
    weft_ep *ep;
    weft_ep_route *route;
    size_t rows_max;
    int32_t ids[TOKENS][TOPK];
    float weights[TOKENS][TOPK];
    _Alignas(16) float x[TOKENS][HIDDEN]; /* rows begin at multiples of 16 bytes */
    _Alignas(16) float y[TOKENS][HIDDEN];
    _Alignas(16) float grad_y[TOKENS][HIDDEN];
    _Alignas(16) float grad_x[TOKENS][HIDDEN];
    float grad_weights[TOKENS][TOPK];
    float *received;
    float *results;
    float *grad_received; /* and, before the experts' backward, the gradients of the results */
} batch;

static float scale[EXPERTS][HIDDEN];
static float grad_scale[EXPERTS][HIDDEN];

static weft_ep_rows rows_of(void *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static float *symmetric_rows(weft_world *world, size_t rows)
{
    void *block;
    check(weft_calloc(world, rows * HIDDEN, sizeof(float), &block), "rows");
    return block;
}

static void batch_open(batch *b, weft_world *world)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    b->rows_max = (size_t)weft_world_pes(world) * TOKENS * TOPK;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = b->rows_max;
    check(weft_ep_create(weft_team_world(world), &config, &b->ep), "group");
    plan.topk = TOPK;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    check(weft_ep_route_create(b->ep, &plan, NULL, &b->route), "route");
    b->received = symmetric_rows(world, b->rows_max);
    b->results = symmetric_rows(world, b->rows_max);
    b->grad_received = symmetric_rows(world, b->rows_max);
}

static void batch_close(batch *b, weft_world *world)
{
    check(weft_free(world, b->grad_received), "rows");
    check(weft_free(world, b->results), "rows");
    check(weft_free(world, b->received), "rows");
    check(weft_ep_route_destroy(b->route), "route");
    check(weft_ep_destroy(b->ep), "group");
}

/* What the layers before and after this one, and its gate, would give. */
static void batch_draw(batch *b, uint64_t seed)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            b->x[t][h] = noise(seed + 1, (uint64_t)(t * HIDDEN + h));
            b->grad_y[t][h] = noise(seed + 2, (uint64_t)(t * HIDDEN + h));
        }
        for (int k = 0; k < TOPK; k++) {
            int first = (int)(fabsf(noise(seed + 3, (uint64_t)t)) * EXPERTS);
            b->ids[t][k] = (first + k * (1 + t % 3)) % EXPERTS;
            b->weights[t][k] = 0.5f + 0.5f * noise(seed + 4, (uint64_t)(t * TOPK + k));
        }
    }
}

/* [train-forward] */
static void forward_send(batch *b)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows x = rows_of(b->x);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    choices.tokens = TOKENS;
    choices.ids = b->ids;
    choices.weights = &b->weights[0][0];
    received.rows = rows_of(b->received);
    received.rows_capacity = b->rows_max;
    check(weft_ep_route_choose(b->route, &choices), "choose"); /* agreed on by the dispatch, on its way */
    check(weft_ep_dispatch_send(b->route, &x, &received, NULL), "dispatch");
}

static void forward_experts(batch *b)
{
    weft_ep_counts counts;
    weft_ep_host_counts host;
    check(weft_ep_dispatch_recv(b->route, NULL), "dispatch");
    check(weft_ep_route_counts(b->route, &counts), "counts");
    check(weft_ep_route_query(b->route, NULL, &host), "query");
    for (int e = 0; e < host.local_experts; e++) { /* a grouped GEMM in earnest */
        for (int i = counts.offset_of_expert[e]; i < counts.offset_of_expert[e + 1]; i++) {
            for (int h = 0; h < HIDDEN; h++) {
                b->results[i * HIDDEN + h] = scale[host.first_expert + e][h] * b->received[i * HIDDEN + h];
            }
        }
    }
    weft_ep_rows results = rows_of(b->results);
    weft_ep_rows y = rows_of(b->y);
    check(weft_ep_combine_send(b->route, &results, &y, WEFT_EP_WEIGHTED, NULL), "combine");
}

static void forward(batch *batches)
{
    forward_send(&batches[0]);
    for (int i = 0; i < BATCHES; i++) {
        if (i + 1 < BATCHES) {
            forward_send(&batches[i + 1]); /* its rows move while this one's experts work */
        }
        forward_experts(&batches[i]);
    }
    for (int i = 0; i < BATCHES; i++) {
        check(weft_ep_combine_recv(batches[i].route, NULL), "combine");
    }
}
/* [train-forward] */

/* [train-backward] */
static void backward(batch *b)
{
    weft_ep_host_counts host;
    weft_ep_counts counts;
    weft_ep_rows grad_y = rows_of(b->grad_y);
    weft_ep_rows results = rows_of(b->results);
    weft_ep_rows grad_rows = rows_of(b->grad_received);
    weft_ep_rows grad_x = rows_of(b->grad_x);
    /* dy to the experts, times each choice's weight; and the gradient of that weight, <result, dy> */
    check(weft_ep_combine_bwd(b->route, &grad_y, &results, &grad_rows, &b->grad_weights[0][0], WEFT_EP_WEIGHTED, NULL),
          "combine backward");
    check(weft_ep_route_counts(b->route, &counts), "counts");
    check(weft_ep_route_query(b->route, NULL, &host), "query");
    for (int e = 0; e < host.local_experts; e++) { /* the experts' own backward, in place */
        for (int i = counts.offset_of_expert[e] * HIDDEN; i < counts.offset_of_expert[e + 1] * HIDDEN; i++) {
            grad_scale[host.first_expert + e][i % HIDDEN] += b->grad_received[i] * b->received[i];
            b->grad_received[i] *= scale[host.first_expert + e][i % HIDDEN];
        }
    }
    /* back to the tokens, added up; the gate's weights had no part in dispatch, so there is no gradient of them here */
    check(weft_ep_dispatch_bwd(b->route, &grad_rows, NULL, &grad_x, NULL, NULL), "dispatch backward");
}
/* [train-backward] */

static double off(double got, double wanted)
{
    return fabs(got - wanted) / (1.0 + fabs(wanted));
}

/* The same by one PE for its own tokens; returns the largest error. */
static double compare(const batch *b)
{
    double worst = 0.0;
    for (int t = 0; t < TOKENS; t++) {
        double dots[TOPK] = {0};
        for (int h = 0; h < HIDDEN; h++) {
            double y = 0.0;
            double grad_x = 0.0;
            for (int k = 0; k < TOPK; k++) {
                double factor = (double)b->weights[t][k] * (double)scale[b->ids[t][k]][h];
                y += factor * (double)b->x[t][h];
                grad_x += factor * (double)b->grad_y[t][h];
                dots[k] += (double)scale[b->ids[t][k]][h] * (double)b->x[t][h] * (double)b->grad_y[t][h];
            }
            worst = fmax(worst, fmax(off(b->y[t][h], y), off(b->grad_x[t][h], grad_x)));
        }
        for (int k = 0; k < TOPK; k++) {
            worst = fmax(worst, off(b->grad_weights[t][k], dots[k]));
        }
    }
    return worst;
}

int main(void)
{
    static batch batches[BATCHES];
    weft_world *world;
    double worst = 0.0;
    check(weft_world_create(NULL, &world), "world");
    for (int i = 0; i < EXPERTS * HIDDEN; i++) {
        scale[i / HIDDEN][i % HIDDEN] = 1.0f + 0.5f * noise(1, (uint64_t)i);
    }
    for (int i = 0; i < BATCHES; i++) {
        batch_open(&batches[i], world);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCHES; i++) {
            batch_draw(&batches[i], (uint64_t)(1000 * weft_world_pe(world) + 100 * step + 10 * i + 10));
        }
        forward(batches);
        for (int i = BATCHES - 1; i >= 0; i--) {
            backward(&batches[i]);
            worst = fmax(worst, compare(&batches[i]));
        }
    }
    printf("PE %d: %d steps of %d micro-batches, largest error %.1e\n", weft_world_pe(world), STEPS, BATCHES, worst);
    for (int i = 0; i < BATCHES; i++) {
        batch_close(&batches[i], world);
    }
    check(weft_world_destroy(world), "world");
    return worst < 1e-5 ? 0 : 1;
}
