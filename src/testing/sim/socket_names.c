/* testing/sim/socket_names.c: what is asked of sockets, descriptors and users; and what has no effect here. */
#include "testing/sim/sockets.h"

#include <errno.h>
#include <string.h>

#include "testing/sim/sim.h"

#define PLENTY 1000
#define OWN_USER 1000
#define FOREIGN_USER 65534

/* An unnamed socket has a family, as everywhere. */
static int copy_name(const wefti_socket *socket, const wefti_socket_address *name, struct sockaddr *address,
                     socklen_t *bytes)
{
    if (name->bytes == 0) {
        address->sa_family = (sa_family_t)socket->family;
        *bytes = sizeof address->sa_family;
        return 0;
    }
    memcpy(address, name->data, name->bytes < *bytes ? name->bytes : *bytes);
    *bytes = name->bytes;
    return 0;
}

int wefti_os_socket_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    wefti_sim *sim = wefti_socket_enter();
    const wefti_socket *socket = sim == NULL ? NULL : wefti_socket_of(sim, descriptor, "getsockname");
    return socket == NULL ? wefti_socket_failed(ENOSYS) : copy_name(socket, &socket->name, address, bytes);
}

int wefti_os_socket_peer_name(int descriptor, struct sockaddr *address, socklen_t *bytes)
{
    wefti_sim *sim = wefti_socket_enter();
    const wefti_socket *socket = sim == NULL ? NULL : wefti_socket_of(sim, descriptor, "getpeername");
    return socket == NULL ? wefti_socket_failed(ENOSYS) : copy_name(socket, &socket->peer_name, address, bytes);
}

int wefti_os_socket_is_own_user(int descriptor, unsigned *user)
{
    wefti_sim *sim = wefti_socket_enter();
    const wefti_socket *socket = sim == NULL ? NULL : wefti_socket_of(sim, descriptor, "getsockopt");
    if (user != NULL) {
        *user = FOREIGN_USER; /* of use where it is not this one's */
    }
    return socket != NULL && socket->peer != NULL && !socket->peer->is_foreign;
}

void wefti_os_socket_list_unix(const char *prefix, int (*see)(void *context, const char *name), void *context)
{
    (void)prefix; /* names are not listed here: PEs that know the key find each other without */
    (void)see;
    (void)context;
}

unsigned wefti_os_user(void)
{
    return OWN_USER;
}

int wefti_os_socket_port_user(unsigned port, unsigned *user)
{
    (void)port;
    (void)user;
    return 0;
}

/* Few in one run of four, at times; none left where a test says so. */
int wefti_os_descriptors_left(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    (void)descriptor;
    if (sim == NULL || !sim->sockets->is_scarce) {
        return PLENTY;
    }
    return sim->sockets->are_none_left || wefti_random_below(&sim->random, 2) == 0 ? 0 : PLENTY;
}

int wefti_os_descriptors_are_spent(void)
{
    return 0;
}

int wefti_os_descriptors_unshare(void)
{
    return 0;
}

uint64_t wefti_os_socket_cookie(int descriptor)
{
    wefti_sim *sim = wefti_socket_enter();
    const wefti_socket *socket = sim == NULL ? NULL : wefti_socket_find(sim, descriptor);
    return socket == NULL ? 0 : socket->cookie;
}

void wefti_os_socket_hasten(int descriptor)
{
    (void)descriptor;
}

void wefti_os_socket_widen(int descriptor)
{
    (void)descriptor;
}

void wefti_os_socket_share(int descriptor)
{
    (void)descriptor;
}

void wefti_os_socket_keep(int descriptor, uint64_t silence_ns)
{
    wefti_sim *sim = wefti_socket_enter();
    if (sim != NULL) {
        wefti_socket_of(sim, descriptor, "keeping alive")->keep_ns = silence_ns;
    }
}
