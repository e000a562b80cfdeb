/* Opening and closing a PE's end of a network. */
#include "transport/am/am.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread_state.h"
#include "os/socket.h"

#define PROBE_NS UINT64_C(5000000000) /* for PE 0's first answer */
#define WATCHES_NS UINT64_C(500000000) /* for the connections by which PEs that end are noticed */
#define CLOSING_NS UINT64_C(2000000000) /* to deliver what this PE has sent, at the end */
#define LINK_NS UINT64_C(5000000000) /* for a link that is about to be up */
#define NAME_BYTES 240
#define LOOKS_MAX 64

/* ---- memory for messages ---- */

static size_t stride(void)
{
    return (WEFTI_AM_MESSAGE_MAX + 63) / 64 * 64;
}

static wefti_am_role role_of(int number)
{
    return number < WEFTI_AM_REQUESTS_IN                           ? WEFTI_AM_REQUEST_IN
           : number < WEFTI_AM_REQUESTS_IN + WEFTI_AM_REQUESTS_OUT ? WEFTI_AM_REQUEST_OUT
                                                                   : WEFTI_AM_REPLY_IN;
}

static void set_buffers(wefti_am *am)
{
    for (int i = 0; i < WEFTI_AM_BUFFERS; i++) {
        wefti_am_buffer *buffer = &am->buffers[i];
        buffer->header = (wefti_am_header *)(void *)(am->memory + (size_t)i * stride());
        buffer->role = role_of(i);
        if (buffer->role == WEFTI_AM_REQUEST_OUT) {
            buffer->next = am->free_out;
            am->free_out = buffer;
            am->free_out_count++;
        }
    }
}

static void post_all(wefti_am *am)
{
    for (int i = 0; i < WEFTI_AM_BUFFERS; i++) {
        if (am->buffers[i].role != WEFTI_AM_REQUEST_OUT) {
            wefti_am_post(am, &am->buffers[i]);
        }
    }
}

/* ---- opening ---- */

/* What PEs tell each other; the wire's address follows. */
typedef struct offer {
    wefti_watch_contact contact;
    uint64_t is_made; /* 0: this PE has failed */
} offer;

static const void *address_in(const offer *one)
{
    return one + 1;
}

static size_t offer_bytes(const wefti_wire_ops *wire)
{
    return sizeof(offer) + (wire->address_bytes + 7) / 8 * 8;
}

static const offer *offer_of(const offer *all, const wefti_wire_ops *wire, int pe)
{
    return (const offer *)(const void *)((const unsigned char *)all + (size_t)pe * offer_bytes(wire));
}

static void am_free(wefti_am *am)
{
    if (am != NULL) {
        wefti_watch_destroy(am->watch);
        wefti_am_progress_stop(am);
        if (am->wire.state != NULL) {
            am->wire.ops->stop(&am->wire);
            wefti_am_rma_fini(am);
            am->wire.ops->close(&am->wire);
        }
        if (am->lock != NULL) {
            wefti_os_monitor_destroy(am->lock);
        }
        wefti_free(am->peers);
        wefti_free(am->memory);
        wefti_free(am);
    }
}

/* The watch has found out that `pe` is gone. A PE that leaves tells only those that it has met, so one that has just
 * asked it something learns it here; answers that came before are taken first. */
static void lose(void *context, int pe, wefti_transport_fate fate)
{
    wefti_am *am = context;
    wefti_am_enter(am);
    for (int looks = 0; fate == WEFTI_FATE_LEFT && looks < LOOKS_MAX && wefti_am_progress(am); looks++) {
    }
    if (fate == WEFTI_FATE_LEFT) {
        wefti_am_note_left(am, (uint32_t)pe);
    } else {
        wefti_am_lose(am, (uint32_t)pe);
    }
    (void)wefti_am_leave(am, WEFT_OK);
}

/* Its connections go to the hosts' addresses on this network, if they are addresses for TCP. */
static weft_status make_watch(wefti_am *am, offer *mine)
{
    struct sockaddr_storage room;
    const wefti_watch_setup setup = {
        .world = &am->setup, .host = am->wire.ops->host(address_in(mine), &room), .lost = lose, .context = am};
    return wefti_watch_create(&setup, &am->watch, &mine->contact);
}

