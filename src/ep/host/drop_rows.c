/* What is left of choices where rows are dropped by themselves (WEFT_EP_OVERFLOW_DROP_ROWS): a call in which the ranks
 * agree on counts as if all rows came, of which every rank then knows where its own would lie. It ends there: the
 * routing is made of what is left. */
#include "ep/host/answers.h"
#include "ep/host/calls.h"
#include "ep/host/counts.h"
#include "ep/host/exchange.h"

/* What a choice of that id becomes if its row is `kept`; one that is none, or out of range, stays so. */
static int32_t kept_id(const weft_ep_choices *choices, size_t at, int64_t experts, int kept)
{
    int64_t id =
        choices->id_type == WEFT_EP_INT64 ? ((const int64_t *)choices->ids)[at] : ((const int32_t *)choices->ids)[at];
    return id == -1 ? -1 : id < 0 || id >= experts ? INT32_MIN : kept ? (int32_t)id : -1;
}

/* Whether the row that would be next of the expert of a choice lies within the limits of its owner `rank`. */
static int is_kept(const wefti_ep_routing *route, int token, int rank, int64_t row)
{
    const weft_ep *ep = route->ep;
    int64_t rows = ep->rows_limit - ep->rows_limit % route->plan.alignment;
    int pair = route->token_pairs[token];
    while (route->pair_rank[pair] != rank) {
        pair++;
    }
    int64_t place =
        (int64_t)ep->host->scratch.bases[wefti_ep_owners_message(&ep->owners, rank)] + route->pair_index[pair];
    return (wefti_ep_own_places(ep) > 0 || place < ep->rows_limit) && row < rows;
}

static void keep_token(wefti_ep_routing *route, const weft_ep_choices *choices, int token)
{
    const weft_ep *ep = route->ep;
    const size_t first = (size_t)token * (size_t)route->plan.topk;
    for (size_t at = first; at < first + (size_t)route->plan.topk; at++) {
        const int rank = route->choice_rank[at];
        const int32_t expert = ep->host->scratch.choices[at];
        const int counts = rank >= 0 && !ep->masked[rank];
        const int kept = !counts || is_kept(route, token, rank, ep->host->scratch.expert_next[expert]++);
        route->kept[at] = kept_id(choices, at, ep->config.experts, kept);
    }
}

/* This rank's rows of each expert would begin where the owners' answers say. */
static void keep_tokens(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    const weft_ep *ep = route->ep;
    for (int expert = 0; expert < ep->config.experts; expert++) {
        ep->host->scratch.expert_next[expert] = ep->host->scratch.bases[wefti_ep_owners_word(&ep->owners, expert)];
    }
    for (int token = 0; token < route->tokens; token++) {
        keep_token(route, choices, token);
    }
}

static weft_status count(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    static const wefti_ep_signature_fields fields = {.kind = WEFTI_EP_UPDATE, .flags = WEFTI_EP_COUNTING};
    wefti_ep_call call = wefti_ep_call_begin(route->ep, "weft_ep_route_update", &fields);
    route->is_counted = 0;
    wefti_ep_call_set_plan(&call, &route->plan, choices->tokens);
    WEFT_TRY(wefti_ep_exchange_post(route, &call, choices, UINT32_MAX));
    WEFT_TRY(wefti_ep_call_wait_headers(&call));
    if (call.mismatched_rank < 0) {
        wefti_ep_counts_read(route->ep, call.epoch);
        WEFT_TRY(wefti_ep_answers_exchange(route, &call, UINT32_MAX));
        keep_tokens(route, choices);
        route->is_counted = 1;
    }
    WEFT_TRY(wefti_ep_call_done_all(&call));
    WEFT_TRY(wefti_ep_call_await_done(&call));
    return wefti_ep_call_end(&call);
}

weft_status wefti_ep_host_drop_rows(weft_ep_route *handle, const weft_ep_choices *choices, int is_counted,
                                    weft_ep_choices *kept, weft_stream *stream)
{
    wefti_ep_routing *route = handle->host;
    (void)stream;
    *kept = *choices;
    kept->ids = route->kept;
    kept->id_type = WEFT_EP_INT32;
    handle->is_routed = handle->is_routed && is_counted;
    return is_counted ? WEFT_OK : count(route, choices);
}
