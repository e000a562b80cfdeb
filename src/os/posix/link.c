/* os/posix/link.c: links that are about to be up. */
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
