/* What this PE asks of others. Messages from one PE to another are served in the order in which they were sent, so that
 * a signal behind its data, and a fence, need nothing more. */
#include <string.h>

#include "transport/ofi/ofi.h"

/* Parts of one get that are under way at once. */
#define PARTS_MAX 8
/* For a word of a PE that may be late; who has been heard recently has a progress thread that lives. */
#define SOON_NS UINT64_C(1000000000)
#define RECENTLY_NS UINT64_C(2000000000)

/* ---- waiting ---- */

typedef struct wait {
    wefti_ofi *ofi;
    uint64_t until_ns;
    int pe; /* whom it waits for */
    uint64_t idle_ns; /* since when nothing has come; 0: something just has */
    int is_silent; /* a failure is expected, and the caller's to explain */
} wait;

static uint64_t limit_ns(const wefti_ofi *ofi)
{
    const uint64_t deadline_ns = ofi->setup.deadline_ns;
    return deadline_ns == WEFT_FOREVER ? UINT64_MAX : wefti_os_now_ns() + deadline_ns;
}

static wait wait_start(wefti_ofi *ofi, int pe)
{
    return (wait){.ofi = ofi, .until_ns = limit_ns(ofi), .pe = pe};
}

static weft_status lost(const wait *now)
{
    return now->is_silent ? WEFT_ERR_PEER
                          : wefti_error(WEFT_ERR_PEER, "PE %d is gone: PE %d cannot reach it any more over the network",
                                        now->pe, now->ofi->setup.pe);
}

static weft_status timed_out(const wait *now)
{
    return now->is_silent ? WEFT_ERR_TIMEOUT
                          : wefti_error(WEFT_ERR_TIMEOUT, "PE %d did not answer PE %d over the network in time",
                                        now->pe, now->ofi->setup.pe);
}

/* One look at what has happened. */
static weft_status wait_step(wait *now)
{
    if (wefti_ofi_poll(now->ofi)) {
        now->idle_ns = 0;
        return WEFT_OK;
    }
    const uint64_t now_ns = wefti_os_now_ns();
    if (now_ns >= now->until_ns) {
        return timed_out(now);
    }
    now->idle_ns = now->idle_ns == 0 ? now_ns : now->idle_ns;
    wefti_ofi_idle(now->ofi, wefti_os_pause_ns(now_ns - now->idle_ns, now->until_ns - now_ns, 1));
    return WEFT_OK;
}

static void enter(wefti_ofi *ofi)
{
    wefti_os_monitor_enter(ofi->lock);
}

static weft_status leave(wefti_ofi *ofi, weft_status status)
{
    wefti_os_monitor_leave(ofi->lock);
    return status;
}

/* ---- sending ---- */

/* A free buffer, its header filled in but for what the call asks. */
static weft_status begin(wait *now, wefti_ofi_kind kind, wefti_ofi_buffer **out)
{
    wefti_ofi *ofi = now->ofi;
    while (ofi->free_out == NULL) {
        WEFT_TRY(wait_step(now));
    }
    wefti_ofi_buffer *buffer = ofi->free_out;
    ofi->free_out = buffer->next;
    memset(buffer->header, 0, sizeof *buffer->header);
    buffer->header->world = ofi->setup.world;
    buffer->header->from = (uint32_t)ofi->setup.pe;
    buffer->header->kind = (uint16_t)kind;
    buffer->pe = (uint32_t)now->pe;
    buffer->bytes = sizeof *buffer->header;
    *out = buffer;
    return WEFT_OK;
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

/* Hand it to the provider, which gives the buffer back; so does this if it fails. */
static weft_status submit(wait *now, wefti_ofi_buffer *buffer)
{
    wefti_ofi *ofi = now->ofi;
    weft_status status = WEFT_OK;
    int error = 0;
    while (status == WEFT_OK && !ofi->peers[now->pe].is_lost) {
        if (wefti_ofi_send(ofi, buffer, &error)) {
            ofi->peers[now->pe].is_met = 1;
            return WEFT_OK;
        }
        if (error != -FI_EAGAIN) {
            wefti_ofi_lose(ofi, (uint32_t)now->pe);
            break;
        }
        status = wait_step(now);
    }
    buffer->next = ofi->free_out;
    ofi->free_out = buffer;
    return status == WEFT_OK ? lost(now) : status;
}

/* ---- requests with a reply ---- */

static weft_status open_request(wait *now, void *dest, size_t bytes, wefti_ofi_request **out)
{
    wefti_ofi *ofi = now->ofi;
    for (;;) {
        for (size_t i = 0; i < WEFTI_OFI_WAITING_MAX; i++) {
            const uint64_t number = ++ofi->requests_made;
            wefti_ofi_request *request = &ofi->requests[number % WEFTI_OFI_WAITING_MAX];
            if (number != 0 && request->number == 0) {
                *request = (wefti_ofi_request){.number = number, .pe = (uint32_t)now->pe, .dest = dest, .bytes = bytes};
                *out = request;
                return WEFT_OK;
            }
        }
        WEFT_TRY(wait_step(now)); /* until another thread's reply comes */
    }
}

static weft_status close_request(wait *now, wefti_ofi_request *request)
{
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !request->is_done) {
        status = wait_step(now);
    }
    if (status == WEFT_OK && request->status != WEFT_OK) {
        status = lost(now);
    }
    request->number = 0;
    return status;
}

