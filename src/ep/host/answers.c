#include "ep/host/answers.h"

#include <string.h>

#include "ep/host/peers.h"
#include "ep/host/sends.h"

/* Where the answer of `owner` lies in scratch.bases and in a source's memory. */
static size_t answer_word(const weft_ep *ep, int owner)
{
    return wefti_ep_owners_message(&ep->owners, owner);
}

static size_t answer_bytes(const weft_ep *ep, int owner)
{
    return (1 + (size_t)wefti_ep_owners_count(&ep->owners, owner)) * sizeof(uint32_t);
}

/* What this rank's own column says to itself, or a direct one: keep it as if it had been sent. */
static void keep(const weft_ep *ep, int owner, const uint32_t *answer)
{
    memcpy(ep->host->scratch.bases + answer_word(ep, owner), answer, answer_bytes(ep, owner));
}

/* ---- direct ---- */

static void judge_all(wefti_ep_routing *route)
{
    const weft_ep *ep = route->ep;
    for (int owner = 0; owner < ep->ranks; owner++) {
        if (ep->masked[owner]) {
            continue;
        }
        wefti_ep_column column = wefti_ep_counts_column(route, owner);
        wefti_ep_verdict verdict = wefti_ep_counts_judge(route, owner, wefti_ep_counts_limit(ep, owner));
        verdict.kept = (uint32_t)wefti_ep_sends_to(route, owner);
        keep(ep, owner, wefti_ep_column_message(&column, ep->rank));
        ep->host->scratch.verdicts[owner] = verdict;
    }
}

/* ---- through the owners ---- */

static weft_status put_answer(const weft_ep *ep, int source, const wefti_ep_column *column)
{
    uint64_t at = ep->host->layout.bases + answer_word(ep, ep->rank) * sizeof(uint32_t);
    return wefti_ep_put(ep, source, at, wefti_ep_column_message(column, source), answer_bytes(ep, ep->rank));
}

static weft_status answer_all(const wefti_ep_routing *route, const wefti_ep_call *call, const wefti_ep_verdict *verdict)
{
    const weft_ep *ep = route->ep;
    wefti_ep_column column = wefti_ep_counts_column(route, ep->rank);
    uint64_t at = wefti_ep_reply_at(&ep->host->layout, ep->rank);
    for (int i = 0; i < ep->ranks; i++) {
        int source = (ep->rank + i) % ep->ranks;
        wefti_ep_reply header;
        if (ep->masked[source]) {
            continue;
        }
        header.status = (uint64_t)(int64_t)verdict->status;
        header.cut = (uint64_t)(int64_t)(verdict->cut + 1);
        header.limit = (uint64_t)verdict->limit;
        if (verdict->cut < 0 || verdict->cut == source) {
            WEFT_TRY(put_answer(ep, source, &column));
        }
        WEFT_TRY(wefti_ep_post(ep, source, at, &header, offsetof(wefti_ep_reply, kept),
                               at + offsetof(wefti_ep_reply, epoch), call->epoch));
    }
    return WEFT_OK;
}

static void read_answer(const weft_ep *ep, int owner)
{
    wefti_copy(ep->host->scratch.bases + answer_word(ep, owner),
               ep->host->base + ep->host->layout.bases + answer_word(ep, owner) * sizeof(uint32_t),
               answer_bytes(ep, owner));
}

static weft_status wait_replies(const wefti_ep_routing *route, const wefti_ep_call *call)
{
    const weft_ep *ep = route->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(ep, WEFTI_EP_WORD_REPLY, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        wefti_ep_reply header;
        int owner;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &owner));
        if (owner < 0) {
            break;
        }
        wefti_copy(&header, ep->host->base + wefti_ep_reply_at(&ep->host->layout, owner),
                   offsetof(wefti_ep_reply, kept));
        wefti_ep_verdict *verdict = &ep->host->scratch.verdicts[owner];
        verdict->status = (int32_t)(int64_t)header.status;
        verdict->cut = (int32_t)header.cut - 1;
        verdict->limit = (int64_t)header.limit;
        verdict->kept = (uint32_t)wefti_ep_sends_to(route, owner);
        if (verdict->cut < 0 || verdict->cut == ep->rank) {
            read_answer(ep, owner);
        }
    }
    return WEFT_OK;
}

weft_status wefti_ep_answers_exchange(wefti_ep_routing *route, const wefti_ep_call *call, int64_t limit)
{
    const weft_ep *ep = route->ep;
    for (int owner = 0; owner < ep->ranks; owner++) { /* those of masked owners stay so */
        ep->host->scratch.verdicts[owner] = (wefti_ep_verdict){.status = WEFT_OK, .cut = -1};
    }
    if (ep->host->limits.direct) {
        judge_all(route);
        return WEFT_OK;
    }
    wefti_ep_verdict verdict = wefti_ep_counts_judge(route, ep->rank, limit);
    WEFT_TRY(answer_all(route, call, &verdict));
    return wait_replies(route, call);
}

