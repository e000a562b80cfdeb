/* os/socket.h: the part of the seam to the system that connects PEs before they share memory: stream sockets that never
 * block, and waiting for several of them.
 *
 * The calls are those of POSIX, with their meaning and errors: -1 and errno, EINTR and EAGAIN among them. Nothing here
 * decides an error. Callers are ready for whatever a system may do: the simulator does it. (os/posix/socket.c) */
#ifndef WEFTI_OS_SOCKET_H
#define WEFTI_OS_SOCKET_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A socket of a family that is not blocking and not inherited. Returns a descriptor, -1 on failure, as all these do. */
int wefti_os_socket_open(int family);
int wefti_os_socket_bind(int descriptor, const struct sockaddr *address, socklen_t bytes);
int wefti_os_socket_listen(int descriptor, int backlog);
int wefti_os_socket_accept(int listener);
int wefti_os_socket_connect(int descriptor, const struct sockaddr *address, socklen_t bytes);
/* What became of a connect that returned EINPROGRESS: 0 or an error number. */
int wefti_os_socket_outcome(int descriptor);

/* How many bytes were taken. Never a SIGPIPE. */
ssize_t wefti_os_socket_send(int descriptor, struct iovec *parts, size_t count);
/* How many bytes were read, 0 at the end. */
ssize_t wefti_os_socket_receive(int descriptor, void *memory, size_t bytes);
/* Whether the other end has closed, or is gone, and nothing is left to read. */
int wefti_os_socket_is_over(int descriptor);
/* Send nothing more: the other end reads an end behind what was sent. */
void wefti_os_socket_finish(int descriptor);
void wefti_os_socket_close(int descriptor);
/* Close a listener, and let nobody listen by copies of it that were forked into other processes. */
void wefti_os_socket_stop(int listener);

/* The address of this end; of the other. */
int wefti_os_socket_name(int descriptor, struct sockaddr *address, socklen_t *bytes);
int wefti_os_socket_peer_name(int descriptor, struct sockaddr *address, socklen_t *bytes);
/* Whether the process at the other end of a unix socket belongs to this one's user; *user, where not NULL, is its
 * user. */
int wefti_os_socket_is_own_user(int descriptor, unsigned *user);
/* This process's user; the user of who listens at a TCP port of this host. Returns 0 when nobody is found. */
unsigned wefti_os_user(void);
int wefti_os_socket_port_user(unsigned port, unsigned *user);
/* Call see(context, name) for the names of the abstract unix sockets of this network namespace that listen and begin
 * with `prefix`, until it does not return 0. As well as possible. */
void wefti_os_socket_list_unix(const char *prefix, int (*see)(void *context, const char *name), void *context);
/* How many descriptors this process may have beyond the number `descriptor`, which the lowest free one was. */
int wefti_os_descriptors_left(int descriptor);
/* Whether this process may open none more, or fewer than it takes to meet another. */
int wefti_os_descriptors_are_spent(void);
/* From here on this thread has a table of descriptors of its own, a copy in which some that were open are not: what it
 * opens until it ends is its own. The process's files, and its locks on them, stay as they are. Returns 0 where the
 * system refuses. */
int wefti_os_descriptors_unshare(void);
/* A number that the system gives each socket once; 0: it is none. */
uint64_t wefti_os_socket_cookie(int descriptor);
/* Small messages leave at once. An IPv6 listener takes IPv4 too. Both as well as possible. */
void wefti_os_socket_hasten(int descriptor);
void wefti_os_socket_widen(int descriptor);
/* Before it is bound: several listeners of this user may be bound to one address, and connections are dealt out among
 * them. */
void wefti_os_socket_share(int descriptor);
/* A TCP connection whose other end's host gives no sign of life for silence_ns ends with an error, also while nothing
 * is sent. As well as possible. */
void wefti_os_socket_keep(int descriptor, uint64_t silence_ns);

/* A descriptor that becomes readable when another thread rings, until it is hushed: it ends a poll. Closed as sockets
 * are; ringing and hushing -1 does nothing. */
int wefti_os_bell_open(void);
void wefti_os_bell_ring(int bell);
void wefti_os_bell_hush(int bell);

/* Wait for any of the items, at most wait_ns. Negative descriptors are left out. Returns how many have events. */
int wefti_os_socket_poll(struct pollfd *items, size_t count, uint64_t wait_ns);

/* ---- links ---- */

#define WEFTI_OS_LINK_BYTES 16

/* Whether this host has a link that is about to be up, and its name. Such a link has an address and a carrier, but not
 * yet the flag IFF_RUNNING, which the kernel sets up to a second later; until then libraries of networks leave it out,
 * so a program that starts together with its container's network would find none. */
int wefti_os_link_is_coming(char name[WEFTI_OS_LINK_BYTES]);
/* Wait until no link is about to be up, for most_ns at most. */
void wefti_os_link_await(uint64_t most_ns);
/* The names of this host's links, as "lo, eth0", cut short where `bytes` are too few; empty if they cannot be had. */
void wefti_os_link_list(char *text, size_t bytes);

#endif
