/* `ofi`: PEs of other nodes, over libfabric: the wire of the protocol in `am`. Requests have an endpoint, and replies
 * another, so that a reply waits for no room for requests; in a ring it has room, and goes by either. Messages go by
 * one rail; writes and reads by each rail between two PEs, the next by that on which the fewest are under way, so
 * that a slow one gets less. Where the provider allows it short messages are written into rings of the other PE's
 * (ring.h). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "transport/ofi/fabric.h"
#include "transport/ofi/ring_reader.h"

#define COMPLETIONS_AT_ONCE 16
#define RAILS_BYTES 200
#define RAIL_BYTES 100

_Static_assert(sizeof(struct fi_context2) <= sizeof((wefti_am_buffer *)0)->context, "the provider's part has room");
_Static_assert(offsetof(wefti_am_buffer, context) == 0, "the provider's part names the buffer");
_Static_assert((int)WEFTI_WIRE_CHANNELS == (int)WEFTI_FABRIC_ENDPOINTS, "an endpoint a channel");
_Static_assert(WEFTI_WIRE_RAILS_MAX == WEFTI_TOPO_RAILS_OWN, "all of a PE's own have a key");
_Static_assert(WEFTI_WIRE_WAKES >= WEFTI_TOPO_RAILS_MAX * WEFTI_FABRIC_ENDPOINTS, "all may wake");
_Static_assert(sizeof(wefti_fabric_address) <= WEFTI_WIRE_ADDRESS_BYTES_MAX, "an address has room");

/* A rail of this PE and one of another's own. */
typedef struct path {
    int rail;
    int other;
    uint32_t under_way; /* writes and reads */
    int has_failed; /* one of them */
    fi_addr_t at[WEFTI_FABRIC_ENDPOINTS]; /* replies: of the first path alone */
} path;

typedef struct peer {
    path paths[WEFTI_WIRE_RAILS_MAX]; /* messages go by the first */
    int count;
    int has_rings; /* its own, for this PE to write to */
    wefti_wire_key rings[WEFTI_WIRE_CHANNELS];
    uint64_t written[WEFTI_WIRE_CHANNELS]; /* messages, into those */
} peer;

typedef struct wire_state {
    wefti_fabric fabric;
    wefti_am_buffer *injected[WEFTI_FABRIC_ENDPOINTS]; /* sent, which `poll` is to tell; the last first */
    uint64_t number; /* of this PE */
    peer *peers; /* [pes] */
    wefti_ring_reader reader; /* of this PE's rings */
    uint32_t next_path; /* of the paths on which as little is under way */
} wire_state;

static const struct {
    wefti_wire_rma wire;
    wefti_fabric_rma fabric;
} rma_words[] = {
    {WEFTI_WIRE_NO_RMA, WEFTI_FABRIC_NO_RMA},
    {WEFTI_WIRE_RMA_COMPLETES, WEFTI_FABRIC_RMA_COMPLETES},
    {WEFTI_WIRE_RMA_COUNTED, WEFTI_FABRIC_RMA_COUNTED},
    {WEFTI_WIRE_RMA_ORDERED, WEFTI_FABRIC_RMA_ORDERED},
};

/* ---- rings ---- */

/* Where they are not taken, all goes by messages. */
static void open_rings(wire_state *state, const wefti_wire_wish *wish, wefti_fabric_address *address)
{
    const size_t bytes = (size_t)wish->pes * sizeof(wefti_ring);
    if (wish->pes > WEFTI_RING_PES_MAX || wish->pes - wish->pe.count > WEFTI_RING_FAR_MAX ||
        !wefti_fabric_takes_rings(&state->fabric)) {
        return;
    }
    address->has_rings = wefti_ring_reader_init(&state->reader, wish->pes) != 0;
    for (int channel = 0; address->has_rings && channel < WEFTI_WIRE_CHANNELS; channel++) {
        address->has_rings =
            wefti_fabric_share_rings(&state->fabric, channel, wefti_ring_reader_rings(&state->reader, channel), bytes,
                                     &address->rings[channel]) != 0;
    }
}

