/* bootstrap/tree/link.c: one connection between two PEs, as a sequence of frames. */
#include "bootstrap/tree/link.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "os/socket.h"

#define DRAINED_READS_MAX 64

_Static_assert(sizeof(wefti_frame_header) == 16, "frame headers are sent as they are");

void wefti_link_init(wefti_link *link, int descriptor, int pe)
{
    memset(link, 0, sizeof *link);
    link->descriptor = descriptor;
    link->pe = pe;
}

int wefti_link_is_open(const wefti_link *link)
{
    return link->descriptor >= 0;
}

/* What came and was not read would make the system reset the connection, and what we sent last could be lost. Read as
 * much as an honest peer may have sent by now, and no more: the other end may never stop sending. */
static void drain(int descriptor)
{
    char rest[1024];
    for (int i = 0; i < DRAINED_READS_MAX && wefti_os_socket_receive(descriptor, rest, sizeof rest) > 0; i++) {
    }
}

void wefti_link_fini(wefti_link *link)
{
    if (wefti_link_is_open(link)) {
        wefti_os_socket_finish(link->descriptor);
        drain(link->descriptor);
        wefti_os_socket_close(link->descriptor);
    }
    wefti_free(link->out);
    wefti_seal_destroy(link->seal);
    wefti_link_init(link, -1, link->pe);
}

/* ---- sending ---- */

static int would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

/* Returns how many bytes were taken, -1 when the other end is gone. */
static ssize_t send_now(int descriptor, struct iovec *parts, size_t count)
{
    for (;;) {
        ssize_t sent = wefti_fault("sendmsg", EPIPE) ? -1 : wefti_os_socket_send(descriptor, parts, count);
        if (sent >= 0) {
            return sent;
        }
        if (would_block(errno)) {
            return 0;
        }
        if (errno != EINTR) {
            return -1;
        }
    }
}

/* Make room for `more` bytes behind what is kept; NULL when there is no memory. */
static unsigned char *extend(wefti_link *link, size_t more)
{
    size_t kept = link->out_end - link->out_first;
    unsigned char *out = wefti_alloc(kept + more);
    if (out == NULL) {
        return NULL;
    }
    if (kept > 0) {
        memcpy(out, link->out + link->out_first, kept);
    }
    wefti_free(link->out);
    link->out = out;
    link->out_first = 0;
    link->out_end = kept + more;
    return out + kept;
}

/* Keep what follows the first `sent` bytes of header and body. */
static int keep(wefti_link *link, const wefti_frame_header *header, const void *body, size_t sent)
{
    size_t total = sizeof *header + header->bytes;
    unsigned char *out = extend(link, total - sent);
    if (out == NULL) {
        return 0;
    }
    if (sent < sizeof *header) {
        memcpy(out, (const unsigned char *)header + sent, sizeof *header - sent);
        out += sizeof *header - sent;
        sent = sizeof *header;
    }
    if (sent < total) {
        memcpy(out, (const unsigned char *)body + (sent - sizeof *header), total - sent);
    }
    return 1;
}

static int send_sealed(wefti_link *link, const wefti_frame_header *header, const void *body)
{
    size_t header_bytes = wefti_seal_out_bytes(link->seal, sizeof *header);
    size_t messages = (header->bytes + WEFTI_SEAL_PLAIN_MAX - 1) / WEFTI_SEAL_PLAIN_MAX;
    unsigned char *out = extend(link, header_bytes + header->bytes + messages * WEFTI_SEAL_MORE_BYTES);
    if (out == NULL) {
        return 0;
    }
    wefti_seal_write(link->seal, header, sizeof *header, out);
    wefti_seal_write(link->seal, body, header->bytes, out + header_bytes);
    return wefti_link_flush(link);
}

int wefti_link_send(wefti_link *link, wefti_frame_type type, uint32_t sequence, const void *body, size_t bytes)
{
    wefti_frame_header header = {.type = (uint32_t)type, .sequence = sequence, .bytes = bytes};
    ssize_t sent = 0;
    if (!wefti_link_is_open(link)) {
        return 0;
    }
    if (link->seals_out) {
        return send_sealed(link, &header, body);
    }
    if (wefti_link_is_flushed(link)) {
        struct iovec parts[2] = {{&header, sizeof header}, {(void *)(uintptr_t)body, bytes}};
        sent = send_now(link->descriptor, parts, bytes > 0 ? 2 : 1);
    }
    if (sent < 0) {
        return 0;
    }
    int is_sent = (size_t)sent == sizeof header + bytes;
    return is_sent || keep(link, &header, body, (size_t)sent);
}

int wefti_link_is_flushed(const wefti_link *link)
{
    return link->out_first == link->out_end;
}

int wefti_link_flush(wefti_link *link)
{
    while (!wefti_link_is_flushed(link)) {
        struct iovec part = {link->out + link->out_first, link->out_end - link->out_first};
        ssize_t sent = send_now(link->descriptor, &part, 1);
        if (sent < 0) {
            link->out_first = link->out_end;
            return 0;
        }
        if (sent == 0) {
            return 1;
        }
        link->out_first += (size_t)sent;
    }
    return 1;
}

/* ---- receiving ---- */