/* ---- what is dropped ---- */

/* As the source at whose tokens the owner's limit falls: how many of them fit, and their message. */
static weft_status count_again(wefti_ep_routing *route, const wefti_ep_call *call, int owner)
{
    const weft_ep *ep = route->ep;
    uint32_t *prefix = ep->host->scratch.bases + answer_word(ep, owner);
    wefti_ep_column column = wefti_ep_counts_column(route, ep->rank); /* for its shape only */
    uint32_t *message = wefti_ep_sends_message(ep, owner);
    column.experts = wefti_ep_owners_count(&ep->owners, owner);
    column.of_expert = ep->host->scratch.expert_next + ep->owners.first[owner];
    memset(message, 0, answer_bytes(ep, owner));
    int sends = wefti_ep_sends_to(route, owner);
    int kept = 0;
    for (; kept < sends; kept++) {
        wefti_ep_sends_count(route, route->send_token[route->rank_sends[owner] + kept], owner, prefix);
        for (int expert = 0; expert < column.experts; expert++) {
            column.of_expert[expert] = prefix[1 + expert];
        }
        if (wefti_ep_column_rows(&column, prefix[0]) > ep->host->scratch.verdicts[owner].limit) {
            break;
        }
        wefti_ep_sends_count(route, route->send_token[route->rank_sends[owner] + kept], owner, message);
    }
    WEFT_TRY(wefti_ep_put(ep, owner, ep->host->layout.recount, message, answer_bytes(ep, owner)));
    return wefti_ep_call_mark(call, owner);
}

/* This rank, an owner whose limit falls at source `cut`, answers all sources once more. */
static weft_status answer_again(wefti_ep_routing *route, const wefti_ep_call *call, int cut)
{
    const weft_ep *ep = route->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_none(ep, WEFTI_EP_WORD_MARK, call->epoch, call->name);
    wefti_ep_arrivals_add(&arrivals, cut);
    int come = cut;
    WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &come));
    uint32_t *recount = ep->host->scratch.bases + answer_word(ep, ep->rank); /* becomes the answer to this rank below */
    if (come >= 0) {
        wefti_copy(recount, ep->host->base + ep->host->layout.recount, answer_bytes(ep, ep->rank));
    } else {
        memset(recount, 0, answer_bytes(ep, ep->rank)); /* masked meanwhile */
    }
    wefti_ep_counts_judge_again(route, cut, recount);
    wefti_ep_column column = wefti_ep_counts_column(route, ep->rank);
    uint64_t at = wefti_ep_reply_at(&ep->host->layout, ep->rank);
    for (int i = 0; i < ep->ranks; i++) {
        int source = (ep->rank + i) % ep->ranks;
        if (ep->masked[source]) {
            continue;
        }
        uint64_t kept = (uint64_t)(int64_t)route->rows_of_source[source];
        WEFT_TRY(put_answer(ep, source, &column));
        WEFT_TRY(wefti_ep_post(ep, source, at + offsetof(wefti_ep_reply, kept), &kept, sizeof kept,
                               at + offsetof(wefti_ep_reply, final), call->epoch));
    }
    return WEFT_OK;
}

static weft_status wait_final_replies(const wefti_ep_routing *route, const wefti_ep_call *call)
{
    const weft_ep *ep = route->ep;
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_none(ep, WEFTI_EP_WORD_FINAL, call->epoch, call->name);
    for (int owner = 0; owner < ep->ranks; owner++) {
        if (ep->host->scratch.verdicts[owner].cut >= 0) {
            wefti_ep_arrivals_add(&arrivals, owner);
        }
    }
    while (wefti_ep_arrivals_left(&arrivals)) {
        int owner;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &owner));
        if (owner < 0) {
            break;
        }
        uint64_t at = wefti_ep_reply_at(&ep->host->layout, owner) + offsetof(wefti_ep_reply, kept);
        ep->host->scratch.verdicts[owner].kept = (uint32_t)wefti_ld64(ep->host->base + at, WEFTI_RELAXED);
        read_answer(ep, owner);
    }
    return WEFT_OK;
}

weft_status wefti_ep_answers_cut(wefti_ep_routing *route, const wefti_ep_call *call)
{
    const weft_ep *ep = route->ep;
    for (int owner = 0; owner < ep->ranks; owner++) {
        if (ep->host->scratch.verdicts[owner].cut == ep->rank) {
            WEFT_TRY(count_again(route, call, owner));
        }
    }
    int cut = ep->host->scratch.verdicts[ep->rank].cut;
    if (cut >= 0) {
        WEFT_TRY(answer_again(route, call, cut));
    }
    return wait_final_replies(route, call);
}
