/* Goal: the backward calls are the transposes of the forward ones:
 * <dispatch(x), g> = <x, dispatch_bwd(g)>, the same for the weights that
 * dispatch brings, for combine, plain and weighted, and for the weights of
 * combine.
 *
 * Method: random routings (support/ep_case.h) in every layout; both products are
 * added up over all ranks in double precision. With small integers all is exact
 * and they must be equal. With reals they may differ by what the calls round:
 * four times the roundoff of the rows' type times the sum of the magnitudes of
 * all products. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/ep_reference.h"
#include "support/pes.h"

#define CASES 60

static uint64_t seed;

/* One side of an equation is <forward, g>, the other <x, backward>. */
typedef struct products {
    double forward;
    double backward;
    double magnitude;
} products;

/* What is compared in each case, over all ranks. */
enum { OF_DISPATCH, OF_RECEIVED_WEIGHTS, OF_COMBINE, OF_WEIGHTED_COMBINE, OF_WEIGHTS, EQUATIONS };
static const char *const equations[EQUATIONS] = {"dispatch", "received weights", "combine", "weighted combine",
                                                 "weights of combine"};

typedef struct board {
    products of[EP_RANKS_MAX][EQUATIONS];
} board;

/* One rank in one case. */
typedef struct rig {
    const ep_case *one;
    const ep_routing *routing;
    weft_ep_route *route;
    int rank;
    int is_exact;
    weft_ep_dtype dtype;
    int hidden;
    unsigned salt;
    products *of; /* [EQUATIONS] */
} rig;

static ep_payload payload_of(const rig *r, unsigned salt)
{
    ep_payload payload = {.dtype = r->dtype, .hidden = r->hidden, .salt = r->salt + salt};
    payload.fill = r->is_exact ? EP_FILL_INTEGER : EP_FILL_REAL;
    return payload;
}

static int64_t rows_of(const rig *r)
{
    return r->routing->side[r->rank].rows;
}

/* Rows, filled from a payload unless it is NULL; zero where a received row is
 * not there. */
static weft_ep_rows create_rows(const rig *r, int64_t count, const ep_payload *payload, int is_received)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    size_t bytes = (size_t)r->hidden * ep_element_bytes(r->dtype);
    rows.data = calloc((size_t)count + 1, bytes);
    rows.dtype = r->dtype;
    rows.hidden = r->hidden;
    for (int64_t row = 0; row < count && payload != NULL; row++) {
        if (!is_received || r->routing->side[r->rank].row[row].source >= 0) {
            ep_row_fill(payload, r->rank, (int)row, (char *)rows.data + (size_t)row * bytes);
        }
    }
    return rows;
}

/* <a, b> of `count` rows, and in *magnitude the sum of the products'
 * magnitudes. */
static double multiply(const weft_ep_rows *a, const weft_ep_rows *b, int64_t count, double *magnitude)
{
    double sum = 0.0;
    *magnitude = 0.0;
    for (int64_t i = 0; i < count * a->hidden; i++) {
        double product = ep_bits_value(a->dtype, ep_element_get(a->dtype, a->data, (int)i)) *
                         ep_bits_value(b->dtype, ep_element_get(b->dtype, b->data, (int)i));
        sum += product;
        *magnitude += fabs(product);
    }
    return sum;
}

static double multiply_floats(const float *a, const float *b, size_t count, double *magnitude)
{
    double sum = 0.0;
    *magnitude = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)a[i] * (double)b[i];
        *magnitude += fabs((double)a[i] * (double)b[i]);
    }
    return sum;
}

static float number(const rig *r, uint64_t *state)
{
    return r->is_exact ? (float)((int)random_below(state, 5) - 2) : (float)random_below(state, 1000) / 700.0f - 0.5f;
}

static float *create_floats(const rig *r, size_t count, int draw)
{
    float *floats = calloc(count + 1, sizeof *floats);
    uint64_t state = r->salt + 77 * (uint64_t)r->rank;
    for (size_t i = 0; i < count && draw; i++) {
        floats[i] = number(r, &state);
    }
    return floats;
}

