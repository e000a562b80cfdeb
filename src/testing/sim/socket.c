/* testing/sim/socket.c: sockets for os/socket.h: one network for all PEs, whatever their nodes.
 *
 * Calls take and give a part of what they could, are interrupted, or find nothing although poll said otherwise; bytes
 * travel; buffers are small and backlogs short; a listener's connections come in any order: all as drawn for the run.
 * What a system does not do is not done here either: bytes are neither lost nor changed on a connection that stands,
 * nobody is refused where somebody listens, and what was sent before an end can be read.
 *
 * Here is the network with its descriptors. Calls: socket_meet.c, socket_bytes.c, socket_poll.c, socket_names.c; what
 * tests do to it: socket_fault.c. */
#include "testing/sim/sockets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/sim/sim.h"

#define CALL_NS 200 /* a call takes up to this long */
#define STORM_CALLS 40 /* so many calls in a row fail, at most */

void *wefti_sim_no_less(void *memory)
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
wefti_sim *wefti_socket_enter(void)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || sim->running == NULL) {
        return NULL;
    }
    if (sim->sockets == NULL) {
        sim->sockets = wefti_sim_no_less(calloc(1, sizeof *sim->sockets));
        draw(sim, sim->sockets);
    }
    sim->now_ns += wefti_random_below(&sim->random, CALL_NS);
    wefti_sim_step(sim);
    return sim;
}

int wefti_socket_failed(int error)
{
    errno = error;
    return -1;
}

void wefti_socket_misused(wefti_sim *sim, const char *call, int descriptor)
{
    (void)snprintf(sim->text, sizeof sim->text, "%s of descriptor %d, which is not a socket that it is good for", call,
                   descriptor);
    sim->culprit = sim->running->pe;
    wefti_sim_stop(sim, WEFT_ERR_STATE);
}

wefti_socket *wefti_socket_find(const wefti_sim *sim, int descriptor)
{
    size_t at = (size_t)descriptor - WEFTI_SOCKET_FIRST;
    return descriptor < WEFTI_SOCKET_FIRST || at >= sim->sockets->capacity ? NULL : sim->sockets->open[at];
}

/* The socket of a descriptor, which must be one: a call on another is a bug of the caller. */
wefti_socket *wefti_socket_of(wefti_sim *sim, int descriptor, const char *call)
{
    wefti_socket *socket = wefti_socket_find(sim, descriptor);
    if (socket == NULL) {
        wefti_socket_misused(sim, call, descriptor);
    }
    return socket;
}

/* The lowest free number, as systems do: a descriptor used after its end soon means another socket. */
int wefti_socket_hand_out(wefti_sim *sim, wefti_socket *socket)
{
    wefti_sockets *net = sim->sockets;
    size_t at = 0;
    while (at < net->capacity && net->open[at] != NULL) {
        at++;
    }
    if (at == net->capacity) {
        size_t capacity = 2 * net->capacity + 64;
        net->open = wefti_sim_no_less(realloc(net->open, capacity * sizeof *net->open));
        memset(net->open + at, 0, (capacity - at) * sizeof *net->open);
        net->capacity = capacity;
    }
    net->open[at] = socket;
    socket->pe = sim->running->pe;
    return (int)at + WEFTI_SOCKET_FIRST;
}

wefti_socket *wefti_socket_make(wefti_sim *sim, int family)
{
    wefti_socket *socket = wefti_sim_no_less(calloc(1, sizeof *socket));
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
void wefti_socket_notify(wefti_sim *sim, const wefti_socket *socket)
{
    if (socket == NULL) {
        return;
    }
    end_poll(sim, socket->waiter);
    for (size_t i = 0; socket->stage == WEFTI_SOCKET_BELL && i < sim->fiber_count; i++) {
        end_poll(sim, sim->fibers[i]->pe == socket->pe ? sim->fibers[i] : NULL);
    }
}

uint64_t wefti_socket_arrival_ns(wefti_sim *sim)
{
    return sim->now_ns + wefti_random_below(&sim->random, sim->sockets->delay_ns);
}

int wefti_socket_is_apart(const wefti_sim *sim, const wefti_socket *one, const wefti_socket *other)
{
    const wefti_sockets *net = sim->sockets;
    const int are_known = one->family != AF_UNIX && one->pe >= 0 && one->pe < 64 && other->pe >= 0 && other->pe < 64;
    return are_known && sim->now_ns < net->silent_until_ns && ((net->silent >> one->pe ^ net->silent >> other->pe) & 1);
}

uint64_t wefti_socket_arrival_at_ns(wefti_sim *sim, const wefti_socket *from, const wefti_socket *to)
{
    const uint64_t ns = wefti_socket_arrival_ns(sim);
    return wefti_socket_is_apart(sim, from, to) && ns < sim->sockets->silent_until_ns ? sim->sockets->silent_until_ns
                                                                                      : ns;
}

#define CALM (-1) /* the next call goes through: storms do not follow one another */

/* Whether this call fails for no reason, with errno set. */
int wefti_socket_is_in_storm(wefti_sim *sim, wefti_socket *socket)
{
    const wefti_sockets *net = sim->sockets;
    if (wefti_random_hit(&sim->random, net->interrupted)) {
        socket->storm -= socket->storm > 1; /* it lasts no longer for that */
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

/* ---- ends ---- */

/* The other end is told behind what was sent: of a reset when something came here that nobody read. */
static void disconnect(wefti_sim *sim, wefti_socket *socket, int is_broken)
{
    wefti_socket *peer = socket->peer;
    if (peer != NULL) {
        wefti_pipe_end(&peer->in, wefti_socket_arrival_at_ns(sim, socket, peer), is_broken || socket->in.count > 0);
        peer->peer = NULL;
        socket->peer = NULL;
        wefti_socket_notify(sim, peer);
    }
}

static void discard(wefti_sim *sim, wefti_socket *socket)
{
    disconnect(sim, socket, 0);
    for (size_t i = 0; i < socket->queue_count; i++) {
        disconnect(sim, socket->queue[i], 1);
        free(socket->queue[i]->in.ring);
        free(socket->queue[i]);
    }
    free(socket->queue);
    free(socket->in.ring);
    free(socket);
}

void wefti_os_socket_close(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim != NULL) {
        wefti_socket *socket = wefti_socket_of(sim, descriptor, "close");
        wefti_sim_record(sim, sim->running, WEFTI_EVENT_CLOSE, (uint64_t)descriptor, 0);
        sim->sockets->open[descriptor - WEFTI_SOCKET_FIRST] = NULL;
        discard(sim, socket);
    }
}

void wefti_os_socket_stop(int listener)
{
    wefti_os_socket_close(listener); /* nobody forks */
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
