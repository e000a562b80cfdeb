/* `ofi`: PEs of other nodes, over libfabric. */
#include "transport/ofi/ofi.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread_state.h"
#include "device/device.h"

#define PROBE_NS UINT64_C(5000000000) /* for PE 0's first answer, through a machine in use */
#define CLOSING_NS UINT64_C(2000000000) /* to deliver what this PE has sent, at the end */

/* ---- memory for messages ---- */

static size_t stride(void)
{
    return (WEFTI_OFI_MESSAGE_MAX + 63) / 64 * 64;
}

static wefti_ofi_role role_of(int number)
{
    return number < WEFTI_OFI_REQUESTS_IN                            ? WEFTI_OFI_REQUEST_IN
           : number < WEFTI_OFI_REQUESTS_IN + WEFTI_OFI_REQUESTS_OUT ? WEFTI_OFI_REQUEST_OUT
                                                                     : WEFTI_OFI_REPLY_IN;
}

static void set_buffers(wefti_ofi *ofi)
{
    for (int i = 0; i < WEFTI_OFI_BUFFERS; i++) {
        wefti_ofi_buffer *buffer = &ofi->buffers[i];
        buffer->header = (wefti_ofi_header *)(void *)(ofi->memory + (size_t)i * stride());
        buffer->role = role_of(i);
        if (buffer->role == WEFTI_OFI_REQUEST_OUT) {
            buffer->next = ofi->free_out;
            ofi->free_out = buffer;
            ofi->free_out_count++;
        }
    }
}

static void post_all(wefti_ofi *ofi)
{
    for (int i = 0; i < WEFTI_OFI_BUFFERS; i++) {
        if (ofi->buffers[i].role != WEFTI_OFI_REQUEST_OUT) {
            wefti_ofi_post(ofi, &ofi->buffers[i]);
        }
    }
}

/* ---- opening ---- */

/* What PEs tell each other. */
typedef struct offer {
    wefti_fabric_address address;
    wefti_watch_contact contact;
} offer;

static void ofi_free(wefti_ofi *ofi)
{
    if (ofi != NULL) {
        wefti_watch_destroy(ofi->watch);
        wefti_ofi_progress_stop(ofi);
        wefti_fabric_close_endpoints(&ofi->fabric);
        wefti_ofi_rma_fini(ofi);
        wefti_fabric_close(&ofi->fabric);
        if (ofi->lock != NULL) {
            wefti_os_monitor_destroy(ofi->lock);
        }
        wefti_free(ofi->peers);
        wefti_free(ofi->memory);
        wefti_free(ofi);
    }
}

static void lose(void *context, int pe)
{
    wefti_ofi *ofi = context;
    wefti_ofi_enter(ofi);
    wefti_ofi_lose(ofi, (uint32_t)pe);
    (void)wefti_ofi_leave(ofi, WEFT_OK);
}

/* Hosts reach each other where their endpoints do, if those have addresses of TCP. */
static weft_status make_watch(wefti_ofi *ofi, offer *mine)
{
    struct sockaddr_storage host;
    memcpy(&host, mine->address.name[0], sizeof mine->address.name[0]);
    const int is_tcp = host.ss_family == AF_INET || host.ss_family == AF_INET6;
    const wefti_watch_setup setup = {
        .world = &ofi->setup, .host = is_tcp ? (const struct sockaddr *)&host : NULL, .lost = lose, .context = ofi};
    return wefti_watch_create(&setup, &ofi->watch, &mine->contact);
}

/* The network is opened before a world gets its device, but which GPU that will be is mostly known. */
static wefti_topo_pci find_gpu(const wefti_transport_setup *setup)
{
    char text[WEFTI_TOPO_PCI_BYTES];
    wefti_topo_pci pci;
    return wefti_device_backend != NULL && wefti_device_backend->find_pci(setup->device, text, sizeof text) &&
                   wefti_topo_pci_parse(text, &pci)
               ? pci
               : WEFTI_TOPO_PCI_NONE;
}

