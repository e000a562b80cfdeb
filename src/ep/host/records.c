#include "ep/host/records.h"

#include "ep/host/peers.h"

/* The record of one token for `rank`. */
static void pack(const wefti_ep_routing *route, const float *weights, int token, int rank, unsigned char *to)
{
    const weft_ep *ep = route->ep;
    size_t topk = (size_t)route->plan.topk;
    const int32_t *choices = &ep->host->scratch.choices[(size_t)token * topk];
    int32_t *words = (int32_t *)(void *)to;
    float *values = (float *)(void *)(words + 1 + topk);
    words[0] = token;
    for (size_t k = 0; k < topk; k++) {
        int here = choices[k] >= 0 && ep->owners.rank_of[choices[k]] == rank;
        words[1 + k] = here ? choices[k] - ep->owners.first[rank] : -1;
        values[k] = !here ? 0.0f : weights != NULL ? weights[(size_t)token * topk + k] : 1.0f;
    }
}

weft_status wefti_ep_records_put(const wefti_ep_routing *route, const float *weights, int rank)
{
    const weft_ep *ep = route->ep;
    size_t bytes = wefti_ep_record_bytes((size_t)route->plan.topk);
    int count = wefti_ep_sends_to(route, rank);
    const int32_t *tokens = &route->send_token[route->rank_sends[rank]];
    if (count == 0) {
        return WEFT_OK;
    }
    for (int i = 0; i < count; i++) {
        pack(route, weights, tokens[i], rank, ep->host->scratch.records + (size_t)i * bytes);
    }
    return wefti_ep_put(ep, rank, ep->host->layout.records + route->first_place[rank] * bytes,
                        ep->host->scratch.records, (size_t)count * bytes);
}

void wefti_ep_records_take(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    size_t topk = (size_t)route->plan.topk;
    wefti_copy(route->records, ep->host->base + ep->host->layout.records,
               (size_t)route->received * wefti_ep_record_bytes(topk));
    if (!wefti_ep_is_expert_major(route)) {
        return;
    }
    int64_t *next = ep->host->scratch.expert_next;
    for (int expert = 0; expert < wefti_ep_local_experts(ep); expert++) {
        next[expert] = route->offset_of_expert[expert];
    }
    for (int place = 0; place < route->received; place++) {
        wefti_ep_record record = wefti_ep_record_of(route, place);
        for (size_t k = 0; k < topk; k++) {
            int32_t expert = record.experts[k];
            route->record_rows[(size_t)place * topk + k] = expert >= 0 ? (int32_t)next[expert]++ : -1;
        }
    }
}
