#include "ep/host/received.h"

#include <string.h>

/* The id of a local expert, or -1, as the caller wants it; `experts` is there. */
static void fill_expert(const wefti_ep_routing *route, const weft_ep_received *out, size_t at, int32_t expert)
{
    const weft_ep *ep = route->ep;
    int32_t id = out->experts_are_global && expert >= 0 ? expert + ep->owners.first[ep->rank] : expert;
    if (out->expert_type == WEFT_EP_INT64) {
        ((int64_t *)(void *)out->experts)[at] = id;
    } else {
        out->experts[at] = id;
    }
}

static void fill_row(const wefti_ep_routing *route, const weft_ep_received *out, size_t row, float weight,
                     int32_t expert, int32_t source, int32_t token)
{
    if (out->weights != NULL) {
        out->weights[row] = weight;
    }
    if (out->experts != NULL) {
        fill_expert(route, out, row, expert);
    }
    if (out->source_rank != NULL) {
        out->source_rank[row] = source;
    }
    if (out->source_token != NULL) {
        out->source_token[row] = token;
    }
}

void wefti_ep_received_padding(const wefti_ep_routing *route, const weft_ep_received *out)
{
    for (int expert = 0; expert < wefti_ep_local_experts(route->ep); expert++) {
        int row = route->offset_of_expert[expert] + route->rows_of_expert[expert];
        for (; route->plan.layout == WEFT_EP_EXPERT_MAJOR && row < route->offset_of_expert[expert + 1]; row++) {
            fill_row(route, out, (size_t)row, 0.0f, -1, -1, -1);
        }
    }
}

static void fill_by_source(const wefti_ep_routing *route, const weft_ep_received *out, int place, int source)
{
    size_t topk = (size_t)route->plan.topk;
    size_t row = wefti_ep_row_of_place(route, source, place);
    wefti_ep_record record = wefti_ep_record_of(route, place);
    if (out->weights != NULL) {
        memcpy(&out->weights[row * topk], record.weights, topk * sizeof *record.weights);
    }
    for (size_t k = 0; k < topk && out->experts != NULL; k++) {
        fill_expert(route, out, row * topk + k, record.experts[k]);
    }
    if (out->source_rank != NULL) {
        out->source_rank[row] = source;
    }
    if (out->source_token != NULL) {
        out->source_token[row] = *record.token;
    }
}

/* The weight of choice k's row, which those after it may share. */
static float row_weight(const wefti_ep_record *record, const int32_t *rows, int k, int topk)
{
    float weight = record->weights[k];
    for (int other = k + 1; other < topk; other++) {
        weight = rows[other] == rows[k] ? weight + record->weights[other] : weight;
    }
    return weight;
}

static void fill_by_expert(const wefti_ep_routing *route, const weft_ep_received *out, int place, int source)
{
    wefti_ep_record record = wefti_ep_record_of(route, place);
    const int32_t *rows = wefti_ep_rows_at(route, place);
    int shares = wefti_ep_shares_rows(route);
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] >= 0 && !(shares && wefti_ep_is_again(rows, k))) {
            float weight = shares ? row_weight(&record, rows, k, route->plan.topk) : record.weights[k];
            fill_row(route, out, (size_t)rows[k], weight, record.experts[k], source, *record.token);
        }
    }
}

void wefti_ep_received_source(const wefti_ep_routing *route, const weft_ep_received *out, int source)
{
    for (int place = route->place_of_source[source]; place < wefti_ep_places_end(route, source); place++) {
        if (wefti_ep_is_by_source(route)) {
            fill_by_source(route, out, place, source);
        } else {
            fill_by_expert(route, out, place, source);
        }
    }
}
