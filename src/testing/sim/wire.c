/* testing/sim/wire.c: a wire for the messages of src/transport/am (wire.h), so that worlds of several link domains run
 * that protocol as it is: its credits, shares, gathered puts, large writes and reads, its threads and its watch.
 *
 * What is sent is read from its buffer at a later moment, and the sender is told at another, before or after the
 * receiver has taken it; it keeps the order of its channel and no other. The wire takes a part of what it is offered
 * now and again later. What goes to a PE that has stopped or died fails. Writes and reads touch the other's memory, and
 * the source, when their turn comes. All as drawn for each end. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mix.h"
#include "os/socket.h"
#include "testing/sim/sim.h"
#include "testing/sim/transport/network.h"
#include "transport/am/am.h"

#define POLL_NS 150 /* a look takes up to this long */
#define MESSAGES_AT_ONCE 4
#define RANGES_MAX 256
#define WRITTEN (-1)

/* What an end has taken and not given back. */
typedef struct effort {
    struct effort *next;
    wefti_am_buffer *buffer;
    int to; /* an end */
    int channel;
    int is_move;
    int is_under_way; /* a move that accesses memory now */
    int is_read; /* from its buffer */
    int is_taken; /* by the receiver */
    wefti_wire_piece piece;
    wefti_wire_key at; /* the other PE's, as it was when it was handed over */
    uint64_t due_ns;
    uint64_t told_ns;
} effort;

typedef struct message {
    struct message *next;
    effort *of; /* NULL: the sender does not wait for it */
    int from;
    int channel; /* WRITTEN: that a write of the sender's is in memory */
    size_t bytes;
    unsigned char data[];
} message;

typedef struct range {
    unsigned char *base;
    size_t bytes;
    int is_shared;
} range;

typedef struct wefti_wire_end {
    wefti_wire *wire;
    int number;
    int pe; /* whose it is, in its world */
    const wefti_fiber *fiber; /* who opened it */
    int is_open;
    int *ends; /* [pes]: theirs */
    effort *efforts; /* in their order */
    message *messages; /* that have come, in their order */
    wefti_am_buffer *posted[WEFTI_WIRE_CHANNELS];
    range ranges[RANGES_MAX];
    unsigned range_count;
    int has_posted; /* the PE takes part */
    int happened; /* since the last look */
    /* Drawn: */
    uint32_t again; /* thresholds */
    uint32_t awaits_taking;
    uint32_t delay_ns;
    unsigned efforts_max; /* of a channel, to one end */
} wefti_wire_end;

static wefti_wire_end *end_at(const wefti_sim *sim, int number)
{
    return sim->wire_ends[number];
}

static wefti_wire_end *own_end(const wefti_wire *wire)
{
    return wire->state;
}

static int is_gone(const wefti_wire_end *end)
{
    return !end->is_open || end->fiber->state == WEFTI_FIBER_DEAD;
}

static void *no_less(void *memory)
{
    if (memory == NULL) {
        abort(); /* a test program without memory */
    }
    return memory;
}

/* ---- opening and closing ---- */

static void draw(wefti_sim *sim, wefti_wire_end *end, wefti_wire_rma most)
{
    static const uint32_t agains[] = {WEFT_SIM_NEVER, 64, 4};
    static const uint32_t takings[] = {WEFT_SIM_NEVER, 2, 1};
    static const uint32_t delays[] = {1, 1000, 20000};
    static const unsigned efforts[] = {2, 16, WEFTI_AM_BUFFERS + WEFTI_AM_RMA_MAX};
    wefti_random *random = &sim->random;
    wefti_wire *wire = end->wire;
    end->again = wefti_random_threshold(agains[wefti_random_below(random, 3)]);
    end->awaits_taking = wefti_random_threshold(takings[wefti_random_below(random, 3)]);
    end->delay_ns = delays[wefti_random_below(random, 3)];
    end->efforts_max = efforts[wefti_random_below(random, 3)];
    wire->rma = (wefti_wire_rma)wefti_random_below(random, (uint32_t)most + 1);
    wire->needs_registration = (int)wefti_random_below(random, 2);
    wire->am->rma_bytes_min = wire->rma == WEFTI_WIRE_NO_RMA
                                  ? UINT64_MAX
                                  : WEFTI_AM_SMALL_MAX + 1 + wefti_random_below(random, 2000); /* by few bytes here */
}

