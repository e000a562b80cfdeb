#include "transport/ucx/devices.h"

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"

#define INFINIBAND "/sys/class/infiniband"

static int has_several(void)
{
    int count = 0;
    DIR *folder = opendir(INFINIBAND);
    for (const struct dirent *one = folder != NULL ? readdir(folder) : NULL; one != NULL; one = readdir(folder)) {
        count += one->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count > 1;
}

/* A device of InfiniBand has ports, an interface of IP has not. Returns 0 if it is neither. */
static int name_device(const wefti_topo_rail *rail, char *text, size_t bytes)
{
    char path[sizeof INFINIBAND + WEFTI_TOPO_NAME_BYTES + 2];
    struct stat found;
    (void)snprintf(path, sizeof path, INFINIBAND "/%s", rail->name);
    if (strchr(rail->name, '/') == NULL && stat(path, &found) == 0) {
        return snprintf(text, bytes, "%s:%d", rail->name, rail->port) < (int)bytes;
    }
    return if_nametoindex(rail->name) != 0 && snprintf(text, bytes, "%s", rail->name) < (int)bytes;
}

static weft_status add(wefti_ucx_devices *chosen, const wefti_topo_rail *rail, int must)
{
    const size_t used = strlen(chosen->names);
    char name[WEFTI_TOPO_NAME_BYTES + 4];
    if (name_device(rail, name, sizeof name)) {
        (void)snprintf(chosen->names + used, sizeof chosen->names - used, "%s%s", used > 0 ? "," : "", name);
        chosen->count++;
        return WEFT_OK;
    }
    if (must) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the plan's NIC of this PE is %s, by WEFT_NIC_LIST, WEFT_NIC_MAPPING or "
                           "WEFT_NIC_ROUND_ROBIN, but this host has neither an interface nor a device of InfiniBand of "
                           "that name; UCX's are shown by ucx_info -d",
                           rail->name);
    }
    wefti_log(WEFTI_LOG_INFO, "the plan's NIC of this PE, %s, is not here: UCX does not get it", rail->name);
    return WEFT_OK;
}

weft_status wefti_ucx_devices_choose(const wefti_topo_pe *pe, wefti_ucx_devices *chosen)
{
    wefti_topo_rails_ask ask;
    wefti_topo_rails nics;
    memset(chosen, 0, sizeof *chosen);
    WEFT_TRY(wefti_topo_rails_ask_read(&ask));
    if (ask.rails == WEFTI_TOPO_RAILS_SAME_SLOT) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_NIC_RAILS is same-slot, but UCX chooses by itself which rail leads to which; give all "
                           "or one, or leave UCX out by WEFT_TRANSPORT=^ucx");
    }
    if (getenv("UCX_NET_DEVICES") != NULL || (!ask.is_asked && !ask.is_described && !has_several())) {
        return WEFT_OK;
    }
    weft_status status = wefti_topo_rails_here(&ask, pe, &nics);
    if (status != WEFT_OK) {
        return ask.is_asked || ask.is_described ? status : WEFT_OK;
    }
    if (nics.count == 0 && ask.is_asked) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the plan has no NIC for this PE, by WEFT_NIC_LIST, WEFT_NIC_MAPPING or "
                                              "WEFT_NIC_ROUND_ROBIN");
    }
    for (int i = 0; i < nics.own; i++) {
        WEFT_TRY(add(chosen, &nics.rails[i], ask.is_asked));
    }
    memcpy(chosen->reason, nics.reason, sizeof chosen->reason);
    return WEFT_OK;
}
