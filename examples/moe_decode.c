/* A mixture-of-experts layer as decoding calls it. Run: weftrun -n 4 moe_decode
 *
 * A few tokens a step, a fresh routing each step, rows in fp8 into fixed slots by expert, as masked grouped GEMMs read
 * them: no count is waited for on the host, and what needs no other PE (a shared expert) runs between the halves. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>
#include <weft_ep.h>

enum { EXPERTS = 16, TOPK = 2, HIDDEN = 256, TOKENS = 8, STEPS = 20, GROUPS = (HIDDEN + 127) / 128 };

static void check(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, weft_status_name(status), weft_last_error());
        exit(1);
    }
}

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* nearest, ties to even; no NaN here */
}

static float from_fp8(uint8_t bits)
{
    float magnitude =
        (bits & 0x78) != 0 ? ldexpf((float)(8 + (bits & 7)), (bits >> 3 & 15) - 10) : ldexpf((float)(bits & 7), -9);
    return bits & 0x80 ? -magnitude : magnitude;
}

/* What one PE has. S is PEs * TOKENS, the slots of an expert. */
typedef struct decoder {
    weft_world *world;
    int pe;
    int pes;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_host_counts host;
    weft_ep_counts counts;
    _Alignas(16) uint16_t x[TOKENS][HIDDEN]; /* rows begin at multiples of 16 bytes */
    _Alignas(16) uint16_t y[TOKENS][HIDDEN];
    float shared[TOKENS][HIDDEN];
    int32_t ids[TOKENS][TOPK];
    float weights[TOKENS][TOPK];
    size_t slots; /* S times the experts here */
    uint8_t *received; /* [slots][HIDDEN] fp8, symmetric */
    float *scales; /* [slots][GROUPS], symmetric */
    uint16_t *results; /* [slots][HIDDEN] bf16, symmetric */
} decoder;

static void *symmetric(weft_world *world, size_t bytes)
{
    void *block;
    check(weft_calloc(world, bytes, 1, &block), "memory");
    return block;
}

static void open_decoder(decoder *d)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    d->pe = weft_world_pe(d->world);
    d->pes = weft_world_pes(d->world);
    size_t experts = (size_t)((EXPERTS + d->pes - 1) / d->pes);
    d->slots = experts * (size_t)d->pes * TOKENS;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(uint16_t);
    check(weft_ep_create(weft_team_world(d->world), &config, &d->ep), "group");
    plan.topk = TOPK;
    plan.layout = WEFT_EP_SLOTS_EXPERT;
    check(weft_ep_route_create(d->ep, &plan, NULL, &d->route), "route");
    d->received = symmetric(d->world, d->slots * HIDDEN);
    d->scales = symmetric(d->world, d->slots * GROUPS * sizeof(float));
    d->results = symmetric(d->world, d->slots * HIDDEN * sizeof(uint16_t));
}

static void close_decoder(decoder *d)
{
    check(weft_free(d->world, d->results), "memory");
    check(weft_free(d->world, d->scales), "memory");
    check(weft_free(d->world, d->received), "memory");
    check(weft_ep_route_destroy(d->route), "route");
    check(weft_ep_destroy(d->ep), "group");
}

/* The tokens of a step, and what the gate says of them. */
static void draw(decoder *d, int step)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            d->x[t][h] = to_bf16(sinf((float)(1 + d->pe + 3 * t + 7 * h + 11 * step)));
        }
        for (int k = 0; k < TOPK; k++) {
            d->ids[t][k] = (d->pe + 5 * t + 3 * step + 7 * k) % EXPERTS;
            d->weights[t][k] = k == 0 ? 0.75f : 0.25f;
        }
    }
}

/* An expert multiplies by a number of its own. */
static float factor_of(int expert)
{
    return 1.0f + (float)expert / EXPERTS;
}

/* A masked grouped GEMM in earnest: of expert e's slots, the first rows_of_expert[e] are there. */
static void run_experts(decoder *d)
{
    for (int e = 0; e < d->host.local_experts; e++) {
        size_t first = (size_t)d->counts.offset_of_expert[e];
        for (size_t row = first; row < first + (size_t)d->counts.rows_of_expert[e]; row++) {
            for (size_t h = 0; h < HIDDEN; h++) {
                float value = from_fp8(d->received[row * HIDDEN + h]) * d->scales[row * GROUPS + h / 128];
                d->results[row * HIDDEN + h] = to_bf16(value * factor_of(d->host.first_expert + e));
            }
        }
    }
}

static void run_shared_expert(decoder *d)
{
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        d->shared[i / HIDDEN][i % HIDDEN] = 0.5f * from_bf16(d->x[i / HIDDEN][i % HIDDEN]);
    }
}

/* [decode-step] */
static void step(decoder *d)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows x = {.size = sizeof x, .data = d->x, .dtype = WEFT_EP_BF16, .hidden = HIDDEN};
    weft_ep_rows y = {.size = sizeof y, .data = d->y, .dtype = WEFT_EP_BF16, .hidden = HIDDEN};
    weft_ep_rows results = {.size = sizeof results, .data = d->results, .dtype = WEFT_EP_BF16, .hidden = HIDDEN};
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    choices.tokens = TOKENS;
    choices.ids = d->ids;
    choices.weights = &d->weights[0][0];
    received.rows.data = d->received;
    received.rows.dtype = WEFT_EP_FP8_E4M3; /* quantised by the sender */
    received.rows.hidden = HIDDEN;
    received.rows.scales = d->scales;
    received.rows.scale_type = WEFT_EP_SCALE_F32;
    received.rows_capacity = d->slots;
    check(weft_ep_route_choose(d->route, &choices), "choose");
    check(weft_ep_dispatch_send(d->route, &x, &received, NULL), "dispatch");
    run_shared_expert(d);
    check(weft_ep_dispatch_recv(d->route, NULL), "dispatch");
    check(weft_ep_route_counts(d->route, &d->counts), "counts");
    check(weft_ep_route_query(d->route, NULL, &d->host), "query");
    run_experts(d);
    check(weft_ep_combine_send(d->route, &results, &y, WEFT_EP_WEIGHTED, NULL), "combine");
    check(weft_ep_combine_recv(d->route, NULL), "combine");
}
/* [decode-step] */

/* The largest error of y, as a part of the largest |x|; fp8 alone gives 2^-4. */
static double compare(const decoder *d)
{
    double worst = 0.0;
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            double wanted = 0.0;
            for (int k = 0; k < TOPK; k++) {
                wanted += (double)(d->weights[t][k] * factor_of(d->ids[t][k]) * from_bf16(d->x[t][h]));
            }
            worst = fmax(worst, fabs((double)from_bf16(d->y[t][h]) - wanted));
        }
    }
    return worst;
}

int main(void)
{
    static decoder d;
    double worst = 0.0;
    check(weft_world_create(NULL, &d.world), "world");
    open_decoder(&d);
    for (int i = 0; i < STEPS; i++) {
        draw(&d, i);
        step(&d);
        worst = fmax(worst, compare(&d));
    }
    printf("PE %d: %d steps of %d tokens, largest error %.3f\n", d.pe, STEPS, TOKENS, worst);
    close_decoder(&d);
    check(weft_world_destroy(d.world), "world");
    return worst < 0.15 ? 0 : 1;
}
