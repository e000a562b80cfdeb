/* bootstrap/env/env.c: processes that know RANK, WORLD_SIZE and MASTER_ADDR, as torchrun sets them: the tree over TCP,
 * and over unix sockets on PE 0's host.
 *
 * The PEs 0 of all worlds that form listen at one port, to which the system lets all of a user's listen (SO_REUSEPORT).
 * Who connects says its world's name, and is sent to try again by the PE 0 of another. Nothing is left open between
 * worlds, and no process serves for another. Each PE 0 also listens at an abstract unix socket of its world: there the
 * system tells which user comes, a second PE 0 shows, and others are told when the port cannot be had. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/env/master.h"
#include "bootstrap/tcp/listen.h"
#include "bootstrap/tcp/site.h"
#include "bootstrap/tree/backend.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/unix/site.h"
#include "os/os.h"
#include "os/socket.h"

/* How long to try a port that is taken, perhaps by a connection to which the system gave it; a part of the deadline at
 * most. */
#define PORT_TAKEN_NS UINT64_C(2000000000)
#define PORT_TAKEN_SHARE 4
#define PORT_AGAIN_NS UINT64_C(10000000)

typedef struct env_state {
    wefti_tree tree; /* first */
    wefti_tcp_site tcp;
    wefti_env_master master;
    uint64_t deadline_ns;
} env_state;

static env_state *state_of(const wefti_tree_site *site)
{
    return (env_state *)((char *)site->state - offsetof(env_state, tcp));
}

/* ---- PE 0 listens ---- */

/* At the first address of loopback that is there, or everywhere. Returns a descriptor, or -1 with errno set. */
static int listen_once(const wefti_env_master *master)
{
    unsigned port = wefti_tcp_contact_port(&master->contact);
    int listener = master->is_loopback ? -1 : wefti_tcp_listen(NULL, port, WEFTI_TCP_PORT_SHARED);
    for (int i = 0; master->is_loopback && listener < 0 && i < master->contact.count; i++) {
        listener = wefti_tcp_listen(&master->contact.addresses[i], port, WEFTI_TCP_PORT_SHARED);
    }
    return listener;
}

static weft_status name_port(const wefti_env_master *master, int error)
{
    unsigned port = wefti_tcp_contact_port(&master->contact);
    unsigned user;
    if (error == EADDRINUSE && wefti_os_socket_port_user(port, &user) && user != wefti_os_user()) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "PE 0 cannot listen at port %u: it is taken by another user, number %u; set WEFT_PORT to "
                           "another port on all PEs",
                           port, user);
    }
    return wefti_error(WEFT_ERR_SYSTEM, "PE 0 cannot listen at port %u: %s; set WEFT_PORT to another port on all PEs",
                       port, strerror(error));
}

static weft_status open_port(const env_state *state, int *listener)
{
    uint64_t share_ns = state->deadline_ns / PORT_TAKEN_SHARE;
    uint64_t until_ns = wefti_os_now_ns() + (share_ns < PORT_TAKEN_NS ? share_ns : PORT_TAKEN_NS);
    while ((*listener = listen_once(&state->master)) < 0 && errno == EADDRINUSE && wefti_os_now_ns() < until_ns) {
        wefti_os_sleep_ns(PORT_AGAIN_NS);
    }
    return *listener >= 0 ? WEFT_OK : name_port(&state->master, errno);
}

/* PE 0 listens. At the unix socket first: PEs of this host learn by it if the port cannot be had. */
static weft_status env_listen(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    env_state *state = state_of(site);
    WEFT_TRY(wefti_unix_root_listen(&state->tcp.near, site, listeners, occupied));
    WEFT_TRY(open_port(state, &listeners->descriptors[listeners->count]));
    listeners->count++;
    return WEFT_OK;
}

static const wefti_tree_net env_net = {
    .name = "env",
    .is_shared = 1,
    .refusal_is_final = 0,
    .listen_as_root = env_listen,
    .unlisten_as_root = NULL,
    .listen = wefti_tcp_site_listen,
    .resolve = wefti_tcp_site_resolve,
    .admit = wefti_tcp_site_admit,
    .prove = wefti_tcp_site_prove,
    .print = wefti_tcp_site_print,
    .explain = wefti_tcp_site_explain,
};

/* ---- the environment ---- */

/* RANK and WORLD_SIZE. A RANK beyond the world's size is no error here: PE 0 reports it to all PEs. */
static weft_status find_place(const weft_world_config *config, int *pe, int *pes)
{
    uint64_t rank;
    uint64_t size;
    *pe = config->pe;
    *pes = config->pes;
    if (config->pes != 0) {
        return WEFT_OK;
    }
    if (!wefti_env_is_set(WEFTI_ENV_RANK) || !wefti_env_is_set(WEFTI_ENV_WORLD_SIZE)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"env\" needs RANK and WORLD_SIZE, or config.pe and config.pes: start the "
                           "program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
    }
    WEFT_TRY(wefti_env_count(WEFTI_ENV_RANK, &rank));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_WORLD_SIZE, &size));
    if (size < 1 || size > INT32_MAX || rank > INT32_MAX || (size == 1 && rank != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "RANK=%s of WORLD_SIZE=%s is no PE of a world",
                           wefti_env_word(WEFTI_ENV_RANK), wefti_env_word(WEFTI_ENV_WORLD_SIZE));
    }
    *pe = (int)rank;
    *pes = (int)size;
    return WEFT_OK;
}

