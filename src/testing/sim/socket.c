/* testing/sim/socket.c: sockets for os/socket.h: one network for all PEs, whatever their nodes.
 *
 * Calls take and give a part of what they could, are interrupted, or find nothing although poll said otherwise; bytes
 * travel; buffers are small and backlogs short; a listener's connections come in any order: all as drawn for the run.
 * What a system does not do is not done here either: bytes are neither lost nor changed on a connection that stands,
 * nobody is refused where somebody listens, and what was sent before an end can be read. */
#include "testing/sim/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "testing/sim/sim.h"

#define PLENTY 1000
#define OWN_USER 1000
#define FOREIGN_USER 65534
#define CALL_NS 200 /* a call takes up to this long */
#define STORM_CALLS 40 /* so many calls in a row fail, at most */
#define FEW_BYTES 24
#define AGAIN_NS 20000 /* until a connect that found no room tries again */

static void *no_less(void *memory)
{
    if (memory == NULL) {
        abort(); /* a test program without memory */
    }
    return memory;
}

/* ---- the network ---- */

static void draw(wefti_sim *sim, wefti_sockets *net)
{
    static const uint32_t agains[] = {WEFT_SIM_NEVER, WEFT_SIM_NEVER, 64, 8, 3};
    static const uint32_t interruptions[] = {WEFT_SIM_NEVER, WEFT_SIM_NEVER, 32, 4};
    static const uint32_t partials[] = {WEFT_SIM_NEVER, 16, 2, 1};
    static const uint32_t delays[] = {1, 1000, 20000, 200000};
    static const size_t rooms[] = {64, 600, 5000, 200000};
    static const size_t backlogs[] = {1, 4, 1024, 1024};
    wefti_random *random = &sim->random;
    net->again = wefti_random_threshold(agains[wefti_random_below(random, 5)]);
    net->interrupted = wefti_random_threshold(interruptions[wefti_random_below(random, 4)]);
    net->partial = wefti_random_threshold(partials[wefti_random_below(random, 4)]);
    net->delay_ns = delays[wefti_random_below(random, 4)];
    net->room = rooms[wefti_random_below(random, 4)];
    net->backlog = backlogs[wefti_random_below(random, 4)];
    net->is_scarce = wefti_random_below(random, 4) == 0;
}

/* The running simulation, after a moment in which others may run; NULL outside of one. */
static wefti_sim *enter_call(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return NULL;
    }
    if (sim->sockets == NULL) {
        sim->sockets = no_less(calloc(1, sizeof *sim->sockets));
        draw(sim, sim->sockets);
    }
    sim->now_ns += wefti_random_below(&sim->random, CALL_NS);
    wefti_sim_step(sim);
    return sim;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

static void misused(wefti_sim *sim, const char *call, int descriptor)
{
    (void)snprintf(sim->text, sizeof sim->text, "%s of descriptor %d, which is not a socket that it is good for", call,
                   descriptor);
    sim->culprit = sim->running->pe;
    wefti_sim_stop(sim, WEFT_ERR_STATE);
}

static wefti_socket *find(const wefti_sim *sim, int descriptor)
{
    size_t at = (size_t)descriptor - WEFTI_SOCKET_FIRST;
    return descriptor < WEFTI_SOCKET_FIRST || at >= sim->sockets->capacity ? NULL : sim->sockets->open[at];
}

/* The socket of a descriptor, which must be one: a call on another is a bug of the caller. */
static wefti_socket *socket_of(wefti_sim *sim, int descriptor, const char *call)
{
    wefti_socket *socket = find(sim, descriptor);
    if (socket == NULL) {
        misused(sim, call, descriptor);
    }
    return socket;
}

