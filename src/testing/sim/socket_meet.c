/* testing/sim/socket_meet.c: sockets bind, listen, connect and accept. */
#include "testing/sim/sockets.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "testing/sim/sim.h"

#define AGAIN_NS 20000 /* until a connect that found no room tries again */

static unsigned port_of(const wefti_socket_address *address)
{
    return (unsigned)address->data[2] << 8 | address->data[3]; /* in IPv4 and IPv6 alike */
}

static void set_port(wefti_sim *sim, wefti_socket_address *address)
{
    unsigned port = 20000 + sim->sockets->last_port++;
    address->data[2] = (unsigned char)(port >> 8);
    address->data[3] = (unsigned char)port;
}

static void give_unix_name(wefti_sim *sim, wefti_socket_address *address)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int used = snprintf(any.sun_path + 1, sizeof any.sun_path - 1, "%05x", ++sim->sockets->last_name);
    address->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    memcpy(address->data, &any, sizeof any);
}

static void set_address(wefti_socket_address *to, const struct sockaddr *from, socklen_t bytes)
{
    to->bytes = bytes;
    memcpy(to->data, from, bytes);
}

/* Who has bound an address; an internet one: a port, of whatever address. */
static wefti_socket *find_bound(const wefti_sim *sim, const wefti_socket_address *address)
{
    int family = ((const struct sockaddr *)(const void *)address->data)->sa_family;
    for (size_t i = 0; i < sim->sockets->capacity; i++) {
        wefti_socket *socket = sim->sockets->open[i];
        if (socket == NULL || socket->stage > WEFTI_SOCKET_LISTENS || socket->name.bytes == 0 ||
            (socket->family == AF_UNIX) != (family == AF_UNIX)) {
            continue;
        }
        if (family == AF_UNIX
                ? socket->name.bytes == address->bytes && memcmp(socket->name.data, address->data, address->bytes) == 0
                : port_of(&socket->name) == port_of(address)) {
            return socket;
        }
    }
    return NULL;
}

int wefti_os_socket_open(int family)
{
    wefti_sim *sim = wefti_socket_enter();
    return sim == NULL ? wefti_socket_failed(ENOSYS) : wefti_socket_hand_out(sim, wefti_socket_make(sim, family));
}

int wefti_os_socket_bind(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "bind");
    wefti_socket_address name = {0};
    set_address(&name, address, bytes);
    if (socket->family == AF_UNIX && bytes == sizeof address->sa_family) {
        give_unix_name(sim, &name);
    } else if (socket->family != AF_UNIX && port_of(&name) == 0) {
        set_port(sim, &name);
    }
    if (find_bound(sim, &name) != NULL) {
        return wefti_socket_failed(EADDRINUSE);
    }
    socket->name = name;
    return 0;
}

int wefti_os_socket_listen(int descriptor, int backlog)
{
    wefti_sim *sim = wefti_socket_enter();
    (void)backlog;
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "listen");
    socket->queue = wefti_sim_no_less(calloc(sim->sockets->backlog, sizeof(wefti_socket *)));
    socket->stage = WEFTI_SOCKET_LISTENS;
    return 0;
}

static void make_pipe(const wefti_sim *sim, wefti_socket *socket)
{
    socket->in.room = sim->sockets->room;
    socket->in.ring = wefti_sim_no_less(malloc(socket->in.room));
    socket->stage = WEFTI_SOCKET_CONNECTED;
}

/* Connect to who listens there. Returns 0 or an error number. */
static int join(wefti_sim *sim, wefti_socket *socket)
{
    wefti_socket *listener = find_bound(sim, &socket->peer_name);
    if (listener == NULL || listener->stage != WEFTI_SOCKET_LISTENS) {
        socket->stage = WEFTI_SOCKET_FRESH;
        return ECONNREFUSED;
    }
    if (wefti_socket_is_apart(sim, socket, listener)) {
        socket->stage = WEFTI_SOCKET_CONNECTS;
        socket->due_ns = sim->sockets->silent_until_ns;
        return EINPROGRESS;
    }
    /* No storm, which lasts for calls: who connects asks again after a while only, and would take far longer than a
     * system does. And no EINTR: only those that wait are interrupted. */
    if (listener->queue_count == sim->sockets->backlog || wefti_random_hit(&sim->random, sim->sockets->again)) {
        return EAGAIN;
    }
    if (socket->family != AF_UNIX && socket->name.bytes == 0) {
        socket->name = socket->peer_name;
        set_port(sim, &socket->name);
    }
    wefti_socket *other = wefti_socket_make(sim, socket->family);
    other->pe = -1;
    other->name = socket->peer_name;
    other->peer_name = socket->name;
    other->due_ns = wefti_socket_arrival_ns(sim);
    make_pipe(sim, other);
    make_pipe(sim, socket);
    other->peer = socket;
    socket->peer = other;
    listener->queue[listener->queue_count++] = other;
    wefti_socket_notify(sim, listener);
    return 0;
}

int wefti_os_socket_connect(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "connect");
    if (socket->stage != WEFTI_SOCKET_FRESH) {
        wefti_socket_misused(sim, "connect", descriptor);
    }
    set_address(&socket->peer_name, address, bytes);
    int error = EINPROGRESS;
    if (socket->family != AF_UNIX && wefti_random_below(&sim->random, 4) != 0) {
        socket->stage = WEFTI_SOCKET_CONNECTS;
        socket->due_ns = wefti_socket_arrival_ns(sim);
    } else {
        error = join(sim, socket);
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_CONNECT, (uint64_t)descriptor, (uint64_t)error);
    return error == 0 ? 0 : wefti_socket_failed(error);
}

/* Decide a connect that is due. */
void wefti_socket_settle(wefti_sim *sim, wefti_socket *socket)
{
    if (socket->stage != WEFTI_SOCKET_CONNECTS || socket->due_ns > sim->now_ns) {
        return;
    }
    int error = join(sim, socket);
    if (error == EAGAIN) { /* the other system does not answer; this one asks again */
        socket->due_ns = sim->now_ns + AGAIN_NS;
        return;
    }
    socket->error = error == EINPROGRESS ? 0 : error;
}

int wefti_os_socket_outcome(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return ENOSYS;
    }
    wefti_socket *socket = wefti_socket_of(sim, descriptor, "getsockopt");
    wefti_socket_settle(sim, socket);
    int error = socket->error;
    socket->error = 0;
    return error;
}

/* How many connections of a listener can be accepted. They are put first. */
size_t wefti_socket_sort_queue(const wefti_socket *listener, uint64_t now_ns)
{
    size_t count = 0;
    for (size_t i = 0; i < listener->queue_count; i++) {
        wefti_socket *socket = listener->queue[i];
        if (socket->due_ns <= now_ns) {
            listener->queue[i] = listener->queue[count];
            listener->queue[count++] = socket;
        }
    }
    return count;
}

int wefti_os_socket_accept(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_socket *listener = wefti_socket_of(sim, descriptor, "accept");
    size_t count = wefti_socket_sort_queue(listener, sim->now_ns);
    if (wefti_socket_is_in_storm(sim, listener)) {
        return -1;
    }
    if (count == 0) {
        return wefti_socket_failed(EAGAIN);
    }
    size_t at = wefti_random_below(&sim->random, (uint32_t)count);
    wefti_socket *socket = listener->queue[at];
    listener->queue[at] = listener->queue[--listener->queue_count];
    int accepted = wefti_socket_hand_out(sim, socket);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_ACCEPT, (uint64_t)descriptor, (uint64_t)accepted);
    return accepted;
}
