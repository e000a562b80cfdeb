/* `sim`: all PEs of a simulated world, by messages. Only in the WEFT_SIM build. */
#include "base/alloc.h"
#include "base/error.h"
#include "testing/sim/transport/network.h"

typedef struct sim_state {
    int port; /* this PE's own */
} sim_state;

static weft_status sim_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    sim_state *state = wefti_alloc(sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "sim transport: no memory for a port");
    }
    state->port = wefti_network_attach(setup->world, setup->pe, setup->slot, (size_t)setup->view->stride);
    transport->setup = *setup;
    transport->state = state;
    return WEFT_OK;
}

static void sim_close(wefti_transport *transport)
{
    const sim_state *state = transport->state;
    wefti_network_detach(state->port);
    wefti_free(transport->state);
    transport->state = NULL;
}

static int sim_reaches(const wefti_transport *transport, int pe)
{
    return pe >= 0 && pe < transport->setup.pes && !wefti_network_has_messages();
}

static weft_status lost(const wefti_transport *transport, int pe)
{
    return wefti_error(WEFT_ERR_PEER, "sim transport: PE %d is gone, as PE %d finds", pe, transport->setup.pe);
}

static weft_status find(const wefti_transport *transport, int pe, int *port)
{
    *port = wefti_network_find(transport->setup.world, pe);
    return *port >= 0 ? WEFT_OK : lost(transport, pe);
}

static weft_status sim_put(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes)
{
    int port;
    WEFT_TRY(find(transport, pe, &port));
    (void)wefti_network_put(port, offset, source, bytes);
    return WEFT_OK;
}

static weft_status sim_get(wefti_transport *transport, int pe, uint64_t offset, void *dest, size_t bytes)
{
    int port;
    WEFT_TRY(find(transport, pe, &port));
    return wefti_network_get(port, offset, dest, bytes) ? WEFT_OK : lost(transport, pe);
}

static weft_status sim_put_signal(wefti_transport *transport, int pe, uint64_t offset, const void *source, size_t bytes,
                                  uint64_t signal_offset, uint64_t value, weft_signal_op op)
{
    int port;
    WEFT_TRY(find(transport, pe, &port));
    uint32_t operation = wefti_network_put(port, offset, source, bytes);
    wefti_network_signal(port, signal_offset, value, op, operation, bytes == 0);
    return WEFT_OK;
}

static weft_status sim_amo(wefti_transport *transport, int pe, uint64_t offset, wefti_amo_op op, int bits,
                           uint64_t value, uint64_t cond, uint64_t *old)
{
    int port;
    uint64_t before;
    WEFT_TRY(find(transport, pe, &port));
    return wefti_network_amo(port, offset, op, bits, value, cond, old != NULL ? old : &before) ? WEFT_OK
                                                                                               : lost(transport, pe);
}

static weft_status sim_fence(wefti_transport *transport)
{
    (void)transport;
    wefti_network_fence();
    return WEFT_OK;
}

static weft_status sim_quiet(wefti_transport *transport)
{
    (void)transport;
    wefti_network_quiet();
    return WEFT_OK;
}

const wefti_transport_ops wefti_transport_sim = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .reaches = sim_reaches,
    .put = sim_put,
    .get = sim_get,
    .put_signal = sim_put_signal,
    .amo = sim_amo,
    .fence = sim_fence,
    .quiet = sim_quiet,
};