/* The lowest free number, as systems do: a descriptor used after its end soon means another socket. */
static int hand_out(wefti_sim *sim, wefti_socket *socket)
{
    wefti_sockets *net = sim->sockets;
    size_t at = 0;
    while (at < net->capacity && net->open[at] != NULL) {
        at++;
    }
    if (at == net->capacity) {
        size_t capacity = 2 * net->capacity + 64;
        net->open = no_less(realloc(net->open, capacity * sizeof *net->open));
        memset(net->open + at, 0, (capacity - at) * sizeof *net->open);
        net->capacity = capacity;
    }
    net->open[at] = socket;
    socket->pe = sim->running->pe;
    return (int)at + WEFTI_SOCKET_FIRST;
}

static wefti_socket *make(wefti_sim *sim, int family)
{
    wefti_socket *socket = no_less(calloc(1, sizeof *socket));
    socket->family = family;
    socket->pe = sim->running->pe;
    socket->cookie = ++sim->sockets->last_cookie;
    return socket;
}

static void end_poll(wefti_sim *sim, wefti_fiber *waiter)
{
    if (waiter != NULL && waiter->is_polling && waiter->state == WEFTI_FIBER_SLEEPING) {
        wefti_sim_wake(sim, waiter);
    }
}

/* Several threads of a PE may sleep on one bell. */
static void notify(wefti_sim *sim, const wefti_socket *socket)
{
    if (socket == NULL) {
        return;
    }
    end_poll(sim, socket->waiter);
    for (size_t i = 0; socket->stage == WEFTI_SOCKET_BELL && i < sim->fiber_count; i++) {
        end_poll(sim, sim->fibers[i]->pe == socket->pe ? sim->fibers[i] : NULL);
    }
}

static uint64_t arrival_ns(wefti_sim *sim)
{
    return sim->now_ns + wefti_random_below(&sim->random, sim->sockets->delay_ns);
}

#define CALM (-1) /* the next call goes through: storms do not follow one another */

/* Whether this call fails for no reason, with errno set. */
static int is_in_storm(wefti_sim *sim, wefti_socket *socket)
{
    const wefti_sockets *net = sim->sockets;
    if (wefti_random_hit(&sim->random, net->interrupted)) {
        errno = EINTR;
        return 1;
    }
    if (socket->storm == 0 && wefti_random_hit(&sim->random, net->again)) {
        socket->storm = 1 + (int)wefti_random_below(&sim->random, STORM_CALLS);
    }
    if (socket->storm > 0) {
        socket->storm = socket->storm == 1 ? CALM : socket->storm - 1;
        errno = EAGAIN;
        return 1;
    }
    socket->storm = 0;
    return 0;
}

static size_t some_of(wefti_sim *sim, size_t bytes)
{
    if (bytes < 2 || !wefti_random_hit(&sim->random, sim->sockets->partial)) {
        return bytes;
    }
    size_t most = bytes > FEW_BYTES && wefti_random_below(&sim->random, 2) == 0 ? FEW_BYTES : bytes;
    return 1 + wefti_random_below(&sim->random, (uint32_t)most);
}

/* ---- pipes ---- */

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

static size_t pipe_arrived(const wefti_pipe *pipe, uint64_t now_ns)
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

static int pipe_is_over(const wefti_pipe *pipe, uint64_t now_ns)
{
    return pipe->is_ended && pipe->count == 0 && pipe->last_ns <= now_ns;
}

/* When something next happens here; UINT64_MAX: not by itself. */
static uint64_t pipe_next_ns(const wefti_pipe *pipe)
{
    return pipe->segment_count > 0 ? pipe->segments[0].ns : pipe->is_ended ? pipe->last_ns : UINT64_MAX;
}

static void pipe_end(wefti_sim *sim, wefti_pipe *pipe, int is_broken)
{
    uint64_t ns = arrival_ns(sim);
    pipe->last_ns = ns > pipe->last_ns ? ns : pipe->last_ns;
    pipe->is_ended = 1;
    pipe->is_broken |= is_broken;
}

/* ---- ends ---- */

/* The other end is told behind what was sent: of a reset when something came here that nobody read. */
static void part(wefti_sim *sim, wefti_socket *socket, int is_broken)
{
    wefti_socket *peer = socket->peer;
    if (peer != NULL) {
        pipe_end(sim, &peer->in, is_broken || socket->in.count > 0);
        peer->peer = NULL;
        socket->peer = NULL;
        notify(sim, peer);
    }
}

