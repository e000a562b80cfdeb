/* sim/tree/fake_net.c: a network of unix sockets in the simulator, and PEs that are played. */
#include "sim/tree/fake_net.h"

#include <stddef.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"
#include "testing/sim/socket.h"

#define ANSWER_NS S_NS /* what is expected comes within this */

wefti_tree_trust fake_trust[8];
int fake_refusal_is_final;
int fake_is_shared;
unsigned fake_far_port;
static int is_clear; /* the board of the scene, in this run */

/* ---- the network ---- */

static wefti_tree_address address_of(const wefti_tree_contact *contact)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    wefti_tree_address address = {.bytes = (uint32_t)offsetof(struct sockaddr_un, sun_path) + 1 + contact->bytes};
    memcpy(name.sun_path + 1, contact->data, contact->bytes);
    memcpy(address.sockaddr, &name, sizeof name < sizeof address.sockaddr ? sizeof name : sizeof address.sockaddr);
    return address;
}

static wefti_tree_address far_address(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fake_far_port)};
    wefti_tree_address address = {.bytes = sizeof name};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(address.sockaddr, &name, sizeof name);
    return address;
}

static int listen_at_address(const wefti_tree_address *address)
{
    const struct sockaddr *sockaddr = (const struct sockaddr *)(const void *)address->sockaddr;
    int listener = wefti_os_socket_open(sockaddr->sa_family);
    if (wefti_os_socket_bind(listener, sockaddr, address->bytes) != 0 || wefti_os_socket_listen(listener, 100) != 0) {
        weft_sim_fail("cannot listen: %s", strerror(errno));
    }
    return listener;
}

static int listen_at(const char *name)
{
    wefti_tree_contact contact = fake_contact(name);
    wefti_tree_address address = address_of(&contact);
    return listen_at_address(&address);
}

static weft_status listen_as_root(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    (void)site;
    (void)occupied;
    *listeners = fake_listen("root");
    return WEFT_OK;
}

static weft_status listen_for_children(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact)
{
    char name[16];
    (void)site;
    (void)near;
    (void)snprintf(name, sizeof name, "pe%d", weft_sim_pe());
    *contact = fake_contact(name);
    *listener = listen_at(name);
    return WEFT_OK;
}

static size_t resolve(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                      wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    (void)site;
    (void)round;
    addresses[0] = address_of(contact);
    if (fake_far_port == 0) {
        return 1;
    }
    addresses[1] = far_address();
    return 2;
}

static wefti_tree_trust admit(const wefti_tree_site *site, int descriptor)
{
    (void)site;
    (void)descriptor;
    return fake_trust[weft_sim_pe()];
}

/* Another one for each handshake, which anybody could make. */
static void prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                  unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    const unsigned char *bytes = (const unsigned char *)handshake;
    uint64_t hash = UINT64_C(14695981039346656037);
    (void)site;
    for (size_t i = 0; i < sizeof *handshake; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    for (size_t i = 0; i < WEFTI_TREE_PROOF_BYTES; i++) {
        hash = (hash ^ i) * UINT64_C(1099511628211);
        proof[i] = (unsigned char)(hash >> 56);
    }
}

static void print(const wefti_tree_address *address, char *text, size_t bytes)
{
    (void)address;
    (void)snprintf(text, bytes, "a name");
}

wefti_tree_site fake_site(void)
{
#define SLOTS                                                                                                          \
    .name = "fake", .listen_as_root = listen_as_root, .listen = listen_for_children, .resolve = resolve,               \
    .admit = admit, .prove = prove, .print = print
    static const wefti_tree_net patient = {SLOTS};
    static const wefti_tree_net final = {SLOTS, .refusal_is_final = 1};
    static const wefti_tree_net shared = {SLOTS, .is_shared = 1};
#undef SLOTS
    return (wefti_tree_site){.net = fake_refusal_is_final ? &final
                                    : fake_is_shared      ? &shared
                                                          : &patient,
                             .root = fake_contact("root")};
}

wefti_tree_contact fake_contact(const char *name)
{
    wefti_tree_contact contact = {.bytes = (uint32_t)strlen(name)};
    memcpy(contact.data, name, contact.bytes);
    return contact;
}

/* ---- runs ---- */

