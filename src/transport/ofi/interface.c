#include "transport/ofi/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "topo/sysfs.h"

#define NAMES_BYTES 300

const char *wefti_ofi_interface_name(const struct fi_info *info)
{
    const int has_nic = info->nic != NULL && info->nic->device_attr != NULL && info->nic->device_attr->name != NULL;
    return has_nic ? info->nic->device_attr->name : info->domain_attr->name;
}

/* ---- the best ---- */

static int is_loopback(const struct fi_info *info)
{
    if (info->addr_format == FI_SOCKADDR_IN && info->src_addr != NULL) {
        const struct sockaddr_in *address = info->src_addr;
        return ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (info->addr_format == FI_SOCKADDR_IN6 && info->src_addr != NULL) {
        const struct sockaddr_in6 *address = info->src_addr;
        return IN6_IS_ADDR_LOOPBACK(&address->sin6_addr);
    }
    return 0;
}

/* An address that means another host to whom it is told, or none. */
static int is_link_local(const struct fi_info *info)
{
    if (info->addr_format != FI_SOCKADDR_IN6 || info->src_addr == NULL) {
        return 0;
    }
    const struct sockaddr_in6 *address = info->src_addr;
    return IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

/* The library lists what it has by its speed. Emulations of last resort, and addresses that other hosts do not reach,
 * come after all else. */
static int rank(const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;
    int is_last_resort = strstr(provider, "sockets") != NULL || strstr(provider, "UDP") != NULL ||
                         strstr(provider, "udp") != NULL || strstr(provider, "net") != NULL;
    int is_unknown = info->addr_format == FI_ADDR_STR; /* of a node's own shared memory */
    return 8 * is_unknown + 4 * is_link_local(info) + 2 * is_last_resort + is_loopback(info);
}

static const struct fi_info *find_best(const struct fi_info *offered)
{
    const struct fi_info *best = offered;
    for (const struct fi_info *info = offered; info != NULL; info = info->next) {
        best = rank(info) < rank(best) ? info : best;
    }
    return best;
}

static int is_as_good(const struct fi_info *info, const struct fi_info *best)
{
    return rank(info) == rank(best) && strcmp(info->fabric_attr->prov_name, best->fabric_attr->prov_name) == 0;
}

/* Whether there is something to choose: several NICs, as libfabric knows them, or addresses of one, which may be of its
 * ports. Interfaces of IP are not counted, which may belong to networks that are not connected. */
static int has_several(const struct fi_info *offered, const struct fi_info *best)
{
    for (const struct fi_info *info = offered; info != NULL && best->nic != NULL; info = info->next) {
        if (info->nic != NULL && is_as_good(info, best) &&
            (strcmp(wefti_ofi_interface_name(info), wefti_ofi_interface_name(best)) != 0 ||
             (info->addr_format == best->addr_format && info->src_addrlen == best->src_addrlen &&
              info->src_addrlen > 0 && memcmp(info->src_addr, best->src_addr, info->src_addrlen) != 0))) {
            return 1;
        }
    }
    return 0;
}

/* ---- ports ---- */

/* An address as GIDs have it. Returns 0 if it is of another kind. */
static int address_of(int family, const void *address, unsigned char gid[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (family == AF_INET) {
        memcpy(gid, mapped, sizeof mapped);
        memcpy(gid + sizeof mapped, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (family == AF_INET6) {
        memcpy(gid, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    }
    return family == AF_INET || family == AF_INET6;
}

#define IB_ADDRESS_AT 8 /* in the address of FI_SOCKADDR_IB (the kernel's sockaddr_ib) */

static int address_of_info(const struct fi_info *info, unsigned char gid[16])
{
    if (info->src_addr == NULL) {
        return 0;
    }
    if (info->addr_format == FI_SOCKADDR_IB && info->src_addrlen >= IB_ADDRESS_AT + 16) {
        memcpy(gid, (const unsigned char *)info->src_addr + IB_ADDRESS_AT, 16);
        return 1;
    }
    const int family = info->addr_format == FI_SOCKADDR_IN && info->src_addrlen >= sizeof(struct sockaddr_in) ? AF_INET
                       : info->addr_format == FI_SOCKADDR_IN6 && info->src_addrlen >= sizeof(struct sockaddr_in6)
                           ? AF_INET6
                           : AF_UNSPEC;
    return address_of(family, info->src_addr, gid);
}

/* The GID of the port of InfiniBand whose interface of IP has the address. Returns 0 if there is none. */
static int find_interface_gid(const unsigned char address[16], unsigned char gid[16])
{
    struct ifaddrs *all = NULL;
    int found = 0;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        unsigned char its[16];
        found = one->ifa_addr != NULL && address_of(one->ifa_addr->sa_family, one->ifa_addr, its) &&
                memcmp(its, address, sizeof its) == 0 && wefti_topo_gid_of_interface("/sys", one->ifa_name, gid);
    }
    freeifaddrs(all);
    return found;
}

static int has_gid(const wefti_topo_rail *rail, const unsigned char gid[16])
{
    for (int i = 0; i < rail->gid_count; i++) {
        if (memcmp(rail->gids[i], gid, 16) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether what libfabric offers of a NIC leads to that port of it. */
static int is_of_port(const struct fi_info *info, const wefti_topo_rail *rail)
{
    unsigned char address[16];
    unsigned char gid[16];
    return address_of_info(info, address) && !is_link_local(info) &&
           (has_gid(rail, address) || (find_interface_gid(address, gid) && has_gid(rail, gid)));
}

/* Whether it matters, and can be known, which port it is: not where its GIDs may be more than there is room for. */
static int is_told(const wefti_topo_rail *rail)
{
    return rail->ports > 1 && rail->gid_count > 0 && rail->gid_count < WEFTI_TOPO_RAIL_GIDS_MAX;
}

/* ---- the plan's ---- */

/* The best of a port, and of a provider unless that is NULL; NULL: none. */
static const struct fi_info *find_rail(const struct fi_info *offered, const wefti_topo_rail *rail, const char *provider)
{
    const struct fi_info *found = NULL;
    for (const struct fi_info *info = offered; info != NULL; info = info->next) {
        if (strcmp(wefti_ofi_interface_name(info), rail->name) == 0 && (found == NULL || rank(info) < rank(found)) &&
            (provider == NULL || strcmp(info->fabric_attr->prov_name, provider) == 0) &&
            (!is_told(rail) || is_of_port(info, rail))) {
            found = info;
        }
    }
    return found;
}

/* Each name once. */
static void list_names(const struct fi_info *offered, char text[NAMES_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct fi_info *info = offered; info != NULL && used < NAMES_BYTES; info = info->next) {
        const struct fi_info *before = offered;
        while (before != info && strcmp(wefti_ofi_interface_name(before), wefti_ofi_interface_name(info)) != 0) {
            before = before->next;
        }
        if (before == info) {
            const int wrote =
                snprintf(text + used, NAMES_BYTES - used, "%s%s", used > 0 ? ", " : "", wefti_ofi_interface_name(info));
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

static weft_status not_there(const struct fi_info *offered, const wefti_topo_rail *rail, const char *provider)
{
    char names[NAMES_BYTES];
    const char *name = rail != NULL ? rail->name : "none";
    list_names(offered, names);
    for (const struct fi_info *info = offered; info != NULL && rail != NULL && is_told(rail); info = info->next) {
        if (strcmp(wefti_ofi_interface_name(info), name) == 0) {
            return wefti_error(
                WEFT_ERR_ARGUMENT,
                "the plan's port of this PE is %s:%d, by WEFT_NIC_LIST, WEFT_NIC_MAPPING or "
                "WEFT_NIC_ROUND_ROBIN, but none of the addresses that libfabric has of %s is of that port; "
                "give its network interface an address (weft-info topo shows GIDs), or name another port",
                name, rail->port, name);
        }
    }
    return wefti_error(WEFT_ERR_ARGUMENT,
                       "the plan's NIC of this PE is %s, by WEFT_NIC_LIST, WEFT_NIC_MAPPING or "
                       "WEFT_NIC_ROUND_ROBIN, but libfabric's interfaces here%s%s are: %s",
                       name, provider != NULL ? " of the provider " : "", provider != NULL ? provider : "", names);
}

/* Where ports are not told apart, another of the same NIC is no other interface. */
static int has_interface(const wefti_ofi_interfaces *chosen, const struct fi_info *info, int is_told)
{
    for (int i = 0; i < chosen->count; i++) {
        if (chosen->infos[i] == info ||
            (!is_told && strcmp(wefti_ofi_interface_name(chosen->infos[i]), wefti_ofi_interface_name(info)) == 0)) {
            return 1;
        }
    }
    return 0;
}

static void add_interface(wefti_ofi_interfaces *chosen, const struct fi_info *info, const wefti_topo_rail *rail,
                          int is_own)
{
    if (!has_interface(chosen, info, is_told(rail))) {
        chosen->infos[chosen->count] = info;
        chosen->ports[chosen->count] = is_told(rail) ? rail->port : 0;
        chosen->slots[chosen->count++] = rail->slot;
        chosen->own += is_own;
    }
}

static void warn_of_port(const wefti_topo_rail *rail, int is_asked)
{
    if (rail->ports > 1 && !is_told(rail)) {
        wefti_log(is_asked ? WEFTI_LOG_WARN : WEFTI_LOG_INFO,
                  "the plan's port of this PE is %s:%d, but the GIDs of the port are not known, by which libfabric's "
                  "addresses of %s could be told apart: which of its ports is used is not known",
                  rail->name, rail->port, rail->name);
    }
}

static weft_status take_planned(const struct fi_info *offered, const struct fi_info *best, int is_asked,
                                const wefti_topo_rails *nics, wefti_ofi_interfaces *chosen)
{
    const wefti_topo_rail *first = nics->count > 0 ? &nics->rails[0] : NULL;
    const struct fi_info *found = first != NULL ? find_rail(offered, first, NULL) : NULL;
    if (found == NULL && is_asked) {
        return not_there(offered, first, NULL);
    }
    if (found == NULL || (!is_asked && !is_as_good(found, best))) {
        wefti_log(
            WEFTI_LOG_INFO, "the plan's port of this PE, %s:%d, is none of libfabric's best interfaces; %s is used",
            first != NULL ? first->name : "none", first != NULL ? first->port : 0, wefti_ofi_interface_name(best));
        return WEFT_OK;
    }
    const char *provider = found->fabric_attr->prov_name;
    chosen->count = chosen->own = 0;
    memcpy(chosen->reason, nics->reason, sizeof chosen->reason);
    for (int i = 0; i < nics->count; i++) {
        found = find_rail(offered, &nics->rails[i], provider);
        if (found != NULL) {
            warn_of_port(&nics->rails[i], is_asked);
            add_interface(chosen, found, &nics->rails[i], i < nics->own);
        } else if (is_asked) {
            return not_there(offered, &nics->rails[i], provider);
        } else {
            wefti_log(WEFTI_LOG_INFO,
                      "a further port of the plan, %s:%d, is none of libfabric's interfaces of %s: it is not used",
                      nics->rails[i].name, nics->rails[i].port, provider);
        }
    }
    return WEFT_OK;
}

weft_status wefti_ofi_interfaces_choose(const struct fi_info *offered, const wefti_topo_pe *pe,
                                        wefti_ofi_interfaces *chosen)
{
    const struct fi_info *best = find_best(offered);
    wefti_topo_rails nics;
    wefti_topo_rails_ask ask;
    memset(chosen, 0, sizeof *chosen);
    WEFT_TRY(wefti_topo_rails_ask_read(&ask));
    chosen->wish = ask.rails;
    chosen->infos[0] = best;
    chosen->count = chosen->own = 1;
    (void)snprintf(chosen->reason, sizeof chosen->reason, "libfabric's first");
    if (!ask.is_asked && !ask.is_described && !has_several(offered, best)) {
        return WEFT_OK;
    }
    weft_status status = wefti_topo_rails_here(&ask, pe, &nics);
    if (status != WEFT_OK) {
        return ask.is_asked || ask.is_described ? status : WEFT_OK;
    }
    return take_planned(offered, best, ask.is_asked, &nics, chosen);
}