/* The network is opened before a world gets its device, but which GPU that will be is mostly known. */
static wefti_topo_pci find_gpu(const wefti_transport_setup *setup)
{
    char text[WEFTI_TOPO_PCI_BYTES];
    wefti_topo_pci pci;
    return setup->gpu != NULL && setup->gpu->find_pci(setup->gpu->config, text, sizeof text) &&
                   wefti_topo_pci_parse(text, &pci)
               ? pci
               : WEFTI_TOPO_PCI_NONE;
}

static weft_status make(wefti_transport *transport, const wefti_wire_ops *wire, offer *mine)
{
    const size_t pes = (size_t)transport->setup.pes;
    wefti_am *am = wefti_alloc_zeroed(1, sizeof *am);
    if (am == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a network");
    }
    transport->state = am;
    am->setup = transport->setup;
    am->setup.gpu = NULL;
    am->bell = -1;
    am->wire = (wefti_wire){.ops = wire, .am = am, .sleep_ms = -1};
    wefti_wire_wish wish = {
        .can_wake = !am->setup.progress_inline, .world = am->setup.world, .number = am->setup.pe, .pes = am->setup.pes};
    WEFT_TRY(wefti_am_rma_settings(am, &wish.rma));
    const size_t messages = WEFTI_AM_BUFFERS * stride();
    const size_t memory = messages + (wish.rma != WEFTI_WIRE_NO_RMA ? WEFTI_AM_RMA_MAX * WEFTI_AM_RMA_BYTES : 0);
    am->memory = wefti_alloc(memory);
    am->peers = wefti_alloc_zeroed(pes, sizeof *am->peers);
    if (am->memory == NULL || am->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for messages over the network");
    }
    set_buffers(am);
    am->requests_free = WEFTI_AM_WAITING_MAX;
    for (size_t pe = 0; pe < pes; pe++) {
        am->peers[pe].credits = WEFTI_AM_CREDITS_MAX;
    }
    WEFT_TRY(wefti_os_monitor_create(&am->lock));
    wish.pe = (wefti_topo_pe){.gpu = find_gpu(&transport->setup),
                              .numa = wefti_os_numa_here(),
                              .number = am->setup.pe - (int)am->setup.view->near_first,
                              .count = (int)am->setup.view->near_count};
    wish.memory = am->memory;
    wish.bytes = memory;
    const uint64_t patience_ns = am->setup.deadline_ns / 4;
    wefti_os_link_await(patience_ns < LINK_NS ? patience_ns : LINK_NS);
    WEFT_TRY(wire->open(&am->wire, &wish, mine + 1));
    if (am->wire.rma != WEFTI_WIRE_NO_RMA) {
        wefti_am_rma_init(am, am->memory + messages);
    }
    mine->is_made = 1;
    return make_watch(am, mine);
}

/* The addresses of all PEs of other nodes. */
static weft_status meet(wefti_am *am, const offer *mine, const offer *all)
{
    for (int pe = 0; pe < am->setup.pes; pe++) {
        const offer *other = offer_of(all, am->wire.ops, pe);
        if (!other->is_made) {
            continue; /* it has failed, and says so at the end of this step */
        }
        WEFT_TRY(am->wire.ops->connect(&am->wire, pe, address_in(mine), address_in(other)));
        am->peers[pe].is_known = 1;
    }
    return WEFT_OK;
}

/* One PE of each other node sees whether PE 0 answers: addresses that lead nowhere are found out while all can hear of
 * it. */
static weft_status probe(wefti_am *am)
{
    const wefti_view *view = am->setup.view;
    const uint64_t last_ns = am->setup.deadline_ns / 2;
    return view->pe != view->near_first || view->pe == 0 || !am->peers[0].is_known
               ? WEFT_OK
               : wefti_am_probe(am, 0, last_ns < PROBE_NS ? last_ns : PROBE_NS, wefti_os_now_ns() + last_ns);
}

/* Who ends before its connections stand cannot be told from one that a firewall hides. So nobody goes on before they do
 * (all meet after this step), unless they take long, as where a firewall swallows what is sent. */
