#include "ep/host/crossing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ep/host/peers.h"
#include "ep/host/span.h"

static int has_crossings(const weft_ep *ep)
{
    return ep->domains.count > 1 && (ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT) == 0;
}

int wefti_ep_crossing_is_on(const weft_ep *ep)
{
    return ep->host->crossing != NULL && memchr(ep->masked, 1, (size_t)ep->ranks) == NULL;
}

/* ---- who forwards for whom ---- */

/* How many sources below `end` send through `forwarder`: in each other domain the one in the same slot and, where that
 * domain is larger, those a multiple of the forwarder's domain further on. */
static int sources_of(const wefti_ep_domains *domains, int forwarder, int end)
{
    int domain = domains->of[forwarder];
    int size = wefti_ep_domains_size(domains, domain);
    int count = 0;
    for (int other = 0; other < domains->count; other++) {
        const int32_t *members = &domains->members[domains->first[other]];
        int slots = other != domain ? wefti_ep_domains_size(domains, other) : 0;
        for (int slot = domains->slot[forwarder]; slot < slots; slot += size) {
            count += members[slot] < end;
        }
    }
    return count;
}

/* *lines: rings that suffice for any rank; *sources: of these the most that come from one domain. */
static void count_lines(const wefti_ep_domains *domains, size_t *lines, size_t *sources)
{
    int least = domains->ranks;
    int most = 1;
    for (int d = 0; d < domains->count; d++) {
        int size = wefti_ep_domains_size(domains, d);
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    *lines = 0;
    for (int d = 0; d < domains->count; d++) { /* of each domain the member in the first slot has the most */
        size_t count = (size_t)sources_of(domains, domains->members[domains->first[d]], domains->ranks);
        *lines = count > *lines ? count : *lines;
    }
    *sources = (size_t)((most + least - 1) / least);
}

wefti_ep_ring_shape wefti_ep_crossing_shape(const weft_ep *ep)
{
    wefti_ep_ring_shape none;
    size_t lines;
    size_t sources;
    memset(&none, 0, sizeof none);
    if (!has_crossings(ep)) {
        return none;
    }
    count_lines(&ep->domains, &lines, &sources);
    return wefti_ep_ring_shape_of((size_t)ep->domains.count, lines, sources,
                                  wefti_ep_row_pitch_max(ep->config.row_bytes_max, (size_t)ep->config.scale_bytes_max),
                                  (size_t)ep->config.topk_max, (size_t)ep->config.tokens_max);
}

/* ---- life ---- */

size_t wefti_ep_crossing_bytes(const weft_ep *ep)
{
    const wefti_ep_ring_shape *ring = &ep->host->limits.ring;
    return ring->domains == 0 ? 0
                              : sizeof(wefti_ep_crossing) + ring->domains * sizeof(wefti_ep_outlet) +
                                    ring->lines * sizeof(wefti_ep_inlet) + 2 * ring->chunk_bytes + ring->ask_bytes +
                                    ep->host->layout.notice_pitch + ep->host->layout.handed_pitch;
}

static void set_ends(const weft_ep *ep, wefti_ep_crossing *crossing)
{
    const wefti_ep_domains *domains = &ep->domains;
    int own = domains->of[ep->rank];
    for (int d = 0; d < domains->count; d++) {
        wefti_ep_outlet *outlet = &crossing->outlets[d];
        outlet->forwarder = d == own ? -1 : wefti_ep_domains_forwarder(domains, ep->rank, d);
        outlet->line = d == own ? 0 : sources_of(domains, outlet->forwarder, ep->rank);
    }
    for (int source = 0; source < ep->ranks; source++) {
        if (domains->of[source] != own && wefti_ep_domains_forwarder(domains, source, own) == ep->rank) {
            crossing->inlets[crossing->inlet_count++].source = source;
        }
    }
}

weft_status wefti_ep_crossing_init(weft_ep *ep)
{
    const wefti_ep_ring_shape *ring = &ep->host->limits.ring;
    if (ring->domains == 0) {
        return WEFT_OK;
    }
    wefti_ep_crossing *crossing = wefti_alloc_zeroed(1, sizeof *crossing);
    ep->host->crossing = crossing;
    if (crossing != NULL) {
        crossing->outlets = wefti_alloc_zeroed(ring->domains, sizeof *crossing->outlets);
        crossing->inlets = wefti_alloc_zeroed(ring->lines, sizeof *crossing->inlets);
        crossing->chunk = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ring->chunk_bytes);
        crossing->copy = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ring->chunk_bytes);
        crossing->copy_of_ask = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ring->ask_bytes);
        crossing->notice = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ep->host->layout.notice_pitch);
        crossing->handed = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ep->host->layout.handed_pitch);
    }
    if (crossing == NULL || crossing->outlets == NULL || crossing->inlets == NULL || crossing->chunk == NULL ||
        crossing->copy == NULL || crossing->copy_of_ask == NULL || crossing->notice == NULL ||
        crossing->handed == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for the chunks of %zu domains", ring->domains);
    }
    set_ends(ep, crossing);
    return WEFT_OK;
}