static void discard(wefti_sim *sim, wefti_socket *socket)
{
    part(sim, socket, 0);
    for (size_t i = 0; i < socket->queue_count; i++) {
        part(sim, socket->queue[i], 1);
        free(socket->queue[i]->in.ring);
        free(socket->queue[i]);
    }
    free(socket->queue);
    free(socket->in.ring);
    free(socket);
}

void wefti_os_socket_close(int descriptor)
{
    wefti_sim *sim = enter_call();
    if (sim != NULL) {
        wefti_socket *socket = socket_of(sim, descriptor, "close");
        wefti_sim_record(sim, sim->running, WEFTI_EVENT_CLOSE, (uint64_t)descriptor, 0);
        sim->sockets->open[descriptor - WEFTI_SOCKET_FIRST] = NULL;
        discard(sim, socket);
    }
}

void wefti_os_socket_stop(int listener)
{
    wefti_os_socket_close(listener); /* nobody forks */
}

void wefti_os_socket_finish(int descriptor)
{
    wefti_sim *sim = enter_call();
    wefti_socket *socket = sim == NULL ? NULL : socket_of(sim, descriptor, "shutdown");
    if (socket != NULL && !socket->has_finished) {
        socket->has_finished = 1;
        if (socket->peer != NULL) {
            pipe_end(sim, &socket->peer->in, 0);
            notify(sim, socket->peer);
        }
    }
}

void wefti_sim_sockets_orphan(wefti_sim *sim, int pe)
{
    for (size_t i = 0; sim->sockets != NULL && i < sim->sockets->capacity; i++) {
        wefti_socket *socket = sim->sockets->open[i];
        if (socket != NULL && socket->pe == pe) {
            sim->sockets->open[i] = NULL;
            discard(sim, socket);
        }
    }
}

int wefti_sim_sockets_left(const wefti_sim *sim)
{
    for (size_t i = 0; sim->sockets != NULL && i < sim->sockets->capacity; i++) {
        if (sim->sockets->open[i] != NULL) {
            return sim->sockets->open[i]->pe;
        }
    }
    return -1;
}

void wefti_sim_sockets_fini(wefti_sim *sim)
{
    for (int pe = 0; pe < sim->pes; pe++) {
        wefti_sim_sockets_orphan(sim, pe);
    }
    if (sim->sockets != NULL) {
        free(sim->sockets->open);
        free(sim->sockets);
    }
}

/* ---- names ---- */

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

/* An unnamed socket has a family, as everywhere. */
static int copy_name(const wefti_socket *socket, const wefti_socket_address *name, struct sockaddr *address,
                     socklen_t *bytes)
{
    if (name->bytes == 0) {
        address->sa_family = (sa_family_t)socket->family;
        *bytes = sizeof address->sa_family;
        return 0;
    }
    memcpy(address, name->data, name->bytes < *bytes ? name->bytes : *bytes);
    *bytes = name->bytes;
    return 0;
}

int wefti_os_socket_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    wefti_sim *sim = enter_call();
    const wefti_socket *socket = sim == NULL ? NULL : socket_of(sim, descriptor, "getsockname");
    return socket == NULL ? failed(ENOSYS) : copy_name(socket, &socket->name, address, bytes);
}

int wefti_os_socket_peer_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    wefti_sim *sim = enter_call();
    const wefti_socket *socket = sim == NULL ? NULL : socket_of(sim, descriptor, "getpeername");
    return socket == NULL ? failed(ENOSYS) : copy_name(socket, &socket->peer_name, address, bytes);
}

int wefti_os_socket_is_own_user(int descriptor, unsigned *user)
{
    wefti_sim *sim = enter_call();
    const wefti_socket *socket = sim == NULL ? NULL : socket_of(sim, descriptor, "getsockopt");
    if (user != NULL) {
        *user = FOREIGN_USER; /* of use where it is not this one's */
    }
    return socket != NULL && socket->peer != NULL && !socket->peer->is_foreign;
}

