/* Who may send how much, how long a call waits, and which puts go together. */
#include <string.h>

#include "base/thread_state.h"
#include "transport/ofi/ofi.h"
#include "weft/inline/rma.h"

/* A put that comes so soon after another is one of many. */
#define AT_ONCE_NS WEFTI_OFI_GATHER_NS

/* ---- the lock ---- */

int wefti_ofi_is_wanted(const wefti_ofi *ofi)
{
    return wefti_ld32(&ofi->entering, WEFTI_RELAXED) != 0;
}

void wefti_ofi_enter(wefti_ofi *ofi)
{
    (void)wefti_add32(&ofi->entering, 1);
    wefti_os_monitor_enter(ofi->lock);
    (void)wefti_add32(&ofi->entering, UINT32_MAX);
}

weft_status wefti_ofi_leave(wefti_ofi *ofi, weft_status status)
{
    wefti_os_monitor_leave(ofi->lock);
    return status;
}

/* ---- waiting ---- */

weft_status wefti_ofi_lost(const wefti_ofi_wait *now)
{
    static const char *const words[WEFTI_FATES] = {
        [WEFTI_FATE_THERE] = "the network cannot deliver to it",
        [WEFTI_FATE_LEFT] = "it has left the world",
        [WEFTI_FATE_ENDED] = "its process has ended",
        [WEFTI_FATE_SILENT] = "its host has become unreachable",
    };
    return now->is_silent ? WEFT_ERR_PEER
                          : wefti_error(WEFT_ERR_PEER, "PE %d is gone: %s, and PE %d has asked something of it",
                                        now->pe, words[wefti_watch_fate(now->ofi->watch, now->pe)], now->ofi->setup.pe);
}

weft_status wefti_ofi_timed_out(const wefti_ofi_wait *now)
{
    *wefti_thread_is_hopeless() = 0; /* it is the deadline's */
    return now->is_silent ? WEFT_ERR_TIMEOUT
                          : wefti_error(WEFT_ERR_TIMEOUT, "PE %d did not answer PE %d over the network in time",
                                        now->pe, now->ofi->setup.pe);
}

weft_status wefti_ofi_wait_step(wefti_ofi_wait *now)
{
    wefti_ofi *ofi = now->ofi;
    const int happened = wefti_ofi_poll(ofi);
    const uint64_t now_ns = ofi->polled_ns;
    if (now_ns >= now->until_ns) { /* though others may send without end */
        return wefti_ofi_timed_out(now);
    }
    if (!happened) {
        now->idle_ns = now->idle_ns == 0 ? now_ns : now->idle_ns;
        wefti_ofi_idle(ofi, wefti_os_pause_ns(now_ns - now->idle_ns, now->until_ns - now_ns, 1));
        return WEFT_OK;
    }
    now->idle_ns = 0;
    if (wefti_ofi_is_wanted(ofi)) {
        wefti_ofi_idle(ofi, 0);
    }
    return WEFT_OK;
}

/* ---- shares ---- */

/* Who holds `held` may take one of `left`. */
static int may_take(uint32_t held, uint32_t left)
{
    return held < left;
}

static uint32_t held_by(const wefti_ofi_peer *peer)
{
    return peer->sending + peer->asked + peer->rma;
}

/* The PE has nothing under way, and waits for what others hold: one of them is to blame. */
static weft_status blame_holder(const wefti_ofi_wait *now)
{
    const wefti_ofi *ofi = now->ofi;
    int most = now->pe;
    for (int pe = 0; pe < ofi->setup.pes; pe++) {
        most = held_by(&ofi->peers[pe]) > held_by(&ofi->peers[most]) ? pe : most;
    }
    return wefti_error(WEFT_ERR_TIMEOUT,
                       "PE %d has no room left for a message to PE %d: PE %d did not take what is on its way to it",
                       ofi->setup.pe, now->pe, most);
}

/* wait_step for room among what PEs share. */
static weft_status wait_for_room(wefti_ofi_wait *now)
{
    weft_status status = wefti_ofi_wait_step(now);
    return status == WEFT_ERR_TIMEOUT && !now->is_silent && held_by(&now->ofi->peers[now->pe]) == 0 ? blame_holder(now)
                                                                                                    : status;
}

/* ---- messages ---- */

static void forget_request(wefti_ofi *ofi, wefti_ofi_request *request)
{
    request->number = 0;
    ofi->peers[request->pe].asked--;
    ofi->requests_free++;
}

