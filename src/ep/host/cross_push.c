/* Rows on their way between domains (protocol/ep_ring.h): out of this rank, and through it.
 *
 * A chunk holds tokens one after another: the token, how many ranks of the domain it goes to, and each of them with its
 * row and place there; on a fresh routing the K choices, -1 for none, and their K weights, of which the forwarder makes
 * the records; then, from a multiple of 16 bytes on, the row, and its scales. */
#include <string.h>

#include "ep/host/crossing.h"
#include "ep/host/peers.h"
#include "ep/host/push.h"
#include "ep/host/records.h"

/* The choices that go with a token. */
static size_t choices_of(const wefti_ep_push *push)
{
    return push->is_fresh ? (size_t)push->route->plan.topk : 0;
}

static size_t row_bytes(const wefti_ep_push *push)
{
    return wefti_ep_place_pitch(push->out.row_bytes, push->out.scale_words);
}

/* ---- out ---- */

/* The ranks of a domain that a token goes to. */
static size_t targets_of(const wefti_ep_push *push, int token, int domain)
{
    const wefti_ep_routing *route = push->route;
    size_t count = 0;
    for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
        count += push->ep->domains.of[route->pair_rank[pair]] == domain;
    }
    return count;
}

static void skip_to_next(const wefti_ep_push *push, wefti_ep_outlet *outlet, int domain)
{
    while (outlet->token < push->route->tokens && targets_of(push, outlet->token, domain) == 0) {
        outlet->token++;
    }
}

/* Returns the bytes that it takes. */
static size_t write_token(const wefti_ep_push *push, int token, int domain, unsigned char *to)
{
    const wefti_ep_routing *route = push->route;
    size_t topk = choices_of(push);
    size_t count = targets_of(push, token, domain);
    uint32_t *words = (uint32_t *)(void *)to;
    *words++ = (uint32_t)token;
    *words++ = (uint32_t)count;
    for (int pair = route->token_pairs[token]; pair < route->token_pairs[token + 1]; pair++) {
        int rank = route->pair_rank[pair];
        if (push->ep->domains.of[rank] == domain) {
            wefti_ep_chunk_target target;
            target.rank = (uint32_t)rank;
            target.row = (uint32_t)wefti_ep_push_target(push, rank, route->pair_index[pair]);
            target.place = route->first_place[rank] + (uint32_t)route->pair_index[pair];
            memcpy(words, &target, sizeof target);
            words += sizeof target / sizeof *words;
        }
    }
    if (topk > 0) {
        wefti_ep_records_choices(route, push->choices.weights, token, words);
    }
    size_t entry = wefti_ep_chunk_entry_bytes(count, topk);
    wefti_ep_wire wire = wefti_ep_push_wire(push, token);
    wefti_copy(to + entry, wire.row, push->out.row_bytes);
    if (push->out.scale_words > 0) {
        wefti_ep_scales_copy(to + entry + push->out.row_bytes, 4, wire.scales, wire.step, push->out.scale_words);
    }
    return entry + row_bytes(push);
}

static weft_status send_chunk(const wefti_ep_push *push, wefti_ep_outlet *outlet, int domain)
{
    const weft_ep *ep = push->ep;
    unsigned char *chunk = ep->host->crossing->chunk;
    wefti_ep_chunk_header header = {.bytes = sizeof header};
    skip_to_next(push, outlet, domain);
    while (header.tokens < ep->host->limits.ring.tokens && outlet->token < push->route->tokens) {
        header.bytes += (uint32_t)write_token(push, outlet->token, domain, chunk + header.bytes);
        header.tokens++;
        outlet->token++;
        skip_to_next(push, outlet, domain);
    }
    header.is_last = outlet->token == push->route->tokens;
    memcpy(chunk, &header, sizeof header);
    outlet->is_all = (int)header.is_last;
    return wefti_ep_crossing_send(ep, WEFTI_EP_RING_CHUNKS, outlet->forwarder, outlet->line, outlet->sent++, chunk,
                                  header.bytes);
}

/* To all domains what there is room for. *progress becomes 1 if that is anything. */
static weft_status send_some(const wefti_ep_push *push, int *progress)
{
    const weft_ep *ep = push->ep;
    for (int domain = 0; domain < ep->domains.count; domain++) {
        wefti_ep_outlet *outlet = &ep->host->crossing->outlets[domain];
        if (outlet->is_all) {
            continue;
        }
        wefti_ep_crossing_look(ep, domain);
        while (!outlet->is_all && wefti_ep_ring_has_room(&ep->host->limits.ring, outlet->sent, outlet->taken)) {
            WEFT_TRY(send_chunk(push, outlet, domain));
            *progress = 1;
        }
    }
    return WEFT_OK;
}

/* ---- through ---- */

/* Hand one token of a chunk on to its ranks of this domain. `from` is the token's entry in the ring's slot, where it
 * is read. *bytes: of the entry. */
