#include "ep/host/gradients.h"

#include <string.h>

#include "ep/host/peers.h"

static uint64_t kept_at(const wefti_ep_routing *route, size_t place)
{
    return route->ep->host->layout.records + place * wefti_ep_record_bytes((size_t)route->plan.topk);
}

void wefti_ep_gradients_keep(const wefti_ep_routing *route, int place, const float *values)
{
    wefti_copy(route->ep->host->base + kept_at(route, (size_t)place), values,
               (size_t)route->plan.topk * sizeof *values);
}

void wefti_ep_gradients_keep_all(const wefti_ep_routing *route, const float *received)
{
    size_t topk = (size_t)route->plan.topk;
    float *values = route->ep->host->scratch.choice_weight;
    for (int source = 0; source < route->ep->ranks; source++) {
        for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
            if (wefti_ep_is_by_source(route)) {
                wefti_ep_gradients_keep(route, place, &received[wefti_ep_row_of_place(route, source, place) * topk]);
                continue;
            }
            const int32_t *rows = wefti_ep_rows_at(route, place);
            for (size_t k = 0; k < topk; k++) {
                values[k] = rows[k] >= 0 ? received[rows[k]] : 0.0f;
            }
            wefti_ep_gradients_keep(route, place, values);
        }
    }
}

static weft_status fetch(const wefti_ep_routing *route, int rank, size_t place, float *values)
{
    const weft_ep *ep = route->ep;
    size_t bytes = (size_t)route->plan.topk * sizeof *values;
    uint64_t at = kept_at(route, place);
    const unsigned char *near = wefti_ep_near(ep, rank, at);
    if (near != NULL) {
        wefti_copy(values, near, bytes);
        return WEFT_OK;
    }
    return wefti_ep_get(ep, rank, values, at, bytes);
}

weft_status wefti_ep_gradients_fetch(const wefti_ep_routing *route, int rank, int index, float *values)
{
    return fetch(route, rank, (size_t)route->first_place[rank] + (size_t)index, values);
}

weft_status wefti_ep_gradients_read(const wefti_ep_routing *route, int rank, float *grad_weights)
{
    float *values = route->ep->host->scratch.choice_weight;
    size_t topk = (size_t)route->plan.topk;
    for (int i = 0; i < wefti_ep_sends_to(route, rank); i++) {
        size_t token = (size_t)route->send_token[route->rank_sends[rank] + i];
        WEFT_TRY(fetch(route, rank, route->first_place[rank] + (size_t)i, values));
        for (size_t k = 0; k < topk && !route->ep->masked[rank]; k++) {
            if (route->choice_rank[token * topk + k] == rank) {
                grad_weights[token * topk + k] = values[k];
            }
        }
    }
    return WEFT_OK;
}

void wefti_ep_gradients_clear(const wefti_ep_routing *route, float *grad_weights)
{
    memset(grad_weights, 0, (size_t)route->tokens * (size_t)route->plan.topk * sizeof *grad_weights);
}