static void connect_rings(wire_state *state, int pe, const wefti_fabric_address *mine,
                          const wefti_fabric_address *other)
{
    peer *to = &state->peers[pe];
    to->has_rings = other->has_rings && wefti_fabric_takes_rings(&state->fabric);
    for (int channel = 0; channel < WEFTI_WIRE_CHANNELS; channel++) {
        to->rings[channel] = other->rings[channel];
        to->rings[channel].base += state->number * sizeof(wefti_ring);
    }
    if (mine->has_rings) {
        wefti_ring_reader_add(&state->reader, pe);
    }
}

/* ---- opening and closing ---- */

static void ofi_stop(wefti_wire *wire)
{
    wefti_fabric_close_endpoints(&((wire_state *)wire->state)->fabric);
}

static void ofi_close(wefti_wire *wire)
{
    wire_state *state = wire->state;
    wefti_fabric_close(&state->fabric);
    wefti_ring_reader_fini(&state->reader);
    wefti_free(state->peers);
    wefti_free(state);
    wire->state = NULL;
}

static weft_status open_state(wire_state *state, const wefti_wire_wish *wish, wefti_fabric_address *address)
{
    wefti_fabric_wish wanted = {.pe = wish->pe, .can_wake = wish->can_wake};
    state->number = (uint64_t)wish->number;
    state->peers = wefti_alloc_zeroed((size_t)wish->pes, sizeof *state->peers);
    if (state->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", wish->pes);
    }
    for (size_t i = 0; i < sizeof rma_words / sizeof *rma_words; i++) {
        wanted.rma = rma_words[i].wire == wish->rma ? rma_words[i].fabric : wanted.rma;
    }
    WEFT_TRY(wefti_fabric_open(&state->fabric, &wanted, wish->memory, wish->bytes, address));
    open_rings(state, wish, address);
    return WEFT_OK;
}

static weft_status ofi_open_wire(wefti_wire *wire, const wefti_wire_wish *wish, void *address)
{
    wire_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a network");
    }
    weft_status status = open_state(state, wish, address);
    if (status != WEFT_OK) {
        wefti_free(state->peers);
        wefti_free(state);
        return status;
    }
    wire->state = state;
    wire->needs_registration = (state->fabric.rails[0].info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    for (size_t i = 0; i < sizeof rma_words / sizeof *rma_words; i++) {
        wire->rma = rma_words[i].fabric == state->fabric.rma ? rma_words[i].wire : wire->rma;
    }
    for (int i = 0; wish->can_wake && i < state->fabric.count; i++) {
        const wefti_fabric_rail *rail = &state->fabric.rails[i];
        for (int which = 0; which < rail->endpoint_count; which++) {
            wire->wake[wire->wakes++] = rail->wake[which];
        }
    }
    return WEFT_OK;
}

/* Rails of equal numbers make a path; where slots are to be the same, those of equal slots. -1: there is none. */
static int rail_to(const wefti_fabric *fabric, const wefti_fabric_name *name, int number)
{
    if (fabric->wish != WEFTI_TOPO_RAILS_SAME_SLOT) {
        return number < fabric->own ? number : -1;
    }
    for (int i = 0; i < fabric->count; i++) {
        if (fabric->rails[i].slot == (int)name->slot) {
            return i;
        }
    }
    return -1;
}

static weft_status add_path(wire_state *state, peer *to, const wefti_fabric_address *other, int number)
{
    const wefti_fabric_name *name = &other->requests[number];
    const int rail = rail_to(&state->fabric, name, number);
    if (name->bytes == 0 || rail < 0) {
        return WEFT_OK;
    }
    path *made = &to->paths[to->count];
    *made = (path){.rail = rail, .other = number};
    WEFT_TRY(wefti_fabric_insert(&state->fabric.rails[rail], name, &made->at[WEFTI_FABRIC_REQUESTS]));
    if (number == 0) {
        WEFT_TRY(wefti_fabric_insert(&state->fabric.rails[rail], &other->replies, &made->at[WEFTI_FABRIC_REPLIES]));
    }
    to->count++;
    return WEFT_OK;
}