static weft_status wire_open(wefti_wire *wire, const wefti_wire_wish *wish, void *address)
{
    wefti_sim *sim = wefti_sim_current;
    const int bell = wefti_os_bell_open();
    if (bell < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "the simulated network has no descriptor");
    }
    wefti_wire_end *end = no_less(calloc(1, sizeof *end));
    end->ends = no_less(calloc((size_t)wish->pes, sizeof *end->ends));
    sim->wire_ends = no_less(realloc(sim->wire_ends, (sim->wire_end_count + 1) * sizeof(void *)));
    end->number = (int)sim->wire_end_count++;
    sim->wire_ends[end->number] = end;
    end->wire = wire;
    end->pe = wire->am->setup.pe;
    end->fiber = sim->running;
    end->is_open = 1;
    draw(sim, end, wish->rma);
    wire->state = end;
    wire->wake[0] = bell;
    wire->wakes = 1;
    const uint64_t told = (uint64_t)end->number + 1;
    memcpy(address, &told, sizeof told);
    return WEFT_OK;
}

static void drop_efforts(wefti_wire_end *end)
{
    while (end->efforts != NULL) {
        effort *first = end->efforts;
        end->efforts = first->next;
        free(first);
    }
}

/* Clear the reference to this effort of their sender in messages not yet taken; `of` NULL: to any of its efforts. */
static void forget(wefti_sim *sim, const wefti_wire_end *sender, const effort *of)
{
    for (size_t i = 0; i < sim->wire_end_count; i++) {
        for (message *at = end_at(sim, (int)i)->messages; at != NULL; at = at->next) {
            at->of = at->from == sender->number && (of == NULL || at->of == of) ? NULL : at->of;
        }
    }
}

/* ---- what nobody has any more ---- */

/* How many of a list are of that role; `by_wire`: the list is the wire's. */
static unsigned count_buffers(const wefti_am_buffer *first, wefti_am_role role, int by_wire)
{
    unsigned count = 0;
    for (const wefti_am_buffer *one = first; one != NULL; one = by_wire ? one->context[0] : one->next) {
        count += one->role == role;
    }
    return count;
}

/* Buffers of that role that this end has not given back. */
static unsigned count_efforts(const wefti_wire_end *end, wefti_am_role role)
{
    unsigned count = 0;
    for (const effort *one = end->efforts; one != NULL; one = one->next) {
        count += one->buffer->role == role;
    }
    return count;
}

static void check_count(wefti_sim *sim, const char *what, unsigned count, unsigned all)
{
    if (count != all) {
        wefti_sim_refuse(sim, sim->running->pe, "of %u %s of a PE that leaves %u are left", all, what, count);
    }
}

/* Credits for requests to another PE are held here, or there for requests it has taken, or go with a request or a reply
 * that is on its way. */
static void check_credits_to(wefti_sim *sim, const wefti_wire_end *end, int pe)
{
    const wefti_am *am = end->wire->am;
    const wefti_wire_end *to = am->peers[pe].is_known ? end_at(sim, end->ends[pe]) : NULL;
    if (to == NULL || to == end || is_gone(to) || am->peers[pe].is_lost ||
        !wefti_sim_monitor_is_free(to->wire->am->lock)) {
        return;
    }
    const wefti_am_peer *there = &to->wire->am->peers[end->pe];
    if (there->is_lost) {
        return; /* it answers this one no more */
    }
    unsigned count = am->peers[pe].credits + there->owed;
    wefti_am_header header;
    for (const wefti_am_buffer *one = am->gathering; one != NULL; one = one->next) {
        count += one->pe == (uint32_t)pe;
    }
    for (const effort *one = end->efforts; one != NULL; one = one->next) {
        count += one->to == to->number && one->buffer->role == WEFTI_AM_REQUEST_OUT && !one->is_read &&
                 one->buffer->header->kind != WEFTI_AM_LEAVE;
    }
    for (const message *one = to->messages; one != NULL; one = one->next) {
        if (one->from == end->number && one->channel == WEFTI_WIRE_REQUESTS) {
            memcpy(&header, one->data, sizeof header);
            count += header.kind != WEFTI_AM_LEAVE;
        }
    }
    for (const wefti_am_buffer *one = there->early; one != NULL; one = one->next) {
        count += one->header->kind != WEFTI_AM_LEAVE;
    }
    for (const wefti_am_buffer *one = to->wire->am->unsent; one != NULL; one = one->next) {
        count += one->pe == (uint32_t)end->pe ? one->header->credits : 0;
    }
    for (const effort *one = to->efforts; one != NULL; one = one->next) {
        const int is_reply = one->to == end->number && one->buffer->role == WEFTI_AM_REPLY_OUT && !one->is_read;
        count += is_reply ? one->buffer->header->credits : 0;
    }
    for (const message *one = end->messages; one != NULL; one = one->next) {
        if (one->from == to->number && one->channel == WEFTI_WIRE_REPLIES) {
            memcpy(&header, one->data, sizeof header);
            count += header.credits;
        }
    }
    check_count(sim, "credits for another", count, WEFTI_AM_CREDITS_MAX);
}

