/* gpu/support/device_pes.h: the PEs of one process on GPUs of the fake driver. */
#ifndef GPU_SUPPORT_DEVICE_PES_H
#define GPU_SUPPORT_DEVICE_PES_H

#include "weft.h"

enum { GPU_PES_MAX = 8 };

/* Create worlds[0 .. pes - 1], which are the PEs of one world: PE i on GPU i % gpus. */
static inline weft_status gpu_pes_create(int pes, int gpus, weft_world **worlds)
{
    weft_threads *meeting = NULL;
    weft_world_config configs[GPU_PES_MAX];
    weft_device_config devices[GPU_PES_MAX];
    weft_status status = pes <= GPU_PES_MAX ? weft_threads_create(pes, &meeting) : WEFT_ERR_ARGUMENT;
    if (status != WEFT_OK) {
        return status;
    }
    for (int i = 0; i < pes; i++) {
        devices[i] = (weft_device_config)WEFT_DEVICE_CONFIG_INIT;
        devices[i].choice = WEFT_DEVICE_ORDINAL;
        devices[i].ordinal = i % gpus;
        devices[i].heap_max_bytes = (size_t)32 << 20;
        configs[i] = (weft_world_config)WEFT_WORLD_CONFIG_INIT;
        configs[i].heap_max_bytes = (size_t)1 << 20;
        configs[i].device = &devices[i];
        configs[i].bootstrap = WEFT_BOOTSTRAP_THREADS;
        configs[i].threads = meeting;
        configs[i].pe = i;
        configs[i].pes = pes;
    }
    status = weft_world_create_many(configs, pes, worlds);
    weft_threads_destroy(meeting);
    return status;
}

#endif
