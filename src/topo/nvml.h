/* topo/nvml.h: what NVML knows of the GPUs of this machine. Loaded at run time; without it GPUs have no UUIDs and
 * links. */
#ifndef WEFTI_TOPO_NVML_H
#define WEFTI_TOPO_NVML_H

#include "topo/machine.h"

/* Fill in UUIDs, MIG, the fabric, and add NVLinks, of the GPUs of `host` by their PCI addresses. */
weft_status wefti_topo_add_nvml(wefti_topo *topo, int host);

/* What NVML says of the fabric of the GPU at `pci`: cluster, clique, state, failure. Without NVML, or where it knows no
 * such GPU or no fabrics: not supported. */
void wefti_topo_read_fabric(wefti_topo_pci pci, wefti_topo_fabric *fabric);

#endif
