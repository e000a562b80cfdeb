/* Sums on their way between domains (protocol/ep_ring.h): asked for and added up here, and made for the sources that
 * this rank forwards for.
 *
 * An ask holds tokens one after another: how many rows each one has in the domain, then those in the order in which
 * they are added. Its answer holds the sums one after another. */
#include <string.h>

#include "ep/host/crossing.h"
#include "ep/host/peers.h"
#include "ep/host/pull.h"

/* ---- asking ---- */

/* Writes the rows of a token in a domain to `to`, unless it is NULL; returns how many they are. */
static uint32_t rows_of(const wefti_ep_pull *pull, int token, int domain, unsigned char *to)
{
    const wefti_ep_routing *route = pull->route;
    const int32_t *order = pull->ep->host->scratch.pair_order;
    int pairs = wefti_ep_pull_order(pull, token);
    uint32_t count = 0;
    for (int i = 0; i < pairs; i++) {
        int rank = route->pair_rank[order[i]];
        wefti_ep_ask_row row;
        if (pull->ep->domains.of[rank] != domain || !wefti_ep_pull_participates(pull, token, order[i], &row.weight)) {
            continue;
        }
        if (to != NULL) {
            row.rank = (uint32_t)rank;
            row.row = (uint32_t)wefti_ep_pull_row(pull, rank, route->pair_index[order[i]]);
            memcpy(to + count * sizeof row, &row, sizeof row);
        }
        count++;
    }
    return count;
}

static void skip_to_next(const wefti_ep_pull *pull, wefti_ep_outlet *outlet, int domain)
{
    while (outlet->token < pull->route->tokens && rows_of(pull, outlet->token, domain, NULL) == 0) {
        outlet->token++;
    }
}

static weft_status send_ask(const wefti_ep_pull *pull, wefti_ep_outlet *outlet, int domain)
{
    const weft_ep *ep = pull->ep;
    unsigned char *ask = ep->host->crossing->chunk;
    wefti_ep_chunk_header header = {.bytes = sizeof header};
    skip_to_next(pull, outlet, domain);
    while (header.tokens < ep->host->limits.ring.tokens && outlet->token < pull->route->tokens) {
        uint32_t count = rows_of(pull, outlet->token, domain, ask + header.bytes + sizeof count);
        memcpy(ask + header.bytes, &count, sizeof count);
        header.bytes += (uint32_t)wefti_ep_ask_entry_bytes(count);
        header.tokens++;
        outlet->token++;
        skip_to_next(pull, outlet, domain);
    }
    header.is_last = outlet->token == pull->route->tokens;
    memcpy(ask, &header, sizeof header);
    outlet->is_all = (int)header.is_last;
    return wefti_ep_crossing_send(ep, WEFTI_EP_RING_ASKS, outlet->forwarder, outlet->line, outlet->sent++, ask,
                                  header.bytes);
}

/* Ask all domains for what there are slots for. *progress becomes 1 if that is anything. */
static weft_status ask_some(const wefti_ep_pull *pull, int *progress)
{
    const weft_ep *ep = pull->ep;
    for (int domain = 0; domain < ep->domains.count; domain++) {
        wefti_ep_outlet *outlet = &ep->host->crossing->outlets[domain];
        while (!outlet->is_all && wefti_ep_ring_has_room(&ep->host->limits.ring, outlet->sent, outlet->taken)) {
            WEFT_TRY(send_ask(pull, outlet, domain));
            *progress = 1;
        }
    }
    return WEFT_OK;
}

/* ---- answering ---- */

/* Add up, to `sum`, the rows that an ask names for one token. `from` is the token's entry in the ring's slot,
 * where it is read. *bytes: of the entry. */
