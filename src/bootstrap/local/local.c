/* bootstrap/local/local.c: processes that weftrun started on this machine.
 *
 * The tree over abstract unix sockets, which take part in no file system. weftrun gives its processes a job name and a
 * secret (WEFT_LOCAL_JOB); a world's PE 0 listens at "weft/<job>/<world name>" while that world forms. The system says
 * which user is at the other end of a connection, so it suffices that both sides show the secret. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/tree.h"
#include "os/socket.h"

#define JOB_NAME_BYTES 33 /* with the final zero */
#define BACKLOG 1024

typedef struct local_state {
    wefti_tree tree;
    wefti_tree_site site;
} local_state;

_Static_assert(sizeof(struct sockaddr_un) <= sizeof((wefti_tree_contact){0}.data), "an address holds a unix socket's");
_Static_assert(sizeof "weft//" + JOB_NAME_BYTES + WEFTI_BOOTSTRAP_NAME_BYTES < sizeof((struct sockaddr_un){0}.sun_path),
               "the longest name fits a unix socket's address");

/* ---- the network ---- */

static int make_listener(const struct sockaddr_un *address, socklen_t bytes)
{
    int listener = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    if (listener < 0) {
        return -1;
    }
    int failed =
        wefti_fault("bind", EACCES) || wefti_os_socket_bind(listener, (const struct sockaddr *)address, bytes) != 0;
    failed = failed || wefti_fault("listen", EACCES) || wefti_os_socket_listen(listener, BACKLOG) != 0;
    if (failed) {
        int error = errno;
        wefti_os_socket_close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

static weft_status local_meet(wefti_tree_site *site, int *listener)
{
    struct sockaddr_un address;
    memcpy(&address, site->root.data, sizeof address);
    *listener = make_listener(&address, site->root.bytes);
    if (*listener < 0 && errno == EADDRINUSE) {
        return WEFT_ERR_STATE;
    }
    if (*listener < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot listen at the abstract socket \"%s\": %s", address.sun_path + 1,
                           strerror(errno));
    }
    return WEFT_OK;
}

static void local_part(wefti_tree_site *site, int listener)
{
    (void)site;
    wefti_os_socket_close(listener);
}

/* The system finds a name that nobody has. */
static weft_status local_listen(wefti_tree_site *site, int near, int *listener, wefti_tree_contact *contact)
{
    (void)site;
    (void)near;
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof contact->data;
    *listener = make_listener(&any, sizeof any.sun_family);
    if (*listener < 0 || wefti_os_socket_name(*listener, (struct sockaddr *)(void *)contact->data, &bytes) != 0) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot listen at an abstract socket: %s; allow more open files (ulimit -n)",
                           strerror(errno));
    }
    contact->bytes = bytes;
    return WEFT_OK;
}

/* A contact is a socket address. */
static size_t local_resolve(const wefti_tree_site *site, const wefti_tree_contact *contact,
                            wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    (void)site;
    if (contact->bytes <= sizeof(sa_family_t) || contact->bytes > sizeof(struct sockaddr_un)) {
        return 0;
    }
    addresses[0].bytes = contact->bytes;
    memcpy(addresses[0].sockaddr, contact->data, sizeof contact->data);
    return 1;
}

static int local_admit(const wefti_tree_site *site, int descriptor)
{
    (void)site;
    return wefti_os_socket_is_own_user(descriptor);
}

static void local_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                        unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    (void)handshake;
    memcpy(proof, site->secret, WEFTI_TREE_PROOF_BYTES);
}

static void local_print(const wefti_tree_address *address, char *text, size_t bytes)
{
    const char *path = (const char *)address->sockaddr + offsetof(struct sockaddr_un, sun_path);
    (void)snprintf(text, bytes, "the abstract socket \"%.*s\"",
                   (int)(address->bytes - offsetof(struct sockaddr_un, sun_path) - 1), path + 1);
}

static const wefti_tree_net local_net = {
    .name = "local",
    .has_challenge = 0,
    .refusal_is_final = 0,
    .meet = local_meet,
    .part = local_part,
    .listen = local_listen,
    .resolve = local_resolve,
    .admit = local_admit,
    .prove = local_prove,
    .print = local_print,
};

