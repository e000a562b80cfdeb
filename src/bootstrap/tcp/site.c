/* bootstrap/tcp/site.c: the tree's network over TCP. */
#include "bootstrap/tcp/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "bootstrap/tcp/interfaces.h"
#include "bootstrap/tcp/listen.h"
#include "os/os.h"
#include "os/socket.h"

_Static_assert(WEFTI_UNIX_ADDRESSES_MAX + WEFTI_TCP_ADDRESSES_MAX <= WEFTI_TREE_ADDRESSES_MAX,
               "all addresses of PE 0 fit");

/* ---- life ---- */

weft_status wefti_tcp_site_init(wefti_tcp_site *tcp, const wefti_tree_net *net, const wefti_tcp_contact *root,
                                const unsigned char *secret)
{
    wefti_os_identity own;
    WEFT_TRY(wefti_os_identity_query(&own));
    memcpy(tcp->node, own.node, sizeof tcp->node);
    tcp->site.net = net;
    tcp->site.state = tcp;
    tcp->root = *root;
    tcp->site.root.bytes = sizeof *root;
    memcpy(tcp->site.root.data, root, sizeof *root);
    tcp->has_secret = secret != NULL;
    if (secret == NULL) {
        return WEFT_OK;
    }
    memcpy(tcp->site.secret, secret, sizeof tcp->site.secret);
    WEFT_TRY(wefti_sodium_open(&tcp->sodium));
    tcp->site.sodium = &tcp->sodium;
    return WEFT_OK;
}

void wefti_tcp_site_set_near(wefti_tcp_site *tcp, const void *common, size_t bytes)
{
    unsigned char half[WEFTI_HASH_BYTES];
    wefti_hash(tcp->site.secret, common, bytes, half);
    wefti_hash(tcp->site.secret + WEFTI_HASH_BYTES, half, sizeof half, tcp->near.key);
}

void wefti_tcp_site_fini(wefti_tcp_site *tcp)
{
    wefti_sodium_close(&tcp->sodium);
    explicit_bzero(tcp->site.secret, sizeof tcp->site.secret);
}

/* ---- listening for children ---- */

/* The address by which this PE reached PE 0 is one that others reach too, unless it is loopback: then PE 0 is on this
 * node, and what others reach of it, they reach of this PE. */
static weft_status choose_addresses(const wefti_tcp_site *tcp, const wefti_tcp_address *near, wefti_tcp_contact *own)
{
    int count;
    own->count = 1;
    own->addresses[0] = *near;
    if (!wefti_tcp_address_is_loopback(near)) {
        return WEFT_OK;
    }
    if (tcp->root_is_complete) {
        *own = wefti_tcp_contact_is_wide(&tcp->root) ? tcp->root : *own;
        return WEFT_OK;
    }
    WEFT_TRY(wefti_interfaces_list(own->addresses, &count));
    own->count = (unsigned char)count;
    return WEFT_OK;
}

weft_status wefti_tcp_site_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact)
{
    const wefti_tcp_site *tcp = site->state;
    struct sockaddr_storage local;
    socklen_t bytes = sizeof local;
    wefti_tcp_address address = {.family = 4, .bytes = {127, 0, 0, 1}};
    wefti_tcp_contact own = {0};
    unsigned port;
    if (wefti_fault("getsockname", ENOBUFS) || wefti_os_socket_name(near, (struct sockaddr *)&local, &bytes) != 0) {
        return wefti_error(
            WEFT_ERR_SYSTEM,
            "cannot find the address to listen at (getsockname): %s; the system lacks memory for sockets",
            strerror(errno));
    }
    if (local.ss_family == AF_UNIX && !tcp->has_secret && !tcp->is_open) {
        return wefti_unix_listen_anywhere(listener, contact);
    }
    if (local.ss_family != AF_UNIX) { /* else PE 0 is on this host, as if it had been reached by loopback */
        (void)wefti_tcp_address_from(&address, &local);
    }
    WEFT_TRY(choose_addresses(tcp, &address, &own));
    int everywhere = wefti_tcp_address_is_loopback(&address) && wefti_tcp_contact_is_wide(&own);
    WEFT_TRY(wefti_tcp_listen_anywhere(everywhere ? NULL : &address, listener, &port));
    wefti_tcp_contact_set_port(&own, port);
    memcpy(own.node, tcp->node, sizeof own.node);
    memset(contact, 0, sizeof *contact);
    contact->bytes = sizeof own;
    memcpy(contact->data, &own, sizeof own);
    return WEFT_OK;
}

/* ---- connections ---- */