/* A PE that leaves has waited for all that it asked: nothing that it was lent is lost, whatever has failed. */
static void check_kept(wefti_sim *sim, const wefti_wire_end *end)
{
    const wefti_am *am = end->wire->am;
    unsigned in = count_buffers(end->posted[WEFTI_WIRE_REQUESTS], WEFTI_AM_REQUEST_IN, 1) +
                  count_buffers(am->unposted, WEFTI_AM_REQUEST_IN, 0) +
                  count_buffers(am->unsent, WEFTI_AM_REPLY_OUT, 0) + count_efforts(end, WEFTI_AM_REPLY_OUT);
    unsigned sending = 0;
    unsigned moving = 0;
    unsigned asked = 0;
    for (int pe = 0; pe < am->setup.pes; pe++) {
        in += count_buffers(am->peers[pe].early, WEFTI_AM_REQUEST_IN, 0);
        sending += am->peers[pe].sending;
        moving += am->peers[pe].rma;
        asked += am->peers[pe].asked;
    }
    check_count(sim, "buffers for requests", in, WEFTI_AM_REQUESTS_IN);
    check_count(sim, "buffers for replies",
                count_buffers(end->posted[WEFTI_WIRE_REPLIES], WEFTI_AM_REPLY_IN, 1) +
                    count_buffers(am->unposted, WEFTI_AM_REPLY_IN, 0),
                WEFTI_AM_REPLIES_IN);
    check_count(sim, "buffers to send", count_buffers(am->free_out, WEFTI_AM_REQUEST_OUT, 0) + sending,
                WEFTI_AM_REQUESTS_OUT);
    check_count(sim, "buffers to send, on their way",
                count_efforts(end, WEFTI_AM_REQUEST_OUT) + count_buffers(am->gathering, WEFTI_AM_REQUEST_OUT, 0),
                sending);
    check_count(sim, "places for requests", am->requests_free + asked, WEFTI_AM_WAITING_MAX);
    check_count(sim, "requests that are open", asked, 0);
    if (am->wire.rma != WEFTI_WIRE_NO_RMA) {
        check_count(sim, "writes and reads", am->free_rma_count + moving, WEFTI_AM_RMA_MAX);
        check_count(sim, "writes and reads on their way", count_efforts(end, WEFTI_AM_RMA), moving);
    }
    for (int pe = 0; pe < am->setup.pes; pe++) {
        check_credits_to(sim, end, pe);
    }
}

static void wire_stop(wefti_wire *wire)
{
    wefti_wire_end *end = own_end(wire);
    if (end->has_posted) {
        check_kept(wefti_sim_current, end);
    }
    end->is_open = 0;
    forget(wefti_sim_current, end, NULL);
    drop_efforts(end);
    while (end->messages != NULL) {
        message *first = end->messages;
        end->messages = first->next;
        if (first->of != NULL) {
            first->of->is_taken = 1;
        }
        free(first);
    }
    end->posted[0] = end->posted[1] = NULL;
}

static void wire_close(wefti_wire *wire)
{
    wefti_os_socket_close(wire->wake[0]);
    wire->state = NULL; /* the simulation frees it */
}

void wefti_sim_wire_ends_fini(wefti_sim *sim)
{
    for (size_t i = 0; i < sim->wire_end_count; i++) {
        wefti_wire_end *end = end_at(sim, (int)i);
        drop_efforts(end);
        while (end->messages != NULL) {
            message *first = end->messages;
            end->messages = first->next;
            free(first);
        }
        free(end->ends);
        free(end);
    }
    free(sim->wire_ends);
}

