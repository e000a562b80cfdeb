/* bootstrap/tcp/interfaces.h: the addresses of this node. */
#ifndef WEFTI_BOOTSTRAP_TCP_INTERFACES_H
#define WEFTI_BOOTSTRAP_TCP_INTERFACES_H

#include "bootstrap/tcp/contact.h"

/* The addresses of all interfaces that are up: loopback, then the others, those of bridges and virtual machines last.
 * *count is WEFTI_TCP_ADDRESSES_MAX at most. */
weft_status wefti_interfaces_list(wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX], int *count);
/* The addresses that a text names, as weft_uid_create says: an address, a list of interfaces, ^ and such a list, behind
 * "ip4:" or "ip6:" those of that family. One address of one interface that is named; else all, ordered as above. Of
 * more than there are, zeros: ids are cut where zeros begin. */
weft_status wefti_interfaces_choose(const char *text, wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX], int *count);

#endif