void wefti_os_socket_list_unix(const char *prefix, int (*see)(void *context, const char *name), void *context)
{
    (void)prefix; /* names are not listed: they are all in the reach of those who know the key */
    (void)see;
    (void)context;
}

unsigned wefti_os_user(void)
{
    return OWN_USER;
}

int wefti_os_socket_port_user(unsigned port, unsigned *user)
{
    (void)port;
    (void)user;
    return 0;
}

/* Few in one run of four, at times; none left where a test says so. */
int wefti_os_descriptors_left(int descriptor)
{
    wefti_sim *sim = enter_call();
    (void)descriptor;
    if (sim == NULL || !sim->sockets->is_scarce) {
        return PLENTY;
    }
    return sim->sockets->are_none_left || wefti_random_below(&sim->random, 2) == 0 ? 0 : PLENTY;
}

int wefti_os_descriptors_are_spent(void)
{
    return 0;
}

int wefti_os_descriptors_part(void)
{
    return 0;
}

uint64_t wefti_os_socket_cookie(int descriptor)
{
    wefti_sim *sim = enter_call();
    const wefti_socket *socket = sim == NULL ? NULL : find(sim, descriptor);
    return socket == NULL ? 0 : socket->cookie;
}

void wefti_os_socket_hasten(int descriptor)
{
    (void)descriptor;
}

void wefti_os_socket_widen(int descriptor)
{
    (void)descriptor;
}

void wefti_os_socket_share(int descriptor)
{
    (void)descriptor;
}

/* ---- meeting ---- */

int wefti_os_socket_open(int family)
{
    wefti_sim *sim = enter_call();
    return sim == NULL ? failed(ENOSYS) : hand_out(sim, make(sim, family));
}

int wefti_os_socket_bind(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *socket = socket_of(sim, descriptor, "bind");
    wefti_socket_address name = {0};
    set_address(&name, address, bytes);
    if (socket->family == AF_UNIX && bytes == sizeof address->sa_family) {
        give_unix_name(sim, &name);
    } else if (socket->family != AF_UNIX && port_of(&name) == 0) {
        set_port(sim, &name);
    }
    if (find_bound(sim, &name) != NULL) {
        return failed(EADDRINUSE);
    }
    socket->name = name;
    return 0;
}

int wefti_os_socket_listen(int descriptor, int backlog)
{
    wefti_sim *sim = enter_call();
    (void)backlog;
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *socket = socket_of(sim, descriptor, "listen");
    socket->queue = no_less(calloc(sim->sockets->backlog, sizeof(wefti_socket *)));
    socket->stage = WEFTI_SOCKET_LISTENS;
    return 0;
}

static void make_pipe(const wefti_sim *sim, wefti_socket *socket)
{
    socket->in.room = sim->sockets->room;
    socket->in.ring = no_less(malloc(socket->in.room));
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
    if (listener->queue_count == sim->sockets->backlog || is_in_storm(sim, listener)) {
        return EAGAIN; /* and no EINTR: only those that wait are interrupted */
    }
    if (socket->family != AF_UNIX && socket->name.bytes == 0) {
        socket->name = socket->peer_name;
        set_port(sim, &socket->name);
    }
    wefti_socket *other = make(sim, socket->family);
    other->pe = -1;
    other->name = socket->peer_name;
    other->peer_name = socket->name;
    other->due_ns = arrival_ns(sim);
    make_pipe(sim, other);
    make_pipe(sim, socket);
    other->peer = socket;
    socket->peer = other;
    listener->queue[listener->queue_count++] = other;
    notify(sim, listener);
    return 0;
}

int wefti_os_socket_connect(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *socket = socket_of(sim, descriptor, "connect");
    if (socket->stage != WEFTI_SOCKET_FRESH) {
        misused(sim, "connect", descriptor);
    }
    set_address(&socket->peer_name, address, bytes);
    int error = EINPROGRESS;
    if (socket->family != AF_UNIX && wefti_random_below(&sim->random, 4) != 0) {
        socket->stage = WEFTI_SOCKET_CONNECTS;
        socket->due_ns = arrival_ns(sim);
    } else {
        error = join(sim, socket);
    }
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_CONNECT, (uint64_t)descriptor, (uint64_t)error);
    return error == 0 ? 0 : failed(error);
}

