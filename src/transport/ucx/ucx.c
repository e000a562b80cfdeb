/* `ucx`: PEs of other nodes, over UCX: the wire of the protocol in `am`. Requests and replies are active messages of
 * two numbers between the same endpoints: what comes is always taken, since the library keeps what has no buffer yet,
 * which credits bound. Small and large active messages may overtake one another, so requests are numbered, and come up
 * in that order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "os/os.h"
#include "os/socket.h"
#include "transport/am/am.h"
#include "transport/ucx/devices.h"
#include "transport/ucx/library.h"

#define WORDS_BYTES 120
#define SLEEP_MS 10 /* UCX 1.13 has been seen not to make its descriptor readable for a peer that connects */
#define CLOSING_NS UINT64_C(500000000) /* for what is still to be sent, at the end */
/* Requests of a PE that may be there before an earlier one; credits let it send half as many. */
#define WINDOW ((uint32_t)2 * WEFTI_AM_CREDITS_MAX)

/* What goes before each message: the key of the world; messages without it are dropped. */
typedef struct token {
    uint64_t world;
    uint32_t from;
    uint32_t number; /* of a request: so many went to this PE before */
} token;

/* The wire's part of a buffer. */
typedef struct ucx_state {
    token token; /* the library's while the message is being sent */
    wefti_am_buffer *next;
    struct wire_state *state;
    uint64_t has_failed;
} ucx_state;
_Static_assert(sizeof(ucx_state) <= sizeof((wefti_am_buffer *)0)->context, "the wire's part has room");

typedef struct address {
    uint32_t bytes;
    uint16_t major;
    uint16_t minor;
    unsigned char name[WEFTI_WIRE_ADDRESS_BYTES_MAX - 8];
} address;
_Static_assert(sizeof(address) == WEFTI_WIRE_ADDRESS_BYTES_MAX, "no padding is sent");

/* A request that came while there was no buffer, or before an earlier one: the library's memory. NULL: none. */
typedef struct held {
    void *data;
    size_t bytes;
} held;

typedef struct peer {
    struct wire_state *state;
    void *name; /* the library's address of it; NULL: not known */
    ucp_ep_h endpoint; /* NULL: not connected yet, or closed */
    void *closing; /* the library's request to close it; NULL: none */
    uint32_t sent; /* requests, to it */
    uint32_t taken; /* requests of it that went up */
    uint8_t has_failed;
    uint8_t is_told; /* the protocol knows that it has failed */
    held held[WINDOW]; /* by their numbers */
} peer;

typedef struct queue {
    wefti_am_buffer *first;
    wefti_am_buffer *last;
} queue;

typedef struct wire_state {
    const wefti_ucx_library *lib;
    wefti_wire *wire;
    wefti_ucx_devices devices;
    ucp_context_h context;
    ucp_worker_h worker;
    uint64_t world;
    uint32_t number; /* of this PE */
    int pes;
    peer *peers; /* [pes] */
    wefti_am_buffer *posted[WEFTI_WIRE_CHANNELS];
    queue done;
    uint32_t held; /* of all peers */
    uint32_t failed; /* peers of which the protocol has not been told */
    uint32_t closing; /* endpoints that are still being closed */
    int happened; /* something went up */
    int is_stopping;
    int is_stuck; /* at the end something was still on its way to a PE that does not take it */
} wire_state;

static ucx_state *ucx_state_of(wefti_am_buffer *buffer)
{
    return (ucx_state *)(void *)buffer->context;
}

/* ---- what has been sent ---- */

static void append(queue *to, wefti_am_buffer *buffer)
{
    ucx_state_of(buffer)->next = NULL;
    if (to->first == NULL) {
        to->first = buffer;
    } else {
        ucx_state_of(to->last)->next = buffer;
    }
    to->last = buffer;
}

static void finish(wire_state *state, wefti_am_buffer *buffer, ucs_status_t status)
{
    ucx_state_of(buffer)->has_failed = status != UCS_OK;
    append(&state->done, buffer);
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    wefti_am_buffer *buffer = argument;
    wire_state *state = ucx_state_of(buffer)->state;
    state->lib->request_free(request);
    finish(state, buffer, status);
}