static weft_status ofi_connect(wefti_wire *wire, int pe, const void *mine, const void *address)
{
    wire_state *state = wire->state;
    const wefti_fabric_address *other = address;
    const char *provider = ((const wefti_fabric_address *)mine)->provider;
    if (memcmp(other->provider, provider, sizeof other->provider) != 0) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "this PE has libfabric's provider %.31s, and PE %d %.31s; set FI_PROVIDER to one that all "
                           "have",
                           provider, pe, other->provider);
    }
    for (int number = 0; number < WEFTI_WIRE_RAILS_MAX; number++) {
        WEFT_TRY(add_path(state, &state->peers[pe], other, number));
        if (state->peers[pe].count == 0) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "WEFT_NIC_RAILS is same-slot, but this PE's host has no port in slot %u, in which PE "
                               "%d's is; look at weft-info topo on both hosts",
                               other->requests[number].slot, pe);
        }
    }
    connect_rings(state, pe, mine, other);
    return WEFT_OK;
}

static const struct sockaddr *ofi_host(const void *address, struct sockaddr_storage *room)
{
    const wefti_fabric_address *mine = address;
    memcpy(room, mine->requests[0].name, sizeof mine->requests[0].name);
    return room->ss_family == AF_INET || room->ss_family == AF_INET6 ? (const struct sockaddr *)room : NULL;
}

/* ---- words ---- */

/* The interface's name, with the port where a NIC has several. */
static const char *rail_name(const wefti_fabric_rail *rail, char text[RAIL_BYTES])
{
    const char *name = wefti_ofi_interface_name(rail->info);
    (void)snprintf(text, RAIL_BYTES, rail->port > 0 ? "%s:%d" : "%s%.0d", name, rail->port);
    return text;
}

