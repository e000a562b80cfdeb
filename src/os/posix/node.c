/* os/posix/node.c: what processes must have in common to share memory here. Descriptors are handed over through
 * abstract sockets, so it is one running system (the boot id), one network namespace, in which those have their names,
 * and one user, from whom alone they are taken. Namespaces of processes, mounts and the like do not matter. */
#include "os/posix/node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/hash.h"
#include "os/posix/file.h"
#include "os/posix/user.h"
#include "os/socket.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* from Linux 5.14 on */
#endif
#define USERS UINT64_C(4294967296) /* user numbers are below */

static uint64_t file_number(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (uint64_t)about.st_ino : 0;
}

/* ---- host ---- */

static weft_status query_host(uint64_t *host)
{
    static const unsigned char booted_key[WEFTI_HASH_BYTES] = "weft boot id";
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    unsigned char hash[WEFTI_HASH_BYTES];
    char text[64];
    ssize_t bytes = wefti_os_file_read(path, text, sizeof text);
    if (bytes <= 0) {
        int lacks = bytes < 0 && (errno == EMFILE || errno == ENFILE);
        return wefti_error(WEFT_ERR_SYSTEM, "cannot tell which machine this is: %s: %s; %s", path,
                           bytes < 0 ? strerror(errno) : "empty",
                           lacks ? "allow more open files (ulimit -n)" : "set WEFT_NODE_ID");
    }
    wefti_hash(booted_key, text, (size_t)bytes, hash);
    memcpy(host, hash, sizeof *host);
    return WEFT_OK;
}

/* ---- network namespace ---- */

/* Of this thread, since threads may have entered different ones: by its cookie, which a system gives out once, else, on
 * older systems, by its file. */
static weft_status query_network(wefti_os_identity *identity)
{
    socklen_t bytes = sizeof identity->network;
    int any = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    if (any < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot open a socket to tell the network namespace: %s; look at ulimit -n",
                           strerror(errno));
    }
    identity->network_file = file_number("/proc/thread-self/ns/net");
    if (getsockopt(any, SOL_SOCKET, SO_NETNS_COOKIE, &identity->network, &bytes) != 0) {
        identity->network = identity->network_file;
    }
    wefti_os_socket_close(any);
    return WEFT_OK;
}

/* ---- user ---- */

int wefti_os_uid_outside(const char *map, uint64_t uid, uint64_t *user)
{
    wefti_os_uid_range range;
    while (wefti_os_uid_map_next(&map, &range)) {
        if (uid >= range.inside && uid - range.inside < range.count) {
            *user = range.outside + (uid - range.inside);
            return 1;
        }
    }
    return 0;
}

/* As the system around this process's user namespace sees it, if it is one that can be told from others inside. In
 * nested namespaces the map leads out of the innermost only: two PEs of one user may then count as two users, or two
 * users as one, which the proof of shared memory finds. */
static weft_status query_user(uint64_t *user)
{
    static const char path[] = "/proc/self/uid_map";
    uint64_t uid = geteuid();
    char *map = wefti_alloc(WEFTI_OS_UID_MAP_BYTES);
    if (map == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to read %s", path);
    }
    ssize_t bytes = wefti_os_file_read(path, map, WEFTI_OS_UID_MAP_BYTES);
    weft_status status = WEFT_OK;
    if (bytes < 0 && errno == ENOENT) {
        *user = uid; /* a system without user namespaces */
    } else if (bytes < 0) {
        status =
            wefti_error(WEFT_ERR_SYSTEM, "cannot tell which user this is: %s: %s; mount /proc and look at ulimit -n",
                        path, strerror(errno));
    } else if (wefti_os_uid_is_vague(map, uid) || !wefti_os_uid_outside(map, uid, user)) {
        *user = USERS + file_number("/proc/self/ns/user"); /* nobody, here or outside */
    }
    wefti_free(map);
    return status;
}

/* ---- all of it ---- */

static void name_node(const char *name, wefti_os_identity *identity)
{
    static const unsigned char named_key[WEFTI_HASH_BYTES] = "weft node name";
    wefti_hash(named_key, name, strlen(name), identity->node);
    identity->is_named = 1;
}

weft_status wefti_os_node_query(wefti_os_identity *identity)
{
    static const unsigned char node_key[WEFTI_HASH_BYTES] = "weft node";
    if (wefti_env_is_set(WEFTI_ENV_NODE_ID)) {
        name_node(wefti_env_word(WEFTI_ENV_NODE_ID), identity);
        return WEFT_OK;
    }
    WEFT_TRY(query_host(&identity->host));
    WEFT_TRY(query_network(identity));
    WEFT_TRY(query_user(&identity->user));
    const uint64_t parts[] = {identity->host, identity->network, identity->user};
    wefti_hash(node_key, parts, sizeof parts, identity->node);
    return WEFT_OK;
}