/* The key that stands for WEFT_SECRET. */
static weft_status read_secret(unsigned char secret[WEFTI_TREE_SECRET_BYTES])
{
    const char *text = wefti_env_word(WEFTI_ENV_SECRET);
    wefti_sodium sodium;
    WEFT_TRY(wefti_sodium_open(&sodium));
    (void)sodium.generichash(secret, WEFTI_TREE_SECRET_BYTES, (const unsigned char *)text, strlen(text), NULL, 0);
    wefti_sodium_close(&sodium);
    return WEFT_OK;
}

/* What PEs of this world, host and user have in common. */
typedef struct meeting {
    char network[8];
    uint32_t port;
    uint32_t user;
    char world[WEFTI_BOOTSTRAP_NAME_BYTES];
} meeting;

static void set_near(env_state *state, const char *world)
{
    meeting here = {.network = "env", .port = wefti_tcp_contact_port(&state->master.contact)};
    here.user = wefti_os_user();
    (void)snprintf(here.world, sizeof here.world, "%s", world);
    wefti_tcp_site_set_near(&state->tcp, &here, sizeof here);
}

static weft_status fill_site(env_state *state)
{
    unsigned char secret[WEFTI_TREE_SECRET_BYTES];
    uint64_t is_open;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_INSECURE, &is_open));
    state->tcp.root_is_complete = state->master.is_loopback;
    state->tcp.is_open = is_open != 0;
    if (!wefti_env_is_set(WEFTI_ENV_SECRET)) {
        return wefti_tcp_site_init(&state->tcp, &env_net, &state->master.contact, NULL);
    }
    WEFT_TRY(read_secret(secret));
    weft_status status = wefti_tcp_site_init(&state->tcp, &env_net, &state->master.contact, secret);
    explicit_bzero(secret, sizeof secret);
    return status;
}

static void warn(const env_state *state, const char *world)
{
    if (!state->tcp.has_secret && state->tcp.is_open) {
        wefti_log(WEFTI_LOG_WARN,
                  "world \"%s\": WEFT_INSECURE is set: whoever reaches port %u can join it; set WEFT_SECRET to a long "
                  "random text on all PEs",
                  world, wefti_tcp_contact_port(&state->master.contact));
    }
    if (!wefti_env_master_is_here(&state->master)) {
        wefti_log(
            WEFTI_LOG_WARN,
            "world \"%s\": PE 0 is here, and MASTER_ADDR=%s is no address of this host: the others must find PE 0 "
            "by it",
            world, wefti_env_word(WEFTI_ENV_MASTER_ADDR));
    }
}

/* ---- the ops ---- */

static weft_status open_state(env_state *state, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(wefti_env_master_find(wefti_os_now_ns() + config->deadline_ns, &state->master));
    WEFT_TRY(fill_site(state));
    set_near(state, wefti_bootstrap_world_name(config));
    state->deadline_ns = config->deadline_ns;
    if (bootstrap->pe == 0) {
        warn(state, wefti_bootstrap_world_name(config));
    }
    weft_status status = wefti_tree_open(&state->tree, &state->tcp.site, config, bootstrap->pe, bootstrap->pes);
    bootstrap->has_met = state->tree.has_met;
    return status;
}

static void forget(env_state *state)
{
    wefti_tcp_site_fini(&state->tcp);
    wefti_free(state);
}

static weft_status env_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(find_place(config, &bootstrap->pe, &bootstrap->pes));
    if (bootstrap->pe == 0 && bootstrap->pes == 1) {
        return WEFT_OK; /* with nobody to meet, and no state */
    }
    env_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to create a world", bootstrap->pe);
    }
    weft_status status = open_state(state, config, bootstrap);
    if (status != WEFT_OK) {
        forget(state);
        return status;
    }
    bootstrap->state = state;
    return WEFT_OK;
}

static void env_close(wefti_bootstrap *bootstrap)
{
    env_state *state = bootstrap->state;
    if (state != NULL) {
        wefti_tree_close(&state->tree);
        forget(state);
    }
}

const wefti_bootstrap_ops wefti_bootstrap_env = {
    .name = "env",
    .open = env_open,
    .allgather = wefti_tree_backend_allgather,
    .digest = wefti_tree_backend_digest,
    .check = wefti_tree_backend_check,
    .close = env_close,
};