/* "eth0", or "eth0 and eth1" of several; those to send by alone in parentheses. */
static void list_rails(const wefti_fabric *fabric, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < fabric->count && used < bytes; i++) {
        const char *before = i == 0 ? "" : i == fabric->count - 1 ? " and " : ", ";
        char name[RAIL_BYTES];
        const int wrote = snprintf(text + used, bytes - used, i < fabric->own ? "%s%s" : "%s(%s)", before,
                                   rail_name(&fabric->rails[i], name));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static void ofi_describe(const wefti_wire *wire, char *text, size_t bytes)
{
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    char rails[RAILS_BYTES];
    list_rails(fabric, rails, sizeof rails);
    (void)snprintf(text, bytes, "on %s (%s%s): %s", rails, fabric->rails[0].info->fabric_attr->prov_name,
                   fabric->wish == WEFTI_TOPO_RAILS_SAME_SLOT ? ", by the same slot" : "", fabric->reason);
}

static void ofi_name(const wefti_wire *wire, char *text, size_t bytes)
{
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    const struct fi_info *info = fabric->rails[0].info;
    char rails[RAILS_BYTES];
    list_rails(fabric, rails, sizeof rails);
    (void)snprintf(text, bytes, "libfabric's provider %s on %s (network %s)", info->fabric_attr->prov_name, rails,
                   info->fabric_attr->name);
}

static void ofi_tell_rails(const wefti_wire *wire, int pe, char *text, size_t bytes)
{
    const wire_state *state = wire->state;
    const peer *to = &state->peers[pe];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; to->count > 1 && i < to->count && used < bytes; i++) {
        const path *by = &to->paths[i];
        char name[RAIL_BYTES];
        if (by->under_way > 0 || by->has_failed) {
            const int wrote =
                snprintf(text + used, bytes - used, "%s%s%s",
                         used == 0 ? "; writes and reads have not come to their end by " : ", ",
                         rail_name(&state->fabric.rails[by->rail], name), by->has_failed ? " (an error)" : "");
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

/* ---- messages ---- */

static wefti_wire_answer answer_of(ssize_t error)
{
    return error == 0 ? WEFTI_WIRE_TAKEN : error == -FI_EAGAIN ? WEFTI_WIRE_AGAIN : WEFTI_WIRE_LOST;
}

static int ofi_post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    wire_state *state = wire->state;
    const wefti_fabric_rail *rail = &state->fabric.rails[0];
    return wefti_ring_reader_keep(&state->reader, channel, buffer) ||
           fi_recv(rail->endpoints[channel], buffer->header, WEFTI_AM_MESSAGE_MAX, rail->descriptors[channel],
                   FI_ADDR_UNSPEC, buffer->context) == 0;
}

/* A message that the provider has taken a copy of needs no completion, which would cost it calls of the system where
 * it wakes sleepers; nor is there one if it fails. That a PE is gone is found out by what it does not answer: by longer
 * messages and by the connections of the watch (am/watch.h). */
static wefti_wire_answer injected(wire_state *state, int channel, wefti_am_buffer *buffer, wefti_wire_answer answer)
{
    if (answer == WEFTI_WIRE_TAKEN) {
        buffer->context[0] = state->injected[channel];
        state->injected[channel] = buffer;
    }
    return answer;
}

/* It keeps behind what went to the PE before by that endpoint, messages and writes. The library copies it, but has a
 * completion to tell, and so a context: libfabric 1.17 follows that of a write which fails because the other PE has
 * gone or the endpoint is closed, and one of fi_inject_write is NULL (tcp marks only messages as given away). */
static wefti_wire_answer write_to_ring(peer *to, struct fid_ep *endpoint, fi_addr_t at, int channel,
                                       wefti_am_buffer *buffer)
{
    wefti_ring_write write;
    const wefti_wire_key *ring = &to->rings[channel];
    wefti_ring_pack(&write, to->written[channel], buffer->header, buffer->bytes);
    void *descriptor = NULL; /* of memory that is copied */
    const struct iovec local = {.iov_base = (void *)(uintptr_t)write.from, .iov_len = write.bytes};
    const struct fi_rma_iov remote = {.addr = ring->base + write.offset, .len = write.bytes, .key = ring->key};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .desc = &descriptor,
                                       .iov_count = 1,
                                       .addr = at,
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = buffer->context};
    const wefti_wire_answer answer = answer_of(fi_writemsg(endpoint, &message, FI_INJECT | FI_COMPLETION));
    to->written[channel] += answer == WEFTI_WIRE_TAKEN;
    return answer;
}

/* A reply goes by the connection of requests, whose packets acknowledge it without one of their own, unless it would
 * wait there behind large writes and reads, or for room. Replies need no order between the two: each has its slot. */
static wefti_wire_answer send_by_ring(wire_state *state, peer *to, int channel, wefti_am_buffer *buffer)
{
    const path *by = &to->paths[0];
    const wefti_fabric_rail *rail = &state->fabric.rails[by->rail];
    wefti_wire_answer answer = WEFTI_WIRE_AGAIN;
    if (channel == WEFTI_WIRE_REPLIES && by->under_way == 0 && wefti_fabric_has_common_keys(&state->fabric)) {
        answer = write_to_ring(to, rail->endpoints[WEFTI_WIRE_REQUESTS], by->at[WEFTI_WIRE_REQUESTS], channel, buffer);
    }
    return answer == WEFTI_WIRE_AGAIN ? write_to_ring(to, rail->endpoints[channel], by->at[channel], channel, buffer)
                                      : answer;
}

static wefti_wire_answer ofi_send(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    wire_state *state = wire->state;
    peer *to = &state->peers[buffer->pe];
    const path *by = &to->paths[0];
    const wefti_fabric_rail *rail = &state->fabric.rails[by->rail];
    struct fid_ep *endpoint = rail->endpoints[channel];
    const int is_last = buffer->header->kind == WEFTI_AM_LEAVE; /* its completion says that all before it have gone */
    if (to->has_rings && buffer->bytes <= WEFTI_RING_MESSAGE_MAX && !is_last) {
        return send_by_ring(state, to, channel, buffer);
    }
    if (buffer->bytes > rail->info->tx_attr->inject_size || is_last) {
        return answer_of(fi_send(endpoint, buffer->header, buffer->bytes, rail->descriptors[channel], by->at[channel],
                                 buffer->context));
    }
    return injected(state, channel, buffer,
                    answer_of(fi_inject(endpoint, buffer->header, buffer->bytes, by->at[channel])));
}

/* ---- writes and reads ---- */

static path *choose_path(const wire_state *state, peer *to)
{
    path *least = &to->paths[state->next_path % (uint32_t)to->count];
    for (int i = 0; i < to->count; i++) {
        least = to->paths[i].under_way < least->under_way ? &to->paths[i] : least;
    }
    return least;
}

static wefti_wire_answer move_by(const wefti_wire *wire, const path *by, wefti_am_buffer *op,
                                 const wefti_wire_piece *piece)
{
    const wire_state *state = wire->state;
    const wefti_fabric_rail *rail = &state->fabric.rails[by->rail];
    const wefti_fabric_range *in = piece->registration;
    struct iovec local = {.iov_base = piece->local, .iov_len = piece->bytes};
    void *descriptor = in != NULL ? fi_mr_desc(in->registrations[by->rail]) : rail->descriptors[WEFTI_FABRIC_REQUESTS];
    const wefti_wire_key *key = &piece->keys[by->other];
    const struct fi_rma_iov remote = {.addr = key->base + piece->offset, .len = piece->bytes, .key = key->key};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .desc = &descriptor,
                                       .iov_count = 1,
                                       .addr = by->at[WEFTI_FABRIC_REQUESTS],
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = op->context,
                                       .data = state->number};
    struct fid_ep *endpoint = rail->endpoints[WEFTI_FABRIC_REQUESTS];
    const uint64_t told = wire->rma == WEFTI_WIRE_RMA_COMPLETES ? FI_DELIVERY_COMPLETE
                          : wire->rma == WEFTI_WIRE_RMA_COUNTED ? FI_REMOTE_CQ_DATA
                                                                : 0;
    return answer_of(op->is_write ? fi_writemsg(endpoint, &message, FI_COMPLETION | told)
                                  : fi_readmsg(endpoint, &message, FI_COMPLETION));
}