static void tell_done(wire_state *state)
{
    while (state->done.first != NULL) {
        wefti_am_buffer *buffer = state->done.first;
        state->done.first = ucx_state_of(buffer)->next;
        state->happened = 1;
        if (ucx_state_of(buffer)->has_failed) {
            wefti_am_failed(state->wire->am, buffer);
        } else {
            wefti_am_completed(state->wire->am, buffer, 0);
        }
    }
}

/* ---- endpoints ---- */

static void close_endpoint(peer *at, uint32_t flags)
{
    wire_state *state = at->state;
    const ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    ucs_status_ptr_t request = state->lib->ep_close(at->endpoint, &parameters);
    at->endpoint = NULL;
    at->closing = UCS_PTR_IS_PTR(request) ? request : NULL;
    state->closing += at->closing != NULL;
}

/* Free the requests to close that are done; if is_end, also those that are not, which nobody waits for any more. */
static void end_closing(wire_state *state, int is_end)
{
    for (int pe = 0; state->closing > 0 && pe < state->pes; pe++) {
        peer *at = &state->peers[pe];
        if (at->closing != NULL && (is_end || state->lib->request_check_status(at->closing) != UCS_INPROGRESS)) {
            state->lib->request_free(at->closing);
            at->closing = NULL;
            state->closing--;
        }
    }
}

static void note_failure(peer *at)
{
    at->state->failed += !at->has_failed;
    at->has_failed = 1;
}

/* In the library's progress. */
static void fail(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint;
    (void)status;
    note_failure(argument);
}

static void tell_failed(wire_state *state)
{
    for (int pe = 0; state->failed > 0 && pe < state->pes; pe++) {
        peer *at = &state->peers[pe];
        if (at->has_failed && !at->is_told) {
            at->is_told = 1;
            state->failed--;
            state->happened = 1;
            if (at->endpoint != NULL) {
                close_endpoint(at, UCP_EP_CLOSE_FLAG_FORCE);
            }
            wefti_am_lose(state->wire->am, (uint32_t)pe);
        }
    }
}

/* Connected when something is first sent. */
static int connect_now(peer *at)
{
    const ucp_ep_params_t parameters = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                        .address = at->name,
                                        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                        .err_handler = {.cb = fail, .arg = at}};
    if (at->endpoint == NULL && at->state->lib->ep_create(at->state->worker, &parameters, &at->endpoint) != UCS_OK) {
        at->endpoint = NULL;
        note_failure(at);
    }
    return !at->has_failed;
}

/* ---- what comes ---- */

static wefti_am_buffer *take_posted(wire_state *state, int channel)
{
    wefti_am_buffer *buffer = state->posted[channel];
    state->posted[channel] = ucx_state_of(buffer)->next;
    return buffer;
}

static void hand_up(wire_state *state, int channel, const void *data, size_t bytes)
{
    wefti_am_buffer *buffer = take_posted(state, channel);
    memcpy(buffer->header, data, bytes);
    state->happened = 1;
    wefti_am_completed(state->wire->am, buffer, bytes);
}

/* The requests that are next of a PE, as far as there are buffers. */
static void hand_up_held(peer *at)
{
    wire_state *state = at->state;
    for (held *next = &at->held[at->taken % WINDOW]; next->data != NULL && state->posted[WEFTI_WIRE_REQUESTS] != NULL;
         next = &at->held[at->taken % WINDOW]) {
        hand_up(state, WEFTI_WIRE_REQUESTS, next->data, next->bytes);
        state->lib->am_data_release(state->worker, next->data);
        next->data = NULL;
        state->held--;
        at->taken++;
    }
}

static void hand_up_all_held(wire_state *state)
{
    for (int pe = 0; state->held > 0 && pe < state->pes; pe++) {
        hand_up_held(&state->peers[pe]);
    }
}