static weft_status wire_connect(wefti_wire *wire, int pe, const void *mine, const void *address)
{
    uint64_t told;
    (void)mine;
    memcpy(&told, address, sizeof told);
    own_end(wire)->ends[pe] = (int)told - 1;
    return WEFT_OK;
}

static const struct sockaddr *wire_host(const void *address, struct sockaddr_storage *room)
{
    struct sockaddr_in *at = (struct sockaddr_in *)(void *)room;
    (void)address;
    memset(room, 0, sizeof *room);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return (const struct sockaddr *)room;
}

static void wire_name(const wefti_wire *wire, char *text, size_t bytes)
{
    (void)wire;
    (void)snprintf(text, bytes, "the simulated wire");
}

/* ---- what is offered ---- */

static int refuses_now(wefti_sim *sim, const wefti_wire_end *end)
{
    wefti_sim_step(sim);
    return wefti_random_hit(&sim->random, end->again);
}

static int wire_post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    wefti_wire_end *end = own_end(wire);
    if (refuses_now(wefti_sim_current, end)) {
        return 0;
    }
    end->has_posted = 1;
    buffer->context[0] = end->posted[channel];
    end->posted[channel] = buffer;
    return 1;
}

static void ring(wefti_sim *sim, const wefti_wire_end *end)
{
    if (!is_gone(end)) {
        wefti_sim_bell_set(sim, end->wire->wake[0], 1);
    }
}

/* Channels and other ends have room of their own: what is not taken there stops nothing else. */
static int has_room(const wefti_wire_end *end, int to, int channel)
{
    unsigned count = 0;
    for (const effort *one = end->efforts; one != NULL; one = one->next) {
        count += one->to == to && one->channel == channel;
    }
    return count < end->efforts_max;
}

/* Fail the run if more requests wait at the other PE than its credits allow, plus one: that this PE leaves. */
static void check_credits(wefti_sim *sim, const wefti_wire_end *end, const wefti_wire_end *to)
{
    unsigned count = 0;
    for (const effort *one = end->efforts; one != NULL; one = one->next) {
        count += one->to == to->number && one->channel == WEFTI_WIRE_REQUESTS && !one->is_move && !one->is_read;
    }
    for (const message *one = to->messages; one != NULL; one = one->next) {
        count += one->from == end->number && one->channel == WEFTI_WIRE_REQUESTS;
    }
    if (count > WEFTI_AM_CREDITS_MAX + 1) {
        wefti_sim_refuse(sim, sim->running->pe, "PE %d has sent %u requests that PE %d has not taken, of at most %d",
                         end->pe, count, to->pe, WEFTI_AM_CREDITS_MAX);
    }
}

static wefti_wire_answer take(wefti_wire *wire, const effort *offered)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_wire_end *end = own_end(wire);
    const wefti_wire_end *to = end_at(sim, end->ends[offered->buffer->pe]);
    if (refuses_now(sim, end) || !has_room(end, to->number, offered->channel)) {
        return WEFTI_WIRE_AGAIN;
    }
    if (is_gone(to) && wefti_random_below(&sim->random, 2) == 0) {
        return WEFTI_WIRE_LOST;
    }
    if (!offered->is_move && offered->buffer->bytes > WEFTI_AM_MESSAGE_MAX) {
        wefti_sim_refuse(sim, sim->running->pe, "a message of %zu bytes, which buffers do not hold",
                         (size_t)offered->buffer->bytes);
    }
    effort *taken = no_less(malloc(sizeof *taken));
    *taken = *offered;
    taken->next = NULL;
    taken->to = to->number;
    taken->due_ns = sim->now_ns + wefti_random_below(&sim->random, end->delay_ns);
    effort **last = &end->efforts;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = taken;
    if (!is_gone(to)) {
        check_credits(sim, end, to);
    }
    sim->message_count++;
    wefti_sim_record(sim, sim->running, WEFTI_EVENT_SEND, (uint64_t)to->number, offered->buffer->bytes);
    ring(sim, to);
    if (offered->is_move) {
        ring(sim, end); /* whoever sleeps here makes it, though nobody of this PE calls again */
    }
    return WEFTI_WIRE_TAKEN;
}

