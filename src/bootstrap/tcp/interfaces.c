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
        return wefti_error(WEFT_ERR_SYSTEM, "cannot list the network interfaces: %s; allow more open files (ulimit -n)",
                           strerror(errno));
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

/* Whether an entry before has an address of the same interface. */
static int is_listed_before(const struct ifaddrs *all, const struct ifaddrs *entry)
{
    wefti_tcp_address address;
    while (all != entry && (strcmp(all->ifa_name, entry->ifa_name) != 0 || !address_of(all, &address))) {
        all = all->ifa_next;
    }
    return all != entry;
}

/* "eth0, lo": for a message. */
static void list_names(const struct ifaddrs *all, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        wefti_tcp_address address;
        if (address_of(entry, &address) && !is_listed_before(all, entry) && used < bytes) {
            int wrote = snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", entry->ifa_name);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

/* ---- interfaces by name ---- */

/* Which interfaces were asked for. */
typedef struct wish {
    const char *names; /* a list with commas */
    int is_without; /* those of the list are not to be used */
    int family; /* 4, 6; 0: any */
} wish;

static wish read_wish(const char *text)
{
    wish wanted = {.names = text};
    if (strncmp(text, "ip4:", 4) == 0 || strncmp(text, "ip6:", 4) == 0) {
        wanted.family = text[2] - '0';
        wanted.names = text + 4;
    }
    if (wanted.names[0] == '^') {
        wanted.is_without = 1;
        wanted.names++;
    }
    return wanted;
}

static int has_interface(const struct ifaddrs *all, const char *name, size_t length)
{
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        if (strlen(entry->ifa_name) == length && memcmp(entry->ifa_name, name, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a word of the list means that interface: its name, or what the name begins with if no interface is called
 * so; behind "=" the name alone. */
static int means(const struct ifaddrs *all, const char *word, size_t length, const char *name)
{
    const int is_exact = length > 0 && word[0] == '=';
    word += is_exact;
    length -= (size_t)is_exact;
    if (length == 0 || strncmp(name, word, length) != 0) {
        return 0;
    }
    return name[length] == '\0' || (!is_exact && !has_interface(all, word, length));
}

static int is_listed(const struct ifaddrs *all, const wish *wanted, const char *name)
{
    for (const char *word = wanted->names;; word++) {
        const size_t length = strcspn(word, ",");
        if (means(all, word, length, name)) {
            return 1;
        }
        word += length;
        if (*word == '\0') {
            return 0;
        }
    }
}

/* The addresses that are wanted, as wefti_interfaces_list orders them; loopback only where it is named, or nothing else
 * is left. */
static int choose(const struct ifaddrs *all, const wish *wanted, wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX])
{
    int count = 0;
    for (rank of = RANK_LOOPBACK; of < RANK_NONE; of++) {
        for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
            wefti_tcp_address address;
            if (count < WEFTI_TCP_ADDRESSES_MAX && rank_of(entry, &address) == of &&
                (wanted->family == 0 || address.family == wanted->family) &&
                (wanted->names[0] == '\0' || is_listed(all, wanted, entry->ifa_name) != wanted->is_without)) {
                addresses[count++] = address;
            }
        }
    }
    return count;
}

/* Of one interface that is named one address, of the older family first: who listens there listens nowhere else. */
static int keep_one(const struct ifaddrs *all, const wish *wanted, wefti_tcp_address *addresses, int count)
{
    if (wanted->is_without || !has_interface(all, wanted->names, strlen(wanted->names))) {
        return count;
    }
    for (int i = 0; i < count; i++) {
        if (addresses[i].family == 4) {
            addresses[0] = addresses[i];
            break;
        }
    }
    return count > 0 ? 1 : 0;
}

weft_status wefti_interfaces_choose(const char *text, wefti_tcp_address addresses[WEFTI_TCP_ADDRESSES_MAX], int *count)
{
    struct ifaddrs *all;
    char names[256];
    const wish wanted = read_wish(text);
    if (parse_address(wanted.names, &addresses[0]) && !wanted.is_without &&
        (wanted.family == 0 || wanted.family == addresses[0].family)) {
        *count = 1;
        return WEFT_OK;
    }
    WEFT_TRY(read_interfaces(&all));
    const int chosen = keep_one(all, &wanted, addresses, choose(all, &wanted, addresses));
    memset(addresses + chosen, 0, sizeof *addresses * (size_t)(WEFTI_TCP_ADDRESSES_MAX - chosen));
    list_names(all, names, sizeof names);
    freeifaddrs(all);
    if (chosen == 0 || text[0] == '\0') {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "\"%.64s\" is neither an IP address nor does it name a network interface that is up and has "
                           "an address%s; there are: %s",
                           text,
                           wanted.family == 0   ? ""
                           : wanted.family == 4 ? " of IPv4"
                                                : " of IPv6",
                           names);
    }
    *count = chosen;
    return WEFT_OK;
}
