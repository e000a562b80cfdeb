/* testing/sim/socket_fault.c: what tests do to the network. */
#include "testing/sim/sockets.h"

#include <string.h>

#include "testing/sim/sim.h"

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
    wefti_socket_notify(sim, socket);
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
    wefti_socket_find(wefti_sim_current, descriptor)->is_foreign = 1;
}

void wefti_sim_socket_calm(size_t room)
{
    wefti_sim *sim = wefti_socket_enter();
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
