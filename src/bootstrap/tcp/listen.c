/* bootstrap/tcp/listen.c: listening sockets. */
#include "bootstrap/tcp/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/socket.h"

#define BACKLOG 1024

#define TEXT_BYTES 48
_Static_assert(INET6_ADDRSTRLEN <= TEXT_BYTES, "the text has room for any address");

static int open_socket(int family)
{
    return wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(family);
}

static int bind_and_listen(int listener, const struct sockaddr_storage *address, socklen_t bytes)
{
    if (wefti_fault("bind", EADDRINUSE) ||
        wefti_os_socket_bind(listener, (const struct sockaddr *)address, bytes) != 0) {
        return 0;
    }
    return !wefti_fault("listen", EADDRINUSE) && wefti_os_socket_listen(listener, BACKLOG) == 0;
}

static int listen_at(const wefti_tcp_address *address, unsigned port, wefti_tcp_port_kind kind)
{
    struct sockaddr_storage socket_address;
    socklen_t bytes = wefti_tcp_address_to(address, port, &socket_address);
    int listener = open_socket(socket_address.ss_family);
    if (listener < 0) {
        return -1;
    }
    if (address->family == 6) {
        wefti_os_socket_widen(listener);
    }
    if (kind == WEFTI_TCP_PORT_SHARED) {
        wefti_os_socket_share(listener);
    }
    if (!bind_and_listen(listener, &socket_address, bytes)) {
        int error = errno;
        wefti_os_socket_close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

/* Everywhere: one socket for IPv6 and IPv4; IPv4 alone where the system has no IPv6. */
int wefti_tcp_listen(const wefti_tcp_address *address, unsigned port, wefti_tcp_port_kind kind)
{
    static const wefti_tcp_address six = {.family = 6};
    static const wefti_tcp_address four = {.family = 4};
    if (address != NULL) {
        return listen_at(address, port, kind);
    }
    int listener = listen_at(&six, port, kind);
    return listener >= 0 ? listener : listen_at(&four, port, kind);
}

unsigned wefti_tcp_port_of(int listener)
{
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof bound;
    if (wefti_fault("getsockname", ENOBUFS) || wefti_os_socket_name(listener, (struct sockaddr *)&bound, &bytes) != 0) {
        return 0;
    }
    switch (bound.ss_family) {
    case AF_INET:
        return ntohs(((struct sockaddr_in *)&bound)->sin_port);
    case AF_INET6:
        return ntohs(((struct sockaddr_in6 *)&bound)->sin6_port);
    default:
        errno = EAFNOSUPPORT;
        return 0;
    }
}

/* An address as a person reads it; NULL: all. */
static void print(const wefti_tcp_address *address, char text[TEXT_BYTES])
{
    if (address == NULL) {
        (void)strcpy(text, "all addresses");
    } else {
        (void)inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text, TEXT_BYTES);
    }
}

weft_status wefti_tcp_listen_anywhere(const wefti_tcp_address *address, int *listener, unsigned *port)
{
    char text[TEXT_BYTES];
    int made = wefti_tcp_listen(address, 0, WEFTI_TCP_PORT_OWN);
    *port = made < 0 ? 0 : wefti_tcp_port_of(made);
    if (*port == 0) {
        int error = errno;
        if (made >= 0) {
            wefti_os_socket_close(made);
        }
        print(address, text);
        return wefti_error(
            WEFT_ERR_SYSTEM,
            "cannot listen at %s: %s; allow more open files (ulimit -n) or, for unique ids, name another "
            "interface (WEFT_UID_INTERFACE)",
            text, strerror(error));
    }
    *listener = made;
    return WEFT_OK;
}
