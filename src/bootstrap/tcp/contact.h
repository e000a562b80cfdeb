/* bootstrap/tcp/contact.h: where a PE listens: a port, and the addresses under which its node may be reached. */
#ifndef WEFTI_BOOTSTRAP_TCP_CONTACT_H
#define WEFTI_BOOTSTRAP_TCP_CONTACT_H

#include <sys/socket.h>

#include "bootstrap/tree/net.h"

#define WEFTI_TCP_ADDRESSES_MAX 6

/* An address without its port. */
typedef struct wefti_tcp_address {
    unsigned char family; /* 4 or 6 */
    unsigned char bytes[16];
} wefti_tcp_address;

/* What the contacts (tree/message.h) of TCP hold. */
typedef struct wefti_tcp_contact {
    unsigned char port[2]; /* the higher byte first */
    unsigned char count;
    unsigned char zero;
    unsigned char node[16]; /* of wefti_os_identity */
    wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX];
} wefti_tcp_contact;

_Static_assert(sizeof(wefti_tcp_contact) == 20 + 17 * WEFTI_TCP_ADDRESSES_MAX, "contacts are sent as they are");
_Static_assert(sizeof(wefti_tcp_contact) <= sizeof((wefti_tree_contact){0}.data), "a contact holds one of TCP");

/* From a socket's address; one that IPv6 wraps around IPv4 becomes IPv4. Returns 0 when it is neither. */
int wefti_tcp_address_from(wefti_tcp_address *address, const struct sockaddr_storage *socket_address);
/* To a socket's address; returns its size, 0 when the family makes no sense. */
socklen_t wefti_tcp_address_to(const wefti_tcp_address *address, unsigned port, struct sockaddr_storage *out);
int wefti_tcp_address_is_loopback(const wefti_tcp_address *address);
int wefti_tcp_address_is_link_local(const wefti_tcp_address *address);

unsigned wefti_tcp_contact_port(const wefti_tcp_contact *contact);
void wefti_tcp_contact_set_port(wefti_tcp_contact *contact, unsigned port);
/* Whether a contact has an address that other nodes may reach. */
int wefti_tcp_contact_is_wide(const wefti_tcp_contact *contact);
/* Its addresses for somebody on `node`: there, loopback comes first; elsewhere last, since nodes may only pretend to
 * differ. Returns how many, 0 for a contact that makes no sense. */
size_t wefti_tcp_contact_resolve(const wefti_tcp_contact *contact, const unsigned char node[16],
                                 wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX]);

#endif
