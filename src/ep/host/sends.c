#include "ep/host/sends.h"

#include <string.h>

/* The number of tokens as the caller gives it, which may be out of range. */
static int32_t tokens_told(const weft_ep_choices *choices)
{
    return choices->tokens_at != NULL ? *choices->tokens_at : choices->tokens;
}

/* The nearest number in range. */
static int clamp(const weft_ep_choices *choices, int32_t told)
{
    return told < 0 ? 0 : told > choices->tokens ? choices->tokens : told;
}

int wefti_ep_choices_tokens(const weft_ep_choices *choices)
{
    return clamp(choices, tokens_told(choices));
}

/* Choice k is rank k, or none. */
static void read_destinations(const weft_ep_choices *choices, size_t count, size_t ranks, int32_t *to)
{
    for (size_t i = 0; i < count; i++) {
        int goes = choices->positions != NULL ? choices->positions[i] >= 0 : choices->destinations[i] != 0;
        to[i] = goes ? (int32_t)(i % ranks) : -1;
    }
}

int wefti_ep_choices_read(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    const int32_t *narrow = choices->ids;
    const int64_t *wide = choices->ids;
    int32_t *to = route->ep->host->scratch.choices;
    int64_t experts = route->ep->config.experts;
    int32_t told = tokens_told(choices);
    route->tokens = clamp(choices, told);
    int in_range = told == route->tokens;
    size_t count = (size_t)route->tokens * (size_t)route->plan.topk;
    int32_t dropped = 0;
    if (wefti_ep_plan_is_by_rank(&route->plan)) {
        read_destinations(choices, count, (size_t)route->plan.topk, to);
        *route->dropped = 0;
        return in_range;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t id = choices->id_type == WEFT_EP_INT64 ? wide[i] : narrow[i];
        int known = id >= 0 && id < experts;
        to[i] = known ? (int32_t)id : -1;
        dropped += !known && id != -1;
    }
    *route->dropped = dropped;
    return in_range;
}

uint32_t *wefti_ep_sends_message(const weft_ep *ep, int owner)
{
    return ep->host->scratch.counts + 1 + wefti_ep_owners_message(&ep->owners, owner);
}

/* Whether choice k of a token is of an expert that an earlier one has the row of. */
static int shares_row(const wefti_ep_routing *route, const int32_t *choices, int k)
{
    return wefti_ep_shares_rows(route) && wefti_ep_is_again(choices, k);
}

/* Whether choice k of a token counts as a row of its expert. */
static int has_own_row(const wefti_ep_routing *route, const int32_t *choices, int k)
{
    return !wefti_ep_plan_is_by_rank(&route->plan) && !shares_row(route, choices, k);
}

static const int32_t *choices_of(const wefti_ep_routing *route, int token)
{
    return &route->ep->host->scratch.choices[(size_t)token * (size_t)route->plan.topk];
}

static int32_t *ranks_of(const wefti_ep_routing *route, int token)
{
    return &route->choice_rank[(size_t)token * (size_t)route->plan.topk];
}

void wefti_ep_sends_count(const wefti_ep_routing *route, int token, int owner, uint32_t *message)
{
    const int32_t *choices = choices_of(route, token);
    const int32_t *ranks = ranks_of(route, token);
    message[0]++;
    for (int k = 0; k < route->plan.topk; k++) {
        if (ranks[k] == owner && has_own_row(route, choices, k)) {
            message[1 + choices[k] - route->ep->owners.first[owner]]++;
        }
    }
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

/* The pairs of a token from `first` on; returns their end. */
static int build_token(wefti_ep_routing *route, int token, int first, const float *weights)
{
    const weft_ep *ep = route->ep;
    const int32_t *choices = choices_of(route, token);
    int32_t *ranks = ranks_of(route, token);
    int end = first;
    for (int k = 0; k < route->plan.topk; k++) {
        ranks[k] =
            choices[k] < 0 || wefti_ep_plan_is_by_rank(&route->plan) ? choices[k] : ep->owners.rank_of[choices[k]];
        ranks[k] = ranks[k] >= 0 && ep->masked[ranks[k]] ? -1 : ranks[k];
        if (ranks[k] >= 0) {
            float weight = weights != NULL ? weights[(size_t)token * (size_t)route->plan.topk + (size_t)k] : 1.0f;
            end = add_choice(route, first, end, ranks[k], weight);
            if (has_own_row(route, choices, k)) {
                wefti_ep_sends_message(ep, ranks[k])[1 + choices[k] - ep->owners.first[ranks[k]]]++;
            }
        }
    }
    for (int pair = first; pair < end; pair++) {
        route->pair_index[pair] = (int32_t)(*wefti_ep_sends_message(ep, route->pair_rank[pair]))++;
    }
    return end;
}

/* The sends by rank, from the pairs and the number of tokens to each rank. */
static void list_sends(wefti_ep_routing *route, uint32_t (*tokens_to)(const wefti_ep_routing *route, int rank))
{
    int32_t end = 0;
    for (int rank = 0; rank < route->ep->ranks; rank++) {
        route->rank_sends[rank] = end;
        end += (int32_t)tokens_to(route, rank);
    }
    route->rank_sends[route->ep->ranks] = end;
    for (int token = 0; token < route->tokens; token++) {
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            route->send_token[route->rank_sends[route->pair_rank[pair]] + route->pair_index[pair]] = token;
        }
    }
}

