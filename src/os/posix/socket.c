/* os/posix/socket.c: sockets. */
#include "os/socket.h"
#include "base/durations.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/posix/descriptor.h"
#include "os/posix/user.h"

#define LISTENS 0x0a /* the state TCP_LISTEN in /proc/net/tcp */
#define ACCEPTS 0x10000 /* of a unix socket that listens, in /proc/net/unix */
#define LISTENERS_READ_MAX 100000
#define PROBE_SECONDS 1 /* between two signs of life */

int wefti_os_socket_open(int family)
{
    return wefti_os_descriptor_beyond_standard(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int wefti_os_socket_bind(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    return bind(descriptor, address, bytes);
}

int wefti_os_socket_listen(int descriptor, int backlog)
{
    return listen(descriptor, backlog);
}

int wefti_os_socket_accept(int listener)
{
    return wefti_os_descriptor_beyond_standard(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int wefti_os_socket_connect(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    return connect(descriptor, address, bytes);
}

int wefti_os_socket_outcome(int descriptor)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ? errno : error;
}

ssize_t wefti_os_socket_send(int descriptor, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

ssize_t wefti_os_socket_receive(int descriptor, void *memory, size_t bytes)
{
    return recv(descriptor, memory, bytes, MSG_DONTWAIT);
}

int wefti_os_socket_is_over(int descriptor)
{
    char next;
    ssize_t got = recv(descriptor, &next, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void wefti_os_socket_finish(int descriptor)
{
    (void)shutdown(descriptor, SHUT_WR);
}

void wefti_os_socket_close(int descriptor)
{
    (void)close(descriptor);
}

void wefti_os_socket_stop(int listener)
{
    (void)shutdown(listener, SHUT_RDWR);
    (void)close(listener);
}

int wefti_os_socket_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    return getsockname(descriptor, address, bytes);
}

int wefti_os_socket_peer_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    return getpeername(descriptor, address, bytes);
}

int wefti_os_socket_is_own_user(int descriptor, unsigned *user)
{
    struct ucred other;
    socklen_t bytes = sizeof other;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) {
        return 0;
    }
    if (user != NULL) {
        *user = other.uid;
    }
    return other.uid == geteuid() &&
           (!wefti_os_user_is_vague() || wefti_os_user_namespace_is_own(descriptor, other.pid));
}

unsigned wefti_os_user(void)
{
    return geteuid();
}

/* A line of /proc/net/tcp:  "   0: 0100007F:A03C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 ..." */
static int find_listener(const char *path, unsigned port, unsigned *user)
{
    char line[256];
    int is_found = 0;
    FILE *from = fopen(path, "re");
    for (int i = 0; from != NULL && !is_found && i < LISTENERS_READ_MAX && fgets(line, sizeof line, from) != NULL;
         i++) {
        unsigned local;
        unsigned state;
        is_found = sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u", &local, &state,
                          user) == 3 &&
                   local == port && state == LISTENS;
    }
    if (from != NULL) {
        (void)fclose(from);
    }
    return is_found;
}

int wefti_os_socket_port_user(unsigned port, unsigned *user)
{
    return find_listener("/proc/net/tcp", port, user) || find_listener("/proc/net/tcp6", port, user);
}

/* A line of /proc/net/unix:  "0000000000000000: 00000002 00000000 00010000 0001 01 23456 @weft-..." */
void wefti_os_socket_list_unix(const char *prefix, int (*see)(void *context, const char *name), void *context)
{
    char line[256];
    unsigned flags;
    int is_done = 0;
    FILE *from = fopen("/proc/thread-self/net/unix", "re");
    for (int i = 0; from != NULL && !is_done && i < LISTENERS_READ_MAX && fgets(line, sizeof line, from) != NULL; i++) {
        char *name = strchr(line, '@');
        if (name != NULL && strncmp(name + 1, prefix, strlen(prefix)) == 0 &&
            sscanf(line, "%*x: %*x %*x %x", &flags) == 1 && (flags & ACCEPTS) != 0) {
            name[strcspn(name, "\n")] = '\0';
            is_done = see(context, name + 1) != 0;
        }
    }
    if (from != NULL) {
        (void)fclose(from);
    }
}

int wefti_os_descriptors_left(int descriptor)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) {
        return INT_MAX - descriptor;
    }
    return (int)limit.rlim_cur - 1 - descriptor;
}

uint64_t wefti_os_socket_cookie(int descriptor)
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    return getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) != 0 ? 0 : cookie;
}

void wefti_os_socket_hasten(int descriptor)
{
    int on = 1;
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void wefti_os_socket_widen(int descriptor)
{
    int off = 0;
    (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
}

void wefti_os_socket_share(int descriptor)
{
    int on = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
}

void wefti_os_socket_keep(int descriptor, uint64_t silence_ns)
{
    const int on = 1;
    const int seconds = PROBE_SECONDS;
    const uint64_t ms = silence_ns / 1000000;
    const unsigned limit_ms = ms > INT_MAX ? INT_MAX : ms == 0 ? 1 : (unsigned)ms;
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
    (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int wefti_os_bell_open(void)
{
    return wefti_fault("eventfd", EMFILE) ? -1
                                          : wefti_os_descriptor_beyond_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void wefti_os_bell_ring(int bell)
{
    const uint64_t one = 1;
    (void)!write(bell, &one, sizeof one);
}

void wefti_os_bell_hush(int bell)
{
    uint64_t rung;
    (void)!read(bell, &rung, sizeof rung);
}

int wefti_os_socket_poll(struct pollfd *items, size_t count, uint64_t wait_ns)
{
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / WEFTI_SECOND_NS),
                            .tv_nsec = (long)(wait_ns % WEFTI_SECOND_NS)};
    return ppoll(items, count, &wait, NULL);
}
