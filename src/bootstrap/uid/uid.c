/* bootstrap/uid/uid.c: PEs that know a unique id: the tree over TCP, IPv4 and IPv6.
 *
 * PE 0 takes over the socket that weft_uid_create opened. Both sides of every connection prove that they know the id's
 * secret: each sends 32 fresh random bytes, and a BLAKE2b hash, keyed with the secret, of both sides' bytes, the role,
 * and who is who. What was overheard is of no use on another connection, nor on the same one in the other direction. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/uid/id.h"
#include "bootstrap/uid/sodium.h"
#include "bootstrap/uid/tcp.h"
#include "os/os.h"
#include "os/socket.h"

typedef struct uid_state {
    wefti_tree tree;
    wefti_tree_site site;
    wefti_uid_body id;
    wefti_sodium sodium;
    unsigned char node[16];
    int claim; /* PE 0, while its socket is taken over */
} uid_state;

/* ---- the network ---- */

static weft_status uid_meet(wefti_tree_site *site, int *listener)
{
    uid_state *state = site->state;
    weft_status status = wefti_uid_claim(&state->id, &state->claim);
    if (status == WEFT_OK) {
        *listener = state->id.descriptor;
    }
    return status;
}

static void uid_part(wefti_tree_site *site, int listener)
{
    uid_state *state = site->state;
    wefti_os_socket_close(listener);
    wefti_os_socket_close(state->claim);
}

/* The address by which this PE reached PE 0 is one that others reach too, unless it is loopback: then PE 0 is on this
 * node, and what others reach of it, they reach of this PE. */
static weft_status uid_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact)
{
    const uid_state *state = site->state;
    struct sockaddr_storage local;
    socklen_t bytes = sizeof local;
    wefti_uid_contact own = {.count = 1};
    unsigned port;
    int everywhere = 0;
    if (wefti_fault("getsockname", ENOBUFS) || wefti_os_socket_name(near, (struct sockaddr *)&local, &bytes) != 0 ||
        !wefti_uid_address_from(&own.addresses[0], &local)) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot find the address to listen at: %s", strerror(errno));
    }
    if (wefti_uid_address_is_loopback(&own.addresses[0]) && wefti_uid_contact_is_wide(&state->id.contact)) {
        own = state->id.contact;
        everywhere = 1;
    }
    WEFT_TRY(wefti_tcp_listen(everywhere ? NULL : &own.addresses[0], listener, &port));
    wefti_uid_contact_set_port(&own, port);
    memcpy(own.node, state->node, sizeof own.node);
    memset(contact, 0, sizeof *contact);
    contact->bytes = sizeof own;
    memcpy(contact->data, &own, sizeof own);
    return WEFT_OK;
}

static size_t uid_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact,
                          wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    const uid_state *state = site->state;
    wefti_uid_contact own;
    if (contact->bytes != sizeof own) {
        return 0;
    }
    memcpy(&own, contact->data, sizeof own);
    return wefti_uid_contact_resolve(&own, state->node, addresses);
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

static int uid_admit(const wefti_tree_site *site, int descriptor)
{
    (void)site;
    wefti_os_socket_hasten(descriptor);
    return !is_own_echo(descriptor);
}

static void uid_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                      unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    const uid_state *state = site->state;
    (void)state->sodium.generichash(proof, WEFTI_TREE_PROOF_BYTES, (const unsigned char *)handshake, sizeof *handshake,
                                    site->secret, sizeof site->secret);
}

static void uid_print(const wefti_tree_address *address, char *text, size_t bytes)
{
    struct sockaddr_storage copy;
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, address->sockaddr, address->bytes);
    if (copy.ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((struct sockaddr_in *)&copy)->sin_addr, host, sizeof host);
        port = ntohs(((struct sockaddr_in *)&copy)->sin_port);
    } else {
        (void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&copy)->sin6_addr, host, sizeof host);
        port = ntohs(((struct sockaddr_in6 *)&copy)->sin6_port);
    }
    (void)snprintf(text, bytes, "%s port %u", host, port);
}

static const wefti_tree_net uid_net = {
    .name = "uid",
    .has_challenge = 1,
    .refusal_is_final = 1,
    .meet = uid_meet,
    .part = uid_part,
    .listen = uid_listen,
    .resolve = uid_resolve,
    .admit = uid_admit,
    .prove = uid_prove,
    .print = uid_print,
};

/* ---- the ops ---- */

static weft_status check_config(const weft_world_config *config)
{
    if (config->uid == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP_UID needs config.uid, from weft_uid_create of PE 0");
    }
    if (config->pes < 1) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "WEFT_BOOTSTRAP_UID needs config.pe and config.pes: an id does not say how many PEs there are");
    }
    return WEFT_OK;
}

static weft_status fill(uid_state *state, const weft_world_config *config)
{
    wefti_os_identity own;
    WEFT_TRY(wefti_uid_read(config->uid, &state->id));
    WEFT_TRY(wefti_os_identity_query(&own));
    memcpy(state->node, own.node, sizeof state->node);
    state->site.net = &uid_net;
    state->site.state = state;
    state->site.root.bytes = sizeof state->id.contact;
    memcpy(state->site.root.data, &state->id.contact, sizeof state->id.contact);
    memcpy(state->site.secret, state->id.secret, sizeof state->site.secret);
    return wefti_sodium_open(&state->sodium);
}

static void forget(uid_state *state)
{
    wefti_sodium_close(&state->sodium);
    explicit_bzero(state->id.secret, sizeof state->id.secret);
    explicit_bzero(state->site.secret, sizeof state->site.secret);
    wefti_free(state);
}

static weft_status uid_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(check_config(config));
    uid_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to create a world", config->pe);
    }
    weft_status status = fill(state, config);
    if (status == WEFT_OK) {
        status = wefti_tree_open(&state->tree, &state->site, config, config->pe, config->pes);
    }
    if (status != WEFT_OK) {
        forget(state);
        return status;
    }
    bootstrap->pe = config->pe;
    bootstrap->pes = config->pes;
    bootstrap->state = state;
    return WEFT_OK;
}

static weft_status uid_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    uid_state *state = bootstrap->state;
    return wefti_tree_allgather(&state->tree, mine, all, bytes);
}

static void uid_close(wefti_bootstrap *bootstrap)
{
    uid_state *state = bootstrap->state;
    wefti_tree_close(&state->tree);
    forget(state);
}

const wefti_bootstrap_ops wefti_bootstrap_uid = {
    .name = "uid",
    .open = uid_open,
    .allgather = uid_allgather,
    .close = uid_close,
};
