/* testing/sim/socket_poll.c: polling for sockets and bells. */
#include "testing/sim/sockets.h"

#include <errno.h>

#include "base/alloc.h"
#include "testing/sim/sim.h"

/* ---- bells ---- */

int wefti_os_bell_open(void)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    if (wefti_fault("eventfd", EMFILE)) {
        return -1;
    }
    wefti_socket *bell = wefti_socket_make(sim, AF_UNSPEC);
    bell->stage = WEFTI_SOCKET_BELL;
    return wefti_socket_hand_out(sim, bell);
}

void wefti_sim_bell_set(wefti_sim *sim, int descriptor, int is_rung)
{
    wefti_socket *bell = wefti_socket_of(sim, descriptor, "ringing");
    bell->is_rung = is_rung;
    wefti_socket_notify(sim, bell);
}

static void set_bell(int descriptor, int is_rung)
{
    wefti_sim *sim = descriptor < 0 ? NULL : wefti_socket_enter();
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

/* ---- waiting ---- */

/* What has happened at a socket; *next_ns: when more may. */
static short look(wefti_sim *sim, wefti_socket *socket, uint64_t *next_ns)
{
    short seen = 0;
    wefti_socket_settle(sim, socket);
    switch (socket->stage) {
    case WEFTI_SOCKET_FRESH:
        return POLLOUT | POLLHUP | (socket->error != 0 ? POLLERR : 0);
    case WEFTI_SOCKET_LISTENS:
        for (size_t i = 0; i < socket->queue_count; i++) {
            *next_ns = socket->queue[i]->due_ns < *next_ns ? socket->queue[i]->due_ns : *next_ns;
        }
        return wefti_socket_sort_queue(socket, sim->now_ns) > 0 ? POLLIN : 0;
    case WEFTI_SOCKET_CONNECTS:
        *next_ns = socket->due_ns < *next_ns ? socket->due_ns : *next_ns;
        return 0;
    case WEFTI_SOCKET_BELL:
        return socket->is_rung ? POLLIN : 0;
    case WEFTI_SOCKET_CONNECTED:
        break;
    }
    if (wefti_pipe_arrived(&socket->in, sim->now_ns) > 0) {
        seen |= POLLIN;
    } else if (wefti_pipe_is_over(&socket->in, sim->now_ns)) {
        seen |= POLLIN | (socket->in.is_broken ? POLLERR | POLLHUP : 0);
    }
    if (socket->peer == NULL || socket->peer->in.count < socket->peer->in.room) {
        seen |= POLLOUT;
    }
    uint64_t ns = wefti_pipe_next_ns(&socket->in);
    *next_ns = seen == 0 || !(seen & POLLIN) ? (ns < *next_ns ? ns : *next_ns) : *next_ns;
    return seen;
}

static int look_at_all(wefti_sim *sim, struct pollfd *items, size_t count, uint64_t *next_ns)
{
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].revents = 0;
        if (items[i].fd >= 0) {
            wefti_socket *socket = wefti_socket_of(sim, items[i].fd, "poll");
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
    wefti_sim *sim = wefti_socket_enter();
    if (sim == NULL) {
        return wefti_socket_failed(ENOSYS);
    }
    wefti_fiber *self = sim->running;
    uint64_t until_ns = wait_ns < UINT64_MAX - sim->now_ns ? sim->now_ns + wait_ns : UINT64_MAX;
    wefti_sim_event(sim);
    if (wefti_random_hit(&sim->random, sim->sockets->interrupted)) {
        return wefti_socket_failed(EINTR);
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
