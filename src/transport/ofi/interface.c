#include "transport/ofi/interface.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "topo/discover.h"

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

/* Whether there is something to choose: several NICs, as libfabric knows them. Interfaces of IP are not counted, which
 * may belong to networks that are not connected. */
static int has_several(const struct fi_info *offered, const struct fi_info *best)
{
    for (const struct fi_info *info = offered; info != NULL && best->nic != NULL; info = info->next) {
        if (info->nic != NULL && is_as_good(info, best) &&
            strcmp(wefti_ofi_interface_name(info), wefti_ofi_interface_name(best)) != 0) {
            return 1;
        }
    }
    return 0;
}

/* ---- the plan's ---- */

/* The best of a name; NULL: none. */
static const struct fi_info *find_named(const struct fi_info *offered, const char *name)
{
    const struct fi_info *found = NULL;
    for (const struct fi_info *info = offered; info != NULL; info = info->next) {
        if (strcmp(wefti_ofi_interface_name(info), name) == 0 && (found == NULL || rank(info) < rank(found))) {
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

static weft_status take_planned(const struct fi_info *offered, const struct fi_info *best, int is_asked,
                                const wefti_topo_nic_of_pe *nic, wefti_ofi_interface *chosen)
{
    char names[NAMES_BYTES];
    const struct fi_info *found = nic->name[0] == '\0' ? NULL : find_named(offered, nic->name);
    if (found != NULL && (is_asked || is_as_good(found, best))) {
        chosen->info = found;
        memcpy(chosen->reason, nic->reason, sizeof chosen->reason);
        return WEFT_OK;
    }
    if (is_asked) {
        list_names(offered, names);
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the plan's NIC of this PE is %s, by WEFT_NIC_LIST, WEFT_NIC_MAPPING or "
                           "WEFT_NIC_ROUND_ROBIN, but libfabric's interfaces here are: %s",
                           nic->name[0] != '\0' ? nic->name : "none", names);
    }
    wefti_log(WEFTI_LOG_INFO, "the plan's NIC of this PE, %s, is none of libfabric's best interfaces; %s is used",
              nic->name[0] != '\0' ? nic->name : "none", wefti_ofi_interface_name(best));
    return WEFT_OK;
}

static void warn_of_gpus(const wefti_topo_wish *wish, const wefti_topo_pe *pe)
{
    if (pe->gpu == WEFTI_TOPO_PCI_NONE && (wish->mapping[0] != '\0' || wish->is_round_robin)) {
        wefti_log(
            WEFTI_LOG_WARN,
            "WEFT_NIC_MAPPING and WEFT_NIC_ROUND_ROBIN are for GPUs, and which GPU this PE will have is not known "
            "yet: it takes a port near its processors. Give weft_world_create the device (config.device), or "
            "choose it before (cudaSetDevice)");
    }
}

/* A GPU that the machine does not show, as in some containers, is no reason to have no network unless a plan is asked
 * for. */
static weft_status find_nic(const wefti_topo *topo, const wefti_topo_wish *wish, const wefti_topo_pe *pe, int must,
                            wefti_topo_nic_of_pe *nic)
{
    wefti_topo_pe without = *pe;
    weft_status status = wefti_topo_nic_of(topo, wish, pe, nic);
    if (status == WEFT_ERR_RANGE && !must && pe->gpu != WEFTI_TOPO_PCI_NONE) {
        without.gpu = WEFTI_TOPO_PCI_NONE;
        status = wefti_topo_nic_of(topo, wish, &without, nic);
    }
    return status;
}

weft_status wefti_ofi_interface_choose(const struct fi_info *offered, const wefti_topo_pe *pe,
                                       wefti_ofi_interface *chosen)
{
    const struct fi_info *best = find_best(offered);
    const int is_described = wefti_env_is_set(WEFTI_ENV_TOPO_FILE);
    wefti_topo_nic_of_pe nic;
    wefti_topo_wish wish;
    wefti_topo topo;
    int is_asked;
    WEFT_TRY(wefti_topo_wish_read(&wish, &is_asked));
    chosen->info = best;
    (void)snprintf(chosen->reason, sizeof chosen->reason, "libfabric's first");
    if (!is_asked && !is_described && !has_several(offered, best)) {
        return WEFT_OK;
    }
    warn_of_gpus(&wish, pe);
    weft_status status = wefti_topo_discover(&topo);
    if (status != WEFT_OK) {
        return is_asked || is_described ? status : WEFT_OK;
    }
    status = find_nic(&topo, &wish, pe, is_asked, &nic);
    wefti_topo_fini(&topo);
    return status == WEFT_OK ? take_planned(offered, best, is_asked, &nic, chosen) : status;
}