static weft_status hand_on_token(const wefti_ep_push *push, const unsigned char *from, size_t *bytes)
{
    size_t topk = choices_of(push);
    uint32_t words[2];
    wefti_copy(words, from, sizeof words);
    size_t count = words[1];
    size_t entry_bytes = wefti_ep_chunk_entry_bytes(count, topk);
    const unsigned char *entry = wefti_ep_row_read(from, push->ep->host->crossing->copy, entry_bytes + row_bytes(push));
    const unsigned char *targets = entry + sizeof words;
    const uint32_t *choices = (const uint32_t *)(const void *)(targets + count * sizeof(wefti_ep_chunk_target));
    wefti_ep_wire wire = {entry + entry_bytes, entry + entry_bytes + push->out.row_bytes, 4};
    for (size_t i = 0; i < count; i++) {
        wefti_ep_chunk_target target;
        memcpy(&target, targets + i * sizeof target, sizeof target);
        if (topk > 0) {
            WEFT_TRY(wefti_ep_records_hand_on(push->route, (int)target.rank, target.place, words[0], choices));
        }
        WEFT_TRY(wefti_ep_push_place(push, (int)target.rank, target.row, &wire));
    }
    *bytes = entry_bytes + row_bytes(push);
    return WEFT_OK;
}

/* All that a source has sent to this domain is in its place: its flag to each rank here. */
static weft_status tell_domain(const wefti_ep_push *push, int source)
{
    const weft_ep *ep = push->ep;
    const wefti_ep_layout *layout = &ep->host->layout;
    const wefti_ep_domains *domains = &ep->domains;
    int own = domains->of[ep->rank];
    uint64_t flag =
        push->flag == WEFTI_EP_WORD_DONE ? wefti_ep_done_at(layout, source) : wefti_ep_mark_at(layout, source);
    wefti_copy_stream_end();
    for (int i = domains->first[own]; i < domains->first[own + 1]; i++) {
        WEFT_TRY(wefti_ep_post(ep, domains->members[i], 0, NULL, 0, flag, push->call.epoch));
    }
    return WEFT_OK;
}

static weft_status hand_on_chunk(const wefti_ep_push *push, wefti_ep_inlet *inlet, const unsigned char *chunk)
{
    wefti_ep_chunk_header header;
    size_t at = sizeof header;
    wefti_copy(&header, chunk, sizeof header);
    for (uint32_t i = 0; i < header.tokens; i++) {
        size_t bytes;
        WEFT_TRY(hand_on_token(push, chunk + at, &bytes));
        at += bytes;
    }
    WEFT_TRY(wefti_ep_crossing_credit(push->ep, inlet));
    inlet->is_all = (int)header.is_last;
    return header.is_last ? tell_domain(push, inlet->source) : WEFT_OK;
}

static weft_status hand_on_some(const wefti_ep_push *push, int *progress)
{
    const weft_ep *ep = push->ep;
    for (int line = 0; line < ep->host->crossing->inlet_count; line++) {
        wefti_ep_inlet *inlet = &ep->host->crossing->inlets[line];
        const unsigned char *chunk =
            inlet->is_all ? NULL : wefti_ep_crossing_take(ep, WEFTI_EP_RING_CHUNKS, line, inlet->taken);
        if (chunk != NULL) {
            WEFT_TRY(hand_on_chunk(push, inlet, chunk));
            *progress = 1;
        }
    }
    return WEFT_OK;
}

/* ---- both ---- */

/* Wait for the forwarders to which chunks are left and the sources from which some are; returns how many these are. */
static int await_all(const wefti_ep_push *push)
{
    const wefti_ep_crossing *crossing = push->ep->host->crossing;
    for (int domain = 0; domain < push->ep->domains.count; domain++) {
        if (!crossing->outlets[domain].is_all) {
            wefti_ep_crossing_await(push->ep, crossing->outlets[domain].forwarder);
        }
    }
    for (int line = 0; line < crossing->inlet_count; line++) {
        if (!crossing->inlets[line].is_all) {
            wefti_ep_crossing_await(push->ep, crossing->inlets[line].source);
        }
    }
    return crossing->arrivals.count;
}

weft_status wefti_ep_cross_push_begin(wefti_ep_push *push)
{
    int progress;
    wefti_ep_crossing_start(push->ep, push->call.epoch, push->call.name, 0);
    return send_some(push, &progress);
}

weft_status wefti_ep_cross_push_end(wefti_ep_push *push)
{
    wefti_ep_stage(push->ep, "forward");
    for (;;) {
        int progress = 0;
        WEFT_TRY(send_some(push, &progress));
        WEFT_TRY(hand_on_some(push, &progress));
        if (progress) {
            wefti_ep_crossing_renew(push->ep);
        } else if (await_all(push) > 0) {
            WEFT_TRY(wefti_ep_crossing_pause(push->ep));
        } else {
            return WEFT_OK;
        }
    }
}
