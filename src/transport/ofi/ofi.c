/* `ofi`: PEs of other nodes, over libfabric: the wire of the protocol in `am`. Requests have an endpoint, and replies
 * another, so that a reply waits behind no request. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "transport/am/am.h"
#include "transport/ofi/fabric.h"

#define COMPLETIONS_AT_ONCE 16

_Static_assert(sizeof(struct fi_context2) <= sizeof((wefti_am_buffer *)0)->context, "the provider's part has room");
_Static_assert(offsetof(wefti_am_buffer, context) == 0, "the provider's part names the buffer");
_Static_assert((int)WEFTI_WIRE_CHANNELS == (int)WEFTI_FABRIC_ENDPOINTS, "an endpoint a channel");
_Static_assert(sizeof(wefti_fabric_address) <= WEFTI_WIRE_ADDRESS_BYTES_MAX, "an address has room");

typedef struct wire_state {
    wefti_fabric fabric;
    uint64_t number; /* of this PE */
    fi_addr_t (*at)[WEFTI_FABRIC_ENDPOINTS]; /* [pes] */
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

/* ---- opening and closing ---- */

static void ofi_stop(wefti_wire *wire)
{
    wefti_fabric_close_endpoints(&((wire_state *)wire->state)->fabric);
}

static void ofi_close(wefti_wire *wire)
{
    wire_state *state = wire->state;
    wefti_fabric_close(&state->fabric);
    wefti_free(state->at);
    wefti_free(state);
    wire->state = NULL;
}

static weft_status open_state(wire_state *state, const wefti_wire_wish *wish, wefti_fabric_address *address)
{
    wefti_fabric_wish wanted = {.pe = wish->pe, .can_wake = wish->can_wake};
    state->number = (uint64_t)wish->number;
    state->at = wefti_alloc_zeroed((size_t)wish->pes, sizeof *state->at);
    if (state->at == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", wish->pes);
    }
    for (size_t i = 0; i < sizeof rma_words / sizeof *rma_words; i++) {
        wanted.rma = rma_words[i].wire == wish->rma ? rma_words[i].fabric : wanted.rma;
    }
    return wefti_fabric_open(&state->fabric, &wanted, wish->memory, wish->bytes, address);
}

static weft_status ofi_open_wire(wefti_wire *wire, const wefti_wire_wish *wish, void *address)
{
    wire_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a network");
    }
    weft_status status = open_state(state, wish, address);
    if (status != WEFT_OK) {
        wefti_free(state->at);
        wefti_free(state);
        return status;
    }
    wire->state = state;
    wire->needs_registration = (state->fabric.info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    for (size_t i = 0; i < sizeof rma_words / sizeof *rma_words; i++) {
        wire->rma = rma_words[i].fabric == state->fabric.rma ? rma_words[i].wire : wire->rma;
    }
    memcpy(wire->wake, state->fabric.wake, sizeof wire->wake);
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
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        WEFT_TRY(wefti_fabric_insert(&state->fabric, other->name[which], &state->at[pe][which]));
    }
    return WEFT_OK;
}

static const struct sockaddr *ofi_host(const void *address, struct sockaddr_storage *room)
{
    const wefti_fabric_address *mine = address;
    memcpy(room, mine->name[0], sizeof mine->name[0]);
    return room->ss_family == AF_INET || room->ss_family == AF_INET6 ? (const struct sockaddr *)room : NULL;
}

/* ---- words ---- */

static void ofi_describe(const wefti_wire *wire, char *text, size_t bytes)
{
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    (void)snprintf(text, bytes, "on %s (%s): %s", wefti_ofi_interface_name(fabric->info),
                   fabric->info->fabric_attr->prov_name, fabric->reason);
}

static void ofi_name(const wefti_wire *wire, char *text, size_t bytes)
{
    const struct fi_info *info = ((const wire_state *)wire->state)->fabric.info;
    (void)snprintf(text, bytes, "libfabric's provider %s on %s (network %s)", info->fabric_attr->prov_name,
                   info->domain_attr->name, info->fabric_attr->name);
}

/* ---- messages ---- */

static wefti_wire_answer answer_of(ssize_t error)
{
    return error == 0 ? WEFTI_WIRE_TAKEN : error == -FI_EAGAIN ? WEFTI_WIRE_AGAIN : WEFTI_WIRE_LOST;
}

