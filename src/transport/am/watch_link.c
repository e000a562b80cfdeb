/* One connection of a watch: sockets that the system keeps alive. */
#include "transport/am/watch_link.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "os/os.h"
#include "os/socket.h"

#define BACKLOG 64
#define REST_NS UINT64_C(10000000)

/* ---- addresses ---- */

/* An abstract name: 0, a word, and the 16 bytes. */
static socklen_t local_address(const unsigned char name[16], struct sockaddr_un *address)
{
    static const char word[] = "weft-watch-";
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, word, sizeof word - 1);
    memcpy(address->sun_path + sizeof word, name, 16);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof word + 16);
}

int wefti_watch_listen_local(const unsigned char name[16])
{
    struct sockaddr_un address;
    const socklen_t bytes = local_address(name, &address);
    const int listener = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(AF_UNIX);
    if (listener < 0) {
        return -1;
    }
    if (wefti_os_socket_bind(listener, (const struct sockaddr *)&address, bytes) != 0 ||
        wefti_os_socket_listen(listener, BACKLOG) != 0) {
        const int error = errno;
        wefti_os_socket_close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

/* ---- connecting ---- */

/* A local name is anybody's once its owner has ended. */
static int is_foreign(int descriptor, int is_local)
{
    return is_local && !wefti_os_socket_is_own_user(descriptor, NULL);
}

static socklen_t address_of(const wefti_watch_contact *contact, int is_local, struct sockaddr_storage *address)
{
    struct sockaddr_un local;
    if (is_local) {
        const socklen_t bytes = local_address(contact->name, &local);
        memcpy(address, &local, bytes);
        return bytes;
    }
    memcpy(address, contact->host, contact->host_bytes);
    return contact->host_bytes;
}

static void begin(wefti_watch_link *link, int descriptor, int is_local)
{
    *link = (wefti_watch_link){.state = WEFTI_WATCH_UNKNOWN,
                               .descriptor = descriptor,
                               .pe = -1,
                               .is_local = is_local,
                               .since_ns = wefti_os_now_ns()};
}

int wefti_watch_link_dial(wefti_watch_link *link, const wefti_watch_contact *contact, int pe, int is_local)
{
    struct sockaddr_storage address = {0};
    const socklen_t bytes = address_of(contact, is_local, &address);
    const int descriptor = wefti_os_socket_open(address.ss_family);
    if (descriptor < 0) {
        return errno;
    }
    begin(link, descriptor, is_local);
    link->state = WEFTI_WATCH_DIALLING;
    link->pe = pe;
    link->is_dialled = 1;
    if (wefti_os_socket_connect(descriptor, (const struct sockaddr *)&address, bytes) != 0 && errno != EINPROGRESS) {
        const int error = errno;
        wefti_watch_link_close(link);
        return error;
    }
    if (is_foreign(descriptor, is_local)) {
        wefti_watch_link_close(link);
        return ECONNREFUSED;
    }
    return 0;
}

int wefti_watch_link_accept(wefti_watch_link *link, int listener, int is_local)
{
    const int descriptor = wefti_os_socket_accept(listener);
    if (descriptor < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ECONNABORTED && errno != EINTR) {
            wefti_os_sleep_ns(REST_NS); /* no descriptors, say: the listener stays readable */
        }
        return 0;
    }
    begin(link, descriptor, is_local);
    if (is_foreign(descriptor, is_local)) {
        wefti_watch_link_close(link);
    }
    return 1;
}

void wefti_watch_link_keep(const wefti_watch_link *link, uint64_t silence_ns)
{
    if (link->is_local) {
        return;
    }
    wefti_os_socket_hasten(link->descriptor);
    if (silence_ns != WEFT_FOREVER) {
        wefti_os_socket_keep(link->descriptor, silence_ns);
    }
}

int wefti_watch_link_outcome(wefti_watch_link *link, uint64_t silence_ns)
{
    const int error = wefti_os_socket_outcome(link->descriptor);
    if (error == 0) {
        link->state = WEFTI_WATCH_UNKNOWN;
        wefti_watch_link_keep(link, silence_ns);
    }
    return error;
}

void wefti_watch_link_close(wefti_watch_link *link)
{
    if (link->state != WEFTI_WATCH_FREE) {
        wefti_os_socket_finish(link->descriptor);
        wefti_os_socket_close(link->descriptor);
        link->state = WEFTI_WATCH_FREE;
    }
}

/* ---- messages ---- */

uint64_t wefti_watch_proof(uint64_t world, uint32_t from, uint32_t to)
{
    const uint64_t key[WEFTI_HASH_BYTES / sizeof world] = {world};
    const uint32_t ends[] = {from, to};
    uint64_t proof[WEFTI_HASH_BYTES / sizeof world];
    wefti_hash((const unsigned char *)key, ends, sizeof ends, (unsigned char *)proof);
    return proof[0];
}

void wefti_watch_link_send(wefti_watch_link *link, wefti_watch_at at, const void *context, size_t count)
{
    while (link->sent < count * sizeof(wefti_watch_message)) {
        wefti_watch_message message = at(context, link->sent / sizeof message);
        const size_t done = link->sent % sizeof message;
        struct iovec part = {(unsigned char *)&message + done, sizeof message - done};
        const ssize_t sent = wefti_os_socket_send(link->descriptor, &part, 1);
        if (sent <= 0) {
            return; /* a failure comes when it is read from */
        }
        link->sent += (size_t)sent;
    }
}

int wefti_watch_link_receive(wefti_watch_link *link, int *error)
{
    for (;;) {
        const ssize_t received = wefti_os_socket_receive(
            link->descriptor, (unsigned char *)&link->message + link->received, sizeof link->message - link->received);
        if (received < 0 && errno == EINTR) {
            continue;
        }
        if (received <= 0) {
            *error = received == 0 ? 0 : errno;
            return received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
        }
        link->received += (size_t)received;
        if (link->received == sizeof link->message) {
            link->received = 0;
            return 1;
        }
    }
}
