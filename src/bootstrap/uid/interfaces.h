/* bootstrap/uid/interfaces.h: the addresses of this node. */
#ifndef WEFTI_BOOTSTRAP_UID_INTERFACES_H
#define WEFTI_BOOTSTRAP_UID_INTERFACES_H

#include "bootstrap/uid/contact.h"

/* The addresses of all interfaces that are up: loopback, then the others, those of bridges and virtual machines last.
 * *count is WEFTI_UID_ADDRESSES_MAX at most. */
weft_status wefti_interfaces_list(wefti_uid_address addresses[WEFTI_UID_ADDRESSES_MAX], int *count);
/* The one address of an interface or an address given as text. */
weft_status wefti_interfaces_find(const char *name, wefti_uid_address *address);

#endif
