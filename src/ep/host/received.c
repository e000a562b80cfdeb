#include "ep/host/received.h"

#include <string.h>

static void fill_row(const weft_ep_received *out, size_t row, float weight, int32_t expert, int32_t source,
                     int32_t token)
{
    if (out->weights != NULL) {
        out->weights[row] = weight;
    }
    if (out->experts != NULL) {
        out->experts[row] = expert;
    }
    if (out->source_rank != NULL) {
        out->source_rank[row] = source;
    }
    if (out->source_token != NULL) {
        out->source_token[row] = token;
    }
}

static void fill_padding(const wefti_ep_routing *route, const weft_ep_received *out)
{
    int experts = wefti_ep_local_experts(route->ep);
    for (int expert = 0; expert < experts; expert++) {
        int row = route->offset_of_expert[expert] + route->rows_of_expert[expert];
        for (; row < route->offset_of_expert[expert + 1]; row++) {
            fill_row(out, (size_t)row, 0.0f, -1, -1, -1);
        }
    }
}

static void fill_rank_major(const wefti_ep_routing *route, const weft_ep_received *out, int place, int source)
{
    size_t topk = (size_t)route->plan.topk;
    wefti_ep_record record = wefti_ep_record_of(route, place);
    if (out->weights != NULL) {
        memcpy(&out->weights[(size_t)place * topk], record.weights, topk * sizeof *record.weights);
    }
    if (out->experts != NULL) {
        memcpy(&out->experts[(size_t)place * topk], record.experts, topk * sizeof *record.experts);
    }
    if (out->source_rank != NULL) {
        out->source_rank[place] = source;
    }
    if (out->source_token != NULL) {
        out->source_token[place] = *record.token;
    }
}

static void fill_expert_major(const wefti_ep_routing *route, const weft_ep_received *out, int place, int source)
{
    wefti_ep_record record = wefti_ep_record_of(route, place);
    const int32_t *rows = &route->record_rows[(size_t)place * (size_t)route->plan.topk];
    for (int k = 0; k < route->plan.topk; k++) {
        if (rows[k] >= 0) {
            fill_row(out, (size_t)rows[k], record.weights[k], record.experts[k], source, *record.token);
        }
    }
}

void wefti_ep_received_fill(const wefti_ep_routing *route, const weft_ep_received *out)
{
    int expert_major = wefti_ep_is_expert_major(route);
    if (expert_major) {
        fill_padding(route, out);
    }
    for (int source = 0; source < route->ep->ranks; source++) {
        for (int place = route->offset_of_source[source]; place < route->offset_of_source[source + 1]; place++) {
            if (expert_major) {
                fill_expert_major(route, out, place, source);
            } else {
                fill_rank_major(route, out, place, source);
            }
        }
    }
}
