/* testing/sim/network.c: the network of the sim transport. Puts wait among their sender's messages (flow.h) until they
 * commit in the target's memory; gets and atomics sleep for the way there and back. A message leaves its PE behind all
 * its stores, as a doorbell does. */
#include "testing/sim/transport/network.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "testing/sim/sim.h"
#include "weft/protocol/layout.h"

#define TRIP_NS 2000 /* one way, at most */

static void make_owned(wefti_sim *sim, const unsigned char *slot, size_t bytes)
{
    wefti_fiber *self = sim->running;
    if (self->owned_count < WEFTI_OWNED_COUNT) {
        self->owned[self->owned_count++] = (wefti_owned){.offset = wefti_sim_offset(sim, slot), .bytes = bytes};
    }
}

static void disown(const wefti_sim *sim, wefti_fiber *fiber, const unsigned char *slot)
{
    for (unsigned i = 0; i < fiber->owned_count; i++) {
        if (fiber->owned[i].offset == wefti_sim_offset(sim, slot)) {
            fiber->owned[i] = fiber->owned[--fiber->owned_count];
            return;
        }
    }
}

int wefti_network_attach(uint64_t world, int pe, unsigned char *slot, size_t bytes)
{
    wefti_sim *sim = wefti_sim_current;
    make_owned(sim, slot, bytes);
    if (sim->port_count == sim->port_capacity) {
        size_t capacity = sim->port_capacity == 0 ? 64 : 2 * sim->port_capacity;
        wefti_port *longer = realloc(sim->ports, capacity * sizeof *longer);
        if (longer == NULL) {
            abort(); /* a test program without memory */
        }
        sim->ports = longer;
        sim->port_capacity = capacity;
    }
    int number = (int)sim->port_count++;
    uint32_t *bucket = &sim->port_buckets[(world + (uint64_t)pe) % WEFTI_PORT_BUCKETS];
    sim->ports[number] =
        (wefti_port){.world = world, .pe = pe, .fiber = sim->running->number, .slot = slot, .open = 1, .next = *bucket};
    *bucket = (uint32_t)number + 1;
    return number;
}

void wefti_network_detach(int port)
{
    wefti_sim *sim = wefti_sim_current;
    if (sim != NULL) {
        sim->ports[port].open = 0;
        disown(sim, sim->fibers[sim->ports[port].fiber], sim->ports[port].slot);
    }
}

static int is_lost(const wefti_sim *sim, int port)
{
    const wefti_fiber *fiber = sim->fibers[sim->ports[port].fiber];
    return !sim->ports[port].open || fiber->state == WEFTI_FIBER_DEAD;
}

int wefti_network_find(uint64_t world, int pe)
{
    wefti_sim *sim = wefti_sim_current;
    uint32_t at = sim->port_buckets[(world + (uint64_t)pe) % WEFTI_PORT_BUCKETS];
    while (at != 0) {
        const wefti_port *port = &sim->ports[at - 1];
        if (port->world == world && port->pe == pe && port->open) {
            if (is_lost(sim, (int)at - 1)) {
                break;
            }
            return (int)at - 1;
        }
        at = port->next;
    }
    wefti_memory_acquire_all(sim, sim->running); /* learning of a loss takes longer than any store */
    return -1;
}

static void depart(wefti_sim *sim)
{
    wefti_sim_step(sim);
    wefti_memory_drain(sim, sim->running);
    sim->message_count++;
    sim->running->counts.messages++;
}

/* The offset of the bytes in the arena. The run fails if the target PE has not left and has not reserved them. */
static uint64_t target_offset(wefti_sim *sim, int port, uint64_t offset, size_t bytes)
{
    const wefti_port *target = &sim->ports[port];
    uint64_t slot = wefti_sim_offset(sim, target->slot);
    uint64_t reserved;
    wefti_memory_peek(sim, slot + offsetof(wefti_control, reserved), &reserved, sizeof reserved);
    if (target->open && bytes > 0 && (offset > reserved || bytes > reserved - offset)) {
        wefti_sim_refuse(sim, sim->running->pe,
                         "PE %d sends for %zu bytes at 0x%" PRIx64 " of PE %d, which has said that 0x%" PRIx64
                         " are reserved",
                         sim->running->pe, bytes, offset, target->pe, reserved);
    }
    return slot + offset;
}

/* To the end of the line, or cut anywhere at an aligned word. */
static size_t piece_bytes(wefti_sim *sim, uint64_t offset, size_t bytes)
{
    size_t piece = WEFTI_LINE_BYTES - offset % WEFTI_LINE_BYTES;
    piece = piece < bytes ? piece : bytes;
    size_t first_cut = 8 - offset % 8;
    if (piece > first_cut && wefti_random_hit(&sim->random, sim->rates.split)) {
        piece = first_cut + 8 * wefti_random_below(&sim->random, (uint32_t)((piece - first_cut + 7) / 8));
    }
    return piece;
}