static wefti_wire_answer wire_send(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    return take(wire, &(effort){.buffer = buffer, .channel = channel});
}

static wefti_wire_answer wire_move(wefti_wire *wire, wefti_am_buffer *op, const wefti_wire_piece *piece)
{
    return take(
        wire,
        &(effort){.buffer = op, .channel = WEFTI_WIRE_REQUESTS, .is_move = 1, .piece = *piece, .at = piece->keys[0]});
}

/* ---- memory ---- */

/* A network pins what is registered: all of it must have memory. */
static void check_memory(wefti_sim *sim, const wefti_wire_end *end, const void *memory, size_t bytes)
{
    const uint64_t first = wefti_sim_offset(sim, memory);
    const uint64_t last = first + bytes - 1;
    for (uint64_t at = first; at < last; at += WEFTI_SIM_PAGE_BYTES) {
        wefti_memory_check_reserved(sim, at, end->pe);
    }
    wefti_memory_check_reserved(sim, last, end->pe);
}

static int wire_share(wefti_wire *wire, void *memory, size_t bytes, wefti_wire_range *out)
{
    wefti_wire_end *end = own_end(wire);
    check_memory(wefti_sim_current, end, memory, bytes);
    if (end->range_count == RANGES_MAX || refuses_now(wefti_sim_current, end)) {
        return 0;
    }
    end->ranges[end->range_count] = (range){.base = memory, .bytes = bytes, .is_shared = 1};
    out->registration = &end->ranges[end->range_count];
    out->told[0].at = (wefti_wire_key){.base = (uint64_t)(uintptr_t)memory, .key = end->range_count++};
    return 1;
}

static void wire_unshare(wefti_wire *wire, wefti_wire_range *shared)
{
    (void)wire;
    ((range *)shared->registration)->is_shared = 0;
}

static int is_in(const range *shared, const unsigned char *at, size_t bytes)
{
    const size_t offset = (size_t)(at - shared->base);
    return shared->is_shared && at >= shared->base && offset <= shared->bytes && bytes <= shared->bytes - offset;
}

/* The other's memory as it is now. */
static void move(wefti_sim *sim, const wefti_wire_end *end, effort *one)
{
    const wefti_wire_end *to = end_at(sim, one->to);
    const wefti_wire_piece *piece = &one->piece;
    unsigned char *there = (unsigned char *)(uintptr_t)(one->at.base + piece->offset);
    if (one->at.key >= to->range_count || !is_in(&to->ranges[one->at.key], there, piece->bytes) ||
        (piece->registration != NULL && !is_in(piece->registration, piece->local, piece->bytes)) ||
        (piece->registration == NULL && end->wire->needs_registration &&
         piece->local != (const void *)one->buffer->header)) {
        wefti_sim_refuse(sim, sim->running->pe, "a write or read of %zu bytes outside of what is shared", piece->bytes);
        return;
    }
    wefti_memory_drain(sim, sim->running);
    wefti_memory_acquire_all(sim, sim->running);
    if (one->buffer->is_write) {
        wefti_copy(there, piece->local, piece->bytes);
        wefti_memory_drain(sim, sim->running);
    } else {
        wefti_copy(piece->local, there, piece->bytes);
    }
}

/* ---- on its way ---- */

/* Whether an effort keeps its order behind `before`. */
static int is_behind(const wefti_wire_end *end, const effort *one, const effort *before)
{
    const int has_order = end->wire->rma == WEFTI_WIRE_RMA_ORDERED || (!one->is_move && !before->is_move);
    return has_order && !before->is_read && before->to == one->to && before->channel == one->channel;
}

static int is_next(const wefti_wire_end *end, const effort *one)
{
    for (const effort *before = end->efforts; before != one; before = before->next) {
        if (is_behind(end, one, before)) {
            return 0;
        }
    }
    return 1;
}

static void append(wefti_wire_end *to, message *sent)
{
    message **last = &to->messages;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = sent;
}

/* Writes that are counted as they arrive. */
static void tell_written(wefti_sim *sim, const wefti_wire_end *end, const effort *one)
{
    if (end->wire->rma == WEFTI_WIRE_RMA_COUNTED && one->buffer->is_write) {
        message *sent = no_less(calloc(1, sizeof *sent));
        sent->from = end->number;
        sent->channel = WRITTEN;
        append(end_at(sim, one->to), sent);
        ring(sim, end_at(sim, one->to));
    }
}

