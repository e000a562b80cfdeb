/* transport/ofi/interface.h: which of the interfaces that libfabric offers this PE uses: its rails, of one provider.
 *
 *   with WEFT_NIC_LIST, WEFT_NIC_MAPPING or WEFT_NIC_ROUND_ROBIN   the NICs of the host's plan (topo/plan.h), whatever
 *                          their provider; an error if libfabric has no such interface
 *   with WEFT_TOPO_FILE, or where libfabric knows several NICs of its best provider   the NICs of the plan that are
 *                          among those; if the first is not, as without
 *   else                   the first of the best: libfabric lists them by speed. The machine is not looked at
 *
 * "Best": what reaches other hosts, and is no emulation of last resort. An interface has the name of its NIC where
 * libfabric tells one (mlx5_0), else of its domain (eth0).
 * libfabric tells the ports of a NIC apart by nothing but addresses: what it offers leads to the port that has its
 * address among its GIDs, or whose InfiniBand interface has the address. Where GIDs are not known, any will do. */
#ifndef WEFTI_TRANSPORT_OFI_INTERFACE_H
#define WEFTI_TRANSPORT_OFI_INTERFACE_H

#include <rdma/fabric.h>

#include "topo/nic_of_pe.h"

typedef struct wefti_ofi_interfaces {
    const struct fi_info *infos[WEFTI_TOPO_RAILS_MAX]; /* of those offered; one at least, each once */
    int slots[WEFTI_TOPO_RAILS_MAX]; /* of the plan; 0 without one */
    int ports[WEFTI_TOPO_RAILS_MAX]; /* of a NIC that has several, where it is known which; else 0 */
    int count;
    int own; /* as of wefti_topo_rails */
    wefti_topo_rails_wish wish;
    char reason[WEFTI_TOPO_NIC_REASON_BYTES];
} wefti_ofi_interfaces;

/* `offered` is not NULL. */
weft_status wefti_ofi_interfaces_choose(const struct fi_info *offered, const wefti_topo_pe *pe,
                                        wefti_ofi_interfaces *chosen);

const char *wefti_ofi_interface_name(const struct fi_info *info);

#endif