size_t wefti_tcp_site_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact, unsigned round,
                              wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    const wefti_tcp_site *tcp = site->state;
    wefti_tcp_contact own;
    size_t count = 0;
    if (contact->bytes != sizeof own) {
        return wefti_unix_contact_resolve(contact, round, addresses);
    }
    memcpy(&own, contact->data, sizeof own);
    if (memcmp(&own, &tcp->root, sizeof own) == 0) { /* PE 0, which may be on this host */
        wefti_tree_contact near;
        wefti_unix_contact_set(&near, WEFTI_UNIX_ANY, 0, tcp->near.key, sizeof tcp->near.key);
        count = wefti_unix_contact_resolve(&near, round, addresses);
    }
    return count + wefti_tcp_contact_resolve(&own, tcp->node, addresses + count);
}

/* A socket that tries a free port of its own node long enough connects to itself. */
static int is_own_echo(int descriptor)
{
    struct sockaddr_storage here = {0};
    struct sockaddr_storage there = {0};
    socklen_t here_bytes = sizeof here;
    socklen_t there_bytes = sizeof there;
    return wefti_os_socket_name(descriptor, (struct sockaddr *)&here, &here_bytes) != 0 ||
           wefti_os_socket_peer_name(descriptor, (struct sockaddr *)&there, &there_bytes) != 0 ||
           (here_bytes == there_bytes && memcmp(&here, &there, here_bytes) == 0);
}

static int is_unix(int descriptor)
{
    struct sockaddr_storage here = {0};
    socklen_t bytes = sizeof here;
    return wefti_os_socket_name(descriptor, (struct sockaddr *)&here, &bytes) == 0 && here.ss_family == AF_UNIX;
}

/* A process of this host calls from the address that it calls, unless a route chooses another of its host's. */
static int is_from_another_address(int descriptor)
{
    struct sockaddr_storage here = {0};
    struct sockaddr_storage there = {0};
    socklen_t bytes = sizeof here;
    if (wefti_os_socket_name(descriptor, (struct sockaddr *)&here, &bytes) != 0) {
        return 0;
    }
    bytes = sizeof there;
    if (wefti_os_socket_peer_name(descriptor, (struct sockaddr *)&there, &bytes) != 0) {
        return 0;
    }
    if (here.ss_family == AF_INET) {
        return memcmp(&((struct sockaddr_in *)&here)->sin_addr, &((struct sockaddr_in *)&there)->sin_addr,
                      sizeof(struct in_addr)) != 0;
    }
    return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, &((struct sockaddr_in6 *)&there)->sin6_addr,
                  sizeof(struct in6_addr)) != 0;
}

wefti_tree_trust wefti_tcp_site_admit(const wefti_tree_site *site, int descriptor)
{
    wefti_tcp_site *tcp = site->state;
    if (is_unix(descriptor)) {
        return wefti_unix_site_admit(site, descriptor);
    }
    if (is_own_echo(descriptor)) {
        return WEFTI_TREE_FOREIGN;
    }
    wefti_os_socket_hasten(descriptor);
    if (tcp->has_secret || tcp->is_open) {
        return WEFTI_TREE_TRUSTED;
    }
    tcp->has_turned_away |= is_from_another_address(descriptor);
    return WEFTI_TREE_UNKNOWN;
}

const char *wefti_tcp_site_explain(const wefti_tree_site *site)
{
    const wefti_tcp_site *tcp = site->state;
    return !tcp->has_turned_away ? ""
                                 : "; PE 0 turned away a caller from another address: if PEs are on other hosts, give "
                                   "all the same WEFT_SECRET, a long random text, or WEFT_INSECURE=1, with which "
                                   "whoever reaches its port can join";
}

void wefti_tcp_site_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                          unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    static const unsigned char no_key[WEFTI_HASH_BYTES] = {0};
    const wefti_tcp_site *tcp = site->state;
    if (tcp->has_secret) {
        (void)tcp->sodium.generichash(proof, WEFTI_TREE_PROOF_BYTES, (const unsigned char *)handshake,
                                      sizeof *handshake, site->secret, sizeof site->secret);
    } else {
        memset(proof, 0, WEFTI_TREE_PROOF_BYTES);
        wefti_hash(no_key, handshake, sizeof *handshake, proof);
    }
}

void wefti_tcp_site_print(const wefti_tree_address *address, char *text, size_t bytes)
{
    struct sockaddr_storage copy;
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, address->sockaddr, address->bytes);
    if (copy.ss_family == AF_UNIX) {
        wefti_unix_print(address, text, bytes);
        return;
    }
    if (copy.ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((struct sockaddr_in *)&copy)->sin_addr, host, sizeof host);
        port = ntohs(((struct sockaddr_in *)&copy)->sin_port);
    } else {
        (void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&copy)->sin6_addr, host, sizeof host);
        port = ntohs(((struct sockaddr_in6 *)&copy)->sin6_port);
    }
    (void)snprintf(text, bytes, "%s port %u", host, port);
}
