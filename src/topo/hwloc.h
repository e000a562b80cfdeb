/* topo/hwloc.h: this machine as hwloc sees it. libhwloc is loaded when this is called, and is not linked; what it says
 * is read as the XML that it writes (topo/hwloc_xml.h). */
#ifndef WEFTI_TOPO_HWLOC_H
#define WEFTI_TOPO_HWLOC_H

#include "topo/machine.h"

/* Add what hwloc knows of this machine below `host`. Errors: WEFT_ERR_UNSUPPORTED (no libhwloc here, or this build has
 * none), WEFT_ERR_ARGUMENT (it cannot tell). */
weft_status wefti_topo_add_hwloc(wefti_topo *topo, int host);

#endif
