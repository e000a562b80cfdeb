/* A build without CUDA: no backend of the seam to GPUs. */
#include "device/device.h"

#ifndef WEFT_HAVE_CUDA
const wefti_device_ops *const wefti_device_backend = NULL;
#endif