static int takes_credit(wefti_ofi_kind kind)
{
    return kind != WEFTI_OFI_LEAVE; /* who leaves waits for nobody */
}

/* A message comes behind the writes before it, by the provider's order or because they are complete. */
static int may_send(const wefti_ofi *ofi, const wefti_ofi_peer *peer, wefti_ofi_kind kind)
{
    const int is_behind = peer->writes == 0 || ofi->fabric.rma == WEFTI_FABRIC_RMA_ORDERED;
    return is_behind && may_take(peer->sending, ofi->free_out_count) && (peer->credits > 0 || !takes_credit(kind));
}

weft_status wefti_ofi_begin(wefti_ofi_wait *now, wefti_ofi_kind kind, wefti_ofi_buffer **out)
{
    wefti_ofi *ofi = now->ofi;
    wefti_ofi_peer *peer = &ofi->peers[now->pe];
    WEFT_TRY(wefti_ofi_send_gathered(now));
    while (!may_send(ofi, peer, kind)) {
        if (peer->is_lost) {
            return wefti_ofi_lost(now);
        }
        WEFT_TRY(wait_for_room(now));
        WEFT_TRY(wefti_ofi_send_gathered(now)); /* another thread's */
    }
    wefti_ofi_buffer *buffer = ofi->free_out;
    ofi->free_out = buffer->next;
    ofi->free_out_count--;
    peer->sending++;
    peer->credits -= takes_credit(kind) ? 1 : 0;
    memset(buffer->header, 0, sizeof *buffer->header);
    buffer->header->world = ofi->setup.world;
    buffer->header->from = (uint32_t)ofi->setup.pe;
    buffer->header->kind = (uint8_t)kind;
    buffer->pe = (uint32_t)now->pe;
    buffer->bytes = sizeof *buffer->header;
    *out = buffer;
    return WEFT_OK;
}

void wefti_ofi_free_out(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    ofi->peers[buffer->pe].sending--;
    buffer->next = ofi->free_out;
    ofi->free_out = buffer;
    ofi->free_out_count++;
}

void wefti_ofi_give_up(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    if (buffer->header->request != 0) {
        forget_request(ofi, &ofi->requests[buffer->header->request % WEFTI_OFI_WAITING_MAX]);
    }
    ofi->peers[buffer->pe].credits += takes_credit((wefti_ofi_kind)buffer->header->kind) ? 1 : 0;
    wefti_ofi_free_out(ofi, buffer);
}

weft_status wefti_ofi_submit(wefti_ofi_wait *now, wefti_ofi_buffer *buffer)
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
        status = wefti_ofi_wait_step(now);
    }
    wefti_ofi_give_up(ofi, buffer);
    return status == WEFT_OK ? wefti_ofi_lost(now) : status;
}

/* ---- small puts that go in one message ---- */

static void forget(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    wefti_ofi_buffer **link = &ofi->gathering;
    while (*link != buffer) {
        link = &(*link)->next;
    }
    *link = buffer->next;
    ofi->peers[buffer->pe].gathered = NULL;
}

/* Hand it to the provider, or drop it if its PE is lost; returns 0 if it is still to be sent. */
static int try_send(wefti_ofi *ofi, wefti_ofi_buffer *buffer)
{
    wefti_ofi_peer *peer = &ofi->peers[buffer->pe];
    int error = 0;
    if (!peer->is_lost && wefti_ofi_send(ofi, buffer, &error)) {
        forget(ofi, buffer);
        peer->is_met = 1;
        return 1;
    }
    if (!peer->is_lost && error == -FI_EAGAIN) {
        return 0;
    }
    wefti_ofi_lose(ofi, buffer->pe);
    forget(ofi, buffer);
    wefti_ofi_give_up(ofi, buffer);
    return 1;
}

weft_status wefti_ofi_send_gathered(wefti_ofi_wait *now)
{
    wefti_ofi *ofi = now->ofi;
    const wefti_ofi_peer *peer = &ofi->peers[now->pe];
    while (peer->gathered != NULL && !try_send(ofi, peer->gathered)) {
        WEFT_TRY(wefti_ofi_wait_step(now));
    }
    return WEFT_OK;
}

