/* transport/ucx/devices.h: which devices of this host UCX is to use: the rails of the PE, by the plan (topo/plan.h).
 *
 *   with UCX_NET_DEVICES   what that says
 *   with WEFT_NIC_LIST, WEFT_NIC_MAPPING or WEFT_NIC_ROUND_ROBIN   those of the plan; an error if one is not there
 *   with WEFT_TOPO_FILE, or where the host has several devices of InfiniBand   those of the plan that are there
 *   else                   what UCX chooses; the machine is not looked at */
#ifndef WEFTI_TRANSPORT_UCX_DEVICES_H
#define WEFTI_TRANSPORT_UCX_DEVICES_H

#include "topo/nic_of_pe.h"

typedef struct wefti_ucx_devices {
    char names[WEFTI_TOPO_RAILS_OWN * (WEFTI_TOPO_NAME_BYTES + 4)]; /* as UCX_NET_DEVICES has them; empty: any */
    int count;
    char reason[WEFTI_TOPO_NIC_REASON_BYTES]; /* empty without a plan */
} wefti_ucx_devices;

weft_status wefti_ucx_devices_choose(const wefti_topo_pe *pe, wefti_ucx_devices *chosen);

#endif