static wefti_wire_answer ofi_move(wefti_wire *wire, wefti_am_buffer *op, const wefti_wire_piece *piece)
{
    wire_state *state = wire->state;
    path *by = choose_path(state, &state->peers[op->pe]);
    const wefti_wire_answer answer = move_by(wire, by, op, piece);
    if (answer == WEFTI_WIRE_TAKEN) { /* else it is that rail's turn again, which may be about to be connected */
        by->under_way++;
        state->next_path++;
    }
    return answer;
}

/* What a rail has told of is over. */
static void end_move(wire_state *state, int rail, const wefti_am_buffer *op, int has_failed)
{
    peer *to = &state->peers[op->pe];
    for (int i = 0; op->role == WEFTI_AM_RMA && i < to->count; i++) {
        path *by = &to->paths[i];
        by->under_way -= by->rail == rail;
        by->has_failed |= by->rail == rail && has_failed;
    }
}

/* ---- completions ---- */

static int take_failure(wefti_wire *wire, int rail, int channel)
{
    struct fi_cq_err_entry entry = {0};
    wire_state *state = wire->state;
    if (fi_cq_readerr(state->fabric.rails[rail].completions[channel], &entry, 0) <= 0) {
        return 0;
    }
    if (entry.op_context != NULL) {
        end_move(state, rail, entry.op_context, 1);
        wefti_am_failed(wire->am, entry.op_context);
    }
    return 1;
}

static int poll_rail(wefti_wire *wire, int rail, int channel)
{
    struct fi_cq_data_entry entries[COMPLETIONS_AT_ONCE];
    wire_state *state = wire->state;
    ssize_t count = fi_cq_read(state->fabric.rails[rail].completions[channel], entries, COMPLETIONS_AT_ONCE);
    if (count == -FI_EAVAIL) {
        return take_failure(wire, rail, channel);
    }
    for (ssize_t i = 0; i < count; i++) {
        if ((entries[i].flags & FI_REMOTE_WRITE) != 0) {
            wefti_am_written(wire->am, (uint32_t)entries[i].data);
        } else {
            end_move(state, rail, entries[i].op_context, 0);
            wefti_am_completed(wire->am, entries[i].op_context, entries[i].len);
        }
    }
    return count > 0;
}