void wefti_link_expect(wefti_link *link, wefti_frame_type type, uint32_t sequence, void *memory, uint64_t bytes)
{
    link->sink.type = (uint32_t)type;
    link->sink.sequence = sequence;
    link->sink.memory = memory;
    link->sink.bytes = bytes;
}

static int is_data(const wefti_frame_header *header)
{
    return header->type == WEFTI_FRAME_GATHER || header->type == WEFTI_FRAME_RESULT;
}

/* Where the body goes, once the header is whole. */
static wefti_link_event choose_body(wefti_link *link, unsigned char **body)
{
    const wefti_frame_header *in = &link->in;
    *body = link->body;
    if (!is_data(in)) {
        int fits =
            in->type >= WEFTI_FRAME_CHALLENGE && in->type <= WEFTI_FRAME_PARKED && in->bytes <= sizeof link->body;
        return fits ? WEFTI_LINK_FRAME : WEFTI_LINK_BROKEN;
    }
    if (link->sink.type == 0 || (in->type == link->sink.type && in->sequence == link->sink.sequence + 1)) {
        return WEFTI_LINK_HELD;
    }
    *body = link->sink.memory;
    int same = in->type == link->sink.type && in->sequence == link->sink.sequence && in->bytes == link->sink.bytes;
    return same ? WEFTI_LINK_FRAME : WEFTI_LINK_BROKEN;
}

/* Read what there is, up to `wanted` bytes. Returns how many, 0 with the event when there is nothing. */
static size_t read_some(const wefti_link *link, void *memory, size_t wanted, wefti_link_event *event)
{
    for (;;) {
        ssize_t got = wefti_fault("recv", ECONNRESET) ? -1 : wefti_os_socket_receive(link->descriptor, memory, wanted);
        if (got > 0) {
            return (size_t)got;
        }
        if (got == 0 || (errno != EINTR && !would_block(errno))) {
            *event = WEFTI_LINK_CLOSED;
            return 0;
        }
        if (errno != EINTR) {
            *event = WEFTI_LINK_IDLE;
            return 0;
        }
    }
}

/* Read up to `wanted` bytes. Returns 1 when all have come. */
static int read_plain(wefti_link *link, unsigned char *memory, uint64_t wanted, wefti_link_event *event)
{
    while (wanted > 0) {
        size_t got = read_some(link, memory, wanted, event);
        if (got == 0) {
            return 0;
        }
        memory += got;
        wanted -= got;
        link->in_bytes += got;
    }
    return 1;
}

/* The same, of what is sealed: whole messages count. */
static int read_sealed(wefti_link *link, unsigned char *memory, uint64_t wanted, wefti_link_event *event)
{
    while (wanted > 0) {
        unsigned char *at;
        size_t missing = wefti_seal_in_missing(link->seal, wanted, &at);
        size_t got = read_some(link, at, missing, event);
        if (got == 0) {
            return 0;
        }
        long opened = wefti_seal_in_take(link->seal, got, wanted, memory);
        if (opened < 0) {
            *event = WEFTI_LINK_FORGED;
            return 0;
        }
        memory += opened;
        wanted -= (uint64_t)opened;
        link->in_bytes += (uint64_t)opened;
    }
    return 1;
}

static int read_part(wefti_link *link, unsigned char *memory, uint64_t wanted, wefti_link_event *event)
{
    return link->seals_in ? read_sealed(link, memory, wanted, event) : read_plain(link, memory, wanted, event);
}

wefti_link_event wefti_link_receive(wefti_link *link)
{
    wefti_link_event event = WEFTI_LINK_IDLE;
    unsigned char *body;
    if (link->is_handed_out) {
        link->is_handed_out = 0;
        link->in_bytes = 0;
    }
    if (link->in_bytes < sizeof link->in) {
        unsigned char *header = (unsigned char *)&link->in;
        if (!read_part(link, header + link->in_bytes, sizeof link->in - link->in_bytes, &event)) {
            return event;
        }
    }
    event = choose_body(link, &body);
    link->is_held = event == WEFTI_LINK_HELD;
    if (event != WEFTI_LINK_FRAME) {
        return event;
    }
    uint64_t body_bytes = link->in_bytes - sizeof link->in;
    if (!read_part(link, body + body_bytes, link->in.bytes - body_bytes, &event)) {
        return event;
    }
    if (is_data(&link->in)) {
        link->sink.type = 0;
    }
    link->is_handed_out = 1;
    return WEFTI_LINK_FRAME;
}

/* ---- waiting ---- */

/* A held link is left out, because it stays ready to read. */
void wefti_link_watch(wefti_link *link, wefti_polls *polls)
{
    short events = link->is_held ? 0 : POLLIN;
    if (!wefti_link_is_flushed(link)) {
        events |= POLLOUT;
    }
    link->place = wefti_polls_watch(polls, events == 0 ? -1 : link->descriptor, events);
}

int wefti_link_ready(wefti_link *link, const wefti_polls *polls)
{
    short seen = wefti_polls_seen(polls, link->place);
    if (seen & POLLOUT) {
        (void)wefti_link_flush(link);
    }
    return (seen & ~POLLOUT) != 0 && !link->is_held;
}