/* Read the message from its buffer, for the receiver to find. */
static void carry(wefti_sim *sim, wefti_wire_end *end, effort *one)
{
    wefti_wire_end *to = end_at(sim, one->to);
    const int awaits = wefti_random_hit(&sim->random, end->awaits_taking);
    message *sent = no_less(malloc(sizeof *sent + one->buffer->bytes));
    *sent =
        (message){.of = awaits ? one : NULL, .from = end->number, .channel = one->channel, .bytes = one->buffer->bytes};
    memcpy(sent->data, one->buffer->header, sent->bytes);
    append(to, sent);
    one->is_taken = !awaits;
}

/* Let what is due go on its way; `to`: only to that end. Moves are this PE's own doing. */
static void go_on(wefti_sim *sim, wefti_wire_end *end, int to)
{
    for (effort *one = end->efforts; one != NULL; one = one->next) {
        const int is_ours = to < 0 || one->to == to;
        if (one->is_read || one->is_under_way || !is_ours || one->due_ns > sim->now_ns || !is_next(end, one) ||
            (one->is_move && to >= 0)) {
            continue;
        }
        if (!is_gone(end_at(sim, one->to))) {
            if (one->is_move) {
                one->is_under_way = 1;
                move(sim, end, one);
                tell_written(sim, end, one);
                one->is_taken = 1;
            } else {
                carry(sim, end, one);
            }
        }
        one->is_read = 1;
        one->told_ns = sim->now_ns + wefti_random_below(&sim->random, end->delay_ns);
    }
}

/* Take a finished effort of a channel from the list, or NULL; not always the oldest one. */
static effort *take_over(wefti_sim *sim, wefti_wire_end *end, int channel, int *has_failed)
{
    for (effort **link = &end->efforts; *link != NULL; link = &(*link)->next) {
        effort *one = *link;
        const int fails = !one->is_taken && is_gone(end_at(sim, one->to));
        if (one->channel == channel && one->is_read && (one->is_taken || fails) && one->told_ns <= sim->now_ns) {
            *link = one->next;
            *has_failed = fails;
            return one;
        }
    }
    return NULL;
}

static void tell_over(wefti_sim *sim, wefti_wire_end *end, int channel)
{
    int has_failed;
    for (effort *one = take_over(sim, end, channel, &has_failed); one != NULL;
         one = take_over(sim, end, channel, &has_failed)) {
        wefti_am_buffer *buffer = one->buffer;
        forget(sim, end, one);
        free(one);
        end->happened = 1;
        if (has_failed) {
            wefti_am_failed(end->wire->am, buffer);
        } else {
            wefti_am_completed(end->wire->am, buffer, 0);
        }
    }
}

/* Take a message of a channel: of each sender the first may come next. */
static message *take_message(wefti_sim *sim, wefti_wire_end *end, int channel)
{
    message **chosen = NULL;
    uint32_t seen = 0;
    for (message **link = &end->messages; *link != NULL; link = &(*link)->next) {
        int is_first = (*link)->channel == channel;
        for (const message *before = end->messages; is_first && before != *link; before = before->next) {
            is_first = before->from != (*link)->from || before->channel != channel;
        }
        if (is_first && wefti_random_below(&sim->random, ++seen) == 0) {
            chosen = link;
        }
    }
    message *taken = chosen == NULL ? NULL : *chosen;
    if (taken != NULL) {
        *chosen = taken->next;
    }
    return taken;
}

/* Notices that a write has arrived keep no order with messages, nor among each other. */
static void take_written(wefti_sim *sim, wefti_wire_end *end)
{
    for (message **link = &end->messages; *link != NULL;) {
        message *at = *link;
        if (at->channel != WRITTEN || wefti_random_below(&sim->random, 2) == 0) {
            link = &at->next;
            continue;
        }
        *link = at->next;
        const int pe = end_at(sim, at->from)->pe;
        free(at);
        end->happened = 1;
        wefti_memory_acquire_all(sim, sim->running);
        wefti_am_written(end->wire->am, (uint32_t)pe);
    }
}