void wefti_ofi_try_gathered(wefti_ofi *ofi, uint64_t before_ns)
{
    wefti_ofi_buffer *buffer = ofi->gathering;
    while (buffer != NULL) {
        wefti_ofi_buffer *next = buffer->next;
        if (buffer->since_ns < before_ns) {
            (void)try_send(ofi, buffer);
        }
        buffer = next;
    }
}

static void append(wefti_ofi_buffer *buffer, uint64_t offset, const void *source, size_t bytes)
{
    wefti_ofi_small *small = (wefti_ofi_small *)(void *)((unsigned char *)buffer->header + buffer->bytes);
    *small = (wefti_ofi_small){.offset = offset, .bytes = bytes};
    memcpy(small + 1, source, bytes);
    buffer->bytes += wefti_ofi_small_bytes(bytes);
    buffer->header->bytes += wefti_ofi_small_bytes(bytes);
}

static weft_status start(wefti_ofi_wait *now, uint64_t now_ns)
{
    wefti_ofi *ofi = now->ofi;
    wefti_ofi_buffer *buffer;
    WEFT_TRY(wefti_ofi_begin(now, WEFTI_OFI_PUTS, &buffer));
    buffer->since_ns = now_ns;
    buffer->next = ofi->gathering;
    ofi->gathering = buffer;
    ofi->peers[now->pe].gathered = buffer;
    wefti_ofi_wake(ofi);
    return WEFT_OK;
}

weft_status wefti_ofi_gather(wefti_ofi_wait *now, uint64_t offset, const void *source, size_t bytes, int *is_taken)
{
    wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    const uint64_t now_ns = wefti_os_now_ns();
    const int follows = now_ns - peer->put_ns < AT_ONCE_NS;
    peer->put_ns = now_ns;
    *is_taken = 0;
    if (peer->gathered != NULL && peer->gathered->bytes + wefti_ofi_small_bytes(bytes) > WEFTI_OFI_MESSAGE_MAX) {
        WEFT_TRY(wefti_ofi_send_gathered(now));
    }
    if (peer->gathered == NULL) {
        if (!follows) {
            return WEFT_OK;
        }
        WEFT_TRY(start(now, now_ns));
    }
    append(peer->gathered, offset, source, bytes);
    *is_taken = 1;
    return WEFT_OK;
}

/* ---- requests with a reply ---- */

static wefti_ofi_request *free_request(wefti_ofi *ofi)
{
    for (;;) {
        const uint64_t number = ++ofi->requests_made;
        wefti_ofi_request *request = &ofi->requests[number % WEFTI_OFI_WAITING_MAX];
        if (number != 0 && request->number == 0) {
            request->number = number;
            return request;
        }
    }
}

int wefti_ofi_may_ask(const wefti_ofi *ofi, int pe)
{
    return may_take(ofi->peers[pe].asked, ofi->requests_free);
}

static weft_status open_request(wefti_ofi_wait *now, void *dest, size_t bytes, wefti_ofi_request **out)
{
    wefti_ofi *ofi = now->ofi;
    while (!wefti_ofi_may_ask(ofi, now->pe)) {
        WEFT_TRY(wait_for_room(now)); /* until another thread's reply comes */
    }
    wefti_ofi_request *request = free_request(ofi);
    *request = (wefti_ofi_request){.number = request->number, .pe = (uint32_t)now->pe, .dest = dest, .bytes = bytes};
    ofi->requests_free--;
    ofi->peers[now->pe].asked++;
    *out = request;
    return WEFT_OK;
}

weft_status wefti_ofi_begin_request(wefti_ofi_wait *now, wefti_ofi_kind kind, void *dest, size_t bytes,
                                    wefti_ofi_buffer **out, wefti_ofi_request **request)
{
    WEFT_TRY(open_request(now, dest, bytes, request));
    weft_status status = wefti_ofi_begin(now, kind, out);
    if (status != WEFT_OK) {
        forget_request(now->ofi, *request);
        return status;
    }
    (*out)->header->request = (*request)->number;
    return WEFT_OK;
}

weft_status wefti_ofi_close_request(wefti_ofi_wait *now, wefti_ofi_request *request, uint64_t *value)
{
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !request->is_done) {
        status = wefti_ofi_wait_step(now);
    }
    if (request->is_done) { /* perhaps in the step that met the deadline */
        status = request->status == WEFT_OK ? WEFT_OK : wefti_ofi_lost(now);
    }
    if (status == WEFT_OK && value != NULL) {
        *value = request->value;
    }
    forget_request(now->ofi, request);
    return status;
}
