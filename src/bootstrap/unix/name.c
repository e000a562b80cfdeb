/* bootstrap/unix/name.c: abstract unix sockets at names that follow from a key. */
#include "bootstrap/unix/name.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"

#define BACKLOG 1024
#define PREFIX "weft-"

/* How often, and how long apart, a name is tried at which nobody listens: who bound it may be about to. */
#define PROBES 4
#define PROBE_PAUSE_NS UINT64_C(1000000)

/* Of the passes over the names of a key the n-th goes over 2^n of them, up to this one. */
#define PASS_MAX 12u

_Static_assert(1u << PASS_MAX == WEFTI_UNIX_NAMES_MAX, "the longest pass goes over all names");

static const size_t path_at = offsetof(struct sockaddr_un, sun_path);

/* ---- names ---- */

static socklen_t name_address(const unsigned char key[WEFTI_HASH_BYTES], uint32_t number, struct sockaddr_un *address)
{
    unsigned char hash[WEFTI_HASH_BYTES];
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    wefti_hash(key, &number, sizeof number, hash);
    int used = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, PREFIX); /* the zero makes it abstract */
    for (size_t i = 0; i < sizeof hash; i++) {
        used += snprintf(address->sun_path + 1 + used, sizeof address->sun_path - 1 - (size_t)used, "%02x", hash[i]);
    }
    return (socklen_t)(path_at + 1 + (size_t)used);
}

void wefti_unix_contact_set(wefti_tree_contact *contact, wefti_unix_contact_kind kind, uint32_t number,
                            const void *bytes, size_t count)
{
    wefti_unix_contact own = {.kind = kind, .number = number};
    memcpy(own.bytes, bytes, count);
    memset(contact, 0, sizeof *contact);
    contact->bytes = sizeof own;
    memcpy(contact->data, &own, sizeof own);
}

/* Which name besides the first is tried in a round. */
static uint32_t number_of(unsigned round)
{
    unsigned pass = 0;
    while (pass < PASS_MAX && round >= 1u << pass) {
        round -= 1u << pass++;
    }
    return round % (1u << pass);
}

static void add(wefti_tree_address *addresses, size_t *count, const struct sockaddr_un *address, socklen_t bytes)
{
    addresses[*count].bytes = bytes;
    memset(addresses[*count].sockaddr, 0, sizeof addresses[*count].sockaddr);
    memcpy(addresses[*count].sockaddr, address, bytes);
    (*count)++;
}

size_t wefti_unix_contact_resolve(const wefti_tree_contact *contact, unsigned round, wefti_tree_address *addresses)
{
    wefti_unix_contact own;
    struct sockaddr_un address;
    size_t count = 0;
    if (contact->bytes != sizeof own) {
        return 0;
    }
    memcpy(&own, contact->data, sizeof own);
    if (own.kind == WEFTI_UNIX_ANY) {
        socklen_t bytes = name_address(own.bytes, 0, &address);
        add(addresses, &count, &address, bytes);
        bytes = name_address(own.bytes, 1 + number_of(round) % (WEFTI_UNIX_NAMES_MAX - 1), &address);
        add(addresses, &count, &address, bytes);
    } else if (own.kind == WEFTI_UNIX_ONE) {
        socklen_t bytes = name_address(own.bytes, own.number, &address);
        add(addresses, &count, &address, bytes);
    } else if (own.kind == WEFTI_UNIX_FREE && own.number > 0 && own.number <= sizeof own.bytes) {
        memset(&address, 0, sizeof address);
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path + 1, own.bytes, own.number);
        add(addresses, &count, &address, (socklen_t)(path_at + 1 + own.number));
    }
    return count;
}

void wefti_unix_print(const wefti_tree_address *address, char *text, size_t bytes)
{
    const char *path = (const char *)address->sockaddr + path_at;
    (void)snprintf(text, bytes, "the abstract socket \"%.*s\"", (int)(address->bytes - path_at - 1), path + 1);
}

/* ---- listening ---- */

/* Returns a descriptor, or -1 with errno set. */
static int listen_at(const struct sockaddr_un *address, socklen_t bytes)
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

/* Who holds a name that is taken. */
typedef enum holder {
    HOLDER_SILENT, /* nobody listens there: it was left by a parent to its children, say */
    HOLDER_OWN, /* a process of this user listens */
    HOLDER_OTHER /* one of another user does */
} holder;

static holder probe_once(const struct sockaddr_un *address, socklen_t bytes, unsigned *user)
{
    int caller = wefti_os_socket_open(AF_UNIX);
    if (caller < 0) {
        return HOLDER_SILENT;
    }
    holder found = HOLDER_OWN; /* until shown to be otherwise: the queue of who listens may be full */
    if (wefti_os_socket_connect(caller, (const struct sockaddr *)address, bytes) == 0) {
        found = wefti_os_socket_is_own_user(caller, user) ? HOLDER_OWN : HOLDER_OTHER;
    } else if (errno == ECONNREFUSED || errno == ENOENT) {
        found = HOLDER_SILENT;
    }
    wefti_os_socket_close(caller);
    return found;
}

static holder probe(const struct sockaddr_un *address, socklen_t bytes, unsigned *user)
{
    holder found = probe_once(address, bytes, user);
    for (int i = 1; i < PROBES && found == HOLDER_SILENT; i++) {
        wefti_os_sleep_ns(PROBE_PAUSE_NS);
        found = probe_once(address, bytes, user);
    }
    return found;
}

weft_status wefti_unix_listen(const unsigned char key[WEFTI_HASH_BYTES], unsigned first, int *listener,
                              unsigned *number)
{
    unsigned others = 0;
    unsigned user = 0;
    for (*number = first; *number < WEFTI_UNIX_NAMES_MAX; (*number)++) {
        struct sockaddr_un address;
        socklen_t bytes = name_address(key, *number, &address);
        *listener = listen_at(&address, bytes);
        if (*listener >= 0) {
            return WEFT_OK;
        }
        if (errno != EADDRINUSE) {
            return wefti_error(WEFT_ERR_SYSTEM, "cannot listen at the abstract socket \"%s\": %s", address.sun_path + 1,
                               strerror(errno));
        }
        holder found = probe(&address, bytes, &user);
        if (found == HOLDER_OWN) {
            return WEFT_ERR_STATE;
        }
        others += found == HOLDER_OTHER;
    }
    return wefti_error(
        WEFT_ERR_SYSTEM,
        "all %u abstract sockets at which PE 0 may be found are taken, %u of them by other users, such as "
        "user %u; end the processes that hold them, or choose another name, port or secret",
        WEFTI_UNIX_NAMES_MAX - first, others, user);
}

weft_status wefti_unix_listen_anywhere(int *listener, wefti_tree_contact *contact)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct sockaddr_un chosen;
    socklen_t bytes = sizeof chosen;
    *listener = listen_at(&any, sizeof any.sun_family);
    if (*listener < 0 || wefti_os_socket_name(*listener, (struct sockaddr *)&chosen, &bytes) != 0 ||
        bytes <= path_at + 1 || bytes - path_at - 1 > sizeof((wefti_unix_contact){0}.bytes)) {
        return wefti_error(WEFT_ERR_SYSTEM,
                           "cannot listen at an abstract socket: %s; allow more open files (ulimit -n)",
                           strerror(errno));
    }
    uint32_t count = (uint32_t)(bytes - path_at - 1);
    wefti_unix_contact_set(contact, WEFTI_UNIX_FREE, count, chosen.sun_path + 1, count);
    return WEFT_OK;
}
