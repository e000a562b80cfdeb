/* cuda/driver/modules.h: the library's kernels on a GPU. A module is loaded once a context, for all worlds of the
 * process, and stays: drivers keep some of a module's memory when it is unloaded (580.159: 0.7 MiB of the GPU's for
 * kernels.fatbin), so a process that makes world after world would run out. It has no state of its own. */
#ifndef WEFTI_CUDA_MODULES_H
#define WEFTI_CUDA_MODULES_H

#include "cuda/device.h"

/* The module of `image`, a fat binary in static memory, in the PE's context, which is the current one. */
weft_status wefti_cuda_module_load(const wefti_cuda *cuda, const void *image, CUmodule *module);

#endif
