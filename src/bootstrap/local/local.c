/* bootstrap/local/local.c: processes that weftrun started on this machine.
 *
 * The tree over abstract unix sockets (bootstrap/unix). weftrun gives its processes a secret (WEFT_LOCAL_JOB), from
 * which follow the names at which a world's PE 0 listens while it forms. The system says which user is at the other end
 * of a connection, so it suffices that both sides show the secret. */
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/unix/site.h"

#define JOB_NAME_BYTES 33 /* with the final zero */

typedef struct local_state {
    wefti_tree tree;
    wefti_tree_site site;
    wefti_unix_root root;
} local_state;

/* ---- the network ---- */

static weft_status local_listen(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    local_state *state = site->state;
    return wefti_unix_root_listen(&state->root, site, listeners, occupied);
}

static void local_prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                        unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    (void)handshake;
    memcpy(proof, site->secret, WEFTI_TREE_PROOF_BYTES);
}

static const wefti_tree_net local_net = {
    .name = "local",
    .refusal_is_final = 0,
    .listen_as_root = local_listen,
    .unlisten_as_root = NULL,
    .listen = wefti_unix_site_listen,
    .resolve = wefti_unix_site_resolve,
    .admit = wefti_unix_site_admit,
    .prove = local_prove,
    .print = wefti_unix_print,
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

/* PE 0 of each world of the job has a name of its own, which only the job's processes know. */
static void make_key(const unsigned char secret[WEFTI_TREE_SECRET_BYTES], const char *world,
                     unsigned char key[WEFTI_HASH_BYTES])
{
    unsigned char both[WEFTI_TREE_SECRET_BYTES - WEFTI_HASH_BYTES + WEFTI_BOOTSTRAP_NAME_BYTES] = {0};
    const size_t rest = WEFTI_TREE_SECRET_BYTES - WEFTI_HASH_BYTES;
    memcpy(both, secret + WEFTI_HASH_BYTES, rest);
    memcpy(both + rest, world, strlen(world));
    wefti_hash(secret, both, sizeof both, key);
    explicit_bzero(both, sizeof both);
}

static weft_status fill_site(local_state *state, const weft_world_config *config)
{
    char job[JOB_NAME_BYTES];
    wefti_tree_site *site = &state->site;
    site->net = &local_net;
    site->state = state;
    if (!wefti_env_is_set(WEFTI_ENV_LOCAL_JOB)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"local\" needs WEFT_LOCAL_JOB, which weftrun sets: start the program with "
                           "weftrun -n <PEs>");
    }
    if (!parse_job(wefti_env_word(WEFTI_ENV_LOCAL_JOB), job, site->secret)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_LOCAL_JOB is not what weftrun sets: <name>:<64 hexadecimal digits>");
    }
    make_key(site->secret, wefti_bootstrap_world_name(config), state->root.key);
    wefti_unix_contact_set(&site->root, WEFTI_UNIX_ANY, 0, state->root.key, sizeof state->root.key);
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
    WEFT_TRY(fill_site(state, config));
    weft_status status = wefti_tree_open(&state->tree, &state->site, config, bootstrap->pe, bootstrap->pes);
    bootstrap->has_met = state->tree.has_met;
    return status;
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

static weft_status local_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call)
{
    local_state *state = bootstrap->state;
    return wefti_tree_digest(&state->tree, call, wefti_bootstrap_limit_ns(bootstrap));
}

static weft_status local_check(wefti_bootstrap *bootstrap)
{
    local_state *state = bootstrap->state;
    return wefti_tree_check(&state->tree);
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
    .digest = local_digest,
    .check = local_check,
    .close = local_close,
};
