#include "ep/host/weigh.h"

#include "ep/host/peers.h"

static float weight_of(const wefti_ep_push *push, size_t at)
{
    return push->choices.weights != NULL ? push->choices.weights[at] : 1.0f;
}

static uint64_t weights_at(const wefti_ep_push *push, size_t place)
{
    return push->ep->host->layout.choices + place * (size_t)push->route->plan.topk * sizeof(float);
}

static weft_status send_weights(const wefti_ep_push *push, int rank)
{
    const wefti_ep_routing *route = push->route;
    size_t topk = (size_t)route->plan.topk;
    size_t count = (size_t)wefti_ep_sends_to(route, rank);
    const int32_t *tokens = &route->send_token[route->rank_sends[rank]];
    float *values = (float *)(void *)push->ep->host->scratch.records;
    for (size_t i = 0; i < count * topk; i++) {
        values[i] = weight_of(push, (size_t)tokens[i / topk] * topk + i % topk);
    }
    return count > 0 ? wefti_ep_put(push->ep, rank, weights_at(push, route->first_place[rank]), values,
                                    count * topk * sizeof *values)
                     : WEFT_OK;
}

weft_status wefti_ep_weigh_post(const wefti_ep_push *push)
{
    for (int i = 1; i <= push->ep->ranks; i++) {
        int rank = (push->ep->rank + i) % push->ep->ranks;
        if (!push->ep->masked[rank]) {
            WEFT_TRY(send_weights(push, rank));
            WEFT_TRY(wefti_ep_call_post(&push->call, rank)); /* no notice, which might overtake them */
        }
    }
    return WEFT_OK;
}

/* Those of the tokens of a source, to the places of choices that are of this rank, or to all. */
static void take_of_source(const wefti_ep_push *push, int source)
{
    const wefti_ep_routing *route = push->route;
    size_t topk = (size_t)route->plan.topk;
    int all_weights = (route->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0;
    for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
        wefti_ep_record record = wefti_ep_record_of(route, place);
        float *weights = (float *)(uintptr_t)record.weights;
        wefti_copy(weights, push->ep->host->base + weights_at(push, (size_t)place), topk * sizeof *weights);
        for (size_t k = 0; k < topk && !all_weights; k++) {
            weights[k] = record.experts[k] >= 0 ? weights[k] : 0.0f;
        }
    }
}

/* Those of this rank's tokens, for what comes back: added up by the ranks of their choices, in ascending choice. */
static void take_own(const wefti_ep_push *push)
{
    const wefti_ep_routing *route = push->route;
    int topk = route->plan.topk;
    for (int token = 0; token < route->tokens; token++) {
        size_t first = (size_t)token * (size_t)topk;
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            float sum = 0.0f;
            for (int k = 0; k < topk; k++) {
                sum += route->choice_rank[first + (size_t)k] == route->pair_rank[pair]
                           ? weight_of(push, first + (size_t)k)
                           : 0.0f;
            }
            route->pair_weight[pair] = sum;
        }
    }
}

weft_status wefti_ep_weigh_take(wefti_ep_push *push)
{
    WEFT_TRY(wefti_ep_call_wait_headers(&push->call));
    if (push->call.mismatched_rank >= 0) {
        return WEFT_OK;
    }
    for (int source = 0; source < push->ep->ranks; source++) {
        if (!push->ep->masked[source]) {
            take_of_source(push, source);
        }
    }
    take_own(push);
    return WEFT_OK;
}
