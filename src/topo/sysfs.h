/* topo/sysfs.h: what Linux says of the ports of NICs and hwloc does not. `root` is where sysfs is, "/sys"; of tests a
 * folder of theirs. */
#ifndef WEFTI_TOPO_SYSFS_H
#define WEFTI_TOPO_SYSFS_H

#include "topo/machine.h"

/* The links' speeds and the GIDs of the ports of `host`. What cannot be read stays unknown. Error: WEFT_ERR_MEMORY. */
weft_status wefti_topo_add_sysfs(wefti_topo *topo, int host, const char *root);

/* The GID of the InfiniBand port below a network interface, which is a part of its hardware address. Returns 0 if the
 * interface is none of InfiniBand. */
int wefti_topo_gid_of_interface(const char *root, const char *interface, unsigned char gid[16]);

#endif
