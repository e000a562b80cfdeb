/* bootstrap/uid/contact.h: where a PE listens: a port, and the addresses under which its node may be reached. */
#ifndef WEFTI_BOOTSTRAP_UID_CONTACT_H
#define WEFTI_BOOTSTRAP_UID_CONTACT_H

#include <sys/socket.h>

#include "bootstrap/tree/net.h"

#define WEFTI_UID_ADDRESSES_MAX WEFTI_TREE_ADDRESSES_MAX

/* An address without its port. */
typedef struct wefti_uid_address {
    unsigned char family; /* 4 or 6 */
    unsigned char bytes[16];
} wefti_uid_address;

/* What the contacts (tree/message.h) of TCP hold. */
typedef struct wefti_uid_contact {
    unsigned char port[2]; /* the higher byte first */
    unsigned char count;
    unsigned char zero;
    unsigned char node[16]; /* of wefti_os_identity */
    wefti_uid_address addresses[WEFTI_UID_ADDRESSES_MAX];
} wefti_uid_contact;

_Static_assert(sizeof(wefti_uid_contact) == 20 + 17 * WEFTI_UID_ADDRESSES_MAX, "contacts are sent as they are");
_Static_assert(sizeof(wefti_uid_contact) <= sizeof((wefti_tree_contact){0}.data), "a contact holds one of TCP");

/* From a socket's address; one that IPv6 wraps around IPv4 becomes IPv4. Returns 0 when it is neither. */
int wefti_uid_address_from(wefti_uid_address *address, const struct sockaddr_storage *socket_address);
/* To a socket's address; returns its size, 0 when the family makes no sense. */
socklen_t wefti_uid_address_to(const wefti_uid_address *address, unsigned port, struct sockaddr_storage *out);
int wefti_uid_address_is_loopback(const wefti_uid_address *address);
int wefti_uid_address_is_link_local(const wefti_uid_address *address);

unsigned wefti_uid_contact_port(const wefti_uid_contact *contact);
void wefti_uid_contact_set_port(wefti_uid_contact *contact, unsigned port);
/* Whether a contact has an address that other nodes may reach. */
int wefti_uid_contact_is_wide(const wefti_uid_contact *contact);
/* Its addresses for somebody on `node`: there, loopback comes first; elsewhere last, since nodes may only pretend to
 * differ. Returns how many, 0 for a contact that makes no sense. */
size_t wefti_uid_contact_resolve(const wefti_uid_contact *contact, const unsigned char node[16],
                                 wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);

#endif
