/* os/posix/link.c: the names of a host's links, and those that are about to be up. */
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>

#include "os/os.h"
#include "os/socket.h"

_Static_assert(WEFTI_OS_LINK_BYTES == IF_NAMESIZE, "a link's name has room");

#define LOOK_NS UINT64_C(10000000)
#define LOWER_UP 0x10000u /* IFF_LOWER_UP of linux/if.h, which cannot be had beside net/if.h: it has a carrier */

static int is_coming(const struct ifaddrs *entry)
{
    const unsigned flags = entry->ifa_flags;
    const int has_address =
        entry->ifa_addr != NULL && (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
    return has_address && (flags & IFF_UP) != 0 && (flags & LOWER_UP) != 0 && (flags & IFF_RUNNING) == 0;
}

int wefti_os_link_is_coming(char name[WEFTI_OS_LINK_BYTES])
{
    struct ifaddrs *all;
    int found = 0;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (const struct ifaddrs *entry = all; entry != NULL && !found; entry = entry->ifa_next) {
        found = is_coming(entry);
        (void)snprintf(name, WEFTI_OS_LINK_BYTES, "%s", entry->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

void wefti_os_link_await(uint64_t most_ns)
{
    char name[WEFTI_OS_LINK_BYTES];
    const uint64_t start_ns = wefti_os_now_ns();
    while (wefti_os_link_is_coming(name) && wefti_os_now_ns() - start_ns < most_ns) {
        wefti_os_sleep_ns(LOOK_NS);
    }
}

void wefti_os_link_list(char *text, size_t bytes)
{
    struct if_nameindex *all = if_nameindex();
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; all != NULL && all[i].if_index != 0 && used < bytes; i++) {
        const int wrote = snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", all[i].if_name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (all != NULL) {
        if_freenameindex(all);
    }
}
