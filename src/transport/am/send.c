/* Who may send how much, how long a call waits, and which puts go together. */
#include <string.h>

#include "base/thread_state.h"
#include "transport/am/am.h"
#include "weft/inline/rma.h"

/* A put that comes so soon after another, with no wait of a call between them, is one of many. */
#define AT_ONCE_NS WEFTI_AM_GATHER_NS
/* What has come is seen to so often before a wait is given up. */
#define LAST_LOOKS 64
#define RAILS_BYTES 200

/* ---- the lock ---- */

int wefti_am_is_wanted(const wefti_am *am)
{
    return wefti_ld32(&am->entering, WEFTI_RELAXED) != 0;
}

void wefti_am_enter(wefti_am *am)
{
    (void)wefti_add32(&am->entering, 1);
    wefti_os_monitor_enter(am->lock);
    (void)wefti_add32(&am->entering, UINT32_MAX);
}

weft_status wefti_am_leave(wefti_am *am, weft_status status)
{
    wefti_os_monitor_leave(am->lock);
    return status;
}

/* ---- waiting ---- */

wefti_am_wait wefti_am_wait_start(wefti_am *am, int pe)
{
    const uint64_t deadline_ns = am->setup.deadline_ns;
    const uint64_t now_ns = wefti_os_now_ns();
    return (wefti_am_wait){.am = am,
                           .until_ns = deadline_ns == WEFT_FOREVER ? UINT64_MAX : now_ns + deadline_ns,
                           .pe = pe,
                           .check_ns = am->setup.check == NULL ? 0 : now_ns + WEFTI_AM_CHECK_NS};
}

/* Which of several rails to the PE has not done yet what it was to do. */
static const char *rails_of(const wefti_am_wait *now, char text[RAILS_BYTES])
{
    const wefti_wire *wire = &now->am->wire;
    text[0] = '\0';
    if (wire->ops->tell_rails != NULL) {
        wire->ops->tell_rails(wire, now->pe, text, RAILS_BYTES);
    }
    return text;
}

weft_status wefti_am_lost(const wefti_am_wait *now)
{
    char rails[RAILS_BYTES];
    static const char *const words[WEFTI_FATES] = {
        [WEFTI_FATE_THERE] = "the network cannot deliver to it",
        [WEFTI_FATE_LEFT] = "it has left the world",
        [WEFTI_FATE_ENDED] = "its process has ended",
        [WEFTI_FATE_SILENT] = "its host has become unreachable",
    };
    return now->is_silent
               ? WEFT_ERR_PEER
               : wefti_error(WEFT_ERR_PEER, "PE %d is gone: %s, and PE %d has asked something of it%s", now->pe,
                             words[wefti_watch_fate(now->am->watch, now->pe)], now->am->setup.pe, rails_of(now, rails));
}

weft_status wefti_am_timed_out(const wefti_am_wait *now)
{
    char rails[RAILS_BYTES];
    *wefti_thread_is_hopeless() = 0; /* it is the deadline's */
    return now->is_silent ? WEFT_ERR_TIMEOUT
                          : wefti_error(WEFT_ERR_TIMEOUT, "PE %d did not answer PE %d over the network in time%s",
                                        now->pe, now->am->setup.pe, rails_of(now, rails));
}

static void put_off(wefti_am_wait *now, uint64_t now_ns)
{
    const uint64_t taken_ns = now->looked_ns == 0 ? 0 : now_ns - now->looked_ns;
    now->looked_ns = now_ns;
    if (now->step_ns != 0 && taken_ns > now->step_ns) {
        const uint64_t until_ns = now->until_ns + (taken_ns - now->step_ns);
        now->until_ns = until_ns < now->last_ns ? until_ns : now->last_ns;
    }
}

/* Without the lock: who is asked may call the network, to tell others. */
static weft_status check_world(wefti_am_wait *now, uint64_t now_ns)
{
    wefti_am *am = now->am;
    if (WEFTI_LIKELY(now->check_ns == 0 || now_ns < now->check_ns)) {
        return WEFT_OK;
    }
    now->check_ns = now_ns + WEFTI_AM_CHECK_NS;
    wefti_os_monitor_leave(am->lock);
    const weft_status status = am->setup.check(am->setup.check_context);
    wefti_am_enter(am);
    return status;
}