/* Decide a connect that is due. */
static void settle(wefti_sim *sim, wefti_socket *socket)
{
    if (socket->stage != WEFTI_SOCKET_CONNECTS || socket->due_ns > sim->now_ns) {
        return;
    }
    int error = join(sim, socket);
    if (error == EAGAIN) { /* the other system does not answer; this one asks again */
        socket->due_ns = sim->now_ns + AGAIN_NS;
        return;
    }
    socket->error = error;
}

int wefti_os_socket_outcome(int descriptor)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return ENOSYS;
    }
    wefti_socket *socket = socket_of(sim, descriptor, "getsockopt");
    settle(sim, socket);
    int error = socket->error;
    socket->error = 0;
    return error;
}

/* How many connections of a listener can be accepted. They are put first. */
static size_t sort_queue(const wefti_socket *listener, uint64_t now_ns)
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
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *listener = socket_of(sim, descriptor, "accept");
    size_t count = sort_queue(listener, sim->now_ns);
    if (is_in_storm(sim, listener)) {
        return -1;
    }
    if (count == 0) {
        return failed(EAGAIN);
    }
    size_t at = wefti_random_below(&sim->random, (uint32_t)count);
    wefti_socket *socket = listener->queue[at];
    listener->queue[at] = listener->queue[--listener->queue_count];
    int accepted = hand_out(sim, socket);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_ACCEPT, (uint64_t)descriptor, (uint64_t)accepted);
    return accepted;
}

/* ---- sending and receiving ---- */

ssize_t wefti_os_socket_send(int descriptor, struct iovec *parts, size_t count)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *socket = socket_of(sim, descriptor, "send");
    if (socket->stage != WEFTI_SOCKET_CONNECTED) {
        return failed(ENOTCONN);
    }
    if (is_in_storm(sim, socket)) {
        return -1;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    if (socket->has_finished || (socket->peer == NULL && socket->in.last_ns <= sim->now_ns)) {
        return failed(socket->in.is_broken ? ECONNRESET : EPIPE);
    }
    if (socket->peer == NULL) {
        return (ssize_t)bytes; /* it does not know yet */
    }
    wefti_memory_drain(sim, sim->running); /* who receives this has seen what was stored before */
    wefti_pipe *out = &socket->peer->in;
    size_t room = out->room - out->count;
    if (bytes > 0 && room == 0) {
        return failed(EAGAIN);
    }
    bytes = some_of(sim, bytes < room ? bytes : room);
    size_t left = bytes;
    for (size_t i = 0; left > 0; i++) {
        size_t piece = parts[i].iov_len < left ? parts[i].iov_len : left;
        pipe_put(out, parts[i].iov_base, piece);
        left -= piece;
    }
    pipe_stamp(out, bytes, arrival_ns(sim));
    notify(sim, socket->peer);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_SEND, (uint64_t)descriptor, bytes);
    return (ssize_t)bytes;
}

ssize_t wefti_os_socket_receive(int descriptor, void *memory, size_t bytes)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_socket *socket = socket_of(sim, descriptor, "receive");
    if (socket->stage != WEFTI_SOCKET_CONNECTED) {
        return failed(ENOTCONN);
    }
    if (is_in_storm(sim, socket)) {
        return -1;
    }
    size_t arrived = pipe_arrived(&socket->in, sim->now_ns);
    if (arrived == 0) {
        int is_over = pipe_is_over(&socket->in, sim->now_ns);
        return !is_over ? failed(EAGAIN) : socket->in.is_broken ? failed(ECONNRESET) : 0;
    }
    bytes = some_of(sim, bytes < arrived ? bytes : arrived);
    pipe_take(&socket->in, memory, bytes);
    wefti_memory_acquire_all(sim, sim->running);
    notify(sim, socket->peer);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_RECEIVE, (uint64_t)descriptor, bytes);
    return (ssize_t)bytes;
}

