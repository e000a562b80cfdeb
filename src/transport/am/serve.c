/* What others ask of this PE. Whoever asks has checked its arguments; here they are checked again, since anybody in the
 * network may send: what does not fit is dropped. */
#include <string.h>

#include "transport/am/am.h"
#include "weft/inline/rma.h"
#include "weft/protocol/layout.h"

/* ---- the slot ---- */

/* Where `bytes` bytes of this PE's slot are; NULL if they have no memory, or are words of this PE alone: one of them
 * says how much has memory. */
static unsigned char *place(const wefti_am *am, uint64_t offset, uint64_t bytes)
{
    const wefti_control *control = (const wefti_control *)(const void *)am->setup.slot;
    const uint64_t reserved = wefti_ld64(&control->reserved, WEFTI_RELAXED);
    const int is_inside = offset <= reserved && bytes <= reserved - offset;
    const int is_own = bytes > 0 && offset < offsetof(wefti_control, abort);
    return is_inside && !is_own ? am->setup.slot + offset : NULL;
}

/* A word that others may read meanwhile is stored whole. Who sees what is stored here sees what was before: the sender
 * may have had a fence between the two. */
static void store(unsigned char *at, const void *data, uint64_t bytes)
{
    uint64_t word = 0;
    wefti_fence_release();
    if (bytes > sizeof word || (bytes & (bytes - 1)) != 0 || ((uintptr_t)at & (bytes - 1)) != 0) {
        wefti_copy(at, data, bytes);
        return;
    }
    memcpy(&word, data, bytes);
    switch (bytes) {
    case 1:
        wefti_st8(at, (uint8_t)word, WEFTI_RELAXED);
        return;
    case 2:
        wefti_st16(at, (uint16_t)word, WEFTI_RELAXED);
        return;
    case 4:
        wefti_st32(at, (uint32_t)word, WEFTI_RELAXED);
        return;
    case 8:
        wefti_st64(at, word, WEFTI_RELAXED);
        return;
    default:
        return;
    }
}

/* ---- requests ---- */

/* Where the data goes: NULL if nowhere. */
static unsigned char *place_of_data(const wefti_am *am, const wefti_am_header *header, size_t bytes)
{
    return header->bytes == bytes - sizeof *header ? place(am, header->offset, header->bytes) : NULL;
}

static void serve_put(const wefti_am *am, const wefti_am_header *header, size_t bytes)
{
    unsigned char *at = place_of_data(am, header, bytes);
    if (at != NULL) {
        store(at, header + 1, header->bytes);
    }
}

static void serve_puts(const wefti_am *am, const wefti_am_header *header, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)(header + 1);
    size_t left = bytes - sizeof *header;
    wefti_am_small small;
    while (left >= sizeof small) {
        memcpy(&small, at, sizeof small);
        if (small.bytes > WEFTI_AM_SMALL_MAX || wefti_am_small_bytes(small.bytes) > left) {
            return;
        }
        unsigned char *to = place(am, small.offset, small.bytes);
        if (to != NULL) {
            store(to, at + sizeof small, small.bytes);
        }
        at += wefti_am_small_bytes(small.bytes);
        left -= wefti_am_small_bytes(small.bytes);
    }
}

static void serve_put_signal(const wefti_am *am, const wefti_am_header *header, size_t bytes)
{
    unsigned char *at = place_of_data(am, header, bytes);
    unsigned char *word = place(am, header->signal_offset, sizeof(uint64_t));
    if (at == NULL || word == NULL || header->signal_offset % sizeof(uint64_t) != 0) {
        return;
    }
    store(at, header + 1, header->bytes);
    if (header->op == WEFT_SIGNAL_SET) {
        wefti_st64(word, header->value, WEFTI_RELEASE);
    } else {
        (void)wefti_add64(word, header->value);
    }
}

/* The reply takes the place of the request. Returns its bytes, 0 if there is none. */
static size_t serve_get(const wefti_am *am, wefti_am_header *header)
{
    const unsigned char *at = header->bytes <= WEFTI_AM_DATA_MAX ? place(am, header->offset, header->bytes) : NULL;
    if (at == NULL) {
        return 0;
    }
    wefti_copy(header + 1, at, header->bytes);
    header->kind = WEFTI_AM_DATA;
    return sizeof *header + header->bytes;
}

