/* inline/device.h: the bodies of weft/device.h that hand out what kernels read. Read that one for the contracts. */
#ifndef WEFTI_INLINE_DEVICE_H
#define WEFTI_INLINE_DEVICE_H

#include "weft/device.h"
#include "weft/inline/world.h"

#ifdef __cplusplus
extern "C" {
#endif

WEFT_API weft_status wefti_world_dev(weft_world *world, weft_dev *dev, const wefti_headers *headers) WEFT_MUST_CHECK;
WEFT_API weft_status wefti_team_dev(weft_team *team, weft_dev_team *dev, const wefti_headers *headers) WEFT_MUST_CHECK;

WEFT_INLINE weft_status weft_world_dev(weft_world *world, weft_dev *dev)
{
    const wefti_headers headers = {WEFTI_VIEW_ABI, WEFT_DEV_ABI, WEFT_VERSION};
    return wefti_world_dev(world, dev, &headers);
}

WEFT_INLINE weft_status weft_team_dev(weft_team *team, weft_dev_team *dev)
{
    const wefti_headers headers = {WEFTI_VIEW_ABI, WEFT_DEV_ABI, WEFT_VERSION};
    return wefti_team_dev(team, dev, &headers);
}

#ifdef __cplusplus
}
#endif
#endif