int wefti_os_socket_is_over(int descriptor)
{
    wefti_sim *sim = enter_call();
    const wefti_socket *socket = sim == NULL ? NULL : socket_of(sim, descriptor, "look at");
    return socket == NULL || socket->stage != WEFTI_SOCKET_CONNECTED ||
           (pipe_arrived(&socket->in, sim->now_ns) == 0 && pipe_is_over(&socket->in, sim->now_ns));
}

/* ---- bells ---- */

int wefti_os_bell_open(void)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    if (wefti_fault("eventfd", EMFILE)) {
        return -1;
    }
    wefti_socket *bell = make(sim, AF_UNSPEC);
    bell->stage = WEFTI_SOCKET_BELL;
    return hand_out(sim, bell);
}

void wefti_sim_bell_set(wefti_sim *sim, int descriptor, int is_rung)
{
    wefti_socket *bell = socket_of(sim, descriptor, "ringing");
    bell->is_rung = is_rung;
    notify(sim, bell);
}

static void set_bell(int descriptor, int is_rung)
{
    wefti_sim *sim = descriptor < 0 ? NULL : enter_call();
    if (sim != NULL) {
        wefti_memory_drain(sim, sim->running);
        wefti_sim_bell_set(sim, descriptor, is_rung);
    }
}

void wefti_os_bell_ring(int bell)
{
    set_bell(bell, 1);
}

void wefti_os_bell_hush(int bell)
{
    set_bell(bell, 0);
}

/* A host that falls silent is not simulated. */
void wefti_os_socket_keep(int descriptor, uint64_t silence_ns)
{
    (void)descriptor;
    (void)silence_ns;
}

/* ---- waiting ---- */

/* What has happened at a socket; *next_ns: when more may. */
static short look(wefti_sim *sim, wefti_socket *socket, uint64_t *next_ns)
{
    short seen = 0;
    settle(sim, socket);
    switch (socket->stage) {
    case WEFTI_SOCKET_FRESH:
        return POLLOUT | POLLHUP | (socket->error != 0 ? POLLERR : 0);
    case WEFTI_SOCKET_LISTENS:
        for (size_t i = 0; i < socket->queue_count; i++) {
            *next_ns = socket->queue[i]->due_ns < *next_ns ? socket->queue[i]->due_ns : *next_ns;
        }
        return sort_queue(socket, sim->now_ns) > 0 ? POLLIN : 0;
    case WEFTI_SOCKET_CONNECTS:
        *next_ns = socket->due_ns < *next_ns ? socket->due_ns : *next_ns;
        return 0;
    case WEFTI_SOCKET_BELL:
        return socket->is_rung ? POLLIN : 0;
    case WEFTI_SOCKET_CONNECTED:
        break;
    }
    if (pipe_arrived(&socket->in, sim->now_ns) > 0) {
        seen |= POLLIN;
    } else if (pipe_is_over(&socket->in, sim->now_ns)) {
        seen |= POLLIN | (socket->in.is_broken ? POLLERR | POLLHUP : 0);
    }
    if (socket->peer == NULL || socket->peer->in.count < socket->peer->in.room) {
        seen |= POLLOUT;
    }
    uint64_t ns = pipe_next_ns(&socket->in);
    *next_ns = seen == 0 || !(seen & POLLIN) ? (ns < *next_ns ? ns : *next_ns) : *next_ns;
    return seen;
}

static int look_at_all(wefti_sim *sim, struct pollfd *items, size_t count, uint64_t *next_ns)
{
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].revents = 0;
        if (items[i].fd >= 0) {
            wefti_socket *socket = socket_of(sim, items[i].fd, "poll");
            socket->waiter = sim->running;
            short seen = look(sim, socket, next_ns);
            items[i].revents = (short)(seen & (items[i].events | POLLERR | POLLHUP));
            ready += items[i].revents != 0;
        }
    }
    return ready;
}