weft_status wefti_am_wait_step(wefti_am_wait *now)
{
    wefti_am *am = now->am;
    const int happened = wefti_am_poll(am);
    const uint64_t now_ns = am->polled_ns;
    WEFT_TRY(check_world(now, now_ns));
    put_off(now, now_ns);
    if (now_ns >= now->until_ns) { /* though others may send without end */
        if (now->has_looked) {
            return wefti_am_timed_out(now);
        }
        now->has_looked = 1; /* this PE may have been stopped since it looked */
        for (int looks = 0; looks < LAST_LOOKS && wefti_am_progress(am); looks++) {
        }
        return WEFT_OK;
    }
    if (!happened) {
        now->idle_ns = now->idle_ns == 0 ? now_ns : now->idle_ns;
        wefti_am_idle(am, wefti_os_pause_ns(now_ns - now->idle_ns, now->until_ns - now_ns, 1));
        return WEFT_OK;
    }
    now->idle_ns = 0;
    if (wefti_am_is_wanted(am)) {
        wefti_am_idle(am, 0);
    }
    return WEFT_OK;
}

/* ---- shares ---- */

/* Who holds `held` may take one of `left`. */
static int may_take(uint32_t held, uint32_t left)
{
    return held < left;
}

static uint32_t held_by(const wefti_am_peer *peer)
{
    return peer->sending + peer->asked + peer->rma;
}

/* The PE has nothing under way, and waits for what others hold: one of them is to blame. */
static weft_status blame_holder(const wefti_am_wait *now)
{
    const wefti_am *am = now->am;
    int most = now->pe;
    for (int pe = 0; pe < am->setup.pes; pe++) {
        most = held_by(&am->peers[pe]) > held_by(&am->peers[most]) ? pe : most;
    }
    return wefti_error(WEFT_ERR_TIMEOUT,
                       "PE %d has no room left for a message to PE %d: PE %d did not take what is on its way to it",
                       am->setup.pe, now->pe, most);
}

weft_status wefti_am_no_room(const wefti_am_wait *now)
{
    return !now->is_silent && held_by(&now->am->peers[now->pe]) == 0 ? blame_holder(now) : wefti_am_timed_out(now);
}

weft_status wefti_am_wait_for_room(wefti_am_wait *now)
{
    weft_status status = wefti_am_wait_step(now);
    return status == WEFT_ERR_TIMEOUT ? wefti_am_no_room(now) : status;
}

/* ---- messages ---- */

static int takes_credit(wefti_am_kind kind)
{
    return kind != WEFTI_AM_LEAVE; /* who leaves waits for nobody */
}

/* A message comes behind the writes before it, by the provider's order or by their count, or because they are
 * complete. */
static int may_send(const wefti_am *am, const wefti_am_peer *peer, wefti_am_kind kind)
{
    const int is_behind = peer->writes == 0 || am->wire.rma != WEFTI_WIRE_RMA_COMPLETES;
    return is_behind && may_take(peer->sending, am->free_out_count) && (peer->credits > 0 || !takes_credit(kind));
}

weft_status wefti_am_begin(wefti_am_wait *now, wefti_am_kind kind, wefti_am_buffer **out)
{
    wefti_am *am = now->am;
    wefti_am_peer *peer = &am->peers[now->pe];
    WEFT_TRY(wefti_am_send_gathered(now));
    while (!may_send(am, peer, kind)) {
        if (peer->is_lost) {
            return wefti_am_lost(now);
        }
        WEFT_TRY(wefti_am_wait_for_room(now));
        WEFT_TRY(wefti_am_send_gathered(now)); /* another thread's */
    }
    wefti_am_buffer *buffer = am->free_out;
    am->free_out = buffer->next;
    am->free_out_count--;
    peer->sending++;
    peer->credits -= takes_credit(kind) ? 1 : 0;
    memset(buffer->header, 0, sizeof *buffer->header);
    buffer->header->world = am->setup.world;
    buffer->header->from = (uint32_t)am->setup.pe;
    buffer->header->kind = (uint8_t)kind;
    buffer->pe = (uint32_t)now->pe;
    buffer->bytes = sizeof *buffer->header;
    *out = buffer;
    return WEFT_OK;
}

