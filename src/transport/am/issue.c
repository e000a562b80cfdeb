/* What this PE asks of others. Messages from one PE to another are served in the order in which they were sent, so that
 * a signal behind its data, and a fence, need nothing more. */
#include <string.h>

#include "os/socket.h"
#include "transport/am/am.h"

/* Parts of one get that are under way at once. */
#define PARTS_MAX 8
/* For a word of a PE that may be late; one from which a message came recently has a progress thread that lives. */
#define SOON_NS UINT64_C(1000000000)
#define RECENTLY_NS UINT64_C(2000000000)
/* A look and a sleep take half a millisecond at most where the processor is free. */
#define STEP_NS UINT64_C(2000000)
#define NAME_BYTES 300
#define LOOKS_MAX 64

static void attach(wefti_am_buffer *buffer, uint64_t offset, const void *data, size_t bytes)
{
    buffer->header->offset = offset;
    buffer->header->bytes = (uint32_t)bytes;
    if (bytes > 0) {
        memcpy(buffer->header + 1, data, bytes);
        buffer->bytes += bytes;
    }
}

/* Count a put that a call has just made or given up. A write that is counted (WEFTI_WIRE_RMA_COUNTED) is taken for a
 * message, since later writes may overtake it, too. */
static void count_put(const wefti_am *am, wefti_am_peer *peer, int is_message)
{
    peer->puts++;
    peer->message_put = is_message || am->wire.rma == WEFTI_WIRE_RMA_COUNTED ? peer->puts : peer->message_put;
}

/* ---- put ---- */

static weft_status put_parts(wefti_am_wait *now, uint64_t offset, const unsigned char *source, size_t bytes)
{
    wefti_am_buffer *buffer;
    for (size_t sent = 0; sent < bytes;) {
        const size_t part = bytes - sent < WEFTI_AM_DATA_MAX ? bytes - sent : WEFTI_AM_DATA_MAX;
        WEFT_TRY(wefti_am_begin(now, WEFTI_AM_PUT, &buffer));
        attach(buffer, offset + sent, source + sent, part);
        WEFT_TRY(wefti_am_submit(now, buffer));
        sent += part;
    }
    return WEFT_OK;
}

weft_status wefti_am_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    weft_status status = WEFT_OK;
    int is_taken = 0;
    int is_rma = 0;
    wefti_am_enter(am);
    if (bytes <= WEFTI_AM_SMALL_MAX) {
        status = wefti_am_gather(&now, offset, source, bytes, &is_taken);
    } else {
        status = wefti_am_rma_is_used(&now, offset, bytes, &is_rma);
    }
    if (status == WEFT_OK && !is_taken) {
        status = is_rma ? wefti_am_rma_put(&now, offset, source, bytes) : put_parts(&now, offset, source, bytes);
    }
    count_put(am, &am->peers[pe], !is_rma);
    return wefti_am_leave(am, status);
}

/* A message that must come behind the writes before it goes by their count, where they are counted: one that follows it
 * and arrives before one of them would be taken for that. So the next write is one behind a fence. */
static void fence_counted(wefti_am_wait *now)
{
    wefti_am_peer *peer = &now->am->peers[now->pe];
    if (now->am->wire.rma == WEFTI_WIRE_RMA_COUNTED) {
        peer->fenced_put = peer->message_put;
    }
}

static weft_status send_signal(wefti_am_wait *now, const wefti_am_header *what, const void *data, size_t bytes)
{
    wefti_am_buffer *buffer;
    WEFT_TRY(wefti_am_begin(now, WEFTI_AM_PUT_SIGNAL, &buffer));
    attach(buffer, what->offset, data, bytes);
    buffer->header->signal_offset = what->signal_offset;
    buffer->header->value = what->value;
    buffer->header->op = what->op;
    return wefti_am_submit(now, buffer);
}