int wefti_os_socket_poll(struct pollfd *items, size_t count, uint64_t wait_ns)
{
    wefti_sim *sim = enter_call();
    if (sim == NULL) {
        return failed(ENOSYS);
    }
    wefti_fiber *self = sim->running;
    uint64_t until_ns = wait_ns < UINT64_MAX - sim->now_ns ? sim->now_ns + wait_ns : UINT64_MAX;
    wefti_sim_event(sim);
    if (wefti_random_hit(&sim->random, sim->sockets->interrupted)) {
        return failed(EINTR);
    }
    for (;;) {
        uint64_t next_ns = until_ns;
        int ready = look_at_all(sim, items, count, &next_ns);
        if (ready > 0 || sim->now_ns >= until_ns) {
            wefti_sim_record(sim, self, WEFTI_EVENT_POLL, count, (uint64_t)ready);
            return ready;
        }
        self->what = "a connection";
        self->what_at = WEFTI_NOWHERE;
        self->is_polling = 1;
        (void)wefti_sim_block(sim, WEFTI_FIBER_SLEEPING, next_ns);
        self->is_polling = 0;
    }
}

/* ---- faults ---- */

static int is_cuttable(const wefti_socket *socket, int pe)
{
    return socket != NULL && socket->pe == pe && socket->peer != NULL;
}

static void break_end(wefti_sim *sim, wefti_socket *socket)
{
    socket->in.count = 0;
    socket->in.segment_count = 0;
    socket->in.last_ns = sim->now_ns;
    socket->in.is_ended = socket->in.is_broken = 1;
    socket->peer = NULL;
    notify(sim, socket);
}

int weft_sim_cut(int pe)
{
    wefti_sim *sim = wefti_sim_current;
    uint32_t count = 0;
    size_t capacity = sim == NULL || sim->running == NULL || sim->sockets == NULL ? 0 : sim->sockets->capacity;
    for (size_t i = 0; i < capacity; i++) {
        count += is_cuttable(sim->sockets->open[i], pe) != 0;
    }
    if (count == 0) {
        return 0;
    }
    uint32_t chosen = wefti_random_below(&sim->random, count);
    for (size_t i = 0;; i++) {
        wefti_socket *socket = sim->sockets->open[i];
        if (is_cuttable(socket, pe) && chosen-- == 0) {
            wefti_sim_record(sim, sim->running, WEFTI_EVENT_CUT, i + WEFTI_SOCKET_FIRST, 0);
            break_end(sim, socket->peer);
            break_end(sim, socket);
            return 1;
        }
    }
}

socklen_t wefti_sim_socket_find(struct sockaddr_storage *address)
{
    wefti_sim *sim = wefti_sim_current;
    const wefti_socket *found = NULL;
    uint32_t seen = 0;
    for (size_t i = 0; sim->sockets != NULL && i < sim->sockets->capacity; i++) {
        const wefti_socket *socket = sim->sockets->open[i];
        if (socket != NULL && socket->stage == WEFTI_SOCKET_LISTENS && wefti_random_below(&sim->random, ++seen) == 0) {
            found = socket;
        }
    }
    if (found == NULL) {
        return 0;
    }
    memcpy(address, found->name.data, sizeof found->name.data);
    return found->name.bytes;
}

void wefti_sim_socket_disguise(int descriptor)
{
    find(wefti_sim_current, descriptor)->is_foreign = 1;
}

void wefti_sim_socket_calm(size_t room)
{
    wefti_sim *sim = enter_call();
    if (sim != NULL) {
        wefti_sockets *net = sim->sockets;
        net->again = net->interrupted = net->partial = wefti_random_threshold(WEFT_SIM_NEVER);
        net->delay_ns = 1;
        net->room = room;
        net->backlog = 1024;
        net->is_scarce = net->are_none_left = 0;
    }
}

void wefti_sim_socket_make_scarce(void)
{
    wefti_sockets *net = wefti_sim_current->sockets;
    net->is_scarce = net->are_none_left = 1;
}