static weft_status answer_token(const wefti_ep_pull *pull, const unsigned char *from, void *sum, size_t *bytes)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    uint32_t count;
    wefti_copy(&count, from, sizeof count);
    *bytes = wefti_ep_ask_entry_bytes(count);
    const unsigned char *entry = wefti_ep_row_read(from, pull->ep->host->crossing->copy_of_ask, *bytes);
    for (uint32_t i = 0; i < count; i++) {
        wefti_ep_ask_row row;
        memcpy(&row, entry + sizeof count + i * sizeof row, sizeof row);
        scratch->row_weight[i] = row.weight;
        WEFT_TRY(wefti_ep_pull_fetch(pull, (int)row.rank, row.row, scratch->rows + (i + 1) * pull->in.row_bytes,
                                     &scratch->row_at[i]));
    }
    wefti_ep_pull_add_domain(pull, count, sum);
    return WEFT_OK;
}

static weft_status answer(const wefti_ep_pull *pull, wefti_ep_inlet *inlet, const unsigned char *ask)
{
    const weft_ep *ep = pull->ep;
    unsigned char *chunk = ep->host->crossing->chunk;
    wefti_ep_chunk_header asked;
    wefti_ep_chunk_header header = {.bytes = sizeof header};
    size_t at = sizeof asked;
    wefti_copy(&asked, ask, sizeof asked);
    for (uint32_t i = 0; i < asked.tokens; i++) {
        size_t bytes;
        WEFT_TRY(answer_token(pull, ask + at, chunk + header.bytes, &bytes));
        at += bytes;
        header.bytes += (uint32_t)pull->in.row_bytes;
    }
    header.tokens = asked.tokens;
    memcpy(chunk, &header, sizeof header);
    inlet->is_all = (int)asked.is_last;
    uint32_t number = inlet->taken++;
    return asked.tokens == 0 ? WEFT_OK
                             : wefti_ep_crossing_send(ep, WEFTI_EP_RING_CHUNKS, inlet->source, ep->domains.of[ep->rank],
                                                      number, chunk, header.bytes);
}

static weft_status answer_some(const wefti_ep_pull *pull, int *progress)
{
    const weft_ep *ep = pull->ep;
    for (int line = 0; line < ep->host->crossing->inlet_count; line++) {
        wefti_ep_inlet *inlet = &ep->host->crossing->inlets[line];
        const unsigned char *ask =
            inlet->is_all ? NULL : wefti_ep_crossing_take(ep, WEFTI_EP_RING_ASKS, line, inlet->taken);
        if (ask != NULL) {
            WEFT_TRY(answer(pull, inlet, ask));
            *progress = 1;
        }
    }
    return WEFT_OK;
}

/* ---- adding up ---- */

/* The sum of the next token that was asked for. It stays where it is until the next is taken. */
static const void *sum_of(const wefti_ep_pull *pull, int domain, void *copy)
{
    const wefti_ep_outlet *outlet = &pull->ep->host->crossing->outlets[domain];
    const unsigned char *chunk = wefti_ep_crossing_at(pull->ep, WEFTI_EP_RING_CHUNKS, domain, outlet->taken);
    size_t at = sizeof(wefti_ep_chunk_header) + outlet->row * pull->in.row_bytes;
    return wefti_ep_row_read(chunk + at, copy, pull->in.row_bytes);
}

/* The sum of a domain has been added: go on to the next. */
static void pass_sum(const wefti_ep_pull *pull, int domain)
{
    wefti_ep_outlet *outlet = &pull->ep->host->crossing->outlets[domain];
    wefti_ep_chunk_header header;
    wefti_copy(&header, wefti_ep_crossing_at(pull->ep, WEFTI_EP_RING_CHUNKS, domain, outlet->taken), sizeof header);
    if (++outlet->row == header.tokens) {
        outlet->row = 0;
        outlet->taken++;
    }
}

/* The domains of a token that sums come from, one after another: the one after `domain`, or -1. `pairs` of scratch's
 * order are its. */
static int next_domain(const wefti_ep_pull *pull, int token, int pairs, int domain)
{
    const int32_t *order = pull->ep->host->scratch.pair_order;
    for (int i = 0; i < pairs; i++) {
        int next = pull->ep->domains.of[pull->route->pair_rank[order[i]]];
        float weight;
        if (next > domain && wefti_ep_pull_participates(pull, token, order[i], &weight)) {
            return next;
        }
    }
    return -1;
}