/* Whether a message is one of this world, whole, and not longer than it may be; anybody may send. */
static int is_ours(const wire_state *state, const token *first, size_t bytes, const ucp_am_recv_param_t *what)
{
    return (what->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 && bytes <= WEFTI_AM_MESSAGE_MAX &&
           first->world == state->world && first->from < (uint32_t)state->pes &&
           state->peers[first->from].name != NULL && !state->is_stopping;
}

static int read_token(token *first, const void *header, size_t bytes)
{
    if (bytes != sizeof *first) {
        return 0;
    }
    memcpy(first, header, sizeof *first);
    return 1;
}

static ucs_status_t take_request(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                 const ucp_am_recv_param_t *what)
{
    wire_state *state = argument;
    token first;
    if (!read_token(&first, header, header_bytes) || !is_ours(state, &first, bytes, what)) {
        return UCS_OK; /* dropped */
    }
    peer *at = &state->peers[first.from];
    held *place = &at->held[first.number % WINDOW];
    if (first.number == at->taken && state->posted[WEFTI_WIRE_REQUESTS] != NULL) {
        hand_up(state, WEFTI_WIRE_REQUESTS, data, bytes);
        at->taken++;
        hand_up_held(at);
        return UCS_OK;
    }
    if (first.number - at->taken >= WINDOW || place->data != NULL) {
        return UCS_OK;
    }
    *place = (held){data, bytes};
    state->held++;
    return UCS_INPROGRESS; /* the memory is kept until it is given back */
}

/* Who takes a reply has done with it at once, and its buffer is posted again. */
static ucs_status_t take_reply(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                               const ucp_am_recv_param_t *what)
{
    wire_state *state = argument;
    token first;
    if (read_token(&first, header, header_bytes) && is_ours(state, &first, bytes, what) &&
        state->posted[WEFTI_WIRE_REPLIES] != NULL) {
        hand_up(state, WEFTI_WIRE_REPLIES, data, bytes);
    }
    return UCS_OK;
}

/* ---- the wire: messages ---- */

static int ucx_post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    wire_state *state = wire->state;
    ucx_state_of(buffer)->next = state->posted[channel];
    state->posted[channel] = buffer;
    return 1;
}

static wefti_wire_answer ucx_send(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    wire_state *state = wire->state;
    peer *at = &state->peers[buffer->pe];
    const ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                            UCP_OP_ATTR_FIELD_FLAGS,
                                            .flags = UCP_AM_SEND_FLAG_EAGER,
                                            .cb.send = sent,
                                            .user_data = buffer};
    if (!connect_now(at)) {
        return WEFTI_WIRE_LOST;
    }
    ucx_state_of(buffer)->token = (token){state->world, state->number, at->sent};
    ucx_state_of(buffer)->state = state;
    ucs_status_ptr_t request = state->lib->am_send(at->endpoint, (unsigned)channel, &ucx_state_of(buffer)->token,
                                                   sizeof(token), buffer->header, buffer->bytes, &parameters);
    if (UCS_PTR_IS_ERR(request)) {
        note_failure(at);
        return WEFTI_WIRE_LOST;
    }
    at->sent += channel == WEFTI_WIRE_REQUESTS;
    if (request == NULL) {
        finish(state, buffer, UCS_OK);
    }
    return WEFTI_WIRE_TAKEN;
}

static int ucx_poll(wefti_wire *wire, int channel)
{
    wire_state *state = wire->state;
    (void)channel; /* both have the same endpoints */
    state->happened = 0;
    (void)state->lib->worker_progress(state->worker);
    tell_done(state);
    hand_up_all_held(state);
    tell_failed(state);
    end_closing(state, 0);
    return state->happened;
}

static int ucx_can_sleep(wefti_wire *wire)
{
    wire_state *state = wire->state;
    return state->done.first == NULL && state->held == 0 && state->failed == 0 &&
           state->lib->worker_arm(state->worker) == UCS_OK;
}

/* ---- opening and closing ---- */

