/* faces/nccl_ep/traces.h: where rows that a dispatch has moved have been. The fake driver's device memory is files in
 * this process's memory: rows are of one number; after a dispatch all that the caller knows of is cleared, and device
 * memory is looked through for it. What is staged stays in the group's. */
#ifndef WEFT_TESTS_NCCL_EP_TRACES_H
#define WEFT_TESTS_NCCL_EP_TRACES_H

#include "faces/nccl_ep/step.h"

/* Of cuMemAlloc. Ends the program where there is none. */
void *take_device_memory(size_t bytes);

/* Rows of the number to everywhere, and whether one is left once the caller's memory is cleared: by one rank, while the
 * others wait. */
int is_left(rig *r, step *s, ncclEpHandle_t handle, void *rows);

#endif