static void receive(wefti_sim *sim, wefti_wire_end *end, int channel)
{
    if (channel == WEFTI_WIRE_REQUESTS) {
        take_written(sim, end);
    }
    for (int i = 0; i < MESSAGES_AT_ONCE && end->posted[channel] != NULL; i++) {
        message *came = take_message(sim, end, channel);
        if (came == NULL) {
            return;
        }
        wefti_am_buffer *buffer = end->posted[channel];
        end->posted[channel] = buffer->context[0];
        const size_t bytes = came->bytes;
        memcpy(buffer->header, came->data, bytes);
        if (came->of != NULL) {
            came->of->is_taken = 1;
        }
        free(came);
        end->happened = 1;
        wefti_memory_acquire_all(sim, sim->running);
        wefti_am_completed(end->wire->am, buffer, bytes);
    }
}

static int wire_poll(wefti_wire *wire, int channel)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_wire_end *end = own_end(wire);
    sim->now_ns += wefti_random_below(&sim->random, POLL_NS);
    wefti_sim_step(sim);
    end->happened = 0;
    go_on(sim, end, -1);
    for (size_t i = 0; i < sim->wire_end_count; i++) {
        go_on(sim, end_at(sim, (int)i), end->number);
    }
    tell_over(sim, end, channel);
    receive(sim, end, channel);
    return end->happened;
}

static int is_expected(const wefti_sim *sim, const wefti_wire_end *end)
{
    int is_so = end->efforts != NULL || end->messages != NULL;
    for (size_t i = 0; i < sim->wire_end_count && !is_so; i++) {
        for (const effort *one = end_at(sim, (int)i)->efforts; one != NULL && !is_so; one = one->next) {
            is_so = one->to == end->number && !one->is_read && !one->is_move;
        }
    }
    return is_so;
}

static int wire_can_sleep(wefti_wire *wire)
{
    wefti_os_bell_hush(wire->wake[0]);
    return !is_expected(wefti_sim_current, own_end(wire));
}

/* ---- the transport ---- */

#define WIRE_OPS(open_of_it)                                                                                           \
    {                                                                                                                  \
        .open = (open_of_it), .address_bytes = sizeof(uint64_t), .stop = wire_stop, .close = wire_close,               \
        .connect = wire_connect, .host = wire_host, .describe = wire_name, .name = wire_name, .post = wire_post,       \
        .send = wire_send, .move = wire_move, .poll = wire_poll, .can_sleep = wire_can_sleep, .share = wire_share,     \
        .unshare = wire_unshare, .remedy = "in the simulator",                                                         \
    }

static const wefti_wire_ops ops = WIRE_OPS(wire_open);

static weft_status open_messages(wefti_transport *transport, const wefti_transport_setup *setup)
{
    return wefti_am_open(transport, setup, &ops);
}

const wefti_transport_ops wefti_transport_sim_messages = WEFTI_AM_OPS("messages", open_messages);

int wefti_network_has_messages(void)
{
    return wefti_sim_current != NULL && wefti_sim_current->config.messages != 0;
}

/* ---- another network, which worlds try first ---- */

enum { ONE_ALONE, TWO, TWO_OF_WHICH_ONE_LACKS, LISTS };

/* Of the run, by its seed; *draw: further numbers. */
static int draw_list(uint64_t *draw)
{
    *draw = wefti_sim_current->seed ^ UINT64_C(0x77);
    return (int)(wefti_split_mix(draw) % LISTS);
}

int wefti_network_has_two(void)
{
    uint64_t draw;
    return wefti_network_has_messages() && draw_list(&draw) != ONE_ALONE;
}

static weft_status open_first(wefti_wire *wire, const wefti_wire_wish *wish, void *address)
{
    uint64_t draw;
    const int lacks = draw_list(&draw) == TWO_OF_WHICH_ONE_LACKS;
    if (lacks && wefti_split_mix(&draw) % (uint64_t)wish->pes == (uint64_t)wire->am->setup.pe) {
        return wefti_error(WEFT_ERR_UNREACHABLE, "this PE has none of the first network's devices");
    }
    return wire_open(wire, wish, address);
}

static const wefti_wire_ops ops_of_first = WIRE_OPS(open_first);

static weft_status open_messages_of_first(wefti_transport *transport, const wefti_transport_setup *setup)
{
    return wefti_am_open(transport, setup, &ops_of_first);
}

const wefti_transport_ops wefti_transport_sim_first = WEFTI_AM_OPS("first", open_messages_of_first);
