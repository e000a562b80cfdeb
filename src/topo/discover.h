/* topo/discover.h: the machine that this process is on. */
#ifndef WEFTI_TOPO_DISCOVER_H
#define WEFTI_TOPO_DISCOVER_H

#include "topo/machine.h"

/* What WEFT_TOPO_FILE describes, or this machine by hwloc and NVML. Asked for by who needs it: creating a world of PEs
 * on one node does not. Errors: those of topo/description.h and topo/hwloc.h. */
weft_status wefti_topo_discover(wefti_topo *topo);

#endif