static int ofi_post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    return fi_recv(fabric->endpoints[channel], buffer->header, WEFTI_AM_MESSAGE_MAX, fabric->descriptors[channel],
                   FI_ADDR_UNSPEC, buffer->context) == 0;
}

static wefti_wire_answer ofi_send(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    const wire_state *state = wire->state;
    const wefti_fabric *fabric = &state->fabric;
    return answer_of(fi_send(fabric->endpoints[channel], buffer->header, buffer->bytes, fabric->descriptors[channel],
                             state->at[buffer->pe][channel], buffer->context));
}

static wefti_wire_answer ofi_move(wefti_wire *wire, wefti_am_buffer *op, const wefti_wire_piece *piece)
{
    const wire_state *state = wire->state;
    const wefti_fabric *fabric = &state->fabric;
    struct iovec local = {.iov_base = piece->local, .iov_len = piece->bytes};
    void *descriptor =
        piece->registration != NULL ? fi_mr_desc(piece->registration) : fabric->descriptors[WEFTI_FABRIC_REQUESTS];
    const struct fi_rma_iov remote = {.addr = piece->address, .len = piece->bytes, .key = piece->key};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .desc = &descriptor,
                                       .iov_count = 1,
                                       .addr = state->at[op->pe][WEFTI_FABRIC_REQUESTS],
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = op->context,
                                       .data = state->number};
    struct fid_ep *endpoint = fabric->endpoints[WEFTI_FABRIC_REQUESTS];
    const uint64_t told = wire->rma == WEFTI_WIRE_RMA_COMPLETES ? FI_DELIVERY_COMPLETE
                          : wire->rma == WEFTI_WIRE_RMA_COUNTED ? FI_REMOTE_CQ_DATA
                                                                : 0;
    return answer_of(op->is_write ? fi_writemsg(endpoint, &message, FI_COMPLETION | told)
                                  : fi_readmsg(endpoint, &message, FI_COMPLETION));
}

/* ---- completions ---- */

static int take_failure(wefti_wire *wire, int channel)
{
    struct fi_cq_err_entry entry = {0};
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    if (fi_cq_readerr(fabric->completions[channel], &entry, 0) <= 0) {
        return 0;
    }
    if (entry.op_context != NULL) {
        wefti_am_failed(wire->am, entry.op_context);
    }
    return 1;
}

static int ofi_poll(wefti_wire *wire, int channel)
{
    struct fi_cq_data_entry entries[COMPLETIONS_AT_ONCE];
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    ssize_t count = fi_cq_read(fabric->completions[channel], entries, COMPLETIONS_AT_ONCE);
    if (count == -FI_EAVAIL) {
        return take_failure(wire, channel);
    }
    for (ssize_t i = 0; i < count; i++) {
        if ((entries[i].flags & FI_REMOTE_WRITE) != 0) {
            wefti_am_written(wire->am, (uint32_t)entries[i].data);
        } else {
            wefti_am_completed(wire->am, entries[i].op_context, entries[i].len);
        }
    }
    return count > 0;
}

static int ofi_can_sleep(wefti_wire *wire)
{
    const wefti_fabric *fabric = &((const wire_state *)wire->state)->fabric;
    struct fid *objects[WEFTI_FABRIC_ENDPOINTS];
    for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
        objects[which] = &fabric->completions[which]->fid;
    }
    return fi_trywait(fabric->fabric, objects, WEFTI_FABRIC_ENDPOINTS) == 0;
}

/* ---- memory of this PE ---- */

static int ofi_share(wefti_wire *wire, void *memory, size_t bytes, wefti_wire_range *range)
{
    wefti_fabric_range at;
    if (!wefti_fabric_share(&((wire_state *)wire->state)->fabric, memory, bytes, &at)) {
        return 0;
    }
    *range = (wefti_wire_range){.registration = at.registration, .base = at.base, .key = at.key};
    return 1;
}

static void ofi_unshare(wefti_wire *wire, wefti_wire_range *range)
{
    struct fid_mr *registration = range->registration;
    (void)wire;
    (void)fi_close(&registration->fid);
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
    .share = ofi_share,
    .unshare = ofi_unshare,
    .remedy = "with the provider's variable, as FI_TCP_IFACE",
};

static weft_status ofi_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    return wefti_am_open(transport, setup, &wire_ops);
}

const wefti_transport_ops wefti_transport_ofi = WEFTI_AM_OPS("ofi", ofi_open);
