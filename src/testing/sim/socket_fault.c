/* testing/sim/socket_fault.c: what tests do to the network. */
#include "testing/sim/sockets.h"

#include <string.h>

#include "testing/sim/sim.h"

/* How late a silence is noticed: a second at most, in steps, so that who notices first has told before the next one. */
#define TICK_NS UINT64_C(100000000)
#define TICKS 10

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

/* Nothing that is not here yet arrives before `ns`. */
static void hold_back(wefti_pipe *pipe, uint64_t now_ns, uint64_t ns)
{
    for (unsigned i = 0; i < pipe->segment_count; i++) {
        uint64_t *at_ns = &pipe->segments[i].ns;
        *at_ns = *at_ns > now_ns && *at_ns < ns ? ns : *at_ns;
    }
    pipe->last_ns = pipe->last_ns > now_ns && pipe->last_ns < ns ? ns : pipe->last_ns;
}

/* When the end notices that the other host is silent. */
static uint64_t notices_ns(wefti_sim *sim, const wefti_socket *end, int are_stopped)
{
    const int is_stopped = are_stopped && (sim->sockets->silent >> end->pe & 1);
    return end->keep_ns == 0 || is_stopped
               ? UINT64_MAX
               : sim->now_ns + end->keep_ns + TICK_NS * wefti_random_below(&sim->random, TICKS);
}

/* One end notices at `ns`, if that is before the silence is over; else it is told by a reset then. */
static void lose_end(wefti_sim *sim, wefti_socket *end, uint64_t ns)
{
    const uint64_t until_ns = sim->sockets->silent_until_ns;
    const size_t arrived = wefti_pipe_arrived(&end->in, sim->now_ns);
    end->in.count = arrived;
    while (end->in.segment_count > 0 && end->in.segments[end->in.segment_count - 1].ns > sim->now_ns) {
        end->in.segment_count--;
    }
    end->in.is_ended = end->in.is_broken = 1;
    end->in.is_silent = ns < until_ns;
    end->in.last_ns = ns < until_ns ? ns : until_ns;
    end->peer = NULL;
}

static void part(wefti_sim *sim, wefti_socket *one, int are_stopped)
{
    wefti_socket *other = one->peer;
    const uint64_t until_ns = sim->sockets->silent_until_ns;
    const uint64_t one_ns = notices_ns(sim, one, are_stopped);
    const uint64_t other_ns = notices_ns(sim, other, are_stopped);
    if (one_ns < until_ns || other_ns < until_ns) {
        lose_end(sim, one, one_ns);
        lose_end(sim, other, other_ns);
    } else {
        hold_back(&one->in, sim->now_ns, until_ns);
        hold_back(&other->in, sim->now_ns, until_ns);
    }
    wefti_socket_notify(sim, one);
    wefti_socket_notify(sim, other);
}

void wefti_sim_socket_silence(uint64_t pes, uint64_t ns, int are_stopped)
{
    wefti_sim *sim = wefti_socket_enter();
    wefti_sockets *net = sim->sockets;
    net->silent = pes;
    net->silent_until_ns = sim->now_ns + ns;
    for (size_t i = 0; i < net->capacity; i++) {
        wefti_socket *socket = net->open[i];
        if (socket != NULL && socket->peer != NULL && wefti_socket_is_apart(sim, socket, socket->peer)) {
            part(sim, socket, are_stopped);
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