void fake_reset(void)
{
    for (size_t i = 0; i < sizeof fake_trust / sizeof fake_trust[0]; i++) {
        fake_trust[i] = WEFTI_TREE_TRUSTED;
    }
    fake_refusal_is_final = 0;
    fake_is_shared = 0;
    fake_far_port = 0;
    is_clear = 0;
}

void fake_calm(size_t room)
{
    wefti_sim_socket_calm(room);
}

void fake_clear(void *board, size_t bytes)
{
    if (!is_clear) {
        memset(board, 0, bytes);
    }
    is_clear = 1;
}

void fake_sleep_until(uint64_t ns)
{
    uint64_t now_ns = weft_sim_now_ns();
    weft_sim_sleep_ns(now_ns < ns ? ns - now_ns : 0);
}

/* ---- PEs that are played ---- */

wefti_tree_hello fake_hello(int pe, int pes)
{
    wefti_tree_hello hello = {.magic = WEFTI_TREE_MAGIC, .protocol = WEFTI_TREE_PROTOCOL, .version = WEFT_VERSION};
    hello.pe = pe;
    hello.pes = pes;
    (void)snprintf(hello.name, sizeof hello.name, "world");
    return hello;
}

weft_status fake_open(wefti_tree *tree, wefti_tree_site *site, int pe, int pes, uint64_t deadline_ns, const char *name)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = deadline_ns;
    config.name = name;
    return wefti_tree_open(tree, site, &config, pe, pes);
}

static void must(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        weft_sim_fail("%s: %s: %s", what, weft_status_name(status), weft_last_error());
    }
}

void fake_call_until(wefti_caller *caller, wefti_caller_stage stage, uint64_t at_ns)
{
    wefti_polls polls = {0};
    while (caller->stage < stage) {
        if (caller->stage == WEFTI_CALLER_LISTENS) {
            fake_sleep_until(at_ns);
        }
        wefti_polls_clear(&polls);
        uint64_t due_ns = wefti_caller_watch(caller, &polls);
        must(wefti_polls_wait(&polls, due_ns), "a call");
        must(wefti_caller_step(caller, &polls), "a call");
    }
    wefti_polls_fini(&polls);
}

void fake_call(wefti_tree_site *site, wefti_tree_hello *hello, int pe, const wefti_tree_contact *contact,
               wefti_link *link)
{
    wefti_caller caller;
    must(wefti_caller_init(&caller, site, hello, pe, contact), "a call");
    fake_call_until(&caller, WEFTI_CALLER_DONE, 0);
    *link = wefti_caller_take(&caller);
    wefti_caller_fini(&caller);
}

wefti_tree_listeners fake_listen(const char *name)
{
    return (wefti_tree_listeners){.descriptors = {listen_at(name)}, .count = 1};
}

wefti_tree_listeners fake_listen_far(void)
{
    wefti_tree_address address = far_address();
    return (wefti_tree_listeners){.descriptors = {listen_at_address(&address)}, .count = 1};
}

int fake_accept(wefti_tree_site *site, const wefti_tree_listeners *listeners, int pe, uint64_t wait_ns,
                wefti_link *link, wefti_tree_hello *said)
{
    static wefti_acceptor acceptors[8];
    wefti_acceptor *acceptor = &acceptors[weft_sim_pe()];
    wefti_polls polls = {0};
    uint64_t until_ns = wefti_os_now_ns() + wait_ns;
    int is_here = 0;
    wefti_acceptor_init(acceptor, site, listeners, pe);
    while (!is_here && wefti_os_now_ns() < until_ns) {
        wefti_polls_clear(&polls);
        uint64_t due_ns = wefti_acceptor_watch(acceptor, &polls);
        must(wefti_polls_wait(&polls, due_ns < until_ns ? due_ns : until_ns), "an accept");
        must(wefti_acceptor_step(acceptor, &polls), "an accept");
        is_here = wefti_acceptor_take(acceptor, link, said);
    }
    wefti_acceptor_fini(acceptor);
    wefti_polls_fini(&polls);
    return is_here;
}

wefti_link_event fake_await(wefti_link *link, uint64_t wait_ns)
{
    wefti_polls polls = {0};
    uint64_t until_ns = wefti_os_now_ns() + wait_ns;
    wefti_link_event event = wefti_link_receive(link);
    while (event == WEFTI_LINK_IDLE && wefti_os_now_ns() < until_ns) {
        wefti_polls_clear(&polls);
        wefti_link_watch(link, &polls);
        must(wefti_polls_wait(&polls, until_ns), "a wait");
        (void)wefti_link_flush(link);
        event = wefti_link_receive(link);
    }
    wefti_polls_fini(&polls);
    return event;
}