weft_status wefti_am_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    int is_rma = 0;
    wefti_am_enter(am);
    weft_status status = wefti_am_rma_is_used(&now, offset, bytes, &is_rma);
    const size_t first = is_rma ? bytes : bytes > WEFTI_AM_DATA_MAX ? bytes - WEFTI_AM_DATA_MAX : 0;
    const wefti_am_header what = {
        .offset = offset + first, .signal_offset = signal_offset, .value = value, .op = (uint8_t)op};
    if (status == WEFT_OK) {
        status = is_rma ? wefti_am_rma_put(&now, offset, source, first) : put_parts(&now, offset, source, first);
    }
    if (status == WEFT_OK) {
        status = send_signal(&now, &what, bytes > 0 ? (const unsigned char *)source + first : NULL, bytes - first);
    }
    count_put(am, &am->peers[pe], 1);
    if (is_rma) {
        fence_counted(&now);
    }
    return wefti_am_leave(am, status);
}

weft_status wefti_am_flag(wefti_transport *transport, int pe, uint64_t offset, uint64_t value)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    const wefti_am_header what = {.signal_offset = offset, .value = value, .op = WEFT_SIGNAL_SET};
    wefti_am_enter(am);
    am->peers[pe].flags++;
    const weft_status status = send_signal(&now, &what, NULL, 0);
    fence_counted(&now);
    return wefti_am_leave(am, status);
}

/* ---- get ---- */

static weft_status ask_part(wefti_am_wait *now, uint64_t offset, void *dest, size_t bytes, wefti_am_request **request)
{
    wefti_am_buffer *buffer;
    WEFT_TRY(wefti_am_begin_request(now, WEFTI_AM_GET, dest, bytes, &buffer, request));
    buffer->header->offset = offset;
    buffer->header->bytes = (uint32_t)bytes;
    return wefti_am_submit(now, buffer);
}

/* Several parts are under way at once. After a failure those that are left are awaited, too, as far as time goes: they
 * would be written to the caller's memory. */
static weft_status get_parts(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes)
{
    wefti_am_request *parts[PARTS_MAX];
    size_t asked = 0;
    size_t answered = 0;
    weft_status status = WEFT_OK;
    for (size_t at = 0; at < bytes && status == WEFT_OK; at += WEFTI_AM_DATA_MAX) {
        const size_t part = bytes - at < WEFTI_AM_DATA_MAX ? bytes - at : WEFTI_AM_DATA_MAX;
        if (asked - answered == PARTS_MAX || (asked > answered && !wefti_am_may_ask(now->am, now->pe))) {
            status = wefti_am_close_request(now, parts[answered++ % PARTS_MAX], NULL);
        }
        if (status == WEFT_OK) {
            status = ask_part(now, offset + at, dest + at, part, &parts[asked % PARTS_MAX]);
            asked += status == WEFT_OK;
        }
    }
    while (answered < asked) {
        weft_status closed = wefti_am_close_request(now, parts[answered++ % PARTS_MAX], NULL);
        status = status == WEFT_OK ? closed : status;
    }
    return status;
}

static weft_status await_get(wefti_am_wait *now, uint64_t offset, void *dest, size_t bytes)
{
    int is_rma;
    WEFT_TRY(wefti_am_rma_is_used(now, offset, bytes, &is_rma));
    return is_rma ? wefti_am_rma_get(now, offset, dest, bytes) : get_parts(now, offset, dest, bytes);
}

weft_status wefti_am_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    wefti_am_enter(am);
    return wefti_am_leave(am, await_get(&now, offset, dest, bytes));
}

/* ---- gets for which no call waits ---- */

static weft_status begin_parts(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes, uint64_t get)
{
    wefti_am_buffer *buffer;
    wefti_am_request *request;
    for (size_t at = 0; at < bytes; at += WEFTI_AM_DATA_MAX) {
        const size_t part = bytes - at < WEFTI_AM_DATA_MAX ? bytes - at : WEFTI_AM_DATA_MAX;
        WEFT_TRY(wefti_am_begin_left(now, dest + at, part, &buffer, &request));
        buffer->header->offset = offset + at;
        buffer->header->bytes = (uint32_t)part;
        WEFT_TRY(wefti_am_submit(now, buffer));
        wefti_am_leave_request(request, get);
    }
    return WEFT_OK;
}

