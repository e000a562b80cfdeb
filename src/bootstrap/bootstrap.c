/* bootstrap/bootstrap.c: what all backends have in common. */
#include "bootstrap/bootstrap.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"

uint64_t wefti_bootstrap_limit_ns(const wefti_bootstrap *bootstrap)
{
    uint64_t least_ns = wefti_os_now_ns() + WEFTI_BOOTSTRAP_LAST_NS;
    return bootstrap->until_ns > least_ns ? bootstrap->until_ns : least_ns;
}

weft_status wefti_bootstrap_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call)
{
    if (bootstrap->ops->digest != NULL) {
        return bootstrap->ops->digest(bootstrap, call);
    }
    void *all = wefti_alloc((size_t)bootstrap->pes * call->bytes);
    if (all == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for what %d PEs contribute", bootstrap->pes);
    }
    weft_status status = bootstrap->ops->allgather(bootstrap, call->mine, all, call->bytes);
    if (status == WEFT_OK) {
        status = call->make(all, bootstrap->pes, call->digest);
    }
    wefti_free(all);
    return status;
}

weft_status wefti_bootstrap_check(wefti_bootstrap *bootstrap)
{
    return bootstrap->ops->check == NULL ? WEFT_OK : bootstrap->ops->check(bootstrap);
}

const char *wefti_bootstrap_world_name(const weft_world_config *config)
{
    return config->name == NULL ? "world" : config->name;
}

void wefti_bootstrap_close(wefti_bootstrap *bootstrap)
{
    if (bootstrap->ops != NULL) {
        bootstrap->ops->close(bootstrap);
        memset(bootstrap, 0, sizeof *bootstrap);
    }
}
