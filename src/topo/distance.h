/* topo/distance.h: how far two devices are from each other, in the classes of NCCL and NVSHMEM.
 *
 *   SELF  the same device
 *   PIX   below one PCI switch
 *   PXB   several PCI switches between, but no host bridge
 *   PHB   through one PCI host bridge
 *   NODE  through host bridges of one NUMA node
 *   SYS   through the interconnect of NUMA nodes or packages
 *   NONE  different hosts */
#ifndef WEFTI_TOPO_DISTANCE_H
#define WEFTI_TOPO_DISTANCE_H

#include "topo/machine.h"

typedef enum wefti_topo_distance {
    WEFTI_TOPO_SELF,
    WEFTI_TOPO_PIX,
    WEFTI_TOPO_PXB,
    WEFTI_TOPO_PHB,
    WEFTI_TOPO_NODE,
    WEFTI_TOPO_SYS,
    WEFTI_TOPO_NONE
} wefti_topo_distance;

wefti_topo_distance wefti_topo_distance_of(const wefti_topo *topo, int left, int right);
const char *wefti_topo_distance_name(wefti_topo_distance distance);

#endif
