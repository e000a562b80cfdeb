/* What this PE asks of others. Messages from one PE to another are served in the order in which they were sent, so that
 * a signal behind its data, and a fence, need nothing more. */
#include <string.h>

#include "transport/ofi/ofi.h"

/* Parts of one get that are under way at once. */
#define PARTS_MAX 8
/* For a word of a PE that may be late; who has been heard recently has a progress thread that lives. */
#define SOON_NS UINT64_C(1000000000)
#define RECENTLY_NS UINT64_C(2000000000)

static uint64_t limit_ns(const wefti_ofi *ofi)
{
    const uint64_t deadline_ns = ofi->setup.deadline_ns;
    return deadline_ns == WEFT_FOREVER ? UINT64_MAX : wefti_os_now_ns() + deadline_ns;
}

static wefti_ofi_wait wait_start(wefti_ofi *ofi, int pe)
{
    return (wefti_ofi_wait){.ofi = ofi, .until_ns = limit_ns(ofi), .pe = pe};
}

static void attach(wefti_ofi_buffer *buffer, uint64_t offset, const void *data, size_t bytes)
{
    buffer->header->offset = offset;
    buffer->header->bytes = bytes;
    if (bytes > 0) {
        memcpy(buffer->header + 1, data, bytes);
        buffer->bytes += bytes;
    }
}

/* The put that a call has just made, or given up, was or was not a message. */
static void count_put(wefti_ofi_peer *peer, int is_message)
{
    peer->puts++;
    peer->message_put = is_message ? peer->puts : peer->message_put;
}

/* ---- put ---- */

static weft_status put_parts(wefti_ofi_wait *now, uint64_t offset, const unsigned char *source, size_t bytes)
{
    wefti_ofi_buffer *buffer;
    for (size_t sent = 0; sent < bytes;) {
        const size_t part = bytes - sent < WEFTI_OFI_DATA_MAX ? bytes - sent : WEFTI_OFI_DATA_MAX;
        WEFT_TRY(wefti_ofi_begin(now, WEFTI_OFI_PUT, &buffer));
        attach(buffer, offset + sent, source + sent, part);
        WEFT_TRY(wefti_ofi_submit(now, buffer));
        sent += part;
    }
    return WEFT_OK;
}

weft_status wefti_ofi_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_wait now = wait_start(ofi, pe);
    weft_status status = WEFT_OK;
    int is_taken = 0;
    int is_rma = 0;
    wefti_ofi_enter(ofi);
    if (bytes <= WEFTI_OFI_SMALL_MAX) {
        status = wefti_ofi_gather(&now, offset, source, bytes, &is_taken);
    } else {
        status = wefti_ofi_rma_is_used(&now, offset, bytes, &is_rma);
    }
    if (status == WEFT_OK && !is_taken) {
        status = is_rma ? wefti_ofi_rma_put(&now, offset, source, bytes) : put_parts(&now, offset, source, bytes);
    }
    count_put(&ofi->peers[pe], !is_rma);
    return wefti_ofi_leave(ofi, status);
}

static weft_status send_signal(wefti_ofi_wait *now, const wefti_ofi_header *what, const void *data, size_t bytes)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin(now, WEFTI_OFI_PUT_SIGNAL, &buffer));
    attach(buffer, what->offset, data, bytes);
    buffer->header->signal_offset = what->signal_offset;
    buffer->header->value = what->value;
    buffer->header->op = what->op;
    return wefti_ofi_submit(now, buffer);
}

weft_status wefti_ofi_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                 uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_wait now = wait_start(ofi, pe);
    int is_rma = 0;
    wefti_ofi_enter(ofi);
    weft_status status = wefti_ofi_rma_is_used(&now, offset, bytes, &is_rma);
    const size_t first = is_rma ? bytes : bytes > WEFTI_OFI_DATA_MAX ? bytes - WEFTI_OFI_DATA_MAX : 0;
    const wefti_ofi_header what = {
        .offset = offset + first, .signal_offset = signal_offset, .value = value, .op = (uint8_t)op};
    if (status == WEFT_OK) {
        status = is_rma ? wefti_ofi_rma_put(&now, offset, source, first) : put_parts(&now, offset, source, first);
    }
    if (status == WEFT_OK) {
        status = send_signal(&now, &what, bytes > 0 ? (const unsigned char *)source + first : NULL, bytes - first);
    }
    count_put(&ofi->peers[pe], 1);
    return wefti_ofi_leave(ofi, status);
}

/* ---- get ---- */