static size_t serve_amo(const wefti_am *am, wefti_am_header *header)
{
    const uint64_t bytes = header->bits / 8;
    unsigned char *at = place(am, header->offset, bytes);
    if (at == NULL || (header->bits != 32 && header->bits != 64) || header->offset % bytes != 0 ||
        header->op > WEFTI_AMO_XOR) {
        return 0;
    }
    header->value = wefti_amo_at((wefti_amo_op)header->op, header->bits, at, header->value, header->cond);
    header->kind = WEFTI_AM_DONE;
    return header->request != 0 ? sizeof *header : 0;
}

static size_t serve_key(wefti_am *am, wefti_am_header *header)
{
    const wefti_am_range *range = wefti_am_rma_share(am);
    wefti_am_key *told = (wefti_am_key *)(void *)(header + 1);
    memset(told, 0, sizeof *told);
    if (range != NULL) {
        told->first = range->first;
        told->bytes = range->bytes;
        memcpy(told->told, range->at.told, sizeof told->told);
    }
    header->kind = WEFTI_AM_DATA;
    header->bytes = sizeof *told;
    return sizeof *header + sizeof *told;
}

/* Does what a request asks; returns the bytes of the reply, 0 if there is none. */
static size_t apply(wefti_am *am, wefti_am_header *header, size_t bytes)
{
    switch (header->kind) {
    case WEFTI_AM_PUT:
        serve_put(am, header, bytes);
        return 0;
    case WEFTI_AM_PUTS:
        serve_puts(am, header, bytes);
        return 0;
    case WEFTI_AM_PUT_SIGNAL:
        serve_put_signal(am, header, bytes);
        return 0;
    case WEFTI_AM_GET:
        return serve_get(am, header);
    case WEFTI_AM_AMO:
        return serve_amo(am, header);
    case WEFTI_AM_KEY:
        return serve_key(am, header);
    case WEFTI_AM_FLUSH: /* messages of one PE are served in their order, and what they store is stored */
        header->kind = WEFTI_AM_DONE;
        return sizeof *header;
    default:
        return 0;
    }
}

static int is_of_this_world(const wefti_am *am, const wefti_am_header *header, size_t bytes)
{
    return bytes >= sizeof *header && bytes <= WEFTI_AM_MESSAGE_MAX && header->world == am->setup.world &&
           header->from < (uint32_t)am->setup.pes && am->peers[header->from].is_known;
}

static void note_sign_of_life(wefti_am *am, uint32_t pe)
{
    am->peers[pe].is_met = 1;
    am->peers[pe].is_silent = 0;
    am->peers[pe].received_ns = wefti_os_now_ns();
}

/* Oldest first, so that nobody waits for ever. */
static void append_unsent(wefti_am *am, wefti_am_buffer *buffer)
{
    wefti_am_buffer **end = &am->unsent;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    buffer->next = NULL;
    *end = buffer;
}

/* Serve it, count it, and make a reply of it if one is due. Returns the reply's bytes. */
static size_t take(wefti_am *am, wefti_am_header *header, size_t bytes)
{
    wefti_am_peer *peer = &am->peers[header->from];
    if (header->kind == WEFTI_AM_LEAVE) {
        wefti_am_note_left(am, header->from);
        return 0;
    }
    size_t reply = apply(am, header, bytes);
    peer->owed += peer->owed < WEFTI_AM_CREDITS_MAX;
    if (reply == 0 && peer->owed >= WEFTI_AM_CREDITS_SOON) {
        header->kind = WEFTI_AM_CREDITS;
        reply = sizeof *header;
    }
    if (reply != 0) {
        header->credits = (uint8_t)peer->owed;
        peer->owed = 0;
    }
    return reply;
}

/* Requests that a PE may have sent and that wait for an earlier one; credits bound them, but for LEAVE. */
#define EARLY_MAX (WEFTI_AM_CREDITS_MAX + 1)

/* Whether it is its turn, and what it follows is in memory. */
static int is_due(const wefti_am_peer *peer, const wefti_am_header *header)
{
    return header->number == peer->taken && (int32_t)(peer->writes_taken - header->writes) >= 0;
}

static int is_early(const wefti_am_peer *peer, uint32_t number)
{
    return number - peer->taken <= EARLY_MAX;
}

int wefti_am_is_early(const wefti_am *am, const void *request, size_t bytes)
{
    const wefti_am_header *header = request;
    return is_of_this_world(am, header, bytes) && !is_due(&am->peers[header->from], header) &&
           is_early(&am->peers[header->from], header->number);
}

