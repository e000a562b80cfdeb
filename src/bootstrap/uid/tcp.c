/* bootstrap/uid/tcp.c: listening sockets. */
#include "bootstrap/uid/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/socket.h"

#define BACKLOG 1024

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

static int listen_at(const wefti_uid_address *address)
{
    struct sockaddr_storage socket_address;
    socklen_t bytes = wefti_uid_address_to(address, 0, &socket_address);
    int listener = open_socket(socket_address.ss_family);
    if (listener < 0) {
        return -1;
    }
    if (address->family == 6) {
        wefti_os_socket_widen(listener);
    }
    if (!bind_and_listen(listener, &socket_address, bytes)) {
        int error = errno;
        wefti_os_socket_close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

/* One socket for IPv6 and IPv4; IPv4 alone where the system has no IPv6. */
static int listen_everywhere(void)
{
    static const wefti_uid_address six = {.family = 6};
    static const wefti_uid_address four = {.family = 4};
    int listener = listen_at(&six);
    return listener >= 0 ? listener : listen_at(&four);
}

static int port_of(int listener, unsigned *port)
{
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof bound;
    if (wefti_fault("getsockname", ENOBUFS) || wefti_os_socket_name(listener, (struct sockaddr *)&bound, &bytes) != 0) {
        return 0;
    }
    *port = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port
                                             : ((struct sockaddr_in6 *)&bound)->sin6_port);
    return 1;
}

static void print(const wefti_uid_address *address, char text[INET6_ADDRSTRLEN])
{
    if (address == NULL) {
        (void)strcpy(text, "all addresses");
    } else {
        (void)inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text, INET6_ADDRSTRLEN);
    }
}

weft_status wefti_tcp_listen(const wefti_uid_address *address, int *listener, unsigned *port)
{
    char text[INET6_ADDRSTRLEN];
    int made = address == NULL ? listen_everywhere() : listen_at(address);
    if (made < 0 || !port_of(made, port)) {
        int error = errno;
        if (made >= 0) {
            wefti_os_socket_close(made);
        }
        print(address, text);
        return wefti_error(WEFT_ERR_SYSTEM, "cannot listen at %s: %s; name another interface (WEFT_UID_INTERFACE)",
                           text, strerror(error));
    }
    *listener = made;
    return WEFT_OK;
}
