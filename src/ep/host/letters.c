#include "ep/host/letters.h"

#include <string.h>

#include "ep/host/counts.h"
#include "ep/host/crossing.h"
#include "ep/host/peers.h"

/* ---- sizes ---- */

/* The words of an owner's counts. */
static size_t message_words(const weft_ep *ep, int owner)
{
    return 1 + (size_t)wefti_ep_owners_count(&ep->owners, owner);
}

/* A bit a rank of a domain. */
static size_t mask_words(const weft_ep *ep, int domain)
{
    return ((size_t)wefti_ep_domains_size(&ep->domains, domain) + 31) / 32;
}

/* The words of all counts for a domain. */
static size_t counts_words(const weft_ep *ep, int domain)
{
    const wefti_ep_domains *domains = &ep->domains;
    size_t words = 0;
    for (int i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
        words += message_words(ep, domains->members[i]);
    }
    return ep->host->limits.direct ? wefti_ep_counts_words(&ep->host->limits) : words;
}

size_t wefti_ep_letters_words(const weft_ep *ep)
{
    size_t most = 0;
    for (int domain = 0; domain < ep->domains.count && ep->host->limits.ring.domains > 0; domain++) {
        size_t words = mask_words(ep, domain) + counts_words(ep, domain);
        most = words > most ? words : most;
    }
    return most;
}

int wefti_ep_goes_by_letter(const weft_ep *ep, int rank)
{
    return wefti_ep_crossing_via(ep, ep->domains.of[rank]) >= 0;
}

/* ---- writing ---- */

/* Returns how many words they are. */
static size_t write_counts(const weft_ep *ep, int domain, uint32_t *to)
{
    const wefti_ep_domains *domains = &ep->domains;
    const uint32_t *counts = ep->host->scratch.counts;
    size_t words = 0;
    if (ep->host->limits.direct) {
        memcpy(to, counts, counts_words(ep, domain) * sizeof *to);
        return counts_words(ep, domain);
    }
    for (int i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
        int owner = domains->members[i];
        memcpy(to + words, counts + 1 + wefti_ep_owners_message(&ep->owners, owner),
               message_words(ep, owner) * sizeof *to);
        words += message_words(ep, owner);
    }
    return words;
}

static size_t write_mask(const weft_ep *ep, int domain, uint32_t *to)
{
    const wefti_ep_domains *domains = &ep->domains;
    memset(to, 0, mask_words(ep, domain) * sizeof *to);
    for (int i = 0; i < wefti_ep_domains_size(domains, domain); i++) {
        to[i / 32] |= (uint32_t)(ep->masked[domains->members[domains->first[domain] + i]] != 0) << (i % 32);
    }
    return mask_words(ep, domain);
}

weft_status wefti_ep_letters_send(const weft_ep *ep, int domain, const wefti_ep_call_header *header, uint64_t epoch,
                                  int counted)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    wefti_ep_crossing *crossing = ep->host->crossing;
    int forwarder = wefti_ep_crossing_via(ep, domain);
    if (forwarder < 0) {
        return WEFT_OK;
    }
    size_t line = (size_t)crossing->outlets[domain].line;
    uint32_t *words = (uint32_t *)(void *)(crossing->letter + sizeof *header);
    size_t count = write_mask(ep, domain, words);
    count += counted ? write_counts(ep, domain, words + count) : 0;
    crossing->told = *header;
    crossing->told_counts = counted;
    crossing->told.epoch = count;
    memcpy(crossing->letter, &crossing->told, sizeof *header);
    crossing->told.epoch = epoch;
    return wefti_ep_post(ep, forwarder, layout->letters + line * layout->letter_pitch, crossing->letter,
                         sizeof *header + count * sizeof *words, layout->letter_flags + line * sizeof(uint64_t), epoch);
}

/* ---- directly ---- */

static weft_status post_header(const weft_ep *ep, int source, int rank, const wefti_ep_call_header *header,
                               uint64_t epoch)
{
    uint64_t at = wefti_ep_call_at(&ep->host->layout, source);
    return wefti_ep_post(ep, rank, at, header, offsetof(wefti_ep_call_header, epoch),
                         at + offsetof(wefti_ep_call_header, epoch), epoch);
}