static weft_status begin_get(wefti_am_wait *now, uint64_t offset, void *dest, size_t bytes, uint64_t get)
{
    int is_rma;
    WEFT_TRY(wefti_am_rma_is_used(now, offset, bytes, &is_rma));
    return is_rma ? wefti_am_rma_begin_get(now, offset, dest, bytes, get) : begin_parts(now, offset, dest, bytes, get);
}

weft_status wefti_am_get_nbi(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    wefti_am_enter(am);
    const uint64_t get = ++am->gets_made;
    wefti_am_note_getter(am);
    const weft_status status = begin_get(&now, offset, dest, bytes, get);
    if (status != WEFT_OK) {
        wefti_am_give_up_gets(am, get, get, WEFT_OK); /* what had begun; this call tells of it */
    }
    return wefti_am_leave(am, status);
}

/* ---- atomics ---- */

static void describe_amo(wefti_am_header *header, const wefti_am_header *what)
{
    header->offset = what->offset;
    header->op = what->op;
    header->bits = what->bits;
    header->value = what->value;
    header->cond = what->cond;
}

/* Nobody wants the value before. */
static weft_status send_amo(wefti_am_wait *now, const wefti_am_header *what)
{
    wefti_am_buffer *buffer;
    WEFT_TRY(wefti_am_begin(now, WEFTI_AM_AMO, &buffer));
    describe_amo(buffer->header, what);
    count_put(now->am, &now->am->peers[now->pe], 1);
    return wefti_am_submit(now, buffer);
}

static weft_status ask_amo(wefti_am_wait *now, const wefti_am_header *what, uint64_t *old)
{
    wefti_am_buffer *buffer;
    wefti_am_request *request;
    WEFT_TRY(wefti_am_begin_request(now, WEFTI_AM_AMO, NULL, 0, &buffer, &request));
    describe_amo(buffer->header, what);
    WEFT_TRY(wefti_am_submit(now, buffer));
    return wefti_am_close_request(now, request, old);
}

weft_status wefti_am_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits, uint64_t value,
                         uint64_t cond, uint64_t *old)
{
    wefti_am *am = transport->state;
    wefti_am_wait now = wefti_am_wait_start(am, pe);
    const wefti_am_header what = {
        .offset = offset, .op = (uint8_t)op, .bits = (uint8_t)bits, .value = value, .cond = cond};
    wefti_am_enter(am);
    return wefti_am_leave(am, old != NULL ? ask_amo(&now, &what, old) : send_amo(&now, &what));
}

/* How long to wait for a word of a PE that may be late. */
static uint64_t soon_ns(const wefti_am_peer *peer)
{
    const uint64_t now_ns = wefti_os_now_ns();
    return now_ns + (now_ns - peer->received_ns < RECENTLY_NS ? SOON_NS : SOON_NS / 4);
}

weft_status wefti_am_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value)
{
    wefti_am *am = transport->state;
    wefti_am_peer *peer = &am->peers[pe];
    const wefti_am_header what = {.offset = offset, .op = WEFTI_AMO_FETCH, .bits = 64};
    weft_status status = WEFT_ERR_TIMEOUT;
    wefti_am_enter(am);
    if (!peer->is_silent) {
        wefti_am_wait now = {.am = am, .until_ns = soon_ns(peer), .pe = pe, .is_silent = 1};
        status = ask_amo(&now, &what, value);
        peer->is_silent = status == WEFT_ERR_TIMEOUT;
    }
    return wefti_am_leave(am, status);
}

/* ---- fence and quiet ---- */

weft_status wefti_am_fence(wefti_transport *transport)
{
    wefti_am *am = transport->state; /* messages keep their order; nothing is kept back longer */
    wefti_am_enter(am);
    wefti_am_try_gathered(am, UINT64_MAX);
    for (int pe = 0; am->wire.rma != WEFTI_WIRE_NO_RMA && pe < am->setup.pes; pe++) {
        wefti_am_peer *peer = &am->peers[pe];
        peer->fenced_put = peer->message_put; /* which a write would overtake */
        peer->has_fenced_writes =
            am->wire.rma == WEFTI_WIRE_RMA_COMPLETES && (peer->has_fenced_writes || peer->writes > 0);
    }
    return wefti_am_leave(am, WEFT_OK);
}

