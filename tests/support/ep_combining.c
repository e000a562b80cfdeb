#include "support/ep_combining.h"

#include <math.h>
#include <stdlib.h>

#include "support/ep_draw.h"

/* A weight that a gate gives; now and then, where rows have such numbers too, one of those that no gate should. */
static float draw_weight(uint64_t *own, int wild)
{
    static const float specials[] = {0.0f, -0.0f, NAN, INFINITY};
    return wild && random_below(own, 8) == 0 ? specials[random_below(own, 4)]
                                             : (float)((int)random_below(own, 4001) - 1500) / 3000.0f;
}

/* Weights [count] and which choices are absent, on all ranks or on none. */
static void draw_choices(ep_combining *combining, size_t count, int has_weights, int has_absent, int wild,
                         uint64_t *own)
{
    unsigned absent = random_below(own, 101);
    combining->weights = has_weights ? malloc((count + 1) * sizeof *combining->weights) : NULL;
    combining->absent = has_absent ? malloc(count + 1) : NULL;
    for (size_t i = 0; i < count && has_weights; i++) {
        combining->weights[i] = draw_weight(own, wild);
    }
    for (size_t i = 0; i < count && has_absent; i++) {
        combining->absent[i] = random_below(own, 100) < absent;
    }
}

/* Biases and a type, as each rank likes. */
static void draw_own(ep_combining *combining, const ep_payload *payload, uint64_t *own)
{
    static const weft_ep_dtype dtypes[] = {WEFT_EP_F32, WEFT_EP_BF16, WEFT_EP_F16};
    combining->biases = (int)random_below(own, 3);
    for (int i = 0; i < 2; i++) {
        combining->bias[i] = *payload;
        combining->bias[i].salt += 700 + 10 * (unsigned)i;
    }
    if (payload->hidden % 8 == 0 && random_below(own, 3) == 0) {
        combining->out_dtype = dtypes[random_below(own, 3)];
    }
}

/* Groups of several domains on GPUs do not have values beside choices that are absent, by source and by choice. */
static int is_without_values(const ep_case *one)
{
    return one->setup->config.on_device && ep_domains(one->setup) > 1 && one->plan.order == WEFT_EP_ORDER_CHOICE &&
           !ep_is_by_expert(one->plan.layout);
}

void ep_combining_step(const ep_step *step, const ep_payload *payload, unsigned flags, uint64_t *common)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)one->tokens[step->rank] * (size_t)one->plan.topk;
    int kind = (int)random_below(common, 6); /* of 6: plain, plain, with biases only; all */
    int wild = random_below(common, 8) == 0 && payload->fill == EP_FILL_WILD;
    int is_plain = kind < 2 || (kind == 2 && random_below(step->arrays.random, 3) == 0); /* beside ranks with biases */
    ep_combining combining = {.has_values = kind >= 3 && random_below(common, 2) == 0};
    if (is_without_values(one)) {
        combining.has_values = 0;
    }
    draw_choices(&combining, count, kind >= 3 && flags != 0, kind >= 3 && (flags == 0 || kind >= 4), wild,
                 step->arrays.random);
    draw_own(&combining, payload, step->arrays.random);
    combining.values = ep_step_values(step, payload);
    ep_step_combine(step, payload, flags, is_plain ? NULL : &combining);
    free(combining.weights);
    free(combining.absent);
}