void wefti_ep_crossing_fini(wefti_ep_crossing *crossing)
{
    if (crossing != NULL) {
        wefti_free(crossing->outlets);
        wefti_free(crossing->inlets);
        wefti_free(crossing->chunk);
        wefti_free(crossing->copy);
        wefti_free(crossing->copy_of_ask);
        wefti_free(crossing->notice);
        wefti_free(crossing->handed);
        wefti_free(crossing);
    }
}

/* ---- rings ---- */

static uint64_t flag_at(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    size_t slot = wefti_ep_ring_slot(&ep->host->limits.ring, (size_t)line, number);
    return (kind == WEFTI_EP_RING_CHUNKS ? layout->chunk_flags : layout->ask_flags) + slot * sizeof(uint64_t);
}

static uint64_t slot_at(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    const wefti_ep_ring_shape *ring = &ep->host->limits.ring;
    size_t slot = wefti_ep_ring_slot(ring, (size_t)line, number);
    return kind == WEFTI_EP_RING_CHUNKS ? layout->chunks + slot * ring->chunk_bytes
                                        : layout->asks + slot * ring->ask_bytes;
}

const unsigned char *wefti_ep_crossing_at(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number)
{
    return ep->host->base + slot_at(ep, kind, line, number);
}

weft_status wefti_ep_crossing_send(const weft_ep *ep, wefti_ep_ring_kind kind, int rank, int line, uint32_t number,
                                   const void *chunk, size_t bytes)
{
    return wefti_ep_post_apart(ep, rank, slot_at(ep, kind, line, number), chunk, bytes, flag_at(ep, kind, line, number),
                               wefti_ep_ring_word(ep->host->crossing->arrivals.epoch, number));
}

int wefti_ep_crossing_has(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number)
{
    return wefti_ld64(ep->host->base + flag_at(ep, kind, line, number), WEFTI_ACQUIRE) ==
           wefti_ep_ring_word(ep->host->crossing->arrivals.epoch, number);
}

const unsigned char *wefti_ep_crossing_take(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number)
{
    return wefti_ep_crossing_has(ep, kind, line, number) ? wefti_ep_crossing_at(ep, kind, line, number) : NULL;
}

weft_status wefti_ep_crossing_credit(const weft_ep *ep, wefti_ep_inlet *inlet)
{
    uint64_t at = ep->host->layout.credits + (size_t)ep->domains.of[ep->rank] * sizeof(uint64_t);
    inlet->taken++;
    return wefti_ep_ring_gives_credit(&ep->host->limits.ring, inlet->taken)
               ? wefti_ep_post(ep, inlet->source, 0, NULL, 0, at,
                               wefti_ep_ring_word(ep->host->crossing->arrivals.epoch, inlet->taken))
               : WEFT_OK;
}