uint32_t wefti_network_put(int port, uint64_t offset, const void *source, size_t bytes)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_fiber *self = sim->running;
    uint64_t at = target_offset(sim, port, offset, bytes);
    const unsigned char *from = source;
    uint32_t operation = ++self->messages.operation;
    if (bytes == 0) {
        return operation;
    }
    depart(sim);
    wefti_sim_record(sim, self, WEFTI_EVENT_PUT, at, bytes);
    while (bytes > 0) {
        size_t piece = piece_bytes(sim, at, bytes);
        wefti_entry entry = {.offset = at,
                             .bytes = (uint32_t)piece,
                             .target = port,
                             .group = self->messages.group,
                             .operation = operation};
        wefti_copy(entry.data, from, piece); /* the source may be symmetric */
        wefti_memory_enqueue(sim, self, 1, &entry);
        from += piece;
        at += piece;
        bytes -= piece;
    }
    return operation;
}

void wefti_network_signal(int port, uint64_t offset, uint64_t value, weft_signal_op op, uint32_t operation,
                          int after_all)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_fiber *self = sim->running;
    depart(sim);
    wefti_entry entry = {.offset = target_offset(sim, port, offset, sizeof value),
                         .bytes = sizeof value,
                         .kind = after_all ? WEFTI_ENTRY_RELEASE : WEFTI_ENTRY_AFTER_OPERATION,
                         .is_add = op == WEFT_SIGNAL_ADD,
                         .target = port,
                         .group = self->messages.group,
                         .operation = operation};
    memcpy(entry.data, &value, sizeof value);
    if (sim->rounds != NULL) {
        wefti_memory_flag_stored(sim, self, entry.offset);
    }
    wefti_sim_record(sim, self, WEFTI_EVENT_SIGNAL, entry.offset, value);
    wefti_memory_enqueue(sim, self, 1, &entry);
}

/* One way. Returns 0 when the peer is lost meanwhile. */
static int travel(wefti_sim *sim, int port)
{
    wefti_fiber *self = sim->running;
    self->what = "a message";
    self->what_at = WEFTI_NOWHERE;
    (void)wefti_sim_block(sim, WEFTI_FIBER_SLEEPING, sim->now_ns + 1 + wefti_random_below(&sim->random, TRIP_NS));
    return !is_lost(sim, port);
}

int wefti_network_get(int port, uint64_t offset, void *dest, size_t bytes)
{
    wefti_sim *sim = wefti_sim_current;
    unsigned char *to = dest;
    uint64_t at = target_offset(sim, port, offset, bytes);
    depart(sim);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_GET, at, bytes);
    if (!travel(sim, port)) {
        return 0;
    }
    wefti_memory_drain_messages(sim, sim->running, port, sim->running->messages.group);
    while (bytes > 0) {
        unsigned char some[WEFTI_LINE_BYTES];
        size_t piece = piece_bytes(sim, at, bytes);
        wefti_memory_check_reserved(sim, at, sim->running->pe);
        wefti_memory_peek(sim, at, some, piece);
        wefti_copy(to, some, piece);
        wefti_sim_step(sim);
        if (is_lost(sim, port)) {
            return 0;
        }
        to += piece;
        at += piece;
        bytes -= piece;
    }
    return travel(sim, port);
}

int wefti_network_amo(int port, uint64_t offset, wefti_amo_op op, int bits, uint64_t value, uint64_t cond,
                      uint64_t *old)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_fiber *self = sim->running;
    depart(sim);
    wefti_sim_record(sim, self, WEFTI_EVENT_AMO, target_offset(sim, port, offset, (size_t)bits / 8), value);
    if (!travel(sim, port)) {
        return 0;
    }
    wefti_memory_drain_messages(sim, self, port, self->messages.group);
    sim->gap += 2; /* nothing happens between here and the access */
    sim->may_not_rest = 1;
    *old = wefti_amo_at(op, bits, sim->ports[port].slot + offset, value, cond);
    sim->may_not_rest = 0;
    return travel(sim, port);
}

void wefti_network_fence(void)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_sim_step(sim);
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_FENCE, 0, 2);
    sim->running->messages.group++;
}

void wefti_network_quiet(void)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_fiber *self = sim->running;
    wefti_sim_step(sim);
    wefti_sim_record(sim, self, WEFTI_EVENT_QUIET, 0, self->messages.count);
    while (self->messages.count > 0) {
        self->what = "its messages to arrive";
        self->what_at = WEFTI_NOWHERE;
        (void)wefti_sim_block(sim, WEFTI_FIBER_DELIVERING, UINT64_MAX);
    }
    self->messages.group++; /* so that whoever sees a later message sees what this quiet completed */
}
