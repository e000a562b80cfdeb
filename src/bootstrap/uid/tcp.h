/* bootstrap/uid/tcp.h: listening sockets. */
#ifndef WEFTI_BOOTSTRAP_UID_TCP_H
#define WEFTI_BOOTSTRAP_UID_TCP_H

#include "bootstrap/uid/contact.h"

/* Listen, non-blocking, at a port the system chooses: at `address`, or, NULL, at all addresses of this node. */
weft_status wefti_tcp_listen(const wefti_uid_address *address, int *listener, unsigned *port);

#endif