static weft_status ask_part(wefti_ofi_wait *now, uint64_t offset, void *dest, size_t bytes, wefti_ofi_request **request)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin_request(now, WEFTI_OFI_GET, dest, bytes, &buffer, request));
    buffer->header->offset = offset;
    buffer->header->bytes = bytes;
    return wefti_ofi_submit(now, buffer);
}

/* Several parts are under way at once. After a failure those that are left are awaited, too, as far as time goes: they
 * would be written to the caller's memory. */
static weft_status get_parts(wefti_ofi_wait *now, uint64_t offset, unsigned char *dest, size_t bytes)
{
    wefti_ofi_request *parts[PARTS_MAX];
    size_t asked = 0;
    size_t heard = 0;
    weft_status status = WEFT_OK;
    for (size_t at = 0; at < bytes && status == WEFT_OK; at += WEFTI_OFI_DATA_MAX) {
        const size_t part = bytes - at < WEFTI_OFI_DATA_MAX ? bytes - at : WEFTI_OFI_DATA_MAX;
        if (asked - heard == PARTS_MAX || (asked > heard && !wefti_ofi_may_ask(now->ofi, now->pe))) {
            status = wefti_ofi_close_request(now, parts[heard++ % PARTS_MAX], NULL);
        }
        if (status == WEFT_OK) {
            status = ask_part(now, offset + at, dest + at, part, &parts[asked % PARTS_MAX]);
            asked += status == WEFT_OK;
        }
    }
    while (heard < asked) {
        weft_status closed = wefti_ofi_close_request(now, parts[heard++ % PARTS_MAX], NULL);
        status = status == WEFT_OK ? closed : status;
    }
    return status;
}

weft_status wefti_ofi_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_wait now = wait_start(ofi, pe);
    int is_rma;
    wefti_ofi_enter(ofi);
    weft_status status = wefti_ofi_rma_is_used(&now, offset, bytes, &is_rma);
    if (status == WEFT_OK) {
        status = is_rma ? wefti_ofi_rma_get(&now, offset, dest, bytes) : get_parts(&now, offset, dest, bytes);
    }
    return wefti_ofi_leave(ofi, status);
}

/* ---- atomics ---- */

static void describe_amo(wefti_ofi_header *header, const wefti_ofi_header *what)
{
    header->offset = what->offset;
    header->op = what->op;
    header->bits = what->bits;
    header->value = what->value;
    header->cond = what->cond;
}

/* Nobody wants the value before. */
static weft_status send_amo(wefti_ofi_wait *now, const wefti_ofi_header *what)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin(now, WEFTI_OFI_AMO, &buffer));
    describe_amo(buffer->header, what);
    count_put(&now->ofi->peers[now->pe], 1);
    return wefti_ofi_submit(now, buffer);
}

static weft_status ask_amo(wefti_ofi_wait *now, const wefti_ofi_header *what, uint64_t *old)
{
    wefti_ofi_buffer *buffer;
    wefti_ofi_request *request;
    WEFT_TRY(wefti_ofi_begin_request(now, WEFTI_OFI_AMO, NULL, 0, &buffer, &request));
    describe_amo(buffer->header, what);
    WEFT_TRY(wefti_ofi_submit(now, buffer));
    return wefti_ofi_close_request(now, request, old);
}

weft_status wefti_ofi_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                          uint64_t value, uint64_t cond, uint64_t *old)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_wait now = wait_start(ofi, pe);
    const wefti_ofi_header what = {
        .offset = offset, .op = (uint8_t)op, .bits = (uint8_t)bits, .value = value, .cond = cond};
    wefti_ofi_enter(ofi);
    return wefti_ofi_leave(ofi, old != NULL ? ask_amo(&now, &what, old) : send_amo(&now, &what));
}

/* How long to wait for a word of a PE that may be late. */
static uint64_t soon_ns(const wefti_ofi_peer *peer)
{
    const uint64_t now_ns = wefti_os_now_ns();
    return now_ns + (now_ns - peer->heard_ns < RECENTLY_NS ? SOON_NS : SOON_NS / 4);
}

weft_status wefti_ofi_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_peer *peer = &ofi->peers[pe];
    const wefti_ofi_header what = {.offset = offset, .op = WEFTI_AMO_FETCH, .bits = 64};
    weft_status status = WEFT_ERR_TIMEOUT;
    wefti_ofi_enter(ofi);
    if (!peer->is_silent) {
        wefti_ofi_wait now = {.ofi = ofi, .until_ns = soon_ns(peer), .pe = pe, .is_silent = 1};
        status = ask_amo(&now, &what, value);
        peer->is_silent = status == WEFT_ERR_TIMEOUT;
    }
    return wefti_ofi_leave(ofi, status);
}