static weft_status make(wefti_transport *transport, offer *mine)
{
    const size_t pes = (size_t)transport->setup.pes;
    wefti_ofi *ofi = wefti_alloc_zeroed(1, sizeof *ofi);
    if (ofi == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a network");
    }
    transport->state = ofi;
    ofi->setup = transport->setup;
    ofi->setup.device = NULL;
    ofi->wake[0] = ofi->wake[1] = -1;
    wefti_fabric_wish wish = {.can_wake = !ofi->setup.progress_inline};
    WEFT_TRY(wefti_ofi_rma_settings(ofi, &wish.rma));
    const size_t messages = WEFTI_OFI_BUFFERS * stride();
    const size_t memory = messages + (wish.rma != WEFTI_FABRIC_NO_RMA ? WEFTI_OFI_RMA_MAX * WEFTI_OFI_RMA_BYTES : 0);
    ofi->memory = wefti_alloc(memory);
    ofi->peers = wefti_alloc_zeroed(pes, sizeof *ofi->peers);
    if (ofi->memory == NULL || ofi->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for messages over the network");
    }
    set_buffers(ofi);
    ofi->requests_free = WEFTI_OFI_WAITING_MAX;
    for (size_t pe = 0; pe < pes; pe++) {
        ofi->peers[pe].credits = WEFTI_OFI_CREDITS_MAX;
    }
    WEFT_TRY(wefti_os_monitor_create(&ofi->lock));
    wish.pe = (wefti_topo_pe){.gpu = find_gpu(&transport->setup),
                              .numa = wefti_topo_numa_here(),
                              .number = ofi->setup.pe - (int)ofi->setup.view->near_first};
    WEFT_TRY(wefti_fabric_open(&ofi->fabric, &wish, ofi->memory, memory, &mine->address));
    if (ofi->fabric.rma != WEFTI_FABRIC_NO_RMA) {
        wefti_ofi_rma_init(ofi, ofi->memory + messages);
    }
    return make_watch(ofi, mine);
}

/* The addresses of all PEs of other nodes. */
static weft_status meet(wefti_ofi *ofi, const wefti_fabric_address *mine, const offer *all)
{
    for (int pe = 0; pe < ofi->setup.pes; pe++) {
        wefti_ofi_peer *peer = &ofi->peers[pe];
        const wefti_fabric_address *address = &all[pe].address;
        if (address->bytes[0] == 0 || address->bytes[1] == 0) {
            continue; /* it has failed, and says so at the end of this step */
        }
        if (memcmp(address->provider, mine->provider, sizeof mine->provider) != 0) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "PE %d has libfabric's provider %.31s, and PE %d %.31s; set FI_PROVIDER to one that all "
                               "have",
                               ofi->setup.pe, mine->provider, pe, address->provider);
        }
        for (int which = 0; which < WEFTI_FABRIC_ENDPOINTS; which++) {
            WEFT_TRY(wefti_fabric_insert(&ofi->fabric, address->name[which], &peer->at[which]));
        }
        peer->is_known = 1;
    }
    return WEFT_OK;
}

/* One PE of each other node sees whether PE 0 answers: addresses that lead nowhere are found out while all can hear of
 * it. */
static weft_status probe(wefti_ofi *ofi)
{
    const wefti_view *view = ofi->setup.view;
    const uint64_t patience_ns = ofi->setup.deadline_ns / 2 < PROBE_NS ? ofi->setup.deadline_ns / 2 : PROBE_NS;
    return view->pe != view->near_first || view->pe == 0 || !ofi->peers[0].is_known
               ? WEFT_OK
               : wefti_ofi_probe(ofi, 0, wefti_os_now_ns() + patience_ns);
}