static void await_watch(const wefti_am *am)
{
    const uint64_t most_ns = am->setup.deadline_ns / 4;
    wefti_watch_await(am->watch, wefti_os_now_ns() + (most_ns < WATCHES_NS ? most_ns : WATCHES_NS));
}

static weft_status start(wefti_am *am, const offer *mine, const offer *all)
{
    WEFT_TRY(meet(am, mine, all));
    post_all(am);
    WEFT_TRY(wefti_am_progress_start(am));
    WEFT_TRY(wefti_watch_start(am->watch, &all->contact, offer_bytes(am->wire.ops)));
    WEFT_TRY(probe(am));
    await_watch(am);
    return WEFT_OK;
}

static weft_status connect_all(wefti_transport *transport, const wefti_wire_ops *wire, weft_status made,
                               const offer *mine)
{
    const wefti_transport_exchange *exchange = transport->setup.exchange;
    offer *all = wefti_alloc((size_t)transport->setup.pes * offer_bytes(wire));
    if (all == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the addresses of %d PEs", transport->setup.pes);
    }
    weft_status status = exchange->allgather(exchange->context, mine, all, offer_bytes(wire));
    if (status == WEFT_OK && made == WEFT_OK) {
        status = start(transport->state, mine, all);
    }
    wefti_free(all);
    return status;
}

weft_status wefti_am_open(wefti_transport *transport, const wefti_transport_setup *setup, const wefti_wire_ops *wire)
{
    union {
        offer mine;
        unsigned char room[sizeof(offer) + WEFTI_WIRE_ADDRESS_BYTES_MAX];
    } told;
    char text[WEFTI_ERROR_BYTES];
    memset(&told, 0, sizeof told);
    transport->setup = *setup;
    transport->state = NULL;
    weft_status made = make(transport, wire, &told.mine);
    if (made != WEFT_OK) {
        memset(&told, 0, sizeof told);
        memcpy(text, wefti_thread_text(), sizeof text);
    }
    weft_status met = connect_all(transport, wire, made, &told.mine);
    if (made != WEFT_OK && met == WEFT_OK) {
        met = wefti_error_relay(made, text);
    }
    if (met != WEFT_OK) {
        am_free(transport->state);
        transport->state = NULL;
    }
    return met;
}

void wefti_am_close(wefti_transport *transport)
{
    wefti_am *am = transport->state;
    wefti_am_send_leave(am, wefti_os_now_ns() + CLOSING_NS);
    am_free(am);
    transport->state = NULL;
}

/* The end of a connection may look like the PE's; its own word, that it leaves, counts for more. */
wefti_transport_fate wefti_am_fate(const wefti_transport *transport, int pe)
{
    const wefti_am *am = transport->state;
    const int has_left = __atomic_load_n(&am->peers[pe].has_left, __ATOMIC_ACQUIRE);
    return has_left ? WEFTI_FATE_LEFT : wefti_watch_fate(am->watch, pe);
}

int wefti_am_reaches(const wefti_transport *transport, int pe)
{
    const wefti_am *am = transport->state;
    return pe >= 0 && pe < transport->setup.pes && am->peers[pe].is_known;
}

void wefti_am_describe(const wefti_transport *transport, char *text, size_t bytes)
{
    const wefti_wire *wire = &((const wefti_am *)transport->state)->wire;
    static const char *const large[] = {[WEFTI_WIRE_NO_RMA] = "",
                                        [WEFTI_WIRE_RMA_COMPLETES] = ", large puts by itself, each to its completion",
                                        [WEFTI_WIRE_RMA_COUNTED] = ", large puts by itself, counted as they arrive",
                                        [WEFTI_WIRE_RMA_ORDERED] = ", large puts by itself, in its order"};
    char name[NAME_BYTES];
    wire->ops->describe(wire, name, sizeof name);
    (void)snprintf(text, bytes, "%s%s%s", name, large[wire->rma],
                   transport->setup.progress_inline ? ", seen to in calls" : "");
}

void wefti_am_pause(wefti_transport *transport, uint64_t sleep_ns)
{
    wefti_am *am = transport->state;
    wefti_os_monitor_enter(am->lock);
    if (!wefti_am_poll(am)) {
        wefti_am_idle(am, sleep_ns);
    }
    wefti_os_monitor_leave(am->lock);
}
