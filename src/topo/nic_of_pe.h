/* topo/nic_of_pe.h: the port of a NIC that one PE uses, by the plan of its host. */
#ifndef WEFTI_TOPO_NIC_OF_PE_H
#define WEFTI_TOPO_NIC_OF_PE_H

#include "topo/plan.h"

/* Who asks. */
typedef struct wefti_topo_pe {
    wefti_topo_pci gpu; /* its GPU; WEFTI_TOPO_PCI_NONE: it has none, or none that is known */
    int numa; /* without a GPU: the NUMA node on which it runs, by the system's number; -1: several */
    int number; /* without a GPU: its number among its world's PEs on the host */
} wefti_topo_pe;

#define WEFTI_TOPO_NIC_REASON_BYTES 400

typedef struct wefti_topo_nic_of_pe {
    char name[WEFTI_TOPO_NAME_BYTES]; /* of the NIC; empty: the host has none that may be used */
    int port;
    char reason[WEFTI_TOPO_NIC_REASON_BYTES]; /* and which further ports the plan gives the GPU */
} wefti_topo_nic_of_pe;

/* What WEFT_NIC_LIST, WEFT_NIC_MAPPING and WEFT_NIC_ROUND_ROBIN ask for. *is_asked: whether one of them does. */
weft_status wefti_topo_wish_read(wefti_topo_wish *wish, int *is_asked);

/* The PE's port on the host of `topo` that has this machine's name, else on the first. Errors: those of
 * wefti_topo_plan_make; WEFT_ERR_RANGE: the GPU is none of the host's. */
weft_status wefti_topo_nic_of(const wefti_topo *topo, const wefti_topo_wish *wish, const wefti_topo_pe *pe,
                              wefti_topo_nic_of_pe *out);

#endif
