/* Which transports between nodes this PE can use, those of this build that WEFT_TRANSPORT allows or the library that it
 * names, and who sees to them. */
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/library.h"
#include "base/log.h"
#include "world/world.h"
#ifndef WEFT_SIM
#include "transport/plugin/plugin.h"
#endif

/* By number. `map` is not between nodes and is always there: it may be named, and means nothing more. */
static const struct {
    const char *name;
    const wefti_transport_ops *ops; /* NULL: not in this build */
} rows[] = {[WEFTI_NETWORK_MAP] = {"map", NULL},
#define ROW(id, name, has) [WEFTI_NETWORK_##id] = {#name, has(&wefti_transport_##name)},
            WEFTI_NETWORK_TABLE(ROW)
#undef ROW
};
static const char names[] = "map"
#define NAME(id, name, has) ", " #name
    WEFTI_NETWORK_TABLE(NAME)
#undef NAME
    ;
#define NETWORKS ((uint32_t)(sizeof rows / sizeof *rows))
_Static_assert(NETWORKS <= sizeof(uint32_t), "a list has room for all but `map`, and for a plugin");

const wefti_transport_ops *wefti_network_ops(uint32_t network)
{
#ifdef WEFT_SIM
    if (network == WEFTI_NETWORK_SIM) { /* without messages its transport is open already */
        return wefti_network_has_messages() ? &wefti_transport_sim_messages : NULL;
    }
    if (network == WEFTI_NETWORK_SIM_FIRST) {
        return &wefti_transport_sim_first;
    }
#else
    if (network == WEFTI_NETWORK_PLUGIN) {
        return wefti_transport_plugin();
    }
#endif
    return network < NETWORKS ? rows[network].ops : NULL;
}

static uint32_t of_this_build(void)
{
    uint32_t list = 0;
#ifdef WEFT_SIM
    list = wefti_network_has_two() ? WEFTI_NETWORK_SIM_FIRST | WEFTI_NETWORK_SIM << 8 : WEFTI_NETWORK_SIM;
#endif
    for (uint32_t network = 0; network < NETWORKS; network++) {
        list = rows[network].ops != NULL ? wefti_networks_append(list, network) : list;
    }
    return list;
}

/* ---- lists ---- */

static uint32_t first(uint32_t list)
{
    return list & 0xff;
}

static int has(uint32_t list, uint32_t network)
{
    while (list != 0 && first(list) != network) {
        list >>= 8;
    }
    return list != 0;
}

uint32_t wefti_networks_append(uint32_t list, uint32_t network)
{
    unsigned shift = 0;
    if (has(list, network)) {
        return list;
    }
    while (list >> shift != 0) { /* each network stands there once at most, so there is room */
        shift += 8;
    }
    return list | network << shift;
}

uint32_t wefti_networks_common(uint32_t list, uint32_t other)
{
    uint32_t common = 0;
    for (; list != 0; list >>= 8) {
        common = has(other, first(list)) ? wefti_networks_append(common, first(list)) : common;
    }
    return common;
}

static uint32_t without(uint32_t list, uint32_t other)
{
    uint32_t left = 0;
    for (; list != 0; list >>= 8) {
        left = has(other, first(list)) ? left : wefti_networks_append(left, first(list));
    }
    return left;
}

/* ---- WEFT_TRANSPORT ---- */

static uint32_t find(const char *name, size_t length)
{
    uint32_t network = 0;
    for (; network < NETWORKS; network++) {
        const char *known = rows[network].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            break;
        }
    }
    return network;
}

/* A library by its path, which a process with more rights than who started it does not follow; 0: none. */
static weft_status load(const char *path, size_t length, uint32_t *network)
{
    *network = 0;
    if (wefti_process_is_privileged()) {
        wefti_log(WEFTI_LOG_WARN,
                  "WEFT_TRANSPORT names the library %.*s, which is not followed in a program that has more rights than "
                  "its user (setuid, capabilities)",
                  (int)length, path);
        return WEFT_OK;
    }
#ifndef WEFT_SIM
    WEFT_TRY(wefti_transport_plugin_load(path, length));
    *network = WEFTI_NETWORK_PLUGIN;
#endif
    return WEFT_OK;
}

/* The networks of a list with commas; libraries: one may be named by its path. */
static weft_status read_list(const char *list, int libraries, uint32_t *listed)
{
    *listed = 0;
    for (int is_more = 1; is_more; list++) {
        const size_t length = strcspn(list, ",");
        uint32_t network = find(list, length);
        if (network == NETWORKS && libraries && memchr(list, '/', length) != NULL) {
            WEFT_TRY(load(list, length, &network));
        } else if (network == NETWORKS) {
            return wefti_error(WEFT_ERR_ARGUMENT,
                               "weft_world_create: WEFT_TRANSPORT names \"%.*s\"; give a list of %s or the absolute "
                               "path of a library (weft/transport.h), the first to be tried first, or ^ and which of "
                               "these names are not to be used",
                               (int)length, list, names);
        }
        *listed = network != 0 ? wefti_networks_append(*listed, network) : *listed;
        list += length;
        is_more = *list == ',';
    }
    return WEFT_OK;
}

weft_status wefti_world_networks(uint32_t *networks)
{
    const char *word = wefti_env_word(WEFTI_ENV_TRANSPORT);
    const uint32_t built = of_this_build();
    const int is_without = *word == '^';
    uint32_t listed;
    *networks = built;
    if (*word == '\0') {
        return WEFT_OK;
    }
    WEFT_TRY(read_list(word + is_without, !is_without, &listed));
    if (!has(built, WEFTI_NETWORK_SIM)) {
        *networks = is_without ? without(built, listed)
                               : wefti_networks_common(listed, wefti_networks_append(built, WEFTI_NETWORK_PLUGIN));
    }
    return WEFT_OK;
}

weft_status wefti_world_progress(int *is_inline)
{
    const char *word = wefti_env_word(WEFTI_ENV_PROGRESS);
    *is_inline = strcmp(word, "inline") == 0;
    return *is_inline || strcmp(word, "thread") == 0 || strcmp(word, "auto") == 0
               ? WEFT_OK
               : wefti_error(WEFT_ERR_ARGUMENT,
                             "weft_world_create: WEFT_PROGRESS is \"%s\"; give thread, inline or auto", word);
}