static int is_elsewhere(const wefti_ep_pull *pull, int domain)
{
    return domain != pull->ep->domains.of[pull->ep->rank];
}

/* The first domain whose sum for the token has not come, or -1. */
static int awaited_domain(const wefti_ep_pull *pull, int token)
{
    int pairs = wefti_ep_pull_order(pull, token);
    for (int d = next_domain(pull, token, pairs, -1); d >= 0; d = next_domain(pull, token, pairs, d)) {
        uint32_t number = pull->ep->host->crossing->outlets[d].taken;
        if (is_elsewhere(pull, d) && !wefti_ep_crossing_has(pull->ep, WEFTI_EP_RING_CHUNKS, d, number)) {
            return d;
        }
    }
    return -1;
}

/* The sum of this rank's own domain. */
static weft_status add_own(const wefti_ep_pull *pull, int token, int pairs, void *sum)
{
    const wefti_ep_routing *route = pull->route;
    const int32_t *order = pull->ep->host->scratch.pair_order;
    size_t count = 0;
    for (int i = 0; i < pairs; i++) {
        int added = 0;
        if (!is_elsewhere(pull, pull->ep->domains.of[route->pair_rank[order[i]]])) {
            WEFT_TRY(wefti_ep_pull_take(pull, token, order[i], count, &added));
        }
        count += (size_t)added;
    }
    wefti_ep_pull_add_domain(pull, count, sum);
    return WEFT_OK;
}

/* All sums of a token are there. */
static weft_status add_token(const wefti_ep_pull *pull, int token)
{
    const wefti_ep_scratch *scratch = &pull->ep->host->scratch;
    int pairs = wefti_ep_pull_order(pull, token);
    size_t count = 0;
    for (int d = next_domain(pull, token, pairs, -1); d >= 0; d = next_domain(pull, token, pairs, d)) {
        void *copy = scratch->domain_rows + count * pull->in.row_bytes;
        if (is_elsewhere(pull, d)) {
            scratch->domain_at[count] = sum_of(pull, d, copy);
        } else {
            WEFT_TRY(add_own(pull, token, pairs, copy));
            scratch->domain_at[count] = copy;
        }
        count++;
    }
    wefti_ep_pull_add_domains(pull, token, count);
    for (int d = next_domain(pull, token, pairs, -1); d >= 0; d = next_domain(pull, token, pairs, d)) {
        if (is_elsewhere(pull, d)) {
            pass_sum(pull, d);
        }
    }
    return WEFT_OK;
}

/* ---- all of it ---- */

/* Wait for the forwarder of `domain`, whose sum for the next token is missing (-1: none is), and for the sources that
 * still ask; returns how many ranks these are. */
static int await_all(const wefti_ep_pull *pull, int domain)
{
    wefti_ep_crossing *crossing = pull->ep->host->crossing;
    crossing->awaited = domain;
    if (domain >= 0) {
        wefti_ep_crossing_await(pull->ep, crossing->outlets[domain].forwarder);
    }
    for (int line = 0; line < crossing->inlet_count; line++) {
        if (!crossing->inlets[line].is_all) {
            wefti_ep_crossing_await(pull->ep, crossing->inlets[line].source);
        }
    }
    return crossing->arrivals.count;
}

weft_status wefti_ep_cross_pull(const wefti_ep_pull *pull)
{
    int token = 0;
    wefti_ep_crossing_start(pull->ep, pull->call.epoch, pull->call.name, 1);
    for (;;) {
        int progress = 0;
        int domain = -1;
        WEFT_TRY(ask_some(pull, &progress));
        WEFT_TRY(answer_some(pull, &progress));
        if (token < pull->route->tokens) {
            domain = awaited_domain(pull, token);
        }
        if (token < pull->route->tokens && domain < 0) {
            WEFT_TRY(add_token(pull, token++));
            progress = 1;
        }
        if (progress) {
            wefti_ep_crossing_renew(pull->ep);
        } else if (await_all(pull, domain) > 0) {
            WEFT_TRY(wefti_ep_crossing_pause(pull->ep));
        } else {
            return WEFT_OK;
        }
    }
}
