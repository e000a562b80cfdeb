/* fuzz/wire.c: a network whose other ends are a file. */
#include "fuzz/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "os/socket.h"

#define FIRST 1000 /* the descriptors are no real ones */
#define DESCRIPTORS 64

/* A descriptor: closed, a listener, one end of a connection, or a bell that nobody rings. */
typedef enum kind { CLOSED, FRESH, LISTENER, TALKS, BELL } kind;

static struct {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *heard[WIRE_CONNECTIONS]; /* the record that a connection is reading */
    size_t offset[WIRE_CONNECTIONS]; /* in that record */
    kind kinds[DESCRIPTORS];
    int connection[DESCRIPTORS];
    int family[DESCRIPTORS];
    int next; /* the connection that is made next */
    uint64_t now_ns;
    const char *listed;
} wire;

void wire_begin(const uint8_t *records, size_t bytes)
{
    memset(&wire, 0, sizeof wire);
    wire.at = records;
    wire.end = records + bytes;
    for (int i = 0; i < WIRE_CONNECTIONS; i++) {
        wire.heard[i] = records;
    }
}

void wire_list(const char *name)
{
    wire.listed = name;
}

int wire_open_count(void)
{
    int count = 0;
    for (int i = 0; i < DESCRIPTORS; i++) {
        count += wire.kinds[i] != CLOSED;
    }
    return count;
}

static int is_open(int descriptor)
{
    return descriptor >= FIRST && descriptor < FIRST + DESCRIPTORS && wire.kinds[descriptor - FIRST] != CLOSED;
}

static kind *kind_of(int descriptor)
{
    if (!is_open(descriptor)) {
        abort(); /* used after it was closed */
    }
    return &wire.kinds[descriptor - FIRST];
}

static int open_as(kind what)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        if (wire.kinds[i] == CLOSED) {
            wire.kinds[i] = what;
            wire.family[i] = AF_INET;
            wire.connection[i] = wire.next;
            wire.next += what == TALKS;
            return FIRST + i;
        }
    }
    errno = EMFILE;
    return -1;
}

/* The next record of a connection that is not read to its end; NULL: it says nothing more. */
static const uint8_t *find_record(int connection)
{
    const uint8_t **at = &wire.heard[connection];
    while (wire.end - *at >= 2) {
        size_t bytes = (*at)[1];
        int is_mine = (*at)[0] % WIRE_CONNECTIONS == connection;
        if (is_mine && wire.offset[connection] < bytes && *at + 2 + wire.offset[connection] < wire.end) {
            return *at;
        }
        wire.offset[connection] = 0;
        *at = (size_t)(wire.end - *at) > 2 + bytes ? *at + 2 + bytes : wire.end;
    }
    return NULL;
}

/* ---- time ---- */

uint64_t wefti_os_now_ns(void)
{
    return wire.now_ns += 1000;
}

void wefti_os_sleep_ns(uint64_t ns)
{
    wire.now_ns += ns;
}

void wefti_os_yield(void)
{
}

/* ---- sockets ---- */

int wefti_os_socket_open(int family)
{
    int descriptor = open_as(FRESH);
    if (descriptor >= 0) {
        wire.family[descriptor - FIRST] = family;
    }
    return descriptor;
}

int wefti_os_socket_bind(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    (void)kind_of(descriptor);
    (void)address;
    (void)bytes;
    return 0;
}

int wefti_os_socket_listen(int descriptor, int backlog)
{
    (void)backlog;
    *kind_of(descriptor) = LISTENER;
    return 0;
}

int wefti_os_socket_accept(int listener)
{
    (void)kind_of(listener);
    if (wire.next < WIRE_CONNECTIONS && find_record(wire.next) != NULL) {
        return open_as(TALKS);
    }
    errno = EAGAIN;
    return -1;
}

int wefti_os_socket_connect(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    (void)address;
    (void)bytes;
    if (wire.next >= WIRE_CONNECTIONS) {
        errno = ECONNREFUSED;
        return -1;
    }
    *kind_of(descriptor) = TALKS;
    wire.connection[descriptor - FIRST] = wire.next++;
    return 0;
}

int wefti_os_socket_outcome(int descriptor)
{
    (void)kind_of(descriptor);
    return 0;
}

ssize_t wefti_os_socket_send(int descriptor, struct iovec *parts, size_t count)
{
    size_t bytes = 0;
    (void)kind_of(descriptor);
    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    return (ssize_t)bytes;
}