static weft_status send_flush(wefti_am_wait *now, wefti_am_request **request)
{
    wefti_am_buffer *buffer;
    WEFT_TRY(wefti_am_begin_request(now, WEFTI_AM_FLUSH, NULL, 0, &buffer, request));
    const weft_status status = wefti_am_submit(now, buffer);
    fence_counted(now); /* other threads' writes */
    return status;
}

/* Whether a PE that cannot be reached any more has said before that it leaves: the message may be here and not have
 * been taken yet. */
static int has_left(wefti_am *am, int pe)
{
    for (int looks = 0; looks < LOOKS_MAX && !am->peers[pe].has_left && wefti_am_progress(am); looks++) {
    }
    return am->peers[pe].has_left;
}

/* The status of a flush. A PE that leaves meanwhile needs no more of what was sent: that is WEFT_OK. */
static weft_status end_of_flush(const wefti_am_wait *now, weft_status status)
{
    if (status == WEFT_OK || (status == WEFT_ERR_PEER && has_left(now->am, now->pe))) {
        return WEFT_OK;
    }
    if (now->is_silent || (status != WEFT_ERR_PEER && status != WEFT_ERR_TIMEOUT)) {
        return status;
    }
    return status == WEFT_ERR_PEER ? wefti_am_lost(now) : wefti_am_timed_out(now);
}

/* Ask whether what was sent to the PE is in its memory. *request is NULL if there is nobody left to answer. */
static weft_status ask_flush(const wefti_am_wait *now, wefti_am_request **request)
{
    wefti_am_wait silent = *now;
    silent.is_silent = 1;
    const weft_status status = send_flush(&silent, request);
    *request = status == WEFT_OK ? *request : NULL;
    return status == WEFT_ERR_TIMEOUT ? wefti_am_no_room(now) : end_of_flush(now, status);
}

static weft_status close_flush(const wefti_am_wait *now, wefti_am_request *request)
{
    wefti_am_wait silent = *now;
    silent.is_silent = 1;
    return request == NULL ? WEFT_OK : end_of_flush(now, wefti_am_close_request(&silent, request, NULL));
}

/* Nobody need ask any more after the first `puts` puts. */
static void end_flush(wefti_am_peer *peer, uint64_t puts, int is_known)
{
    if (is_known && puts > peer->puts_flushed) {
        peer->puts_flushed = puts;
    }
}

weft_status wefti_am_flush_messages(wefti_am_wait *now, uint64_t put)
{
    wefti_am_peer *peer = &now->am->peers[now->pe];
    const uint64_t puts = peer->puts;
    wefti_am_request *request;
    if (put <= peer->puts_flushed) {
        return WEFT_OK;
    }
    WEFT_TRY(ask_flush(now, &request));
    WEFT_TRY(close_flush(now, request));
    end_flush(peer, puts, 1);
    return WEFT_OK;
}

#define ASKED_MAX (WEFTI_AM_WAITING_MAX / 2)

/* A quiet. Who does not answer in time is asked again by the next; who is gone is named once. */
typedef struct flushing {
    const wefti_am_wait *model;
    int unready; /* a PE to which no message can go yet; -1: none */
    int is_full; /* nobody can be asked before an answer has been taken */
    int count;
    struct {
        wefti_am_request *request;
        uint64_t puts;
    } asked[ASKED_MAX];
} flushing;

static int is_to_ask(const flushing *f, int pe)
{
    const wefti_am_peer *peer = &f->model->am->peers[pe];
    int is_so = peer->puts != peer->puts_flushed && !peer->has_left;
    for (int i = 0; i < f->count && is_so; i++) {
        is_so = (int)f->asked[i].request->pe != pe;
    }
    return is_so;
}

