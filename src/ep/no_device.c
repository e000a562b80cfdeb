/* A build without expert parallelism on GPUs. */
#include "ep/group.h"

#ifndef WEFT_HAVE_CUDA
const wefti_ep_backend *const wefti_ep_device_backend = NULL;
const wefti_ep_backend *const wefti_ep_domains_backend = NULL;
#endif
