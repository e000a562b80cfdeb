/* bootstrap/uid/id.c: making, claiming and discarding unique ids.
 *
 * An id carries the number of a descriptor of the process that made it. Whoever wants to use or close that descriptor
 * first claims it by binding an abstract socket named after the id, which only one can; then it looks whether the
 * descriptor still is the id's socket, by a number that the system gives each socket once. So neither a second PE 0 nor
 * a late discard can touch a descriptor that belongs to something else by now, and no state is kept between calls. */
#include "bootstrap/uid/id.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/crypto/sodium.h"
#include "bootstrap/tcp/interfaces.h"
#include "bootstrap/tcp/listen.h"
#include "os/os.h"
#include "os/socket.h"

weft_status wefti_uid_read(const weft_uid *uid, wefti_uid_body *body)
{
    memcpy(body, uid->bytes, sizeof *body);
    if (body->magic != WEFTI_UID_MAGIC || body->version != WEFTI_UID_VERSION) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "these bytes are no unique id of this version of weft; carry all %d bytes of "
                           "what weft_uid_create made",
                           WEFT_UID_BYTES);
    }
    return WEFT_OK;
}

/* ---- claiming ---- */

static int bind_claim(const wefti_uid_body *body)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int used = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft/uid/");
    for (size_t i = 0; i < sizeof body->tag; i++) {
        used += snprintf(address.sun_path + 1 + used, sizeof address.sun_path - 1 - (size_t)used, "%02x", body->tag[i]);
    }
    int claim = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    if (claim < 0) {
        return -1;
    }
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    if (wefti_fault("bind", EACCES) || wefti_os_socket_bind(claim, (const struct sockaddr *)&address, bytes) != 0) {
        int error = errno;
        wefti_os_socket_close(claim);
        errno = error;
        return -1;
    }
    return claim;
}

static weft_status check_maker(const wefti_uid_body *body)
{
    wefti_os_identity own;
    WEFT_TRY(wefti_os_identity_query(&own));
    if (memcmp(own.process, body->process, sizeof own.process) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "this process did not make the unique id; make it in the process of PE 0");
    }
    return WEFT_OK;
}

void wefti_uid_disown(weft_uid *uid)
{
    memset(uid->bytes + offsetof(wefti_uid_body, process), 0, sizeof(((wefti_uid_body *)NULL)->process));
}

static int is_disowned(const wefti_uid_body *body)
{
    static const unsigned char nobody[sizeof body->process];
    return memcmp(body->process, nobody, sizeof nobody) == 0;
}

void wefti_uid_drop(const weft_uid *uid)
{
    wefti_uid_body body;
    memcpy(&body, uid->bytes, sizeof body);
    if (!body.is_of_host && !is_disowned(&body) && wefti_os_socket_cookie(body.descriptor) == body.cookie) {
        wefti_os_socket_close(body.descriptor);
    }
}

weft_status wefti_uid_claim(const wefti_uid_body *body, int *claim)
{
    if (is_disowned(body)) {
        return WEFT_ERR_STATE;
    }
    WEFT_TRY(check_maker(body));
    int made = bind_claim(body);
    if (made < 0 && errno == EADDRINUSE) {
        return WEFT_ERR_STATE;
    }
    if (made < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot claim the unique id: %s; allow more open files (ulimit -n)",
                           strerror(errno));
    }
    if (wefti_os_socket_cookie(body->descriptor) != body->cookie || wefti_tcp_contact_port(&body->contact) == 0 ||
        wefti_tcp_port_of(body->descriptor) != wefti_tcp_contact_port(&body->contact)) {
        wefti_os_socket_close(made);
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "this unique id was used or discarded; an id serves one world once, make another one");
    }
    *claim = made;
    return WEFT_OK;
}

/* ---- making ---- */

/* Loopback alone when nothing else is up; else everything, loopback among it. */
static weft_status listen_by_default(wefti_tcp_contact *contact, int *listener, unsigned *port)
{
    int count;
    WEFT_TRY(wefti_interfaces_list(contact->addresses, &count));
    contact->count = (unsigned char)count;
    return wefti_tcp_listen_anywhere(wefti_tcp_contact_is_wide(contact) ? NULL : &contact->addresses[0], listener,
                                     port);
}