/* ---- fence and quiet ---- */

weft_status wefti_ofi_fence(wefti_transport *transport)
{
    wefti_ofi *ofi = transport->state; /* messages keep their order; nothing is kept back longer */
    wefti_ofi_enter(ofi);
    wefti_ofi_try_gathered(ofi, UINT64_MAX);
    for (int pe = 0; ofi->fabric.rma != WEFTI_FABRIC_NO_RMA && pe < ofi->setup.pes; pe++) {
        ofi->peers[pe].fenced_put = ofi->peers[pe].message_put; /* which a write would overtake */
    }
    return wefti_ofi_leave(ofi, WEFT_OK);
}

/* Ask whether what was sent to the PE is in its memory. */
static weft_status ask_flush(wefti_ofi_wait *now, wefti_ofi_request **request)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin_request(now, WEFTI_OFI_FLUSH, NULL, 0, &buffer, request));
    return wefti_ofi_submit(now, buffer);
}

/* A PE that leaves meanwhile has taken what it needs. */
static weft_status close_flush(wefti_ofi_wait *now, wefti_ofi_request *request)
{
    const wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    wefti_ofi_wait silent = *now;
    silent.is_silent = 1;
    weft_status status = wefti_ofi_close_request(&silent, request, NULL);
    if (status == WEFT_OK || peer->has_left || now->is_silent) {
        return peer->has_left ? WEFT_OK : status;
    }
    return status == WEFT_ERR_PEER ? wefti_ofi_lost(now) : wefti_ofi_timed_out(now);
}

/* Nobody need ask any more after the first `puts` puts. */
static void end_flush(wefti_ofi_peer *peer, uint64_t puts, int is_known)
{
    if (is_known && puts > peer->puts_flushed) {
        peer->puts_flushed = puts;
    }
}

weft_status wefti_ofi_flush_messages(wefti_ofi_wait *now, uint64_t put)
{
    wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    const uint64_t puts = peer->puts;
    wefti_ofi_request *request;
    if (put <= peer->puts_flushed) {
        return WEFT_OK;
    }
    WEFT_TRY(ask_flush(now, &request));
    WEFT_TRY(close_flush(now, request));
    end_flush(peer, puts, 1);
    return WEFT_OK;
}

/* Ask the PEs from *first on, as many at once as there is room for; *first is where the next begins. Who does not
 * answer in time is asked again by the next quiet; who is gone is named once. */
static weft_status flush_some(const wefti_ofi_wait *model, int *first)
{
    wefti_ofi *ofi = model->ofi;
    struct {
        wefti_ofi_request *request;
        uint64_t puts;
    } asked[WEFTI_OFI_WAITING_MAX / 2];
    int count = 0;
    weft_status status = WEFT_OK;
    for (; status == WEFT_OK && *first < ofi->setup.pes && count < WEFTI_OFI_WAITING_MAX / 2; ++*first) {
        wefti_ofi_wait now = *model;
        now.pe = *first;
        wefti_ofi_peer *peer = &ofi->peers[*first];
        if (peer->puts == peer->puts_flushed || peer->has_left) {
            continue;
        }
        if (count > 0 && !wefti_ofi_may_ask(ofi, *first)) {
            break;
        }
        asked[count].puts = peer->puts;
        status = ask_flush(&now, &asked[count].request);
        count += status == WEFT_OK;
        end_flush(peer, peer->puts, status == WEFT_ERR_PEER);
    }
    for (int i = 0; i < count; i++) {
        wefti_ofi_wait now = *model;
        now.pe = (int)asked[i].request->pe;
        weft_status closed = close_flush(&now, asked[i].request);
        end_flush(&ofi->peers[now.pe], asked[i].puts, closed != WEFT_ERR_TIMEOUT);
        status = status == WEFT_OK ? closed : status;
    }
    return status;
}

static weft_status flush(const wefti_ofi_wait *model)
{
    int first = 0;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && first < model->ofi->setup.pes) {
        status = flush_some(model, &first);
    }
    return status;
}

weft_status wefti_ofi_quiet(wefti_transport *transport)
{
    wefti_ofi *ofi = transport->state;
    const wefti_ofi_wait now = wait_start(ofi, -1);
    wefti_ofi_enter(ofi);
    return wefti_ofi_leave(ofi, flush(&now));
}

/* ---- who does not answer ---- */

