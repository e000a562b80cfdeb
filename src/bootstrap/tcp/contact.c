/* bootstrap/tcp/contact.c: where a PE listens. */
#include "bootstrap/tcp/contact.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

int wefti_tcp_address_from(wefti_tcp_address *address, const struct sockaddr_storage *socket_address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)socket_address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)socket_address;
    memset(address, 0, sizeof *address);
    if (socket_address->ss_family == AF_INET) {
        address->family = 4;
        memcpy(address->bytes, &four->sin_addr, 4);
        return 1;
    }
    if (socket_address->ss_family != AF_INET6) {
        return 0;
    }
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        address->family = 4;
        memcpy(address->bytes, six->sin6_addr.s6_addr + 12, 4);
        return 1;
    }
    address->family = 6;
    memcpy(address->bytes, &six->sin6_addr, 16);
    return 1;
}

socklen_t wefti_tcp_address_to(const wefti_tcp_address *address, unsigned port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (address->family == 4) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        memcpy(&four->sin_addr, address->bytes, 4);
        return sizeof *four;
    }
    if (address->family == 6) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        memcpy(&six->sin6_addr, address->bytes, 16);
        return sizeof *six;
    }
    return 0;
}

int wefti_tcp_address_is_loopback(const wefti_tcp_address *address)
{
    static const unsigned char six[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127 : memcmp(address->bytes, six, 16) == 0;
}

int wefti_tcp_address_is_link_local(const wefti_tcp_address *address)
{
    if (address->family == 4) {
        return address->bytes[0] == 169 && address->bytes[1] == 254;
    }
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

unsigned wefti_tcp_contact_port(const wefti_tcp_contact *contact)
{
    return (unsigned)contact->port[0] << 8 | contact->port[1];
}

void wefti_tcp_contact_set_port(wefti_tcp_contact *contact, unsigned port)
{
    contact->port[0] = (unsigned char)(port >> 8);
    contact->port[1] = (unsigned char)port;
}

int wefti_tcp_contact_is_wide(const wefti_tcp_contact *contact)
{
    for (int i = 0; i < contact->count && i < WEFTI_TCP_ADDRESSES_MAX; i++) {
        if (!wefti_tcp_address_is_loopback(&contact->addresses[i])) {
            return 1;
        }
    }
    return 0;
}

/* Add the addresses that are loopback, or those that are not. */
static size_t add(const wefti_tcp_contact *contact, int loopback, wefti_tree_address *addresses, size_t count)
{
    for (int i = 0; i < contact->count; i++) {
        struct sockaddr_storage address;
        socklen_t bytes = wefti_tcp_address_to(&contact->addresses[i], wefti_tcp_contact_port(contact), &address);
        if (bytes > 0 && wefti_tcp_address_is_loopback(&contact->addresses[i]) == loopback) {
            addresses[count].bytes = bytes;
            memcpy(addresses[count].sockaddr, &address, bytes);
            count++;
        }
    }
    return count;
}

size_t wefti_tcp_contact_resolve(const wefti_tcp_contact *contact, const unsigned char node[16],
                                 wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX])
{
    if (contact->count > WEFTI_TCP_ADDRESSES_MAX || wefti_tcp_contact_port(contact) == 0) {
        return 0;
    }
    int is_near = memcmp(contact->node, node, sizeof contact->node) == 0;
    size_t count = add(contact, is_near, addresses, 0);
    return add(contact, !is_near, addresses, count);
}
