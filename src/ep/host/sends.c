#include "ep/host/sends.h"

#include <string.h>

void wefti_ep_choices_read(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    const int32_t *narrow = choices->ids;
    const int64_t *wide = choices->ids;
    int32_t *to = route->ep->host->scratch.choices;
    int64_t experts = route->ep->config.experts;
    size_t count = (size_t)choices->tokens * (size_t)route->plan.topk;
    int32_t dropped = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t id = choices->id_type == WEFT_EP_INT64 ? wide[i] : narrow[i];
        int known = id >= 0 && id < experts;
        to[i] = known ? (int32_t)id : -1;
        dropped += !known && id != -1;
    }
    route->tokens = choices->tokens;
    *route->dropped = dropped;
}

/* Add a choice on `rank` to the pairs first .. end - 1 of one token, kept in ascending rank. Returns the new end. */
static int add_choice(wefti_ep_routing *route, int first, int end, int rank, float weight)
{
    int at = end;
    while (at > first && route->pair_rank[at - 1] > rank) {
        at--;
    }
    if (at > first && route->pair_rank[at - 1] == rank) {
        route->pair_weight[at - 1] += weight;
        return end;
    }
    size_t behind = (size_t)(end - at);
    memmove(&route->pair_rank[at + 1], &route->pair_rank[at], behind * sizeof *route->pair_rank);
    memmove(&route->pair_weight[at + 1], &route->pair_weight[at], behind * sizeof *route->pair_weight);
    route->pair_rank[at] = rank;
    route->pair_weight[at] = 0.0f + weight;
    return end + 1;
}

/* The pairs of all tokens, and the counts. */
static void build_pairs(wefti_ep_routing *route, const float *weights)
{
    const weft_ep *ep = route->ep;
    uint32_t *counts = ep->host->scratch.counts;
    const int32_t *choice = ep->host->scratch.choices;
    int end = 0;
    for (int token = 0; token < route->tokens; token++) {
        int first = end;
        for (int k = 0; k < route->plan.topk; k++, choice++) {
            if (*choice >= 0) {
                float weight = weights != NULL ? weights[choice - ep->host->scratch.choices] : 1.0f;
                counts[wefti_ep_owners_word(&ep->owners, *choice)]++;
                end = add_choice(route, first, end, ep->owners.rank_of[*choice], weight);
            }
        }
        route->token_pairs[token] = first;
        for (int pair = first; pair < end; pair++) {
            uint32_t *tokens = &counts[wefti_ep_owners_message(&ep->owners, route->pair_rank[pair])];
            route->pair_index[pair] = (int32_t)(*tokens)++;
        }
    }
    route->token_pairs[route->tokens] = end;
}

void wefti_ep_sends_build(wefti_ep_routing *route, const float *weights)
{
    const weft_ep *ep = route->ep;
    uint32_t *counts = ep->host->scratch.counts;
    memset(counts, 0, (ep->host->limits.ranks + ep->host->limits.experts) * sizeof *counts);
    build_pairs(route, weights);
    int32_t end = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        route->rank_sends[rank] = end;
        end += (int32_t)counts[wefti_ep_owners_message(&ep->owners, rank)];
    }
    route->rank_sends[ep->ranks] = end;
    for (int token = 0; token < route->tokens; token++) {
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            route->send_token[route->rank_sends[route->pair_rank[pair]] + route->pair_index[pair]] = token;
        }
    }
}

/* The rows of a token's first choice on each of its ranks. */
static void place_token(wefti_ep_routing *route, int token, int64_t *expert_next)
{
    const weft_ep *ep = route->ep;
    const int32_t *choices = &ep->host->scratch.choices[(size_t)token * (size_t)route->plan.topk];
    int first = route->token_pairs[token];
    int end = route->token_pairs[token + 1];
    for (int pair = first; pair < end; pair++) {
        route->send_row[route->rank_sends[route->pair_rank[pair]] + route->pair_index[pair]] = -1;
    }
    for (int k = 0; k < route->plan.topk; k++) {
        if (choices[k] < 0) {
            continue;
        }
        int32_t row = (int32_t)expert_next[choices[k]]++;
        int pair = first;
        while (route->pair_rank[pair] != ep->owners.rank_of[choices[k]]) {
            pair++;
        }
        int32_t *send_row = &route->send_row[route->rank_sends[route->pair_rank[pair]] + route->pair_index[pair]];
        *send_row = *send_row < 0 ? row : *send_row;
    }
}

void wefti_ep_sends_place(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    const uint32_t *bases = ep->host->scratch.bases;
    for (int rank = 0; rank < ep->ranks; rank++) {
        route->first_place[rank] = bases[wefti_ep_owners_message(&ep->owners, rank)];
    }
    if (!wefti_ep_is_expert_major(route)) {
        return;
    }
    for (int expert = 0; expert < ep->config.experts; expert++) {
        ep->host->scratch.expert_next[expert] = bases[wefti_ep_owners_word(&ep->owners, expert)];
    }
    for (int token = 0; token < route->tokens; token++) {
        place_token(route, token, ep->host->scratch.expert_next);
    }
}
