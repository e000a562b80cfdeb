/* Transports that are written to weft/transport.h. A table of its functions opens, connects and moves data; here PEs
 * exchange its addresses, and find out whether all have the same one and have it open. */
#include "transport/plugin/table.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "weft/protocol/layout.h"

_Static_assert((int)WEFT_TRANSPORT_FETCH == (int)WEFTI_AMO_FETCH && (int)WEFT_TRANSPORT_XOR == (int)WEFTI_AMO_XOR &&
                   (int)WEFT_TRANSPORT_COMPARE_SWAP == (int)WEFTI_AMO_COMPARE_SWAP,
               "the operations have the library's numbers");
_Static_assert((int)WEFT_TRANSPORT_THERE == (int)WEFTI_FATE_THERE && (int)WEFT_TRANSPORT_LEFT == (int)WEFTI_FATE_LEFT &&
                   (int)WEFT_TRANSPORT_ENDED == (int)WEFTI_FATE_ENDED &&
                   (int)WEFT_TRANSPORT_SILENT == (int)WEFTI_FATE_SILENT,
               "and what becomes of PEs, too");

/* What PEs tell each other; the address follows. */
typedef struct offer {
    char name[WEFT_TRANSPORT_PLUGIN_NAME_BYTES];
    uint64_t is_open;
} offer;

typedef struct opened {
    const weft_transport_plugin *functions;
    weft_transport_setup setup;
    void *state; /* theirs */
} opened;

static const opened *opened_of(const wefti_transport *transport)
{
    return transport->state;
}

static const weft_transport_plugin *functions_of(const wefti_transport *transport)
{
    return transport->ops->table->functions;
}

static const char *path_of(const wefti_transport *transport)
{
    return transport->ops->table->path;
}

/* ---- opening and closing ---- */

static weft_status open_table(wefti_transport *transport, offer *mine)
{
    const wefti_transport_setup *setup = &transport->setup;
    const wefti_control *control = (const wefti_control *)(const void *)setup->slot;
    opened *made = wefti_alloc_zeroed(1, sizeof *made);
    if (made == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a transport");
    }
    made->setup = (weft_transport_setup){.world = setup->world,
                                         .pe = setup->pe,
                                         .pes = setup->pes,
                                         .memory = setup->slot,
                                         .memory_bytes = &control->reserved,
                                         .deadline_ns = setup->deadline_ns,
                                         .fail = weft_last_error_set};
    made->functions = functions_of(transport);
    const weft_status status = made->functions->open(&made->setup, mine + 1, &made->state);
    if (status != WEFT_OK) {
        wefti_free(made);
        return wefti_error_context(status, "%.200s", path_of(transport));
    }
    transport->state = made;
    mine->is_open = 1;
    return WEFT_OK;
}

static const offer *offer_of(const wefti_transport *transport, const offer *all, int pe)
{
    const size_t bytes = sizeof *all + functions_of(transport)->address_bytes;
    return (const offer *)(const void *)((const unsigned char *)all + (size_t)pe * bytes);
}

/* Addresses without the names before them. */
static weft_status connect_all(const wefti_transport *transport, const offer *all)
{
    const int pes = transport->setup.pes;
    const size_t bytes = functions_of(transport)->address_bytes;
    unsigned char *addresses = wefti_alloc_zeroed((size_t)pes, bytes);
    if (addresses == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", pes);
    }
    for (int pe = 0; pe < pes; pe++) {
        memcpy(addresses + (size_t)pe * bytes, offer_of(transport, all, pe) + 1, bytes);
    }
    const weft_status status = functions_of(transport)->connect(opened_of(transport)->state, addresses);
    wefti_free(addresses);
    return status == WEFT_OK ? status : wefti_error_context(status, "%.200s", path_of(transport));
}

