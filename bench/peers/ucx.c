/* Bare calls of UCX, over what UCX_TLS and UCX_NET_DEVICES name. */
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "peers/bare.h"

typedef struct contact {
    uint64_t memory;
    uint32_t address_bytes;
    uint32_t key_bytes;
    unsigned char bytes[1000]; /* the address, then the key */
} contact;
_Static_assert(sizeof(contact) <= sizeof(bare_contact), "a contact has room");

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h registration;
    unsigned char *memory;
    struct {
        ucp_ep_h endpoint;
        ucp_rkey_h key;
        uint64_t memory;
    } peers[BARE_PES_MAX];
    int open;
    unsigned received;
    unsigned taken;
} net;

const char *const bare_library = "UCX";
const size_t bare_piece = (size_t)1 << 20;

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        bare_fail(what, ucs_status_string(status));
    }
}

static ucs_status_t take_message(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                 const ucp_am_recv_param_t *what)
{
    (void)argument;
    (void)header;
    (void)header_bytes;
    (void)what;
    memcpy(net.memory + 512, data, bytes < BARE_MESSAGE_BYTES ? bytes : BARE_MESSAGE_BYTES);
    net.received++;
    return UCS_OK;
}

static void tell(contact *at)
{
    ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                                    .address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    void *key;
    size_t key_bytes;
    must(ucp_worker_query(net.worker, &attributes), "ucp_worker_query");
    must(ucp_rkey_pack(net.context, net.registration, &key, &key_bytes), "ucp_rkey_pack");
    if (attributes.address_length + key_bytes > sizeof at->bytes) {
        bare_fail("ucp_worker_query", "the address is too long; name an interface in UCX_NET_DEVICES");
    }
    at->memory = (uint64_t)(uintptr_t)net.memory;
    at->address_bytes = (uint32_t)attributes.address_length;
    at->key_bytes = (uint32_t)key_bytes;
    memcpy(at->bytes, attributes.address, attributes.address_length);
    memcpy(at->bytes + attributes.address_length, key, key_bytes);
}

void bare_open(bare_contact *mine)
{
    const ucp_params_t features = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                   .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM};
    const ucp_worker_params_t thread = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 0, .cb = take_message};
    ucp_mem_map_params_t memory = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .length = BARE_MEMORY};
    contact at = {0};
    must(ucp_init(&features, NULL, &net.context), "ucp_init");
    must(ucp_worker_create(net.context, &thread, &net.worker), "ucp_worker_create");
    must(ucp_worker_set_am_recv_handler(net.worker, &handler), "ucp_worker_set_am_recv_handler");
    net.memory = aligned_alloc(4096, BARE_MEMORY);
    memset(net.memory, 0, BARE_MEMORY);
    memory.address = net.memory;
    must(ucp_mem_map(net.context, &memory, &net.registration), "ucp_mem_map");
    tell(&at);
    memcpy(mine->bytes, &at, sizeof at);
}

void bare_connect(int pe, const bare_contact *at)
{
    contact other;
    memcpy(&other, at->bytes, sizeof other);
    const ucp_ep_params_t peer = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                  .address = (const ucp_address_t *)(const void *)other.bytes};
    must(ucp_ep_create(net.worker, &peer, &net.peers[pe].endpoint), "ucp_ep_create");
    must(ucp_ep_rkey_unpack(net.peers[pe].endpoint, other.bytes + other.address_bytes, &net.peers[pe].key),
         "ucp_ep_rkey_unpack");
    net.peers[pe].memory = other.memory;
}

unsigned char *bare_memory(void)
{
    return net.memory;
}

void bare_look(void)
{
    (void)ucp_worker_progress(net.worker);
}

void bare_settle(int open)
{
    while (net.open > open) {
        bare_look();
    }
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    (void)argument;
    must(status, "an operation");
    net.open--;
    ucp_request_free(request);
}

static const ucp_request_param_t when_done = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = sent};

static void begin(ucs_status_ptr_t request, const char *what)
{
    if (UCS_PTR_IS_ERR(request)) {
        must(UCS_PTR_STATUS(request), what);
    }
    net.open += request != NULL;
}

void bare_put(int pe, size_t at, const void *from, size_t bytes)
{
    begin(ucp_put_nbx(net.peers[pe].endpoint, from, bytes, net.peers[pe].memory + at, net.peers[pe].key, &when_done),
          "ucp_put_nbx");
}

void bare_get(int pe, size_t at, void *to, size_t bytes)
{
    begin(ucp_get_nbx(net.peers[pe].endpoint, to, bytes, net.peers[pe].memory + at, net.peers[pe].key, &when_done),
          "ucp_get_nbx");
}

void bare_fetch_add(int pe, size_t at, const uint64_t *value, uint64_t *before)
{
    const ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_DATATYPE |
                                                       UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                       .cb.send = sent,
                                       .datatype = ucp_dt_make_contig(sizeof *value),
                                       .reply_buffer = before};
    begin(ucp_atomic_op_nbx(net.peers[pe].endpoint, UCP_ATOMIC_OP_ADD, value, 1, net.peers[pe].memory + at,
                            net.peers[pe].key, &fetch),
          "ucp_atomic_op_nbx");
}

void bare_flush(int pe)
{
    begin(ucp_ep_flush_nbx(net.peers[pe].endpoint, &when_done), "ucp_ep_flush_nbx");
    bare_settle(0);
}

void bare_send(int pe)
{
    begin(ucp_am_send_nbx(net.peers[pe].endpoint, 0, NULL, 0, net.memory + 256, BARE_MESSAGE_BYTES, &when_done),
          "ucp_am_send_nbx");
    bare_settle(0);
}

void bare_receive(void)
{
    while (net.received == net.taken) {
        bare_look();
    }
    net.taken++;
}
