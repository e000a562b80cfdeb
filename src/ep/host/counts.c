#include "ep/host/counts.h"

#include <string.h>

#include "ep/host/notices.h"
#include "ep/host/peers.h"

static int32_t capped(int64_t count)
{
    return count < INT32_MAX ? (int32_t)count : INT32_MAX;
}

const uint32_t *wefti_ep_counts_for(const weft_ep *ep, int owner, size_t *words)
{
    const wefti_ep_host *host = ep->host;
    if (host->limits.direct) {
        *words = wefti_ep_counts_words(&host->limits);
        return host->scratch.counts;
    }
    *words = 1 + (size_t)wefti_ep_owners_count(&ep->owners, owner);
    return host->scratch.counts + 1 + wefti_ep_owners_message(&ep->owners, owner);
}

void wefti_ep_counts_tell_limit(const weft_ep *ep, int64_t limit)
{
    ep->host->scratch.counts[0] = (uint32_t)limit;
}

weft_status wefti_ep_counts_put(const weft_ep *ep, int rank)
{
    size_t words;
    const uint32_t *counts = wefti_ep_counts_for(ep, rank, &words);
    return wefti_ep_put(ep, rank, wefti_ep_counts_at(&ep->host->layout, ep->rank), counts, words * sizeof *counts);
}

/* Where the counts of a source lie, whose call header has come. */
static const unsigned char *counts_of(const weft_ep *ep, int source, uint64_t epoch)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    return ep->host->base + (wefti_ep_notices_has(ep, source, epoch)
                                 ? wefti_ep_handed_at(layout, source) + sizeof(wefti_ep_call_header)
                                 : wefti_ep_counts_at(layout, source));
}

void wefti_ep_counts_read(const weft_ep *ep, uint64_t epoch)
{
    const wefti_ep_host *host = ep->host;
    size_t words = wefti_ep_counts_words(&host->limits);
    size_t used = host->limits.direct ? words : 1 + (size_t)wefti_ep_local_experts(ep);
    for (int source = 0; source < ep->ranks; source++) {
        uint32_t *to = host->scratch.counts_in + (size_t)source * words;
        if (ep->masked[source]) {
            memset(to, 0, used * sizeof *to);
        } else {
            wefti_copy(to, counts_of(ep, source, epoch), used * sizeof *to);
        }
    }
}

int64_t wefti_ep_counts_limit(const weft_ep *ep, int rank)
{
    return ep->host->scratch.counts_in[(size_t)rank * wefti_ep_counts_words(&ep->host->limits)];
}

wefti_ep_column wefti_ep_counts_column(const wefti_ep_routing *route, int owner)
{
    const weft_ep *ep = route->ep;
    wefti_ep_column column;
    column.messages = ep->host->scratch.counts_in;
    if (ep->host->limits.direct) {
        column.messages += 1 + wefti_ep_owners_message(&ep->owners, owner);
    }
    column.pitch = wefti_ep_counts_words(&ep->host->limits);
    column.ranks = ep->ranks;
    column.experts = wefti_ep_owners_count(&ep->owners, owner);
    column.own_places = (uint32_t)wefti_ep_own_places(ep);
    column.plan = route->plan;
    column.of_expert = ep->host->scratch.expert_next + ep->owners.first[owner];
    return column;
}

static void set_sources(wefti_ep_routing *route, const wefti_ep_column *column)
{
    int64_t place = 0;
    for (int source = 0; source < column->ranks; source++) {
        const uint32_t *message = wefti_ep_column_message(column, source);
        route->rows_of_source[source] = (int32_t)message[0];
        route->place_of_source[source] = capped(column->own_places != 0 ? (int64_t)source * column->own_places : place);
        route->offset_of_source[source] =
            route->plan.layout == WEFT_EP_SLOTS_SOURCE ? source * route->plan.slot_tokens : capped(place);
        place += message[0];
        for (int expert = 0; expert < column->experts; expert++) {
            route->rows_of_expert_source[(size_t)expert * (size_t)column->ranks + (size_t)source] =
                (int32_t)message[1 + expert];
        }
    }
    route->place_of_source[column->ranks] =
        capped(column->own_places != 0 ? (int64_t)column->ranks * column->own_places : place);
    route->offset_of_source[column->ranks] =
        route->plan.layout == WEFT_EP_SLOTS_SOURCE ? column->ranks * route->plan.slot_tokens : capped(place);
}

static void set_experts(wefti_ep_routing *route, const wefti_ep_column *column)
{
    int64_t end = 0;
    int by_source = wefti_ep_is_by_source(route);
    for (int expert = 0; expert < column->experts; expert++) {
        route->rows_of_expert[expert] = capped(column->of_expert[expert]);
        route->offset_of_expert[expert] = by_source ? 0 : capped(end);
        end = wefti_ep_expert_end(&route->plan, column->ranks, end, column->of_expert[expert]);
    }
    route->offset_of_expert[column->experts] = by_source ? 0 : capped(end);
}

/* The counts of the routes from this rank's own column, which has been added up. */
static void set_counts(wefti_ep_routing *route, const wefti_ep_column *column, const wefti_ep_column_sum *sum)
{
    set_sources(route, column);
    set_experts(route, column);
    *route->rows = capped(sum->rows);
    *route->dropped_rows = capped(route->wanted - sum->filled);
}

wefti_ep_verdict wefti_ep_counts_judge(wefti_ep_routing *route, int owner, int64_t limit)
{
    wefti_ep_verdict verdict = {.status = WEFT_OK, .cut = -1, .limit = limit};
    wefti_ep_column column = wefti_ep_counts_column(route, owner);
    wefti_ep_column_sum sum = wefti_ep_column_add_up(&column);
    if (owner == route->ep->rank) {
        route->wanted = route->is_counted ? route->wanted : sum.filled;
        route->wanted_rows = route->is_counted ? route->wanted_rows : capped(sum.rows);
        set_counts(route, &column, &sum);
    }
    if (sum.rows > limit && !wefti_ep_plan_is_slots(&route->plan)) {
        if (route->ep->config.overflow == WEFT_EP_OVERFLOW_ERROR) {
            verdict.status = WEFT_ERR_OVERFLOW;
        } else {
            verdict.cut = wefti_ep_column_cut(&column, limit);
        }
        return verdict;
    }
    wefti_ep_column_answer(&column);
    return verdict;
}

void wefti_ep_counts_judge_again(wefti_ep_routing *route, int cut, const uint32_t *recount)
{
    wefti_ep_column column = wefti_ep_counts_column(route, route->ep->rank);
    memcpy(wefti_ep_column_message(&column, cut), recount, (1 + (size_t)column.experts) * sizeof *recount);
    /* Those before it are as they were. */
    wefti_ep_column_sum sum = wefti_ep_column_add_up(&column);
    set_counts(route, &column, &sum);
    wefti_ep_column_answer(&column);
}