/* A PE whose open has failed reports that itself, at the end of this step. */
static weft_status check_names(const wefti_transport *transport, const offer *all)
{
    const char *name = functions_of(transport)->name;
    for (int pe = 0; pe < transport->setup.pes; pe++) {
        const offer *other = offer_of(transport, all, pe);
        if (strncmp(other->name, name, sizeof other->name) != 0) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "this PE has the transport \"%.31s\" (%.200s), and PE %d \"%.31s\"; give all PEs the "
                               "same one in WEFT_TRANSPORT",
                               name, path_of(transport), pe, other->name);
        }
    }
    return WEFT_OK;
}

void wefti_table_close(wefti_transport *transport)
{
    opened *closed = transport->state;
    closed->functions->close(closed->state);
    wefti_free(closed);
    transport->state = NULL;
}

static weft_status meet(wefti_transport *transport, weft_status made, const offer *mine, offer *all)
{
    const wefti_transport_exchange *exchange = transport->setup.exchange;
    WEFT_TRY(exchange->allgather(exchange->context, mine, all, sizeof *mine + functions_of(transport)->address_bytes));
    WEFT_TRY(made);
    WEFT_TRY(check_names(transport, all));
    return connect_all(transport, all);
}

weft_status wefti_table_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    const size_t bytes = sizeof(offer) + functions_of(transport)->address_bytes;
    transport->setup = *setup;
    transport->state = NULL;
    offer *mine = wefti_alloc_zeroed(1, bytes);
    offer *all = wefti_alloc((size_t)setup->pes * bytes);
    weft_status status =
        mine == NULL || all == NULL ? wefti_error(WEFT_ERR_MEMORY, "no memory for %d PEs", setup->pes) : WEFT_OK;
    if (status == WEFT_OK) {
        memcpy(mine->name, functions_of(transport)->name, sizeof mine->name);
        status = meet(transport, open_table(transport, mine), mine, all);
    }
    wefti_free(mine);
    wefti_free(all);
    if (status != WEFT_OK && transport->state != NULL) {
        wefti_table_close(transport);
    }
    transport->setup.exchange = NULL;
    return status;
}

int wefti_table_reaches(const wefti_transport *transport, int pe)
{
    return pe >= 0 && pe < transport->setup.pes;
}

void wefti_table_describe(const wefti_transport *transport, char *text, size_t bytes)
{
    (void)snprintf(text, bytes, "\"%.31s\" (%s)", functions_of(transport)->name, path_of(transport));
}

/* ---- operations ---- */

weft_status wefti_table_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    const opened *o = opened_of(transport);
    return o->functions->put(o->state, pe, offset, source, bytes);
}

weft_status wefti_table_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    const opened *o = opened_of(transport);
    return o->functions->get(o->state, pe, offset, dest, bytes);
}

weft_status wefti_table_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source,
                                   size_t bytes, uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    const opened *o = opened_of(transport);
    return o->functions->put_signal(o->state, pe, offset, source, bytes, signal_offset, value, op);
}

weft_status wefti_table_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                            uint64_t value, uint64_t cond, uint64_t *old)
{
    const opened *o = opened_of(transport);
    return o->functions->amo(o->state, pe, offset, (weft_transport_amo)op, bits, value, cond, old);
}

weft_status wefti_table_read_soon(wefti_transport *transport, int pe, uint64_t offset, uint64_t *value)
{
    const opened *o = opened_of(transport);
    return o->functions->read_soon(o->state, pe, offset, value);
}

weft_status wefti_table_fence(wefti_transport *transport)
{
    const opened *o = opened_of(transport);
    return o->functions->fence(o->state);
}

weft_status wefti_table_quiet(wefti_transport *transport)
{
    const opened *o = opened_of(transport);
    return o->functions->quiet(o->state);
}

wefti_transport_fate wefti_table_fate(const wefti_transport *transport, int pe)
{
    const opened *o = opened_of(transport);
    return (wefti_transport_fate)o->functions->fate(o->state, pe);
}