static weft_status connect_all(wefti_transport *transport, weft_status made, const offer *mine)
{
    const wefti_transport_exchange *exchange = transport->setup.exchange;
    offer *all = wefti_alloc((size_t)transport->setup.pes * sizeof *all);
    if (all == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", transport->setup.pes);
    }
    weft_status status = exchange->allgather(exchange->context, mine, all, sizeof *mine);
    if (status == WEFT_OK && made == WEFT_OK) {
        wefti_ofi *ofi = transport->state;
        status = meet(ofi, &mine->address, all);
        if (status == WEFT_OK) {
            post_all(ofi);
            status = wefti_ofi_progress_start(ofi);
            status = status == WEFT_OK ? wefti_watch_start(ofi->watch, &all->contact, sizeof *all) : status;
            status = status == WEFT_OK ? probe(ofi) : status;
        }
    }
    wefti_free(all);
    return status;
}

static weft_status ofi_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    offer mine = {0};
    char text[WEFTI_ERROR_BYTES];
    transport->setup = *setup;
    transport->state = NULL;
    weft_status made = make(transport, &mine);
    if (made != WEFT_OK) {
        memset(&mine, 0, sizeof mine);
        memcpy(text, wefti_thread_text(), sizeof text);
    }
    weft_status met = connect_all(transport, made, &mine);
    if (made != WEFT_OK && met == WEFT_OK) {
        met = wefti_error_relay(made, text);
    }
    if (met != WEFT_OK) {
        ofi_free(transport->state);
        transport->state = NULL;
    }
    return met;
}

static void ofi_close(wefti_transport *transport)
{
    wefti_ofi *ofi = transport->state;
    wefti_ofi_say_farewell(ofi, wefti_os_now_ns() + CLOSING_NS);
    ofi_free(ofi);
    transport->state = NULL;
}

static wefti_transport_fate ofi_fate(const wefti_transport *transport, int pe)
{
    return wefti_watch_fate(((const wefti_ofi *)transport->state)->watch, pe);
}

static int ofi_reaches(const wefti_transport *transport, int pe)
{
    const wefti_ofi *ofi = transport->state;
    return pe >= 0 && pe < transport->setup.pes && ofi->peers[pe].is_known;
}

static void ofi_describe(const wefti_transport *transport, char *text, size_t bytes)
{
    const wefti_fabric *fabric = &((const wefti_ofi *)transport->state)->fabric;
    static const char *const large[] = {[WEFTI_FABRIC_NO_RMA] = "",
                                        [WEFTI_FABRIC_RMA_COMPLETES] = ", large puts by itself, each to its completion",
                                        [WEFTI_FABRIC_RMA_ORDERED] = ", large puts by itself, in its order"};
    (void)snprintf(text, bytes, "on %s (%s): %s%s%s", wefti_ofi_interface_name(fabric->info),
                   fabric->info->fabric_attr->prov_name, fabric->reason, large[fabric->rma],
                   transport->setup.progress_inline ? ", seen to in calls" : "");
}

static void ofi_pause(wefti_transport *transport, uint64_t sleep_ns)
{
    wefti_ofi *ofi = transport->state;
    wefti_os_monitor_enter(ofi->lock);
    if (!wefti_ofi_poll(ofi)) {
        wefti_ofi_idle(ofi, sleep_ns);
    }
    wefti_os_monitor_leave(ofi->lock);
}

const wefti_transport_ops wefti_transport_ofi = {
    .name = "ofi",
    .open = ofi_open,
    .close = ofi_close,
    .reaches = ofi_reaches,
    .describe = ofi_describe,
    .put = wefti_ofi_put,
    .get = wefti_ofi_get,
    .put_signal = wefti_ofi_put_signal,
    .amo = wefti_ofi_amo,
    .pause = ofi_pause,
    .read_soon = wefti_ofi_read_soon,
    .find_silent = wefti_ofi_find_silent,
    .fate = ofi_fate,
    .fence = wefti_ofi_fence,
    .quiet = wefti_ofi_quiet,
};