static weft_status failed(const wire_state *state, const char *what, ucs_status_t status)
{
    char interfaces[WORDS_BYTES];
    wefti_os_link_list(interfaces, sizeof interfaces);
    return wefti_error(WEFT_ERR_UNREACHABLE,
                       "UCX %s cannot open %s: %s (UCX_TLS is %s, UCX_NET_DEVICES %s; this host has %s)",
                       state->lib->get_version_string(), what, state->lib->status_string(status),
                       wefti_env_foreign("UCX_TLS"), wefti_env_foreign("UCX_NET_DEVICES"), interfaces);
}

/* The plan's, for this context alone. Of several rails each message of more than a fragment goes by all, which UCX does
 * with what it copies only. What the environment has counts. */
static ucs_status_t set_devices(const wire_state *state, ucp_config_t *config)
{
    char rails[16];
    if (state->devices.count == 0) {
        return UCS_OK;
    }
    (void)snprintf(rails, sizeof rails, "%d", state->devices.count);
    ucs_status_t status = state->lib->config_modify(config, "NET_DEVICES", state->devices.names);
    if (status == UCS_OK && getenv("UCX_MAX_EAGER_RAILS") == NULL && getenv("UCX_MAX_EAGER_LANES") == NULL) {
        status = state->lib->config_modify(config, "MAX_EAGER_RAILS", rails);
    }
    if (status == UCS_OK && state->devices.count > 1 && getenv("UCX_ZCOPY_THRESH") == NULL) {
        status = state->lib->config_modify(config, "ZCOPY_THRESH", "inf");
    }
    return status;
}

static weft_status open_context(wire_state *state, const wefti_wire_wish *wish)
{
    ucp_config_t *config;
    ucs_status_t status = state->lib->config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return failed(state, "its settings", status);
    }
    (void)state->lib->config_modify(config, "RCACHE_ENABLE", "n"); /* it would watch memory; older ones have none */
    status = set_devices(state, config);
    if (status != UCS_OK) {
        state->lib->config_release(config);
        return failed(state, "the plan's interfaces", status);
    }
    const ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                                                   UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                     .features = UCP_FEATURE_AM | (wish->can_wake ? UCP_FEATURE_WAKEUP : 0),
                                     .mt_workers_shared = 0,
                                     .estimated_num_eps = (size_t)wish->pes};
    status = state->lib->init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &state->context);
    state->lib->config_release(config);
    return status == UCS_OK ? WEFT_OK : failed(state, "a network", status);
}

/* All calls are under the protocol's lock, but from several threads. */
static weft_status open_worker(wire_state *state)
{
    const ucp_worker_params_t parameters = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                            .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};
    ucs_status_t status = wefti_ucx_create_worker(state->context, &parameters, &state->worker);
    if (status != UCS_OK) {
        state->worker = NULL;
        return failed(state, "an interface", status);
    }
    status = state->lib->worker_query(state->worker, &attributes);
    return status == UCS_OK && attributes.thread_mode >= UCS_THREAD_MODE_SERIALIZED
               ? WEFT_OK
               : failed(state, "an interface that several threads use in turn",
                        status == UCS_OK ? UCS_ERR_UNSUPPORTED : status);
}

static weft_status set_handlers(wire_state *state)
{
    static const ucp_am_recv_callback_t handlers[WEFTI_WIRE_CHANNELS] = {
        [WEFTI_WIRE_REQUESTS] = take_request, [WEFTI_WIRE_REPLIES] = take_reply};
    for (unsigned channel = 0; channel < WEFTI_WIRE_CHANNELS; channel++) {
        const ucp_am_handler_param_t parameters = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = channel,
            .flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA,
            .cb = handlers[channel],
            .arg = state};
        ucs_status_t status = state->lib->set_am_recv_handler(state->worker, &parameters);
        if (status != UCS_OK) {
            return failed(state, "active messages", status);
        }
    }
    return WEFT_OK;
}