/* ---- the job ---- */

static int hex_digit(char letter)
{
    if (letter >= '0' && letter <= '9') {
        return letter - '0';
    }
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* "<name>:<secret in hexadecimal digits>". */
static int parse_job(const char *job, char name[JOB_NAME_BYTES], unsigned char secret[WEFTI_TREE_SECRET_BYTES])
{
    const char *colon = strchr(job, ':');
    if (colon == NULL || colon == job || colon - job >= JOB_NAME_BYTES ||
        strlen(colon + 1) != 2 * WEFTI_TREE_SECRET_BYTES) {
        return 0;
    }
    memcpy(name, job, (size_t)(colon - job));
    name[colon - job] = '\0';
    for (size_t i = 0; i < WEFTI_TREE_SECRET_BYTES; i++) {
        int high = hex_digit(colon[1 + 2 * i]);
        int low = hex_digit(colon[2 + 2 * i]);
        if (high < 0 || low < 0) {
            return 0;
        }
        secret[i] = (unsigned char)(high * 16 + low);
    }
    return 1;
}

static weft_status fill_site(wefti_tree_site *site, const weft_world_config *config)
{
    char job[JOB_NAME_BYTES];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    site->net = &local_net;
    if (!wefti_env_is_set(WEFTI_ENV_LOCAL_JOB)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"local\" needs WEFT_LOCAL_JOB, which weftrun sets: start the program with "
                           "weftrun -n <PEs>");
    }
    if (!parse_job(wefti_env_word(WEFTI_ENV_LOCAL_JOB), job, site->secret)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_LOCAL_JOB is not what weftrun sets: <name>:<64 hexadecimal digits>");
    }
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft/%s/%s", job,
                          wefti_bootstrap_world_name(config));
    site->root.bytes = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    memcpy(site->root.data, &address, sizeof address);
    return WEFT_OK;
}

/* pes 0: this process is the PE that weftrun made it. */
static weft_status find_place(const weft_world_config *config, int *pe, int *pes)
{
    uint64_t env_pe;
    uint64_t env_pes;
    *pe = config->pe;
    *pes = config->pes;
    if (config->pes != 0) {
        return WEFT_OK;
    }
    if (!wefti_env_is_set(WEFTI_ENV_LOCAL_PE) || !wefti_env_is_set(WEFTI_ENV_LOCAL_PES)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "config.pes is 0 and WEFT_LOCAL_PE and WEFT_LOCAL_PES are not set: start the "
                           "program with weftrun -n <PEs>");
    }
    WEFT_TRY(wefti_env_count(WEFTI_ENV_LOCAL_PE, &env_pe));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_LOCAL_PES, &env_pes));
    if (env_pes < 1 || env_pes > INT32_MAX || env_pe >= env_pes) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_LOCAL_PE=%s is not a PE of WEFT_LOCAL_PES=%s",
                           wefti_env_word(WEFTI_ENV_LOCAL_PE), wefti_env_word(WEFTI_ENV_LOCAL_PES));
    }
    *pe = (int)env_pe;
    *pes = (int)env_pes;
    return WEFT_OK;
}

/* ---- the ops ---- */

static weft_status open_state(local_state *state, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(find_place(config, &bootstrap->pe, &bootstrap->pes));
    WEFT_TRY(fill_site(&state->site, config));
    return wefti_tree_open(&state->tree, &state->site, config, bootstrap->pe, bootstrap->pes);
}

static weft_status local_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    local_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to create a world", config->pe);
    }
    weft_status status = open_state(state, config, bootstrap);
    if (status != WEFT_OK) {
        wefti_free(state);
        return status;
    }
    bootstrap->state = state;
    return WEFT_OK;
}

static weft_status local_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    local_state *state = bootstrap->state;
    return wefti_tree_allgather(&state->tree, mine, all, bytes, wefti_bootstrap_limit_ns(bootstrap));
}

static void local_close(wefti_bootstrap *bootstrap)
{
    local_state *state = bootstrap->state;
    wefti_tree_close(&state->tree);
    wefti_free(state);
}

const wefti_bootstrap_ops wefti_bootstrap_local = {
    .name = "local",
    .open = local_open,
    .allgather = local_allgather,
    .close = local_close,
};