void wefti_am_free_out(wefti_am *am, wefti_am_buffer *buffer)
{
    am->peers[buffer->pe].sending--;
    buffer->next = am->free_out;
    am->free_out = buffer;
    am->free_out_count++;
}

/* One that is not sent is free, and so are its credit and its request. */
static void give_up(wefti_am *am, wefti_am_buffer *buffer)
{
    if (buffer->header->request != 0) {
        wefti_am_forget_request(am, &am->requests[buffer->header->request % WEFTI_AM_WAITING_MAX]);
    }
    am->peers[buffer->pe].credits += takes_credit((wefti_am_kind)buffer->header->kind) ? 1 : 0;
    wefti_am_free_out(am, buffer);
}

weft_status wefti_am_submit(wefti_am_wait *now, wefti_am_buffer *buffer)
{
    wefti_am *am = now->am;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !am->peers[now->pe].is_lost) {
        const wefti_wire_answer answer = wefti_am_send(am, buffer);
        if (answer == WEFTI_WIRE_TAKEN) {
            am->peers[now->pe].is_met = 1;
            return WEFT_OK;
        }
        if (answer == WEFTI_WIRE_LOST) {
            wefti_am_lose(am, (uint32_t)now->pe);
            break;
        }
        status = wefti_am_wait_step(now);
    }
    give_up(am, buffer);
    return status == WEFT_OK ? wefti_am_lost(now) : status;
}

/* ---- small puts that go in one message ---- */

static void forget(wefti_am *am, wefti_am_buffer *buffer)
{
    wefti_am_buffer **link = &am->gathering;
    while (*link != buffer) {
        link = &(*link)->next;
    }
    *link = buffer->next;
    am->peers[buffer->pe].gathered = NULL;
}

/* Hand it to the wire, or drop it if its PE is lost; returns 0 if it is still to be sent. */
static int try_send(wefti_am *am, wefti_am_buffer *buffer)
{
    wefti_am_peer *peer = &am->peers[buffer->pe];
    const wefti_wire_answer answer = peer->is_lost ? WEFTI_WIRE_LOST : wefti_am_send(am, buffer);
    if (answer == WEFTI_WIRE_TAKEN) {
        forget(am, buffer);
        peer->is_met = 1;
        return 1;
    }
    if (answer == WEFTI_WIRE_AGAIN) {
        return 0;
    }
    wefti_am_lose(am, buffer->pe);
    forget(am, buffer);
    give_up(am, buffer);
    return 1;
}

weft_status wefti_am_send_gathered(wefti_am_wait *now)
{
    wefti_am *am = now->am;
    const wefti_am_peer *peer = &am->peers[now->pe];
    while (peer->gathered != NULL && !try_send(am, peer->gathered)) {
        WEFT_TRY(wefti_am_wait_step(now));
    }
    return WEFT_OK;
}

void wefti_am_try_gathered(wefti_am *am, uint64_t before_ns)
{
    wefti_am_buffer *buffer = am->gathering;
    while (buffer != NULL) {
        wefti_am_buffer *next = buffer->next;
        if (buffer->since_ns < before_ns) {
            (void)try_send(am, buffer);
        }
        buffer = next;
    }
}

static void append(wefti_am_buffer *buffer, uint64_t offset, const void *source, size_t bytes)
{
    wefti_am_small *small = (wefti_am_small *)(void *)((unsigned char *)buffer->header + buffer->bytes);
    *small = (wefti_am_small){.offset = offset, .bytes = bytes};
    memcpy(small + 1, source, bytes);
    buffer->bytes += wefti_am_small_bytes(bytes);
    buffer->header->bytes += (uint32_t)wefti_am_small_bytes(bytes);
}

static weft_status start(wefti_am_wait *now, uint64_t now_ns)
{
    wefti_am *am = now->am;
    wefti_am_buffer *buffer;
    WEFT_TRY(wefti_am_begin(now, WEFTI_AM_PUTS, &buffer));
    buffer->since_ns = now_ns;
    buffer->next = am->gathering;
    am->gathering = buffer;
    am->peers[now->pe].gathered = buffer;
    wefti_am_wake(am);
    return WEFT_OK;
}

