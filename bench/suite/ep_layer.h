/* suite/ep_layer.h: the mixture-of-experts layer that bench/ep.c and its peers move: which experts each token chooses,
 * and which rows cross because of it. Seeded, so that all of them move the same rows. */
#ifndef SUITE_EP_LAYER_H
#define SUITE_EP_LAYER_H

#include <stdint.h>
#include <stdio.h>

/* What is timed. */
typedef struct ep_layer {
    int pe;
    int pes;
    int tokens; /* a PE */
    int hidden;
    int topk;
    int experts;
} ep_layer;

#define EP_LAYER_INIT                                                                                                  \
    {                                                                                                                  \
        .tokens = 1024, .hidden = 4096, .topk = 8, .experts = 64                                                       \
    }

static inline int ep_layer_check(const ep_layer *layer)
{
    if (layer->tokens < 1 || layer->hidden < 8 || layer->hidden % 8 != 0 || layer->topk < 1 ||
        layer->topk > layer->experts || layer->pes > 64) {
        fprintf(stderr, "give at least one token, a multiple of 8 hidden elements, 1 <= topk <= experts, at most 64 "
                        "PEs\n");
        return -1;
    }
    return 0;
}

static inline uint64_t ep_layer_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Distinct experts for each of this PE's tokens: ids [tokens][topk]. */
static inline void ep_layer_choose(const ep_layer *layer, int32_t *ids)
{
    uint64_t state = 1000u + (uint64_t)layer->pe;
    for (int t = 0; t < layer->tokens; t++) {
        int32_t *of_token = &ids[(size_t)t * (size_t)layer->topk];
        for (int k = 0; k < layer->topk; k++) {
            int repeated;
            do {
                of_token[k] = (int32_t)(ep_layer_random(&state) % (uint64_t)layer->experts);
                repeated = 0;
                for (int j = 0; j < k; j++) {
                    repeated |= of_token[j] == of_token[k];
                }
            } while (repeated);
        }
    }
}

/* The PE of an expert: experts / pes each, the first ones one more. */
static inline int ep_layer_owner(const ep_layer *layer, int expert)
{
    int each = layer->experts / layer->pes;
    int more = layer->experts % layer->pes;
    int in_larger = more * (each + 1);
    return expert < in_larger ? expert / (each + 1) : more + (expert - in_larger) / (each > 0 ? each : 1);
}

/* Whether a token's row goes to a PE: once, however many of its experts are there. */
static inline int ep_layer_goes(const ep_layer *layer, const int32_t *ids, int token, int pe)
{
    int goes = 0;
    for (int k = 0; k < layer->topk; k++) {
        goes |= ep_layer_owner(layer, ids[(size_t)token * (size_t)layer->topk + (size_t)k]) == pe;
    }
    return goes;
}

/* The byte that fills a token's row. */
static inline int ep_layer_byte(int pe, int token)
{
    return 1 + (pe * 31 + token) % 100;
}

/* What tells the figures of layers apart, as members of their JSON object. */
static inline void ep_layer_describe(const ep_layer *layer, const char *layout, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "\"tokens\": %d, \"hidden\": %d, \"topk\": %d, \"experts\": %d, \"dtype\": \"bf16\", \"layout\": \"%s\"",
             layer->tokens, layer->hidden, layer->topk, layer->experts, layout);
}

#endif