void fake_await_frame(wefti_link *link, wefti_frame_type type)
{
    wefti_link_event event = fake_await(link, ANSWER_NS);
    if (event != WEFTI_LINK_FRAME || link->in.type != (uint32_t)type) {
        weft_sim_fail("instead of frame %d came event %d, frame %u", (int)type, (int)event, link->in.type);
    }
}

void fake_await_behind_questions(wefti_link *link, wefti_frame_type type, int most)
{
    wefti_link_event event;
    do {
        event = fake_await(link, ANSWER_NS);
    } while (event == WEFTI_LINK_FRAME && link->in.type == WEFTI_FRAME_EXPIRED && most-- > 0);
    if (event != WEFTI_LINK_FRAME || link->in.type != (uint32_t)type) {
        weft_sim_fail("instead of frame %d came event %d, frame %u", (int)type, (int)event, link->in.type);
    }
}

void fake_send(wefti_link *link, wefti_frame_type type, uint32_t sequence, const void *body, size_t bytes)
{
    int goes = wefti_link_send(link, type, sequence, body, bytes);
    while (goes && !wefti_link_is_flushed(link)) {
        weft_sim_sleep_ns(1000);
        goes = wefti_link_flush(link);
    }
    if (!goes) {
        weft_sim_fail("frame %d cannot be sent", (int)type);
    }
}

void fake_exchange_as_child(wefti_link *parent, uint32_t sequence)
{
    unsigned char none;
    wefti_link_expect(parent, WEFTI_FRAME_RESULT, sequence, &none, 0);
    fake_send(parent, WEFTI_FRAME_GATHER, sequence, NULL, 0);
    fake_await_frame(parent, WEFTI_FRAME_RESULT);
}

void fake_exchange_as_parent(wefti_link *child, uint32_t sequence)
{
    unsigned char none;
    wefti_link_expect(child, WEFTI_FRAME_GATHER, sequence, &none, 0);
    fake_await_frame(child, WEFTI_FRAME_GATHER);
    fake_send(child, WEFTI_FRAME_RESULT, sequence, NULL, 0);
}

void fake_exchange_between(wefti_link *parent, wefti_link *child)
{
    unsigned char none;
    wefti_link_expect(child, WEFTI_FRAME_RESULT, WEFTI_TREE_SEQUENCE_FORMING, &none, 0);
    fake_send(child, WEFTI_FRAME_GATHER, WEFTI_TREE_SEQUENCE_FORMING, NULL, 0);
    fake_exchange_as_parent(parent, WEFTI_TREE_SEQUENCE_FORMING);
    fake_await_frame(child, WEFTI_FRAME_RESULT);
}

void fake_join_with_child(wefti_tree_site *site, int pe, int pes, wefti_link *star, wefti_link *child)
{
    static const wefti_tree_welcome welcome = {{0}}; /* its parent is PE 0 */
    wefti_tree_hello hello = fake_hello(pe + 1, pes);
    wefti_tree_hello said;
    wefti_tree_listeners root = fake_listen("root");
    if (!fake_accept(site, &root, 0, ANSWER_NS, star, &said) || said.pe != pe) {
        weft_sim_fail("PE %d did not come to PE 0", pe);
    }
    fake_send(star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    fake_call(site, &hello, pe, &said.listens_at, child);
    wefti_os_socket_stop(root.descriptors[0]);
}

void fake_join(wefti_tree_site *site, int pe, int pes, wefti_link *link)
{
    wefti_tree_hello hello = fake_hello(pe, pes);
    fake_call(site, &hello, 0, &site->root, link);
    while (fake_await(link, ANSWER_NS) == WEFTI_LINK_FRAME && link->in.type == WEFTI_FRAME_PARKED) {
        wefti_tree_parked parked;
        memcpy(&parked, link->body, sizeof parked);
        hello.ticket = parked.ticket;
        wefti_link_fini(link);
        weft_sim_sleep_ns(parked.away_ns);
        fake_call(site, &hello, 0, &site->root, link);
    }
    if (link->in.type != WEFTI_FRAME_WELCOME) {
        weft_sim_fail("instead of a welcome came frame %u", link->in.type);
    }
    fake_exchange_as_child(link, WEFTI_TREE_SEQUENCE_FORMING);
}