/* The addresses of networks alone: PEs that can share memory do so otherwise. */
static weft_status tell_address(wire_state *state, address *mine)
{
    ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                                    .address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    unsigned major;
    unsigned minor;
    unsigned release;
    ucs_status_t status = state->lib->worker_query(state->worker, &attributes);
    if (status != UCS_OK) {
        return failed(state, "an address", status);
    }
    const size_t bytes = attributes.address_length;
    if (bytes <= sizeof mine->name) {
        memcpy(mine->name, attributes.address, bytes);
    }
    state->lib->worker_release_address(state->worker, attributes.address);
    state->lib->get_version(&major, &minor, &release);
    mine->bytes = (uint32_t)bytes;
    mine->major = (uint16_t)major;
    mine->minor = (uint16_t)minor;
    return bytes <= sizeof mine->name
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNREACHABLE,
                             "UCX's address of this PE has %zu bytes, of all its interfaces, and "
                             "%zu are room; name those to use in UCX_NET_DEVICES",
                             bytes, sizeof mine->name);
}

static weft_status open_all(wire_state *state, const wefti_wire_wish *wish, address *mine)
{
    WEFT_TRY(wefti_ucx_load(&state->lib));
    WEFT_TRY(wefti_ucx_devices_choose(&wish->pe, &state->devices));
    state->peers = wefti_alloc_zeroed((size_t)wish->pes, sizeof *state->peers);
    if (state->peers == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for connections with %d PEs", wish->pes);
    }
    for (int pe = 0; pe < wish->pes; pe++) {
        state->peers[pe].state = state;
    }
    WEFT_TRY(open_context(state, wish));
    WEFT_TRY(open_worker(state));
    WEFT_TRY(set_handlers(state));
    if (wish->can_wake) {
        ucs_status_t status = state->lib->worker_get_efd(state->worker, &state->wire->wake[0]);
        if (status != UCS_OK) {
            return failed(state, "a descriptor to sleep on", status);
        }
        state->wire->wakes = 1;
        state->wire->sleep_ms = SLEEP_MS;
    }
    return tell_address(state, mine);
}

static void state_free(wire_state *state)
{
    if (state->worker != NULL) {
        state->lib->worker_destroy(state->worker);
    }
    if (state->context != NULL) {
        state->lib->cleanup(state->context);
    }
    for (int pe = 0; state->peers != NULL && pe < state->pes; pe++) {
        wefti_free(state->peers[pe].name);
    }
    wefti_free(state->peers);
    wefti_free(state);
}

static weft_status ucx_open_wire(wefti_wire *wire, const wefti_wire_wish *wish, void *mine)
{
    wire_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a network");
    }
    state->wire = wire;
    state->world = wish->world;
    state->number = (uint32_t)wish->number;
    state->pes = wish->pes;
    weft_status status = open_all(state, wish, mine);
    if (status != WEFT_OK) {
        state_free(state);
        return status;
    }
    wire->state = state;
    wire->rma = WEFTI_WIRE_NO_RMA;
    return WEFT_OK;
}

static weft_status ucx_connect(wefti_wire *wire, int pe, const void *mine, const void *other)
{
    wire_state *state = wire->state;
    const address *own = mine;
    const address *at = other;
    if (at->major != own->major || at->minor != own->minor) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "this PE has UCX %u.%u, and PE %d %u.%u; use one version on all hosts, or leave UCX out by "
                           "WEFT_TRANSPORT=^ucx",
                           own->major, own->minor, pe, at->major, at->minor);
    }
    void *name = wefti_alloc(at->bytes);
    if (name == NULL || at->bytes > sizeof at->name) {
        wefti_free(name);
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the address of PE %d", pe);
    }
    state->peers[pe].name = memcpy(name, at->name, at->bytes);
    return WEFT_OK;
}

static void drop_held(peer *at)
{
    for (uint32_t i = 0; i < WINDOW; i++) {
        if (at->held[i].data != NULL) {
            at->state->lib->am_data_release(at->state->worker, at->held[i].data);
            at->held[i].data = NULL;
        }
    }
}

static void progress(const wire_state *state)
{
    if (state->lib->worker_progress(state->worker) == 0) {
        wefti_os_yield();
    }
}