/* Send `buffer`, a request, and find its reply later by *request. */
static weft_status ask(wait *now, wefti_ofi_buffer *buffer, void *dest, size_t bytes, wefti_ofi_request **request)
{
    weft_status status = open_request(now, dest, bytes, request);
    if (status != WEFT_OK) {
        buffer->next = now->ofi->free_out;
        now->ofi->free_out = buffer;
        return status;
    }
    buffer->header->request = (*request)->number;
    status = submit(now, buffer);
    if (status != WEFT_OK) {
        (*request)->number = 0;
    }
    return status;
}

/* ---- put ---- */

static weft_status put_parts(wait *now, uint64_t offset, const unsigned char *source, size_t bytes)
{
    wefti_ofi_buffer *buffer;
    for (size_t sent = 0; sent < bytes;) {
        const size_t part = bytes - sent < WEFTI_OFI_DATA_MAX ? bytes - sent : WEFTI_OFI_DATA_MAX;
        WEFT_TRY(begin(now, WEFTI_OFI_PUT, &buffer));
        attach(buffer, offset + sent, source + sent, part);
        WEFT_TRY(submit(now, buffer));
        sent += part;
    }
    return WEFT_OK;
}

weft_status wefti_ofi_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    wefti_ofi *ofi = transport->state;
    wait now = wait_start(ofi, pe);
    enter(ofi);
    ofi->peers[pe].is_unflushed = 1;
    return leave(ofi, put_parts(&now, offset, source, bytes));
}

static weft_status send_signal(wait *now, const wefti_ofi_header *what, const void *data, size_t bytes)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(begin(now, WEFTI_OFI_PUT_SIGNAL, &buffer));
    attach(buffer, what->offset, data, bytes);
    buffer->header->signal_offset = what->signal_offset;
    buffer->header->value = what->value;
    buffer->header->op = what->op;
    return submit(now, buffer);
}

weft_status wefti_ofi_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                 uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    wefti_ofi *ofi = transport->state;
    wait now = wait_start(ofi, pe);
    const size_t first = bytes > WEFTI_OFI_DATA_MAX ? bytes - WEFTI_OFI_DATA_MAX : 0;
    const wefti_ofi_header what = {
        .offset = offset + first, .signal_offset = signal_offset, .value = value, .op = (uint8_t)op};
    enter(ofi);
    ofi->peers[pe].is_unflushed = 1;
    weft_status status = put_parts(&now, offset, source, first);
    if (status == WEFT_OK) {
        status = send_signal(&now, &what, bytes > 0 ? (const unsigned char *)source + first : NULL, bytes - first);
    }
    return leave(ofi, status);
}

/* ---- get ---- */

static weft_status ask_part(wait *now, uint64_t offset, void *dest, size_t bytes, wefti_ofi_request **request)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(begin(now, WEFTI_OFI_GET, &buffer));
    buffer->header->offset = offset;
    buffer->header->bytes = bytes;
    return ask(now, buffer, dest, bytes, request);
}

/* Several parts are under way at once. After a failure those that are left are awaited, too, as far as time goes: they
 * would be written to the caller's memory. */
static weft_status get_parts(wait *now, uint64_t offset, unsigned char *dest, size_t bytes)
{
    wefti_ofi_request *parts[PARTS_MAX];
    size_t asked = 0;
    size_t heard = 0;
    weft_status status = WEFT_OK;
    for (size_t at = 0; at < bytes && status == WEFT_OK; at += WEFTI_OFI_DATA_MAX) {
        const size_t part = bytes - at < WEFTI_OFI_DATA_MAX ? bytes - at : WEFTI_OFI_DATA_MAX;
        if (asked - heard == PARTS_MAX) {
            status = close_request(now, parts[heard++ % PARTS_MAX]);
        }
        if (status == WEFT_OK) {
            status = ask_part(now, offset + at, dest + at, part, &parts[asked % PARTS_MAX]);
            asked += status == WEFT_OK;
        }
    }
    while (heard < asked) {
        weft_status closed = close_request(now, parts[heard++ % PARTS_MAX]);
        status = status == WEFT_OK ? closed : status;
    }
    return status;
}

weft_status wefti_ofi_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    wefti_ofi *ofi = transport->state;
    wait now = wait_start(ofi, pe);
    enter(ofi);
    return leave(ofi, get_parts(&now, offset, dest, bytes));
}

/* ---- atomics ---- */

static weft_status ask_amo(wait *now, const wefti_ofi_header *what, uint64_t *old)
{
    wefti_ofi_buffer *buffer;
    wefti_ofi_request *request;
    WEFT_TRY(begin(now, WEFTI_OFI_AMO, &buffer));
    buffer->header->offset = what->offset;
    buffer->header->op = what->op;
    buffer->header->bits = what->bits;
    buffer->header->value = what->value;
    buffer->header->cond = what->cond;
    WEFT_TRY(ask(now, buffer, NULL, 0, &request));
    WEFT_TRY(close_request(now, request));
    *old = request->value;
    return WEFT_OK;
}