/* Afterwards it is served, answered and posted again in its turn; one that cannot be is dropped. */
static void keep(wefti_am *am, wefti_am_peer *peer, wefti_am_buffer *buffer, size_t bytes)
{
    const uint32_t number = buffer->header->number;
    int is_new = is_early(peer, number);
    for (const wefti_am_buffer *other = peer->early; other != NULL; other = other->next) {
        is_new &= other->header->number != number;
    }
    if (!is_new) {
        wefti_am_post(am, buffer);
        return;
    }
    buffer->bytes = bytes;
    buffer->next = peer->early;
    peer->early = buffer;
}

/* The one that is due; NULL if there is none. */
static wefti_am_buffer *take_early(wefti_am_peer *peer)
{
    wefti_am_buffer **link = &peer->early;
    while (*link != NULL && !is_due(peer, (*link)->header)) {
        link = &(*link)->next;
    }
    wefti_am_buffer *found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    return found;
}

static void serve_next(wefti_am *am, wefti_am_buffer *buffer, size_t bytes)
{
    wefti_am_header *header = buffer->header;
    am->peers[header->from].taken++;
    buffer->bytes = take(am, header, bytes);
    if (buffer->bytes == 0) {
        wefti_am_post(am, buffer);
        return;
    }
    buffer->pe = header->from;
    buffer->role = WEFTI_AM_REPLY_OUT;
    header->from = (uint32_t)am->setup.pe;
    append_unsent(am, buffer);
}

static void serve_early(wefti_am *am, wefti_am_peer *peer)
{
    for (wefti_am_buffer *next = take_early(peer); next != NULL; next = take_early(peer)) {
        serve_next(am, next, next->bytes);
    }
}

void wefti_am_serve(wefti_am *am, wefti_am_buffer *buffer, size_t bytes)
{
    if (!is_of_this_world(am, buffer->header, bytes)) {
        wefti_am_post(am, buffer);
        return;
    }
    wefti_am_peer *peer = &am->peers[buffer->header->from];
    note_sign_of_life(am, buffer->header->from);
    if (!is_due(peer, buffer->header)) {
        keep(am, peer, buffer, bytes);
        return;
    }
    serve_next(am, buffer, bytes);
    serve_early(am, peer);
}

void wefti_am_written(wefti_am *am, uint32_t pe)
{
    if (pe < (uint32_t)am->setup.pes && am->peers[pe].is_known) {
        note_sign_of_life(am, pe);
        am->peers[pe].writes_taken++;
        serve_early(am, &am->peers[pe]);
    }
}

void wefti_am_send_unsent(wefti_am *am)
{
    wefti_am_buffer **link = &am->unsent;
    while (*link != NULL) {
        wefti_am_buffer *buffer = *link;
        wefti_am_buffer *next = buffer->next;
        const int was_lost = am->peers[buffer->pe].is_lost;
        const wefti_wire_answer answer = was_lost ? WEFTI_WIRE_LOST : wefti_am_send(am, buffer);
        if (answer == WEFTI_WIRE_AGAIN) {
            link = &buffer->next; /* another PE's may go */
            continue;
        }
        *link = next;
        if (answer == WEFTI_WIRE_LOST) {
            wefti_am_lose(am, buffer->pe);
            buffer->role = WEFTI_AM_REQUEST_IN;
            wefti_am_post(am, buffer);
        }
    }
}

/* ---- replies ---- */

void wefti_am_take_reply(wefti_am *am, const wefti_am_header *reply, size_t bytes)
{
    if (!is_of_this_world(am, reply, bytes)) {
        return;
    }
    note_sign_of_life(am, reply->from);
    wefti_am_peer *peer = &am->peers[reply->from];
    const uint32_t missing = WEFTI_AM_CREDITS_MAX - peer->credits;
    peer->credits += reply->credits < missing ? reply->credits : missing;
    if (reply->kind == WEFTI_AM_CREDITS) {
        return;
    }
    wefti_am_request *request = &am->requests[reply->request % WEFTI_AM_WAITING_MAX];
    if (request->number != reply->request || request->number == 0 || request->is_done || request->pe != reply->from) {
        return;
    }
    if (request->dest != NULL) {
        if (reply->kind != WEFTI_AM_DATA || reply->bytes != request->bytes || bytes != sizeof *reply + reply->bytes) {
            return;
        }
        memcpy(request->dest, reply + 1, request->bytes);
    }
    if (request->get != 0) { /* nobody waits for this one */
        wefti_am_forget_request(am, request);
        return;
    }
    request->value = reply->value;
    request->status = WEFT_OK;
    request->is_done = 1;
}