/* Of endpoints that the library has made for who connects, too. Whether all has gone its way. */
static int flush(const wire_state *state, uint64_t until_ns)
{
    const ucp_request_param_t none = {0};
    ucs_status_ptr_t request = state->lib->worker_flush(state->worker, &none);
    if (!UCS_PTR_IS_PTR(request)) {
        return 1;
    }
    while (state->lib->request_check_status(request) == UCS_INPROGRESS && wefti_os_now_ns() < until_ns) {
        progress(state);
    }
    const int is_done = state->lib->request_check_status(request) != UCS_INPROGRESS;
    state->lib->request_free(request);
    return is_done;
}

/* What has been given to the library is still sent, to those that are there. */
static void ucx_stop(wefti_wire *wire)
{
    wire_state *state = wire->state;
    const uint64_t until_ns = wefti_os_now_ns() + CLOSING_NS;
    state->is_stopping = 1;
    for (int pe = 0; pe < state->pes; pe++) {
        peer *at = &state->peers[pe];
        drop_held(at);
        if (at->endpoint != NULL) {
            close_endpoint(at, at->has_failed || wire->am->peers[pe].is_lost ? UCP_EP_CLOSE_FLAG_FORCE : 0);
        }
    }
    while (state->closing > 0 && wefti_os_now_ns() < until_ns) {
        progress(state);
        end_closing(state, 0);
    }
    state->is_stuck = state->closing > 0 || !flush(state, until_ns);
    end_closing(state, 1);
}

/* Debian's UCX 1.13 ends the process (an assertion) where a worker is destroyed while an answer to a PE that connects,
 * and is stopped meanwhile, waits: such a one stays, with what its callbacks use. */
static void ucx_close(wefti_wire *wire)
{
    wire_state *state = wire->state;
    wire->state = NULL;
    if (state->is_stuck) {
        wefti_log(WEFTI_LOG_INFO, "a PE does not take what UCX still has for it: its worker is left until the end of "
                                  "the process");
        return;
    }
    state_free(state);
}

/* ---- words ---- */

static const struct sockaddr *ucx_host(const void *mine, struct sockaddr_storage *room)
{
    (void)mine;
    (void)room;
    return NULL; /* its addresses are not to be read */
}

static void ucx_describe(const wefti_wire *wire, char *text, size_t bytes)
{
    const wire_state *state = wire->state;
    const int is_planned = state->devices.count > 0;
    const char *devices = is_planned ? state->devices.names : getenv("UCX_NET_DEVICES");
    (void)snprintf(text, bytes, "on %s (UCX %s)%s%s", devices != NULL ? devices : "what UCX has chosen",
                   state->lib->get_version_string(), is_planned ? ": " : "", state->devices.reason);
}

static void ucx_name(const wefti_wire *wire, char *text, size_t bytes)
{
    const wire_state *state = wire->state;
    char interfaces[WORDS_BYTES];
    wefti_os_link_list(interfaces, sizeof interfaces);
    (void)snprintf(text, bytes, "UCX %s (UCX_TLS is %s, UCX_NET_DEVICES %s; this host has %s)",
                   state->lib->get_version_string(), wefti_env_foreign("UCX_TLS"), wefti_env_foreign("UCX_NET_DEVICES"),
                   interfaces);
}

static const wefti_wire_ops wire_ops = {
    .address_bytes = sizeof(address),
    .open = ucx_open_wire,
    .stop = ucx_stop,
    .close = ucx_close,
    .connect = ucx_connect,
    .host = ucx_host,
    .describe = ucx_describe,
    .name = ucx_name,
    .post = ucx_post,
    .send = ucx_send,
    .poll = ucx_poll,
    .can_sleep = ucx_can_sleep,
    .remedy = "in UCX_NET_DEVICES",
};

static weft_status ucx_open(wefti_transport *transport, const wefti_transport_setup *setup)
{
    return wefti_am_open(transport, setup, &wire_ops);
}

const wefti_transport_ops wefti_transport_ucx = WEFTI_AM_OPS("ucx", ucx_open);