weft_status wefti_ofi_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                          uint64_t value, uint64_t cond, uint64_t *old)
{
    wefti_ofi *ofi = transport->state;
    wait now = wait_start(ofi, pe);
    const wefti_ofi_header what = {
        .offset = offset, .op = (uint8_t)op, .bits = (uint8_t)bits, .value = value, .cond = cond};
    enter(ofi);
    return leave(ofi, ask_amo(&now, &what, old));
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
    enter(ofi);
    if (!peer->is_silent) {
        wait now = {.ofi = ofi, .until_ns = soon_ns(peer), .pe = pe, .is_silent = 1};
        status = ask_amo(&now, &what, value);
        peer->is_silent = status == WEFT_ERR_TIMEOUT;
    }
    return leave(ofi, status);
}

/* ---- fence and quiet ---- */

weft_status wefti_ofi_fence(wefti_transport *transport)
{
    (void)transport; /* messages keep their order */
    return WEFT_OK;
}

/* Ask whether what was sent to the PE is in its memory. */
static weft_status ask_flush(wait *now, wefti_ofi_request **request)
{
    wefti_ofi_buffer *buffer;
    WEFT_TRY(begin(now, WEFTI_OFI_FLUSH, &buffer));
    return ask(now, buffer, NULL, 0, request);
}

/* A PE that leaves meanwhile has taken what it needs. */
static weft_status close_flush(wait *now, wefti_ofi_request *request)
{
    const wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    wait silent = *now;
    silent.is_silent = 1;
    weft_status status = close_request(&silent, request);
    if (status == WEFT_OK || peer->has_left || now->is_silent) {
        return peer->has_left ? WEFT_OK : status;
    }
    return status == WEFT_ERR_PEER ? lost(now) : timed_out(now);
}

/* Ask the PEs from *first on, as many at once as there is room for; *first is where the next begins. */
static weft_status flush_some(const wait *model, int *first)
{
    wefti_ofi *ofi = model->ofi;
    wefti_ofi_request *asked[WEFTI_OFI_WAITING_MAX / 2];
    int count = 0;
    weft_status status = WEFT_OK;
    for (; status == WEFT_OK && *first < ofi->setup.pes && count < WEFTI_OFI_WAITING_MAX / 2; ++*first) {
        wait now = *model;
        now.pe = *first;
        const int asks = ofi->peers[*first].is_unflushed && !ofi->peers[*first].has_left;
        ofi->peers[*first].is_unflushed = 0;
        if (asks) {
            status = ask_flush(&now, &asked[count]);
            count += status == WEFT_OK;
        }
    }
    for (int i = 0; i < count; i++) {
        wait now = *model;
        now.pe = (int)asked[i]->pe;
        weft_status closed = close_flush(&now, asked[i]);
        status = status == WEFT_OK ? closed : status;
    }
    return status;
}

static weft_status flush(const wait *model)
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
    const wait now = wait_start(ofi, -1);
    enter(ofi);
    return leave(ofi, flush(&now));
}

/* ---- the beginning and the end ---- */

weft_status wefti_ofi_probe(wefti_ofi *ofi, int pe, uint64_t until_ns)
{
    wait now = {.ofi = ofi, .until_ns = until_ns, .pe = pe, .is_silent = 1};
    wefti_ofi_request *request;
    enter(ofi);
    weft_status status = ask_flush(&now, &request);
    if (status == WEFT_OK) {
        status = close_request(&now, request);
    }
    (void)leave(ofi, status);
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

static int count_free(const wefti_ofi *ofi)
{
    int count = 0;
    for (const wefti_ofi_buffer *buffer = ofi->free_out; buffer != NULL; buffer = buffer->next) {
        count++;
    }
    return count;
}

static void tell_all(wefti_ofi *ofi, uint64_t until_ns)
{
    for (int pe = 0; pe < ofi->setup.pes; pe++) {
        wait now = {.ofi = ofi, .until_ns = until_ns, .pe = pe, .is_silent = 1};
        wefti_ofi_buffer *buffer;
        if (ofi->peers[pe].is_met && !ofi->peers[pe].is_lost && begin(&now, WEFTI_OFI_LEAVE, &buffer) == WEFT_OK) {
            (void)submit(&now, buffer);
        }
    }
}

/* Those that have left need nothing more, so only who is slow or gone is waited for. */
void wefti_ofi_say_farewell(wefti_ofi *ofi, uint64_t until_ns)
{
    wait now = {.ofi = ofi, .until_ns = until_ns, .pe = -1, .is_silent = 1};
    enter(ofi);
    while (flush(&now) == WEFT_ERR_PEER) {
    }
    tell_all(ofi, until_ns);
    while ((count_free(ofi) < WEFTI_OFI_REQUESTS_OUT || ofi->unsent != NULL) && wait_step(&now) == WEFT_OK) {
    }
    (void)leave(ofi, WEFT_OK);
}