/* Ask the PE, if that needs no wait: else it is unready. */
static weft_status ask_at_once(flushing *f, int pe)
{
    wefti_am_peer *peer = &f->model->am->peers[pe];
    wefti_am_request **request = &f->asked[f->count].request;
    wefti_am_wait now = *f->model;
    wefti_am_wait soon = *f->model;
    now.pe = soon.pe = pe;
    soon.until_ns = 0;
    soon.is_silent = 1;
    f->asked[f->count].puts = peer->puts;
    const weft_status status = ask_flush(&soon, request);
    f->count += *request != NULL;
    end_flush(peer, peer->puts, status == WEFT_ERR_PEER);
    if (status == WEFT_ERR_TIMEOUT) {
        f->unready = f->unready < 0 ? pe : f->unready;
        return WEFT_OK;
    }
    return status == WEFT_ERR_PEER ? wefti_am_lost(&now) : status;
}

/* Ask those that have not been asked. */
static weft_status ask_all(flushing *f)
{
    const wefti_am *am = f->model->am;
    weft_status status = WEFT_OK;
    f->unready = -1;
    f->is_full = 0;
    for (int pe = 0; pe < am->setup.pes && status == WEFT_OK && !f->is_full; pe++) {
        if (is_to_ask(f, pe)) {
            f->is_full = f->count == ASKED_MAX || (f->count > 0 && !wefti_am_may_ask(am, pe));
            status = f->is_full ? WEFT_OK : ask_at_once(f, pe);
        }
    }
    return status;
}

/* Take the answers; returns `status`, or the first failure. */
static weft_status close_all(flushing *f, weft_status status)
{
    for (int i = 0; i < f->count; i++) {
        wefti_am_wait now = *f->model;
        now.pe = (int)f->asked[i].request->pe;
        now.is_silent = now.is_silent || status != WEFT_OK; /* the first is named */
        weft_status closed = close_flush(&now, f->asked[i].request);
        end_flush(&now.am->peers[now.pe], f->asked[i].puts, closed == WEFT_OK || closed == WEFT_ERR_PEER);
        status = status == WEFT_OK ? closed : status;
    }
    f->count = 0;
    return status;
}

/* All are asked before one answer is waited for: else a PE that gives none until the deadline leaves no time to those
 * behind it, and they are named. */
static weft_status flush(const wefti_am_wait *model)
{
    wefti_am_wait waits = *model;
    flushing f = {.model = model};
    weft_status status = WEFT_OK;
    int is_over = 0;
    while (!is_over) {
        status = ask_all(&f);
        if (status == WEFT_OK && f.unready >= 0 && !f.is_full) {
            waits.pe = f.unready;
            status = wefti_am_wait_for_room(&waits);
            is_over = status != WEFT_OK;
        } else {
            status = close_all(&f, status);
            is_over = status != WEFT_OK || !f.is_full;
        }
    }
    return close_all(&f, status);
}

weft_status wefti_am_quiet(wefti_transport *transport)
{
    wefti_am *am = transport->state;
    const wefti_am_wait now = wefti_am_wait_start(am, -1);
    wefti_am_enter(am);
    return wefti_am_leave(am, flush(&now));
}

/* ---- who does not answer ---- */

/* Ask of those from *first on as many as there is room for, all of whom have until `until_ns`. */
static void find_some(wefti_am *am, const int *pes, int count, int *first, uint64_t until_ns)
{
    wefti_am_request *asked[WEFTI_AM_WAITING_MAX / 2];
    int requests = 0;
    for (; *first < count && requests < WEFTI_AM_WAITING_MAX / 2; ++*first) {
        wefti_am_wait now = {.am = am, .until_ns = until_ns, .pe = pes[*first], .is_silent = 1};
        wefti_am_peer *peer = &am->peers[now.pe];
        if (peer->is_silent || peer->is_lost) {
            continue;
        }
        if (requests > 0 && !wefti_am_may_ask(am, now.pe)) {
            break;
        }
        const weft_status status = ask_flush(&now, &asked[requests]);
        requests += asked[requests] != NULL;
        peer->is_silent = status == WEFT_ERR_TIMEOUT;
    }
    for (int i = 0; i < requests; i++) {
        wefti_am_wait now = {.am = am, .until_ns = until_ns, .pe = (int)asked[i]->pe, .is_silent = 1};
        if (wefti_am_close_request(&now, asked[i], NULL) == WEFT_ERR_TIMEOUT) {
            am->peers[now.pe].is_silent = 1;
        }
    }
}

