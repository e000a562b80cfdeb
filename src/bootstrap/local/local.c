/* bootstrap/local/local.c: processes that weftrun started on this machine.
 *
 * The tree over abstract unix sockets (bootstrap/unix/site.h), with the secret that weftrun gives its processes
 * (WEFT_LOCAL_JOB) and the world's name. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/thread_state.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/backend.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/unix/site.h"

#define JOB_NAME_BYTES 33 /* with the final zero */

typedef struct local_state {
    wefti_tree tree; /* first */
    wefti_unix_site site;
} local_state;

/* ---- the network ---- */

static const wefti_tree_net local_net = {
    .name = "local",
    .refusal_is_final = 0,
    .listen_as_root = wefti_unix_site_listen_as_root,
    .unlisten_as_root = NULL,
    .listen = wefti_unix_site_listen,
    .resolve = wefti_unix_site_resolve,
    .admit = wefti_unix_site_admit,
    .prove = wefti_unix_site_prove,
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

static weft_status fill_site(local_state *state, const weft_world_config *config)
{
    char job[JOB_NAME_BYTES];
    unsigned char secret[WEFTI_TREE_SECRET_BYTES];
    const char *world = wefti_bootstrap_world_name(config);
    if (!wefti_env_is_set(WEFTI_ENV_LOCAL_JOB)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"local\" needs WEFT_LOCAL_JOB, which weftrun sets: start the program with "
                           "weftrun -n <PEs>");
    }
    if (!parse_job(wefti_env_word(WEFTI_ENV_LOCAL_JOB), job, secret)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_LOCAL_JOB is not what weftrun sets: <name>:<64 hexadecimal digits>");
    }
    wefti_unix_site_init(&state->site, &local_net, secret, world, strlen(world));
    explicit_bzero(secret, sizeof secret);
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
    weft_status status = wefti_tree_open(&state->tree, &state->site.site, config, bootstrap->pe, bootstrap->pes);
    bootstrap->has_met = state->tree.has_met;
    return status;
}

static void forget(local_state *state)
{
    wefti_unix_site_fini(&state->site);
    wefti_free(state);
}

/* Where not all have come: weftrun makes each of its processes the leader of a group, and this is none, so that a
 * process of the job has started it. It has that one's place, in which the others do not meet it, unless they start the
 * same. */
static weft_status explain(weft_status status)
{
    char text[WEFTI_ERROR_BYTES];
    if ((status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER) || getpid() == getpgrp()) {
        return status;
    }
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    return wefti_error(
        status,
        "%s; this process was not started by weftrun itself but by process %d of its job, or below that, "
        "and has inherited WEFT_LOCAL_JOB, WEFT_LOCAL_PE and WEFT_LOCAL_PES: if it is not meant to take that one's "
        "place, say WEFT_BOOTSTRAP=self for a world of its own, or start it by a weftrun of its own",
        text, (int)getpgrp());
}

static weft_status local_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    local_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to create a world", config->pe);
    }
    weft_status status = open_state(state, config, bootstrap);
    if (status != WEFT_OK) {
        forget(state);
        return explain(status);
    }
    bootstrap->state = state;
    return WEFT_OK;
}

static void local_close(wefti_bootstrap *bootstrap)
{
    local_state *state = bootstrap->state;
    wefti_tree_close(&state->tree);
    forget(state);
}

const wefti_bootstrap_ops wefti_bootstrap_local = {
    .name = "local",
    .open = local_open,
    .allgather = wefti_tree_backend_allgather,
    .digest = wefti_tree_backend_digest,
    .check = wefti_tree_backend_check,
    .close = local_close,
};