/* Only one address can be listened at; of several the others are told these alone. */
static weft_status listen_at(const char *interface, wefti_tcp_contact *contact, int *listener, unsigned *port)
{
    int count;
    WEFT_TRY(wefti_interfaces_choose(interface, contact->addresses, &count));
    contact->count = (unsigned char)count;
    return wefti_tcp_listen_anywhere(count == 1 ? &contact->addresses[0] : NULL, listener, port);
}

static weft_status open_port(const char *interface, wefti_uid_body *body)
{
    int listener;
    unsigned port;
    if (interface == NULL || interface[0] == '\0') {
        interface = wefti_env_word(WEFTI_ENV_UID_INTERFACE);
    }
    WEFT_TRY(interface[0] == '\0' ? listen_by_default(&body->contact, &listener, &port)
                                  : listen_at(interface, &body->contact, &listener, &port));
    wefti_tcp_contact_set_port(&body->contact, port);
    body->descriptor = listener;
    body->cookie = wefti_os_socket_cookie(listener);
    return WEFT_OK;
}

/* How PEs will meet. Over TCP a world would not come far without libsodium; where it is missing and no other interface
 * than loopback was asked for, they meet by unix sockets, whose other end the system knows. */
static weft_status choose_way(const char *interface, wefti_uid_body *body)
{
    wefti_sodium sodium;
    const char *named = interface == NULL || interface[0] == '\0' ? wefti_env_word(WEFTI_ENV_UID_INTERFACE) : interface;
    body->is_of_host = strcmp(named, "unix") == 0;
    if (body->is_of_host) {
        return WEFT_OK;
    }
    weft_status status = wefti_sodium_open(&sodium);
    if (status == WEFT_ERR_UNSUPPORTED && (named[0] == '\0' || strcmp(named, "lo") == 0)) {
        wefti_log(WEFTI_LOG_INFO, "the unique id reaches PEs of this host only: %s", weft_last_error());
        body->is_of_host = 1;
        return WEFT_OK;
    }
    wefti_sodium_close(&sodium);
    return status;
}

weft_status weft_uid_create(const char *interface, weft_uid *uid)
{
    wefti_uid_body body;
    wefti_os_identity own;
    if (uid == NULL) {
        return wefti_error_null("weft_uid_create", "uid");
    }
    memset(&body, 0, sizeof body);
    body.magic = WEFTI_UID_MAGIC;
    body.version = WEFTI_UID_VERSION;
    WEFT_TRY(choose_way(interface, &body));
    WEFT_TRY(wefti_os_identity_query(&own));
    WEFT_TRY(wefti_os_random(body.secret, sizeof body.secret));
    WEFT_TRY(wefti_os_random(body.tag, sizeof body.tag));
    memcpy(body.process, own.process, sizeof body.process);
    memcpy(body.contact.node, own.node, sizeof body.contact.node);
    body.descriptor = -1;
    WEFT_TRY(body.is_of_host ? WEFT_OK : open_port(interface, &body));
    memset(uid, 0, sizeof *uid);
    memcpy(uid->bytes, &body, sizeof body);
    return WEFT_OK;
}

weft_status weft_uid_discard(const weft_uid *uid)
{
    wefti_uid_body body;
    int claim;
    if (uid == NULL) {
        return wefti_error_null("weft_uid_discard", "uid");
    }
    WEFT_TRY(wefti_uid_read(uid, &body));
    if (body.is_of_host) {
        return check_maker(&body); /* it has no socket to close */
    }
    weft_status status = wefti_uid_claim(&body, &claim);
    if (status == WEFT_ERR_STATE) {
        return wefti_error(WEFT_ERR_STATE, "the unique id is being used by a weft_world_create under way");
    }
    if (status != WEFT_OK) {
        return status;
    }
    wefti_os_socket_close(body.descriptor);
    wefti_os_socket_close(claim);
    return WEFT_OK;
}