void wefti_am_find_silent(wefti_transport *transport, const int *pes, int count)
{
    wefti_am *am = transport->state;
    const uint64_t until_ns = wefti_os_now_ns() + SOON_NS;
    int first = 0;
    wefti_am_enter(am);
    while (first < count) {
        const uint64_t least_ns = wefti_os_now_ns() + SOON_NS / 4; /* those that are asked last have time, too */
        find_some(am, pes, count, &first, until_ns > least_ns ? until_ns : least_ns);
    }
    (void)wefti_am_leave(am, WEFT_OK);
}

/* ---- the beginning and the end ---- */

static weft_status unreachable(const wefti_am *am, weft_status status)
{
    char name[NAME_BYTES];
    char coming[WEFTI_OS_LINK_BYTES];
    am->wire.ops->name(&am->wire, name, sizeof name);
    const int is_coming = wefti_os_link_is_coming(coming);
    return wefti_error(WEFT_ERR_UNREACHABLE,
                       "PE %d %s of %s%s%s; look at routes and firewalls, or name the interface %s", am->setup.pe,
                       status == WEFT_ERR_TIMEOUT ? "gets no answer from PE 0 by way" : "cannot connect to PE 0 by way",
                       name, is_coming ? ", which leaves out an interface that is not up yet (ip link): " : "",
                       is_coming ? coming : "", am->wire.ops->remedy);
}

weft_status wefti_am_probe(wefti_am *am, int pe, uint64_t patience_ns, uint64_t last_ns)
{
    wefti_am_wait now = {.am = am,
                         .until_ns = wefti_os_now_ns() + patience_ns,
                         .pe = pe,
                         .is_silent = 1,
                         .step_ns = STEP_NS,
                         .last_ns = last_ns};
    wefti_am_request *request;
    wefti_am_enter(am);
    weft_status status = ask_flush(&now, &request);
    status = status == WEFT_OK ? close_flush(&now, request) : status;
    (void)wefti_am_leave(am, status);
    return status == WEFT_OK ? WEFT_OK : unreachable(am, status);
}

/* Messages of this PE that are still to be taken by those that are there, replies among them. */
static int is_under_way(const wefti_am *am)
{
    int is_so = am->unsent != NULL;
    for (int i = 0; i < WEFTI_AM_BUFFERS && !is_so; i++) {
        is_so = am->buffers[i].role == WEFTI_AM_REPLY_OUT && !am->peers[am->buffers[i].pe].is_lost;
    }
    for (int pe = 0; pe < am->setup.pes && !is_so; pe++) {
        is_so = !am->peers[pe].is_lost && (am->peers[pe].sending > 0 || am->peers[pe].writes > 0);
    }
    return is_so;
}

static void tell_all(wefti_am *am, uint64_t until_ns)
{
    for (int pe = 0; pe < am->setup.pes; pe++) {
        wefti_am_wait now = {.am = am, .until_ns = until_ns, .pe = pe, .is_silent = 1};
        wefti_am_buffer *buffer;
        if (am->peers[pe].is_met && !am->peers[pe].is_lost &&
            wefti_am_begin(&now, WEFTI_AM_LEAVE, &buffer) == WEFT_OK) {
            (void)wefti_am_submit(&now, buffer);
        }
    }
}

/* Waits for PEs that are there and have not taken all messages, flags among them; not for those that have left. */
void wefti_am_send_leave(wefti_am *am, uint64_t until_ns)
{
    wefti_am_wait now = {.am = am, .until_ns = until_ns, .pe = -1, .is_silent = 1};
    wefti_am_enter(am);
    for (int pe = 0; pe < am->setup.pes; pe++) {
        am->peers[pe].puts += am->peers[pe].flags;
        am->peers[pe].flags = 0;
    }
    while (flush(&now) == WEFT_ERR_PEER) {
    }
    (void)wefti_am_close_gets(&now);
    tell_all(am, until_ns);
    while (is_under_way(am) && wefti_am_wait_step(&now) == WEFT_OK) {
    }
    (void)wefti_am_leave(am, WEFT_OK);
}
