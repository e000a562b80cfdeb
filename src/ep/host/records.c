#include "ep/host/records.h"

#include "ep/host/counts.h"
#include "ep/host/peers.h"

/* The record of one token for `rank`. */
static void pack(const wefti_ep_routing *route, const float *weights, int token, int rank, unsigned char *to)
{
    const weft_ep *ep = route->ep;
    size_t topk = (size_t)route->plan.topk;
    const int32_t *choices = &ep->host->scratch.choices[(size_t)token * topk];
    const int32_t *ranks = &route->choice_rank[(size_t)token * topk];
    int32_t *words = (int32_t *)(void *)to;
    float *values = (float *)(void *)(words + 1 + topk);
    int by_rank = wefti_ep_plan_is_by_rank(&route->plan);
    int all_weights = (route->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0;
    words[0] = token;
    for (size_t k = 0; k < topk; k++) {
        int here = ranks[k] == rank;
        words[1 + k] = !here ? -1 : by_rank ? 0 : choices[k] - ep->owners.first[rank];
        values[k] = !here && !all_weights ? 0.0f : weights != NULL ? weights[(size_t)token * topk + k] : 1.0f;
    }
}

void wefti_ep_records_choices(const wefti_ep_routing *route, const float *weights, int token, uint32_t *words)
{
    size_t topk = (size_t)route->plan.topk;
    const int32_t *choices = &route->ep->host->scratch.choices[(size_t)token * topk];
    float *values = (float *)(void *)(words + topk);
    memcpy(words, choices, topk * sizeof *choices);
    for (size_t k = 0; k < topk; k++) {
        values[k] = weights != NULL ? weights[(size_t)token * topk + k] : 1.0f;
    }
}

weft_status wefti_ep_records_hand_on(const wefti_ep_routing *route, int rank, size_t place, uint32_t token,
                                     const uint32_t *words)
{
    const weft_ep *ep = route->ep;
    size_t topk = (size_t)route->plan.topk;
    size_t bytes = wefti_ep_record_bytes(topk);
    int32_t *record = (int32_t *)(void *)ep->host->scratch.records;
    const int32_t *choices = (const int32_t *)(const void *)words;
    int by_rank = wefti_ep_plan_is_by_rank(&route->plan);
    int all_weights = (route->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0;
    record[0] = (int32_t)token;
    for (size_t k = 0; k < topk; k++) {
        int owner = choices[k] < 0 || by_rank ? choices[k] : ep->owners.rank_of[choices[k]];
        int here = owner == rank;
        record[1 + k] = !here ? -1 : by_rank ? 0 : choices[k] - ep->owners.first[rank];
        record[1 + topk + k] = here || all_weights ? (int32_t)words[topk + k] : 0;
    }
    return wefti_ep_put(ep, rank, ep->host->layout.records + place * bytes, record, bytes);
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

/* The row of choice k, which an earlier choice of the same expert shares in slots. */
static int32_t place_choice(const wefti_ep_routing *route, const int32_t *experts, int k, int32_t *rows, uint32_t *next)
{
    if (experts[k] < 0) {
        return -1;
    }
    for (int j = 0; j < k && wefti_ep_shares_rows(route); j++) {
        if (experts[j] == experts[k]) {
            return rows[j];
        }
    }
    return (int32_t)next[experts[k]]++;
}

void wefti_ep_records_take(wefti_ep_routing *route, int source)
{
    const weft_ep *ep = route->ep;
    size_t topk = (size_t)route->plan.topk;
    size_t bytes = wefti_ep_record_bytes(topk);
    int first = route->place_of_source[source];
    int end = wefti_ep_places_end(route, source);
    wefti_copy(route->records + (size_t)first * bytes,
               ep->host->base + ep->host->layout.records + (size_t)first * bytes, (size_t)(end - first) * bytes);
    if (wefti_ep_is_by_source(route)) {
        return;
    }
    wefti_ep_column column = wefti_ep_counts_column(route, ep->rank);
    uint32_t *next = wefti_ep_column_message(&column, source) + 1;
    for (int place = first; place < end; place++) {
        wefti_ep_record record = wefti_ep_record_of(route, place);
        int32_t *rows = &route->record_rows[(size_t)place * topk];
        for (int k = 0; k < route->plan.topk; k++) {
            rows[k] = place_choice(route, record.experts, k, rows, next);
        }
    }
}

static void forget(wefti_ep_routing *route, int place)
{
    size_t topk = (size_t)route->plan.topk;
    int32_t *words = (int32_t *)(void *)(route->records + (size_t)place * wefti_ep_record_bytes(topk));
    for (size_t k = 0; k < topk; k++) {
        words[1 + k] = -1;
        words[1 + topk + k] = 0;
        if (!wefti_ep_is_by_source(route)) {
            route->record_rows[(size_t)place * topk + k] = -1;
        }
    }
}

void wefti_ep_records_forget(wefti_ep_routing *route)
{
    for (int source = 0; source < route->ep->ranks; source++) {
        for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
            forget(route, place);
        }
    }
}
