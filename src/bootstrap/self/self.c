/* bootstrap/self/self.c: a world of one PE. */
#include <string.h>

#include "base/error.h"
#include "bootstrap/bootstrap.h"

static weft_status self_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    if (config->pe != 0 || config->pes > 1) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "PE %d of %d cannot make a world of one PE; name the bootstrap by which the others are found", config->pe,
            config->pes);
    }
    bootstrap->pe = 0;
    bootstrap->pes = 1;
    return WEFT_OK;
}

static weft_status self_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    (void)bootstrap;
    memmove(all, mine, bytes);
    return WEFT_OK;
}

static void self_close(wefti_bootstrap *bootstrap)
{
    (void)bootstrap;
}

const wefti_bootstrap_ops wefti_bootstrap_self = {
    .name = "self",
    .open = self_open,
    .allgather = self_allgather,
    .close = self_close,
};
