/* weft_world_create: a world, with its device if the config asks for one. */
#include "base/error.h"
#include "base/log.h"
#include "gpu/gpu.h"
#include "world/timeline.h"

weft_status wefti_world_create(const weft_world_config *config, weft_world **out, const wefti_headers *headers)
{
    wefti_world_settings settings;
    weft_world *world;
    wefti_log_read();
    if (out == NULL) {
        return wefti_error_null("weft_world_create", "world");
    }
    WEFT_TRY(wefti_world_make(config, headers, wefti_device_backend == NULL ? NULL : wefti_device_backend->find_pci,
                              &settings, &world));
    if (settings.config.device != NULL) {
        weft_status status = weft_device_attach(world, settings.config.device);
        if (status != WEFT_OK) {
            wefti_world_free(world);
            return status;
        }
    }
    wefti_timeline_open(world, &settings);
    *out = world;
    return WEFT_OK;
}