static uint32_t tokens_counted(const wefti_ep_routing *route, int rank)
{
    return *wefti_ep_sends_message(route->ep, rank);
}

static uint32_t tokens_kept(const wefti_ep_routing *route, int rank)
{
    return route->ep->host->scratch.verdicts[rank].kept;
}

/* Let tokens have the numbers given among those that go to a rank, which are 0, 1 and so on, each once. Returns 0, and
 * does nothing, if they are not. */
static int take_positions(wefti_ep_routing *route, const int32_t *positions)
{
    size_t ranks = (size_t)route->ep->ranks;
    for (int i = 0; i < route->rank_sends[ranks]; i++) {
        route->send_token[i] = -1;
    }
    for (int token = 0; token < route->tokens; token++) {
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            int rank = route->pair_rank[pair];
            int32_t position = positions[(size_t)token * ranks + (size_t)rank];
            if (position >= wefti_ep_sends_to(route, rank)) {
                return 0;
            }
            int32_t *taken = &route->send_token[route->rank_sends[rank] + position];
            if (*taken >= 0) {
                return 0;
            }
            *taken = token;
        }
    }
    for (int token = 0; token < route->tokens; token++) {
        for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
            route->pair_index[pair] = positions[(size_t)token * ranks + (size_t)route->pair_rank[pair]];
        }
    }
    return 1;
}

int wefti_ep_sends_build(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    const float *weights = choices->weights;
    const weft_ep *ep = route->ep;
    size_t words = ep->host->limits.ranks + ep->host->limits.experts;
    memset(ep->host->scratch.counts + 1, 0, words * sizeof *ep->host->scratch.counts);
    int end = 0;
    for (int token = 0; token < route->tokens; token++) {
        route->token_pairs[token] = end;
        end = build_token(route, token, end, weights);
    }
    route->token_pairs[route->tokens] = end;
    list_sends(route, tokens_counted);
    int in_range = choices->positions == NULL || take_positions(route, choices->positions);
    if (choices->positions != NULL) {
        list_sends(route, tokens_counted);
    }
    return in_range;
}

static int is_kept(const wefti_ep_routing *route, int pair)
{
    return (uint32_t)route->pair_index[pair] < tokens_kept(route, route->pair_rank[pair]);
}

static void forget_choices(const wefti_ep_routing *route, int token, int rank)
{
    int32_t *ranks = ranks_of(route, token);
    for (int k = 0; k < route->plan.topk; k++) {
        ranks[k] = ranks[k] == rank ? -1 : ranks[k];
    }
}

void wefti_ep_sends_cut(wefti_ep_routing *route)
{
    int all = 1;
    for (int rank = 0; rank < route->ep->ranks; rank++) {
        all &= tokens_kept(route, rank) == (uint32_t)wefti_ep_sends_to(route, rank);
    }
    if (all) {
        return;
    }
    int end = 0;
    for (int token = 0; token < route->tokens; token++) {
        int first = route->token_pairs[token];
        route->token_pairs[token] = end;
        for (int pair = first; pair < route->token_pairs[token + 1]; pair++) {
            if (!is_kept(route, pair)) {
                forget_choices(route, token, route->pair_rank[pair]);
                continue;
            }
            route->pair_rank[end] = route->pair_rank[pair];
            route->pair_index[end] = route->pair_index[pair];
            route->pair_weight[end++] = route->pair_weight[pair];
        }
    }
    route->token_pairs[route->tokens] = end;
    list_sends(route, tokens_kept);
}

/* The row of a token's first choice on each of its ranks. */
static void place_token(wefti_ep_routing *route, int token, int64_t *expert_next)
{
    const int32_t *choices = choices_of(route, token);
    const int32_t *ranks = ranks_of(route, token);
    int first = route->token_pairs[token];
    for (int pair = first; pair < route->token_pairs[token + 1]; pair++) {
        route->send_row[route->rank_sends[route->pair_rank[pair]] + route->pair_index[pair]] = -1;
    }
    for (int k = 0; k < route->plan.topk; k++) {
        if (ranks[k] < 0 || shares_row(route, choices, k)) {
            continue;
        }
        int32_t row = (int32_t)expert_next[choices[k]]++;
        int pair = first;
        while (route->pair_rank[pair] != ranks[k]) {
            pair++;
        }
        int32_t *send_row = &route->send_row[route->rank_sends[ranks[k]] + route->pair_index[pair]];
        *send_row = *send_row < 0 ? row : *send_row;
    }
}

void wefti_ep_sends_place(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    const uint32_t *bases = ep->host->scratch.bases;
    int64_t *expert_next = ep->host->scratch.expert_next;
    for (int rank = 0; rank < ep->ranks; rank++) {
        route->first_place[rank] = bases[wefti_ep_owners_message(&ep->owners, rank)];
    }
    if (wefti_ep_is_by_source(route)) {
        return;
    }
    for (int expert = 0; expert < ep->config.experts; expert++) {
        expert_next[expert] = bases[wefti_ep_owners_word(&ep->owners, expert)];
    }
    for (int token = 0; token < route->tokens; token++) {
        place_token(route, token, expert_next);
    }
}
