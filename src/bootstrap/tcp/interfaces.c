/* bootstrap/tcp/interfaces.c: the addresses of this node. */
#include "bootstrap/tcp/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* What an address is worth to somebody on another node; less is tried first. */
typedef enum rank { RANK_LOOPBACK, RANK_FOUR, RANK_SIX, RANK_BRIDGE, RANK_NONE } rank;

static weft_status read_interfaces(struct ifaddrs **all)
{
    if (wefti_fault("getifaddrs", ENOMEM) || getifaddrs(all) != 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot list the network interfaces: %s", strerror(errno));
    }
    return WEFT_OK;
}

/* The address of an entry. Returns 0 when it has none that can be used. */
static int address_of(const struct ifaddrs *entry, wefti_tcp_address *address)
{
    struct sockaddr_storage copy = {0};
    if (entry->ifa_addr == NULL || !(entry->ifa_flags & IFF_UP)) {
        return 0;
    }
    if (entry->ifa_addr->sa_family == AF_INET) {
        memcpy(&copy, entry->ifa_addr, sizeof(struct sockaddr_in));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
        memcpy(&copy, entry->ifa_addr, sizeof(struct sockaddr_in6));
    }
    return wefti_tcp_address_from(address, &copy) && !wefti_tcp_address_is_link_local(address);
}

/* Interfaces that lead to containers and virtual machines of this node. */
static int is_bridge(const char *name)
{
    static const char *const prefixes[] = {"docker", "br-", "veth", "virbr", "cni", "flannel", "lxc", "podman"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

static rank rank_of(const struct ifaddrs *entry, wefti_tcp_address *address)
{
    if (!address_of(entry, address)) {
        return RANK_NONE;
    }
    if (wefti_tcp_address_is_loopback(address)) {
        return RANK_LOOPBACK;
    }
    return is_bridge(entry->ifa_name) ? RANK_BRIDGE : address->family == 4 ? RANK_FOUR : RANK_SIX;
}

weft_status wefti_interfaces_list(wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX], int *count)
{
    struct ifaddrs *all;
    WEFT_TRY(read_interfaces(&all));
    *count = 0;
    for (rank wanted = RANK_LOOPBACK; wanted < RANK_NONE; wanted++) {
        for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
            wefti_tcp_address address;
            if (*count < WEFTI_TCP_ADDRESSES_MAX && rank_of(entry, &address) == wanted) {
                addresses[(*count)++] = address;
            }
        }
    }
    freeifaddrs(all);
    if (*count == 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "no network interface is up, not even loopback (ip link set lo up)");
    }
    return WEFT_OK;
}

static int parse_address(const char *text, wefti_tcp_address *address)
{
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, address->bytes) == 1) {
        address->family = 4;
        return 1;
    }
    if (inet_pton(AF_INET6, text, address->bytes) == 1) {
        address->family = 6;
        return 1;
    }
    return 0;
}

/* "eth0, lo": for a message. */
static void list_names(const struct ifaddrs *all, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        wefti_tcp_address address;
        if (address_of(entry, &address) && address.family == 4 && used < bytes) {
            int wrote = snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", entry->ifa_name);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

weft_status wefti_interfaces_find(const char *name, wefti_tcp_address *address)
{
    struct ifaddrs *all;
    char names[256];
    if (parse_address(name, address)) {
        return WEFT_OK;
    }
    WEFT_TRY(read_interfaces(&all));
    for (int family = 4; family <= 6; family += 2) {
        for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
            if (strcmp(entry->ifa_name, name) == 0 && address_of(entry, address) && address->family == family) {
                freeifaddrs(all);
                return WEFT_OK;
            }
        }
    }
    list_names(all, names, sizeof names);
    freeifaddrs(all);
    return wefti_error(
        WEFT_ERR_ARGUMENT,
        "\"%.64s\" is neither an IP address nor a network interface that is up and has one; there are: %s", name,
        names);
}
