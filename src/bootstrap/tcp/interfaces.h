/* bootstrap/tcp/interfaces.h: the addresses of this node. */
#ifndef WEFTI_BOOTSTRAP_TCP_INTERFACES_H
#define WEFTI_BOOTSTRAP_TCP_INTERFACES_H

#include "bootstrap/tcp/contact.h"

/* The addresses of all interfaces that are up: loopback, then the others, those of bridges and virtual machines last.
 * *count is WEFTI_TCP_ADDRESSES_MAX at most. */
weft_status wefti_interfaces_list(wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX], int *count);
/* The one address of an interface or an address given as text. */
weft_status wefti_interfaces_find(const char *name, wefti_tcp_address *address);

#endif