/* The weights of this rank's choices as the routing has them. */
static float *own_weights(const rig *r)
{
    int topk = r->one->plan.topk;
    float *weights = create_floats(r, (size_t)r->one->tokens[r->rank] * (size_t)topk, 0);
    for (int i = 0; i < r->one->tokens[r->rank] * topk; i++) {
        weights[i] = ep_weight(r->one, r->rank, i / topk, i % topk);
    }
    return weights;
}

static void dispatch_there_and_back(const rig *r)
{
    int tokens = r->one->tokens[r->rank];
    size_t choices = (size_t)tokens * (size_t)r->one->plan.topk;
    size_t labels = (size_t)rows_of(r) * (size_t)ep_row_width(&r->one->plan);
    ep_payload of_x = payload_of(r, 1);
    ep_payload of_g = payload_of(r, 2);
    weft_ep_rows x = create_rows(r, tokens, &of_x, 0);
    weft_ep_rows g = create_rows(r, rows_of(r), &of_g, 1);
    weft_ep_rows grad_x = create_rows(r, tokens, NULL, 0);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    float *grad_received = create_floats(r, labels, 1);
    float *grad_weights = create_floats(r, choices, 0);
    float *weights = own_weights(r);
    products *rows = &r->of[OF_DISPATCH];
    products *of_weights = &r->of[OF_RECEIVED_WEIGHTS];
    double unused;
    received.rows = create_rows(r, rows_of(r), NULL, 1);
    received.rows_capacity = (size_t)rows_of(r);
    received.weights = create_floats(r, labels, 0);
    CHECK_OK(weft_ep_dispatch(r->route, &x, &received, NULL));
    CHECK_OK(weft_ep_dispatch_bwd(r->route, &g, grad_received, &grad_x, grad_weights, NULL));
    rows->forward = multiply(&received.rows, &g, rows_of(r), &rows->magnitude);
    rows->backward = multiply(&x, &grad_x, tokens, &unused);
    of_weights->forward = multiply_floats(received.weights, grad_received, labels, &of_weights->magnitude);
    of_weights->backward = multiply_floats(weights, grad_weights, choices, &unused);
    free(x.data);
    free(g.data);
    free(grad_x.data);
    free(received.rows.data);
    free(received.weights);
    free(grad_received);
    free(grad_weights);
    free(weights);
}

static void combine_there_and_back(const rig *r, unsigned flags)
{
    int tokens = r->one->tokens[r->rank];
    size_t choices = (size_t)tokens * (size_t)r->one->plan.topk;
    ep_payload of_x = payload_of(r, 3 + flags);
    ep_payload of_g = payload_of(r, 5 + flags);
    weft_ep_rows x = create_rows(r, rows_of(r), &of_x, 1);
    weft_ep_rows y = create_rows(r, tokens, NULL, 0);
    weft_ep_rows g = create_rows(r, tokens, &of_g, 0);
    weft_ep_rows grad_x = create_rows(r, rows_of(r), NULL, 1);
    float *weights = own_weights(r);
    float *grad_weights = create_floats(r, choices, 0);
    products *rows = &r->of[flags != 0 ? OF_WEIGHTED_COMBINE : OF_COMBINE];
    products *of_weights = &r->of[OF_WEIGHTS];
    double unused;
    CHECK_OK(weft_ep_combine(r->route, &x, &y, flags, NULL));
    CHECK_OK(weft_ep_combine_bwd(r->route, &g, flags != 0 ? &x : NULL, &grad_x, flags != 0 ? grad_weights : NULL, flags,
                                 NULL));
    rows->forward = multiply(&y, &g, tokens, &unused);
    rows->backward = multiply(&x, &grad_x, rows_of(r), &rows->magnitude);
    if (flags != 0) { /* combine is linear in the weights, too */
        of_weights->forward = rows->forward;
        of_weights->backward = multiply_floats(weights, grad_weights, choices, &of_weights->magnitude);
        of_weights->magnitude += rows->magnitude;
    }
    free(x.data);
    free(y.data);
    free(g.data);
    free(grad_x.data);
    free(weights);
    free(grad_weights);
}