/* Ask of those from *first on as many as there is room for, all of whom have until `until_ns`. */
static void find_some(wefti_ofi *ofi, const int *pes, int count, int *first, uint64_t until_ns)
{
    wefti_ofi_request *asked[WEFTI_OFI_WAITING_MAX / 2];
    int requests = 0;
    for (; *first < count && requests < WEFTI_OFI_WAITING_MAX / 2; ++*first) {
        wefti_ofi_wait now = {.ofi = ofi, .until_ns = until_ns, .pe = pes[*first], .is_silent = 1};
        wefti_ofi_peer *peer = &ofi->peers[now.pe];
        if (peer->is_silent || peer->is_lost) {
            continue;
        }
        if (requests > 0 && !wefti_ofi_may_ask(ofi, now.pe)) {
            break;
        }
        const weft_status status = ask_flush(&now, &asked[requests]);
        requests += status == WEFT_OK;
        peer->is_silent = status == WEFT_ERR_TIMEOUT;
    }
    for (int i = 0; i < requests; i++) {
        wefti_ofi_wait now = {.ofi = ofi, .until_ns = until_ns, .pe = (int)asked[i]->pe, .is_silent = 1};
        if (wefti_ofi_close_request(&now, asked[i], NULL) == WEFT_ERR_TIMEOUT) {
            ofi->peers[now.pe].is_silent = 1;
        }
    }
}

void wefti_ofi_find_silent(wefti_transport *transport, const int *pes, int count)
{
    wefti_ofi *ofi = transport->state;
    const uint64_t until_ns = wefti_os_now_ns() + SOON_NS;
    int first = 0;
    wefti_ofi_enter(ofi);
    while (first < count) {
        const uint64_t least_ns = wefti_os_now_ns() + SOON_NS / 4; /* those that come last have time, too */
        find_some(ofi, pes, count, &first, until_ns > least_ns ? until_ns : least_ns);
    }
    (void)wefti_ofi_leave(ofi, WEFT_OK);
}

/* ---- the beginning and the end ---- */

weft_status wefti_ofi_probe(wefti_ofi *ofi, int pe, uint64_t until_ns)
{
    wefti_ofi_wait now = {.ofi = ofi, .until_ns = until_ns, .pe = pe, .is_silent = 1};
    wefti_ofi_request *request;
    wefti_ofi_enter(ofi);
    weft_status status = ask_flush(&now, &request);
    if (status == WEFT_OK) {
        status = wefti_ofi_close_request(&now, request, NULL);
    }
    (void)wefti_ofi_leave(ofi, status);
    return status == WEFT_OK
               ? WEFT_OK
               : wefti_error(
                     WEFT_ERR_UNREACHABLE,
                     "PE %d %s of libfabric's provider %s on %s (network %s); look at routes and firewalls, or name "
                     "the interface with the provider's variable, as FI_TCP_IFACE",
                     ofi->setup.pe,
                     status == WEFT_ERR_TIMEOUT ? "gets no answer from PE 0 by way" : "cannot connect to PE 0 by way",
                     ofi->fabric.info->fabric_attr->prov_name, ofi->fabric.info->domain_attr->name,
                     ofi->fabric.info->fabric_attr->name);
}

/* Messages of this PE that are still to be taken by those that are there. */
static int is_under_way(const wefti_ofi *ofi)
{
    int is_so = ofi->unsent != NULL;
    for (int pe = 0; pe < ofi->setup.pes && !is_so; pe++) {
        is_so = !ofi->peers[pe].is_lost && (ofi->peers[pe].sending > 0 || ofi->peers[pe].writes > 0);
    }
    return is_so;
}

static void tell_all(wefti_ofi *ofi, uint64_t until_ns)
{
    for (int pe = 0; pe < ofi->setup.pes; pe++) {
        wefti_ofi_wait now = {.ofi = ofi, .until_ns = until_ns, .pe = pe, .is_silent = 1};
        wefti_ofi_buffer *buffer;
        if (ofi->peers[pe].is_met && !ofi->peers[pe].is_lost &&
            wefti_ofi_begin(&now, WEFTI_OFI_LEAVE, &buffer) == WEFT_OK) {
            (void)wefti_ofi_submit(&now, buffer);
        }
    }
}

/* Those that have left need nothing more, so only who is slow or gone is waited for. */
void wefti_ofi_say_farewell(wefti_ofi *ofi, uint64_t until_ns)
{
    wefti_ofi_wait now = {.ofi = ofi, .until_ns = until_ns, .pe = -1, .is_silent = 1};
    wefti_ofi_enter(ofi);
    while (flush(&now) == WEFT_ERR_PEER) {
    }
    tell_all(ofi, until_ns);
    while (is_under_way(ofi) && wefti_ofi_wait_step(&now) == WEFT_OK) {
    }
    (void)wefti_ofi_leave(ofi, WEFT_OK);
}
