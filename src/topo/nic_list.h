/* topo/nic_list.h: lists of NICs as people write them, in the grammar of NVSHMEM.
 *
 *   WEFT_NIC_LIST     as NVSHMEM_HCA_LIST: mlx5_1:1,mlx5_2:2 are the ports to use, mlx5_1 all ports of it; ^ in front
 *                     of the list: those not to use
 *   WEFT_NIC_MAPPING  as NVSHMEM_HCA_PE_MAPPING: mlx5_0:1:3,mlx5_0:2:5: the first 3 GPUs of the node use port 1 of
 *                     mlx5_0, the next 5 port 2 */
#ifndef WEFTI_TOPO_NIC_LIST_H
#define WEFTI_TOPO_NIC_LIST_H

#include "topo/machine.h"

#define WEFTI_TOPO_NIC_ENTRIES_MAX 1024

typedef struct wefti_topo_nic_entry {
    char name[WEFTI_TOPO_NAME_BYTES];
    int port; /* 0: all */
    int count; /* of a mapping: GPUs; else 0 */
    int column; /* where it begins in the text, from 1 on */
} wefti_topo_nic_entry;

typedef struct wefti_topo_nic_list {
    int excludes;
    int count;
    wefti_topo_nic_entry *entries;
} wefti_topo_nic_list;

/* `variable` names the text in errors, which are WEFT_ERR_ARGUMENT and point at the character. An empty text is an
 * empty list. On an error the list is empty. */
weft_status wefti_topo_nic_list_parse(wefti_topo_nic_list *list, const char *variable, const char *text);
weft_status wefti_topo_nic_mapping_parse(wefti_topo_nic_list *list, const char *variable, const char *text);
void wefti_topo_nic_list_fini(wefti_topo_nic_list *list);

/* Whether an entry means this port. */
int wefti_topo_nic_matches(const wefti_topo_nic_entry *entry, const wefti_topo_object *nic);

#endif