/* Those that were sent without a completion of the library's. What is told may send more, which is told as well. */
static void tell_injected(wefti_wire *wire, int channel)
{
    wire_state *state = wire->state;
    while (state->injected[channel] != NULL) {
        wefti_am_buffer *buffer = state->injected[channel];
        state->injected[channel] = buffer->context[0];
        wefti_am_completed(wire->am, buffer, buffer->bytes);
    }
}

static int ofi_poll(wefti_wire *wire, int channel)
{
    wire_state *state = wire->state;
    const wefti_fabric *fabric = &state->fabric;
    int happened = 0;
    tell_injected(wire, channel);
    for (int rail = 0; rail < fabric->count; rail++) {
        happened |= channel < fabric->rails[rail].endpoint_count && poll_rail(wire, rail, channel);
    }
    happened |= wefti_ring_reader_take(&state->reader, wire->am, channel);
    return happened;
}

static int ofi_has_more(const wefti_wire *wire)
{
    return wefti_ring_reader_has_more(&((const wire_state *)wire->state)->reader, wire->am);
}

static int ofi_can_sleep(wefti_wire *wire)
{
    const wire_state *state = wire->state;
    const wefti_fabric *fabric = &state->fabric;
    int can = state->injected[WEFTI_WIRE_REQUESTS] == NULL && state->injected[WEFTI_WIRE_REPLIES] == NULL;
    for (int i = 0; i < fabric->count && can; i++) {
        const wefti_fabric_rail *rail = &fabric->rails[i];
        struct fid *objects[WEFTI_FABRIC_ENDPOINTS];
        for (int which = 0; which < rail->endpoint_count; which++) {
            objects[which] = &rail->completions[which]->fid;
        }
        can = fi_trywait(rail->fabric, objects, rail->endpoint_count) == 0;
    }
    /* What is written to rings from now on has still to come. */
    return can && !ofi_has_more(wire);
}

/* ---- memory of this PE ---- */

static int ofi_share(wefti_wire *wire, void *memory, size_t bytes, wefti_wire_range *range)
{
    wefti_fabric_range *shared = wefti_alloc(sizeof *shared);
    if (shared == NULL || !wefti_fabric_share(&((wire_state *)wire->state)->fabric, memory, bytes, shared)) {
        wefti_free(shared);
        return 0;
    }
    range->registration = shared;
    memcpy(range->told, shared->told, sizeof range->told);
    return 1;
}

static void ofi_unshare(wefti_wire *wire, wefti_wire_range *range)
{
    (void)wire;
    wefti_fabric_unshare(range->registration);
    wefti_free(range->registration);
}

static int ofi_learn(wefti_wire *wire, int pe, const wefti_wire_told *told, wefti_wire_key *keys)
{
    wire_state *state = wire->state;
    const peer *of = &state->peers[pe];
    int has_all = 1;
    for (int i = 0; i < of->count && has_all; i++) {
        const int other = of->paths[i].other;
        wefti_fabric_rail *rail = &state->fabric.rails[of->paths[i].rail];
        has_all = told[other].long_bytes == 0 || wefti_fabric_map(rail, &told[other], &keys[other].key);
    }
    return has_all;
}

static const wefti_wire_ops wire_ops = {
    .address_bytes = sizeof(wefti_fabric_address),
    .open = ofi_open_wire,
    .stop = ofi_stop,
    .close = ofi_close,
    .connect = ofi_connect,
    .host = ofi_host,
    .describe = ofi_describe,
    .name = ofi_name,
    .post = ofi_post,
    .send = ofi_send,
    .move = ofi_move,
    .poll = ofi_poll,
    .can_sleep = ofi_can_sleep,
    .has_more = ofi_has_more,
    .share = ofi_share,
    .unshare = ofi_unshare,
    .learn = ofi_learn,
    .tell_rails = ofi_tell_rails,
    .remedy = "with the provider's variable, as FI_TCP_IFACE",
};

static weft_status ofi_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    return wefti_am_open(transport, setup, &wire_ops);
}

const wefti_transport_ops wefti_transport_ofi = WEFTI_AM_OPS("ofi", ofi_open);
