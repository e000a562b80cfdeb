/* testing/sim/socket_bytes.c: what sockets send and receive. */
#include "testing/sim/sockets.h"

#include <errno.h>
#include <string.h>

#include "testing/sim/sim.h"

#define FEW_BYTES 24

static void pipe_put(wefti_pipe *pipe, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        pipe->ring[(pipe->first + pipe->count + i) % pipe->room] = from[i];
    }
    pipe->count += bytes;
}

/* All that was put since the last stamp arrives at `ns`. */
static void pipe_stamp(wefti_pipe *pipe, size_t bytes, uint64_t ns)
{
    pipe->last_ns = ns > pipe->last_ns ? ns : pipe->last_ns;
    if (pipe->segment_count == WEFTI_SEGMENTS) {
        pipe->segments[WEFTI_SEGMENTS - 1].bytes += bytes;
        pipe->segments[WEFTI_SEGMENTS - 1].ns = pipe->last_ns;
        return;
    }
    pipe->segments[pipe->segment_count].bytes = bytes;
    pipe->segments[pipe->segment_count++].ns = pipe->last_ns;
}

size_t wefti_pipe_arrived(const wefti_pipe *pipe, uint64_t now_ns)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < pipe->segment_count && pipe->segments[i].ns <= now_ns; i++) {
        bytes += pipe->segments[i].bytes;
    }
    return bytes;
}

static void pipe_take(wefti_pipe *pipe, unsigned char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = pipe->ring[(pipe->first + i) % pipe->room];
    }
    pipe->first = (pipe->first + bytes) % pipe->room;
    pipe->count -= bytes;
    while (bytes > 0) {
        size_t part = pipe->segments[0].bytes < bytes ? pipe->segments[0].bytes : bytes;
        pipe->segments[0].bytes -= part;
        bytes -= part;
        if (pipe->segments[0].bytes == 0) {
            pipe->segment_count--;
            memmove(&pipe->segments[0], &pipe->segments[1], pipe->segment_count * sizeof pipe->segments[0]);
        }
    }
}

int wefti_pipe_is_over(const wefti_pipe *pipe, uint64_t now_ns)
{
    return pipe->is_ended && pipe->count == 0 && pipe->last_ns <= now_ns;
}

/* When something next happens here; UINT64_MAX: not by itself. */
uint64_t wefti_pipe_next_ns(const wefti_pipe *pipe)
{
    return pipe->segment_count > 0 ? pipe->segments[0].ns : pipe->is_ended ? pipe->last_ns : UINT64_MAX;
}

void wefti_pipe_end(wefti_pipe *pipe, uint64_t ns, int is_broken)
{
    pipe->last_ns = ns > pipe->last_ns ? ns : pipe->last_ns;
    pipe->is_ended = 1;
    pipe->is_broken |= is_broken;
}

static size_t some_of(wefti_sim *sim, size_t bytes)
{
    if (bytes < 2 || !wefti_random_hit(&sim->random, sim->sockets->partial)) {
        return bytes;
    }
    size_t most = bytes > FEW_BYTES && wefti_random_below(&sim->random, 2) == 0 ? FEW_BYTES : bytes;
    return 1 + wefti_random_below(&sim->random, (uint32_t)most);
}

void wefti_os_socket_finish(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    wefti_socket *socket = sim == NULL ? NULL : wefti_socket_of(sim, descriptor, "shutdown");
    if (socket != NULL && !socket->has_finished) {
        socket->has_finished = 1;
        if (socket->peer != NULL) {
            wefti_pipe_end(&socket->peer->in, wefti_socket_arrival_at_ns(sim, socket, socket->peer), 0);
            wefti_socket_notify(sim, socket->peer);
        }
    }
}

/* Whether this end is told that nobody takes what it sends. Over TCP it is told of what it sent before. */
static int has_nobody(wefti_socket *socket, uint64_t now_ns)
{
    if (socket->peer != NULL || socket->in.last_ns > now_ns) {
        return 0;
    }
    const int is_told = socket->family == AF_UNIX || socket->in.is_broken || socket->has_sent_in_vain;
    socket->has_sent_in_vain = 1;
    return is_told;
}

ssize_t wefti_os_socket_send(int descriptor, struct iovec *parts, size_t count)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "send");
    if (socket->stage != WEFTI_SOCKET_CONNECTED) {
        return wefti_socket_failed(ENOTCONN);
    }
    if (wefti_socket_is_in_storm(sim, socket)) {
        return -1;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    if (socket->has_finished || has_nobody(socket, sim->now_ns)) {
        return wefti_socket_failed(socket->in.is_broken ? ECONNRESET : EPIPE);
    }
    if (socket->peer == NULL) {
        return (ssize_t)bytes; /* it does not know yet */
    }
    wefti_memory_drain(sim, sim->running); /* who receives this has seen what was stored before */
    wefti_pipe *out = &socket->peer->in;
    size_t room = out->room - out->count;
    if (bytes > 0 && room == 0) {
        return wefti_socket_failed(EAGAIN);
    }
    bytes = some_of(sim, bytes < room ? bytes : room);
    size_t left = bytes;
    for (size_t i = 0; left > 0; i++) {
        size_t piece = parts[i].iov_len < left ? parts[i].iov_len : left;
        pipe_put(out, parts[i].iov_base, piece);
        left -= piece;
    }
    pipe_stamp(out, bytes, wefti_socket_arrival_at_ns(sim, socket, socket->peer));
    wefti_socket_notify(sim, socket->peer);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_SEND, (uint64_t)descriptor, bytes);
    return (ssize_t)bytes;
}

ssize_t wefti_os_socket_receive(int descriptor, void *memory, size_t bytes)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "receive");
    if (socket->stage != WEFTI_SOCKET_CONNECTED) {
        return wefti_socket_failed(ENOTCONN);
    }
    if (wefti_socket_is_in_storm(sim, socket)) {
        return -1;
    }
    size_t arrived = wefti_pipe_arrived(&socket->in, sim->now_ns);
    if (arrived == 0) {
        int is_over = wefti_pipe_is_over(&socket->in, sim->now_ns);
        return !is_over               ? wefti_socket_failed(EAGAIN)
               : socket->in.is_silent ? wefti_socket_failed(ETIMEDOUT)
               : socket->in.is_broken ? wefti_socket_failed(ECONNRESET)
                                      : 0;
    }
    bytes = some_of(sim, bytes < arrived ? bytes : arrived);
    pipe_take(&socket->in, memory, bytes);
    wefti_memory_acquire_all(sim, sim->running);
    wefti_socket_notify(sim, socket->peer);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_RECEIVE, (uint64_t)descriptor, bytes);
    return (ssize_t)bytes;
}

int wefti_os_socket_is_over(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    const wefti_socket *socket = sim == NULL ? NULL : wefti_socket_of(sim, descriptor, "look at");
    return socket == NULL || socket->stage != WEFTI_SOCKET_CONNECTED ||
           (wefti_pipe_arrived(&socket->in, sim->now_ns) == 0 && wefti_pipe_is_over(&socket->in, sim->now_ns));
}