weft_status wefti_am_gather(wefti_am_wait *now, uint64_t offset, const void *source, size_t bytes, int *is_taken)
{
    wefti_am_peer *peer = &now->am->peers[now->pe];
    const uint64_t now_ns = wefti_os_now_ns();
    const int has_waited = now->am->polled_ns > peer->put_ns; /* since the last put, for what that led to, say */
    const int follows = now_ns - peer->put_ns < AT_ONCE_NS && !has_waited;
    peer->put_ns = now_ns;
    *is_taken = 0;
    if (peer->gathered != NULL && peer->gathered->bytes + wefti_am_small_bytes(bytes) > WEFTI_AM_MESSAGE_MAX) {
        WEFT_TRY(wefti_am_send_gathered(now));
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

static wefti_am_request *free_request(wefti_am *am)
{
    for (;;) {
        const uint32_t number = ++am->requests_made;
        wefti_am_request *request = &am->requests[number % WEFTI_AM_WAITING_MAX];
        if (number != 0 && request->number == 0) {
            request->number = number;
            return request;
        }
    }
}

int wefti_am_may_ask(const wefti_am *am, int pe)
{
    return may_take(am->peers[pe].asked, am->requests_free);
}

static weft_status open_request(wefti_am_wait *now, void *dest, size_t bytes, wefti_am_request **out)
{
    wefti_am *am = now->am;
    while (!wefti_am_may_ask(am, now->pe)) {
        WEFT_TRY(wefti_am_wait_for_room(now)); /* until another thread's reply comes */
    }
    wefti_am_request *request = free_request(am);
    *request = (wefti_am_request){.number = request->number, .pe = (uint32_t)now->pe, .dest = dest, .bytes = bytes};
    am->requests_free--;
    am->peers[now->pe].asked++;
    *out = request;
    return WEFT_OK;
}

/* A buffer for a request that is open; if there is none, it is closed. */
static weft_status begin_open(wefti_am_wait *now, wefti_am_kind kind, wefti_am_buffer **out, wefti_am_request **request)
{
    weft_status status = wefti_am_begin(now, kind, out);
    if (status != WEFT_OK) {
        wefti_am_forget_request(now->am, *request);
        return status;
    }
    (*out)->header->request = (*request)->number;
    return WEFT_OK;
}

weft_status wefti_am_begin_request(wefti_am_wait *now, wefti_am_kind kind, void *dest, size_t bytes,
                                   wefti_am_buffer **out, wefti_am_request **request)
{
    WEFT_TRY(open_request(now, dest, bytes, request));
    return begin_open(now, kind, out, request);
}

/* Those that are open end as their answers come, so it waits for the oldest of them, or for a caller's. */
static int may_leave(const wefti_am *am, int pe)
{
    return may_take(am->peers[pe].gets, WEFTI_AM_GETS_MAX - am->requests_left) && wefti_am_may_ask(am, pe);
}

weft_status wefti_am_begin_left(wefti_am_wait *now, void *dest, size_t bytes, wefti_am_buffer **out,
                                wefti_am_request **request)
{
    wefti_am *am = now->am;
    while (!may_leave(am, now->pe)) {
        if (am->peers[now->pe].is_lost) {
            return wefti_am_lost(now);
        }
        WEFT_TRY(wefti_am_wait_for_room(now));
    }
    WEFT_TRY(open_request(now, dest, bytes, request));
    (*request)->is_left = 1;
    am->peers[now->pe].gets++;
    am->requests_left++;
    return begin_open(now, WEFTI_AM_GET, out, request);
}

weft_status wefti_am_close_request(wefti_am_wait *now, wefti_am_request *request, uint64_t *value)
{
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !request->is_done) {
        status = wefti_am_wait_step(now);
    }
    if (request->is_done) { /* perhaps in the step that met the deadline */
        status = request->status == WEFT_OK ? WEFT_OK : wefti_am_lost(now);
    }
    if (status == WEFT_OK && value != NULL) {
        *value = request->value;
    }
    wefti_am_forget_request(now->am, request);
    return status;
}