static void update(const rig *r)
{
    size_t choices = (size_t)r->one->tokens[r->rank] * (size_t)r->one->plan.topk;
    int64_t *ids = malloc((choices + 1) * sizeof *ids);
    weft_ep_choices in = WEFT_EP_CHOICES_INIT;
    for (size_t i = 0; i < choices; i++) {
        ids[i] = r->one->ids[r->rank][i];
    }
    in.tokens = r->one->tokens[r->rank];
    in.id_type = WEFT_EP_INT64;
    in.ids = ids;
    in.weights = r->one->weights[r->rank];
    CHECK_OK(weft_ep_route_update(r->route, &in, NULL));
    free(ids);
}

/* Both sides, added up by one. */
static void compare(const board *all, const rig *r, int number_of_case)
{
    for (int i = 0; i < EQUATIONS; i++) {
        products sum = {0};
        for (int rank = 0; rank < r->one->setup->ranks; rank++) {
            sum.forward += all->of[rank][i].forward;
            sum.backward += all->of[rank][i].backward;
            sum.magnitude += all->of[rank][i].magnitude;
        }
        double tolerance = r->is_exact ? 0.0 : 4.0 * ep_unit_roundoff(r->dtype) * sum.magnitude;
        CHECK_SAY(fabs(sum.forward - sum.backward) <= tolerance,
                  "case %d, layout %d, %s, K %d, H %d: %s: <forward, g> is %.17g, "
                  "<x, backward> %.17g, tolerance %g",
                  number_of_case, (int)r->one->plan.layout, ep_dtype_name(r->dtype), r->one->plan.topk, r->hidden,
                  equations[i], sum.forward, sum.backward, tolerance);
    }
}

/* Weights that keep sums of integers exact. */
static void round_weights(ep_case *one)
{
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        for (int i = 0; one->weights[rank] != NULL && i < one->tokens[rank] * one->plan.topk; i++) {
            one->weights[rank][i] = (float)(i % 5 - 2);
        }
    }
}

static void run_case(weft_world *world, board *all, uint64_t state, int number_of_case)
{
    static const weft_ep_dtype dtypes[] = {WEFT_EP_BF16, WEFT_EP_F16, WEFT_EP_F32};
    const ep_size size = {.tokens_max = 20, .topk_max = 8, .experts_max = 24, .hidden_max = 600, .bytes_max = 1 << 20};
    ep_setup setup = ep_setup_draw(random_next(&state), weft_world_pes(world), &size);
    weft_ep_plan plan = ep_plan_draw(random_next(&state), &setup);
    setup.config.row_bytes_max = 4096;
    setup.config.overflow = WEFT_EP_OVERFLOW_DROP;
    ep_case one = ep_case_draw(random_next(&state), &setup, &plan);
    rig r = {.one = &one,
             .rank = weft_world_pe(world),
             .is_exact = number_of_case % 2,
             .salt = 16 * (unsigned)number_of_case};
    r.dtype = dtypes[random_below(&state, 3)];
    r.hidden = 8 * (1 + (int)random_below(&state, 70));
    r.of = all->of[r.rank];
    if (r.is_exact) {
        round_weights(&one);
    }
    ep_routing *routing = ep_routing_create(&one, NULL);
    r.routing = routing;
    weft_ep_config config = setup.config;
    weft_ep *ep;
    config.experts_of_rank = setup.uneven ? setup.table : NULL;
    if (ep_group_open(world, &config, &plan, &ep, &r.route)) {
        update(&r);
        dispatch_there_and_back(&r);
        combine_there_and_back(&r, 0);
        combine_there_and_back(&r, WEFT_EP_WEIGHTED);
        ep_group_close(ep, r.route);
        CHECK_OK(weft_barrier(world));
        if (r.rank == 0) {
            compare(all, &r, number_of_case);
        }
        CHECK_OK(weft_barrier(world));
    }
    ep_routing_destroy(routing);
    ep_case_free(&one);
}

static void run_cases(weft_world *world, void *context)
{
    uint64_t state = seed;
    for (int i = 0; i < CASES; i++) {
        run_case(world, context, random_next(&state), i);
    }
}

static void backward_is_the_transpose_of_forward(void **state)
{
    static const int ranks[] = {1, 2, 3, 5, 8};
    static board all;
    (void)state;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        pes_run(ranks[i], run_cases, &all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(backward_is_the_transpose_of_forward)};
    seed = test_seed();
    (void)setenv("WEFT_LOG", "none", 0); /* ids out of range are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
