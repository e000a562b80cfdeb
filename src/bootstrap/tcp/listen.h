/* bootstrap/tcp/listen.h: listening sockets. */
#ifndef WEFTI_BOOTSTRAP_TCP_LISTEN_H
#define WEFTI_BOOTSTRAP_TCP_LISTEN_H

#include "bootstrap/tcp/contact.h"

/* Whether others of this user may listen at the same port too: the system then deals connections out among them. */
typedef enum wefti_tcp_port_kind { WEFTI_TCP_PORT_OWN, WEFTI_TCP_PORT_SHARED } wefti_tcp_port_kind;

/* Listen, non-blocking: at `address`, or, NULL, at all addresses of this node; at `port`, or, 0, at one that the system
 * chooses. Returns a descriptor, or -1 with errno set; no error is decided. */
int wefti_tcp_listen(const wefti_tcp_address *address, unsigned port, wefti_tcp_port_kind kind);
/* The port of a listener; 0, with errno set, when it cannot be found. */
unsigned wefti_tcp_port_of(int listener);

/* Listen at a port that the system chooses, for as long as a world forms. Decides its error. */
weft_status wefti_tcp_listen_anywhere(const wefti_tcp_address *address, int *listener, unsigned *port);

#endif
