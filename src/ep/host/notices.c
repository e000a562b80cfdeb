#include "ep/host/notices.h"

#include <string.h>

#include "ep/host/counts.h"
#include "ep/host/crossing.h"
#include "ep/host/peers.h"

size_t wefti_ep_notice_words(const weft_ep *ep)
{
    const wefti_ep_domains *domains = &ep->domains;
    size_t most = 0;
    for (int domain = 0; domain < domains->count; domain++) {
        size_t words = 0;
        for (int i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
            words += 1 + (size_t)wefti_ep_owners_count(&ep->owners, domains->members[i]);
        }
        most = words > most ? words : most;
    }
    return ep->host->limits.direct ? wefti_ep_counts_words(&ep->host->limits) : most;
}

/* ---- as a source ---- */

/* Whether no call of a bank has failed whose forwarders may be late. A pair that is outstanding has not. */
static int has_ended(const weft_ep *ep, int bank)
{
    return ep->host_of[bank]->crossing->begun == 0 || ep->half[bank] != WEFTI_EP_HALF_NONE;
}

void wefti_ep_notices_begin(const weft_ep *ep, uint64_t epoch)
{
    wefti_ep_crossing *crossing = ep->host->crossing;
    if (crossing != NULL) {
        crossing->notifies = wefti_ep_crossing_is_on(ep) && has_ended(ep, 0) && has_ended(ep, wefti_ep_banks(ep) - 1);
        crossing->begun = epoch;
    }
}

static int has_notices(const weft_ep *ep)
{
    return ep->host->crossing != NULL && ep->host->crossing->notifies;
}

int wefti_ep_notices_reach(const weft_ep *ep, int rank)
{
    return ep->domains.of[rank] != ep->domains.of[ep->rank] && has_notices(ep);
}

/* Returns how many words they are. */
static size_t write_counts(const weft_ep *ep, int domain, uint32_t *to)
{
    const wefti_ep_domains *domains = &ep->domains;
    size_t end = 0;
    for (int i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
        size_t words;
        const uint32_t *counts = wefti_ep_counts_for(ep, domains->members[i], &words);
        memcpy(to + end, counts, words * sizeof *to);
        end += words;
        if (ep->host->limits.direct) {
            break;
        }
    }
    return end;
}

static weft_status send_notice(const weft_ep *ep, int domain, const wefti_ep_call_header *header, uint64_t epoch,
                               int counted)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    const wefti_ep_outlet *outlet = &ep->host->crossing->outlets[domain];
    unsigned char *notice = ep->host->crossing->notice;
    uint32_t *counts = (uint32_t *)(void *)(notice + sizeof *header);
    wefti_ep_call_header head = *header;
    head.epoch = counted ? write_counts(ep, domain, counts) : 0;
    memcpy(notice, &head, sizeof head);
    return wefti_ep_post(ep, outlet->forwarder, layout->notices + (size_t)outlet->line * layout->notice_pitch, notice,
                         sizeof head + (size_t)head.epoch * sizeof *counts,
                         layout->notice_flags + (size_t)outlet->line * sizeof(uint64_t), epoch);
}

weft_status wefti_ep_notices_send(const weft_ep *ep, const wefti_ep_call_header *header, uint64_t epoch, int counted)
{
    if (!has_notices(ep)) {
        return WEFT_OK;
    }
    for (int domain = 0; domain < ep->domains.count; domain++) {
        int is_own = domain == ep->domains.of[ep->rank];
        WEFT_TRY(is_own ? WEFT_OK : send_notice(ep, domain, header, epoch, counted));
    }
    return WEFT_OK;
}

void wefti_ep_notices_end(const weft_ep *ep)
{
    if (ep->host->crossing != NULL) {
        ep->host->crossing->begun = 0;
    }
}

/* ---- as a forwarder ---- */

static weft_status hand_to(const weft_ep *ep, int source, int member, const wefti_ep_call_header *header,
                           const uint32_t *counts, size_t words, uint64_t epoch)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    unsigned char *handed = ep->host->crossing->handed;
    memcpy(handed, header, sizeof *header);
    memcpy(handed + sizeof *header, counts, words * sizeof *counts);
    return wefti_ep_post(ep, member, wefti_ep_handed_at(layout, source), handed,
                         sizeof *header + words * sizeof *counts, wefti_ep_handed_flag_at(layout, source), epoch);
}

static weft_status hand_on(const weft_ep *ep, int source, int line, uint64_t epoch)
{
    const wefti_ep_layout *layout = &ep->host->layout;
    const wefti_ep_domains *domains = &ep->domains;
    const unsigned char *from = ep->host->base + layout->notices + (size_t)line * layout->notice_pitch;
    const uint32_t *counts = (const uint32_t *)(const void *)ep->host->crossing->notice;
    int own = domains->of[ep->rank];
    wefti_ep_call_header header;
    wefti_copy(&header, from, sizeof header);
    wefti_copy(ep->host->crossing->notice, from + sizeof header, (size_t)header.epoch * sizeof *counts);
    for (int i = domains->first[own]; i < domains->first[own + 1]; i++) {
        size_t words = 0;
        if (header.epoch > 0) {
            (void)wefti_ep_counts_for(ep, domains->members[i], &words);
        }
        WEFT_TRY(hand_to(ep, source, domains->members[i], &header, counts, words, epoch));
        counts += ep->host->limits.direct ? 0 : words;
    }
    return WEFT_OK;
}

weft_status wefti_ep_notices_hand_on(const weft_ep *ep, uint64_t epoch)
{
    wefti_ep_crossing *crossing = ep->host->crossing;
    for (int line = 0; crossing != NULL && line < crossing->inlet_count; line++) {
        wefti_ep_inlet *inlet = &crossing->inlets[line];
        uint64_t flag_at = ep->host->layout.notice_flags + (size_t)line * sizeof(uint64_t);
        if (inlet->handed_on != epoch && wefti_ld64(ep->host->base + flag_at, WEFTI_ACQUIRE) == epoch) {
            inlet->handed_on = epoch;
            WEFT_TRY(hand_on(ep, inlet->source, line, epoch));
        }
    }
    return WEFT_OK;
}
