/* bootstrap/uid/uid.c: PEs that know a unique id: the tree over TCP, where PE 0 takes over the socket that
 * weft_uid_create opened, and the secret is the id's. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tcp/site.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/uid/id.h"
#include "os/socket.h"

typedef struct uid_state {
    wefti_tcp_site tcp; /* first */
    wefti_tree tree;
    wefti_uid_body id;
    int claim; /* PE 0, while its socket is taken over */
} uid_state;

/* ---- the network ---- */

/* The other PE 0 is another thread of this process: nobody else can be PE 0 of an id. */
static weft_status uid_listen(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    uid_state *state = site->state;
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
    uid_state *state = site->state;
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
    state->tcp.root_is_complete = 1;
    WEFT_TRY(wefti_tcp_site_init(&state->tcp, &uid_net, &state->id.contact, state->id.secret));
    wefti_tcp_site_set_near(&state->tcp, state->id.tag, sizeof state->id.tag);
    return WEFT_OK;
}

static void forget(uid_state *state)
{
    wefti_tcp_site_fini(&state->tcp);
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
        status = wefti_tree_open(&state->tree, &state->tcp.site, config, config->pe, config->pes);
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
    return wefti_tree_allgather(&state->tree, mine, all, bytes, wefti_bootstrap_limit_ns(bootstrap));
}

static weft_status uid_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call)
{
    uid_state *state = bootstrap->state;
    return wefti_tree_digest(&state->tree, call, wefti_bootstrap_limit_ns(bootstrap));
}

static weft_status uid_check(wefti_bootstrap *bootstrap)
{
    uid_state *state = bootstrap->state;
    return wefti_tree_check(&state->tree);
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
    .digest = uid_digest,
    .check = uid_check,
    .close = uid_close,
};