ssize_t wefti_os_socket_receive(int descriptor, void *memory, size_t bytes)
{
    int connection = wire.connection[descriptor - FIRST];
    if (*kind_of(descriptor) != TALKS) {
        errno = ENOTCONN;
        return -1;
    }
    const uint8_t *record = find_record(connection);
    if (record == NULL || bytes == 0) {
        errno = EAGAIN;
        return record == NULL && connection % 2 == 1 ? 0 : -1; /* some end, some stay silent */
    }
    size_t left = record[1] - wire.offset[connection];
    size_t there = (size_t)(wire.end - record) - 2 - wire.offset[connection];
    size_t piece = left < there ? left : there;
    piece = piece < bytes ? piece : bytes;
    memcpy(memory, record + 2 + wire.offset[connection], piece);
    wire.offset[connection] += piece;
    return (ssize_t)piece;
}

int wefti_os_socket_is_over(int descriptor)
{
    int connection = wire.connection[descriptor - FIRST];
    return *kind_of(descriptor) != TALKS || (find_record(connection) == NULL && connection % 2 == 1);
}

void wefti_os_socket_finish(int descriptor)
{
    (void)kind_of(descriptor);
}

void wefti_os_socket_close(int descriptor)
{
    *kind_of(descriptor) = CLOSED;
}

void wefti_os_socket_stop(int listener)
{
    wefti_os_socket_close(listener);
}

int wefti_os_socket_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)descriptor)};
    if (!is_open(descriptor)) {
        errno = EBADF;
        return -1;
    }
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (wire.family[descriptor - FIRST] == AF_UNIX) {
        here.sin_family = AF_UNIX; /* it has no port: this is the beginning of its name */
    }
    memcpy(address, &here, sizeof here);
    *bytes = sizeof here;
    return 0;
}

int wefti_os_socket_peer_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    int result = wefti_os_socket_name(descriptor, address, bytes);
    ((struct sockaddr_in *)(void *)address)->sin_port = 1;
    return result;
}

int wefti_os_socket_is_own_user(int descriptor, unsigned *user)
{
    (void)user;
    (void)kind_of(descriptor);
    return 1;
}

unsigned wefti_os_user(void)
{
    return 1;
}

int wefti_os_socket_port_user(unsigned port, unsigned *user)
{
    (void)port;
    (void)user;
    return 0;
}

void wefti_os_socket_list_unix(const char *prefix, int (*see)(void *context, const char *name), void *context)
{
    if (wire.listed != NULL && strncmp(wire.listed, prefix, strlen(prefix)) == 0) {
        (void)see(context, wire.listed);
    }
}

int wefti_os_descriptors_left(int descriptor)
{
    return descriptor % 4 == 3 ? 0 : 1000;
}

uint64_t wefti_os_socket_cookie(int descriptor)
{
    return is_open(descriptor) ? (uint64_t)descriptor : 0;
}

void wefti_os_socket_hasten(int descriptor)
{
    (void)kind_of(descriptor);
}

void wefti_os_socket_widen(int descriptor)
{
    (void)kind_of(descriptor);
}

void wefti_os_socket_share(int descriptor)
{
    (void)kind_of(descriptor);
}

void wefti_os_socket_keep(int descriptor, uint64_t silence_ns)
{
    (void)kind_of(descriptor);
    (void)silence_ns;
}

int wefti_os_bell_open(void)
{
    return open_as(BELL);
}

void wefti_os_bell_ring(int bell)
{
    (void)kind_of(bell);
}

void wefti_os_bell_hush(int bell)
{
    (void)kind_of(bell);
}

static short seen_at(const struct pollfd *item)
{
    int number = item->fd - FIRST;
    short seen = item->events & POLLOUT;
    if (*kind_of(item->fd) == LISTENER) {
        int waits = wire.next < WIRE_CONNECTIONS && find_record(wire.next) != NULL;
        return waits ? item->events & POLLIN : 0;
    }
    if (*kind_of(item->fd) != TALKS) {
        return seen;
    }
    int has_news = find_record(wire.connection[number]) != NULL || wire.connection[number] % 2 == 1;
    return (short)(seen | (has_news ? item->events & POLLIN : 0));
}

int wefti_os_socket_poll(struct pollfd *items, size_t count, uint64_t wait_ns)
{
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].revents = items[i].fd < 0 ? 0 : seen_at(&items[i]);
        ready += items[i].revents != 0;
    }
    wire.now_ns += ready > 0 ? 1000000 : wait_ns;
    return ready;
}
