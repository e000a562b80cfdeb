/* gpu/gpu.h: what the calls on GPUs share: those of weft/device.h and weft/stream.h. */
#ifndef WEFTI_GPU_GPU_H
#define WEFTI_GPU_GPU_H

#include "team/team.h"
#include "weft/device.h"
#include "weft/stream.h"

#define WEFTI_DEVICE_BLOCK_ALIGNMENT 256

/* WEFT_OK when the world has a device. */
weft_status wefti_world_need_device(const weft_world *world, const char *call);
/* What kernels wait with on this team, but no channels: collective the first time, then local. */
weft_status wefti_team_device_area(weft_team *team, const char *call, weft_dev_team *dev);
/* The same with the channels of collectives on streams, which weft_team_stream_ready has made. Local then. */
weft_status wefti_team_stream_dev(weft_team *team, const char *call, weft_dev_team *dev);

#endif
