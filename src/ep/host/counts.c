#include "ep/host/counts.h"

#include <string.h>

#include "ep/host/peers.h"

/* The words of this owner's messages, in and out. */
static size_t message_words(const weft_ep *ep)
{
    return 1 + (size_t)wefti_ep_local_experts(ep);
}

static int32_t capped(int64_t count)
{
    return count < INT32_MAX ? (int32_t)count : INT32_MAX;
}

weft_status wefti_ep_counts_put(const wefti_ep_routing *route, int owner)
{
    const weft_ep *ep = route->ep;
    size_t words = 1 + (size_t)wefti_ep_owners_count(&ep->owners, owner);
    return wefti_ep_put(ep, owner, wefti_ep_counts_at(&ep->host->layout, ep->rank),
                        &ep->host->scratch.counts[wefti_ep_owners_message(&ep->owners, owner)],
                        words * sizeof(uint32_t));
}

/* Tokens by source, and the sum of each expert's choices into scratch.expert_next. Returns the tokens. */
static int64_t scan_sources(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    size_t words = message_words(ep);
    int64_t *of_expert = ep->host->scratch.expert_next;
    int64_t tokens = 0;
    memset(of_expert, 0, (words - 1) * sizeof *of_expert);
    for (int source = 0; source < ep->ranks; source++) {
        uint32_t *message = &ep->host->scratch.counts_in[(size_t)source * words];
        wefti_copy(message, ep->host->base + wefti_ep_counts_at(&ep->host->layout, source), words * sizeof *message);
        route->rows_of_source[source] = (int32_t)message[0];
        route->offset_of_source[source] = capped(tokens);
        tokens += message[0];
        for (size_t expert = 0; expert + 1 < words; expert++) {
            of_expert[expert] += message[1 + expert];
            route->rows_of_expert_source[expert * (size_t)ep->ranks + (size_t)source] = (int32_t)message[1 + expert];
        }
    }
    route->offset_of_source[ep->ranks] = capped(tokens);
    return tokens;
}

/* Rows by expert, from the sums. Returns the rows of the expert-major layout. */
static int64_t scan_experts(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    int64_t alignment = route->plan.alignment > 1 ? route->plan.alignment : 1;
    int64_t end = 0;
    int experts = wefti_ep_local_experts(ep);
    for (int expert = 0; expert < experts; expert++) {
        int64_t count = ep->host->scratch.expert_next[expert];
        route->rows_of_expert[expert] = capped(count);
        route->offset_of_expert[expert] = wefti_ep_is_expert_major(route) ? capped(end) : 0;
        end += (count + alignment - 1) / alignment * alignment;
    }
    route->offset_of_expert[experts] = wefti_ep_is_expert_major(route) ? capped(end) : 0;
    return end;
}

void wefti_ep_counts_scan(wefti_ep_routing *route)
{
    int64_t tokens = scan_sources(route);
    int64_t padded = scan_experts(route);
    int64_t rows = wefti_ep_is_expert_major(route) ? padded : tokens;
    *route->rows = capped(rows);
    *route->dropped_rows = 0;
    *route->status = rows > route->ep->rows_limit ? WEFT_ERR_OVERFLOW : WEFT_OK;
}

/* Replace the counts of all sources by their bases. */
static void scan_bases(const wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    size_t words = message_words(ep);
    int64_t *next = ep->host->scratch.expert_next;
    for (size_t expert = 0; expert + 1 < words; expert++) {
        next[expert] = route->offset_of_expert[expert];
    }
    for (int source = 0; source < ep->ranks; source++) {
        uint32_t *message = &ep->host->scratch.counts_in[(size_t)source * words];
        message[0] = (uint32_t)route->offset_of_source[source];
        for (size_t expert = 0; expert + 1 < words; expert++) {
            uint32_t count = message[1 + expert];
            message[1 + expert] = (uint32_t)next[expert];
            next[expert] += count;
        }
    }
}

weft_status wefti_ep_counts_answer(const wefti_ep_routing *route, const wefti_ep_call *call)
{
    const weft_ep *ep = route->ep;
    size_t words = message_words(ep);
    uint64_t bases_at = ep->host->layout.bases + wefti_ep_owners_message(&ep->owners, ep->rank) * sizeof(uint32_t);
    uint64_t reply_at = wefti_ep_reply_at(&ep->host->layout, ep->rank);
    uint64_t verdict = (uint64_t)(int64_t)*route->status;
    scan_bases(route);
    for (int i = 0; i < ep->ranks; i++) {
        int source = (ep->rank + i) % ep->ranks;
        WEFT_TRY(wefti_ep_put(ep, source, bases_at, &ep->host->scratch.counts_in[(size_t)source * words],
                              words * sizeof(uint32_t)));
        WEFT_TRY(wefti_ep_post(ep, source, reply_at, &verdict, sizeof verdict,
                               reply_at + offsetof(wefti_ep_reply_line, epoch), call->epoch));
    }
    return WEFT_OK;
}

weft_status wefti_ep_counts_hear(const wefti_ep_routing *route, const wefti_ep_call *call, int32_t *status)
{
    const weft_ep *ep = route->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_REPLY, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int owner;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &owner));
        uint64_t verdict = wefti_ld64(ep->host->base + wefti_ep_reply_at(&ep->host->layout, owner), WEFTI_RELAXED);
        if ((int32_t)(int64_t)verdict != WEFT_OK) {
            *status = (int32_t)(int64_t)verdict;
        }
    }
    wefti_copy(ep->host->scratch.bases, ep->host->base + ep->host->layout.bases,
               (ep->host->limits.ranks + ep->host->limits.experts) * sizeof(uint32_t));
    return WEFT_OK;
}
