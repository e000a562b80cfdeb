#include "topo/discover.h"

#include <stdio.h>
#include <unistd.h>

#include "base/env.h"
#include "topo/description.h"
#include "topo/hwloc.h"
#include "topo/nvml.h"
#include "topo/sysfs.h"

weft_status wefti_topo_discover(wefti_topo *topo)
{
    char name[WEFTI_TOPO_NAME_BYTES];
    if (wefti_env_is_set(WEFTI_ENV_TOPO_FILE)) {
        return wefti_topo_read(topo, wefti_env_word(WEFTI_ENV_TOPO_FILE));
    }
    wefti_topo_init(topo);
    name[sizeof name - 1] = '\0';
    if (gethostname(name, sizeof name - 1) != 0) {
        (void)snprintf(name, sizeof name, "host");
    }
    (void)snprintf(topo->name, sizeof topo->name, "this machine");
    (void)snprintf(topo->source, sizeof topo->source, "hwloc and NVML");
    const int host = wefti_topo_add(topo, WEFTI_TOPO_HOST, -1, name);
    weft_status status = host < 0 ? WEFT_ERR_MEMORY : wefti_topo_add_hwloc(topo, host);
    if (status == WEFT_OK) {
        status = wefti_topo_add_sysfs(topo, host, "/sys");
    }
    if (status == WEFT_OK) {
        status = wefti_topo_add_nvml(topo, host);
    }
    if (status != WEFT_OK) {
        wefti_topo_fini(topo);
    }
    return status;
}