void wefti_ep_crossing_look(const weft_ep *ep, int domain)
{
    wefti_ep_crossing *crossing = ep->host->crossing;
    uint64_t at = ep->host->layout.credits + (size_t)domain * sizeof(uint64_t);
    crossing->outlets[domain].taken =
        wefti_ep_ring_credit(wefti_ld64(ep->host->base + at, WEFTI_ACQUIRE), crossing->arrivals.epoch);
}

/* ---- waiting ---- */

static int outlet_can_go_on(const weft_ep *ep, int domain)
{
    const wefti_ep_crossing *crossing = ep->host->crossing;
    const wefti_ep_outlet *outlet = &crossing->outlets[domain];
    uint64_t at = ep->host->layout.credits + (size_t)domain * sizeof(uint64_t);
    if (crossing->asks) { /* sums are taken in the order of their domains, so another one's changes nothing */
        return domain == crossing->awaited && wefti_ep_crossing_has(ep, WEFTI_EP_RING_CHUNKS, domain, outlet->taken);
    }
    if (outlet->forwarder < 0 || outlet->is_all) { /* credits for all that was sent say nothing */
        return 0;
    }
    return wefti_ep_ring_credit(wefti_ld64(ep->host->base + at, WEFTI_ACQUIRE), crossing->arrivals.epoch) >
           outlet->taken;
}

/* Whether any ring can be read or written further. For any awaited rank the same: one that has gone on to its next step
 * has sent all its chunks before. */
static int can_go_on(const wefti_ep_arrivals *arrivals, int rank)
{
    const weft_ep *ep = arrivals->ep;
    const wefti_ep_crossing *crossing = ep->host->crossing;
    wefti_ep_ring_kind kind = crossing->asks ? WEFTI_EP_RING_ASKS : WEFTI_EP_RING_CHUNKS;
    (void)rank;
    for (int d = 0; d < ep->domains.count; d++) {
        if (outlet_can_go_on(ep, d)) {
            return 1;
        }
    }
    for (int i = 0; i < crossing->inlet_count; i++) {
        const wefti_ep_inlet *inlet = &crossing->inlets[i];
        if (!inlet->is_all && wefti_ep_crossing_has(ep, kind, i, inlet->taken)) {
            return 1;
        }
    }
    return 0;
}

void wefti_ep_crossing_start(const weft_ep *ep, uint64_t epoch, const char *name, int asks)
{
    wefti_ep_crossing *crossing = ep->host->crossing;
    crossing->asks = asks;
    crossing->awaited = -1;
    crossing->arrivals = wefti_ep_arrivals_none(ep, WEFTI_EP_WORD_MARK, epoch, name);
    crossing->arrivals.has_come = can_go_on;
    for (int d = 0; d < ep->domains.count; d++) {
        wefti_ep_outlet *outlet = &crossing->outlets[d];
        outlet->sent = outlet->taken = outlet->row = 0;
        outlet->token = 0;
        outlet->is_all = outlet->forwarder < 0;
    }
    for (int i = 0; i < crossing->inlet_count; i++) {
        crossing->inlets[i].taken = 0;
        crossing->inlets[i].is_all = 0;
    }
}

void wefti_ep_crossing_renew(const weft_ep *ep)
{
    wefti_waiter_renew(&ep->host->crossing->arrivals.waiter);
}

void wefti_ep_crossing_await(const weft_ep *ep, int rank)
{
    wefti_ep_arrivals *arrivals = &ep->host->crossing->arrivals;
    for (int i = 0; i < arrivals->count; i++) {
        if (arrivals->pending[i] == rank) {
            return;
        }
    }
    wefti_ep_arrivals_add(arrivals, rank);
}

weft_status wefti_ep_crossing_pause(const weft_ep *ep)
{
    wefti_ep_arrivals *arrivals = &ep->host->crossing->arrivals;
    weft_status status = wefti_ep_arrivals_pause(arrivals);
    arrivals->count = 0;
    return status;
}
