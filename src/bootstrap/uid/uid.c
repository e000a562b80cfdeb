/* bootstrap/uid/uid.c: PEs that know a unique id: the tree over TCP, where PE 0 takes over the socket that
 * weft_uid_create opened, and the secret is the id's; or, for an id of one host, over abstract unix sockets at names
 * that follow from the secret. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tcp/site.h"
#include "bootstrap/tree/backend.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/uid/id.h"
#include "bootstrap/unix/site.h"
#include "os/os.h"
#include "os/socket.h"

typedef struct uid_state {
    wefti_tree tree; /* first */
    wefti_tcp_site tcp;
    wefti_uid_body id;
    int claim; /* PE 0, while its socket is taken over */
    wefti_unix_site host; /* of an id of one host, in place of tcp */
} uid_state;

static uid_state *state_of(const wefti_tree_site *site)
{
    return (uid_state *)((char *)site->state - offsetof(uid_state, tcp));
}

/* ---- the network ---- */

/* The other PE 0 is another thread of this process: nobody else can be PE 0 of an id. */
static weft_status uid_listen(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    uid_state *state = state_of(site);
    *occupied = site->root;
    WEFT_TRY(wefti_uid_claim(&state->id, &state->claim));
    listeners->descriptors[listeners->count++] = state->id.descriptor;
    if (wefti_unix_root_listen(&state->tcp.near, site, listeners, occupied) != WEFT_OK) {
        wefti_log(WEFTI_LOG_INFO, "PEs of this host meet by its port, too: no unix socket can be had");
    }
    return WEFT_OK;
}

static void uid_unlisten(wefti_tree_site *site)
{
    uid_state *state = state_of(site);
    wefti_os_socket_close(state->claim);
}

static const wefti_tree_net uid_net = {
    .name = "uid",
    .refusal_is_final = 1,
    .listen_as_root = uid_listen,
    .unlisten_as_root = uid_unlisten,
    .listen = wefti_tcp_site_listen,
    .resolve = wefti_tcp_site_resolve,
    .admit = wefti_tcp_site_admit,
    .prove = wefti_tcp_site_prove,
    .print = wefti_tcp_site_print,
};

/* ---- the network of one host ---- */

static const wefti_tree_net host_net = {
    .name = "uid",
    .refusal_is_final = 0, /* the others may be earlier than PE 0 */
    .listen_as_root = wefti_unix_site_listen_as_root,
    .listen = wefti_unix_site_listen,
    .resolve = wefti_unix_site_resolve,
    .admit = wefti_unix_site_admit,
    .prove = wefti_unix_site_prove,
    .print = wefti_unix_print,
};

static weft_status fill_host(uid_state *state)
{
    wefti_os_identity own;
    WEFT_TRY(wefti_os_identity_query(&own));
    if (memcmp(own.node, state->id.contact.node, sizeof own.node) != 0) {
        return wefti_error(
            WEFT_ERR_UNSUPPORTED,
            "the unique id reaches PEs of the host and network namespace where it was made only, and this "
            "is another; install the package libsodium23 there, and name no interface \"unix\"");
    }
    wefti_unix_site_init(&state->host, &host_net, state->id.secret, state->id.tag, sizeof state->id.tag);
    return WEFT_OK;
}

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
    WEFT_TRY(wefti_uid_read(config->uid, &state->id));
    if (state->id.is_of_host) {
        return fill_host(state);
    }
    state->tcp.root_is_complete = 1;
    WEFT_TRY(wefti_tcp_site_init(&state->tcp, &uid_net, &state->id.contact, state->id.secret));
    wefti_tcp_site_set_near(&state->tcp, state->id.tag, sizeof state->id.tag);
    return WEFT_OK;
}

static void forget(uid_state *state)
{
    if (!state->id.is_of_host) {
        wefti_tcp_site_fini(&state->tcp);
    }
    wefti_unix_site_fini(&state->host);
    explicit_bzero(state->id.secret, sizeof state->id.secret);
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
        status = wefti_tree_open(&state->tree, state->id.is_of_host ? &state->host.site : &state->tcp.site, config,
                                 config->pe, config->pes);
        bootstrap->has_met = state->tree.has_met;
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

static void uid_close(wefti_bootstrap *bootstrap)
{
    uid_state *state = bootstrap->state;
    wefti_tree_close(&state->tree);
    forget(state);
}

const wefti_bootstrap_ops wefti_bootstrap_uid = {
    .name = "uid",
    .open = uid_open,
    .allgather = wefti_tree_backend_allgather,
    .digest = wefti_tree_backend_digest,
    .check = wefti_tree_backend_check,
    .close = uid_close,
};
