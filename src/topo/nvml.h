/* topo/nvml.h: what NVML knows of the GPUs of this machine. Loaded at run time; without it GPUs have no UUIDs and
 * links. */
#ifndef WEFTI_TOPO_NVML_H
#define WEFTI_TOPO_NVML_H

#include "topo/machine.h"

/* Fill in UUIDs, MIG, the fabric, and add NVLinks, of the GPUs of `host` by their PCI addresses. */
weft_status wefti_topo_add_nvml(wefti_topo *topo, int host);

#endif
