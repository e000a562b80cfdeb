/* inline/world.h: the bodies of weft/world.h, which tell the library which headers the caller was compiled with. Read
 * that one for the contracts. */
#ifndef WEFTI_INLINE_WORLD_H
#define WEFTI_INLINE_WORLD_H

#include "weft/inline/view.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The caller's headers. Those older than the library are served; those newer are refused, since what they compile into
 * the caller may read what this library does not have. */
typedef struct wefti_headers {
    uint32_t view_abi; /* WEFTI_VIEW_ABI */
    uint32_t dev_abi; /* WEFT_DEV_ABI, where kernels are concerned */
    int version; /* WEFT_VERSION */
} wefti_headers;

WEFT_API weft_status wefti_world_create(const weft_world_config *config, weft_world **world,
                                        const wefti_headers *headers) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_world_create_many(const weft_world_config *configs, size_t count, weft_world **worlds,
                                             const wefti_headers *headers) WEFT_MUST_CHECK;

WEFT_INLINE weft_status weft_world_create(const weft_world_config *config, weft_world **world)
{
    const wefti_headers headers = {WEFTI_VIEW_ABI, 0, WEFT_VERSION};
    return wefti_world_create(config, world, &headers);
}

WEFT_INLINE weft_status weft_world_create_many(const weft_world_config *configs, size_t count, weft_world **worlds)
{
    const wefti_headers headers = {WEFTI_VIEW_ABI, 0, WEFT_VERSION};
    return wefti_world_create_many(configs, count, worlds, &headers);
}

#ifdef __cplusplus
}
#endif
#endif