weft_status wefti_ep_letters_again(const weft_ep *ep, int masked, uint64_t epoch)
{
    const wefti_ep_crossing *crossing = ep->host->crossing;
    int domain = ep->domains.of[masked];
    if (crossing == NULL || crossing->outlets[domain].forwarder != masked || crossing->told.epoch != epoch) {
        return WEFT_OK;
    }
    for (int i = ep->domains.first[domain]; i < ep->domains.first[domain + 1]; i++) {
        int rank = ep->domains.members[i];
        if (!ep->masked[rank]) {
            WEFT_TRY(crossing->told_counts ? wefti_ep_counts_put(ep, rank) : WEFT_OK);
            WEFT_TRY(post_header(ep, ep->rank, rank, &crossing->told, epoch));
        }
    }
    return WEFT_OK;
}

/* ---- handing on ---- */

/* To a member of this domain; `counts`: its own, or NULL. */
static weft_status hand_to(const weft_ep *ep, int source, int member, const wefti_ep_call_header *header,
                           const uint32_t *counts, uint64_t epoch)
{
    int is_direct = ep->host->limits.direct;
    size_t words = is_direct ? wefti_ep_counts_words(&ep->host->limits) : message_words(ep, member);
    if (counts != NULL) {
        WEFT_TRY(
            wefti_ep_put(ep, member, wefti_ep_counts_at(&ep->host->layout, source), counts, words * sizeof *counts));
    }
    return post_header(ep, source, member, header, epoch);
}

/* Where the counts of the next member begin. */
static size_t next_counts(const weft_ep *ep, int member, size_t at)
{
    return ep->host->limits.direct ? at : at + message_words(ep, member);
}

/* Whether a member has a later header of the source, which sent that without this rank. */
static int knows_later(const weft_ep *ep, int source, int member, uint64_t epoch)
{
    const unsigned char *header = wefti_ep_near(ep, member, wefti_ep_call_at(&ep->host->layout, source));
    return header != NULL && wefti_ld64(header + offsetof(wefti_ep_call_header, epoch), WEFTI_ACQUIRE) > epoch;
}

static weft_status hand_on(const weft_ep *ep, int source, int line, uint64_t epoch)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    const wefti_ep_domains *domains = &ep->domains;
    int own = domains->of[ep->rank];
    size_t masks = mask_words(ep, own);
    uint32_t *words = (uint32_t *)(void *)ep->host->crossing->letter;
    const unsigned char *from = ep->host->base + layout->letters + (size_t)line * layout->letter_pitch;
    wefti_ep_call_header header;
    size_t at = masks;
    wefti_copy(&header, from, sizeof header);
    if (header.epoch > ep->host->limits.letter_words) { /* its source has given the call up and writes the next one */
        return WEFT_OK;
    }
    wefti_copy(words, from + sizeof header, (size_t)header.epoch * sizeof *words);
    for (int i = 0; i < wefti_ep_domains_size(domains, own); i++) {
        int member = domains->members[domains->first[own] + i];
        int is_masked = (words[i / 32] >> (i % 32) & 1) != 0 || ep->masked[member];
        int is_skipped = is_masked || knows_later(ep, source, member, epoch);
        if (!is_skipped) {
            WEFT_TRY(hand_to(ep, source, member, &header, header.epoch > masks ? words + at : NULL, epoch));
        }
        at = next_counts(ep, member, at);
    }
    return WEFT_OK;
}

weft_status wefti_ep_letters_hand_on(const weft_ep *ep, int *handed_on)
{
    wefti_ep_crossing *crossing = ep->host->crossing;
    int lines = crossing != NULL ? crossing->inlet_count : 0;
    for (int line = 0; line < lines; line++) {
        wefti_ep_inlet *inlet = &crossing->inlets[line];
        uint64_t at = ep->host->layout.letter_flags + (size_t)line * sizeof(uint64_t);
        uint64_t come = wefti_ld64(ep->host->base + at, WEFTI_ACQUIRE);
        if (come <= inlet->letter || ep->masked[inlet->source]) {
            continue;
        }
        inlet->letter = come;
        *handed_on = 1;
        WEFT_TRY(hand_on(ep, inlet->source, line, come));
    }
    return WEFT_OK;
}
